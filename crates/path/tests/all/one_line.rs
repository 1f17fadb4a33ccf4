//! An error model, a queue discipline, a delay, a fade, a code and a rate that changes by itself are one file and one line
//! each: the file below `src/error`, `src/queue`, `src/delay`, `src/fade`, `src/fec` or `src/rate`, and the line in `mod.rs`
//! beside it. From that line follow the name in files with its keys and their
//! checks, the JSON Schema, the canonical form, the words of reports and the dispatch; so no other source file may
//! know a model. (Its module is named in `mod.rs`, as the language wants it. A model may be made of another one.)

use skyhaul_path::{delay, error, fade, fec, queue, rate};
use skyhaul_testkit::one_line::{List, Row, code, whole};

/// Names that are also other words: they are looked for as variants and types only.
const WORDS: &[&str] = &[
    "ber",
    "block",
    "bursts",
    "fixed",
    "list",
    "mtu",
    "none",
    "normal",
    "per",
    "plain",
    "rain",
    "shadowing",
    "rate",
    "repeat",
    "threshold",
    "trace",
    "uniform",
];

/// True if `code` names the model: its name alone in quotes, its configuration, its variant of one of `enums`.
fn names(code: &str, row: &Row<'_>, enums: &[&str]) -> bool {
    !WORDS.contains(&row.name) && whole(code, &format!("\"{}\"", row.name))
        || whole(code, row.path)
        || enums.iter().any(|of| whole(code, &format!("{of}::{}", row.variant)))
}

/// The enums that have a variant for each model.
const CODES: &[&str] = &["fec::Config"];
const DELAYS: &[&str] = &["Delay"];
const ERRORS: &[&str] = &["error::Config", "ErrorModel"];
const QUEUES: &[&str] = &["Discipline", "Kind"];
const RATES: &[&str] = &["rate::Config", "rate::Kind"];
const FADES: &[&str] = &["fade::Config"];

/// Checks the list of the models below `folder`.
fn check(
    folder: &str,
    names_in_files: Vec<&str>,
    default: Option<&str>,
    enums: &[&str],
    page: Option<&str>,
    elsewhere: &[(&str, &str, &str)],
) {
    let list = List {
        file: &format!("{folder}/mod.rs"),
        what: "a new model",
        names: names_in_files,
        exempt: &[],
        default,
        own: &|_| folder.to_owned(),
        named: &|code, row| names(code, row, enums),
        listed: &|line, row| whole(line, &format!("\"{}\"", row.name)) || whole(line, row.variant),
        page,
        elsewhere,
    };
    list.check();
}

#[test]
fn no_other_source_file_names_a_delay() {
    check("crates/path/src/delay", delay::NAMES.to_vec(), Some("fixed"), DELAYS, None, &[]);
}

#[test]
fn no_other_source_file_names_a_code() {
    check("crates/path/src/fec", fec::NAMES.to_vec(), None, CODES, None, &[]);
}

#[test]
fn no_other_source_file_names_an_error_model() {
    let elsewhere = [("ber", "crates/scenario/src/check/warn.rs", "a warning about bit error rates")];
    check("crates/path/src/error", error::NAMES.to_vec(), Some("none"), ERRORS, None, &elsewhere);
}

#[test]
fn no_other_source_file_names_a_queue() {
    let names = queue::Kind::ALL.iter().map(|kind| kind.name()).collect();
    let elsewhere = [
        ("fq-codel", "crates/gateway/src/repair/settings.rs", "a repairing gateway has one of two queues"),
        ("fifo-pushout", "crates/testkit/src/fuzz/queue.rs", "a naive queue to compare with"),
        ("strict-pushout", "crates/testkit/src/fuzz/queue.rs", "a naive queue to compare with"),
        ("threshold", "crates/testkit/src/fuzz/queue.rs", "a naive queue to compare with"),
    ];
    check("crates/path/src/queue", names, Some("drop-tail"), QUEUES, Some("docs/queues.md"), &elsewhere);
}

#[test]
fn no_other_source_file_names_a_rate() {
    let elsewhere = [];
    check("crates/path/src/rate", [rate::NAMES, rate::KINDS].concat(), None, RATES, None, &elsewhere);
}

#[test]
fn no_other_source_file_names_a_fade() {
    check("crates/path/src/fade", fade::NAMES.to_vec(), None, FADES, None, &[]);
}

#[test]
fn a_name_is_found_where_it_stands() {
    let gilbert = Row { name: "gilbert-elliott", variant: "GilbertElliott", path: "gilbert::Config" };
    for text in ["x == \"gilbert-elliott\"", "error::Config::GilbertElliott(c)", "gilbert::Config { p_gb }"] {
        assert!(names(&code(text), &gilbert, ERRORS), "{text}");
    }
    for text in ["// \"gilbert-elliott\"", "Config::GilbertElliotts", "gilbert::Configs", "let gilbert = 1;"]
    {
        assert!(!names(&code(text), &gilbert, ERRORS), "{text}");
    }
    let threshold = Row { name: "threshold", variant: "Threshold", path: "threshold::Config" };
    for text in ["Kind::Threshold => 1", "Discipline::Threshold(_)", "threshold::Config { k }"] {
        assert!(names(&code(text), &threshold, QUEUES), "{text}");
    }
    assert!(!names(&code("fn f() {}\n#[cfg(test)]\nmod tests { threshold::Config }"), &threshold, QUEUES));
}

//! An error model, a queue discipline and a delay are one file and one line each: the file below `src/error`, `src/queue`
//! or `src/delay`, and the line in `mod.rs` beside it. From that line follow the name in files with its keys and their
//! checks, the JSON Schema, the canonical form, the words of reports and the dispatch; so no other source file may
//! know a model. (Its module is named in `mod.rs`, as the language wants it. A model may be made of another one.)

use skyhaul_path::{delay, error, queue};
use std::fs;
use std::path::{Path, PathBuf};

/// A list of models.
struct List {
    folder: &'static str,
    /// The enums that have a variant for each.
    enums: &'static [&'static str],
    /// Names in files, in the order of the list.
    names: Vec<&'static str>,
    /// What stands where nothing is said, and is named for that in `mod.rs`.
    default: &'static str,
}

/// Names that are also other words: they are looked for as variants and types only.
const WORDS: &[&str] = &["ber", "fixed", "list", "none", "normal", "per", "plain", "uniform"];

/// Where a model is named for a reason of its own: name, file, why.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    ("ber", "crates/scenario/src/check/warn.rs", "a warning about bit error rates"),
    ("fifo-pushout", "crates/testkit/src/fuzz/queue.rs", "a naive queue to compare with"),
    ("strict-pushout", "crates/testkit/src/fuzz/queue.rs", "a naive queue to compare with"),
    ("strict-pushout", "crates/study/src/engine.rs", "the scenario of the fingerprint"),
    ("threshold", "crates/testkit/src/fuzz/queue.rs", "a naive queue to compare with"),
];

fn lists() -> [List; 3] {
    [
        List {
            folder: "crates/path/src/delay",
            enums: &["Delay"],
            names: delay::NAMES.to_vec(),
            default: "fixed",
        },
        List {
            folder: "crates/path/src/error",
            enums: &["error::Config", "ErrorModel"],
            names: error::NAMES.to_vec(),
            default: "none",
        },
        List {
            folder: "crates/path/src/queue",
            enums: &["Discipline", "Kind"],
            names: queue::Kind::ALL.iter().map(|kind| kind.name()).collect(),
            default: "drop-tail",
        },
    ]
}

/// A model as a list has it.
struct Row<'a> {
    name: &'a str,
    variant: &'a str,
    /// Its configuration, as a path.
    config: &'a str,
}

/// The lines `"name" Variant(path::Config),` of a list.
fn rows(text: &str) -> Vec<Row<'_>> {
    fn row(line: &str) -> Option<Row<'_>> {
        let (name, rest) = line.strip_prefix("    \"")?.split_once("\" ")?;
        let (variant, rest) = rest.split_once('(')?;
        Some(Row { name, variant, config: rest.strip_suffix("),")? })
    }
    text.lines().filter_map(row).collect()
}

/// What runs of a source file: without comments and the tests at its end.
fn code(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    let lines = text[..end].lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// True if `text` stands in `code`, not as a part of a longer name.
fn whole(code: &str, text: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(text).any(|(at, _)| {
        let (before, after) = (code[..at].chars().next_back(), code[at + text.len()..].chars().next());
        !before.is_some_and(part) && !after.is_some_and(part)
    })
}

/// True if `code` names the model: its name alone in quotes, its variant, its configuration.
fn names(code: &str, list: &List, row: &Row<'_>) -> bool {
    !WORDS.contains(&row.name) && whole(code, &format!("\"{}\"", row.name))
        || whole(code, row.config)
        || list.enums.iter().any(|of| whole(code, &format!("{of}::{}", row.variant)))
}

/// Source files of the product below `folder`.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the repository") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        let extension = path.extension().and_then(|e| e.to_str());
        if path.is_dir() {
            if !matches!(name, "tests" | "benches" | "examples" | "target") {
                sources(&path, found);
            }
        } else if matches!(extension, Some("rs" | "py" | "pyi")) && name != "tests.rs" {
            found.push(path);
        }
    }
}

#[test]
fn no_other_source_file_names_a_model() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in ["crates", "xtask", "python/skyhaul"] {
        sources(&root.join(folder), &mut files);
    }
    assert!(files.len() > 200, "the sources were found: {}", files.len());
    let mut expected: Vec<_> = ELSEWHERE.iter().collect();
    let mut wrong = Vec::new();
    for list in lists() {
        let registry = format!("{}/mod.rs", list.folder);
        let text = fs::read_to_string(root.join(&registry)).expect("the list");
        let rows = rows(&text);
        assert_eq!(
            rows.iter().map(|r| r.name).collect::<Vec<_>>(),
            list.names,
            "{registry} is read as meant"
        );
        for file in &files {
            let path = file.strip_prefix(&root).expect("below the root").to_string_lossy().replace('\\', "/");
            let code = code(&fs::read_to_string(file).expect("a source file"));
            for row in &rows {
                if path == registry {
                    let named = |l: &&str| whole(l, &format!("\"{}\"", row.name)) || whole(l, row.variant);
                    let lines = code.lines().filter(named).count();
                    let once = 1 + usize::from(row.name == list.default);
                    assert!((1..=once).contains(&lines), "{lines} lines of {} in {registry}", row.name);
                } else if !path.starts_with(list.folder) && names(&code, &list, row) {
                    match expected.iter().position(|(name, at, _)| *name == row.name && *at == path) {
                        Some(i) => drop(expected.remove(i)),
                        None => wrong.push(format!("{path} names {}", row.name)),
                    }
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "a new model would need more than its file and its line; let the list tell instead:\n{}",
        wrong.join("\n")
    );
    assert!(expected.is_empty(), "no longer there, take them off the list: {expected:?}");
}

#[test]
fn a_name_is_found_where_it_stands() {
    let [_, errors, queues] = lists();
    let gilbert = Row { name: "gilbert-elliott", variant: "GilbertElliott", config: "gilbert::Config" };
    for text in ["x == \"gilbert-elliott\"", "error::Config::GilbertElliott(c)", "gilbert::Config { p_gb }"] {
        assert!(names(&code(text), &errors, &gilbert), "{text}");
    }
    for text in ["// \"gilbert-elliott\"", "Config::GilbertElliotts", "gilbert::Configs", "let gilbert = 1;"]
    {
        assert!(!names(&code(text), &errors, &gilbert), "{text}");
    }
    let threshold = Row { name: "threshold", variant: "Threshold", config: "threshold::Config" };
    for text in ["Kind::Threshold => 1", "Discipline::Threshold(_)", "\"threshold\""] {
        assert!(names(&code(text), &queues, &threshold), "{text}");
    }
    assert!(!names(&code("fn f() {}\n#[cfg(test)]\nmod tests { threshold::Config }"), &queues, &threshold));
}

//! An algorithm is one file and one line: the file below `src/alg` and the line in `src/registry.rs`. From that line
//! follow names, options in files, the schema, the command, Python and the tests over all algorithms; so no other
//! source file may know an algorithm by its name. (Its module is named in `src/alg/mod.rs`, as the language wants it.)
//!
//! The Reno family is exempt: its names are ways of repair that the sender, files and Python share
//! (`RecoveryMode`), and other algorithms are made of its window.

use skyhaul_cc::NAMES;
use skyhaul_testkit::one_line::{List, Row, code, whole};

/// Where a name stands as a default or an example: algorithm, file, why.
const EXAMPLES: &[(&str, &str, &str)] = &[
    ("cubic", "crates/cli/src/args/wire.rs", "the default of `wire`"),
    ("cubic", "crates/gateway/src/config/link.rs", "the default of a gateway"),
    ("scps-like", "crates/gateway/src/config/link.rs", "the control of a profile of links"),
    ("peach", "crates/net/src/fuzz.rs", "an algorithm whose probes are to be fuzzed"),
    ("bbr", "crates/net/src/doctor/mod.rs", "the kernel's control of that name"),
    ("gaimd", "crates/kernel/src/control.rs", "a control that has a program for the kernel"),
    ("westwood-plus", "crates/kernel/src/control.rs", "a control that has a program for the kernel"),
    ("westwood-abse", "crates/kernel/src/control.rs", "a control that has a program for the kernel"),
    ("tibet", "crates/kernel/src/control.rs", "a control that has a program for the kernel"),
    ("hybla", "crates/kernel/src/control.rs", "a control that has a program for the kernel"),
    ("tcp-real", "crates/kernel/src/control.rs", "a control that has a program for the kernel"),
    ("hark", "crates/kernel/src/control.rs", "a control that has a program for the kernel"),
    ("cubic", "crates/kernel/src/control.rs", "a control that the kernel has, or cannot express"),
    ("vegas", "crates/kernel/src/control.rs", "a control that the kernel has, or cannot express"),
    ("bbr", "crates/kernel/src/control.rs", "a control that the kernel has, or cannot express"),
    ("tcp-probing", "crates/kernel/src/control.rs", "a control that the kernel has, or cannot express"),
    ("fast-start", "crates/kernel/src/control.rs", "a control that the kernel has, or cannot express"),
    ("peach", "crates/kernel/src/control.rs", "a control that the kernel has, or cannot express"),
    ("peach-plus", "crates/kernel/src/control.rs", "a control that the kernel has, or cannot express"),
    ("cubic", "crates/kernel/src/loader.rs", "the kernel's own default"),
    ("peach", "python/skyhaul/_run.py", "an example of its documentation"),
    ("peach", "python/skyhaul/__init__.py", "an example of its documentation"),
    ("peach", "python/skyhaul/_sweep.py", "an example of its documentation"),
];

/// True if `code` names the algorithm: its name alone in quotes, its module, its variant.
fn names(code: &str, row: &Row<'_>) -> bool {
    whole(code, &format!("\"{}\"", row.name))
        || whole(code, &format!("{}::", row.module()))
        || whole(code, &format!("alg::{{{}", row.module()))
        || ["Config", "Algorithm", "Control"].iter().any(|e| whole(code, &format!("{e}::{}(", row.variant)))
}

#[test]
fn no_other_source_file_names_an_algorithm() {
    let list = List {
        file: "crates/cc/src/registry.rs",
        what: "a new algorithm",
        names: NAMES.to_vec(),
        exempt: &["tahoe", "reno", "newreno", "sack", "prr"],
        default: None,
        own: &|row| format!("crates/cc/src/alg/{}", row.module()),
        named: &names,
        listed: &names,
        page: Some("docs/algorithms/index.md"),
        elsewhere: EXAMPLES,
    };
    list.check();
}

#[test]
fn a_name_is_found_where_it_stands() {
    let row = Row { name: "tibet", variant: "Tibet", path: "tibet::Tibet" };
    for text in ["x == \"tibet\"", "use alg::tibet::Tibet;", "Config::Tibet(c)", "use alg::{tibet, vegas};"] {
        assert!(names(&code(text), &row), "{text}");
    }
    for text in ["// \"tibet\"", "\"tibet-plus\"", "not_tibet::x", "let tibet = 1;"] {
        assert!(!names(&code(text), &row), "{text}");
    }
    assert!(!names(&code("fn f() {}\n#[cfg(test)]\nmod tests { use tibet::Tibet; }"), &row));
}

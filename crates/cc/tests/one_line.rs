//! An algorithm is one file and one line: the file below `src/alg` and the line in `src/registry.rs`. From that line
//! follow names, options in files, the schema, the command, Python and the tests over all algorithms; so no other
//! source file may know an algorithm by its name. (Its module is named in `src/alg/mod.rs`, as the language wants it.)
//!
//! The Reno family is exempt: its names are ways of repair that the sender, files and Python share
//! (`RecoveryMode`), and other algorithms are made of its window.

use skyhaul_cc::NAMES;
use std::fs;
use std::path::{Path, PathBuf};

const RENO_FAMILY: &[&str] = &["tahoe", "reno", "newreno", "sack", "prr"];

/// Where a name stands as a default or an example: algorithm, file, why.
const EXAMPLES: &[(&str, &str, &str)] = &[
    ("cubic", "crates/cli/src/args/wire.rs", "the default of `wire`"),
    ("peach", "crates/net/src/fuzz.rs", "an algorithm whose probes are to be fuzzed"),
    ("bbr", "crates/net/src/doctor/mod.rs", "the kernel's control of that name"),
    ("peach", "python/skyhaul/_run.py", "an example of its documentation"),
];

/// An algorithm as the registry has it.
struct Row<'a> {
    name: &'a str,
    variant: &'a str,
    module: &'a str,
}

/// The lines `"name" Variant: module::Type,` of the registry.
fn rows(registry: &str) -> Vec<Row<'_>> {
    fn row(line: &str) -> Option<Row<'_>> {
        let (name, rest) = line.strip_prefix("    \"")?.split_once("\" ")?;
        let (variant, rest) = rest.split_once(": ")?;
        let (module, _) = rest.split_once("::")?;
        Some(Row { name, variant, module })
    }
    registry.lines().filter_map(row).collect()
}

/// What runs of a source file: without comments and the tests at its end.
fn code(text: &str) -> String {
    let marks = ["#[cfg(test)]\nmod ", "#[cfg(all(test"];
    let end = marks.iter().filter_map(|mark| text.find(mark)).min().unwrap_or(text.len());
    let lines = text[..end].lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// Source files of the product below `folder`.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the repository") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        let extension = path.extension().and_then(|e| e.to_str());
        if path.is_dir() {
            if !matches!(name, "tests" | "benches" | "target") {
                sources(&path, found);
            }
        } else if matches!(extension, Some("rs" | "py" | "pyi")) && name != "tests.rs" {
            found.push(path);
        }
    }
}

/// True if `code` names the algorithm: its name alone in quotes, its module, its variant.
fn names(code: &str, row: &Row<'_>) -> bool {
    let whole = |text: String| {
        code.match_indices(&text).any(|(at, _)| {
            let before = code[..at].chars().next_back();
            !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
        })
    };
    whole(format!("\"{}\"", row.name))
        || whole(format!("{}::", row.module))
        || whole(format!("alg::{{{}", row.module))
        || ["Config", "Algorithm", "Control"].iter().any(|e| whole(format!("{e}::{}(", row.variant)))
}

#[test]
fn no_other_source_file_names_an_algorithm() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let registry = fs::read_to_string(root.join("crates/cc/src/registry.rs")).expect("the registry");
    let rows = rows(&registry);
    assert_eq!(rows.iter().map(|r| r.name).collect::<Vec<_>>(), NAMES, "the registry is read as it is meant");

    let mut files = Vec::new();
    for folder in ["crates", "xtask", "python/skyhaul"] {
        sources(&root.join(folder), &mut files);
    }
    assert!(files.len() > 200, "the sources were found: {}", files.len());
    let mut examples: Vec<_> = EXAMPLES.iter().collect();
    let mut elsewhere = Vec::new();
    for file in files {
        let path = file.strip_prefix(&root).expect("below the root").to_string_lossy().replace('\\', "/");
        let code = code(&fs::read_to_string(&file).expect("a source file"));
        for row in rows.iter().filter(|r| !RENO_FAMILY.contains(&r.name)) {
            let own = format!("crates/cc/src/alg/{}", row.module);
            let is_own = path.strip_prefix(&own).is_some_and(|rest| rest.starts_with(['.', '/']));
            if is_own || !names(&code, row) {
                continue;
            }
            if path == "crates/cc/src/registry.rs" {
                let lines = code.lines().filter(|l| names(l, row)).count();
                assert_eq!(lines, 1, "lines of {} in the registry", row.name);
                continue;
            }
            match examples.iter().position(|(name, at, _)| *name == row.name && *at == path) {
                Some(i) => drop(examples.remove(i)),
                None => elsewhere.push(format!("{path} names {}", row.name)),
            }
        }
    }
    assert!(
        elsewhere.is_empty(),
        "a new algorithm would need more than its file and its line; let the registry tell instead:\n{}",
        elsewhere.join("\n")
    );
    assert!(examples.is_empty(), "no longer there, take them off the list: {examples:?}");
}

#[test]
fn a_name_is_found_where_it_stands() {
    let row = Row { name: "tibet", variant: "Tibet", module: "tibet" };
    for text in ["x == \"tibet\"", "use alg::tibet::Tibet;", "Config::Tibet(c)", "use alg::{tibet, vegas};"] {
        assert!(names(&code(text), &row), "{text}");
    }
    for text in ["// \"tibet\"", "\"tibet-plus\"", "not_tibet::x", "let tibet = 1;"] {
        assert!(!names(&code(text), &row), "{text}");
    }
    assert!(!names(&code("fn f() {}\n#[cfg(test)]\nmod tests { use tibet::Tibet; }"), &row));
}

//! An application is one file and one line: the file in `src` and the line in `src/lib.rs`. From that line follow its name
//! and its keys in files, the schema, reports, and what the simulator does; so no other source file may know an
//! application by its name. (Its module is named in `src/lib.rs`, too, as the language wants it.)
//!
//! Data without end is exempt: it is what a sender does whose file says nothing.

use skyhaul_apps::NAMES;
use std::fs;
use std::path::{Path, PathBuf};

const DEFAULT: &str = "bulk";

/// What of the names is another word as well: application, file, why.
const OTHER_WORDS: &[(&str, &str, &str)] = &[];

/// An application as the list has it.
struct Row<'a> {
    name: &'a str,
    variant: &'a str,
    module: &'a str,
}

/// The lines `"name" Variant(module::Config),` of the list.
fn rows(list: &str) -> Vec<Row<'_>> {
    fn row(line: &str) -> Option<Row<'_>> {
        let (name, rest) = line.strip_prefix("    \"")?.split_once("\" ")?;
        let (variant, rest) = rest.split_once('(')?;
        let (module, _) = rest.split_once("::Config)")?;
        Some(Row { name, variant, module })
    }
    list.lines().filter_map(row).collect()
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
        if path.is_dir() {
            if !matches!(name, "tests" | "benches" | "target") {
                sources(&path, found);
            }
        } else if name.ends_with(".rs") && name != "tests.rs" {
            found.push(path);
        }
    }
}

/// True if `code` names the application: its kind in files, its module, its variant.
fn names(code: &str, row: &Row<'_>) -> bool {
    let kind = [format!("kind = \"{}\"", row.name), format!("kind\", \"{}\"", row.name)];
    let module = [format!("apps::{}", row.module), format!("{}::Config", row.module)];
    let variant = ["Config", "App"].map(|e| format!("{e}::{}(", row.variant));
    kind.iter().chain(&module).chain(&variant).any(|text| code.contains(text.as_str()))
}

#[test]
fn no_other_source_file_names_an_application() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let list = fs::read_to_string(root.join("crates/apps/src/lib.rs")).expect("the list");
    let rows = rows(&list);
    assert_eq!(rows.iter().map(|r| r.name).collect::<Vec<_>>(), NAMES, "the list is read as it is meant");

    let mut files = Vec::new();
    sources(&root.join("crates"), &mut files);
    assert!(files.len() > 200, "the sources were found: {}", files.len());
    let mut other: Vec<_> = OTHER_WORDS.iter().collect();
    let mut elsewhere = Vec::new();
    for file in files {
        let path = file.strip_prefix(&root).expect("below the root").to_string_lossy().replace('\\', "/");
        let code = code(&fs::read_to_string(&file).expect("a source file"));
        for row in rows.iter().filter(|r| r.name != DEFAULT) {
            if path == format!("crates/apps/src/{}.rs", row.module) || !names(&code, row) {
                continue;
            }
            if path == "crates/apps/src/lib.rs" {
                let lines = code.lines().filter(|l| names(l, row)).count();
                assert_eq!(lines, 1, "lines of {} in the list", row.name);
                continue;
            }
            match other.iter().position(|(name, at, _)| *name == row.name && *at == path) {
                Some(i) => drop(other.remove(i)),
                None => elsewhere.push(format!("{path} names {}", row.name)),
            }
        }
    }
    assert!(
        elsewhere.is_empty(),
        "a new application would need more than its file and its line:\n{}",
        elsewhere.join("\n")
    );
    assert!(other.is_empty(), "no longer there, take them off the list: {other:?}");
}

#[test]
fn a_name_is_found_where_it_stands() {
    let row = Row { name: "on-off", variant: "OnOff", module: "on_off" };
    for text in ["App::OnOff(a)", "use skyhaul_apps::on_off;", "kind = \"on-off\"", "on_off::Config {}"] {
        assert!(names(&code(text), &row), "{text}");
    }
    for text in ["// App::OnOff(a)", "\"on-off\"", "let on_off = 1;"] {
        assert!(!names(&code(text), &row), "{text}");
    }
}

//! The page for maintainers says what to touch to add a key of links, a control, a queue and so on. Each file that its table names
//! exists, and has the places that it names; and each file that names a whole list, to which a new name must be added, is in the
//! table.

use skyhaul_testkit::one_line::whole;
use std::fs;
use std::path::{Path, PathBuf};

/// What can be added, and the file with the list of those that exist.
const LISTS: [(&str, &str); 4] = [
    ("a key of links", "crates/scenario/src/model/link.rs"),
    ("a congestion control", "crates/cc/src/registry.rs"),
    ("a queue", "crates/path/src/queue/mod.rs"),
    ("an application", "crates/apps/src/lib.rs"),
];

/// Files that a command writes; the section says which.
const WRITTEN: [&str; 5] = [
    "crates/study/src/fingerprints.txt",
    "docs/leaderboard.json",
    "docs/leaderboard.md",
    "docs/scenario-format.md",
    "schema/scenario.json",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
}

/// The section of the page.
fn section() -> String {
    let page = read("docs/maintaining.md");
    page.split("\n## ").find(|s| s.starts_with("What to touch\n")).expect("the section").to_owned()
}

/// The parts of a text in backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The rows of the table: what is added, the files, the places in each.
fn rows(section: &str) -> Vec<(&str, Vec<&str>, Vec<&str>)> {
    let mut subject = "";
    let lines = section.lines().filter(|l| l.starts_with('|')).skip(2);
    lines
        .map(|row| {
            let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
            let [first, files, places] = cells[..] else { panic!("three cells: {row}") };
            subject = if first.is_empty() { subject } else { first };
            (subject, quoted(files).collect(), quoted(places).collect())
        })
        .collect()
}

/// The names of a list: lines `"name" Variant(…)` of `kinds!` and lines `name: Type => …` of `direction_keys!`.
fn listed(text: &str) -> Vec<String> {
    let name = |line: &str| {
        let line = line.trim_start();
        if let Some((name, rest)) = line.strip_prefix('"').and_then(|l| l.split_once("\" ")) {
            return rest.starts_with(char::is_uppercase).then(|| name.to_owned());
        }
        let (name, rest) = line.split_once(": ")?;
        let plain = name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        (plain && rest.contains(" => ")).then(|| name.replace('_', "-"))
    };
    text.lines().filter_map(name).collect()
}

/// The text files below a folder.
fn texts(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the repository") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
        if path.is_dir() {
            if !name.starts_with('.') && !matches!(name, "target" | "node_modules" | "corpus") {
                texts(&path, found);
            }
        } else if matches!(extension, "rs" | "py" | "md" | "txt" | "json" | "ts" | "html") {
            found.push(path);
        }
    }
}

#[test]
fn each_file_of_the_table_has_the_places_that_it_names() {
    let section = section();
    let rows = rows(&section);
    for (subject, files, places) in &rows {
        assert!(!files.is_empty() && !places.is_empty(), "{subject}: a file and a place in backquotes");
        for file in files {
            let text = read(file);
            for place in places {
                assert!(
                    text.contains(place),
                    "{file} has no `{place}`: correct the table in docs/maintaining.md"
                );
            }
        }
    }
    for (subject, list) in LISTS {
        let has = rows.iter().any(|(s, files, _)| *s == subject && files.contains(&list));
        assert!(has, "{subject} has no row for {list}");
    }
}

#[test]
fn each_file_that_names_a_whole_list_is_in_the_table() {
    let section = section();
    let rows = rows(&section);
    for file in WRITTEN {
        assert!(section.contains(file), "the section does not say what writes {file}");
    }
    let lists = LISTS.map(|(subject, list)| (subject, listed(&read(list))));
    let mut files = Vec::new();
    for folder in ["crates", "docs", "fuzz", "python", "schema", "site", "tools", "xtask"] {
        texts(&root().join(folder), &mut files);
    }
    let (mut missing, mut found) = (Vec::new(), 0);
    for path in files {
        let text = fs::read_to_string(&path).expect("a text file");
        let file = path.strip_prefix(root()).expect("below the root").to_string_lossy().replace('\\', "/");
        for (subject, names) in &lists {
            if !names.iter().all(|name| whole(&text, name)) {
                continue;
            }
            found += 1;
            let in_table = rows.iter().any(|(s, files, _)| s == subject && files.contains(&file.as_str()));
            if !in_table && !WRITTEN.contains(&file.as_str()) {
                missing.push(format!("{file} names all that the list of {subject} names"));
            }
        }
    }
    assert!(missing.is_empty(), "add a row to the table in docs/maintaining.md:\n{}", missing.join("\n"));
    // Each list is in its own file, the schema and the page of the format.
    assert!(lists.iter().all(|(_, names)| names.len() > 5) && found >= 3 * LISTS.len(), "{lists:?} {found}");
}

//! The page for maintainers says what to touch to add a key of links, a control, a queue and so on. Each file that its table names
//! exists, and has the places that it names.

use std::fs;
use std::path::Path;

/// The parts of a text in backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn each_file_of_the_table_has_the_places_that_it_names() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/maintaining.md")).expect("the page");
    let section = page.split("\n## ").find(|s| s.starts_with("What to touch\n")).expect("the section");
    let rows = section.lines().filter(|l| l.starts_with('|')).skip(2);
    let (mut subjects, mut places) = (Vec::new(), 0);
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [subject, file, touch] = cells[..] else { panic!("three cells: {row}") };
        subjects.extend((!subject.is_empty()).then_some(subject));
        for file in quoted(file) {
            let text = fs::read_to_string(root.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
            for place in quoted(touch) {
                assert!(text.contains(place), "{file} has no `{place}`");
                places += 1;
            }
        }
    }
    for subject in ["a key of links", "a congestion control", "a queue", "an application"] {
        assert!(subjects.contains(&subject), "{subject}: {subjects:?}");
    }
    assert!(places >= 2 * subjects.len(), "{places} places of {subjects:?}");
}

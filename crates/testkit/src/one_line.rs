//! A model is one file and one line: what it takes to see that no other source file knows it.
//!
//! A list of models (algorithms, applications, error models…) has a line `"name" Variant(path::Config),` or `"name"
//! Variant: path::Type,` for each. From that line follow names in files, the schema, reports and dispatch; so no source
//! file but the list and the model's own may name it.

use std::fs;
use std::path::{Path, PathBuf};

/// A model as its list has it.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Its name in files.
    pub name: &'a str,
    /// Its variant of the enums.
    pub variant: &'a str,
    /// Its type or its configuration, as a path within the folder of the models.
    pub path: &'a str,
}

impl<'a> Row<'a> {
    /// The module of its own.
    #[must_use]
    pub fn module(&self) -> &'a str {
        self.path.split("::").next().unwrap_or(self.path)
    }
}

/// A list of models, and what may name them.
pub struct List<'a> {
    /// The file with the lines, from the root of the repository.
    pub file: &'a str,
    /// What the models are called in messages: "an algorithm".
    pub what: &'a str,
    /// Names in files, in the order of the list.
    pub names: Vec<&'a str>,
    /// Models that may be named everywhere.
    pub exempt: &'a [&'a str],
    /// The model that stands where nothing is said, which the list's file names once more.
    pub default: Option<&'a str>,
    /// File or folder of a model's own, from the root of the repository and without its ending.
    pub own: &'a dyn Fn(&Row<'_>) -> String,
    /// True if the code of a file names a model.
    pub named: &'a dyn Fn(&str, &Row<'_>) -> bool,
    /// True if a line of the list's file does.
    pub listed: &'a dyn Fn(&str, &Row<'_>) -> bool,
    /// The page with a row for each model, unless the generated page of the scenario format is enough.
    pub page: Option<&'a str>,
    /// Where a model is named for a reason of its own: name, file, why.
    pub elsewhere: &'a [(&'a str, &'a str, &'a str)],
}

impl List<'_> {
    /// Looks through the sources of the product.
    ///
    /// # Panics
    /// If the lines of the list do not give `names`, if the page does not name one of the models, if another file names one, or
    /// if an entry of `elsewhere` is out of date.
    pub fn check(&self) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let text = fs::read_to_string(root.join(self.file)).expect("the list");
        let rows = rows(&text);
        let read: Vec<_> = rows.iter().map(|r| r.name).collect();
        assert_eq!(read, self.names, "the lines of {} were not understood", self.file);
        if let Some(page) = self.page {
            let text = fs::read_to_string(root.join(page)).expect("the page");
            for name in &self.names {
                let named = text.contains(&format!("`{name}`")) || text.contains(&format!("\"{name}\""));
                assert!(named, "{page} does not name \"{name}\": add a row");
            }
        }

        let (mut files, mut elsewhere) = (Vec::new(), Vec::new());
        for folder in ["crates", "xtask", "python/skyhaul"] {
            sources(&root.join(folder), &mut files);
        }
        assert!(files.len() > 200, "the sources were found: {}", files.len());
        let mut expected: Vec<_> = self.elsewhere.iter().collect();
        for file in files {
            let path = file.strip_prefix(&root).expect("below the root").to_string_lossy().replace('\\', "/");
            let code = code(&fs::read_to_string(&file).expect("a source file"));
            for row in rows.iter().filter(|r| !self.exempt.contains(&r.name)) {
                if path == self.file {
                    let lines = code.lines().filter(|l| (self.listed)(l, row)).count();
                    let most = 1 + usize::from(self.default == Some(row.name));
                    assert!((1..=most).contains(&lines), "{lines} lines of {} in {path}", row.name);
                    continue;
                }
                let rest = path.strip_prefix((self.own)(row).as_str());
                if rest.is_some_and(|r| r.starts_with(['.', '/'])) || !(self.named)(&code, row) {
                    continue;
                }
                match expected.iter().position(|(name, at, _)| *name == row.name && *at == path) {
                    Some(i) => drop(expected.remove(i)),
                    None => elsewhere.push(format!("{path} names {}", row.name)),
                }
            }
        }
        assert!(
            elsewhere.is_empty(),
            "{} would need more than its file and its line: use the list instead, or, where the word means another \
             thing, add the place to `elsewhere` of the test\n{}",
            self.what,
            elsewhere.join("\n")
        );
        assert!(expected.is_empty(), "no longer there, take them off the list: {expected:?}");
    }
}

/// The lines of a list.
fn rows(text: &str) -> Vec<Row<'_>> {
    fn row(line: &str) -> Option<Row<'_>> {
        let (name, rest) = line.trim_start().strip_prefix('"')?.split_once("\" ")?;
        let rest = rest.strip_suffix(',')?;
        let (variant, path) = match rest.split_once(": ") {
            Some(parts) => parts,
            None => rest.strip_suffix(')')?.split_once('(')?,
        };
        path.contains("::").then_some(Row { name, variant, path })
    }
    text.lines().filter_map(row).collect()
}

/// What runs of a source file: without comments and the tests at its end.
#[must_use]
pub fn code(text: &str) -> String {
    let marks = ["#[cfg(test)]\nmod tests {", "#[cfg(all(test"];
    let end = marks.iter().filter_map(|mark| text.find(mark)).min().unwrap_or(text.len());
    let lines = text[..end].lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// True if `text` stands in `code`, and is neither the end nor, if it ends like a word, the beginning of a longer one.
#[must_use]
pub fn whole(code: &str, text: &str) -> bool {
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    let open = text.ends_with(in_word);
    code.match_indices(text).any(|(at, _)| {
        let (before, after) = (code[..at].chars().next_back(), code[at + text.len()..].chars().next());
        !(before.is_some_and(in_word) || open && after.is_some_and(in_word))
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_in_both_forms() {
        let text = "list! {\n        \"on-off\" OnOff(on_off::Config),\n    \"reno\" Reno: reno::Reno,\n    \"x\" X(Y),\n}";
        let rows: Vec<_> = rows(text).iter().map(|r| (r.name, r.variant, r.module())).collect();
        assert_eq!(rows, [("on-off", "OnOff", "on_off"), ("reno", "Reno", "reno")]);
    }

    #[test]
    fn words_are_whole_and_comments_and_tests_do_not_count() {
        let text = "use a::b; // c::d\n#[cfg(test)]\nmod tests { e::f }";
        assert_eq!(code(text), "use a::b; ");
        for (text, expected) in [("a::b", true), ("a::", true), ("a::bc", false), ("us", false)] {
            assert_eq!(whole("use a::b;", text), expected, "{text}");
        }
        assert!(!whole("not_a::b", "a::b") && !whole("a::b1", "a::b"));
    }
}

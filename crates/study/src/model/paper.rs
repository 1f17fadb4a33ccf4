//! `paper.toml`: data shared by the studies of a folder.

use crate::error::StudyError;
use crate::model::{OverviewPlan, locate, parsed, text_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The publication, or other subject, of a folder of studies.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Version of the format: 1.
    pub schema: u32,
    /// Its title.
    pub title: String,
    /// Its authors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<String>,
    /// Where and when it appeared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<String>,
    /// Its subject and how it was read, in a few sentences of your own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// Names of studies in the order of the report; the others follow by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
    /// Its checkable statements: claims, tests and open entries refer to them by the first word of their ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub row: Vec<Statement>,
    /// Statements proved by a unit test instead of a study.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<TestedStatement>,
    /// Statements that are not reproduced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<OpenStatement>,
    /// An overview over the studies, for the report of an evaluation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overview: Option<OverviewPlan>,
}

/// A statement of the source. Claims of studies, tests elsewhere and open entries each cover a part of it.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// Its number in the list of statements, a single word.
    pub id: String,
    /// The statement in a few words of your own.
    pub says: String,
}

impl Statement {
    /// Whether the id of a claim, a test or an open entry refers to this statement: its first word is the number.
    #[must_use]
    pub fn is_named_by(&self, id: &str) -> bool {
        id.split(' ').next() == Some(&self.id)
    }
}

/// A statement that a unit test proves.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TestedStatement {
    /// Unique within the folder, studies included; by convention the number in the list of claims.
    pub id: String,
    /// The statement, in your own words.
    pub says: String,
    /// Place in the source.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The source's value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper: Option<String>,
    /// The test: `path/of/file.rs::name`, or `path/of/file.py::name`; the path starts at the root of the repository.
    pub test: String,
}

impl TestedStatement {
    /// File and function of the test.
    #[must_use]
    pub fn test(&self) -> Option<(&str, &str)> {
        self.test.split_once("::").filter(|(file, name)| !file.is_empty() && !name.is_empty())
    }
}

/// A statement that is not reproduced.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct OpenStatement {
    /// Unique within the folder, studies included; by convention the number in the list of claims.
    pub id: String,
    /// The statement, in your own words.
    pub says: String,
    /// Why not.
    pub why: String,
    /// Place in the source.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The source's value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper: Option<String>,
}

impl Paper {
    /// Name of the file.
    pub const FILE: &'static str = "paper.toml";

    /// Reads a paper.
    ///
    /// # Errors
    /// If the file cannot be read or is not a paper; the message names file, line and key.
    pub fn read(path: &Path) -> Result<Self, StudyError> {
        Self::parse(&text_of(path)?, path)
    }

    /// Parses a paper; `path` is for messages only.
    ///
    /// # Errors
    /// If the text is not a paper; the message names file, line and key.
    pub fn parse(text: &str, path: &Path) -> Result<Self, StudyError> {
        let paper: Self = parsed(text, path)?;
        let refuse = |key: &str, message: String, accepted: &[&str]| StudyError::Invalid {
            path: PathBuf::from(path),
            line: locate(text, key),
            key: key.to_owned(),
            message,
            accepted: accepted.iter().map(|s| (*s).to_owned()).collect(),
        };
        if paper.schema != 1 {
            return Err(refuse("schema", format!("format {} is not known", paper.schema), &["1"]));
        }
        for (i, name) in paper.order.iter().enumerate() {
            if paper.order[..i].contains(name) {
                return Err(refuse("order", format!("`{name}` appears twice"), &[]));
            }
        }
        for (i, row) in paper.row.iter().enumerate() {
            if row.id.is_empty() || row.id.contains(' ') {
                let message = format!("`{}` is not a single word", row.id);
                return Err(refuse("row", message, &["a number such as \"0.20\""]));
            }
            if paper.row[..i].iter().any(|r| r.id == row.id) {
                return Err(refuse("row", format!("`{}` appears twice", row.id), &[]));
            }
        }
        for (i, e) in paper.elsewhere.iter().enumerate() {
            if e.test().is_none() {
                let message = format!("`{}` names no test", e.test);
                return Err(refuse(
                    &format!("elsewhere[{i}].test"),
                    message,
                    &["\"crates/…/file.rs::name\""],
                ));
            }
        }
        let ids = paper.elsewhere.iter().map(|e| &e.id).chain(paper.open.iter().map(|o| &o.id));
        let ids: Vec<&String> = ids.collect();
        if let Some(i) = (0..ids.len()).find(|i| ids[..*i].contains(&ids[*i])) {
            let n = paper.elsewhere.len();
            let key = if i < n { format!("elsewhere[{i}].id") } else { format!("open[{}].id", i - n) };
            return Err(refuse(&key, format!("`{}` appears twice", ids[i]), &[]));
        }
        let headlines = paper.overview.iter().flat_map(|o| &o.headline).collect::<Vec<_>>();
        if let Some(i) =
            (0..headlines.len()).find(|i| headlines[..*i].iter().any(|h| h.says == headlines[*i].says))
        {
            let message = format!("`{}` appears twice", headlines[i].says);
            return Err(refuse(&format!("overview.headline[{i}].says"), message, &[]));
        }
        Ok(paper)
    }

    /// Position of a study in the report: the listed ones first, in their order.
    #[must_use]
    pub fn place(&self, study: &str) -> usize {
        self.order.iter().position(|o| o == study).unwrap_or(self.order.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "schema = 1\ntitle = \"A paper\"\norder = [\"table1\", \"fig03\"]\n\
                        row = [{ id = \"0.9\", says = \"s\" }]\n[[elsewhere]]\n\
                        id = \"0.9\"\nsays = \"s\"\ntest = \"crates/cc/src/a.rs::t\"\n\n[[open]]\nid = \"0.10\"\n\
                        says = \"s\"\nwhy = \"w\"\n";

    #[test]
    fn studies_that_are_not_listed_come_last() {
        let p = Paper::parse(GOOD, Path::new("x/paper.toml")).expect("a paper");
        assert_eq!((p.place("table1"), p.place("fig03"), p.place("other")), (0, 1, 2));
        assert!(p.row[0].is_named_by("0.9 found out") && !p.row[0].is_named_by("0.90"));
        assert_eq!(p.elsewhere[0].test(), Some(("crates/cc/src/a.rs", "t")));
    }

    #[test]
    fn headlines_have_different_titles() {
        let headline = |says: &str| format!("{{ says = \"{says}\", study = \"s\", metric = \"m\" }}");
        let text = |second: &str| {
            let both = [headline("a"), headline(second)].join(", ");
            format!("overview = {{ title = \"o\", columns = [], section = [], headline = [{both}] }}\n{GOOD}")
        };
        let overview = Paper::parse(&text("b"), Path::new("x/paper.toml")).expect("a paper").overview;
        assert_eq!(overview.map(|o| o.headline.len()), Some(2));
        let e = Paper::parse(&text("a"), Path::new("x/paper.toml")).expect_err("twice").to_string();
        assert!(e.contains("`overview.headline[1].says`: `a` appears twice"), "{e}");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (from, to, line, part) in [
            ("schema = 1", "schema = 2", "1", "format 2"),
            ("title =", "titel =", "2", "titel"),
            ("[\"table1\", \"fig03\"]", "[\"a\", \"a\"]", "3", "twice"),
            ("row = [", "row = [{ id = \"0.9\", says = \"t\" }, ", "4", "twice"),
            ("row = [{ id = \"0.9\"", "row = [{ id = \"0.9 b\"", "4", "not a single word"),
            ("a.rs::t", "a.rs", "8", "names no test"),
            ("\"0.10\"", "\"0.9\"", "11", "twice"),
        ] {
            let e = Paper::parse(&GOOD.replacen(from, to, 1), Path::new("x/paper.toml"));
            let e = e.expect_err(part).to_string();
            assert!(e.starts_with(&format!("x/paper.toml:{line}: ")) && e.contains(part), "{e}");
        }
    }
}

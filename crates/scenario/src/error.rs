//! What is wrong with a scenario, in one line.

use core::fmt;

/// A refused scenario. Displays as one line: `geo.toml:12: links.sat.error.p: 1.2 is not a probability: …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// File that holds the key; `--set` for an override.
    pub file: String,
    /// Line in the file, from 1, if known.
    pub line: Option<usize>,
    /// The key, as a path from the top of the file; empty where the file as a whole is meant.
    pub key: String,
    /// What is wrong and what to write instead.
    pub message: String,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for ScenarioError {}

/// A problem whose file is not yet known: a key and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) key: String,
    pub(crate) message: String,
    /// Another file that it is in, and the line, or 0.
    pub(crate) file: Option<(String, usize)>,
}

impl Problem {
    pub(crate) fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { key: key.into(), message: message.into(), file: None }
    }
}

/// The candidate that `word` was probably meant to be.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase().replace('_', "-");
    candidates
        .into_iter()
        .map(|c| (strsim::osa_distance(&word, &c.to_lowercase()), c))
        .filter(|&(distance, c)| distance <= c.chars().count().max(word.chars().count()).div_ceil(3))
        .min_by_key(|&(distance, c)| (distance, !c.contains(&word)))
        .map(|(_, c)| c)
}

/// `, did you mean "x"?` or nothing.
pub(crate) fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, candidates).map_or_else(String::new, |c| format!(", did you mean \"{c}\"?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_with_file_line_key_and_message() {
        let mut e = ScenarioError {
            file: "geo.toml".into(),
            line: None,
            key: "links.sat.error.p".into(),
            message: "1.2 is not a probability".into(),
        };
        assert_eq!(e.to_string(), "geo.toml: links.sat.error.p: 1.2 is not a probability");
        e.line = Some(7);
        assert_eq!(e.to_string(), "geo.toml:7: links.sat.error.p: 1.2 is not a probability");
        e.key.clear();
        assert_eq!(e.to_string(), "geo.toml:7: 1.2 is not a probability");
    }

    #[test]
    fn suggestions_are_near_or_absent() {
        let known = ["recovery", "rto-min", "start"];
        assert_eq!(nearest("recovry", known), Some("recovery"));
        assert_eq!(nearest("rto_min", known), Some("rto-min"));
        assert_eq!(nearest("colour", known), None);
    }
}

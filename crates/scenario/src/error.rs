//! Errors of scenarios, in one line.

use crate::quoted::shortened;
use core::fmt;
use skyhaul_base::amount::AmountError;

/// The file name in messages about overrides.
pub(crate) const OVERRIDE: &str = "--set";

/// A refused scenario. Displays as one line: `geo.toml:12: links.sat.error.p: 1.2 is not a probability: …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// File that holds the key; `--set` for an override.
    pub file: String,
    /// Line in the file, from 1, if known.
    pub line: Option<usize>,
    /// The key, as a path from the top of the file; empty for the file as a whole.
    pub key: String,
    /// The problem, and what to write instead.
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
        write!(f, ": {}", shortened(&self.message))
    }
}

impl std::error::Error for ScenarioError {}

impl ScenarioError {
    /// The same for an interface whose overrides have another name than `--set`.
    #[must_use]
    pub fn with_overrides_called(mut self, name: &str) -> Self {
        if self.file == OVERRIDE {
            self.file = name.into();
        }
        self
    }
}

/// Why a file that a scenario names cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The reader of the scenario has no access to files.
    #[error("files cannot be read here, only presets")]
    NoFiles,
    /// An error of the operating system, in its words.
    #[error("{0}")]
    System(String),
}

/// A value that is not accepted at its place.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum ValueError {
    /// Not an amount of the expected kind.
    #[error(transparent)]
    Amount(#[from] AmountError),
    /// Not one of the accepted words.
    #[error("\"{text}\" is not accepted here: write {expected}")]
    NotAccepted { text: String, expected: &'static str },
    /// An unknown name.
    #[error("\"{name}\" is not {what}{hint} (known: {known})")]
    UnknownName { name: String, what: &'static str, hint: String, known: String },
    /// A packet of more than 65535 bytes.
    #[error("\"{0} B\" is more than the largest packet (65535 B)")]
    LargePacket(u64),
    /// A window below one segment.
    #[error("{0} segments are too few: write at least \"1 segment\"")]
    FewSegments(f64),
    /// An operating system without recommended buffers for satellites.
    #[error("no satellite buffer sizes are documented for \"{0}\": write buffers = \"default\" or \"max\"")]
    NoSatelliteBuffers(&'static str),
}

impl ValueError {
    /// `name` is not in `known`, the list of all `what`; `more` is appended to the list.
    pub(crate) fn unknown<'a>(
        name: &str,
        what: &'static str,
        known: impl Iterator<Item = &'a str> + Clone,
        more: &str,
    ) -> Self {
        let hint = did_you_mean(name, known.clone());
        let known = known.collect::<Vec<_>>().join(", ") + more;
        Self::UnknownName { name: name.into(), what, hint, known }
    }
}

/// A problem whose file is not yet known: a key and a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) key: String,
    pub(crate) message: String,
    /// File and line (0 for none) of a problem that is not in the file that writes the key.
    pub(crate) file: Option<(String, usize)>,
}

impl Problem {
    pub(crate) fn new(key: impl Into<String>, message: impl fmt::Display) -> Self {
        Self { key: key.into(), message: message.to_string(), file: None }
    }
}

/// The candidate that was probably meant by `word`.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase().replace('_', "-");
    candidates
        .into_iter()
        .map(|c| (strsim::osa_distance(&word, &c.to_lowercase()), c))
        .filter(|&(distance, c)| distance <= c.chars().count().max(word.chars().count()).div_ceil(3))
        .min_by_key(|&(distance, c)| (distance, !c.contains(&word)))
        .map(|(_, c)| c)
}

/// After an unknown name: the name that was probably meant and all names, `, did you mean "x"? (known: x, y)`; nothing if
/// there are none.
pub(crate) fn suggestion<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str, IntoIter: Clone>,
) -> String {
    let known = known.into_iter();
    let all = known.clone().collect::<Vec<_>>().join(", ");
    if all.is_empty() { String::new() } else { format!("{} (known: {all})", did_you_mean(word, known)) }
}

/// `, did you mean "x"?` or nothing.
#[must_use]
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
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
        assert_eq!(suggestion("rto", known), " (known: recovery, rto-min, start)");
        assert_eq!(suggestion("rto", []), "");
    }
}

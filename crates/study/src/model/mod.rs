//! The study file: serde types of its TOML form.
//!
//! A study defines what to vary (axes), what to measure (metrics), what a paper states about it (claims), which other
//! readings of the source exist (readings) and what to draw (figures). [`crate::plan`] resolves it.

mod axis;
mod candidate;
mod check;
mod figure;
mod fit;
mod overview;
mod paper;
mod pick;
mod quick;
mod raw;
mod table;

pub use axis::{Axis, AxisValue, Settings, headings};
pub use candidate::{CANDIDATE, called};
pub use check::{Check, Curve, Direction, Relation, Term};
pub use figure::{Band, Figure, Mark, RefPoint, Rule, RuleAxis, Scale, TimeFigure};
pub use fit::{Fit, FreeOption, KnownReading, LeftOut, Printed};
pub use overview::{Headline, OverviewLine, OverviewPlan, OverviewSection, Preference};
pub use paper::{OpenStatement, Paper, Statement, TestedStatement};
pub use pick::{AxisSelection, Label, OneOrMany, Selector, Side};
pub use quick::{Profile, Quick};
pub use raw::Raw;
pub use table::Table;

use crate::error::StudyError;
use crate::files::read_text;
use crate::summary::Summary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skyhaul_scenario::did_you_mean;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A study: base scenario × axes × seeds, with metrics, claims and figures.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Version of the format: 1.
    pub schema: u32,
    /// One line.
    pub title: String,
    /// The publication and figure that the study reproduces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The question and the method, in a few sentences of your own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// `"preset:<name>"`, a path relative to this file, or the scenario itself as a table.
    #[schemars(with = "serde_json::Value")]
    pub scenario: Raw,
    /// Changes to the scenario, for all cells.
    #[serde(default, skip_serializing_if = "Settings::is_empty")]
    pub set: Settings,
    /// Constants for expressions, as `let.<name>`; axis values may add or override some.
    #[serde(default, rename = "let", skip_serializing_if = "BTreeMap::is_empty")]
    pub constants: BTreeMap<String, f64>,
    /// The seeds of every combination: the same for all, so that differences are paired.
    #[serde(default)]
    pub seeds: Seeds,
    /// Largest number of cells, all readings and seeds together; 200000 by default. A larger study is refused before
    /// anything runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cells: Option<u64>,
    /// The quick profile; by default three seeds of the default reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quick: Option<Quick>,
    /// Name of the default reading in the report.
    #[serde(default = "literal")]
    pub as_read: String,
    /// What varies; the first axis varies slowest.
    #[serde(default)]
    pub axis: Vec<Axis>,
    /// Other readings of the source, evaluated in addition to the default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reading: Vec<Reading>,
    /// The metrics.
    #[serde(default)]
    pub metric: Vec<Metric>,
    /// The claims.
    #[serde(default)]
    pub claim: Vec<Claim>,
    /// Figures: what is drawn.
    #[serde(default)]
    pub figure: Vec<Figure>,
    /// The tables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub table: Vec<Table>,
    /// Lines of the overview over all studies of the folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overview: Vec<OverviewLine>,
    /// A search over readings, for `skyhaul study fit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit: Option<Fit>,
}

/// A run of consecutive seeds.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Seeds {
    /// The first.
    #[serde(default = "one")]
    pub first: u64,
    /// Number of seeds; at least 1, and at least 2 for intervals.
    pub count: u32,
}

impl Default for Seeds {
    fn default() -> Self {
        Self { first: 1, count: 10 }
    }
}

impl Seeds {
    /// The seeds in ascending order.
    pub fn iter(self) -> impl Iterator<Item = u64> {
        (0..u64::from(self.count)).map(move |i| self.first.wrapping_add(i))
    }
}

/// What the combinations outside `only` of a reading are.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rest {
    /// The reading does not concern them.
    #[default]
    Default,
    /// The reading would change them, but has not run them.
    NotRun,
}

impl Rest {
    fn is_default(&self) -> bool {
        *self == Self::Default
    }
}

/// An alternative reading of the source, where it is silent or ambiguous.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// Its name in tables.
    pub label: String,
    /// The difference, and the reason for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
    /// The settings of this reading, applied after those of the axes.
    pub set: Settings,
    /// Combinations that the reading changes or runs; see `rest` for all others.
    #[serde(default, skip_serializing_if = "Selector::is_empty")]
    pub only: Selector,
    /// What all other combinations are: `"default"` (default) if the reading does not concern them, so that they are
    /// those of the default reading; `"not-run"` if it would change them too. Claims are then restricted to the cases
    /// whose cells this reading has.
    #[serde(default, skip_serializing_if = "Rest::is_default")]
    pub rest: Rest,
    /// Claims for which it is evaluated; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<String>,
}

/// A number per cell.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// Name in claims and figures.
    pub name: String,
    /// Title of tables and axes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// An expression over the measurements of a cell, e.g. `flow.unique_segments / run.duration`.
    pub from: String,
    /// How the values of flows are aggregated, if the expression has a value per flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<Aggregation>,
    /// Only flows of this group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Axis values of the combination to compare with; `base.NAME` is an earlier metric there, with the same seed and
    /// otherwise the same values.
    #[serde(default, skip_serializing_if = "Selector::is_empty")]
    pub base: Selector,
    /// Unit of the value, e.g. `segments/s`; empty for a pure number.
    #[serde(default)]
    pub unit: String,
    /// The statistic that summarises the values over the seeds, in verdicts, tables and figures. By default verdicts are on means, and
    /// tables and figures show the medians of a metric in a unit of time whose values are skewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
}

/// How the values of flows are aggregated.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aggregation {
    /// Jain's fairness index.
    Jain,
    /// Largest.
    Max,
    /// Arithmetic mean.
    Mean,
    /// Smallest.
    Min,
    /// One metric `name.group` per flow group, the mean over its flows.
    PerGroup,
    /// Sum.
    Sum,
}

/// A claim: a statement that can be true or false.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Unique within the study; by convention the number in the list of claims.
    pub id: String,
    /// The statement, in your own words.
    pub says: String,
    /// Kind of statement.
    #[serde(default)]
    pub kind: ClaimKind,
    /// What the totals count it as.
    #[serde(default, skip_serializing_if = "Standing::is_default")]
    pub standing: Standing,
    /// The claim that it repeats, as `paper/study/id`: in other traffic, under another reading, or as a quotient of numbers
    /// that have been judged already. The totals count that one alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<String>,
    /// Place in the source, e.g. `Fig. 11` or `§V-A`.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The source's value, e.g. `+30.65 %`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper: Option<String>,
    /// Axis values at which it is evaluated.
    #[serde(default, skip_serializing_if = "Selector::is_empty")]
    pub at: Selector,
    /// Axes: the claim must hold for each of their values (or those that `at` leaves).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub for_each: Vec<String>,
    /// Fraction of the cases of `for_each` that must hold; all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// The test.
    pub check: Check,
    /// A note for the reader: an inconsistency in the source, the origin of the tolerance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What the totals count a claim as. Only what a simulation could refute is a finding.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// A statement of the source that the simulation could refute.
    #[default]
    Finding,
    /// A statement of the study's author that the simulation could refute.
    Own,
    /// A statement about the set-up.
    Premise,
    /// Follows by calculation; the simulation adds nothing.
    Arithmetic,
    /// Cannot fail as the study is set up, or restates a rule that is programmed.
    Construction,
}

impl Standing {
    /// Whether the standing is left out of files.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
    /// The word in texts for readers.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Finding => "finding",
            Self::Own => "own",
            Self::Premise => "premise",
            Self::Arithmetic => "arithmetic",
            Self::Construction => "construction",
        }
    }
}

/// Kind of statement.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimKind {
    /// A definition.
    Definition,
    /// Follows exactly from the description, without randomness.
    Exact,
    /// A number from random runs.
    Number,
    /// An ordering or a shape.
    #[default]
    Order,
}

impl ClaimKind {
    /// One word for tables.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Definition => "definition",
            Self::Exact => "exact",
            Self::Number => "number",
            Self::Order => "order",
        }
    }
}

/// A study and the file that it comes from.
#[derive(Clone, Debug)]
pub struct StudyFile {
    /// The file; `<text>` if it came from a string.
    pub path: PathBuf,
    /// Its text, for messages with line numbers.
    pub text: String,
    /// Its content.
    pub study: Study,
    /// Largest number of cells from the command line; overrides that of the study.
    pub max_cells: Option<u64>,
    /// The name of the control under test in texts for readers; see [`StudyFile::test_control`].
    pub candidate: Option<String>,
}

/// Parses a study or paper file.
///
/// # Errors
/// With file and line, and the key that was probably meant.
fn parsed<T: serde::de::DeserializeOwned>(text: &str, path: &Path) -> Result<T, StudyError> {
    toml::from_str(text).map_err(|e| {
        let line = e.span().map(|s| 1 + text[..s.start.min(text.len())].matches('\n').count());
        StudyError::Parse { path: path.to_owned(), line, message: with_hint(e.message()) }
    })
}

/// Reads the text of a study or paper file.
///
/// # Errors
/// If it cannot be read.
fn text_of(path: &Path) -> Result<String, StudyError> {
    read_text(path).map_err(|source| StudyError::Read { path: path.to_owned(), source })
}

/// Serde's message about an unknown key, with the key that was probably meant.
fn with_hint(message: &str) -> String {
    let mut words = message.split('`').skip(1).step_by(2);
    match words.next().filter(|_| message.starts_with("unknown field")) {
        Some(unknown) => format!("{message}{}", did_you_mean(unknown, words)),
        None => message.to_owned(),
    }
}

impl StudyFile {
    /// Reads a study.
    ///
    /// # Errors
    /// If the file cannot be read or is not a study; the message names file, line and key.
    pub fn read(path: &Path) -> Result<Self, StudyError> {
        Self::parse(&text_of(path)?, path)
    }

    /// Parses a study; `path` is for messages and relative references only.
    ///
    /// # Errors
    /// If the text is not a study; the message names file, line and key.
    pub fn parse(text: &str, path: &Path) -> Result<Self, StudyError> {
        let study = parsed(text, path)?;
        let file =
            Self { path: path.to_owned(), text: text.to_owned(), study, max_cells: None, candidate: None };
        if file.study.schema != 1 {
            let found = file.study.schema;
            return Err(file.refuse("schema", format!("format {found} is not known"), &["1"]));
        }
        if file.study.seeds.count == 0 {
            return Err(file.refuse("seeds.count", "a study without seeds has no cells", &["1 and more"]));
        }
        if file.study.quick.as_ref().is_some_and(|q| q.seeds == 0) {
            return Err(file.refuse("quick.seeds", "a study without seeds has no cells", &["1 and more"]));
        }
        Ok(file)
    }

    /// The current study: the file, or after changes (other seeds, a setting from the command line) the equivalent
    /// file.
    #[must_use]
    pub fn current_text(&self) -> String {
        let written = |s: &Study| toml::to_string(s).unwrap_or_default();
        let as_read = toml::from_str(&self.text).map(|s: Study| written(&s));
        let now = written(&self.study);
        if as_read.is_ok_and(|t| t == now) { self.text.clone() } else { now }
    }

    /// The base folder of relative references.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.path.parent().unwrap_or_else(|| Path::new(""))
    }

    /// Name of the study in results: the file without folders and extensions.
    #[must_use]
    pub fn stem(&self) -> String {
        let name = self.path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        let name = name.strip_suffix(".toml").unwrap_or(&name);
        let name = name.strip_suffix(".study").unwrap_or(name);
        if name.is_empty() { "study".to_owned() } else { name.to_owned() }
    }

    /// An error at `key` (such as `axis[1].path`), with its line if known.
    #[must_use]
    pub fn refuse(&self, key: &str, message: impl Into<String>, accepted: &[&str]) -> StudyError {
        StudyError::Invalid {
            path: self.path.clone(),
            line: locate(&self.text, key),
            key: key.to_owned(),
            message: message.into(),
            accepted: accepted.iter().map(|s| (*s).to_owned()).collect(),
        }
    }
}

fn literal() -> String {
    "as printed".to_owned()
}

const fn one() -> u64 {
    1
}

/// Line of a key such as `axis[1].path`, `fit.option[0].values[1]` or `set.links`: the key within the n-th `[[axis]]`, or
/// that header.
fn locate(text: &str, key: &str) -> Option<usize> {
    let (first, rest) = match key.find(']') {
        Some(end) => (&key[..=end], key[end + 1..].trim_start_matches('.')),
        None => key.split_once('.').unwrap_or((key, "")),
    };
    let (name, nth) = match first.split_once('[') {
        Some((name, n)) => (name, n.trim_end_matches(']').parse::<usize>().ok()?),
        None => (first, 0),
    };
    let mut lines = text.lines().enumerate();
    let headers = [format!("[[{name}]]"), format!("[{name}]")];
    let is_header = |line: &str| {
        let line = line.split('#').next().unwrap_or_default().trim();
        headers.iter().any(|h| h == line)
    };
    if first.contains('[') {
        let (start, _) = lines.by_ref().filter(|(_, l)| is_header(l)).nth(nth)?;
        let wanted = rest.split(['.', '[']).next().unwrap_or("");
        let inside = lines.take_while(|(_, l)| !l.starts_with("[["));
        let found = inside.into_iter().find(|(_, l)| !wanted.is_empty() && starts_key(l, wanted));
        return Some(found.map_or(start, |(i, _)| i) + 1);
    }
    let (start, line) = lines.by_ref().find(|(_, l)| starts_key(l, name) || is_header(l))?;
    let mut inside = lines.take_while(|(_, l)| !line.starts_with('[') || !l.starts_with('['));
    let found = inside.find(|(_, l)| line.starts_with('[') && !rest.is_empty() && starts_key(l, rest));
    Some(found.map_or(start, |(i, _)| i) + 1)
}

fn starts_key(line: &str, key: &str) -> bool {
    line.trim_start()
        .strip_prefix(key)
        .is_some_and(|rest| rest.trim_start().starts_with('=') || rest.starts_with('.'))
}

#[cfg(test)]
mod tests;

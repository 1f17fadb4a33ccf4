//! A leaderboard: the evaluations of several congestion controls side by side, a row per control, with the verdict on each
//! requirement and some numbers. Each verdict and number is one of an evaluation.

use crate::format;
use crate::model::Preference;
use crate::requirement::Judgement;
use crate::stats::Estimate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Schema of `leaderboard.json`.
pub const SCHEMA: &str = "skyhaul.leaderboard/1";

/// The whole table, as in `leaderboard.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Leaderboard {
    /// [`SCHEMA`].
    pub schema: String,
    /// Title of the document with the requirements.
    pub document: String,
    /// Version of this software.
    pub version: String,
    /// Version and fingerprint of the engine.
    pub engine: String,
    /// Date and time, in UTC (RFC 3339).
    pub created: String,
    /// The processor on which the table was made.
    pub processor: String,
    /// How much of each case ran: `quick` or `full`.
    pub profile: String,
    /// The command that makes the table again.
    pub command: String,
    /// The options at the end of the command that repeats one evaluation, behind the control and the cases.
    pub options: String,
    /// The requirements that were measured.
    pub requirements: Vec<Measured>,
    /// The requirements without a verdict for any control.
    pub not_measured: Vec<Section>,
    /// The columns of numbers.
    pub numbers: Vec<NumberColumn>,
    /// The controls; the one with the most requirements met comes first.
    pub rows: Vec<Row>,
}

/// Number and title of a requirement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// Number of the requirement, that of its section in the document.
    pub section: String,
    /// Title of the requirement.
    pub title: String,
}

/// A requirement on which some control has a verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// Number and title of the requirement.
    #[serde(flatten)]
    pub requirement: Section,
    /// The cases whose claims answer the requirement.
    pub cases: Vec<String>,
}

/// A column of numbers: a headline of the overview.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberColumn {
    /// Title of the numbers.
    pub title: String,
    /// Unit of the numbers; empty for numbers without one.
    pub unit: String,
    /// Whether more or less is better; `None`: neither.
    pub better: Option<Preference>,
    /// The case that measures the numbers.
    pub case: String,
    /// The place of the case on the page of an evaluation.
    pub anchor: String,
}

impl NumberColumn {
    /// Title and unit.
    #[must_use]
    pub fn heading(&self) -> String {
        format::heading(&self.title, &self.unit)
    }
}

/// The row of a control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The control, as it was given.
    pub control: String,
    /// The page of the control's evaluation: a path relative to the folder of the leaderboard, or a `file:` address.
    pub page: String,
    /// The command that repeats the control's evaluation, without cases and options. It is missing for a control of one's own in
    /// Python, which no command repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The verdict on each requirement, by its number.
    pub verdicts: BTreeMap<String, Judgement>,
    /// Each number by the title of its column; a number that was not measured is missing.
    pub numbers: BTreeMap<String, Number>,
}

/// A mean over the seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Number {
    /// The mean.
    pub mean: f64,
    /// Half-width of the 95 % interval of the mean; missing with a single seed.
    pub ci95: Option<f64>,
    /// Number of seeds.
    pub n: usize,
}

impl Number {
    /// The number as an estimate.
    #[must_use]
    pub fn estimate(self) -> Estimate {
        Estimate { mean: self.mean, half: self.ci95.unwrap_or(f64::INFINITY), n: self.n }
    }
}

impl Row {
    /// How many requirements have this verdict.
    #[must_use]
    pub fn count(&self, of: Judgement) -> usize {
        self.verdicts.values().filter(|v| **v == of).count()
    }
}

impl Leaderboard {
    /// The command that repeats some cases of a row; `None` if no command does.
    #[must_use]
    pub fn repeat(&self, row: &Row, cases: &[String]) -> Option<String> {
        let parts = row.command.iter().chain(cases).chain([&self.options]).filter(|p| !p.is_empty());
        row.command.as_ref().map(|_| parts.map(String::as_str).collect::<Vec<_>>().join(" "))
    }

    /// Orders the rows: more requirements met, then fewer not met, then by name.
    pub fn sort(&mut self) {
        let rank = |r: &Row| {
            (std::cmp::Reverse(r.count(Judgement::Met)), r.count(Judgement::NotMet), r.control.clone())
        };
        self.rows.sort_by_cached_key(rank);
    }
}

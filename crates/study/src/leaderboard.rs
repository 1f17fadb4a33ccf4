//! A leaderboard: the evaluations of several controls side by side, a row per control, with the verdict on each requirement
//! and some numbers. Everything in it is in the evaluations too.

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
    /// The processor that it ran on.
    pub processor: String,
    /// How much of each case ran: `quick` or `full`.
    pub profile: String,
    /// The command that repeats it.
    pub command: String,
    /// The options behind the control and the cases in the command that repeats one evaluation.
    pub options: String,
    /// The requirements that were measured.
    pub requirements: Vec<Measured>,
    /// The requirements without a verdict for any control.
    pub not_measured: Vec<Section>,
    /// The numbers.
    pub numbers: Vec<Headlined>,
    /// The controls, that with the most requirements met first.
    pub rows: Vec<Row>,
}

/// A requirement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// Its number.
    pub section: String,
    /// Its title.
    pub title: String,
}

/// A requirement with a verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// Its number and title.
    #[serde(flatten)]
    pub is: Section,
    /// The cases that answer it.
    pub cases: Vec<String>,
}

/// A column of numbers: a headline of the overview.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Headlined {
    /// Its title.
    pub title: String,
    /// Its unit; empty for a number without one.
    pub unit: String,
    /// Whether more or less is better; `None` if neither is.
    pub better: Option<Preference>,
    /// The case that measures it.
    pub case: String,
    /// The place of the case on the page of an evaluation.
    pub anchor: String,
}

impl Headlined {
    /// Title and unit.
    #[must_use]
    pub fn heading(&self) -> String {
        format::heading(&self.title, &self.unit)
    }
}

/// A control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The control, as it was given.
    pub control: String,
    /// The page of its evaluation, relative to the folder of the leaderboard.
    pub page: String,
    /// The command that repeats its evaluation, without cases and options; missing where no command does: a control of
    /// one's own in Python.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The verdict on each requirement, by its number.
    pub verdicts: BTreeMap<String, Judgement>,
    /// Each number by its title; missing where there is none.
    pub numbers: BTreeMap<String, Number>,
}

/// A mean over the seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Number {
    /// The mean.
    pub mean: f64,
    /// Half-width of its 95 % interval; missing with a single seed.
    pub ci95: Option<f64>,
    /// Number of seeds.
    pub n: usize,
}

impl Number {
    /// The same as an estimate.
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
    /// The command that repeats some cases of a row.
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

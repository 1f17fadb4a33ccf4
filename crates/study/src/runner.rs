//! The seam to whatever runs a cell: the simulator, or a fake in tests.

use crate::model::Raw;
use crate::observed::Observed;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A change to the base scenario and where in the study it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Path in the scenario.
    pub path: String,
    /// Its value.
    pub value: Raw,
    /// Key in the study, for messages.
    pub origin: String,
}

/// Why a scenario was refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problem {
    /// Path in the scenario, if it is about one.
    pub path: Option<String>,
    /// One sentence.
    pub message: String,
    /// What would be accepted.
    pub accepted: Vec<String>,
}

/// A scenario in which nothing is open, with what the study has to know about it.
#[derive(Clone, Debug)]
pub struct Resolution<S> {
    /// What the runner runs.
    pub scenario: S,
    /// Canonical text without the seed: equal texts give equal results.
    pub text: String,
    /// The scenario in words: (what, value).
    pub words: Vec<(String, String)>,
    /// Names of links.
    pub links: Vec<String>,
    /// Names of groups of flows.
    pub groups: Vec<String>,
    /// Series that it records.
    pub series: Vec<String>,
}

/// Names of quantities that every run yields, with a word on each.
#[derive(Clone, Debug, Default)]
pub struct Vocabulary {
    /// `flow.*`.
    pub flow: Vec<(&'static str, &'static str)>,
    /// `link.<name>.*`.
    pub link: Vec<(&'static str, &'static str)>,
    /// `run.*`.
    pub run: Vec<(&'static str, &'static str)>,
}

/// Why a cell has no result.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// One sentence.
    pub message: String,
    /// More lines, such as a traceback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self { message, detail: None }
    }
}

/// Resolves scenarios and runs cells. A run is a pure function of scenario and seed.
pub trait CellRunner: Sync {
    /// A resolved scenario.
    type Scenario: Send + Sync;

    /// Changes whenever results may change; part of every cell's key.
    fn engine(&self) -> String;

    /// The quantities of a run.
    fn vocabulary(&self) -> Vocabulary;

    /// Applies settings to a base scenario (see [`crate::model::Study::scenario`]) and resolves it.
    ///
    /// # Errors
    /// If the scenario or a setting is refused.
    fn resolve(
        &self,
        base: &Raw,
        dir: &Path,
        settings: &[Setting],
    ) -> Result<Resolution<Self::Scenario>, Problem>;

    /// Reads what [`Resolution::text`] says: a cell may run on another machine.
    ///
    /// # Errors
    /// If the text is no resolved scenario.
    fn reread(&self, text: &str) -> Result<Self::Scenario, Problem>;

    /// What a result depends on besides engine, scenario and seed, as a text that goes into the key of a cell: the
    /// versions of users' own controls. Usually empty.
    ///
    /// # Errors
    /// If that is not known: the cell is then not cached. One sentence that says why.
    fn version(&self, scenario: &Self::Scenario) -> Result<String, String> {
        let _ = scenario;
        Ok(String::new())
    }

    /// Runs one cell.
    ///
    /// # Errors
    /// Why it has no result. The other cells run all the same.
    fn run(&self, scenario: &Self::Scenario, seed: u64) -> Result<Observed, Failure>;
}

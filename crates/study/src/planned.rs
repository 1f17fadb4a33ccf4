//! A fully resolved study: what runs, and how it is evaluated.

use crate::claim::PlannedClaim;
use crate::key::cell_key;
use crate::metric::PlannedMetric;
use crate::model::{Profile, StudyFile};
use crate::runner::Unversioned;
use crate::space::Space;
use skyhaul_scenario::Resolved;
use std::collections::BTreeMap;

/// A fully resolved study.
#[derive(Debug)]
pub struct Plan {
    /// The study, reduced to the profile.
    pub file: StudyFile,
    /// How much of it runs.
    pub profile: Profile,
    /// The values of each axis in the profile; `None`: all.
    pub only: Vec<Option<Vec<usize>>>,
    /// The study as requested, before the profile.
    pub study_text: String,
    /// Version of the engine.
    pub engine: String,
    /// Hash of the base scenario, the study's settings and the engine, hexadecimal.
    pub hash: String,
    /// The different resolved scenarios.
    pub scenarios: Vec<Prepared>,
    /// `grid[reading][combination]` is an index into `scenarios`; reading 0 is the default.
    pub grid: Vec<Vec<usize>>,
    /// `lacks[reading][combination]`: the reading would change the combination, but does not run it.
    pub lacks: Vec<Vec<bool>>,
    /// Metrics in order, `per-group` ones expanded.
    pub metrics: Vec<PlannedMetric>,
    /// Claims in order.
    pub claims: Vec<PlannedClaim>,
    /// Description of the base scenario before the axes.
    pub words: Vec<(String, String)>,
    /// The base scenario before the axes, resolved.
    pub base_text: String,
}

/// A resolved scenario.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The scenario.
    pub scenario: Resolved,
    /// Canonical text.
    pub text: String,
    /// Version of user-defined controls in it; see [`CellRunner::version`](crate::runner::CellRunner::version).
    pub version: Result<String, Unversioned>,
    /// Label of the first combination with it.
    pub label: String,
    /// Constants of its axis values.
    pub constants: BTreeMap<String, f64>,
    /// Index of the run, which scenarios that differ only in constants share. `None`: not in the profile.
    pub run: Option<usize>,
}

/// A run of one scenario with one seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Index of the run among [`Plan::runs`].
    pub run: usize,
    /// Index of the seed.
    pub seed_index: usize,
    /// The seed.
    pub seed: u64,
}

impl Plan {
    /// The first scenario of every different run.
    #[must_use]
    pub fn runs(&self) -> Vec<&Prepared> {
        let mut runs = BTreeMap::new();
        for p in &self.scenarios {
            if let Some(run) = p.run {
                runs.entry(run).or_insert(p);
            }
        }
        runs.into_values().collect()
    }

    /// All cells: by run, then by seed. The position in this list is the cell's number.
    #[must_use]
    pub fn cells(&self) -> Vec<Cell> {
        let seeds: Vec<u64> = self.file.study.seeds.iter().collect();
        let runs = self.runs().len();
        let of =
            |run| seeds.iter().enumerate().map(move |(seed_index, &seed)| Cell { run, seed_index, seed });
        (0..runs).flat_map(of).collect()
    }

    /// Number of seeds.
    #[must_use]
    pub fn seeds(&self) -> usize {
        self.file.study.seeds.count as usize
    }

    /// Key of a cell in the cache.
    #[must_use]
    pub fn key(&self, run: &Prepared, seed: u64) -> String {
        cell_key(&self.engine, &run.text, &run.version, seed)
    }

    /// Names of the readings, the default first.
    #[must_use]
    pub fn readings(&self) -> Vec<String> {
        let others = self.file.study.reading.iter().map(|r| r.label.clone());
        std::iter::once(self.file.study.as_read.clone()).chain(others).collect()
    }

    /// Index of a metric.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<usize> {
        self.metrics.iter().position(|m| m.name == name)
    }

    /// Label of a combination, without the axes that have a single value.
    #[must_use]
    pub fn label(&self, combination: usize) -> String {
        combination_label(&self.file, &Space::of(&self.file).unflatten(combination))
    }
}

/// Label of a combination, without the axes that have a single value.
pub(crate) fn combination_label(file: &StudyFile, index: &[usize]) -> String {
    let several = file.study.axis.iter().zip(index).filter(|(a, _)| a.values.len() > 1);
    let parts: Vec<_> = several.map(|(a, i)| format!("{} = {}", a.name, a.label(*i))).collect();
    if parts.is_empty() { "the only combination".to_owned() } else { parts.join(", ") }
}

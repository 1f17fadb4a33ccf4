//! A study in which nothing is open: what runs, and what is asked of it.

use crate::claim::PlannedClaim;
use crate::key::cell_key;
use crate::metric::PlannedMetric;
use crate::model::{Profile, StudyFile};
use crate::runner::Unversioned;
use crate::space::Space;
use skyhaul_scenario::Resolved;
use std::collections::BTreeMap;

/// A study in which nothing is open.
#[derive(Debug)]
pub struct Plan {
    /// The study, as the profile wants it.
    pub file: StudyFile,
    /// How much of it runs.
    pub profile: Profile,
    /// The values of each axis that the profile leaves; `None`: all.
    pub only: Vec<Option<Vec<usize>>>,
    /// The study as it was asked for, before the profile.
    pub study_text: String,
    /// Version of the engine.
    pub engine: String,
    /// Hash of the base scenario, the study's settings and the engine, hexadecimal.
    pub hash: String,
    /// The different resolved scenarios.
    pub scenarios: Vec<Prepared>,
    /// `grid[reading][combination]` is an index into `scenarios`; reading 0 is the default.
    pub grid: Vec<Vec<usize>>,
    /// Metrics in order, `per-group` ones expanded.
    pub metrics: Vec<PlannedMetric>,
    /// Claims in order.
    pub claims: Vec<PlannedClaim>,
    /// The base scenario before the axes, in words.
    pub words: Vec<(String, String)>,
    /// The base scenario before the axes, resolved.
    pub base_text: String,
}

/// A resolved scenario.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// What the runner runs.
    pub scenario: Resolved,
    /// Canonical text.
    pub text: String,
    /// Version of users' own controls in it; see [`CellRunner::version`](crate::runner::CellRunner::version).
    pub version: Result<String, Unversioned>,
    /// Which combination it was first met in, in words.
    pub label: String,
    /// Constants of the axis values in force.
    pub constants: BTreeMap<String, f64>,
    /// Index of the run: scenarios that differ only in constants share it. `None`: not in the profile.
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

    /// A combination in words, axes with one value left out.
    #[must_use]
    pub fn label(&self, combination: usize) -> String {
        combination_label(&self.file, &Space::of(&self.file).unflatten(combination))
    }
}

/// A combination in words, axes with one value left out.
pub(crate) fn combination_label(file: &StudyFile, index: &[usize]) -> String {
    let several = file.study.axis.iter().zip(index).filter(|(a, _)| a.values.len() > 1);
    let parts: Vec<_> = several.map(|(a, i)| format!("{} = {}", a.name, a.label(*i))).collect();
    if parts.is_empty() { "the only combination".to_owned() } else { parts.join(", ") }
}

//! What a search found, as text and as JSON.

use crate::attack::goal::Goal;
use crate::attack::measured::Measured;
use crate::attack::point::Point;
use crate::engine::simulator;
use crate::text::{Grid, bit_rate, seconds, short};
use serde_json::{Value, json};
use skyhaul_study::runner::CellRunner as _;
use skyhaul_study::stats::Estimate;
use std::fmt::Write as _;

/// Schema of `report.json`.
const SCHEMA: &str = "skyhaul.attack/1";
/// The scenario file of the worst case.
pub(super) const WORST: &str = "worst.toml";
/// What is said of a control that fell silent.
pub(super) const SILENT: &str = "no acknowledgement in the second half of its time";

/// What a search found.
#[derive(Clone, Debug)]
pub struct SearchResult {
    pub(super) control: String,
    pub(super) goal: Goal,
    pub(super) seed: u64,
    pub(super) cases: usize,
    /// Runs of the search, one per case and role, without those of further and fresh seeds.
    pub(super) runs: usize,
    pub(super) worst: Worst,
    pub(super) moved: Vec<NeighbourCase>,
    pub(super) trouble: Vec<FailedCase>,
    pub(super) varied: Vec<&'static str>,
}

/// The worst case.
#[derive(Clone, Debug)]
pub(super) struct Worst {
    pub(super) case: Point,
    /// Value with the seed of the search.
    pub(super) value: f64,
    /// Mean with fresh seeds; `None` if the search was stopped before.
    pub(super) fresh: Option<Estimate>,
    /// The runs with the seed of the search, in the order of the roles of the goal.
    pub(super) runs: Vec<Measured>,
}

/// The worst case with one key changed.
#[derive(Clone, Debug)]
pub(super) struct NeighbourCase {
    pub(super) key: &'static str,
    /// Value of the key in the worst case.
    pub(super) worst: String,
    /// The changed value.
    pub(super) instead: String,
    pub(super) value: Option<f64>,
}

/// A case in which the control failed, or fell silent.
#[derive(Clone, Debug)]
pub(super) struct FailedCase {
    pub(super) case: Point,
    pub(super) why: String,
}

/// The name of the scenario file of the case with trouble of index `i`, from 0.
pub(super) fn trouble_file(i: usize) -> String {
    format!("trouble-{}.toml", i + 1)
}

impl SearchResult {
    /// The value of the worst case, with the seed of the search.
    #[must_use]
    pub const fn value(&self) -> f64 {
        self.worst.value
    }

    /// The value of the worst case with fresh seeds: mean and 95 % interval.
    #[must_use]
    pub const fn fresh(&self) -> Option<Estimate> {
        self.worst.fresh
    }

    /// Number of cases in which the control failed or fell silent.
    #[must_use]
    pub const fn troubles(&self) -> usize {
        self.trouble.len()
    }

    /// The result as text, for the terminal and `report.txt`.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { control, goal, worst, .. } = self;
        let mut out = format!(
            "{} of {control}: {} cases, {} runs, seed {}\n{}\n\n",
            goal.name(),
            self.cases,
            self.runs,
            self.seed,
            goal.description()
        );
        let fresh = worst.fresh.map_or_else(
            || "not run with fresh seeds".to_owned(),
            |e| format!("{} ± {} with {} fresh seeds", short(e.mean), short(e.half), e.n),
        );
        let _ = writeln!(out, "worst: {} in the search, {fresh}\n", short(worst.value));
        let mut grid = Grid::new(&["run", "goodput", "neighbours", "queueing delay"]).left(0);
        for (role, run) in goal.roles().iter().zip(&worst.runs) {
            grid.row(vec![
                role.file().to_owned(),
                bit_rate(run.candidate_bit_s),
                bit_rate(run.neighbours_bit_s),
                seconds(run.queue_s),
            ]);
        }
        out.push_str(&grid.lines(2));
        out.push('\n');
        let mut grid = Grid::new(&["key", "worst", "instead", "value"]);
        for key in &self.varied {
            let rows: Vec<&NeighbourCase> = self.moved.iter().filter(|m| m.key == *key).collect();
            if rows.is_empty() {
                grid.row(vec![(*key).to_owned(), worst.case.text(key), String::new(), String::new()]);
            }
            for m in rows {
                let value = m.value.map_or_else(|| "none".to_owned(), short);
                grid.row(vec![m.key.to_owned(), m.worst.clone(), m.instead.clone(), value]);
            }
        }
        out.push_str(&grid.lines(2));
        if !self.trouble.is_empty() {
            let _ = writeln!(out, "\ncases in trouble: {}", self.trouble.len());
            for (i, t) in self.trouble.iter().take(3).enumerate() {
                let _ = writeln!(out, "  {}: {}", trouble_file(i), t.why);
            }
        }
        out
    }

    /// The result as JSON, for `report.json`.
    #[must_use]
    pub fn summary(&self) -> Value {
        let case = |p: &Point| -> Value {
            self.varied
                .iter()
                .map(|k| ((*k).to_owned(), json!(p.text(k))))
                .collect::<serde_json::Map<_, _>>()
                .into()
        };
        let runs = self.goal.roles().iter().zip(&self.worst.runs);
        json!({
            "schema": SCHEMA,
            "engine": simulator().engine(),
            "control": self.control,
            "goal": self.goal.name(),
            "says": self.goal.description(),
            "seed": self.seed,
            "cases": self.cases,
            "runs": self.runs,
            "worst": {
                "case": case(&self.worst.case),
                "value": self.worst.value,
                "fresh": self.worst.fresh.map(|e| json!({ "mean": e.mean, "half_95": e.half, "seeds": e.n })),
                "runs": runs.map(|(role, m)| json!({ "file": role.file(), "measured": m })).collect::<Vec<_>>(),
            },
            "keys": self.moved.iter().map(|m| json!({
                "key": m.key, "worst": m.worst, "instead": m.instead, "value": m.value,
            })).collect::<Vec<_>>(),
            "trouble": self.trouble.iter().map(|t| json!({ "case": case(&t.case), "why": t.why }))
                .collect::<Vec<_>>(),
        })
    }
}

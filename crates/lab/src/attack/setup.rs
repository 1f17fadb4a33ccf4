//! The runs of a case: the scenario of each role, and what is measured in it.

use crate::attack::goal::{Goal, Role};
use crate::attack::measured::Measured;
use crate::attack::point::{PACKET, Point};
use crate::cases::Case;
use crate::control;
use crate::error::LabError;
use crate::run::{self, RunObserver};
use serde::{Deserialize, Serialize};
use skyhaul_base::Duration;
use skyhaul_cc::Controls;
use skyhaul_scenario::amount::Time;
use skyhaul_scenario::{Document, Resolved, no_files};
use skyhaul_sim::RunResult;
use toml::Value;

/// Parts of the scenario files: the path, and the flow groups that may use it.
const LINK: &str = include_str!("link.toml");
const CANDIDATE: &str = include_str!("candidate.toml");
const NEIGHBOURS: &str = include_str!("neighbours.toml");
/// Names of the flow groups in these files.
const OWN: &str = "candidate";
const OTHERS: &str = "neighbours";

/// What is under test.
#[derive(Clone, Debug)]
pub(super) struct TestSetup {
    /// The control as it was given.
    pub(super) control: String,
    /// The same as a value of the key `cc`.
    cc: Value,
    pub(super) goal: Goal,
    pub(super) duration: Duration,
    /// Seed of the search and of its runs.
    pub(super) seed: u64,
    controls: Controls,
}

/// The outcome of a case.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Outcome {
    /// The value of the goal, and the runs in the order of its roles.
    Value {
        /// The value.
        value: f64,
        /// The runs.
        runs: Vec<Measured>,
    },
    /// The control panicked or failed, or the value of the goal is not finite.
    Failed {
        /// Why, in one line.
        why: String,
    },
    /// The run to compare with delivered nothing either.
    Nothing,
}

impl Outcome {
    /// The value, if there is one.
    pub(super) const fn value(&self) -> Option<f64> {
        match self {
            Self::Value { value, .. } => Some(*value),
            Self::Failed { .. } | Self::Nothing => None,
        }
    }

    /// Whether the candidate fell silent: no acknowledgement in the second half of its time.
    pub(super) fn is_silent(&self) -> bool {
        matches!(self, Self::Value { runs, .. } if runs.first().is_some_and(|r| r.silent))
    }
}

impl TestSetup {
    /// A control under test: its name, or an inline table.
    ///
    /// # Errors
    /// If it is neither.
    pub(super) fn new(
        control: &str,
        goal: Goal,
        duration: Duration,
        seed: u64,
        controls: Controls,
    ) -> Result<Self, LabError> {
        let cc = control::read(control)?;
        Ok(Self { control: control.trim().to_owned(), cc, goal, duration, seed, controls })
    }

    /// The scenario of a case.
    ///
    /// # Errors
    /// If the control, or that of the neighbours, is refused.
    pub(super) fn scenario(&self, point: &Point, role: Role, seed: u64) -> Result<Resolved, LabError> {
        let beside = self.goal.has_neighbours();
        let text = match role {
            Role::Solo => [LINK, NEIGHBOURS].concat(),
            _ if beside => [LINK, CANDIDATE, NEIGHBOURS].concat(),
            _ => [LINK, CANDIDATE].concat(),
        };
        let mut document = Document::parse("the scenario of the search", &text, &no_files)?;
        let text = |text: String| Value::String(text);
        let time = |ns| Value::String(Time(Duration::from_nanos(ns)).to_string());
        let mut sets = vec![
            ("title", text(self.title(point, role))),
            ("duration", text(Time(self.duration).to_string())),
            ("seed", Value::Integer(seed as i64)),
            ("links.path.rate", text(point.text("rate"))),
            ("links.path.delay.base", time(point.rtt_ns / 2)),
            ("links.path.delay.jitter", time(point.jitter_ns)),
            ("links.path.queue.limit", text(format!("{} packets", point.packets()))),
            ("links.path.error.loss", Value::Float(point.loss)),
            ("links.path.error.burst", Value::Float(point.burst)),
        ];
        if role != Role::Solo {
            let own = if role == Role::Candidate { self.cc.clone() } else { text(point.neighbours.clone()) };
            sets.push(("flows.candidate.cc", own));
            sets.push(("flows.candidate.start", time(if beside { point.start_ns } else { 0 })));
        }
        if beside {
            sets.push(("flows.neighbours.cc", text(point.neighbours.clone())));
            sets.push(("flows.neighbours.count", Value::Integer(point.count as i64)));
        }
        for (key, value) in sets {
            document.set_value(key, value)?;
        }
        Ok(document.resolve()?)
    }

    /// One line for the file.
    fn title(&self, point: &Point, role: Role) -> String {
        let (goal, control, n, kind) = (self.goal.name(), &self.control, point.count, &point.neighbours);
        match role {
            Role::Candidate if self.goal.has_neighbours() => {
                format!("attack {goal}: {control} beside {n} {kind}")
            }
            Role::Candidate => format!("attack {goal}: {control} alone"),
            Role::Reference => format!("attack {goal}: {kind} in the place of {control} beside {n} {kind}"),
            Role::Solo => format!("attack {goal}: {n} {kind} without {control}"),
        }
    }

    /// Refuses a control that the scenario of a case does not accept, with the reason.
    pub(super) fn check(&self, point: &Point) -> Result<(), LabError> {
        for role in self.goal.roles() {
            let refuse = |message: String| LabError::Control { control: self.control.clone(), message };
            let scenario = self.scenario(point, *role, self.seed).map_err(|e| match e {
                LabError::Scenario(e) => refuse(format!("`{}`: {}", e.key, e.message)),
                other => other,
            })?;
            skyhaul_sim::check_controls(&scenario, &self.controls).map_err(|e| refuse(e.to_string()))?;
        }
        Ok(())
    }

    /// Runs a case; `None` if it was stopped.
    pub(super) fn run(&self, point: &Point, seed: u64, watch: &dyn RunObserver) -> Option<Outcome> {
        let mut runs = Vec::new();
        for role in self.goal.roles() {
            match self.measure(point, *role, seed, watch) {
                Ok(measured) => runs.push(measured),
                Err(None) => return None,
                Err(Some(why)) => return Some(Outcome::Failed { why }),
            }
        }
        Some(match self.goal.value(point, &runs) {
            Some(value) if value.is_finite() => Outcome::Value { value, runs },
            Some(value) => Outcome::Failed { why: format!("the value of the goal is {value}") },
            None => Outcome::Nothing,
        })
    }

    /// One run. The error is the reason for a failure, or `None` if the run was stopped.
    fn measure(
        &self,
        point: &Point,
        role: Role,
        seed: u64,
        watch: &dyn RunObserver,
    ) -> Result<Measured, Option<String>> {
        // A control that is stopped in the middle of a method did not fail.
        let failed = |e: LabError| (!e.is_stop() && !watch.stopped()).then(|| e.to_string());
        let scenario = self.scenario(point, role, seed).map_err(failed)?;
        let case = Case { choice: Vec::new(), scenario, seed };
        // A control that fails is a result of the search and does not end it.
        let result = run::whole(&case, &self.controls, watch).map_err(failed)?;
        Ok(self.numbers(point, &case.scenario, &result))
    }

    fn numbers(&self, point: &Point, scenario: &Resolved, result: &RunResult) -> Measured {
        let of = |group: &'static str| result.flows.iter().filter(move |f| f.group == group);
        let start = if self.goal.has_neighbours() { point.start_ns } else { 0 };
        let half = start + (self.duration.as_nanos() - start) / 2;
        let mss = scenario.flows.first().map_or(0, |g| g.endpoint.mss);
        Measured {
            candidate_bit_s: of(OWN).map(|f| f.goodput).sum(),
            neighbours_bit_s: of(OTHERS).map(|f| f.goodput).sum(),
            queue_s: result.links.iter().find(|l| l.forward).map_or(0.0, |l| l.mean_queue * point.packet_s()),
            payload: f64::from(mss) / PACKET as f64,
            silent: of(OWN).any(|f| f.last_ack.is_none_or(|t| t.as_nanos() < half)),
        }
    }
}

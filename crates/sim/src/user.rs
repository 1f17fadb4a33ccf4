//! Users' own congestion controls: who provides them, one instance per connection, and runs that they end.

use crate::build::BuildError;
use crate::result::RunResult;
use crate::sim::{Sim, Status};
use crate::tap::Tap;
use core::any::Any;
use core::fmt;
use skyhaul_base::Instant;
use skyhaul_cc::user::Failed;
use skyhaul_cc::{
    Ack, Algorithm, Config, CongestionControl, Controls, Cx, Policy, SharedRules, Signal, Window,
};
use skyhaul_scenario::resolved::{FlowGroup, Resolved};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Refuses a scenario with a user's control that `controls` does not have, or whose options it does not take.
///
/// # Errors
/// Names the group of flows.
pub fn check_controls(scenario: &Resolved, controls: &Controls) -> Result<(), BuildError> {
    for group in &scenario.flows {
        if let Config::User(own) = &group.cc {
            let refuse = |why: skyhaul_cc::user::Error| BuildError::Control {
                flow: group.name.clone(),
                message: why.to_string(),
            };
            controls.check(own).map_err(refuse)?;
        }
    }
    Ok(())
}

/// Why a run ended before its end.
pub struct Failure {
    /// The time that had been simulated.
    pub at: Instant,
    /// What happened, in one line.
    pub message: String,
    /// More lines, such as a traceback.
    pub detail: Option<String>,
    /// Whatever the control that failed handed over; see [`Failed`].
    pub source: Option<Box<dyn Any + Send>>,
}

impl Failure {
    fn new(at: Instant, payload: Box<dyn Any + Send>) -> Self {
        let payload = match payload.downcast::<Failed>() {
            Ok(own) => {
                let Failed { message, detail, source } = *own;
                return Self { at, message, detail, source };
            }
            Err(other) => other,
        };
        let words = payload.downcast_ref::<&str>().map(|s| (*s).to_owned());
        let words = words.or_else(|| payload.downcast_ref::<String>().cloned());
        let words = words.unwrap_or_else(|| "a panic without a message".to_owned());
        let message = format!("the engine or a control broke an invariant: {}", words.replace('\n', " "));
        Self { at, message, detail: None, source: None }
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failure")
            .field("at", &self.at)
            .field("message", &self.message)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at {:.6} s of simulated time)", self.message, self.at.as_secs_f64())
    }
}

impl core::error::Error for Failure {}

/// Why there is no result.
#[derive(Debug)]
pub enum RunError {
    /// The scenario cannot be simulated.
    Build(BuildError),
    /// It began and failed.
    Failed(Failure),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Build(e) => e.fmt(f),
            Self::Failed(e) => e.fmt(f),
        }
    }
}

impl core::error::Error for RunError {}

impl<R: Tap> Sim<R> {
    /// As [`Self::run_until`]; a control that panics, or that fails on purpose (see [`Failed`]), ends the run with an
    /// error. Nothing can be done with the world then but to drop it.
    ///
    /// # Errors
    /// What happened and when.
    pub fn try_run_until(&mut self, t: Instant) -> Result<Status, Failure> {
        catch_unwind(AssertUnwindSafe(|| self.run_until(t)))
            .map_err(|payload| Failure::new(self.now, payload))
    }

    /// As [`Self::finish`], with the errors of [`Self::try_run_until`].
    ///
    /// # Errors
    /// What happened and when.
    pub fn try_finish(mut self) -> Result<RunResult, Failure> {
        self.try_run_until(Instant::MAX)?;
        Ok(self.result())
    }
}

/// The controls of the two ends of a connection of a flow.
///
/// Built-in ones are built twice. Of a user's own there is one instance, at the sender: the other end sends no data and
/// only agrees to what the policy asks for.
pub(crate) fn controls_of(
    group: &FlowGroup,
    rules: &SharedRules,
    index: u32,
    controls: &Controls,
) -> (Algorithm, Algorithm) {
    let Config::User(own) = &group.cc else { return (group.cc.build(rules), group.cc.build(rules)) };
    let flow = format!("{}[{index}]", group.name);
    match controls.build(own, rules, &flow) {
        Ok(control) => {
            let peer = Peer { policy: control.policy() };
            (control.into(), Algorithm::custom(peer))
        }
        // Checked before the run, so only a control that fails to be made gets here.
        Err(why) => {
            let message = format!("flow {flow}: cannot make the control \"{}\": {why}", own.control);
            resume_unwind(Box::new(Failed { message, detail: None, source: None }))
        }
    }
}

/// The control of an end that sends no data.
#[derive(Debug)]
struct Peer {
    policy: Policy,
}

impl CongestionControl for Peer {
    fn window(&self) -> Window {
        Window { cwnd: 1.0, ssthresh: f64::INFINITY }
    }
    fn policy(&self) -> Policy {
        self.policy
    }
    fn on_ack(&mut self, _: &mut Cx<'_>, _: &Ack) {}
    fn on_congestion(&mut self, _: &mut Cx<'_>, _: Signal) {}
    fn on_timeout(&mut self, _: &mut Cx<'_>, _: u32) {}
}

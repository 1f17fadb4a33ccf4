//! Simulation in virtual time: a resolved scenario becomes a world of links and endpoints, and a run is a pure
//! function of scenario and seed.
//!
//! ```text
//! pop (time, slot)
//!  ├ service(link)    the head of a queue whose departures are not known is transmitted and put in flight, or the
//!  │                  channel loses a packet
//!  ├ delivery(link)   last hop? no: offered to the next link; yes: the endpoint handles it and may send
//!  ├ timer(flow)      start, retransmission timer, pacing, delayed acknowledgement
//!  ├ sampler          a row for each flow and link
//!  └ changes          of links, and events at gateways
//! ```
//!
//! Each slot is pending at most once, and simultaneous events are ordered by slot, so the order is a property of the
//! scenario: services, deliveries, the timers of the scenario's flows, the sampler, the changes, and the timers of
//! connections opened for transfers. Timers are lazy: a postponed one
//! fires early and is set again, which costs nothing per acknowledgement.
//!
//! Nothing here reads a clock, a file or the environment.
#![forbid(unsafe_code)]

mod error;
mod flow;
mod observe;
mod packet;
pub mod quantity;
mod repaired;
pub mod result;
mod sim;
mod split;

pub use error::{BuildError, Failure, RunError, caught};
pub use flow::agent::Agents;
pub use flow::user::check_controls;
pub use observe::samples::Spread;
pub use observe::tap::{Opened, Place, Sighting, Tap};
pub use observe::truth::{ReductionCounts, Verdicts};
pub use result::{
    ChainResult, ClassResult, Ended, FlowResult, LinkResult, PacketDelays, Page, Percentiles, RateResult,
    RunResult, SampledSeries, Telemetry,
};
pub use sim::{Sim, Status};
pub use skyhaul_apps::{Measured, Share, Viewed};

use skyhaul_cc::Controls;
use skyhaul_scenario::resolved::Resolved;

/// Runs a scenario from start to end. `seed` replaces the scenario's own.
///
/// # Errors
/// If the scenario cannot be simulated; see [`BuildError`].
pub fn run<R: Tap>(scenario: &Resolved, seed: u64, recorder: R) -> Result<RunResult, BuildError> {
    Ok(Sim::new(scenario, seed, recorder)?.finish())
}

/// As [`run`], with controls provided by the caller.
///
/// # Errors
/// If the scenario cannot be simulated, or a control ends the run.
pub fn run_with<R: Tap>(
    scenario: &Resolved,
    seed: u64,
    recorder: R,
    controls: &Controls,
) -> Result<RunResult, RunError> {
    let sim = Sim::with_controls(scenario, seed, recorder, controls).map_err(RunError::Build)?;
    sim.try_finish().map_err(RunError::Failed)
}

//! Simulation in virtual time: a resolved scenario becomes a world of links and endpoints, and a run is a pure
//! function of scenario and seed.
//!
//! ```text
//! pop (time, slot)
//!  ├ service(link)    the head of a queue whose departures are not foreseen is transmitted and put in flight, or the
//!  │                  channel loses a packet
//!  ├ delivery(link)   last hop? no: offered to the next link; yes: the end point handles it and may send
//!  ├ timer(flow)      start, retransmission timer, pacing, delayed acknowledgement
//!  └ sampler          a row for each flow and link
//! ```
//!
//! Each slot is pending at most once, and simultaneous events are ordered by slot (services before deliveries
//! before timers before the sampler), so the order is a property of the scenario. Timers are lazy: a postponed one
//! fires early and is set again, which costs nothing per acknowledgement.
//!
//! Nothing here reads a clock, a file or the environment.
#![forbid(unsafe_code)]

mod account;
mod agent;
mod budget;
mod build;
mod chain;
mod change;
mod datagram;
mod emit;
mod ends;
mod error;
mod finish;
mod flow;
mod hand_over;
mod headers;
mod held;
mod leg;
mod life;
mod links;
mod network;
mod observe;
mod oracle;
mod parcel;
mod plain;
pub mod quantity;
mod rate_leg;
mod rated;
mod relay;
pub mod result;
mod sampler;
mod samples;
mod sim;
mod spoof;
mod spoofing;
mod tap;
mod transfer;
mod truth;
mod tunnel;
mod user;
mod watch;

pub use agent::Agents;
pub use error::{BuildError, Failure, RunError, caught};
pub use result::{
    ChainResult, ClassResult, Ended, FlowResult, LinkResult, RateResult, RunResult, SampledSeries, Telemetry,
};
pub use samples::Spread;
pub use sim::{Sim, Status};
pub use skyhaul_apps::{Measured, Share, Viewed};
pub use tap::{Opened, Place, Sighting, Tap};
pub use truth::{Cuts, Verdicts};
pub use user::check_controls;

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

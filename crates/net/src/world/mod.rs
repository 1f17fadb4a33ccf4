//! Runs a scenario in real time over emulated links: with our transport or with the kernel's.
//!
//! ```text
//! ours    stack ─ TUN ─ kernel A ─ TUN ═ emulator ═ TUN ─ kernel B ─ TUN ─ stack
//! kernel          socket in A    ─ TUN ═ emulator ═ TUN ─ socket in B
//! ```
//! Real packets cross real devices and real forwarding kernels; the links between them are those of the scenario.
//! Flows run the workloads of the simulator with the same random streams, over TCP and UDP; TFRC and SSVP run only
//! between our own hosts. The measurements are those of the simulator: bytes acknowledged until the run ends, page
//! times, datagram delays.

mod error;
mod kernel;
mod ours;
mod outcome;
mod receivers;
mod setting;
mod sockets;

pub use error::{Unsupported, WorldError};
pub use outcome::{FlowOutcome, Outcome, RateOutcome, Sample};

use setting::Setting;
use skyhaul_scenario::resolved::Resolved;

/// Which transport carries the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum World {
    /// Our transport at both ends.
    Ours,
    /// The kernel's at both ends, with this congestion control.
    Kernel(String),
    /// Our transport sends, the kernel receives.
    OursToKernel,
}

impl World {
    /// Parses `wire`, `wire-to-kernel`, or `kernel:NAME`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "wire" => Some(Self::Ours),
            "wire-to-kernel" => Some(Self::OursToKernel),
            _ => text.strip_prefix("kernel:").filter(|n| !n.is_empty()).map(|n| Self::Kernel(n.to_owned())),
        }
    }
    /// The name, as [`Self::parse`] reads it.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Ours => "wire".into(),
            Self::OursToKernel => "wire-to-kernel".into(),
            Self::Kernel(name) => format!("kernel:{name}"),
        }
    }
}

/// Runs a scenario in real time: it takes as long as the scenario lasts. For the same order of packets, the seed
/// gives the same losses as in the simulator, and the same workloads.
///
/// # Errors
/// If the scenario needs what a real network cannot do, privileges are missing, or a connection fails.
pub fn run(
    scenario: &Resolved,
    world: &World,
    seed: u64,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Outcome, WorldError> {
    let setting = Setting::new(scenario, seed, world)?;
    match world {
        World::Ours => ours::run(&setting, true, stop),
        World::OursToKernel => ours::run(&setting, false, stop),
        World::Kernel(name) => kernel::run(&setting, name, stop),
    }
}

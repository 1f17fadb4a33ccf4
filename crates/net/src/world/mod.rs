//! One scenario in other worlds than the simulator: our transport, and the kernel's, over its links in real time.
//!
//! ```text
//! ours    stack ─ TUN ─ kernel A ─ TUN ═ emulator ═ TUN ─ kernel B ─ TUN ─ stack
//! kernel          socket in A    ─ TUN ═ emulator ═ TUN ─ socket in B
//! ```
//! Real packets cross real devices and real kernels that forward them; the links between are those of the scenario. What
//! flows send are the workloads of the simulator, from the same random streams, over TCP and UDP; TFRC and SSVP run between our own hosts only. What is measured is what the
//! simulator measures: bytes that the receiver has acknowledged until the run ends, times of pages, delays of datagrams.

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

/// Who carries the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum World {
    /// Our transport on both sides.
    Ours,
    /// The kernel's on both sides, with this congestion control.
    Kernel(String),
    /// Ours sends, the kernel receives.
    OursToKernel,
}

impl World {
    /// `wire`, `wire-to-kernel`, or `kernel:NAME`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "wire" => Some(Self::Ours),
            "wire-to-kernel" => Some(Self::OursToKernel),
            _ => text.strip_prefix("kernel:").filter(|n| !n.is_empty()).map(|n| Self::Kernel(n.to_owned())),
        }
    }
    /// As it is written.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Ours => "wire".into(),
            Self::OursToKernel => "wire-to-kernel".into(),
            Self::Kernel(name) => format!("kernel:{name}"),
        }
    }
}

/// Runs a scenario in another world, in real time: it takes as long as the scenario lasts. The seed draws the same
/// losses as in the simulator for the same order of packets, and the same workloads.
///
/// # Errors
/// If the scenario asks for what a wire cannot do, privileges are missing, or a connection fails.
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

//! The simulator used by all commands.

use skyhaul_study::engine::Simulator;
use std::sync::OnceLock;

/// The simulator that runs cells.
pub fn simulator() -> &'static Simulator {
    static SIMULATOR: OnceLock<Simulator> = OnceLock::new();
    SIMULATOR.get_or_init(|| Simulator::new(crate::VERSION))
}

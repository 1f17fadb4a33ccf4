//! `skyhaul compare SCENARIO --worlds …`: one scenario in the simulator, and over the emulated links with Skyhaul's
//! transport and with the kernel's.

#[cfg(target_os = "linux")]
mod figures;
#[cfg(target_os = "linux")]
mod measure;
#[cfg(target_os = "linux")]
mod runs;
#[cfg(target_os = "linux")]
mod table;

use crate::args::CompareArgs;
use crate::stop::Stop;

#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_: &CompareArgs) -> Result<(), Stop> {
    Err(Stop::bad("--worlds needs Linux: its TUN devices and network namespaces"))
}

#[cfg(target_os = "linux")]
pub(crate) fn run(args: &CompareArgs) -> Result<(), Stop> {
    let ran = runs::run(args)?;
    table::show(args, &ran)
}

//! Bytes of memory per flow, of one world with many flows and no loss: `memory [flows]` (Linux).
//!
//! The process's own memory is read when the world is built, when every flow has its first segments on the way, and when
//! the windows are open; by then much of it is packets on the link, which is given beside it.

#[path = "../tests/all/common/mod.rs"]
mod common;

use skyhaul_base::{Duration, Instant};
use skyhaul_sim::Sim;
use skyhaul_trace::Null;

/// What of this process lies in memory, in bytes.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).expect("the line of the memory in use");
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse().expect("a number");
    kib * 1024.0
}

fn main() {
    let flows: u32 = std::env::args().nth(1).map_or(20_000, |a| a.parse().expect("a number of flows"));
    let n = f64::from(flows);
    let mut scenario = common::scaled(flows, 0.0, 60.0);
    // Less than the channel holds: no queue overflows.
    let endpoint = &mut scenario.flows[0].endpoint;
    endpoint.receive_buffer = 32 * u64::from(endpoint.mss);
    let before = resident();
    let mut sim = Sim::new(&scenario, 1, Null).expect("a world");
    println!("{flows} flows, built: {:.0} bytes per flow", (resident() - before) / n);
    for seconds in [1.0, 8.0] {
        sim.run_until(Instant::ZERO + Duration::from_secs_f64(seconds));
        println!(
            "after {seconds} s: {:.0} bytes per flow, {:.1} packets per flow on the link",
            (resident() - before) / n,
            sim.in_network() as f64 / n,
        );
    }
}

//! Nanoseconds per delivered segment: `speed [flows] [seconds] [loss] [fixed-window]`.

#[path = "../tests/all/common/mod.rs"]
mod common;

use skyhaul_sim::{Agents, Sim};
use skyhaul_trace::Null;

/// Processor time of this process in nanoseconds, where the system tells.
fn processor_time() -> Option<u64> {
    std::fs::read_to_string("/proc/self/schedstat").ok()?.split_whitespace().next()?.parse().ok()
}

#[expect(clippy::disallowed_methods, reason = "measures the machine, not the model")]
fn main() {
    let args: Vec<f64> = std::env::args().skip(1).map(|a| a.parse().expect("a number")).collect();
    let arg = |i: usize, default: f64| args.get(i).copied().unwrap_or(default);
    let flows = arg(0, 20.0) as u32;
    let scenario = common::scaled(flows, arg(2, 1e-3), arg(1, 550.0));
    let agents = if arg(3, 0.0) > 0.0 { Agents::FixedWindow(arg(3, 0.0) as u32) } else { Agents::Scenario };
    let began = std::time::Instant::now();
    let cpu = processor_time();
    let sim = Sim::with_agents(&scenario, 1, Null, agents).expect("a world");
    let built = began.elapsed();
    let result = sim.finish();
    let wall = began.elapsed().as_nanos() as f64;
    let took = cpu.zip(processor_time()).map_or(wall, |(a, b)| (b - a) as f64);
    let acked = result.segments_acked();
    println!(
        "{flows} flows: {:.1} ns/segment ({acked} segments in {:.3} s of processor, {:.3} s wall, built in {built:.1?}), {:.2} events/segment, goodput {:.1}/s, utilization {:.3}",
        took / acked,
        took * 1e-9,
        wall * 1e-9,
        result.events as f64 / acked,
        acked / result.duration.as_secs_f64(),
        result.links[0].utilization,
    );
}

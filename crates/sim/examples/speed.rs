//! Nanoseconds per delivered segment: `speed [flows] [seconds] [loss] [fixed-window]`.

#[path = "../tests/common/mod.rs"]
mod common;

use skyhaul_sim::{Agents, Sim};
use skyhaul_trace::Null;

fn main() {
    let args: Vec<f64> = std::env::args().skip(1).map(|a| a.parse().expect("a number")).collect();
    let arg = |i: usize, default: f64| args.get(i).copied().unwrap_or(default);
    let flows = arg(0, 20.0) as u32;
    let scenario = common::scaled(flows, arg(2, 1e-3), arg(1, 550.0));
    let agents = if arg(3, 0.0) > 0.0 { Agents::FixedWindow(arg(3, 0.0) as u32) } else { Agents::Scenario };
    let began = std::time::Instant::now();
    let sim = Sim::with_agents(&scenario, 1, Null, agents).expect("a world");
    let built = began.elapsed();
    let result = sim.finish();
    let took = began.elapsed();
    let acked = result.segments_acked();
    println!(
        "{flows} flows: {acked} segments, {} events, built {built:?}, took {took:?}: {:.1} ns/segment, {:.2} events/segment, goodput {:.1}/s, util {:.3}",
        result.events,
        took.as_nanos() as f64 / acked,
        result.events as f64 / acked,
        acked / result.duration.as_secs_f64(),
        result.links[0].utilization,
    );
}

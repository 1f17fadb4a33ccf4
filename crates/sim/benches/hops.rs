//! Three fixed worlds: the bare engine, the classical experiment, and a large one.
//!
//! The throughput that criterion prints is in packets delivered by links (hops) for the engine, and in distinct
//! segments acknowledged for the others.
#![allow(missing_docs, reason = "criterion's macros generate undocumented functions")]

#[path = "../tests/all/common/mod.rs"]
mod common;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use skyhaul_scenario::resolved::Resolved;
use skyhaul_sim::{Agents, RunResult, Sim};
use skyhaul_trace::Null;

fn world(c: &mut Criterion, name: &str, s: &Resolved, agents: Agents, count: impl Fn(&RunResult) -> u64) {
    let build = || Sim::with_agents(s, 1, Null, agents).expect("a world");
    let mut group = c.benchmark_group("hops");
    group.sample_size(10).throughput(Throughput::Elements(count(&build().finish())));
    group.bench_function(name, |b| b.iter_batched(build, Sim::finish, BatchSize::PerIteration));
    group.finish();
}

fn hops(c: &mut Criterion) {
    let delivered = |r: &RunResult| r.links.iter().flat_map(|l| l.classes).map(|c| c.delivered).sum();
    let acked = |r: &RunResult| r.segments_acked() as u64;
    world(
        c,
        "fixed window, 20 flows",
        &common::s0(20, "sack", 0.0, 200.0),
        Agents::FixedWindow(40),
        delivered,
    );
    world(c, "sack, 20 flows", &common::s0(20, "sack", 1e-3, 200.0), Agents::Scenario, acked);
    world(c, "sack, 2000 flows", &common::scaled(2000, 1e-3, 10.0), Agents::Scenario, acked);
}

criterion_group!(benches, hops);
criterion_main!(benches);

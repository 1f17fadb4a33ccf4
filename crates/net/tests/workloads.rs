//! The workloads of scenarios in the simulator, by our transport, and by the kernel's: each world sends the same, and
//! measures the same quantities. The runs are in real time, side by side.
#![cfg(target_os = "linux")]

use skyhaul_net::world::{self, FlowOutcome, Outcome, World};
use skyhaul_scenario::{Document, Resolved};
use skyhaul_sim::{FlowResult, RunResult};
use skyhaul_testkit::need;

/// Flows of every kind but video: all cross one link, some another one before it.
const EVERYTHING: &str = include_str!("../../../examples/mix.toml");

fn resolved(text: &str) -> Resolved {
    let d = Document::parse("t.toml", text, &skyhaul_scenario::no_files).unwrap();
    d.resolve().unwrap_or_else(|e| panic!("{e}"))
}
fn simulated(s: &Resolved) -> RunResult {
    skyhaul_sim::run(s, s.seed, skyhaul_trace::Null).expect("runs")
}
fn privileged() -> bool {
    need::granted(skyhaul_net::Namespace::new()).is_some()
}
/// Runs a scenario in several worlds at once.
fn run(s: &Resolved, worlds: &[World]) -> Vec<Outcome> {
    std::thread::scope(|scope| {
        let one =
            |w| scope.spawn(move || world::run(s, w, s.seed, &|| false).unwrap_or_else(|e| panic!("{e}")));
        let all: Vec<_> = worlds.iter().map(one).collect();
        all.into_iter().map(|t| t.join().unwrap()).collect()
    })
}
fn worlds() -> [World; 3] {
    [World::Ours, World::OursToKernel, World::Kernel("cubic".into())]
}

/// The values differ by less than a fifth and a tenth of a second, or more if the emulation doubts itself, since the machine is
/// busy.
fn close(what: &str, trusted: bool, a: Option<f64>, b: Option<f64>) {
    let (Some(a), Some(b)) = (a, b) else {
        panic!("{what}: {a:?} and {b:?}");
    };
    let (seconds, share) = if trusted { (0.1, 0.2) } else { (1.0, 0.5) };
    assert!((a - b).abs() <= seconds + share * b, "{what}: {a} instead of {b}");
}

fn same(what: &str, trusted: bool, wire: &FlowOutcome, sim: &FlowResult) {
    let what = format!("{what}, {}[{}]", sim.group, sim.index);
    assert_eq!((&wire.group, wire.index), (&sim.group, sim.index));
    assert_eq!(wire.transfers, sim.transfers, "{what}: transfers");
    assert_eq!(wire.pages.len(), sim.pages.len(), "{what}: pages");
    let secs = |t: Option<skyhaul_base::Duration>| t.map(|t| t.as_secs_f64());
    let sim_secs = |t: Option<skyhaul_base::Instant>| t.map(|t| t.as_secs_f64());
    close(&format!("{what}: started"), trusted, secs(wire.started), sim_secs(sim.started));
    // At its end a bulk flow of the kernel still sends what was written, and its queue is as long as its window.
    if sim.group != "bulk" {
        close(&format!("{what}: finished"), trusted, secs(wire.finished), sim_secs(sim.finished));
    }
    if !sim.pages.is_empty() {
        close(&format!("{what}: time of a page"), trusted, wire.mean_page(), sim.mean_page());
    }
    let Some(measured) = sim.datagrams else {
        assert_eq!(wire.datagrams, None);
        return;
    };
    let ours = wire.datagrams.unwrap_or_else(|| panic!("{what}: nothing measured"));
    assert_eq!(wire.sent, Some(sim.segments_sent), "{what}: datagrams sent");
    assert_eq!((ours.delivered, ours.missing), (measured.delivered, measured.missing), "{what}: datagrams");
    assert_eq!(wire.acked, sim.bytes_acked, "{what}: payload delivered");
    close(&format!("{what}: delay"), trusted, ours.delay_mean, measured.delay_mean);
    close(&format!("{what}: median delay"), trusted, ours.delay_p50, measured.delay_p50);
    close(&format!("{what}: jitter"), trusted, ours.jitter, measured.jitter);
}

#[test]
fn every_workload_is_the_same_in_all_worlds() {
    if !privileged() {
        return;
    }
    let s = resolved(EVERYTHING);
    let sim = simulated(&s);
    for (world, outcome) in worlds().iter().zip(run(&s, &worlds())) {
        let what = world.name();
        assert_eq!(outcome.flows.len(), sim.flows.len());
        for (wire, sim) in outcome.flows.iter().zip(&sim.flows) {
            same(&what, outcome.emulation.doubts().is_empty(), wire, sim);
            // A workload of a known length is delivered to the byte.
            if sim.group != "bulk" {
                assert_eq!(wire.acked, sim.bytes_acked, "{what}, {}: bytes", sim.group);
            } else {
                assert!(wire.acked > sim.bytes_acked / 2, "{what}: {} bytes", wire.acked);
                assert!(wire.finished.is_some(), "{what}: never ended");
            }
        }
    }
}

#[test]
fn the_same_datagrams_are_lost_in_all_worlds() {
    if !privileged() {
        return;
    }
    let s = resolved(
        "duration = \"5 s\"\nseed = 11\n[links.sat]\nrate = \"2 Mbit/s\"\ndelay = \"100 ms\"\n\
         error = { kind = \"per\", p = 0.1 }\n[flows.cbr]\npath = [\"sat\"]\ntransport = \"udp\"\n\
         app = { kind = \"cbr\", rate = \"200 kbit/s\", packet = \"500 B\" }\nstop = \"4 s\"\n",
    );
    let sim = simulated(&s);
    let expected = sim.flows[0].datagrams.unwrap();
    assert!(expected.missing > 5, "{expected:?}");
    for (world, outcome) in worlds().iter().zip(run(&s, &worlds())) {
        let trusted = outcome.emulation.doubts().is_empty();
        same(&world.name(), trusted, &outcome.flows[0], &sim.flows[0]);
    }
}

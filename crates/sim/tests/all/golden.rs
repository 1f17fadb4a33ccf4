//! Golden runs: the hash of every event of a few scenarios, the same on every platform and in every year.
//!
//! A hash changes only with a commit that says why results change. The hashes are in `golden.txt`, and beside each a few
//! quantities, so that the difference of the file shows what moved. `SKYHAUL_BLESS=1 cargo test -p skyhaul-sim --test all golden`
//! writes it.

use crate::common;

use common::{bulk, direction, geo, s0, scenario};
use skyhaul_apps::pages::Config as Pages;
use skyhaul_base::Duration;
use skyhaul_path::Limit;
use skyhaul_path::delay::uniform::Uniform;
use skyhaul_path::error::gilbert;
use skyhaul_path::queue::pushout;
use skyhaul_scenario::resolved::{App, Resolved};
use skyhaul_sim::quantity::{FLOW, RUN};
use skyhaul_sim::{Agents, RunResult, Sim};
use skyhaul_tcp::Config;
use skyhaul_trace::Digest;

/// Name, scenario, seed, protocols of the flows.
type Golden = (&'static str, Resolved, u64, Agents);

/// Quantities of flows, of which the file has the sums.
const SUMS: [&str; 7] =
    ["bytes_acked", "segments_sent", "retransmissions", "timeouts", "probes_sent", "lost_error", "lost_full"];

fn golden() -> Vec<Golden> {
    let mut priority = s0(5, "peach", 5e-3, 60.0);
    priority.links[0].forward.queue.discipline = pushout::Strict::default().into();
    let mut pages = s0(3, "newreno", 1e-2, 60.0);
    pages.flows[0].app = App::Pages(Pages { segments: 50, count: None, idle: None });
    pages.flows[0].handshake = true;
    pages.flows[0].known_rtt = None;
    // Everything at once: two links, jitter, reordering, bursts of errors, a queue limit in bytes, timestamps, delayed
    // acknowledgements, a lossy return direction, a second group with a longer access that stops.
    let mut mixed = scenario(60.0, vec![geo(400.0, 0.2, 30, 0.0), geo(700.0, 0.1, 30, 1e-3)], vec![]);
    mixed.links[1].name = "second".into();
    mixed.links[0].forward.delay =
        Uniform { base: Duration::from_millis(100), jitter: Duration::from_millis(3) }.into();
    mixed.links[0].forward.allow_reorder = true;
    mixed.links[0].forward.queue.limit = Limit::Bytes(40_000);
    mixed.links[0].reverse = direction(1_000_000, 0.1, Some(20), 0.0);
    mixed.links[0].reverse.error = gilbert::Config { p_gb: 0.01, p_bg: 0.3, k_g: 0.0, k_b: 0.5 }.into();
    let mut modern = bulk("modern", 2, "prr", 64, 0.3);
    modern.endpoint = Config::modern();
    modern.path = vec![0, 1];
    let mut far = bulk("remote", 2, "sack", 64, 0.3);
    far.extra_delay = Duration::from_millis(130);
    far.stop = Some(Duration::from_secs(40));
    mixed.flows = vec![modern, far];
    vec![
        ("engine: 3 fixed windows of 20", s0(3, "sack", 1e-3, 60.0), 1, Agents::FixedWindow(20)),
        ("s0(5, sack, 1e-3, 60 s)", s0(5, "sack", 1e-3, 60.0), 1, Agents::Scenario),
        ("s0(20, reno, 0, 60 s)", s0(20, "reno", 0.0, 60.0), 2, Agents::Scenario),
        ("s0(5, peach, 5e-3, 60 s), strict push-out", priority, 3, Agents::Scenario),
        ("s0(3, newreno, 1e-2, 60 s), pages of 50, handshake", pages, 4, Agents::Scenario),
        ("mixed", mixed, 5, Agents::Scenario),
    ]
}

/// The lines about a run: its hash, and its quantities.
fn lines(name: &str, seed: u64, result: &RunResult) -> String {
    let digest = result.digest.expect("a digest");
    let sums = SUMS.iter().map(|name| {
        let quantity = FLOW.iter().find(|q| q.name == *name).expect("a quantity of flows");
        let values = result.flows.iter().map(|f| quantity.value(f, result.duration).real());
        format!("  {name} {}\n", values.sum::<f64>())
    });
    let events = RUN.iter().find(|q| q.name == "events").expect("a quantity of runs");
    let events = events.value(result, result.duration).real();
    format!("{name}, seed {seed}: {digest:#018x}\n{}  events {events}\n", sums.collect::<String>())
}

#[test]
fn hashes_have_not_changed() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/golden.txt");
    let now: Vec<String> = golden()
        .into_iter()
        .map(|(name, scenario, seed, agents)| {
            let sim = Sim::with_agents(&scenario, seed, Digest::default(), agents).expect("a world");
            lines(name, seed, &sim.finish())
        })
        .collect();
    if std::env::var_os("SKYHAUL_BLESS").is_some() {
        std::fs::write(path, now.concat()).expect("golden.txt can be written");
    }
    let recorded = std::fs::read_to_string(path).expect("golden.txt");
    let changed: String =
        now.iter().filter(|run| !recorded.contains(run.as_str())).map(String::as_str).collect();
    assert!(
        changed.is_empty(),
        "results changed; if they should: SKYHAUL_BLESS=1 cargo test -p skyhaul-sim --test all golden. Now:\n{changed}recorded:\n\
         {recorded}"
    );
}

//! Golden runs: the hash of every event of a few scenarios, the same on every platform and in every year.
//!
//! A hash changes only with a commit that says why results change. To see the new ones, run
//! `cargo test -p skyhaul-sim --test golden`: the message lists scenario, seed and hash.

use crate::common;

use common::{bulk, direction, geo, s0, scenario};
use skyhaul_apps::pages::Config as Pages;
use skyhaul_base::Duration;
use skyhaul_path::Limit;
use skyhaul_path::delay::uniform::Uniform;
use skyhaul_path::error::gilbert;
use skyhaul_path::queue::pushout;
use skyhaul_scenario::resolved::{App, Resolved};
use skyhaul_sim::{Agents, Sim};
use skyhaul_tcp::Config;
use skyhaul_trace::Digest;

/// Name, scenario, seed, who talks, hash.
type Golden = (&'static str, Resolved, u64, Agents, u64);

fn golden() -> Vec<Golden> {
    let mut priority = s0(5, "peach", 5e-3, 60.0);
    priority.links[0].forward.queue.discipline = pushout::Strict::default().into();
    let mut pages = s0(3, "newreno", 1e-2, 60.0);
    pages.flows[0].app = App::Pages(Pages { segments: 50, count: None, idle: None });
    pages.flows[0].handshake = true;
    pages.flows[0].known_rtt = None;
    // Everything at once: two links, jitter, reordering, bursts of errors, bytes as limit, timestamps, delayed
    // acknowledgements, lossy way back, a second group with a longer access that stops.
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
        (
            "engine: 3 fixed windows of 20",
            s0(3, "sack", 1e-3, 60.0),
            1,
            Agents::FixedWindow(20),
            0x77ee_3dcc_23e1_71e0,
        ),
        ("s0(5, sack, 1e-3, 60 s)", s0(5, "sack", 1e-3, 60.0), 1, Agents::Scenario, 0xed9f_6bc6_4608_fd25),
        ("s0(20, reno, 0, 60 s)", s0(20, "reno", 0.0, 60.0), 2, Agents::Scenario, 0x7ea4_0ad0_311b_aa17),
        ("s0(5, peach, 5e-3, 60 s), strict push-out", priority, 3, Agents::Scenario, 0xfb9c_6cf1_29fa_7f43),
        (
            "s0(3, newreno, 1e-2, 60 s), pages of 50, handshake",
            pages,
            4,
            Agents::Scenario,
            0x9236_335b_36bf_3b0c,
        ),
        ("mixed", mixed, 5, Agents::Scenario, 0xfc23_1632_1445_db4e),
    ]
}

#[test]
fn hashes_have_not_changed() {
    let mut wrong = Vec::new();
    for (name, scenario, seed, agents, expected) in golden() {
        let sim = Sim::with_agents(&scenario, seed, Digest::default(), agents).expect("a world");
        let digest = sim.finish().digest.expect("a digest");
        if digest != expected {
            wrong.push(format!("{name}, seed {seed}: {digest:#018x}, was {expected:#018x}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "results changed; to reproduce: cargo test -p skyhaul-sim --test golden\n{}",
        wrong.join("\n")
    );
}

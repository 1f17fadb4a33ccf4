//! What SCPS-TP does about losses that are corruption: nothing is slowed down, and what is missing is asked for at once;
//! and about outages that the link reports.

use crate::text::{self, bulk};
use skyhaul_sim::RunResult;

/// 4 Mbit/s of payload over a satellite with a round trip of 550 ms; only this rate limits the sender.
const PATH: &str = r#"
duration = "200 s"
[links.sat]
rate = "5 Mbit/s"
delay = "275 ms"
queue = { limit = "1000 packets" }
[flows.bulk]
path = ["sat"]
cc = { name = "scps-like", rate-mbps = 4.0, window = 4000.0 }
endpoint = { preset = "modern", loss-detection = "snack" }
rwnd = "16 MiB"
sndbuf = "16 MiB"
"#;

fn ran(sets: &[&str], events: &str, seed: u64) -> RunResult {
    text::ran(&format!("{PATH}{events}"), sets, seed)
}

#[test]
fn a_tenth_of_all_packets_lost_costs_a_tenth_of_the_rate() {
    // At most 0.9 of the rate is possible; at least 0.89 is promised (docs/splitting.md). In 300 s the standard deviation
    // of a run is about 0.001.
    let error = "links.sat.error={ kind = \"per\", p = 0.1 }";
    let shares: Vec<f64> =
        (1..=5).map(|seed| ran(&[error, "duration=300 s"], "", seed).goodput() / 4e6).collect();
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    let squares = shares.iter().map(|s| (s - mean).powi(2)).sum::<f64>();
    let spread = (squares / (shares.len() - 1) as f64).sqrt();
    assert!((0.89..0.9).contains(&mean), "{mean} of the rate, standard deviation {spread}: {shares:?}");
    assert!(spread < 0.004, "{spread}: {shares:?}");
}

#[test]
fn an_isolated_loss_leaves_the_window_where_it_would_be_without_it() {
    // A window that grows as Reno's does. Packet 300 of each direction is lost: a segment, and an acknowledgement.
    let cwnd = |response: &str, lost: bool| {
        let cc = format!("flows.bulk.cc={{ name = \"scps-like\", response = \"{response}\" }}");
        let error = if lost { "{ kind = \"list\", indices = [300] }" } else { "none" };
        let sets = [
            &cc,
            &format!("links.sat.error={error}"),
            "flows.bulk.endpoint.delayed-ack=off",
            "flows.bulk.endpoint.window-validation=false",
            "flows.bulk.endpoint.initial-ssthresh=20 segments",
            "flows.bulk.rwnd=1 MiB",
            "record={ sample = \"100 ms\", series = [\"cwnd\"] }",
            "duration=14 s",
        ];
        let result = ran(&sets, "", 1);
        assert_eq!(bulk(&result).retransmissions, u64::from(lost));
        result.series.flows.of(0, "cwnd").map(|(_, v)| v).collect::<Vec<f64>>()
    };
    let (with, without, halved) =
        (cwnd("corruption", true), cwnd("corruption", false), cwnd("congestion", true));
    for (i, (a, b)) in with.iter().zip(&without).enumerate() {
        // In segments. The acknowledgement that fills the hole adds what the one for the lost segment would have added.
        assert!((a - b).abs() < 0.2, "sample {i}: {a} against {b}");
    }
    let dips = |s: &[f64]| s.windows(2).filter(|w| w[1] < 0.6 * w[0]).count();
    assert_eq!((dips(&with), dips(&halved)), (0, 1));
    let i = halved.windows(2).position(|w| w[1] < 0.6 * w[0]).expect("a cut");
    assert!((halved[i + 1] / without[i + 1] - 0.5).abs() < 0.05, "{} of {}", halved[i + 1], without[i + 1]);
}

#[test]
fn an_outage_that_the_link_reports_costs_no_timeout() {
    let events = "[[event]]\nat = \"20 s\"\nset = { links.sat.up = false, links.sat.reverse.up = false }\n\
                  [[event]]\nat = \"32 s\"\nset = { links.sat.up = true, links.sat.reverse.up = true }\n";
    let run = |probe: &str| {
        let probe = format!("flows.bulk.endpoint.outage-probe={probe}");
        ran(&[&probe, "duration=60 s"], events, 1)
    };
    let (aware, unaware) = (run("5 s"), run("0 s"));
    let (aware, unaware) = (bulk(&aware), bulk(&unaware));
    assert_eq!(aware.timeouts, 0);
    assert!(unaware.timeouts > 2, "{}", unaware.timeouts);
    // Of 60 s the link is down for 12 s, and up to 5 s pass until the next probe. The remaining 5 % are for what was in
    // flight, which is sent again.
    let expected = 4e6 * (60.0 - 12.0 - 5.0) / 60.0;
    assert!(aware.goodput > 0.95 * expected, "{} of {expected}", aware.goodput);
    assert!(aware.goodput > unaware.goodput, "{} against {}", aware.goodput, unaware.goodput);
}

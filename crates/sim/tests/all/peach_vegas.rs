//! TCP-Peach with the congestion avoidance of TCP Vegas (R28 in docs/algorithms/peach.md): together its flows take what there is, and lose nothing.

use crate::common;

use common::{bulk, geo, scenario};
use skyhaul_cc::{Config as Cc, alg::peach};
use skyhaul_path::queue::pushout;
use skyhaul_sim::{RunResult, run};
use skyhaul_trace::Null;

const SECONDS: f64 = 275.0;

/// Flows over a GEO channel of 1300 packets per second with 50 packets of buffer that serves dummies last.
fn share(flows: u32, avoidance: peach::TcpVariant, seed: u64) -> RunResult {
    let mut link = geo(1300.0, 0.55, 50, 0.0);
    link.forward.queue.discipline = pushout::Strict::default().into();
    let mut group = bulk("bulk", flows, "sack", 64, 0.55);
    group.cc = Cc::Peach(peach::Config { avoidance, ..Default::default() });
    run(&scenario(SECONDS, vec![link], vec![group]), seed, Null).expect("a world")
}

fn least(r: &RunResult) -> f64 {
    r.flows.iter().map(|f| f.segments_acked / SECONDS).fold(f64::INFINITY, f64::min)
}

#[test]
fn flows_fill_the_channel_without_loss() {
    for flows in [10, 20] {
        // A window of 64 segments is the limit of a flow where the channel is not.
        let fair = (1300.0 / f64::from(flows)).min(64.0 / 0.55);
        for seed in 1..=3 {
            let vegas = share(flows, peach::TcpVariant::Vegas, seed);
            let reno = share(flows, peach::TcpVariant::Reno, seed);
            let mean = |r: &RunResult| r.segments_acked() / SECONDS / f64::from(flows);
            let cuts = |r: &RunResult| r.flows.iter().map(|f| f.cuts.total()).sum::<u64>();
            let say = format!(
                "{flows} flows, seed {seed}, of a fair {fair:.1}: mean {:.1}, least {:.1}, cuts {}; with Reno's {:.1}, {:.1}, {}",
                mean(&vegas),
                least(&vegas),
                cuts(&vegas),
                mean(&reno),
                least(&reno),
                cuts(&reno),
            );
            println!("{say}");
            assert!(mean(&vegas) >= 0.97 * fair && mean(&vegas) >= 0.99 * mean(&reno), "{say}");
            assert_eq!(cuts(&vegas), 0, "{say}");
            // What a flow alone would have is no one's to take. Where the channel limits, Vegas knows no fairness: windows stay
            // where the dummies opened them to.
            assert!(flows > 10 || least(&vegas) >= 0.97 * fair, "{say}");
        }
    }
}

//! After a timeout one acknowledgement may cover much: no control takes the time between two acknowledgements for an RTT of
//! the path.

use crate::common::{bulk, geo, scenario};
use skyhaul_base::Duration;
use skyhaul_cc::{Config as Cc, InitialWindow, NAMES, alg::peach};
use skyhaul_scenario::resolved::{Record, Series};
use skyhaul_sim::run;
use skyhaul_tcp::Config;
use skyhaul_trace::Null;
use std::collections::BTreeSet;

const RTT: f64 = 0.4;
/// Telemetry of RTTs that a control takes for that of the empty path, and its unit in seconds.
const BASES: [(&str, f64); 4] = [("base_rtt", 1.0), ("min_rtt", 1.0), ("rtt_min", 1.0), ("base-ms", 1e-3)];

#[test]
fn no_control_has_a_base_rtt_below_that_of_the_path() {
    let vegas_within = peach::Config { avoidance: peach::TcpVariant::Vegas, ..Default::default() };
    let controls: Vec<(&str, Cc)> = NAMES
        .iter()
        .map(|cc| (*cc, Cc::by_name(cc).expect("known")))
        .chain([("peach with Vegas' avoidance", Cc::Peach(vegas_within))])
        .collect();
    let (mut with_base, mut timeouts) = (BTreeSet::new(), 0);
    for mut endpoint in [Config::ns2_2004(), Config::modern()] {
        endpoint.receive_buffer = 48 * u64::from(endpoint.mss);
        endpoint.rules.initial_window = InitialWindow::Segments(1.0);
        for (cc, config) in &controls {
            let mut group = bulk("bulk", 8, "reno", 48, RTT);
            group.endpoint = endpoint;
            group.cc = config.clone();
            let mut s = scenario(300.0, vec![geo(700.0, RTT, 25, 1e-2)], vec![group]);
            s.record = Record {
                sample: Some(Duration::from_secs(1)),
                series: vec![Series::Telemetry],
                ..Record::default()
            };
            let r = run(&s, 5001, Null).expect("a world");
            timeouts += r.flows.iter().map(|f| f.timeouts).sum::<u64>();
            let t = &r.series.telemetry;
            for ((name, value), flow) in t.name.iter().zip(&t.value).zip(&t.flow) {
                let Some((name, unit)) = BASES.iter().find(|(base, _)| base == name) else { continue };
                if value.is_finite() {
                    let base = value * unit;
                    assert!(base >= RTT - 1e-9, "{cc}, flow {flow}: {name} is {base} s");
                    with_base.insert(*cc);
                }
            }
        }
    }
    // There were estimates to check, and timeouts.
    for cc in ["vegas", "westwood-plus", "bbr", "bbr3", "hark", "peach with Vegas' avoidance"] {
        assert!(with_base.contains(cc), "{with_base:?}");
    }
    assert!(timeouts > 1000, "{timeouts}");
}

//! What a run measures of its senders: bandwidth estimates, bursts, what was repaired how.

use crate::common;

use common::{bulk, geo, scenario};
use skyhaul_base::Duration;
use skyhaul_path::error::{Scope, list};
use skyhaul_scenario::resolved::{Record, Resolved, Series, Start};
use skyhaul_sim::{FlowResult, run};
use skyhaul_tcp::config::DelayedAck;
use skyhaul_trace::Null;

const RTT: f64 = 0.55;

/// One flow on a path of 1300 packets of 1000 bytes per second that fits `rwnd`, sampled each second.
fn one(cc: &str, rwnd: u64, lost: Vec<u64>, seconds: f64) -> Resolved {
    let mut link = geo(1300.0, RTT, 1000, 0.0);
    link.forward.error = list::Config { indices: lost, class: Scope::HighPriority }.into();
    let mut flow = bulk("bulk", 1, cc, rwnd, RTT);
    flow.start = Start::At(Duration::ZERO);
    let mut s = scenario(seconds, vec![link], vec![flow]);
    s.record = Record { sample: Some(Duration::from_secs(1)), series: vec![Series::Bwe] };
    s
}

fn flow(s: &Resolved) -> FlowResult {
    run(s, 1, Null).expect("a world").flows[0].clone()
}

#[test]
fn estimates_of_the_bandwidth_on_a_clean_path() {
    // The window is more than the link takes in one RTT.
    let truth = 1300.0 * 960.0 * 8.0;
    for cc in ["westwood", "westwood-plus", "westwood-abse", "tibet", "bbr", "bbr3", "tcp-real"] {
        let r = run(&one(cc, 800, vec![], 120.0), 1, Null).expect("a world");
        let settled: Vec<f64> =
            r.series.flows.of(0, "bwe").filter(|(t, _)| *t > 60.0).map(|(_, v)| v).collect();
        let mean = settled.iter().sum::<f64>() / settled.len() as f64;
        assert!((0.9..1.1).contains(&(mean / truth)), "{cc}: {mean} bit/s, truth {truth}");
        let spread = r.flows[0].bwe.expect("an estimate");
        assert!(spread.mean > 0.0 && spread.deviation >= 0.0, "{cc}: {spread:?}");
    }
    let without = run(&one("sack", 64, vec![], 20.0), 1, Null).expect("a world");
    assert_eq!(without.flows[0].bwe, None);
    assert!(without.series.flows.of(0, "bwe").all(|(_, v)| v.is_nan()));
}

#[test]
fn delayed_acknowledgements_make_bursts_larger() {
    let each = flow(&one("sack", 64, vec![], 60.0));
    // Slow start lets two go for each acknowledgement, a full window one.
    assert_eq!((each.bursts.largest(), each.bursts.quantile(0.5)), (2, Some(1)));
    let mut s = one("sack", 64, vec![], 60.0);
    s.flows[0].endpoint.delayed_ack = DelayedAck { every: 2, delay: Duration::from_millis(200) };
    let every_second = flow(&s);
    assert_eq!((every_second.bursts.largest(), every_second.bursts.quantile(0.5)), (3, Some(2)));
    assert!(every_second.bursts.mean() > each.bursts.mean());
    for f in [&each, &every_second] {
        let sum = f.bursts.mean().map(|m| m * f.bursts.count() as f64);
        assert_eq!(sum.map(f64::round), Some(f.segments_sent as f64), "each segment left in one burst");
    }
}

#[test]
fn a_thinned_way_back_makes_bursts_larger_still() {
    let mut s = one("sack", 64, vec![], 60.0);
    s.flows[0].endpoint.delayed_ack = DelayedAck { every: 8, delay: Duration::from_millis(500) };
    let f = flow(&s);
    assert!(f.bursts.largest() >= 8 && f.bursts.mean() > Some(6.0), "{:?}", f.bursts);
}

#[test]
fn what_a_timeout_repairs_is_told_from_what_acknowledgements_reveal() {
    let f = flow(&one("sack", 64, vec![1000], 60.0));
    assert_eq!((f.recoveries, f.timeouts, f.retransmissions, f.timeout_retransmissions), (1, 0, 1, 0));
    // A whole window and more is lost: nobody can tell but the timer.
    let f = flow(&one("sack", 64, (1000..1064).collect(), 60.0));
    assert_eq!((f.recoveries, f.timeouts), (0, 1));
    assert_eq!((f.retransmissions, f.timeout_retransmissions), (64, 64));
}

//! What a run measures of its senders: bandwidth estimates, bursts, what was repaired how.

use crate::common;

use common::{bulk, geo, scenario};
use skyhaul_base::Duration;
use skyhaul_path::error::{Scope, list};
use skyhaul_scenario::resolved::{Record, Resolved, Series, Start};
use skyhaul_scenario::{Document, no_files};
use skyhaul_sim::{FlowResult, run};
use skyhaul_tcp::config::DelayedAck;
use skyhaul_trace::Null;

const RTT: f64 = 0.55;

/// One flow on a path of 1300 packets of 1000 bytes per second with 1000 packets of buffer, sampled each second.
fn one(cc: &str, rwnd: u64, lost: Vec<u64>, seconds: f64) -> Resolved {
    let mut link = geo(1300.0, RTT, 1000, 0.0);
    link.forward.error = list::Config { indices: lost, class: Scope::HighPriority }.into();
    let mut flow = bulk("bulk", 1, cc, rwnd, RTT);
    flow.start = Start::At(Duration::ZERO);
    let mut s = scenario(seconds, vec![link], vec![flow]);
    s.record =
        Record { sample: Some(Duration::from_secs(1)), series: vec![Series::Bwe], ..Record::default() };
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
fn the_queueing_delay_of_a_window_is_what_the_path_does_not_hold() {
    const TRANSMISSION: f64 = 1.0 / 1300.0;
    let close = |measured: f64, exact: f64| (measured - exact).abs() <= (1e-3 * exact).max(1e-6);
    let mut s = one("sack", 800, vec![], 120.0);
    assert_eq!(flow(&s).packet_delays, None, "nobody has asked for it");
    s.record.packet_delay = true;
    let delays = flow(&s).packet_delays.expect("measured");
    // A window takes W/1300 s from segment to acknowledgement: the rest of it waits in the queue.
    let waits = 800.0 / 1300.0 - RTT - TRANSMISSION;
    assert!(close(delays.queueing.p50, waits), "{delays:?}, {waits}");
    assert!(close(delays.one_way.p50, RTT / 2.0 + TRANSMISSION + waits), "{delays:?}");
    // What the path holds does not wait.
    let mut s = one("sack", 64, vec![], 120.0);
    s.record.packet_delay = true;
    let delays = flow(&s).packet_delays.expect("measured");
    assert!(delays.queueing.p50 <= 1e-6 && close(delays.one_way.p50, RTT / 2.0 + TRANSMISSION), "{delays:?}");
}

#[test]
fn packet_delays_are_those_that_a_receiver_of_datagrams_measures() {
    let text = |flow: &str| {
        format!(
            "duration = \"20 s\"\n[links.sat]\nrate = \"1 Mbit/s\"\n\
             delay = {{ kind = \"uniform\", base = \"80 ms\", jitter = \"10 ms\" }}\n\
             [[event]]\nat = \"10 s\"\nset = {{ \"links.sat.delay\" = \"120 ms\" }}\n\
             [flows.a]\npath = [\"sat\"]\n{flow}\n[record]\npacket-delay = true\n"
        )
    };
    let first = |flow: &str| {
        let document = Document::parse("any.toml", &text(flow), &no_files).expect("a scenario");
        self::flow(&document.resolve().expect("a scenario"))
    };
    let udp = first("transport = \"udp\"\napp = { kind = \"cbr\", rate = \"200 kbit/s\" }");
    let (d, delays) = (udp.datagrams.expect("datagrams"), udp.packet_delays.expect("measured"));
    let receiver = [d.delay_p50, d.delay_p95, d.delay_p99].map(|d| d.expect("datagrams have arrived"));
    assert_eq!([delays.one_way.p50, delays.one_way.p95, delays.one_way.p99], receiver);
    // A change of the path is no queue, jitter is one.
    assert!((0.0..=0.0101).contains(&delays.queueing.p99), "{delays:?}");
    // Transfers that come and go, each over a connection of its own, belong to their flow.
    let transfers =
        first("cc = \"newreno\"\napp = { kind = \"arrivals\", rate = \"3 /s\", size = \"4 kB\" }");
    let delays = transfers.packet_delays.expect("measured");
    assert!(transfers.transfers > 40 && delays.one_way.p50 >= 0.08, "{} {delays:?}", transfers.transfers);
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
    // A whole window and more is lost: only the timer can reveal it.
    let f = flow(&one("sack", 64, (1000..1064).collect(), 60.0));
    assert_eq!((f.recoveries, f.timeouts), (0, 1));
    assert_eq!((f.retransmissions, f.timeout_retransmissions), (64, 64));
}

//! Losses that a sender takes for errors of the channel: what the congestion control does not hear, and who is right.

use crate::common;

use common::{bulk, geo, scenario};
use skyhaul_cc::NAMES;
use skyhaul_scenario::resolved::Resolved;
use skyhaul_sim::{FlowResult, Verdicts, run};
use skyhaul_tcp::config::{LossClassifier, LossDetection};
use skyhaul_trace::Null;

const RTT: f64 = 0.55;
const SECONDS: f64 = 275.0;
const RIGHT: LossClassifier = LossClassifier::Oracle { false_congestion: 0.0, false_error: 0.0 };

/// Flows with windows of 64 segments over 1300 packets per second.
fn flows(n: u32, cc: &str, classifier: LossClassifier, buffer: u32, loss: f64) -> Resolved {
    let mut group = bulk("bulk", n, cc, 64, RTT);
    group.endpoint.loss_classifier = classifier;
    scenario(SECONDS, vec![geo(1300.0, RTT, buffer, loss)], vec![group])
}

fn all(s: &Resolved, seed: u64) -> FlowResult {
    let r = run(s, seed, Null).expect("a world");
    let mut sum = r.flows[0].clone();
    for f in &r.flows[1..] {
        sum.verdicts.add(&f.verdicts);
        sum.cuts.add(&f.cuts);
        sum.timeout_cuts.add(&f.timeout_cuts);
        sum.segments_acked += f.segments_acked;
        sum.recoveries += f.recoveries;
        sum.retransmissions += f.retransmissions;
    }
    sum
}

#[test]
fn with_an_oracle_errors_cost_no_control_of_the_classic_family_a_cut() {
    for cc in ["reno", "newreno", "sack", "prr", "tahoe", "cubic", "hybla", "gaimd", "westwood-plus", "peach"]
    {
        let plain = all(&flows(1, cc, LossClassifier::None, 200, 1e-3), 1);
        let spared = all(&flows(1, cc, RIGHT, 200, 1e-3), 1);
        assert_eq!(plain.verdicts, Verdicts::default());
        let v = spared.verdicts;
        assert!(v.error_right >= 10 && v.error_right + v.spurious == v.total(), "{cc}: {v:?}");
        assert_eq!(spared.cuts.error, spared.timeout_cuts.error, "{cc}: only timeouts cut for errors");
        // A window of 64 segments in each RTT, less what repairs take.
        let full = 64.0 / RTT * SECONDS;
        let (spared, plain) = (spared.segments_acked / full, plain.segments_acked / full);
        assert!(spared > 0.8 && spared > 0.95 * plain, "{cc}: {spared} of the window, {plain} without");
    }
}

#[test]
fn every_control_repairs_quietly() {
    for cc in NAMES {
        for detection in [LossDetection::DupAcks, LossDetection::Rack] {
            let mut s = flows(1, cc, RIGHT, 50, 5e-3);
            s.flows[0].endpoint.loss_detection = detection;
            let f = all(&s, 1);
            assert!(f.verdicts.error_right > 10, "{cc} {detection:?}: {:?}", f.verdicts);
            assert_eq!(f.verdicts.error_wrong + f.verdicts.congestion_wrong, 0, "{cc} {detection:?}");
            assert!(
                f.segments_acked > 0.15 * 64.0 / RTT * SECONDS,
                "{cc} {detection:?}: {}",
                f.segments_acked
            );
        }
    }
}

#[test]
fn an_oracle_that_calls_everything_congestion_changes_nothing() {
    let errs = LossClassifier::Oracle { false_congestion: 1.0, false_error: 0.0 };
    for cc in ["newreno", "sack", "prr", "cubic", "peach", "bbr"] {
        let plain = run(&flows(5, cc, LossClassifier::None, 20, 2e-3), 7, Null).expect("a world");
        let judged = run(&flows(5, cc, errs, 20, 2e-3), 7, Null).expect("a world");
        let wrong = judged.flows.iter().map(|f| f.verdicts.error_wrong).sum::<u64>();
        let same = |f: &FlowResult| FlowResult { verdicts: Verdicts::default(), ..f.clone() };
        assert_eq!(judged.flows.iter().map(same).collect::<Vec<_>>(), plain.flows, "{cc}");
        assert!(wrong > 10 && judged.events == plain.events, "{cc}: {wrong}");
    }
}

#[test]
fn congestion_is_heard_unless_the_oracle_errs() {
    let heard = all(&flows(20, "sack", RIGHT, 20, 0.0), 1);
    assert!(heard.verdicts.congestion_right > 50, "{:?}", heard.verdicts);
    assert_eq!(heard.verdicts.congestion_right + heard.verdicts.spurious, heard.verdicts.total());
    let deaf = LossClassifier::Oracle { false_congestion: 0.0, false_error: 1.0 };
    let unheard = all(&flows(20, "sack", deaf, 20, 0.0), 1);
    assert_eq!(unheard.verdicts.congestion_right, 0);
    assert!(unheard.verdicts.congestion_wrong > 50, "{:?}", unheard.verdicts);
    // Nobody slows down, and much is sent in vain.
    assert!(unheard.retransmissions > 2 * heard.retransmissions, "{unheard:?}\n{heard:?}");
}

#[test]
fn further_losses_of_a_quiet_recovery_are_asked_about() {
    // Both kinds of losses within windows: errors do not hide congestion.
    let f = all(&flows(20, "sack", RIGHT, 20, 2e-2), 1);
    let v = f.verdicts;
    assert!(v.error_right > 200 && v.congestion_right > 5, "{v:?}");
    assert_eq!(v.error_wrong + v.congestion_wrong, 0, "{v:?}");
    assert!(v.total() > f.recoveries, "{v:?}, {} recoveries", f.recoveries);
}

#[test]
fn arrivals_on_time_tell_errors_where_the_lossy_link_is_the_slow_one() {
    let classifier = LossClassifier::InterArrival { low: 1.0, high: 1.25 };
    // A window that keeps the link busy: 740 segments over 715 in flight.
    let mut s = flows(1, "sack", classifier, 200, 1e-3);
    s.flows[0].endpoint.receive_buffer = 740 * u64::from(s.flows[0].endpoint.mss);
    let v = all(&s, 1).verdicts;
    assert!(v.error_right > 50 && v.error_right > 3 * v.error_wrong, "{v:?}");
    // What a full queue drops is followed by what stands behind it: too early.
    let mut s = flows(1, "sack", classifier, 20, 0.0);
    s.flows[0].endpoint.receive_buffer = 800 * u64::from(s.flows[0].endpoint.mss);
    let v = all(&s, 1).verdicts;
    assert!(v.congestion_right > 0 && v.congestion_right > v.congestion_wrong, "{v:?}");
}

#[test]
fn long_round_trips_tell_congestion() {
    let classifier = LossClassifier::Spike { start: 0.5, end: 1.0 / 3.0 };
    // The queue of one flow alone: it is full when it drops.
    let mut s = flows(1, "sack", classifier, 200, 0.0);
    s.flows[0].endpoint.receive_buffer = 2000 * u64::from(s.flows[0].endpoint.mss);
    let v = all(&s, 1).verdicts;
    assert!(v.congestion_right > 0, "{v:?}");
    assert_eq!(v.congestion_wrong, 0, "{v:?}");
    // Flows that never fill the link lose by errors alone, at round trips of which none is long.
    let v = all(&flows(5, "sack", classifier, 200, 5e-3), 1).verdicts;
    assert!(v.error_right > 100 && v.error_right > v.error_wrong, "{v:?}");
}

#[test]
fn the_same_over_connections_with_a_handshake() {
    let mut s = flows(3, "cubic", RIGHT, 50, 1e-3);
    (s.flows[0].handshake, s.flows[0].known_rtt) = (true, None);
    let v = all(&s, 1).verdicts;
    assert!(v.error_right > 20, "{v:?}");
    assert_eq!((v.error_wrong, v.congestion_wrong), (0, 0));
}

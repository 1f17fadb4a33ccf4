//! Window cuts are attributed to the true fate of the segment.

use crate::common;

use common::{bulk, geo, s0, scenario};
use skyhaul_apps::pages::Config as Pages;
use skyhaul_base::Duration;
use skyhaul_path::delay::uniform::Uniform;
use skyhaul_path::error::{Scope, list};
use skyhaul_scenario::Document;
use skyhaul_scenario::resolved::{App, Link, Resolved, Start};
use skyhaul_sim::{FlowResult, ReductionCounts, run};
use skyhaul_tcp::config::LossDetection;
use skyhaul_trace::{LossCause, Null};

const RTT: f64 = 0.55;
const NO_CUTS: ReductionCounts =
    ReductionCounts { error: 0, congestion: 0, marked: 0, outage: 0, spurious: 0 };

/// One flow that starts at once, on a path whose channel loses just the data packets with these numbers.
fn one(cc: &str, lost: &[u64], seconds: f64) -> Resolved {
    let mut link = geo(1300.0, RTT, 1000, 0.0);
    link.forward.error = list::Config { indices: lost.to_vec(), class: Scope::HighPriority }.into();
    with(link, cc, seconds)
}

fn with(link: Link, cc: &str, seconds: f64) -> Resolved {
    let mut flow = bulk("bulk", 1, cc, 64, RTT);
    flow.start = Start::At(Duration::ZERO);
    scenario(seconds, vec![link], vec![flow])
}

fn flow(s: &Resolved) -> FlowResult {
    run(s, 1, Null).expect("a world").flows[0].clone()
}

#[test]
fn no_loss_no_cut() {
    let f = flow(&one("sack", &[], 60.0));
    assert_eq!((f.cuts, f.timeout_cuts), (NO_CUTS, NO_CUTS));
}

#[test]
fn a_corrupted_packet_costs_every_algorithm_of_the_reno_family_one_cut() {
    for cc in ["tahoe", "reno", "newreno", "sack", "prr", "peach", "cubic", "hybla", "gaimd"] {
        let f = flow(&one(cc, &[200], 60.0));
        assert_eq!(f.cuts, ReductionCounts { error: 1, ..NO_CUTS }, "{cc}");
        assert_eq!(f.timeout_cuts, NO_CUTS, "{cc}");
    }
}

#[test]
fn a_recovery_that_leaves_the_window_as_it_was_is_no_cut() {
    // Acknowledgements arrive at the rate of the window: what Westwood estimates is what it has.
    let f = flow(&one("westwood", &[200], 60.0));
    assert_eq!((f.recoveries, f.cuts), (1, NO_CUTS));
}

#[test]
fn a_lost_retransmission_costs_a_second_cut_by_timeout() {
    let clean = flow(&one("sack", &[1000], 60.0));
    assert_eq!(clean.retransmissions, 1);
    // The retransmission is the one packet within a window of the loss whose own loss takes the timer to repair.
    let second = (1003..1100)
        .find(|&n| flow(&one("sack", &[1000, n], 60.0)).timeouts == 1)
        .expect("one of them is the retransmission");
    let f = flow(&one("sack", &[1000, second], 60.0));
    assert_eq!(f.cuts, ReductionCounts { error: 2, ..NO_CUTS });
    assert_eq!(f.timeout_cuts, ReductionCounts { error: 1, ..NO_CUTS });
}

#[test]
fn an_overflowing_queue_is_congestion_and_nothing_else() {
    let mut s = s0(20, "sack", 0.0, 100.0);
    s.links[0].forward.queue.limit = skyhaul_path::Limit::Packets(10);
    let r = run(&s, 1, Null).expect("a world");
    let mut all = ReductionCounts::default();
    r.flows.iter().for_each(|f| all.add(&f.cuts));
    assert!(all.congestion > 20, "{all:?}");
    assert_eq!(all.error + all.outage, 0);
    assert_eq!(r.links[0].dropped(LossCause::Error), 0);
    // No more cuts than losses, and a loss that a cut answers is one of those that the link counted.
    assert!(all.congestion <= r.links[0].dropped(LossCause::Full), "{all:?}");
    // Timeouts while the retransmission waits in the queue are possible, but rare.
    assert!(all.spurious * 10 <= all.congestion, "{all:?}");
}

#[test]
fn errors_and_congestion_on_one_link_are_told_apart() {
    let r = run(&s0(20, "sack", 1e-3, 200.0), 3, Null).expect("a world");
    let mut all = ReductionCounts::default();
    let mut timeouts = ReductionCounts::default();
    for f in &r.flows {
        all.add(&f.cuts);
        timeouts.add(&f.timeout_cuts);
        assert!(f.cuts.total() <= f.recoveries + f.timeouts, "{f:?}");
    }
    let (error, full) = (r.links[0].dropped(LossCause::Error), r.links[0].dropped(LossCause::Full));
    assert!(error > 100 && full > 100, "{error} {full}");
    assert!(all.error > 0 && all.congestion > 0, "{all:?}");
    assert!(all.error <= error && all.congestion <= full, "{all:?}");
    assert!(timeouts.error <= all.error && timeouts.congestion <= all.congestion);
}

#[test]
fn reordering_makes_cuts_that_answer_no_loss() {
    let mut link = geo(1300.0, RTT, 1000, 0.0);
    link.forward.delay =
        Uniform { base: Duration::from_millis(275), jitter: Duration::from_millis(40) }.into();
    link.forward.allow_reorder = true;
    let f = flow(&with(link, "sack", 60.0));
    assert!(f.cuts.spurious > 3, "{f:?}");
    assert_eq!(f.cuts, ReductionCounts { spurious: f.cuts.spurious, ..NO_CUTS });
}

#[test]
fn what_the_sender_undoes_stays_a_cut_and_is_counted_besides() {
    let mut link = geo(1300.0, RTT, 1000, 0.0);
    link.forward.delay =
        Uniform { base: Duration::from_millis(275), jitter: Duration::from_millis(40) }.into();
    link.forward.allow_reorder = true;
    let mut s = with(link, "sack", 60.0);
    let plain = flow(&s);
    assert_eq!(plain.cuts_undone, 0);
    let e = &mut s.flows[0].endpoint;
    (e.dsack, e.dsack_undo) = (true, true);
    let f = flow(&s);
    assert!(f.cuts.spurious > 3 && f.cuts_undone > 3 && f.cuts_undone <= f.cuts.total(), "{f:?}");
    assert_eq!(f.cuts, ReductionCounts { spurious: f.cuts.spurious, ..NO_CUTS });
    assert!(f.goodput > plain.goodput, "{} {}", f.goodput, plain.goodput);
}

#[test]
fn lost_acknowledgements_make_a_timeout_that_answers_no_loss() {
    // Acknowledgements 500 to 700, counted from 0, are lost: more than a window, so that the timer expires although every
    // segment has arrived.
    let mut link = geo(1300.0, RTT, 1000, 0.0);
    link.reverse.error = list::Config::all(500..=700).into();
    let f = flow(&with(link, "sack", 60.0));
    assert!(f.timeouts >= 1);
    assert_eq!(f.cuts.spurious, f.timeout_cuts.spurious);
    assert_eq!(f.cuts, ReductionCounts { spurious: f.cuts.spurious, ..NO_CUTS });
    assert!(f.cuts.spurious >= 1);
}

#[test]
fn the_next_connection_is_not_blamed_for_the_losses_of_the_last() {
    // Pages of 100 segments, one after the other; the channel corrupts one packet of each of the first three.
    let mut s = one("sack", &[90, 190, 290], 60.0);
    s.flows[0].app = App::Pages(Pages { segments: 100, count: Some(5), idle: None });
    let f = flow(&s);
    assert_eq!(f.pages.len(), 5);
    assert_eq!(f.cuts.spurious + f.cuts.congestion + f.cuts.outage, 0, "{f:?}");
    assert!((1..=3).contains(&f.cuts.error), "{f:?}");
}

#[test]
fn losses_are_forgotten_when_they_are_judged() {
    // A long run at high loss: what is kept does not grow with it, and every cut finds its cause.
    let f = flow(&with(geo(1300.0, RTT, 1000, 0.05), "sack", 2000.0));
    assert!(f.cuts.error > 200, "{f:?}");
    assert_eq!(f.cuts.congestion + f.cuts.outage, 0);
    assert!(f.cuts.spurious * 20 < f.cuts.error, "{f:?}");
}

#[test]
fn causes_are_told_apart_with_detection_by_time_too() {
    let mut s = with(geo(1300.0, RTT, 30, 1e-3), "sack", 300.0);
    s.flows[0].endpoint.receive_buffer = 2000 * 960;
    s.flows[0].endpoint.loss_detection = LossDetection::Rack;
    s.flows[0].endpoint.tail_loss_probe = true;
    let r = run(&s, 1, Null).expect("a world");
    let f = &r.flows[0];
    assert!(f.cuts.error > 10 && f.cuts.congestion > 0, "{f:?}");
    assert!(f.cuts.spurious * 10 <= f.cuts.total(), "{f:?}");
    // One segment at a time: the probe repairs the loss, and the next acknowledgement proves it (RFC 8985 §7.4.2).
    let mut s = one("sack", &[19], 30.0);
    s.flows[0].endpoint.receive_buffer = 960;
    s.flows[0].endpoint.loss_detection = LossDetection::Rack;
    s.flows[0].endpoint.tail_loss_probe = true;
    s.flows[0].endpoint.rto.min = Duration::from_secs(10);
    let f = flow(&s);
    assert_eq!((f.timeouts, f.recoveries), (0, 1), "{f:?}");
    assert_eq!(f.cuts, ReductionCounts { error: 1, ..NO_CUTS });
}

#[test]
fn what_is_sent_again_makes_no_further_cuts() {
    // Without SACK, whatever goes back to the oldest segment sends again what has arrived, and gets duplicates for it.
    for cc in ["tahoe", "reno", "newreno"] {
        let f = flow(&with(geo(1300.0, RTT, 1000, 1e-3), cc, 1000.0));
        let by_duplicates = f.cuts.spurious - f.timeout_cuts.spurious;
        assert!(f.cuts.error > 50 && by_duplicates == 0, "{cc}: {f:?}");
    }
}

#[test]
fn a_large_overshoot_is_repaired_once() {
    // Slow start finds the queue of one BDP full with two of them in flight: thousands of segments are lost, many of their
    // repairs too, and recoveries follow each other at once. What is sent again was lost, and no cut is taken back for the
    // echo of a repair that an earlier recovery sent.
    let mut s = Document::preset("satcom-medium").and_then(|d| d.resolve()).expect("a preset");
    s.duration = Duration::from_secs(60);
    let r = run(&s, 1, Null).expect("a world");
    let (f, dropped) = (&r.flows[0], r.links[0].classes.iter().map(|c| c.lost()).sum::<u64>());
    assert!(f.recoveries > 2, "{f:?}");
    assert!(
        dropped > 2000 && f.retransmissions < dropped + dropped / 10,
        "{} of {dropped}",
        f.retransmissions
    );
    assert_eq!(f.cuts_undone, 0);
}

//! SNACK, by which the receiver names a hole (SCPS-TP), and outages that the driver reports.

use crate::common;

use common::secs;
use skyhaul_base::{Duration, Instant};
use skyhaul_cc::{Config as Control, alg};
use skyhaul_tcp::config::{LossDetection, RttSource};
use skyhaul_tcp::{Config, Counted};
use skyhaul_testkit::{Pair, Setup, Side, Verdict};

const C: Side = Side::Client;
const ONE_WAY: Duration = Duration::from_millis(275);
const MSS: u64 = 1448;
const SEGMENTS: u64 = 40;

fn setup() -> Setup {
    let config = Config { loss_detection: LossDetection::Snack, ..Config::modern() };
    let cc = alg::scps_like::Config { window: Some(100.0), ..Default::default() };
    Setup::new(config, &Control::ScpsLike(cc), ONE_WAY)
}

/// Sends 40 segments in one window; `lost(n, copies)` says whether a transmission of segment `n` is lost after `copies` earlier
/// ones. Returns the pair at the end, and the time at which the server had everything.
fn losing(setup: &Setup, lost: impl Fn(u64, u64) -> bool + 'static) -> (Pair<Counted>, Instant) {
    let mut p: Pair<Counted> = setup.build();
    p.send(C, SEGMENTS * MSS, false);
    let first = common::iss(C).wrapping_add(1);
    let mut copies = vec![0; SEGMENTS as usize];
    p.faults(C, move |d| {
        if !d.is_data() {
            return Verdict::Deliver;
        }
        let n = u64::from(d.segment.seq.0.wrapping_sub(first)) / MSS;
        let before = copies[n as usize];
        copies[n as usize] += 1;
        if lost(n, before) { Verdict::Lose } else { Verdict::Deliver }
    });
    let mut done = Instant::MAX;
    p.run_with(secs(100.0), |p| {
        if p.end(Side::Server).received == SEGMENTS * MSS {
            done = done.min(p.now());
        }
    });
    (p, done)
}

/// Whether segment `n` is one of `k` segments spread over the window, without its last.
fn one_of(k: u64, n: u64) -> bool {
    n % (SEGMENTS / k) == 2
}

#[test]
fn holes_are_filled_in_parallel_one_round_trip_after_they_opened() {
    let (_, whole) = losing(&setup(), |_, _| false);
    for k in [1, 2, 5, 10] {
        let (p, done) = losing(&setup(), move |n, copies| copies == 0 && one_of(k, n));
        assert_eq!(done, whole + ONE_WAY * 2, "{k} holes take as long as one");
        let c = p.conn(C).counters();
        assert_eq!(
            (c.retransmissions, c.timeouts),
            (k, 0),
            "each hole is repaired once, although it is named again"
        );
    }
}

#[test]
fn copies_that_are_lost_are_asked_for_in_the_next_round() {
    // A segment leaves every 8 ms. Ten segments are lost, and so is the first retransmission of each.
    let mut s = setup();
    let cc = alg::scps_like::Config { window: Some(400.0), rate_mbps: Some(1.448), ..Default::default() };
    s.cc = [Control::ScpsLike(cc.clone()), Control::ScpsLike(cc)];
    let mut p: Pair<Counted> = s.build();
    p.send(C, 400 * MSS, false);
    let first = common::iss(C).wrapping_add(1);
    let mut copies = [0; 400];
    p.faults(C, move |d| {
        let n = (u64::from(d.segment.seq.0.wrapping_sub(first)) / MSS) as usize;
        if !d.is_data() || n % 4 != 2 || n >= SEGMENTS as usize {
            return Verdict::Deliver;
        }
        copies[n] += 1;
        if copies[n] < 3 { Verdict::Lose } else { Verdict::Deliver }
    });
    p.run_to_end(secs(100.0));
    assert_eq!(p.end(Side::Server).received, 400 * MSS);
    let c = p.conn(C).counters();
    assert_eq!(
        (c.retransmissions, c.timeouts),
        (20, 0),
        "two retransmissions for each hole, none of them needless"
    );
    // The receiver names the ten holes in turn, one with each acknowledgement: a hole is named again after ten at most, and
    // its retransmission waits for at most those of the other holes.
    let most = ONE_WAY * 2 + Duration::from_millis(8 * 21);
    for n in (2..SEGMENTS).step_by(4) {
        let seq = skyhaul_tcp::Seq(first.wrapping_add((n * MSS) as u32));
        let left: Vec<_> = p.data_sent(C).filter(|e| e.segment.seq == seq).map(|e| e.at).collect();
        assert!(left.len() == 3 && left.windows(2).all(|w| w[1] - w[0] <= most), "{n}: {left:?}");
    }
}

#[test]
fn without_snack_of_the_peer_duplicate_acks_show_losses() {
    let mut s = setup();
    s.config[1].loss_detection = LossDetection::DupAcks;
    let (p, done) = losing(&s, |n, copies| n == 5 && copies == 0);
    let (_, whole) = losing(&s, |_, _| false);
    assert_eq!(done, whole + ONE_WAY * 2);
    assert!(p.conn(C).sender().rack().is_none());
}

#[test]
fn a_hole_is_named_with_every_acknowledgement_beyond_it_and_never_without() {
    let (p, _) = losing(&setup(), |n, copies| n == 5 && copies == 0);
    let named: Vec<_> = p.arrived(C).filter_map(|e| e.segment.snack).collect();
    let (from, to) = named[0];
    assert_eq!(to.diff(from), MSS as i32);
    assert!(named.iter().all(|h| *h == named[0]) && named.len() as u64 == SEGMENTS - 6);
    let (p, _) = losing(&setup(), |_, _| false);
    assert!(p.arrived(C).all(|e| e.segment.snack.is_none()));
}

#[test]
fn a_loss_by_corruption_does_not_put_off_the_next_timeout() {
    // The last segment is lost twice: only the timer can detect it.
    let last = skyhaul_tcp::Seq(common::iss(C).wrapping_add(1 + ((SEGMENTS - 1) * MSS) as u32));
    let run = |response| {
        let mut s = setup();
        let cc = alg::scps_like::Config { response, window: Some(100.0), ..Default::default() };
        s.cc = [Control::ScpsLike(cc.clone()), Control::ScpsLike(cc)];
        let (p, _) = losing(&s, |n, copies| n == SEGMENTS - 1 && copies < 2);
        let left: Vec<_> = p.data_sent(C).filter(|e| e.segment.seq == last).map(|e| e.at).collect();
        (left[1] - left[0], left[2] - left[1])
    };
    let (corruption, congestion) =
        (run(alg::scps_like::Response::Corruption), run(alg::scps_like::Response::Congestion));
    assert_eq!(congestion.0, corruption.0);
    assert_eq!(congestion.1, corruption.1 * 2, "RFC 6298 §5.5");
}

#[test]
fn a_hole_that_is_filled_late_is_no_sample() {
    let estimate = |response, source| {
        let mut s = setup().both(|c| c.rtt_source = source);
        let cc = alg::scps_like::Config { response, window: Some(100.0), ..Default::default() };
        s.cc = [Control::ScpsLike(cc.clone()), Control::ScpsLike(cc)];
        let (p, _) = losing(&s, |n, copies| n == 5 && copies == 0);
        p.conn(C).sender().snapshot().srtt.expect("measured")
    };
    use alg::scps_like::Response::{Congestion, Corruption};
    // The segments beyond the hole are acknowledged when it is filled, a round trip late.
    for response in [Corruption, Congestion] {
        for source in [RttSource::EveryAck, RttSource::Timestamps] {
            let srtt = estimate(response, source);
            assert!(srtt < ONE_WAY * 2 + Duration::from_millis(45), "{response:?} {source:?}: {srtt:?}");
        }
    }
}

#[test]
fn a_reported_outage_freezes_the_sender_until_the_peer_answers() {
    let probe = Duration::from_secs(5);
    let run = |reported: bool| {
        let mut p: Pair<Counted> = setup().both(|c| c.outage_probe = reported.then_some(probe)).build();
        p.send(C, 400 * MSS, false);
        let at = secs(2.0);
        // Down for 20 seconds.
        p.faults(
            C,
            move |d| if (at..at + probe * 4).contains(&d.now) { Verdict::Lose } else { Verdict::Deliver },
        );
        p.run_until(at);
        p.end_mut(C).conn.outage(at);
        let mut done = Instant::MAX;
        p.run_with(secs(100.0), |p| {
            if p.end(Side::Server).received == 400 * MSS {
                done = done.min(p.now());
            }
        });
        let c = p.conn(C).counters();
        (done - at, c.timeouts, c.window_probes, p.conn(C).sender().snapshot().cwnd)
    };
    let (took, timeouts, probes, cwnd) = run(true);
    // Probes leave 5, 10, 15 and 20 s after the start of the outage. The last is answered, and the remaining data takes a
    // few round trips.
    assert_eq!((timeouts, probes, cwnd), (0, 4, 100.0));
    assert!((probe * 4 + ONE_WAY * 4..probe * 4 + ONE_WAY * 10).contains(&took), "{took:?}");
    let (unaware, timeouts, ..) = run(false);
    assert!(timeouts > 2 && unaware > took, "{timeouts} timeouts, {unaware:?}");
}

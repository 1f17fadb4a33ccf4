//! Growth of the window by acknowledgements and by bytes (RFC 3465), against closed forms.

use skyhaul_base::{Duration, Instant};
use skyhaul_cc::{CaGrowth, Config as Control, InitialSsthresh, InitialWindow, Rules};
use skyhaul_tcp::config::DelayedAck;
use skyhaul_tcp::{Config, Counted};
use skyhaul_testkit::pair::Handshake;
use skyhaul_testkit::{Pair, Setup, Side, Verdict};

const C: Side = Side::Client;
const RTT: Duration = Duration::from_millis(500);
const PER_ACK: (CaGrowth, f64) = (CaGrowth::PerAck, 2.0);
const ABC1: (CaGrowth, f64) = (CaGrowth::Abc, 1.0);
const ABC2: (CaGrowth, f64) = (CaGrowth::Abc, 2.0);

/// A path without a rate; every `every`-th segment is acknowledged, the rest after 0.2 s.
fn pair((growth, abc_limit): (CaGrowth, f64), every: u32, iw: f64, ssthresh: f64) -> Pair<Counted> {
    let delay = Duration::from_millis(200);
    let config = Config {
        mss: 1000,
        receive_buffer: 60_000_000,
        delayed_ack: if every > 1 { DelayedAck { every, delay } } else { DelayedAck::OFF },
        rules: Rules {
            growth,
            abc_limit,
            initial_window: InitialWindow::Segments(iw),
            initial_ssthresh: InitialSsthresh::Segments(ssthresh),
            ..Rules::RFC
        },
        ..Config::rfc()
    };
    let mut setup = Setup::new(config, &Control::by_name("sack").expect("known"), RTT / 2);
    setup.handshake = Handshake::Skipped(Some(RTT));
    let mut p = setup.build();
    p.logging = false;
    p.send(C, 60_000_000, false);
    p
}
/// The window just before each of the first `n` round trips is over.
fn windows(p: &mut Pair<Counted>, n: u64) -> Vec<f64> {
    (1..=n)
        .map(|k| {
            p.run_until(Instant::ZERO + RTT * k - Duration::from_millis(1));
            p.conn(C).snapshot().cwnd
        })
        .collect()
}

#[test]
fn slow_start_with_delayed_acknowledgements() {
    // Half as many acknowledgements as segments: L = 2 doubles as without the delay; counting acknowledgements, and
    // L = 1, which counts no more than one segment of each, make it 1.5 (RFC 3465 §2.3, §3.2).
    for (rule, expected) in [
        (PER_ACK, [16.0, 24.0, 36.0, 54.0]),
        (ABC1, [16.0, 24.0, 36.0, 54.0]),
        (ABC2, [16.0, 32.0, 64.0, 128.0]),
        ((CaGrowth::Abc, 1.5), [16.0, 28.0, 49.0, 0.0]),
    ] {
        let w = windows(&mut pair(rule, 2, 16.0, 1e9), 4);
        let n = if expected[3] > 0.0 { 4 } else { 3 };
        assert_eq!(w[..n], expected[..n], "{rule:?}");
    }
}

#[test]
fn slow_start_with_every_segment_acknowledged() {
    for rule in [PER_ACK, ABC1, ABC2] {
        assert_eq!(windows(&mut pair(rule, 1, 2.0, 1e9), 6), [2.0, 4.0, 8.0, 16.0, 32.0, 64.0], "{rule:?}");
    }
}

#[test]
fn stretched_acknowledgements_add_no_more_than_l() {
    // Of acknowledgements for two segments each the way back loses three in four.
    for (rule, factor) in [(PER_ACK, 1.0), (ABC1, 1.0), (ABC2, 2.0)] {
        let mut p = pair(rule, 2, 64.0, 1e9);
        p.faults(Side::Server, |d| if d.index % 4 == 3 { Verdict::Deliver } else { Verdict::Lose });
        let w = windows(&mut p, 2);
        assert_eq!(w, [64.0, 64.0 + factor * 64.0 / 8.0], "{rule:?}");
    }
}

#[test]
fn congestion_avoidance_adds_a_segment_per_round_trip() {
    for every in [1, 2] {
        for rule in [ABC1, ABC2] {
            let w = windows(&mut pair(rule, every, 32.0, 32.0), 20);
            // A round trip acknowledges the whole segments of the window in pairs, and each pair adds its share of a
            // segment while the window grows: less by at most 1/cwnd for each of the three.
            for pair in w.windows(2) {
                let step = pair[1] - pair[0];
                assert!(step <= 1.0 && step >= 1.0 - 3.0 / pair[0], "{rule:?}, b = {every}: {w:?}");
            }
            assert!(w[19] > 50.0, "{w:?}");
        }
    }
    // Counting acknowledgements it is one per b round trips.
    let w = windows(&mut pair(PER_ACK, 2, 32.0, 32.0), 20);
    assert!((w[19] - w[0] - 19.0 / 2.0).abs() < 0.3, "{w:?}");
}

#[test]
fn after_a_timeout_l_is_one_up_to_the_threshold() {
    // Of 64 segments the first is lost twice. What repairs it in the end acknowledges all of them, and the slow start
    // goes on far beyond.
    let mut p = pair(ABC2, 2, 64.0, 1e9);
    let mut heads = 0;
    p.faults(C, move |d| {
        let head = d.is_data() && d.segment.seq.0 == 0u32.wrapping_sub(5000).wrapping_add(1);
        heads += u32::from(head);
        if head && heads <= 2 { Verdict::Lose } else { Verdict::Deliver }
    });
    let (mut last, mut slow, mut avoids) = (0.0, 0, false);
    p.run_with(Instant::from_secs_f64(12.0), |p| {
        let s = p.conn(C).snapshot();
        if p.conn(C).counters().timeouts > 0 {
            if s.cwnd > last && last > 0.0 && !avoids {
                assert!(s.cwnd - last <= 1.0, "{last} to {}", s.cwnd);
                slow += 1;
            }
            last = s.cwnd;
            avoids |= s.cwnd >= s.ssthresh;
        }
    });
    assert_eq!(p.conn(C).counters().timeouts, 1);
    assert!(avoids && slow > 10, "{slow} acknowledgements");
}

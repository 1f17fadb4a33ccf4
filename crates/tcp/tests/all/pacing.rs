//! Pacing spreads what the window admits, and changes neither how the window grows nor how much arrives.

use skyhaul_base::{Duration, Instant};
use skyhaul_cc::{Config as Control, InitialSsthresh, NAMES, Rules};
use skyhaul_tcp::{Config, Counted};
use skyhaul_testkit::pair::Handshake;
use skyhaul_testkit::spy::Spy;
use skyhaul_testkit::{Pair, Setup, Side, Verdict};

const C: Side = Side::Client;
/// Windows per smoothed RTT (RFC 9002 §7.7).
const GAIN: f64 = 1.25;

/// A bulk transfer over `rtt` with an initial ssthresh of 32 segments; `paced`: the client is paced even if its control sets no
/// rate.
fn bulk(cc: &Control, rtt: Duration, paced: bool) -> Pair<Counted> {
    let rules = Rules { initial_ssthresh: InitialSsthresh::Segments(32.0), ..Rules::MODERN };
    let config = Config { rules, receive_buffer: 1 << 20, ..Config::modern() };
    let mut setup = Setup::new(config, cc, rtt / 2);
    setup.handshake = Handshake::Skipped(Some(rtt));
    let mut p = setup.build_with(|side, a| if paced && side == C { Spy::pacing(a, GAIN) } else { a });
    p.send(C, 1 << 40, false);
    p.logging = false;
    p
}

#[test]
fn a_paced_window_grows_as_one_that_is_not() {
    for ms in [20, 100, 600, 10_000] {
        let rtt = Duration::from_millis(ms);
        for name in NAMES {
            let cc = Control::by_name(name).expect("known");
            let (mut plain, mut paced) = (bulk(&cc, rtt, false), bulk(&cc, rtt, true));
            for k in [2, 4, 8, 16, 32] {
                // A paced window is a window late, and its acknowledgements may be delayed.
                let late = rtt + Duration::from_millis(80);
                plain.run_until(Instant::ZERO + rtt * k);
                paced.run_until(Instant::ZERO + rtt * k + late);
                let (a, b) = (plain.conn(C).snapshot(), paced.conn(C).snapshot());
                // The window of BBR follows from its model of the path, which it measures again at times of its own.
                let modelled = matches!(cc, Control::Bbr(_) | Control::Bbr3(_));
                assert!(
                    (modelled || b.cwnd >= a.cwnd * 0.8) && b.una as f64 >= a.una as f64 * 0.8,
                    "{name} over {ms} ms after {k} round trips: {a:?}, paced {b:?}"
                );
            }
        }
    }
}

#[test]
fn a_timeout_that_is_undone_leaves_no_silence() {
    let rtt = Duration::from_millis(500);
    for name in NAMES.iter().filter(|n| {
        let policy = Control::by_name(n).and_then(|c| c.policy(&Rules::MODERN));
        policy.is_some_and(|p| !p.probes)
    }) {
        let mut p = bulk(&Control::by_name(name).expect("known"), rtt, true);
        let from = Instant::ZERO + rtt * 12;
        p.run_until(from);
        let to = from + rtt + p.conn(C).snapshot().rto;
        p.faults(
            C,
            move |d| {
                if d.now >= from && d.now < to { Verdict::Late(to - d.now) } else { Verdict::Deliver }
            },
        );
        // What was delayed arrives: an RTT later its acknowledgements have let at least half of a window leave.
        p.run_until(to + rtt);
        let (before, window) = (p.conn(C).snapshot(), p.conn(C).counters().segments_sent);
        p.run_until(to + rtt * 2);
        let (after, sent) = (p.conn(C).snapshot(), p.conn(C).counters().segments_sent - window);
        assert!(sent as f64 >= after.cwnd * 0.3, "{name}: {sent} segments: {before:?}, then {after:?}");
    }
}

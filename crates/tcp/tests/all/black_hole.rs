//! Path MTU black holes: the transfer continues with shorter segments, and returns to the full size when the path carries it
//! again.

use crate::common;

use common::{rack, secs};
use skyhaul_base::Duration;
use skyhaul_cc::Config as Control;
use skyhaul_tcp::{Bytes, Config};
use skyhaul_testkit::{Departure, Pair, Setup, Side, Verdict};

/// The configuration of a host with an MTU of 1500 bytes; `by_time`: with RACK.
fn wire(by_time: bool) -> Config {
    let config = Config { segment_limit: Some(1460), ..Config::modern() };
    if by_time { rack(config) } else { config }
}
fn pair(config: Config, cc: &str) -> Pair<Bytes> {
    Setup::new(config, &Control::by_name(cc).expect("known"), Duration::from_millis(50)).build()
}
/// From `since` to `until`, seconds, segments with more than `most` bytes of payload are lost.
fn swallows(most: u32, since: f64, until: f64) -> impl FnMut(&Departure<'_>) -> Verdict {
    move |d| {
        let inside = d.now >= secs(since) && d.now < secs(until);
        if inside && d.segment.len > most { Verdict::Lose } else { Verdict::Deliver }
    }
}
fn size(p: &Pair<Bytes>) -> u32 {
    p.conn(Side::Client).sender().segment_size()
}

#[test]
fn a_path_that_swallows_long_packets_is_found_out_and_the_transfer_goes_on() {
    for (by_time, cc) in [(false, "newreno"), (false, "cubic"), (true, "prr"), (true, "bbr")] {
        for (most, reached) in [(1200, 1024), (800, 512), (512, 512)] {
            // From the beginning, and in the middle of a transfer.
            for since in [0.0, 0.6] {
                let mut p = pair(wire(by_time), cc);
                p.faults(Side::Client, swallows(most, since, 1e9));
                p.send(Side::Client, 400_000, true);
                p.send(Side::Server, 10, true);
                p.run_until(secs(3000.0));
                let what = format!("{cc} {most} {since}");
                assert_eq!(
                    p.end(Side::Server).received,
                    400_000,
                    "{what}: {:?}",
                    p.conn(Side::Client).snapshot()
                );
                assert_eq!(p.end(Side::Server).corrupt, None, "{what}");
                if since == 0.0 {
                    let size = size(&p);
                    assert!(size == reached || size > 1400, "{what}: {size}, the latter within a trial");
                }
            }
        }
    }
}

#[test]
fn an_outage_is_taken_for_a_black_hole_and_the_full_size_returns() {
    for (by_time, cc) in [(false, "cubic"), (true, "prr")] {
        let mut p = pair(wire(by_time), cc);
        p.faults(Side::Client, swallows(0, 0.5, 20.0));
        p.send(Side::Client, 60_000_000, false);
        p.run_until(secs(19.0));
        assert!(size(&p) < 1024, "{cc}: {}", size(&p));
        while size(&p) < 1400 && p.now() < secs(200.0) {
            assert!(p.step());
        }
        assert!(p.now() < secs(60.0), "{cc} at {:?}", p.now());
        p.run_until(secs(2000.0));
        assert_eq!((p.end(Side::Server).received, size(&p)), (60_000_000, 1448), "{cc}");
    }
}

#[test]
fn trials_of_the_full_size_grow_rare() {
    let mut p = pair(wire(false), "newreno");
    p.faults(Side::Client, swallows(1200, 0.0, 1e9));
    p.send(Side::Client, 1 << 30, false);
    p.logging = false;
    let (mut trials, mut before) = (0, size(&p));
    while p.now() < secs(300.0) && p.step() {
        trials += u32::from(size(&p) > before);
        before = size(&p);
    }
    // After 10, 20, 40, 80 and 160 s.
    assert!((3..=5).contains(&trials), "{trials}");
    // Four timeouts of the first suspicion, and at most two of each trial.
    let c = p.conn(Side::Client).counters();
    assert!(c.timeouts <= 4 + 2 * u64::from(trials), "{c:?}");
}

#[test]
fn short_segments_do_not_disprove_a_black_hole() {
    for by_time in [false, true] {
        let mut p = pair(wire(by_time), "prr");
        p.faults(Side::Client, swallows(1200, 0.0, 1e9));
        p.send(Side::Client, 20_000, false);
        p.run_until(secs(100.0));
        assert_eq!((size(&p), p.end(Side::Server).received), (1024, 20_000), "{by_time}");
        // The first acknowledgement begins a trial; then more than a full segment's worth arrives in short ones.
        for n in 1..=40 {
            p.send(Side::Client, 100, false);
            p.run_until(secs(100.0 + f64::from(n)));
        }
        assert_eq!((size(&p), p.end(Side::Server).received), (1448, 24_000), "{by_time}");
        let before = p.conn(Side::Client).counters().timeouts;
        p.send(Side::Client, 20_000, false);
        p.run_until(secs(300.0));
        assert_eq!((size(&p), p.end(Side::Server).received), (1024, 44_000), "{by_time}");
        // A path that is still suspected takes one timeout, not the four of a new suspicion.
        let timeouts = p.conn(Side::Client).counters().timeouts - before;
        assert_eq!(timeouts, 1, "{by_time}");
    }
}

#[test]
fn segments_of_a_simulation_have_no_size_that_a_path_could_mind() {
    let mut p = pair(Config::modern(), "newreno");
    p.faults(Side::Client, swallows(1200, 0.0, 1e9));
    p.send(Side::Client, 400_000, false);
    p.run_until(secs(100.0));
    assert_eq!((size(&p), p.end(Side::Server).received), (1448, 0));
}

/// An ICMP message reports a smaller MTU in the middle of a transfer, with and without loss detection by time.
#[test]
fn a_path_that_says_how_narrow_it_is_costs_no_timeout() {
    for by_time in [false, true] {
        let mut p = pair(wire(by_time), "prr");
        p.send(Side::Client, 2_000_000, true);
        p.send(Side::Server, 10, true);
        p.run_until(secs(0.45));
        p.faults(Side::Client, swallows(1200, 0.0, 1e9));
        let now = p.now();
        p.end_mut(Side::Client).conn.narrow(now, 1160);
        p.run_until(secs(100.0));
        assert_eq!((p.end(Side::Server).received, size(&p)), (2_000_000, 1148), "{by_time}");
        assert_eq!(p.conn(Side::Client).counters().timeouts, 0, "{by_time}");
    }
}

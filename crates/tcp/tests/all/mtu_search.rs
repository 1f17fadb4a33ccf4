//! The search for the longest segment that a path takes (RFC 4821): what it finds, what it costs, and when it leaves the path
//! alone.

use crate::common;

use common::{rack, secs};
use skyhaul_base::{Duration, Rate};
use skyhaul_cc::Config as Control;
use skyhaul_tcp::{Bytes, Config};
use skyhaul_testkit::{Departure, Pair, Setup, Side, Verdict};

/// Payload per packet of 1500 bytes: 40 of headers, 12 of timestamps.
const FULL: u32 = 1448;
/// What begins a search.
const BASE: u32 = 1024;

fn searches(by_time: bool) -> Config {
    let config = Config { mtu_search: true, ..Config::modern() };
    if by_time { rack(config) } else { config }
}
fn pair(config: Config, cc: &str) -> Pair<Bytes> {
    let config = Config { receive_buffer: 128 << 10, ..config };
    let mut setup = Setup::new(config, &Control::by_name(cc).expect("known"), Duration::from_millis(50));
    setup.links[0].rate = Rate::from_bits_per_sec(20_000_000).into();
    setup.build()
}
/// From `since` on nothing with more than `most` bytes of payload gets through.
fn swallows(most: u32, since: f64) -> impl FnMut(&Departure<'_>) -> Verdict {
    move |d| if d.now >= secs(since) && d.segment.len > most { Verdict::Lose } else { Verdict::Deliver }
}
fn size(p: &Pair<Bytes>) -> u32 {
    p.conn(Side::Client).sender().segment_size()
}
/// Controls with and without SACK, and losses found by time.
const KINDS: [(bool, &str); 5] =
    [(false, "reno"), (false, "newreno"), (false, "cubic"), (true, "prr"), (true, "bbr")];

#[test]
fn the_longest_is_found_without_a_word_from_routers() {
    for (by_time, cc) in KINDS {
        // A packet of 1400 bytes has 1348 of payload beside the headers; 1100 is a narrow tunnel.
        for most in [1348, 1100, FULL] {
            let mut p = pair(searches(by_time), cc);
            p.faults(Side::Client, swallows(most, 0.0));
            p.send(Side::Client, 16_000_000, true);
            p.send(Side::Server, 10, true);
            p.run_until(secs(200.0));
            let what = format!("{cc} {most}");
            assert_eq!(
                (p.end(Side::Server).received, p.end(Side::Server).corrupt),
                (16_000_000, None),
                "{what}"
            );
            let found = size(&p);
            assert!(found <= most && most - found < 8, "{what}: {found}");
            assert_eq!(p.conn(Side::Client).counters().timeouts, 0, "{what}");
        }
    }
}

#[test]
fn a_lost_probe_is_no_sign_of_congestion() {
    for (by_time, cc) in KINDS {
        let mut p = pair(searches(by_time), cc);
        let mut lost = 0;
        p.faults(Side::Client, swallows(1348, 0.0));
        p.send(Side::Client, 16_000_000, false);
        while p.now() < secs(200.0) && p.step() {
            if let Some(j) = p.end_mut(Side::Client).conn.take_congestion_report() {
                panic!("{cc}: {j:?}");
            }
            lost = p.conn(Side::Client).counters().recoveries;
        }
        // 1448 three times, and then at least one more size that is too long.
        assert!(lost >= 6, "{cc}: {lost}");
    }
}

/// RFC 4821 §7.5: what is lost besides a probe is one.
#[test]
fn a_loss_besides_the_probe_is_told() {
    for (by_time, cc) in KINDS {
        let mut p = pair(searches(by_time), cc);
        let mut after = 0;
        p.faults(Side::Client, move |d| {
            // The first probe, and the second segment after it.
            let long = d.segment.len > BASE;
            after = if long && after == 0 { 1 } else { after + u32::from(after > 0) };
            if after == 1 || after == 3 { Verdict::Lose } else { Verdict::Deliver }
        });
        p.send(Side::Client, 2_000_000, false);
        let mut told = 0;
        while p.now() < secs(60.0) && p.step() {
            told += u32::from(p.end_mut(Side::Client).conn.take_congestion_report().is_some());
        }
        assert_eq!(told, 1, "{cc}");
        assert_eq!((p.end(Side::Server).received, size(&p)), (2_000_000, FULL), "{cc}");
    }
}

#[test]
fn a_path_that_begins_to_swallow_is_left_and_searched_again() {
    for (by_time, cc) in KINDS {
        let mut p = pair(searches(by_time), cc);
        p.send(Side::Client, 60_000_000, false);
        p.run_until(secs(5.0));
        assert_eq!(size(&p), FULL, "{cc}");
        p.faults(Side::Client, swallows(1200, 0.0));
        p.run_until(secs(2000.0));
        assert_eq!((p.end(Side::Server).received, p.end(Side::Server).corrupt), (60_000_000, None), "{cc}");
        let found = size(&p);
        assert!((1193..=1200).contains(&found), "{cc}: {found}");
    }
}

#[test]
fn what_leaves_no_room_for_a_probe_sends_none() {
    // A probe, and four segments that would show its loss, are 1448 + 4·1024 bytes.
    let needed = u64::from(FULL) + 4 * u64::from(BASE);
    for (bytes, probes) in [(needed - 1, 0), (needed, 1)] {
        let mut p = pair(searches(false), "newreno");
        p.send(Side::Client, 100, false);
        p.run_until(secs(1.0));
        p.send(Side::Client, bytes, true);
        p.send(Side::Server, 10, true);
        p.run_until(secs(30.0));
        assert_eq!(p.end(Side::Server).received, 100 + bytes);
        let long = p.sent(Side::Client).filter(|s| s.segment.len > BASE).count();
        assert_eq!(long, probes, "{bytes} bytes");
    }
}

#[test]
fn what_routers_say_ends_the_search_at_once() {
    let mut p = pair(searches(false), "prr");
    p.faults(Side::Client, swallows(1148, 0.0));
    p.send(Side::Client, 4_000_000, false);
    p.run_until(secs(0.3));
    let now = p.now();
    p.end_mut(Side::Client).conn.narrow(now, 1160);
    p.run_until(secs(200.0));
    assert_eq!((p.end(Side::Server).received, size(&p)), (4_000_000, 1148));
}

//! Public reports of faults in other projects (docs/reports.md) that concern two endpoints and that no other test covers.

use crate::common;

use common::{explain, rack, secs};
use skyhaul_base::{Duration, Rate};
use skyhaul_cc::Config as Control;
use skyhaul_tcp::config::PRESETS;
use skyhaul_tcp::{Bytes, Config, Counted, State};
use skyhaul_testkit::pair::Act;
use skyhaul_testkit::path::error::per;
use skyhaul_testkit::{Pair, Setup, Side};
use std::cell::Cell;
use std::rc::Rc;

const C: Side = Side::Client;
const S: Side = Side::Server;

fn control(name: &str) -> Control {
    Control::by_name(name).expect("known")
}

/// smoltcp#1018: an application that writes a byte now and then over a long path has each repeated before its
/// acknowledgement can come.
#[test]
fn a_byte_each_100_ms_over_an_rtt_of_a_second_is_sent_once() {
    for preset in PRESETS {
        let config = Config::preset(preset).expect("a preset");
        // Their first timer is as long as the path; the answer to the SYN, too, may come as it expires.
        let setup = Setup::new(config, &control("sack"), Duration::from_millis(500))
            .both(|c| (c.nagle, c.rto.initial) = (false, Duration::from_secs(3)));
        let mut p: Pair<Bytes> = setup.build();
        for n in 0..300 {
            p.at(secs(2.0) + Duration::from_millis(100) * n, C, Act::Write(1));
        }
        p.run_until(secs(60.0));
        let c = p.conn(C).counters();
        assert_eq!((p.end(S).received, c.segments_sent), (300, 300), "{preset}: {c:?}");
        assert_eq!((c.retransmissions, c.timeouts), (0, 0), "{preset}: {c:?}");
    }
}

/// smoltcp#415: where the window holds less than two segments, a receiver that waits for the second one, and a sender that
/// waits for an acknowledgement, wait for each other.
#[test]
fn delayed_acknowledgements_and_tiny_windows_do_not_wait_for_each_other() {
    for window in [500, 1460, 2000, 2919] {
        let config = Config { receive_buffer: window, ..Config::rfc() };
        assert!(config.nagle && config.delayed_ack.delay == Duration::from_millis(200));
        let mut p: Pair<Bytes> = Setup::new(config, &control("newreno"), Duration::from_millis(10)).build();
        p.send(C, 100_000, true);
        while p.end(S).received < 100_000 && p.now() < secs(100.0) {
            assert!(p.step());
        }
        // A segment in each round trip of 20 ms, and as much as one delay for what is not a full one.
        let segments = 100_000u64.div_ceil(window.min(1460));
        let most = Duration::from_millis(20 * segments + 220);
        assert!(p.now() < secs(0.0) + most, "{window}: {:?}\n{}", p.now(), explain(&p));
    }
}

/// hysteria#1672: the end of a request cuts its answer short.
#[test]
fn the_answer_to_a_half_closed_request_is_whole() {
    for preset in PRESETS {
        let config = Config::preset(preset).expect("a preset");
        let mut setup = Setup::new(config, &control("cubic"), Duration::from_millis(50));
        setup.links[1].error = per::Config { p: 1e-3 }.into();
        let mut p: Pair<Bytes> = setup.build();
        p.send(C, 31, true);
        p.run_until(secs(5.0));
        assert!(p.conn(S).peer_finished() && p.conn(C).state() == State::FinWait2, "{preset}");
        p.send(S, 3_000_031, true);
        p.run_to_end(secs(1e5));
        assert_eq!((p.end(C).received, p.end(C).corrupt), (3_000_031, None), "{preset}");
        assert!(p.finished(), "{preset}");
    }
}

/// quinn#2791, s2n-quic#1680: random losses are taken for a path that swallows long packets, and the segments stay short.
#[test]
fn random_losses_are_no_black_hole() {
    for (search, by_time, cc) in
        [(false, false, "newreno"), (false, true, "cubic"), (true, true, "prr"), (false, true, "bbr")]
    {
        for loss in [0.01, 0.05, 0.1] {
            let config = Config { segment_limit: Some(1460), mtu_search: search, ..Config::modern() };
            let config = if by_time { rack(config) } else { config };
            let mut setup = Setup::new(config, &control(cc), Duration::from_millis(25));
            setup.links[0].error = per::Config { p: loss }.into();
            setup.links[0].rate = Rate::from_bits_per_sec(10_000_000).into();
            let mut p: Pair<Counted> = setup.build();
            p.logging = false;
            let (short, all) = (Rc::new(Cell::new(0u64)), Rc::new(Cell::new(0u64)));
            let (s, a) = (Rc::clone(&short), Rc::clone(&all));
            p.faults(C, move |d| {
                a.set(a.get() + u64::from(d.is_data()));
                s.set(s.get() + u64::from(d.is_data() && d.segment.len < 1400));
                skyhaul_testkit::Verdict::Deliver
            });
            p.send(C, u64::MAX / 8, false);
            p.run_until(secs(60.0));
            // A search begins with short segments.
            let (short, all, most) = (short.get(), all.get(), if search { 60 } else { 0 });
            assert!(short <= most && all > 2000, "{search} {by_time} {cc} {loss}: {short} of {all}");
        }
    }
}

//! What a connection holds is counted and given back, and a short memory shows in the window that is offered.

use crate::common;

use common::{Pattern, rack, secs};
use skyhaul_base::{Duration, Instant};
use skyhaul_cc::Config as Control;
use skyhaul_tcp::config::DelayedAck;
use skyhaul_tcp::{Bytes, Config, Counted};
use skyhaul_testkit::script::Script;
use skyhaul_testkit::{Pair, Setup, Side};

fn of(name: &str) -> Control {
    Control::by_name(name).expect("known")
}

#[test]
fn records_of_segments_count_and_go_when_all_has_arrived() {
    let modern = Config { receive_buffer: 4 << 20, ..Config::modern() };
    for (config, cc) in [(modern, "cubic"), (rack(modern), "prr"), (rack(modern), "bbr"), (modern, "newreno")]
    {
        let mut p: Pair<Bytes> = Setup::new(config, &of(cc), Duration::from_millis(100)).build();
        p.faults(Side::Client, Pattern { lose: 3, late: 5, ..Pattern::CLEAN }.faults());
        p.send(Side::Client, 3_000_000, false);
        let mut most = [(0, 0); 2];
        p.run_with(secs(300.0), |p: &Pair<Bytes>| {
            for side in Side::BOTH {
                let held = p.conn(side).held();
                assert!(held.records <= held.all);
                let m = &mut most[usize::from(side == Side::Server)];
                *m = (m.0.max(held.records), m.1.max(held.all));
            }
        });
        assert_eq!(p.end(Side::Server).received, 3_000_000, "{cc}");
        // Some forty bytes per segment of 1448 on its way, with room kept by doubling.
        let [(sent, written), (ranges, received)] = most;
        assert!(sent > 1000 && sent < written / 4, "{cc}: {sent} of {written}");
        assert!(ranges > 0 && ranges < received / 10, "{cc}: {ranges} of {received}");
        for side in Side::BOTH {
            let conn = &mut p.end_mut(side).conn;
            assert!(conn.holds_nothing() && conn.held().all > 0, "{cc} {side:?}: {:?}", conn.held());
            conn.trim();
            assert_eq!(conn.held().all, 0, "{cc} {side:?}: {:?}", conn.held());
        }
        // It goes on as before.
        p.send(Side::Client, 500_000, true);
        p.send(Side::Server, 10, true);
        p.run_until(secs(600.0));
        assert_eq!(p.end(Side::Server).received, 3_500_000, "{cc}");
        assert_eq!(p.end(Side::Server).corrupt, None);
    }
}

fn receiver() -> Script<Counted> {
    let config = Config { mss: 1000, receive_buffer: 100_000, delayed_ack: DelayedAck::OFF, ..Config::rfc() };
    Script::established(&config, &of("sack"))
}

#[test]
fn a_short_memory_offers_less_but_takes_nothing_back() {
    let mut s = receiver();
    s.accept(". 1:1001 ack 1 win 9000").expect(". 1:1 ack 1001 win 99000");
    s.read(1000);
    s.conn.offer_at_most(Some(16_384));
    // What was offered shrinks only as it is used: the right edge stays at 100001.
    let mut edge = 0;
    for n in 1..=100u32 {
        let seq = 1000 * n + 1;
        s.accept(&format!(". {seq}:{} ack 1 win 9000", seq + 1000));
        s.read(1000);
        let sent = s.drain();
        let words: Vec<_> = sent[0].split_whitespace().collect();
        let [ack, window]: [u32; 2] = [words[3], words[5]].map(|w| w.parse().expect("a number"));
        assert_eq!(ack, seq + 1000, "{sent:?}");
        assert!(ack + window >= edge && ack + window >= 100_001, "{sent:?} after {edge}");
        edge = ack + window;
        assert!(window <= 16_384 || edge == 100_001, "{sent:?}");
    }
    assert!(edge > 100_001, "small windows are offered");
    // An application that does not read closes it.
    for n in 101..=116u32 {
        let seq = 1000 * n + 1;
        s.accept(&format!(". {seq}:{} ack 1 win 9000", seq + 1000));
    }
    assert!(s.drain().last().is_some_and(|t| t.contains(" win 384")), "{:?}", s.drain());
    // It is short no more: a read says so at once.
    s.conn.offer_at_most(None);
    s.read(16_000);
    s.expect(". 1:1 ack 117001 win 100000");
}

#[test]
fn a_buffer_that_grows_by_itself_does_not_while_memory_is_short() {
    let config = Config { receive_autotuning: true, receive_buffer: 8 << 20, ..Config::modern() };
    let window_after = |short: &[(f64, Option<u64>)]| {
        let mut p: Pair<Counted> = Setup::new(config, &of("sack"), Duration::from_millis(50)).build();
        p.send(Side::Client, 1 << 40, false);
        for &(at, most) in short {
            p.run_until(secs(at));
            p.end_mut(Side::Server).conn.offer_at_most(most);
        }
        p.run_until(Instant::ZERO + Duration::from_secs(4));
        let (una, max) = (p.conn(Side::Client).sender().una(), p.conn(Side::Client).sender().max());
        max - una
    };
    let (free, short) = (window_after(&[]), window_after(&[(0.2, Some(16_384))]));
    let passing = window_after(&[(0.2, Some(16_384)), (2.0, None)]);
    assert!(short <= 16_384 && free > 1 << 20 && passing > 1 << 20, "{free} {short} {passing}");
}

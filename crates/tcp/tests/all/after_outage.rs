//! A short outage loses the acknowledgement of the first segment, and the segments behind it. The receiver then reports the
//! retransmission of the first segment as a duplicate: the retransmission was needless, but the other segments are lost.
//!
//! In all tests, the SRTT is 100 ms, the RTO 1 s, and the window has 4 segments of 1000 bytes, P0 to P3, which leave at 0.1 s (as in
//! `undo_traces`).

use skyhaul_cc::Config as Control;
use skyhaul_tcp::config::LossDetection;
use skyhaul_tcp::{Config, Counted};
use skyhaul_testkit::script::Script;

fn configs() -> [(&'static str, Config); 3] {
    let dsack = Config { mss: 1000, receive_buffer: 100_000, dsack_undo: true, ..Config::rfc() };
    let frto = Config { f_rto: true, ..dsack };
    let rack = Config { loss_detection: LossDetection::Rack, ..frto };
    [("dsack", dsack), ("f-rto", frto), ("rack", rack)]
}

/// P0 to P3 are in flight, `more` bytes wait, and the timer has expired once: P0 has left again at 1.1 s.
fn timed_out(config: &Config, more: u64) -> Script<Counted> {
    let mut s = Script::established(config, &Control::by_name("sack").expect("known"));
    s.write(1000);
    s.drain();
    s.at(0.1).accept(". 1:1 ack 1001 win 90000");
    s.write(4000 + more);
    assert_eq!(s.drain().len(), 4);
    s.at(1.15).expect_at(1.1, ". 1001:2001").expect_nothing();
    s
}

#[test]
fn what_was_lost_behind_a_needless_copy_is_sent_at_once() {
    for (name, config) in configs() {
        let mut s = timed_out(&config, 0);
        // P0 had arrived; P1 to P3 had not.
        s.at(1.2).accept(". 1:1 ack 2001 win 90000 <sack 1001:2001>");
        assert_eq!(s.conn.counters().undone, 0, "{name}");
        s.expect_at(1.2, ". 2001:3001").expect_at(1.2, ". 3001:4001").expect_nothing();
        s.at(1.3).accept(". 1:1 ack 4001 win 90000").expect_at(1.3, ". 4001:5001").expect_nothing();
        s.at(1.4).accept(". 1:1 ack 5001 win 90000").expect_nothing();
        assert_eq!(s.conn.counters().timeouts, 1, "{name}");
    }
}

#[test]
fn with_new_data_what_was_lost_is_sent_a_round_trip_later() {
    for (name, config) in configs().into_iter().skip(1) {
        let mut s = timed_out(&config, 20_000);
        s.at(1.2).accept(". 1:1 ack 2001 win 90000 <sack 1001:2001>");
        // F-RTO sends new data to find out whether the timeout was spurious (RFC 5682 §3.1 step 2b).
        s.expect_at(1.2, ". 5001:6001").expect_at(1.2, ". 6001:7001").expect_nothing();
        s.at(1.3).accept(". 1:1 ack 2001 win 90000 <sack 5001:6001>");
        s.expect_at(1.3, ". 2001:3001");
        assert_eq!((s.conn.counters().timeouts, s.conn.counters().undone), (1, 0), "{name}");
    }
}

#[test]
fn a_needless_copy_with_nothing_lost_behind_it_undoes_the_timeout() {
    for (name, config) in configs() {
        let mut s = timed_out(&config, 0);
        s.at(1.2).accept(". 1:1 ack 5001 win 90000 <sack 1001:2001>");
        assert_eq!((s.conn.counters().undone, s.conn.snapshot().cwnd), (1, 4.0), "{name}");
    }
}

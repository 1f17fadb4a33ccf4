//! RACK and the tail loss probe (RFC 8985), segment by segment, with times computed by hand.
//!
//! Every trace opens with one segment at 0 that is acknowledged at 0.1 s: SRTT 100 ms, minimum RTT 100 ms, RTO 1 s
//! (its lower bound), reordering window 25 ms, and a window of 4 segments of 1000 bytes.

use crate::common;

use common::rack;
use skyhaul_base::Duration;
use skyhaul_cc::{Config as Control, alg};
use skyhaul_tcp::config::LossDetection;
use skyhaul_tcp::{Config, Counted};
use skyhaul_testkit::script::Script;

/// RFC rules; 1000-byte segments; acknowledgements held back for at most 200 ms.
fn config() -> Config {
    rack(Config { mss: 1000, receive_buffer: 100_000, ..Config::rfc() })
}

fn opened(config: &Config, cc: &str) -> Script<Counted> {
    let mut s = Script::established(config, &Control::by_name(cc).expect("known"));
    s.write(1000);
    s.expect_at(0.0, ". 1:1001");
    s.at(0.1).accept(". 1:1 ack 1001 win 90000").expect_nothing();
    s
}

/// P0 to P3 leave at 0.1 s.
fn four(config: &Config, cc: &str) -> Script<Counted> {
    let mut s = opened(config, cc);
    s.write(4000);
    for text in [". 1001:2001", ". 2001:3001", ". 3001:4001", ". 4001:5001"] {
        s.expect_at(0.1, text);
    }
    s
}

fn quiet(s: &mut Script<Counted>, until: f64) {
    s.at(until).expect_nothing();
}

/// Recoveries, timeouts, retransmissions, tail loss probes.
fn counted(s: &Script<Counted>) -> (u64, u64, u64, u64) {
    let c = s.conn.counters();
    (c.recoveries, c.timeouts, c.retransmissions, c.loss_probes)
}

fn reo_wnd(s: &Script<Counted>) -> Duration {
    s.conn.sender().rack().expect("in use").reo_wnd()
}
fn reordering_seen(s: &Script<Counted>) -> bool {
    s.conn.sender().rack().expect("in use").reordering_seen()
}

// ----- RFC 8985 §3.5: a lost tail, and a lost retransmission ------------------------------------------------

#[test]
fn a_lost_tail_and_a_lost_retransmission_without_timeout() {
    let mut s = four(&config(), "sack");
    // P1, P2, P3 are lost.
    s.at(0.2).accept(". 1:1 ack 2001 win 90000");
    // The probe timer: two RTTs later.
    s.at(0.4).expect_at(0.4, ". 4001:5001").expect_nothing();
    s.at(0.5).accept(". 1:1 ack 2001 win 90000 <sack 4001:5001>");
    s.expect_at(0.5, ". 2001:3001").expect_at(0.5, ". 3001:4001").expect_nothing();
    // The retransmission of P1 is lost, that of P2, sent after it, arrives: nothing to wait for in a recovery.
    s.at(0.6).accept(". 1:1 ack 2001 win 90000 <sack 3001:5001>");
    s.expect_at(0.6, ". 2001:3001").expect_nothing();
    s.at(0.7).accept(". 1:1 ack 5001 win 90000").expect_nothing();
    assert_eq!(counted(&s), (1, 0, 4, 1));
    quiet(&mut s, 10.0);
}

#[test]
fn prr_repairs_the_tail_segment_by_segment() {
    let mut s = four(&config(), "prr");
    s.at(0.2).accept(". 1:1 ack 2001 win 90000");
    s.at(0.4).expect_at(0.4, ". 4001:5001").expect_nothing();
    // One segment was delivered, one may go (RFC 9937 §6.2): the pipe is empty, SndCnt is what was delivered.
    s.at(0.5).accept(". 1:1 ack 2001 win 90000 <sack 4001:5001>");
    s.expect_at(0.5, ". 2001:3001").expect_nothing();
    s.at(0.6).accept(". 1:1 ack 3001 win 90000 <sack 4001:5001>");
    s.expect_at(0.6, ". 3001:4001").expect_nothing();
    s.at(0.7).accept(". 1:1 ack 5001 win 90000").expect_nothing();
    assert_eq!(counted(&s), (1, 0, 3, 1));
}

#[test]
fn the_reordering_timer_moves_prr_where_no_acknowledgement_does() {
    let mut s = four(&config(), "prr");
    s.at(0.2).accept(". 1:1 ack 1001 win 90000 <sack 2001:3001>").expect_nothing();
    s.at(0.3).expect_at(0.225, ". 1001:2001").expect_nothing();
    assert_eq!(counted(&s), (1, 0, 1, 0));
}

#[test]
fn without_rack_the_same_takes_two_timeouts() {
    let plain = Config { loss_detection: LossDetection::DupAcks, tail_loss_probe: false, ..config() };
    let mut s = four(&plain, "sack");
    s.at(0.2).accept(". 1:1 ack 2001 win 90000").expect_nothing();
    s.at(1.3).expect_at(1.2, ". 2001:3001").expect_nothing();
    // Lost again; the timer has doubled.
    s.at(3.3).expect_at(3.2, ". 2001:3001").expect_nothing();
    assert_eq!(s.conn.counters().timeouts, 2);
}

// ----- §6.2: reordering ------------------------------------------------------------------------------------

#[test]
fn a_segment_that_is_late_by_less_than_the_window_costs_nothing() {
    let mut s = four(&config(), "sack");
    s.at(0.2).accept(". 1:1 ack 1001 win 90000 <sack 2001:3001>").expect_nothing();
    assert_eq!(reo_wnd(&s), Duration::from_millis(25));
    s.at(0.22).accept(". 1:1 ack 3001 win 90000").expect_nothing();
    assert!(reordering_seen(&s));
    s.at(0.23).accept(". 1:1 ack 5001 win 90000").expect_nothing();
    quiet(&mut s, 10.0);
    assert_eq!(counted(&s), (0, 0, 0, 0));
}

#[test]
fn the_reordering_timer_finds_the_loss_when_nothing_else_arrives() {
    let mut s = four(&config(), "sack");
    s.at(0.2).accept(". 1:1 ack 1001 win 90000 <sack 2001:3001>").expect_nothing();
    // P0: sent 0.1, RTT 0.1, window 0.025. P2 and P3 were sent after P1: nothing is known of them.
    s.at(0.3).expect_at(0.225, ". 1001:2001").expect_nothing();
    // Its copy arrives, and they were sent before that.
    s.at(0.325).accept(". 1:1 ack 3001 win 90000");
    s.expect_at(0.325, ". 3001:4001").expect_at(0.325, ". 4001:5001").expect_nothing();
    assert_eq!(counted(&s), (1, 0, 3, 0));
    assert!(!reordering_seen(&s), "a retransmission is late by nature");
}

#[test]
fn three_segments_beyond_the_hole_need_no_wait_until_reordering_is_seen() {
    let mut s = four(&config(), "sack");
    s.at(0.2);
    s.accept(". 1:1 ack 1001 win 90000 <sack 2001:3001>").accept(". 1:1 ack 1001 win 90000 <sack 2001:4001>");
    s.expect_nothing();
    s.accept(". 1:1 ack 1001 win 90000 <sack 2001:5001>").expect_at(0.2, ". 1001:2001").expect_nothing();
    s.at(0.3).accept(". 1:1 ack 5001 win 90000");

    // Once it is, three are no proof any more.
    let mut s = four(&config(), "sack");
    s.at(0.2).accept(". 1:1 ack 1001 win 90000 <sack 2001:3001>");
    s.accept(". 1:1 ack 3001 win 90000").accept(". 1:1 ack 5001 win 90000");
    assert!(reordering_seen(&s));
    s.write(4000);
    s.drain();
    s.at(0.3);
    for edge in [7001, 8001, 9001] {
        s.accept(&format!(". 1:1 ack 5001 win 90000 <sack 6001:{edge}>")).expect_nothing();
    }
    s.at(0.4).expect_at(0.325, ". 5001:6001").expect_nothing();
    assert_eq!(counted(&s).0, 1);
}

#[test]
fn each_round_trip_with_a_duplicate_widens_the_window_and_sixteen_recoveries_narrow_it() {
    let ms = Duration::from_millis;
    let mut s = four(&config(), "sack");
    // Reordering is seen, then P2 is late by more than the window: a spurious recovery.
    s.at(0.2).accept(". 1:1 ack 1001 win 90000 <sack 2001:3001>").accept(". 1:1 ack 3001 win 90000");
    s.accept(". 1:1 ack 3001 win 90000 <sack 4001:5001>").expect_nothing();
    s.at(0.23).expect_at(0.225, ". 3001:4001").expect_nothing();
    s.at(0.24).accept(". 1:1 ack 5001 win 90000").expect_nothing();
    s.at(0.325).accept(". 1:1 ack 5001 win 90000 <sack 3001:4001>").expect_nothing();
    assert_eq!((reo_wnd(&s), counted(&s)), (ms(50), (1, 0, 1, 0)));
    // A second report in the same round changes nothing, since nothing new was sent: SND.UNA is SND.NXT.
    s.write(1000);
    s.drain();
    s.at(0.425).accept(". 1:1 ack 6001 win 90000 <sack 3001:4001>");
    assert_eq!(reo_wnd(&s), ms(75), "the next round");

    // Sixteen recoveries without a report; the last one returns to a quarter. Each loses one segment of two.
    let mut at = 0.5;
    let mut from = 6001;
    for n in 1..=16 {
        s.at(at).write(2000);
        s.drain();
        s.at(at + 0.1);
        let end = from + 2000;
        s.accept(&format!(". 1:1 ack {from} win 90000 <sack {}:{end}>", from + 1000)).expect_nothing();
        let due = at + 0.1 + reo_wnd(&s).as_secs_f64();
        assert_eq!(reo_wnd(&s), ms(75), "recovery {n}");
        s.at(due + 0.001).expect_at(due, &format!(". {from}:{}", from + 1000)).expect_nothing();
        s.at(due + 0.1).accept(&format!(". 1:1 ack {end} win 90000"));
        (from, at) = (end, at + 0.3);
    }
    assert_eq!(reo_wnd(&s), ms(25));
    assert_eq!((counted(&s).0, counted(&s).1), (17, 0));
}

#[test]
fn the_window_is_never_more_than_the_smoothed_rtt() {
    let mut s = four(&config(), "sack");
    s.at(0.2).accept(". 1:1 ack 1001 win 90000 <sack 2001:3001>").accept(". 1:1 ack 5001 win 90000");
    let mut from = 5001;
    for n in 0..6u32 {
        let at = 0.3 + f64::from(n) * 0.1;
        s.at(at - 0.1).write(1000);
        s.at(at);
        from += 1000;
        s.accept(&format!(". 1:1 ack {from} win 90000 <sack 1001:2001>"));
    }
    assert_eq!(reo_wnd(&s), Duration::from_millis(100));
}

// ----- §6.2 step 2: what is no sample ------------------------------------------------------------------------

#[test]
fn an_acknowledgement_too_early_for_the_retransmission_is_of_the_original() {
    let mut s = four(&config(), "sack");
    s.at(0.2).accept(". 1:1 ack 1001 win 90000 <sack 2001:3001>");
    s.at(0.225).expect_at(0.225, ". 1001:2001");
    // The original, 20 ms after its copy left: were it the copy, P2 and P3 (sent at 0.1) would be lost.
    s.at(0.245).accept(". 1:1 ack 3001 win 90000").expect_nothing();
    quiet(&mut s, 0.3);
}

#[test]
fn the_echoed_timestamp_tells_the_original_where_the_rtt_does_not() {
    for (echo, spurious) in [(101, true), (226, false)] {
        let stamped = Config { timestamps: true, ..config() };
        let mut s: Script<Counted> = Script::established(&stamped, &Control::by_name("sack").expect("known"));
        s.write(1000);
        s.drain();
        s.at(0.1).accept(". 1:1 ack 1001 win 90000 <ts 1 1>");
        s.write(4000);
        s.drain();
        s.at(0.2).accept(". 1:1 ack 1001 win 90000 <ts 1 1,sack 2001:3001>");
        s.at(0.225).expect_at(0.225, ". 1001:2001 ack 1 win 100000 <ts 226 1>").expect_nothing();
        // Timestamps are milliseconds plus one. 105 ms after the copy; in time for either.
        s.at(0.33).accept(&format!(". 1:1 ack 3001 win 90000 <ts 1 {echo}>"));
        let lost = s.drain().len();
        assert_eq!(lost == 0, spurious, "echo {echo}: P2 and P3 were sent before the copy");
    }
}

#[test]
fn answers_to_probes_are_no_samples() {
    let peach = Control::Peach(alg::peach::Config { start: alg::peach::Opening::Slow, ..Default::default() });
    // P1 is delivered, as the answer to a dummy says; then P0 by an acknowledgement. D-SACK of the dummy first.
    for (answer, sample) in [("", true), ("dummy-ack,", false)] {
        let mut s: Script<Counted> = Script::established(&config(), &peach);
        s.write(4000);
        s.at(0.1).accept(". 1:1 ack 1001 win 90000").drain();
        s.write(4000);
        s.drain();
        s.at(0.2).accept(&format!(". 1:1 ack 1001 win 90000 <{answer}sack 1:1001 2001:3001>"));
        // Reported as a duplicate outside of a probe it would widen the window.
        assert_eq!(reo_wnd(&s), Duration::from_millis(if sample { 50 } else { 25 }), "{answer}");
        s.accept(&format!(". 1:1 ack 2001 win 90000 <{answer}sack 1:1001>"));
        assert_eq!(reordering_seen(&s), sample, "{answer}: P0 after P1");
        assert_eq!(counted(&s).0, 0);
    }
}

// ----- §6.3: the retransmission timer ------------------------------------------------------------------------

#[test]
fn a_timeout_leaves_in_flight_what_was_sent_just_before() {
    let mut s = opened(&Config { tail_loss_probe: false, ..config() }, "sack");
    s.write(1000);
    s.expect_at(0.1, ". 1001:2001");
    s.at(1.05).write(1000);
    s.expect_at(1.05, ". 2001:3001");
    // 1.1 s: the first is an RTO old, the second 50 ms, less than an RTT and the window.
    s.at(1.149).expect_at(1.1, ". 1001:2001").expect_nothing();
    s.at(1.15).accept(". 1:1 ack 1001 win 90000 <sack 2001:3001>").expect_nothing();
    s.at(1.2).accept(". 1:1 ack 3001 win 90000").expect_nothing();
    assert_eq!(counted(&s), (0, 1, 1, 0));
    quiet(&mut s, 10.0);
}

#[test]
fn a_receiver_that_takes_its_word_back_gets_everything_again() {
    for loss_detection in [LossDetection::Rack, LossDetection::DupAcks] {
        let mut s = four(&Config { loss_detection, tail_loss_probe: false, ..config() }, "sack");
        s.at(0.15).accept(". 1:1 ack 1001 win 90000 <sack 2001:5001>");
        s.drain();
        s.at(0.2).accept(". 1:1 ack 2001 win 90000").expect_nothing();
        // P1 was acknowledged selectively, and never cumulatively.
        s.at(1.21).expect_at(1.2, ". 2001:3001").expect_nothing();
        s.at(1.3).accept(". 1:1 ack 3001 win 90000");
        s.expect_at(1.3, ". 3001:4001").expect_at(1.3, ". 4001:5001");
    }
}

// ----- §7: the tail loss probe -------------------------------------------------------------------------------

#[test]
fn a_lone_segment_gets_the_time_of_a_delayed_acknowledgement_besides() {
    let mut s = opened(&config(), "sack");
    s.write(1000);
    s.expect_at(0.1, ". 1001:2001");
    s.at(0.6).expect_at(0.5, ". 1001:2001").expect_nothing();
    // One probe per RTT measured: the retransmission timer follows, started anew by the probe.
    s.at(1.6).expect_at(1.5, ". 1001:2001").expect_nothing();
    assert_eq!(counted(&s), (0, 1, 2, 1));
}

#[test]
fn the_probe_is_never_later_than_the_retransmission_timer() {
    let mut s: Script<Counted> = Script::established(&config(), &Control::by_name("sack").expect("known"));
    s.write(20_000);
    s.drain();
    // No RTT yet: PTO 1 s, RTO 1 s. The probe is new data although the window of 4 is full.
    s.at(1.5).expect_at(1.0, ". 4001:5001").expect_nothing();
    s.at(2.1).expect_at(2.0, ". 1:1001").expect_nothing();
    assert_eq!(counted(&s), (0, 1, 1, 1));
}

#[test]
fn new_data_goes_first_and_its_arrival_costs_nothing() {
    let mut s = opened(&config(), "sack");
    s.write(20_000);
    assert_eq!(s.drain().len(), 4);
    s.at(0.35).expect_at(0.3, ". 5001:6001").expect_nothing();
    let cwnd = s.conn.snapshot().cwnd;
    s.at(0.4).accept(". 1:1 ack 6001 win 90000");
    assert!(s.conn.snapshot().cwnd > cwnd);
    assert_eq!(counted(&s), (0, 0, 0, 1));
}

/// P1 is the last segment; its probe leaves at 0.6 s.
fn probed() -> Script<Counted> {
    let mut s = opened(&config(), "sack");
    s.write(2000);
    s.at(0.2).accept(". 1:1 ack 2001 win 90000").drain();
    s.at(0.65).expect_at(0.6, ". 2001:3001").expect_nothing();
    s
}

/// Afterwards one more segment is sent and acknowledged, then another one: recoveries after each.
fn aftermath(s: &mut Script<Counted>) -> [u64; 2] {
    s.at(0.75).write(1000);
    s.expect_at(0.75, ". 3001:4001");
    s.at(0.85).accept(". 1:1 ack 4001 win 90000");
    let first = s.conn.counters().recoveries;
    s.write(1000);
    s.drain();
    s.at(0.95).accept(". 1:1 ack 5001 win 90000");
    [first, s.conn.counters().recoveries]
}

#[test]
fn a_loss_that_the_probe_repaired_is_answered_once() {
    let mut s = probed();
    s.at(0.7).accept(". 1:1 ack 3001 win 90000");
    assert_eq!(counted(&s).0, 0, "one of the two copies: which, and was one lost?");
    let before = s.conn.snapshot().cwnd;
    assert_eq!(aftermath(&mut s), [1, 1]);
    assert_eq!((before, s.conn.snapshot().ssthresh), (4.0, 2.0));
}

#[test]
fn two_copies_that_both_arrive_are_no_loss() {
    // The receiver says so by D-SACK, or by one acknowledgement too many.
    for second in [". 1:1 ack 3001 win 90000 <sack 2001:3001>", ". 1:1 ack 3001 win 90000"] {
        let mut s = probed();
        s.at(0.66).accept(". 1:1 ack 3001 win 90000");
        s.at(0.7).accept(second);
        assert_eq!(aftermath(&mut s), [0, 0], "{second}");
    }
}

#[test]
fn no_probe_in_a_recovery_nor_while_something_is_selectively_acknowledged() {
    let mut s = four(&config(), "sack");
    s.at(0.2).accept(". 1:1 ack 1001 win 90000 <sack 2001:3001>");
    s.at(0.225).expect_at(0.225, ". 1001:2001");
    // The recovery hears nothing: the timer that was restarted with the retransmission, no probe.
    s.at(1.3).expect_at(1.225, ". 1001:2001");
    assert_eq!((counted(&s).1, counted(&s).3), (1, 0));
}

#[test]
fn a_peer_without_sack_gets_the_detection_by_duplicates() {
    let mut s: Script<Counted> = Script::server(&config(), &Control::by_name("sack").expect("known"));
    s.accept("S 0:0 win 50000 <mss 1000>").accept(". 1:1 ack 1 win 50000").drain();
    assert!(s.conn.sender().rack().is_none());
    s.write(4000);
    s.drain();
    s.at(0.1);
    s.accept(". 1:1 ack 1 win 50000").accept(". 1:1 ack 1 win 50000").accept(". 1:1 ack 1 win 50000");
    s.expect_at(0.1, ". 1:1001");
}

//! Spurious reductions, segment by segment: timeouts after a delay spike and reordering taken for loss are undone, reductions
//! after real losses are not.
//!
//! Every trace opens with one segment at 0 that is acknowledged at 0.1 s: SRTT 100 ms, RTO 1 s (its lower bound), and
//! a window of 4 segments of 1000 bytes.

use skyhaul_cc::{Config as Control, Phase};
use skyhaul_tcp::config::LossDetection;
use skyhaul_tcp::{Config, Counted};
use skyhaul_testkit::script::Script;

/// RFC rules, 1000-byte segments, nothing is undone.
fn plain() -> Config {
    Config { mss: 1000, receive_buffer: 100_000, ..Config::rfc() }
}
fn dsack() -> Config {
    Config { dsack_undo: true, ..plain() }
}
fn eifel() -> Config {
    Config { eifel: true, timestamps: true, ..plain() }
}
fn frto() -> Config {
    Config { f_rto: true, ..plain() }
}

/// P0 to P3 leave at 0.1 s; more is waiting.
fn four(config: &Config, cc: &str) -> Script<Counted> {
    let mut s = Script::established(config, &Control::by_name(cc).expect("known"));
    s.write(1000);
    s.drain();
    let stamp = if config.timestamps { " <ts 1 1>" } else { "" };
    s.at(0.1).accept(&format!(". 1:1 ack 1001 win 90000{stamp}"));
    s.write(20_000);
    assert_eq!(s.drain().len(), 4);
    assert_eq!(s.conn.snapshot().cwnd, 4.0);
    s
}

fn cwnd(s: &Script<Counted>) -> f64 {
    s.conn.snapshot().cwnd
}
/// Timeouts, recoveries, retransmissions, reductions undone.
fn counted(s: &Script<Counted>) -> (u64, u64, u64, u64) {
    let c = s.conn.counters();
    (c.timeouts, c.recoveries, c.retransmissions, c.undone)
}

// ----- F-RTO -------------------------------------------------------------------------------------------------

#[test]
fn a_delay_spike_costs_one_retransmission_and_no_window() {
    for loss_detection in [LossDetection::DupAcks, LossDetection::Rack] {
        let mut s = four(&Config { loss_detection, ..frto() }, "sack");
        let ssthresh = s.conn.snapshot().ssthresh;
        s.at(1.15).expect_at(1.1, ". 1001:2001").expect_nothing();
        assert_eq!((cwnd(&s), s.conn.snapshot().ssthresh), (1.0, 2.0));
        // What was late arrives: the acknowledgement of P0 lets new data go, that of P1 tells.
        s.at(1.2).accept(". 1:1 ack 2001 win 90000");
        s.expect_at(1.2, ". 5001:6001").expect_at(1.2, ". 6001:7001").expect_nothing();
        s.at(1.21).accept(". 1:1 ack 3001 win 90000").expect_nothing();
        assert_eq!((cwnd(&s), s.conn.snapshot().ssthresh), (4.0, ssthresh));
        assert_eq!(s.conn.snapshot().phase, Phase::Open);
        assert_eq!(counted(&s), (1, 0, 1, 1));
        // It goes on as if nothing had been: 2 in flight, a window of at least 4, all of it for new data.
        s.at(1.22).accept(". 1:1 ack 5001 win 90000");
        let out = s.drain();
        assert!(out[0].starts_with(". 7001:8001") && out[1].starts_with(". 8001:9001"), "{out:?}");
        assert_eq!(counted(&s), (1, 0, 1, 1));
    }
}

#[test]
fn without_it_the_same_spike_costs_the_window() {
    let mut s = four(&plain(), "sack");
    s.at(1.15).expect_at(1.1, ". 1001:2001").expect_nothing();
    s.at(1.2).accept(". 1:1 ack 2001 win 90000");
    s.expect_at(1.2, ". 2001:3001").expect_at(1.2, ". 3001:4001").expect_nothing();
    s.at(1.21).accept(". 1:1 ack 3001 win 90000");
    assert!(cwnd(&s) < 4.0);
    assert_eq!(s.conn.counters().undone, 0);
}

#[test]
fn a_real_loss_is_repaired_one_round_trip_later() {
    // P0 to P3 are all lost.
    let mut s = four(&frto(), "sack");
    s.at(1.15).expect_at(1.1, ". 1001:2001").expect_nothing();
    s.at(1.2).accept(". 1:1 ack 2001 win 90000");
    s.expect_at(1.2, ". 5001:6001").expect_at(1.2, ". 6001:7001").expect_nothing();
    // The first of the new ones arrives: nothing old did. The window is 2, of which one is in flight.
    s.at(1.3).accept(". 1:1 ack 2001 win 90000 <sack 5001:6001>");
    s.expect_at(1.3, ". 2001:3001").expect_nothing();
    // The second: the window of 2 has room for one more.
    s.at(1.31).accept(". 1:1 ack 2001 win 90000 <sack 5001:7001>");
    s.expect_at(1.31, ". 3001:4001").expect_nothing();
    // The last hole, then new data: what F-RTO sent is not sent again.
    s.at(1.4).accept(". 1:1 ack 3001 win 90000 <sack 5001:7001>");
    s.expect_at(1.4, ". 4001:5001");
    assert!(s.drain().iter().all(|t| t.starts_with(". 7001:8001")));
    assert_eq!(counted(&s), (1, 0, 4, 0));
    assert_eq!(s.conn.snapshot().ssthresh, 2.0);
}

/// RFC 5682 §3.1 step 3a would take the timeout for genuine: the block is beyond RecoveryPoint. Here P1 decides, as in Linux.
#[test]
fn old_data_tells_even_beside_new_data() {
    let mut s = four(&frto(), "sack");
    s.at(1.15).expect_at(1.1, ". 1001:2001").expect_nothing();
    s.at(1.2).accept(". 1:1 ack 2001 win 90000");
    s.expect_at(1.2, ". 5001:6001").expect_at(1.2, ". 6001:7001").expect_nothing();
    // P1 was late, the acknowledgement of it is lost, P2 and P3 are lost.
    s.at(1.3).accept(". 1:1 ack 3001 win 90000 <sack 5001:6001>").drain();
    assert_eq!((cwnd(&s), counted(&s).3), (4.0, 1));
    // P2 and P3 are found by blocks.
    s.at(1.31).accept(". 1:1 ack 3001 win 90000 <sack 5001:7001>").drain();
    for to in [8001, 9001, 10_001] {
        s.at(1.32).accept(&format!(". 1:1 ack 3001 win 90000 <sack 5001:{to}>")).drain();
    }
    let (timeouts, recoveries, retransmissions, undone) = counted(&s);
    assert_eq!((timeouts, recoveries, undone), (1, 1, 1));
    assert!(retransmissions >= 2, "{retransmissions}");
}

#[test]
fn the_first_acknowledgement_of_everything_tells_nothing() {
    let mut s = four(&frto(), "sack");
    s.at(1.15).expect_at(1.1, ". 1001:2001").expect_nothing();
    s.at(1.2).accept(". 1:1 ack 5001 win 90000").drain();
    s.at(1.21).accept(". 1:1 ack 6001 win 90000");
    assert_eq!(counted(&s), (1, 0, 1, 0));
    assert_eq!(s.conn.snapshot().ssthresh, 2.0);
}

#[test]
fn without_new_data_nothing_can_be_told_and_the_repair_goes_on() {
    let mut s = Script::<Counted>::established(&frto(), &Control::by_name("sack").expect("known"));
    s.write(4000);
    assert_eq!(s.drain().len(), 4);
    s.at(1.15).expect_at(1.0, ". 1:1001").expect_nothing();
    s.at(1.2).accept(". 1:1 ack 1001 win 90000");
    s.expect_at(1.2, ". 1001:2001").expect_at(1.2, ". 2001:3001").expect_nothing();
}

#[test]
fn a_second_timeout_starts_over_and_restores_what_was_before_the_first() {
    let mut s = four(&frto(), "sack");
    s.at(1.15).expect_at(1.1, ". 1001:2001").expect_nothing();
    s.at(3.15).expect_at(3.1, ". 1001:2001").expect_nothing();
    s.at(3.2).accept(". 1:1 ack 2001 win 90000").drain();
    s.at(3.21).accept(". 1:1 ack 3001 win 90000");
    assert_eq!((cwnd(&s), counted(&s)), (4.0, (2, 0, 2, 1)));
}

#[test]
fn without_sack_a_duplicate_says_that_the_loss_was_real() {
    let mut s = four(&Config { sack: Some(false), ..frto() }, "newreno");
    s.at(1.15).expect_at(1.1, ". 1001:2001").expect_nothing();
    s.at(1.2).accept(". 1:1 ack 2001 win 90000");
    s.expect_at(1.2, ". 5001:6001").expect_at(1.2, ". 6001:7001").expect_nothing();
    s.at(1.3).accept(". 1:1 ack 2001 win 90000");
    s.expect_at(1.3, ". 2001:3001");
    assert_eq!(s.conn.counters().undone, 0);
}

// ----- Eifel -------------------------------------------------------------------------------------------------

#[test]
fn an_echo_older_than_the_retransmission_undoes_the_timeout_at_once() {
    // Timestamps are milliseconds plus one: P0 left with 101, its copy with 1101.
    for (echo, undone) in [(101, 1), (1101, 0)] {
        let mut s = four(&eifel(), "sack");
        s.at(1.15);
        assert_eq!(s.drain().len(), 1);
        s.at(1.2).accept(&format!(". 1:1 ack 2001 win 90000 <ts 1 {echo}>"));
        assert_eq!(counted(&s).3, undone, "{echo}");
        assert_eq!(cwnd(&s), if undone == 1 { 4.0 } else { 2.0 });
        // Undone: 3 of 4 are in flight, one new segment. Otherwise the repair goes on.
        let out = s.drain();
        let first = if undone == 1 { ". 5001:6001" } else { ". 2001:3001" };
        assert!(out[0].starts_with(first), "{echo}: {out:?}");
    }
}

#[test]
fn a_timestamp_unit_of_zero_stands_for_a_millisecond() {
    let unset = Config { timestamp_tick: skyhaul_base::Duration::ZERO, ..eifel() };
    let mut s = four(&unset, "sack");
    s.at(1.15).drain();
    s.at(1.2).accept(". 1:1 ack 2001 win 90000 <ts 1 101>");
    assert_eq!(counted(&s).3, 1);
}

#[test]
fn an_echo_undoes_a_recovery_that_is_under_way() {
    let mut s = four(&eifel(), "sack");
    s.at(0.2);
    for edge in [3001, 4001, 5001] {
        s.accept(&format!(". 1:1 ack 1001 win 90000 <ts 1 101,sack 2001:{edge}>"));
    }
    // Limited transmit: two new ones, then the retransmission.
    let out = s.drain();
    assert!(out.iter().any(|t| t.starts_with(". 1001:2001")), "{out:?}");
    assert_eq!((s.conn.snapshot().phase, cwnd(&s)), (Phase::Recovery, 2.0));
    s.at(0.22).accept(". 1:1 ack 5001 win 90000 <ts 1 101>");
    assert_eq!((s.conn.snapshot().phase, cwnd(&s)), (Phase::Open, 4.0));
    assert_eq!(counted(&s), (0, 1, 1, 1));
    assert_eq!(s.conn.sender().scoreboard().map_or(0, skyhaul_tcp::Scoreboard::lost), 0);
}

// ----- DSACK -------------------------------------------------------------------------------------------------

/// P0 is overtaken by P1 to P3, sent again, and arrives: the window is halved.
fn reordered(config: &Config, cc: &str) -> Script<Counted> {
    let mut s = four(config, cc);
    s.at(0.2);
    for edge in [3001, 4001, 5001] {
        s.accept(&format!(". 1:1 ack 1001 win 90000 <sack 2001:{edge}>"));
        s.drain();
    }
    s.at(0.22).accept(". 1:1 ack 5001 win 90000");
    s.drain();
    assert_eq!(counted(&s), (0, 1, 1, 0));
    s
}

#[test]
fn a_report_of_the_only_retransmission_undoes_the_recovery() {
    let mut s = reordered(&dsack(), "sack");
    // Of the two that limited transmit sent one arrives; the recovery goes on until both have.
    assert_eq!(cwnd(&s), 2.0);
    s.at(0.32).accept(". 1:1 ack 5001 win 90000 <sack 1001:2001>");
    assert_eq!((cwnd(&s), s.conn.snapshot().phase), (4.0, Phase::Open));
    assert_eq!(counted(&s), (0, 1, 1, 1));
    // Once only.
    s.at(0.33).accept(". 1:1 ack 5001 win 90000 <sack 1001:2001>");
    assert_eq!(counted(&s).3, 1);
}

#[test]
fn a_report_after_the_recovery_counts_as_well() {
    let mut s = reordered(&dsack(), "sack");
    s.at(0.3).accept(". 1:1 ack 7001 win 90000");
    assert_eq!(s.conn.snapshot().phase, Phase::Open);
    s.at(0.32).accept(". 1:1 ack 7001 win 90000 <sack 1001:2001>");
    assert_eq!((cwnd(&s) >= 4.0, counted(&s).3), (true, 1));
}

#[test]
fn a_report_of_something_else_undoes_nothing() {
    for (config, block) in [(dsack(), "1:1001"), (plain(), "1001:2001"), (eifel(), "1001:2001")] {
        let config = Config { timestamps: false, ..config };
        let mut s = reordered(&config, "sack");
        s.at(0.32).accept(&format!(". 1:1 ack 5001 win 90000 <sack {block}>"));
        assert_eq!((cwnd(&s), counted(&s).3), (2.0, 0), "{block}");
    }
}

#[test]
fn a_spurious_timeout_is_undone_when_all_that_went_again_is_reported() {
    let mut s = four(&dsack(), "sack");
    s.at(1.15).expect_at(1.1, ". 1001:2001").expect_nothing();
    s.at(1.2).accept(". 1:1 ack 5001 win 90000");
    s.drain();
    assert_eq!(s.conn.snapshot().ssthresh, 2.0);
    s.at(1.25).accept(". 1:1 ack 5001 win 90000 <sack 1001:2001>");
    assert_eq!(counted(&s), (1, 0, 1, 1));
    assert_eq!(cwnd(&s), 4.0);
}

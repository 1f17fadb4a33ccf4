//! Established connections, segment by segment: windows, timers, acknowledgements, attacks.

use skyhaul_base::Duration;
use skyhaul_cc::Config as Control;
use skyhaul_tcp::config::{DelayedAck, ProbeNegotiation, RttSource};
use skyhaul_tcp::{Bytes, Config, Counted, Event, Rejected, State};
use skyhaul_testkit::script::{OURS, Script, parse};

fn sack() -> Control {
    Control::by_name("sack").expect("known")
}
/// RFC rules; MSS 1000, 100 kB buffers, one acknowledgement per segment.
fn config() -> Config {
    Config { mss: 1000, receive_buffer: 100_000, delayed_ack: DelayedAck::OFF, ..Config::rfc() }
}
fn talk(config: &Config) -> Script<Counted> {
    Script::established(config, &sack())
}

// ----- acknowledgements -------------------------------------------------------------------------------------

#[test]
fn delayed_acknowledgements() {
    let mut s = talk(&Config { delayed_ack: Config::rfc().delayed_ack, ..config() });
    s.accept(". 1:1001 ack 1 win 9000").expect_nothing();
    s.at(0.1).accept(". 1001:2001 ack 1 win 9000").expect_at(0.1, ". 1:1 ack 2001").expect_nothing();
    s.accept(". 2001:3001 ack 1 win 9000").at(0.5).expect_at(0.3, ". 1:1 ack 3001").expect_nothing();
    // Out of order and filling a gap: at once.
    s.accept(". 4001:5001 ack 1 win 9000").expect(". 1:1 ack 3001 win 97000 <sack 4001:5001>");
    s.accept(". 3001:4001 ack 1 win 9000").expect(". 1:1 ack 5001").expect_nothing();
    // Our own data carries it.
    s.accept(". 5001:6001 ack 1 win 9000").expect_nothing();
    s.write(10);
    s.expect(". 1:11 ack 6001").expect_nothing();
    s.at(0.7).expect_nothing();
}

#[test]
fn data_carries_the_acknowledgement_and_no_duplicate_follows() {
    let mut s = talk(&config());
    s.write(4000);
    s.drain();
    s.write(9000);
    s.accept(". 1:1001 ack 1001 win 100000");
    let out = s.drain();
    assert_eq!(out, [". 4001:5001 ack 1001 win 99000", ". 5001:6001 ack 1001 win 99000"]);
}

#[test]
fn old_duplicates_are_reported() {
    let mut s = talk(&config());
    s.accept(". 1:1001 ack 1 win 9000").drain();
    assert_eq!(s.inject(". 1:1001 ack 1 win 9000"), Err(Rejected::Duplicate));
    s.expect(". 1:1 ack 1001 win 99000 <sack 1:1001>").expect_nothing();
}

#[test]
fn acknowledgement_of_data_never_sent() {
    let mut s = talk(&config());
    s.write(500);
    s.drain();
    assert_eq!(s.inject(". 1:1 ack 502 win 9000"), Err(Rejected::AckOfUnsent));
    s.expect(". 501:501 ack 1").expect_nothing();
    assert_eq!(s.conn.snapshot().una, 1);
    // RFC 5961 §5.2: nor is one from before the largest window.
    s.accept(". 1:1 ack 501 win 9000");
    let mut s = talk(&config());
    assert_eq!(s.inject(". 1:1 ack 2000000000 win 9000"), Err(Rejected::AckOfUnsent));
}

#[test]
fn segments_outside_of_the_window_are_acknowledged_and_dropped() {
    let mut s = talk(&config());
    assert_eq!(s.inject(". 200001:200101 ack 1 win 9000"), Err(Rejected::OutOfWindow));
    s.expect(". 1:1 ack 1").expect_nothing();
    // At the right edge an acknowledgement is good (the peer has filled our window), data is not.
    s.write(100);
    s.drain();
    assert_eq!(s.inject(". 100001:100101 ack 101 win 9000"), Err(Rejected::OutOfWindow));
    s.drain();
    s.accept(". 100001:100001 ack 101 win 9000").expect_nothing();
    assert_eq!(s.conn.snapshot().una, 101);
    // What sticks out is cut.
    s.accept(". 99001:101001 ack 101 win 9000").expect(". 101:101 ack 1 win 100000 <sack 99001:100001>");
}

#[test]
fn paws_drops_old_timestamps_and_the_echo_is_of_the_oldest_unacknowledged() {
    let base = Config::modern();
    let mut s = talk(&Config { mss: 1000, receive_buffer: 60_000, ..base });
    s.at(1.0);
    s.accept(". 1:1001 ack 1 win 9000 <ts 500 0>").expect_nothing();
    s.at(1.01);
    s.accept(". 1001:2001 ack 1 win 9000 <ts 510 0>");
    assert_eq!(s.drain(), [". 1:1 ack 2001 win 58000 <ts 1011 500>"], "RFC 7323 §4.3");
    assert_eq!(s.inject(". 2001:3001 ack 1 win 9000 <ts 499 0>"), Err(Rejected::Paws));
    assert_eq!(s.drain().len(), 1, "an acknowledgement is owed");
    assert_eq!(s.conn.readable(), 2000);
    // Across the wrap of the timestamps.
    s.accept(". 2001:3001 ack 1 win 9000 <ts 2147484000 0>").at(1.5);
    s.accept(". 3001:4001 ack 1 win 9000 <ts 100 0>").at(2.0);
    assert_eq!(s.conn.readable(), 4000);
    // RTT by echo.
    assert_eq!(s.conn.snapshot().srtt, None);
    s.drain();
    s.write(100);
    s.expect(". 1:101 ack 4001 win 56000 <ts 2001 100>");
    s.at(2.25).accept(". 4001:4001 ack 101 win 9000 <ts 300 2001>");
    assert_eq!(s.conn.snapshot().srtt, Some(Duration::from_millis(250)));
}

// ----- windows ----------------------------------------------------------------------------------------------

#[test]
fn a_closed_window_is_probed_until_it_opens() {
    let mut s = talk(&config());
    s.write(3000);
    s.drain();
    s.accept(". 1:1 ack 3001 win 0");
    s.write(5000);
    s.expect_nothing();
    s.at(20.0);
    // Backed-off probes, an old sequence number and no payload.
    let probes = s.drain();
    assert!((3..=5).contains(&probes.len()), "{probes:?}");
    assert!(probes.iter().all(|p| p == ". 3000:3000 ack 1 win 100000"), "{probes:?}");
    s.accept(". 1:1 ack 3001 win 0").expect_nothing();
    s.at(300.0);
    assert_eq!(s.conn.state(), State::Established, "a peer that answers is never given up");
    s.drain();
    s.accept(". 1:1 ack 3001 win 2000");
    assert_eq!(s.drain(), [". 3001:4001 ack 1 win 100000", ". 4001:5001 ack 1 win 100000"]);
}

#[test]
fn our_closed_window_answers_probes_and_opens_in_one_step() {
    let mut s = talk(&Config { receive_buffer: 4000, ..config() });
    for n in 0..4 {
        s.accept(&format!(". {}:{} ack 1 win 9000", 1 + n * 1000, 1001 + n * 1000));
    }
    assert_eq!(s.drain().last().map(String::as_str), Some(". 1:1 ack 4001 win 0"));
    assert!(s.inject(". 4000:4000 ack 1 win 9000").is_err());
    s.expect(". 1:1 ack 4001 win 0").expect_nothing();
    // The application drips: no silly windows (RFC 9293 §3.8.6.2.2).
    for _ in 0..19 {
        s.read(100);
        s.expect_nothing();
    }
    s.read(100);
    s.expect(". 1:1 ack 4001 win 2000").expect_nothing();
}

#[test]
fn a_dripping_receiver_is_not_fed_crumbs() {
    // The sender's half of silly-window avoidance (RFC 9293 §3.8.6.2.1).
    let mut s = talk(&config());
    s.write(50_000);
    s.drain();
    s.accept(". 1:1 ack 4001 win 0").expect_nothing();
    s.accept(". 1:1 ack 4001 win 100").expect_nothing();
    s.accept(". 1:1 ack 4001 win 900").expect_nothing();
    // After a timeout even a crumb goes.
    s.at(10.0);
    assert_eq!(s.drain()[0], ". 4001:4901 ack 1 win 100000");
}

#[test]
fn nagle_holds_small_segments_back_while_data_is_outstanding() {
    let mut s = talk(&config());
    s.write(10);
    s.expect(". 1:11");
    s.write(10);
    s.write(10);
    s.expect_nothing();
    s.write(1500);
    s.expect(". 11:1011").expect_nothing();
    s.accept(". 1:1 ack 1011 win 9000").expect(". 1011:1531").expect_nothing();
    let mut s = talk(&Config { nagle: false, ..config() });
    s.write(10);
    s.write(10);
    s.expect(". 1:11").expect(". 11:21");
}

#[test]
fn what_was_taken_back_is_not_sent() {
    let mut s: Script<Bytes> = Script::established(&config(), &sack());
    s.write(10_000);
    assert_eq!(s.drain().len(), 4);
    assert_eq!((s.conn.truncate(), s.conn.unacked()), (6000, 4000));
    let now = s.now();
    assert_eq!(s.conn.write(now, &[7; 500], 500), 500);
    s.accept(". 1:1 ack 4001 win 100000");
    assert_eq!(s.drain(), [". 4001:4501 ack 1 win 100000"]);
    let seg = parse(". 4001:4501 ack 1", OURS, OURS);
    let mut payload = [0; 500];
    s.conn.payload(&seg, &mut payload);
    assert_eq!(payload, [7; 500]);
    // A FIN that waited behind it goes at once.
    let mut s = talk(&config());
    s.write(10_000);
    s.shutdown().drain();
    s.conn.truncate();
    s.accept(". 1:1 ack 2001 win 100000");
    assert_eq!(s.drain(), ["F. 4001:4001 ack 1 win 100000"]);
}

// ----- timers -----------------------------------------------------------------------------------------------

#[test]
fn retransmissions_back_off_and_the_peer_is_given_up() {
    let mut s = talk(&Config { max_retransmissions: 3, ..config() });
    s.write(500);
    s.at(100.0);
    for (at, text) in [(0.0, ". 1:501"), (1.0, ". 1:501"), (3.0, ". 1:501"), (7.0, ". 1:501"), (15.0, "R. ")]
    {
        s.expect_at(at, text);
    }
    assert_eq!((s.conn.state(), s.events()), (State::Closed, vec![Event::TimedOut]));
    s.expect_nothing();
}

#[test]
fn karn_no_sample_from_what_was_sent_twice() {
    for rtt_source in [RttSource::Timed, RttSource::EveryAck] {
        let mut s = talk(&Config { rtt_source, ..config() });
        s.write(500);
        s.at(1.2).accept(". 1:1 ack 501 win 9000");
        assert_eq!(s.conn.snapshot().srtt, None);
        assert_eq!(s.conn.snapshot().rto, Duration::from_secs(2), "the backoff stays until a valid sample");
        s.write(500);
        s.at(1.5).accept(". 1:1 ack 1001 win 9000");
        assert_eq!(s.conn.snapshot().srtt, Some(Duration::from_millis(300)));
    }
}

#[test]
fn what_arrived_before_a_timeout_gives_no_sample() {
    // Both segments arrive, and both acknowledgements are lost.
    let mut s = talk(&Config { rtt_source: RttSource::EveryAck, ..config() });
    s.write(2000);
    s.drain();
    s.at(1.0).expect_at(1.0, ". 1:1001");
    s.at(1.3).accept(". 1:1 ack 2001 win 9000");
    assert_eq!(s.conn.snapshot().srtt, None, "1.3 s is the wait for the timer");
    s.write(500);
    s.at(1.6).accept(". 1:1 ack 2501 win 9000");
    assert_eq!(s.conn.snapshot().srtt, Some(Duration::from_millis(300)));
}

#[test]
fn after_a_timeout_what_is_selectively_acknowledged_is_skipped_or_forgotten() {
    for (keep, second) in [(true, 2001), (false, 1001)] {
        let mut s = talk(&Config { keep_sack_after_rto: keep, dup_thresh: 20, ..config() });
        s.write(4000);
        s.drain();
        s.accept(". 1:1 ack 1 win 100000 <sack 1001:2001>");
        s.drain();
        s.at(1.0).expect_at(1.0, ". 1:1001").expect_nothing();
        s.accept(". 1:1 ack 1001 win 100000");
        s.expect(&format!(". {second}:{}", second + 1000));
    }
}

#[test]
fn limited_transmit_and_fast_retransmit() {
    let mut s = talk(&config());
    s.write(20_000);
    assert_eq!(s.drain().len(), 4);
    s.accept(". 1:1 ack 1 win 100000 <sack 1001:2001>").expect(". 4001:5001").expect_nothing();
    s.accept(". 1:1 ack 1 win 100000 <sack 1001:3001>").expect(". 5001:6001").expect_nothing();
    s.accept(". 1:1 ack 1 win 100000 <sack 1001:4001>").expect(". 1:1001");
    assert_eq!(s.conn.counters().recoveries, 1);
    // Without new information an acknowledgement is no duplicate.
    let mut s = talk(&config());
    s.write(20_000);
    s.drain();
    for _ in 0..9 {
        s.accept(". 1:1 ack 1 win 100000");
    }
    s.expect_nothing();
    assert_eq!(s.conn.counters().duplicate_acks, 0);
}

#[test]
fn without_sack_a_partial_acknowledgement_shows_the_next_loss_to_every_control() {
    for cc in ["newreno", "sack", "prr", "cubic", "bbr"] {
        let cc = Control::by_name(cc).expect("known");
        let mut s: Script<Counted> = Script::established(&Config { sack: Some(false), ..config() }, &cc);
        s.write(20_000);
        // Of the segments, those at 1 and 2001 are lost.
        s.at(0.1).drain();
        for _ in 0..3 {
            s.accept(". 1:1 ack 1 win 100000");
        }
        let sent = s.drain();
        assert!(sent.iter().any(|t| t.starts_with(". 1:1001")), "{cc:?}: {sent:?}");
        s.at(0.2).accept(". 1:1 ack 2001 win 100000");
        let sent = s.drain();
        assert!(sent.iter().any(|t| t.starts_with(". 2001:3001")), "{cc:?}: {sent:?}");
        assert_eq!((s.conn.counters().timeouts, s.conn.counters().recoveries), (0, 1), "{cc:?}");
    }
}

#[test]
fn window_updates_and_data_are_no_duplicate_acknowledgements() {
    let mut s = talk(&Config { sack: Some(false), ..config() });
    s.write(4000);
    s.drain();
    for (n, win) in [(0, 90_000), (1, 91_000), (2, 92_000), (3, 93_000)] {
        let seq = 1 + n * 10;
        s.accept(&format!(". {seq}:{seq} ack 1 win {win}"));
        s.accept(&format!(". {seq}:{} ack 1 win {win}", seq + 10));
    }
    assert_eq!(s.conn.counters().duplicate_acks, 0);
}

// ----- probes -----------------------------------------------------------------------------------------------

#[test]
fn dummies_are_answered_at_once_and_change_nothing() {
    let mut s = talk(&Config { delayed_ack: Config::rfc().delayed_ack, ..config() });
    s.accept(". 1:1001 ack 1 win 9000").expect_nothing();
    s.accept(". 1:1001 ack 1 win 9000 <dummy,id 9>");
    s.expect(". 1:1 ack 1001 win 99000 <dummy-ack,id 9,sack 1:1001>").expect_nothing();
    s.accept(". 5001:6001 ack 1 win 9000 <dummy,id 10>");
    s.expect(". 1:1 ack 1001 win 99000 <dummy-ack,id 10>").expect_nothing();
    assert_eq!(s.conn.readable(), 1000);
    s.at(0.3).expect_at(0.2, ". 1:1 ack 1001").expect_nothing();
}

#[test]
fn without_support_a_dummy_is_an_ordinary_duplicate() {
    let mut s = talk(&Config { probes: ProbeNegotiation::Off, ..config() });
    s.accept(". 1:1001 ack 1 win 9000").drain();
    assert_eq!(s.inject(". 1:1001 ack 1 win 9000 <dummy>"), Err(Rejected::Duplicate));
    s.expect(". 1:1 ack 1001 win 99000 <sack 1:1001>").expect_nothing();
}

//! Peers that have vanished are given up in time, and peers that answer are not.

use skyhaul_base::Duration;
use skyhaul_cc::Config as Control;
use skyhaul_tcp::config::{DelayedAck, Keepalive};
use skyhaul_tcp::{Config, Counted, Event, State};
use skyhaul_testkit::script::Script;

/// RFC rules; MSS 1000, 100 kB buffers, one acknowledgement per segment.
fn config() -> Config {
    Config { mss: 1000, receive_buffer: 100_000, delayed_ack: DelayedAck::OFF, ..Config::rfc() }
}
fn talk(config: &Config) -> Script<Counted> {
    Script::established(config, &Control::by_name("sack").expect("known"))
}
/// Everything is acknowledged, the window is closed, and data waits.
fn closed_window(config: &Config) -> Script<Counted> {
    let mut s = talk(config);
    s.write(1000);
    s.drain();
    s.accept(". 1:1 ack 1001 win 0");
    s.write(500);
    s.expect_nothing();
    s
}

#[test]
fn a_closed_window_of_a_peer_that_has_vanished_is_not_probed_for_ever() {
    let mut s = closed_window(&Config { max_retransmissions: 4, ..config() });
    s.at(1000.0);
    let sent = s.drain();
    assert_eq!(sent.len(), 5, "four questions and a reset: {sent:?}");
    assert!(sent[..4].iter().all(|t| t.starts_with(". 1000:1000")) && sent[4].starts_with("R. "), "{sent:?}");
    assert_eq!((s.conn.state(), s.events()), (State::Closed, vec![Event::TimedOut]));
}

#[test]
fn a_closed_window_of_a_peer_that_answers_is_probed_for_ever() {
    let mut s = closed_window(&Config { max_retransmissions: 4, ..config() });
    for n in 1..200 {
        s.at(f64::from(n) * 30.0);
        s.accept(". 1:1 ack 1001 win 0");
    }
    assert_eq!(s.conn.state(), State::Established);
    assert!(s.drain().len() > 90);
}

#[test]
fn the_user_timeout_ends_what_makes_no_progress() {
    let limited = Config { user_timeout: Duration::from_secs(20), ..config() };
    // Data that nobody acknowledges: on the second.
    let mut s = talk(&limited);
    s.at(5.0).write(500);
    s.at(24.9);
    assert_eq!(s.conn.state(), State::Established);
    s.at(25.1);
    assert_eq!((s.conn.state(), s.events()), (State::Closed, vec![Event::TimedOut]));
    // A window that stays closed, though the peer answers.
    let mut s = closed_window(&limited);
    for n in 1..40 {
        s.at(f64::from(n)).drain();
        if s.conn.state() == State::Established {
            let _ = s.inject(". 1:1 ack 1001 win 0");
        }
    }
    assert_eq!((s.conn.state(), s.events()), (State::Closed, vec![Event::TimedOut]));
    // Progress, however slow, counts.
    let mut s = talk(&limited);
    s.write(20_000);
    for n in 1..15u32 {
        s.at(f64::from(n) * 15.0);
        s.accept(&format!(". 1:1 ack {} win 100000", 1 + n * 1000));
    }
    assert_eq!(s.conn.state(), State::Established);
}

#[test]
fn a_silent_peer_is_asked_and_given_up() {
    let seconds = Duration::from_secs;
    let keepalive = Keepalive { idle: seconds(60), interval: seconds(5), probes: 3 };
    let mut s = talk(&Config { keepalive, ..config() });
    s.at(40.0).accept(". 1:1001 ack 1 win 9000").drain();
    // From the last segment on, not from the beginning; an answer ends the questions.
    s.at(99.0).expect_nothing();
    s.at(101.0).expect_at(100.0, ". 0:0 ack 1001").expect_nothing();
    s.accept(". 1001:1001 ack 1 win 9000");
    s.at(160.0).expect_nothing();
    s.at(1000.0);
    for at in [161.0, 166.0, 171.0] {
        s.expect_at(at, ". 0:0 ack 1001");
    }
    s.expect_at(176.0, "R. ").expect_nothing();
    assert_eq!((s.conn.state(), s.events()), (State::Closed, vec![Event::TimedOut]));
    // Off, nobody is asked.
    let mut s = talk(&config());
    s.at(1e6).expect_nothing();
}

#[test]
fn the_end_of_a_write_is_pushed_on_a_wire() {
    let wire = Config { segment_limit: Some(1000), nagle: false, ..config() };
    let mut s = talk(&wire);
    s.write(2500);
    assert_eq!(s.drain().iter().map(|t| &t[..2]).collect::<Vec<_>>(), [". ", ". ", "P."]);
    // What is not at the end is not.
    s.accept(". 1:1 ack 2501 win 100000");
    s.write(9000);
    assert!(s.drain().iter().all(|t| t.starts_with(". ")));
    let mut s = talk(&config());
    s.write(500);
    s.expect(". 1:501");
}

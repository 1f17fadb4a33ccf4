//! Connections that the application has closed in both directions: how long they last, and what ends them.

use skyhaul_base::Duration;
use skyhaul_cc::Config as Control;
use skyhaul_tcp::config::DelayedAck;
use skyhaul_tcp::{Config, Counted, Event, State};
use skyhaul_testkit::script::Script;

fn config() -> Config {
    Config { mss: 1000, receive_buffer: 100_000, delayed_ack: DelayedAck::OFF, ..Config::rfc() }
}
fn talk(config: &Config) -> Script<Counted> {
    Script::established(config, &Control::by_name("sack").expect("known"))
}

#[test]
fn the_fin_of_a_peer_is_not_awaited_for_ever() {
    let mut s = talk(&config());
    s.abandon().expect("F. 1:1 ack 1");
    s.at(5.0).drain();
    s.accept(". 1:1 ack 2 win 50000");
    assert_eq!(s.conn.state(), State::FinWait2);
    s.at(64.9).expect_nothing();
    assert_eq!(s.conn.state(), State::FinWait2);
    s.at(65.0).expect("R. 2:2 ack 1");
    assert_eq!((s.conn.state(), s.events()), (State::Closed, vec![Event::TimedOut]));
}

#[test]
fn a_half_closed_connection_whose_application_reads_stays() {
    let mut s = talk(&config());
    s.shutdown().expect("F. 1:1 ack 1");
    s.accept(". 1:1 ack 2 win 50000");
    s.at(100_000.0).expect_nothing();
    assert_eq!(s.conn.state(), State::FinWait2);
    s.accept(". 1:1001 ack 2 win 50000").expect(". 2:2 ack 1001");
    // The wait for the FIN begins when the application closes this direction as well.
    s.read(1000);
    s.at(100_010.0).abandon();
    s.at(100_069.9).expect_nothing();
    s.at(100_070.0).expect("R. 2:2 ack 1001");
}

#[test]
fn its_length_is_a_choice() {
    let mut s = talk(&Config { fin_timeout: Duration::from_secs(3), ..config() });
    s.abandon().expect("F. ");
    s.accept(". 1:1 ack 2 win 50000");
    s.at(3.0).expect("R. ");
    let mut s = talk(&Config { fin_timeout: Duration::ZERO, ..config() });
    s.abandon().expect("F. ");
    s.accept(". 1:1 ack 2 win 50000");
    s.at(1_000_000.0).expect_nothing();
    assert_eq!(s.conn.state(), State::FinWait2);
}

#[test]
fn a_fin_that_comes_in_time_leads_to_a_whole_time_wait() {
    let mut s = talk(&config());
    s.abandon().expect("F. ");
    s.accept(". 1:1 ack 2 win 50000");
    s.at(59.0).accept("F. 1:1 ack 2 win 50000").expect(". 2:2 ack 2");
    assert_eq!((s.conn.state(), s.events()), (State::TimeWait, vec![Event::PeerFinished, Event::Closed]));
    s.at(118.9).expect_nothing();
    assert_eq!(s.conn.state(), State::TimeWait);
    s.at(119.0).expect_nothing();
    assert_eq!(s.conn.state(), State::Closed);
}

#[test]
fn text_that_nobody_will_read_is_answered_with_a_reset() {
    // Unread when the application closes; before our FIN is acknowledged; after it.
    let mut s = talk(&config());
    s.accept(". 1:1001 ack 1 win 50000").expect(". 1:1 ack 1001");
    s.abandon().expect("R. 1:1 ack 1001");
    for acked in [1, 2] {
        let mut s = talk(&config());
        s.abandon().expect("F. 1:1 ack 1");
        s.accept(&format!(". 1:1 ack {acked} win 50000"));
        // With the number that the peer expects (RFC 9293 §3.10.7.1).
        s.accept(&format!(". 1:101 ack {acked} win 50000")).expect(&format!("R {acked}:{acked}"));
        assert_eq!(s.conn.state(), State::Closed);
    }
    // Data with an acknowledgement of bytes never sent comes from no peer, and ends nothing.
    let mut s = talk(&config());
    s.abandon().expect("F. 1:1 ack 1");
    assert!(s.inject(". 1:101 ack 70000 win 50000").is_err());
    assert_eq!(s.conn.state(), State::FinWait1);
}

#[test]
fn what_was_written_still_arrives_however_slowly_but_a_closed_window_is_not_waited_for_without_end() {
    let mut s = talk(&config());
    s.write(20_000);
    s.abandon();
    s.drain();
    // A little every 50 s: far longer than the limit in all.
    for n in 1..=10u32 {
        s.at(f64::from(n) * 50.0);
        s.accept(&format!(". 1:1 ack {} win 2000", 1 + 1000 * n));
    }
    assert_eq!(s.conn.state(), State::FinWait1);
    // The peer closes its window and answers every window probe.
    let una = s.conn.sender().max();
    s.accept(&format!(". 1:1 ack {una} win 0"));
    s.drain();
    for n in 1..=200u32 {
        s.at(500.0 + f64::from(n));
        if s.conn.state() != State::Closed {
            s.accept(&format!(". 1:1 ack {una} win 0"));
        }
        if f64::from(n) < 59.0 {
            assert_eq!(s.conn.state(), State::FinWait1, "after {n} s");
        }
    }
    assert_eq!((s.conn.state(), s.events()), (State::Closed, vec![Event::TimedOut]));
    assert!(s.drain().last().is_some_and(|t| t.starts_with("R. ")));
}

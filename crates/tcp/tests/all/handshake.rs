//! Opening and closing a connection, segment by segment.

use crate::common;

use skyhaul_base::Duration;
use skyhaul_cc::Config as Control;
use skyhaul_tcp::config::ProbeNegotiation;
use skyhaul_tcp::{Bytes, Config, Counted, Event, Flags, Rejected, State};
use skyhaul_testkit::pair::{Act, Handshake};
use skyhaul_testkit::script::Script;
use skyhaul_testkit::{Pair, Setup, Side, Verdict};

fn reno() -> Control {
    Control::by_name("sack").expect("known")
}
/// RFC rules; MSS 1000, 100 kB buffers.
fn config() -> Config {
    Config { mss: 1000, receive_buffer: 100_000, ..Config::rfc() }
}
fn client(config: &Config) -> Script<Counted> {
    Script::client(config, &reno())
}
fn server(config: &Config) -> Script<Counted> {
    Script::server(config, &reno())
}
fn established() -> Script<Counted> {
    Script::established(&config(), &reno())
}

// ----- opening ----------------------------------------------------------------------------------------------

#[test]
fn the_three_way_handshake_of_a_client() {
    let mut s = client(&config());
    s.expect("S 0:0 win 65535 <mss 1000,sackOK,wscale 1,probes>").expect_nothing();
    s.at(0.5);
    s.accept("S. 0:0 ack 1 win 50000 <mss 1400,sackOK,wscale 2,probes>").expect(". 1:1 ack 1 win 100000");
    assert_eq!((s.conn.state(), s.events()), (State::Established, vec![Event::Connected]));
    assert_eq!(s.conn.snapshot().srtt, Some(Duration::from_millis(500)), "the SYN gives the first RTT");
}

#[test]
fn the_three_way_handshake_of_a_server() {
    let mut s = server(&config());
    s.expect_nothing();
    s.accept("S 0:0 win 50000 <mss 1400,sackOK,wscale 2,probes>");
    s.expect("S. 0:0 ack 1 win 65535 <mss 1000,sackOK,wscale 1,probes>").expect_nothing();
    s.at(0.5).accept(". 1:1 ack 1 win 50000").expect_nothing();
    assert_eq!((s.conn.state(), s.events()), (State::Established, vec![Event::Connected]));
}

#[test]
fn timestamps_are_compared_with_that_of_a_syn_however_long_the_listener_has_waited() {
    let mut s = server(&Config { timestamps: true, ..config() });
    // Longer than the pause after which timestamps are not compared (RFC 7323 §5.5).
    s.at(30.0 * 86_400.0);
    s.accept("S 0:0 win 50000 <mss 1400,ts 500 0>").drain();
    assert_eq!(s.inject(". 1:1 ack 1 win 50000 <ts 499 0>"), Err(Rejected::Paws));
    s.accept(". 1:1 ack 1 win 50000 <ts 500 0>");
    assert_eq!(s.conn.state(), State::Established);
}

#[test]
fn each_option_needs_both_sides() {
    // What the peer does not offer is not used, and what we do not offer neither.
    let all = Config { timestamps: true, ..config() };
    let cases: [(&str, &str); 5] = [
        ("<mss 500>", "S. 0:0 ack 1 win 65535 <mss 1000>"),
        ("<mss 500,sackOK>", "S. 0:0 ack 1 win 65535 <mss 1000,sackOK>"),
        ("<mss 500,wscale 0>", "S. 0:0 ack 1 win 65535 <mss 1000,wscale 1>"),
        ("<mss 500,probes>", "S. 0:0 ack 1 win 65535 <mss 1000,probes>"),
        ("<mss 500,ts 7 0>", "S. 0:0 ack 1 win 65535 <mss 1000,ts 1 7>"),
    ];
    for (offered, answer) in cases {
        let mut s = server(&all);
        s.accept(&format!("S 0:0 win 5000 {offered}"));
        assert_eq!(s.drain(), [answer], "{offered}");
    }
    let none = Config {
        timestamps: false,
        window_scaling: false,
        sack: Some(false),
        probes: ProbeNegotiation::Off,
        ..config()
    };
    let mut s = server(&none);
    s.accept("S 0:0 win 5000 <mss 500,sackOK,wscale 3,probes,ts 7 0>");
    assert_eq!(s.drain(), ["S. 0:0 ack 1 win 65535 <mss 1000>"]);
    let mut s = client(&none);
    s.expect("S 0:0 win 65535 <mss 1000>");
    s.accept("S. 0:0 ack 1 win 5000 <mss 500,sackOK,wscale 3,probes,ts 7 0>");
    assert_eq!(s.drain(), [". 1:1 ack 1 win 65535"]);
}

#[test]
fn segments_respect_the_peers_mss_and_536_without_one() {
    for (option, len) in [("<mss 400>", 400), ("<mss 2000>", 1000), ("", 536)] {
        let mut s = client(&config());
        s.drain();
        s.accept(&format!("S. 0:0 ack 1 win 50000 {option}"));
        s.drain();
        s.write(3000);
        s.expect(&format!(". 1:{} ack 1", 1 + len));
    }
}

#[test]
fn lost_syns_are_repeated_with_backoff_and_cost_the_initial_window() {
    let mut s = client(&config());
    s.at(3.5);
    s.expect_at(0.0, "S 0:0")
        .expect_at(1.0, "S 0:0")
        .expect_at(3.0, "S 0:0 win 65535 <mss 1000,sackOK,wscale 1>");
    s.accept("S. 0:0 ack 1 win 50000 <mss 1000>").drain();
    s.write(10_000);
    s.expect(". 1:1001").expect_nothing();
    assert_eq!(s.conn.snapshot().cwnd, 1.0, "RFC 5681 §3.1");
    assert_eq!(s.conn.snapshot().srtt, None, "Karn");
}

#[test]
fn an_unanswered_syn_gives_up() {
    let mut s = client(&Config { max_retransmissions: 3, ..config() });
    s.at(100.0);
    assert_eq!(s.drain().len(), 4);
    assert_eq!((s.conn.state(), s.events()), (State::Closed, vec![Event::TimedOut]));
}

#[test]
fn a_lost_syn_ack_is_repeated_at_the_timer_and_at_a_repeated_syn() {
    let mut s = server(&config());
    s.accept("S 0:0 win 50000 <mss 1000>").expect("S. 0:0 ack 1");
    s.at(0.5).accept("S 0:0 win 50000 <mss 1000>").expect_at(0.5, "S. 0:0 ack 1");
    s.at(3.0);
    s.expect("S. 0:0 ack 1").expect_nothing();
}

#[test]
fn a_lost_third_ack_is_made_up_for_by_data_and_by_a_challenge() {
    let mut s = server(&config());
    s.accept("S 0:0 win 50000 <mss 1000>").drain();
    s.accept(". 1:501 ack 1 win 50000");
    assert_eq!((s.conn.state(), s.conn.readable()), (State::Established, 500));
    // The client that is asked again repeats its acknowledgement.
    let mut c = client(&config());
    c.accept("S. 0:0 ack 1 win 50000 <mss 1000>").drain();
    assert_eq!(c.inject("S. 0:0 ack 1 win 50000 <mss 1000>"), Err(Rejected::Challenged));
    c.expect(". 1:1 ack 1").expect_nothing();
}

#[test]
fn every_single_loss_of_a_handshake_is_survived() {
    for (side, lost) in [(Side::Client, 0), (Side::Server, 0), (Side::Client, 1)] {
        for config in [Config::rfc(), Config::modern(), Config::ns2_2001()] {
            let mut p: Pair<Bytes> = Setup::new(config, &reno(), Duration::from_millis(100)).build();
            p.faults(side, move |d| if d.index == lost { Verdict::Lose } else { Verdict::Deliver });
            p.send(Side::Client, 5000, true);
            p.send(Side::Server, 7000, true);
            assert!(p.run_to_end(common::secs(1e3)) && p.finished(), "{side:?} {lost}");
        }
    }
}

#[test]
fn simultaneous_open() {
    let mut setup = Setup::new(config(), &reno(), Duration::from_millis(100));
    setup.handshake = Handshake::Simultaneous;
    let mut p: Pair<Bytes> = setup.build();
    p.send(Side::Client, 20_000, true);
    p.send(Side::Server, 20_000, true);
    p.run_until(common::secs(0.35));
    let handshake = |s: Side| p.sent(s).filter(|e| e.segment.flags.has(Flags::SYN)).count();
    assert_eq!((handshake(Side::Client), handshake(Side::Server)), (2, 2), "SYN and SYN-ACK each");
    for side in Side::BOTH {
        assert_eq!(p.end(side).events, [Event::Connected]);
        assert!(p.conn(side).snapshot().cwnd >= 4.0, "no SYN was lost");
        // Each SYN-ACK answers a SYN that left before the own SYN-ACK did, which would show half of the RTT.
        assert_eq!(p.conn(side).snapshot().srtt, None);
    }
    assert!(p.run_to_end(common::secs(1e3)) && p.finished());
}

#[test]
fn nonsense_before_the_connection_is_answered_with_reset() {
    let mut s = server(&config());
    assert!(s.inject(". 1:1 ack 77 win 5").is_err());
    s.expect("R 77:77").expect_nothing();
    assert!(s.inject("R 1:1 win 0").is_err() && s.inject("F 1:1 win 0").is_err());
    s.expect_nothing();
    let mut s = client(&config());
    s.drain();
    assert_eq!(s.inject("S. 0:0 ack 77 win 5"), Err(Rejected::AckOfUnsent));
    s.expect("R 77:77");
    assert_eq!(s.conn.state(), State::SynSent);
    s.accept("R. 0:0 ack 1 win 0");
    assert_eq!((s.conn.state(), s.events()), (State::Closed, vec![Event::Reset]), "refused");
    // Only the acknowledgement of our SYN establishes.
    let mut s = server(&config());
    s.accept("S 0:0 win 50000 <mss 1000>").drain();
    for ack in [0, 2, 5000] {
        assert_eq!(s.inject(&format!(". 1:1 ack {ack} win 5")), Err(Rejected::AckOfUnsent));
        s.expect(&format!("R {ack}:{ack}"));
    }
    assert_eq!(s.conn.state(), State::SynReceived);
}

// ----- closing ----------------------------------------------------------------------------------------------

#[test]
fn we_close_first() {
    let mut s = established();
    s.write(500);
    s.shutdown();
    s.expect(". 1:501 ack 1").expect("F. 501:501 ack 1").expect_nothing();
    assert_eq!((s.conn.state(), s.write(1)), (State::FinWait1, 0));
    s.accept(". 1:1 ack 502 win 100000");
    assert_eq!(s.conn.state(), State::FinWait2);
    s.accept(". 1:301 ack 502 win 100000");
    assert_eq!(s.conn.readable(), 300, "half-closed: the peer still sends");
    s.accept("F. 301:301 ack 502 win 100000");
    assert_eq!((s.conn.state(), s.events()), (State::TimeWait, vec![Event::PeerFinished, Event::Closed]));
    s.expect(". 502:502 ack 302").expect_nothing();
    // A repeated FIN is acknowledged and restarts the 60 s.
    s.at(40.0);
    s.accept("F. 301:301 ack 502 win 100000");
    s.expect(". 502:502 ack 302");
    assert_eq!(s.inject("R 302:302 win 0"), Err(Rejected::ResetInTimeWait), "RFC 1337 §3");
    s.at(99.0);
    assert_eq!(s.conn.state(), State::TimeWait);
    s.at(100.5);
    assert_eq!(s.conn.state(), State::Closed);
    s.expect_nothing();
}

#[test]
fn the_peer_closes_first() {
    let mut s = established();
    s.accept("F. 1:301 ack 1 win 100000").expect(". 1:1 ack 302");
    assert_eq!((s.conn.state(), s.events()), (State::CloseWait, vec![Event::PeerFinished]));
    assert_eq!(s.write(2000), 2000);
    s.expect(". 1:1001 ack 302").expect(". 1001:2001 ack 302");
    s.accept(". 302:302 ack 2001 win 100000").shutdown().expect("F. 2001:2001 ack 302");
    assert_eq!(s.conn.state(), State::LastAck);
    s.accept(". 302:302 ack 2002 win 100000");
    assert_eq!((s.conn.state(), s.events()), (State::Closed, vec![Event::Closed]));
    assert_eq!(s.read(500), 300, "what came before can still be read");
}

#[test]
fn both_close_at_once() {
    let mut s = established();
    s.shutdown().expect("F. 1:1 ack 1");
    s.accept("F. 1:1 ack 1 win 100000").expect(". 2:2 ack 2");
    assert_eq!(s.conn.state(), State::Closing);
    s.accept(". 2:2 ack 2 win 100000");
    assert_eq!((s.conn.state(), s.events()), (State::TimeWait, vec![Event::PeerFinished, Event::Closed]));
    // FIN and the acknowledgement of ours together.
    let mut s = established();
    s.shutdown().accept("F. 1:1 ack 2 win 100000");
    assert_eq!(s.conn.state(), State::TimeWait);
}

#[test]
fn a_fin_that_comes_before_the_data_waits_for_it() {
    let mut s = established();
    s.accept("F. 1001:2001 ack 1 win 100000").expect(". 1:1 ack 1");
    assert_eq!(s.conn.state(), State::Established);
    s.accept(". 1:1001 ack 1 win 100000").expect(". 1:1 ack 2002");
    assert_eq!((s.conn.state(), s.events()), (State::CloseWait, vec![Event::PeerFinished]));
    assert_eq!(s.conn.readable(), 2000);
}

#[test]
fn a_fin_waits_for_room_in_the_window() {
    let mut s = established();
    s.write(5000);
    s.drain();
    s.accept(". 1:1 ack 3001 win 2000");
    s.shutdown();
    assert_eq!(s.drain(), [". 4001:5001 ack 1 win 100000"], "the fifth segment, up to the edge");
    s.accept(". 1:1 ack 5001 win 0").expect_nothing();
    s.at(30.0);
    assert!(s.drain().iter().all(|x| x.starts_with(". 5000:5000")), "window probes");
    s.accept(". 1:1 ack 5001 win 1000").expect("F. 5001:5001");
}

#[test]
fn closing_while_the_handshake_runs() {
    let mut s = client(&config());
    s.write(500);
    s.shutdown().drain();
    assert_eq!(s.write(5), 0);
    s.accept("S. 0:0 ack 1 win 50000 <mss 1000>");
    assert_eq!(s.drain(), ["F. 1:501 ack 1 win 65535"], "the third ACK rides on it");
    let mut s = server(&config());
    s.shutdown();
    assert_eq!(s.conn.state(), State::Closed);
}

// ----- resets -----------------------------------------------------------------------------------------------

/// Scripts in each synchronised state, with the sequence number the peer would use next.
fn in_each_state() -> Vec<(Script<Counted>, u32)> {
    let mut all = Vec::new();
    all.push((established(), 1));
    let mut s = established();
    s.shutdown();
    all.push((s, 1)); // FIN-WAIT-1
    let mut s = established();
    s.shutdown().accept(". 1:1 ack 2 win 9999");
    all.push((s, 1)); // FIN-WAIT-2
    let mut s = established();
    s.accept("F. 1:1 ack 1 win 9999");
    all.push((s, 2)); // CLOSE-WAIT
    let mut s = established();
    s.accept("F. 1:1 ack 1 win 9999").shutdown();
    all.push((s, 2)); // LAST-ACK
    let mut s = established();
    s.shutdown().accept("F. 1:1 ack 1 win 9999");
    all.push((s, 2)); // CLOSING
    let mut s = server(&config());
    s.accept("S 0:0 win 50000 <mss 1000>");
    all.push((s, 1)); // SYN-RECEIVED
    for (s, _) in &mut all {
        s.drain();
        s.events();
    }
    all
}

#[test]
fn an_exact_reset_ends_the_connection_in_every_state() {
    for (mut s, seq) in in_each_state() {
        let state = s.conn.state();
        s.accept(&format!("R {seq}:{seq} win 0"));
        assert_eq!((s.conn.state(), s.events()), (State::Closed, vec![Event::Reset]), "{state:?}");
        s.expect_nothing();
        s.at(1e4).expect_nothing();
    }
}

#[test]
fn challenges_are_rationed() {
    // RFC 5961 §7: ten in five seconds, whatever calls for them.
    let mut s = established();
    let blind = |s: &mut Script<Counted>| {
        assert_eq!(s.inject("S 5:5 win 5"), Err(Rejected::Challenged));
        assert_eq!(s.inject("R 5:5 win 5"), Err(Rejected::Challenged));
        assert_eq!(s.inject(". 1:1 ack 5000 win 5"), Err(Rejected::AckOfUnsent));
        s.drain().len()
    };
    s.at(1.0);
    assert_eq!((0..100).map(|_| blind(&mut s)).sum::<usize>(), 10);
    s.at(5.9);
    assert_eq!(blind(&mut s), 0);
    // The next period. An acknowledgement that data call for is none of them.
    s.at(6.0);
    assert_eq!((0..100).map(|_| blind(&mut s)).sum::<usize>(), 10);
    s.accept(". 1001:2001 ack 1 win 5000").expect(". 1:1 ack 1 win").expect_nothing();
}

#[test]
fn blind_resets_and_syns_are_challenged() {
    // RFC 5961 §3.2, §4.2.
    for (mut s, seq) in in_each_state() {
        let state = s.conn.state();
        let near = format!("R {0}:{0} win 0", seq + 100);
        let far = format!("R {0}:{0} win 0", seq + 500_000);
        if state != State::SynReceived {
            assert_eq!(s.inject(&near), Err(Rejected::Challenged), "{state:?}");
            assert_eq!(s.drain().len(), 1, "a challenge");
            assert_eq!(s.inject(&format!("S {seq}:{seq} win 5")), Err(Rejected::Challenged));
            assert_eq!(s.drain().len(), 1, "a challenge");
        }
        assert_eq!(s.inject(&far), Err(Rejected::OutOfWindow), "{state:?}");
        s.expect_nothing();
        assert_eq!(s.conn.state(), state);
    }
}

#[test]
fn abort_resets_the_peer_in_every_state() {
    for (mut s, seq) in in_each_state() {
        let before = s.conn.state();
        s.abort();
        let sent = s.drain();
        assert_eq!(sent.len(), 1, "{before:?}");
        assert!(sent[0].starts_with("R. ") && sent[0].contains(&format!("ack {seq}")), "{}", sent[0]);
        assert_eq!(s.conn.state(), State::Closed);
        s.at(1e4).expect_nothing();
    }
    let mut s = client(&config());
    s.drain();
    s.abort().expect_nothing();
}

#[test]
fn an_aborted_connection_with_data_in_flight_ends_on_both_sides() {
    let mut p: Pair<Counted> = Setup::new(config(), &reno(), Duration::from_millis(100)).build();
    p.send(Side::Client, 1_000_000, false);
    p.faults(Side::Client, |d| if d.index == 9 { Verdict::Lose } else { Verdict::Deliver });
    p.at(common::secs(1.05), Side::Client, Act::Abort);
    assert!(p.run_to_end(common::secs(100.0)));
    assert_eq!(p.conn(Side::Server).state(), State::Closed);
    assert_eq!(p.end(Side::Server).events, [Event::Connected, Event::Reset]);
    assert!(p.now() < common::secs(3.0), "a closed endpoint answers with RST");
}

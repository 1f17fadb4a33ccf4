//! Data in a SYN, segment by segment.

use skyhaul_base::{Duration, Instant};
use skyhaul_cc::Config as Control;
use skyhaul_tcp::{Bytes, Config, Counted, Early, Event, State};
use skyhaul_testkit::pair::{Act, EarlyData};
use skyhaul_testkit::script::Script;
use skyhaul_testkit::{Pair, Setup, Side, Verdict};

fn reno() -> Control {
    Control::by_name("sack").expect("known")
}
/// RFC rules; MSS 1000, 100 kB buffers.
fn config() -> Config {
    Config { mss: 1000, receive_buffer: 100_000, ..Config::rfc() }
}
fn client(written: u64, most: u32) -> Script<Counted> {
    Script::early_client(&config(), &reno(), written, most)
}
fn server() -> Script<Counted> {
    Script::early_server(&config(), &reno())
}
const ANSWER: &str = "win 50000 <mss 1000,sackOK,wscale 2>";

#[test]
fn a_syn_carries_what_was_written_as_far_as_it_may() {
    for (written, most, len) in [(0, 500, 0), (300, 500, 300), (900, 500, 500), (900, 0, 0)] {
        let mut s = client(written, most);
        let window = if most > 0 { 50_000 } else { 65_535 };
        s.expect(&format!("S 0:{len} win {window} <mss 1000")).expect_nothing();
        assert_eq!(s.conn.early().sent, len);
    }
}

#[test]
fn the_peers_acknowledgement_says_how_much_was_taken() {
    for taken in [0, 1, 200, 500] {
        let mut s = client(900, 500);
        s.expect("S 0:500");
        s.at(0.5).accept(&format!("S. 0:0 ack {} {ANSWER}", 1 + taken));
        s.expect(&format!(". {}:901 ack 1", 1 + taken)).expect_nothing();
        assert_eq!(s.conn.early(), Early { sent: 500, taken, repeated: false });
        assert_eq!((s.conn.state(), s.conn.unacked()), (State::Established, 900 - u64::from(taken)));
        assert_eq!(s.conn.snapshot().srtt, Some(Duration::from_millis(500)));
        s.at(1.0).accept(". 1:1 ack 901 win 50000");
        assert_eq!(s.conn.unacked(), 0);
    }
}

#[test]
fn what_was_never_sent_is_not_acknowledged() {
    for ack in [502, 901, 0] {
        let mut s = client(900, 500);
        s.expect("S 0:500");
        assert!(s.inject(&format!("S. 0:0 ack {ack} {ANSWER}")).is_err());
        s.expect(&format!("R {ack}:{ack}")).expect_nothing();
        assert_eq!(s.conn.state(), State::SynSent);
    }
}

#[test]
fn a_refusal_of_a_syn_with_data_is_one() {
    // A host resets what it was sent; a gateway that has not taken the data only the SYN.
    for ack in [1, 501] {
        let mut s = client(500, 500);
        s.expect("S 0:500");
        s.accept(&format!("R. 0:0 ack {ack} win 0"));
        assert_eq!((s.conn.state(), s.events()), (State::Closed, vec![Event::Reset]));
    }
}

#[test]
fn a_repeated_syn_carries_nothing_and_keeps_its_options() {
    let mut s = client(500, 500);
    s.at(3.5);
    let options = "<mss 1000,sackOK,wscale 1,probes>";
    s.expect_at(0.0, &format!("S 0:500 win 50000 {options}"));
    s.expect_at(1.0, &format!("S 0:0 win 50000 {options}"));
    s.expect_at(3.0, &format!("S 0:0 win 50000 {options}"));
    // The first one has arrived after all.
    s.accept(&format!("S. 0:0 ack 501 {ANSWER}")).expect(". 501:501 ack 1");
    assert_eq!(s.conn.early(), Early { sent: 500, taken: 500, repeated: true });
}

#[test]
fn data_of_a_syn_is_read_and_answered_before_the_handshake_is_complete() {
    let mut s = server();
    s.accept("S 0:300 win 50000 <mss 1000,sackOK,wscale 2>");
    s.expect("S. 0:0 ack 301 win 65235 <mss 1000,sackOK,wscale 1>").expect_nothing();
    assert_eq!((s.conn.state(), s.conn.readable()), (State::SynReceived, 300));
    assert_eq!(s.read(300), 300);
    s.write(2000);
    s.expect(". 1:1001 ack 301").expect(". 1001:2001 ack 301").expect_nothing();
    assert!(s.events().is_empty());
    // The acknowledgement of the SYN-ACK, and then of the data.
    s.at(0.5).accept(". 301:301 ack 1 win 10000").expect_nothing();
    assert_eq!((s.conn.state(), s.events()), (State::Established, vec![Event::Connected]));
    assert_eq!(s.conn.snapshot().srtt, Some(Duration::from_millis(500)), "the handshake's RTT");
    s.accept(". 301:301 ack 2001 win 10000");
    assert_eq!(s.conn.unacked(), 0);
}

#[test]
fn data_acknowledges_the_handshake_too_and_a_fin_may_leave_before() {
    let mut s = server();
    s.accept("S 0:300 win 50000 <mss 1000,sackOK,wscale 2>").expect("S. 0:0 ack 301");
    s.read(300);
    s.write(500);
    s.shutdown();
    s.expect(". 1:501 ack 301").expect("F. 501:501 ack 301").expect_nothing();
    s.accept("F. 301:401 ack 502 win 10000");
    assert_eq!(s.conn.state(), State::TimeWait);
    assert_eq!(s.events(), [Event::Connected, Event::PeerFinished, Event::Closed]);
}

#[test]
fn without_permission_the_data_of_a_syn_is_ignored() {
    let mut s = Script::<Counted>::server(&config(), &reno());
    s.accept("S 0:300 win 50000 <mss 1000>").expect("S. 0:0 ack 1 win 65535");
    assert_eq!(s.conn.readable(), 0);
    s.write(100);
    s.expect_nothing();
}

#[test]
fn a_lost_syn_ack_is_repeated_and_data_too() {
    let mut s = server();
    s.accept("S 0:300 win 50000 <mss 1000,sackOK>").expect("S. 0:0 ack 301");
    s.write(500);
    s.expect(". 1:501");
    // The peer repeats its SYN; or the timer expires, that of the data as well.
    s.at(0.4).accept("S 0:0 win 50000 <mss 1000,sackOK>").expect("S. 0:0 ack 301").expect_nothing();
    s.at(3.0);
    let left = s.drain();
    assert!(left.iter().any(|l| l.starts_with("S. 0:0 ack 301")), "{left:?}");
    assert!(left.iter().any(|l| l.starts_with(". 1:501 ack 301")), "{left:?}");
    s.accept(". 301:301 ack 501 win 50000");
    assert_eq!((s.conn.state(), s.conn.unacked()), (State::Established, 0));
}

#[test]
fn an_acknowledgement_of_what_was_not_sent_is_no_handshake() {
    let mut s = server();
    s.accept("S 0:300 win 50000 <mss 1000>").expect("S. 0:0 ack 301");
    s.write(500);
    s.drain();
    for ack in [0, 502] {
        assert!(s.inject(&format!(". 301:301 ack {ack} win 50000")).is_err());
        assert_eq!(s.conn.state(), State::SynReceived);
    }
}

#[test]
fn a_connection_that_nobody_confirms_ends() {
    let mut s = Script::<Counted>::early_server(&Config { max_retransmissions: 3, ..config() }, &reno());
    s.accept("S 0:300 win 50000 <mss 1000>");
    s.write(500);
    s.at(200.0);
    assert_eq!((s.conn.state(), s.events()), (State::Closed, vec![Event::TimedOut]));
    // An abort before that tells the peer.
    let mut s = server();
    s.accept("S 0:300 win 50000 <mss 1000>").expect("S. 0:0 ack 301");
    s.abort().expect("R. 1:1 ack 301").expect_nothing();
}

/// When the server has the request, and when the client has all of the answer, RTTs.
fn exchange(early: bool, request: u64, answer: u64, lost: Option<(Side, u64)>) -> [f64; 2] {
    let rtt = Duration::from_millis(500);
    let mut setup = Setup::new(config(), &reno(), rtt / 2);
    let most = if early { 1400 } else { 0 };
    setup.early = Some(EarlyData { written: request, most, taken: early });
    // The server answers as soon as it has read the request.
    let mut p: Pair<Bytes> = setup.build();
    if let Some((side, index)) = lost {
        p.faults(side, move |d| if d.index == index { Verdict::Lose } else { Verdict::Deliver });
    }
    p.at(Instant::ZERO, Side::Client, Act::Shutdown);
    let (mut asked, mut answered) = (None, None);
    while p.step() {
        if asked.is_none() && p.end(Side::Server).received == request {
            asked = Some(p.now());
            p.send(Side::Server, answer, true);
        }
        if answered.is_none()
            && p.end(Side::Client).received == answer
            && p.conn(Side::Client).peer_finished()
        {
            answered = Some(p.now());
        }
    }
    assert!(p.finished());
    [asked, answered].map(|at| at.expect("happened").as_nanos() as f64 / rtt.as_nanos() as f64)
}

#[test]
fn an_exchange_takes_one_round_trip_less() {
    assert_eq!(exchange(false, 300, 2000, None), [1.5, 2.0]);
    assert_eq!(exchange(true, 300, 2000, None), [0.5, 1.0]);
    // More than the SYN carries: the rest follows the handshake.
    assert_eq!(exchange(true, 3000, 2000, None), [1.5, 2.0]);
}

#[test]
fn a_lost_syn_or_syn_ack_costs_time_and_nothing_else() {
    for lost in [(Side::Client, 0), (Side::Server, 0), (Side::Server, 1), (Side::Client, 1)] {
        let [asked, answered] = exchange(true, 300, 2000, Some(lost));
        assert!(asked < answered && answered < 20.0, "{lost:?}: {asked} {answered}");
    }
}

#[test]
fn the_window_of_a_syn_with_data_is_scaled() {
    // An answer of 200 kB with an initial window as large: it needs no second round trip.
    let big = Config { receive_buffer: 1 << 20, ..config() };
    let rules = skyhaul_cc::Rules { initial_window: skyhaul_cc::InitialWindow::Segments(300.0), ..big.rules };
    for (scaled, sent) in [(false, 8), (true, 200)] {
        let mut s = Script::<Counted>::server(&Config { rules, ..big }, &reno());
        s.conn.take_early(scaled);
        // The field of a window of a megabyte, scaled by seven bits.
        s.accept("S 0:300 win 8192 <mss 1000,sackOK,wscale 7>").expect("S. 0:0 ack 301");
        s.write(200_000);
        assert_eq!(s.drain().len(), sent);
    }
}

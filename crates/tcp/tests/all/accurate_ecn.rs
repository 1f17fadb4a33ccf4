//! Accurate ECN (RFC 9768), segment by segment, and over links that mark.

use crate::common;

use common::one_flow::like_two_connections;
use common::secs;
use skyhaul_base::{Duration, Rng};
use skyhaul_cc::Config as Control;
use skyhaul_tcp::config::{DelayedAck, Ecn, ProbeNegotiation};
use skyhaul_tcp::{Config, Counted, Flags};
use skyhaul_testkit::script::Script;
use skyhaul_testkit::{Pair, Setup, Side, Verdict};

const C: Side = Side::Client;
const S: Side = Side::Server;

/// RFC rules with accurate ECN; MSS 1000, one acknowledgement per segment, no limited transmit.
fn config() -> Config {
    Config {
        mss: 1000,
        receive_buffer: 100_000,
        delayed_ack: DelayedAck::OFF,
        limited_transmit: false,
        ecn: Ecn::Accurate,
        ..Config::rfc()
    }
}
fn control(name: &str) -> Control {
    Control::by_name(name).expect("known")
}

// ----- The handshake (§3.1) -----------------------------------------------------------------------------------

#[test]
fn a_client_takes_each_answer_as_table_2_says() {
    // Flags of the answer; whether data has ECT; flags of the acknowledgement of a SYN-ACK without ECT.
    for (answer, capable, ack) in [
        ("SC", true, "C."),   // 010: accurate, the SYN came without ECT
        ("SEA", true, "C."),  // 101: reserved, as if accurate
        ("SEC", false, "C."), // 011: the SYN came with ECT(1), which is mangling: accurate, but no ECT
        ("SA", false, "C."),  // 100: with ECT(0)
        ("SCA", false, "C."), // 110: with CE
        ("SE", true, "."),    // 001: classic
        ("S", false, "."),    // 000: none
        ("SECA", false, "."), // 111: broken
    ] {
        let mut s: Script<Counted> = Script::client(&config(), &control("newreno"));
        s.expect("SECA 0:0");
        s.at(0.1).accept(&format!("{answer}. 0:0 ack 1 win 9000 <mss 1000,sackOK>"));
        let out = s.drain();
        assert!(out[0].starts_with(&format!("{ack} 1:1 ack 1")), "{answer}: {out:?}");
        s.write(100);
        let out = s.drain();
        assert_eq!(out[0].contains("ect0"), capable, "{answer}: {out:?}");
        // The counter of a connection with accurate ECN begins at 5 = 101.
        let counts = out[0].starts_with("EA. ");
        assert_eq!(counts, ack == "C.", "{answer}: {out:?}");
    }
}

#[test]
fn a_client_feeds_back_the_ecn_field_of_the_answer() {
    // Table 3.
    for (ecn, flags) in [("", "C."), ("ect1", "EC."), ("ect0", "A."), ("ce", "CA.")] {
        let mut s: Script<Counted> = Script::client(&config(), &control("newreno"));
        s.expect("SECA 0:0");
        let comma = if ecn.is_empty() { "" } else { "," };
        s.accept(&format!("SC. 0:0 ack 1 win 9000 <mss 1000,sackOK{comma}{ecn}>"));
        let out = s.drain();
        assert!(out[0].starts_with(&format!("{flags} 1:1 ack 1")), "{ecn}: {out:?}");
        s.write(100);
        let counter = if ecn == "ce" { "CA. " } else { "EA. " };
        assert!(s.drain()[0].starts_with(counter), "{ecn}: r.cep is 6 after a mark, else 5");
    }
}

#[test]
fn a_server_answers_each_request_as_table_2_says() {
    // Flags and field of the SYN, and the flags of the answer.
    for (syn, ecn, answer) in [
        ("SECA", "", "SC."),
        ("SECA", ",ect1", "SEC."),
        ("SECA", ",ect0", "SA."),
        ("SECA", ",ce", "SCA."),
        ("SEA", "", "SC."), // reserved: as if 111
        ("SE", "", "SC."),
        ("SA", "", "SC."),
        ("SEC", "", "SE."), // classic
        ("S", "", "S."),
    ] {
        let mut s: Script<Counted> = Script::server(&config(), &control("newreno"));
        s.accept(&format!("{syn} 0:0 win 9000 <mss 1000,sackOK{ecn}>"));
        let out = s.drain();
        assert!(out[0].starts_with(&format!("{answer} 0:0 ack 1")), "{syn} {ecn}: {out:?}");
    }
    // A server that only knows classic ECN takes this for a classic request.
    for (ecn, answer) in [(Ecn::Ask, "SE."), (Ecn::Grant, "SE."), (Ecn::Off, "S.")] {
        let mut s: Script<Counted> = Script::server(&Config { ecn, ..config() }, &control("newreno"));
        s.accept("SECA 0:0 win 9000 <mss 1000,sackOK>");
        assert!(s.drain()[0].starts_with(answer), "{ecn:?}");
    }
}

#[test]
fn a_server_reads_the_last_step_of_the_handshake_as_table_4_says() {
    for (ack, capable) in
        [("C.", true), ("EC.", false), ("A.", false), ("CA.", false), (".", false), ("EA.", true)]
    {
        let mut s: Script<Counted> = Script::server(&config(), &control("newreno"));
        s.accept("SECA 0:0 win 9000 <mss 1000,sackOK>").expect("SC. 0:0 ack 1");
        s.accept(&format!("{ack} 1:1 ack 1 win 9000"));
        s.write(1000);
        let out = s.drain();
        assert_eq!(out[0].contains("ect0"), capable, "{ack}: {out:?}");
        // The last step carried no counter, so that no mark counts by now.
        let counter = if ack == "CA." { "CA" } else { "EA" };
        s.accept(&format!("{counter}. 1:1 ack 1001 win 9000"));
        assert_eq!(s.conn.sender().marks_answered(), 0, "{ack}");
    }
}

#[test]
fn a_syn_asks_for_ecn_twice_and_then_no_more() {
    let mut s: Script<Counted> = Script::client(&config(), &control("newreno"));
    s.expect("SECA 0:0").at(1.1).expect("SECA 0:0").at(3.2).expect("S 0:0");
    // The answer to an earlier request still counts (§3.1.4.1).
    s.accept("SC. 0:0 ack 1 win 9000 <mss 1000,sackOK>").expect("C. 1:1 ack 1");
    let mut s: Script<Counted> = Script::server(&config(), &control("newreno"));
    s.accept("SECA 0:0 win 9000 <mss 1000,sackOK>").expect("SC. 0:0 ack 1");
    s.at(1.1).expect("SC. 0:0 ack 1").at(3.2).expect("S. 0:0 ack 1");
    // A server that has sent this answer feeds marks back, but sends no ECT (§3.1.5).
    s.accept("C. 1:1 ack 1 win 9000");
    s.write(1000);
    let out = s.drain();
    assert!(out[0].starts_with("EA. 1:1001") && !out[0].contains("ect"), "{out:?}");
}

// ----- Feedback (§3.2) ----------------------------------------------------------------------------------------

fn established(cc: &str) -> Script<Counted> {
    Script::established(&config(), &control(cc))
}

#[test]
fn every_acknowledgement_carries_the_counter_and_the_first_ones_the_option() {
    let mut s = established("newreno");
    s.accept(". 1:1001 ack 1 win 9000 <ect0>").expect("EA. 1:1 ack 1001 win 99000 <ecn 1001 0 1>");
    s.accept(". 1001:2001 ack 1 win 9000 <ce>");
    // The mark is fed back at once, and again with the data itself.
    let out = s.drain();
    assert!(
        out.iter().all(|o| o.starts_with("CA. 1:1 ack 2001") && o.contains("ecn 1001 1000 1")),
        "{out:?}"
    );
    s.accept(". 2001:3001 ack 1 win 9000 <ect1>").expect("CA. 1:1 ack 3001 win 97000 <ecn 1001 1000 1001>");
    // More of the same is no news.
    for n in 3..12 {
        s.accept(&format!(". {n}001:{}001 ack 1 win 9000 <ect1>", n + 1));
    }
    let options = s.drain().iter().filter(|o| o.contains("ecn")).count();
    assert_eq!(options, 2, "each change is sent three times");
}

#[test]
fn a_window_with_any_number_of_marks_is_reduced_once_and_without_cwr() {
    let mut s = established("newreno");
    s.write(90_000);
    for n in 1..=4 {
        s.at(0.1).accept(&format!("EA. 1:1 ack {}001 win 90000", n));
    }
    assert_eq!((s.drain().len(), s.conn.snapshot().cwnd), (12, 8.0));
    // The counter goes on from 5 to 6, 7, 0 and 1.
    for (n, ace) in [(5, "CA."), (6, "ECA."), (7, "."), (8, "E.")] {
        s.accept(&format!("{ace} 1:1 ack {n}001 win 90000"));
    }
    assert_eq!(s.conn.sender().marks_answered(), 1);
    assert!(s.conn.snapshot().cwnd < 4.5, "{}", s.conn.snapshot().cwnd);
    for n in 9..=12 {
        s.accept(&format!("E. 1:1 ack {n}001 win 90000"));
    }
    let out = s.drain();
    assert!(!out.is_empty() && out.iter().all(|o| o.starts_with("EA. ") && o.contains("ect0")), "{out:?}");
    assert_eq!(s.conn.sender().marks_answered(), 1, "the counter stood still");
}

#[test]
fn data_of_a_scalable_control_carries_ect_1() {
    let data = |ecn, cc: &str| {
        let mut s: Script<Counted> = Script::established(&Config { ecn, ..config() }, &control(cc));
        s.write(1000);
        s.drain().remove(0)
    };
    assert!(data(Ecn::Accurate, "prague").contains("ect1"));
    assert!(data(Ecn::Accurate, "cubic").contains("ect0"));
    // Without accurate feedback it must not (RFC 9331 §4.2).
    assert!(data(Ecn::Ask, "prague").contains("ect0"));
    assert!(!data(Ecn::Off, "prague").contains("ect"));
}

// ----- Flows without a handshake ------------------------------------------------------------------------------

#[test]
fn a_flow_in_one_direction_says_what_two_connections_would() {
    for cc in ["newreno", "cubic", "prague"] {
        let control = control(cc);
        let config = Config {
            receive_buffer: 30_000,
            timestamps: false,
            delayed_ack: DelayedAck { every: 2, delay: Duration::from_millis(40) },
            probes: ProbeNegotiation::Off,
            receiver_rate: false,
            ..config()
        };
        let (_, p) = like_two_connections(cc, config, &control);
        // All marks were counted: 5 + 10, modulo 8.
        let last = p.sent(S).last().expect("an acknowledgement").segment.flags.ace();
        assert_eq!(last, (5 + 10) % 8, "{cc}");
        assert!(p.conn(C).sender().marks_answered() >= 3, "{cc}");
        assert!(p.data_sent(C).all(|e| e.segment.flags.has(Flags::of_ace(5))));
    }
}

#[test]
fn marks_are_counted_however_acknowledgements_are_lost() {
    for losses in [0, 20, 40, 60] {
        let endless = Config { max_retransmissions: 0, ..config() };
        let mut setup = Setup::new(endless, &control("prague"), Duration::from_millis(50));
        setup.handshake = skyhaul_testkit::pair::Handshake::Skipped(Some(Duration::from_millis(100)));
        let mut p: Pair<Counted> = setup.build();
        let mut rng = Rng::stream(1, "marks");
        p.faults(C, move |_| if rng.below(5) == 0 { Verdict::Mark } else { Verdict::Deliver });
        let mut rng = Rng::stream(1, "losses");
        p.faults(S, move |_| if rng.below(100) < losses { Verdict::Lose } else { Verdict::Deliver });
        p.send(C, 3_000_000, false);
        p.run_until(secs(10_000.0));
        assert_eq!(p.conn(C).unacked(), 0, "{losses} %: everything has arrived");
        let sent = p.data_sent(C).count() as f64;
        let told = p.conn(C).sender().marks_reported().expect("accurate ECN") as f64;
        // Five standard deviations of the marks, and the last few that no acknowledgement reported.
        let tolerance = 5.0 * (sent * 0.2 * 0.8).sqrt() + 8.0;
        assert!((told - 0.2 * sent).abs() < tolerance, "{losses} %: {told} of {sent}");
    }
}

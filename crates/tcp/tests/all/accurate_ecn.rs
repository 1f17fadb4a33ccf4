//! Accurate ECN (RFC 9768), segment by segment, and over links that mark.

use crate::common;

use common::secs;
use skyhaul_base::{Duration, Instant, Rng};
use skyhaul_cc::Config as Control;
use skyhaul_tcp::config::{DelayedAck, Ecn, ProbeNegotiation};
use skyhaul_tcp::{
    Codepoint, Config, Counted, EcnBytes, Extras, Flags, HandshakeResult, Head, Seq, Sink, Source, one_way,
};
use skyhaul_testkit::script::Script;
use skyhaul_testkit::{Pair, Setup, Side, Verdict};
use std::collections::VecDeque;
use std::sync::Arc;

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
    // Flags of the answer; whether data may be marked; the flags of the acknowledgement of a SYN-ACK without ECT.
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
fn a_client_tells_the_field_of_the_answer() {
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
    // One that knows classic ECN only sees a classic request.
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
        // It was no counter: nothing is marked by now.
        let counter = if ack == "CA." { "CA" } else { "EA" };
        s.accept(&format!("{counter}. 1:1 ack 1001 win 9000"));
        assert_eq!(s.conn.sender().marks_answered(), 0, "{ack}");
    }
}

#[test]
fn requests_are_repeated_once_and_answers_in_two_steps() {
    let mut s: Script<Counted> = Script::client(&config(), &control("newreno"));
    s.expect("SECA 0:0").at(1.1).expect("SECA 0:0").at(3.2).expect("S 0:0");
    // The answer to an earlier one still counts (§3.1.4.1).
    s.accept("SC. 0:0 ack 1 win 9000 <mss 1000,sackOK>").expect("C. 1:1 ack 1");
    let mut s: Script<Counted> = Script::server(&config(), &control("newreno"));
    s.accept("SECA 0:0 win 9000 <mss 1000,sackOK>").expect("SC. 0:0 ack 1");
    s.at(1.1).expect("SC. 0:0 ack 1").at(3.2).expect("S. 0:0 ack 1");
    // Having sent this, it feeds back, but sets ECT no more (§3.1.5).
    s.accept("C. 1:1 ack 1 win 9000");
    s.write(1000);
    let out = s.drain();
    assert!(out[0].starts_with("EA. 1:1001") && !out[0].contains("ect"), "{out:?}");
}

// ----- Feedback (§3.2) ----------------------------------------------------------------------------------------

fn talk(cc: &str) -> Script<Counted> {
    Script::established(&config(), &control(cc))
}

#[test]
fn every_acknowledgement_carries_the_counter_and_the_first_ones_the_option() {
    let mut s = talk("newreno");
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
    assert_eq!(options, 2, "repeated three times in all");
}

#[test]
fn a_window_with_any_number_of_marks_is_reduced_once_and_without_cwr() {
    let mut s = talk("newreno");
    s.write(90_000);
    for n in 1..=4 {
        s.at(0.1).accept(&format!("EA. 1:1 ack {}001 win 90000", n));
    }
    assert_eq!((s.drain().len(), s.conn.snapshot().cwnd), (12, 8.0));
    // 5 to 6, 7, 0, 1.
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

/// What one end sends: when, first byte, length, acknowledgement, flags, ECN, option.
type Sent = (Instant, u32, u32, u32, u8, Codepoint, Option<EcnBytes>);

/// The two ends of a flow in one direction, 50 ms apart; the data segments with these numbers are marked.
fn flow(config: &Config, cc: &Control, bytes: u64, marked: &[u64]) -> [Vec<Sent>; 2] {
    let config = Arc::new(*config);
    let known = HandshakeResult { rtt: Some(Duration::from_millis(100)) };
    let control = cc.build(&config.rules);
    let (mut source, mut sink): (Source<Counted>, Sink<Counted>) =
        one_way(Instant::ZERO, &config, control, Rng::stream(1, "client"), known);
    let (way, mut now, mut data) = (Duration::from_millis(50), Instant::ZERO, 0);
    let (mut forth, mut back) = (VecDeque::new(), VecDeque::<(Instant, Head, Option<Box<Extras>>)>::new());
    let mut sent = [Vec::new(), Vec::new()];
    let entry = |now, h: &Head, x: &Option<Box<Extras>>| {
        (now, h.seq.0, h.len, h.ack.0, h.flags.bits(), h.ecn(), x.as_ref().and_then(|x| x.ecn_bytes))
    };
    source.offer(now, bytes);
    loop {
        while let Some((mut head, extras)) = source.poll(now) {
            sent[0].push(entry(now, &head, &extras));
            if head.ecn() != Codepoint::NotCapable && marked.contains(&data) {
                head.set_ecn(Codepoint::Marked);
            }
            data += 1;
            forth.push_back((now + way, head));
        }
        while let Some((head, extras)) = sink.poll(now) {
            sent[1].push(entry(now, &head, &extras));
            back.push_back((now + way, head, extras));
        }
        let a = forth.front().map_or(Instant::MAX, |f| f.0);
        let b = back.front().map_or(Instant::MAX, |f| f.0);
        now = a.min(b).min(source.next_timeout()).min(sink.next_timeout());
        if now == Instant::MAX {
            return sent;
        }
        if b == now {
            let (_, head, extras) = back.pop_front().unwrap();
            source.handle(now, &head, extras.as_deref()).unwrap();
        } else if a == now {
            sink.handle(now, &forth.pop_front().unwrap().1, None).unwrap();
        } else {
            source.handle_timeout(now);
            sink.handle_timeout(now);
        }
    }
}

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
        let marked = [20, 21, 40, 90, 130, 131, 132, 133, 134, 199];
        let [forth, back] = flow(&config, &control, 200_000, &marked);
        let mut setup = Setup::new(config, &control, Duration::from_millis(50));
        setup.handshake = skyhaul_testkit::pair::Handshake::Skipped(Some(Duration::from_millis(100)));
        setup.iss = [Seq(0), Seq(0)];
        let mut p: Pair<Counted> = setup.build();
        p.faults(C, move |d| {
            let hit = d.is_data() && marked.contains(&d.data_index);
            if hit { Verdict::Mark } else { Verdict::Deliver }
        });
        p.send(C, 200_000, false);
        p.run_until(secs(1000.0));
        for (side, ours) in [(C, forth), (S, back)] {
            let theirs: Vec<Sent> = p
                .sent(side)
                .map(|e| (e.at, &e.segment))
                .map(|(at, s)| (at, s.seq.0, s.len, s.ack.0, s.flags.bits(), s.ecn, s.ecn_bytes))
                .collect();
            let first = ours.iter().zip(&theirs).position(|(a, b)| a != b);
            assert_eq!(first, None, "{cc} {side:?}: {:?}", first.map(|n| (ours[n], theirs[n])));
            assert_eq!(ours.len(), theirs.len(), "{cc} {side:?}");
        }
        // All marks were counted: 5 + 10, modulo 8.
        let last = p.sent(S).last().expect("an acknowledgement").segment.flags.ace();
        assert_eq!(last, (5 + 10) % 8, "{cc}");
        assert!(p.conn(C).sender().marks_answered() >= 3, "{cc}");
        assert!(p.data_sent(C).all(|e| e.segment.flags.has(Flags::of_ace(5))));
    }
}

#[test]
fn marks_are_counted_however_acknowledgements_are_lost() {
    for losses in [0, 20, 40] {
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

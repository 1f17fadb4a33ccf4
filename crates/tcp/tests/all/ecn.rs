//! Explicit congestion notification (RFC 3168), segment by segment, and over links that mark.

use crate::common;

use common::one_flow::like_two_connections;
use common::{cases, secs, variants};
use proptest::prelude::*;
use skyhaul_base::{Duration, Rng};
use skyhaul_cc::{Config as Control, NAMES, Phase};
use skyhaul_tcp::config::{DelayedAck, Ecn, ProbeNegotiation};
use skyhaul_tcp::{Bytes, Codepoint, Config, Counted, Flags};
use skyhaul_testkit::script::Script;
use skyhaul_testkit::{Pair, SegmentEvent, Setup, Side, Verdict};

const C: Side = Side::Client;
const S: Side = Side::Server;

/// RFC rules with ECN; MSS 1000, one acknowledgement per segment, no limited transmit.
fn config() -> Config {
    let rfc = Config::rfc();
    Config {
        mss: 1000,
        receive_buffer: 100_000,
        delayed_ack: DelayedAck::OFF,
        limited_transmit: false,
        ecn: Ecn::Ask,
        ..rfc
    }
}
fn talk(cc: &str, config: &Config) -> Script<Counted> {
    Script::established(config, &Control::by_name(cc).expect("known"))
}
/// Eight segments are on their way, the window is 8, and much more waits.
fn eight(cc: &str, config: &Config) -> Script<Counted> {
    let mut s = talk(cc, config);
    s.write(90_000);
    for n in 1..=4 {
        s.at(0.1).accept(&format!(". 1:1 ack {} win 90000", n * 1000 + 1));
    }
    assert_eq!((s.drain().len(), s.conn.snapshot().cwnd), (12, 8.0), "{cc}");
    s
}
/// Window, retransmissions, timeouts, reductions for marks.
fn state(s: &Script<Counted>) -> (f64, u64, u64, u64) {
    let c = s.conn.counters();
    (s.conn.snapshot().cwnd, c.retransmissions, c.timeouts, s.conn.sender().marks_answered())
}

// ----- The handshake (§6.1.1) ---------------------------------------------------------------------------------

#[test]
fn a_repeated_syn_without_ecn_forbids_ect() {
    for (repeated, capable) in [(None, true), (Some("SEC"), true), (Some("S"), false)] {
        let mut s: Script<Counted> = Script::server(&config(), &Control::by_name("newreno").expect("known"));
        s.accept("SEC 0:0 win 9000 <mss 1000,sackOK>").expect("SE. 0:0 ack 1");
        if let Some(flags) = repeated {
            s.at(1.5).accept(&format!("{flags} 0:0 win 9000 <mss 1000,sackOK>"));
            s.drain();
        }
        s.accept(". 1:1 ack 1 win 9000");
        s.write(1000);
        let out = s.drain();
        assert_eq!(out[0].contains("ect0"), capable, "{repeated:?}: {out:?}");
    }
}

// ----- The sender (§6.1.2) ------------------------------------------------------------------------------------

#[test]
fn one_reduction_answers_all_echoes_of_a_window() {
    let mut s = eight("newreno", &config());
    // FlightSize is 7 when the echo comes (RFC 5681): half of it.
    s.at(0.2).accept("E. 1:1 ack 5001 win 90000").expect_nothing();
    assert_eq!(state(&s), (3.5, 0, 0, 1));
    assert_eq!(s.conn.snapshot().phase, Phase::Open, "nothing is repaired");
    // Further echoes of the same window, up to its very end.
    for n in 6..=9 {
        s.accept(&format!("E. 1:1 ack {n}001 win 90000"));
    }
    assert_eq!(state(&s).3, 1);
    // 9001 to 12001 is on its way; the first new segment says that the window was reduced, and no other.
    s.accept("E. 1:1 ack 10001 win 90000");
    s.expect("C. 12001:13001 ack 1 win 100000 <ect0>");
    s.accept("E. 1:1 ack 11001 win 90000");
    s.accept("E. 1:1 ack 12001 win 90000");
    let more = s.drain();
    assert!(more.len() >= 2 && more.iter().all(|o| o.starts_with(". ") && o.contains("ect0")), "{more:?}");
    assert_eq!(state(&s).3, 1, "what tells the peer of the reduction has not arrived yet");
    // The next window is another matter.
    s.accept("E. 1:1 ack 13001 win 90000");
    assert_eq!((state(&s).1, state(&s).3), (0, 2));
}

#[test]
fn a_loss_in_a_window_that_was_reduced_for_a_mark_is_repaired_without_another_reduction() {
    for cc in ["reno", "newreno", "sack", "prr", "cubic", "tahoe", "westwood-plus"] {
        let config = Config { sack: Some(true), ..config() };
        let mut s = eight(cc, &config);
        s.at(0.2).accept("E. 1:1 ack 5001 win 90000").expect_nothing();
        let cut = state(&s).0;
        // 5001 is lost; what lies behind it arrives.
        for n in 7..=12 {
            s.accept(&format!("E. 1:1 ack 5001 win 90000 <sack 6001:{n}001>"));
        }
        let out = s.drain();
        assert!(out[0].starts_with(". 5001:6001 ack 1 win 100000"), "{cc}: {out:?}");
        assert!(!out[0].contains("ect0"), "{cc}: a repetition is not to be marked (§6.1.5): {out:?}");
        s.accept("E. 1:1 ack 12001 win 90000");
        let (cwnd, retransmissions, timeouts, marks) = state(&s);
        assert_eq!((retransmissions, timeouts, marks), (1, 0, 1), "{cc}");
        assert!(cwnd >= cut, "{cc}: {cwnd} after {cut}");
        assert_eq!(s.conn.counters().recoveries, 1, "{cc}");
    }
}

#[test]
fn a_loss_beyond_the_marked_window_is_answered_as_ever() {
    let mut s = eight("sack", &Config { sack: Some(true), ..config() });
    s.at(0.2).accept("E. 1:1 ack 5001 win 90000");
    s.accept(". 1:1 ack 12001 win 90000");
    let (before, _, _, _) = state(&s);
    let out = s.drain();
    assert!(out.len() >= 3 && out[0].starts_with("C. 12001:13001"), "{out:?}");
    for n in 14..=16 {
        s.accept(&format!(". 1:1 ack 12001 win 90000 <sack 13001:{n}001>"));
    }
    s.expect(". 12001:13001");
    assert!(state(&s).0 < before && s.conn.snapshot().phase == Phase::Recovery);
}

#[test]
fn an_echo_while_nothing_is_outstanding_says_nothing() {
    let mut s = talk("newreno", &config());
    s.write(1000);
    s.drain();
    s.accept(". 1:1 ack 1001 win 90000");
    let before = state(&s);
    // The peer's own data, long after: there was no window that could have been marked.
    for n in 0..5 {
        s.accept(&format!("E. {}:{} ack 1001 win 90000", n * 100 + 1, n * 100 + 101));
    }
    assert_eq!(state(&s), before);
}

#[test]
fn a_control_that_does_not_reduce_tells_the_peer_all_the_same() {
    let mut s = talk("bbr", &config());
    s.write(90_000);
    s.at(0.1).drain();
    let before = s.conn.snapshot().cwnd;
    s.accept("E. 1:1 ack 1001 win 90000");
    assert!(s.conn.snapshot().cwnd >= before);
    s.at(5.0);
    let out = s.drain();
    assert!(out.iter().any(|o| o.starts_with('C')), "or it would echo for ever: {out:?}");
}

#[test]
fn only_new_data_may_be_marked_unless_more_is_asked_for() {
    for plus in [false, true] {
        let mut s = talk("newreno", &Config { ecn_plus: plus, ..config() });
        s.write(1000);
        s.expect(". 1:1001 ack 1 win 100000 <ect0>");
        s.at(1.5);
        let again = s.drain();
        assert_eq!((again.len(), again[0].contains("ect0")), (1, plus), "{again:?}");
        // A pure acknowledgement never (§6.1.4), a question for a closed window only then (§6.1.6).
        s.accept(". 1:1001 ack 1001 win 0 <ect0>");
        let ack = s.drain();
        assert_eq!((ack.len(), ack[0].contains("ect0")), (1, false), "{ack:?}");
        s.write(1000);
        s.at(20.0);
        let question = s.drain();
        assert!(
            question[0].starts_with(". 1000:1000") && question[0].contains("ect0") == plus,
            "{question:?}"
        );
    }
}

// ----- The receiver (§6.1.3) ----------------------------------------------------------------------------------

#[test]
fn a_mark_is_echoed_until_the_peer_has_heard_of_it() {
    let mut s = talk("newreno", &config());
    s.accept(". 1:1001 ack 1 win 9000 <ect0>").expect(". 1:1 ack 1001").expect_nothing();
    s.accept(". 1001:2001 ack 1 win 9000 <ce>").expect("E. 1:1 ack 2001").expect_nothing();
    s.accept(". 2001:3001 ack 1 win 9000 <ect0>").expect("E. 1:1 ack 3001");
    // Our own data says it, too.
    s.write(10);
    s.expect("E. 1:11 ack 3001");
    // Both at once: another mark (§6.1.3).
    s.accept("C. 3001:4001 ack 11 win 9000 <ce>").expect("E. 11:11 ack 4001");
    s.accept("C. 4001:5001 ack 11 win 9000 <ect0>").expect(". 11:11 ack 5001").expect_nothing();
    // What lies outside of the window says nothing (§6.1.5 speaks of attacks by such).
    assert!(s.inject(". 300001:301001 ack 11 win 9000 <ce>").is_err());
    s.expect(". 11:11 ack 5001").expect_nothing();
}

#[test]
fn without_agreement_marks_and_echoes_mean_nothing() {
    for ecn in [Ecn::Off, Ecn::Grant] {
        let mut s = eight("newreno", &Config { ecn, ..config() });
        s.accept("E. 1:1 ack 5001 win 90000");
        assert_eq!(state(&s).3, 0);
        s.drain();
        s.accept(". 1:1001 ack 5001 win 90000 <ce>");
        let out = s.drain();
        assert!(out.iter().all(|o| !o.starts_with('E') && !o.contains("ect0")), "{out:?}");
    }
}

// ----- The handshake (§6.1.1) ---------------------------------------------------------------------------------

/// What a transfer over a modelled handshake shows: flags of the SYN and of its answer, and whether data may be marked.
fn handshake(ours: Ecn, theirs: Ecn, lose_first: bool) -> (u8, u8, bool) {
    let mut setup = Setup::new(config(), &Control::by_name("newreno").unwrap(), Duration::from_millis(50));
    (setup.config[0].ecn, setup.config[1].ecn) = (ours, theirs);
    let mut p: Pair<Counted> = setup.build();
    p.faults(C, move |d| if lose_first && d.index == 0 { Verdict::Lose } else { Verdict::Deliver });
    p.send(C, 5000, true);
    p.send(S, 5000, true);
    assert!(p.run_to_end(secs(100.0)) && p.finished());
    let ecn = Flags::ECE.with(Flags::CWR).bits();
    let syn = |side| {
        let last = p.sent(side).filter(|e| e.segment.flags.has(Flags::SYN)).last();
        last.map_or(0, |e| e.segment.flags.bits() & ecn)
    };
    let capable = |side| p.data_sent(side).all(|e| e.segment.ecn == Codepoint::Capable);
    let none = |side| p.sent(side).all(|e| e.segment.ecn == Codepoint::NotCapable);
    assert!(capable(C) == capable(S) && none(C) == none(S) && capable(C) != none(C));
    assert!(p.sent(C).all(|e| !e.segment.flags.has(Flags::SYN) || e.segment.ecn == Codepoint::NotCapable));
    (syn(C), syn(S), capable(C))
}

#[test]
fn both_ends_take_part_if_one_asks_and_the_other_is_able() {
    let (ece, both) = (Flags::ECE.bits(), Flags::ECE.with(Flags::CWR).bits());
    for (ours, theirs, syn, answer) in [
        (Ecn::Ask, Ecn::Ask, both, ece),
        (Ecn::Ask, Ecn::Grant, both, ece),
        (Ecn::Ask, Ecn::Off, both, 0),
        (Ecn::Grant, Ecn::Ask, 0, 0),
        (Ecn::Grant, Ecn::Grant, 0, 0),
        (Ecn::Off, Ecn::Ask, 0, 0),
    ] {
        let (c, s, capable) = handshake(ours, theirs, false);
        assert_eq!((c, s, capable), (syn, answer, answer == ece), "{ours:?} {theirs:?}");
    }
    // Boxes on the way may drop SYNs that ask: a SYN that is sent again does not (§6.1.1.1).
    assert_eq!(handshake(Ecn::Ask, Ecn::Ask, true), (0, 0, false));
}

#[test]
fn a_syn_ack_that_grants_what_only_the_first_syn_asked_for_concludes_the_negotiation() {
    // The peer's SYN-ACK to the first SYN was late; the repeated SYN asks for nothing (§6.1.1.1). The peer marks its data as
    // ECN-capable all the same, so its marks must be echoed.
    let mut s: Script<Counted> = Script::client(&config(), &Control::by_name("newreno").unwrap());
    s.at(1.2).expect_at(0.0, "SEC 0:0").expect_at(1.0, "S 0:0");
    s.accept("SE. 0:0 ack 1 win 9000 <mss 1000,sackOK>").expect(". 1:1 ack 1");
    s.accept(". 1:1001 ack 1 win 9000 <ce>").expect("E. 1:1 ack 1001");
}

#[test]
fn an_answer_that_repeats_the_question_is_no_agreement() {
    // A peer that reflects unknown bits (§6.1.1), and one that answers with CWR alone.
    for (flags, agreed) in [("SE.", true), ("SEC.", false), ("SC.", false), ("S.", false)] {
        let mut s: Script<Counted> = Script::client(&config(), &Control::by_name("newreno").unwrap());
        s.expect("SEC 0:0");
        s.at(0.1).accept(&format!("{flags} 0:0 ack 1 win 9000 <mss 1000,sackOK>")).expect(". 1:1 ack 1");
        s.write(100);
        let out = s.drain();
        assert_eq!(out[0].contains("ect0"), agreed, "{flags}: {out:?}");
    }
}

// ----- Every control ------------------------------------------------------------------------------------------

/// A transfer from the client with both ends established, over 2 x 50 ms.
fn transfer<K: skyhaul_testkit::pair::PayloadStore>(config: Config, cc: &Control, bytes: u64) -> Pair<K> {
    let mut setup = Setup::new(config, cc, Duration::from_millis(50));
    setup.handshake = skyhaul_testkit::pair::Handshake::Skipped(Some(Duration::from_millis(100)));
    let mut p = setup.build();
    p.send(C, bytes, true);
    p.send(S, 0, true);
    p
}

#[test]
fn every_control_reduces_for_a_mark_and_nothing_is_sent_again() {
    for cc in NAMES {
        let control = Control::by_name(cc).expect("known");
        let run = |mark: bool| {
            let mut p: Pair<Counted> =
                transfer(Config { receive_buffer: 60_000, ..config() }, &control, 400_000);
            // In the middle of the transfer, when the peer's window is filled.
            p.faults(C, move |d| {
                if mark && d.is_data() && d.data_index == 200 { Verdict::Mark } else { Verdict::Deliver }
            });
            let mut least = f64::INFINITY;
            let done = p.run_with(secs(1000.0), |p| {
                if p.conn(C).counters().segments_sent > 200 && p.conn(C).unacked() > 60_000 {
                    least = least.min(p.conn(C).snapshot().cwnd);
                }
            });
            assert!(done && p.finished(), "{cc}");
            let c = p.conn(C).counters();
            assert_eq!(
                (c.retransmissions, c.timeouts, p.conn(C).sender().marks_answered()),
                (0, 0, mark.into()),
                "{cc}"
            );
            let reduced = p.sent(C).filter(|e| e.segment.flags.has(Flags::CWR)).count();
            assert_eq!(reduced, usize::from(mark), "{cc}");
            least
        };
        let (marked, plain) = (run(true), run(false));
        // Version 1 of BBR reduces for nothing but the rate; TCP-Real and the Westwoods keep what they measure.
        let keeps = ["bbr", "bbr3", "westwood", "westwood-plus", "westwood-abse", "tibet"];
        assert!(marked < 0.9 * plain || keeps.contains(cc), "{cc}: {marked} of {plain}");
        assert!(marked <= plain, "{cc}: {marked} of {plain}");
    }
}

// ----- Flows without a handshake ------------------------------------------------------------------------------

#[test]
fn a_flow_in_one_direction_says_what_two_connections_would() {
    for (cc, plus) in
        [("newreno", false), ("sack", true), ("cubic", false), ("peach", false), ("tcp-real", false)]
    {
        let control = Control::by_name(cc).expect("known");
        let config = Config {
            receive_buffer: 30_000,
            timestamps: false,
            ecn_plus: plus,
            probes: ProbeNegotiation::Off,
            receiver_rate: false,
            ..config()
        };
        let ([forth, back], _) = like_two_connections(cc, config, &control);
        for (side, ours) in [(C, forth), (S, back)] {
            assert!(ours.iter().all(|s| s.6.is_none()), "{cc} {side:?}: counters of accurate ECN");
            let said = |flag: Flags| ours.iter().filter(|s| s.4 & flag.bits() != 0).count();
            let expected = if side == C { said(Flags::CWR) } else { said(Flags::ECE) };
            assert!(expected >= 3, "{cc} {side:?}: {expected}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(200), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn marks_and_losses_together_deliver_everything_and_cut_once_per_window(
        v in 0..variants().len(), marks in 0..60u64, losses in 0..6u64, seed in any::<u64>(),
    ) {
        let v = &variants()[v];
        let config = Config { ecn: Ecn::Ask, receive_buffer: 100_000, max_retransmissions: 0, ..v.config };
        let mut p: Pair<Bytes> = transfer(config, &v.cc, 150_000);
        for side in [C, S] {
            let mut rng = Rng::stream(seed, if side == C { "c" } else { "s" });
            p.faults(side, move |_| match rng.below(100) {
                n if n < losses => Verdict::Lose,
                n if n < losses + marks => Verdict::Mark,
                _ => Verdict::Deliver,
            });
        }
        let (mut answered, mut until, mut max) = (0, 0, 0);
        let done = p.run_with(secs(1e6), |p| {
            let (marks, s) = (p.conn(C).sender().marks_answered(), p.conn(C).snapshot());
            if marks > answered {
                assert_eq!(marks, answered + 1);
                assert!(s.una > until, "{}: twice in a window", v.name);
                (answered, until) = (marks, max);
            }
            // What this event let go is no part of the window that was reduced.
            max = max.max(s.nxt);
        });
        prop_assert!(done && p.finished(), "{}: {:?}", v.name, p.conn(C).snapshot());
        prop_assert_eq!(p.end(S).corrupt, None);
        // Only what left for the first time could be marked, and of that only data.
        for e in p.sent(C).filter(|e| e.event == SegmentEvent::Sent && e.segment.ecn == Codepoint::Capable) {
            prop_assert!(e.segment.len > 0);
        }
        if losses == 0 {
            prop_assert_eq!(p.conn(C).counters().retransmissions, 0, "{}", v.name);
        }
    }
}

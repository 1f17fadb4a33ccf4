//! What every implementation of TCP-Peach must observe: budgets, capability, harmlessness.

use crate::common;

use common::{Pattern, cases, peach, secs};
use proptest::prelude::*;
use skyhaul_base::{Duration, Instant};
use skyhaul_cc::{Config as Control, ProbeSupport, RecoveryMode};
use skyhaul_tcp::config::ProbeNegotiation;
use skyhaul_tcp::{Config, Counted, Flags, Segment, Snapshot};
use skyhaul_testkit::pair::{Act, Handshake};
use skyhaul_testkit::script::Script;
use skyhaul_testkit::spy::{Call, Notes, Spy};
use skyhaul_testkit::{Entry, Pair, SegmentEvent, Setup, Side};

const C: Side = Side::Client;
const MODES: [(RecoveryMode, &str); 3] =
    [(RecoveryMode::Sack, "sack"), (RecoveryMode::NewReno, "newreno"), (RecoveryMode::Reno, "reno")];

fn presets() -> impl Iterator<Item = Config> {
    skyhaul_tcp::config::PRESETS.iter().map(|n| Config::preset(n).expect("a preset"))
}

/// A transfer of `bytes` over 2 x 100 ms with 32 kB windows.
fn transfer(config: Config, cc: &Control, bytes: u64, patterns: &[Pattern; 2]) -> (Pair<Counted>, Notes) {
    let mut setup = Setup::new(config, cc, Duration::from_millis(100));
    setup.config =
        [config; 2].map(|c| Config { receive_buffer: 32 * u64::from(c.mss), max_retransmissions: 0, ..c });
    start(&setup, bytes, patterns)
}

fn start(setup: &Setup, bytes: u64, patterns: &[Pattern; 2]) -> (Pair<Counted>, Notes) {
    let mut notes = Notes::default();
    let mut p: Pair<Counted> = setup.build_with(|side, cc| {
        let (spy, n) = Spy::on(cc);
        if side == C {
            notes = n;
        }
        spy
    });
    for (side, pattern) in Side::BOTH.into_iter().zip(patterns) {
        p.faults(side, pattern.faults());
    }
    p.send(C, bytes, true);
    p.at(Instant::ZERO, Side::Server, Act::Shutdown);
    (p, notes)
}

fn without_syns(p: &Pair<Counted>) -> Vec<(Instant, Side, SegmentEvent, Segment)> {
    let plain = p.log.iter().filter(|e| !e.segment.flags.has(Flags::SYN));
    plain.map(|e: &Entry| (e.at, e.side, e.event, e.segment)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(200), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn without_capability_every_segment_is_renos(
        preset in 0..4usize,
        mode in 0..3usize,
        patterns in [Pattern::strategy(), Pattern::strategy()],
        bytes in 1..200_000u64,
    ) {
        let config = presets().nth(preset).expect("a preset");
        let run = |cc: Control| {
            let mut setup = Setup::new(config, &cc, Duration::from_millis(100)).both(|c| c.max_retransmissions = 0);
            setup.config[1].probes = ProbeNegotiation::Off;
            let (mut p, _) = start(&setup, bytes, &patterns);
            assert!(p.run_to_end(secs(1e6)) && p.finished());
            assert_eq!(p.conn(C).counters().probes_sent, 0);
            without_syns(&p)
        };
        let (mode, reno) = MODES[mode];
        prop_assert_eq!(run(peach(mode)), run(Control::by_name(reno).expect("known")));
    }

    #[test]
    fn budgets_and_harmlessness(
        preset in 0..4usize,
        mode in 0..3usize,
        paper in any::<bool>(),
        patterns in [Pattern::strategy(), Pattern::strategy()],
        bytes in 1..300_000u64,
    ) {
        let mut config = presets().nth(preset).expect("a preset");
        if paper {
            config.probes = ProbeNegotiation::Paper;
        }
        let (mut p, notes) = transfer(config, &peach(MODES[mode].0), bytes, &patterns);
        let rwnd = 32.0;
        let state = |p: &Pair<Counted>| (p.conn(C).snapshot(), p.conn(C).counters());
        let mut before = state(&p);
        let mut seen = 0;
        let ended = p.run_with(secs(1e6), |p| {
            let after = state(p);
            let (s, c): (&Snapshot, _) = (&after.0, &after.1);
            let probing = p.conn(C).sender().probe_support() != ProbeSupport::No;
            if probing && s.phase != skyhaul_cc::Phase::Recovery {
                assert!(s.cwnd <= rwnd, "cwnd {} beyond rwnd", s.cwnd);
            }
            if !probing {
                assert_eq!(c.probes_sent, before.1.probes_sent, "a probe to a peer that cannot answer");
            }
            // An answer that advances nothing changes neither the duplicates nor what is known of the RTT.
            for e in &p.log[seen..] {
                let answer = e.side == C && e.event == SegmentEvent::Arrived && e.segment.mark.is_answer();
                if answer && s.una == before.0.una {
                    assert_eq!((s.srtt, s.rto), (before.0.srtt, before.0.rto));
                    assert_eq!(c.duplicate_acks, before.1.duplicate_acks);
                }
            }
            seen = p.log.len();
            before = after;
        });
        prop_assert!(ended && p.finished());

        // Budgets by episode: from one start, loss or timeout to the next.
        let notes = notes.lock().expect("one thread").clone();
        let episodes: Vec<_> = notes
            .iter()
            .filter(|n| matches!(n.call, Call::Start | Call::Congestion | Call::Timeout))
            .collect();
        let probes: Vec<Instant> = p.probes_sent(C).map(|e| e.at).collect();
        let mut total = 0.0;
        for (i, e) in episodes.iter().enumerate() {
            let end = episodes.get(i + 1).map_or(Instant::MAX, |n| n.at);
            let budget = if e.call == Call::Congestion { 2.0 * e.ssthresh } else { rwnd - 1.0 };
            total += budget;
            // At one instant an episode can end and another begin, so those only count in the total.
            let sent = probes.iter().filter(|&&t| t > e.at && t < end).count() as f64;
            prop_assert!(sent <= budget, "{} dummies after {:?}, {} allowed", sent, e, budget);
            let so_far = probes.iter().filter(|&&t| t < end).count() as f64;
            prop_assert!(so_far <= total, "{} dummies until {:?}, {} allowed", so_far, end, total);
        }
        for n in &notes {
            prop_assert!(n.wdsn >= 0.0 && n.adsn >= 0.0 && n.adsn % 2.0 == 0.0, "{:?}", n);
        }
        // None in congestion avoidance: within a start's RTT, or within a recovery.
        for &t in &probes {
            let last = notes
                .iter()
                .rfind(|n| n.at <= t && matches!(n.call, Call::Start | Call::Timeout | Call::Congestion | Call::Recovered))
                .expect("a start");
            prop_assert!(last.call != Call::Recovered || last.at == t, "a dummy at {:?} after {:?}", t, last);
        }
    }
}

#[test]
fn no_dummies_through_a_closed_window() {
    let (mut p, _) =
        transfer(Config::rfc(), &peach(RecoveryMode::Sack), 300_000, &[Pattern::CLEAN, Pattern::CLEAN]);
    p.reads_by_hand(Side::Server);
    p.run_until(secs(20.0));
    let closed = p.arrived(C).find(|e| e.segment.window == 0 && !e.segment.flags.has(Flags::SYN));
    let closed = closed.expect("a receiver that reads nothing closes its window").at;
    assert_eq!(p.probes_sent(C).filter(|e| e.at >= closed).count(), 0);
    p.at(secs(21.0), Side::Server, Act::ReadEagerly);
    assert!(p.run_to_end(secs(1e4)) && p.finished());
}

/// The peer does not know dummies and nobody asked it.
fn legacy(cc: &Control, sack: bool) -> Pair<Counted> {
    let config = Config { probes: ProbeNegotiation::Paper, sack: Some(sack), ..Config::ns2_2001() };
    let config = Config { receive_buffer: 64 * 960, dsack: true, ..config };
    let mut setup = Setup::new(config, cc, Duration::from_millis(500));
    setup.handshake = Handshake::Skipped(Some(Duration::from_secs(1)));
    setup.config[1].probes = ProbeNegotiation::Off;
    let mut p = setup.build();
    p.send(C, 2_000_000, true);
    p.at(Instant::ZERO, Side::Server, Act::Shutdown);
    p
}

#[test]
fn a_legacy_receiver_is_detected_by_its_duplicate_acknowledgements() {
    for (mode, sack) in
        [(RecoveryMode::Sack, true), (RecoveryMode::NewReno, false), (RecoveryMode::Reno, false)]
    {
        let mut p = legacy(&peach(mode), sack);
        p.run_until(secs(1.01));
        assert_eq!(p.conn(C).sender().probe_support(), ProbeSupport::Unknown);
        // The first answer to a dummy comes one RTT and one tau after the first segment.
        p.run_until(secs(1.02));
        assert_eq!(p.conn(C).sender().probe_support(), ProbeSupport::No, "{mode:?}");
        assert_eq!(p.conn(C).counters().probes_sent, 63, "the first train was out already");
        // Slow start from here, as Reno: 2, 4, 8, …
        for (t, window) in [(2.1, 4.0), (3.1, 8.0), (4.1, 16.0), (5.1, 32.0), (6.1, 64.0)] {
            p.run_until(secs(t));
            assert_eq!(p.conn(C).snapshot().cwnd, window, "{mode:?} at {t}");
        }
        assert!(p.run_to_end(secs(1e4)) && p.finished());
        let c = p.conn(C).counters();
        assert_eq!(
            (c.recoveries, c.timeouts, c.retransmissions),
            (0, 0, 0),
            "{mode:?}: dummies fake no loss"
        );
        assert_eq!((c.probes_sent, c.probes_answered), (63, 0));
    }
}

#[test]
fn a_legacy_receiver_that_was_found_out_gets_no_dummies_for_a_later_loss() {
    for (mode, sack) in
        [(RecoveryMode::Sack, true), (RecoveryMode::NewReno, false), (RecoveryMode::Reno, false)]
    {
        let mut p = legacy(&peach(mode), sack);
        p.faults(C, |d| {
            if d.index == 700 { skyhaul_testkit::Verdict::Lose } else { skyhaul_testkit::Verdict::Deliver }
        });
        assert!(p.run_to_end(secs(1e4)) && p.finished());
        let c = p.conn(C).counters();
        assert_eq!((c.recoveries, c.timeouts, c.retransmissions), (1, 0, 1), "{mode:?}");
        assert_eq!(
            (c.probes_sent, c.probes_answered),
            (63, 0),
            "{mode:?}: none but those of the first train"
        );
    }
}

#[test]
fn a_duplicate_that_comes_too_early_says_nothing_of_probes() {
    let config = Config { probes: ProbeNegotiation::Paper, receive_buffer: 64 * 960, ..Config::ns2_2001() };
    let mut s = Script::<Counted>::established(&config, &peach(RecoveryMode::Sack));
    s.write(1_000_000);
    let support = |s: &Script<Counted>| s.conn.sender().probe_support();
    // Dummies leave from 1.6 ms on (the handshake took 100 ms); a path or a stranger repeats an acknowledgement.
    s.at(0.04);
    assert!(s.conn.counters().probes_sent > 10);
    s.accept(". 1:1 ack 1 win 61440");
    assert_eq!(support(&s), ProbeSupport::Unknown);
    s.at(0.1).accept(". 1:1 ack 961 win 61440");
    s.at(0.101).accept(". 1:1 ack 961 win 61440");
    assert_eq!(support(&s), ProbeSupport::Unknown, "the first dummy cannot be answered yet");
    s.at(0.102).accept(". 1:1 ack 961 win 61440");
    assert_eq!(support(&s), ProbeSupport::No);
}

#[test]
fn a_capable_receiver_is_detected_by_its_first_answer() {
    let config = Config { probes: ProbeNegotiation::Paper, receive_buffer: 64 * 960, ..Config::ns2_2001() };
    let mut setup = Setup::new(config, &peach(RecoveryMode::Sack), Duration::from_millis(500));
    setup.handshake = Handshake::Skipped(Some(Duration::from_secs(1)));
    let mut p: Pair<Counted> = setup.build();
    p.send(C, 2_000_000, false);
    p.run_until(secs(2.0));
    assert_eq!(p.conn(C).sender().probe_support(), ProbeSupport::Yes);
    assert_eq!(p.conn(C).snapshot().cwnd, 64.0);
}

#[test]
fn without_any_answer_slow_start_takes_over() {
    let config = Config { probes: ProbeNegotiation::Paper, receive_buffer: 64 * 960, ..Config::ns2_2001() };
    let mut setup = Setup::new(config, &peach(RecoveryMode::Sack), Duration::from_millis(500));
    setup.handshake = Handshake::Skipped(Some(Duration::from_secs(1)));
    let mut p: Pair<Counted> = setup.build();
    p.faults(C, |d| {
        if d.segment.mark.is_probe() {
            skyhaul_testkit::Verdict::Lose
        } else {
            skyhaul_testkit::Verdict::Deliver
        }
    });
    p.send(C, 2_000_000, false);
    // The last dummy leaves after 63/64 s; two RTTs later nothing has come back.
    p.run_until(secs(2.9));
    assert!(p.conn(C).snapshot().cwnd < 4.0, "congestion avoidance until then");
    p.run_until(secs(8.5));
    assert_eq!(p.conn(C).sender().probe_support(), ProbeSupport::Unknown);
    assert!(p.conn(C).snapshot().cwnd >= 48.0, "{:?}", p.conn(C).snapshot());
}

#[test]
fn an_aborted_or_timed_out_start_stops_its_train() {
    let (mut p, _) =
        transfer(Config::rfc(), &peach(RecoveryMode::Sack), 300_000, &[Pattern::CLEAN, Pattern::CLEAN]);
    p.at(secs(0.25), C, Act::Abort);
    p.run_until(secs(5.0));
    assert!(p.probes_sent(C).all(|e| e.at <= secs(0.25)));
    assert!(p.probes_sent(C).count() > 3);
}

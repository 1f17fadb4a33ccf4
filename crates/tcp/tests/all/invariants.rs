//! Invariants of the sender over random losses: halvings, timeouts, pipe.

use crate::common;

use common::{Pattern, Variant, cases, iss, secs, variants};
use proptest::prelude::*;
use skyhaul_base::{Duration, Instant};
use skyhaul_cc::{Config as Control, CongestionControl, Phase, Policy, RecoveryEnd, RecoveryMode};
use skyhaul_tcp::{Counted, Snapshot};
use skyhaul_testkit::pair::Handshake;
use skyhaul_testkit::{Pair, SegmentEvent, Setup, Side, Verdict};
use std::collections::BTreeSet;

const C: Side = Side::Client;

/// A one-way transfer of 200 kB over 2 x 50 ms.
fn one_way(v: &Variant) -> Pair<Counted> {
    let mut setup = Setup::new(v.config, &v.cc, Duration::from_millis(50))
        .both(|c| (c.receive_buffer, c.max_retransmissions) = (100_000, 0));
    setup.handshake = Handshake::Skipped(Some(Duration::from_millis(100)));
    let mut p = setup.build();
    p.send(C, 200_000, true);
    p.send(Side::Server, 0, true);
    p
}

/// What a variant asks of the sender.
fn policy(v: &Variant) -> Policy {
    v.cc.build(&v.config.rules).policy()
}

/// Calls `check` with the snapshot before and after each event.
fn watch(p: &mut Pair<Counted>, mut check: impl FnMut(&Pair<Counted>, &Snapshot, &Snapshot)) {
    let mut before = p.conn(C).snapshot();
    let end = p.run_with(secs(1e6), |p| {
        let after = p.conn(C).snapshot();
        check(p, &before, &after);
        before = after;
    });
    assert!(end && p.finished());
}

#[test]
fn without_loss_pipe_is_flight_size() {
    for v in variants() {
        let mut p = one_way(&v);
        watch(&mut p, |_, _, s| assert_eq!(s.pipe, s.in_flight, "{}", v.name));
        let c = p.conn(C).counters();
        assert_eq!((c.retransmissions, c.timeouts, c.recoveries), (0, 0, 0), "{}", v.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(300), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_halving_per_recovery_point(v in 0..variants().len(), forth in Pattern::strategy(), back in Pattern::strategy()) {
        let v = &variants()[v];
        // Reno halves again for each hole, and so does Peach by default.
        if policy(v).recovery == RecoveryMode::Reno || policy(v).recovery_end == RecoveryEnd::TriggeringSegment {
            return Ok(());
        }
        let mut p = one_way(v);
        p.faults(C, forth.faults());
        p.faults(Side::Server, back.faults());
        let (mut max, mut point, mut recoveries) = (0, 0, 0);
        watch(&mut p, |p, before, after| {
            let c = p.conn(C).counters();
            if c.recoveries > recoveries {
                assert!(before.una >= point || after.una >= point, "{}: halved twice", v.name);
                (recoveries, point) = (c.recoveries, max);
            }
            // Only an undo ends an episode before its point: it answered no loss, and the next one is a new one.
            let undoes = v.config.dsack_undo || v.config.eifel || v.config.f_rto;
            if undoes && before.phase != Phase::Open && after.phase == Phase::Open && after.una < point {
                point = 0;
            }
            max = max.max(after.nxt);
        });
    }

    #[test]
    fn no_timeout_while_acknowledgements_advance(v in 0..variants().len(), forth in Pattern::strategy(), back in Pattern::strategy()) {
        let v = &variants()[v];
        // The impatient variant of RFC 6582 lets the timer run through a recovery on purpose.
        if policy(v).recovery == RecoveryMode::NewReno && v.config.rto.restart_on_first_partial_only {
            return Ok(());
        }
        let mut p = one_way(v);
        p.faults(C, forth.faults());
        p.faults(Side::Server, back.faults());
        let (mut last, mut timeouts) = (Instant::ZERO, 0);
        watch(&mut p, |p, before, after| {
            let c = p.conn(C).counters();
            if c.timeouts > timeouts {
                timeouts = c.timeouts;
                assert!(p.now() - last >= v.config.rto.min, "{}: {:?} after an advance", v.name, p.now() - last);
            }
            if after.una > before.una {
                last = p.now();
            }
        });
    }

    #[test]
    fn without_answers_to_probes_peach_is_never_ahead_of_reno(
        mode in prop_oneof![Just(RecoveryMode::Sack), Just(RecoveryMode::NewReno), Just(RecoveryMode::Reno)],
        preset in 0..4usize,
        // At most one: a second loss can strike Reno in a larger window, at a worse moment.
        lost in proptest::option::of(0..200u32),
    ) {
        let presets = skyhaul_tcp::config::PRESETS;
        let config = skyhaul_tcp::Config::preset(presets[preset]).expect("a preset");
        let reno = match mode {
            RecoveryMode::Sack => "sack",
            RecoveryMode::NewReno => "newreno",
            _ => "reno",
        };
        let run = |cc: Control| {
            let v = Variant { name: String::new(), config, cc };
            let mut p = one_way(&v);
            // Each chosen segment is lost when it is sent first, whoever sends it.
            let mut left: BTreeSet<u32> = lost.into_iter().map(|n| n * config.mss).collect();
            p.faults(C, move |d| {
                let offset = d.segment.seq.0.wrapping_sub(iss(C) + 1);
                if d.is_data() && left.remove(&offset) { Verdict::Lose } else { Verdict::Deliver }
            });
            p.faults(Side::Server, |d| if d.segment.mark.is_answer() { Verdict::Lose } else { Verdict::Deliver });
            p.run_to_end(secs(1e5));
            let mut highest = 0;
            let steps: Vec<(Instant, u32)> = p
                .data_sent(C)
                .map(|e| {
                    highest = highest.max(e.segment.seq.0.wrapping_sub(iss(C)) + e.segment.len);
                    (e.at, highest)
                })
                .collect();
            steps
        };
        let (peach, reno) = (run(common::peach(mode)), run(Control::by_name(reno).expect("known")));
        for &(at, sent) in &peach {
            let behind = reno.iter().take_while(|(t, _)| *t <= at).last().map_or(0, |x| x.1);
            prop_assert!(sent <= behind, "{:?}: {} sent, Reno {}", at, sent, behind);
        }
    }
}

#[test]
fn every_probe_is_answered_and_answers_can_be_lost() {
    for v in variants().iter().filter(|v| v.is_peach()) {
        let mut p = one_way(v);
        p.faults(Side::Server, |d| if d.segment.mark.is_answer() { Verdict::Lose } else { Verdict::Deliver });
        assert!(p.run_to_end(secs(1e5)) && p.finished(), "{}", v.name);
        let answers = p.log.iter().filter(|e| e.event == SegmentEvent::Lost).count();
        let c = p.conn(C).counters();
        assert_eq!((c.probes_answered, c.probes_sent as usize), (0, answers), "{}", v.name);
    }
}

//! Each option by what it changes. The worked traces of the paper are run in `testing::ideal`.

mod avoidance;

use super::*;
use crate::control::ControlOptions;
use crate::event::{Blocked, Clock, ProbeSupport};
use crate::parts::inflation::Inflation;
use crate::rules::{HalvingBase, Rules};
use crate::testing::Stage;
use crate::{Actions, ProbeSource, RecoveryEnd, RecoveryMode, Train};
use alloc::string::ToString;
use alloc::vec::Vec;
use skyhaul_base::{Duration, Instant};

const RTT: Duration = Duration::from_millis(640);
const RWND: f64 = 64.0;

fn new(config: Config) -> Stage<Peach> {
    assert_eq!(config.validate(), Ok(()));
    Stage::new(Peach::new(&config, &Rules::NS2_2001), RWND)
}
fn started(config: Config) -> Stage<Peach> {
    let mut s = new(config);
    s.start(Some(RTT));
    s
}
/// Congestion avoidance with `cwnd` segments, all of them in flight.
fn at(cwnd: u32, config: Config) -> Stage<Peach> {
    let mut s = started(Config { start: Opening::Sudden, ..config });
    s.probe(cwnd - 1);
    s.path.set_in_flight(f64::from(cwnd));
    s.path.set_pipe(f64::from(cwnd));
    s.path.srtt = Some(RTT);
    assert_eq!(s.cwnd(), f64::from(cwnd));
    s
}
/// As [`at`], and the loss has just been found.
fn lost(cwnd: u32, config: Config) -> Stage<Peach> {
    let mut s = at(cwnd, config);
    s.duplicates(1..=3);
    s.congestion(Signal::Loss);
    assert_eq!(s.transmitted(0).probe_now, None, "the acknowledgement that found the loss clocks no dummies");
    s
}
/// Dummies asked for by acknowledgements of which each lets `sent` segments go.
fn dummies(s: &mut Stage<Peach>, acks: usize, sent: u32) -> Vec<u32> {
    (0..acks).map(|_| s.transmitted(sent).probe_now.map_or(0, |(_, n)| n)).collect()
}
fn reno_mode() -> Config {
    Config { recovery: RecoveryMode::Reno, ..Config::default() }
}
fn vars(s: &Stage<Peach>) -> (f64, f64, f64) {
    (s.cwnd(), s.variable("wdsn"), s.variable("adsn"))
}

// Sudden Start.

#[test]
fn a_start_spreads_rwnd_minus_one_dummies_over_the_rtt() {
    let act = new(Config::default()).start(Some(RTT));
    let tau = Duration::from_millis(10);
    let train = Train { source: ProbeSource::LastSegment, count: 63, first: tau, spacing: tau };
    assert_eq!(act, Actions { train: Some(train), ..Actions::default() });
    // Without any RTT one second is assumed.
    let act = new(Config::default()).start(None);
    assert_eq!(act.train.map(|t| t.spacing), Some(Duration::from_secs(1) / 64));
    // What was measured on data is preferred.
    let mut s = new(Config::default());
    s.path.srtt = Some(RTT * 2);
    assert_eq!(s.start(Some(RTT)).train.map(|t| t.spacing), Some(tau * 2));
}

#[test]
fn a_window_of_one_segment_leaves_nothing_to_probe_for() {
    let mut s = Stage::new(Peach::new(&Config::default(), &Rules::NS2_2001), 1.0);
    assert_eq!(s.start(Some(RTT)), Actions { stop_probes: true, ..Actions::default() });
}

#[test]
fn option_probe_cap() {
    let count =
        |cap| new(Config { probe_cap: cap, ..Config::default() }).start(Some(RTT)).train.map(|t| t.count);
    assert_eq!(count(None), Some(63));
    assert_eq!(count(Some(20)), Some(19));
    assert_eq!(count(Some(200)), Some(63));
    assert_eq!(count(Some(1)), None);
}

#[test]
fn option_limit_to_app() {
    let count = |queued, limit_to_app| {
        let mut s = new(Config { limit_to_app, ..Config::default() });
        s.path.set_queued(queued);
        s.start(Some(RTT)).train.map(|t| t.count)
    };
    assert_eq!(count(50.0, false), Some(63));
    assert_eq!(count(50.0, true), Some(49));
    assert_eq!(count(49.2, true), Some(49), "the last segment need not be full");
    assert_eq!(count(1.0, true), None);
    assert_eq!(count(f64::INFINITY, true), Some(63));
}

#[test]
fn option_start() {
    let mut s = new(Config { start: Opening::Slow, ..Config::default() });
    assert_eq!(s.start(Some(RTT)).train, None);
    assert_eq!((s.cwnd(), s.ssthresh()), (1.0, RWND));
    s.new_acks(3);
    assert_eq!(s.cwnd(), 4.0);
    for (syn_lost, cwnd) in [(false, 10.0), (true, 1.0)] {
        let mut s = Stage::new(
            Peach::new(&Config { start: Opening::Slow, ..Config::default() }, &Rules::MODERN),
            RWND,
        );
        s.call(|cc, cx| cc.on_start(cx, &Start::Established { rtt: None, syn_lost, cached: None }));
        assert_eq!(s.cwnd(), cwnd, "RFC 5681 §3.1: one segment after a lost SYN");
    }
}

#[test]
fn option_on_idle() {
    let mut s = at(30, Config::default());
    assert_eq!(s.idle().train.map(|t| t.count), Some(63));
    assert_eq!(s.cwnd(), 1.0);
    let mut s = at(30, Config { on_idle: Opening::Slow, ..Config::default() });
    assert_eq!(s.idle().train, None);
    assert_eq!(s.cwnd(), 1.0, "the initial window of the preset");
}

#[test]
fn answers_open_the_window_up_to_the_peers() {
    let mut s = started(Config::default());
    s.new_acks(1);
    assert_eq!(s.cwnd(), 2.0, "congestion avoidance from the start (R4)");
    s.probe(1);
    assert_eq!(s.cwnd(), 3.0);
    s.probe(100);
    assert_eq!(s.cwnd(), RWND);
    s.new_acks(10);
    assert_eq!(s.cwnd(), RWND);
}

// Timeouts.

#[test]
fn option_on_rto() {
    let mut s = at(30, Config { on_rto: Opening::Sudden, ..Config::default() });
    let act = s.timeout(1);
    assert_eq!(act.train.map(|t| (t.count, t.spacing)), Some((63, Duration::from_millis(10))));
    assert_eq!((s.cwnd(), s.ssthresh()), (1.0, 1.0));
    assert!(s.timeout(2).train.is_some(), "a train with each expiry");

    let mut s = at(30, Config::default());
    let act = s.timeout(1);
    assert_eq!((act.train, act.stop_probes), (None, true));
    assert_eq!((s.cwnd(), s.ssthresh()), (1.0, 15.0));
    s.timeout(2);
    assert_eq!(s.ssthresh(), 15.0);
    s.new_acks(14);
    assert_eq!(s.cwnd(), 15.0);
}

#[test]
fn a_timeout_forgets_the_guard() {
    for on_rto in [Opening::Sudden, Opening::Slow] {
        let mut s = lost(30, Config { on_rto, ..Config::default() });
        s.timeout(1);
        assert_eq!(vars(&s), (1.0, 0.0, 0.0));
        assert_eq!(dummies(&mut s, 5, 0), [0; 5]);
    }
}

// The reduction.

#[test]
fn a_loss_halves_and_grants_twice_the_half() {
    let s = lost(30, Config::default());
    assert_eq!(vars(&s), (15.0, 15.0, 30.0));
    assert_eq!(s.ssthresh(), 15.0);
    // The window is at least two segments, of which each is asked for twice.
    assert_eq!(vars(&lost(3, Config::default())), (2.0, 2.0, 4.0));
}

#[test]
fn a_loss_stops_the_train() {
    assert!(at(30, Config::default()).congestion(Signal::Loss).stop_probes);
}

#[test]
fn option_integer_halving() {
    assert_eq!(vars(&lost(31, Config::default())), (15.0, 15.0, 30.0));
    // Dummies are whole ones all the same.
    assert_eq!(vars(&lost(31, Config { integer_halving: false, ..Config::default() })), (15.5, 15.0, 30.0));
}

#[test]
fn option_halving_base() {
    let halved = |halving_base| {
        let mut s = at(30, Config { halving_base, ..Config::default() });
        s.path.set_in_flight(20.0);
        s.congestion(Signal::Loss);
        s.cwnd()
    };
    assert_eq!(halved(HalvingBase::Window), 15.0);
    assert_eq!(halved(HalvingBase::FlightSize), 10.0);
}

#[test]
fn option_inflate_ndup() {
    assert_eq!(lost(30, reno_mode()).cwnd(), 15.0);
    let mut s = lost(30, Config { inflate_ndup: 3.0, ..reno_mode() });
    assert_eq!(s.cwnd(), 18.0);
    s.recovered();
    assert_eq!(s.cwnd(), 15.0);
}

#[test]
fn option_rapid_recovery() {
    let mut s = lost(30, Config { rapid_recovery: false, ..Config::default() });
    // The guard stays: dummies of a Sudden Start may be on their way.
    assert_eq!(vars(&s), (15.0, 15.0, 0.0));
    assert_eq!(dummies(&mut s, 3, 0), [0; 3]);
}

#[test]
fn an_ecn_echo_halves_without_dummies() {
    let mut s = at(30, Config::default());
    s.congestion(Signal::Ecn);
    assert_eq!(vars(&s), (15.0, 0.0, 0.0));
    assert_eq!(dummies(&mut s, 3, 0), [0; 3]);
    // Declared corruption is repaired like any loss.
    let mut s = at(30, Config::default());
    s.congestion(Signal::Corruption);
    assert_eq!(vars(&s), (15.0, 15.0, 30.0));
}

#[test]
fn a_peer_that_has_not_answered_yet_gets_no_dummies() {
    let mut s = started(Config::default());
    s.path.probes = ProbeSupport::Unknown;
    s.congestion(Signal::Loss);
    assert_eq!(s.variable("adsn"), 0.0);
}

// Rapid Recovery.

#[test]
fn option_recovery_reno_and_newreno_inflate() {
    for recovery in [RecoveryMode::Reno, RecoveryMode::NewReno] {
        let mut s = lost(30, Config { recovery, ..Config::default() });
        assert_eq!(s.cc.policy().recovery, recovery);
        s.duplicates(4..=29);
        assert_eq!(s.cwnd(), 41.0);
        s.ack(AckKind::Full, 30.0);
        assert_eq!(s.cwnd(), 42.0, "the peak of Fig. 7");
        s.recovered();
        assert_eq!(s.cwnd(), 15.0);
    }
    let mut s = lost(30, Config { recovery: RecoveryMode::NewReno, ..Config::default() });
    s.duplicates(4..=29);
    s.ack(AckKind::Partial, 10.0);
    assert_eq!(s.cwnd(), 41.0 - 10.0 + 1.0);
    s.recovered();
    assert_eq!(s.cwnd(), 15.0);
}

#[test]
fn option_recovery_sack_leaves_the_window_at_half() {
    let mut s = lost(30, Config::default());
    let p = s.cc.policy();
    assert_eq!((p.recovery, p.gate_on_flight, p.probes), (RecoveryMode::Sack, false, true));
    s.duplicates(4..=29);
    s.ack(AckKind::Partial, 10.0);
    // Fifteen answers use up the guard; the others inflate the window until the recovery ends.
    s.probe(20);
    s.ack(AckKind::Full, 20.0);
    assert_eq!(s.cwnd(), 20.0);
    s.recovered();
    assert_eq!(s.cwnd(), 15.0);
}

#[test]
fn option_recovery_end() {
    let end = |config| started(config).cc.policy().recovery_end;
    let all = Config { recovery_end: RecoveryEnd::AllOutstanding, ..Config::default() };
    assert_eq!(end(all), RecoveryEnd::AllOutstanding);
    // Without Rapid Recovery there is only Reno's.
    let ablated = Config { rapid_recovery: false, ..Config::default() };
    assert_eq!(
        (ablated.recovery_end, end(ablated)),
        (RecoveryEnd::TriggeringSegment, RecoveryEnd::AllOutstanding)
    );
    let mut s = lost(32, Config::default());
    assert_eq!(s.cc.policy().recovery_end, RecoveryEnd::TriggeringSegment);
    // Two losses of one window halve twice.
    s.recovered();
    s.congestion(Signal::Loss);
    assert_eq!(s.cwnd(), 8.0);
}

#[test]
fn option_nackseg() {
    let config = Config { nackseg: Some(Nackseg::FlightSize), ..Config::default() };
    let mut s = lost(30, config);
    assert!(s.cc.policy().gate_on_flight);
    s.duplicate(4);
    assert_eq!(s.cwnd(), 16.0);
    // Inflating modes have no pipe to compare with.
    let wrong = Config { nackseg: Some(Nackseg::Pipe), ..reno_mode() };
    assert_eq!(wrong.validate(), Err(Invalid::Nackseg));
}

#[test]
fn option_dummies() {
    for config in [Config::default(), reno_mode()] {
        // By default only on acknowledgements that let no data go, two until they are spent.
        let mut s = lost(8, config.clone());
        assert_eq!(dummies(&mut s, 3, 1), [0, 0, 0]);
        assert_eq!(dummies(&mut s, 6, 0), [2, 2, 2, 2, 0, 0]);
        let mut s = lost(8, Config { dummies: Dummies::EveryAck, ..config });
        assert_eq!(dummies(&mut s, 6, 1), [2, 2, 2, 2, 0, 0]);
    }
}

#[test]
fn dummies_are_clocked_by_answers_too_but_not_by_timers_or_the_application() {
    let mut s = lost(8, Config::default());
    let mut on = |clock| {
        let transmit = Transmit { sent: 0, clock, blocked: Blocked::Cwnd };
        s.call(|cc, cx| cc.on_transmit(cx, &transmit)).probe_now.is_some()
    };
    assert!(!on(Clock::Timer));
    assert!(!on(Clock::App));
    assert!(on(Clock::Probe));
    assert!(on(Clock::Ack));
}

#[test]
fn no_dummies_for_data_that_is_not_there() {
    let mut s = lost(8, Config::default());
    s.path.set_queued(0.0);
    assert_eq!(dummies(&mut s, 3, 0), [0; 3]);
    s.path.set_queued(0.5);
    assert_eq!(dummies(&mut s, 1, 0), [2]);
}

#[test]
fn option_leftover_adsn() {
    let mut s = lost(8, Config::default());
    s.recovered();
    assert_eq!(dummies(&mut s, 2, 0), [0, 0]);
    let mut s = lost(8, Config { leftover_adsn: LeftoverAdsn::Keep, ..Config::default() });
    dummies(&mut s, 2, 0);
    s.recovered();
    assert_eq!(dummies(&mut s, 4, 0), [2, 2, 0, 0]);
}

#[test]
fn option_final_ack() {
    let ended = |final_ack| {
        let mut s = lost(30, Config { final_ack, ..reno_mode() });
        s.duplicates(4..=29);
        s.ack(AckKind::Full, 30.0);
        s.recovered();
        s
    };
    assert_eq!(ended(FinalAck::DeflateFirst).cwnd(), 15.0);
    // The send loop still sees the peak of Fig. 7, and it clocks no dummies: "if (cwnd > nackseg) ... else".
    let mut s = ended(FinalAck::SendFirst);
    assert_eq!(s.cwnd(), 42.0);
    assert!(s.cc.wants_transmit());
    assert_eq!(s.transmitted(31).probe_now, None);
    assert_eq!(s.cwnd(), 15.0);
    s.new_acks(15);
    assert_eq!(s.cwnd() as u64, 15, "taken back once");
    // What comes in between sees the window proper.
    let mut s = ended(FinalAck::SendFirst);
    s.congestion(Signal::Ecn);
    assert_eq!(s.cwnd(), 7.0);
    let mut s = ended(FinalAck::SendFirst);
    s.timeout(1);
    s.transmitted(1);
    assert_eq!(s.cwnd(), 1.0);
    // Without inflation there is no such order.
    let config = Config { final_ack: FinalAck::SendFirst, ..Config::default() };
    assert_eq!(config.validate(), Err(Invalid::FinalAck));
    assert_eq!(Config { nackseg: Some(Nackseg::FlightSize), ..config }.validate(), Ok(()));
}

#[test]
fn option_dummies_without_data() {
    let mut s = lost(8, Config { dummies_without_data: true, ..Config::default() });
    s.path.set_queued(0.0);
    assert_eq!(dummies(&mut s, 5, 0), [2, 2, 2, 2, 0]);
}

#[test]
fn options_that_exclude_each_other_are_refused_with_the_reason() {
    let ablated = Config { rapid_recovery: false, ..Config::default() };
    for (config, starts) in [
        (Config { inflate_ndup: 3.0, ..Config::default() }, "inflate-ndup needs an inflated window"),
        (Config { leftover_adsn: LeftoverAdsn::Keep, ..ablated.clone() }, "leftover-adsn"),
        (Config { dummies_without_data: true, ..ablated }, "dummies-without-data"),
    ] {
        let refused = config.validate().expect_err("refused").to_string();
        assert!(refused.starts_with(starts), "{refused}");
    }
}

// The guard.

#[test]
fn option_wdsn_on_restart() {
    for on_rto in [Opening::Sudden, Opening::Slow] {
        let mut s = lost(30, Config { on_rto, wdsn_on_restart: WdsnOnRestart::Keep, ..Config::default() });
        s.timeout(1);
        assert_eq!(vars(&s), (1.0, 15.0, 0.0));
        // Of the answers to the new train the first fifteen open nothing.
        s.path.phase = Phase::Open;
        s.probe(15);
        assert_eq!((s.cwnd(), s.variable("wdsn")), (1.0, 0.0));
        s.probe(1);
        assert_eq!(s.cwnd(), 2.0);
    }
    for (wdsn_on_restart, kept) in [(WdsnOnRestart::Keep, 15.0), (WdsnOnRestart::Zero, 0.0)] {
        for on_idle in [Opening::Sudden, Opening::Slow] {
            let mut s = lost(30, Config { wdsn_on_restart, on_idle, ..Config::default() });
            s.recovered();
            s.idle();
            assert_eq!(s.variable("wdsn"), kept, "{on_idle:?}");
        }
    }
}

#[test]
fn option_dummy_acks_in_recovery() {
    let mut s = lost(8, reno_mode());
    s.probe(5);
    assert_eq!(vars(&s).0, 5.0, "four lower the guard, one inflates");
    assert_eq!(s.variable("wdsn"), 0.0);
    s.recovered();
    assert_eq!(s.cwnd(), 4.0, "inflation is taken back");

    let mut s = lost(8, Config { dummy_acks_in_recovery: DummyAcksInRecovery::Ignore, ..reno_mode() });
    s.probe(5);
    assert_eq!((s.cwnd(), s.variable("wdsn")), (4.0, 4.0));
    s.recovered();
    s.probe(5);
    assert_eq!((s.cwnd(), s.variable("wdsn")), (5.0, 0.0));
}

#[test]
fn option_wdsn_on_loss() {
    let second = |wdsn_on_loss| {
        let mut s = lost(32, Config { wdsn_on_loss, ..Config::default() });
        s.recovered();
        s.probe(6);
        s.congestion(Signal::Loss);
        vars(&s)
    };
    assert_eq!(second(WdsnOnLoss::Overwrite), (8.0, 8.0, 16.0));
    assert_eq!(second(WdsnOnLoss::Accumulate), (8.0, 10.0 + 8.0, 16.0));
}

#[test]
fn option_strict_epoch() {
    let stale = |strict_epoch| {
        let mut s = lost(30, Config { strict_epoch, ..Config::default() });
        s.recovered();
        let event = ProbeEvent::Acked { count: 4, stale: true, newly_acked: 0 };
        s.call(|cc, cx| cc.on_probe(cx, event));
        s.variable("wdsn")
    };
    assert_eq!(stale(true), 15.0);
    assert_eq!(stale(false), 11.0);
}

#[test]
fn all_answers_restore_the_window_and_half_of_them_do_nothing() {
    let mut s = lost(31, Config::default());
    s.recovered();
    s.probe(15);
    assert_eq!(s.cwnd(), 15.0);
    s.probe(15);
    assert_eq!(s.cwnd(), 30.0, "twice the half: one less than an odd window");
}

// A peer that does not answer.

/// The same events to Peach that has fallen back and to Reno: the same windows.
fn like_reno(mut s: Stage<Peach>, mut reno: Stage<Reno>) {
    let same = |s: &Stage<Peach>, reno: &Stage<Reno>| {
        assert_eq!(s.cc.window(), reno.cc.window());
        assert_eq!(s.cc.policy(), reno.cc.policy());
    };
    same(&s, &reno);
    for round in 0..3 {
        let mut path = s.path.clone();
        path.set_in_flight(20.0);
        path.set_pipe(18.0);
        (s.path, reno.path) = (path.clone(), path);
        for _ in 0..40 {
            assert_eq!(s.ack(AckKind::New, 1.0), reno.ack(AckKind::New, 1.0));
            same(&s, &reno);
        }
        assert_eq!(s.congestion(Signal::Loss), reno.congestion(Signal::Loss));
        same(&s, &reno);
        for d in 4..=9 {
            assert_eq!(s.duplicate(d), reno.duplicate(d));
            assert_eq!(s.transmitted(0), Actions::default());
            same(&s, &reno);
        }
        s.ack(AckKind::Partial, 3.0);
        reno.ack(AckKind::Partial, 3.0);
        same(&s, &reno);
        assert_eq!(s.recovered(), reno.recovered());
        same(&s, &reno);
        assert_eq!(s.timeout(1 + round), reno.timeout(1 + round));
        same(&s, &reno);
        (s.path.phase, reno.path.phase) = (Phase::Open, Phase::Open);
        assert_eq!(s.idle(), reno.idle());
        same(&s, &reno);
    }
}

#[test]
fn without_capability_peach_is_exactly_the_configured_reno() {
    for recovery in [RecoveryMode::Reno, RecoveryMode::NewReno, RecoveryMode::Sack] {
        for rules in [Rules::NS2_2001, Rules::RFC] {
            let mut s = Stage::new(Peach::new(&Config { recovery, ..Config::default() }, &rules), RWND);
            s.path.probes = ProbeSupport::No;
            assert_eq!(s.start(Some(RTT)), Actions::default());
            let mut reno = Stage::new(Reno::new(&reno::Config::default(), &rules, recovery), RWND);
            reno.path.probes = ProbeSupport::No;
            reno.start(Some(RTT));
            like_reno(s, reno);
        }
    }
}

#[test]
fn an_unmodified_receiver_turns_peach_into_reno_with_slow_start_to_the_peers_window() {
    let mut s = new(Config::default());
    s.path.probes = ProbeSupport::Unknown;
    assert_eq!(s.start(Some(RTT)).wake_at, Some(Instant::ZERO + RTT * 3));
    s.new_acks(1);
    let act = s.unsupported();
    assert!(act.stop_probes && act.wake_at == Some(Instant::MAX));
    assert_eq!((s.cwnd(), s.ssthresh()), (2.0, RWND));
    let mut reno =
        Stage::new(Reno::new(&reno::Config::default(), &Rules::NS2_2001, RecoveryMode::Sack), RWND);
    reno.path.probes = ProbeSupport::No;
    reno.cc.take_over(s.cc.window(), Inflation::default());
    like_reno(s, reno);
}

#[test]
fn the_threshold_of_a_loss_survives_the_fallback() {
    let mut s = at(30, Config::default());
    s.path.probes = ProbeSupport::Unknown;
    s.congestion(Signal::Loss);
    s.recovered();
    s.unsupported();
    assert_eq!((s.cwnd(), s.ssthresh()), (15.0, 15.0));
}

#[test]
fn a_sudden_start_after_a_timeout_leaves_no_threshold_behind() {
    // With ssthresh = 1 of Sudden Start the fallback would crawl from one segment.
    let mut s = new(Config { on_rto: Opening::Sudden, ..Config::default() });
    s.path.probes = ProbeSupport::Unknown;
    s.start(Some(RTT));
    s.timeout(1);
    s.unsupported();
    assert_eq!((s.cwnd(), s.ssthresh()), (1.0, RWND));
}

#[test]
fn a_fallback_within_a_recovery_that_inflated_deflates_where_reno_would_not_have_inflated() {
    let mut s = at(30, Config { nackseg: Some(Nackseg::FlightSize), ..Config::default() });
    s.path.probes = ProbeSupport::Unknown;
    s.congestion(Signal::Loss);
    s.duplicates(4..=10);
    assert_eq!(s.cwnd(), 22.0);
    s.unsupported();
    assert_eq!(s.cwnd(), 15.0);
    // NewReno goes on inflating, and an undo does not restore the inflation.
    let mut s = at(30, Config { recovery: RecoveryMode::NewReno, ..Config::default() });
    s.path.probes = ProbeSupport::Unknown;
    s.congestion(Signal::Loss);
    s.duplicates(4..=10);
    s.unsupported();
    assert_eq!(s.cwnd(), 22.0);
    s.recovered();
    s.call(|cc, cx| cc.on_undo(cx));
    assert_eq!(s.cwnd(), 15.0);
}

#[test]
fn silence_means_slow_start() {
    let mut s = new(Config { on_rto: Opening::Sudden, ..Config::default() });
    s.path.probes = ProbeSupport::Unknown;
    s.start(Some(RTT));
    s.wake();
    assert_eq!((s.cwnd(), s.ssthresh()), (1.0, RWND));
    // A window that happens to be closed is no threshold.
    s.path.rwnd = 0.0;
    s.wake();
    assert_eq!(s.ssthresh(), f64::INFINITY);
    s.path.rwnd = RWND;
    // Also after the Sudden Start of a timeout.
    s.timeout(1);
    assert_eq!(s.ssthresh(), 1.0);
    s.wake();
    assert_eq!(s.ssthresh(), RWND);
    // A peer that answered, or a loss, make the wake-up mean nothing.
    let mut s = at(30, Config::default());
    s.wake();
    assert_eq!(s.ssthresh(), 1.0);
    let mut s = lost(30, Config::default());
    s.path.probes = ProbeSupport::Unknown;
    s.wake();
    assert_eq!(s.ssthresh(), 15.0);
}

#[test]
fn modes_that_peach_does_not_define_are_refused() {
    for recovery in [RecoveryMode::Tahoe, RecoveryMode::Prr] {
        let config = Config { recovery, ..Config::default() };
        assert_eq!(config.validate(), Err(Invalid::Recovery));
    }
    // Beside 1e300 segments of inflation the window proper would be lost to rounding, and 0 be left of it.
    for inflate_ndup in [f64::NAN, 1e300] {
        assert_eq!(Config { inflate_ndup, ..reno_mode() }.validate(), Err(Invalid::InflateNdup));
    }
}

// Undo.

#[test]
fn undo_restores_the_window_and_ends_rapid_recovery() {
    for config in [Config::default(), reno_mode()] {
        let mut s = lost(40, config);
        s.recovered();
        assert_eq!((s.cwnd(), s.ssthresh()), (20.0, 20.0));
        let act = s.call(|cc, cx| cc.on_undo(cx));
        assert!(act.stop_probes);
        assert_eq!((vars(&s), s.ssthresh()), ((40.0, 0.0, 0.0), 20.0));
        assert_eq!(s.transmitted(0).probe_now, None);
    }
}

#[test]
fn undo_of_a_timeout_within_a_recovery_restores_no_inflation() {
    let mut s = lost(40, Config { on_rto: Opening::Sudden, ..reno_mode() });
    s.duplicates(4..=13);
    s.timeout(1);
    s.timeout(2);
    assert_eq!((s.cwnd(), s.ssthresh()), (1.0, 1.0));
    s.call(|cc, cx| cc.on_undo(cx));
    assert_eq!((s.cwnd(), s.ssthresh()), (20.0, 20.0));
}

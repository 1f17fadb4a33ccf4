//! The worked trace of Quick Recovery on the idealised sender, then each option by what it changes.

use super::*;
use crate::ProbeSource;
use crate::control::ControlOptions;
use crate::rules::{HalvingBase, Rules};
use crate::testing::Stage;
use crate::testing::ideal::{Ideal, IdealEvent, Line};
use alloc::vec::Vec;
use skyhaul_base::{Duration, Instant};

const RTT: Duration = Duration::from_millis(550);
const RWND: f64 = 64.0;

fn secs(s: f64) -> Instant {
    Instant::from_secs_f64(s)
}
fn new(config: Config) -> Stage<PeachPlus> {
    assert_eq!(config.validate(), Ok(()));
    Stage::new(PeachPlus::new(&config, &Rules::NS2_2001), RWND)
}
/// Congestion avoidance with `cwnd` segments, all of them in flight.
fn at(cwnd: u32, config: Config) -> Stage<PeachPlus> {
    let mut s = new(config);
    s.start(Some(RTT));
    s.probe(cwnd - 1);
    s.path.set_in_flight(f64::from(cwnd));
    s.path.srtt = Some(RTT);
    assert_eq!(s.cwnd(), f64::from(cwnd));
    s
}
fn lost(cwnd: u32, config: Config) -> Stage<PeachPlus> {
    let mut s = at(cwnd, config);
    s.duplicates(1..=3);
    s.congestion(Signal::Loss);
    assert_eq!(s.transmitted(0).probe_now, None, "the acknowledgement that found the loss clocks nothing");
    s
}
fn nils(s: &mut Stage<PeachPlus>, acks: usize, sent: u32) -> u32 {
    (0..acks).map(|_| s.transmitted(sent).probe_now.map_or(0, |(_, n)| n)).sum()
}
fn vars(s: &Stage<PeachPlus>) -> (f64, f64, f64) {
    (s.cwnd(), s.variable("wdsn"), s.variable("adsn"))
}

// The worked trace: a window of 30, evenly spaced over an RTT of 0.55 s, of which segments are lost.

fn steady(config: Config, lose: &[u64]) -> Ideal<PeachPlus> {
    let cc = PeachPlus::new(&config, &Rules::NS2_2001);
    let mut run = Ideal::new(cc, Line { rtt: RTT, rate: None, buffer: usize::MAX }, RWND);
    run.stage.start(Some(RTT));
    run.stage.probe(29);
    run.stage.path.srtt = Some(RTT);
    run.lose.extend(lose);
    run.preload(30, RTT / 30);
    run
}
/// Moments in spacings after the first acknowledgement would have arrived: with one loss, which duplicate it is.
fn moments(run: &Ideal<PeachPlus>, what: impl Fn(IdealEvent) -> bool) -> Vec<u64> {
    let spacing = (RTT / 30).as_nanos();
    let since = |t: Instant| (t - secs(0.55)).as_nanos();
    run.log.iter().filter(|(_, h)| what(*h)).map(|(t, _)| (since(*t) + spacing / 2) / spacing).collect()
}
/// The pipe by the scoreboard, the timer by the left edge.
fn improved() -> Config {
    Config::reading("improved").expect("a reading")
}
fn is_new(h: IdealEvent) -> bool {
    matches!(h, IdealEvent::Sent { again: false, .. })
}
fn range(r: core::ops::RangeInclusive<u64>) -> Vec<u64> {
    r.collect()
}

#[test]
fn one_loss_with_the_pipe_of_the_scoreboard() {
    let mut run = steady(improved(), &[0]);
    run.run_until(secs(0.6051));
    assert_eq!((run.stage.cwnd(), run.stage.variable("adsn"), run.stage.path.pipe()), (15.0, 15.0, 27.0));
    run.run_until(secs(1.1549));
    assert_eq!(moments(&run, |h| h == IdealEvent::Probed), range(4..=15));
    assert_eq!(moments(&run, is_new), range(16..=29));
    run.run_until(secs(1.1551));
    assert_eq!(moments(&run, |h| h == IdealEvent::Recovered), [33]);
    assert_eq!(vars(&run.stage), (15.0, 0.0, 0.0), "three left over are dropped");
    assert_eq!(moments(&run, is_new).len(), 15, "FlightSize 14: one more");
    for k in 0..12 {
        run.run_until(secs(1.1732) + RTT / 30 * k);
        assert_eq!(run.stage.cwnd(), 15.0 + k as f64);
        run.run_until(secs(1.1735) + RTT / 30 * k);
        assert_eq!(run.stage.cwnd(), 16.0 + k as f64);
    }
}

#[test]
fn one_loss_with_the_counter() {
    let rules = [PipeRule::Counter, PipeRule::CounterLiteral];
    let starts = [PipeStart::Outstanding, PipeStart::Window];
    for (pipe, pipe_start) in rules.into_iter().flat_map(|pipe| starts.map(|start| (pipe, start))) {
        let mut run = steady(Config { pipe, pipe_start, ..Config::default() }, &[0]);
        run.run_until(secs(0.6051));
        assert_eq!((run.stage.cwnd(), run.stage.variable("adsn"), run.stage.path.pipe()), (15.0, 15.0, 28.0));
        run.run_until(secs(1.1549));
        assert_eq!(moments(&run, |h| h == IdealEvent::Probed), range(4..=16));
        assert_eq!(moments(&run, is_new), range(17..=29));
        run.run_until(secs(1.1551));
        assert_eq!(moments(&run, |h| h == IdealEvent::Recovered), [33]);
        assert_eq!(vars(&run.stage), (15.0, 0.0, 0.0), "two left over are dropped");
        assert_eq!(moments(&run, is_new).len(), 15, "FlightSize 13: two more");
        run.run_until(secs(1.3934));
        assert_eq!(run.stage.cwnd(), 28.0);
    }
}

#[test]
fn two_losses_are_one_halving() {
    // Segments 100 and 110. The latter is known lost with the twelfth duplicate and is the first to leave, with
    // the fifteenth at 0.8433 s.
    let mut run = steady(improved(), &[0, 10]);
    run.keep_probe = |_| false;
    run.run_until(secs(3.0));
    let again = moments(&run, |h| matches!(h, IdealEvent::Sent { again: true, .. }));
    assert_eq!(again, [3, 16]);
    assert_eq!(moments(&run, |h| h == IdealEvent::Reduced), [3]);
    // All NIL segments lost: the Recover ACK is that of the retransmission, 1.3933 s.
    assert_eq!(moments(&run, |h| h == IdealEvent::Recovered), [46]);
    // Eleven NIL segments on duplicates 4 to 14; from the tenth on, a duplicate comes one spacing later.
    assert_eq!(&moments(&run, |h| h == IdealEvent::Probed)[..11], [4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15]);

    // Where they arrive, the sixth one carries 110 (100, then 106 to 110 as what precedes is acknowledged): it
    // repairs the second loss at 1.265 s, before the retransmission does.
    let mut run = steady(improved(), &[0, 10]);
    run.run_until(secs(1.2649));
    assert_eq!(run.stage.cwnd(), 20.0, "five answers within the recovery");
    run.run_until(secs(1.2651));
    assert_eq!(moments(&run, |h| h == IdealEvent::Recovered), [39]);
    assert_eq!((run.stage.cwnd(), run.stage.variable("repaired")), (21.0, 1.0));
    run.run_until(secs(1.3751));
    assert_eq!(run.stage.cwnd(), 26.0, "eleven answers");
    assert_eq!(moments(&run, |h| h == IdealEvent::Reduced).len(), 1);

    // By the counter as printed, too.
    let mut run = steady(Config::default(), &[0, 10]);
    run.run_until(secs(3.0));
    let count = |what| moments(&run, |h| h == what).len();
    assert_eq!((count(IdealEvent::Reduced), count(IdealEvent::Recovered)), (1, 1));
    assert_eq!(moments(&run, |h| matches!(h, IdealEvent::Sent { again: true, .. })).len(), 2);
}

#[test]
fn the_printed_counter_leaks_what_partial_acknowledgements_repair() {
    // All NIL segments lost; after the partial acknowledgement at 1.155 s the counter that subtracts only what
    // was acknowledged stands one higher, so that it lets one segment less go.
    let sent = |pipe| {
        let mut run = steady(Config { pipe, ..Config::default() }, &[0, 10]);
        run.keep_probe = |_| false;
        run.run_until(secs(1.156));
        moments(&run, is_new).len()
    };
    assert_eq!(sent(PipeRule::Counter), sent(PipeRule::CounterLiteral) + 1);
}

#[test]
fn a_jump_start_opens_the_window_within_two_rtts_and_repairs_its_own_loss() {
    let cc = PeachPlus::new(&Config { max_burst: 0, ..Config::default() }, &Rules::NS2_2001);
    let line = Line { rtt: Duration::from_secs(1), rate: None, buffer: usize::MAX };
    let mut run = Ideal::new(cc.clone(), line, RWND);
    run.start();
    let cwnd: Vec<_> = (1..=4u32)
        .map(|t| {
            run.run_until(secs(t.into()));
            (run.stage.cwnd(), run.acked())
        })
        .collect();
    assert_eq!(cwnd, [(2.0, 1), (64.0, 3), (64.0, 67), (64.0, 131)], "as Sudden Start");

    // The first data segment is lost: every NIL segment copies it, and the first one repairs it at RTT + tau.
    let mut run = Ideal::new(cc, line, RWND);
    run.lose.insert(0);
    run.start();
    run.run_until(secs(1.0 + 1.0 / 64.0 + 1e-6));
    // One for the acknowledgement of the data, one for the NIL segment.
    assert_eq!((run.acked(), run.stage.cwnd()), (1, 3.0));
}

// Options.

#[test]
fn defaults_are_the_letter() {
    let p = new(Config::default()).cc.policy();
    assert_eq!((p.max_burst, p.recovery, p.probes), (4, RecoveryMode::Sack, true));
    let train = new(Config::default()).start(Some(RTT)).train.expect("a train");
    assert_eq!((train.source, train.count), (ProbeSource::UnackedModulo, 63));
    assert_eq!(train.spacing, RTT.mul_f64(1.0 / 64.0));
    assert_eq!(vars(&lost(30, Config::default())), (15.0, 0.0, 15.0));
    assert_eq!(vars(&lost(31, Config::default())), (15.0, 0.0, 15.0));
    assert_eq!(vars(&lost(3, Config::default())), (2.0, 0.0, 2.0));
}

#[test]
fn at_most_half_a_window_of_nil_segments_one_per_acknowledgement_without_data() {
    let mut s = lost(30, Config::default());
    assert_eq!(nils(&mut s, 5, 1), 0);
    assert_eq!(s.transmitted(0).probe_now, Some((ProbeSource::UnackedModulo, 1)));
    assert_eq!(nils(&mut s, 40, 0), 14);
    // Q8: not for data that is not there, if so read.
    let mut s = lost(30, Config { nil_without_data: false, ..Config::default() });
    s.path.set_queued(0.0);
    assert_eq!(nils(&mut s, 5, 0), 0);
    let mut s = lost(30, Config { quick_recovery: false, ..Config::default() });
    assert_eq!(nils(&mut s, 5, 0), 0);
}

#[test]
fn option_nil_ack_decrements() {
    let mut s = lost(30, Config::default());
    s.probe(4);
    assert_eq!(vars(&s), (19.0, 0.0, 11.0));
    s.probe(100);
    assert_eq!(vars(&s), (RWND, 0.0, 0.0), "never beyond rwnd, never below zero");
    let mut s = lost(30, Config { nil_ack_decrements: false, ..Config::default() });
    s.probe(4);
    assert_eq!(vars(&s), (19.0, 0.0, 15.0));
}

#[test]
fn option_retransmit_timer() {
    use crate::TimerRestart;
    for (retransmit_timer, restart) in [
        (RetransmitTimer::Advance, TimerRestart::Advance),
        (RetransmitTimer::NewSack, TimerRestart::NewSack),
        (RetransmitTimer::EverySack, TimerRestart::EverySack),
    ] {
        let p = new(Config { retransmit_timer, ..Config::default() }).cc.policy();
        assert_eq!(p.timer_restart, restart);
    }
    assert_eq!(Config::default().retransmit_timer, RetransmitTimer::EverySack);
    // Without Quick Recovery losses are repaired as with SACK.
    let p = new(Config { quick_recovery: false, ..Config::default() }).cc.policy();
    assert_eq!((p.pipe, p.timer_restart), (crate::Pipe::Scoreboard, TimerRestart::Advance));
}

#[test]
fn option_nil_pick() {
    let sources = [
        (NilPick::Modulo, ProbeSource::UnackedModulo),
        (NilPick::RoundRobin, ProbeSource::UnackedRoundRobin),
    ];
    for (nil_pick, source) in sources {
        let mut s = lost(30, Config { nil_pick, ..Config::default() });
        assert_eq!(s.transmitted(0).probe_now, Some((source, 1)));
    }
    assert_eq!(improved().nil_pick, NilPick::RoundRobin);
}

#[test]
fn option_nil_without_data() {
    for (nil_without_data, sent) in [(true, 15), (false, 0)] {
        let mut s = lost(30, Config { nil_without_data, ..Config::default() });
        s.path.set_queued(0.0);
        assert_eq!(nils(&mut s, 40, 0), sent);
    }
}

#[test]
fn option_wdsn_on_restart() {
    let keep = Config { wdsn_on_restart: WdsnOnRestart::Keep, ..Config::default() };
    assert_eq!(keep.validate(), Err(Invalid::NoGuard));
    let mut s = lost(30, Config { guard: Guard::Peach, ..keep });
    s.timeout(1);
    assert_eq!(vars(&s), (1.0, 15.0, 0.0));
    let mut s = lost(30, Config { guard: Guard::Peach, ..Config::default() });
    s.timeout(1);
    assert_eq!(vars(&s), (1.0, 0.0, 0.0));
}

#[test]
fn option_guard() {
    let mut s = lost(30, Config { guard: Guard::Peach, nil_ack_decrements: false, ..Config::default() });
    assert_eq!(vars(&s), (15.0, 15.0, 30.0));
    s.probe(15);
    assert_eq!(vars(&s), (15.0, 0.0, 30.0));
    s.probe(1);
    assert_eq!(s.cwnd(), 16.0);
    s.recovered();
    assert_eq!(vars(&s), (16.0, 0.0, 0.0));
}

#[test]
fn option_strict_epoch() {
    let stale = ProbeEvent::Acked { count: 3, stale: true, newly_acked: 0 };
    let mut s = lost(30, Config::default());
    s.call(|cc, cx| cc.on_probe(cx, stale));
    assert_eq!(s.cwnd(), 18.0);
    let mut s = lost(30, Config { strict_epoch: true, ..Config::default() });
    s.call(|cc, cx| cc.on_probe(cx, stale));
    assert_eq!(vars(&s), (15.0, 0.0, 15.0));
}

#[test]
fn option_on_rto_and_on_idle() {
    let mut s = at(30, Config { on_rto: Opening::Jump, ..Config::default() });
    assert!(s.timeout(1).train.is_some());
    assert_eq!((s.cwnd(), s.ssthresh()), (1.0, 1.0));
    let mut s = at(30, Config::default());
    assert_eq!(s.timeout(1).train, None);
    assert_eq!((s.cwnd(), s.ssthresh()), (1.0, 15.0));
    let mut s = at(30, Config::default());
    assert!(s.idle().train.is_some());
    let mut s = at(30, Config { on_idle: Opening::Slow, ..Config::default() });
    assert_eq!(s.idle().train, None);
    assert_eq!(s.cwnd(), 1.0);
    let mut s = new(Config { start: Opening::Slow, ..Config::default() });
    assert_eq!(s.start(Some(RTT)).train, None);
    assert_eq!(s.ssthresh(), RWND);
}

#[test]
fn options_of_the_train_and_of_halving() {
    let mut s = new(Config { probe_cap: Some(20), ..Config::default() });
    assert_eq!(s.start(Some(RTT)).train.map(|t| t.count), Some(19));
    let mut s = new(Config { limit_to_app: true, ..Config::default() });
    s.path.set_queued(50.0);
    assert_eq!(s.start(Some(RTT)).train.map(|t| t.count), Some(49));
    assert!(Config { probe_cap: Some(0), ..Config::default() }.validate().is_err());
    assert_eq!(lost(31, Config { integer_halving: false, ..Config::default() }).cwnd(), 15.5);
    let mut s = at(30, Config { halving_base: HalvingBase::FlightSize, ..Config::default() });
    s.path.set_in_flight(20.0);
    s.congestion(Signal::Loss);
    assert_eq!(s.cwnd(), 10.0);
}

#[test]
fn a_peer_that_does_not_answer_makes_it_reno() {
    let mut s = at(30, Config::default());
    assert!(s.unsupported().stop_probes);
    assert_eq!((s.cwnd(), s.ssthresh()), (30.0, RWND));
    s.congestion(Signal::Loss);
    assert_eq!(s.cwnd(), 15.0);
    assert_eq!(nils(&mut s, 5, 0), 0);
    let mut s = at(30, Config::default());
    s.congestion(Signal::Ecn);
    assert_eq!(vars(&s), (15.0, 0.0, 0.0), "an ECN echo halves without probing");
}

#[test]
fn budgets_through_arbitrary_events_whatever_the_options() {
    use crate::testing::model;
    let rules = Rules::NS2_2001;
    let mut probed = 0;
    for seed in 0..60 {
        let (guard, times) = if seed % 2 == 0 { (Guard::None, 1) } else { (Guard::Peach, 2) };
        let config = Config {
            guard,
            nil_ack_decrements: seed % 3 != 0,
            strict_epoch: seed % 5 == 0,
            on_rto: if seed % 4 == 0 { Opening::Slow } else { Opening::Jump },
            max_burst: if seed % 7 == 0 { 0 } else { 4 },
            ..Config::default()
        };
        let report =
            model::survive_copied(|| PeachPlus::new(&config, &rules), &rules, &model::ops(seed, 400));
        for e in &report.recoveries {
            assert!(e.probes <= times * e.ssthresh as u32, "{e:?}");
            assert!(e.capable || e.probes == 0, "{e:?}");
            probed += e.probes;
        }
        for (rwnd, train) in &report.trains {
            assert_eq!(train.count, *rwnd as u32 - 1);
        }
    }
    assert!(probed > 100);
}

#[test]
fn undo_restores_the_window_and_ends_quick_recovery() {
    let mut s = lost(40, Config::default());
    s.recovered();
    assert_eq!(s.cwnd(), 20.0);
    assert!(s.call(|cc, cx| cc.on_undo(cx)).stop_probes);
    assert_eq!((vars(&s), s.ssthresh()), ((40.0, 0.0, 0.0), 20.0));
    assert_eq!(nils(&mut s, 10, 0), 0);

    let mut s = at(40, Config::default());
    s.timeout(1);
    s.timeout(2);
    assert_eq!((s.cwnd(), s.ssthresh()), (1.0, 20.0));
    s.call(|cc, cx| cc.on_undo(cx));
    assert_eq!(s.cwnd(), 40.0);
}

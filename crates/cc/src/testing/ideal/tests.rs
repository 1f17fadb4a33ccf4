//! The worked traces of TCP-Peach (its Figs. 3, 6 to 9), and convergence on an idealised bottleneck.

use super::*;
use crate::Rules;
use crate::alg::peach::{self, Peach};
use crate::alg::reno::{self, Reno};
use crate::control::ControlOptions;
use alloc::vec;

const RTT: Duration = Duration::from_millis(550);

fn open(rtt: Duration) -> Line {
    Line { rtt, rate: None, buffer: usize::MAX }
}

/// Rules under which [Peach] draws its traces.
fn paper() -> Rules {
    Rules { inflate_ndup: 0.0, cap_at_rwnd: true, ..Rules::NS2_2001 }
}

fn reno_of(recovery: RecoveryMode) -> Reno {
    Reno::new(&reno::Config::default(), &paper(), recovery)
}
/// With SACK the traces are those of the reading `improved`, which sends a dummy on every acknowledgement.
fn peach_of(recovery: RecoveryMode) -> Peach {
    let config = match recovery {
        RecoveryMode::Sack => peach::Config::reading("improved").expect("a reading"),
        _ => peach::Config { recovery, ..peach::Config::default() },
    };
    Peach::new(&config, &paper())
}

fn secs(s: f64) -> Instant {
    Instant::from_secs_f64(s)
}

/// cwnd and segments acknowledged at whole RTTs.
fn by_round<C: CongestionControl>(cc: C) -> (Vec<f64>, Vec<u64>) {
    let mut run = Ideal::new(cc, open(Duration::from_secs(1)), 64.0);
    run.start();
    (1..=8)
        .map(|t| {
            run.run_until(secs(f64::from(t)));
            (run.stage.cwnd(), run.acked())
        })
        .unzip()
}

#[test]
fn t1_reno_doubles_every_rtt() {
    let (cwnd, acked) = by_round(reno_of(RecoveryMode::Sack));
    let whole: Vec<_> = cwnd.iter().map(|c| *c as u64).collect();
    assert_eq!(whole, [2, 4, 8, 16, 32, 64, 64, 64]);
    assert_eq!(acked, [1, 3, 7, 15, 31, 63, 127, 191]);
}

#[test]
fn t1_sudden_start_fills_the_window_within_two_rtts() {
    let (cwnd, acked) = by_round(peach_of(RecoveryMode::Sack));
    assert_eq!(cwnd, [2.0, 64.0, 64.0, 64.0, 64.0, 64.0, 64.0, 64.0]);
    assert_eq!(acked, [1, 3, 67, 131, 195, 259, 323, 387]);
}

#[test]
fn t1_one_more_segment_per_tau() {
    let tau = Duration::from_secs(1) / 64;
    let mut run = Ideal::new(peach_of(RecoveryMode::Sack), open(Duration::from_secs(1)), 64.0);
    run.start();
    run.run_until(Instant::ZERO + tau * 63);
    assert_eq!(run.stage.cwnd(), 1.0);
    for k in 0..=62 {
        run.run_until(Instant::ZERO + tau * (64 + k));
        assert_eq!(run.stage.cwnd(), 2.0 + k as f64, "at RTT + {k} tau");
    }
    // The full window stands at 126 tau, and what is left changes nothing.
    run.run_until(secs(5.0));
    assert_eq!(run.stage.cwnd(), 64.0);
    let probes = run.log.iter().filter(|(_, h)| *h == IdealEvent::Probed).count();
    assert_eq!(probes, 63);
    let last = run.log.iter().rfind(|(_, h)| *h == IdealEvent::Probed).map(|(t, _)| *t);
    assert_eq!(last, Some(Instant::ZERO + tau * 63));
}

/// Congestion avoidance with a window of 30, of which the first segment is about to be lost.
fn steady<C: CongestionControl>(cc: C, prepare: impl FnOnce(&mut Stage<C>)) -> Ideal<C> {
    let mut run = Ideal::new(cc, open(RTT), 64.0);
    prepare(&mut run.stage);
    run.stage.path.srtt = Some(RTT);
    run.lose.insert(0);
    run.preload(30, RTT / 30);
    run
}

fn steady_peach(recovery: RecoveryMode) -> Ideal<Peach> {
    steady_at_30(peach_of(recovery))
}

fn steady_at_30(cc: Peach) -> Ideal<Peach> {
    steady(cc, |s| {
        s.start(Some(RTT));
        s.probe(29);
        assert_eq!(s.cwnd(), 30.0);
    })
}

fn steady_reno(recovery: RecoveryMode) -> Ideal<Reno> {
    steady(reno_of(recovery), |s| {
        s.path.rwnd = 2.0; // The initial threshold: congestion avoidance from the start.
        s.start(Some(RTT));
        s.path.rwnd = 64.0;
        while s.cwnd() < 30.0 {
            s.ack(AckKind::New, 1.0);
        }
    })
}

/// Which duplicate acknowledgement a moment of Fig. 7 is: they arrive one spacing apart from 0.55 s on.
fn dupack(at: Instant) -> u64 {
    (at - secs(0.55)).as_nanos().div_ceil((RTT / 30).as_nanos() + 1)
}

fn counts<C>(run: &Ideal<C>, what: impl Fn(IdealEvent) -> bool) -> BTreeMap<u64, u64> {
    let mut n = BTreeMap::new();
    for (at, _) in run.log.iter().filter(|(_, h)| what(*h)) {
        *n.entry(dupack(*at)).or_default() += 1;
    }
    n
}

#[test]
fn t2_rapid_recovery_in_reno_mode() {
    let mut run = steady_peach(RecoveryMode::Reno);
    run.run_until(secs(0.6051));
    assert_eq!(
        (run.stage.cwnd(), run.stage.variable("wdsn"), run.stage.variable("adsn")),
        (15.0, 15.0, 30.0)
    );
    assert_eq!(
        run.log,
        [(run.log[0].0, IdealEvent::Reduced), (run.log[0].0, IdealEvent::Sent { index: 0, again: true })]
    );

    // 26 duplicates after the retransmission inflate, before the final acknowledgement.
    run.run_until(secs(1.1549));
    assert_eq!((run.stage.cwnd(), run.stage.variable("wdsn"), run.stage.variable("adsn")), (41.0, 15.0, 0.0));
    let dummies = counts(&run, |h| h == IdealEvent::Probed);
    assert_eq!(dummies, (4..=18).map(|d| (d, 2)).collect());
    let new = counts(&run, |h| matches!(h, IdealEvent::Sent { again: false, .. }));
    assert_eq!(new, (19..=29).map(|d| (d, 1)).collect());

    // The acknowledgement of the lost segment: 42, then 15, and four more segments.
    run.run_until(secs(1.1551));
    assert_eq!(run.stage.cwnd(), 15.0);
    assert_eq!(
        run.log.iter().filter(|(_, h)| matches!(h, IdealEvent::Sent { again: false, .. })).count(),
        15
    );
    assert_eq!(
        run.log.iter().rfind(|(_, h)| *h == IdealEvent::Recovered).map(|e| e.0),
        Some(run.log.last().unwrap().0)
    );

    // Fifteen answers lower the guard, fifteen open the window.
    run.run_until(secs(1.3016));
    assert_eq!((run.stage.cwnd(), run.stage.variable("wdsn")), (15.0, 1.0));
    run.run_until(secs(1.3018));
    assert_eq!((run.stage.cwnd(), run.stage.variable("wdsn")), (16.0, 0.0));
    run.run_until(secs(1.4299));
    assert_eq!(run.stage.cwnd(), 28.0);
    run.run_until(secs(1.4301));
    assert_eq!(run.stage.cwnd(), 30.0);
}

#[test]
fn t2_in_the_order_of_the_listing_sends_31_more_at_the_end() {
    // Fig. 4 sends before it takes the inflation back; with nackseg lowered by the acknowledgement as §IV-A has it,
    // a window of 42 stands against 11 outstanding.
    let config = peach::Config {
        recovery: RecoveryMode::Reno,
        final_ack: peach::FinalAck::SendFirst,
        ..peach::Config::default()
    };
    let mut run = steady_at_30(Peach::new(&config, &paper()));
    let new = |run: &Ideal<Peach>| counts(run, |h| matches!(h, IdealEvent::Sent { again: false, .. }));
    run.run_until(secs(1.1549));
    assert_eq!((run.stage.cwnd(), new(&run).values().sum::<u64>()), (41.0, 11));
    run.run_until(secs(1.1551));
    assert_eq!((run.stage.cwnd(), new(&run).values().sum::<u64>()), (15.0, 11 + 31));
}

#[test]
fn t2_rapid_recovery_in_sack_mode() {
    let mut run = steady_peach(RecoveryMode::Sack);
    let mut highest: f64 = 0.0;
    for step in 0..=1155 {
        run.run_until(secs(f64::from(step) / 1000.0 + 0.0001));
        if run.stage.path.phase == Phase::Recovery {
            highest = highest.max(run.stage.cwnd());
        }
    }
    assert_eq!(highest, 15.0);
    assert_eq!(counts(&run, |h| h == IdealEvent::Probed), (4..=18).map(|d| (d, 2)).collect());
    let new: Vec<_> =
        run.log.iter().filter(|(_, h)| matches!(h, IdealEvent::Sent { again: false, .. })).collect();
    assert_eq!(new.len(), 15);
    let on_dupacks: Vec<_> = new[..14].iter().map(|(t, _)| dupack(*t)).collect();
    assert_eq!(on_dupacks, (16..=29).collect::<Vec<_>>());
    run.run_until(secs(1.3018));
    assert_eq!(run.stage.cwnd(), 16.0);
    // Data sent on the sixteenth duplicate is acknowledged by now: growth of congestion avoidance comes on top.
    run.run_until(secs(1.4301));
    assert_eq!(run.stage.cwnd() as u64, 30);
}

#[test]
fn t2_by_default_dummies_go_where_no_data_may() {
    // Pipe 27 falls to 15 with the fifteenth duplicate; from the next one on, data leaves and dummies do not.
    let mut run = steady_at_30(Peach::new(&peach::Config::default(), &paper()));
    run.run_until(secs(1.1551));
    assert_eq!(counts(&run, |h| h == IdealEvent::Probed), (4..=15).map(|d| (d, 2)).collect());
    let new = counts(&run, |h| matches!(h, IdealEvent::Sent { again: false, .. }));
    assert_eq!(new.values().sum::<u64>(), 15);
    assert_eq!(new.keys().take(14).copied().collect::<Vec<_>>(), (16..=29).collect::<Vec<_>>());
    assert_eq!((run.stage.cwnd(), run.stage.variable("adsn")), (15.0, 0.0), "six left over are dropped");
    // Of 24 answers fifteen lower the guard and nine open the window.
    run.run_until(secs(1.3018));
    assert_eq!((run.stage.cwnd(), run.stage.variable("wdsn")), (16.0, 0.0));
    run.run_until(secs(1.3751));
    assert_eq!(run.stage.cwnd(), 24.0);
}

#[test]
fn t2_segments_acknowledged_beyond_the_lost_one() {
    let (mut peach, mut reno) = (steady_peach(RecoveryMode::Reno), steady_reno(RecoveryMode::Reno));
    let table: Vec<_> = [1.155, 1.65, 2.0, 2.3, 2.75, 3.3]
        .into_iter()
        .map(|t| {
            peach.run_until(secs(t + 0.0001));
            reno.run_until(secs(t + 0.0001));
            (peach.acked(), reno.acked())
        })
        .collect();
    assert_eq!(table, vec![(30, 30), (41, 41), (61, 46), (75, 60), (102, 72), (134, 89)]);
}

/// Departures of data.
fn departures<C>(run: &Ideal<C>) -> Vec<(Instant, IdealEvent)> {
    run.log.iter().filter(|(_, h)| matches!(h, IdealEvent::Sent { .. })).copied().collect()
}

#[test]
fn t3_half_of_the_dummies_leave_reno() {
    for mode in [RecoveryMode::Reno, RecoveryMode::NewReno, RecoveryMode::Sack] {
        let (mut peach, mut reno) = (steady_peach(mode), steady_reno(mode));
        peach.keep_probe = |n| n % 2 == 0;
        peach.run_until(secs(1.16));
        reno.run_until(secs(1.16));
        assert_eq!((peach.stage.cwnd(), reno.stage.cwnd()), (15.0, 15.0));
        peach.run_until(secs(5.0));
        reno.run_until(secs(5.0));
        assert_eq!(peach.stage.variable("wdsn"), 0.0);
        assert_eq!(departures(&peach), departures(&reno), "{mode:?}");
        assert_eq!(peach.stage.cwnd(), reno.stage.cwnd());
    }
}

#[test]
fn t3_one_dummy_more_opens_the_window_by_one() {
    let mut run = steady_peach(RecoveryMode::Reno);
    run.keep_probe = |n| n % 2 == 0 || n == 29;
    run.run_until(secs(1.44));
    assert_eq!(run.stage.cwnd(), 16.0);
}

#[test]
fn no_answers_at_all_never_put_peach_ahead() {
    let (mut peach, mut reno) = (steady_peach(RecoveryMode::Sack), steady_reno(RecoveryMode::Sack));
    peach.keep_probe = |_| false;
    peach.run_until(secs(5.0));
    reno.run_until(secs(5.0));
    assert_eq!(departures(&peach), departures(&reno));
}

#[test]
fn every_algorithm_fills_a_bottleneck_and_repairs_a_loss() {
    // 100 segments per second, 50 of them in the path; the peer offers 64, and the buffer takes any burst of that.
    for name in crate::NAMES {
        let cc = crate::Config::by_name(name).expect("listed").build(&Rules::NS2_2004);
        let line = Line {
            rtt: Duration::from_millis(500),
            rate: Some(Rate::from_bits_per_sec(800_000)),
            buffer: 70,
        };
        let mut run = Ideal::new(cc, line, 64.0);
        run.start();
        run.lose.insert(2000);
        run.run_until(secs(60.0));
        assert!((4_800..6_000).contains(&run.acked()), "{name}: {}", run.acked());
        assert_eq!(run.log.iter().filter(|e| e.1 == IdealEvent::Reduced).count(), 1, "{name}");
    }
}

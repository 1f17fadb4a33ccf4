//! Numbers worked out by hand, and the whole machine on an idealised bottleneck.

use super::*;
use crate::event::{AckKind, RateSample};
use crate::testing::ideal::{Ideal, Line};
use crate::testing::{Stage, ack};
use alloc::vec::Vec;

const RTT: Duration = Duration::from_millis(500);
const STARTUP: f64 = 0.0;
const DRAIN: f64 = 1.0;
const PROBE_BW: f64 = 2.0;
const PROBE_RTT: f64 = 3.0;

fn bbr(config: &Config) -> Bbr {
    assert_eq!(config.validate(), Ok(()));
    Bbr::new(config, &Rules::MODERN)
}
fn started(config: &Config) -> Stage<Bbr> {
    let mut s = Stage::new(bbr(config), 10_000.0);
    s.start(Some(RTT));
    s
}

/// An acknowledgement of one segment after `ms`, which says that the path carries `bits` per second.
fn acknowledge(s: &mut Stage<Bbr>, ms: u64, bits: u64, edit: impl FnOnce(&mut Ack)) {
    s.now += Duration::from_millis(ms);
    let prior_delivered = s.path.delivered;
    s.path.delivered += 1000;
    let sample = RateSample {
        delivered: 1000,
        interval: RTT,
        rate: Some(Rate::from_bits_per_sec(bits)),
        app_limited: false,
        prior_delivered,
        lost: 0,
        in_flight: 0,
    };
    let mut event = Ack { rate: Some(sample), rtt: Some(RTT), ..ack(AckKind::New, 1.0) };
    edit(&mut event);
    s.call(|cc, cx| cc.on_ack(cx, &event));
}
/// As [`acknowledge`], at the start of a round.
fn round(s: &mut Stage<Bbr>, ms: u64, bits: u64) {
    s.path.round += 1;
    acknowledge(s, ms, bits, |_| ());
}
/// A control that knows a path of 800 kbit/s and 500 ms, 50 segments of 1000 bytes, and cruises.
fn cruising(config: &Config) -> Stage<Bbr> {
    let mut s = started(config);
    s.path.set_pipe(60.0);
    (0..4).for_each(|_| round(&mut s, 500, 800_000));
    assert_eq!(s.variable("mode"), DRAIN);
    s.path.set_pipe(50.0);
    acknowledge(&mut s, 1, 800_000, |_| ());
    assert_eq!(s.variable("mode"), PROBE_BW);
    s
}
fn pacing(s: &Stage<Bbr>) -> f64 {
    s.cc.pacing_rate.unwrap_or(0.0)
}
fn close(a: f64, b: f64) -> bool {
    (a - b).max(b - a) <= 1e-9 * b
}

#[test]
fn the_first_rate_is_the_initial_window_per_rtt_times_the_gain() {
    let s = started(&Config::default());
    assert_eq!(s.cwnd(), 10.0);
    // 10 segments of 8000 bits in 0.5 s.
    assert!(close(pacing(&s), 0.99 * 2.885 * 160_000.0));
    // Without the RTT of the handshake the first sample decides.
    let mut s = Stage::new(bbr(&Config::default()), 10_000.0);
    s.start(None);
    assert_eq!(s.cc.pacing(), None);
    s.path.srtt = Some(RTT);
    acknowledge(&mut s, 500, 16_000, |_| ());
    assert!(close(pacing(&s), 0.99 * 2.885 * 160_000.0));
}

#[test]
fn startup_follows_the_rate_and_ends_three_rounds_after_it_stopped_growing() {
    let mut s = started(&Config::default());
    s.path.set_pipe(1000.0);
    let modes: Vec<_> = [200_000, 400_000, 800_000, 900_000, 999_000, 980_000]
        .into_iter()
        .map(|bits| {
            round(&mut s, 500, bits);
            assert!(pacing(&s) <= 0.99 * 2.885 * 999_000.0 * 1.000_001);
            s.variable("mode")
        })
        .collect();
    // 900 and 999 kbit/s are less than a quarter more than 800: not growth.
    assert_eq!(modes, [STARTUP, STARTUP, STARTUP, STARTUP, STARTUP, DRAIN]);
    assert!(close(pacing(&s), 0.99 / 2.885 * 999_000.0));
    // Drain ends at one BDP and three segments: 999 kbit/s · 0.5 s = 62.4.
    s.path.set_pipe(66.0);
    acknowledge(&mut s, 1, 900_000, |_| ());
    assert_eq!(s.variable("mode"), DRAIN);
    s.path.set_pipe(65.0);
    acknowledge(&mut s, 1, 900_000, |_| ());
    assert_eq!(s.variable("mode"), PROBE_BW);
}

#[test]
fn growth_and_samples_within_a_round_do_not_count_as_rounds() {
    let mut s = started(&Config::default());
    s.path.set_pipe(1000.0);
    round(&mut s, 500, 400_000);
    (0..20).for_each(|_| acknowledge(&mut s, 1, 400_000, |_| ()));
    assert_eq!(s.variable("mode"), STARTUP);
    round(&mut s, 500, 400_000);
    round(&mut s, 500, 510_000);
    round(&mut s, 500, 510_000);
    round(&mut s, 500, 510_000);
    assert_eq!(s.variable("mode"), STARTUP, "510 is growth: the count began anew");
    round(&mut s, 500, 510_000);
    assert_eq!(s.variable("mode"), DRAIN);
}

#[test]
fn samples_that_the_application_limited_only_raise_the_estimate() {
    let mut s = started(&Config::default());
    s.path.set_pipe(1000.0);
    let limited = |s: &mut Stage<Bbr>, bits| {
        s.path.round += 1;
        acknowledge(s, 500, bits, |a| {
            a.rate = a.rate.map(|r| RateSample { app_limited: true, ..r });
        });
    };
    round(&mut s, 500, 400_000);
    (0..10).for_each(|_| limited(&mut s, 100_000));
    assert_eq!((s.variable("bandwidth"), s.variable("mode")), (400_000.0, STARTUP));
    limited(&mut s, 450_000);
    assert_eq!(s.variable("bandwidth"), 450_000.0);
}

#[test]
fn the_estimate_lasts_ten_rounds() {
    let mut s = cruising(&Config::default());
    (0..10).for_each(|_| round(&mut s, 500, 600_000));
    assert_eq!(s.variable("bandwidth"), 800_000.0);
    round(&mut s, 500, 600_000);
    assert_eq!(s.variable("bandwidth"), 600_000.0);
}

#[test]
fn the_window_is_twice_the_bdp_and_three_segments() {
    let mut s = cruising(&Config::default());
    (0..200).for_each(|_| acknowledge(&mut s, 1, 800_000, |_| ()));
    assert_eq!(s.cwnd(), 2.0 * 50.0 + 3.0);
}

#[test]
fn option_extra_acked_allows_for_bursts_of_acknowledgements() {
    let burst = |extra_acked| {
        let mut s = cruising(&Config { extra_acked, ..Config::default() });
        (0..200).for_each(|_| acknowledge(&mut s, 10, 800_000, |_| ()));
        // Nothing for 80 ms, then nine segments at once: one was due in each 10 ms.
        s.path.delivered += 8000;
        acknowledge(&mut s, 90, 800_000, |_| ());
        (0..200).for_each(|_| acknowledge(&mut s, 10, 800_000, |_| ()));
        s.cwnd()
    };
    assert_eq!(burst(false), 103.0);
    // The silence ended one burst; in the next nine segments came at its first moment.
    assert_eq!(burst(true), 103.0 + 9.0);
    // At most 100 ms of the rate: ten segments.
    let mut s = cruising(&Config { extra_acked: true, ..Config::default() });
    s.path.delivered += 40_000;
    acknowledge(&mut s, 10, 800_000, |_| ());
    (0..200).for_each(|_| acknowledge(&mut s, 10, 800_000, |_| ()));
    assert_eq!(s.cwnd(), 113.0);
}

#[test]
fn the_gain_cycle() {
    let mut s = cruising(&Config::default());
    s.cc.cycle_index = 7;
    s.cc.cycle_stamp = s.now;
    let mut gains = Vec::new();
    for _ in 0..10 {
        // More than one RTT each; in flight what each phase wants to see.
        s.path.set_pipe(if s.variable("pacing_gain") > 1.0 { 65.0 } else { 60.0 });
        acknowledge(&mut s, 501, 800_000, |_| ());
        gains.push(s.variable("pacing_gain"));
        assert!(close(pacing(&s), 0.99 * s.variable("pacing_gain") * 800_000.0));
    }
    assert_eq!(gains, [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.25, 0.75]);
}

#[test]
fn probing_waits_for_the_queue_and_draining_for_its_end() {
    let mut s = cruising(&Config::default());
    let next = |s: &mut Stage<Bbr>, cycle: usize, ms, pipe, lost| {
        s.cc.cycle_index = cycle;
        s.cc.cycle_stamp = s.now;
        s.path.set_pipe(pipe);
        acknowledge(s, ms, 800_000, |a| a.lost = lost);
        s.cc.cycle_index != cycle
    };
    // 5/4 · 50 + 3 segments must be in flight before this acknowledgement of one, after a full RTT.
    assert!(!next(&mut s, 0, 501, 64.0, 0.0));
    assert!(next(&mut s, 0, 501, 65.0, 0.0));
    assert!(!next(&mut s, 0, 500, 100.0, 0.0));
    assert!(next(&mut s, 0, 501, 10.0, 1.0), "a loss: more does not fit");
    // Down to 50 + 3, or a full RTT.
    assert!(!next(&mut s, 1, 10, 53.0, 0.0));
    assert!(next(&mut s, 1, 10, 52.0, 0.0));
    assert!(next(&mut s, 1, 501, 90.0, 0.0));
    assert!(!next(&mut s, 2, 500, 90.0, 0.0));
    assert!(next(&mut s, 2, 501, 90.0, 0.0));
}

#[test]
fn the_cycle_starts_anywhere_but_with_the_phase_that_drains() {
    let mut starts = [0; 8];
    for seed in 0..700 {
        let mut s = started(&Config::default());
        s.rng = skyhaul_base::Rng::stream(seed, "flows.bulk.cc");
        s.path.set_pipe(1000.0);
        (0..4).for_each(|_| round(&mut s, 500, 800_000));
        s.path.set_pipe(0.0);
        acknowledge(&mut s, 1, 800_000, |_| ());
        starts[s.cc.cycle_index] += 1;
    }
    assert_eq!(starts[1], 0);
    // Each of the seven about a hundred times, within five standard deviations of 9.3.
    assert!(starts.iter().enumerate().all(|(i, &n)| i == 1 || (54..=146).contains(&n)), "{starts:?}");
}

#[test]
fn the_minimum_rtt_is_measured_anew_after_ten_seconds() {
    let config = Config::default();
    let mut s = cruising(&config);
    (0..100).for_each(|_| acknowledge(&mut s, 1, 800_000, |_| ()));
    let before = s.cwnd();
    let since = s.cc.min_rtt_stamp;
    while s.now - since <= Duration::from_secs(10) {
        assert_eq!(s.variable("mode"), PROBE_BW);
        round(&mut s, 100, 800_000);
    }
    assert_eq!((s.variable("mode"), s.cwnd()), (PROBE_RTT, 4.0));
    assert_eq!(s.variable("pacing_gain"), 1.0);
    // What is in flight drains first.
    s.path.set_pipe(20.0);
    acknowledge(&mut s, 300, 800_000, |_| ());
    s.path.set_pipe(4.0);
    acknowledge(&mut s, 1, 800_000, |_| ());
    let small_since = s.now;
    let mark = s.path.delivered;
    // 200 ms and a round: the answer to something sent since.
    let old = |a: &mut Ack| a.rate = a.rate.map(|r| RateSample { prior_delivered: mark - 1, ..r });
    acknowledge(&mut s, 250, 10_000, old);
    assert_eq!(s.variable("mode"), PROBE_RTT);
    acknowledge(&mut s, 1, 10_000, |_| ());
    assert!(s.now - small_since > Duration::from_millis(200));
    assert_eq!((s.variable("mode"), s.cwnd()), (PROBE_BW, before));
    assert_eq!(s.cc.min_rtt_stamp, s.now);
}

#[test]
fn a_short_round_does_not_shorten_the_measurement() {
    let mut s = cruising(&Config { probe_rtt_duration: 1.0, ..Config::default() });
    s.path.set_pipe(3.0);
    s.now += Duration::from_secs(11);
    acknowledge(&mut s, 0, 800_000, |_| ());
    for _ in 0..10 {
        assert_eq!(s.variable("mode"), PROBE_RTT);
        round(&mut s, 100, 800_000);
    }
    round(&mut s, 1, 800_000);
    assert_eq!(s.variable("mode"), PROBE_BW);
}

#[test]
fn option_equal_rtt_renews() {
    let mode = |equal_rtt_renews| {
        let mut s = cruising(&Config { equal_rtt_renews, ..Config::default() });
        (0..40).for_each(|_| round(&mut s, 500, 800_000));
        s.variable("mode")
    };
    assert_eq!(mode(true), PROBE_BW);
    let mut s = cruising(&Config::default());
    s.path.set_pipe(100.0);
    (0..40).for_each(|_| round(&mut s, 500, 800_000));
    assert_eq!(s.variable("mode"), PROBE_RTT);
}

#[test]
fn rates_of_the_measurement_are_no_sign_of_a_full_pipe() {
    let mut s = started(&Config::default());
    s.path.set_pipe(1000.0);
    round(&mut s, 500, 400_000);
    s.now += Duration::from_secs(11);
    round(&mut s, 1, 400_000);
    assert_eq!(s.variable("mode"), PROBE_RTT);
    let rounds = s.cc.full_bw_count;
    s.path.set_pipe(4.0);
    (0..3).for_each(|_| round(&mut s, 150, 50_000));
    assert_eq!((s.variable("mode"), s.cc.full_bw_count), (STARTUP, rounds));
    assert_eq!(s.variable("bandwidth"), 400_000.0);
}

#[test]
fn an_idle_path_is_taken_up_at_the_estimated_rate() {
    let mut s = cruising(&Config::default());
    s.now += Duration::from_secs(20);
    s.idle();
    assert!(close(pacing(&s), 0.99 * 800_000.0));
    acknowledge(&mut s, 500, 800_000, |_| ());
    assert_eq!(s.variable("mode"), PROBE_BW, "the silence has drained the path already");
}

#[test]
fn the_first_round_of_a_recovery_conserves_packets() {
    let mut s = cruising(&Config::default());
    (0..200).for_each(|_| acknowledge(&mut s, 1, 800_000, |_| ()));
    assert_eq!(s.cwnd(), 103.0);
    s.path.set_pipe(80.0);
    acknowledge(&mut s, 1, 800_000, |a| a.lost = 1.0);
    s.congestion(Signal::Loss);
    assert_eq!(s.cwnd(), 81.0, "in flight, and one for the one delivered");
    let mark = s.path.delivered;
    s.path.set_pipe(79.0);
    acknowledge(&mut s, 1, 800_000, |a| a.rate = None);
    assert_eq!(s.cwnd(), 81.0);
    // A round later it may grow again, and afterwards it is what it was.
    acknowledge(&mut s, 500, 800_000, |a| a.rate = a.rate.map(|r| RateSample { prior_delivered: mark, ..r }));
    assert_eq!(s.cwnd(), 82.0);
    s.recovered();
    assert_eq!(s.cwnd(), 103.0);
}

#[test]
fn a_loss_leaves_the_window_of_the_measurement_as_it_is() {
    let mut s = cruising(&Config::default());
    (0..200).for_each(|_| acknowledge(&mut s, 1, 800_000, |_| ()));
    s.now += Duration::from_secs(11);
    acknowledge(&mut s, 0, 800_000, |_| ());
    assert_eq!((s.variable("mode"), s.cwnd()), (PROBE_RTT, 4.0));
    s.path.set_pipe(60.0);
    s.congestion(Signal::Loss);
    assert_eq!(s.cwnd(), 4.0, "what is in flight still drains");
    s.recovered();
    assert_eq!(s.cwnd(), 4.0);
    // After the measurement the window is the one before both.
    s.path.set_pipe(3.0);
    acknowledge(&mut s, 1, 800_000, |_| ());
    round(&mut s, 600, 800_000);
    assert_eq!((s.variable("mode"), s.cwnd()), (PROBE_BW, 103.0));
}

#[test]
fn a_timeout_takes_one_segment_and_its_repair_gives_the_window_back() {
    let mut s = cruising(&Config::default());
    (0..200).for_each(|_| acknowledge(&mut s, 1, 800_000, |_| ()));
    s.timeout(1);
    assert_eq!(s.cwnd(), 1.0);
    s.timeout(2);
    s.path.set_pipe(1.0);
    acknowledge(&mut s, 1000, 800_000, |_| ());
    assert_eq!(s.cwnd(), 4.0);
    s.path.phase = Phase::Open;
    acknowledge(&mut s, 1, 800_000, |_| ());
    assert_eq!(s.cwnd(), 103.0);
}

#[test]
fn ecn_is_ignored() {
    let mut s = cruising(&Config::default());
    let before = s.cc.clone();
    s.congestion(Signal::Ecn);
    assert_eq!(alloc::format!("{:?}", s.cc), alloc::format!("{before:?}"));
}

/// Rounds in which `lost` segments are lost and `delivered` delivered; the last acknowledgement reveals a loss.
fn lossy_rounds(s: &mut Stage<Bbr>, rounds: u64, delivered: u64, lost: u64) {
    for _ in 0..rounds {
        s.path.delivered += (delivered - 1) * 1000;
        s.path.lost += lost * 1000;
        s.path.round += 1;
        acknowledge(s, 500, 800_000, |a| a.lost = 1.0);
    }
}

#[test]
fn a_policer_is_recognised_by_two_lossy_intervals_of_one_rate() {
    let mut s = cruising(&Config::default());
    // Starts with the first loss, whose round is the first of four; then three rounds of 25 segments in 0.5 s: 400 kbit/s, with
    // 40 % loss.
    lossy_rounds(&mut s, 4, 25, 10);
    assert_eq!((s.cc.policer.rate, s.cc.policer.in_use), (400_000.0, false));
    lossy_rounds(&mut s, 4, 25, 10);
    assert!(s.cc.policer.in_use);
    assert_eq!(s.variable("bandwidth"), 400_000.0);
    assert_eq!(s.variable("pacing_gain"), 1.0);
    // For 48 rounds.
    (0..47).for_each(|_| round(&mut s, 10, 800_000));
    assert!(s.cc.policer.in_use);
    round(&mut s, 10, 800_000);
    assert_eq!(s.variable("bandwidth"), 800_000.0);

    let mut s = cruising(&Config { policer: false, ..Config::default() });
    lossy_rounds(&mut s, 20, 25, 10);
    assert_eq!(s.variable("bandwidth"), 800_000.0);
}

#[test]
fn a_random_loss_rate_is_no_policer() {
    let mut s = cruising(&Config::default());
    // 2 of 50: far from 50/256.
    lossy_rounds(&mut s, 40, 50, 2);
    assert!(!s.cc.policer.in_use);
    // Lossy, but of different rates.
    let mut s = cruising(&Config::default());
    lossy_rounds(&mut s, 4, 25, 10);
    lossy_rounds(&mut s, 4, 50, 20);
    assert!(!s.cc.policer.in_use);
}

#[test]
fn undo_forgets_what_was_concluded_from_the_losses() {
    let mut s = cruising(&Config::default());
    lossy_rounds(&mut s, 9, 25, 10);
    s.path.set_pipe(10.0);
    s.congestion(Signal::Loss);
    s.recovered();
    s.call(|cc, cx| cc.on_undo(cx));
    assert!(!s.cc.policer.in_use);
    assert_eq!(s.cc.full_bw_count, 0);
}

#[test]
fn an_undo_does_not_restore_the_window_while_the_rtt_is_measured() {
    let mut s = cruising(&Config::default());
    (0..200).for_each(|_| acknowledge(&mut s, 1, 800_000, |_| ()));
    assert_eq!(s.cwnd(), 103.0);
    s.now += Duration::from_secs(11);
    acknowledge(&mut s, 0, 800_000, |_| ());
    assert_eq!((s.variable("mode"), s.cwnd()), (PROBE_RTT, 4.0));
    s.congestion(Signal::Loss);
    s.path.set_pipe(3.0);
    acknowledge(&mut s, 1, 800_000, |_| ());
    s.recovered();
    s.call(|cc, cx| cc.on_undo(cx));
    assert_eq!(s.cwnd(), 4.0);
}

#[test]
fn the_send_quantum_is_at_least_two_segments_on_a_fast_path() {
    // 30 Mbit/s: 30 kbit in a millisecond, less than half of a segment of 9000 bytes.
    let mut s = started(&Config::default());
    s.path.smss = 9000;
    s.cc.pacing_rate = Some(30e6);
    assert!(close(s.cc.inflight(&s.path, 30e6, 1.0), 30e6 * 0.5 / 72_000.0 + 3.0 * 2.0));
}

/// 100 segments a second over 490 ms, plus 10 ms of transmission: 50 segments.
fn bottleneck(config: &Config) -> Ideal<Bbr> {
    let line =
        Line { rtt: Duration::from_millis(490), rate: Some(Rate::from_bits_per_sec(800_000)), buffer: 500 };
    let mut run = Ideal::new(bbr(config), line, 10_000.0);
    run.start();
    run
}

#[test]
fn on_a_bottleneck_it_finds_the_rate_and_the_rtt() {
    let mut run = bottleneck(&Config { equal_rtt_renews: true, ..Config::default() });
    let at = |run: &mut Ideal<Bbr>, t| run.run_until(Instant::from_secs_f64(t));
    at(&mut run, 30.0);
    assert_eq!(run.stage.variable("mode"), PROBE_BW);
    assert_eq!(run.stage.variable("min_rtt"), 0.5);
    let (mut least, mut most) = (f64::INFINITY, 0.0f64);
    let acked = run.acked();
    for t in 30..60 {
        at(&mut run, f64::from(t));
        let bw = run.stage.variable("bandwidth");
        assert!((792_000.0..=808_001.0).contains(&bw), "{bw} bit/s at {t} s");
        assert_eq!(run.stage.cwnd() as u32, 103);
        least = least.min(run.stage.path.in_flight());
        most = most.max(run.stage.path.in_flight());
    }
    assert!(least >= 40.0 && most <= 70.0, "in flight {least} to {most}");
    // The link is busy: 100 segments in each of 29 seconds, less the margin of one per cent.
    let used = (run.acked() - acked) as f64 / 2900.0;
    assert!(used > 0.98, "{used}");
}

#[test]
fn startup_doubles_every_round_and_stops_within_a_few() {
    let mut run = bottleneck(&Config::default());
    let mut left = None;
    for t in 0..200 {
        run.run_until(Instant::from_secs_f64(f64::from(t) * 0.05));
        if left.is_none() && run.stage.variable("mode") != STARTUP {
            left = Some((f64::from(t) * 0.05, run.stage.path.round));
        }
    }
    // 10, 20, 40 segments in flight after three rounds; full at the fourth or fifth, three more to be sure.
    let (time, rounds) = left.expect("startup ends");
    assert!((6..=9).contains(&rounds), "{rounds} rounds, {time} s");
}

#[test]
fn every_ten_seconds_the_window_drops_to_four() {
    let mut run = bottleneck(&Config::default());
    let mut entered = Vec::new();
    let mut inside = false;
    for t in 0..6000 {
        run.run_until(Instant::from_secs_f64(f64::from(t) * 0.01));
        let now = run.stage.variable("mode") == PROBE_RTT;
        if now && !inside {
            entered.push(f64::from(t) * 0.01);
        }
        if now {
            assert!(run.stage.cwnd() <= 4.0);
        }
        inside = now;
    }
    // The first ten seconds count from the first sample; later ones from the end of the last measurement, which
    // takes about two RTTs.
    assert_eq!(entered.len(), 5, "{entered:?}");
    assert!(entered.windows(2).all(|w| (10.5..=11.5).contains(&(w[1] - w[0]))), "{entered:?}");
}

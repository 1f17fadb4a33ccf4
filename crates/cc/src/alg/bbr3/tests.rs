//! Numbers worked out by hand for each state, and the whole machine on an idealised bottleneck.

use super::*;
use crate::event::{AckKind, RateSample};
use crate::testing::ideal::{Ideal, Line};
use crate::testing::{Stage, ack};

mod machine;

const RTT: Duration = Duration::from_millis(500);

fn bbr(config: &Config) -> Bbr3 {
    assert_eq!(config.validate(), Ok(()));
    Bbr3::new(config, &Rules::MODERN)
}
fn started() -> Stage<Bbr3> {
    let mut s = Stage::new(bbr(&Config::default()), 10_000.0);
    s.start(Some(RTT));
    s
}

/// An acknowledgement of one segment after `ms`, sent with `in_flight` segments in the network, which says that the
/// path carries `bits` per second.
fn acknowledge(s: &mut Stage<Bbr3>, ms: u64, bits: u64, edit: impl FnOnce(&mut Ack)) {
    s.now += Duration::from_millis(ms);
    s.path.delivered += 1000;
    let sample = RateSample {
        // What the path delivers within its RTT.
        delivered: bits / 16,
        interval: RTT,
        rate: Some(Rate::from_bits_per_sec(bits)),
        app_limited: false,
        // Sent before this round began: none starts unless `round` says so.
        prior_delivered: s.cc.next_round_delivered.min(s.cc.loss_round_delivered).saturating_sub(1),
        lost: 0,
        in_flight: (s.path.pipe() as u64) * 1000,
    };
    let mut event = Ack { rate: Some(sample), rtt: Some(RTT), ..ack(AckKind::New, 1.0) };
    edit(&mut event);
    s.call(|cc, cx| cc.on_ack(cx, &event));
}
fn sample(a: &mut Ack, edit: impl FnOnce(&mut RateSample)) {
    edit(a.rate.as_mut().expect("every acknowledgement here has one"));
}
/// As [`acknowledge`], of a segment sent after all that had been delivered until now: a round starts.
fn round(s: &mut Stage<Bbr3>, ms: u64, bits: u64) {
    let now = s.path.delivered;
    acknowledge(s, ms, bits, |a| sample(a, |r| r.prior_delivered = now));
}
fn lose(s: &mut Stage<Bbr3>, in_flight: u64, lost: u64, same_gap: bool) {
    s.path.lost += 1000;
    let event =
        Lost { len: 1000, in_flight: in_flight * 1000, lost: lost * 1000, app_limited: false, same_gap };
    s.call(|cc, cx| cc.on_lost(cx, &event));
}
/// A control that knows a path of 800 kbit/s and 500 ms, 50 segments of 1000 bytes. It has drained it, found nothing
/// left to take down, and has been cruising for 1.1 s: the window is two bandwidth-delay products and the one segment
/// that an acknowledgement brings beyond the rate.
fn drained() -> Stage<Bbr3> {
    let mut s = started();
    s.path.set_pipe(60.0);
    (0..4).for_each(|_| round(&mut s, 100, 800_000));
    assert_eq!(s.cc.state, State::Drain);
    s.path.set_pipe(50.0);
    acknowledge(&mut s, 10, 800_000, |_| ());
    (0..100).for_each(|_| acknowledge(&mut s, 10, 800_000, |_| ()));
    (0..11).for_each(|_| round(&mut s, 10, 800_000));
    assert_eq!((s.cc.state, s.cwnd()), (State::ProbeBwCruise, 101.0));
    s
}
/// The same, searching: one round after the refill.
fn searching() -> Stage<Bbr3> {
    let mut s = drained();
    s.now += Duration::from_secs(3);
    s.cc.rtt.measured(s.now);
    acknowledge(&mut s, 10, 800_000, |_| ());
    assert_eq!(s.cc.state, State::ProbeBwRefill);
    round(&mut s, 10, 800_000);
    assert_eq!(s.cc.state, State::ProbeBwUp);
    s
}
fn pacing(s: &Stage<Bbr3>) -> f64 {
    s.cc.pacing_rate.unwrap_or(0.0)
}
fn close(a: f64, b: f64) -> bool {
    (a - b).max(b - a) <= 1e-9 * b
}

#[test]
fn the_first_rate_is_the_initial_window_per_rtt_times_the_gain() {
    let s = started();
    assert_eq!(s.cwnd(), 10.0);
    // 10 segments of 8000 bits in 0.5 s; no margin yet (§5.6.2).
    assert!(close(pacing(&s), 2.77 * 160_000.0));
    // Without the RTT of the handshake the first sample decides.
    let mut s = Stage::new(bbr(&Config::default()), 10_000.0);
    s.start(None);
    assert_eq!(s.cc.pacing(), None);
    s.path.srtt = Some(RTT);
    acknowledge(&mut s, 500, 16_000, |_| ());
    assert!(close(pacing(&s), 2.77 * 160_000.0));
}

#[test]
fn startup_ends_at_the_third_round_without_a_quarter_more() {
    let mut s = started();
    s.path.set_pipe(1000.0);
    let modes = [200_000, 400_000, 800_000, 900_000, 999_000, 980_000].map(|bits| {
        round(&mut s, 100, bits);
        s.cc.state
    });
    assert_eq!(modes[..5], [State::Startup; 5]);
    assert_eq!(modes[5], State::Drain);
    assert!(close(pacing(&s), 0.99 * 0.5 * 999_000.0));
    // One bandwidth-delay product: 999 kbit/s · 0.5 s = 62.4 segments.
    s.path.set_pipe(62.5);
    acknowledge(&mut s, 1, 900_000, |_| ());
    assert_eq!(s.cc.state, State::Drain);
    s.path.set_pipe(62.4);
    acknowledge(&mut s, 1, 900_000, |_| ());
    assert_eq!(s.cc.state, State::ProbeBwCruise);
    assert!(close(pacing(&s), 0.99 * 999_000.0));
    // A limit of the application is no plateau, and neither is a sample too short to tell.
    let mut s = started();
    round(&mut s, 100, 400_000);
    for i in 0..10 {
        let now = s.path.delivered;
        acknowledge(&mut s, 100, 400_000, |a| {
            sample(a, |r| {
                r.prior_delivered = now;
                r.app_limited = i % 2 == 0;
                r.rate = r.rate.filter(|_| i % 2 == 0);
            });
        });
    }
    assert_eq!(s.cc.state, State::Startup);
}

#[test]
fn drain_lasts_three_rounds_at_most() {
    let mut s = started();
    s.path.set_pipe(1000.0);
    (0..4).for_each(|_| round(&mut s, 100, 800_000));
    for _ in 0..3 {
        assert_eq!(s.cc.state, State::Drain);
        round(&mut s, 100, 800_000);
    }
    assert_eq!(s.cc.state, State::Drain);
    round(&mut s, 100, 800_000);
    assert_eq!(s.cc.state, State::ProbeBwDown);
}

/// Rounds of startup at 400 kbit/s with `gaps` losses of 100 segments each, in recovery. Returns the state and the
/// limit.
fn lossy_startup(gaps: u32, lost: u64, phase: Phase, sack: bool) -> (State, f64) {
    let mut s = started();
    s.path.sack = sack;
    s.path.set_pipe(100.0);
    round(&mut s, 100, 400_000);
    (0..gaps).for_each(|_| lose(&mut s, 100, 1, false));
    lose(&mut s, 100, 2, true);
    s.congestion(Signal::Loss);
    s.path.phase = phase;
    // The round of losses ends with what is sent from here on.
    acknowledge(&mut s, 100, 400_000, |_| ());
    let now = s.path.delivered;
    acknowledge(&mut s, 100, 500_000, |a| sample(a, |r| (r.prior_delivered, r.lost) = (now, lost * 1000)));
    (s.cc.state, s.cc.bounds.inflight_longterm)
}

#[test]
fn startup_ends_with_six_gaps_and_more_than_two_per_cent_lost_in_a_round() {
    // 500 kbit/s delivered in the last round: 31.25 segments per RTT, more than the estimate of 400 before.
    let out = lossy_startup(6, 3, Phase::Recovery, true);
    assert_eq!(out, (State::Drain, 31.25));
    assert_eq!(
        lossy_startup(5, 3, Phase::Recovery, true).0,
        State::Startup,
        "five gaps; the seventh loss widens one"
    );
    assert_eq!(lossy_startup(6, 2, Phase::Recovery, true).0, State::Startup, "2 of 100 is not more than 2 %");
    assert_eq!(lossy_startup(6, 3, Phase::Open, true).0, State::Startup, "no recovery");
    // Without selective acknowledgements one loss per round is all that can be seen.
    assert_eq!(lossy_startup(1, 1, Phase::Recovery, false).0, State::Drain);
}

#[test]
fn the_window_of_each_state() {
    // 50 segments of BDP: 100; the offload budget of six segments is less.
    assert_eq!(drained().cwnd(), 101.0);
    let mut s = searching();
    // 2.25 · 50 + 1 + 2.
    (0..100).for_each(|_| acknowledge(&mut s, 10, 800_000, |_| ()));
    assert_eq!((s.cc.state, s.cwnd()), (State::ProbeBwUp, 115.5));
    assert!(close(pacing(&s), 0.99 * 1.25 * 800_000.0));
}

#[test]
fn down_ends_without_a_queue_and_with_headroom() {
    let mut s = searching();
    s.path.set_pipe(51.0);
    (0..3).for_each(|_| round(&mut s, 100, 800_000));
    acknowledge(&mut s, 1, 800_000, |_| ());
    assert_eq!(s.cc.state, State::ProbeBwDown);
    assert!(close(pacing(&s), 0.99 * 0.9 * 800_000.0));
    // Of a limit of 50 segments 7.5 are left free.
    s.cc.bounds.inflight_longterm = 50.0;
    s.path.set_pipe(43.0);
    acknowledge(&mut s, 1, 800_000, |a| sample(a, |r| r.in_flight = 0));
    assert_eq!((s.cc.state, s.cwnd()), (State::ProbeBwDown, 50.0));
    s.path.set_pipe(42.5);
    acknowledge(&mut s, 1, 800_000, |a| sample(a, |r| r.in_flight = 0));
    assert_eq!((s.cc.state, s.cwnd()), (State::ProbeBwCruise, 42.5));
    assert!(close(pacing(&s), 0.99 * 800_000.0));
    // At least one segment of headroom, at least four of window.
    s.cc.bounds.inflight_longterm = 6.0;
    assert_eq!(s.cc.with_headroom(), 5.0);
    s.cc.bounds.inflight_longterm = 4.5;
    assert_eq!(s.cc.with_headroom(), 4.0);
}

#[test]
fn a_search_comes_after_two_to_three_seconds_or_as_many_rounds_as_reno_would_take() {
    let (mut shortest, mut longest) = (f64::INFINITY, 0.0f64);
    for seed in 0..200 {
        let mut s = started();
        s.rng = skyhaul_base::Rng::stream(seed, "flows.bulk.cc");
        s.path.set_pipe(60.0);
        (0..4).for_each(|_| round(&mut s, 100, 800_000));
        s.path.set_pipe(40.0);
        acknowledge(&mut s, 1, 800_000, |_| ());
        let from = s.now;
        while s.cc.state != State::ProbeBwRefill {
            acknowledge(&mut s, 1, 800_000, |_| ());
        }
        let waited = (s.now - from).as_secs_f64();
        (shortest, longest) = (shortest.min(waited), longest.max(waited));
    }
    assert!((2.0..2.05).contains(&shortest) && (2.95..=3.01).contains(&longest), "{shortest} to {longest}");
    // A window of 20 segments and rounds of 10 ms: 20 rounds, less the random first count.
    let mut s = drained();
    assert!((11..=12).contains(&s.cc.rounds_since_probe_up), "eleven rounds and 0 or 1");
    s.cc.rounds_since_probe_up = 1;
    s.cc.bounds.inflight_shortterm = 20.0;
    let mut rounds = 1;
    acknowledge(&mut s, 10, 800_000, |_| ());
    while s.cc.state == State::ProbeBwCruise {
        round(&mut s, 10, 800_000);
        rounds += 1;
    }
    assert_eq!((rounds, s.cc.state), (20, State::ProbeBwRefill));
}

#[test]
fn a_search_without_loss_ends_at_the_plateau() {
    let mut s = searching();
    for _ in 0..2 {
        round(&mut s, 100, 900_000);
    }
    assert_eq!(s.cc.state, State::ProbeBwUp);
    round(&mut s, 100, 900_000);
    assert_eq!(s.cc.state, State::ProbeBwDown);
    assert_eq!(s.cc.bounds, Bounds::default());
    // A quarter more than the first: the count starts over.
    let mut s = searching();
    (0..2).for_each(|_| round(&mut s, 100, 900_000));
    round(&mut s, 100, 1_000_000);
    (0..2).for_each(|_| round(&mut s, 100, 1_000_000));
    assert_eq!(s.cc.state, State::ProbeBwUp);
}

#[test]
fn the_rate_of_a_search_lasts_two_cycles() {
    let mut s = searching();
    (0..3).for_each(|_| round(&mut s, 100, 900_000));
    assert_eq!(s.variable("bandwidth"), 900_000.0);
    // The first cycle's answers end a round after it, the second's a round after the next search.
    round(&mut s, 100, 800_000);
    for _ in 0..2 {
        assert_eq!(s.variable("bandwidth"), 900_000.0);
        s.path.set_pipe(40.0);
        s.now += Duration::from_secs(3);
        s.cc.rtt.measured(s.now);
        (0..6).for_each(|_| round(&mut s, 10, 800_000));
    }
    assert_eq!(s.variable("bandwidth"), 800_000.0);
}

#[test]
fn two_per_cent_of_loss_end_a_search_and_are_remembered() {
    let mut s = searching();
    let target = s.cc.target_inflight(&s.path);
    assert_eq!(target, 50.0);
    lose(&mut s, 110, 1, false);
    lose(&mut s, 110, 2, true);
    assert_eq!(
        (s.cc.state, s.cc.bounds.inflight_longterm),
        (State::ProbeBwUp, f64::INFINITY),
        "2 of 110 is less than 2 %"
    );
    lose(&mut s, 110, 3, true);
    assert_eq!(s.cc.state, State::ProbeBwDown);
    // 109 before it with 2 lost: (0.02 · 109 - 2) / 0.98 = 0.1837 of this one would have fitted.
    assert!(close(s.cc.bounds.inflight_longterm, 109.0 + (0.02 * 109.0 - 2.0) / 0.98));
    assert!(s.cc.prev_probe_too_high);
    // Only once per search.
    lose(&mut s, 90, 30, true);
    assert!(s.cc.bounds.inflight_longterm > 109.0);
    // Never less than 0.7 of what is aimed at.
    let mut s = searching();
    lose(&mut s, 20, 10, false);
    assert_eq!(s.cc.bounds.inflight_longterm, 0.7 * 50.0);
    // What the application held back says nothing of a limit, but the search ends.
    let mut s = searching();
    let event = Lost { len: 1000, in_flight: 20_000, lost: 9000, app_limited: true, same_gap: false };
    s.call(|cc, cx| cc.on_lost(cx, &event));
    assert_eq!((s.cc.state, s.cc.bounds.inflight_longterm), (State::ProbeBwDown, f64::INFINITY));
}

#[test]
fn the_search_after_one_that_went_too_high_is_cut_short_and_repeated_at_once() {
    let mut s = searching();
    s.cc.bounds.inflight_longterm = 70.0;
    s.cc.prev_probe_too_high = true;
    s.path.set_pipe(69.0);
    acknowledge(&mut s, 1, 800_000, |_| ());
    assert_eq!(s.cc.state, State::ProbeBwUp);
    s.path.set_pipe(70.0);
    acknowledge(&mut s, 1, 800_000, |_| ());
    assert_eq!((s.cc.state, s.cc.prev_probe_precautionary), (State::ProbeBwDown, true));
    // A round later no excess is known: refill again, this time to stay.
    round(&mut s, 100, 800_000);
    assert_eq!((s.cc.state, s.cc.prev_probe_too_high), (State::ProbeBwRefill, false));
    round(&mut s, 100, 800_000);
    acknowledge(&mut s, 1, 800_000, |_| ());
    assert_eq!(s.cc.state, State::ProbeBwUp);
}

#[test]
fn the_limit_grows_by_one_two_four_segments_per_round() {
    let mut s = searching();
    s.cc.cwnd = 64.0;
    s.cc.bounds.inflight_longterm = 64.0;
    s.path.set_pipe(64.0);
    s.cc.bw_probe_up_rounds = 0;
    s.cc.raise_slope();
    // Each round is as many acknowledgements as the window has segments.
    let mut grown = [0.0; 3];
    for grown in &mut grown {
        let before = s.cc.bounds.inflight_longterm;
        let n = s.cc.cwnd as u32;
        for i in 0..n {
            s.transmitted(1);
            let quiet = |a: &mut Ack| sample(a, |r| r.in_flight = 0);
            if i == n - 1 {
                let now = s.path.delivered;
                acknowledge(&mut s, 1, 800_000, |a| {
                    sample(a, |r| (r.in_flight, r.prior_delivered) = (0, now));
                });
            } else {
                acknowledge(&mut s, 1, 800_000, quiet);
            }
        }
        *grown = s.cc.bounds.inflight_longterm - before;
    }
    assert_eq!(s.cc.state, State::ProbeBwUp);
    assert_eq!(grown, [1.0, 2.0, 4.0]);
    // Not while the window is not used up.
    let before = s.cc.bounds.inflight_longterm;
    s.cc.cwnd_limited = (false, false);
    (0..64).for_each(|_| acknowledge(&mut s, 1, 800_000, |a| sample(a, |r| r.in_flight = 0)));
    assert_eq!(s.cc.bounds.inflight_longterm, before);
    // What arrived without loss was safe.
    acknowledge(&mut s, 1, 800_000, |a| sample(a, |r| r.in_flight = 90_000));
    assert_eq!(s.cc.bounds.inflight_longterm, 90.0);
}

/// A loss outside of a search, and the round that tells of it: `bits` of rate are left.
fn lossy_round(s: &mut Stage<Bbr3>, bits: u64) {
    // The round before ends, so that its samples are forgotten.
    lose(s, 50, 1, false);
    s.cc.bw_latest = 0.0;
    s.cc.inflight_latest = 0.0;
    round(s, 100, bits);
}

#[test]
fn losses_while_cruising_bound_rate_and_window_for_the_rest_of_the_cycle() {
    let mut s = drained();
    lossy_round(&mut s, 700_000);
    // 700 kbit/s is more than 0.7 · 800; the 43.75 segments delivered are less than 0.7 · 101.
    let b = s.cc.bounds;
    assert_eq!((b.bw_shortterm, b.inflight_shortterm), (700_000.0, 0.7 * 101.0));
    assert_eq!((s.variable("bandwidth"), s.cwnd()), (700_000.0, 0.7 * 101.0));
    // Nothing more without a loss; with one at most 0.7 again.
    round(&mut s, 100, 100_000);
    assert_eq!(s.cc.bounds, b);
    lossy_round(&mut s, 100_000);
    assert_eq!(s.cc.bounds.bw_shortterm, 0.7 * 700_000.0);
    assert_eq!(s.cc.bounds.inflight_shortterm, 0.7 * (0.7 * 101.0));
    assert_eq!(s.cc.bounds.inflight_longterm, f64::INFINITY);
    // The refill forgets.
    s.now += Duration::from_secs(3);
    acknowledge(&mut s, 1, 100_000, |_| ());
    assert_eq!((s.cc.state, s.cc.bounds), (State::ProbeBwRefill, Bounds::default()));
    assert_eq!(s.variable("bandwidth"), 800_000.0);
}

#[test]
fn the_rtt_is_measured_after_five_seconds_at_half_of_the_bdp() {
    let mut s = drained();
    s.now += Duration::from_secs(5);
    acknowledge(&mut s, 0, 800_000, |_| ());
    assert_eq!((s.cc.state, s.cwnd()), (State::ProbeRtt, 25.0));
    assert!(close(pacing(&s), 0.99 * 800_000.0));
    s.path.set_pipe(26.0);
    acknowledge(&mut s, 300, 800_000, |_| ());
    assert_eq!(s.cc.probe_rtt_done_stamp, None);
    s.path.set_pipe(25.0);
    acknowledge(&mut s, 10, 800_000, |_| ());
    // 200 ms and a round.
    acknowledge(&mut s, 300, 10_000, |_| ());
    assert_eq!(s.cc.state, State::ProbeRtt);
    round(&mut s, 10, 10_000);
    assert_eq!((s.cc.state, s.cwnd()), (State::ProbeBwCruise, 101.0));
    assert_eq!(s.variable("bandwidth"), 800_000.0);
    // Before the 200 ms the round does not help.
    s.now += Duration::from_millis(5001);
    acknowledge(&mut s, 0, 800_000, |_| ());
    assert_eq!(s.cc.state, State::ProbeRtt);
    acknowledge(&mut s, 1, 800_000, |_| ());
    round(&mut s, 150, 10_000);
    assert_eq!(s.cc.state, State::ProbeRtt);
    acknowledge(&mut s, 51, 10_000, |_| ());
    assert_eq!(s.cc.state, State::ProbeBwCruise);
}

#[test]
fn the_minimum_rtt_lasts_ten_seconds_and_two_measurements() {
    let config = Config::default();
    let ms = Duration::from_millis;
    let at = |t| Instant::ZERO + ms(t);
    let mut rtt = MinRtt::default();
    rtt.begin(at(0), Some(ms(500)));
    // Longer samples: the recent least rises every five seconds, the least only after ten.
    let mut update = |t, r| {
        let expired = rtt.update(at(t), Some(ms(r)), &config);
        (expired, rtt.min())
    };
    assert_eq!(update(100, 600), (false, Some(ms(500))));
    assert_eq!(update(5050, 580), (false, Some(ms(500))));
    // 5.1 s after the 600, but the 580 renewed it.
    assert_eq!(update(5101, 700), (false, Some(ms(500))));
    assert_eq!(update(10_000, 650), (false, Some(ms(500))));
    assert_eq!(update(10_001, 800), (false, Some(ms(580))));
    // Five seconds after the 580: due, and the recent least starts over.
    assert_eq!(update(10_102, 900), (true, Some(ms(580))));
    assert_eq!(update(15_050, 950), (false, Some(ms(580))));
    assert_eq!(update(15_051, 950), (false, Some(ms(900))));
}

#[test]
fn idleness_needs_no_measurement_and_goes_on_at_the_estimated_rate() {
    let mut s = drained();
    s.now += Duration::from_secs(20);
    s.idle();
    assert!(close(pacing(&s), 0.99 * 800_000.0));
    s.path.set_pipe(10.0);
    acknowledge(&mut s, 500, 800_000, |_| ());
    assert!(s.cc.state.in_probe_bw(), "the silence has drained the path already");
    // Within a measurement it ends it.
    let mut s = drained();
    s.now += Duration::from_secs(6);
    s.path.set_pipe(5.0);
    acknowledge(&mut s, 0, 800_000, |_| ());
    acknowledge(&mut s, 1, 800_000, |_| ());
    assert_eq!(s.cc.state, State::ProbeRtt);
    s.now += Duration::from_secs(2);
    s.idle();
    assert_eq!(s.cc.state, State::ProbeBwCruise);
}

#[test]
fn recovery_keeps_the_window_and_a_timeout_gives_it_back() {
    let mut s = drained();
    s.congestion(Signal::Loss);
    assert_eq!(s.cwnd(), 101.0);
    s.recovered();
    assert_eq!(s.cwnd(), 101.0);
    s.timeout(1);
    assert_eq!(s.cwnd(), 1.0);
    s.timeout(2);
    acknowledge(&mut s, 10, 800_000, |_| ());
    assert_eq!(s.cwnd(), 4.0);
    s.path.phase = Phase::Open;
    acknowledge(&mut s, 10, 800_000, |_| ());
    assert_eq!(s.cwnd(), 101.0);
}

#[test]
fn a_spurious_episode_is_undone() {
    let undo = |s: &mut Stage<Bbr3>| {
        s.recovered();
        s.call(|cc, cx| cc.on_undo(cx));
    };
    // A search goes on with a refill, and without the limit.
    let mut s = searching();
    (1..6).for_each(|i| lose(&mut s, 110, i, i > 1));
    s.congestion(Signal::Loss);
    assert_eq!(s.cc.state, State::ProbeBwDown);
    undo(&mut s);
    assert_eq!((s.cc.state, s.cc.bounds), (State::ProbeBwRefill, Bounds::default()));
    // Cruising gets its short-term bounds back.
    let mut s = drained();
    lose(&mut s, 50, 1, false);
    s.congestion(Signal::Loss);
    round(&mut s, 100, 100_000);
    assert!(s.cwnd() < 100.0);
    undo(&mut s);
    assert_eq!((s.cwnd(), s.cc.bounds), (101.0, Bounds::default()));
    // Startup resumes.
    let mut s = started();
    s.path.set_pipe(100.0);
    round(&mut s, 100, 400_000);
    (0..7).for_each(|_| lose(&mut s, 100, 3, false));
    s.congestion(Signal::Loss);
    acknowledge(&mut s, 100, 400_000, |_| ());
    let now = s.path.delivered;
    acknowledge(&mut s, 100, 400_000, |a| sample(a, |r| (r.prior_delivered, r.lost) = (now, 3000)));
    assert_eq!(s.cc.state, State::Drain);
    undo(&mut s);
    assert_eq!((s.cc.state, s.cc.full_bw_reached), (State::Startup, false));
}

#[test]
fn option_ecn_counts_an_echo_as_excess() {
    let mut s = searching();
    s.path.set_pipe(80.0);
    s.congestion(Signal::Ecn);
    assert_eq!((s.cc.state, s.cc.bounds.inflight_longterm), (State::ProbeBwDown, 80.0));
    let mut s = started();
    round(&mut s, 100, 400_000);
    s.congestion(Signal::Ecn);
    round(&mut s, 100, 400_000);
    assert!(s.cc.full_bw_reached && s.cc.state != State::Startup);
    let mut s = Stage::new(bbr(&Config { ecn: false, ..Config::default() }), 10_000.0);
    s.start(Some(RTT));
    let before = alloc::format!("{:?}", s.cc);
    s.congestion(Signal::Ecn);
    assert_eq!(alloc::format!("{:?}", s.cc), before);
}

#[test]
fn aggregated_acknowledgements_widen_the_window() {
    let mut s = drained();
    s.path.delivered += 8000;
    acknowledge(&mut s, 90, 800_000, |_| ());
    (0..20).for_each(|_| acknowledge(&mut s, 10, 800_000, |_| ()));
    assert_eq!(s.cwnd(), 109.0);
    // A pause ends the burst; ten rounds later it is forgotten.
    acknowledge(&mut s, 100, 800_000, |_| ());
    (0..9).for_each(|_| round(&mut s, 10, 800_000));
    assert_eq!(s.cwnd(), 109.0);
    round(&mut s, 10, 800_000);
    assert_eq!(s.cwnd(), 101.0);
}

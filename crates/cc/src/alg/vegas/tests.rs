//! Numbers worked out by hand, and convergence to a few queued segments.

use super::*;
use crate::testing::ideal::{Ideal, Line};
use crate::testing::{Stage, ack};
use alloc::vec::Vec;
use skyhaul_base::Rate;

const BASE: Duration = Duration::from_millis(100);

fn vegas(config: Config) -> Vegas {
    assert_eq!(config.validate(), Ok(()));
    Vegas::new(&config, &Rules::NS2_2001)
}
fn linux() -> Config {
    Config { flavour: Flavour::Linux, ..Config::default() }
}

/// A whole round of `window` segments whose RTT was `rtt`, and the acknowledgement that ends it.
fn round(s: &mut Stage<Vegas>, window: u32, rtt: Duration) {
    s.path.set_in_flight(f64::from(window - 1));
    let event = Ack { rtt: Some(rtt), ..ack(AckKind::New, 1.0) };
    for _ in 0..window {
        s.call(|cc, cx| cc.on_ack(cx, &event));
    }
}

/// Congestion avoidance at `window` with a base RTT of 100 ms, at the beginning of a round.
fn at(window: u32, config: Config) -> Stage<Vegas> {
    let mut s = Stage::new(vegas(config), 64.0);
    s.start(None);
    s.cc.cwnd = f64::from(window);
    s.cc.ssthresh = 2.0;
    s.path.set_in_flight(f64::from(window - 1));
    let event = Ack { rtt: Some(BASE), ..ack(AckKind::New, 1.0) };
    s.call(|cc, cx| cc.on_ack(cx, &event));
    s.cc.cwnd = f64::from(window);
    s.cc.step = 0.0;
    s.cc.backlog.rtt_sum = Duration::ZERO;
    s.cc.backlog.rtt_count = 0;
    s.cc.backlog.rtt_min = Duration::MAX;
    s
}

#[test]
fn a_round_is_judged_by_the_segments_queued() {
    // Queued = W - W · base / rtt, to the nearest whole number.
    let after = |window, ms| {
        let mut s = at(window, Config::default());
        round(&mut s, window, Duration::from_millis(ms));
        (s.cwnd(), s.cc.step)
    };
    assert_eq!(after(20, 102), (20.05, 0.05), "0.4: grow by one segment during the next round");
    assert_eq!(after(20, 107), (20.0, 0.0), "1.3: hold");
    assert_eq!(after(20, 120), (20.0, 0.0), "3.3: hold");
    assert_eq!(after(24, 120), (23.0, 0.0), "4: one less");
    assert_eq!(after(2, 900), (2.0, 0.0), "never below two");
}

#[test]
fn the_window_falls_only_where_its_last_segment_brought_less_than_half_of_what_a_lone_one_has() {
    // Neglia et al. §4: the window falls if the throughput grew, with one segment more, by "less than one-half the
    // throughput achieved when only one segment was in transit". A path of 20 segments: beyond them they queue.
    let bdp = 20.0;
    let rtt = |w: u32| BASE.as_secs_f64() * (f64::from(w) / bdp).max(1.0);
    let throughput = |w: u32| f64::from(w) / rtt(w);
    let half = 0.5 * throughput(1);
    let mut falls = 0;
    for w in 3..=40 {
        let gained = throughput(w) - throughput(w - 1);
        let mut s = at(w, Config::default());
        round(&mut s, w, Duration::from_secs_f64(rtt(w)));
        let fell = s.cwnd() < f64::from(w);
        falls += u32::from(fell);
        if gained >= half {
            assert!(s.cc.step > 0.0 && !fell, "{w}: another segment still pays");
        }
        // Vegas proper tolerates beta = 3 segments in the queue before it follows that rule.
        assert_eq!(fell, gained < half && w > 23, "{w}");
    }
    assert_eq!(falls, 17);
}

#[test]
fn a_round_ends_with_the_first_segment_sent_after_its_beginning() {
    let mut s = at(20, Config::default());
    let event = Ack { rtt: Some(BASE), ..ack(AckKind::New, 1.0) };
    for _ in 0..19 {
        s.call(|cc, cx| cc.on_ack(cx, &event));
    }
    // All that was in flight at the mark has arrived: 19 segments were sent since, which would look like one queued.
    // How the sender counts rounds does not matter.
    s.path.round += 7;
    assert_eq!((s.cwnd(), s.cc.step), (20.0, 0.0));
    s.call(|cc, cx| cc.on_ack(cx, &event));
    assert_eq!((s.cwnd(), s.cc.step), (20.05, 0.05), "nothing queued: grow");
}

#[test]
fn a_timeout_leaves_the_round_and_the_base_rtt_alone() {
    let mut s = at(20, Config::default());
    s.now = Instant::from_secs_f64(5.0);
    s.timeout(1);
    // The head was lost, the rest had arrived: one acknowledgement covers all that was out. Another follows at once, and
    // neither gives a sample, since all was sent twice. What lies between them is no RTT.
    s.path.set_in_flight(0.0);
    s.now += Duration::from_millis(100);
    s.call(|cc, cx| cc.on_ack(cx, &Ack { rtt: None, ..ack(AckKind::New, 19.0) }));
    s.path.set_in_flight(1.0);
    s.now += Duration::from_millis(1);
    s.call(|cc, cx| cc.on_ack(cx, &Ack { rtt: None, ..ack(AckKind::New, 1.0) }));
    assert_eq!(s.variable("base_rtt"), 0.1);
    // A few such rounds of milliseconds: nothing is concluded from them, and the base RTT stays.
    for _ in 0..20 {
        s.now += Duration::from_millis(3);
        s.call(|cc, cx| cc.on_ack(cx, &Ack { rtt: None, ..ack(AckKind::New, 4.0) }));
    }
    assert_eq!((s.variable("base_rtt"), s.cwnd()), (0.1, 2.0));
    // Neither does a single segment in such a round renew it.
    s.path.set_in_flight(0.0);
    s.cc.backlog.begin(s.now, 0.0);
    s.now += Duration::from_millis(450);
    s.call(|cc, cx| cc.on_ack(cx, &Ack { rtt: None, ..ack(AckKind::New, 1.0) }));
    assert_eq!(s.variable("base_rtt"), 0.1);
}

#[test]
fn options_alpha_and_beta() {
    let config = Config { alpha: Some(4.0), beta: Some(6.0), ..Config::default() };
    let mut s = at(20, config);
    round(&mut s, 20, Duration::from_millis(120));
    assert_eq!(s.cwnd(), 20.05);
    assert!(Config { alpha: Some(5.0), ..Config::default() }.validate().is_err());
    assert!(Config { gamma: Some(-1.0), ..Config::default() }.validate().is_err());
    assert!(Config { recovery: Some(RecoveryMode::Tahoe), ..Config::default() }.validate().is_err());
}

#[test]
fn slow_start_doubles_every_other_round() {
    let line = Line { rtt: Duration::from_secs(1), rate: None, buffer: usize::MAX };
    let mut run = Ideal::new(vegas(Config::default()), line, 64.0);
    run.start();
    let cwnd: Vec<_> = (1..=12u32)
        .map(|t| {
            run.run_until(Instant::from_secs_f64(f64::from(t)));
            run.stage.cwnd() as u32
        })
        .collect();
    assert_eq!(cwnd, [1, 2, 2, 4, 4, 8, 8, 16, 16, 32, 32, 64]);
}

#[test]
fn slow_start_ends_when_more_than_gamma_are_queued() {
    let mut s = at(16, Config::default());
    s.cc.ssthresh = 64.0;
    s.cc.grows = false;
    // 16 - 16 · 100 / 115 = 2.1.
    round(&mut s, 16, Duration::from_millis(115));
    assert_eq!((s.cwnd(), s.ssthresh()), (14.0, 2.0));
    let mut s = at(16, Config { gamma: Some(2.0), ..Config::default() });
    s.cc.ssthresh = 64.0;
    s.cc.grows = false;
    round(&mut s, 16, Duration::from_millis(115));
    assert_eq!((s.cwnd(), s.ssthresh()), (17.0, 64.0));
    // In a round without growth nothing is concluded.
    let mut s = at(16, Config::default());
    s.cc.ssthresh = 64.0;
    s.cc.grows = true;
    round(&mut s, 16, Duration::from_millis(115));
    assert_eq!((s.cwnd(), s.ssthresh()), (16.0, 64.0));
}

#[test]
fn the_queue_settles_between_alpha_and_beta() {
    // 20 segments a second, 1 s + 50 ms of transmission: 21 segments fill the path.
    let rate = Some(Rate::from_bits_per_sec(160_000));
    for config in [Config::default(), linux()] {
        let (alpha, beta) = (config.alpha(), config.beta());
        let line = Line { rtt: Duration::from_secs(1), rate, buffer: 1000 };
        let mut run = Ideal::new(vegas(config), line, 64.0);
        run.start();
        for t in 100..200 {
            run.run_until(Instant::from_secs_f64(f64::from(t)));
            let queued = run.stage.cwnd() - 21.0;
            assert!((alpha..=beta + 1.0).contains(&queued), "{queued} queued at {t} s");
        }
        assert_eq!(run.stage.variable("base_rtt"), 1.05);
        // The link never idles: 20 segments in each of the last seconds.
        let acked = run.acked();
        run.run_until(Instant::from_secs_f64(249.0));
        assert_eq!(run.acked() - acked, 1000);
    }
}

#[test]
fn a_lone_segment_renews_the_base_rtt() {
    let mut s = at(4, Config::default());
    s.path.set_in_flight(0.0);
    s.cc.backlog.flight = 0.0;
    round(&mut s, 1, Duration::from_millis(100));
    round(&mut s, 1, Duration::from_millis(300));
    round(&mut s, 1, Duration::from_millis(300));
    assert_eq!(s.variable("base_rtt"), 0.3);
}

#[test]
fn the_fine_grained_timeout() {
    let mut fine = FineTimeout::default();
    assert!(!fine.expired(Duration::from_secs(100)), "nothing is known yet");
    // srtt 0.1, deviation 0.025 · ¾; (0.1 + 2 · 0.01875) · 17/16.
    fine.sample(BASE);
    assert_eq!(fine.timeout(), Duration::from_secs_f64(0.146_093_75));
    fine.back_off(false);
    assert_eq!(fine.timeout(), Duration::from_nanos(164_355_468), "an eighth more");
    fine.back_off(true);
    assert_eq!(fine.timeout(), Duration::from_nanos(328_710_936));
}

#[test]
fn one_duplicate_is_enough_for_an_old_head() {
    let mut s = at(20, Config::default());
    s.now = Instant::from_secs_f64(5.0);
    s.head(Duration::from_millis(140), 0);
    assert!(!s.duplicate(1).retransmit_head, "not old enough");
    s.head(Duration::from_millis(147), 0);
    assert!(s.duplicate(2).retransmit_head);
    assert_eq!((s.cwnd(), s.ssthresh()), (15.0, 2.0), "a quarter less");
    // The sender judges the head lost and says so: no second reduction, two segments have left the network.
    s.congestion(Signal::Loss);
    assert_eq!(s.cwnd(), 17.0);
    s.head(Duration::from_millis(1), 1);
    assert!(!s.duplicate(3).retransmit_head);
    assert_eq!(s.cwnd(), 18.0);
    s.ack(AckKind::Full, 1.0);
    s.recovered();
    assert_eq!(s.cwnd(), 15.0);
}

#[test]
fn three_duplicates_of_a_young_head_are_a_loss_as_well() {
    let reduced = |window, retransmissions| {
        let mut s = at(window, Config::default());
        s.now = Instant::from_secs_f64(5.0);
        s.head(Duration::from_millis(110), retransmissions);
        s.duplicates(1..=3);
        s.congestion(Signal::Loss);
        s.cwnd() - 3.0
    };
    assert_eq!(reduced(20, 0), 15.0);
    assert_eq!(reduced(20, 1), 10.0, "half for a segment lost again");
    assert_eq!(reduced(22, 0), 17.0, "22 - 22 div 4");
    assert_eq!(reduced(3, 0), 2.0);
}

#[test]
fn what_left_before_the_reduction_is_part_of_the_same_congestion() {
    let mut s = at(20, Config::default());
    s.now = Instant::from_secs_f64(5.0);
    s.head(Duration::from_millis(150), 0);
    s.duplicate(1);
    s.congestion(Signal::Loss);
    s.now += Duration::from_millis(100);
    // On the next acknowledgement the new head turns out to be old too: sent again, nothing else.
    s.head(Duration::from_millis(200), 0);
    assert!(s.ack(AckKind::Full, 1.0).retransmit_head);
    s.recovered();
    s.congestion(Signal::Loss);
    assert_eq!(s.cwnd(), 15.0);
    // Looked at on two acknowledgements only, and only as long as the head is old.
    s.path.phase = Phase::Open;
    assert!(s.ack(AckKind::New, 1.0).retransmit_head);
    assert!(!s.ack(AckKind::New, 1.0).retransmit_head);
    // What was sent since is a new congestion.
    s.now += Duration::from_millis(100);
    s.head(Duration::from_millis(50), 0);
    s.duplicates(1..=3);
    s.congestion(Signal::Loss);
    assert_eq!(s.cwnd(), 12.0 + 3.0);
}

#[test]
fn timeouts_and_ecn() {
    let mut s = at(20, Config::default());
    s.timeout(1);
    assert_eq!((s.cwnd(), s.ssthresh()), (2.0, 10.0));
    s.timeout(2);
    assert_eq!((s.cwnd(), s.ssthresh()), (2.0, 10.0));
    let mut s = at(20, Config::default());
    s.congestion(Signal::Ecn);
    assert_eq!(s.cwnd(), 10.0);
    let mut s = at(20, linux());
    s.timeout(1);
    assert_eq!((s.cwnd(), s.ssthresh()), (1.0, 10.0));
}

#[test]
fn undo_of_what_follows_within_a_recovery_restores_no_inflation() {
    // A recovery in a window of 20: 15 segments, and five duplicates beyond the first three.
    let inflated = || {
        let mut s = at(20, Config::default());
        s.now = Instant::from_secs_f64(5.0);
        s.head(Duration::from_millis(110), 0);
        s.duplicates(1..=3);
        s.congestion(Signal::Loss);
        s.duplicates(4..=8);
        assert_eq!(s.cwnd(), 15.0 + 3.0 + 5.0);
        s
    };
    let mut s = inflated();
    s.timeout(1);
    s.call(|cc, cx| cc.on_undo(cx));
    assert_eq!(s.cwnd(), 15.0);
    // A segment sent since that reduction is lost as well: a quarter less.
    let mut s = inflated();
    s.now += Duration::from_millis(300);
    s.head(Duration::from_millis(200), 0);
    s.duplicate(9);
    assert_eq!(s.cwnd(), 12.0);
    s.recovered();
    s.call(|cc, cx| cc.on_undo(cx));
    assert_eq!(s.cwnd(), 15.0);
}

#[test]
fn linux_judges_by_the_least_rtt_of_the_round() {
    // Queued = W · (rtt - base) / base, cut to a whole number.
    let after = |ms| {
        let mut s = at(20, linux());
        round(&mut s, 20, Duration::from_millis(ms));
        s.cwnd()
    };
    assert_eq!(after(109), 21.0, "1.8: one more");
    assert_eq!(after(110), 20.0, "2: hold");
    assert_eq!(after(120), 20.0, "4: hold");
    assert_eq!(after(125), 19.0, "5: one less");
}

#[test]
fn linux_leaves_slow_start_at_the_rate_that_it_measured() {
    let mut s = at(20, linux());
    s.cc.ssthresh = f64::INFINITY;
    s.cc.cwnd = 20.0;
    s.path.set_in_flight(19.0);
    s.cc.backlog.flight = 0.0;
    s.cc.backlog.rtt_count = 3;
    s.cc.backlog.rtt_min = Duration::from_millis(120);
    s.ack(AckKind::New, 1.0);
    assert_eq!((s.cwnd(), s.ssthresh()), (17.0, 17.0), "20 · 100 / 120, and one");
    // Too few samples: Reno.
    let mut s = at(20, linux());
    s.cc.backlog.flight = 0.0;
    s.cc.backlog.rtt_count = 2;
    s.cc.backlog.rtt_min = Duration::from_millis(500);
    s.ack(AckKind::New, 1.0);
    assert_eq!(s.cwnd(), 20.05);
    // Losses are the sender's business and halve.
    s.congestion(Signal::Loss);
    assert_eq!((s.cwnd(), s.ssthresh()), (10.0, 10.0));
}

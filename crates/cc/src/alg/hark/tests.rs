//! Each rule of Hark by what it changes, with numbers worked out by hand.

use super::delay::{OWN, OWN_SHARE};
use super::losses::CUT;
use super::probing::{DOUBT, DOUBT_MOST, Router};
use super::window::{BLIND_MOST, FAR_MOST, LATE, LATE_LEFT, OPENING_MOST};
use super::*;
use crate::control::ControlOptions;
use crate::event::{ProbeSupport, RateSample};
use crate::rules::Rules;
use crate::testing::{self, Stage};
use crate::{Actions, Clock};
use alloc::string::ToString;
use alloc::vec::Vec;

const RTT: Duration = Duration::from_millis(500);
/// Segments of the receiver's window.
const RWND: f64 = 400.0;

fn stage(config: &Config) -> Stage<Hark> {
    assert_eq!(config.validate(), Ok(()));
    let mut s = Stage::new(Hark::new(config, &Rules::MODERN), RWND);
    s.path.srtt = Some(RTT);
    s
}

fn started(config: &Config) -> (Stage<Hark>, Actions) {
    let mut s = stage(config);
    let act = s.start(Some(RTT));
    (s, act)
}

/// A round passes in which `window` segments are delivered, each after `rtt`; the first acknowledgement of the next one ends it.
fn round(s: &mut Stage<Hark>, rtt: Duration) -> Actions {
    s.now += rtt;
    let mut act = Actions::default();
    s.path.delivered += (s.cwnd() * 1000.0) as u64;
    for n in 1..=8 {
        s.path.round += u64::from(n == 8);
        let ack = Ack { rtt: Some(rtt), ..testing::ack(AckKind::New, 1.0) };
        act = s.call(|cc, cx| cc.on_ack(cx, &ack));
    }
    act
}

/// `count` probes are answered, an RTT after those that were sent last.
fn answered(s: &mut Stage<Hark>, count: u32) {
    s.now += RTT;
    s.probe(count);
}

fn rounds(s: &mut Stage<Hark>, n: u32, rtt: Duration) -> Actions {
    (0..n).fold(Actions::default(), |_, _| round(s, rtt))
}

/// A connection past its start, with an empty queue at first and `quiet` segments of window.
fn steady(config: &Config, quiet: f64) -> Stage<Hark> {
    let (mut s, _) = started(config);
    round(&mut s, RTT);
    (s.cc.start, s.cc.probing.starved, s.cc.quiet.late) = (None, false, 0.0);
    (s.cc.quiet.window, s.cc.probing.train) = (quiet, None);
    s.cc.apply(&s.path.clone());
    s
}

/// Ten probes leave now.
fn send(s: &mut Stage<Hark>, purpose: Purpose) {
    s.call(|cc, cx| assert_eq!(cc.probing.send(cx, 10.0, purpose, &cc.delay), 10));
}

fn ms(ms: u64) -> Duration {
    RTT + Duration::from_millis(ms)
}

#[test]
fn the_start_asks_for_a_window_of_the_papers() {
    let (s, act) = started(&Config::default());
    assert_eq!(s.cwnd(), 10.0);
    let train = act.train.expect("probes");
    assert_eq!(train.count, 64);
    assert_eq!(train.spacing, RTT.mul_f64(1.0 / 65.0), "over one round trip");
}

#[test]
fn an_answered_probe_opens_the_window_at_once_while_it_starts() {
    let (mut s, _) = started(&Config::default());
    s.probe(1);
    s.probe(3);
    assert_eq!(s.cwnd(), 14.0);
    s.path.rwnd = 16.0;
    s.probe(20);
    assert_eq!(s.cwnd(), 16.0, "never beyond the receiver's window");
    assert_eq!(s.variable("quiet"), 34.0, "which may grow");
}

#[test]
fn what_the_path_had_room_for_is_asked_for_twice() {
    let (mut s, _) = started(&Config::default());
    // The first acknowledgement ends the round of the first window; the answers come with those that follow.
    let first = Ack { rtt: Some(RTT), ..testing::ack(AckKind::New, 1.0) };
    s.call(|cc, cx| cc.on_ack(cx, &first));
    s.probe(64);
    let act = round(&mut s, RTT);
    let quiet = s.variable("quiet");
    assert!((74.0..=75.0).contains(&quiet), "{quiet}");
    assert_eq!(act.train.map(|t| t.count), Some((2.0 * quiet) as u32));
}

#[test]
fn without_probes_the_start_is_slow_start() {
    for known in [true, false] {
        let mut s = stage(&Config { probes: known, ..Config::default() });
        if known {
            s.path.probes = ProbeSupport::No;
        }
        assert_eq!(s.start(Some(RTT)), Actions::default());
        // The first acknowledgement ends the round of the first window.
        for expected in [40.0, 80.0, 160.0] {
            assert_eq!(round(&mut s, RTT).train, None);
            assert_eq!(s.cwnd(), expected);
        }
        // A queue of 20 ms in a window of 160: 6 own segments against a target of 3.
        round(&mut s, ms(20));
        assert_eq!((s.cwnd(), s.cc.start), (160.0 + (target(160.0) - 160.0 * s.cc.delay.queue / 0.52), None));
    }
}

#[test]
fn a_page_leaves_at_once_and_with_low_priority() {
    let mut s = stage(&Config::default());
    s.path.set_queued(50.0);
    let act = s.start(Some(RTT));
    assert_eq!((s.cwnd(), act.train), (50.0, None));
    let by = s.now + RTT * 2 + Duration::from_millis(50);
    assert_eq!(act.wake_at, Some(by));
    let priority = |s: &Stage<Hark>, segment: u64, again| s.cc.priority(1000 * segment, again);
    assert_eq!(priority(&s, 9, false), Priority::Normal);
    assert_eq!(priority(&s, 10, false), Priority::Low);
    assert_eq!(priority(&s, 49, false), Priority::Low);
    assert_eq!(priority(&s, 10, true), Priority::Normal, "a retransmission");
    assert_eq!(priority(&s, 50, false), Priority::Normal, "what comes later");
    // It came back in time.
    s.path.delivered = 50_000;
    s.path.set_in_flight(1.0);
    s.now = by;
    assert!(!s.wake().rewind);
    assert_eq!(s.cwnd(), 50.0);
}

#[test]
fn a_page_has_at_most_128_segments_and_sends_74_in_its_first_window() {
    for (segments, first) in
        [(11.0, Some(11_000)), (100.0, Some(74_000)), (128.0, Some(74_000)), (129.0, None)]
    {
        let mut s = stage(&Config::default());
        s.path.set_queued(segments);
        let act = s.start(Some(RTT));
        assert_eq!(s.cc.page.map(|p| p.first_window), first, "{segments}");
        let probes = if first.is_some() { None } else { Some(64) };
        assert_eq!(act.train.map(|t| t.count), probes, "{segments}");
    }
    let mut s = stage(&Config::default());
    s.path.set_queued(100.0);
    s.start(Some(RTT));
    assert_eq!(s.cc.priority(73_000, false), Priority::Low);
    assert_eq!(s.cc.priority(74_000, false), Priority::Normal, "what follows the first window");
}

#[test]
fn a_page_is_not_awaited_after_its_deadline() {
    for in_flight in [0.0, 1.0] {
        let mut s = stage(&Config::default());
        s.path.set_queued(50.0);
        s.now = s.start(Some(RTT)).wake_at.expect("a deadline");
        s.path.delivered = 50_000;
        s.path.set_in_flight(in_flight);
        assert!(s.cc.page.is_some_and(|p| p.deadline.is_some()));
        assert!(!s.wake().rewind);
        assert!(s.cc.page.is_some_and(|p| p.deadline.is_none()), "{in_flight} in flight");
    }
}

#[test]
fn the_start_ends_or_goes_on_by_slow_start_when_a_fifth_of_the_probes_vanish() {
    // 64 probes are sent; 0.8 of them are 51.2.
    for (answers, expected) in [
        (0, start::Verdict::FoundFull),
        (1, start::Verdict::FoundFull),
        (2, start::Verdict::Ends),
        (51, start::Verdict::Ends),
        (52, start::Verdict::GoesOn),
        (64, start::Verdict::GoesOn),
    ] {
        let mut start = Start::NEW;
        start.set_sent(64);
        start.next_round(FIRST);
        let answered = f64::from(answers);
        assert_eq!(start.judge(answered, start.window_with(answered)), expected, "{answers}");
        let latecomer = matches!(start, Start::Latecomer { .. });
        assert_eq!(latecomer, expected == start::Verdict::FoundFull, "{answers}");
    }
}

#[test]
fn a_page_on_a_full_path_begins_again() {
    let mut s = stage(&Config::default());
    s.path.set_queued(50.0);
    s.now = s.start(Some(RTT)).wake_at.expect("a deadline");
    s.path.set_in_flight(40.0);
    s.path.delivered = 12_000;
    let act = s.wake();
    assert!(act.rewind);
    assert_eq!((s.cwnd(), s.cc.start), (24.0, None), "twice what came through");
    assert_eq!(s.cc.priority(20_000, false), Priority::Normal);
}

#[test]
fn losses_leave_the_window_and_reduce_the_firm_one() {
    let mut s = steady(&Config::default(), 100.0);
    s.cc.rival.firm = 60.0;
    s.path.lost = 1000;
    s.congestion(Signal::Loss);
    assert_eq!((s.cwnd(), s.variable("firm")), (100.0, 42.0));
    s.congestion(Signal::Ecn);
    assert_eq!((s.cwnd(), s.variable("firm")), (50.0, 29.4), "a mark is no corruption");
}

/// As [`round`], with this share of its segments lost.
fn lossy(s: &mut Stage<Hark>, rtt: Duration, share: f64) -> Actions {
    let gone = s.cwnd() * 1000.0 * share;
    s.path.lost += gone as u64;
    let before = s.path.delivered;
    let act = round(s, rtt);
    s.path.delivered = before.max(s.path.delivered - gone as u64);
    act
}

#[test]
fn a_loss_with_a_full_queue_is_answered_by_its_share() {
    let mut s = steady(&Config::default(), 100.0);
    // A queue of 8 ms is below the target of 2.4 segments, but the longest one seen.
    rounds(&mut s, 2, ms(8));
    let before = s.variable("quiet");
    lossy(&mut s, ms(8), 0.1);
    let cut = 1.0 - s.variable("quiet") / before;
    let share = 0.1 / 1.1;
    assert!((cut - CUT * share).abs() < 1e-2, "{cut}");
    // With an empty queue it is none of ours.
    let quiet = s.variable("quiet");
    lossy(&mut s, RTT, 0.1);
    assert!(s.variable("quiet") >= quiet);
}

#[test]
fn losses_that_the_path_has_anyway_are_forgiven() {
    let mut s = steady(&Config::default(), 100.0);
    for _ in 0..60 {
        lossy(&mut s, RTT, 0.05);
    }
    assert!((s.variable("innocent") - 0.05).abs() < 5e-3, "{}", s.variable("innocent"));
    round(&mut s, ms(6));
    let before = s.variable("quiet");
    lossy(&mut s, ms(6), 0.05);
    assert!(s.variable("quiet") > 0.99 * before);
}

#[test]
fn a_collapse_is_answered_whatever_the_delay() {
    let mut s = steady(&Config { probes: false, ..Config::default() }, 100.0);
    let mut least = s.cwnd();
    for _ in 0..20 {
        lossy(&mut s, RTT, 0.7);
        least = s.cwnd().min(least);
    }
    assert!(least < 20.0, "{least}");
}

#[test]
fn a_competitor_is_one_whose_queue_stands_for_five_rounds() {
    for compete in [true, false] {
        let mut s = steady(&Config { compete, ..Config::default() }, 100.0);
        s.cc.rival.firm = 100.0;
        rounds(&mut s, 4, ms(100));
        assert_eq!(s.variable("rival"), 0.0, "ours, perhaps");
        // A window gives back what it has in the queue beyond its target.
        let yielded = (0..4).fold(100.0, |w, _| w - (w * 100.0 / 600.0 - target(w)));
        assert!((s.variable("quiet") - yielded).abs() < 1e-6, "{yielded}");
        round(&mut s, ms(100));
        assert_eq!(s.variable("rival"), f64::from(u8::from(compete)));
        let firm = s.variable("firm");
        assert_eq!(s.cwnd(), if compete { firm } else { s.variable("quiet") });
        // It goes away, and what NewReno held is ours.
        round(&mut s, RTT);
        assert_eq!(s.variable("rival"), 0.0);
        assert!(!compete || s.cwnd() >= firm);
    }
}

#[test]
fn a_queue_that_shrinks_is_no_competitors() {
    let mut s = steady(&Config::default(), 100.0);
    s.cc.rival.firm = 100.0;
    for delay in [200, 170, 140, 120, 100, 80, 65, 50] {
        round(&mut s, ms(delay));
    }
    assert_eq!(s.variable("rival"), 0.0);
}

#[test]
fn a_loss_beside_a_competitor_asks_whether_it_is_still_there() {
    let mut s = steady(&Config::default(), 100.0);
    s.cc.rival.firm = 100.0;
    rounds(&mut s, 5, ms(100));
    s.congestion(Signal::Loss);
    assert_eq!((s.variable("rival"), s.cwnd()), (0.0, s.variable("quiet")));
    rounds(&mut s, 2, ms(100));
    assert_eq!(s.variable("rival"), 1.0);
}

#[test]
fn ten_probes_that_come_back_tell_that_the_path_is_longer() {
    let mut s = steady(&Config::default(), 100.0);
    // A handover: 40 ms more from now on. Two rounds in which it looks like a queue.
    let test = rounds(&mut s, DOUBT, ms(40)).train;
    assert_eq!(test.map(|t| t.count), Some(10), "is it one?");
    assert!(s.variable("quiet") < 95.0, "it yielded meanwhile");
    answered(&mut s, 10);
    s.cc.rival.firm = 90.0;
    rounds(&mut s, 4, ms(40));
    assert_eq!((s.variable("shift-ms").round(), s.variable("queue-ms").round()), (40.0, 0.0));
    assert!(s.cwnd() > 85.0, "{}", s.cwnd());
    // The path is short again: a shorter round trip needs no test.
    round(&mut s, RTT);
    assert_eq!(s.variable("shift-ms"), 0.0);
}

#[test]
fn probes_that_vanish_leave_the_delay_and_show_that_the_router_has_priorities() {
    let mut s = steady(&Config::default(), 100.0);
    rounds(&mut s, DOUBT, ms(40));
    answered(&mut s, 2);
    rounds(&mut s, 3, ms(40));
    assert_eq!(s.variable("shift-ms"), 0.0);
    assert_eq!(s.cc.probing.router, Router::HasPriorities);
    assert_eq!(s.cc.probing.doubt, 2 * DOUBT, "tests become rarer");
}

#[test]
fn answers_become_window_by_half() {
    let mut s = steady(&Config::default(), 100.0);
    let act = round(&mut s, RTT);
    let asked = act.train.expect("the queue is empty").count;
    assert_eq!(asked, (0.25 * s.variable("quiet")) as u32);
    let before = s.variable("quiet");
    answered(&mut s, asked);
    round(&mut s, RTT);
    assert_eq!(s.variable("quiet"), before + 0.5 * f64::from(asked));
    // Answers while the receiver's window is what limits are not believed.
    answered(&mut s, 20);
    let before = s.variable("quiet");
    s.call(|cc, cx| {
        cc.on_transmit(cx, &Transmit { sent: 0, clock: Clock::Ack, blocked: Blocked::Rwnd });
    });
    round(&mut s, RTT);
    assert!(s.variable("quiet") < before + 1.0);
}

#[test]
fn probes_that_displace_data_are_given_up() {
    let mut s = steady(&Config::default(), 100.0);
    let ask = |s: &mut Stage<Hark>| {
        send(s, Purpose::Test);
        answered(s, 10);
    };
    ask(&mut s);
    rounds(&mut s, 3, ms(10));
    assert_eq!(s.variable("shift-ms").round(), 10.0, "the first one is believed");
    // The delay grows by more than half of what the window alone explains.
    for delay in [20, 30] {
        ask(&mut s);
        s.cc.quiet.window *= 1.01;
        rounds(&mut s, 3, ms(delay));
    }
    assert!(s.cc.probing.is_useless(&s.path));
    assert_eq!(s.variable("shift-ms"), 0.0, "and what they said is void");
    assert_eq!(rounds(&mut s, 12, RTT).train, None);
}

#[test]
fn few_segments_are_no_reason_for_probes() {
    let mut s = steady(&Config::default(), 6.0);
    s.cc.probing.router = Router::HasPriorities;
    for _ in 0..5 {
        let act = round(&mut s, RTT);
        assert!(s.cwnd() >= 8.0 || act.train.is_none());
    }
}

#[test]
fn reordering_ends_the_early_retransmission() {
    let mut s = steady(&Config::default(), 20.0);
    s.path.set_in_flight(20.0);
    let duplicate = |dsack| AckKind::Duplicate { count: 1, new_sack: true, dsack };
    let head = |s: &mut Stage<Hark>, dsack| {
        s.call(|cc, cx| cc.on_ack(cx, &testing::ack(duplicate(dsack), 0.0))).retransmit_head
    };
    assert!(head(&mut s, false));
    assert!(!head(&mut s, true));
    assert!(!head(&mut s, false));
}

#[test]
fn a_timeout_halves_only_after_silence() {
    let mut s = steady(&Config::default(), 100.0);
    s.now += RTT;
    s.timeout(1);
    assert_eq!(s.cwnd(), 100.0, "acknowledgements come: a repair is late");
    s.now += RTT;
    s.timeout(2);
    assert_eq!(
        (s.cwnd(), s.variable("quiet")),
        (1.0, 50.0),
        "one segment asks whether the path is still there"
    );
    s.call(|cc, cx| cc.on_ack(cx, &testing::ack(AckKind::New, 1.0)));
    assert_eq!(s.cwnd(), 50.0, "it is");
}

#[test]
fn idleness_keeps_the_window_and_paces_it() {
    let mut s = steady(&Config::default(), 100.0);
    s.now += Duration::from_secs(60);
    assert_eq!(s.idle(), Actions::default());
    assert_eq!(s.cwnd(), 100.0);
    let rate = s.cc.pacing().expect("a rate").bits_per_sec() as f64;
    assert!((rate / (1.03 * 100.0 * 8000.0 / 0.5) - 1.0).abs() < 1e-6, "{rate}");
}

#[test]
fn a_recovery_tells_a_round_trip_by_its_rate_samples() {
    let mut s = steady(&Config::default(), 100.0);
    s.path.phase = Phase::Recovery;
    s.now += ms(30);
    s.path.round += 1;
    let rate = RateSample {
        delivered: 1000,
        interval: ms(30),
        rate: None,
        app_limited: false,
        prior_delivered: 0,
        lost: 0,
        in_flight: 0,
    };
    let ack = Ack { rate: Some(rate), ..testing::ack(AckKind::Partial, 1.0) };
    s.call(|cc, cx| cc.on_ack(cx, &ack));
    assert!((s.variable("queue-ms") - 30.0).abs() < 1e-6);
}

#[test]
fn without_probes_no_data_has_low_priority() {
    for probes in [true, false] {
        let mut s = stage(&Config { probes, ..Config::default() });
        s.path.set_queued(50.0);
        s.start(Some(RTT));
        assert_eq!(s.cc.priority(20_000, false) == Priority::Low, probes);
        assert_eq!(s.cc.policy().low_priority_data, probes);
    }
}

#[test]
fn probes_and_delay_are_not_both_off() {
    let none = Config { probes: false, delay: false, ..Config::default() };
    assert!(none.validate().unwrap_err().to_string().contains("leave one of them out"));
}

#[test]
fn answers_within_an_rtt_are_to_earlier_probes() {
    let mut s = steady(&Config::default(), 100.0);
    let act = round(&mut s, RTT);
    // These were sent before the train that has just begun.
    s.probe(act.train.expect("the queue is empty").count);
    assert_eq!((s.cc.probing.answers, s.cc.probing.train.expect("it goes on").share()), (0.0, 0.0));
}

#[test]
fn answers_wait_for_the_verdict_on_their_train() {
    for through in [true, false] {
        let mut s = steady(&Config::default(), 100.0);
        let asked = round(&mut s, RTT).train.expect("the queue is empty").count;
        let before = s.variable("quiet");
        answered(&mut s, if through { asked } else { asked / 3 });
        // The delay is 8 ms longer: the queue does not look empty while the train is under way.
        s.cc.delay.noise = 0.008;
        round(&mut s, ms(8));
        assert!(s.variable("quiet") <= before + 2.0);
        rounds(&mut s, 3, ms(8));
        assert_eq!(s.variable("quiet") > before + 8.0, through, "{}", s.variable("quiet"));
    }
}

#[test]
fn jitter_is_no_sign_of_a_router_without_priorities() {
    for (noise, given_up) in [(0.0, true), (0.02, false)] {
        let mut s = steady(&Config::default(), 100.0);
        for _ in 0..2 {
            send(&mut s, Purpose::Room);
            s.cc.delay.noise = noise;
            answered(&mut s, 10);
            rounds(&mut s, 2, ms(40));
            s.cc.probing.train = None;
            rounds(&mut s, 2, RTT);
            s.cc.probing.train = None;
        }
        assert_eq!(s.cc.probing.is_useless(&s.path), given_up);
    }
}

#[test]
fn of_two_flows_in_one_queue_the_larger_one_is_above_its_target() {
    // A queue of 10 ms in an RTT of 560 ms.
    let surplus = |window: f64| window * 10.0 / 560.0 - target(window);
    assert!(surplus(300.0) > 0.0 && surplus(150.0) < 0.0, "{} {}", surplus(300.0), surplus(150.0));
    assert_eq!((target(1.0), target(10_000.0)), (OWN, OWN_SHARE * 10_000.0));
}

#[test]
fn a_latecomer_grows_as_in_slow_start_until_its_share_of_that_is_used_up() {
    let (mut s, _) = started(&Config::default());
    rounds(&mut s, 3, RTT);
    assert!(matches!(s.cc.start, Some(Start::Latecomer { .. })), "no probe was answered");
    assert_eq!(s.cc.quiet.late, LATE_MOST);
    s.cc.leave_start();
    let mut gain = |quiet: f64, rtt| {
        (s.cc.quiet.window, s.cc.probing.starved) = (quiet, true);
        round(&mut s, rtt);
        (s.cc.quiet.window - quiet, s.cc.quiet.late)
    };
    assert_eq!(gain(10.0, RTT), (5.0, LATE_MOST), "half of the window");
    let added = gain(100.0, RTT).0;
    assert!((added - LATE * target(100.0)).abs() < 1e-9, "six times the distance: {added}");
    // Each round above the target takes a part of it.
    let (lost, late) = gain(100.0, ms(50));
    assert!(lost < 0.0 && (late - LATE_LEFT * LATE_MOST).abs() < 1e-9, "{lost} {late}");
    let late: Vec<f64> = (0..20).map(|_| gain(100.0, ms(50)).1).collect();
    assert_eq!(late[19], 0.0, "{late:?}");
    assert!(gain(100.0, RTT).0 <= OPENING_MOST * target(100.0));
}

#[test]
fn without_probes_the_window_returns_to_where_the_queue_began() {
    let mut s = steady(&Config { probes: false, ..Config::default() }, 100.0);
    s.cc.quiet.last = 100.0;
    round(&mut s, ms(50));
    let knee = 100.0 * 500.0 / 550.0;
    assert!((s.cc.quiet.knee - knee).abs() < 1e-6, "{}", s.cc.quiet.knee);
    s.cc.quiet.window = 50.0;
    let mut windows = [50.0; 13];
    for window in &mut windows[1..] {
        round(&mut s, RTT);
        *window = s.cc.quiet.window;
    }
    let at = windows.iter().position(|w| *w > knee - 0.5).expect("it gets there");
    let most =
        |share: f64| move |w: &[f64]| w[1] <= ((1.0 + share) * w[0]).max(w[0] + OPENING_MOST * target(w[0]));
    assert!((5..11).contains(&at) && windows[..=at].windows(2).all(most(FAR_MOST)), "{windows:?}");
    assert!(windows[at] < knee + 0.5 && windows[at..].windows(2).all(most(BLIND_MOST)), "{windows:?}");
}

#[test]
fn a_delay_unlike_any_before_is_tested_again_soon() {
    let mut s = steady(&Config::default(), 100.0);
    (s.cc.probing.doubt, s.cc.probing.until_test, s.cc.delay.longest) = (DOUBT_MOST, DOUBT_MOST, 0.03);
    assert_eq!(rounds(&mut s, DOUBT, ms(50)).train, None, "such queues have failed tests");
    s.cc.rival.firm = 100.0;
    // The path is 500 ms longer, and the quiet window yields until it is too small for a test of its own.
    let tests: Vec<bool> = (0..8).map(|_| round(&mut s, RTT * 2).train.is_some()).collect();
    assert_eq!(tests.iter().position(|t| *t), Some(DOUBT as usize - 1), "{tests:?}");
    (s.cc.quiet.window, s.cc.probing.train, s.cc.probing.until_test) = (2.0, None, 1);
    assert_eq!(round(&mut s, RTT * 2).train.map(|t| t.count), Some(10), "the firm window is in use");
}

#[test]
fn a_small_receive_window_is_not_asked_for_with_many_probes() {
    let mut s = stage(&Config::default());
    s.path.rwnd = 4.0;
    assert_eq!(s.start(Some(RTT)).train.map(|t| t.count), Some(16));
}

#[test]
fn probes_that_return_from_a_queue_that_has_drained_prove_nothing() {
    for drains in [true, false] {
        let mut s = steady(&Config::default(), 100.0);
        assert!(rounds(&mut s, DOUBT, ms(40)).train.is_some());
        answered(&mut s, 10);
        (s.cc.quiet.window, s.cc.rival.firm, s.cc.delay.longest) = (20.0, 90.0, 0.04);
        rounds(&mut s, 4, if drains { ms(1) } else { ms(40) });
        assert_eq!(s.cc.quiet.window < 30.0, drains, "{}", s.cc.quiet.window);
    }
}

#[test]
fn after_a_lost_syn_one_segment_begins_a_slow_start() {
    // A page, and more data than a page.
    for queued in [50.0, 10_000.0] {
        let mut s = stage(&Config::default());
        s.path.set_queued(queued);
        let start = StartEvent::Established { rtt: None, syn_lost: true, cached: None };
        let act = s.call(|cc, cx| cc.on_start(cx, &start));
        assert_eq!((s.cwnd(), act.train, act.wake_at), (1.0, None, None));
        assert_eq!(s.cc.priority(40_000, false), Priority::Normal);
        round(&mut s, RTT);
        let first = s.cwnd();
        assert!(first <= 4.0, "{first}");
        round(&mut s, RTT);
        assert_eq!(s.cwnd(), 2.0 * first);
    }
}

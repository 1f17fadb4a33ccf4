//! What may be Vegas' (R28).

use super::*;

fn vegas() -> Config {
    Config { avoidance: TcpVariant::Vegas, ..Config::default() }
}

/// One acknowledgement of one segment whose RTT was so many milliseconds.
fn timed(s: &mut Stage<Peach>, ms: u64) {
    let event = Ack { rtt: Some(Duration::from_millis(ms)), ..crate::testing::ack(AckKind::New, 1.0) };
    s.call(|cc, cx| cc.on_ack(cx, &event));
}

#[test]
fn option_avoidance() {
    // 20 segments, 19 of them on their way when an acknowledgement is looked at; a first round trip of 100 ms, then one of
    // `ms`. Queued = 20 − 20 · 100 / mean, to the nearest whole number; the mean of the round is over 100 and 19 times ms.
    let after = |ms| {
        let mut s = started(vegas());
        s.probe(19);
        assert_eq!(s.cwnd(), 20.0, "answers to dummies open the window as ever");
        s.path.set_in_flight(19.0);
        timed(&mut s, 100);
        (0..20).for_each(|_| timed(&mut s, ms));
        (s.cwnd(), s.variable("queued"))
    };
    assert_eq!(after(102), (20.05, 0.0), "0.4: one more in the next round");
    assert_eq!(after(107), (20.0, 1.0), "1.2: hold");
    assert_eq!(after(118), (20.0, 3.0), "2.9: hold");
    assert_eq!(after(125), (19.0, 4.0), "3.8: one less");
    // Reno's looks at nothing.
    let mut s = at(20, Config::default());
    timed(&mut s, 125);
    assert_eq!(s.cwnd(), 20.05);
    assert!(!s.cc.policy().rtt_samples && !s.cc.policy().watch_head);
}

#[test]
fn avoidance_of_vegas_leaves_rapid_recovery_as_it_is() {
    let mut s = at(30, vegas());
    s.duplicates(1..=3);
    s.congestion(Signal::Loss);
    assert_eq!(vars(&s), (15.0, 15.0, 30.0));
    s.transmitted(0);
    assert_eq!(dummies(&mut s, 16, 0).iter().sum::<u32>(), 30);
    s.recovered();
    s.probe(30);
    assert_eq!(vars(&s), (30.0, 0.0, 0.0));
    let slow = Config { start: Opening::Slow, ..vegas() };
    let mut s = started(slow);
    s.new_acks(3);
    assert_eq!(s.cwnd(), 4.0, "slow start is Reno's");
}

#[test]
fn option_fast_retransmit() {
    let overdue = |fast_retransmit, age: u64, phase| {
        let mut s = at(20, Config { fast_retransmit, ..Config::default() });
        timed(&mut s, 100);
        s.head(Duration::from_millis(age), 0);
        s.path.phase = phase;
        s.duplicate(1).retransmit_head
    };
    // srtt 0.1 s, deviation 0.025 · ¾ s: (0.1 + 2 · 0.01875) · 17/16 = 146 ms.
    assert!(!overdue(TcpVariant::Vegas, 146, Phase::Open));
    assert!(overdue(TcpVariant::Vegas, 147, Phase::Open));
    assert!(!overdue(TcpVariant::Vegas, 147, Phase::Recovery), "once per recovery");
    assert!(!overdue(TcpVariant::Reno, 147, Phase::Open));
    let policy = |fast_retransmit| new(Config { fast_retransmit, ..Config::default() }).cc.policy();
    assert!(policy(TcpVariant::Vegas).watch_head && policy(TcpVariant::Vegas).rtt_samples);
    // A loss makes the timeout an eighth longer, 164 ms; an ECN echo retransmits nothing and leaves it alone.
    for (signal, expected) in [(Signal::Loss, false), (Signal::Ecn, true)] {
        let mut s = at(20, Config { fast_retransmit: TcpVariant::Vegas, ..Config::default() });
        timed(&mut s, 100);
        s.head(Duration::from_millis(147), 0);
        s.congestion(signal);
        s.path.phase = Phase::Open;
        assert_eq!(s.duplicate(1).retransmit_head, expected, "{signal:?}");
    }
    // With Vegas' Fast Retransmit alone, growth stays Reno's.
    let mut s = at(20, Config { fast_retransmit: TcpVariant::Vegas, ..Config::default() });
    timed(&mut s, 100);
    assert_eq!(s.cwnd(), 20.05);
}

#[test]
fn with_vegas_the_window_that_dummies_opened_too_far_comes_back() {
    use crate::testing::ideal::{Ideal, Line};
    use skyhaul_base::Rate;
    // 20 segments a second, 1 s and 50 ms of transmission: 21 segments fill the path. A buffer without priorities, in
    // which every dummy finds room, opens the window to all of rwnd.
    let rate = Some(Rate::from_bits_per_sec(160_000));
    let settled = |config: Config| {
        let line = Line { rtt: Duration::from_secs(1), rate, buffer: 1000 };
        let mut run = Ideal::new(Peach::new(&config, &Rules::NS2_2001), line, RWND);
        run.start();
        run.run_until(Instant::from_secs_f64(10.0));
        assert!(run.stage.cwnd() >= RWND - 2.0, "{}", run.stage.cwnd());
        let windows = (150..200).map(|t| {
            run.run_until(Instant::from_secs_f64(f64::from(t)));
            run.stage.cwnd()
        });
        windows.fold((f64::INFINITY, 0.0_f64), |(low, high), w| (low.min(w), high.max(w)))
    };
    let (low, high) = settled(vegas());
    assert!(low >= 22.0 && high <= 25.0, "1 to 4 segments queued, not {low} to {high} in the window");
    assert_eq!(settled(Config::default()), (RWND, RWND));
}

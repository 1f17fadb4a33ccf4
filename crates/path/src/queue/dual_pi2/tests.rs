use super::super::testing::{Bench, Pkt, data, ms};
use super::*;
use skyhaul_base::math;

fn pi(p: f64, previous: u64) -> Pi {
    Pi { p, previous: Duration::from_millis(previous), ..Pi::new(Config::default()) }
}
fn close(a: f64, b: f64) -> bool {
    math::abs(a - b) < 1e-12
}
/// 1000 bytes with ECT(1).
fn l4s(id: u32) -> Pkt {
    Pkt { l4s: true, ..data(id) }
}
/// 1000 bytes with ECT(0).
fn ect0(id: u32) -> Pkt {
    Pkt { ect: true, ..data(id) }
}
/// A queue whose p' keeps this value.
fn still(p: f64) -> DualPi2<Pkt> {
    let config = Config { alpha: 0.0, beta: 0.0, ..Config::default() };
    let mut q = *<Config as Model>::build::<Pkt>(&config);
    q.pi.p = p;
    q
}
/// How many of `n` packets that pass the empty queue are marked, and how many are lost.
fn passed(q: &mut DualPi2<Pkt>, n: u32, packet: impl Fn(u32) -> Pkt) -> (u32, u32) {
    let mut rng = skyhaul_base::Rng::stream(1, "queue");
    let (mut marked, mut lost) = (0, 0);
    for id in 0..n {
        let mut at = Moment::new(ms(1), &mut rng);
        q.pass(&mut at, packet(id), Load::EMPTY, &mut |_, why| {
            assert_eq!(why, DropReason::Aqm);
            lost += 1;
        });
        marked += u32::from(at.marked.is_some());
    }
    (marked, lost)
}

#[test]
fn updates_are_those_of_the_rfc() {
    // p' + 0.15 (q - 15 ms) + 3 (q - previous).
    for (p, q, previous, expected) in [
        (0.0, 30, 0, 0.15 * 0.015 + 3.0 * 0.030),
        (0.1, 15, 15, 0.1),
        (0.1, 10, 20, 0.1 - 0.15 * 0.005 - 3.0 * 0.010),
        (0.9, 500, 0, 1.0),
        (0.001, 0, 30, 0.0),
    ] {
        let mut c = pi(p, previous);
        c.update(Duration::from_millis(q));
        assert!(close(c.p, expected), "{p} {q} {previous}: {}", c.p);
    }
}

#[test]
fn the_gains_are_those_of_the_formulas_for_any_path() {
    // Appendix A.1: Tupdate = target, alpha = 0.1 Tupdate / RTT_max^2, beta = 0.3 / RTT_max.
    for (rtt, max) in [(40, 0.1), (100, 0.1), (550, 0.55), (594, 0.6)] {
        let c = Config::default().for_path(Duration::from_millis(rtt), &|_| false);
        assert!(close(c.alpha, 0.1 * c.update.as_secs_f64() / (max * max)), "{rtt}: {}", c.alpha);
        assert!(close(c.beta, 0.3 / max), "{rtt}: {}", c.beta);
        assert!(close(c.target.as_secs_f64(), 0.15 * max) && c.target == c.update, "{rtt}");
        assert_eq!((c.min_delay, c.range), (Duration::from_micros(800), Duration::from_micros(400)));
    }
    let written = Config { alpha: 0.7, ..Config::default() };
    assert_eq!(written.for_path(Duration::from_millis(550), &|key| key == "alpha").alpha, 0.7);
}

#[test]
fn updates_that_were_due_are_made_up_for() {
    let since = Some(ms(100));
    let (mut once, mut often) = (pi(0.3, 0), pi(0.3, 0));
    (once.next, often.next) = (ms(105), ms(105));
    once.catch_up(ms(400), since);
    for t in 105..=400 {
        often.catch_up(ms(t), since);
    }
    assert_eq!((once.p, once.previous, once.next), (often.p, often.previous, often.next));
    // A day without packets and a day in which a link is down: the same multiples of 15 ms, and the bounds.
    for (oldest, p) in [(None, 0.0), (Some(ms(0)), 1.0)] {
        let mut idle = pi(0.3, 0);
        idle.catch_up(ms(86_400_007), oldest);
        assert_eq!((idle.p, idle.next), (p, ms(86_400_015)));
        let waited = if oldest.is_some() { 86_400_000 } else { 0 };
        assert_eq!(idle.previous, Duration::from_millis(waited));
    }
}

#[test]
fn marking_is_coupled_by_k_and_dropping_is_squared() {
    // p_CL = k p', p_C = p'^2, within one packet.
    for (p, k) in [(0.1, 2.0), (0.25, 2.0), (0.4, 2.0), (0.2, 1.0)] {
        let at = |packet: fn(u32) -> Pkt| {
            let mut q = still(p);
            q.pi.config.coupling = k;
            passed(&mut q, 10_000, packet)
        };
        let near = |n: u32, share: f64| math::abs(f64::from(n) - share * 10_000.0) <= 1.0;
        let ((l, l_lost), (c, c_lost), (none, drops)) = (at(l4s), at(ect0), at(data));
        assert!(near(l, k * p) && l_lost == 0, "{p} {k}: {l} of 10000 L packets");
        assert!(near(c, p * p) && c_lost == 0, "{p} {k}: {c} of 10000 classic packets with ECT(0)");
        assert!(near(drops, p * p) && none == 0, "{p} {k}: {drops} of 10000 without ECT");
    }
}

#[test]
fn overload_drops_in_both_queues_and_marks_the_rest_of_l() {
    // From p' = 1/k on, p_CL is 1 and p_C is p_Cmax = 1/4.
    for p in [0.5, 0.7, 1.0] {
        let at = |packet: fn(u32) -> Pkt| passed(&mut still(p), 10_000, packet);
        let near = |n: u32, share: f64| math::abs(f64::from(n) - share * 10_000.0) <= 1.0;
        let ((marked, lost), (ect, ect_lost), (_, drops)) = (at(l4s), at(ect0), at(data));
        assert!(near(lost, p * p) && marked == 10_000 - lost, "{p}: {marked} {lost}");
        assert!(near(ect_lost, p * p) && ect == 0, "{p}: ECN is disabled");
        assert!(near(drops, p * p), "{p}: {drops}");
    }
    // Just below, no L packet is lost.
    assert_eq!(passed(&mut still(0.4999), 1000, l4s).1, 0);
    // With k below 1, p_Cmax is 1: p_CL stays below 1, and ECN is disabled at p' = 1 only.
    for (p, ecn) in [(0.9, true), (1.0, false)] {
        let mut q = still(p);
        q.pi.config.coupling = 0.5;
        let (marked, lost) = passed(&mut q, 1000, ect0);
        assert_eq!((marked > 0, lost > 0), (ecn, !ecn), "{p}: {marked} {lost}");
        assert_eq!(passed(&mut q, 1000, l4s).1, 0);
    }
}

#[test]
fn the_ramp_of_l_follows_the_sojourn_time() {
    let us = Duration::from_micros;
    let c = pi(0.0, 0);
    for (delay, p) in [(0, 0.0), (800, 0.0), (900, 0.25), (1000, 0.5), (1100, 0.75), (1200, 1.0), (9000, 1.0)]
    {
        assert!(close(c.ramp(us(delay)), p), "{delay} us");
    }
    let mut step = pi(0.0, 0);
    step.config.range = Duration::ZERO;
    assert_eq!([799, 800, 801].map(|delay| step.ramp(us(delay))), [0.0, 1.0, 1.0]);
    // A packet that leaves nothing behind is not marked, however long it took to send the one before it.
    let mut q = still(0.0);
    let count = |q: &mut DualPi2<Pkt>, behind| {
        (0..100).filter(|_| matches!(q.judge_l(us(5000), behind), Verdict::Mark)).count()
    };
    assert_eq!((count(&mut q, 0), count(&mut q, 1)), (0, 100));
}

#[test]
fn classic_traffic_keeps_its_share_while_both_wait() {
    for share in [0.0625, 0.5, 0.9] {
        let mut q = Bench::of(Config { alpha: 0.0, beta: 0.0, classic_share: share, ..Config::default() });
        for id in 0..2000 {
            assert!(q.arrive(ms(0), l4s(id)) && q.arrive(ms(0), data(10_000 + id)));
        }
        let classic = (0..1000).filter(|_| q.leave(ms(0)).expect("enough wait").id >= 10_000).count();
        assert!(math::abs(classic as f64 - share * 1000.0) <= 1.0, "{share}: {classic}");
    }
    // A queue alone gets the whole rate, and the other one saves up no credit.
    let mut q = Bench::of(Config::default());
    (0..100).for_each(|id| assert!(q.arrive(ms(0), l4s(id))));
    (0..90).for_each(|id| assert_eq!(q.leave(ms(0)).map(|p| p.id), Some(id)));
    assert!(q.arrive(ms(0), data(1000)));
    assert_eq!(q.leave(ms(0)).map(|p| p.id), Some(90));
}

#[test]
fn a_marked_packet_waits_with_the_scalable_ones() {
    let mut q = Bench::of(Config::default());
    assert!(q.arrive(ms(0), ect0(1)) && q.arrive(ms(0), Pkt { ce: true, ..ect0(2) }));
    assert_eq!([2, 1].map(|_| q.leave(ms(0)).map(|p| p.id)), [Some(2), Some(1)]);
}

#[test]
fn both_queues_share_the_limit() {
    let limit = Limit::Packets(3);
    let mut q = Bench::new(super::super::QueueConfig { limit, ..Default::default() }.with(Config::default()));
    assert!(q.arrive(ms(0), l4s(0)) && q.arrive(ms(0), data(1)) && q.arrive(ms(0), l4s(2)));
    assert!(!q.arrive(ms(0), l4s(3)) && !q.arrive(ms(0), data(4)));
    assert_eq!(q.lost, [(3, DropReason::Full), (4, DropReason::Full)]);
}

#[test]
fn options_outside_their_range_are_refused() {
    let of = |c: Config| c.validate(Limit::Unlimited).map_err(|e| crate::param::Refusal::key(&e));
    let usual = Config::default();
    assert_eq!(of(usual), Ok(()));
    assert_eq!(of(Config { target: Duration::ZERO, ..usual }), Err("target"));
    assert_eq!(of(Config { update: Duration::ZERO, ..usual }), Err("update"));
    assert_eq!(of(Config { alpha: -1.0, ..usual }), Err("alpha"));
    assert_eq!(of(Config { beta: f64::NAN, ..usual }), Err("beta"));
    assert_eq!(of(Config { coupling: 0.0, ..usual }), Err("coupling"));
    assert_eq!(of(Config { classic_share: 1.0, ..usual }), Err("classic-share"));
    assert_eq!(of(Config { range: Duration::ZERO, min_delay: Duration::ZERO, ..usual }), Ok(()));
}

//! PIE: proportional integral controller enhanced [RFC 8033].
//!
//! Arrivals are dropped or marked with a probability that is recomputed every `update`: it follows the queueing
//! delay and its growth. A burst after a quiet time passes. The algorithm is that of RFC 8033 §4 and Appendix A,
//! with marks (§5.1) and with the delay of the last packet that left, by its timestamp (§4.3). It does not
//! de-randomise (§5.4) or estimate the departure rate (§5.2).
//!
//! Times and gains of the RFC were tuned for terrestrial paths: over a satellite the probability rises before a
//! sender can react. No others have been published. A controller for k times longer RTTs has k times larger
//! `target`, `update` and `burst`, and `alpha` and `beta` divided by k: the same loop in slow motion. The defaults
//! in files are those of this controller, with k of the path ([`Model::for_path`], *our choice*); those of
//! [`Config`] are the RFC's, k = 1.
//!
//! There is no timer. The inputs of an update change only when packets arrive or leave, so updates due in between
//! are computed before anything else. Each arrival draws once.

use super::limit::{Limit, Load};
use super::model::{Key, Model, Order};
use super::moment::Moment;
use super::options::{self, Invalid, USUAL_RTT, round_trip};
use super::waiting::{Signal, Waiting};
use crate::packet::{DropReason, PacketView};
use crate::param::{probability, within};
use alloc::boxed::Box;
use skyhaul_base::{Duration, Instant};

skyhaul_base::options! {
    /// Marks or drops arrivals at random, with a probability that grows with the queueing delay.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Config {
        /// Target queueing delay; by default 5 % of `interval`, with the kinds "pie" and "dual-pi2" 15 ms for each 100 ms of the
        /// longest base RTT of the flows on the link, at least 15 ms.
        target: Duration as Time = Duration::from_millis(15),
        /// Update interval of the probability; by default 15 ms for each 100 ms of the longest base RTT of the flows on the link,
        /// at least 15 ms.
        update: Duration as Time = Duration::from_millis(15),
        /// Burst allowance after a quiet time; by default 150 ms for each 100 ms of the longest base RTT, at least 150 ms.
        burst: Duration as Time = Duration::from_millis(150),
        /// Increase of the probability at an update, per second of delay above the target; by default 0.125 /s with the kind "pie"
        /// and 0.15 /s with "dual-pi2" for a base RTT of up to 100 ms, inversely proportional to a longer one.
        alpha: f64 as Frequency = 0.125,
        /// Increase of the probability at an update, per second by which the delay has grown; by default 1.25 /s with the kind
        /// "pie" and 3 /s with "dual-pi2" for a base RTT of up to 100 ms, inversely proportional to a longer one.
        beta: f64 as Frequency = 1.25,
        /// Typical packet size; 1000 B by default.
        packet_size: u64 as Size = 1000,
        /// Mark ECN-capable packets instead of dropping them; true by default.
        ecn: bool = true,
        /// Probability from which packets are dropped instead of marked; 0.1 by default.
        ecn_threshold: f64 as Probability = 0.1,
        /// Mark or drop low priority instead of high priority; false by default.
        class_aware: bool = false,
    }
}

impl Model for Config {
    const KEYS: &'static [Key] = &[
        options::TARGET,
        options::UPDATE,
        options::BURST,
        options::ALPHA,
        options::BETA,
        options::PACKET_SIZE,
        options::ECN,
        options::ECN_THRESHOLD,
        options::CLASS_AWARE,
    ];
    const SEES_ALL: bool = true;
    type Order<P> = Box<Pie<P>>;
    type Invalid = Invalid;

    fn validate(&self, _: Limit) -> Result<(), Invalid> {
        options::some_time(options::TARGET.name, self.target, "a time such as \"15 ms\"")?;
        options::update(self.update)?;
        options::some_bytes(options::PACKET_SIZE.name, self.packet_size, "a size such as \"1000 B\"")?;
        within(options::ALPHA.name, self.alpha, 0.0, f64::MAX)?;
        within(options::BETA.name, self.beta, 0.0, f64::MAX)?;
        probability(options::ECN_THRESHOLD.name, self.ecn_threshold)?;
        Ok(())
    }
    fn build<P>(&self) -> Box<Pie<P>> {
        Box::new(Pie { waiting: Waiting::new(self.class_aware), control: Control::new(*self) })
    }
    fn marks(&self) -> bool {
        self.ecn
    }
    fn words(&self) -> &'static str {
        "drops by queueing delay and its growth (PIE)"
    }
    fn ignores_priority(&self) -> bool {
        !self.class_aware
    }
    fn for_path(self, rtt: Duration, written: &dyn Fn(&str) -> bool) -> Self {
        let k = round_trip(rtt).as_secs_f64() / USUAL_RTT.as_secs_f64();
        let time = |key: super::Key, t: Duration| if written(key.name) { t } else { t.mul_f64(k) };
        let gain = |key: super::Key, g: f64| if written(key.name) { g } else { g / k };
        Self {
            target: time(options::TARGET, self.target),
            update: time(options::UPDATE, self.update),
            burst: time(options::BURST, self.burst),
            alpha: gain(options::ALPHA, self.alpha),
            beta: gain(options::BETA, self.beta),
            ..self
        }
    }
}

/// The state of the controller [RFC 8033 §4 and Appendix A].
#[derive(Clone, Debug)]
struct Control {
    config: Config,
    /// The probability.
    p: f64,
    /// Waiting time of the last packet that left; 0 if it left the queue empty.
    delay: Duration,
    /// The waiting time at the last update.
    old_delay: Duration,
    /// Remaining burst allowance.
    burst: Duration,
    /// When the next update is due.
    next: Instant,
}

impl Control {
    fn new(config: Config) -> Self {
        let (delay, old_delay) = (Duration::ZERO, Duration::ZERO);
        let next = Instant::ZERO + config.update;
        Self { config, p: 0.0, delay, old_delay, burst: Duration::ZERO, next }
    }

    /// Computes the updates that were due by `now`.
    fn catch_up(&mut self, now: Instant) {
        while self.next <= now {
            let before = (self.p, self.old_delay, self.burst);
            self.update();
            self.next += self.config.update;
            if before == (self.p, self.old_delay, self.burst) && self.next <= now {
                // A fixed point is reached, however many updates were due.
                let step = self.config.update.as_nanos().max(1);
                let due = now.since(self.next).as_nanos() / step + 1;
                self.next += Duration::from_nanos(step.saturating_mul(due));
            }
        }
    }

    /// Computes the probability [RFC 8033 §4.2, with the cap of §5.5], and what is left of a burst [§4.4].
    fn update(&mut self) {
        let Config { target, alpha, beta, .. } = self.config;
        let [delay, old, target] = [self.delay, self.old_delay, target].map(Duration::as_secs_f64);
        let step = alpha * (delay - target) + beta * (delay - old);
        // Small probabilities change in small steps.
        let mut step = match self.p {
            p if p < 1e-6 => step / 2048.0,
            p if p < 1e-5 => step / 512.0,
            p if p < 1e-4 => step / 128.0,
            p if p < 1e-3 => step / 32.0,
            p if p < 1e-2 => step / 8.0,
            p if p < 0.1 => step / 2.0,
            _ => step,
        };
        if self.p >= 0.1 {
            step = step.min(0.02);
        }
        self.p += step;
        if self.is_quiet() {
            self.p *= 0.98;
        }
        self.p = self.p.clamp(0.0, 1.0);
        self.burst = self.burst.saturating_sub(self.config.update);
        self.old_delay = self.delay;
    }

    /// Whether the delay was low at this update and the previous one.
    fn is_quiet(&self) -> bool {
        let half = self.config.target / 2;
        self.delay < half && self.old_delay < half
    }

    /// Whether an arrival that finds `backlog` bytes is dropped or marked; `chance` is uniform on [0, 1).
    fn judge(&self, backlog: u64, chance: f64) -> bool {
        let spared = self.burst > Duration::ZERO
            || self.old_delay < self.config.target / 2 && self.p < 0.2
            || backlog <= self.config.packet_size.saturating_mul(2);
        !spared && chance < self.p
    }

    /// A packet was admitted: after a quiet time this renews the burst allowance.
    fn admitted(&mut self) {
        if self.p == 0.0 && self.is_quiet() {
            self.burst = self.config.burst;
        }
    }
}

/// The packets that wait, and the controller.
#[derive(Clone, Debug)]
pub struct Pie<P> {
    waiting: Waiting<P>,
    control: Control,
}

impl<P: PacketView> Order<P> for Pie<P> {
    fn enqueue(
        &mut self,
        at: &mut Moment<'_>,
        p: P,
        held: &mut Load,
        limit: Load,
        _: u32,
        lost: &mut impl FnMut(P, DropReason),
    ) -> bool {
        self.control.catch_up(at.now);
        let hit = self.control.judge(held.bytes, at.rng.unit());
        let may_mark = self.control.config.ecn && self.control.p < self.control.config.ecn_threshold;
        let p = if hit {
            match self.waiting.signal(at, p, may_mark, held, lost) {
                Signal::Marked(p) | Signal::Spared(p) => p,
                Signal::Dropped => return false,
            }
        } else {
            p
        };
        let admitted = self.waiting.admit(at.now, p, held, limit, lost);
        if admitted {
            self.control.admitted();
        }
        admitted
    }
    fn dequeue(&mut self, at: &mut Moment<'_>, _: &mut Load, _: &mut impl FnMut(P, DropReason)) -> Option<P> {
        self.control.catch_up(at.now);
        let head = self.waiting.pop()?;
        let last = self.waiting.is_empty();
        self.control.delay = if last { Duration::ZERO } else { at.now.since(head.since) };
        Some(head.packet)
    }
    fn pass(&mut self, at: &mut Moment<'_>, p: P, _: Load, _: &mut impl FnMut(P, DropReason)) -> Option<P> {
        // The queue is empty, so nothing is dropped; the draw keeps arrivals and draws in step.
        self.control.catch_up(at.now);
        at.rng.unit();
        self.control.delay = Duration::ZERO;
        self.control.admitted();
        Some(p)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, Pkt, data, ms, probe};
    use super::*;

    fn control(p: f64, delay: u64, old_delay: u64) -> Control {
        let (delay, old_delay) = (Duration::from_millis(delay), Duration::from_millis(old_delay));
        Control { p, delay, old_delay, ..Control::new(Config::default()) }
    }
    fn after_update(p: f64, delay: u64, old_delay: u64) -> f64 {
        let mut c = control(p, delay, old_delay);
        c.update();
        c.p
    }
    fn close(a: f64, b: f64) -> bool {
        math::abs(a - b) < 1e-15
    }
    use skyhaul_base::math;

    #[test]
    fn updates_are_those_of_the_rfc() {
        // RFC 8033 §4.2: 0.125 (30 - 15) ms + 1.25 (30 - 0) ms = 0.039375, divided by 2048 while p < 1e-6.
        assert!(close(after_update(0.0, 30, 0), 0.039375 / 2048.0));
        // No growth: 0.125 · 15 ms = 0.001875; the divisors by p.
        for (p, divisor) in [(2e-6, 512.0), (2e-5, 128.0), (2e-4, 32.0), (2e-3, 8.0), (2e-2, 2.0), (0.2, 1.0)]
        {
            assert!(close(after_update(p, 30, 30), p + 0.001875 / divisor), "{p}");
        }
        // The cap of 2 %: 0.125 · 985 ms + 1.25 · 1000 ms is far more.
        assert!(close(after_update(0.1, 1000, 0), 0.12));
        // At a probability of 0.02 the cap does not apply yet: (0.123125 + 1.25) / 2.
        assert!(close(after_update(0.02, 1000, 0), 0.02 + 1.373125 / 2.0));
        // Decay: (0.5 - 0.125 · 15 ms) · 0.98.
        assert!(close(after_update(0.5, 0, 0), 0.4881625));
        // A delay that falls: 0.125 (10 - 15) ms + 1.25 (10 - 30) ms = -0.025625.
        assert!(close(after_update(0.5, 10, 30), 0.5 - 0.025625));
        assert_eq!(after_update(0.0, 0, 0), 0.0);
        assert_eq!(after_update(1.0, 1000, 0), 1.0);
    }

    #[test]
    fn updates_that_were_due_are_made_up_for() {
        let mut once = control(0.3, 40, 20);
        let mut often = once.clone();
        once.catch_up(ms(150));
        for t in 0..=150 {
            often.catch_up(ms(t));
        }
        assert_eq!((once.p, once.next), (often.p, ms(165)));
        let mut by_hand = control(0.3, 40, 20);
        (0..10).for_each(|_| by_hand.update());
        assert_eq!(once.p, by_hand.p);
        // A day without packets, after which updates fall on the same multiples of 15 ms.
        let mut idle = control(0.3, 0, 0);
        idle.catch_up(ms(86_400_007));
        assert_eq!((idle.p, idle.next), (0.0, ms(86_400_015)));
        let mut stuck = control(0.3, 400, 0);
        stuck.catch_up(ms(86_400_007));
        assert_eq!((stuck.p, stuck.next), (1.0, ms(86_400_015)));
    }

    #[test]
    fn an_arrival_is_spared_as_the_rfc_says() {
        // RFC 8033 §4.1: a low delay with a small probability, or a queue of hardly two packets.
        for (p, old_delay, backlog, spared) in [
            (0.19, 7, 50_000, true),
            (0.19, 8, 50_000, false),
            (0.21, 7, 50_000, false),
            (0.21, 8, 2_000, true),
            (0.21, 8, 2_001, false),
        ] {
            assert_eq!(control(p, 50, old_delay).judge(backlog, 0.0), !spared, "{p} {old_delay} {backlog}");
        }
        assert!(!control(0.3, 50, 50).judge(50_000, 0.3) && control(0.3, 50, 50).judge(50_000, 0.2999));
        let mut huge = control(0.3, 50, 50);
        huge.config.packet_size = u64::MAX / 2 + 1;
        assert!(!huge.judge(50_000, 0.0), "twice the packet size exceeds 64 bits");
        let mut in_burst = control(0.3, 50, 50);
        in_burst.burst = Duration::from_nanos(1);
        assert!(!in_burst.judge(50_000, 0.0));
    }

    #[test]
    fn a_burst_passes_after_a_quiet_time_only() {
        // Each arrival into the quiet queue sets 150 ms; then each of ten updates takes 15 ms.
        let mut c = control(0.0, 0, 0);
        c.admitted();
        assert_eq!(c.burst, Duration::from_millis(150));
        c.delay = Duration::from_millis(100);
        for n in 1..=10 {
            c.update();
            c.admitted();
            assert_eq!(c.burst, Duration::from_millis(150 - 15 * n));
        }
    }

    /// A queue of 200 packets that all wait for 200 ms and more as one comes and one goes per millisecond.
    fn overloaded(config: Config, packet: impl Fn(u32) -> Pkt, millis: u64) -> Bench {
        let mut q = Bench::of(config);
        (0..200).for_each(|id| assert!(q.arrive(ms(0), packet(id))));
        for t in 1..=millis {
            q.arrive(ms(t), packet(200 + t as u32));
            if q.len() >= 200 {
                q.leave(ms(t));
            }
        }
        q
    }

    #[test]
    fn marks_stand_for_drops_up_to_a_tenth() {
        // No packet leaves below 200, so the delay stays; the probability rises to 1, above 10 % with drops.
        let ect = |id| Pkt { ect: true, ..data(id) };
        let q = overloaded(Config::default(), ect, 3000);
        let q = (q.marks, q.lost.len());
        assert!(q.0 > 0 && q.1 > 0, "{q:?}");
        let q = overloaded(Config { ecn_threshold: 1.0, ..Config::default() }, ect, 500);
        assert!(q.marks > 0 && q.lost.is_empty());
        let q = overloaded(Config { ecn: false, ..Config::default() }, ect, 1000);
        assert!(q.marks == 0 && !q.lost.is_empty());
    }

    #[test]
    fn low_priority_is_dropped_in_the_place_of_data() {
        let mixed = |id| if id % 4 == 0 { probe(id) } else { data(id) };
        let q = overloaded(Config { class_aware: true, ..Config::default() }, mixed, 500);
        assert!(q.lost.len() > 10);
        assert!(q.lost.iter().all(|(id, _)| id % 4 == 0));
    }
}

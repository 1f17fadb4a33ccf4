//! DualPI2: the coupled dual queue [RFC 9332, Appendix A].
//!
//! Packets of scalable controls, with ECT(1) or CE, wait in the L queue, all others in the C queue (for *classic*). A
//! proportional-integral controller computes one base probability p' from the longer queueing delay. Classic packets are marked
//! or dropped with p_C = p'², L packets are marked with p_CL = k p' or with what the ramp of the L queue asks for, whichever
//! is more: the square is the counterpart of the square root in the rate of a classic control, so with k = 2 flows of both kinds with
//! equal RTTs get about equal rates.
//!
//! The controller was tuned for paths of up to `RTT_max` = 100 ms. On a longer path the defaults in files for target, update
//! interval and gains follow from the RFC's formulas with the RTT of this path as RTT_max ([`Model::for_path`], *our choice*, as for
//! PIE). The ramp of the L queue does not depend on the RTT.
//!
//! There is no timer: each operation first computes the updates that were due, from the arrival times of the packets at the heads.
//! No random number is drawn: the RFC's `recur` spreads signals evenly.

use super::limit::{Limit, Load};
use super::model::{Key, Model, Order};
use super::moment::Moment;
use super::options::{self, Invalid, USUAL_RTT, round_trip};
use crate::packet::{DropReason, PacketView};
use crate::param::within;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use skyhaul_base::{Duration, Instant};

skyhaul_base::options! {
    /// Two queues, for scalable (L4S) and for classic traffic, with coupled marking (RFC 9332).
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Config {
        /// Target queueing delay; by default 5 % of `interval`, with the kinds "pie" and "dual-pi2" 15 ms for each 100 ms of the
        /// longest base RTT of the flows on the link, at least 15 ms.
        target: Duration as Time = Duration::from_millis(15),
        /// Update interval of the probability; by default 15 ms for each 100 ms of the longest base RTT of the flows on the link,
        /// at least 15 ms.
        update: Duration as Time = Duration::from_millis(15),
        /// Increase of the probability at an update, per second of delay above the target; by default 0.125 /s with the kind "pie"
        /// and 0.15 /s with "dual-pi2" for a base RTT of up to 100 ms, inversely proportional to a longer one.
        alpha: f64 as Frequency = 0.15,
        /// Increase of the probability at an update, per second by which the delay has grown; by default 1.25 /s with the kind
        /// "pie" and 3 /s with "dual-pi2" for a base RTT of up to 100 ms, inversely proportional to a longer one.
        beta: f64 as Frequency = 3.0,
        /// Coupling factor k: scalable traffic is marked with k times the root of the probability for classic traffic; 2 by default.
        coupling: f64 = 2.0,
        /// Queueing delay in the queue of scalable traffic from which it is marked; 800 us by default.
        min_delay: Duration as Time = Duration::from_micros(800),
        /// Range of queueing delay above `min-delay` over which marking rises to 1; 400 us by default, "0 s" for a step.
        range: Duration as Time = Duration::from_micros(400),
        /// Share of the rate for classic traffic while both kinds wait; 1/16 by default.
        classic_share: f64 as Probability = 0.0625,
    }
}

/// The ramp never marks a packet with fewer packets behind it in its queue than this: a floor of one packet for slow links
/// (`Th_len` of RFC 9332, Appendix A.1).
const TH_LEN: usize = 1;
/// Largest marking probability of the L queue.
const P_L_MAX: f64 = 1.0;
/// The target as a part of RTT_max.
const TARGET_OF_RTT: f64 = 0.15;
/// Least share of the rate for either queue.
const LEAST: f64 = 0.001;

impl Model for Config {
    const KEYS: &'static [Key] = &[
        options::TARGET,
        options::UPDATE,
        options::ALPHA,
        options::BETA,
        options::COUPLING,
        options::MIN_DELAY,
        options::RANGE,
        options::CLASSIC_SHARE,
    ];
    const SEES_ALL: bool = true;
    type Order<P> = Box<DualPi2<P>>;
    type Invalid = Invalid;

    fn validate(&self, _: Limit) -> Result<(), Invalid> {
        options::some_time(options::TARGET.name, self.target, "a time such as \"15 ms\"")?;
        options::update(self.update)?;
        within(options::ALPHA.name, self.alpha, 0.0, f64::MAX)?;
        within(options::BETA.name, self.beta, 0.0, f64::MAX)?;
        within(options::COUPLING.name, self.coupling, 0.1, 100.0)?;
        within(options::CLASSIC_SHARE.name, self.classic_share, LEAST, 1.0 - LEAST)?;
        Ok(())
    }
    fn build<P>(&self) -> Box<DualPi2<P>> {
        Box::new(DualPi2 { l: Fifo::new(), c: Fifo::new(), pi: Pi::new(*self), credit: 0.0 })
    }
    fn marks(&self) -> bool {
        true
    }
    fn words(&self) -> &'static str {
        "two queues with coupled marking, for scalable and classic traffic (DualPI2)"
    }
    fn ignores_priority(&self) -> bool {
        true
    }
    fn tuned_for(&self) -> Option<(&'static str, Duration, Duration)> {
        // The target of the RFC is 15 % of RTT_max.
        let longest = self.target.mul_f64(1.0 / TARGET_OF_RTT);
        Some((options::TARGET.name, self.target, longest))
    }
    fn for_path(self, rtt: Duration, written: &dyn Fn(&str) -> bool) -> Self {
        let longer = round_trip(rtt).as_secs_f64() / USUAL_RTT.as_secs_f64();
        let time = |key: Key, t: Duration| if written(key.name) { t } else { t.mul_f64(longer) };
        let gain = |key: Key, g: f64| if written(key.name) { g } else { g / longer };
        Self {
            target: time(options::TARGET, self.target),
            update: time(options::UPDATE, self.update),
            alpha: gain(options::ALPHA, self.alpha),
            beta: gain(options::BETA, self.beta),
            ..self
        }
    }
}

/// The controller of the base probability [RFC 9332, Appendix A.1, `dualpi2_update`].
#[derive(Clone, Debug)]
struct Pi {
    config: Config,
    /// p', from 0 to 1.
    p: f64,
    /// The queueing delay at the last update.
    previous: Duration,
    /// When the next update is due.
    next: Instant,
}

impl Pi {
    fn new(config: Config) -> Self {
        Self { config, p: 0.0, previous: Duration::ZERO, next: Instant::ZERO + config.update }
    }

    /// p_CL = k p': coupled marking of L packets.
    fn coupled(&self) -> f64 {
        self.config.coupling * self.p
    }
    /// p_C = p'²: marking or dropping of classic packets.
    fn classic(&self) -> f64 {
        self.p * self.p
    }
    /// Overload: the coupled probability has reached its maximum [Appendix A.2].
    fn is_saturated(&self) -> bool {
        self.coupled() >= P_L_MAX
    }
    /// Overload disables ECN: p_C has reached p_Cmax = min(1/k², 1) [Appendix A.2].
    fn disables_ecn(&self) -> bool {
        self.p * self.config.coupling.max(1.0) >= 1.0
    }

    /// Computes the updates that were due by `now`; the packets at the heads have waited since `oldest`, the earlier of both.
    fn catch_up(&mut self, now: Instant, oldest: Option<Instant>) {
        while self.next <= now {
            let delay = oldest.map_or(Duration::ZERO, |since| self.next.since(since));
            let before = self.p;
            self.update(delay);
            self.next += self.config.update;
            // Further updates change nothing where p' is 0 and the queue empty, or p' is 1 and the delay only grows: they are skipped.
            let stays = self.p == before
                && match oldest {
                    None => self.p == 0.0,
                    Some(_) => self.p == 1.0 && delay > self.config.target,
                };
            if stays && self.next <= now {
                let step = self.config.update.as_nanos().max(1);
                let due = now.since(self.next).as_nanos() / step + 1;
                self.next += Duration::from_nanos(step.saturating_mul(due));
                let last = Instant::from_nanos(self.next.as_nanos() - step);
                self.previous = oldest.map_or(Duration::ZERO, |since| last.since(since));
            }
        }
    }

    fn update(&mut self, delay: Duration) {
        let [q, previous, target] = [delay, self.previous, self.config.target].map(Duration::as_secs_f64);
        let step = self.config.alpha * (q - target) + self.config.beta * (q - previous);
        self.p = (self.p + step).clamp(0.0, 1.0);
        self.previous = delay;
    }

    /// The marking that the L queue itself asks for at this queueing delay [`laqm`].
    fn ramp(&self, delay: Duration) -> f64 {
        let Config { min_delay, range, .. } = self.config;
        if delay >= min_delay + range {
            return 1.0;
        }
        if delay <= min_delay {
            return 0.0;
        }
        (delay - min_delay).as_secs_f64() / range.as_secs_f64()
    }
}

/// One of the queues.
#[derive(Clone, Debug)]
struct Fifo<P> {
    packets: VecDeque<(Instant, P)>,
    /// What [`Self::recur`] has accumulated.
    count: f64,
}

impl<P> Fifo<P> {
    fn new() -> Self {
        Self { packets: VecDeque::new(), count: 0.0 }
    }
    /// Arrival time of the packet at the head.
    fn since(&self) -> Option<Instant> {
        self.packets.front().map(|p| p.0)
    }
    /// True for a share of `likelihood` of the calls, evenly spread.
    fn recur(&mut self, likelihood: f64) -> bool {
        self.count += likelihood;
        // A probability above 1 signals to each packet; what exceeds 1 is not carried over.
        if self.count > 1.0 {
            self.count = (self.count - 1.0).min(1.0);
            return true;
        }
        false
    }
}

/// The packets that wait, and the controller.
#[derive(Clone, Debug)]
pub struct DualPi2<P> {
    l: Fifo<P>,
    c: Fifo<P>,
    pi: Pi,
    /// Bytes that the C queue has missed of its share while both wait, for the weighted round robin.
    credit: f64,
}

/// What happens to a packet that is about to be sent.
enum Verdict {
    Send,
    Mark,
    Drop,
}

impl<P: PacketView> DualPi2<P> {
    fn catch_up(&mut self, now: Instant) {
        let oldest = match (self.l.since(), self.c.since()) {
            (Some(l), Some(c)) => Some(l.min(c)),
            (l, c) => l.or(c),
        };
        self.pi.catch_up(now, oldest);
    }

    /// Judges a packet that leaves the L queue after `delay`, with `behind` packets behind it [Appendix A.2].
    fn judge_l(&mut self, delay: Duration, behind: usize) -> Verdict {
        if self.pi.is_saturated() {
            // Overload: the L queue drops like the C queue, and marks what it does not drop.
            return if self.l.recur(self.pi.classic()) { Verdict::Drop } else { Verdict::Mark };
        }
        let native = if behind >= TH_LEN { self.pi.ramp(delay) } else { 0.0 };
        let p = native.max(self.pi.coupled());
        // At 1 each packet is marked, from the first one on.
        if p >= 1.0 || self.l.recur(p) { Verdict::Mark } else { Verdict::Send }
    }

    /// Judges a packet that leaves the C queue.
    fn judge_c(&mut self, ect: bool) -> Verdict {
        if !self.c.recur(self.pi.classic()) {
            Verdict::Send
        } else if ect && !self.pi.disables_ecn() {
            Verdict::Mark
        } else {
            Verdict::Drop
        }
    }

    /// Whether the L queue is next. While both wait, the C queue is served when it has missed a packet of its share.
    fn is_turn_of_l(&mut self) -> bool {
        let share = self.pi.config.classic_share;
        match (self.l.packets.front(), self.c.packets.front()) {
            (Some((_, l)), Some((_, c))) => {
                let price = f64::from(c.size()) * (1.0 - share);
                if self.credit >= price {
                    self.credit -= price;
                    return false;
                }
                self.credit += f64::from(l.size()) * share;
                true
            }
            (l, _) => {
                self.credit = 0.0;
                l.is_some()
            }
        }
    }

    /// Carries out a verdict; `None` if the packet is lost.
    fn carry_out(
        verdict: &Verdict,
        at: &mut Moment<'_>,
        mut p: P,
        lost: &mut impl FnMut(P, DropReason),
    ) -> Option<P> {
        match verdict {
            Verdict::Send => {}
            Verdict::Mark => at.mark_at_hand(&mut p),
            Verdict::Drop => {
                lost(p, DropReason::Aqm);
                return None;
            }
        }
        Some(p)
    }
}

impl<P: PacketView> Order<P> for DualPi2<P> {
    fn enqueue(
        &mut self,
        at: &mut Moment<'_>,
        p: P,
        held: &mut Load,
        limit: Load,
        _: u32,
        lost: &mut impl FnMut(P, DropReason),
    ) -> bool {
        self.catch_up(at.now);
        if !held.admits(p.size(), limit) {
            lost(p, DropReason::Full);
            return false;
        }
        held.add(p.size());
        let queue = if p.is_l4s() { &mut self.l } else { &mut self.c };
        queue.packets.push_back((at.now, p));
        true
    }

    fn dequeue(
        &mut self,
        at: &mut Moment<'_>,
        held: &mut Load,
        lost: &mut impl FnMut(P, DropReason),
    ) -> Option<P> {
        self.catch_up(at.now);
        loop {
            let of_l = self.is_turn_of_l();
            let queue = if of_l { &mut self.l } else { &mut self.c };
            let (since, p) = queue.packets.pop_front()?;
            let verdict = if of_l {
                self.judge_l(at.now.since(since), self.l.packets.len())
            } else {
                self.judge_c(p.is_ect())
            };
            let size = p.size();
            match Self::carry_out(&verdict, at, p, lost) {
                Some(p) => return Some(p),
                None => held.remove(size),
            }
        }
    }

    fn pass(
        &mut self,
        at: &mut Moment<'_>,
        p: P,
        _: Load,
        lost: &mut impl FnMut(P, DropReason),
    ) -> Option<P> {
        self.catch_up(at.now);
        let verdict = if p.is_l4s() { self.judge_l(Duration::ZERO, 0) } else { self.judge_c(p.is_ect()) };
        Self::carry_out(&verdict, at, p, lost)
    }
}

#[cfg(test)]
mod tests;

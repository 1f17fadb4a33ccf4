//! Random early detection: Floyd, Jacobson, "Random early detection gateways for congestion avoidance", IEEE/ACM ToN 1(4),
//! 1993. Packets are marked or dropped at arrival, the more often the longer the queue is on average.
//!
//! The average is exponential and counts waiting packets, and the one in service only with `count-in-service`. While
//! the queue is empty it decays as if packets of typical size had left one after the other. Between the thresholds the
//! gaps between signals are uniform, not geometric: `count` packets since the last one raise the probability. In the
//! variant "gentle" (Floyd, 2000) the probability keeps rising from the upper threshold to its double; the original
//! drops everything there.
//!
//! Each arrival draws once, so that arrivals and draws stay in step whatever the thresholds.

use super::limit::{Limit, Load};
use super::model::{Key, Model, Order};
use super::moment::Moment;
use super::options::{self, Invalid};
use super::waiting::{Signal, Waiting};
use crate::packet::{DropReason, PacketView};
use crate::param::probability;
use alloc::boxed::Box;
use alloc::vec::Vec;
use skyhaul_base::{Instant, Rate, math};

skyhaul_base::options! {
    /// Marks or drops arrivals at random, with a probability that grows with the average queue length.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Config {
        /// Lower threshold of the average queue; a sixth of the limit by default, 5 packets without one.
        min_threshold: Option<u64> as Count = None,
        /// Upper threshold of the average queue; half the limit by default, 15 packets without one.
        max_threshold: Option<u64> as Count = None,
        /// Probability at the upper threshold; 0.1 by default.
        max_probability: f64 as Probability = 0.1,
        /// Weight of the current queue length in the average; 0.002 by default.
        weight: f64 as Probability = 0.002,
        /// "Gentle": above the upper threshold the probability rises linearly to 1 at twice the threshold, instead of at
        /// once; true by default.
        gentle: bool = true,
        /// Typical packet size; 1000 B by default.
        packet_size: u64 as Size = 1000,
        /// Mark ECN-capable packets instead of dropping them; true by default.
        ecn: bool = true,
        /// Mark or drop low priority instead of high priority; false by default.
        class_aware: bool = false,
    }
}

impl Model for Config {
    const KEYS: &'static [Key] = &[
        options::MIN_THRESHOLD,
        options::MAX_THRESHOLD,
        options::MAX_PROBABILITY,
        options::WEIGHT,
        options::GENTLE,
        options::PACKET_SIZE,
        options::ECN,
        options::CLASS_AWARE,
    ];
    const SEES_ALL: bool = true;
    type Order<P> = Box<Red<P>>;
    type Invalid = Invalid;

    fn validate(&self, limit: Limit) -> Result<(), Invalid> {
        let keys = (options::MIN_THRESHOLD, options::MAX_THRESHOLD);
        self.thresholds().validate(keys, limit, self.packet_size)?;
        validate(self.max_probability, self.weight, self.packet_size)
    }
    fn build<P>(&self) -> Box<Red<P>> {
        Box::new(Red {
            waiting: Waiting::new(self.class_aware),
            average: Average::new(self.weight, self.packet_size),
            class: Class::new(self.thresholds(), Curve::new(self.max_probability, self.gentle)),
            low: None,
            ecn: self.ecn,
        })
    }
    fn marks(&self) -> bool {
        self.ecn
    }
    fn words(&self) -> &'static str {
        "random early detection"
    }
    fn ignores_priority(&self) -> bool {
        !self.class_aware
    }
    fn derived(&self, limit: Limit) -> Vec<(&'static str, f64)> {
        let keys = (options::MIN_THRESHOLD, options::MAX_THRESHOLD);
        self.thresholds().derived(keys, limit, self.packet_size).collect()
    }
}

impl Config {
    fn thresholds(&self) -> Thresholds {
        Thresholds { min: self.min_threshold, max: self.max_threshold, part: 1.0 }
    }
}

/// Validation common to RED and its variant by class.
pub(super) fn validate(max_probability: f64, weight: f64, packet_size: u64) -> Result<(), Invalid> {
    probability(options::MAX_PROBABILITY.name, max_probability)?;
    probability(options::WEIGHT.name, weight)?;
    if weight == 0.0 {
        return Err(Invalid::Zero { key: options::WEIGHT.name, example: "a number such as 0.002" });
    }
    options::some_bytes(options::PACKET_SIZE.name, packet_size, "a size such as \"1000 B\"")
}

/// The thresholds of the average, as files have them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thresholds {
    pub(super) min: Option<u64>,
    pub(super) max: Option<u64>,
    /// Defaults are this fraction of the usual ones.
    pub(super) part: f64,
}

impl Thresholds {
    /// The thresholds in packets, for a queue with this capacity. Defaults are a sixth and a half of the capacity,
    /// so that they suit buffers of one bandwidth-delay product (*our choice*); without a limit 5 and 15 packets,
    /// as Floyd recommends.
    pub(super) fn of(&self, limit: Load, packet_size: u64) -> (f64, f64) {
        let room = match limit.as_limit() {
            Limit::Unlimited => None,
            Limit::Bytes(bytes) => Some(bytes as f64 / packet_size as f64),
            Limit::Packets(packets) => Some(f64::from(packets)),
        };
        let (min, max) = room.map_or((5.0, 15.0), |room| (room / 6.0, room / 2.0));
        let said = |n: Option<u64>, usual: f64| n.map_or(usual * self.part, |n| n as f64);
        (said(self.min, min), said(self.max, max))
    }
    /// The thresholds that files leave out.
    pub(super) fn derived(
        &self,
        keys: (Key, Key),
        limit: Limit,
        packet_size: u64,
    ) -> impl Iterator<Item = (&'static str, f64)> + use<> {
        let (min, max) = self.of(Load::most(limit, 0), packet_size.max(1));
        let all = [(keys.0.name, min, self.min), (keys.1.name, max, self.max)];
        all.into_iter().filter(|(.., said)| said.is_none()).map(|(key, value, _)| (key, value))
    }
    pub(super) fn validate(&self, keys: (Key, Key), limit: Limit, packet_size: u64) -> Result<(), Invalid> {
        let (lower, upper) = (keys.0.name, keys.1.name);
        let (min, max) = self.of(Load::most(limit, 0), packet_size.max(1));
        match limit {
            // A queue of zero capacity never has an average.
            Limit::Packets(0) | Limit::Bytes(0) => return Ok(()),
            Limit::Packets(n) if min > n.into() => return Err(Invalid::NeverReached { key: lower, min }),
            _ => {}
        }
        if min < max { Ok(()) } else { Err(Invalid::Thresholds { lower, upper, min, max }) }
    }
}

/// The average length of the queue.
#[derive(Clone, Debug)]
pub(super) struct Average {
    /// In packets.
    value: f64,
    weight: f64,
    packet_size: u64,
    /// Transmission time of a packet of typical size, in seconds.
    packet_time: f64,
    /// Start of the decay of an empty queue.
    empty_since: Instant,
}

impl Average {
    pub(super) fn new(weight: f64, packet_size: u64) -> Self {
        Self { value: 0.0, weight, packet_size, packet_time: 0.0, empty_since: Instant::ZERO }
    }
    pub(super) fn set_rate(&mut self, rate: Option<Rate>) {
        self.packet_time = rate.map_or(0.0, |rate| self.packet_size as f64 / rate.bytes_per_sec());
    }
    /// A packet arrives that finds `waiting` others.
    pub(super) fn arrive(&mut self, now: Instant, waiting: u32) -> f64 {
        if waiting > 0 {
            self.value += self.weight * (f64::from(waiting) - self.value);
            return self.value;
        }
        let gone = now.since(self.empty_since).as_secs_f64() / self.packet_time;
        // If packets take no time, all have left; if no time has passed, none.
        self.value *= if gone.is_nan() { 1.0 } else { math::pow(1.0 - self.weight, gone) };
        self.empty_since = now;
        self.value
    }
    /// The queue is empty from now on.
    pub(super) fn emptied(&mut self, now: Instant) {
        self.empty_since = now;
    }
}

/// RED's decision on an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Admit it.
    Admit,
    /// Mark it, or drop it.
    Mark,
    /// Drop it: the average is too high for a mark [RFC 3168 §7].
    Drop,
}

/// The probability as a function of the average, and the number of packets since the last signal.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    max_probability: f64,
    gentle: bool,
    count: i64,
}

impl Curve {
    pub(super) fn new(max_probability: f64, gentle: bool) -> Self {
        Self { max_probability, gentle, count: -1 }
    }
    /// The decision on an arrival at this average; `chance` is uniform on [0, 1).
    pub(super) fn judge(&mut self, average: f64, (min, max): (f64, f64), chance: f64) -> Verdict {
        // A queue without capacity has thresholds of 0, which no average is below. A packet that would wait is refused as it
        // finds no room, and a packet that passes meets no congestion.
        let (p, verdict) = if average < min || max == 0.0 {
            self.count = -1;
            return Verdict::Admit;
        } else if average < max {
            (self.max_probability * (average - min) / (max - min), Verdict::Mark)
        } else if self.gentle && average < 2.0 * max {
            (self.max_probability + (1.0 - self.max_probability) * (average - max) / max, Verdict::Drop)
        } else {
            self.signalled();
            return Verdict::Drop;
        };
        self.count += 1;
        let left = 1.0 - self.count as f64 * p;
        let p = if left > 0.0 { p / left } else { 1.0 };
        if chance >= p {
            return Verdict::Admit;
        }
        self.signalled();
        verdict
    }
    /// A packet was marked or dropped.
    pub(super) fn signalled(&mut self) {
        self.count = 0;
    }
}

/// The curve of a class.
#[derive(Clone, Debug)]
pub(super) struct Class {
    thresholds: Thresholds,
    curve: Curve,
}

impl Class {
    pub(super) fn new(thresholds: Thresholds, curve: Curve) -> Self {
        Self { thresholds, curve }
    }
}

/// The waiting packets, their average number, and the curves.
#[derive(Clone, Debug)]
pub struct Red<P> {
    pub(super) waiting: Waiting<P>,
    pub(super) average: Average,
    /// The curve of all packets, or only of high priority.
    pub(super) class: Class,
    /// The curve of low priority, if distinguished.
    pub(super) low: Option<Class>,
    pub(super) ecn: bool,
}

impl<P: PacketView> Red<P> {
    fn class(&mut self, low: bool) -> &mut Class {
        self.low.as_mut().filter(|_| low).unwrap_or(&mut self.class)
    }

    /// Admits an arrival that finds `waiting` others, or signals congestion; `None` if it was dropped.
    fn look(
        &mut self,
        at: &mut Moment<'_>,
        p: P,
        waiting: u32,
        (held, limit): (&mut Load, Load),
        lost: &mut impl FnMut(P, DropReason),
    ) -> Option<P> {
        let average = self.average.arrive(at.now, waiting);
        let packet_size = self.average.packet_size;
        let class = self.class(p.low_priority());
        let verdict = class.curve.judge(average, class.thresholds.of(limit, packet_size), at.rng.unit());
        if verdict == Verdict::Admit {
            return Some(p);
        }
        match self.waiting.signal(at, p, self.ecn && verdict == Verdict::Mark, held, lost) {
            Signal::Marked(p) | Signal::Spared(p) => Some(p),
            Signal::Dropped => None,
        }
    }
}

impl<P: PacketView> Order<P> for Red<P> {
    fn enqueue(
        &mut self,
        at: &mut Moment<'_>,
        p: P,
        held: &mut Load,
        limit: Load,
        counted: u32,
        lost: &mut impl FnMut(P, DropReason),
    ) -> bool {
        let in_service = u32::from(counted > 0);
        let (low, waiting) = (p.low_priority(), held.packets.saturating_add(in_service));
        // The thresholds are fractions of the whole limit.
        let whole = Load {
            packets: limit.packets.saturating_add(in_service),
            bytes: limit.bytes.saturating_add(counted.into()),
        };
        let Some(p) = self.look(at, p, waiting, (&mut *held, whole), lost) else { return false };
        let admitted = self.waiting.admit(at.now, p, held, limit, lost);
        if !admitted {
            self.class(low).curve.signalled();
        }
        admitted
    }
    fn dequeue(&mut self, at: &mut Moment<'_>, _: &mut Load, _: &mut impl FnMut(P, DropReason)) -> Option<P> {
        let head = self.waiting.pop()?;
        if self.waiting.is_empty() {
            self.average.emptied(at.now);
        }
        Some(head.packet)
    }
    fn pass(
        &mut self,
        at: &mut Moment<'_>,
        p: P,
        limit: Load,
        lost: &mut impl FnMut(P, DropReason),
    ) -> Option<P> {
        let mut held = Load::EMPTY;
        self.look(at, p, 0, (&mut held, limit), lost)
    }
    fn set_rate(&mut self, rate: Option<Rate>) {
        self.average.set_rate(rate);
    }
}

#[cfg(test)]
mod tests {
    use super::super::QueueConfig;
    use super::super::testing::{Bench, Pkt, data, ms, probe};
    use super::*;

    #[test]
    fn the_average_is_that_of_the_paper() {
        // Weight 1/2; packets take 1 ms.
        let mut a = Average::new(0.5, 1000);
        a.set_rate(Some(Rate::from_bits_per_sec(8_000_000)));
        assert_eq!(a.arrive(ms(5), 0), 0.0);
        assert_eq!(a.arrive(ms(5), 2), 1.0);
        assert_eq!(a.arrive(ms(5), 4), 2.5);
        assert_eq!(a.arrive(ms(6), 4), 3.25);
        // Empty from 10 ms: three packets could have gone by 13 ms, and one more by 14 ms.
        a.emptied(ms(10));
        assert!(math::abs(a.arrive(ms(13), 0) - 3.25 / 8.0) < 1e-15);
        assert!(math::abs(a.arrive(ms(14), 0) - 3.25 / 16.0) < 1e-15);
        assert!(math::abs(a.arrive(ms(14), 0) - 3.25 / 16.0) < 1e-15);
        // Infinitely fast: all could have gone.
        a.set_rate(None);
        assert!(a.arrive(ms(14), 0) > 0.0);
        assert_eq!(a.arrive(ms(15), 0), 0.0);
    }

    #[test]
    fn the_probability_is_that_of_the_paper() {
        // Thresholds 2 and 6, at most 0.5: at 4 it is 0.25, then 1/3, 1/2 and 1 as packets pass.
        let curve = || Curve::new(0.5, true);
        let judge = |chances: &[f64]| {
            let mut c = curve();
            chances.iter().map(|x| c.judge(4.0, (2.0, 6.0), *x)).collect::<alloc::vec::Vec<_>>()
        };
        use Verdict::{Admit, Drop, Mark};
        assert_eq!(judge(&[0.249]), [Mark]);
        assert_eq!(judge(&[0.25, 0.333]), [Admit, Mark]);
        assert_eq!(judge(&[0.25, 0.334, 0.499]), [Admit, Admit, Mark]);
        assert_eq!(judge(&[0.25, 0.334, 0.5, 0.999]), [Admit, Admit, Admit, Mark]);
        // After a signal the count begins at 0, so that the next packet meets 1/3.
        assert_eq!(judge(&[0.2, 0.333, 0.334, 0.5]), [Mark, Mark, Admit, Admit]);
        // Below the lower threshold nothing; from the upper one on drops, from 0.5 to 1 at its double.
        assert_eq!(curve().judge(1.9, (2.0, 6.0), 0.0), Admit);
        assert_eq!(curve().judge(6.0, (2.0, 6.0), 0.499), Drop);
        assert_eq!(curve().judge(6.0, (2.0, 6.0), 0.5), Admit);
        assert_eq!(curve().judge(9.0, (2.0, 6.0), 0.749), Drop);
        assert_eq!(curve().judge(9.0, (2.0, 6.0), 0.75), Admit);
        assert_eq!(curve().judge(12.0, (2.0, 6.0), 0.999), Drop);
        assert_eq!(Curve::new(0.5, false).judge(6.0, (2.0, 6.0), 0.999), Drop);
    }

    /// Thresholds 5 and 15 on the present queue itself.
    fn present() -> Config {
        Config { min_threshold: Some(5), max_threshold: Some(15), weight: 1.0, ..Config::default() }
    }

    /// A queue at which `n` arrivals have found `waiting` packets each; weight 1 makes the average the queue.
    fn signals(config: Config, waiting: u32, n: u32, packet: impl Fn(u32) -> Pkt) -> Bench {
        let mut q = Bench::of(config);
        let mut id = 0;
        while q.len() < waiting {
            q.arrive(ms(0), packet(id));
            id += 1;
        }
        q.lost.clear();
        q.marks = 0;
        for k in 0..n {
            if q.arrive(ms(1), packet(id + k)) {
                q.leave(ms(1));
            }
        }
        q
    }

    #[test]
    fn default_thresholds_are_fractions_of_the_whole_limit() {
        // Of 12 packets: 2 and 6. An arrival that finds one waiting and one in service is at the lower threshold.
        for (limit, lost) in [(Limit::Packets(12), 0), (Limit::Bytes(12_000), 0), (Limit::Packets(11), 1)] {
            let config = Config { max_probability: 1.0, weight: 1.0, ..Config::default() };
            let queue = QueueConfig { limit, count_in_service: true, ..QueueConfig::default().with(config) };
            let mut q = Bench::new(queue);
            assert!(q.arrive(ms(0), data(0)));
            for id in 1..100 {
                if q.arrive(ms(1), data(id)) {
                    q.leave(ms(1));
                }
            }
            assert_eq!(q.lost.len().min(1), lost, "{limit:?}");
        }
    }

    #[test]
    fn the_rate_of_drops_follows_from_the_formula() {
        // At 10 packets pb = 0.05. After a signal the gap is uniform on 1 to 1/pb - 1 = 19: mean 10, variance 30. So of n
        // arrivals n/10 are lost, with a variance of n · 30/10³; five deviations.
        let n = 100_000;
        let lost = signals(present(), 10, n, data).lost.len() as f64;
        assert!(math::abs(lost - 10_000.0) < 5.0 * math::sqrt(f64::from(n) * 0.03), "{lost}");
        // Gentle, at 20 packets: pb = 0.1 + 0.9 · 5/15 = 0.4; the gap is 1 with probability 0.4/0.6 and 2 otherwise: mean 4/3,
        // variance 2/9.
        let lost = signals(present(), 20, n, data).lost.len() as f64;
        let deviation = math::sqrt(f64::from(n) * (2.0 / 9.0) / math::pow(4.0 / 3.0, 3.0));
        assert!(math::abs(lost - 75_000.0) < 5.0 * deviation, "{lost}");
        assert_eq!(signals(present(), 4, 1000, data).lost, []);
    }

    #[test]
    fn marks_stand_for_drops_below_the_upper_threshold() {
        let ect = |id| Pkt { ect: true, ..data(id) };
        let q = signals(present(), 10, 10_000, ect);
        assert!(q.lost.is_empty() && q.marks > 900, "{} {}", q.lost.len(), q.marks);
        let q = signals(present(), 20, 1000, ect);
        assert!(q.lost.len() > 700 && q.marks == 0);
        let q = signals(Config { ecn: false, ..present() }, 10, 1000, ect);
        assert!(q.lost.len() > 50 && q.marks == 0);
    }

    #[test]
    fn low_priority_is_hit_in_the_place_of_data() {
        let aware = Config { class_aware: true, ..present() };
        let mut q = Bench::of(aware);
        (0..3).for_each(|id| assert!(q.arrive(ms(0), probe(id))));
        (3..60).for_each(|id| assert!(q.arrive(ms(0), data(id)) || q.lost.len() > 3));
        let first: alloc::vec::Vec<_> = q.lost.iter().map(|l| l.0).collect();
        assert_eq!(first[..3], [0, 1, 2]);
        assert!(first.len() > 3 && first[3] > 3);
        // With marks: each probe once, the oldest first, and then data.
        let ect = |p: Pkt| Pkt { ect: true, ..p };
        let mut q = Bench::of(Config { max_threshold: Some(1000), max_probability: 1.0, ..aware });
        (0..3).for_each(|id| assert!(q.arrive(ms(0), ect(probe(id)))));
        (3..300).for_each(|id| assert!(q.arrive(ms(0), ect(data(id)))));
        let marked: alloc::vec::Vec<_> =
            core::iter::from_fn(|| q.leave(ms(1))).filter(|p| p.ce).map(|p| p.id).collect();
        assert_eq!(marked[..3], [0, 1, 2]);
        assert!(marked.len() > 3 && marked.len() == q.marks as usize && q.lost.is_empty());
    }

    #[test]
    fn a_full_queue_refuses_and_pushes_out_by_class_only() {
        let late = Config { min_threshold: Some(5), max_threshold: Some(15), ..Config::default() };
        for class_aware in [false, true] {
            let config = QueueConfig::packets(6).with(Config { class_aware, ..late });
            let mut q = Bench::new(config);
            assert!(q.arrive(ms(0), probe(0)));
            (1..6).for_each(|id| assert!(q.arrive(ms(0), data(id))));
            assert_eq!(q.arrive(ms(0), data(6)), class_aware);
            let why = if class_aware { (0, DropReason::PushedOut) } else { (6, DropReason::Full) };
            assert_eq!(q.lost, [why]);
        }
    }

    #[test]
    fn thresholds_scale_with_the_limit_unless_given() {
        let of = |config: Config, limit| config.thresholds().of(Load::most(limit, 0), 1000);
        let usual = Config::default();
        assert_eq!(of(usual, Limit::Packets(60)), (10.0, 30.0));
        assert_eq!(of(usual, Limit::Bytes(60_000)), (10.0, 30.0));
        assert_eq!(of(usual, Limit::Unlimited), (5.0, 15.0));
        assert_eq!(of(Config { max_threshold: Some(50), ..usual }, Limit::Packets(60)), (10.0, 50.0));
        // The packet in service takes room of the limit, but an unlimited queue has none to take.
        let counted = Load { packets: u32::MAX - 1, bytes: u64::MAX - 1500 };
        assert_eq!(usual.thresholds().of(counted, 1000), (5.0, 15.0));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_key() {
        use crate::param::Refusal as _;
        let key = |config: Config, limit| config.validate(limit).unwrap_err().key();
        let usual = Config::default();
        let fifty = Limit::Packets(50);
        assert!(usual.validate(fifty).is_ok() && usual.validate(Limit::Packets(0)).is_ok());
        assert_eq!(key(Config { min_threshold: Some(25), ..usual }, fifty), "min-threshold");
        assert_eq!(
            key(Config { min_threshold: Some(51), max_threshold: Some(90), ..usual }, fifty),
            "min-threshold"
        );
        assert_eq!(key(Config { max_probability: 1.5, ..usual }, fifty), "max-probability");
        assert_eq!(key(Config { weight: 0.0, ..usual }, fifty), "weight");
        assert_eq!(key(Config { packet_size: 0, ..usual }, fifty), "packet-size");
        let weightless = Config { weight: 0.0, ..usual }.validate(fifty).unwrap_err();
        let message = alloc::string::ToString::to_string(&weightless);
        assert_eq!(message, "must be above 0: write a number such as 0.002");
    }

    #[test]
    fn packets_pass_a_queue_without_capacity() {
        for limit in [Limit::Packets(0), Limit::Bytes(0)] {
            let mut q = Bench::new(QueueConfig { limit, ..QueueConfig::default().with(Config::default()) });
            assert!(!q.arrive(ms(0), data(0)));
            assert_eq!(q.lost, [(0, DropReason::Full)]);
            assert_eq!(q.pass(ms(1), data(1)), Some(data(1)));
        }
    }
}

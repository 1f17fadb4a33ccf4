//! The verdict of a train of probes on a path.
//!
//! A train of normal-priority probes loads the link. Among them are pairs of a low and a normal probe, one directly after the
//! other; a coin decides which comes first. If both classes are treated alike, then the low probe of a pair arrives as the second
//! of the two in half of all pairs, whatever the queue. If the path serves low priority last, then it does in all of them; if it
//! drops low priority first, then the low probe is the one that is lost in all pairs that lose exactly one. Both shares are tested
//! against 3/4 (exact binomial test). The order alone does not show that the path ignores low priority while losses suggest the
//! contrary.

use super::message::Arrival;
use serde::{Deserialize, Serialize};
use skyhaul_base::Rng;

/// Share of pairs in which low priority fares worse; above it the path honours low priority.
const SHARE: f64 = 0.75;
/// Error probability of each look at the results. A test looks after each train: at most 31 times with the default of 1500 packets.
const ALPHA: f64 = 0.001;
/// Low priority is suspected to be dropped first if, where classes are treated alike, so many low probes among the lost ones have at most
/// this probability.
const SUSPICION: f64 = 0.05;
/// Growth of the delay within a train that shows a queue, microseconds.
const QUEUE: i64 = 2000;
/// Losses in a train that show a full queue.
const LOSSES: usize = 8;

/// How a path treats low priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Low priority is delayed or dropped first.
    Honoured,
    /// Low priority is treated like normal priority.
    Ignored,
    /// There is no result.
    Unknown,
}

impl Verdict {
    /// The name in files and on a terminal.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Honoured => "honoured",
            Self::Ignored => "ignored",
            Self::Unknown => "unknown",
        }
    }
}

/// A probe of a train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    pub(crate) low: bool,
    /// The pair that it belongs to; `None`: it is load.
    pub(crate) pair: Option<u8>,
}

/// A train of this many probes.
pub(crate) fn train(length: usize, rng: &mut Rng) -> Vec<Probe> {
    let load = Probe { low: false, pair: None };
    // Load builds up a queue before the first pair, and keeps it up behind the last one.
    let mut train = vec![load; length / 4];
    let mut pair = 0;
    while train.len() + 3 <= length - length / 8 {
        let first_low = rng.below(2) == 0;
        for low in [first_low, !first_low] {
            train.push(Probe { low, pair: Some(pair) });
        }
        train.push(load);
        pair += 1;
    }
    train.resize(length, load);
    train
}

/// Counts of a train, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Counts {
    /// Trains that loaded the link.
    pub loaded: u32,
    /// All trains.
    pub trains: u32,
    /// Pairs of which both probes arrived.
    pub pairs: u32,
    /// Pairs of which both probes arrived, the low one as the second.
    pub low_second: u32,
    /// Pairs of which exactly one probe was lost.
    pub broken: u32,
    /// Pairs of which the low probe alone was lost.
    pub low_lost: u32,
    /// Low probes that arrived with another DSCP.
    pub remarked: u32,
    /// By how much longer low probes took than the normal ones of their pairs, summed over pairs, seconds.
    pub extra_delay: f64,
}

impl Counts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.loaded += other.loaded;
        self.trains += other.trains;
        self.pairs += other.pairs;
        self.low_second += other.low_second;
        self.broken += other.broken;
        self.low_lost += other.low_lost;
        self.remarked += other.remarked;
        self.extra_delay += other.extra_delay;
    }
    /// Whether losses suggest, without proving it, that low priority is dropped first. A queue that pushes out low priority and
    /// otherwise keeps the order of arrival, as in TCP-Peach, shows it by losses alone.
    fn loses_low_first(&self) -> bool {
        self.broken > 0 && at_least(self.low_lost, self.broken, 0.5) <= SUSPICION
    }
    /// What the counts say of the path.
    pub(crate) fn verdict(&self) -> Verdict {
        let above = |x, n| n > 0 && at_least(x, n, SHARE) <= ALPHA;
        let below = |x, n| n > 0 && 1.0 - at_least(x + 1, n, SHARE) <= ALPHA;
        if above(self.low_second, self.pairs) || above(self.low_lost, self.broken) {
            Verdict::Honoured
        } else if below(self.low_second, self.pairs) && !self.loses_low_first() {
            Verdict::Ignored
        } else {
            Verdict::Unknown
        }
    }
}

/// Judges a train. `sent`: when each probe left, microseconds; `dscp`: that of low probes. Of a train that did not load the link, only
/// remarked probes are counted, beside the train itself.
pub(crate) fn judge(train: &[Probe], sent: &[i64], arrivals: &[Arrival], dscp: u8) -> Counts {
    let mut counts = Counts { trains: 1, ..Counts::default() };
    // Place among the arrivals, and delay up to a constant, by index.
    let mut arrived: Vec<Option<(usize, i64)>> = vec![None; train.len()];
    for (place, a) in arrivals.iter().enumerate() {
        let index = usize::from(a.index);
        if let (Some(slot @ None), Some(left), Some(probe)) =
            (arrived.get_mut(index), sent.get(index), train.get(index))
        {
            *slot = Some((place, i64::from(a.at) - left));
            counts.remarked += u32::from(probe.low && a.dscp != dscp);
        }
    }
    let normal: Vec<i64> =
        train.iter().zip(&arrived).filter(|(p, _)| !p.low).filter_map(|(_, a)| Some(a.as_ref()?.1)).collect();
    let lost = arrived.iter().filter(|a| a.is_none()).count();
    let quarter = normal.len().div_ceil(4);
    let median = |part: Option<&[i64]>| {
        let mut part = part.unwrap_or_default().to_vec();
        part.sort_unstable();
        part.get(part.len() / 2).copied().unwrap_or(0)
    };
    let grows = median(normal.get(normal.len() - quarter..)) - median(normal.get(..quarter)) >= QUEUE;
    if !grows && lost < LOSSES {
        return counts;
    }
    counts.loaded = 1;
    for pair in 0..=u8::MAX {
        let index = |low| train.iter().position(|p| p.pair == Some(pair) && p.low == low);
        let (Some(low), Some(normal)) = (index(true), index(false)) else { break };
        let arrival = |index: usize| arrived.get(index).copied().flatten();
        match (arrival(low), arrival(normal)) {
            (Some((low_place, low_delay)), Some((normal_place, normal_delay))) => {
                counts.pairs += 1;
                counts.low_second += u32::from(low_place > normal_place);
                counts.extra_delay += (low_delay - normal_delay) as f64 / 1e6;
            }
            (None, None) => {}
            (low, _) => {
                counts.broken += 1;
                counts.low_lost += u32::from(low.is_none());
            }
        }
    }
    counts
}

/// P(X ≥ x) of a binomial X of n trials with probability p.
fn at_least(x: u32, n: u32, p: f64) -> f64 {
    if x == 0 {
        return 1.0;
    }
    // The logarithm of each term: the terms themselves may be too small.
    let mut log = f64::from(n) * (1.0 - p).ln();
    let mut sum = 0.0;
    for k in 1..=n {
        log += (f64::from(n - k + 1) / f64::from(k) * p / (1.0 - p)).ln();
        if k >= x {
            sum += log.exp();
        }
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binomial_tails_are_the_closed_forms() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12 * b.max(1e-3), "{a} is not {b}");
        near(at_least(10, 10, 0.75), 0.75_f64.powi(10));
        near(at_least(1, 10, 0.75), 1.0 - 0.25_f64.powi(10));
        near(at_least(2, 3, 0.75), 3.0 * 0.75 * 0.75 * 0.25 + 0.75_f64.powi(3));
        near(at_least(0, 3, 0.75), 1.0);
        assert!(at_least(1501, 3000, 0.75) > 0.999 && at_least(2999, 3000, 0.5) < 1e-300);
    }

    #[test]
    fn the_verdict_needs_enough_pairs() {
        let order_of = |low_second, pairs| Counts { low_second, pairs, ..Counts::default() };
        let order = |low_second, pairs| order_of(low_second, pairs).verdict();
        assert_eq!(order(24, 24), Verdict::Unknown, "0.75^24 = 0.0010034");
        assert_eq!(order(25, 25), Verdict::Honoured);
        assert_eq!(order(20, 40), Verdict::Ignored);
        assert_eq!(order(5, 10), Verdict::Unknown);
        assert_eq!(order(0, 6), Verdict::Ignored, "1/4^6");
        let loss =
            |low_lost, broken| Counts { low_lost, broken, pairs: 2, low_second: 1, ..Counts::default() };
        assert_eq!(loss(30, 30).verdict(), Verdict::Honoured);
        assert_eq!(loss(15, 30).verdict(), Verdict::Unknown, "losses alone do not show that it is ignored");
        let both = |low_lost, broken| Counts { low_lost, broken, ..order_of(20, 40) }.verdict();
        assert_eq!(both(0, 0), Verdict::Ignored);
        assert_eq!(both(6, 10), Verdict::Ignored, "0.38 with equal classes");
        assert_eq!(both(10, 10), Verdict::Unknown, "1/2^10: more trains will tell");
        assert_eq!(both(25, 25), Verdict::Honoured, "though those that arrive keep their order");
        assert_eq!(Counts::default().verdict(), Verdict::Unknown);
    }

    /// A queue that sends a probe per 800 µs: in the order of arrival, or low priority last. Probes arrive 10 µs apart.
    fn queue(train: &[Probe], priority: bool, room: usize) -> (Vec<i64>, Vec<Arrival>) {
        let sent: Vec<i64> = (0..train.len() as i64).map(|n| 10 * n).collect();
        let mut order: Vec<usize> = (0..train.len()).collect();
        if priority {
            // The first is under way before others come.
            order[1..].sort_by_key(|n| train[*n].low);
        }
        // Beyond its room, those that would be served last are pushed out, or those that came last are dropped.
        let served = &order[..room.min(order.len())];
        let arrival = |(k, n): (usize, &usize)| Arrival { index: *n as u8, dscp: 1, at: 800 * k as u32 };
        (sent, served.iter().enumerate().map(arrival).collect())
    }
    fn path(priority: bool, room: usize) -> Counts {
        let mut rng = Rng::stream(3, "train");
        let mut all = Counts::default();
        for _ in 0..8 {
            let train = train(64, &mut rng);
            assert_eq!(train.len(), 64);
            let (sent, arrivals) = queue(&train, priority, room);
            all.add(&judge(&train, &sent, &arrivals, 1));
        }
        all
    }

    #[test]
    fn queues_are_told_apart() {
        let fifo = path(false, 64);
        assert_eq!((fifo.verdict(), fifo.loaded, fifo.broken), (Verdict::Ignored, 8, 0));
        assert!(fifo.pairs >= 96 && fifo.low_second > fifo.pairs / 4, "{fifo:?}");
        let strict = path(true, 64);
        assert_eq!((strict.verdict(), strict.low_second), (Verdict::Honoured, strict.pairs));
        assert!(strict.extra_delay / f64::from(strict.pairs) > 0.005, "{strict:?}");
        // All low probes are pushed out.
        let push_out = path(true, 40);
        assert_eq!((push_out.verdict(), push_out.low_lost), (Verdict::Honoured, push_out.broken));
        assert!(push_out.broken > 30);
        // Drop-tail loses the end of a train, whatever its class.
        assert_ne!(path(false, 40).verdict(), Verdict::Honoured);
    }

    /// The queue of TCP-Peach's routers: the order of arrival, and a packet of normal priority pushes out the newest of low priority
    /// when the queue is full.
    #[test]
    fn push_out_that_keeps_the_order_is_found() {
        let mut rng = Rng::stream(5, "train");
        let mut all = Counts::default();
        for _ in 0..12 {
            let train = train(64, &mut rng);
            let mut queue: Vec<usize> = Vec::new();
            for (n, probe) in train.iter().enumerate() {
                if queue.len() < 48 {
                    queue.push(n);
                } else if !probe.low
                    && let Some(victim) = queue.iter().rposition(|q| train[*q].low)
                {
                    queue.remove(victim);
                    queue.push(n);
                }
            }
            let sent: Vec<i64> = (0..64).map(|n| 10 * n).collect();
            let arrival = |(k, n): (usize, &usize)| Arrival { index: *n as u8, dscp: 1, at: 800 * k as u32 };
            let arrivals: Vec<Arrival> = queue.iter().enumerate().map(arrival).collect();
            all.add(&judge(&train, &sent, &arrivals, 1));
            assert_ne!(all.verdict(), Verdict::Ignored, "{all:?}");
        }
        assert_eq!((all.verdict(), all.low_lost), (Verdict::Honoured, all.broken), "{all:?}");
    }

    #[test]
    fn a_link_without_a_queue_decides_nothing() {
        let mut rng = Rng::stream(4, "train");
        let train = train(64, &mut rng);
        let sent: Vec<i64> = (0..64).map(|n| 10 * n).collect();
        let arrivals: Vec<Arrival> =
            (0..64).map(|n| Arrival { index: n, dscp: 0, at: 10 * u32::from(n) }).collect();
        let c = judge(&train, &sent, &arrivals, 1);
        assert_eq!((c.loaded, c.pairs, c.trains), (0, 0, 1));
        assert_eq!(c.remarked as usize, train.iter().filter(|p| p.low).count());
        // Numbers that were never sent, or twice, are ignored.
        let odd = [Arrival { index: 200, dscp: 1, at: 0 }, arrivals[0], arrivals[0]];
        assert_eq!(judge(&train, &sent, &odd, 1).pairs, 0);
        assert_eq!(judge(&[], &[], &odd, 1).loaded, 0);
    }
}

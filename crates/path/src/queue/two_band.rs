//! Two queues with separate limits, one per class: nothing is shared, so nothing is pushed out.
//!
//! The transmitter serves high priority first, like the Linux discipline `prio`, or gives low priority a share of
//! the rate while both wait: deficit round robin (Shreedhar, Varghese, "Efficient fair queueing using deficit round
//! robin", SIGCOMM 1995).

use super::limit::{Limit, Load};
use super::model::{Key, Model, Order};
use super::moment::Moment;
use super::options;
use crate::packet::{DropReason, PacketView};
use crate::param::{ParamError, probability, within};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use skyhaul_base::math;

skyhaul_base::options! {
    /// Two queues with separate limits for high and low priority.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Config {
        /// Fraction of the limit reserved for low priority; the rest is reserved for high priority. 0.5 by default.
        low_room: f64 as Probability = 0.5,
        /// Share of the rate for low priority while both wait; 0 by default: high priority is served first.
        low_rate: f64 as Probability = 0.0,
    }
}

/// Minimum share of the rate above zero, and minimum left to high priority.
const LEAST: f64 = 0.001;

impl Model for Config {
    const KEYS: &'static [Key] = &[options::LOW_ROOM, options::LOW_RATE];
    type Order<P> = Box<TwoBand<P>>;
    type Invalid = ParamError;

    fn validate(&self, _: Limit) -> Result<(), ParamError> {
        probability(options::LOW_ROOM.name, self.low_room)?;
        if self.low_rate != 0.0 {
            within(options::LOW_RATE.name, self.low_rate, LEAST, 1.0 - LEAST)?;
        }
        Ok(())
    }
    fn build<P>(&self) -> Box<TwoBand<P>> {
        let low = self.low_rate.clamp(0.0, 1.0 - LEAST);
        // The smaller share sends one packet of typical size per turn.
        let quantum = |share: f64| (1500.0 * share / low.max(LEAST).min(1.0 - low)) as i64;
        Box::new(TwoBand {
            high: Band::new(quantum(1.0 - low)),
            low: Band::new(quantum(low.max(LEAST))),
            low_room: self.low_room,
            strict: low == 0.0,
            turn_of_low: false,
        })
    }
    fn words(&self) -> &'static str {
        if self.low_rate == 0.0 {
            "a limit per class, probes served last"
        } else {
            "a limit and a share of the rate per class"
        }
    }
}

/// The queue of a class.
#[derive(Clone, Debug)]
struct Band<P> {
    fifo: VecDeque<P>,
    held: Load,
    /// Bytes per turn.
    quantum: i64,
    /// Bytes that it may still send in this turn.
    credits: i64,
}

impl<P: PacketView> Band<P> {
    fn pop(&mut self) -> Option<P> {
        let p = self.fifo.pop_front()?;
        self.held.remove(p.size());
        if self.fifo.is_empty() {
            self.credits = 0;
        }
        Some(p)
    }
}

impl<P> Band<P> {
    fn new(quantum: i64) -> Self {
        Self { fifo: VecDeque::new(), held: Load::EMPTY, quantum: quantum.max(1), credits: 0 }
    }
}

/// The queues of the classes.
#[derive(Clone, Debug)]
pub struct TwoBand<P> {
    high: Band<P>,
    low: Band<P>,
    low_room: f64,
    strict: bool,
    /// It is the turn of low priority.
    turn_of_low: bool,
}

/// Part of a limit.
fn part(limit: Load, share: f64, low: bool) -> Load {
    let of = |whole: u64| {
        let part = math::floor(whole as f64 * share) as u64;
        if low { part.min(whole) } else { whole.saturating_sub(part) }
    };
    match limit.as_limit() {
        Limit::Unlimited => limit,
        Limit::Packets(n) => Load { packets: of(n.into()) as u32, ..limit },
        Limit::Bytes(n) => Load { bytes: of(n), ..limit },
    }
}

impl<P: PacketView> Order<P> for TwoBand<P> {
    fn enqueue(
        &mut self,
        _: &mut Moment<'_>,
        p: P,
        held: &mut Load,
        limit: Load,
        _: u32,
        lost: &mut impl FnMut(P, DropReason),
    ) -> bool {
        let band = if p.low_priority() { &mut self.low } else { &mut self.high };
        let fits = band.held.admits(p.size(), part(limit, self.low_room, p.low_priority()));
        if fits {
            held.add(p.size());
            band.held.add(p.size());
            band.fifo.push_back(p);
        } else {
            lost(p, DropReason::Full);
        }
        fits
    }
    fn dequeue(&mut self, _: &mut Moment<'_>, _: &mut Load, _: &mut impl FnMut(P, DropReason)) -> Option<P> {
        if self.strict || self.high.fifo.is_empty() || self.low.fifo.is_empty() {
            return self.high.pop().or_else(|| self.low.pop());
        }
        loop {
            let band = if self.turn_of_low { &mut self.low } else { &mut self.high };
            let size = i64::from(band.fifo.front()?.size());
            if size <= band.credits {
                band.credits -= size;
                return band.pop();
            }
            self.turn_of_low = !self.turn_of_low;
            let next = if self.turn_of_low { &mut self.low } else { &mut self.high };
            next.credits += next.quantum;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::QueueConfig;
    use super::super::testing::{Bench, Pkt, data, ms, probe};
    use super::*;
    use alloc::vec::Vec;

    fn bench(low_room: f64, low_rate: f64, packets: u32) -> Bench {
        Bench::new(QueueConfig::packets(packets).with(Config { low_room, low_rate }))
    }

    #[test]
    fn each_class_has_its_own_limit() {
        let mut q = bench(0.25, 0.0, 8);
        let probes: Vec<_> = (0..4).map(|id| q.arrive(ms(0), probe(id))).collect();
        let others: Vec<_> = (4..12).map(|id| q.arrive(ms(0), data(id))).collect();
        assert_eq!(probes, [true, true, false, false]);
        assert_eq!(others, [true, true, true, true, true, true, false, false]);
        let served: Vec<_> = core::iter::from_fn(|| q.leave(ms(1))).map(|p| p.id).collect();
        assert_eq!(served, [4, 5, 6, 7, 8, 9, 0, 1]);
    }

    #[test]
    fn shares_of_the_rate_are_kept_while_both_wait() {
        for low_rate in [0.1, 0.5, 0.8] {
            let mut q = bench(0.5, low_rate, 10_000);
            for id in 0..2000 {
                assert!(q.arrive(ms(0), Pkt { size: 400, ..data(id) }));
                assert!(q.arrive(ms(0), Pkt { size: 1500, ..probe(id) }));
            }
            let (mut low, mut all) = (0, 0);
            for _ in 0..1000 {
                let p = q.leave(ms(1)).unwrap();
                all += p.size;
                low += if p.low { p.size } else { 0 };
            }
            // Deficit round robin is off by less than a turn and a packet of each.
            let turns = 2.0 * (1500.0 / low_rate.min(1.0 - low_rate) + 3000.0);
            assert!((f64::from(low) - low_rate * f64::from(all)).abs() < turns, "{low_rate}: {low} of {all}");
        }
    }

    #[test]
    fn who_waits_alone_has_the_whole_rate() {
        let mut q = bench(0.5, 0.1, 20);
        (0..10).for_each(|id| assert!(q.arrive(ms(0), probe(id))));
        assert!((0..10).all(|id| q.leave(ms(1)).map(|p| p.id) == Some(id)));
        assert_eq!(q.len(), 0);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_key() {
        use crate::param::Refusal as _;
        let key =
            |low_room, low_rate| Config { low_room, low_rate }.validate(Limit::Unlimited).unwrap_err().key();
        assert_eq!(key(1.5, 0.0), "low-room");
        assert_eq!(key(0.5, 1.0), "low-rate");
    }
}

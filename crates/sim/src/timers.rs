//! The pending timers: a winner tree that grows.
//!
//! A *slot* is a static identity: the timer of a flow, the sampler (and for links: service, delivery). Each is
//! pending at most once, so the key (time, slot) is unique. The order of simultaneous events is therefore a
//! property of the model, not of the data structure or the order of insertion.
//!
//! The timer of a flow whose application writes at fixed times moves behind most others each time it fires. A change
//! of a slot replays its matches up to the root: a few steps for each doubling of the number of slots, without
//! branches.

use skyhaul_base::Instant;
use skyhaul_path::chain::Tournament;

/// An event that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Due {
    /// Its time.
    pub at: Instant,
    /// Its slot.
    pub slot: u32,
}

/// A priority queue over slots that are numbered from 0.
#[derive(Clone, Debug)]
pub struct Timers {
    tree: Tournament,
    slots: usize,
}

impl Timers {
    /// For the slots `0..slots`, none of them pending.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        Self { tree: Tournament::new(slots), slots }
    }

    /// Adds a slot after the others.
    pub fn grow(&mut self) {
        if self.slots == self.tree.room() {
            let small = core::mem::replace(&mut self.tree, Tournament::new(2 * self.slots));
            (0..self.slots as u32).for_each(|slot| self.tree.set(slot, small.due(slot)));
        }
        self.slots += 1;
    }

    /// The earliest event; among simultaneous ones, that of the lowest slot.
    #[inline]
    #[must_use]
    pub fn peek(&self) -> Option<Due> {
        Some(Due { at: self.tree.next(), slot: self.tree.winner() }).filter(|due| due.at != Instant::MAX)
    }

    /// When the earliest event is due; `Instant::MAX` if nothing is pending.
    #[inline]
    #[must_use]
    pub fn next(&self) -> Instant {
        self.tree.next()
    }

    /// When a slot is due; `Instant::MAX` if it is not pending.
    #[inline]
    #[must_use]
    pub fn due(&self, slot: u32) -> Instant {
        self.tree.due(slot)
    }

    /// Sets the time of a slot, earlier or later than before; `Instant::MAX` means never.
    #[inline]
    pub fn set(&mut self, slot: u32, at: Instant) {
        self.tree.set(slot, at);
    }

    /// Sets the time of a slot unless it is pending earlier: an early event costs less than replaying its matches at
    /// each change of a timer.
    #[inline]
    pub fn set_earlier(&mut self, slot: u32, at: Instant) {
        self.tree.set_earlier(slot, at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    #[test]
    fn simultaneous_events_come_in_the_order_of_slots() {
        let mut h = Timers::new(8);
        for slot in [5, 2, 7, 0, 3] {
            h.set(slot, at(10));
        }
        h.set(6, at(9));
        let order: Vec<u32> = core::iter::from_fn(|| {
            let due = h.peek()?;
            h.set(due.slot, Instant::MAX);
            Some(due.slot)
        })
        .collect();
        assert_eq!(order, [6, 0, 2, 3, 5, 7]);
        assert_eq!(h.next(), Instant::MAX);
    }

    #[derive(Clone, Copy, Debug)]
    enum Op {
        Set(u32, u64),
        Earlier(u32, u64),
        Clear(u32),
        ReplaceTop(u64),
        Pop,
    }

    fn ops() -> impl Strategy<Value = Vec<Op>> {
        // Few distinct times, so that many events are simultaneous.
        let op = prop_oneof![
            (0..40u32, 0..30u64).prop_map(|(s, t)| Op::Set(s, t)),
            (0..40u32, 0..30u64).prop_map(|(s, t)| Op::Earlier(s, t)),
            (0..40u32).prop_map(Op::Clear),
            (0..30u64).prop_map(Op::ReplaceTop),
            Just(Op::Pop),
        ];
        proptest::collection::vec(op, 0..300)
    }

    proptest! {
        #[test]
        fn behaves_like_a_sorted_map(ops in ops(), first in 0..=40usize) {
            let mut timers = Timers::new(first);
            (first..40).for_each(|_| timers.grow());
            let mut model: BTreeMap<u32, u64> = BTreeMap::new();
            for op in ops {
                let top = model.iter().map(|(s, t)| (*t, *s)).min();
                prop_assert_eq!(timers.peek().map(|d| (d.at.as_nanos(), d.slot)), top);
                match op {
                    Op::Set(s, t) => {
                        timers.set(s, at(t));
                        model.insert(s, t);
                    }
                    Op::Earlier(s, t) => {
                        timers.set_earlier(s, at(t));
                        let e = model.entry(s).or_insert(t);
                        *e = (*e).min(t);
                    }
                    Op::Clear(s) => {
                        timers.set(s, Instant::MAX);
                        model.remove(&s);
                    }
                    Op::ReplaceTop(t) => {
                        if let Some((_, s)) = top {
                            timers.set(s, at(t));
                            model.insert(s, t);
                        }
                    }
                    Op::Pop => {
                        if let Some((_, s)) = top {
                            timers.set(s, Instant::MAX);
                            model.remove(&s);
                        }
                    }
                }
                for s in 0..40 {
                    prop_assert_eq!(timers.due(s), model.get(&s).map_or(Instant::MAX, |t| at(*t)));
                }
            }
        }
    }
}

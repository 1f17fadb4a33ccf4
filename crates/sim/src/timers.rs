//! The pending timers: a winner tree that grows, and a line of those that recur.
//!
//! A *slot* is a static identity: the timer of a flow, the sampler (and for links: service, delivery). Each is
//! pending at most once, so the key (time, slot) is unique. The order of simultaneous events is therefore a
//! property of the model, not of the data structure or the order of insertion.
//!
//! A change of a slot in the tree replays its matches up to the root: a few steps for each doubling of the number of
//! slots. The timer of a flow whose application writes at fixed times moves behind the others of its kind each time it
//! fires. These wait in a line, in the order of their times, which takes no search.

use skyhaul_base::Instant;
use skyhaul_base::ring::Ring;
use skyhaul_path::chain::Tournament;

/// An event that is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Due {
    /// Its time.
    pub at: Instant,
    /// Its slot.
    pub slot: u32,
}

impl Due {
    /// Whether it comes before another.
    #[inline(always)]
    fn is_before(self, other: Self) -> bool {
        self.at < other.at || (self.at == other.at && self.slot < other.slot)
    }
}

/// A priority queue over slots that are numbered from 0.
#[derive(Clone, Debug)]
pub struct Timers {
    /// The earliest.
    next: Due,
    /// Those that do not wait in the line.
    tree: Tournament,
    /// Timers in ascending order. One that was set since is still there, but does not count; never the first.
    line: Ring<Due>,
    /// When the slot is due, if it waits in the line: otherwise [`Instant::MAX`].
    lined: Vec<Instant>,
}

impl Timers {
    /// For the slots `0..slots`, none of them pending.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        let tree = Tournament::new(slots);
        let next = Due { at: Instant::MAX, slot: 0 };
        Self { next, tree, line: Ring::new(), lined: vec![Instant::MAX; slots] }
    }

    /// Adds a slot after the others.
    pub fn grow(&mut self) {
        let slots = self.lined.len();
        if slots == self.tree.room() {
            let small = core::mem::replace(&mut self.tree, Tournament::new(2 * slots));
            (0..slots as u32).for_each(|slot| self.tree.set(slot, small.due(slot)));
        }
        self.lined.push(Instant::MAX);
    }

    /// The earliest event; among simultaneous ones, that of the lowest slot.
    #[inline]
    #[must_use]
    pub fn peek(&self) -> Option<Due> {
        Some(self.next).filter(|due| due.at != Instant::MAX)
    }

    /// When the earliest event is due; `Instant::MAX` if nothing is pending.
    #[inline]
    #[must_use]
    pub fn next(&self) -> Instant {
        self.next.at
    }

    /// When a slot is due; `Instant::MAX` if it is not pending.
    #[inline]
    #[must_use]
    pub fn due(&self, slot: u32) -> Instant {
        self.lined[slot as usize].min(self.tree.due(slot))
    }

    /// Sets the time of a slot, earlier or later than before; `Instant::MAX` means never.
    #[inline(never)]
    pub fn set(&mut self, slot: u32, at: Instant) {
        self.lined[slot as usize] = Instant::MAX;
        self.tree.set(slot, at);
        self.find_next();
    }

    /// Sets the time of a slot unless it is pending earlier: an early event costs less than replaying its matches at
    /// each change of a timer.
    #[inline]
    pub fn set_earlier(&mut self, slot: u32, at: Instant) {
        if at < self.due(slot) {
            self.set(slot, at);
        }
    }

    /// The earliest timer, which must be pending, has fired and is due again at `at`. As [`Self::set`], and a shorter
    /// way for timers that recur after the same time.
    #[inline(always)]
    pub fn repeat(&mut self, at: Instant) {
        let again = Due { at, slot: self.next.slot };
        match (self.line.front(), self.line.back()) {
            (Some(first), Some(last))
                if first.slot == again.slot && last.is_before(again) && at != Instant::MAX =>
            {
                self.line.rotate(again);
                self.lined[again.slot as usize] = at;
                self.find_next();
            }
            _ => self.repeat_any(again),
        }
    }

    #[inline(never)]
    fn repeat_any(&mut self, again: Due) {
        // Only so many in the line that do not count.
        let room = again.at != Instant::MAX && self.line.len() < 2 * self.lined.len();
        if room && self.line.back().is_none_or(|last| last.is_before(again)) {
            self.tree.set(again.slot, Instant::MAX);
            self.lined[again.slot as usize] = again.at;
            self.line.push_back(again);
            self.find_next();
        } else {
            self.set(again.slot, again.at);
        }
    }

    /// Finds the earliest after a change.
    #[inline]
    fn find_next(&mut self) {
        let root = Due { at: self.tree.next(), slot: self.tree.winner() };
        match self.line.front() {
            None => self.next = root,
            Some(first) if self.lined[first.slot as usize] == first.at => {
                self.next = if first.is_before(root) { *first } else { root };
            }
            Some(_) => self.shorten(),
        }
    }

    /// The first in the line does not count, and perhaps others behind it.
    #[cold]
    #[inline(never)]
    fn shorten(&mut self) {
        while self.line.front().is_some_and(|due| self.lined[due.slot as usize] != due.at) {
            self.line.pop_front();
        }
        self.find_next();
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
        Repeat(u64),
        Pop,
    }

    fn ops() -> impl Strategy<Value = Vec<Op>> {
        // Few distinct times, so that many events are simultaneous.
        let op = prop_oneof![
            (0..40u32, 0..30u64).prop_map(|(s, t)| Op::Set(s, t)),
            (0..40u32, 0..30u64).prop_map(|(s, t)| Op::Earlier(s, t)),
            (0..40u32).prop_map(Op::Clear),
            (0..30u64).prop_map(Op::ReplaceTop),
            (0..30u64).prop_map(Op::Repeat),
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
                    Op::Repeat(t) => {
                        if let Some((_, s)) = top {
                            timers.repeat(at(t));
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

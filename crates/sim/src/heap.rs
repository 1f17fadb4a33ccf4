//! The pending timers: a 4-ary heap with one entry per slot.
//!
//! A *slot* is a static identity: the timer of a flow, the sampler (and for links: service, delivery). Each is
//! pending at most once, so the key (time, slot) is unique. The order of simultaneous events is therefore a
//! property of the model, not of the data structure or the order of insertion.
//!
//! The heap knows the position of each slot's entry, so entries are moved in place and never become stale.

use skyhaul_base::Instant;

/// Position of a slot that is not pending.
const ABSENT: u32 = u32::MAX;
/// Children per node.
const ARITY: usize = 4;

/// An event that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Due {
    /// Its time.
    pub at: Instant,
    /// Its slot.
    pub slot: u32,
}

impl Due {
    /// Whether it comes before another; computed without a branch, which would be unpredictable.
    #[inline]
    fn is_before(self, other: Self) -> bool {
        (self.at < other.at) | ((self.at == other.at) & (self.slot < other.slot))
    }
}

/// The state of a slot that can be read without the heap.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// When it is due; `Instant::MAX` if it is not pending.
    at: Instant,
    position: u32,
}

/// A priority queue over slots that are numbered from 0.
#[derive(Clone, Debug)]
pub struct Heap {
    entries: Vec<Due>,
    slots: Vec<Slot>,
}

impl Heap {
    /// An empty heap for the slots `0..slots`.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        Self {
            entries: Vec::with_capacity(slots),
            slots: vec![Slot { at: Instant::MAX, position: ABSENT }; slots],
        }
    }

    /// Adds a slot after the others.
    pub fn grow(&mut self) {
        self.slots.push(Slot { at: Instant::MAX, position: ABSENT });
    }

    /// The earliest event; among simultaneous ones, that of the lowest slot.
    #[inline]
    #[must_use]
    pub fn peek(&self) -> Option<Due> {
        self.entries.first().copied()
    }

    /// When the earliest event is due; `Instant::MAX` if nothing is pending.
    #[inline]
    #[must_use]
    pub fn next(&self) -> Instant {
        self.entries.first().map_or(Instant::MAX, |e| e.at)
    }

    /// When a slot is due; `Instant::MAX` if it is not pending.
    #[inline]
    #[must_use]
    pub fn due(&self, slot: u32) -> Instant {
        self.slots[slot as usize].at
    }

    /// Sets the time of a slot, earlier or later than before; `Instant::MAX` means never.
    #[inline]
    pub fn set(&mut self, slot: u32, at: Instant) {
        let Slot { at: old, position } = self.slots[slot as usize];
        if at == old {
            return;
        }
        if at == Instant::MAX {
            self.remove(position as usize);
            return;
        }
        self.slots[slot as usize].at = at;
        let entry = Due { at, slot };
        if position == ABSENT {
            self.entries.push(entry);
            self.sift_up(self.entries.len() - 1, entry);
        } else if at < old {
            self.sift_up(position as usize, entry);
        } else {
            self.sift_down(position as usize, entry);
        }
    }

    /// Sets the time of a slot unless it is pending earlier: an early event costs less than moving the entry at
    /// each change of a timer.
    #[inline]
    pub fn set_earlier(&mut self, slot: u32, at: Instant) {
        if at < self.due(slot) {
            self.set(slot, at);
        }
    }

    /// Number of pending slots.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    /// Whether nothing is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn remove(&mut self, position: usize) {
        let Due { slot, .. } = self.entries[position];
        self.slots[slot as usize] = Slot { at: Instant::MAX, position: ABSENT };
        let Some(last) = self.entries.pop() else { return };
        if position < self.entries.len() {
            // The last entry may belong above or below the gap.
            if position > 0 && last < self.entries[(position - 1) / ARITY] {
                self.sift_up(position, last);
            } else {
                self.sift_down(position, last);
            }
        }
    }

    #[inline]
    fn place(&mut self, position: usize, entry: Due) {
        self.entries[position] = entry;
        self.slots[entry.slot as usize].position = position as u32;
    }

    #[inline]
    fn sift_up(&mut self, mut position: usize, entry: Due) {
        while position > 0 {
            let parent = (position - 1) / ARITY;
            let above = self.entries[parent];
            if above.is_before(entry) {
                break;
            }
            self.place(position, above);
            position = parent;
        }
        self.place(position, entry);
    }

    #[inline]
    fn sift_down(&mut self, mut position: usize, entry: Due) {
        loop {
            let first = position * ARITY + 1;
            let end = (first + ARITY).min(self.entries.len());
            let Some(children) = self.entries.get(first..end) else { break };
            let Some(&(mut least)) = children.first() else { break };
            let mut place = first;
            for (i, &child) in children.iter().enumerate().skip(1) {
                let earlier = child.is_before(least);
                least = if earlier { child } else { least };
                place = if earlier { first + i } else { place };
            }
            if entry.is_before(least) {
                break;
            }
            self.place(position, least);
            position = place;
        }
        self.place(position, entry);
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
        let mut h = Heap::new(8);
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
        assert!(h.is_empty());
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
        fn behaves_like_a_sorted_map(ops in ops()) {
            let mut heap = Heap::new(40);
            let mut model: BTreeMap<u32, u64> = BTreeMap::new();
            for op in ops {
                let top = model.iter().map(|(s, t)| (*t, *s)).min();
                prop_assert_eq!(heap.peek().map(|d| (d.at.as_nanos(), d.slot)), top);
                prop_assert_eq!(heap.len(), model.len());
                match op {
                    Op::Set(s, t) => {
                        heap.set(s, at(t));
                        model.insert(s, t);
                    }
                    Op::Earlier(s, t) => {
                        heap.set_earlier(s, at(t));
                        let e = model.entry(s).or_insert(t);
                        *e = (*e).min(t);
                    }
                    Op::Clear(s) => {
                        heap.set(s, Instant::MAX);
                        model.remove(&s);
                    }
                    Op::ReplaceTop(t) => {
                        if let Some((_, s)) = top {
                            heap.set(s, at(t));
                            model.insert(s, t);
                        }
                    }
                    Op::Pop => {
                        if let Some((_, s)) = top {
                            heap.set(s, Instant::MAX);
                            model.remove(&s);
                        }
                    }
                }
                for s in 0..40 {
                    prop_assert_eq!(heap.due(s), model.get(&s).map_or(Instant::MAX, |t| at(*t)));
                }
            }
        }
    }
}

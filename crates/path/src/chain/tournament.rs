//! Pending events: a winner tree over slots.
//!
//! A *slot* is a static identity: the service or delivery of a link, the timer of a flow. Each is pending at most once, so
//! the key (time, slot) is unique. The order of simultaneous events is therefore a property of the model, not of the
//! data structure or the order of insertion.
//!
//! Links have few slots but produce almost all events, interleaved in an order that branch predictors cannot learn.
//! A change of a slot replays its matches up to the root: one step for each doubling of the slots, without branches.

use alloc::vec::Vec;
use skyhaul_base::Instant;

/// A slot and its time.
#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Instant,
    slot: u32,
}

/// The earliest of a number of slots; among simultaneous ones the lowest.
#[derive(Clone, Debug)]
pub struct Tournament {
    /// The winner.
    root: Entry,
    /// The matches: the players of match n are the winners of matches 2n and 2n + 1, or slots; match 1 is the last.
    matches: Vec<[Entry; 2]>,
}

impl Tournament {
    /// A tournament of the slots `0..slots`, none of them pending.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        let leaves = slots.next_power_of_two().max(2);
        // If times are equal, the lower slot wins.
        let lowest = |node: usize| (node << (leaves.ilog2() - node.ilog2())) - leaves;
        let entry = |node: usize| Entry { at: Instant::MAX, slot: lowest(node) as u32 };
        let first = entry(1);
        let played = (1..leaves).map(|n| [entry(2 * n), entry(2 * n + 1)]);
        Self { root: first, matches: core::iter::once([first; 2]).chain(played).collect() }
    }

    /// Makes room for this many slots. Those that are added are not pending.
    pub fn grow(&mut self, slots: usize) {
        let room = self.matches.len();
        if slots > room {
            let small = core::mem::replace(self, Self::new(slots));
            (0..room as u32).for_each(|slot| self.set(slot, small.due(slot)));
        }
    }
    /// When the earliest slot is due; `Instant::MAX` if none is pending.
    #[inline]
    #[must_use]
    pub fn next(&self) -> Instant {
        self.root.at
    }
    /// The earliest slot.
    #[inline]
    #[must_use]
    pub fn winner(&self) -> u32 {
        self.root.slot
    }
    /// When a slot is due; `Instant::MAX` if it is not pending.
    #[inline]
    #[must_use]
    pub fn due(&self, slot: u32) -> Instant {
        let node = self.matches.len() + slot as usize;
        self.matches[node / 2][node % 2].at
    }

    /// Sets the time of a slot; `Instant::MAX` means not pending.
    #[inline]
    pub fn set(&mut self, slot: u32, at: Instant) {
        let mut node = self.matches.len() + slot as usize;
        let mut winner = Entry { at, slot };
        while node > 1 {
            let pair = &mut self.matches[node / 2];
            pair[node % 2] = winner;
            // The right one has the higher slot and wins only if it is earlier.
            winner = if pair[1].at < pair[0].at { pair[1] } else { pair[0] };
            node /= 2;
        }
        self.root = winner;
    }

    /// Sets the time of a slot unless it is pending earlier.
    #[inline]
    pub fn set_earlier(&mut self, slot: u32, at: Instant) {
        if at < self.due(slot) {
            self.set(slot, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    #[test]
    fn nothing_is_pending_at_first() {
        let t = Tournament::new(0);
        assert_eq!((t.next(), t.due(0)), (Instant::MAX, Instant::MAX));
    }

    proptest! {
        #[test]
        fn behaves_like_a_sorted_map(
            slots in 1..40u32,
            first in 0..=40usize,
            // Few distinct times, so that many events are simultaneous; 20 stands for never.
            ops in proptest::collection::vec((any::<u32>(), 0..=20u64, any::<bool>()), 0..200),
        ) {
            let mut tree = Tournament::new(first);
            (first..=slots as usize).for_each(|slots| tree.grow(slots));
            let mut model: BTreeMap<u32, u64> = BTreeMap::new();
            for (slot, t, earlier) in ops {
                let slot = slot % slots;
                let at = if t == 20 { Instant::MAX } else { Instant::from_nanos(t) };
                if earlier {
                    tree.set_earlier(slot, at);
                } else {
                    tree.set(slot, at);
                }
                let old = model.get(&slot).copied().unwrap_or(20);
                let new = if earlier { old.min(t) } else { t };
                model.insert(slot, new);
                model.retain(|_, t| *t < 20);
                prop_assert_eq!(tree.due(slot), if new == 20 { Instant::MAX } else { Instant::from_nanos(new) });
                match model.iter().map(|(s, t)| (*t, *s)).min() {
                    Some((t, s)) => prop_assert_eq!((tree.next(), tree.winner()), (Instant::from_nanos(t), s)),
                    None => prop_assert_eq!(tree.next(), Instant::MAX),
                }
            }
        }
    }
}

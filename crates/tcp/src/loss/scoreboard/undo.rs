//! The scoreboard's part of undoing a reduction.

use super::{Item, LOST, SACKED, Scoreboard};

impl Scoreboard {
    /// Withdraws all losses; [`Self::detect`] then judges every segment anew. Retransmitted segments count twice in
    /// [`Self::pipe`], since both copies are in flight. `revived` is called with the index of each affected segment.
    pub(crate) fn withdraw_lost(&mut self, mut revived: impl FnMut(usize)) {
        let mut left = false;
        self.above_runs = 0;
        for (i, s) in self.ring.iter_mut().enumerate() {
            let sacked = s.has(SACKED);
            self.above_runs += u32::from(sacked && !left);
            left = sacked;
            if s.has(LOST) && !sacked {
                revived(i);
            }
            s.flags &= !LOST;
        }
        self.lost = 0;
        self.above_bytes = self.sacked;
        self.judge = self.base;
        self.next_lost = self.base;
    }

    /// Segments within `[from, to)` not known to have arrived.
    pub(crate) fn undelivered(&self, from: u64, to: u64) -> impl Iterator<Item = Item> + '_ {
        let mut i = self.index_of(from);
        core::iter::from_fn(move || {
            while let Some(s) = self.ring.get(i).filter(|s| s.end() <= to) {
                i += s.skip.max(1) as usize;
                if s.skip == 0 {
                    return Some(Item::from(s));
                }
            }
            None
        })
    }
}

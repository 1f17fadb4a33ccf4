//! What to send next (RFC 6675 §4, `NextSeg`).

use super::{Item, LOST, RTX, SACKED, Scoreboard};

/// The result of `NextSeg` (RFC 6675 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextSeg {
    /// Rule 1: the lowest lost segment not yet retransmitted; its index.
    Lost(usize),
    /// Rule 2: new data.
    New,
    /// Rule 3: the lowest segment below the highest SACKed byte that is neither SACKed nor retransmitted; its index.
    Hole(usize),
    /// Rule 4: a rescue retransmission of the last segment; its index.
    Rescue(usize),
}

impl Scoreboard {
    /// RFC 6675 §4 `NextSeg`. `new_data` says whether rule 2 is possible.
    pub fn next_seg(&mut self, new_data: bool) -> Option<NextSeg> {
        // Rule 1. Everything lost by the rule lies below the cursor `judge`.
        let mut i = (self.next_lost.max(self.base) - self.base) as usize;
        let judged = (self.judge - self.base) as usize;
        // A head marked lost by [`Scoreboard::mark_head_lost`] may be at the cursor itself.
        while i < judged.max(1) {
            let Some(s) = self.ring.get(i) else { break };
            #[cfg(test)]
            {
                self.steps += 1;
            }
            if s.skip > 0 {
                i += s.skip as usize;
                continue;
            }
            if s.has(LOST) && !s.has(RTX) {
                self.next_lost = self.base + i as u64;
                return Some(NextSeg::Lost(i));
            }
            i += 1;
        }
        // Segments not judged yet may still become lost.
        self.next_lost = self.base + i.min(judged) as u64;
        if new_data {
            return Some(NextSeg::New);
        }
        // Rule 3.
        let mut i = (self.next_hole.max(self.base) - self.base) as usize;
        while let Some(s) = self.ring.get(i) {
            #[cfg(test)]
            {
                self.steps += 1;
            }
            if s.end() > self.high_sacked {
                break;
            }
            if s.skip > 0 {
                i += s.skip as usize;
                continue;
            }
            if !s.has(RTX) {
                self.next_hole = self.base + i as u64;
                return Some(NextSeg::Hole(i));
            }
            i += 1;
        }
        self.next_hole = self.base + i as u64;
        None
    }

    /// RFC 6675 §4 `NextSeg` rule 4: once per recovery, the last segment that is not acknowledged.
    pub fn rescue(&mut self) -> Option<NextSeg> {
        if self.rescued {
            return None;
        }
        let last = self.ring.iter().rposition(|s| !s.has(SACKED))?;
        self.rescued = true;
        Some(NextSeg::Rescue(last))
    }

    /// The segments that are not selectively acknowledged, oldest first.
    pub(crate) fn unsacked(&self) -> impl Iterator<Item = Item> + '_ {
        self.ring.iter().filter(|s| s.skip == 0).map(Item::from)
    }

    /// The next segment of a go-back-N pass at or after `seq` that is not selectively acknowledged.
    pub(crate) fn resend_at(&self, seq: u64) -> Option<usize> {
        let mut i = self.index_of(seq);
        while let Some(s) = self.ring.get(i) {
            if s.skip == 0 {
                return Some(i);
            }
            i += s.skip as usize;
        }
        None
    }
}

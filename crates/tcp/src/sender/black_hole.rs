//! The sender's reaction to a path MTU black hole; see [`Hole`].

use super::Engine;
use crate::recovery::black_hole::Hole;
use crate::store::Store;
use skyhaul_base::Instant;

impl<S: Store> Engine<S> {
    /// Whether a black hole is suspected, or was until recently.
    #[inline]
    pub(super) fn suspects_path(&self) -> bool {
        self.repair.as_ref().is_some_and(|r| r.hole.is_some())
    }

    /// The retransmission timer has expired for the `backoff`-th time in a row. True if this shortened the
    /// segments.
    #[cold]
    pub(super) fn shorten(&mut self, now: Instant, backoff: u32) -> bool {
        if self.mtu_search().is_some() {
            return self.search_anew(now, backoff);
        }
        // Only packets on a real network have a relevant size.
        let Some(head) = self.board.head().filter(|_| self.config.segment_limit.is_some()) else {
            return false;
        };
        let known = self.repair.as_ref().and_then(|r| r.hole);
        let Some(hole) = Hole::suspect(known, now, backoff, head.len, self.space.smss) else { return false };
        self.repair().hole = Some(hole);
        self.resize_segments(now, hole.short);
        true
    }

    /// As [`Self::shorten`], with a path MTU search: the search restarts with a shorter size.
    fn search_anew(&mut self, now: Instant, backoff: u32) -> bool {
        let len = self.board.head().map_or(0, |h| h.len);
        let Some(short) = Hole::shorter(backoff, len, self.space.smss) else { return false };
        if let Some(search) = self.mtu_search_mut() {
            search.fall_back(short);
        }
        self.resize_segments(now, short);
        true
    }

    /// `SND.UNA` has advanced: ends a suspicion that this disproves, or begins the next trial of the full size.
    #[cold]
    pub(super) fn reconsider_path(&mut self, now: Instant) {
        let (una, max) = (self.board.una(), self.board.max());
        let resting = self.board.is_clean() && self.state.is_open() && self.space.nxt == max;
        let Some(hole) = self.repair.as_mut().and_then(|r| r.hole.as_mut()) else { return };
        if hole.is_disproved(una) {
            self.repair().hole = None;
        } else if resting && hole.may_try(now) {
            hole.begin_trial(max);
            let full = hole.full;
            self.resize_segments(now, full);
        }
    }
}

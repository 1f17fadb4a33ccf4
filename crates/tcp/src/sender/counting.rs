//! Counts the bursts of a sender.

use super::Engine;
use super::bursts::Bursts;
use crate::store::Store;
use skyhaul_base::Instant;

impl<S: Store> Engine<S> {
    /// A segment leaves before the send loop runs.
    #[cold]
    pub(super) fn note_forced(&mut self, now: Instant) {
        self.rare().bursts.forced = Some(now);
    }

    /// The send loop has sent `sent` segments.
    #[inline]
    pub(super) fn note_burst(&mut self, now: Instant, sent: u32) {
        let forced = match &mut self.rare {
            Some(rare) if sent > 0 => rare.bursts.forced.take().is_some_and(|at| at == now),
            _ => false,
        };
        let size = sent + u32::from(forced);
        if size > 1 {
            self.rare().bursts.sizes.note(size);
        }
    }

    /// All bursts so far.
    pub(super) fn bursts(&self) -> Bursts {
        let mut all = self.rare.as_ref().map_or_else(Bursts::default, |a| a.bursts.sizes.clone());
        all.single = self.counters.segments_sent.saturating_sub(all.segments);
        all
    }
}

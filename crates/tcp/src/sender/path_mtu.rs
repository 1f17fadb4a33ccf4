//! The path turns out to be narrower than its ends (RFC 1191, RFC 8201).

use super::{Engine, FIRST, Sampler};
use crate::store::Store;
use skyhaul_base::Instant;

/// What the mark of a probe takes of the options' room, bytes: ten, filled up to whole words.
const MARK: u32 = 12;

impl<S: Store> Engine<S> {
    /// Probes that carry their number in an option are so much shorter, where packets have a size.
    pub(super) fn limit_probes(&mut self) {
        let marked = self.config.segment_limit.is_some() && self.prober.has_ids();
        let mark = if marked { MARK } else { 0 };
        self.prober.shorten(self.space.smss.saturating_sub(mark).max(1));
    }
    /// Probes carry numbers from now on, or none.
    pub(super) fn number_probes(&mut self, ids: bool) {
        self.prober.number(ids);
        self.limit_probes();
    }

    /// A router could not forward a packet: full segments have `smss` bytes of payload from now on, and what was not
    /// acknowledged is sent again as such. That is no sign of congestion: the window stays (RFC 1191 §6.4).
    pub(super) fn narrow(&mut self, now: Instant, smss: u32) {
        if let Some(search) = self.mtu_search_mut() {
            search.told(now, smss.max(1));
        }
        if smss >= self.space.smss {
            return;
        }
        if let Some(repair) = &mut self.repair {
            repair.hole = None;
        }
        self.cut(now, smss.max(1));
        if self.board.is_empty() || self.board.max() == FIRST {
            return;
        }
        self.repair_from_start(now);
    }

    /// Full segments have `smss` bytes from now on, and what is outstanding is cut into such as are no longer.
    pub(super) fn cut(&mut self, now: Instant, smss: u32) {
        self.space.smss = smss;
        self.limit_probes();
        self.board.recut(self.space.smss);
        self.space.measure_window(self.config.send_buffer);
        self.control.refresh(&self.space);
        if let Some(by_time) = &mut self.by_time {
            by_time.restart(&self.board, &self.config);
        }
        if let Some(s) = &mut self.sampler {
            **s = Sampler::default();
            let (delivered, lost) = (self.delivered, self.board.total_lost());
            (0..self.board.len()).for_each(|i| s.sent(i, now, delivered, lost, 0, i == 0));
        }
    }
}

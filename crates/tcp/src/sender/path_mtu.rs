//! Reacts to a path MTU below that of the ends (RFC 1191, RFC 8201).

use super::{Engine, FIRST, Sampler};
use crate::store::Store;
use skyhaul_base::Instant;

/// Option bytes of a probe's mark: ten, padded to whole words.
const MARK: u32 = 12;

impl<S: Store> Engine<S> {
    /// Limits the payload of probes that carry their number in an option, if packet sizes matter.
    pub(super) fn limit_probes(&mut self) {
        let marked = self.config.segment_limit.is_some() && self.prober.has_ids();
        let mark = if marked { MARK } else { 0 };
        self.prober.shorten(self.space.smss.saturating_sub(mark).max(1));
    }
    /// Sets whether probes carry numbers from now on.
    pub(super) fn number_probes(&mut self, ids: bool) {
        self.prober.number(ids);
        self.limit_probes();
    }

    /// A router could not forward a packet: full segments have `smss` bytes of payload from now on, and
    /// unacknowledged data is retransmitted in this size. This is not a congestion signal, so the window stays
    /// (RFC 1191 §6.4).
    pub(super) fn narrow(&mut self, now: Instant, smss: u32) {
        if let Some(search) = self.mtu_search_mut() {
            search.path_mtu_reported(now, smss.max(1));
        }
        if smss >= self.space.smss {
            return;
        }
        if let Some(repair) = &mut self.repair {
            repair.hole = None;
        }
        self.resize_segments(now, smss.max(1));
        if self.board.is_empty() || self.board.max() == FIRST {
            return;
        }
        self.repair_from_start(now);
    }

    /// Full segments have `smss` bytes from now on, and longer outstanding ones are cut.
    pub(super) fn resize_segments(&mut self, now: Instant, smss: u32) {
        self.space.smss = smss;
        self.limit_probes();
        self.board.recut(self.space.smss);
        self.space.measure_window(self.config.send_buffer);
        self.control.refresh(&self.space);
        if let Some(by_time) = &mut self.by_time {
            by_time.rack.restart(self.board.scoreboard());
        }
        if let Some(s) = &mut self.sampler {
            **s = Sampler::default();
            let (delivered, lost) = (self.arrived.bytes, self.board.total_lost());
            (0..self.board.len()).for_each(|i| s.sent(i, now, delivered, lost, 0, i == 0));
        }
    }
}

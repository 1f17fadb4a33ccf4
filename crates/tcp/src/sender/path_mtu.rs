//! The path turns out to be narrower than its ends (RFC 1191, RFC 8201).

use super::{Clock, FIRST, Phase, Rack, Sampler, Sender};
use crate::store::Store;
use skyhaul_base::Instant;

/// What the mark of a probe takes of the options' room, bytes: ten, filled up to whole words.
const MARK: u32 = 12;

impl<S: Store> Sender<S> {
    /// Probes that carry their number in an option are so much shorter, where packets have a size.
    pub(super) fn limit_probes(&mut self) {
        let mark = if self.config.segment_limit.is_some() && self.config.probe_ids { MARK } else { 0 };
        self.prober.shorten(self.smss.saturating_sub(mark).max(1));
    }
    /// Probes carry numbers from now on, or none.
    pub(crate) fn number_probes(&mut self, ids: bool) {
        self.config.probe_ids = ids;
        self.prober.number(ids);
        self.limit_probes();
    }

    /// A router could not forward a packet: full segments have `smss` bytes of payload from now on, and what was not
    /// acknowledged is sent again as such. That is no sign of congestion: the window stays (RFC 1191 §6.4).
    pub(crate) fn narrow(&mut self, now: Instant, smss: u32) {
        if smss >= self.smss {
            return;
        }
        self.smss = smss.max(1);
        self.path.smss = self.smss;
        self.limit_probes();
        self.sb.recut(self.smss);
        let window = self.window.min(self.config.send_buffer);
        self.path.rwnd = (window / u64::from(self.smss)) as f64;
        if let Some(rack) = &mut self.rack {
            **rack = Rack::new(&self.config);
            (0..self.sb.len()).for_each(|i| rack.sent(&self.sb, i));
        }
        if let Some(s) = &mut self.sampler {
            **s = Sampler::default();
            let (delivered, lost) = (self.path.delivered, self.sb.total_lost());
            (0..self.sb.len()).for_each(|i| s.sent(i, now, delivered, lost, 0, i == 0));
        }
        if self.sb.is_empty() || self.sb.max() == FIRST {
            return;
        }
        self.phase = Phase::Loss;
        self.recover = self.sb.max();
        self.dupacks = 0;
        self.suspected = false;
        self.undo.forget();
        self.frto.stop();
        self.go_back(now, true);
        self.rto_at = now + self.rtt.rto();
        self.pending = Some(self.pending.unwrap_or(Clock::Timer));
    }
}

//! What the sender does in a search for the longest segment that the path takes; see [`Search`].
//!
//! A probe is new data in a segment that is longer than full ones are (RFC 4821 §7.4). The scoreboard has it as several
//! that left together: lost they are sent again one by one, as what the path is known to take. If nothing
//! but the probe is lost, the congestion control does not hear of it (§7.5): the recovery is quiet, as one from an error of
//! the channel is.

use super::{Engine, FIRST, Out, Phase};
use crate::recovery::mtu_search::Search;
use crate::store::Store;
use skyhaul_base::Instant;
use skyhaul_cc::Blocked;

impl<S: Store> Engine<S> {
    /// The search, if there is one.
    #[inline]
    pub(super) fn mtu_search(&self) -> Option<&Search> {
        self.aside.as_ref()?.mtu_search.as_ref()
    }
    /// The same, to be told something.
    #[inline]
    pub(super) fn mtu_search_mut(&mut self) -> Option<&mut Search> {
        self.aside.as_mut()?.mtu_search.as_mut()
    }

    /// The ends agreed on full segments of `smss` bytes: the size to begin with.
    pub(super) fn begin_mtu_search(&mut self, smss: u32) -> u32 {
        let Some(search) = Search::new(smss).filter(|_| self.config.mtu_search) else { return smss };
        let size = search.size();
        self.aside().mtu_search = Some(search);
        size
    }

    /// A probe, if it is time for one; an error if what is `outstanding` has to make room for one in `allowance` first.
    ///
    /// There must be data, and room, for as many segments after it as reveal its loss (RFC 4821 §7.4): without them a timeout
    /// would have to. And something must have arrived, or it would not be known that the path takes what the search begins with.
    #[inline]
    pub(super) fn poll_mtu_probe(
        &mut self,
        now: Instant,
        outstanding: u64,
        allowance: u64,
    ) -> Result<Option<Out>, Blocked> {
        match self.mtu_search() {
            None => Ok(None),
            Some(_) => self.make_mtu_probe(now, outstanding, allowance),
        }
    }
    #[cold]
    fn make_mtu_probe(
        &mut self,
        now: Instant,
        outstanding: u64,
        allowance: u64,
    ) -> Result<Option<Out>, Blocked> {
        let (una, max) = (self.board.una(), self.board.max());
        let calm = self.phase == Phase::Open && self.board.is_clean() && self.dupacks == 0;
        if !calm || self.space.nxt != max || una == FIRST {
            return Ok(None);
        }
        let Some(size) = self.mtu_search_mut().and_then(|s| s.next(now)) else { return Ok(None) };
        let (smss, long) = (self.space.smss, u64::from(size));
        let needed = long + u64::from(self.config.dup_thresh + 1) * u64::from(smss);
        let waiting = self.space.end.saturating_sub(max);
        let window = self.space.window.min(self.config.send_buffer).min(allowance);
        if waiting.min(window) < needed {
            return Ok(None);
        }
        let room = self.space.edge.saturating_sub(max).min(self.config.send_buffer.saturating_sub(max - una));
        if room < long || outstanding + long > allowance {
            // As in Linux: what is left would otherwise be filled segment by segment.
            return if max > una { Err(Blocked::Cwnd) } else { Ok(None) };
        }
        let first = self.send_new_by_time(now, smss);
        let mut left = size - smss;
        while left > 0 {
            left -= self.send_new_by_time(now, left.min(smss)).len;
            self.counters.segments_sent -= 1;
        }
        if let Some(search) = self.mtu_search_mut() {
            search.sent(first.seq, first.seq + long);
        }
        Ok(Some(Out { len: size, ..first }))
    }

    /// An acknowledgement has moved `SND.UNA`.
    #[cold]
    pub(super) fn mtu_probe_acknowledged(&mut self, now: Instant) {
        let una = self.board.una();
        let Some(size) = self.mtu_search_mut().and_then(|s| s.acknowledged(now, una)) else { return };
        self.space.smss = size;
        self.limit_probes();
        self.board.widen(size);
        self.space.measure_window(self.config.send_buffer);
        self.control.refresh(&self.space);
    }

    /// The end of the probe on its way, if the segment at `seq` is part of it.
    pub(super) fn end_of_mtu_probe(&self, seq: u64) -> Option<u64> {
        self.mtu_search()?.probe().filter(|(from, to)| (*from..*to).contains(&seq)).map(|(_, to)| to)
    }

    /// Up to here a loss is that of a probe; 0 before the first.
    pub(super) fn mtu_probe_lost_until(&self) -> u64 {
        self.mtu_search().map_or(0, |s| s.lost_until())
    }

    /// The segment at `seq` leaves again. As part of a probe it was lost alone if the recovery is one that the congestion
    /// control does not hear of, or if a timeout found it first of all.
    pub(super) fn note_mtu_probe_lost(&mut self, now: Instant, seq: u64) {
        if self.end_of_mtu_probe(seq).is_none() {
            return;
        }
        let alone = self.quiet || (self.phase == Phase::Loss && seq == self.board.una());
        if let Some(search) = self.mtu_search_mut() {
            search.failed(now, alone);
        }
    }
}

//! The sender's part of the path MTU search; see [`Search`].
//!
//! A probe is new data in a segment longer than full ones (RFC 4821 §7.4). The scoreboard stores it as several
//! segments sent together: if lost, they are retransmitted one by one, in the size that the path is known to carry.
//! If only the probe is lost, the congestion control is not informed (§7.5): the recovery is quiet, as after a
//! channel error.

use super::{Engine, FIRST, OutgoingSegment, Sender};
use crate::recovery::mtu_search::Search;
use crate::store::Store;
use skyhaul_base::Instant;
use skyhaul_cc::Blocked;

impl<S: Store> Sender<S> {
    /// The path MTU search, if there is one.
    pub(crate) fn mtu_search(&self) -> Option<&Search> {
        self.engine.mtu_search()
    }
}

impl<S: Store> Engine<S> {
    /// The search, if there is one.
    #[inline]
    pub(super) fn mtu_search(&self) -> Option<&Search> {
        self.rare.as_ref()?.mtu_search.as_ref()
    }
    /// The same, for changing it.
    #[inline]
    pub(super) fn mtu_search_mut(&mut self) -> Option<&mut Search> {
        self.rare.as_mut()?.mtu_search.as_mut()
    }

    /// The ends negotiated full segments of `smss` bytes: returns the initial size.
    pub(super) fn begin_mtu_search(&mut self, smss: u32) -> u32 {
        let Some(search) = Search::new(smss).filter(|_| self.config.mtu_search) else { return smss };
        let size = search.size();
        self.rare().mtu_search = Some(search);
        size
    }

    /// A probe, if one is due; an error if `outstanding` must first decrease to leave room for it in `allowance`.
    ///
    /// The data and the window must suffice for the segments after it that reveal its loss (RFC 4821 §7.4):
    /// otherwise only a timeout would. And data must have arrived before, since otherwise the initial size is not
    /// known to fit the path.
    #[inline]
    pub(super) fn poll_mtu_probe(
        &mut self,
        now: Instant,
        outstanding: u64,
        allowance: u64,
    ) -> Result<Option<OutgoingSegment>, Blocked> {
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
    ) -> Result<Option<OutgoingSegment>, Blocked> {
        let (una, max) = (self.board.una(), self.board.max());
        let calm = self.state.is_open() && self.board.is_clean() && self.dupacks == 0;
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
            // As in Linux: otherwise the remaining room would be filled segment by segment.
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
        Ok(Some(OutgoingSegment { len: size, ..first }))
    }

    /// An acknowledgement has advanced `SND.UNA`.
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

    /// The end of the probe in flight, if the segment at `seq` is part of it.
    pub(super) fn end_of_mtu_probe(&self, seq: u64) -> Option<u64> {
        self.mtu_search()?.probe().filter(|(from, to)| (*from..*to).contains(&seq)).map(|(_, to)| to)
    }

    /// Losses below this offset are those of a probe; 0 before the first.
    pub(super) fn mtu_probe_lost_until(&self) -> u64 {
        self.mtu_search().map_or(0, |s| s.lost_until())
    }

    /// The segment at `seq` is retransmitted. If it is part of a probe, the probe was lost alone if the recovery is
    /// quiet, or if a timeout found it first.
    pub(super) fn note_mtu_probe_lost(&mut self, now: Instant, seq: u64) {
        if self.end_of_mtu_probe(seq).is_none() {
            return;
        }
        let alone = self.state.is_quiet() || (self.state.is_loss() && seq == self.board.una());
        if let Some(search) = self.mtu_search_mut() {
            search.failed(now, alone);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Arrival;
    use super::super::engine::tests::started;
    use super::*;
    use crate::config::Config;
    use crate::store::Counted;
    use alloc::vec::Vec;
    use skyhaul_base::Duration;

    #[test]
    fn a_probe_that_a_router_refuses_reduces_no_window() {
        let mut s = started::<Counted>(Config { mss: 1460, mtu_search: true, ..Config::rfc() }, "sack");
        let mut now = Instant::ZERO;
        s.offer(now, 1_000_000);
        // Slow start until the window has room for a probe.
        let (probe, later) = loop {
            let sent: Vec<_> = core::iter::from_fn(|| s.poll(now)).collect();
            if let Some(i) = sent.iter().position(|out| out.len > 1024) {
                break (sent[i], sent[i + 1..].to_vec());
            }
            now += Duration::from_millis(100);
            s.acknowledge(now, &Arrival::plain(s.max(), 1_000_000, None)).expect("of data that was sent");
        };
        assert!(probe.len == 1460 && later.len() >= 3, "{probe:?} {later:?}");
        now += Duration::from_millis(100);
        s.acknowledge(now, &Arrival::plain(probe.seq, 1_000_000, None)).expect("of data that was sent");
        let before = s.snapshot();
        s.narrow(now, 1360);
        for out in &later[..3] {
            let blocks = [(later[0].seq, out.seq + u64::from(out.len))];
            let a = Arrival { blocks: &blocks, ..Arrival::plain(probe.seq, 1_000_000, None) };
            s.acknowledge(now, &a).expect("of data that was sent");
        }
        let again = core::iter::from_fn(|| s.poll(now)).find(|out| !out.first).expect("the data is missing");
        assert_eq!((again.seq, again.len), (probe.seq, 1024));
        let after = s.snapshot();
        assert_eq!((s.counters().recoveries, after.ssthresh), (1, before.ssthresh));
        assert!(after.cwnd >= before.cwnd, "{before:?} {after:?}");
        // The loss was no verdict on the size that the router named.
        s.acknowledge(now, &Arrival::plain(s.max(), 1_000_000, None)).expect("of data that was sent");
        let next = core::iter::from_fn(|| s.poll(now)).find(|out| out.len > 1024);
        assert_eq!(next.map(|out| out.len), Some(1360));
    }
}

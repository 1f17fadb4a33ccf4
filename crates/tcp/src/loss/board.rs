//! Outstanding data: two numbers in the normal case, the scoreboard otherwise.
//!
//! While all outstanding segments are full-sized, sent once, and neither SACKed nor lost, `SND.UNA`, `SND.MAX` and
//! the segment size describe them completely. The scoreboard with an entry per segment is created for the first
//! event that these cannot represent, and dropped when it is over. Send times are kept beside the two numbers only
//! if somebody asks for them ([`Board::keep_times`]).

use super::scoreboard::{Acked, Item, Scoreboard};
use crate::config::Config;
use alloc::boxed::Box;
use skyhaul_base::Instant;
use skyhaul_base::ring::Ring;

/// Outstanding segments.
#[derive(Clone, Debug)]
pub(crate) struct Board {
    una: u64,
    max: u64,
    smss: u32,
    dup_thresh: u32,
    /// The scoreboard is permanent, since it is used on each acknowledgement.
    stays: bool,
    /// Send time of each outstanding segment, if requested; empty while there is a scoreboard, which stores them.
    times: Option<Box<Ring<Instant>>>,
    /// Bytes ever marked lost, valid without a scoreboard.
    total_lost: u64,
    full: Option<Box<Scoreboard>>,
}

impl Board {
    /// Nothing is outstanding; `start` is the first byte.
    pub(crate) fn new(start: u64, config: &Config, smss: u32) -> Self {
        let dup_thresh = config.dup_thresh;
        Self {
            una: start,
            max: start,
            smss,
            dup_thresh,
            stays: false,
            times: None,
            total_lost: 0,
            full: None,
        }
    }

    /// Sets whether the send time of each segment must be known, and whether the scoreboard must always exist. To
    /// be called before anything is outstanding, or for all later segments.
    pub(crate) fn keep_times(&mut self, times: bool, scoreboard: bool) {
        self.stays = scoreboard;
        match (&self.times, times && !scoreboard) {
            (None, true) => {
                let mut ring = Ring::new();
                if self.full.is_none() {
                    (0..self.len()).for_each(|_| ring.push_back(Instant::ZERO));
                }
                self.times = Some(Box::new(ring));
            }
            (Some(_), false) => {
                // Data on present segments is preserved.
                self.full();
                self.times = None;
            }
            _ => {}
        }
        if scoreboard {
            self.full();
        } else {
            self.tidy();
        }
    }

    /// The scoreboard, created if necessary.
    pub(crate) fn full(&mut self) -> &mut Scoreboard {
        let Self { una, max, smss, dup_thresh, total_lost, times, full, .. } = self;
        full.get_or_insert_with(|| {
            let left = || times.as_mut().and_then(|t| t.pop_front()).unwrap_or(Instant::ZERO);
            Box::new(Scoreboard::uniform((*una, *max), *dup_thresh, *smss, *total_lost, left))
        })
    }
    /// The scoreboard, if there is one.
    #[inline]
    pub(crate) fn scoreboard(&self) -> Option<&Scoreboard> {
        self.full.as_deref()
    }
    /// Changes the scoreboard, and updates the two numbers.
    pub(crate) fn change<T>(&mut self, f: impl FnOnce(&mut Scoreboard) -> T) -> T {
        let full = self.full();
        let out = f(full);
        (self.una, self.max) = (full.una(), full.max());
        out
    }

    /// First byte not cumulatively acknowledged.
    #[inline]
    pub(crate) fn una(&self) -> u64 {
        self.una
    }
    /// End of everything ever sent.
    #[inline]
    pub(crate) fn max(&self) -> u64 {
        self.max
    }
    /// True if everything is acknowledged.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.una == self.max
    }
    /// `SND.MAX - SND.UNA`, bytes.
    #[inline]
    pub(crate) fn span(&self) -> u64 {
        self.max - self.una
    }
    /// Segments outstanding.
    pub(crate) fn len(&self) -> usize {
        match &self.full {
            Some(s) => s.len(),
            None => (self.span() / u64::from(self.smss)) as usize,
        }
    }
    /// RFC 6675 §4 `SetPipe`, bytes.
    #[inline]
    pub(crate) fn pipe(&self) -> u64 {
        self.full.as_ref().map_or(self.span(), |s| s.pipe())
    }
    /// Bytes selectively acknowledged.
    #[inline]
    pub(crate) fn sacked(&self) -> u64 {
        self.full.as_ref().map_or(0, |s| s.sacked())
    }
    /// Bytes retransmitted and in flight.
    pub(crate) fn repeated(&self) -> u64 {
        self.full.as_ref().map_or(0, |s| s.repeated())
    }
    /// Bytes ever marked lost.
    #[inline]
    pub(crate) fn total_lost(&self) -> u64 {
        self.full.as_ref().map_or(self.total_lost, |s| s.total_lost())
    }
    /// RFC 6675 `IsLost(SND.UNA)`.
    pub(crate) fn head_lost(&self) -> bool {
        self.full.as_ref().is_some_and(|s| s.head_lost())
    }
    /// The oldest segment.
    pub(crate) fn head(&self) -> Option<Item> {
        self.item(0)
    }
    /// The segment at `index`.
    pub(crate) fn item(&self, index: usize) -> Option<Item> {
        if let Some(s) = &self.full {
            return s.item(index);
        }
        let seq = self.una + index as u64 * u64::from(self.smss);
        (seq < self.max).then_some(Item {
            seq,
            len: self.smss,
            fin: false,
            last_sent: self.times.as_ref().and_then(|t| t.get(index)).copied().unwrap_or(Instant::ZERO),
            rtx_count: 0,
            sacked: false,
        })
    }
    /// The first segment at or after `seq` that is not selectively acknowledged.
    pub(crate) fn resend_at(&self, seq: u64) -> Option<Item> {
        match &self.full {
            Some(s) => s.resend_at(seq).and_then(|i| s.item(i)),
            None => {
                let behind = seq.saturating_sub(self.una).div_ceil(u64::from(self.smss));
                self.item(usize::try_from(behind).ok()?)
            }
        }
    }

    /// A new segment of `span` bytes of sequence space was sent.
    #[inline(always)]
    pub(crate) fn push(&mut self, span: u32, fin: bool, now: Instant) {
        if self.full.is_some() || span != self.smss || fin {
            self.push_any(span, fin, now);
        } else if let Some(times) = &mut self.times {
            times.push_back(now);
        }
        self.max += u64::from(span);
    }
    #[inline(never)]
    fn push_any(&mut self, span: u32, fin: bool, now: Instant) {
        self.full().push(span, fin, now);
    }

    /// Cumulative acknowledgement up to `ack`, which must lie in `[una, max]`.
    #[inline(always)]
    pub(crate) fn ack(&mut self, ack: u64) -> Acked {
        let bytes = ack - self.una;
        // Usually one segment.
        if self.full.is_none() && bytes == u64::from(self.smss) {
            self.una = ack;
            let times = self.times.as_mut();
            let (popped, sent_at) = times.map_or((0, None), |t| (1, t.pop_front()));
            return Acked { bytes, delivered: bytes, popped, sent_at, first_sent: sent_at };
        }
        self.ack_any(ack)
    }

    #[inline(never)]
    fn ack_any(&mut self, ack: u64) -> Acked {
        let bytes = ack - self.una;
        if self.full.is_none() && bytes % u64::from(self.smss) == 0 {
            self.una = ack;
            let mut acked = Acked { bytes, delivered: bytes, ..Acked::default() };
            if let Some(times) = &mut self.times {
                acked.popped = (bytes / u64::from(self.smss)) as usize;
                acked.first_sent = times.front().copied();
                acked.sent_at = (0..acked.popped).filter_map(|_| times.pop_front()).last();
            }
            return acked;
        }
        let acked = self.full().ack(ack);
        self.una = ack;
        acked
    }

    /// Whether nothing is known to be missing or was sent twice: the outstanding segments are full, or their sizes
    /// are accounted for.
    #[inline]
    pub(crate) fn is_clean(&self) -> bool {
        self.full.as_ref().is_none_or(|s| s.is_clean())
    }

    /// Drops the scoreboard if the two numbers suffice again.
    #[inline]
    pub(crate) fn tidy(&mut self) {
        if self.full.is_some() && !self.stays {
            self.put_away();
        }
    }
    fn put_away(&mut self) {
        let Some(s) = self.full.as_ref().filter(|s| s.is_uniform()) else { return };
        self.total_lost = s.total_lost();
        if let Some(times) = &mut self.times {
            (0..s.len()).filter_map(|i| s.item(i)).for_each(|i| times.push_back(i.last_sent));
        }
        self.full = None;
    }

    /// Memory use of the entries, bytes.
    pub(crate) fn held(&self) -> usize {
        let times = self.times.as_ref().map_or(0, |t| t.capacity() * size_of::<Instant>());
        times + self.full.as_ref().map_or(0, |s| s.held())
    }
    /// Releases unused memory.
    pub(crate) fn trim(&mut self) {
        if let Some(times) = &mut self.times {
            times.trim();
        }
        if let Some(full) = &mut self.full {
            full.trim();
        }
    }

    /// Full segments become longer. Outstanding ones stay as they are.
    pub(crate) fn widen(&mut self, smss: u32) {
        self.full().widen(smss);
        self.smss = smss;
    }
    /// The size of full segments changes; see [`Scoreboard::recut`].
    pub(crate) fn recut(&mut self, smss: u32) {
        self.change(|s| s.recut(smss));
        self.smss = smss;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn board(segments: u32) -> Board {
        let mut b = Board::new(1, &Config::ns2_2001(), 100);
        (0..segments).for_each(|_| b.push(100, false, Instant::ZERO));
        b
    }

    #[test]
    fn two_numbers_are_enough_while_nothing_is_wrong() {
        let mut b = board(5);
        assert!(b.scoreboard().is_none());
        assert_eq!((b.len(), b.pipe(), b.sacked(), b.total_lost()), (5, 500, 0, 0));
        assert_eq!(b.ack(201).delivered, 200);
        assert_eq!(
            (b.head().map(|i| i.seq), b.item(2).map(|i| i.seq), b.item(3)),
            (Some(201), Some(401), None)
        );
        assert_eq!(b.resend_at(250).map(|i| i.seq), Some(301));
        assert!(b.scoreboard().is_none() && b.is_clean());
        assert_eq!(b.ack(501).bytes, 300);
        assert!(b.is_empty() && b.head().is_none());
    }

    #[test]
    fn the_scoreboard_comes_with_what_they_cannot_say_and_goes_when_it_is_over() {
        // A short segment, a FIN, an acknowledgement within a segment.
        let mut b = board(2);
        b.push(40, false, Instant::ZERO);
        assert_eq!(b.scoreboard().map(Scoreboard::len), Some(3));
        b.ack(201);
        b.tidy();
        assert!(b.scoreboard().is_some());
        b.ack(241);
        b.tidy();
        assert!(b.scoreboard().is_none() && b.is_empty());
        let mut b = board(2);
        b.push(100, true, Instant::ZERO);
        assert!(b.scoreboard().is_some());
        let mut b = board(3);
        let acked = b.ack(151);
        assert_eq!((acked.bytes, acked.delivered, b.len(), b.span()), (150, 150, 2, 150));
        b.ack(201);
        b.tidy();
        assert!(b.scoreboard().is_none());
        // A hole, its retransmission, and what was lost is still known.
        let mut b = board(6);
        b.full().apply(1, &[(101, 501)]);
        assert_eq!((b.pipe(), b.total_lost(), b.head_lost()), (100, 100, true));
        b.full().retransmit(0, Instant::ZERO);
        b.tidy();
        assert!(b.scoreboard().is_some());
        b.ack(501);
        b.tidy();
        assert!(b.scoreboard().is_none());
        assert_eq!((b.total_lost(), b.len()), (100, 1));
    }

    #[test]
    fn it_says_what_a_scoreboard_says() {
        let mut b = board(7);
        let mut s = Scoreboard::new(1, 3, 100);
        (0..7).for_each(|_| s.send(100));
        let steps: [(u64, &[(u64, u64)]); 5] =
            [(101, &[]), (101, &[(301, 401)]), (101, &[(301, 601)]), (601, &[]), (701, &[])];
        for (ack, blocks) in steps {
            b.ack(ack);
            b.change(|s| blocks.iter().map(|&(f, t)| s.sack(f, t, |_| {})).sum::<u64>());
            b.change(|s| s.detect(|_, _, _| {}));
            s.apply(ack, blocks);
            b.tidy();
            let items = |n: usize, get: &dyn Fn(usize) -> Option<Item>| -> Vec<_> {
                (0..n).filter_map(get).map(|i| (i.seq, i.len, i.sacked)).collect()
            };
            assert_eq!(items(9, &|i| b.item(i)), items(9, &|i| s.item(i)));
            assert_eq!((b.una(), b.max(), b.pipe(), b.sacked()), (s.una(), s.max(), s.pipe(), s.sacked()));
            assert_eq!((b.total_lost(), b.len(), b.head_lost()), (s.total_lost(), s.len(), s.head_lost()));
        }
    }
}

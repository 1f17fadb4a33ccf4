//! Outstanding data: `SND.UNA` and `SND.MAX` in the normal case, the scoreboard otherwise.
//!
//! While all outstanding segments are full-sized, sent once, and neither SACKed nor lost, these two numbers and the
//! segment size describe the segments completely. [`Shorts`] adds the ends of short segments, which end a write. The
//! scoreboard with an entry per segment is created for the first event that these cannot represent, and dropped
//! once they suffice again. Without it, send times are kept only if [`Board::keep_times`] says so.

use super::scoreboard::{Acked, Item, Scoreboard};
use super::shorts::Shorts;
use crate::config::Config;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use skyhaul_base::Instant;

/// Outstanding segments.
#[derive(Clone, Debug)]
pub(crate) struct Board {
    una: u64,
    max: u64,
    /// End of the first short segment; `u64::MAX` if there is none, or while there is a scoreboard, which contains them.
    short: u64,
    smss: u32,
    /// 65535 stands for every larger value.
    dup_thresh: u16,
    /// The scoreboard is permanent, since it is used on each acknowledgement.
    stays: bool,
    /// While there is no scoreboard, the details hold the send time of each segment.
    timed: bool,
    /// Bytes ever marked lost, valid without a scoreboard.
    total_lost: u64,
    details: Option<Box<SegmentDetails>>,
    scoreboard: Option<Box<Scoreboard>>,
}

/// State per outstanding segment that `SND.UNA` and `SND.MAX` do not give; empty while there is a scoreboard.
#[derive(Clone, Debug, Default)]
struct SegmentDetails {
    shorts: Shorts,
    /// Send time of each outstanding segment, if requested.
    times: Option<VecDeque<Instant>>,
}

impl Board {
    /// Nothing is outstanding; `start` is the first byte.
    pub(crate) fn new(start: u64, config: &Config, smss: u32) -> Self {
        Self {
            una: start,
            max: start,
            short: u64::MAX,
            smss,
            dup_thresh: u16::try_from(config.dup_thresh).unwrap_or(u16::MAX),
            stays: false,
            timed: false,
            total_lost: 0,
            details: None,
            scoreboard: None,
        }
    }

    /// Sets whether the send time of each segment must be known, and whether the scoreboard must always exist.
    /// Outstanding segments whose send time was not kept get the time zero.
    pub(crate) fn keep_times(&mut self, times: bool, scoreboard: bool) {
        self.stays = scoreboard;
        match (self.timed, times && !scoreboard) {
            (false, true) => {
                let mut ring = VecDeque::new();
                if self.scoreboard.is_none() {
                    (0..self.len()).for_each(|_| ring.push_back(Instant::ZERO));
                }
                self.details.get_or_insert_default().times = Some(ring);
                self.timed = true;
            }
            (true, false) => {
                // The scoreboard takes over the send times of the outstanding segments.
                self.ensure_scoreboard();
                (self.details, self.timed) = (None, false);
            }
            _ => {}
        }
        if scoreboard {
            self.ensure_scoreboard();
        } else {
            self.tidy();
        }
    }

    #[inline]
    fn times(&self) -> Option<&VecDeque<Instant>> {
        self.details.as_ref()?.times.as_ref()
    }

    #[inline(always)]
    fn times_mut(&mut self) -> Option<&mut VecDeque<Instant>> {
        if !self.timed {
            return None;
        }
        self.details.as_mut()?.times.as_mut()
    }

    /// The start and end of each segment, while there is no scoreboard.
    fn segments(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        static NO_SHORTS: Shorts = Shorts::NONE;
        let shorts = self.details.as_ref().map_or(&NO_SHORTS, |d| &d.shorts);
        shorts.segments(self.una, self.max, self.smss)
    }

    /// The scoreboard, created if necessary.
    pub(crate) fn ensure_scoreboard(&mut self) -> &mut Scoreboard {
        let Self { una, max, short, smss, dup_thresh, total_lost, details, scoreboard, .. } = self;
        scoreboard.get_or_insert_with(|| {
            *short = u64::MAX;
            let mut nothing = SegmentDetails::default();
            let details = details.as_deref_mut().unwrap_or(&mut nothing);
            let empty = Scoreboard::new(*una, u32::from(*dup_thresh), *smss);
            Box::new(details.unfold(empty, *max, *smss, *total_lost))
        })
    }
    /// The scoreboard, if there is one.
    #[inline]
    pub(crate) fn scoreboard(&self) -> Option<&Scoreboard> {
        self.scoreboard.as_deref()
    }
    /// Changes the scoreboard, and updates `SND.UNA` and `SND.MAX`.
    pub(crate) fn change<T>(&mut self, f: impl FnOnce(&mut Scoreboard) -> T) -> T {
        let scoreboard = self.ensure_scoreboard();
        let out = f(scoreboard);
        (self.una, self.max) = (scoreboard.una(), scoreboard.max());
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
        match (&self.scoreboard, self.times()) {
            (Some(s), _) => s.len(),
            (None, Some(times)) => times.len(),
            (None, None) if self.short == u64::MAX => (self.span() / u64::from(self.smss)) as usize,
            (None, None) => self.segments().count(),
        }
    }
    /// RFC 6675 §4 `SetPipe`, bytes.
    #[inline]
    pub(crate) fn pipe(&self) -> u64 {
        self.scoreboard.as_ref().map_or(self.span(), |s| s.pipe())
    }
    /// Bytes selectively acknowledged.
    #[inline]
    pub(crate) fn sacked(&self) -> u64 {
        self.scoreboard.as_ref().map_or(0, |s| s.sacked())
    }
    /// Bytes retransmitted and in flight.
    pub(crate) fn repeated(&self) -> u64 {
        self.scoreboard.as_ref().map_or(0, |s| s.repeated())
    }
    /// Bytes ever marked lost.
    #[inline]
    pub(crate) fn total_lost(&self) -> u64 {
        self.scoreboard.as_ref().map_or(self.total_lost, |s| s.total_lost())
    }
    /// Whether the oldest segment is marked lost, as by RFC 6675 `IsLost(SND.UNA)`.
    pub(crate) fn head_lost(&self) -> bool {
        self.scoreboard.as_ref().is_some_and(|s| s.head_lost())
    }
    /// The oldest segment.
    pub(crate) fn head(&self) -> Option<Item> {
        self.item(0)
    }
    /// The segment at `index`.
    pub(crate) fn item(&self, index: usize) -> Option<Item> {
        if let Some(s) = &self.scoreboard {
            return s.item(index);
        }
        let (seq, end) = if self.short == u64::MAX {
            let seq = self.una + index as u64 * u64::from(self.smss);
            (seq, seq + u64::from(self.smss))
        } else {
            self.segments().nth(index)?
        };
        (seq < self.max).then(|| Item {
            seq,
            len: (end - seq) as u32,
            fin: false,
            last_sent: self.times().and_then(|t| t.get(index)).copied().unwrap_or(Instant::ZERO),
            rtx_count: 0,
            sacked: false,
        })
    }
    /// Of the `Q` segments that are not selectively acknowledged, the one with number `number mod Q`, the oldest being
    /// number 0.
    pub(crate) fn unsacked_modulo(&self, number: u64) -> Option<Item> {
        let index = |count: usize| usize::try_from(number.checked_rem(count as u64)?).ok();
        match &self.scoreboard {
            Some(s) => {
                let count = s.unsacked().count();
                s.unsacked().nth(index(count)?)
            }
            None => self.item(index(self.len())?),
        }
    }
    /// The first segment at or after `seq` that is not selectively acknowledged.
    pub(crate) fn resend_at(&self, seq: u64) -> Option<Item> {
        match &self.scoreboard {
            Some(s) => s.resend_at(seq).and_then(|i| s.item(i)),
            None if self.short == u64::MAX => {
                let behind = seq.saturating_sub(self.una).div_ceil(u64::from(self.smss));
                self.item(usize::try_from(behind).ok()?)
            }
            None => self.item(self.segments().position(|(from, _)| from >= seq)?),
        }
    }

    /// A new segment of `span` bytes of sequence space was sent, usually a full one.
    #[inline(always)]
    pub(crate) fn push(&mut self, span: u32, fin: bool, now: Instant) {
        if self.scoreboard.is_some() || span != self.smss || fin {
            self.push_any(span, fin, now);
        } else if let Some(times) = self.times_mut() {
            times.push_back(now);
        }
        self.max += u64::from(span);
    }
    /// As [`Self::push`], for a segment that is not full, without FIN: the end of a write.
    #[inline(always)]
    pub(crate) fn push_short(&mut self, span: u32, now: Instant) {
        let end = self.max + u64::from(span);
        match &mut self.details {
            Some(details) if self.scoreboard.is_none() && !self.timed => {
                self.short = self.short.min(end);
                details.shorts.push(end);
            }
            _ => self.push_any(span, false, now),
        }
        self.max = end;
    }
    #[inline(never)]
    fn push_any(&mut self, span: u32, fin: bool, now: Instant) {
        if self.scoreboard.is_some() || span > self.smss || fin {
            self.ensure_scoreboard().push(span, fin, now);
            return;
        }
        let end = self.max + u64::from(span);
        let details = self.details.get_or_insert_default();
        details.shorts.push(end);
        if let Some(times) = &mut details.times {
            times.push_back(now);
        }
        self.short = self.short.min(end);
    }

    /// Cumulative acknowledgement up to `ack`, which must lie in `[una, max]`.
    #[inline(always)]
    pub(crate) fn ack(&mut self, ack: u64) -> Acked {
        let (bytes, smss) = (ack - self.una, u64::from(self.smss));
        // Usually one segment, full or short.
        let full = bytes == smss && ack < self.short;
        if self.scoreboard.is_none() && (full || (ack == self.short && bytes <= smss)) {
            self.una = ack;
            if !full {
                self.pop_short();
            }
            let mut acked = Acked { bytes, delivered: bytes, ..Acked::default() };
            if let Some(times) = self.times_mut() {
                let sent_at = times.pop_front();
                (acked.popped, acked.sent_at, acked.first_sent) = (1, sent_at, sent_at);
            }
            return acked;
        }
        self.ack_any(ack)
    }

    #[inline(never)]
    fn ack_any(&mut self, ack: u64) -> Acked {
        let bytes = ack - self.una;
        if self.scoreboard.is_none() {
            if ack < self.short && bytes % u64::from(self.smss) == 0 {
                self.una = ack;
                let segments = || (bytes / u64::from(self.smss)) as usize;
                return SegmentDetails::acked(self.details.as_deref_mut(), bytes, segments);
            }
            if let Some(acked) = self.ack_short(ack) {
                return acked;
            }
        }
        let acked = self.ensure_scoreboard().ack(ack);
        self.una = ack;
        acked
    }

    /// The first short segment is acknowledged.
    #[inline(always)]
    fn pop_short(&mut self) {
        if let Some(details) = &mut self.details {
            self.short = details.shorts.pop_first();
        }
    }

    /// [`Self::ack`] without a scoreboard, of short segments among others; `None`, and no effect, if `ack` lies
    /// within a segment.
    fn ack_short(&mut self, ack: u64) -> Option<Acked> {
        let (bytes, smss) = (ack - self.una, self.smss);
        let details = self.details.as_deref_mut()?;
        let acked = details.shorts.acked(self.una, ack, smss)?;
        details.shorts.pop(acked.short);
        self.short = details.shorts.first();
        self.una = ack;
        Some(SegmentDetails::acked(Some(details), bytes, || acked.segments))
    }

    /// Whether there is a scoreboard.
    #[inline]
    pub(crate) fn has_scoreboard(&self) -> bool {
        self.scoreboard.is_some()
    }
    /// Whether nothing is known to be missing, and no byte counts twice in [`Self::pipe`].
    #[inline]
    pub(crate) fn is_clean(&self) -> bool {
        self.scoreboard.as_ref().is_none_or(|s| s.is_clean())
    }

    /// Drops the scoreboard if `SND.UNA`, `SND.MAX` and the details suffice again.
    #[inline]
    pub(crate) fn tidy(&mut self) {
        if self.scoreboard.is_some() && !self.stays {
            self.put_away();
        }
    }
    fn put_away(&mut self) {
        let Some(s) = self.scoreboard.as_ref().filter(|s| s.is_plain()) else { return };
        self.total_lost = s.total_lost();
        for item in (0..s.len()).filter_map(|i| s.item(i)) {
            if item.len < self.smss {
                self.details.get_or_insert_default().shorts.push(item.end());
            }
            if let Some(times) = self.details.as_mut().and_then(|d| d.times.as_mut()) {
                times.push_back(item.last_sent);
            }
        }
        self.short = self.details.as_ref().map_or(u64::MAX, |d| d.shorts.first());
        self.scoreboard = None;
    }

    /// Memory use of the entries, bytes.
    pub(crate) fn held(&self) -> usize {
        let details = self.details.as_ref().map_or(0, |d| d.held());
        details + self.scoreboard.as_ref().map_or(0, |s| s.held())
    }
    /// Releases unused memory.
    pub(crate) fn trim(&mut self) {
        if let Some(details) = &mut self.details {
            details.trim();
        }
        if let Some(scoreboard) = &mut self.scoreboard {
            scoreboard.trim();
        }
    }

    /// Full segments become longer. Outstanding ones stay as they are.
    pub(crate) fn widen(&mut self, smss: u32) {
        self.ensure_scoreboard().widen(smss);
        self.smss = smss;
    }
    /// The size of full segments changes; see [`Scoreboard::recut`].
    pub(crate) fn recut(&mut self, smss: u32) {
        self.change(|s| s.recut(smss));
        self.smss = smss;
    }
}

impl SegmentDetails {
    /// The effect of an acknowledgement of `bytes` bytes; `segments` counts their segments, if that is needed.
    fn acked(details: Option<&mut Self>, bytes: u64, segments: impl FnOnce() -> usize) -> Acked {
        let mut acked = Acked { bytes, delivered: bytes, ..Acked::default() };
        if let Some(times) = details.and_then(|d| d.times.as_mut()) {
            acked.popped = segments();
            acked.first_sent = times.front().copied();
            acked.sent_at = (0..acked.popped).filter_map(|_| times.pop_front()).last();
        }
        acked
    }

    /// Enters the segments up to `max` into an empty scoreboard, which takes over what is known here.
    fn unfold(&mut self, mut empty: Scoreboard, max: u64, smss: u32, total_lost: u64) -> Scoreboard {
        let (una, Self { shorts, times }) = (empty.una(), self);
        empty.expect((max - una) as usize / smss as usize + 1 + shorts.len(), total_lost);
        for (from, to) in shorts.segments(una, max, smss) {
            let sent_at = times.as_mut().and_then(|t| t.pop_front()).unwrap_or(Instant::ZERO);
            empty.push((to - from) as u32, false, sent_at);
        }
        shorts.pop(shorts.len());
        empty
    }

    fn held(&self) -> usize {
        // A time and the end of a short segment have eight bytes each.
        let times = self.times.as_ref().map_or(0, VecDeque::capacity);
        (times + self.shorts.capacity()) * size_of::<Instant>()
    }
    fn trim(&mut self) {
        self.shorts.trim();
        if let Some(times) = &mut self.times {
            if times.is_empty() {
                *times = VecDeque::new();
            }
        }
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
    fn the_scoreboard_exists_only_while_the_two_numbers_do_not_suffice() {
        // A long segment, a FIN, an acknowledgement within a segment.
        let mut b = board(2);
        b.push(140, false, Instant::ZERO);
        assert_eq!(b.scoreboard().map(Scoreboard::len), Some(3));
        b.ack(201);
        b.tidy();
        assert!(b.scoreboard().is_some());
        b.ack(341);
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
        // A hole and its retransmission; the count of lost bytes survives the scoreboard.
        let mut b = board(6);
        b.ensure_scoreboard().apply(1, &[(101, 501)]);
        assert_eq!((b.pipe(), b.total_lost(), b.head_lost()), (100, 100, true));
        b.ensure_scoreboard().retransmit(0, Instant::ZERO);
        b.tidy();
        assert!(b.scoreboard().is_some());
        b.ack(501);
        b.tidy();
        assert!(b.scoreboard().is_none());
        assert_eq!((b.total_lost(), b.len()), (100, 1));
    }

    #[test]
    fn short_segments_need_no_scoreboard() {
        let mut b = board(2);
        for span in [40, 100, 100, 7] {
            b.push(span, false, Instant::ZERO);
        }
        let items = |b: &Board| (0..9).filter_map(|i| b.item(i)).map(|i| (i.seq, i.len)).collect::<Vec<_>>();
        let all = [(1, 100), (101, 100), (201, 40), (241, 100), (341, 100), (441, 7)];
        assert_eq!(items(&b), all);
        assert_eq!((b.len(), b.pipe(), b.resend_at(202).map(|i| i.seq)), (6, 447, Some(241)));
        assert_eq!((b.ack(101).bytes, items(&b)), (100, all[1..].to_vec()));
        assert_eq!((b.ack(241).bytes, items(&b)), (140, all[3..].to_vec()));
        assert!(b.scoreboard().is_none());
        // A hole needs the scoreboard; after its repair, the ends of short segments suffice again.
        b.ensure_scoreboard().apply(241, &[(341, 448)]);
        b.ensure_scoreboard().retransmit(0, Instant::ZERO);
        b.ack(448);
        b.push(55, false, Instant::ZERO);
        b.tidy();
        assert!(b.scoreboard().is_none());
        assert_eq!(items(&b), [(448, 55)]);
    }

    /// A board and one with a permanent scoreboard give the same answers under random operations.
    #[test]
    fn numbers_and_scoreboard_agree() {
        let mut rng = skyhaul_base::Rng::stream(1, "boards");
        for round in 0..400 {
            let timed = round % 2 == 0;
            let (mut b, mut s) = (board(0), board(0));
            b.keep_times(timed, false);
            s.keep_times(false, true);
            let (mut put_away, mut now) = (0, Instant::ZERO);
            for _ in 0..200 {
                now += skyhaul_base::Duration::from_millis(1);
                match rng.below(10) {
                    0..=5 => {
                        let span = if rng.below(3) > 0 { 100 } else { 1 + rng.below(99) as u32 };
                        b.push(span, false, now);
                        s.push(span, false, now);
                    }
                    6..=8 if !b.is_empty() => {
                        // Usually an end of a segment.
                        let end = b.item(rng.below(b.len() as u64) as usize).map_or(b.max(), |i| i.end());
                        let ack = if rng.below(20) == 0 { b.una() + 1 + rng.below(b.span()) } else { end };
                        let (x, y) = (b.ack(ack), s.ack(ack));
                        assert_eq!((x.bytes, x.delivered), (y.bytes, y.delivered));
                        if timed {
                            assert_eq!(x, y);
                        }
                    }
                    9 if rng.below(4) == 0 && b.len() > 4 => {
                        let blocks: Vec<_> = b.item(2).map(|i| (i.seq, i.end())).into_iter().collect();
                        let una = b.una();
                        b.change(|s| s.apply(una, &blocks));
                        s.change(|s| s.apply(una, &blocks));
                    }
                    _ => {
                        b.tidy();
                        put_away += u32::from(b.scoreboard().is_none());
                    }
                }
                let look = |b: &Board| -> Vec<_> {
                    let item = |i: Item| (i.seq, i.len, i.sacked, if timed { i.last_sent } else { now });
                    (0..b.len() + 1).filter_map(|n| b.item(n)).map(item).collect()
                };
                assert_eq!(look(&b), look(&s));
                let from = b.una() + rng.below(b.span() + 2);
                assert_eq!(b.resend_at(from).map(|i| i.seq), s.resend_at(from).map(|i| i.seq));
                assert_eq!((b.len(), b.una(), b.max(), b.pipe()), (s.len(), s.una(), s.max(), s.pipe()));
                assert_eq!((b.sacked(), b.total_lost()), (s.sacked(), s.total_lost()));
            }
            assert!(put_away > 0);
        }
    }

    #[test]
    fn a_board_gives_the_answers_of_a_scoreboard() {
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

//! Low-priority probes as a general facility: trains, budgets, numbers, and how the peer responds to them.
//!
//! A probe copies data: the last segment sent (a dummy, [`Mark::Dummy`]) or data not yet acknowledged ([`Mark::Nil`]). It
//! bypasses the window, is never retransmitted, never enters the scoreboard, never starts the retransmission timer and
//! never gives an RTT sample. A capable receiver answers each probe with one marked acknowledgement. The credit is the
//! number of unanswered probes; answers beyond it are ignored.

use crate::segment::Mark;
use alloc::boxed::Box;
use skyhaul_base::{Duration, Instant};
use skyhaul_cc::{ProbeSource, ProbeSupport, Train};

/// A probe about to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    pub(crate) seq: u64,
    pub(crate) len: u32,
    pub(crate) mark: Mark,
    pub(crate) id: Option<u16>,
    /// Routers discard it first and serve it last.
    pub(crate) low_priority: bool,
}

/// Which of the segments that are neither cumulatively acknowledged nor SACKed a probe copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pick {
    /// The first at or after this offset.
    From(u64),
    /// The one with this number modulo their count, the oldest being number 0.
    Modulo(u64),
}

/// How many of the latest probe numbers are remembered, so that the answer to each is accepted once.
const REMEMBERED: usize = 4096;

/// Probing by a sender. Most senders never probe: the state for it is created by the first request.
#[derive(Clone, Debug)]
pub(crate) struct Prober {
    /// The last data segment transmitted, full-sized if possible (kept even when acknowledged); length 0 means
    /// none.
    last: (u64, u32),
    /// Payload that fits into a packet besides the mark, bytes.
    longest: u32,
    pub(crate) support: ProbeSupport,
    /// Probes carry numbers.
    ids: bool,
    /// `None` until the first request.
    work: Option<Box<ProbingState>>,
}

/// State of probing.
#[derive(Clone, Debug)]
struct ProbingState {
    /// Numbers sent and not yet answered, one bit for each of the last [`REMEMBERED`]; only if probes carry
    /// numbers, and only once one was sent.
    open: Option<Box<[u64; REMEMBERED / 64]>>,
    /// Number of the next probe.
    next_id: u16,
    /// First number since the current start or recovery of the algorithm began; answers to older numbers are stale.
    epoch: u16,
    train: Option<ProbeTrain>,
    /// Probes requested and due now.
    due: u32,
    due_source: ProbeSource,
    /// Sent and not yet answered.
    credit: u32,
    /// Probes sent while the peer's capability was unknown: a legacy receiver may send as many duplicate
    /// acknowledgements.
    legacy_credit: u32,
    /// Send time of the first of these.
    first_unknown: Instant,
    /// Where [`ProbeSource::UnackedRoundRobin`] goes on: an offset.
    round_robin: u64,
    sent: u64,
    answered: u64,
}

#[derive(Clone, Copy, Debug)]
struct ProbeTrain {
    source: ProbeSource,
    /// Probes not yet due.
    left: u32,
    /// When the next one is due.
    next: Instant,
    spacing: Duration,
}

impl ProbingState {
    fn new() -> Self {
        Self {
            open: None,
            next_id: 0,
            epoch: 0,
            train: None,
            due: 0,
            due_source: ProbeSource::LastSegment,
            credit: 0,
            legacy_credit: 0,
            first_unknown: Instant::MAX,
            round_robin: 0,
            sent: 0,
            answered: 0,
        }
    }

    fn stop(&mut self) {
        self.train = None;
        self.due = 0;
    }
}

impl Prober {
    pub(crate) fn new(ids: bool) -> Self {
        Self { last: (0, 0), longest: u32::MAX, support: ProbeSupport::Unknown, ids, work: None }
    }

    /// The state, created if necessary.
    fn work(&mut self) -> &mut ProbingState {
        self.work.get_or_insert_with(|| Box::new(ProbingState::new()))
    }

    /// A data segment was transmitted: the next dummy copies it. A full-sized one is preferred, so that a dummy
    /// occupies the path as data would. It must not lie more than `window` back: beyond its largest window, the
    /// peer no longer accepts it as a copy.
    #[inline]
    pub(crate) fn transmitted(&mut self, seq: u64, len: u32, mss: u32, window: u64) {
        // Before the first one the last length is 0, which is less than any `mss`.
        if len > 0 && (len == mss || self.last.1 < mss || self.last.0 + window < seq + u64::from(len)) {
            self.last = (seq, len);
        }
    }

    /// A start, a recovery, or the repair after a timeout begins: answers to earlier probes are stale.
    pub(crate) fn begin_epoch(&mut self) {
        if let Some(w) = &mut self.work {
            w.epoch = w.next_id;
        }
    }
    /// Starts a train, which replaces the current one.
    pub(crate) fn start(&mut self, now: Instant, train: Train) {
        let train = (train.count > 0 && self.support != ProbeSupport::No).then(|| ProbeTrain {
            source: train.source,
            left: train.count,
            next: now + train.first,
            spacing: train.spacing,
        });
        if train.is_some() || self.work.is_some() {
            self.work().train = train;
        }
    }
    /// Stops the train; probes that are due are not sent.
    pub(crate) fn stop(&mut self) {
        if let Some(w) = &mut self.work {
            w.stop();
        }
    }
    /// Makes `count` probes due at once.
    pub(crate) fn ask(&mut self, source: ProbeSource, count: u32) {
        if self.support != ProbeSupport::No {
            let w = self.work();
            w.due_source = source;
            w.due = w.due.saturating_add(count);
        }
    }
    /// The peer does not answer probes: none are sent from now on.
    pub(crate) fn unsupported(&mut self) {
        self.support = ProbeSupport::No;
        self.stop();
    }
    /// When the current train sends its next probe; [`Instant::MAX`] without a train.
    pub(crate) fn next_departure(&self) -> Instant {
        self.work.as_ref().and_then(|w| w.train).map_or(Instant::MAX, |t| t.next)
    }
    /// Advances the train: probes whose time has come become due.
    pub(crate) fn advance(&mut self, now: Instant) {
        let Some(w) = &mut self.work else { return };
        let Some(t) = &mut w.train else { return };
        while t.left > 0 && t.next <= now {
            t.left -= 1;
            t.next += t.spacing;
            w.due = w.due.saturating_add(1);
            w.due_source = t.source;
            if t.spacing.is_zero() {
                w.due = w.due.saturating_add(t.left);
                t.left = 0;
            }
        }
        if t.left == 0 {
            w.train = None;
        }
    }

    /// The next round robin starts with the oldest data.
    pub(crate) fn rewind(&mut self) {
        if let Some(w) = &mut self.work {
            w.round_robin = 0;
        }
    }

    /// The next probe to transmit. `unacked` finds unacknowledged data to copy, as offset and length. Nothing is sent
    /// while the peer's window is closed.
    pub(crate) fn poll(
        &mut self,
        now: Instant,
        window_open: bool,
        unacked: impl Fn(Pick) -> Option<(u64, u32)>,
    ) -> Option<Probe> {
        let w = self.work.as_mut().filter(|w| w.due > 0)?;
        if self.support == ProbeSupport::No || !window_open {
            w.due = 0;
            return None;
        }
        let found = match w.due_source {
            ProbeSource::LastSegment => Some(self.last).filter(|l| l.1 > 0).map(|l| (l, Mark::Dummy)),
            ProbeSource::OneByte => Some(self.last).filter(|l| l.1 > 0).map(|l| ((l.0, 1), Mark::Dummy)),
            ProbeSource::UnackedRoundRobin => {
                let next = unacked(Pick::From(w.round_robin)).or_else(|| unacked(Pick::From(0)));
                next.map(|s| (s, Mark::Nil))
            }
            ProbeSource::UnackedModulo => unacked(Pick::Modulo(w.sent)).map(|s| (s, Mark::Nil)),
        };
        let Some(((seq, len), mark)) = found else {
            w.due = 0;
            return None;
        };
        if mark == Mark::Nil {
            w.round_robin = seq + u64::from(len);
        }
        w.due -= 1;
        w.sent += 1;
        w.credit = w.credit.saturating_add(1);
        if self.support == ProbeSupport::Unknown {
            w.legacy_credit += 1;
            w.first_unknown = w.first_unknown.min(now);
        }
        let id = self.ids.then_some(w.next_id);
        if let Some(id) = id {
            let (word, bit) = slot(id);
            w.open.get_or_insert_with(|| Box::new([0; REMEMBERED / 64]))[word] |= bit;
        }
        w.next_id = w.next_id.wrapping_add(1);
        let low_priority = w.due_source != ProbeSource::OneByte;
        Some(Probe { seq, len: len.min(self.longest), mark, id, low_priority })
    }

    /// Whether probes were ever requested.
    #[inline]
    pub(crate) fn in_use(&self) -> bool {
        self.work.as_ref().is_some_and(|w| w.sent > 0 || w.due > 0 || w.train.is_some())
    }
    /// Probes sent, and probes answered.
    pub(crate) fn counts(&self) -> (u64, u64) {
        self.work.as_ref().map_or((0, 0), |w| (w.sent, w.answered))
    }
    /// Sets whether probes carry numbers from now on.
    pub(crate) fn number(&mut self, ids: bool) {
        self.ids = ids;
    }
    /// Probes carry numbers.
    pub(crate) fn has_ids(&self) -> bool {
        self.ids
    }
    /// The path carries only shorter segments than before.
    pub(crate) fn shorten(&mut self, longest: u32) {
        self.longest = longest;
    }
    /// The data that the next dummy copies, as offset and length.
    pub(crate) fn copied(&self) -> Option<(u64, u32)> {
        Some(self.last).filter(|l| l.1 > 0)
    }

    /// Processes an answer. Returns whether the answer is stale, or `None` if it is not believed: more answers than
    /// probes, a number not sent or already answered, or a peer that does not support probes.
    pub(crate) fn answer(&mut self, id: Option<u16>) -> Option<bool> {
        let w = self.work.as_mut().filter(|w| w.credit > 0)?;
        if self.support == ProbeSupport::No {
            return None;
        }
        if let (true, Some(open)) = (self.ids, &mut w.open) {
            // Each number once: the path may duplicate answers, and a peer may invent some.
            let (word, bit) = slot(id?);
            if open[word] & bit == 0 {
                return None;
            }
            open[word] &= !bit;
        }
        w.credit -= 1;
        w.answered += 1;
        w.legacy_credit = 0;
        self.support = ProbeSupport::Yes;
        // Serial comparison, as for sequence numbers.
        Some(id.is_some_and(|id| (id.wrapping_sub(w.epoch) as i16) < 0))
    }

    /// Processes a duplicate acknowledgement that an unmodified receiver may have sent for a probe. True if such an
    /// answer is due; the duplicate is then no sign of loss. An acknowledgement less than an RTT after the first probe
    /// cannot answer the probe, nor can one before an RTT is known, since a probe follows the data that it copies.
    pub(crate) fn consume_legacy_credit(&mut self, now: Instant, least_rtt: Option<Duration>) -> bool {
        let due = |w: &ProbingState| least_rtt.is_some_and(|rtt| w.first_unknown + rtt <= now);
        let Some(w) = self.work.as_mut().filter(|w| w.legacy_credit > 0 && due(w)) else { return false };
        w.legacy_credit -= 1;
        true
    }
    /// Whether duplicate acknowledgements of an unmodified receiver may still answer probes.
    #[inline]
    pub(crate) fn expects_legacy(&self) -> bool {
        self.work.as_ref().is_some_and(|w| w.legacy_credit > 0)
    }
    /// Whether probes are waiting to be sent.
    #[inline]
    pub(crate) fn has_due(&self) -> bool {
        self.work.as_ref().is_some_and(|w| w.due > 0)
    }
}

/// Word and bit of a number in [`ProbingState::open`].
const fn slot(id: u16) -> (usize, u64) {
    let at = id as usize % REMEMBERED;
    (at / 64, 1 << (at % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing is outstanding.
    fn none(_: Pick) -> Option<(u64, u32)> {
        None
    }

    fn prober() -> Prober {
        let mut p = Prober::new(true);
        p.support = ProbeSupport::Yes;
        p.transmitted(1, 1000, 1000, 60_000);
        p
    }

    #[test]
    fn a_train_is_spaced_and_ends() {
        let mut p = prober();
        let tau = Duration::from_millis(10);
        p.start(
            Instant::ZERO,
            Train { source: ProbeSource::LastSegment, count: 3, first: tau, spacing: tau },
        );
        let mut at = alloc::vec::Vec::new();
        while p.next_departure() < Instant::MAX {
            let now = p.next_departure();
            p.advance(now);
            while p.poll(Instant::ZERO, true, none).is_some() {
                at.push(now.as_nanos() / 1_000_000);
            }
        }
        assert_eq!(at, [10, 20, 30]);
    }

    #[test]
    fn requests_beyond_the_largest_count_are_cut() {
        let mut p = prober();
        p.ask(ProbeSource::LastSegment, 1);
        p.ask(ProbeSource::LastSegment, u32::MAX);
        assert_eq!(p.work().due, u32::MAX);
        let (first, spacing) = (Duration::ZERO, Duration::ZERO);
        p.start(Instant::ZERO, Train { source: ProbeSource::LastSegment, count: u32::MAX, first, spacing });
        p.advance(Instant::ZERO);
        assert_eq!((p.work().due, p.next_departure()), (u32::MAX, Instant::MAX));
    }

    #[test]
    fn more_answers_than_probes_are_not_believed() {
        let mut p = prober();
        p.ask(ProbeSource::LastSegment, 1);
        assert!(p.poll(Instant::ZERO, true, none).is_some());
        assert_eq!(p.answer(Some(0)), Some(false));
        assert_eq!(p.answer(Some(0)), None);
    }

    #[test]
    fn a_number_is_believed_once() {
        let mut p = prober();
        p.ask(ProbeSource::LastSegment, 3);
        while p.poll(Instant::ZERO, true, none).is_some() {}
        assert_eq!(p.answer(Some(1)), Some(false));
        assert_eq!(p.answer(Some(1)), None, "a duplicate of the answer");
        assert_eq!(p.answer(Some(9)), None, "never sent");
        assert_eq!(p.answer(None), None, "the probes carry numbers");
        assert_eq!(p.answer(Some(0)), Some(false));
        assert_eq!(p.counts().1, 2);
    }

    #[test]
    fn answers_from_before_the_epoch_are_stale_also_across_the_wrap_of_the_numbers() {
        let mut p = prober();
        p.work().next_id = u16::MAX;
        p.ask(ProbeSource::LastSegment, 3);
        let ids: alloc::vec::Vec<_> =
            core::iter::from_fn(|| p.poll(Instant::ZERO, true, none)).map(|x| x.id).collect();
        assert_eq!(ids, [Some(u16::MAX), Some(0), Some(1)]);
        p.work().epoch = 1;
        assert_eq!(p.answer(ids[0]), Some(true));
        assert_eq!(p.answer(ids[1]), Some(true));
        assert_eq!(p.answer(ids[2]), Some(false));
    }

    #[test]
    fn nothing_leaves_through_a_closed_window_or_to_a_peer_that_does_not_answer() {
        let mut p = prober();
        p.ask(ProbeSource::LastSegment, 2);
        assert!(p.poll(Instant::ZERO, false, none).is_none());
        p.ask(ProbeSource::LastSegment, 2);
        p.unsupported();
        assert!(p.poll(Instant::ZERO, true, none).is_none());
    }

    #[test]
    fn nil_probes_walk_the_unacknowledged_data_in_turn() {
        let mut p = prober();
        p.ask(ProbeSource::UnackedRoundRobin, 4);
        let walk = |p: &mut Prober, unacked: &[(u64, u32)]| -> alloc::vec::Vec<_> {
            let next = |pick| match pick {
                Pick::From(from) => unacked.iter().copied().find(|&(seq, _)| seq >= from),
                Pick::Modulo(number) => unacked.get((number % unacked.len() as u64) as usize).copied(),
            };
            core::iter::from_fn(|| p.poll(Instant::ZERO, true, next)).map(|x| (x.seq, x.len)).collect()
        };
        let seqs = walk(&mut p, &[(100, 1000), (1100, 1000), (2100, 500)]);
        assert_eq!(seqs, [(100, 1000), (1100, 1000), (2100, 500), (100, 1000)]);
        // 1100 was selectively acknowledged meanwhile: the pointer moves on to its successor.
        p.ask(ProbeSource::UnackedRoundRobin, 2);
        assert_eq!(walk(&mut p, &[(100, 1000), (2100, 500)]), [(2100, 500), (100, 1000)]);
        p.ask(ProbeSource::UnackedRoundRobin, 2);
        p.rewind();
        assert_eq!(walk(&mut p, &[(100, 1000), (2100, 500)]), [(100, 1000), (2100, 500)]);
        // Nothing outstanding: the probes are dropped, not deferred.
        p.ask(ProbeSource::UnackedRoundRobin, 2);
        assert!(walk(&mut p, &[]).is_empty());
        assert!(!p.has_due());
        // By the number of the probe modulo the length of the queue: eight probes were sent.
        p.ask(ProbeSource::UnackedModulo, 4);
        let queue = [(100, 1000), (1100, 1000), (2100, 500)];
        assert_eq!(walk(&mut p, &queue), [(2100, 500), (100, 1000), (1100, 1000), (2100, 500)]);
        // When 100 has left the queue, the next pick jumps: probe 12, 12 mod 2 = 0.
        p.ask(ProbeSource::UnackedModulo, 1);
        assert_eq!(walk(&mut p, &queue[1..]), [(1100, 1000)]);
    }

    #[test]
    fn one_byte_is_enough_to_measure_by() {
        let mut p = prober();
        p.ask(ProbeSource::OneByte, 1);
        let probe = p.poll(Instant::ZERO, true, none).expect("due");
        assert_eq!((probe.seq, probe.len, probe.mark, probe.low_priority), (1, 1, Mark::Dummy, false));
        p.ask(ProbeSource::LastSegment, 1);
        assert!(p.poll(Instant::ZERO, true, none).is_some_and(|x| x.low_priority && x.len == 1000));
    }

    #[test]
    fn a_dummy_copies_the_last_full_segment() {
        let mut p = prober();
        p.transmitted(5001, 1000, 1000, 2000);
        p.transmitted(6001, 10, 1000, 2000);
        p.ask(ProbeSource::LastSegment, 1);
        assert_eq!(p.poll(Instant::ZERO, true, none).map(|x| (x.seq, x.len)), Some((5001, 1000)));
        // More than a window later the peer would not accept the old segment as a copy.
        p.transmitted(7001, 10, 1000, 2000);
        p.ask(ProbeSource::LastSegment, 1);
        assert_eq!(p.poll(Instant::ZERO, true, none).map(|x| (x.seq, x.len)), Some((7001, 10)));
    }
}

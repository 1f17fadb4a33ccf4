//! A gateway that spoofs the receiver (RFC 3135 §3.1.2; Akyildiz, Morabito, Palazzo 2001 §II). One connection
//! passes through it. Data from the sender is acknowledged at once, stored, and retransmitted from here until the
//! receiver has acknowledged it. Segments enter and leave as on a router; it has no connection of its own.
//!
//! The receiver's acknowledgements must pass it, since they alone release stored data: if the store is full, data
//! is forwarded without an acknowledgement, as if there were no gateway. A FIN is not acknowledged before all data
//! ahead of it has arrived.

use skyhaul_base::Instant;
use skyhaul_relay::Ranges;
use skyhaul_tcp::config::Rto;
use skyhaul_tcp::{Flags, RttEstimator, Segment, Seq};
use std::collections::{BTreeMap, VecDeque};

/// Number of SACKed segments beyond a hole, or of duplicate ACKs, that reveals a loss (DupThresh of RFC 6675).
const DUP_THRESH: u32 = 3;

/// A stored data segment.
#[derive(Clone, Copy, Debug)]
struct StoredSegment {
    segment: Segment,
    /// Time of the last transmission.
    sent: Instant,
    retransmitted: bool,
}

/// The spoofing gateway, for one connection.
#[derive(Debug)]
pub(crate) struct Spoof {
    /// Maximum bytes stored.
    capacity: u64,
    /// It has seen the handshake and has not lost its state. Offsets count from the sender's SYN.
    tracks: bool,
    iss: Seq,
    /// End of the data acknowledged to the sender.
    advertised: u64,
    /// End of the data received without a gap.
    local: u64,
    /// End of the data acknowledged by the receiver.
    una: u64,
    /// Right edge of the window announced to the sender.
    edge: u64,
    /// The stored segments, by the offset of their first byte.
    kept: BTreeMap<u64, StoredSegment>,
    /// Bytes in `kept`.
    stored: u64,
    /// Data that the receiver has SACKed beyond `una`.
    sacked: Ranges,
    /// End of the highest data SACKed.
    high_sacked: u64,
    /// Every segment before this offset has been examined, and retransmitted if it was missing.
    judged: u64,
    /// Time and offset of each retransmission, in order.
    retransmissions: VecDeque<(Instant, u64)>,
    /// Duplicate ACKs since the last advance of `una`.
    duplicates: u32,
    /// The repair continues until this offset is acknowledged.
    recover: u64,
    /// The receiver's next sequence number.
    receiver_seq: Seq,
    /// Timestamps of acknowledgements in the receiver's name: its latest TSval, and the TSval of the sender to echo.
    stamps: Option<(u32, u32)>,
    rto: Rto,
    rtt: RttEstimator,
    /// When the retransmission timer expires.
    expires: Instant,
    /// Segments that are to leave for the sender.
    pub(crate) to_sender: VecDeque<Segment>,
    /// Segments that are to leave for the receiver.
    pub(crate) to_receiver: VecDeque<Segment>,
    /// Number of segments that the gateway has retransmitted.
    pub(crate) repeats: u64,
}

impl Spoof {
    /// A gateway that stores up to `capacity` bytes, with this retransmission timer.
    pub(crate) fn new(capacity: u64, rto: Rto) -> Self {
        Self {
            capacity,
            tracks: false,
            iss: Seq(0),
            advertised: 1,
            local: 1,
            una: 1,
            edge: 0,
            kept: BTreeMap::new(),
            stored: 0,
            sacked: Ranges::default(),
            high_sacked: 0,
            judged: 0,
            retransmissions: VecDeque::new(),
            duplicates: 0,
            recover: 0,
            receiver_seq: Seq(0),
            stamps: None,
            rto,
            rtt: RttEstimator::new(&rto),
            expires: Instant::MAX,
            to_sender: VecDeque::new(),
            to_receiver: VecDeque::new(),
            repeats: 0,
        }
    }
    /// Loses its state, by a crash or a route change: stored data is gone, and packets pass unchanged.
    pub(crate) fn forget(&mut self) {
        *self = Self { repeats: self.repeats, ..Self::new(self.capacity, self.rto) };
    }
    #[cfg(test)]
    fn stored(&self) -> u64 {
        self.stored
    }
    /// When [`Self::expire`] must be called.
    pub(crate) fn next_timeout(&self) -> Instant {
        self.expires
    }

    fn offset(&self, seq: Seq) -> u64 {
        seq.unwrap(self.una, self.iss.add(self.una as u32)).unwrap_or(0)
    }
    fn seq(&self, offset: u64) -> Seq {
        self.iss.add(offset as u32)
    }

    /// A segment of the sender.
    pub(crate) fn outbound(&mut self, now: Instant, s: &Segment) {
        if s.flags.has(Flags::SYN) {
            self.forget();
            (self.tracks, self.iss) = (true, s.seq);
            self.stamps = s.ts.map(|(val, _)| (0, val));
        } else if s.flags.has(Flags::RST) {
            self.forget();
        }
        if !self.tracks || s.flags.has(Flags::SYN) {
            self.to_receiver.push_back(*s);
            return;
        }
        let from = self.offset(s.seq);
        let end = from + u64::from(s.len);
        if let (Some((_, echo)), Some((val, _))) = (&mut self.stamps, s.ts) {
            if from <= self.advertised {
                *echo = val;
            }
        }
        if end <= self.local && from < self.local && !s.flags.has(Flags::FIN) {
            // A keepalive or window probe, or the gateway's acknowledgement was lost.
            self.answer(None);
            return;
        }
        self.to_receiver.push_back(*s);
        if s.len == 0 || self.stored + u64::from(s.len) > self.capacity || from < self.una {
            return;
        }
        let kept = StoredSegment { segment: *s, sent: now, retransmitted: false };
        self.stored += u64::from(s.len);
        // The sender may cut a retransmission differently.
        if let Some(replaced) = self.kept.insert(from, kept) {
            self.stored -= u64::from(replaced.segment.len);
        }
        if self.expires == Instant::MAX {
            self.expires = now + self.rtt.rto();
        }
        self.advance();
        self.answer((from > self.local).then_some((from, end)));
    }

    /// Advances the end of the data received without a gap.
    fn advance(&mut self) {
        while let Some(k) = self.kept.get(&self.local) {
            self.local += u64::from(k.segment.len);
        }
    }

    /// Acknowledges in the receiver's name. `beyond`: first and end offset of data beyond a gap, for a SACK block.
    fn answer(&mut self, beyond: Option<(u64, u64)>) {
        let window = self.capacity.saturating_sub(self.stored);
        (self.advertised, self.edge) = (self.local, self.local + window);
        let mut a = Segment {
            seq: self.receiver_seq,
            ack: self.seq(self.local),
            window: u32::try_from(window).unwrap_or(u32::MAX),
            flags: Flags::ACK,
            ts: self.stamps,
            ..Segment::default()
        };
        if let Some((from, to)) = beyond {
            a.sack.push(self.seq(from), self.seq(to));
        }
        self.to_sender.push_back(a);
    }

    /// A segment of the receiver.
    pub(crate) fn inbound(&mut self, now: Instant, s: &Segment) {
        if s.flags.has(Flags::RST) {
            self.forget();
        }
        if !self.tracks {
            self.to_sender.push_back(*s);
            return;
        }
        self.receiver_seq = s.seq.add(s.span());
        if let (Some((val, _)), Some((new, _))) = (&mut self.stamps, s.ts) {
            *val = new;
        }
        if s.flags.has(Flags::SYN) {
            self.edge = 1 + u64::from(s.window);
            self.to_sender.push_back(*s);
            return;
        }
        let ack = self.offset(s.ack);
        let advanced = ack > self.una;
        if advanced {
            self.release(now, ack);
        } else if ack == self.una && s.len == 0 && self.stored > 0 {
            self.duplicates += 1;
        }
        for &(from, to) in s.sack.as_slice() {
            let (from, to) = (self.offset(from), self.offset(to));
            if from < to && to > self.una {
                self.high_sacked = self.high_sacked.max(to);
                self.sacked.add(from, to);
            }
        }
        self.repair(now, advanced);
        if s.len > 0 || s.flags.has(Flags::FIN) {
            let window = self.capacity.saturating_sub(self.stored);
            let window = u32::try_from(window).unwrap_or(u32::MAX);
            self.to_sender.push_back(Segment { ack: self.seq(self.local), window, ..*s });
        } else {
            let opened = self.local + self.capacity.saturating_sub(self.stored);
            let step = 2 * u64::from(self.kept.first_key_value().map_or(1, |(_, k)| k.segment.len));
            if self.local > self.advertised || opened >= self.edge + step {
                self.answer(None);
            }
        }
    }

    /// The receiver has everything before `ack`.
    fn release(&mut self, now: Instant, ack: u64) {
        self.una = ack;
        self.duplicates = 0;
        self.rtt.end_backoff(&self.rto);
        while let Some(first) = self.kept.first_entry() {
            let (from, k) = (*first.key(), *first.get());
            if from + u64::from(k.segment.len) > ack {
                break;
            }
            first.remove();
            self.stored -= u64::from(k.segment.len);
            // Data that waited behind a hole or was retransmitted yields no RTT sample (RFC 6298 §3).
            if !k.retransmitted && !self.sacked.contains(from) {
                self.rtt.sample(now - k.sent, 1, &self.rto);
            }
        }
        self.sacked.cut(ack);
        self.local = self.local.max(ack);
        self.advance();
        self.expires = if self.kept.is_empty() { Instant::MAX } else { now + self.rtt.rto() };
    }

    /// Retransmits missing data: by SACK, or without SACK one loss per RTT (RFC 6582).
    fn repair(&mut self, now: Instant, advanced: bool) {
        if self.high_sacked > self.una {
            self.judge(now);
            return;
        }
        let begins = self.duplicates == DUP_THRESH && self.una >= self.recover;
        if begins {
            self.recover = self.kept.last_key_value().map_or(0, |(from, _)| *from);
        }
        if begins || advanced && self.una < self.recover {
            self.resend_first(now);
        }
    }
    /// Retransmits segments with enough SACKed data beyond them, and retransmissions that are a round trip old. Each
    /// segment is examined once, and once more per retransmission.
    fn judge(&mut self, now: Instant) {
        let patience = self.rtt.srtt().unwrap_or(self.rto.initial);
        let mut from = self.judged.max(self.una);
        while let Some((&at, k)) = self.kept.range(from..).next() {
            if at + u64::from((1 + DUP_THRESH) * k.segment.len) > self.high_sacked {
                break;
            }
            from = at + u64::from(k.segment.len);
            if !k.retransmitted && !self.sacked.contains(at) {
                self.resend(now, at);
            }
        }
        self.judged = from;
        while let Some(&(sent, from)) =
            self.retransmissions.front().filter(|(sent, _)| *sent + patience <= now)
        {
            self.retransmissions.pop_front();
            let last = self.kept.get(&from).is_some_and(|k| k.sent == sent);
            if last && from < self.high_sacked && !self.sacked.contains(from) {
                self.resend(now, from);
            }
        }
    }
    fn resend_first(&mut self, now: Instant) {
        if let Some((&from, _)) = self.kept.first_key_value() {
            self.resend(now, from);
        }
    }
    fn resend(&mut self, now: Instant, from: u64) {
        // A retransmission whose segment was acknowledged, or retransmitted later, is not examined any more. Without SACK
        // nothing else takes it off the list.
        let kept = &self.kept;
        let current = |&(sent, from): &(Instant, u64)| kept.get(&from).is_some_and(|k| k.sent == sent);
        while self.retransmissions.front().is_some_and(|entry| !current(entry)) {
            self.retransmissions.pop_front();
        }
        if let Some(k) = self.kept.get_mut(&from) {
            (k.sent, k.retransmitted) = (now, true);
            self.repeats += 1;
            self.retransmissions.push_back((now, from));
            self.to_receiver.push_back(k.segment);
        }
    }

    /// Handles the retransmission timer.
    pub(crate) fn expire(&mut self, now: Instant) {
        if self.expires > now {
            return;
        }
        if self.kept.is_empty() {
            self.expires = Instant::MAX;
            return;
        }
        self.rtt.back_off(&self.rto, false);
        self.recover = self.kept.last_key_value().map_or(0, |(from, _)| *from);
        self.duplicates = 0;
        self.resend_first(now);
        self.expires = now + self.rtt.rto();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_base::Duration;
    use skyhaul_tcp::Config;

    fn data(n: u32) -> Segment {
        Segment { seq: Seq(1 + 1000 * n), len: 1000, flags: Flags::ACK, ..Segment::default() }
    }
    fn ack(n: u32) -> Segment {
        Segment { ack: Seq(1 + 1000 * n), window: 100_000, flags: Flags::ACK, ..Segment::default() }
    }
    /// A gateway that has seen a handshake.
    fn tracking(capacity: u64) -> Spoof {
        let mut b = Spoof::new(capacity, Config::modern().rto);
        let syn = Segment { flags: Flags::SYN, ..Segment::default() };
        b.outbound(Instant::ZERO, &syn);
        let answer = Segment { flags: Flags::SYN.with(Flags::ACK), ack: Seq(1), window: 60_000, ..syn };
        b.inbound(Instant::ZERO, &answer);
        b.to_sender.clear();
        b.to_receiver.clear();
        b
    }
    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn data_is_acknowledged_at_once_and_kept_until_the_receiver_does() {
        let mut b = tracking(10_000);
        for n in 0..3 {
            b.outbound(at(0), &data(n));
        }
        let advertised: Vec<_> = b.to_sender.drain(..).map(|s| (s.ack.0, s.window)).collect();
        assert_eq!(advertised, [(1001, 9000), (2001, 8000), (3001, 7000)]);
        assert_eq!((b.to_receiver.len(), b.stored()), (3, 3000));
        b.inbound(at(500), &ack(2));
        assert_eq!(b.stored(), 1000);
        // The window has opened: only this is reported to the sender.
        let advertised: Vec<_> = b.to_sender.drain(..).map(|s| (s.ack.0, s.window)).collect();
        assert_eq!(advertised, [(3001, 9000)]);
    }

    #[test]
    fn a_full_store_lets_data_pass_unanswered() {
        let mut b = tracking(2000);
        (0..4).for_each(|n| b.outbound(at(0), &data(n)));
        assert_eq!((b.to_receiver.len(), b.to_sender.len(), b.stored()), (4, 2, 2000));
        assert_eq!(b.to_sender.back().map(|s| (s.ack.0, s.window)), Some((2001, 0)));
        // Data at the receiver is acknowledged, whoever stored it.
        b.inbound(at(500), &ack(4));
        assert_eq!(b.to_sender.back().map(|s| (s.ack.0, s.window)), Some((4001, 2000)));
        assert_eq!(b.stored(), 0);
    }

    #[test]
    fn a_segment_cut_differently_when_retransmitted_counts_once() {
        // Beyond a gap, so that the gateway does not acknowledge it at once.
        let mut b = tracking(10_000);
        b.outbound(at(0), &Segment { len: 400, ..data(1) });
        assert_eq!(b.stored(), 400);
        b.outbound(at(100), &data(1));
        assert_eq!(b.stored(), 1000);
        b.outbound(at(200), &Segment { len: 400, ..data(1) });
        assert_eq!(b.stored(), 400);
        b.outbound(at(300), &data(1));
        b.outbound(at(300), &data(0));
        b.inbound(at(800), &ack(2));
        assert_eq!(b.stored(), 0);
        assert_eq!(b.to_sender.back().map(|s| (s.ack.0, s.window)), Some((2001, 10_000)));
    }

    #[test]
    fn losses_are_repaired_from_the_store_and_duplicates_never_reach_the_sender() {
        let mut b = tracking(100_000);
        (0..8).for_each(|n| b.outbound(at(0), &data(n)));
        b.inbound(at(500), &ack(1));
        b.to_sender.clear();
        b.to_receiver.clear();
        for n in 2..6 {
            let mut dup = ack(1);
            dup.sack.push(Seq(2001), Seq(1 + 1000 * (n + 1)));
            b.inbound(at(500), &dup);
        }
        let again: Vec<_> = b.to_receiver.drain(..).map(|s| s.seq.0).collect();
        assert_eq!(again, [1001], "once");
        assert!(b.to_sender.is_empty());
        // Without SACK, three duplicates trigger a repair; otherwise the timer does.
        let mut b = tracking(100_000);
        (0..8).for_each(|n| b.outbound(at(0), &data(n)));
        b.inbound(at(500), &ack(1));
        b.to_receiver.clear();
        (0..3).for_each(|_| b.inbound(at(500), &ack(1)));
        assert_eq!(b.to_receiver.drain(..).map(|s| s.seq.0).collect::<Vec<_>>(), [1001]);
        let expires = b.next_timeout();
        b.expire(expires);
        assert_eq!(b.to_receiver.len(), 1);
        assert!(b.next_timeout() - expires > expires - at(500), "it backs off");
    }

    #[test]
    fn what_was_sent_again_is_forgotten_once_it_has_arrived() {
        // Without selective acknowledgements: each segment is lost, and the timer repeats it.
        let (mut b, mut now) = (tracking(100_000), at(0));
        for n in 0..500 {
            b.outbound(now, &data(n));
            now = b.next_timeout();
            b.expire(now);
            now += Duration::from_millis(500);
            b.inbound(now, &ack(n + 1));
        }
        assert_eq!((b.repeats, b.stored()), (500, 0));
        assert!(b.retransmissions.len() <= 1, "{}", b.retransmissions.len());
    }

    #[test]
    fn a_fin_waits_for_the_receiver_and_what_is_not_tracked_passes() {
        let mut b = tracking(100_000);
        b.outbound(at(0), &data(0));
        let fin = Segment { flags: Flags::ACK.with(Flags::FIN), ..data(1) };
        b.outbound(at(0), &fin);
        assert_eq!(b.to_sender.back().map(|s| s.ack.0), Some(2001), "not beyond the data");
        let last = Segment { ack: Seq(2002), ..ack(2) };
        b.inbound(at(500), &last);
        assert_eq!(b.to_sender.back().map(|s| s.ack.0), Some(2002));
        b.forget();
        b.to_sender.clear();
        b.to_receiver.clear();
        b.outbound(at(600), &data(2));
        b.inbound(at(600), &ack(1));
        assert_eq!((b.to_receiver.pop_front(), b.to_sender.pop_front()), (Some(data(2)), Some(ack(1))));
        assert_eq!(b.stored(), 0);
    }
}

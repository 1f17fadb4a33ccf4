//! Departing segments: the output of both halves with current acknowledgement, window and options.

use super::{Connection, State, expressible};
use crate::receiver::ProbeAnswer;
use crate::segment::{Extras, Flags, Head, Mark, Segment, Waves};
use crate::sender::OutgoingSegment;
use crate::store::Store;
use alloc::boxed::Box;
use skyhaul_base::Instant;

/// What is sent next.
enum Departure {
    Reset(Box<Segment>),
    Syn,
    /// An acknowledgement before the end of the handshake.
    Bare,
    Data(OutgoingSegment),
    Ack,
    ProbeAnswer(ProbeAnswer),
}

impl<S: Store> Connection<S> {
    /// The next segment to transmit, or nothing until the next event.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        let departure = self.next_departure(now)?;
        Some(self.whole_segment(now, departure))
    }

    /// As [`Self::poll_transmit`], with the segment split into head and extras, if it has any.
    #[inline]
    pub fn poll_head(&mut self, now: Instant) -> Option<(Head, Option<Box<Extras>>)> {
        let departure = self.next_departure(now)?;
        match &departure {
            Departure::Data(out) if out.mark == Mark::None && !out.fin && self.sends_plain() => {
                Some((self.plain_head(now, Some(out)), None))
            }
            Departure::Ack if self.sends_plain() => Some((self.plain_head(now, None), None)),
            _ => {
                let (head, extras) = self.whole_segment(now, departure).parts();
                Some((head, extras.map(Box::new)))
            }
        }
    }

    /// What is sent next.
    #[inline]
    fn next_departure(&mut self, now: Instant) -> Option<Departure> {
        if let Some(reset) = self.reset_due.take() {
            return Some(Departure::Reset(Box::new(reset)));
        }
        if self.handshake.syn_due {
            return Some(Departure::Syn);
        }
        if !self.synchronised() && !self.is_early() {
            // Unacceptable segments before the end of the handshake also require an acknowledgement.
            return (self.state == State::SynReceived && self.receiver.poll_ack()).then_some(Departure::Bare);
        }
        if let Some(out) = self.sender.poll(now) {
            return Some(Departure::Data(out));
        }
        if self.receiver.poll_ack() {
            return Some(Departure::Ack);
        }
        self.receiver.poll_probe_answer().map(Departure::ProbeAnswer)
    }

    /// The segment with all its fields.
    #[inline]
    fn whole_segment(&mut self, now: Instant, departure: Departure) -> Segment {
        match departure {
            Departure::Reset(reset) => *reset,
            Departure::Syn => self.syn(now),
            Departure::Bare => self.segment(now, Flags::ACK),
            Departure::Data(out) => self.data_segment(now, out),
            Departure::Ack => {
                let tells_syn = self.tells_syn();
                let mut seg = self.segment(now, Flags::ACK);
                self.fill_sack(&mut seg, None);
                self.feed_back(&mut seg, tells_syn);
                if self.ack_ratio.is_some() {
                    self.let_ack_be_marked(&mut seg);
                }
                seg
            }
            Departure::ProbeAnswer(answer) => self.probe_answer(now, answer),
        }
    }

    /// A segment at `SND.MAX` with nothing but flags.
    pub(super) fn blank(&self, flags: Flags) -> Segment {
        Segment { seq: self.iss.add(self.sender.max() as u32), flags, ..Segment::default() }
    }

    /// The window to announce, as the 16-bit field can express it.
    #[inline]
    pub(super) fn window_to_announce(&mut self) -> u32 {
        expressible(self.receiver.window(), self.our_scale)
    }

    /// A segment with current acknowledgement, window and timestamps.
    #[inline]
    pub(super) fn segment(&mut self, now: Instant, flags: Flags) -> Segment {
        let window = self.window_to_announce();
        self.last_ack_sent = self.receiver.next_expected();
        Segment {
            seq: self.iss.add(self.sender.max() as u32),
            ack: self.irs.add(self.last_ack_sent as u32),
            window,
            ts: self.timestamps.then(|| self.stamps.stamp(now)),
            flags: flags.with(self.ecn_flags()),
            waves: Waves { number: None, rate: self.receiver.rate() },
            ..Segment::default()
        }
    }

    #[inline]
    pub(super) fn data_segment(&mut self, now: Instant, out: OutgoingSegment) -> Segment {
        let mut flags = Flags::ACK;
        if out.fin {
            flags = flags.with(Flags::FIN);
        }
        // On a real network the end of written data is pushed (RFC 9293 §3.9.1.2): some peers wait for PSH.
        let ends = || self.sender.ends_write(out.seq + u64::from(out.len));
        if self.config.segment_limit.is_some() && out.mark == Mark::None && out.len > 0 && ends() {
            flags = flags.with(Flags::PSH);
        }
        let mut seg = self.segment(now, flags);
        seg.seq = self.iss.add(out.seq as u32);
        seg.len = out.len;
        seg.mark = out.mark;
        seg.probe_id = out.probe_id;
        seg.low_priority = out.low_priority;
        if out.mark == Mark::None {
            self.report_with_data(&mut seg);
            self.notify(&mut seg, &out);
            self.receiver.carried();
            if let (Some(ratio), true) = (&mut self.ack_ratio, out.len > 0) {
                seg.ack_ratio = ratio.tell(out.seq + u64::from(out.len));
            }
            if self.marks_waves && out.len > 0 {
                seg.waves.number = Some(self.sender.wave(now, out.seq + u64::from(out.len)));
            }
        }
        seg
    }

    /// On a real network, data segments with room for options also carry SACK blocks (RFC 2018 §3: in every
    /// acknowledgement that does not cover all received data). Full segments do not: separate acknowledgements
    /// carry the blocks.
    #[inline]
    fn report_with_data(&mut self, seg: &mut Segment) {
        // Four blocks, with the kind and length of the option and two bytes of padding.
        const FOUR_BLOCKS: u32 = 4 + 4 * 8;
        let room = self.sender.segment_size().saturating_sub(seg.len);
        if self.receiver.has_gap() && self.config.segment_limit.is_some() && room >= FOUR_BLOCKS {
            self.fill_sack(seg, None);
        }
    }

    pub(super) fn probe_answer(&mut self, now: Instant, answer: ProbeAnswer) -> Segment {
        let mut seg = self.segment(now, Flags::ACK);
        seg.mark = answer.mark;
        seg.probe_id = answer.id;
        seg.low_priority = true;
        self.fill_sack(&mut seg, Some(answer.range));
        seg
    }

    #[inline]
    pub(super) fn fill_sack(&mut self, seg: &mut Segment, probe: Option<(u64, u64)>) {
        if !self.sack_ok {
            return;
        }
        if let (None, Some((from, to))) = (probe, self.receiver.named_hole()) {
            seg.snack = Some((self.irs.add(from as u32), self.irs.add(to as u32)));
        }
        let b = self.receiver.blocks(probe);
        for &(from, to) in b.as_slice() {
            seg.sack.push(self.irs.add(from as u32), self.irs.add(to as u32));
        }
    }
}

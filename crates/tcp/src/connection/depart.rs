//! Departing segments: the output of both halves with current acknowledgement, window and options.

use super::{Connection, State};
use crate::receiver::ProbeAnswer;
use crate::segment::{Flags, Mark, Segment, Waves};
use crate::sender::OutgoingSegment;
use crate::store::Store;
use skyhaul_base::Instant;

impl<S: Store> Connection<S> {
    /// The next segment to transmit, or nothing until the next event.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        if self.reset_due.is_some() {
            return self.reset_due.take();
        }
        if self.handshake.syn_due {
            return Some(self.syn(now));
        }
        if !self.synchronised() && !self.is_early() {
            // Unacceptable segments before the end of the handshake also require an acknowledgement.
            return (self.state == State::SynReceived && self.receiver.poll_ack())
                .then(|| self.segment(now, Flags::ACK));
        }
        if let Some(out) = self.sender.poll(now) {
            return Some(self.data_segment(now, out));
        }
        if self.receiver.poll_ack() {
            let mut seg = self.segment(now, Flags::ACK);
            self.fill_sack(&mut seg, None);
            if self.ack_ratio.is_some() {
                self.let_ack_be_marked(&mut seg);
            }
            return Some(seg);
        }
        if let Some(answer) = self.receiver.poll_probe_answer() {
            return Some(self.probe_answer(now, answer));
        }
        None
    }

    pub(super) fn blank(&self, flags: Flags) -> Segment {
        Segment { seq: self.iss.add(self.sender.max() as u32), flags, ..Segment::default() }
    }

    /// A segment with current acknowledgement, window and timestamps.
    #[inline]
    pub(super) fn segment(&mut self, now: Instant, flags: Flags) -> Segment {
        // The largest value of the 16-bit field at our scale.
        let window = self.receiver.window().min(65_535 << self.our_scale) >> self.our_scale << self.our_scale;
        self.last_ack_sent = self.receiver.next_expected();
        Segment {
            seq: self.iss.add(self.sender.max() as u32),
            ack: self.irs.add(self.last_ack_sent as u32),
            window: window as u32,
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
        const WHOLE: u32 = 4 + 4 * 8;
        let room = self.sender.segment_size().saturating_sub(seg.len);
        if self.receiver.has_gap() && self.config.segment_limit.is_some() && room >= WHOLE {
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

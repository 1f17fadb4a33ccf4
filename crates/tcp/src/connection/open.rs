//! The handshake: SYN, its options, and the negotiation (RFC 9293 §3.10.7.2, §3.10.7.3).

use super::{Connection, Event, State, UNSCALED, scale_for};
use crate::config::{AckCc, LossDetection, ProbeNegotiation};
use crate::error::Rejected;
use crate::segment::{Flags, Segment, SynOptions, Waves};
use crate::sender::Peer;
use crate::store::Store;
use core::num::NonZeroU16;
use skyhaul_base::{Duration, Instant};
use skyhaul_cc::InitialWindow;

impl<S: Store> Connection<S> {
    pub(super) fn on_listen(&mut self, now: Instant, seg: &Segment, payload: &[u8]) -> Result<(), Rejected> {
        if seg.flags.has(Flags::RST) {
            return Err(Rejected::Flags);
        }
        if seg.flags.has(Flags::ACK) {
            let mut rst = self.blank(Flags::RST);
            rst.seq = seg.ack;
            self.reset_due = Some(rst);
            return Err(Rejected::Flags);
        }
        if !seg.flags.has(Flags::SYN) {
            return Err(Rejected::Flags);
        }
        self.irs = seg.seq;
        self.agree(now, seg);
        self.state = State::SynReceived;
        self.handshake.syn_due = true;
        self.handshake.sent_at = now;
        self.on_early(now, seg, payload);
        Ok(())
    }

    pub(super) fn on_syn_sent(&mut self, now: Instant, seg: &Segment) -> Result<(), Rejected> {
        let acks_syn = seg.flags.has(Flags::ACK) && self.acknowledges_syn(seg.ack);
        if seg.flags.has(Flags::ACK) && !acks_syn {
            if !seg.flags.has(Flags::RST) {
                self.reset_stray(now, seg);
            }
            return Err(Rejected::AckOfUnsent);
        }
        if seg.flags.has(Flags::RST) {
            if acks_syn {
                self.emit(Event::Reset);
                self.close();
                return Ok(());
            }
            return Err(Rejected::Flags);
        }
        if !seg.flags.has(Flags::SYN) {
            return Err(Rejected::Flags);
        }
        self.irs = seg.seq;
        self.agree(now, seg);
        if acks_syn {
            let rtt = self.handshake.rtt(now);
            self.establish(now, u64::from(seg.window), rtt);
            self.receiver.ack_or_data();
        } else {
            // Simultaneous open. The SYN-ACK is not a retransmission of our SYN. The handshake gives no RTT sample: the
            // peer's SYN-ACK answers our SYN, which left before our SYN-ACK did.
            self.state = State::SynReceived;
            self.handshake.syn_due = true;
            self.handshake.tries = 0;
            self.handshake.untimed = true;
        }
        Ok(())
    }

    /// Negotiates the options of the peer's SYN and ours.
    fn agree(&mut self, now: Instant, seg: &Segment) {
        self.agree_on_ecn(seg);
        self.agree_on_acks(seg.syn.ack_cc);
        let peer = &seg.syn;
        self.sack_ok = self.sack_ok && peer.sack_permitted;
        match peer.window_scale {
            // RFC 7323 §2.3: a shift above 14 counts as 14.
            Some(s) if self.config.window_scaling => self.peer_scale = s.min(14),
            _ => {
                self.our_scale = 0;
                self.peer_scale = 0;
            }
        }
        self.timestamps = self.config.timestamps && seg.ts.is_some();
        if let (true, Some((val, _))) = (self.timestamps, seg.ts) {
            self.stamps.recent = val;
            self.stamped_at = now;
        }
        // An MSS of zero is not valid.
        self.peer_mss = peer.mss.filter(|n| *n > 0).unwrap_or(self.config.unstated_mss).into();
        self.peer_probes = peer.probes;
        self.peer_snack = peer.snack;
        self.peer_waves = seg.waves.number.is_some();
    }

    /// What the sending half must know of the peer from the handshake.
    pub(super) fn peer(&self, window: u64, rtt: Option<Duration>) -> Peer {
        // The smaller of both ends' limits; the sender subtracts the options of each segment (RFC 6691).
        let (mss, options) = match self.config.segment_limit {
            Some(limit) => (self.peer_mss.min(limit), self.options_of_each()),
            None => (self.peer_mss, 0),
        };
        Peer {
            mss,
            options,
            window,
            sack: self.sack_ok,
            snack: self.peer_snack && self.sack_ok && self.uses_snack(),
            probes: self.peer_probes,
            rtt,
            rtt_is_sample: true,
            syn_repeated: self.handshake.tries > 1,
            syn_lost: self.handshake.tries > self.free_tries(),
            early: match &self.opening {
                Some(o) if self.state != State::SynReceived => o.taken.into(),
                _ => 0,
            },
        }
    }

    /// Enters ESTABLISHED and starts the sending half.
    pub(super) fn establish(&mut self, now: Instant, window: u64, rtt: Option<Duration>) {
        self.state = State::Established;
        self.receiver.announce_at_most(UNSCALED << self.our_scale);
        self.deadline = Instant::MAX;
        self.handshake.syn_due = false;
        let peer = self.peer(window, rtt);
        self.begin(now, &peer);
        self.emit(Event::Connected);
        if self.handshake.closed_by_user {
            self.shutdown(now);
        }
    }

    /// Whether this end sends SNACKs and wants to receive them.
    fn uses_snack(&self) -> bool {
        self.config.loss_detection == LossDetection::Snack
    }

    /// How often a SYN may be sent without reducing the initial window: once (RFC 5681 §3.1), or twice with an initial window of
    /// ten segments (RFC 6928 §2).
    fn free_tries(&self) -> u32 {
        if self.config.rules.initial_window == InitialWindow::Rfc6928 { 2 } else { 1 }
    }

    /// The next SYN or SYN-ACK. An answer repeats only options that the peer has offered.
    pub(super) fn syn(&mut self, now: Instant) -> Segment {
        let h = &mut self.handshake;
        h.syn_due = false;
        h.tries += 1;
        if h.tries == 1 {
            h.sent_at = now;
        }
        let wait = self.config.rto.initial * (1 << (h.tries - 1).min(16));
        self.deadline = now + wait.min(self.config.rto.max);
        if !self.config.user_timeout.is_zero() {
            self.deadline = self.deadline.min(h.sent_at + self.config.user_timeout);
        }
        let len = self.early_len();
        // After two losses, the path may drop segments with options that it does not know: experimental ones (RFC 6994) are left
        // out. The probe option stays if the SYN has carried data, since it also permits the peer to take that data.
        let experimental = self.handshake.tries <= 2;
        let probe_option = experimental || self.early().sent > 0;
        let answering = self.state == State::SynReceived;
        let offer_probes =
            self.config.probes == ProbeNegotiation::Negotiate && (!answering || self.peer_probes);
        let offer_waves = self.config.receiver_rate && (!answering || self.peer_waves);
        let offer_snack = self.uses_snack() && (!answering || self.peer_snack);
        let scale = self.config.window_scaling && (!answering || self.our_scale > 0 || self.peer_scale > 0);
        let offer_acks = self.config.ack_cc != AckCc::None && (!answering || self.ack_ratio.is_some());
        // There is no room for both options (RFC 9293 §3.1: 40 bytes).
        let offer_waves = offer_waves && !offer_acks && experimental;
        let mut seg = Segment {
            seq: self.iss,
            len,
            window: self.window_of_syn(),
            flags: Flags::SYN,
            syn: SynOptions {
                mss: Some(self.config.segment_limit.unwrap_or(self.config.mss).min(65_535) as u16),
                window_scale: scale.then_some(scale_for(self.config.receive_buffer)),
                sack_permitted: self.sack_ok,
                probes: offer_probes && probe_option,
                ack_cc: offer_acks && experimental,
                snack: offer_snack,
            },
            waves: Waves { number: offer_waves.then_some(NonZeroU16::MIN), rate: None },
            ts: (self.config.timestamps && (!answering || self.timestamps)).then(|| self.stamps.stamp(now)),
            ..Segment::default()
        };
        seg.flags = seg.flags.with(self.ecn_of_syn(answering));
        if answering {
            seg.flags = seg.flags.with(Flags::ACK);
            self.last_ack_sent = self.receiver.next_expected();
            seg.ack = self.irs.add(self.last_ack_sent as u32);
            self.receiver.carried();
        }
        seg
    }
}

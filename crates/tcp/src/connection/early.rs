//! Data in a SYN, as in TCP Fast Open (RFC 7413). The drivers of both ends decide when it is safe: a connection sends
//! and takes such data only if its user allows it.
//!
//! Only the first SYN carries data; a repeated one does not (RFC 7413 §4.1.3.1). The peer's acknowledgement shows how
//! much of the data was taken, and the rest is sent again as new data. An end that took data may send before its
//! SYN-ACK is acknowledged (§4.2.2), within the window of the SYN.
//!
//! The window of a SYN that may carry data is scaled, unlike that of other SYNs (RFC 7323 §2.2): 64 KiB would be less than
//! the path carries in a round trip. A peer that does not scale it reads a smaller window.

use super::{Connection, Event, State, UNSCALED};
use crate::receiver::Data;
use crate::segment::{Mark, Segment};
use crate::store::Store;
use skyhaul_base::Instant;

/// Data in the SYN of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Early {
    /// Bytes in our SYN.
    pub sent: u32,
    /// Bytes of our SYN that the peer took or, at the passive end, bytes of the peer's SYN that we took.
    pub taken: u32,
    /// Our SYN was sent more than once.
    pub repeated: bool,
}

/// State of a connection that may send or take data in a SYN.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Opening {
    /// Most data in our first SYN, bytes.
    most: u32,
    /// As [`Early::sent`].
    sent: u32,
    /// As [`Early::taken`].
    pub(super) taken: u32,
    /// The window of the peer's SYN is scaled.
    scaled: bool,
    /// Data was taken: this end may send before its SYN-ACK is acknowledged.
    may_send: bool,
}

impl<S: Store> Connection<S> {
    /// Lets the first SYN carry the data that is written before it leaves, at most `most` bytes, and scales its window. Has no
    /// effect after the SYN has left.
    pub fn offer_early(&mut self, most: u32) {
        if self.state == State::SynSent && self.handshake.tries == 0 && most > 0 {
            self.opening.get_or_insert_default().most = most;
            self.receiver.announce_at_most(UNSCALED << self.our_scale);
        }
    }
    /// Takes the data of the peer's SYN, and lets answers leave before the handshake is complete; `scaled`: the peer is known
    /// to scale the window of its SYN. To be called before the SYN is handled, and only if the caller is sure that the SYN is
    /// neither forged nor a late duplicate.
    pub fn take_early(&mut self, scaled: bool) {
        if self.state == State::Listen {
            self.opening.get_or_insert_default().scaled = scaled;
        }
    }
    /// How much data the SYN of this connection carried, and how much of it was taken.
    #[must_use]
    pub fn early(&self) -> Early {
        let Some(o) = &self.opening else { return Early::default() };
        Early { sent: o.sent, taken: o.taken, repeated: o.sent > 0 && self.handshake.tries > 1 }
    }

    /// Payload of the SYN that is about to leave, bytes.
    pub(super) fn early_len(&mut self) -> u32 {
        let written = u32::try_from(self.sender.unacked()).unwrap_or(u32::MAX);
        match &mut self.opening {
            Some(o) if self.state == State::SynSent && self.handshake.tries == 1 => {
                o.sent = written.min(o.most);
                o.sent
            }
            _ => 0,
        }
    }
    /// Whether `ack` acknowledges our SYN, perhaps with data in it; records how much of the data.
    pub(super) fn acknowledges_syn(&mut self, ack: crate::Seq) -> bool {
        let taken = ack.diff(self.iss.add(1)) as u32;
        match &mut self.opening {
            Some(o) if taken <= o.sent => {
                o.taken = taken;
                true
            }
            _ => taken == 0,
        }
    }

    /// The window field of a SYN or SYN-ACK.
    pub(super) fn window_of_syn(&mut self) -> u32 {
        let scaled = self.state == State::SynSent && self.opening.is_some();
        let shift = if scaled { self.our_scale } else { 0 };
        (self.receiver.window() >> shift).min(UNSCALED) as u32
    }

    /// Takes the data of a SYN, if there is any and it may be taken, and starts the sending half.
    pub(super) fn on_early(&mut self, now: Instant, seg: &Segment, payload: &[u8]) {
        let Some(scaled) = self.opening.as_ref().map(|o| o.scaled).filter(|_| seg.len > 0) else { return };
        let data = Data { seq: 1, len: seg.len, fin: false, payload, mark: Mark::None, probe_id: None };
        if self.receiver.handle(now, &data).is_err() {
            return;
        }
        let taken = self.receiver.payload_received() as u32;
        self.opening = Some(alloc::boxed::Box::new(Opening { taken, may_send: true, ..Opening::default() }));
        let shift = if scaled { self.peer_scale } else { 0 };
        let peer = self.peer(u64::from(seg.window) << shift, None);
        self.begin(now, &peer);
    }
    /// Whether data may leave before the SYN-ACK is acknowledged.
    pub(super) fn is_early(&self) -> bool {
        self.state == State::SynReceived && self.opening.as_ref().is_some_and(|o| o.may_send)
    }
    /// Completes the handshake of a connection for which [`Self::is_early`] holds, if `ack` acknowledges its SYN-ACK, perhaps
    /// with data that followed; false if it does not.
    pub(super) fn confirm_early(&mut self, now: Instant, ack: Option<u64>) -> bool {
        if !ack.is_some_and(|ack| ack >= 1 && ack <= self.sender.max()) {
            return false;
        }
        self.state = if self.handshake.closed_by_user { State::FinWait1 } else { State::Established };
        self.handshake.syn_due = false;
        self.deadline = Instant::MAX;
        self.receiver.announce_at_most(UNSCALED << self.our_scale);
        if let Some(rtt) = self.handshake.rtt(now) {
            self.sender.measured_by_handshake(now, rtt);
        }
        self.listen_for_silence(now);
        self.emit(Event::Connected);
        true
    }
}

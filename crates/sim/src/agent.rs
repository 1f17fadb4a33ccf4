//! The two ends of a flow.

use crate::datagram::Datagrams;
use skyhaul_base::{Duration, Instant, Rng};
use skyhaul_cc::{Algorithm, CongestionControl};
use skyhaul_scenario::resolved::FlowGroup;
use skyhaul_tcp::{Connection, Counted, Established, Flags, Segment, Seq, config::ProbeNegotiation};

/// Who talks over a flow's path.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one per flow; boxing would cost a miss per event")]
pub(crate) enum Agent {
    /// Not started, or over.
    Silent,
    /// Two TCP end points.
    Tcp(Ends),
    /// A window of fixed size without loss recovery.
    FixedWindow(FixedWindow),
    /// Datagrams.
    Datagrams(Box<Datagrams>),
}

/// A connection by both its ends.
#[derive(Debug)]
pub(crate) struct Ends {
    /// Sends the data.
    pub(crate) sender: Connection<Counted>,
    /// Receives it.
    pub(crate) receiver: Connection<Counted>,
}

impl Ends {
    /// A connection as the flow's group describes it, with the controls of the sender and of its peer; with a
    /// handshake the SYN is about to leave.
    pub(crate) fn open(
        now: Instant,
        group: &FlowGroup,
        (control, peer): (Algorithm, Algorithm),
        rng: Rng,
        peer_rng: Rng,
    ) -> Self {
        let config = &group.endpoint;
        if group.handshake {
            let ends = Self {
                sender: Connection::connect(now, config, control, Seq(0), rng),
                receiver: Connection::listen(config, peer, Seq(0), peer_rng),
            };
            return ends.sink();
        }
        let policy = control.policy();
        let probes = config.probes == ProbeNegotiation::Negotiate && policy.probes;
        let sack = config.sack.unwrap_or_else(|| policy.recovery.uses_pipe());
        let end = |control, rng, rtt: Option<Duration>| {
            let agreed = Established { iss: Seq(0), peer_iss: Seq(0), peer: config, sack, rtt, probes };
            Connection::established(now, config, control, rng, &agreed)
        };
        Self { sender: end(control, rng, group.known_rtt), receiver: end(peer, peer_rng, None) }.sink()
    }

    /// The receiving application reads everything at once.
    fn sink(mut self) -> Self {
        self.receiver.discard_reads();
        self
    }

    /// The end that a segment travels to.
    #[inline]
    pub(crate) fn end(&mut self, backward: bool) -> &mut Connection<Counted> {
        if backward { &mut self.sender } else { &mut self.receiver }
    }

    /// When one of them wants to be called.
    #[inline]
    pub(crate) fn next_timeout(&self) -> Instant {
        self.sender.next_timeout().min(self.receiver.next_timeout())
    }
}

/// A calibration workload: always the same number of packets in the network, one acknowledgement per packet, no
/// reaction to anything. Its throughput is known in closed form, and it costs next to nothing, so that it
/// measures the engine. A lost packet is never replaced.
#[derive(Debug)]
pub(crate) struct FixedWindow {
    size: u32,
    window: u32,
    sent: u64,
    acked: u64,
}

impl FixedWindow {
    pub(crate) fn new(window: u32, size: u32) -> Self {
        Self { size, window, sent: 0, acked: 0 }
    }
    /// The segment with the next number, while the window admits it.
    #[inline]
    pub(crate) fn poll_transmit(&mut self) -> Option<Segment> {
        if self.sent - self.acked >= u64::from(self.window) {
            return None;
        }
        let seq = Seq((self.sent as u32).wrapping_mul(self.size));
        self.sent += 1;
        Some(Segment { seq, len: self.size, flags: Flags::ACK, ..Segment::default() })
    }
    /// The receiver's answer to a segment.
    #[inline]
    pub(crate) fn answer(&self, segment: &Segment) -> Segment {
        Segment { ack: segment.seq.add(segment.len), flags: Flags::ACK, ..Segment::default() }
    }
    /// An answer arrived.
    #[inline]
    pub(crate) fn acked(&mut self) {
        self.acked += 1;
    }
    /// Packets sent and packets acknowledged.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.sent, self.acked)
    }
}

//! The two ends of a flow.

use crate::flow::datagram::{Datagrams, Rated};
use crate::flow::ends::Ends;
use crate::split::leg::Leg;
use skyhaul_base::{Instant, Rng};
use skyhaul_cc::Algorithm;
use skyhaul_scenario::resolved::FlowGroup;
use skyhaul_tcp::{
    Config, Counted, Flags, HandshakeResult, Head, Sender, Seq, Sink, Source, Verdict, one_way,
};
use std::sync::Arc;

/// The protocol of a flow.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one per flow; boxing would cost a cache miss per event")]
pub(crate) enum Agent {
    /// No connection: not started, finished, between two pages, or a flow whose transfers have their own connections.
    Silent,
    /// Data in one direction, without a handshake.
    OneWay(OneWay),
    /// Two full TCP endpoints: the handshake is part of the run.
    Connections(Box<Ends>),
    /// One connection of a split path.
    Leg(Box<Leg>),
    /// A window of fixed size without loss recovery.
    FixedWindow(FixedWindow),
    /// Datagrams without rate control.
    Datagrams(Box<Datagrams>),
    /// Rate-controlled datagrams.
    Rated(Box<Rated>),
    /// The frames of a segment that gateways repair, by its index.
    Segment(u32),
}

/// Both ends of a flow whose handshake is not modelled.
#[derive(Debug)]
pub(crate) struct OneWay {
    /// Sends the data.
    pub(crate) source: Source<Counted>,
    /// Receives it.
    pub(crate) sink: Sink<Counted>,
}

impl OneWay {
    /// Opens a flow as its group describes it, ready to send.
    pub(crate) fn open(
        now: Instant,
        group: &FlowGroup,
        config: &Arc<Config>,
        control: Algorithm,
        rng: Rng,
    ) -> Self {
        let (source, sink) = one_way(now, config, control, rng, HandshakeResult { rtt: group.known_rtt });
        Self { source, sink }
    }
    /// The next deadline of an end.
    #[inline(always)]
    pub(crate) fn next_timeout(&self) -> Instant {
        self.source.next_timeout().min(self.sink.next_timeout())
    }
}

impl Agent {
    /// Reports a lost packet of `len` bytes, and whether an error was the cause, to the data sender.
    pub(crate) fn tell_loss(&mut self, seq: u32, len: u32, error: bool) {
        match self {
            Self::OneWay(ends) => ends.source.sender_mut().tell_loss(Seq(seq), len, error),
            Self::Connections(ends) => ends.sender.tell_loss(Seq(seq), len, error),
            Self::Leg(leg) => {
                if let Some(ends) = leg.tcp_mut() {
                    ends.sender.tell_loss(Seq(seq), len, error);
                }
            }
            Self::Silent | Self::FixedWindow(_) | Self::Datagrams(_) | Self::Rated(_) | Self::Segment(_) => {}
        }
    }

    /// The data sender's verdicts on the losses that it found since the last call.
    pub(crate) fn take_verdicts(&mut self) -> Vec<Verdict> {
        match self {
            Self::OneWay(ends) => ends.source.sender_mut().take_verdicts(),
            Self::Connections(ends) => ends.sender.take_verdicts(),
            Self::Leg(leg) => leg.tcp_mut().map_or_else(Vec::new, |ends| ends.sender.take_verdicts()),
            Self::Silent | Self::FixedWindow(_) | Self::Datagrams(_) | Self::Rated(_) | Self::Segment(_) => {
                Vec::new()
            }
        }
    }

    /// The data sender, if it is a TCP one.
    #[inline]
    pub(crate) fn sender(&self) -> Option<&Sender<Counted>> {
        match self {
            Self::OneWay(ends) => Some(ends.source.sender()),
            Self::Connections(ends) => Some(ends.sender.sender()),
            Self::Leg(leg) => Some(leg.tcp()?.sender.sender()),
            Self::Silent | Self::FixedWindow(_) | Self::Datagrams(_) | Self::Rated(_) | Self::Segment(_) => {
                None
            }
        }
    }

    /// The leg of a chain, if it is one.
    pub(crate) fn leg(&self) -> Option<&Leg> {
        match self {
            Self::Leg(leg) => Some(leg),
            _ => None,
        }
    }
    /// The same, for changes.
    pub(crate) fn leg_mut(&mut self) -> Option<&mut Leg> {
        match self {
            Self::Leg(leg) => Some(leg),
            _ => None,
        }
    }
    /// Both ends of the flow, if it is rate-controlled.
    pub(crate) fn rated(&self) -> Option<&Rated> {
        match self {
            Self::Rated(rated) => Some(rated),
            _ => None,
        }
    }
}

/// A calibration workload: a constant number of packets in the network, one acknowledgement per packet, no reaction
/// to anything. Its throughput has a closed form. Its ends cost almost nothing, so that a benchmark measures the
/// engine. Lost packets are never replaced.
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
    /// The next segment, while the window allows it.
    #[inline]
    pub(crate) fn poll_transmit(&mut self) -> Option<Head> {
        if self.sent - self.acked >= u64::from(self.window) {
            return None;
        }
        let seq = Seq((self.sent as u32).wrapping_mul(self.size));
        self.sent += 1;
        Some(Head::new(seq, Seq(0), self.size, 0, Flags::ACK))
    }
    /// The receiver's acknowledgement of a segment.
    #[inline]
    pub(crate) fn answer(&self, segment: &Head) -> Head {
        Head::new(Seq(0), segment.seq.add(segment.len), 0, 0, Flags::ACK)
    }
    /// An acknowledgement arrived.
    #[inline]
    pub(crate) fn acked(&mut self) {
        self.acked += 1;
    }
    /// Packets sent and packets acknowledged.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.sent, self.acked)
    }
}

/// The protocols used on the paths of a scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Agents {
    /// Those of the scenario.
    #[default]
    Scenario,
    /// For calibration: every flow keeps this many packets in the network and reacts to nothing, whatever endpoints
    /// the scenario has. The packet size is that of the scenario.
    FixedWindow(u32),
}

//! The two ends of a flow.

use crate::datagram::{Datagrams, Rated};
use crate::ends::Ends;
use crate::leg::Leg;
use skyhaul_base::{Instant, Rng};
use skyhaul_cc::Algorithm;
use skyhaul_scenario::resolved::FlowGroup;
use skyhaul_tcp::{Config, Counted, Flags, Head, Known, Sender, Seq, Sink, Source, Verdict, one_way};
use std::sync::Arc;

/// Who talks over a flow's path.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one per flow; boxing would cost a miss per event")]
pub(crate) enum Agent {
    /// Not started, or over.
    Silent,
    /// Data in one direction, without a handshake.
    OneWay(OneWay),
    /// Two whole TCP end points: the handshake is part of the run.
    Connections(Box<Ends>),
    /// One connection of a chain.
    Leg(Box<Leg>),
    /// A window of fixed size without loss recovery.
    FixedWindow(FixedWindow),
    /// Datagrams that nothing slows down.
    Datagrams(Box<Datagrams>),
    /// Datagrams that keep to a rate.
    Rated(Box<Rated>),
}

/// A flow whose handshake is not modelled, by both its ends.
#[derive(Debug)]
pub(crate) struct OneWay {
    /// Sends the data.
    pub(crate) source: Source<Counted>,
    /// Receives it.
    pub(crate) sink: Sink<Counted>,
}

impl OneWay {
    /// A flow as its group describes it, ready to send.
    pub(crate) fn open(
        now: Instant,
        group: &FlowGroup,
        config: &Arc<Config>,
        control: Algorithm,
        rng: Rng,
    ) -> Self {
        let (source, sink) = one_way(now, config, control, rng, Known { rtt: group.known_rtt });
        Self { source, sink }
    }
}

impl Agent {
    /// The sender of data learns that a packet with `len` bytes was lost, by an error or not.
    pub(crate) fn tell_loss(&mut self, seq: u32, len: u32, error: bool) {
        match self {
            Self::OneWay(ends) => ends.source.sender_mut().tell_loss(Seq(seq), len, error),
            Self::Connections(ends) => ends.sender.tell_loss(Seq(seq), len, error),
            Self::Leg(leg) => leg.ends.sender.tell_loss(Seq(seq), len, error),
            Self::Silent | Self::FixedWindow(_) | Self::Datagrams(_) | Self::Rated(_) => {}
        }
    }

    /// What the sender of data made of the losses that it found since the last call.
    pub(crate) fn take_verdicts(&mut self) -> Vec<Verdict> {
        match self {
            Self::OneWay(ends) => ends.source.sender_mut().take_verdicts(),
            Self::Connections(ends) => ends.sender.take_verdicts(),
            Self::Leg(leg) => leg.ends.sender.take_verdicts(),
            Self::Silent | Self::FixedWindow(_) | Self::Datagrams(_) | Self::Rated(_) => Vec::new(),
        }
    }

    /// The sender of data, if there is a TCP one.
    #[inline]
    pub(crate) fn sender(&self) -> Option<&Sender<Counted>> {
        match self {
            Self::OneWay(ends) => Some(ends.source.sender()),
            Self::Connections(ends) => Some(ends.sender.sender()),
            Self::Leg(leg) => Some(leg.ends.sender.sender()).filter(|_| leg.rated.is_none()),
            Self::Silent | Self::FixedWindow(_) | Self::Datagrams(_) | Self::Rated(_) => None,
        }
    }
}

impl Agent {
    /// The ends of a flow that keeps to a rate, if it is one.
    pub(crate) fn rated(&self) -> Option<&Rated> {
        match self {
            Self::Rated(rated) => Some(rated),
            _ => None,
        }
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
    pub(crate) fn poll_transmit(&mut self) -> Option<Head> {
        if self.sent - self.acked >= u64::from(self.window) {
            return None;
        }
        let seq = Seq((self.sent as u32).wrapping_mul(self.size));
        self.sent += 1;
        Some(Head::new(seq, Seq(0), self.size, 0, Flags::ACK))
    }
    /// The receiver's answer to a segment.
    #[inline]
    pub(crate) fn answer(&self, segment: &Head) -> Head {
        Head::new(Seq(0), segment.seq.add(segment.len), 0, 0, Flags::ACK)
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

/// Who talks over the paths of a scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Agents {
    /// What the scenario says.
    #[default]
    Scenario,
    /// For calibration: every flow keeps this many packets in the network and reacts to nothing, whatever the
    /// scenario says of its end points. Packets have the scenario's size.
    FixedWindow(u32),
}

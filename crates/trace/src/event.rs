//! The vocabulary of events.

use skyhaul_base::Duration;

/// The purpose of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Carries data of the stream, or opens or closes it.
    Data = 0,
    /// A probe: dummy or NIL segment.
    Probe = 1,
    /// An acknowledgement without data, answers to probes included.
    Ack = 2,
}

impl Class {
    /// Number of classes.
    pub const COUNT: usize = 3;
    /// All classes, in the order of their index (`class as usize`).
    pub const ALL: [Self; Self::COUNT] = [Self::Data, Self::Probe, Self::Ack];

    /// Name used in recorded results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Probe => "probe",
            Self::Ack => "ack",
        }
    }
}

/// The true cause of a loss, known to the network only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LossCause {
    /// Corrupted on the channel.
    Error = 0,
    /// Refused by a full queue.
    Full = 1,
    /// In flight when the link went down.
    LinkDown = 2,
    /// Evicted from a queue by a packet of higher priority.
    PushedOut = 3,
    /// Dropped by active queue management.
    Aqm = 4,
    /// Given up by the link's ARQ after its last retransmission.
    ArqGaveUp = 5,
    /// An acknowledgement that a later one made redundant.
    Filtered = 6,
}

impl LossCause {
    /// Number of causes.
    pub const COUNT: usize = 7;
    /// All causes, in the order of their index (`cause as usize`).
    pub const ALL: [Self; Self::COUNT] = [
        Self::Error,
        Self::Full,
        Self::LinkDown,
        Self::PushedOut,
        Self::Aqm,
        Self::ArqGaveUp,
        Self::Filtered,
    ];

    /// Name used in recorded results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Full => "full",
            Self::LinkDown => "link-down",
            Self::PushedOut => "pushed-out",
            Self::Aqm => "aqm",
            Self::ArqGaveUp => "arq-gave-up",
            Self::Filtered => "filtered",
        }
    }
}

/// The property of a link that changes during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkChange {
    /// The smallest propagation delay, in nanoseconds; for a trace the current one.
    Delay = 0,
    /// The error model; the value is its long-run loss of packets of 1000 bytes, as the bits of a double.
    Error = 1,
    /// The capacity of the queue in bytes.
    LimitBytes = 2,
    /// The capacity of the queue in packets.
    LimitPackets = 3,
    /// The rate of the transmitter, in bit/s; for a trace the mean.
    Rate = 4,
    /// Up is 1, down is 0.
    Up = 5,
    /// The loss by rain or shadowing; the value is that of packets of 188 bytes, as the bits of a double.
    Fade = 6,
    /// Its satellite is visible, 1, or not, 0.
    Visible = 7,
}

impl LinkChange {
    /// Name used in recorded results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Delay => "delay",
            Self::Error => "error",
            Self::LimitBytes | Self::LimitPackets => "queue.limit",
            Self::Rate => "rate",
            Self::Up => "up",
            Self::Fade => "fade",
            Self::Visible => "visible",
        }
    }
}

/// A packet in an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Packet {
    /// Its purpose.
    pub class: Class,
    /// Sequence number of its first byte.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Bytes on the link, headers included.
    pub size: u32,
    /// Low priority: dropped first at a congested router.
    pub low_priority: bool,
}

/// A video frame in an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    /// Its number in the film, from 0.
    pub number: u64,
    /// Its type: 0 for I, 1 for P (predicted from earlier frames), 2 for B (from both sides).
    pub kind: u8,
    /// Its outcome: 0 passed to the transport, 1 skipped because the buffer was full, 2 lost while the coder changed
    /// its rate.
    pub status: u8,
    /// Payload passed to the transport, bytes.
    pub bytes: u64,
    /// The rate that the coder is set to, bit/s.
    pub target: f64,
}

/// Something that happened. Flows and links are numbered as in the run's result; `flow` comes first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// An acknowledgement reached the data sender.
    AckArrived {
        /// The flow.
        flow: u32,
        /// The acknowledgement number.
        ack: u32,
    },
    /// A packet reached its destination.
    Delivered {
        /// The flow.
        flow: u32,
        /// The packet.
        packet: Packet,
    },
    /// A packet reached its destination after its connection had been replaced or had ended.
    Discarded {
        /// The flow.
        flow: u32,
        /// The packet.
        packet: Packet,
    },
    /// A link lost a packet.
    Dropped {
        /// The flow.
        flow: u32,
        /// The directed link.
        link: u32,
        /// Why.
        cause: LossCause,
        /// The packet.
        packet: Packet,
    },
    /// A link delivers a packet once more.
    Duplicated {
        /// The flow.
        flow: u32,
        /// The directed link.
        link: u32,
        /// The packet.
        packet: Packet,
    },
    /// A flow finished or was stopped.
    FlowFinished {
        /// The flow.
        flow: u32,
    },
    /// A flow begins.
    FlowStarted {
        /// The flow.
        flow: u32,
    },
    /// An application produced a frame of video.
    Frame {
        /// The flow.
        flow: u32,
        /// The frame.
        frame: Frame,
    },
    /// The sender gave up on its peer.
    GaveUp {
        /// The flow.
        flow: u32,
    },
    /// A directed link was handed over to another satellite.
    Handover {
        /// The directed link.
        link: u32,
        /// The previous satellite; `None` if none was visible.
        from: Option<u32>,
        /// The new satellite; `None` if none is visible.
        to: Option<u32>,
        /// The previous propagation delay; zero without a satellite.
        before: Duration,
        /// The new propagation delay; zero without a satellite.
        after: Duration,
    },
    /// More in-order data of a byte stream arrived, for an application that asks for this event.
    InOrder {
        /// The flow.
        flow: u32,
        /// Total bytes.
        bytes: u64,
    },
    /// An event of the scenario changed a directed link.
    LinkChanged {
        /// The directed link.
        link: u32,
        /// What changed.
        what: LinkChange,
        /// The new value, in the unit of the property; `u64::MAX` for no limit.
        value: u64,
    },
    /// A packet that the queue of a link has ECN-marked leaves the link.
    Marked {
        /// The flow.
        flow: u32,
        /// The directed link.
        link: u32,
        /// The packet.
        packet: Packet,
    },
    /// All of a page was acknowledged.
    PageDone {
        /// The flow.
        flow: u32,
        /// Number of the page within the flow, from 0.
        page: u32,
        /// From its first packet to its last acknowledgement.
        took: Duration,
    },
    /// A probe was answered.
    ProbeAnswered {
        /// The flow.
        flow: u32,
    },
    /// A probe left.
    ProbeSent {
        /// The flow.
        flow: u32,
    },
    /// Queue length of a link (sampled).
    Queue {
        /// The directed link.
        link: u32,
        /// Queued packets, without the one in transmission.
        packets: u32,
    },
    /// Loss recovery by duplicate or selective acknowledgements began.
    RecoveryEntered {
        /// The flow.
        flow: u32,
    },
    /// Loss recovery is over.
    RecoveryLeft {
        /// The flow.
        flow: u32,
    },
    /// An end point sent a packet.
    Sent {
        /// The flow.
        flow: u32,
        /// The packet.
        packet: Packet,
    },
    /// The retransmission timer expired.
    Timeout {
        /// The flow.
        flow: u32,
    },
    /// The congestion window or the slow start threshold changed; in segments.
    Window {
        /// The flow.
        flow: u32,
        /// Congestion window.
        cwnd: f64,
        /// Slow start threshold, possibly infinite.
        ssthresh: f64,
    },
}

impl Event {
    /// The event as a sequence of integers that identifies it fully: a number for its kind, then its fields. Recorded
    /// digests depend on these numbers: append kinds, never renumber.
    pub fn words(&self, mut put: impl FnMut(u64)) {
        let packet = |p: &Packet| {
            [
                u64::from(p.seq) << 32 | u64::from(p.ack),
                u64::from(p.size) << 32 | (p.class as u64) << 1 | u64::from(p.low_priority),
            ]
        };
        let head = |kind: u64, flow: u32| kind << 32 | u64::from(flow);
        match self {
            Self::AckArrived { flow, ack } => {
                put(head(1, *flow));
                put((*ack).into());
            }
            Self::Delivered { flow, packet: p } => {
                put(head(2, *flow));
                packet(p).into_iter().for_each(put);
            }
            Self::Discarded { flow, packet: p } => {
                put(head(3, *flow));
                packet(p).into_iter().for_each(put);
            }
            Self::Dropped { flow, link, cause, packet: p } => {
                put(head(4, *flow));
                put(u64::from(*link) << 32 | *cause as u64);
                packet(p).into_iter().for_each(put);
            }
            Self::FlowFinished { flow } => put(head(5, *flow)),
            Self::FlowStarted { flow } => put(head(6, *flow)),
            Self::PageDone { flow, page, took } => {
                put(head(7, *flow));
                put((*page).into());
                put(took.as_nanos());
            }
            Self::ProbeAnswered { flow } => put(head(8, *flow)),
            Self::ProbeSent { flow } => put(head(9, *flow)),
            Self::Queue { link, packets } => {
                put(head(10, *link));
                put((*packets).into());
            }
            Self::RecoveryEntered { flow } => put(head(11, *flow)),
            Self::RecoveryLeft { flow } => put(head(12, *flow)),
            Self::Sent { flow, packet: p } => {
                put(head(13, *flow));
                packet(p).into_iter().for_each(put);
            }
            Self::Timeout { flow } => put(head(14, *flow)),
            Self::Window { flow, cwnd, ssthresh } => {
                put(head(15, *flow));
                put(cwnd.to_bits());
                put(ssthresh.to_bits());
            }
            Self::Frame { flow, frame: f } => {
                put(head(17, *flow));
                put(f.number);
                put(u64::from(f.kind) << 8 | u64::from(f.status));
                put(f.bytes);
                put(f.target.to_bits());
            }
            Self::InOrder { flow, bytes } => {
                put(head(18, *flow));
                put(*bytes);
            }
            Self::GaveUp { flow } => put(head(19, *flow)),
            Self::Handover { link, from, to, before, after } => {
                let satellite = |s: &Option<u32>| u64::from(s.unwrap_or(u32::MAX));
                put(head(20, *link));
                put(satellite(from) << 32 | satellite(to));
                put(before.as_nanos());
                put(after.as_nanos());
            }
            Self::Marked { flow, link, packet: p } => {
                put(head(21, *flow));
                put((*link).into());
                packet(p).into_iter().for_each(put);
            }
            Self::Duplicated { flow, link, packet: p } => {
                put(head(22, *flow));
                put((*link).into());
                packet(p).into_iter().for_each(put);
            }
            Self::LinkChanged { link, what, value } => {
                put(head(16, *link));
                put(*what as u64);
                put(*value);
            }
        }
    }
}

//! The vocabulary of events.

use skyhaul_base::Duration;

/// What a packet is for.
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
    /// How many classes there are.
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
    /// Repeated by the link as often as it may, in vain.
    ArqGaveUp = 5,
    /// An acknowledgement that a later one made redundant.
    Filtered = 6,
}

impl LossCause {
    /// How many causes there are.
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

/// What of a link changes during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkChange {
    /// The smallest propagation delay, in nanoseconds; for a trace that of the present.
    Delay = 0,
    /// The error model; the value is the share of packets of 1000 bytes that it loses in the long run, as the bits of a double.
    Error = 1,
    /// The capacity of the queue in bytes.
    LimitBytes = 2,
    /// The capacity of the queue in packets.
    LimitPackets = 3,
    /// The rate of the transmitter, in bit/s; for a trace the mean.
    Rate = 4,
    /// Up is 1, down is 0.
    Up = 5,
    /// What rain or shadowing loses; the value is the share of packets of 188 bytes, as the bits of a double.
    Fade = 6,
    /// Its satellite is in sight, 1, or not, 0.
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

/// What an event says about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Packet {
    /// What it is for.
    pub class: Class,
    /// Sequence number of its first byte.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Bytes on the link, headers included.
    pub size: u32,
    /// To be discarded first at a congested router.
    pub low_priority: bool,
}

/// What an event says about a frame of video.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    /// Its number in the film, from 0.
    pub number: u64,
    /// What it is coded from: 0 by itself (I), 1 from what is before it (P), 2 from both sides (B).
    pub kind: u8,
    /// What became of it: 0 it was given to the transport, 1 it was left out since the buffer was full, 2 it was lost while
    /// the coder changed its rate.
    pub fate: u8,
    /// Payload that the transport was given, bytes.
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
    /// A packet reached the end point that it was sent to.
    Delivered {
        /// The flow.
        flow: u32,
        /// The packet.
        packet: Packet,
    },
    /// A packet reached its end point after its connection had been replaced or had ended.
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
    /// A flow has done all it had to do, or was stopped.
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
        /// What is known of it.
        frame: Frame,
    },
    /// The sender gave up on its peer.
    GaveUp {
        /// The flow.
        flow: u32,
    },
    /// A directed link goes on over another satellite.
    Handover {
        /// The directed link.
        link: u32,
        /// The satellite until then; `None` if none was in sight.
        from: Option<u32>,
        /// The satellite from then on; `None` if none is in sight.
        to: Option<u32>,
        /// The propagation delay until then; zero without a satellite.
        before: Duration,
        /// The propagation delay from then on; zero without a satellite.
        after: Duration,
    },
    /// More of a byte stream is there in order, of a flow whose application asks.
    InOrder {
        /// The flow.
        flow: u32,
        /// Bytes in all.
        bytes: u64,
    },
    /// A directed link changed as the scenario says.
    LinkChanged {
        /// The directed link.
        link: u32,
        /// What changed.
        what: LinkChange,
        /// What it is from now on, in the unit of what changed; `u64::MAX` for no limit.
        value: u64,
    },
    /// A packet that the queue of a link has marked (ECN) leaves that link.
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
    /// How many packets wait on a link (sampled).
    Queue {
        /// The directed link.
        link: u32,
        /// Packets that wait; the one being transmitted does not.
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
    /// A packet left its end point.
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
    /// The event as a sequence of integers, from which it could be rebuilt: a number for its kind, then its
    /// fields. Recorded digests depend on these numbers: append kinds, never renumber.
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
                put(u64::from(f.kind) << 8 | u64::from(f.fate));
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
            Self::LinkChanged { link, what, value } => {
                put(head(16, *link));
                put(*what as u64);
                put(*value);
            }
        }
    }
}

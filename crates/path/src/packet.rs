//! Properties of a packet visible to a link, and reasons for a loss.

/// The properties of a packet that queues and error models use.
///
/// Links are generic over the packet: a small handle in the simulator, a buffer in the emulator. New properties
/// become methods with a default, so that existing packets still compile. The default packet is a placeholder for
/// the free places of queues.
pub trait PacketView: Default {
    /// Size on this link in bytes, headers included.
    fn size(&self) -> u32;
    /// Whether it is of the class that priority queues discard first [Peach §III]; RFC 8622 on a real network.
    fn low_priority(&self) -> bool;
    /// A number common to all packets of a flow.
    fn flow(&self) -> u32;
    /// Its DSCP (RFC 2474), for queues with a class for some of them: LE (RFC 8622) for low priority, otherwise 0.
    fn dscp(&self) -> u8 {
        self.low_priority().into()
    }
    /// Counter class of the packet: a number below [`KINDS`], odd for low priority.
    #[inline]
    fn kind(&self) -> u8 {
        self.low_priority().into()
    }
    /// Whether the packet is a pure acknowledgement, which a channel may exempt from losses
    /// ([`spares_acks`](crate::LinkConfig::spares_acks)).
    fn is_pure_ack(&self) -> bool {
        false
    }
    /// Whether its transport is ECN-capable: ECT(0), ECT(1) or CE in the header (RFC 3168 §5).
    fn is_ect(&self) -> bool {
        false
    }
    /// Whether it belongs to a scalable control, for queues that keep these apart: ECT(1) or CE in the header (RFC 9331 §5.1).
    fn is_l4s(&self) -> bool {
        false
    }
    /// The queue signals congestion: sets CE (RFC 3168 §5). Called only for packets with [`Self::is_ect`].
    fn mark_ce(&mut self) {}
    /// Its content if it is a pure TCP acknowledgement, for links that thin these; `None` for all others.
    fn ack(&self) -> Option<Acknowledgement> {
        None
    }
}

/// The content of a pure TCP acknowledgement: no payload, none of SYN, FIN, RST and URG.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// Number of the flow's connection, if it has several in succession: their sequence numbers cannot be compared.
    pub connection: u16,
    /// The acknowledgement number, which wraps.
    pub number: u32,
    /// The flags ECE and CWR as in the TCP header (0x40 and 0x80), and AE (0x20): an echo, or the counter of AccECN.
    pub ecn: u8,
    /// The sender's timestamp, which wraps.
    pub stamp: Option<u32>,
    /// The acknowledgement has SACK blocks, or another option that a link does not read.
    pub tells_more: bool,
}

impl Acknowledgement {
    /// Whether it acknowledges more than `other` of the same connection: modulo 2^32 (RFC 9293 §3.4).
    #[must_use]
    pub const fn is_beyond(&self, other: &Self) -> bool {
        self.number.wrapping_sub(other.number) as i32 > 0
    }
}

/// Number of packet kinds that a link counts separately; see [`PacketView::kind`].
pub const KINDS: usize = 8;

/// Why a link did not deliver a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// Corrupted on the channel; the packet had used queue space and transmission time.
    Error,
    /// No room: refused on arrival by a full queue, by a full part of it or by a threshold of low priority; or, with FQ-CoDel and CAKE,
    /// dropped from the longest queue of a flow when the limit is exceeded.
    Full,
    /// In flight when the link went down.
    LinkDown,
    /// Evicted from the queue by an arriving packet of higher priority.
    PushedOut,
    /// Dropped by active queue management before the queue was full.
    Aqm,
    /// Given up by ARQ after its last retransmission.
    ArqGaveUp,
    /// An acknowledgement that a later one made redundant.
    Filtered,
}

impl DropReason {
    /// How many reasons there are.
    pub const COUNT: usize = 7;
    /// All reasons, in the order of their index (`reason as usize`).
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

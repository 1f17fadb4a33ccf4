//! What a link may know about a packet, and why a packet can be lost.

/// The part of a packet that queues and error models look at.
///
/// Links are generic over the packet: a 16-byte handle in the simulator, a buffer in the emulator. Further
/// facts become methods with a default, so that existing packets keep compiling. The default packet is none: it fills
/// the free places of queues.
pub trait PacketView: Default {
    /// Size on this link in bytes, headers included.
    fn size(&self) -> u32;
    /// True for the class that priority queues discard first [Peach §III]; RFC 8622 on the wire.
    fn low_priority(&self) -> bool;
    /// A number that is the same for all packets of a flow.
    fn flow(&self) -> u32;
    /// What the packet is counted as: a number below [`KINDS`], odd if the packet is of low priority.
    #[inline]
    fn kind(&self) -> u8 {
        self.low_priority().into()
    }
    /// True if the channel never corrupts this packet and its error model does not see it: for scenarios that
    /// spare acknowledgements.
    fn spared(&self) -> bool {
        false
    }
    /// True if its transport reacts to marks: ECT(0), ECT(1) or CE in the header (RFC 3168 §5).
    fn is_ect(&self) -> bool {
        false
    }
    /// The queue has seen congestion: sets CE (RFC 3168 §5). Called for packets with [`Self::is_ect`] only.
    fn mark_ce(&mut self) {}
    /// What it says if it is a pure acknowledgement of TCP, for links that thin them; `None` for all others.
    fn ack(&self) -> Option<Acknowledgement> {
        None
    }
}

/// What a pure acknowledgement of TCP says: no payload, none of SYN, FIN, RST and URG.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// Which of the flow's connections it belongs to, where one follows the other: their numbers do not compare.
    pub connection: u16,
    /// The acknowledgement number, which wraps.
    pub number: u32,
    /// The flags ECE and CWR as in the header of TCP (0x40 and 0x80).
    pub ecn: u8,
    /// The sender's timestamp, which wraps.
    pub stamp: Option<u32>,
    /// It has SACK blocks, or another option that a link does not read.
    pub tells_more: bool,
}

impl Acknowledgement {
    /// True if it acknowledges more than `other`, which belongs to the same connection: modulo 2^32 (RFC 9293 §3.4).
    #[must_use]
    pub const fn is_beyond(&self, other: &Self) -> bool {
        self.number.wrapping_sub(other.number) as i32 > 0
    }
}

/// How many kinds of packets a link counts separately; see [`PacketView::kind`].
pub const KINDS: usize = 8;

/// Why a link did not deliver a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// Corrupted on the channel; the packet had consumed queue space and transmission time.
    Error,
    /// Refused on arrival because the queue had no room for it.
    Full,
    /// In flight when the link went down.
    LinkDown,
    /// Evicted from the queue by an arriving packet of higher priority.
    PushedOut,
    /// Dropped by active queue management before the queue was full.
    Aqm,
    /// The link repeated it as often as it may, in vain.
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

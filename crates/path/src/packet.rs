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
    /// Its ends take part in explicit congestion notification: a queue may mark it where it would drop others (RFC 3168 §5).
    fn is_ect(&self) -> bool {
        false
    }
    /// Congestion experienced. Without effect on a packet that may not be marked.
    fn mark_ce(&mut self) {}
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
}

impl DropReason {
    /// How many reasons there are.
    pub const COUNT: usize = 4;
    /// All reasons, in the order of their index (`reason as usize`).
    pub const ALL: [Self; Self::COUNT] = [Self::Error, Self::Full, Self::LinkDown, Self::PushedOut];

    /// Name used in recorded results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Full => "full",
            Self::LinkDown => "link-down",
            Self::PushedOut => "pushed-out",
        }
    }
}

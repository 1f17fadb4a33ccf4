//! Encoding errors.

use core::fmt;

/// Why a segment cannot be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// The buffer is too small.
    Buffer,
    /// The addresses are of different families.
    Families,
    /// The agreed [`Profile`](crate::Profile) cannot express the mark of a probe or of an answer: the profile is `Off`, or it is
    /// `Option` and the mark has no number, or `Paper` and the mark has one. Under every profile: a probe without payload, an answer
    /// with payload, a mark on a segment without ACK or with SYN, FIN or RST, a number without a mark. Also a SYN that offers
    /// probes under a profile that does not negotiate them.
    Mark,
    /// The options do not fit, even without SACK blocks.
    Options,
    /// The given payload does not have the length of the segment.
    PayloadLength,
    /// Longer than the maximum IP packet.
    TooLong,
    /// The window does not fit into 16 bits under the agreed scale.
    Window,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Buffer => "the buffer is too small for the packet",
            Self::Families => "one address is of IPv4, the other of IPv6",
            Self::Mark => "the agreed marks of probes cannot express this segment",
            Self::Options => "the options do not fit into the header",
            Self::PayloadLength => "the payload is not as long as the segment says",
            Self::TooLong => "the packet would be longer than 65535 bytes",
            Self::Window => "the window does not fit into 16 bits under the agreed scale",
        })
    }
}

impl core::error::Error for EncodeError {}

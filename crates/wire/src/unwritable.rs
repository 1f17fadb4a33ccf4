//! Encoding errors.

use core::fmt;

/// Why a segment cannot be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// The buffer is too small.
    Buffer,
    /// The addresses are of different families.
    Families,
    /// The profile cannot express the mark: no probes agreed, a probe without payload, an answer with payload, a mark without
    /// ACK or on SYN, FIN or RST, an option mark without number, bits with one, or a number without a mark.
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

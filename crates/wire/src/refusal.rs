//! Why bytes are refused.

use core::fmt;

/// Why bytes are not a valid packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// Neither version 4 nor 6.
    IpVersion,
    /// Shorter than the IP header, or than its length field.
    IpTruncated,
    /// The length of the IP header or of the packet is contradictory.
    IpLength,
    /// The checksum of the IPv4 header is wrong.
    IpChecksum,
    /// A fragment: only whole segments are accepted.
    Fragment,
    /// A truncated IPv6 extension header, an option that extends beyond its header, too many headers, or a hop-by-hop options
    /// header behind another one.
    ExtensionHeader,
    /// The packet was source-routed, or asks to be (RFC 7126 §4.3 and 4.4, RFC 5095).
    SourceRoute,
    /// An unknown option that requires the packet to be discarded (RFC 8200 §4.2).
    IpOption,
    /// Neither TCP nor UDP nor ICMP.
    Protocol,
    /// Shorter than a TCP header.
    TcpTruncated,
    /// The TCP header would be shorter than 20 bytes, or longer than the packet.
    DataOffset,
    /// The checksum of the TCP segment is wrong.
    TcpChecksum,
    /// A TCP option that extends beyond the header, or is shorter than its own header.
    OptionCut,
    /// A known TCP option with an invalid length.
    OptionLength,
    /// The length of the UDP datagram contradicts that of the packet.
    UdpLength,
    /// The checksum of the UDP datagram is wrong, or missing over IPv6.
    UdpChecksum,
    /// Shorter than an ICMP header.
    IcmpTruncated,
    /// The checksum of the ICMP message is wrong.
    IcmpChecksum,
}

impl Refusal {
    /// Number of reasons.
    pub const COUNT: usize = 18;
    /// All reasons, in the order of their index (`reason as usize`).
    pub const ALL: [Self; Self::COUNT] = [
        Self::IpVersion,
        Self::IpTruncated,
        Self::IpLength,
        Self::IpChecksum,
        Self::Fragment,
        Self::ExtensionHeader,
        Self::SourceRoute,
        Self::IpOption,
        Self::Protocol,
        Self::TcpTruncated,
        Self::DataOffset,
        Self::TcpChecksum,
        Self::OptionCut,
        Self::OptionLength,
        Self::UdpLength,
        Self::UdpChecksum,
        Self::IcmpTruncated,
        Self::IcmpChecksum,
    ];

    /// Name used in counts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::IpVersion => "ip-version",
            Self::IpTruncated => "ip-truncated",
            Self::IpLength => "ip-length",
            Self::IpChecksum => "ip-checksum",
            Self::Fragment => "fragment",
            Self::ExtensionHeader => "extension-header",
            Self::SourceRoute => "source-route",
            Self::IpOption => "ip-option",
            Self::Protocol => "protocol",
            Self::TcpTruncated => "tcp-truncated",
            Self::DataOffset => "data-offset",
            Self::TcpChecksum => "tcp-checksum",
            Self::OptionCut => "option-cut",
            Self::OptionLength => "option-length",
            Self::UdpLength => "udp-length",
            Self::UdpChecksum => "udp-checksum",
            Self::IcmpTruncated => "icmp-truncated",
            Self::IcmpChecksum => "icmp-checksum",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl core::error::Error for Refusal {}

/// Counters by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals([u64; Refusal::COUNT]);

#[expect(clippy::indexing_slicing, reason = "there are as many as reasons")]
impl Refusals {
    /// Counts a refusal and passes the result on.
    pub fn count<T>(&mut self, outcome: Result<T, Refusal>) -> Option<T> {
        outcome.map_err(|why| self.0[why as usize] += 1).ok()
    }
    /// Count for this reason.
    #[must_use]
    pub const fn of(&self, why: Refusal) -> u64 {
        self.0[why as usize]
    }
    /// Total count.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

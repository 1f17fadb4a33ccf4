//! A whole packet, parsed in place.

use crate::Refusal;
use crate::icmp::{self, Icmp};
use crate::ip::{self, Header};
use crate::tcp::{self, Tcp};
use crate::udp::{self, Udp};

/// The payload of an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport<'a> {
    /// A TCP segment.
    Tcp(Tcp<'a>),
    /// A UDP datagram.
    Udp(Udp<'a>),
    /// An ICMP message.
    Icmp(Icmp<'a>),
}

/// A well-formed packet with correct checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The IP header.
    pub ip: Header,
    /// Its payload.
    pub transport: Transport<'a>,
}

impl<'a> Packet<'a> {
    /// Parses a packet from the first byte of its IP header.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Refusal> {
        Self::parse_with(bytes, false)
    }

    /// The same for a packet whose TCP checksum was verified by others, or was left to a device that the packet did not cross.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn parse_verified(bytes: &'a [u8]) -> Result<Self, Refusal> {
        Self::parse_with(bytes, true)
    }

    fn parse_with(bytes: &'a [u8], verified: bool) -> Result<Self, Refusal> {
        let (ip, payload) = ip::parse(bytes)?;
        let transport = match ip.protocol {
            tcp::PROTOCOL => Transport::Tcp(Tcp::parse(&ip, payload, verified)?),
            udp::PROTOCOL => Transport::Udp(Udp::parse(&ip, payload)?),
            icmp::PROTOCOL_V4 if ip.src.is_ipv4() => Transport::Icmp(Icmp::parse(&ip, payload)?),
            icmp::PROTOCOL_V6 if ip.src.is_ipv6() => Transport::Icmp(Icmp::parse(&ip, payload)?),
            _ => return Err(Refusal::Protocol),
        };
        Ok(Self { ip, transport })
    }
}

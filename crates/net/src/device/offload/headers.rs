//! The headers of a packet that may be merged with others.

use skyhaul_tcp::Flags;
use skyhaul_wire::{ip, tcp};

/// Offset of the flags in a TCP header, bytes.
pub(super) const FLAGS: usize = 13;

/// Whether a packet has an IPv6 header.
pub(super) fn is_v6(packet: &[u8]) -> bool {
    packet.first().is_some_and(|b| b >> 4 == 6)
}

#[derive(Clone, Copy)]
enum Network<'a> {
    V4(&'a [u8; ip::V4_HEADER]),
    V6(&'a [u8; ip::V6_HEADER]),
}

/// A packet that may be merged with others: TCP with payload, ACK and no other flag but PSH.
#[derive(Clone, Copy)]
pub(super) struct Headers<'a> {
    network: Network<'a>,
    tcp: &'a [u8; tcp::HEADER],
    options: &'a [u8],
    /// What follows the headers.
    pub(super) payload: &'a [u8],
}

impl<'a> Headers<'a> {
    /// The parts of a packet; `None` if it must stay separate.
    pub(super) fn of(packet: &'a [u8]) -> Option<Self> {
        let (network, protocol, rest) = if is_v6(packet) {
            let (ip, rest) = packet.split_first_chunk()?;
            (Network::V6(ip), ip[6], rest)
        } else {
            // Our IPv4 headers have no options.
            let (ip, rest) = packet.split_first_chunk()?;
            (Network::V4(ip), ip[9], rest)
        };
        let (tcp, rest) = rest.split_first_chunk::<{ tcp::HEADER }>()?;
        let options = (usize::from(tcp[12] >> 4) * 4).checked_sub(tcp::HEADER)?;
        let (options, payload) = rest.split_at_checked(options)?;
        let plain = protocol == tcp::PROTOCOL && Flags::from_bits(tcp[FLAGS]).only_acknowledges();
        (plain && !payload.is_empty()).then_some(Self { network, tcp, options, payload })
    }

    /// Length of the headers, bytes.
    pub(super) fn len(&self) -> usize {
        let ip = match self.network {
            Network::V4(ip) => ip.len(),
            Network::V6(ip) => ip.len(),
        };
        ip + self.tcp.len() + self.options.len()
    }
    /// Whether PSH is set, which ends the super-packet.
    pub(super) fn pushes(&self) -> bool {
        Flags::from_bits(self.tcp[FLAGS]).has(Flags::PSH)
    }

    /// Whether this is the next packet after `other`, from which it differs only in fields that are individual to each packet of
    /// a super-packet: lengths, identification, sequence number, PSH, checksums.
    pub(super) fn follows(&self, other: &Self) -> bool {
        let network = match (self.network, other.network) {
            (Network::V4(a), Network::V4(b)) => {
                a[..2] == b[..2] && a[6..10] == b[6..10] && a[12..] == b[12..]
            }
            (Network::V6(a), Network::V6(b)) => a[..4] == b[..4] && a[6..] == b[6..],
            _ => false,
        };
        let (a, b) = (self.tcp, other.tcp);
        network
            && self.seq() == other.seq().wrapping_add(other.payload.len() as u32)
            && a[..4] == b[..4]
            && a[8..FLAGS] == b[8..FLAGS]
            && a[14..16] == b[14..16]
            && a[18..] == b[18..]
            && self.options == other.options
    }
    fn seq(&self) -> u32 {
        let [_, _, _, _, a, b, c, d, ..] = *self.tcp;
        u32::from_be_bytes([a, b, c, d])
    }
}

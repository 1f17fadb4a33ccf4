//! IP packets as a script sends and sees them. Reading and writing is left to `etherparse`, which the code under test does
//! not use.

use super::option::{self, Opt};
use etherparse::{IpNumber, Ipv4Header, Ipv6FlowLabel, Ipv6Header, TcpHeader};
use std::net::{IpAddr, SocketAddr};

/// The flags that a script can name, with their bits: those of the flags byte, AE (`A`) and the three reserved bits above it
/// (`Z`, `Y`, `X`).
pub const FLAGS: [(char, u16); 12] = [
    ('S', 0x02),
    ('F', 0x01),
    ('R', 0x04),
    ('P', 0x08),
    ('U', 0x20),
    ('E', 0x40),
    ('C', 0x80),
    ('A', 0x100),
    ('Z', 0x200),
    ('Y', 0x400),
    ('X', 0x800),
    ('.', 0x10),
];
/// SYN.
pub const SYN: u16 = 0x02;
/// FIN.
pub const FIN: u16 = 0x01;
/// PSH.
pub const PSH: u16 = 0x08;
/// ACK.
pub const ACK: u16 = 0x10;

/// A packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Source; the port of an ICMP message is 0.
    pub src: SocketAddr,
    /// Destination.
    pub dst: SocketAddr,
    /// Time to live.
    pub ttl: u8,
    /// The byte of differentiated services and ECN.
    pub tos: u8,
    /// Don't fragment; always true for IPv6.
    pub dont_fragment: bool,
    /// What it carries.
    pub transport: Transport,
}

/// What a packet carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A segment.
    Tcp(Tcp),
    /// An ICMP message: type, code, the rest of its header, and what it quotes.
    Icmp {
        /// Type.
        kind: u8,
        /// Code.
        code: u8,
        /// The second word of the header.
        word: u32,
        /// What follows.
        quote: Vec<u8>,
    },
}

/// A segment; numbers as on the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tcp {
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Flags; bit 8 is AE, bits 9 to 11 are reserved.
    pub flags: u16,
    /// The window field, not scaled.
    pub window: u16,
    /// Urgent pointer.
    pub urgent: u16,
    /// Options.
    pub options: Vec<Opt>,
    /// Payload.
    pub payload: Vec<u8>,
}

/// What is wrong with a packet on purpose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// The checksum of the transport is wrong.
    pub checksum: bool,
    /// The data offset that the header of the segment states, in words.
    pub data_offset: Option<u8>,
    /// Cut after so many bytes.
    pub cut: Option<usize>,
    /// Options of the IPv4 header.
    pub ip_options: Vec<u8>,
    /// IPv6 extension headers: number of the first, and the bytes of all; the last one must name TCP as the next header. Not
    /// together with `fragments`.
    pub extensions: Option<(u8, Vec<u8>)>,
    /// In fragments of so many bytes, a multiple of 8.
    pub fragments: Option<usize>,
    /// Only the first fragment.
    pub first_only: bool,
}

impl Damage {
    /// Nothing is wrong.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl Packet {
    /// The bytes, with what is wrong on purpose; one packet per fragment if the packet is in fragments.
    ///
    /// # Panics
    /// If the packet cannot be written.
    #[must_use]
    pub fn encode(&self, damage: &Damage) -> Vec<Vec<u8>> {
        let mut body = match &self.transport {
            Transport::Tcp(tcp) => self.tcp_bytes(tcp),
            Transport::Icmp { kind, code, word, quote } => {
                let mut b = vec![*kind, *code, 0, 0];
                b.extend(word.to_be_bytes());
                b.extend(quote);
                let sum = self.icmp_sum(&b);
                b[2..4].copy_from_slice(&sum.to_be_bytes());
                b
            }
        };
        if damage.checksum {
            body[16] ^= 0x55;
        }
        if let Some(words) = damage.data_offset {
            body[12] = (body[12] & 0x0f) | (words << 4);
            self.write_checksum(&mut body);
        }
        if let Some(n) = damage.cut {
            body.truncate(n);
        }
        let number = match (&self.transport, self.src.is_ipv4()) {
            (Transport::Tcp(_), _) => IpNumber::TCP,
            (_, true) => IpNumber::ICMP,
            (_, false) => IpNumber::IPV6_ICMP,
        };
        match damage.fragments {
            None => vec![self.ip(number, &body, damage, None)],
            Some(size) => {
                let count = body.len().div_ceil(size);
                let count = if damage.first_only { 1 } else { count };
                let piece = |n: usize| {
                    let more = (n + 1) * size < body.len();
                    let end = body.len().min((n + 1) * size);
                    self.ip(number, &body[n * size..end], damage, Some((n * size, more)))
                };
                (0..count).map(piece).collect()
            }
        }
    }

    /// Writes the checksum of the segment `body`.
    fn write_checksum(&self, body: &mut [u8]) {
        body[16..18].fill(0);
        let mut sum = etherparse::checksum::Sum16BitWords::new();
        sum = match (self.src.ip(), self.dst.ip()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => sum.add_4bytes(a.octets()).add_4bytes(b.octets()),
            (IpAddr::V6(a), IpAddr::V6(b)) => sum.add_16bytes(a.octets()).add_16bytes(b.octets()),
            _ => panic!("both ends are of one family"),
        };
        let sum = sum
            .add_2bytes([0, IpNumber::TCP.0])
            .add_2bytes((body.len() as u16).to_be_bytes())
            .add_slice(body);
        body[16..18].copy_from_slice(&sum.ones_complement().to_be().to_be_bytes());
    }

    fn tcp_bytes(&self, tcp: &Tcp) -> Vec<u8> {
        let mut h = TcpHeader::new(self.src.port(), self.dst.port(), tcp.seq, tcp.window);
        h.acknowledgment_number = tcp.ack;
        h.urgent_pointer = tcp.urgent;
        h.set_options_raw(&option::encode(&tcp.options)).expect("options fit");
        let mut body = h.to_bytes().to_vec();
        body[12] |= (tcp.flags >> 8) as u8 & 0x0f;
        body[13] = tcp.flags as u8;
        body.extend(&tcp.payload);
        self.write_checksum(&mut body);
        body
    }

    fn icmp_sum(&self, body: &[u8]) -> u16 {
        let mut sum = etherparse::checksum::Sum16BitWords::new();
        if let (IpAddr::V6(a), IpAddr::V6(b)) = (self.src.ip(), self.dst.ip()) {
            sum = sum.add_16bytes(a.octets()).add_16bytes(b.octets());
            sum = sum.add_2bytes([0, IpNumber::IPV6_ICMP.0]).add_4bytes((body.len() as u32).to_be_bytes());
        }
        sum.add_slice(body).ones_complement().to_be()
    }

    /// The packet with its IP header. `piece` of a fragment: its offset in bytes, and whether more fragments follow. The
    /// identification of fragments is constant.
    fn ip(&self, number: IpNumber, body: &[u8], damage: &Damage, piece: Option<(usize, bool)>) -> Vec<u8> {
        let mut out = match (self.src.ip(), self.dst.ip()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                let mut h = Ipv4Header::new(body.len() as u16, self.ttl, number, a.octets(), b.octets())
                    .expect("short");
                h.options = damage.ip_options.as_slice().try_into().expect("options of IP fit");
                h.set_payload_len(body.len()).expect("short");
                h.identification = 0x5359;
                h.dont_fragment = self.dont_fragment;
                if let Some((at, more)) = piece {
                    h.dont_fragment = false;
                    h.more_fragments = more;
                    h.fragment_offset = etherparse::IpFragOffset::try_new((at / 8) as u16).expect("small");
                }
                h.header_checksum = h.calc_header_checksum();
                let mut bytes = h.to_bytes().to_vec();
                bytes[1] = self.tos;
                let mut h = Ipv4Header::from_slice(&bytes).expect("just written").0;
                h.header_checksum = h.calc_header_checksum();
                h.to_bytes().to_vec()
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => {
                let (next, mut headers) = damage.extensions.clone().unwrap_or((number.0, Vec::new()));
                let mut next = IpNumber(next);
                if let Some((at, more)) = piece {
                    let place = (at as u16) | u16::from(more);
                    let [hi, lo] = place.to_be_bytes();
                    headers.extend([next.0, 0, hi, lo, 0, 0, 0x53, 0x59]);
                    next = IpNumber::IPV6_FRAGMENTATION_HEADER;
                }
                let h = Ipv6Header {
                    traffic_class: self.tos,
                    flow_label: Ipv6FlowLabel::ZERO,
                    payload_length: (headers.len() + body.len()) as u16,
                    next_header: next,
                    hop_limit: self.ttl,
                    source: a.octets(),
                    destination: b.octets(),
                };
                let mut bytes = h.to_bytes().to_vec();
                bytes.extend(headers);
                bytes
            }
            _ => panic!("both ends are of one family"),
        };
        out.extend(body);
        out
    }

    /// The packet in these bytes; `None` if it carries neither TCP nor ICMP, or is not a packet.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (src, dst, ttl, tos, dont_fragment, number, body) = match bytes.first()? >> 4 {
            4 => {
                let (h, _) = Ipv4Header::from_slice(bytes).ok()?;
                let body = bytes.get(h.header_len()..usize::from(h.total_len))?;
                let tos = *bytes.get(1)?;
                let ends = (IpAddr::from(h.source), IpAddr::from(h.destination));
                (ends.0, ends.1, h.time_to_live, tos, h.dont_fragment, h.protocol, body)
            }
            6 => {
                let (h, rest) = Ipv6Header::from_slice(bytes).ok()?;
                let body = rest.get(..usize::from(h.payload_length))?;
                let ends = (IpAddr::from(h.source), IpAddr::from(h.destination));
                (ends.0, ends.1, h.hop_limit, h.traffic_class, true, h.next_header, body)
            }
            _ => return None,
        };
        let (transport, ports) = match number {
            IpNumber::TCP => {
                let (h, payload) = TcpHeader::from_slice(body).ok()?;
                let tcp = Tcp {
                    seq: h.sequence_number,
                    ack: h.acknowledgment_number,
                    flags: u16::from(body[12] & 0x0f) << 8 | u16::from(body[13]),
                    window: h.window_size,
                    urgent: h.urgent_pointer,
                    options: option::decode(h.options.as_slice()),
                    payload: payload.to_vec(),
                };
                (Transport::Tcp(tcp), (h.source_port, h.destination_port))
            }
            IpNumber::ICMP | IpNumber::IPV6_ICMP => {
                let [kind, code, _, _, a, b, c, d, quote @ ..] = body else { return None };
                let word = u32::from_be_bytes([*a, *b, *c, *d]);
                (Transport::Icmp { kind: *kind, code: *code, word, quote: quote.to_vec() }, (0, 0))
            }
            _ => return None,
        };
        let (src, dst) = (SocketAddr::new(src, ports.0), SocketAddr::new(dst, ports.1));
        Some(Self { src, dst, ttl, tos, dont_fragment, transport })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(v6: bool) -> Packet {
        let end = |n: u8| match v6 {
            true => SocketAddr::new(IpAddr::from([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, n]), 80),
            false => SocketAddr::new(IpAddr::from([10, 0, 0, n]), 80),
        };
        let tcp = Tcp {
            seq: 1,
            ack: 2,
            flags: ACK | 0x100,
            window: 3,
            urgent: 4,
            options: vec![Opt::Mss(5)],
            payload: vec![6; 100],
        };
        Packet {
            src: end(1),
            dst: end(2),
            ttl: 64,
            tos: 3,
            dont_fragment: true,
            transport: Transport::Tcp(tcp),
        }
    }

    #[test]
    fn packets_survive_bytes_and_their_checksums_are_right() {
        for v6 in [false, true] {
            let p = packet(v6);
            let [bytes] = &p.encode(&Damage::default())[..] else { panic!("one packet") };
            assert_eq!(Packet::decode(bytes), Some(p.clone()));
            let sliced = etherparse::PacketHeaders::from_ip_slice(bytes).expect("a packet");
            let tcp = sliced.transport.clone().and_then(etherparse::TransportHeader::tcp).expect("a segment");
            let sum = match sliced.net {
                Some(etherparse::NetHeaders::Ipv4(h, _)) => {
                    assert_eq!(h.calc_header_checksum(), h.header_checksum);
                    tcp.calc_checksum_ipv4(&h, &[6; 100])
                }
                Some(etherparse::NetHeaders::Ipv6(h, _)) => tcp.calc_checksum_ipv6(&h, &[6; 100]),
                _ => panic!("IP"),
            };
            // `etherparse` calls the AE bit NS.
            assert_eq!(sum, Ok(tcp.checksum));
        }
    }

    #[test]
    fn fragments_hold_all_of_it() {
        let pieces = packet(false).encode(&Damage { fragments: Some(48), ..Damage::default() });
        let bodies: usize = pieces.iter().map(|p| p.len() - 20).sum();
        assert_eq!((pieces.len(), bodies), (3, 20 + 4 + 100));
    }
}

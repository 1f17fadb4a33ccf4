//! A packet on the emulated links: its bytes, and the properties that links may see.

use super::ack;
use skyhaul_path::{Acknowledgement, PacketView, Routed};
use skyhaul_wire::pcapng::Ticket;
use skyhaul_wire::{Plan, ip, tcp};

/// Header fields of a packet from anywhere, however malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Class {
    /// Differentiated services codepoint, six bits.
    pub dscp: u8,
    /// Hash of addresses and, where the packet contains them, ports: the same for all packets of a flow in one direction, unless
    /// they are fragments.
    pub flow: u32,
    /// Explicit congestion notification, two bits (RFC 3168 §5).
    pub ecn: u8,
    /// TCP without payload and without flags other than ACK and those of ECN.
    pub pure_ack: bool,
    /// Link scope: messages of the kernels at both ends to their neighbours (RFC 4291 §2.5.6 and §2.7, RFC 5771 §4, RFC 3927
    /// §2.7). No router forwards them, and neither does a satellite path.
    pub link_scope: bool,
    /// Source and destination port, if the packet is TCP or UDP and contains them.
    pub ports: Option<(u16, u16)>,
}

impl Class {
    /// Parses the headers; `None` if the bytes are not an IP packet. Extension headers of IPv6 are not read: behind them, ports and
    /// acknowledgements go unseen.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let (class, header, total, protocol, addresses) = match bytes.first()? >> 4 {
            4 => {
                let fixed = bytes.first_chunk::<{ ip::V4_HEADER }>()?;
                let header = usize::from(fixed[0] & 15) * 4;
                let total = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
                // Ports are in the first fragment only. The protocol number 255 is reserved, so it stands for none.
                let is_first = u16::from_be_bytes([fixed[6], fixed[7]]) & 0x1fff == 0;
                (fixed[1], header, total, if is_first { fixed[9] } else { 255 }, &fixed[12..])
            }
            6 => {
                let fixed = bytes.first_chunk::<{ ip::V6_HEADER }>()?;
                let total = 40 + usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
                ((fixed[0] & 15) << 4 | fixed[1] >> 4, 40, total, fixed[6], &fixed[8..])
            }
            _ => return None,
        };
        let transport = bytes.get(header..).unwrap_or_default();
        let ports = if matches!(protocol, 6 | 17) { transport.get(..4).unwrap_or_default() } else { &[] };
        let pair = match *ports {
            [a, b, c, d] => Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))),
            _ => None,
        };
        // FNV-1a.
        let flow = addresses
            .iter()
            .chain(ports)
            .fold(0x811c_9dc5u32, |h, b| (h ^ u32::from(*b)).wrapping_mul(0x0100_0193));
        let pure_ack = protocol == 6
            && transport.first_chunk::<{ tcp::HEADER }>().is_some_and(|tcp| {
                tcp[13] & !ack::ECN_FLAGS == 0x10 && total == header + usize::from(tcp[12] >> 4) * 4
            });
        let link_scope = match addresses {
            // Source and destination of IPv4.
            [a, b, _, _, c, d, e, _] => {
                (*a, *b) == (169, 254) || (*c, *d) == (169, 254) || (*c, *d, *e) == (224, 0, 0)
            }
            [0xfe, 0x80..=0xbf, ..] => true,
            a => {
                matches!(a.get(16..18), Some([0xff, scope]) if scope & 15 <= 2)
                    || matches!(a.get(16..18), Some([0xfe, 0x80..=0xbf]))
            }
        };
        Some(Self { dscp: class >> 2, ecn: class & 3, flow, pure_ack, link_scope, ports: pair })
    }
}

/// A packet in a pooled buffer.
#[derive(Debug, Default)]
pub(super) struct Buf {
    /// The buffer, of the pool's length; the packet is its beginning.
    pub(super) bytes: Vec<u8>,
    len: u32,
    /// Size on the current link, bytes.
    size: u32,
    pub(super) class: Class,
    low: bool,
    pub(super) ticket: Option<Ticket>,
    /// The position on its route: [`Routed::hop`].
    hop: u16,
}

impl Buf {
    pub(super) fn new(bytes: Vec<u8>, len: usize, class: Class, plan: Plan) -> Self {
        Self {
            bytes,
            len: len as u32,
            size: len as u32,
            class,
            low: plan.is_low(class.dscp),
            ticket: None,
            hop: 0,
        }
    }
    /// Puts the packet at the start of a route.
    pub(super) fn set_out(&mut self, route: u16) {
        self.hop = route;
    }
    /// Offset of its TCP header, if it is a pure acknowledgement.
    fn tcp_of_ack(&self) -> Option<usize> {
        let first = *self.bytes.first().filter(|_| self.class.pure_ack)?;
        Some(if first >> 4 == 4 { usize::from(first & 15) * 4 } else { 40 })
    }
    /// A copy of this pure acknowledgement with another number, in a buffer of exactly its length.
    pub(super) fn with_number(&self, number: u32) -> Option<Self> {
        let tcp = self.tcp_of_ack()?;
        let mut bytes = self.data().to_vec();
        ack::renumber(&mut bytes, tcp, number)?;
        Some(Self { bytes, ticket: None, ..*self })
    }
    /// The same packet once more, in a buffer of exactly its length.
    pub(super) fn duplicate(&self) -> Self {
        Self { bytes: self.data().to_vec(), ticket: None, ..*self }
    }
    /// The bytes of the packet.
    pub(super) fn data(&self) -> &[u8] {
        self.bytes.get(..self.len as usize).unwrap_or_default()
    }
}

impl PacketView for Buf {
    fn size(&self) -> u32 {
        self.size
    }
    fn low_priority(&self) -> bool {
        self.low
    }
    fn flow(&self) -> u32 {
        self.class.flow
    }
    fn is_pure_ack(&self) -> bool {
        self.class.pure_ack
    }
    fn dscp(&self) -> u8 {
        self.class.dscp
    }
    fn is_ect(&self) -> bool {
        self.class.ecn != 0
    }
    fn is_l4s(&self) -> bool {
        self.class.ecn & 1 == 1
    }
    fn mark_ce(&mut self) {
        if self.is_ect() {
            self.class.ecn = 3;
            ip::mark_congestion(&mut self.bytes);
        }
    }
    fn ack(&self) -> Option<Acknowledgement> {
        ack::read(self.data(), self.tcp_of_ack()?)
    }
}

impl Routed for Buf {
    fn hop(&self) -> u16 {
        self.hop
    }
    fn advance(&mut self) {
        self.hop += 1;
    }
    fn compress(&mut self, size: u32) {
        if self.class.pure_ack {
            self.size = size.min(self.len);
        }
    }
    fn decompress(&mut self) {
        self.size = self.len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_tcp::{Flags, SackBlocks, Segment, Seq};
    use skyhaul_wire::{Agreement, Envelope, Packet, Payload, Transport, encode};

    #[test]
    fn an_acknowledgement_says_what_was_encoded() {
        let mut sack = SackBlocks::EMPTY;
        sack.push(Seq(90), Seq(95));
        let plain = Segment { ack: Seq(77), flags: Flags::ACK, ..Segment::default() };
        let said = Acknowledgement { connection: 0, number: 77, ecn: 0, stamp: None, tells_more: false };
        let cases = [
            (plain, Some(said)),
            (Segment { ts: Some((5, 6)), ..plain }, Some(Acknowledgement { stamp: Some(5), ..said })),
            (
                Segment { flags: Flags::ACK.with(Flags::ECE), ..plain },
                Some(Acknowledgement { ecn: 0x40, ..said }),
            ),
            (Segment { sack, ..plain }, Some(Acknowledgement { tells_more: true, ..said })),
            (Segment { flags: Flags::ACK.with(Flags::FIN), ..plain }, None),
            (Segment { len: 5, ..plain }, None),
        ];
        for (a, b) in [("10.0.0.1:5", "10.0.0.2:6"), ("[fd00::1]:5", "[fd00::2]:6")] {
            let envelope = Envelope::new(a.parse().unwrap(), b.parse().unwrap());
            for (segment, expected) in &cases {
                let (mut out, data) = (vec![0; 300], [0; 5]);
                let agreed = Agreement::default();
                let data = Payload::Bytes(&data[..segment.len as usize]);
                let n = encode(&mut out, &envelope, &agreed, segment, data).unwrap().written;
                let class = Class::of(&out[..n]).unwrap();
                let buf = Buf { bytes: out, len: n as u32, class, ..Buf::default() };
                assert_eq!(buf.ack(), *expected, "{segment:?}");
                let copy = buf.with_number(0xffff_fffe);
                assert_eq!(copy.is_some(), expected.is_some());
                let Some(copy) = copy else { continue };
                assert_eq!(copy.ack(), expected.map(|e| Acknowledgement { number: 0xffff_fffe, ..e }));
                // Only what the number stands for has changed, and the checksum holds.
                let Transport::Tcp(tcp) = Packet::parse(copy.data()).unwrap().transport else {
                    panic!("TCP")
                };
                assert_eq!(tcp.segment(&agreed), Segment { ack: Seq(0xffff_fffe), ..*segment });
            }
        }
    }

    #[test]
    fn packets_are_told_apart_by_their_first_bytes() {
        for (a, b) in [("10.0.0.1:5", "10.0.0.2:6"), ("[fd00::1]:5", "[fd00::2]:6")] {
            let envelope = Envelope::new(a.parse().unwrap(), b.parse().unwrap());
            let class = |len: u32, flags, low_priority| {
                let seg = Segment { len, flags, low_priority, ..Segment::default() };
                let (mut out, data) = ([0; 300], [0; 100]);
                let data = Payload::Bytes(&data[..len as usize]);
                let n = encode(&mut out, &envelope, &Agreement::default(), &seg, data).unwrap().written;
                Class::of(&out[..n]).unwrap()
            };
            let ack = class(0, Flags::ACK, false);
            assert!(ack.pure_ack && ack.dscp == 0 && ack.ports == Some((5, 6)));
            let data = class(100, Flags::ACK, true);
            assert!(!data.pure_ack && data.dscp == 1 && data.flow == ack.flow);
            assert!(!class(0, Flags::ACK.with(Flags::FIN), false).pure_ack);
            assert!(class(0, Flags::ACK.with(Flags::ECE), false).pure_ack);
        }
        for no in [&[][..], &[0x45; 19], &[0x60; 39], &[0; 100]] {
            assert_eq!(Class::of(no), None);
        }
        let between = |src: &str, dst: &str| {
            let (src, dst): (std::net::Ipv6Addr, std::net::Ipv6Addr) =
                (src.parse().unwrap(), dst.parse().unwrap());
            let mut p = [0; 48];
            p[0] = 0x60;
            p[8..24].copy_from_slice(&src.octets());
            p[24..40].copy_from_slice(&dst.octets());
            Class::of(&p).unwrap().link_scope
        };
        let to = |dst| between("fd00::1", dst);
        assert!(to("ff02::16") && to("fe80::1") && !to("ff05::2") && !to("fd00::2"));
        // 0xa9fe is 169.254.
        assert!(between("fe80::1", "fd00::2") && !between("a9fe::1", "fd00::2"));
        let mut p = [0; 28];
        (p[0], p[12], p[16]) = (0x45, 10, 224);
        assert!(Class::of(&p).unwrap().link_scope);
        p[17] = 1;
        assert!(!Class::of(&p).unwrap().link_scope);
        // Cut behind the header.
        assert!(Class::of(&[0x45; 20]).is_some());
    }
}

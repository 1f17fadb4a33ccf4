//! Encodes segments.

use crate::checksum::Sum;
use crate::ip::Header;
use crate::tcp::{self, BIT_ANSWER, BIT_NIL, BIT_PROBE, OPTION_SPACE, Writer, aligned, may_be_marked};
use crate::{Agreement, Capability, EncodeError, Profile, udp};
use core::net::SocketAddr;
use skyhaul_tcp::{Codepoint, Flags, Mark, Segment};

/// Codepoints of RFC 3168 §5.
const ECT_0: u8 = 2;
const ECT_1: u8 = 1;
const CE: u8 = 3;

/// Source of the payload.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'a> {
    /// These bytes, which are copied after the header.
    Bytes(&'a [u8]),
    /// Zeros, which are not written; checksums and lengths are those of the whole packet.
    Zeros,
}

/// Packet parameters besides the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Source.
    pub src: SocketAddr,
    /// Destination.
    pub dst: SocketAddr,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// Identification (IPv4 only).
    pub id: u16,
    /// Flow label (IPv6 only).
    pub flow_label: u32,
    /// Explicit congestion notification, two bits, of a packet whose segment states none. Packets of low priority are never
    /// ECN-capable.
    pub ecn: u8,
}

impl Envelope {
    /// An envelope between these ends, with defaults otherwise.
    #[must_use]
    pub const fn new(src: SocketAddr, dst: SocketAddr) -> Self {
        Self { src, dst, ttl: 64, id: 0, flow_label: 0, ecn: 0 }
    }

    fn header(&self, protocol: u8, agreed: &Agreement, low_priority: bool, ecn: u8) -> Header {
        Header {
            src: self.src.ip(),
            dst: self.dst.ip(),
            protocol,
            dscp: agreed.class(low_priority),
            ecn: match ecn {
                _ if low_priority => 0,
                0 => self.ecn & 3,
                stated => stated,
            },
            ttl: self.ttl,
            id: self.id,
            flow_label: self.flow_label,
        }
    }
}

/// Which side computes the TCP checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// The writer of the packet.
    Written,
    /// The receiving device, with offloads: the field holds the uncomplemented sum over the pseudo header (virtio 1.2
    /// §5.1.6.2).
    Left,
}

/// Result of encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// Bytes in the buffer.
    pub written: usize,
    /// Bytes of the packet; more if the payload was [`Payload::Zeros`].
    pub total: usize,
}

/// Writes a segment as an IP packet. SACK blocks that do not fit next to the other options are left out, the last
/// ones first ([`sack_room`]). A window is rounded down to what its scale can express.
///
/// # Errors
/// If the segment cannot be expressed, or the buffer is too small.
pub fn encode(
    out: &mut [u8],
    envelope: &Envelope,
    agreed: &Agreement,
    segment: &Segment,
    payload: Payload<'_>,
) -> Result<Encoded, EncodeError> {
    let data = bytes_of(payload, segment.len as usize)?;
    let head = Head::of(out, envelope, agreed, segment)?;
    copy(out, head.len, data)?;
    head.sum(out, data.len());
    Ok(Encoded { written: head.len + data.len(), total: head.len + segment.len as usize })
}

/// As [`encode`], with a payload that `fill` writes in place: the bytes are copied once, and not read again if a
/// device computes the checksum. `fill` gets a buffer of the segment's payload length; returns the length of the
/// packet.
///
/// # Errors
/// As [`encode`]; then `fill` was not called.
pub fn encode_with(
    out: &mut [u8],
    envelope: &Envelope,
    agreed: &Agreement,
    segment: &Segment,
    checksum: Checksum,
    fill: impl FnOnce(&mut [u8]),
) -> Result<usize, EncodeError> {
    let head = Head::of(out, envelope, agreed, segment)?;
    let total = head.len + segment.len as usize;
    fill(out.get_mut(head.len..total).ok_or(EncodeError::Buffer)?);
    match checksum {
        Checksum::Written => head.sum(out, segment.len as usize),
        Checksum::Left => head.checksum(out, !head.pseudo.finish()),
    }
    Ok(total)
}

/// Headers in a buffer, without the checksum over the payload.
struct Head {
    /// Length of both headers, bytes.
    len: usize,
    /// Offset of the TCP header.
    tcp: usize,
    /// Sum over the pseudo header.
    pseudo: Sum,
}

impl Head {
    /// Writes both headers of a segment.
    fn of(
        out: &mut [u8],
        envelope: &Envelope,
        agreed: &Agreement,
        segment: &Segment,
    ) -> Result<Self, EncodeError> {
        let (options, bits) = options(agreed, segment)?;
        let header = tcp::HEADER + options.as_slice().len();
        let ecn = match segment.ecn {
            Codepoint::NotCapable => 0,
            Codepoint::Capable => ECT_0,
            Codepoint::Scalable => ECT_1,
            Codepoint::Marked => CE,
        };
        let ip = envelope.header(tcp::PROTOCOL, agreed, segment.low_priority, ecn);
        let length = header + segment.len as usize;
        let at = ip.write(out, length)?;
        let head = out.get_mut(at..at + header).ok_or(EncodeError::Buffer)?;
        let (head, behind) = head.split_first_chunk_mut::<{ tcp::HEADER }>().ok_or(EncodeError::Buffer)?;
        let shift = if segment.flags.has(Flags::SYN) { 0 } else { agreed.window_shift.min(14) };
        let window = u16::try_from(segment.window >> shift).map_err(|_| EncodeError::Window)?;
        head[..2].copy_from_slice(&envelope.src.port().to_be_bytes());
        head[2..4].copy_from_slice(&envelope.dst.port().to_be_bytes());
        head[4..8].copy_from_slice(&segment.seq.0.to_be_bytes());
        head[8..12].copy_from_slice(&segment.ack.0.to_be_bytes());
        let [accurate, flags] = segment.flags.to_header();
        head[12] = ((header / 4) as u8) << 4 | bits | accurate;
        head[13] = flags;
        head[14..16].copy_from_slice(&window.to_be_bytes());
        // Checksum and urgent pointer.
        head[16..20].fill(0);
        behind.copy_from_slice(options.as_slice());
        Ok(Self { len: at + header, tcp: at, pseudo: ip.pseudo(length) })
    }

    /// Completes the header for this many bytes of payload after it; bytes not written are zeros.
    fn sum(&self, out: &mut [u8], payload: usize) {
        let covered = out.get(self.tcp..self.len + payload).unwrap_or_default();
        self.checksum(out, self.pseudo.bytes(covered).finish());
    }

    fn checksum(&self, out: &mut [u8], sum: u16) {
        if let Some(field) = out.get_mut(self.tcp + 16..self.tcp + 18) {
            field.copy_from_slice(&sum.to_be_bytes());
        }
    }
}

/// Writes a UDP datagram of `len` bytes of payload as an IP packet.
///
/// # Errors
/// If it is too long, or the buffer too small.
pub fn encode_udp(
    out: &mut [u8],
    envelope: &Envelope,
    agreed: &Agreement,
    low_priority: bool,
    len: usize,
    payload: Payload<'_>,
) -> Result<Encoded, EncodeError> {
    let data = bytes_of(payload, len)?;
    let ip = envelope.header(udp::PROTOCOL, agreed, low_priority, 0);
    let at = ip.write(out, udp::HEADER + len)?;
    let out = out.get_mut(at..).ok_or(EncodeError::Buffer)?;
    udp::write(&ip, (envelope.src.port(), envelope.dst.port()), out, len, data)?;
    copy(out, udp::HEADER, data)?;
    Ok(Encoded { written: at + udp::HEADER + data.len(), total: at + udp::HEADER + len })
}

fn bytes_of(payload: Payload<'_>, len: usize) -> Result<&[u8], EncodeError> {
    match payload {
        Payload::Bytes(b) if b.len() != len => Err(EncodeError::PayloadLength),
        Payload::Bytes(b) => Ok(b),
        Payload::Zeros => Ok(&[]),
    }
}

fn copy(out: &mut [u8], at: usize, data: &[u8]) -> Result<(), EncodeError> {
    out.get_mut(at..at + data.len()).ok_or(EncodeError::Buffer)?.copy_from_slice(data);
    Ok(())
}

/// Number of SACK blocks that fit into a segment with these other options.
#[must_use]
pub fn sack_room(agreed: &Agreement, segment: &Segment) -> usize {
    other_options(agreed, segment).map_or(0, |(w, _)| blocks_in(w.room()))
}

const fn blocks_in(room: usize) -> usize {
    room.saturating_sub(aligned(2)) / 8
}

/// All options and the reserved bits.
fn options(agreed: &Agreement, s: &Segment) -> Result<(Writer, u8), EncodeError> {
    let (mut w, bits) = other_options(agreed, s)?;
    let blocks = s.sack.as_slice();
    let blocks = blocks.get(..blocks_in(w.room())).unwrap_or(blocks);
    if !blocks.is_empty() {
        w.sack(blocks);
    }
    if let Some(bytes) = s.ecn_bytes {
        // Optional: without room it is left out (RFC 9768 §3.2.3).
        w.ecn_bytes(bytes);
    }
    debug_assert!(w.as_slice().len() <= OPTION_SPACE && w.as_slice().len() % 4 == 0);
    Ok((w, bits))
}

/// All options but SACK blocks, and the reserved bits.
fn other_options(agreed: &Agreement, s: &Segment) -> Result<(Writer, u8), EncodeError> {
    let mut w = Writer::new();
    let mut fits = true;
    if s.flags.has(Flags::SYN) {
        fits &= s.syn.mss.is_none_or(|mss| w.mss(mss));
        fits &= match (s.syn.sack_permitted, s.ts) {
            (true, ts) => w.sack_permitted(ts),
            (false, Some(ts)) => w.timestamps(ts),
            (false, None) => true,
        };
        fits &= s.syn.window_scale.is_none_or(|shift| w.window_scale(shift));
        if s.syn.probes {
            if !agreed.profile.negotiates() {
                return Err(EncodeError::Mark);
            }
            let mut c = agreed.capability;
            c.flags |= Capability::ANSWERS;
            // The option of TCP-Real takes the room.
            let gateway = agreed.gateway.filter(|_| s.waves.is_none()).map(|g| (g, agreed.early));
            fits &= w.capability(agreed.probe_exid, c, gateway);
        }
    } else if let Some(ts) = s.ts {
        fits &= w.timestamps(ts);
    }
    if s.flags.has(Flags::SYN) {
        fits &= !s.syn.ack_cc || w.ack_ratio(0);
    } else {
        fits &= s.ack_ratio.is_none_or(|n| w.ack_ratio(n.get()));
    }
    let bits = mark(agreed, s, &mut w, &mut fits)?;
    if !s.waves.is_none() {
        fits &= w.rate(s.waves.number, s.waves.rate);
    }
    if fits { Ok((w, bits)) } else { Err(EncodeError::Options) }
}

/// The mark of a probe, as an option or as bits.
fn mark(agreed: &Agreement, s: &Segment, w: &mut Writer, fits: &mut bool) -> Result<u8, EncodeError> {
    if s.mark == Mark::None {
        // A number without a mark is meaningless.
        return if s.probe_id.is_none() { Ok(0) } else { Err(EncodeError::Mark) };
    }
    let sound = may_be_marked(s.flags) && s.mark.is_probe() == (s.len > 0);
    match (agreed.profile, s.probe_id) {
        (Profile::Option | Profile::Compact, Some(id)) if sound => {
            let kind = match s.mark {
                Mark::Dummy => 0x01,
                Mark::Nil => 0x02,
                Mark::DummyAck => 0x81,
                _ => 0x82,
            };
            *fits &= w.mark(agreed.probe_exid, kind, id);
            Ok(0)
        }
        (Profile::Paper | Profile::Compact, None) if sound => Ok(match s.mark {
            Mark::Dummy => BIT_PROBE,
            Mark::Nil => BIT_PROBE | BIT_NIL,
            Mark::DummyAck => BIT_ANSWER,
            _ => BIT_ANSWER | BIT_NIL,
        }),
        _ => Err(EncodeError::Mark),
    }
}

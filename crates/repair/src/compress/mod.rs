//! Header compression between two gateways.
//!
//! The path loses and reorders, and repair may deliver a datagram long after later ones. So a compressed header refers to
//! a header that the other end is known to have, never to that of the packet before: a **reference**, which belongs to a
//! **context** (RFC 5795 §2.1) and which the other end has acknowledged in a report. There is one context for each flow, and one for each
//! pair of hosts and protocol, which serves the first packets of flows.
//!
//! The first byte of a datagram tells its form; those of an IP header are none of the others.
//!
//! ```text
//! 0x4., 0x6.   the packet as it is
//! 0000 ppgg    context number (1), the packet as it is: its header becomes reference gg of the context (the IR packet
//!              of RFC 5795 §5.2.2.1). pp: 0 its profile by protocol, 1 RTP, 2 IP alone
//! 1ggi mmcr    context number (1), what differs from reference gg, payload (a CO packet of RFC 5795)
//!   i            the header becomes reference gg + 1
//!   mm           identification of IPv4: 0 that of the reference; 1 grown like the number of the datagram;
//!                2 grown by the next byte; 3 in the next two bytes
//!   c            checksum of UDP or TCP in two bytes. Otherwise it follows from the packet, or is zero like that of the
//!                reference
//!   r            traffic class and hop limit, in the bytes that hold them
//! 0001 0000    several: each after its length
//! ```
//!
//! What differs, in this order: of TCP and RTP a byte that tells which fields follow; identification; traffic class, hop
//! limit; checksum; fields. A field that counts is sent as its growth, seven bits a byte, low ones first (LEB128). Lengths and
//! the checksum of IPv4 follow from the packet. Sizes are those of the symbol that carries the datagram.
//!
//! ```text
//! TCP   1 sequence number, 2 acknowledgement, 4 flags (1), 8 window (2), 16 urgent pointer (2), 32 TSval, 64 TSecr,
//!       128 byte with the data offset, and all options
//! RTP   1 marker and payload type (1), 2 sequence number, 4 timestamp
//! ESP   growth of the sequence number beyond that of the number of the datagram
//! ```
//!
//! **No wrong packet.** References of a context have numbers modulo 4. A reference is used only after it was acknowledged, and the
//! number of an older one that it displaces is never used for that one again. So the reference of a datagram is always the last one with
//! its number that an earlier datagram has installed; if that is gone, the datagram is dropped. The compressor restores
//! each packet that it has compressed: what does not come out the same is sent as it is.

mod compressor;
mod decompressor;
mod header;

#[cfg(test)]
mod tests;

pub(crate) use compressor::Compressor;
pub(crate) use decompressor::Decompressor;

/// Contexts of each direction: as many as a byte tells apart.
const CONTEXTS: usize = 256;
/// References of a context: two bits.
const REFERENCES: u8 = 4;

// First bytes.
const COMPRESSED: u8 = 0x80;
const INSTALLS: u8 = 0x10;
const CHECKSUM: u8 = 2;
const RARE: u8 = 1;
/// Several datagrams in one.
const SEVERAL: u8 = 0x10;
/// The profiles of packets that install a reference: by protocol, RTP, IP alone.
const BY_PROTOCOL: u8 = 0;
const RTP: u8 = 1;
const IP_ALONE: u8 = 2;

/// Bytes that a packet which installs a reference has more.
pub(crate) const INSTALL_SIZE: u32 = 2;

/// Bytes of a length: one up to 127, otherwise two.
fn length_size(len: usize) -> usize {
    1 + usize::from(len > 0x7f)
}
fn put_length(out: &mut Vec<u8>, len: usize) {
    if len > 0x7f {
        out.push((len >> 8) as u8 | 0x80);
    }
    out.push(len as u8);
}

/// Maximum size of a datagram that another one joins.
pub(crate) fn joined_size(datagram: &[u8], other: &[u8]) -> usize {
    let item = |len: usize| length_size(len) + len;
    let before = if datagram.first() == Some(&SEVERAL) { datagram.len() } else { 1 + item(datagram.len()) };
    before + item(other.len() + INSTALL_SIZE as usize)
}

/// A datagram carries another form, too. Forms are shorter than 32 KiB.
pub(crate) fn join(datagram: &mut Vec<u8>, form: &[u8]) {
    if datagram.first() != Some(&SEVERAL) {
        let mut head = vec![SEVERAL];
        put_length(&mut head, datagram.len());
        datagram.splice(0..0, head);
    }
    put_length(datagram, form.len());
    datagram.extend_from_slice(form);
}

/// The forms that a datagram carries; `None` if its lengths contradict each other.
pub(crate) fn forms(carried: &[u8]) -> Option<Vec<&[u8]>> {
    let Some((&SEVERAL, mut rest)) = carried.split_first() else { return Some(vec![carried]) };
    let mut forms = Vec::new();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        let mut len = usize::from(first);
        if first & 0x80 != 0 {
            let (&low, after) = rest.split_first()?;
            rest = after;
            len = (len & 0x7f) << 8 | usize::from(low);
        }
        let (form, after) = rest.split_at_checked(len)?;
        rest = after;
        forms.push(form);
    }
    Some(forms)
}

//! Packets on their way to a device.

use super::headers::{FLAGS, Headers, is_v6};
use super::{LONGEST, NEEDS_CHECKSUM, ROOM};
use crate::outlet::Merge;
use skyhaul_tcp::Flags;
use skyhaul_wire::checksum::Sum;
use skyhaul_wire::{Checksum, ip, tcp};
use tun_rs::{VIRTIO_NET_HDR_GSO_TCPV4, VIRTIO_NET_HDR_GSO_TCPV6, VIRTIO_NET_HDR_LEN, VirtioNetHdr};

/// The place of the checksum in a TCP header.
const CHECKSUM: usize = 16;

/// Packets waiting to be written as one.
///
/// A packet is written behind those that wait. If it continues them, its payload moves up to theirs, over its own headers;
/// otherwise they leave, and the whole packet moves to the front. Nothing is ever written over a packet that waits, however short
/// its payload is.
#[derive(Debug)]
pub struct Departures {
    buffer: Vec<u8>,
    joined: Option<SuperPacket>,
    /// Who computes the checksum of packets that may be merged.
    checksum: Checksum,
}

/// The super-packet under construction.
#[derive(Clone, Copy, Debug)]
struct SuperPacket {
    /// The device computes the TCP checksum.
    checksum_left: bool,
    /// Payload of each packet but the last, bytes; 0 if nothing can be merged with it.
    each: usize,
    packets: usize,
    /// Bytes used in the buffer, including the device's header.
    end: usize,
    /// Its last packet has PSH set.
    pushes: bool,
    /// The last packet was shorter than the others, or has PSH set, so that no more can follow.
    full: bool,
}

impl Default for Departures {
    fn default() -> Self {
        Self { buffer: vec![0; ROOM], joined: None, checksum: Checksum::Written }
    }
}

impl Departures {
    /// Sets who computes the TCP checksum of future packets that may be merged. If this changes, waiting packets
    /// are not merged with later ones.
    pub fn set_checksum(&mut self, by: Checksum) {
        self.checksum = by;
    }
    /// Who computes the TCP checksum of packets that may be merged.
    #[must_use]
    pub fn checksum(&self) -> Checksum {
        self.checksum
    }

    /// Adds a packet of at most `most` bytes, written by `write`, and shows it to `seen`. Waiting packets that
    /// cannot be merged with it go to `device` first, as does the packet itself if it must stay separate.
    ///
    /// # Errors
    /// The error of `write`; there is no packet then, and those that waited still wait or went to `device`.
    pub fn push<E>(
        &mut self,
        most: usize,
        merge: Merge,
        write: impl FnOnce(&mut [u8]) -> Result<usize, E>,
        mut device: impl FnMut(&[u8]),
        seen: impl FnOnce(&[u8]),
    ) -> Result<(), E> {
        let alone = merge != Merge::Allowed;
        let checksum_left = !alone && self.checksum == Checksum::Left;
        let fits = |j: &SuperPacket| j.end - VIRTIO_NET_HDR_LEN + most <= LONGEST;
        let closed = |j: &SuperPacket| j.each == 0 || j.full || j.checksum_left != checksum_left;
        if self.joined.is_some_and(|j| alone || closed(&j) || !fits(&j)) {
            self.flush(&mut device);
        }
        let end = self.joined.map_or(VIRTIO_NET_HDR_LEN, |j| j.end);
        let (before, room) = self.buffer.split_at_mut_checked(end).unwrap_or_default();
        // Without room, `write` fails.
        let room = room.get_mut(..most).unwrap_or_default();
        let n = write(room)?.min(most);
        let packet = room.get(..n).unwrap_or_default();
        seen(packet);
        let headers = Headers::of(packet).filter(|_| !alone);
        let (each, pushes) = headers.map_or((0, false), |h| (h.payload.len(), h.pushes()));
        let first = before.get(VIRTIO_NET_HDR_LEN..).and_then(Headers::of);
        if let (Some(j), Some(first), Some(headers)) = (&mut self.joined, &first, &headers) {
            if each <= j.each && headers.follows(first) {
                room.copy_within(headers.len()..n, 0);
                j.packets += 1;
                j.end += each;
                j.pushes = pushes;
                j.full = pushes || each < j.each;
                return Ok(());
            }
        }
        if self.joined.is_some() {
            self.flush(&mut device);
            self.buffer.copy_within(end..end + n, VIRTIO_NET_HDR_LEN);
        }
        let end = VIRTIO_NET_HDR_LEN + n;
        self.joined = Some(SuperPacket { checksum_left, each, packets: 1, end, pushes, full: pushes });
        if alone {
            self.flush(&mut device);
        }
        Ok(())
    }

    /// Passes the waiting super-packet to `device`, with its header.
    pub fn flush(&mut self, mut device: impl FnMut(&[u8])) {
        let Some(j) = self.joined.take() else { return };
        let Some(whole) = self.buffer.get_mut(..j.end) else { return };
        let Some((header, packet)) = whole.split_first_chunk_mut::<VIRTIO_NET_HDR_LEN>() else { return };
        // The room is exactly as long as the header.
        let _ = j.finish(packet).encode(header);
        device(whole);
    }
}

impl SuperPacket {
    /// Completes the headers of the packet, and returns the device's: how to split it, if necessary, and where the checksum goes,
    /// if the device computes it (virtio 1.2 §5.1.6).
    fn finish(&self, packet: &mut [u8]) -> VirtioNetHdr {
        let v6 = is_v6(packet);
        let sum = VirtioNetHdr {
            flags: NEEDS_CHECKSUM,
            csum_start: if v6 { ip::V6_HEADER } else { ip::V4_HEADER } as u16,
            csum_offset: CHECKSUM as u16,
            ..VirtioNetHdr::default()
        };
        if self.packets == 1 {
            return if self.checksum_left { sum } else { VirtioNetHdr::default() };
        }
        if v6 {
            seal_v6(packet, self.pushes);
        } else {
            seal_v4(packet, self.pushes);
        }
        VirtioNetHdr {
            gso_type: if v6 { VIRTIO_NET_HDR_GSO_TCPV6 } else { VIRTIO_NET_HDR_GSO_TCPV4 },
            hdr_len: Headers::of(packet).map_or(0, |h| h.len()) as u16,
            gso_size: self.each as u16,
            ..sum
        }
    }
}

/// Completes the headers of an IPv4 super-packet, whose last packet has PSH set if `pushes`.
fn seal_v4(packet: &mut [u8], pushes: bool) {
    let total = packet.len() as u16;
    let Some((ip, segment)) = packet.split_first_chunk_mut::<{ ip::V4_HEADER }>() else { return };
    ip[2..4].copy_from_slice(&total.to_be_bytes());
    ip[10..12].fill(0);
    let sum = Sum::default().bytes(ip).finish();
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    seal_tcp(segment, Sum::default().bytes(&ip[12..]), pushes);
}
/// The same for IPv6.
fn seal_v6(packet: &mut [u8], pushes: bool) {
    let Some((ip, segment)) = packet.split_first_chunk_mut::<{ ip::V6_HEADER }>() else { return };
    ip[4..6].copy_from_slice(&(segment.len() as u16).to_be_bytes());
    seal_tcp(segment, Sum::default().bytes(&ip[8..]), pushes);
}
/// The checksum field holds the sum of the pseudo header, from which the kernel computes the checksum. PSH of a super-packet is
/// that of its last packet: nothing follows it.
fn seal_tcp(segment: &mut [u8], addresses: Sum, pushes: bool) {
    let pseudo = addresses.long(tcp::PROTOCOL.into()).long(segment.len() as u32).finish();
    let Some(tcp) = segment.first_chunk_mut::<{ tcp::HEADER }>() else { return };
    tcp[CHECKSUM..CHECKSUM + 2].copy_from_slice(&(!pseudo).to_be_bytes());
    if pushes {
        tcp[FLAGS] |= Flags::PSH.bits();
    }
}

//! Packets that are read from a device.

use super::{NEEDS_CHECKSUM, ROOM};
use crate::device::tun::Tun;
use crate::error::NetError;
use skyhaul_wire::checksum::Sum;
use tun_rs::{VIRTIO_NET_HDR_LEN, VirtioNetHdr, gso_split};

/// `gso_type` of a packet that is not merged (virtio 1.2 §5.1.6).
const NOT_MERGED: u8 = 0;
/// The flag in `gso_type` of merged packets with the ECN bit of TCP (`VIRTIO_NET_HDR_GSO_ECN`).
const ECN: u8 = 0x80;
/// Offset of the checksum in a UDP header, bytes.
const UDP_CHECKSUM: u16 = 6;
/// Length of a UDP header, bytes.
const UDP_HEADER: usize = 8;

/// What was read from the device: one packet, or several that the kernel has merged.
#[derive(Debug)]
pub struct Arrivals {
    /// What was read, with the device's header.
    whole: Vec<u8>,
    /// Its length, bytes.
    len: usize,
    header: VirtioNetHdr,
    /// Buffers with the packets after a split.
    packets: Vec<Vec<u8>>,
    /// Lengths of these packets, bytes.
    sizes: Vec<usize>,
}

impl Default for Arrivals {
    fn default() -> Self {
        let header = VirtioNetHdr::default();
        Self { whole: vec![0; ROOM], len: 0, header, packets: Vec::new(), sizes: Vec::new() }
    }
}

impl Arrivals {
    /// Reads once from the kernel; false if there is nothing now.
    ///
    /// # Errors
    /// If the device no longer exists.
    pub fn read(&mut self, tun: &Tun) -> Result<bool, NetError> {
        let Some(n) = tun.read(&mut self.whole)? else { return Ok(false) };
        self.take(n);
        Ok(true)
    }
    /// Takes these bytes as if they were read from the kernel; false if there are too many.
    pub fn hold(&mut self, bytes: &[u8]) -> bool {
        let Some(room) = self.whole.get_mut(..bytes.len()) else { return false };
        room.copy_from_slice(bytes);
        self.take(bytes.len());
        true
    }
    /// Reads the device's header of the first `n` bytes of the buffer.
    fn take(&mut self, n: usize) {
        // Without a complete header it is no packet.
        let header = VirtioNetHdr::decode(self.whole.get(..n.min(VIRTIO_NET_HDR_LEN)).unwrap_or_default());
        (self.len, self.header) = header.map_or((VIRTIO_NET_HDR_LEN, VirtioNetHdr::default()), |h| (n, h));
    }

    fn packet(&self) -> Option<&[u8]> {
        self.whole.get(VIRTIO_NET_HDR_LEN..self.len)
    }
    fn packet_mut(&mut self) -> Option<&mut [u8]> {
        self.whole.get_mut(VIRTIO_NET_HDR_LEN..self.len)
    }

    /// What was read, with the number of packets in it, if its checksum need not be verified: the kernel has left the checksum
    /// to the device, so it comes from this machine or was verified when it arrived.
    #[must_use]
    pub fn whole(&self) -> Option<(&[u8], u64)> {
        let packet = self.packet()?;
        let payload = packet.len().saturating_sub(self.headers(packet)?);
        let packets = if self.is_merged() { payload.div_ceil(self.header.gso_size.max(1).into()) } else { 1 };
        (self.header.flags & NEEDS_CHECKSUM != 0).then_some((packet, packets as u64))
    }

    fn is_merged(&self) -> bool {
        self.header.gso_type & !ECN != NOT_MERGED
    }

    /// Length of the IP header and of the TCP or UDP header, bytes, as the device's header says.
    fn headers(&self, packet: &[u8]) -> Option<usize> {
        let ip = usize::from(self.header.csum_start);
        if self.header.csum_offset == UDP_CHECKSUM {
            return Some(ip + UDP_HEADER);
        }
        Some(ip + usize::from(packet.get(ip + 12)? >> 4) * 4)
    }

    /// The packets in it, each with its own checksum.
    pub fn packets(&mut self) -> impl Iterator<Item = &[u8]> {
        let merged = self.is_merged();
        if merged {
            self.sizes.clear();
            // If the device's header does not fit the packet, the packet is dropped.
            let _ = self.split();
        } else if self.header.flags & NEEDS_CHECKSUM != 0 {
            let _ = self.fill_checksum();
        }
        let split = self.packets.iter().zip(&self.sizes).filter_map(|(p, n)| p.get(..*n));
        let single = self.packet().filter(|p| !merged && !p.is_empty());
        split.take(if merged { usize::MAX } else { 0 }).chain(single)
    }

    /// Splits merged packets.
    fn split(&mut self) -> Option<()> {
        let packet = self.packet()?;
        let headers = self.headers(packet)?;
        let payload = packet.len().checked_sub(headers).filter(|n| *n > 0)?;
        let v6 = super::headers::is_v6(packet);
        let each = usize::from(self.header.gso_size).max(1);
        let count = payload.div_ceil(each);
        if self.packets.len() < count {
            self.packets.resize_with(count, Vec::new);
        }
        let packets = self.packets.get_mut(..count)?;
        for p in packets.iter_mut().filter(|p| p.len() < headers + each) {
            p.resize(headers + each, 0);
        }
        self.sizes.resize(count, 0);
        let header = VirtioNetHdr { hdr_len: headers as u16, ..self.header };
        let packet = self.whole.get_mut(VIRTIO_NET_HDR_LEN..self.len)?;
        let n = gso_split(packet, header, packets, &mut self.sizes, 0, v6);
        self.sizes.truncate(n.unwrap_or(0));
        Some(())
    }

    /// Writes the checksum that was left to the device: its field holds the sum of the pseudo header.
    fn fill_checksum(&mut self) -> Option<()> {
        let (start, offset) = (usize::from(self.header.csum_start), usize::from(self.header.csum_offset));
        let covered = self.packet_mut()?.get_mut(start..)?;
        let sum = Sum::default().bytes(covered).finish();
        covered.get_mut(offset..)?.first_chunk_mut().map(|field| *field = sum.to_be_bytes())
    }
}

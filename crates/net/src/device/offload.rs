//! Super-packets: reading and writing devices whose packets carry a virtio-net header.
//!
//! Consecutive segments of a connection go to the kernel as one packet, which it splits only where it must, or
//! never. In the other direction, the library splits what the kernel sends.
//!
//! Only packets of one connection and one priority are merged, in order, and no packet overtakes another. A probe,
//! like any packet that must stay separate, is written on its own, between the packets before and after it.

use crate::device::tun::Tun;
use crate::error::NetError;
use crate::outlet::Merge;
use skyhaul_tcp::Flags;
use skyhaul_wire::checksum::Sum;
use skyhaul_wire::{Checksum, ip, tcp};
use tun_rs::{
    VIRTIO_NET_HDR_GSO_TCPV4, VIRTIO_NET_HDR_GSO_TCPV6, VIRTIO_NET_HDR_LEN, VirtioNetHdr, gso_split,
};

/// Room for the longest super-packet and its header.
const ROOM: usize = (1 << 16) + 2 * VIRTIO_NET_HDR_LEN;
/// Longest super-packet, bytes: the length field has 16 bits.
const LONGEST: usize = 65_535;
/// The device must fill in the TCP checksum (virtio 1.2 §5.1.6, `VIRTIO_NET_HDR_F_NEEDS_CSUM`).
const NEEDS_CHECKSUM: u8 = 1;
/// A packet that is not merged, and the flag of merged ones that are ECN-capable (virtio 1.2 §5.1.6, `gso_type`).
const NOT_MERGED: u8 = 0;
const ECN: u8 = 0x80;
/// Place of the checksum in a UDP header, and the length of that header, bytes.
const UDP_CHECKSUM: u16 = 6;
const UDP_HEADER: usize = 8;

/// Packets waiting to be written as one.
///
/// A packet is written so that its payload directly follows the previous one. Its header then overwrites the end of
/// the previous payload, which is saved first and restored afterwards: a packet that fits needs no further copy.
/// One that does not fit is moved away and starts the next super-packet.
pub(crate) struct Departures {
    buffer: Vec<u8>,
    /// The packet that does not fit, while the rest is written.
    aside: Vec<u8>,
    joined: Option<Joined>,
    /// Who computes the checksum of packets that may be merged.
    checksum: Checksum,
}

/// The super-packet under construction.
#[derive(Clone, Copy, Debug)]
struct Joined {
    /// Headers of IP and TCP, bytes.
    headers: usize,
    /// Header of IP, bytes.
    ip: usize,
    /// The device computes the TCP checksum.
    left: bool,
    /// Payload of each packet but the last, bytes; 0 if nothing can be merged with it.
    each: usize,
    packets: usize,
    /// Bytes used in the buffer, including the device's header.
    end: usize,
    /// The last packet was shorter than the others, so that no more can follow.
    full: bool,
}

/// Header lengths of a packet that may be merged with others: TCP with payload and no flags but ACK, and PSH on the
/// last packet.
fn parts(p: &[u8]) -> Option<(usize, usize)> {
    let ip = ip_header(p);
    let protocol = *p.get(if ip == ip::V6_HEADER { 6 } else { 9 })?;
    let headers = ip + usize::from(*p.get(ip + 12)? >> 4) * 4;
    let plain = protocol == tcp::PROTOCOL && Flags::from_bits(p[ip + 13]).only_acknowledges();
    (plain && headers < p.len()).then_some((ip, headers))
}

/// Length of the IP header, bytes. An IPv4 header has no options here.
fn ip_header(p: &[u8]) -> usize {
    if p.first().is_some_and(|b| b >> 4 == 6) { ip::V6_HEADER } else { ip::V4_HEADER }
}

fn seq(p: &[u8], ip: usize) -> u32 {
    u32::from_be_bytes([p[ip + 4], p[ip + 5], p[ip + 6], p[ip + 7]])
}

/// Whether the packet with its header at `ip` has PSH set, which ends the super-packet.
fn pushes(p: &[u8], ip: usize) -> bool {
    Flags::from_bits(p[ip + 13]).has(Flags::PSH)
}

/// Whether two headers of the same length differ only in fields that are individual to each packet of a
/// super-packet: lengths, identification, sequence number, PSH, checksums.
fn alike(a: &[u8], b: &[u8], ip: usize) -> bool {
    let (Some((ip_a, tcp_a)), Some((ip_b, tcp_b))) = (a.split_at_checked(ip), b.split_at_checked(ip)) else {
        return false;
    };
    let network = if ip == ip::V6_HEADER {
        ip_a[..4] == ip_b[..4] && ip_a[6..] == ip_b[6..]
    } else {
        ip_a[..2] == ip_b[..2] && ip_a[6..10] == ip_b[6..10] && ip_a[12..] == ip_b[12..]
    };
    network
        && tcp_a.len() == tcp_b.len()
        && tcp_a[..4] == tcp_b[..4]
        && tcp_a[8..13] == tcp_b[8..13]
        && tcp_a[14..16] == tcp_b[14..16]
        && tcp_a[18..] == tcp_b[18..]
}

impl Departures {
    pub(crate) fn new() -> Self {
        let (buffer, aside) = (vec![0; ROOM], vec![0; ROOM]);
        Self { buffer, aside, joined: None, checksum: Checksum::Written }
    }

    /// Sets who computes the TCP checksum of future packets that may be merged. If this changes, waiting packets
    /// are not merged with later ones.
    pub(crate) fn set_checksum(&mut self, by: Checksum) {
        self.checksum = by;
    }
    pub(crate) fn checksum(&self) -> Checksum {
        self.checksum
    }

    /// Adds a packet of at most `most` bytes, written by `write`, and shows it to `seen`. Waiting packets that
    /// cannot be merged with it go to `device` first, as does the packet itself if it must stay separate.
    pub(crate) fn push<E>(
        &mut self,
        most: usize,
        merge: Merge,
        write: impl FnOnce(&mut [u8]) -> Result<usize, E>,
        mut device: impl FnMut(&[u8]),
        seen: impl FnOnce(&[u8]),
    ) -> Result<(), E> {
        let alone = merge != Merge::Allowed;
        let left = self.checksum == Checksum::Left;
        let fits = |j: &Joined| j.end - VIRTIO_NET_HDR_LEN + most <= LONGEST && j.left == left;
        if self.joined.is_some_and(|j| alone || j.each == 0 || j.full || !fits(&j)) {
            self.flush(&mut device);
        }
        let Some(mut j) = self.joined else {
            let n = write(&mut self.buffer[VIRTIO_NET_HDR_LEN..VIRTIO_NET_HDR_LEN + most])?;
            seen(&self.buffer[VIRTIO_NET_HDR_LEN..VIRTIO_NET_HDR_LEN + n]);
            self.begin(n, alone);
            if alone {
                self.flush(&mut device);
            }
            return Ok(());
        };
        let mut saved = [0; skyhaul_wire::MAX_HEADER];
        let saved = &mut saved[..j.headers];
        let at = j.end - j.headers;
        saved.copy_from_slice(&self.buffer[at..j.end]);
        let written = write(&mut self.buffer[at..at + most]);
        let n = *written.as_ref().unwrap_or(&0);
        let (before, packet) = self.buffer.split_at_mut(at);
        let packet = &mut packet[..n];
        if n > 0 {
            seen(packet);
        }
        let first = &before[VIRTIO_NET_HDR_LEN..];
        let payload = (j.end - VIRTIO_NET_HDR_LEN - j.headers) as u32;
        let joins = parts(packet) == Some((j.ip, j.headers))
            && n - j.headers <= j.each
            && seq(packet, j.ip) == seq(first, j.ip).wrapping_add(payload)
            && alike(&first[..j.headers], &packet[..j.headers], j.ip);
        let pushed = joins && pushes(packet, j.ip);
        if !joins {
            self.aside[..n].copy_from_slice(packet);
        }
        packet_head(&mut self.buffer, at, saved);
        written?;
        if joins {
            // PSH of a super-packet is that of its last packet: nothing follows it.
            j.full = n - j.headers < j.each || pushed;
            if pushed {
                self.buffer[VIRTIO_NET_HDR_LEN + j.ip + 13] |= Flags::PSH.bits();
            }
            j.packets += 1;
            j.end = at + n;
            self.joined = Some(j);
        } else {
            self.flush(&mut device);
            self.buffer[VIRTIO_NET_HDR_LEN..VIRTIO_NET_HDR_LEN + n].copy_from_slice(&self.aside[..n]);
            self.begin(n, false);
        }
        Ok(())
    }

    /// Starts a super-packet with a first packet of `n` bytes, already in place.
    fn begin(&mut self, n: usize, alone: bool) {
        let end = VIRTIO_NET_HDR_LEN + n;
        let packet = &self.buffer[VIRTIO_NET_HDR_LEN..end];
        let left = !alone && self.checksum == Checksum::Left;
        let single = Joined { headers: 0, ip: ip_header(packet), left, each: 0, packets: 1, end, full: true };
        self.joined = Some(match parts(packet) {
            Some((ip, headers)) if !alone => {
                Joined { headers, ip, each: n - headers, full: pushes(packet, ip), ..single }
            }
            _ => single,
        });
    }

    /// Passes the waiting super-packet to `device`, with its header.
    pub(crate) fn flush(&mut self, mut device: impl FnMut(&[u8])) {
        let Some(j) = self.joined.take() else { return };
        let packet = &mut self.buffer[..j.end];
        if j.packets > 1 {
            j.seal(packet);
        } else {
            j.header(packet, j.left);
        }
        device(packet);
    }
}

/// Restores the bytes that a header had overwritten.
fn packet_head(buffer: &mut [u8], at: usize, saved: &[u8]) {
    buffer[at..at + saved.len()].copy_from_slice(saved);
}

impl Joined {
    /// Writes the headers of a super-packet: its length, and the data that the kernel needs to split it (virtio 1.2
    /// §5.1.6). The TCP checksum field holds the sum of the pseudo header, from which the kernel computes the
    /// checksum.
    fn seal(&self, buffer: &mut [u8]) {
        let (ip, rest) = buffer[VIRTIO_NET_HDR_LEN..].split_at_mut(self.ip);
        let v4 = self.ip != ip::V6_HEADER;
        let (total, tcp) = ((self.ip + rest.len()) as u16, rest.len() as u32);
        let (ends, at) = if v4 { (12..20, 2) } else { (8..40, 4) };
        let length = if v4 { total } else { tcp as u16 };
        ip[at..at + 2].copy_from_slice(&length.to_be_bytes());
        if v4 {
            ip[10..12].fill(0);
            let sum = Sum::default().bytes(ip).finish();
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        let pseudo = Sum::default().bytes(&ip[ends]).long(tcp::PROTOCOL.into()).long(tcp).finish();
        rest[16..18].copy_from_slice(&(!pseudo).to_be_bytes());
        self.header(buffer, true);
    }

    /// Writes the virtio-net header of a packet: how to split it, if necessary, and where the checksum goes, if the
    /// device computes it.
    fn header(&self, buffer: &mut [u8], left: bool) {
        let v4 = self.ip != ip::V6_HEADER;
        let sum = VirtioNetHdr {
            flags: NEEDS_CHECKSUM,
            csum_start: self.ip as u16,
            csum_offset: 16,
            ..VirtioNetHdr::default()
        };
        let header = match (self.packets > 1, left) {
            (true, _) => VirtioNetHdr {
                gso_type: if v4 { VIRTIO_NET_HDR_GSO_TCPV4 } else { VIRTIO_NET_HDR_GSO_TCPV6 },
                hdr_len: self.headers as u16,
                gso_size: self.each as u16,
                ..sum
            },
            (false, true) => sum,
            (false, false) => VirtioNetHdr::default(),
        };
        // The buffer is exactly as long as the header.
        let _ = header.encode(&mut buffer[..VIRTIO_NET_HDR_LEN]);
    }
}

/// What was read from the device: one packet, or several that the kernel has merged.
pub(crate) struct Arrivals {
    /// With the device's header.
    whole: Vec<u8>,
    len: usize,
    header: VirtioNetHdr,
    /// The packets after a split.
    packets: Vec<Vec<u8>>,
    sizes: Vec<usize>,
}

impl Arrivals {
    pub(crate) fn new() -> Self {
        let header = VirtioNetHdr::default();
        Self { whole: vec![0; ROOM], len: 0, header, packets: Vec::new(), sizes: Vec::new() }
    }

    /// Reads once from the kernel; false if there is nothing now.
    ///
    /// # Errors
    /// If the device no longer exists.
    pub(crate) fn read(&mut self, tun: &Tun) -> Result<bool, NetError> {
        let Some(n) = tun.read(&mut self.whole)? else { return Ok(false) };
        self.take(n);
        Ok(true)
    }
    /// Takes what the buffer begins with, `n` bytes.
    fn take(&mut self, n: usize) {
        // Without a complete header it is no packet.
        let header = VirtioNetHdr::decode(self.whole.get(..n.min(VIRTIO_NET_HDR_LEN)).unwrap_or_default());
        (self.len, self.header) = header.map_or((VIRTIO_NET_HDR_LEN, VirtioNetHdr::default()), |h| (n, h));
    }

    /// What was read, if its checksum need not be verified, and the number of packets in it: nothing was lost on the way from
    /// the kernel, which has verified the checksum before or has left it to the device.
    pub(crate) fn whole(&self) -> Option<(&[u8], u64)> {
        let packet = self.whole.get(VIRTIO_NET_HDR_LEN..self.len)?;
        let payload = packet.len().saturating_sub(self.headers(packet)?);
        let packets = if self.is_merged() { payload.div_ceil(self.header.gso_size.max(1).into()) } else { 1 };
        (self.header.flags & NEEDS_CHECKSUM != 0).then_some((packet, packets as u64))
    }

    fn is_merged(&self) -> bool {
        self.header.gso_type & !ECN != NOT_MERGED
    }

    /// Length of the headers of IP and of its payload, bytes, as the device's header says.
    fn headers(&self, packet: &[u8]) -> Option<usize> {
        let ip = usize::from(self.header.csum_start);
        if self.header.csum_offset == UDP_CHECKSUM {
            return Some(ip + UDP_HEADER);
        }
        Some(ip + usize::from(packet.get(ip + 12)? >> 4) * 4)
    }

    /// The packets in it, each with its own checksum.
    pub(crate) fn packets(&mut self) -> impl Iterator<Item = &[u8]> {
        let merged = self.is_merged();
        if merged {
            self.split();
        } else if self.header.flags & NEEDS_CHECKSUM != 0 {
            self.fill_checksum();
        }
        let split = self.packets.iter().zip(&self.sizes).map(|(p, n)| &p[..*n]);
        let single = self.whole.get(VIRTIO_NET_HDR_LEN..self.len).filter(|p| !merged && !p.is_empty());
        split.take(if merged { usize::MAX } else { 0 }).chain(single)
    }

    /// Splits merged packets. What the kernel describes wrongly is dropped.
    fn split(&mut self) {
        self.sizes.clear();
        let Some(packet) = self.whole.get(VIRTIO_NET_HDR_LEN..self.len) else { return };
        let Some(headers) = self.headers(packet).filter(|n| *n < packet.len()) else { return };
        let v6 = packet[0] >> 4 == 6;
        let each = usize::from(self.header.gso_size).max(1);
        let count = (packet.len() - headers).div_ceil(each);
        if self.packets.len() < count {
            self.packets.resize_with(count, Vec::new);
        }
        for p in &mut self.packets[..count] {
            if p.len() < headers + each {
                p.resize(headers + each, 0);
            }
        }
        self.sizes.resize(count, 0);
        let header = VirtioNetHdr { hdr_len: headers as u16, ..self.header };
        let packet = &mut self.whole[VIRTIO_NET_HDR_LEN..self.len];
        let n = gso_split(packet, header, &mut self.packets[..count], &mut self.sizes, 0, v6);
        self.sizes.truncate(n.unwrap_or(0));
    }

    /// Writes the checksum that was left to the device: its field holds the sum of the pseudo header.
    fn fill_checksum(&mut self) {
        let start = usize::from(self.header.csum_start);
        let at = start + usize::from(self.header.csum_offset);
        let Some(packet) = self.whole.get_mut(VIRTIO_NET_HDR_LEN..self.len) else { return };
        let Some(sum) = packet.get(start..).map(|p| Sum::default().bytes(p).finish()) else { return };
        if let Some(field) = packet.get_mut(at..at + 2) {
            field.copy_from_slice(&sum.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_tcp::{Mark, Segment, Seq};
    use skyhaul_wire::{Agreement, Envelope, MAX_HEADER, Packet, Plan, Profile, Transport, encode_with};

    /// Where packets go, and what goes.
    struct Device {
        departures: Departures,
        agreed: Agreement,
        envelope: Envelope,
        written: Vec<Vec<u8>>,
        seen: Vec<Vec<u8>>,
    }

    impl Device {
        fn new(plan: Plan, profile: Profile, v4: bool) -> Self {
            let ends =
                if v4 { ["10.0.0.1:1000", "10.0.0.2:2000"] } else { ["[fd00::1]:1000", "[fd00::2]:2000"] };
            let [src, dst] = ends.map(|e| e.parse().unwrap());
            Self {
                departures: Departures::new(),
                agreed: Agreement { plan, ..Agreement::with(profile) },
                envelope: Envelope::new(src, dst),
                written: Vec::new(),
                seen: Vec::new(),
            }
        }
        fn push(&mut self, s: &Segment, merge: Merge) {
            let Self { departures, agreed, envelope, written, seen } = self;
            let fill = |room: &mut [u8]| {
                for (i, b) in room.iter_mut().enumerate() {
                    *b = (s.seq.0 as usize + i) as u8;
                }
            };
            let sum = if merge == Merge::Allowed { departures.checksum() } else { Checksum::Written };
            let write = |room: &mut [u8]| encode_with(room, envelope, agreed, s, sum, fill);
            let most = MAX_HEADER + s.len as usize;
            let show = |p: &[u8]| seen.push(p.to_vec());
            departures.push(most, merge, write, |p| written.push(p.to_vec()), show).unwrap();
        }
        fn flush(&mut self) {
            let Self { departures, written, .. } = self;
            departures.flush(|p| written.push(p.to_vec()));
        }
        /// What the kernel makes of it: the packets that each thing written stands for.
        fn taken_apart(&self) -> Vec<Vec<Vec<u8>>> {
            self.written.iter().map(|w| apart(w)).collect()
        }
    }

    /// The packets of a super-packet, by the library's reading of its header.
    fn apart(w: &[u8]) -> Vec<Vec<u8>> {
        let header = VirtioNetHdr::decode(&w[..VIRTIO_NET_HDR_LEN]).unwrap();
        let mut packet = w[VIRTIO_NET_HDR_LEN..].to_vec();
        if header.gso_type == 0 {
            if header.flags == NEEDS_CHECKSUM {
                let (from, at) = (usize::from(header.csum_start), usize::from(header.csum_offset));
                let sum = Sum::default().bytes(&packet[from..]).finish();
                packet[from + at..from + at + 2].copy_from_slice(&sum.to_be_bytes());
            } else {
                assert_eq!(header.flags, 0);
            }
            return vec![packet];
        }
        let v6 = header.gso_type == VIRTIO_NET_HDR_GSO_TCPV6;
        const MOST: usize = 800;
        let (mut out, mut sizes) = (vec![vec![0; 2048]; MOST], vec![0; MOST]);
        let n = tun_rs::gso_split(&mut packet, header, &mut out, &mut sizes, 0, v6).unwrap();
        out.iter().zip(sizes).take(n).map(|(p, len)| p[..len].to_vec()).collect()
    }

    fn data(n: u32, len: u32) -> Segment {
        let seq = Seq(u32::MAX - 5000).add(n * 1000);
        let ts = Some((7, 9));
        Segment { seq, ack: Seq(5), len, window: 1000, ts, flags: Flags::ACK, ..Segment::default() }
    }
    fn probe(n: u32) -> Segment {
        Segment { mark: Mark::Dummy, low_priority: true, ts: None, ..data(n, 1000) }
    }

    #[test]
    fn what_follows_is_joined_and_comes_apart_as_it_was() {
        for v4 in [true, false] {
            let mut d = Device::new(Plan::LowerEffort, Profile::Paper, v4);
            for n in 0..10 {
                d.push(&data(n, 1000), Merge::Allowed);
            }
            d.push(&data(10, 400), Merge::Allowed);
            // Nothing can follow a shorter one.
            d.push(&Segment { seq: data(10, 0).seq.add(400), ..data(0, 1000) }, Merge::Allowed);
            d.flush();
            let apart = d.taken_apart();
            assert_eq!(apart.iter().map(Vec::len).collect::<Vec<_>>(), [11, 1]);
            for (i, (p, seen)) in apart.concat().iter().zip(&d.seen).enumerate() {
                let read = |p: &[u8]| match Packet::parse(p).unwrap().transport {
                    Transport::Tcp(t) => (t.segment(&d.agreed), t.payload.to_vec()),
                    other => panic!("{other:?}"),
                };
                assert_eq!(read(p), read(seen), "packet {i}");
            }
        }
    }

    fn arrived(w: &[u8]) -> Arrivals {
        let mut a = Arrivals::new();
        a.whole[..w.len()].copy_from_slice(w);
        a.take(w.len());
        a
    }

    #[test]
    fn what_is_written_arrives_whole_or_apart() {
        for (v4, len, number) in [(true, 1000, 10), (false, 1000, 10), (true, 88, 700), (true, 1000, 1)] {
            let mut d = Device::new(Plan::LowerEffort, Profile::Paper, v4);
            d.departures.set_checksum(Checksum::Left);
            for n in 0..number {
                let seq = data(0, 0).seq.add(n * len);
                d.push(&Segment { seq, ..data(0, len) }, Merge::Allowed);
            }
            d.flush();
            assert_eq!(d.written.len(), 1);
            let mut a = arrived(&d.written[0]);
            let (whole, packets) = a.whole().expect("no checksum to verify");
            assert_eq!((whole, packets), (&d.written[0][VIRTIO_NET_HDR_LEN..], u64::from(number)));
            match Packet::parse_verified(whole).unwrap().transport {
                Transport::Tcp(t) => assert_eq!(t.payload.len(), (len * number) as usize),
                other => panic!("{other:?}"),
            }
            let packets: Vec<Vec<u8>> = a.packets().map(<[u8]>::to_vec).collect();
            assert_eq!(packets, apart(&d.written[0]));
            assert!(packets.iter().all(|p| Packet::parse(p).is_ok()));
        }
    }

    /// The kernel does not write such headers; still, nothing but packets comes of them.
    #[test]
    fn headers_that_make_no_sense_are_survived() {
        let mut d = Device::new(Plan::LowerEffort, Profile::Paper, true);
        (0..5).for_each(|n| d.push(&data(n, 1000), Merge::Allowed));
        d.flush();
        let good = d.written[0].clone();
        for n in 0..good.len().min(200) {
            let mut a = arrived(&good[..n]);
            let _ = a.whole();
            for p in a.packets() {
                let _ = Packet::parse(p);
            }
        }
        for at in 0..VIRTIO_NET_HDR_LEN + 40 {
            for value in [0, 1, 2, 3, 5, 0x7f, 0x80, 0xff] {
                let mut bad = good.clone();
                bad[at] = value;
                let mut a = arrived(&bad);
                if let Some((whole, _)) = a.whole() {
                    let _ = Packet::parse_verified(whole);
                }
                for p in a.packets() {
                    let _ = Packet::parse(p);
                }
            }
        }
    }

    #[test]
    fn the_end_of_a_write_ends_a_super_packet() {
        let mut d = Device::new(Plan::LowerEffort, Profile::Off, false);
        let end = |n| Segment { flags: Flags::ACK.with(Flags::PSH), ..data(n, 1000) };
        for s in [data(0, 1000), data(1, 1000), end(2), data(3, 1000), end(4), end(5), data(6, 1000)] {
            d.push(&s, Merge::Allowed);
        }
        d.flush();
        let apart = d.taken_apart();
        assert_eq!(apart.iter().map(Vec::len).collect::<Vec<_>>(), [3, 2, 1, 1]);
        assert_eq!(apart.concat(), d.seen);
    }

    #[test]
    fn a_checksum_that_is_left_to_the_device_is_the_same_one() {
        for v4 in [true, false] {
            let [mut written, mut left] = [Checksum::Written, Checksum::Left].map(|by| {
                let mut d = Device::new(Plan::LowerEffort, Profile::Paper, v4);
                d.departures.set_checksum(by);
                let bare = Segment { ack: Seq(9), ..data(4, 0) };
                let fin = Segment { flags: Flags::ACK.with(Flags::FIN), ..data(5, 0) };
                for s in [data(0, 1000), data(1, 1000), probe(2), data(3, 333), bare, fin] {
                    d.push(&s, if s.mark == Mark::None { Merge::Allowed } else { Merge::Alone });
                }
                d
            });
            // Whoever begins a capture in between finds whole packets from there on, and nothing joined with what was not.
            left.departures.set_checksum(Checksum::Written);
            for d in [&mut written, &mut left] {
                d.push(&data(6, 1000), Merge::Allowed);
                d.push(&data(7, 1000), Merge::Allowed);
                d.flush();
            }
            assert_eq!(left.taken_apart(), written.taken_apart());
            assert_eq!(left.taken_apart().iter().map(Vec::len).collect::<Vec<_>>(), [2, 1, 1, 1, 1, 2]);
            // Of IPv4 those taken apart have numbers of their own.
            assert!(v4 || written.taken_apart().concat() == written.seen);
            assert_ne!(left.seen[0], written.seen[0], "nothing was left");
            let read = |p: &[u8]| Packet::parse(p).map(|p| p.ip).map_err(|e| e.to_string());
            for p in left.taken_apart().concat() {
                read(&p).unwrap();
            }
        }
    }

    #[test]
    fn other_numbers_options_acknowledgements_and_flags_are_not_joined() {
        let all: [fn(&mut Segment); 5] = [
            |s| s.seq = s.seq.add(1),
            |s| s.ts = Some((8, 9)),
            |s| s.ack = Seq(6),
            |s| s.flags = Flags::ACK.with(Flags::FIN),
            |s| s.window = 2000,
        ];
        for change in all {
            let mut d = Device::new(Plan::LowerEffort, Profile::Off, true);
            let mut other = data(1, 1000);
            change(&mut other);
            d.push(&data(0, 1000), Merge::Allowed);
            d.push(&other, Merge::Allowed);
            d.flush();
            let apart = d.taken_apart();
            assert_eq!(apart.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1], "{other:?}");
            assert_eq!(apart.concat(), d.seen);
        }
    }

    #[test]
    fn probes_stay_packets_of_their_own_in_their_place_under_every_plan() {
        for plan in [Plan::LowerEffort, Plan::Scavenger, Plan::Precedence] {
            let mut d = Device::new(plan, Profile::Paper, true);
            let order = [data(0, 1000), data(1, 1000), probe(0), probe(1), data(2, 1000), data(3, 1000)];
            for s in &order {
                let merge = if s.mark == Mark::None { Merge::Allowed } else { Merge::Alone };
                d.push(s, merge);
            }
            d.flush();
            let apart = d.taken_apart();
            assert_eq!(apart.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1, 1, 2], "{plan:?}");
            // Every packet that comes out has the priority and the mark of the one that went in.
            for (p, s) in apart.concat().iter().zip(&order) {
                let packet = Packet::parse(p).unwrap();
                let Transport::Tcp(t) = packet.transport else { panic!("TCP") };
                assert_eq!(packet.ip.dscp, plan.dscp(s.low_priority));
                assert_eq!(t.segment(&d.agreed), *s);
            }
        }
    }

    #[test]
    fn data_of_another_priority_is_never_joined() {
        for plan in [Plan::LowerEffort, Plan::Scavenger, Plan::Precedence] {
            let mut d = Device::new(plan, Profile::Off, false);
            d.push(&data(0, 1000), Merge::Allowed);
            d.push(&Segment { low_priority: true, ..data(1, 1000) }, Merge::Allowed);
            d.push(&data(2, 1000), Merge::Allowed);
            d.flush();
            assert_eq!(d.taken_apart().iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 1], "{plan:?}");
        }
    }

    #[test]
    fn a_super_packet_is_never_longer_than_ip_allows() {
        let mut d = Device::new(Plan::LowerEffort, Profile::Off, true);
        for n in 0..200 {
            d.push(&data(n, 1000), Merge::Allowed);
        }
        d.flush();
        assert!(d.written.iter().all(|w| w.len() <= VIRTIO_NET_HDR_LEN + LONGEST));
        assert_eq!(d.taken_apart().concat().len(), 200);
        assert!(d.written.len() <= 4, "{}", d.written.len());
    }

    #[test]
    fn a_packet_that_cannot_be_written_leaves_the_others_as_they_are() {
        let mut d = Device::new(Plan::LowerEffort, Profile::Off, true);
        d.push(&data(0, 1000), Merge::Allowed);
        let failed = d.departures.push(
            1200,
            Merge::Allowed,
            |room| {
                room.fill(0xaa);
                Err::<usize, _>("no")
            },
            |_| panic!("nothing is written yet"),
            |_| panic!("there is no packet"),
        );
        assert_eq!(failed, Err("no"));
        d.push(&data(1, 1000), Merge::Allowed);
        d.flush();
        let apart = d.taken_apart();
        assert_eq!(apart.len(), 1);
        let payload = |p: &[u8]| p[p.len() - 1000..].to_vec();
        assert_eq!(payload(&apart[0][0]), payload(&d.seen[0]));
        assert_eq!(payload(&apart[0][1]), payload(&d.seen[1]));
    }
}

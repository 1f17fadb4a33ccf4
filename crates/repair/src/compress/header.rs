//! Headers, and how one is told by its difference from another.

use super::{BY_PROTOCOL, CHECKSUM, COMPRESSED, IP_ALONE, RARE, RTP};
use crate::ip::{checksum, sum};

const TCP_PROTOCOL: u8 = 6;
const UDP_PROTOCOL: u8 = 17;
const ESP_PROTOCOL: u8 = 50;
const FRAGMENT_HEADER: u8 = 44;
const RTP_LENGTH: usize = 12;
/// The option of TCP with timestamps (RFC 7323), and the options of one byte.
const TIMESTAMPS: u8 = 8;
const END_OF_OPTIONS: u8 = 0;
const NO_OPERATION: u8 = 1;

/// What is compressed of a header: the profiles of RFC 5795.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Profile {
    Ip,
    Udp,
    Rtp,
    Tcp,
    Esp,
}

/// Where the parts of a header are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) v6: bool,
    pub(super) protocol: u8,
    pub(super) profile: Profile,
    /// Bytes of the IP header.
    ip: usize,
    /// Bytes of all that is compressed.
    pub(super) len: usize,
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..)?.first_chunk().copied()?))
}
fn long(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..)?.first_chunk().copied()?))
}
fn put(bytes: &mut [u8], at: usize, what: &[u8]) -> Option<()> {
    bytes.get_mut(at..at + what.len())?.copy_from_slice(what);
    Some(())
}

impl Layout {
    /// The layout of a packet; `None` for fragments, and for what is no packet with its length in the header.
    pub(super) fn of(packet: &[u8]) -> Option<Self> {
        let (v6, protocol, ip) = match packet.first()? >> 4 {
            4 => {
                let header: &[u8; 20] = packet.first_chunk()?;
                let ip = usize::from(header[0] & 15) * 4;
                let fragment = word(header, 6)? & 0x3fff != 0;
                if ip < 20 || ip > packet.len() || fragment || usize::from(word(header, 2)?) != packet.len() {
                    return None;
                }
                (false, header[9], ip)
            }
            6 => {
                let header: &[u8; 40] = packet.first_chunk()?;
                if usize::from(word(header, 4)?) + 40 != packet.len() || header[6] == FRAGMENT_HEADER {
                    return None;
                }
                (true, header[6], 40)
            }
            _ => return None,
        };
        let (profile, len) = match protocol {
            UDP_PROTOCOL if word(packet, ip + 4).map(usize::from) == Some(packet.len() - ip) => {
                (Profile::Udp, ip + 8)
            }
            TCP_PROTOCOL => match packet.get(ip + 12).map(|b| usize::from(b >> 4) * 4) {
                Some(len) if len >= 20 && ip + len <= packet.len() => (Profile::Tcp, ip + len),
                _ => (Profile::Ip, ip),
            },
            ESP_PROTOCOL if packet.len() >= ip + 8 => (Profile::Esp, ip + 8),
            _ => (Profile::Ip, ip),
        };
        // The length of a UDP datagram may be less than that of its header.
        let profile = if len > packet.len() { Profile::Ip } else { profile };
        Some(Self { v6, protocol, profile, ip, len: if profile == Profile::Ip { ip } else { len } })
    }
    /// The layout with this profile, as the first byte of a packet tells that installs a reference.
    pub(super) fn told(self, packet: &[u8], profile: u8) -> Option<Self> {
        match profile {
            BY_PROTOCOL => Some(self),
            RTP => self.rtp(packet),
            IP_ALONE => Some(self.ip_alone()),
            _ => None,
        }
    }
    /// The layout with the profile of a reference, if the packet has it.
    pub(super) fn with(self, profile: Profile, packet: &[u8]) -> Option<Self> {
        let layout = match profile {
            Profile::Rtp => self.rtp(packet)?,
            Profile::Ip => self.ip_alone(),
            _ => self,
        };
        (layout.profile == profile).then_some(layout)
    }
    pub(super) fn ip_alone(self) -> Self {
        Self { profile: Profile::Ip, len: self.ip, ..self }
    }
    /// The layout as RTP, if the packet may be that (RFC 3550 §5.1). RTCP has other payload types (RFC 5761 §4).
    pub(super) fn rtp(self, packet: &[u8]) -> Option<Self> {
        let header = packet.get(self.len..self.len + RTP_LENGTH)?;
        let may_be = self.profile == Profile::Udp && header[0] >> 6 == 2 && !(192..=223).contains(&header[1]);
        may_be.then_some(Self { profile: Profile::Rtp, len: self.len + RTP_LENGTH, ..self })
    }
    /// What the first byte of a packet tells that installs a reference with this layout.
    pub(super) fn profile_code(self, natural: Self) -> u8 {
        match self.profile {
            Profile::Rtp => RTP,
            Profile::Ip if natural.profile != Profile::Ip => IP_ALONE,
            _ => BY_PROTOCOL,
        }
    }
    /// The addresses.
    pub(super) fn addresses<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        packet.get(if self.v6 { 8..40 } else { 12..20 }).unwrap_or_default()
    }
    /// What tells flows between two addresses apart: ports or SPI.
    pub(super) fn ports<'a>(&self, packet: &'a [u8]) -> Option<&'a [u8]> {
        if self.profile == Profile::Ip { None } else { packet.get(self.ip..self.ip + 4) }
    }

    fn has_checksum(&self) -> bool {
        matches!(self.profile, Profile::Udp | Profile::Rtp | Profile::Tcp)
    }
    fn checksum_at(&self) -> usize {
        self.ip + if self.profile == Profile::Tcp { 16 } else { 6 }
    }
    /// Where class and hop limit are.
    fn rare(&self) -> [(usize, usize); 2] {
        if self.v6 { [(0, 2), (7, 1)] } else { [(1, 1), (8, 1)] }
    }
    /// Where the timestamps of TCP are among the options of a header.
    fn timestamps(&self, header: &[u8]) -> Option<usize> {
        let mut at = self.ip + 20;
        while at < self.len {
            match *header.get(at)? {
                END_OF_OPTIONS => return None,
                NO_OPERATION => at += 1,
                kind => {
                    let len = usize::from(*header.get(at + 1)?);
                    if kind == TIMESTAMPS && len == 10 && at + 10 <= self.len {
                        return Some(at + 2);
                    }
                    at += len.max(2);
                }
            }
        }
        None
    }

    /// Writes the lengths of a packet, and the checksums that are not carried. `zero`: the checksum of UDP is zero.
    fn complete(&self, packet: &mut [u8], carried: bool, zero: bool) -> Option<()> {
        let (len, ip) = (packet.len(), self.ip);
        if self.v6 {
            put(packet, 4, &u16::try_from(len - ip).ok()?.to_be_bytes())?;
        } else {
            put(packet, 2, &u16::try_from(len).ok()?.to_be_bytes())?;
            put(packet, 10, &[0, 0])?;
            let header = checksum(sum(packet.get(..ip)?));
            put(packet, 10, &header.to_be_bytes())?;
        }
        if matches!(self.profile, Profile::Udp | Profile::Rtp) {
            put(packet, ip + 4, &u16::try_from(len - ip).ok()?.to_be_bytes())?;
        }
        if self.has_checksum() && !carried {
            let at = self.checksum_at();
            put(packet, at, &[0, 0])?;
            if !zero {
                let pseudo = sum(self.addresses(packet)) + u64::from(self.protocol) + (len - ip) as u64;
                let mut value = checksum(pseudo + sum(packet.get(ip..)?));
                // Zero says that there is no checksum (RFC 768).
                if value == 0 && self.profile != Profile::Tcp {
                    value = 0xffff;
                }
                put(packet, at, &value.to_be_bytes())?;
            }
        }
        Some(())
    }
}

/// A header to which others refer.
#[derive(Clone, Debug)]
pub(super) struct Reference {
    pub(super) layout: Layout,
    header: Vec<u8>,
    /// Number of the datagram that installed it.
    pub(super) at: u64,
}

// Fields of TCP that are told.
const SEQ: u8 = 1;
const ACK: u8 = 2;
const FLAGS: u8 = 4;
const WINDOW: u8 = 8;
const URGENT: u8 = 16;
const TSVAL: u8 = 32;
const TSECR: u8 = 64;
const OPTIONS: u8 = 128;
// Fields of RTP.
const TYPE: u8 = 1;
const RTP_SEQ: u8 = 2;
const STAMP: u8 = 4;

fn put_grown(out: &mut Vec<u8>, mut n: u32) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}
/// Reads what [`put_grown`] has written.
fn grown(from: &mut &[u8]) -> Option<u32> {
    let mut n = 0_u64;
    for shift in (0..35).step_by(7) {
        let byte = byte(from)?;
        n |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return u32::try_from(n).ok();
        }
    }
    None
}
fn byte(from: &mut &[u8]) -> Option<u8> {
    let (byte, rest) = from.split_first()?;
    *from = rest;
    Some(*byte)
}
fn take<'a>(from: &mut &'a [u8], n: usize) -> Option<&'a [u8]> {
    let (head, rest) = from.split_at_checked(n)?;
    *from = rest;
    Some(head)
}

impl Reference {
    pub(super) fn new(packet: &[u8], layout: Layout, at: u64) -> Option<Self> {
        Some(Self { layout, header: packet.get(..layout.len)?.to_vec(), at })
    }

    /// Appends what differs in the header of a packet, and its payload; `first` is the first byte so far. The packet is of
    /// datagram `seq`. `None` if the difference cannot be told.
    fn tell(&self, packet: &[u8], seq: u64, mut first: u8, context: u8, out: &mut Vec<u8>) -> Option<()> {
        let (of, old) = (&self.layout, self.header.as_slice());
        let ip = of.ip;
        let start = out.len();
        out.extend([first, context]);
        let passed = seq.checked_sub(self.at)?;
        let mut fields = 0;
        let mask_at = out.len();
        if matches!(of.profile, Profile::Tcp | Profile::Rtp) {
            out.push(0);
        }
        if !of.v6 {
            let (now, before) = (word(packet, 4)?, word(old, 4)?);
            let moved = now.wrapping_sub(before);
            let mode = match moved {
                0 => 0,
                _ if u64::from(moved) == passed & 0xffff => 1,
                1..=255 => 2,
                _ => 3,
            };
            match mode {
                2 => out.push(moved as u8),
                3 => out.extend(now.to_be_bytes()),
                _ => {}
            }
            first |= mode << 2;
        }
        if of.rare().iter().any(|&(at, n)| packet.get(at..at + n) != old.get(at..at + n)) {
            first |= RARE;
            for (at, n) in of.rare() {
                out.extend(packet.get(at..at + n)?);
            }
        }
        if first & CHECKSUM != 0 {
            out.extend(word(packet, of.checksum_at())?.to_be_bytes());
        }
        let mut end = of.len;
        match of.profile {
            Profile::Tcp => {
                end = ip + usize::from(packet.get(ip + 12)? >> 4) * 4;
                let stamps = of.timestamps(old);
                let alike = |from: usize, to: usize| packet.get(from..to) == old.get(from..to);
                let same_options = end == of.len
                    && packet.get(ip + 12) == old.get(ip + 12)
                    && stamps.map_or(alike(ip + 20, end), |at| alike(ip + 20, at) && alike(at + 8, end));
                for (field, at) in [(SEQ, ip + 4), (ACK, ip + 8)] {
                    if !alike(at, at + 4) {
                        fields |= field;
                        put_grown(out, long(packet, at)?.wrapping_sub(long(old, at)?));
                    }
                }
                for (field, at, n) in [(FLAGS, ip + 13, 1), (WINDOW, ip + 14, 2), (URGENT, ip + 18, 2)] {
                    if !alike(at, at + n) {
                        fields |= field;
                        out.extend(packet.get(at..at + n)?);
                    }
                }
                if !same_options {
                    fields |= OPTIONS;
                    out.push(*packet.get(ip + 12)?);
                    out.extend(packet.get(ip + 20..end)?);
                } else if let Some(at) = stamps {
                    for (field, at) in [(TSVAL, at), (TSECR, at + 4)] {
                        if !alike(at, at + 4) {
                            fields |= field;
                            put_grown(out, long(packet, at)?.wrapping_sub(long(old, at)?));
                        }
                    }
                }
            }
            Profile::Rtp => {
                let at = ip + 8;
                if packet.get(at + 1) != old.get(at + 1) {
                    fields |= TYPE;
                    out.push(*packet.get(at + 1)?);
                }
                let number = word(packet, at + 2)?.wrapping_sub(word(old, at + 2)?);
                if number != 0 {
                    fields |= RTP_SEQ;
                    put_grown(out, number.into());
                }
                let stamp = long(packet, at + 4)?.wrapping_sub(long(old, at + 4)?);
                if stamp != 0 {
                    fields |= STAMP;
                    put_grown(out, stamp);
                }
            }
            Profile::Esp => {
                let grown = long(packet, ip + 4)?.wrapping_sub(long(old, ip + 4)?);
                // Beside other flows it grows less than the number of the datagram: zigzag, so that both are short.
                let beyond = grown.wrapping_sub(passed as u32) as i32;
                put_grown(out, (beyond << 1 ^ beyond >> 31) as u32);
            }
            Profile::Ip | Profile::Udp => {}
        }
        out[start] = first;
        if mask_at < out.len() && matches!(of.profile, Profile::Tcp | Profile::Rtp) {
            out[mask_at] = fields;
        }
        out.extend(packet.get(end..)?);
        Some(())
    }

    /// Appends a packet of datagram `seq` in compressed form; false, with nothing appended, if it would not come out the same.
    pub(super) fn compress(
        &self,
        packet: &[u8],
        seq: u64,
        first: u8,
        context: u8,
        out: &mut Vec<u8>,
    ) -> bool {
        let start = out.len();
        for checksum in [0, CHECKSUM] {
            if checksum != 0 && !self.layout.has_checksum() {
                break;
            }
            let told = self.tell(packet, seq, COMPRESSED | first | checksum, context, out);
            let same = told.is_some()
                && out.get(start..).and_then(|form| self.restore(form, seq)).is_some_and(|p| p == packet);
            if same {
                return true;
            }
            out.truncate(start);
        }
        false
    }

    /// The packet of datagram `seq` in compressed form.
    pub(super) fn restore(&self, form: &[u8], seq: u64) -> Option<Vec<u8>> {
        let (&[first, _], mut rest) = form.split_first_chunk()?;
        let from = &mut rest;
        let (of, ip) = (self.layout, self.layout.ip);
        let passed = seq.checked_sub(self.at)?;
        let mut p = Vec::with_capacity(of.len + form.len());
        p.extend_from_slice(&self.header);
        let fields = match of.profile {
            Profile::Tcp | Profile::Rtp => byte(from)?,
            _ => 0,
        };
        let mode = first >> 2 & 3;
        if of.v6 {
            if mode != 0 {
                return None;
            }
        } else {
            let before = word(&p, 4)?;
            let id = match mode {
                0 => before,
                1 => before.wrapping_add(passed as u16),
                2 => before.wrapping_add(byte(from)?.into()),
                _ => word(take(from, 2)?, 0)?,
            };
            put(&mut p, 4, &id.to_be_bytes())?;
        }
        if first & RARE != 0 {
            for (at, n) in of.rare() {
                put(&mut p, at, take(from, n)?)?;
            }
            // The first byte of IPv6 has the version, too.
            if p.first()? >> 4 != self.header.first()? >> 4 {
                return None;
            }
        }
        let carried = first & CHECKSUM != 0;
        let zero = of.has_checksum() && of.profile != Profile::Tcp && word(&p, of.checksum_at())? == 0;
        if carried {
            if !of.has_checksum() {
                return None;
            }
            put(&mut p, of.checksum_at(), take(from, 2)?)?;
        }
        let add = |p: &mut [u8], at: usize, n: u32| put(p, at, &long(p, at)?.wrapping_add(n).to_be_bytes());
        match of.profile {
            Profile::Tcp => {
                for (field, at) in [(SEQ, ip + 4), (ACK, ip + 8)] {
                    if fields & field != 0 {
                        add(&mut p, at, grown(from)?)?;
                    }
                }
                for (field, at, n) in [(FLAGS, ip + 13, 1), (WINDOW, ip + 14, 2), (URGENT, ip + 18, 2)] {
                    if fields & field != 0 {
                        put(&mut p, at, take(from, n)?)?;
                    }
                }
                if fields & OPTIONS != 0 {
                    let offset = byte(from)?;
                    put(&mut p, ip + 12, &[offset])?;
                    p.truncate(ip + 20);
                    p.extend(take(from, (usize::from(offset >> 4) * 4).checked_sub(20)?)?);
                } else if fields & (TSVAL | TSECR) != 0 {
                    let at = of.timestamps(&p)?;
                    for (field, at) in [(TSVAL, at), (TSECR, at + 4)] {
                        if fields & field != 0 {
                            add(&mut p, at, grown(from)?)?;
                        }
                    }
                }
            }
            Profile::Rtp => {
                let at = ip + 8;
                if fields & TYPE != 0 {
                    put(&mut p, at + 1, take(from, 1)?)?;
                }
                if fields & RTP_SEQ != 0 {
                    let n = word(&p, at + 2)?.wrapping_add(grown(from)? as u16);
                    put(&mut p, at + 2, &n.to_be_bytes())?;
                }
                if fields & STAMP != 0 {
                    add(&mut p, at + 4, grown(from)?)?;
                }
            }
            Profile::Esp => {
                let beyond = grown(from)?;
                let beyond = (beyond >> 1) as i32 ^ -((beyond & 1) as i32);
                add(&mut p, ip + 4, (passed as u32).wrapping_add(beyond as u32))?;
            }
            Profile::Ip | Profile::Udp => {}
        }
        p.extend_from_slice(rest);
        of.complete(&mut p, carried, zero)?;
        Some(p)
    }
}

//! The minimal work of a sender and of a receiver.
//!
//! The sender does nothing but send: one prebuilt segment, its sequence number replaced, as long as the window admits it.
//! No congestion control, no timestamps, no SACK; a stall of 200 ms sends everything unacknowledged again. The receiver
//! does nothing but acknowledge: one prebuilt acknowledgement for every second segment, its number replaced. It keeps no
//! byte, and what comes out of order is acknowledged like a duplicate.

use super::linux::Took;
use skyhaul_base::Duration;
use skyhaul_net::Clock;
use skyhaul_net::tun::Tun;
use skyhaul_net::wait::Wait;

const MSS: usize = 1460;
const IP: usize = 20;
const HEADERS: usize = 40;
pub(crate) const OUR_PORT: u16 = 40_000;
const FIN: u8 = 1;
const SYN: u8 = 2;
const ACK: u8 = 16;

/// The sum of 16-bit words that internet checksums are made of.
fn words(data: &[u8]) -> u32 {
    let (mut sum, pairs) = (0_u32, data.chunks_exact(2));
    if let [last] = pairs.remainder() {
        sum += u32::from(*last) << 8;
    }
    pairs.fold(sum, |s, w| s + u32::from(u16::from_be_bytes([w[0], w[1]])))
}
fn folded(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

struct Peer {
    ours: [u8; 4],
    theirs: [u8; 4],
    port: u16,
}

impl Peer {
    /// A packet, complete with checksums.
    fn packet(&self, seq: u32, ack: u32, flags: u8, options: &[u8], payload: usize) -> Vec<u8> {
        let tcp = 20 + options.len() + payload;
        let mut p = vec![0; IP + tcp];
        p[0] = 0x45;
        p[2..4].copy_from_slice(&((IP + tcp) as u16).to_be_bytes());
        p[6] = 0x40;
        (p[8], p[9]) = (64, 6);
        p[12..16].copy_from_slice(&self.ours);
        p[16..20].copy_from_slice(&self.theirs);
        let sum = folded(words(&p[..IP]));
        p[10..12].copy_from_slice(&sum.to_be_bytes());
        p[20..22].copy_from_slice(&OUR_PORT.to_be_bytes());
        p[22..24].copy_from_slice(&self.port.to_be_bytes());
        p[24..28].copy_from_slice(&seq.to_be_bytes());
        p[28..32].copy_from_slice(&ack.to_be_bytes());
        p[32] = ((20 + options.len()) << 2) as u8;
        p[33] = flags;
        p[34..36].copy_from_slice(&u16::MAX.to_be_bytes());
        p[HEADERS..HEADERS + options.len()].copy_from_slice(options);
        let sum = folded(words(&p[12..]) + 6 + tcp as u32);
        p[36..38].copy_from_slice(&sum.to_be_bytes());
        p
    }
}

/// Shift of the window in a SYN's options.
fn shift(options: &[u8]) -> u8 {
    match options {
        [1, rest @ ..] => shift(rest),
        [3, 3, n, ..] => *n,
        [_, len, ..] if *len >= 2 && options.len() > usize::from(*len) => {
            shift(&options[usize::from(*len)..])
        }
        _ => 0,
    }
}

pub(crate) fn send(tun: &Tun, ours: [u8; 4], theirs: [u8; 4], port: u16, bytes: u64) -> Took {
    let peer = Peer { ours, theirs, port };
    let mut wait = Wait::on(&[tun]).expect("descriptors");
    let mut buf = vec![0; 1 << 16];
    let first = 1_u32;
    let syn = peer.packet(first - 1, 0, SYN, &[2, 4, 5, 180, 1, 3, 3, 7], 0);
    tun.write(&syn).expect("writes");
    // The answer to the SYN; the kernel's other packets, such as router solicitations, are ignored.
    let (their_next, shift) = loop {
        let Some(n) = tun.read(&mut buf).expect("reads") else {
            if wait.until(Clock::now() + Duration::from_secs(1)).expect("waits").readable == 0 {
                tun.write(&syn).expect("writes");
            }
            continue;
        };
        let p = &buf[..n];
        if n >= HEADERS && p[0] == 0x45 && p[9] == 6 && p[33] == SYN | ACK {
            let seq = u32::from_be_bytes([p[24], p[25], p[26], p[27]]);
            let header = usize::from(p[32] >> 4) * 4;
            break (seq.wrapping_add(1), shift(&p[HEADERS..IP + header]));
        }
    };
    let mut full = peer.packet(0, their_next, ACK, &[], MSS);
    let base = !u16::from_be_bytes([full[36], full[37]]);
    let (took, ()) = Took::of(|| {
        let (mut una, mut nxt, mut window) = (0_u64, 0_u64, 0xffff_u64);
        while una < bytes {
            let mut burst = 0;
            while nxt < bytes && burst < 64 {
                let len = (bytes - nxt).min(MSS as u64);
                if nxt - una + len > window {
                    break;
                }
                let seq = first.wrapping_add(nxt as u32);
                if len == MSS as u64 {
                    full[24..28].copy_from_slice(&seq.to_be_bytes());
                    let sum = folded(u32::from(base) + (seq >> 16) + (seq & 0xffff));
                    full[36..38].copy_from_slice(&sum.to_be_bytes());
                    tun.write(&full).expect("writes");
                } else {
                    tun.write(&peer.packet(seq, their_next, ACK, &[], len as usize)).expect("writes");
                }
                nxt += len;
                burst += 1;
            }
            let mut read = 0;
            while let Some(n) = tun.read(&mut buf).expect("reads") {
                read += 1;
                if n >= HEADERS && buf[0] == 0x45 && buf[9] == 6 {
                    let ack = u32::from_be_bytes([buf[28], buf[29], buf[30], buf[31]]);
                    let ahead = ack.wrapping_sub(first.wrapping_add(una as u32));
                    if ahead < 1 << 31 {
                        una += u64::from(ahead);
                        window = u64::from(u16::from_be_bytes([buf[34], buf[35]])) << shift;
                    }
                }
            }
            nxt = nxt.max(una);
            if burst == 0 && read == 0 {
                let woken = wait.until(Clock::now() + Duration::from_millis(200)).expect("waits");
                if woken.readable == 0 {
                    nxt = una;
                }
            }
        }
    });
    // Until the FIN is acknowledged.
    let end = first.wrapping_add(bytes as u32);
    loop {
        tun.write(&peer.packet(end, their_next, FIN | ACK, &[], 0)).expect("writes");
        wait.until(Clock::now() + Duration::from_millis(200)).expect("waits");
        while let Some(n) = tun.read(&mut buf).expect("reads") {
            if n >= HEADERS
                && buf[0] == 0x45
                && buf[9] == 6
                && buf[28..32] == end.wrapping_add(1).to_be_bytes()
            {
                return took;
            }
        }
    }
}

/// Acknowledges what a program sends through the kernel's TCP, until its FIN; returns the payload bytes received.
pub(crate) fn receive(tun: &Tun, ours: [u8; 4], theirs: [u8; 4]) -> u64 {
    /// Window of 4 MiB, scaled by 2^7.
    const WINDOW: [u8; 2] = 0x8000_u16.to_be_bytes();
    let mut wait = Wait::on(&[tun]).expect("descriptors");
    let mut buf = vec![0; 1 << 16];
    let (mut ack, mut base, mut first) = (Vec::new(), 0, 0_u32);
    let (mut expected, mut unanswered) = (0_u32, 0);
    loop {
        let Some(n) = tun.read(&mut buf).expect("reads") else {
            wait.until(Clock::now() + Duration::from_secs(1)).expect("waits");
            continue;
        };
        let p = &buf[..n];
        if n < HEADERS || p[0] != 0x45 || p[9] != 6 {
            continue;
        }
        let seq = u32::from_be_bytes([p[24], p[25], p[26], p[27]]);
        if p[33] & SYN != 0 {
            let peer = Peer { ours, theirs, port: u16::from_be_bytes([p[20], p[21]]) };
            (first, expected) = (seq.wrapping_add(1), seq.wrapping_add(1));
            let answer = peer.packet(0, expected, SYN | ACK, &[2, 4, 5, 180, 1, 3, 3, 7], 0);
            tun.write(&answer).expect("writes");
            ack = peer.packet(1, 0, ACK, &[], 0);
            // The scaled window replaces that of the SYN-ACK; the checksum is computed again.
            ack[34..36].copy_from_slice(&WINDOW);
            ack[36..38].fill(0);
            base = !folded(words(&ack[12..]) + 6 + 20);
            continue;
        }
        let header = usize::from(p[32] >> 4) * 4;
        let fin = u32::from(p[33] & FIN);
        let span = (n - IP - header) as u32 + fin;
        if span == 0 {
            continue;
        }
        if seq == expected {
            expected = expected.wrapping_add(span);
            unanswered += 1;
        }
        if seq.wrapping_add(span) != expected || unanswered >= 2 || fin != 0 {
            unanswered = 0;
            ack[28..32].copy_from_slice(&expected.to_be_bytes());
            let sum = folded(u32::from(base) + (expected >> 16) + (expected & 0xffff));
            ack[36..38].copy_from_slice(&sum.to_be_bytes());
            tun.write(&ack).expect("writes");
        }
        if fin != 0 && seq.wrapping_add(span) == expected {
            return u64::from(expected.wrapping_sub(first)) - 1;
        }
    }
}

//! Compressed headers between two gateways.

use super::ByteReader;
use skyhaul_base::{Duration, Instant, Rate, Rng};
use skyhaul_path::QueueConfig;
use skyhaul_repair::code::{Datagram, ReedSolomon};
use skyhaul_repair::wire;
use skyhaul_repair::{Config, End, Frame, Kind, Output, Treatment, ip};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A frame on its way.
type Carried = Frame<Arc<[u8]>, Vec<u8>>;

/// The bytes are packets, each a change of one before, and what becomes of their frames. Whatever is lost, overtaken or repeated, what
/// comes out is what was sent, to the last bit.
///
/// # Panics
/// If it is not.
pub fn repair_headers(data: &[u8]) {
    let mut from = ByteReader(data);
    let config = Config {
        resequence: Duration::from_millis(if from.one_in(3) { 0 } else { 300 }),
        retries: from.below(3) as u32,
        mtu: Some(1500),
        compress: true,
        bundle: from.one_in(2),
        ..Config::new(Rate::from_bits_per_sec(10_000_000), QueueConfig::packets(1000))
    };
    let end = |name| End::new(&config, ReedSolomon::with_headers(true), Rng::stream(1, name));
    let mut ends = [end("near"), end("far")];
    let mut now = Instant::ZERO;
    let mut packets: Vec<Vec<u8>> = vec![seed(17), seed(6), seed(50), seed(1)];
    let mut sent: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
    let mut late: Vec<(usize, Carried)> = Vec::new();
    while !from.is_empty() {
        let op = from.byte();
        let index = from.below(packets.len());
        if op & 1 == 0 {
            let mut packet = packets[index].clone();
            let (at, by) = (from.below(packet.len()), from.byte());
            match op >> 1 & 3 {
                0 => packet[at] = packet[at].wrapping_add(by),
                1 => packet.resize(20 + usize::from(by), 3),
                2 => packet[at] ^= by,
                _ => {}
            }
            if packet.is_empty() || !matches!(packet[0] >> 4, 4 | 6) {
                packet = seed(17);
            }
            if op & 0x40 == 0 {
                complete(&mut packet);
            }
            *sent.entry(packet.clone()).or_default() += 1;
            packets[index] = packet.clone();
            let class = ip::class(&packet);
            let datagram = Datagram { bytes: packet, class, ..Datagram::default() };
            let fits = ends[0].offer(now, datagram, Treatment::Repaired, &mut |_, _| {});
            assert!(fits.is_ok());
        } else {
            now += Duration::from_millis(1 << (op >> 4 & 7));
        }
        for side in 0..2 {
            ends[side].handle_timeout(now);
            while let Some(Output::Frame { frame, .. }) = ends[side].poll_frame(now, &mut |_, _| {}) {
                let frame = carried(frame);
                match (side, op >> 5) {
                    (0, 1 | 5) => {}
                    (0, 3) => late.push((1 - side, frame)),
                    _ => {
                        ends[1 - side].receive(now, frame, false);
                    }
                }
            }
        }
        if op >> 5 == 7 || late.len() > 50 {
            for (side, frame) in late.drain(..) {
                ends[side].receive(now, frame, false);
            }
        }
        while let Some(delivery) = ends[1].poll_delivery(now) {
            let left = sent.get_mut(&*delivery.datagram).filter(|left| **left > 0);
            *left.expect("a packet that was not sent, or not so often") -= 1;
        }
        while ends[1].poll_lost().is_some() {}
        assert!(config.resequence.is_zero() || ends[1].counters().unreadable <= ends[1].counters().late);
    }
}

/// A frame as the other end reads it.
fn carried(frame: Frame<Datagram, Vec<u8>>) -> Carried {
    let kind = match frame.kind {
        Kind::Source { seq, floor, datagram } => {
            Kind::Source { seq, floor, datagram: Arc::from(datagram.bytes) }
        }
        Kind::Repair { first, k, parity, index, symbol } => Kind::Repair { first, k, parity, index, symbol },
        Kind::Report(report) => Kind::Report(report),
    };
    let frame = Frame { number: frame.number, kind };
    let mut bytes = Vec::new();
    wire::encode(&frame, wire::DIGITS, &mut bytes);
    assert!(bytes.len() < 2000);
    frame
}

/// A packet of this protocol.
fn seed(protocol: u8) -> Vec<u8> {
    let mut p = vec![0x45, 0, 0, 60, 0, 1, 0x40, 0, 64, protocol, 0, 0, 10, 1, 0, 2, 10, 2, 0, 2];
    p.extend([0x30, 0x39, 0, 53, 0, 40, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 2, 0, 0, 0, 0, 0]);
    p.resize(60, 7);
    complete(&mut p);
    p
}

/// Lengths and checksums as a host writes them.
fn complete(p: &mut [u8]) {
    let len = p.len();
    if p[0] >> 4 != 4 || len < 28 || p[0] & 15 != 5 {
        return;
    }
    p[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    let put = |p: &mut [u8], at: usize, n: u16| p[at..at + 2].copy_from_slice(&n.to_be_bytes());
    put(p, 10, 0);
    let header = ip::checksum(ip::sum(&p[..20]));
    put(p, 10, header);
    let at = match p[9] {
        6 if len >= 40 => 36,
        17 => 26,
        _ => return,
    };
    if p[9] == 17 {
        put(p, 24, (len - 20) as u16);
    }
    put(p, at, 0);
    let pseudo = ip::sum(&p[12..20]) + u64::from(p[9]) + (len - 20) as u64;
    let sum = ip::checksum(pseudo + ip::sum(&p[20..]));
    put(p, at, if sum == 0 { 0xffff } else { sum });
}

//! Frames of the other gateway of a repaired segment.

use super::ByteReader;
use skyhaul_base::{Duration, Instant, Rate, Rng};
use skyhaul_path::QueueConfig;
use skyhaul_repair::code::{Datagram, ReedSolomon};
use skyhaul_repair::wire::{self, DIGITS, Expected};
use skyhaul_repair::{Config, End, Frame, Kind, Output, Treatment, ip};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The first bytes choose the configuration of an end and what it has sent before; the rest are frames, each after its length. A
/// frame that is read means the same when it is written and read again. An end that receives any frames delivers no datagram
/// twice, holds none longer than `resequence`, and comes to rest.
///
/// # Panics
/// If one of these fails.
pub fn repair_frames(data: &[u8]) {
    let mut from = ByteReader(data);
    let config = Config {
        retries: from.below(4) as u32,
        resequence: Duration::from_millis(from.byte().into()),
        fec: !from.one_in(4),
        low_priority: from.one_in(3),
        compress: from.one_in(2),
        bundle: from.one_in(2),
        ..Config::new(Rate::from_bits_per_sec(10_000_000), QueueConfig::packets(1000))
    };
    let mut end = End::new(&config, ReedSolomon::with_headers(config.compress), Rng::stream(1, "fuzz"));
    let mut now = Instant::ZERO;
    for _ in 0..from.below(50) {
        let datagram = Datagram { bytes: packet(1 + from.below(200)), ..Datagram::default() };
        let fits = end.offer(now, datagram, Treatment::Repaired, &mut |_, _| {});
        assert!(fits.is_ok());
    }
    let mut delivered = BTreeSet::new();
    while !from.is_empty() {
        let len = usize::from(from.byte()).min(from.0.len());
        let (bytes, rest) = from.0.split_at(len);
        from.0 = rest;
        let arrival = now + Duration::from_micros(500 * (1 + len as u64));
        // First the timers that are due before: an end holds no datagram too long only if it is woken in time.
        for _ in 0..10_000 {
            let next = end.next_timeout(now);
            if next > arrival {
                break;
            }
            now = now.max(next);
            end.handle_timeout(now);
            drain(&mut end, now, &mut delivered);
        }
        now = arrival;
        check_round_trip(bytes, &end.expected());
        if let Ok(frame) = wire::decode(bytes, &end.expected()) {
            let marked = len % 7 == 0;
            end.receive(now, owned(&frame), marked);
        }
        drain(&mut end, now, &mut delivered);
    }
    // Time goes on until nothing is left to do.
    for _ in 0..100_000 {
        let next = end.next_timeout(now);
        if next == Instant::MAX {
            let longest = end.counters().longest_held;
            assert!(longest <= config.resequence, "{longest:?}");
            return;
        }
        now = now.max(next);
        end.handle_timeout(now);
        drain(&mut end, now, &mut delivered);
    }
    panic!("no rest");
}

/// A packet of IPv4 with so many bytes of ICMP.
fn packet(len: usize) -> Vec<u8> {
    let total = ((20 + len) as u16).to_be_bytes();
    let mut p = vec![0x45, 0, total[0], total[1], 0, 1, 0x40, 0, 64, 1, 0, 0, 10, 1, 0, 2, 10, 2, 0, 2];
    let sum = ip::checksum(ip::sum(&p)).to_be_bytes();
    p[10..12].copy_from_slice(&sum);
    p.resize(20 + len, 7);
    p
}

fn owned(frame: &Frame<&[u8], &[u8]>) -> Frame<Arc<[u8]>, Vec<u8>> {
    let kind = match frame.kind {
        Kind::Source { seq, floor, datagram } => Kind::Source { seq, floor, datagram: Arc::from(datagram) },
        Kind::Repair { first, k, parity, index, symbol } => {
            Kind::Repair { first, k, parity, index, symbol: symbol.to_vec() }
        }
        Kind::Report(report) => Kind::Report(report),
    };
    Frame { number: frame.number, kind }
}

/// Takes all frames and datagrams that are ready.
fn drain(end: &mut End<ReedSolomon>, now: Instant, delivered: &mut BTreeSet<u64>) {
    while let Some(output) = end.poll_frame(now, &mut |_, _| {}) {
        let Output::Frame { frame, digits, size, .. } = output else { panic!("nothing passes") };
        let mut bytes = Vec::new();
        wire::encode(&frame, digits, &mut bytes);
        assert_eq!(bytes.len() as u32 + Config::OUTER, size, "sizes are as counted");
    }
    // The datagrams of one number come one after the other.
    let mut last = None;
    while let Some(delivery) = end.poll_delivery(now) {
        let seq = Some(delivery.seq);
        assert!(last == seq || delivered.insert(delivery.seq), "{} came twice", delivery.seq);
        last = seq;
    }
    while end.poll_lost().is_some() {}
}

/// Checks that a frame, once written, is read as the same frame.
fn check_round_trip(bytes: &[u8], expected: &Expected) {
    let Ok(frame) = wire::decode(bytes, expected) else { return };
    let mut again = Vec::new();
    wire::encode(&frame, DIGITS, &mut again);
    assert_eq!(wire::decode(&again, expected).as_ref(), Ok(&frame));
}

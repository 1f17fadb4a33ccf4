//! Frames as bytes.
//!
//! All numbers are in network byte order. Numbers of frames and of datagrams are truncated to 24 bits, as QUIC does
//! (RFC 9000 §17.1): the other end expands them to the nearest to what it expects.
//!
//! ```text
//! all frames   version and type (1), number (3)
//! source       seq (3), seq − floor (2; 65535 if unknown), datagram
//! repair       first (3), k (2), parity (1), index (1), symbol
//! report       largest (3), delay in µs (4), base (3), next (3), received (4), lost (4), bursts (4), ranges (1),
//!              of each range: first − base (3), length (3)
//! ```
//!
//! **The seam for encryption.** The first [`CLEAR`] bytes are the associated data of an AEAD (RFC 5116), and the full
//! number of the frame, which no frame repeats, is the counter of its nonce. Everything after them is encrypted, and
//! the tag follows. A receiver expands the number with [`number`], opens the frame, and only then calls [`decode`].

use crate::frame::{Frame, Kind, Ranges, Report};
use skyhaul_base::Duration;

/// Version of the format.
pub const VERSION: u8 = 1;
/// Bytes of a frame that encryption leaves readable.
pub const CLEAR: usize = 4;
/// Bytes before the datagram of a source frame.
pub const SOURCE_HEADER: u32 = 9;
/// Bytes before the symbol of a repair frame.
pub const REPAIR_HEADER: u32 = 11;
/// Bytes of a report without ranges.
pub const REPORT_SIZE: u32 = 30;
/// Bytes of a range.
pub const RANGE_SIZE: u32 = 6;

// Types of frames.
const SOURCE: u8 = 0;
const REPAIR: u8 = 1;
const REPORT: u8 = 2;
/// A floor that is unknown, or too far below the datagram for the field.
const UNKNOWN: u16 = u16::MAX;
/// Frames carry numbers modulo 2^24.
const MODULUS: u64 = 1 << 24;

/// The numbers that a receiver expects, to which it expands truncated ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// Number of the next frame of the other end.
    pub number: u64,
    /// Number of the next datagram of the other end.
    pub seq: u64,
    /// Number of the next frame of this end.
    pub own_number: u64,
    /// Number of the next datagram of this end.
    pub own_seq: u64,
}

/// Why bytes are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// They end too early.
    #[error("the frame is too short")]
    Short,
    /// Another version: the two gateways need the same.
    #[error("version {0} of the format, this gateway has version 1: install the same release on both")]
    Version(u8),
    /// The type is unknown.
    #[error("frames of type {0} are unknown")]
    Type(u8),
    /// Its fields contradict each other.
    #[error("the fields of the frame contradict each other")]
    Contradictory,
}

/// The number nearest to `expected` with these lowest 24 bits.
fn expand(low: u64, expected: u64) -> u64 {
    let near = (expected & !(MODULUS - 1)) | low;
    let half = MODULUS / 2;
    if near > expected.saturating_add(half) && near >= MODULUS {
        near - MODULUS
    } else if expected > near && expected - near > half {
        near.checked_add(MODULUS).unwrap_or(near)
    } else {
        near
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], Malformed> {
        let (head, rest) = self.0.split_at_checked(n).ok_or(Malformed::Short)?;
        self.0 = rest;
        Ok(head)
    }
    fn number(&mut self, bytes: usize) -> Result<u64, Malformed> {
        Ok(self.take(bytes)?.iter().fold(0, |n, b| n << 8 | u64::from(*b)))
    }
    fn long(&mut self) -> Result<u32, Malformed> {
        Ok(self.number(4)? as u32)
    }
}

fn put(out: &mut Vec<u8>, n: u64, bytes: usize) {
    out.extend(&n.to_be_bytes()[8 - bytes..]);
}

/// The full number of a frame, from its readable bytes.
///
/// # Errors
/// If they are too few, or of another version.
pub fn number(bytes: &[u8], expected: u64) -> Result<u64, Malformed> {
    let mut from = Reader(bytes);
    let first = from.number(1)? as u8;
    if first >> 4 != VERSION {
        return Err(Malformed::Version(first >> 4));
    }
    Ok(expand(from.number(3)?, expected))
}

/// Appends a frame.
pub fn encode<D: AsRef<[u8]>, S: AsRef<[u8]>>(frame: &Frame<D, S>, out: &mut Vec<u8>) {
    let kind = match frame.kind {
        Kind::Source { .. } => SOURCE,
        Kind::Repair { .. } => REPAIR,
        Kind::Report(_) => REPORT,
    };
    out.push(VERSION << 4 | kind);
    put(out, frame.number, 3);
    match &frame.kind {
        Kind::Source { seq, floor, datagram } => {
            put(out, *seq, 3);
            let below = floor.and_then(|floor| u16::try_from(seq.checked_sub(floor)?).ok());
            put(out, below.unwrap_or(UNKNOWN).into(), 2);
            out.extend(datagram.as_ref());
        }
        Kind::Repair { first, k, parity, index, symbol } => {
            put(out, *first, 3);
            put(out, (*k).into(), 2);
            out.extend([*parity, *index]);
            out.extend(symbol.as_ref());
        }
        Kind::Report(r) => {
            put(out, r.largest, 3);
            put(out, (r.delay.as_nanos() / 1000).min(u32::MAX.into()), 4);
            put(out, r.base, 3);
            put(out, r.next, 3);
            [r.received, r.lost, r.bursts].into_iter().for_each(|n| put(out, n.into(), 4));
            let ranges = r.missing.as_slice();
            out.push(ranges.len() as u8);
            for (first, len) in ranges {
                put(out, first - r.base, 3);
                put(out, (*len).into(), 3);
            }
        }
    }
}

/// Reads a frame.
///
/// # Errors
/// If the bytes are none.
pub fn decode<'a>(bytes: &'a [u8], expected: &Expected) -> Result<Frame<&'a [u8], &'a [u8]>, Malformed> {
    let number = number(bytes, expected.number)?;
    let mut from = Reader(bytes);
    let kind = from.take(CLEAR)?[0] & 15;
    let kind = match kind {
        SOURCE => {
            let seq = expand(from.number(3)?, expected.seq);
            let below = from.number(2)?;
            let floor = if below == u64::from(UNKNOWN) {
                None
            } else {
                Some(seq.checked_sub(below).ok_or(Malformed::Contradictory)?)
            };
            Kind::Source { seq, floor, datagram: from.0 }
        }
        REPAIR => {
            let first = expand(from.number(3)?, expected.seq);
            let k = from.number(2)? as u16;
            let (parity, index) = (from.number(1)? as u8, from.number(1)? as u8);
            if k == 0 || index >= parity || from.0.is_empty() || from.0.len() % 2 != 0 {
                return Err(Malformed::Contradictory);
            }
            Kind::Repair { first, k, parity, index, symbol: from.0 }
        }
        REPORT => {
            let largest = expand(from.number(3)?, expected.own_number);
            let delay = Duration::from_micros(from.number(4)?);
            let base = expand(from.number(3)?, expected.own_seq);
            let next = expand(from.number(3)?, expected.own_seq);
            let (received, lost, bursts) = (from.long()?, from.long()?, from.long()?);
            let mut missing = Ranges::default();
            let mut end = base;
            for _ in 0..from.number(1)? {
                let first = base.saturating_add(from.number(3)?);
                let len = from.number(3)? as u32;
                // Ranges ascend, and the datagrams between two are not missing.
                let apart = first > end || (first == base && end == base);
                end = first.saturating_add(len.into());
                if len == 0 || !apart || end > next || !missing.push(first, len) {
                    return Err(Malformed::Contradictory);
                }
            }
            if !from.0.is_empty() || next < base {
                return Err(Malformed::Contradictory);
            }
            Kind::Report(Report { largest, delay, base, next, missing, received, lost, bursts })
        }
        other => return Err(Malformed::Type(other)),
    };
    Ok(Frame { number, kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(frame: &Frame<&[u8], &[u8]>, expected: &Expected) {
        let mut bytes = Vec::new();
        encode(frame, &mut bytes);
        assert_eq!(number(&bytes, expected.number), Ok(frame.number));
        assert_eq!(decode(&bytes, expected).as_ref(), Ok(frame));
    }

    #[test]
    fn what_is_written_is_read() {
        for at in [0_u64, 5, (1 << 24) - 1, 1 << 24, (1 << 40) + 77] {
            let expected = Expected { number: at, seq: at, own_number: at + 90, own_seq: at + 90 };
            let source = |floor| Kind::Source { seq: at + 3, floor, datagram: b"datagram".as_slice() };
            let mut missing = Ranges::default();
            assert!(missing.push(at, 2) && missing.push(at + 4, 1));
            let report = Report {
                largest: at + 80,
                delay: Duration::from_micros(1234),
                base: at,
                next: at + 9,
                missing,
                received: u32::MAX,
                lost: 7,
                bursts: 3,
            };
            for kind in [
                source(None),
                source(Some(at)),
                Kind::Repair { first: at, k: 100, parity: 5, index: 4, symbol: b"symbol".as_slice() },
                Kind::Report(report),
                Kind::Report(Report { missing: Ranges::default(), ..report }),
            ] {
                again(&Frame { number: at + 1, kind }, &expected);
            }
        }
    }

    #[test]
    fn sizes_are_as_stated() {
        let len = |kind: Kind<&[u8], &[u8]>| {
            let mut bytes = Vec::new();
            encode(&Frame { number: 1, kind }, &mut bytes);
            bytes.len() as u32
        };
        assert_eq!(len(Kind::Source { seq: 1, floor: None, datagram: &[] }), SOURCE_HEADER);
        assert_eq!(len(Kind::Repair { first: 1, k: 1, parity: 1, index: 0, symbol: &[] }), REPAIR_HEADER);
        let mut report = Report::default();
        assert_eq!(len(Kind::Report(report)), REPORT_SIZE);
        assert!(report.missing.push(0, 1));
        assert_eq!(len(Kind::Report(report)), REPORT_SIZE + RANGE_SIZE);
    }

    #[test]
    fn numbers_expand_to_the_nearest() {
        for expected in [0, 1, MODULUS / 2, MODULUS - 1, MODULUS, 3 * MODULUS + 7, 1 << 50] {
            for off in [-(1_i64 << 22), -1, 0, 1, 1 << 22] {
                let Some(n) = u64::checked_add_signed(expected, off) else { continue };
                assert_eq!(expand(n % MODULUS, expected), n, "{expected} {off}");
            }
        }
    }

    #[test]
    fn other_versions_and_contradictions_are_refused() {
        let expected = Expected::default();
        let read = |bytes: &[u8]| decode(bytes, &expected).expect_err("refused");
        assert_eq!(read(&[]), Malformed::Short);
        assert_eq!(read(&[0x20, 0, 0, 0]), Malformed::Version(2));
        assert_eq!(read(&[0x13, 0, 0, 0]), Malformed::Type(3));
        assert_eq!(read(&[0x10, 0, 0, 0, 0, 0, 1, 0, 9, 1]), Malformed::Contradictory, "a floor below zero");
        assert_eq!(read(&[0x11, 0, 0, 0, 0, 0, 0, 0, 9, 2, 2, 1, 1]), Malformed::Contradictory);
        assert_eq!(read(&[0x11, 0, 0, 0, 0, 0, 0, 0, 9, 2, 1, 1]), Malformed::Contradictory, "odd");
        assert!(read(&[0x20, 0, 0, 0]).to_string().contains("same release on both"));
    }
}

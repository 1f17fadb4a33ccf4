//! Frames as bytes.
//!
//! All numbers are in network byte order. Numbers of frames and of datagrams are truncated, as QUIC does (RFC 9000
//! §17.1): the other end expands them to the nearest to what it expects. A new datagram and its frame have as many bytes
//! of their numbers as what was reported requires ([`digits`]), all others three.
//!
//! ```text
//! all frames   0, floor (1 bit), digits (2 bits), type (4 bits); number (digits)
//! source       seq (digits), with the bit "floor": seq − floor (2); datagram
//! repair       first (3), k (2), parity (1), index (1), symbol
//! report       largest (3), delay in µs (4), base (3), next (3), received (4), lost (4), bursts (4),
//!              references (3 bits) and ranges (5 bits); of each range: first − base (3), length (3); of each datagram
//!              that has installed references: seq (3)
//! ```
//!
//! **The seam for encryption.** The first bytes, up to the number, are the associated data of an AEAD (RFC 5116), and the
//! full number of the frame, which no frame repeats, is the counter of its nonce. Everything after them is encrypted, and
//! the tag follows. A receiver expands the number with [`number`], opens the frame, and only then calls [`decode`]. A
//! frame that was overtaken by so many others that its number expands to another one is not authentic.

use crate::frame::{Frame, Installed, Kind, Ranges, Report};
use skyhaul_base::Duration;

/// Version of the format.
pub const VERSION: u8 = 2;
/// Most bytes before the datagram of a source frame.
pub const LONGEST_SOURCE_HEADER: u32 = source_header(DIGITS, true);
/// Bytes before the symbol of a repair frame.
pub const REPAIR_HEADER: u32 = 11;
/// Bytes of a report without ranges.
pub const REPORT_SIZE: u32 = 30;
/// Bytes of a range.
pub const RANGE_SIZE: u32 = 6;
/// Bytes of a datagram that has installed references.
pub const INSTALLED_SIZE: u32 = 3;
/// Most bytes of a truncated number.
pub const DIGITS: u8 = 3;

// Types of frames.
const SOURCE: u8 = 0;
const REPAIR: u8 = 1;
const REPORT: u8 = 2;
/// In the first byte: a floor follows the number of the datagram.
const FLOOR: u8 = 0x40;

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
    /// The type is unknown.
    #[error("frames of type {0} are unknown")]
    Type(u8),
    /// Its fields contradict each other.
    #[error("the fields of the frame contradict each other")]
    Contradictory,
}

/// Bytes before the datagram of a source frame.
#[must_use]
pub const fn source_header(digits: u8, floor: bool) -> u32 {
    1 + 2 * digits as u32 + if floor { 2 } else { 0 }
}

/// Bytes to which the number of a frame, or of its datagram, is truncated when `unacknowledged` numbers before it are not known to have
/// arrived (RFC 9000 §A.2). A quarter of the range is for these, so that the frame may be overtaken by as many again.
#[must_use]
pub fn digits(unacknowledged: u64) -> u8 {
    match unacknowledged {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        _ => DIGITS,
    }
}

/// The number nearest to `expected` with these lowest bytes.
fn expand(low: u64, bytes: u8, expected: u64) -> u64 {
    let modulus = 1_u64 << (8 * bytes);
    let near = (expected & !(modulus - 1)) | low;
    let half = modulus / 2;
    if near > expected.saturating_add(half) && near >= modulus {
        near - modulus
    } else if expected > near && expected - near > half {
        near.checked_add(modulus).unwrap_or(near)
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

/// The full number of a frame, from its readable bytes, and how many of them there are.
///
/// # Errors
/// If they are too few, or begin no frame.
pub fn number(bytes: &[u8], expected: u64) -> Result<(u64, usize), Malformed> {
    let mut from = Reader(bytes);
    let first = from.number(1)? as u8;
    let digits = first >> 4 & 3;
    if digits == 0 || first & 0x80 != 0 || first & FLOOR != 0 && first & 15 != SOURCE {
        return Err(Malformed::Contradictory);
    }
    Ok((expand(from.number(digits.into())?, digits, expected), 1 + usize::from(digits)))
}

/// Appends a frame, with numbers truncated to `digits` bytes: three, unless it is the first frame of a datagram.
pub fn encode<D: AsRef<[u8]>, S: AsRef<[u8]>>(frame: &Frame<D, S>, digits: u8, out: &mut Vec<u8>) {
    let kind = match frame.kind {
        Kind::Source { floor, .. } => SOURCE | if floor.is_some() { FLOOR } else { 0 },
        Kind::Repair { .. } => REPAIR,
        Kind::Report(_) => REPORT,
    };
    out.push(digits << 4 | kind);
    put(out, frame.number, digits.into());
    match &frame.kind {
        Kind::Source { seq, floor, datagram } => {
            put(out, *seq, digits.into());
            if let Some(floor) = floor {
                // One that is too far below says less than it could, and nothing wrong.
                put(out, seq.saturating_sub(*floor).min(u16::MAX.into()), 2);
            }
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
            let (ranges, installed) = (r.missing.as_slice(), r.installed.as_slice());
            out.push((installed.len() << 5 | ranges.len()) as u8);
            for (first, len) in ranges {
                put(out, first - r.base, 3);
                put(out, (*len).into(), 3);
            }
            installed.iter().for_each(|seq| put(out, *seq, 3));
        }
    }
}

/// Reads a frame.
///
/// # Errors
/// If the bytes are none.
pub fn decode<'a>(bytes: &'a [u8], expected: &Expected) -> Result<Frame<&'a [u8], &'a [u8]>, Malformed> {
    let (number, clear) = number(bytes, expected.number)?;
    let mut from = Reader(bytes);
    let first = from.take(clear)?[0];
    let digits = first >> 4 & 3;
    let long = |from: &mut Reader<'_>, expected| Ok::<_, Malformed>(expand(from.number(3)?, 3, expected));
    let kind = match first & 15 {
        SOURCE => {
            let seq = expand(from.number(digits.into())?, digits, expected.seq);
            let floor = if first & FLOOR == 0 {
                None
            } else {
                Some(seq.checked_sub(from.number(2)?).ok_or(Malformed::Contradictory)?)
            };
            Kind::Source { seq, floor, datagram: from.0 }
        }
        REPAIR => {
            let first = long(&mut from, expected.seq)?;
            let k = from.number(2)? as u16;
            let (parity, index) = (from.number(1)? as u8, from.number(1)? as u8);
            if k == 0 || index >= parity || from.0.is_empty() || from.0.len() % 2 != 0 {
                return Err(Malformed::Contradictory);
            }
            Kind::Repair { first, k, parity, index, symbol: from.0 }
        }
        REPORT => {
            let largest = long(&mut from, expected.own_number)?;
            let delay = Duration::from_micros(from.number(4)?);
            let base = long(&mut from, expected.own_seq)?;
            let next = long(&mut from, expected.own_seq)?;
            let (received, lost, bursts) = (from.long()?, from.long()?, from.long()?);
            let mut missing = Ranges::default();
            let mut end = base;
            let counts = from.number(1)?;
            for _ in 0..counts & 31 {
                let first = base.saturating_add(from.number(3)?);
                let len = from.number(3)? as u32;
                // Ranges ascend, and the datagrams between two are not missing.
                let apart = first > end || (first == base && end == base);
                end = first.saturating_add(len.into());
                if len == 0 || !apart || end > next || !missing.push(first, len) {
                    return Err(Malformed::Contradictory);
                }
            }
            let mut installed = Installed::default();
            for _ in 0..counts >> 5 {
                installed.push(long(&mut from, expected.own_seq)?);
            }
            if !from.0.is_empty() || next < base {
                return Err(Malformed::Contradictory);
            }
            Kind::Report(Report { largest, delay, base, next, missing, received, lost, bursts, installed })
        }
        other => return Err(Malformed::Type(other)),
    };
    Ok(Frame { number, kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(frame: &Frame<&[u8], &[u8]>, digits: u8, expected: &Expected) {
        let mut bytes = Vec::new();
        encode(frame, digits, &mut bytes);
        assert_eq!(number(&bytes, expected.number), Ok((frame.number, 1 + usize::from(digits))));
        assert_eq!(decode(&bytes, expected).as_ref(), Ok(frame));
    }

    #[test]
    fn what_is_written_is_read() {
        for at in [0_u64, 5, (1 << 24) - 1, 1 << 24, (1 << 40) + 77] {
            let expected = Expected { number: at, seq: at, own_number: at + 90, own_seq: at + 90 };
            let source = |floor| Kind::Source { seq: at + 3, floor, datagram: b"datagram".as_slice() };
            let (mut missing, mut installed) = (Ranges::default(), Installed::default());
            assert!(missing.push(at, 2) && missing.push(at + 4, 1));
            assert!((0..Installed::MOST as u64).all(|n| installed.push(at + 3 * n)) && !installed.push(at));
            let report = Report {
                largest: at + 80,
                delay: Duration::from_micros(1234),
                base: at,
                next: at + 9,
                missing,
                received: u32::MAX,
                lost: 7,
                bursts: 3,
                installed,
            };
            for digits in 1..=DIGITS {
                for floor in [None, Some(at), Some(at + 3)] {
                    again(&Frame { number: at + 1, kind: source(floor) }, digits, &expected);
                }
            }
            for kind in [
                Kind::Repair { first: at, k: 100, parity: 5, index: 4, symbol: b"symbol".as_slice() },
                Kind::Report(report),
                Kind::Report(Report { missing: Ranges::default(), ..report }),
                Kind::Report(Report { installed: Installed::default(), ..report }),
            ] {
                again(&Frame { number: at + 1, kind }, DIGITS, &expected);
            }
        }
    }

    #[test]
    fn sizes_are_as_stated() {
        let len = |kind: Kind<&[u8], &[u8]>, digits| {
            let mut bytes = Vec::new();
            encode(&Frame { number: 1, kind }, digits, &mut bytes);
            bytes.len() as u32
        };
        for digits in 1..=DIGITS {
            for floor in [None, Some(0)] {
                let size = len(Kind::Source { seq: 1, floor, datagram: &[] }, digits);
                assert_eq!(size, source_header(digits, floor.is_some()));
                assert!(size <= LONGEST_SOURCE_HEADER);
            }
        }
        assert_eq!(source_header(2, false), 5);
        assert_eq!(
            len(Kind::Repair { first: 1, k: 1, parity: 1, index: 0, symbol: &[] }, DIGITS),
            REPAIR_HEADER
        );
        let mut report = Report::default();
        assert_eq!(len(Kind::Report(report), DIGITS), REPORT_SIZE);
        assert!(report.missing.push(0, 1));
        assert_eq!(len(Kind::Report(report), DIGITS), REPORT_SIZE + RANGE_SIZE);
        assert!(report.installed.push(0));
        assert_eq!(len(Kind::Report(report), DIGITS), REPORT_SIZE + RANGE_SIZE + INSTALLED_SIZE);
    }

    #[test]
    fn numbers_expand_to_the_nearest() {
        for bytes in 1..=DIGITS {
            let modulus = 1_u64 << (8 * bytes);
            for expected in [0, 1, modulus / 2, modulus - 1, modulus, 3 * modulus + 7, 1 << 50] {
                for off in [-(modulus as i64 / 4), -1, 0, 1, modulus as i64 / 4] {
                    let Some(n) = u64::checked_add_signed(expected, off) else { continue };
                    assert_eq!(expand(n % modulus, bytes, expected), n, "{expected} {off}");
                }
            }
        }
    }

    /// A number is truncated to no fewer bytes than expand to it, whatever of what is under way has arrived before it.
    #[test]
    fn truncated_numbers_leave_room() {
        for unacknowledged in [0, 1, 63, 64, 200, 0x3fff, 0x4000, 1 << 21] {
            let bytes = digits(unacknowledged);
            let room = 1_u64 << (8 * bytes - 2);
            let number = (1 << 30) + unacknowledged;
            for expected in [1 << 30, number, number + 1, number + room] {
                assert_eq!(expand(number % (1 << (8 * bytes)), bytes, expected), number);
            }
        }
    }

    #[test]
    fn contradictions_are_refused() {
        let expected = Expected::default();
        let read = |bytes: &[u8]| decode(bytes, &expected).expect_err("refused");
        assert_eq!(read(&[]), Malformed::Short);
        assert_eq!(read(&[0x33, 0, 0, 0]), Malformed::Type(3));
        for first in [0, 0xb0, 0x71, 0x72] {
            assert_eq!(read(&[first, 0, 0, 0, 0, 0, 0, 0, 0]), Malformed::Contradictory, "{first:x}");
        }
        assert_eq!(read(&[0x50, 0, 1, 0, 9, 1]), Malformed::Contradictory, "a floor below zero");
        assert_eq!(read(&[0x31, 0, 0, 0, 0, 0, 0, 0, 9, 2, 2, 1, 1]), Malformed::Contradictory);
        assert_eq!(read(&[0x31, 0, 0, 0, 0, 0, 0, 0, 9, 2, 1, 1]), Malformed::Contradictory, "odd");
    }
}

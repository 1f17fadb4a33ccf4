//! SYN cookies (RFC 4987 §3.6): half-open connections without stored state.
//!
//! The contents of the SYN are encoded in what the peer must send back: in our initial sequence number
//!
//! ```text
//! 31        4   3     2..0
//! keyed hash  period  segment size
//! ```
//! and, with timestamps, in the last six bits of our first timestamp: window scale, SACK, probes. The hash covers
//! both ends, the peer's sequence number, the period of 64 s and the segment size.

use super::ends::Ends;
use super::secret::Secret;
use skyhaul_base::Instant;
use skyhaul_tcp::Seq;

/// Minimum lifetime of a cookie, in seconds; the maximum is less than twice as long.
pub(super) const PERIOD: u64 = 64;
/// Segment sizes that a cookie can encode, bytes: below any sensible announcement, the default without an option,
/// tunnels, IPv6 and IPv4 over Ethernet.
const SIZES: [u16; 8] = [64, 256, 536, 940, 1220, 1400, 1440, 1460];
const PARITY: u32 = 8;
const LOW: u32 = 15;

/// Bits of the timestamp that carry data.
const STAMP_BITS: u32 = 0x3f;
const SCALE: u32 = 0x0f;
const SACK: u32 = 0x10;
const PROBES: u32 = 0x20;
/// Value that means no window scale.
const NO_SCALE: u32 = 15;

/// The options of a SYN that a timestamp can encode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offer {
    pub(super) scale: Option<u8>,
    pub(super) sack: bool,
    pub(super) probes: bool,
}

/// The largest segment size that a cookie can encode and that is at most `mss`, bytes; the smallest one if `mss` is below it.
pub(super) fn size(mss: u16) -> u16 {
    SIZES.into_iter().rfind(|s| *s <= mss).unwrap_or(SIZES[0])
}
fn index(mss: u16) -> usize {
    SIZES.iter().rposition(|s| *s <= mss).unwrap_or(0)
}

fn hash(secret: &Secret, ends: &Ends, theirs: Seq, period: u64, index: u32) -> u32 {
    let mut purpose = [0; 23];
    purpose[..7].copy_from_slice(b"cookie ");
    purpose[7..11].copy_from_slice(&theirs.0.to_be_bytes());
    purpose[11..19].copy_from_slice(&period.to_be_bytes());
    purpose[19..].copy_from_slice(&index.to_be_bytes());
    secret.of(&purpose, &[ends.local(), ends.remote()]) as u32 & !LOW
}

fn period(now: Instant) -> u64 {
    now.as_nanos() / (PERIOD * 1_000_000_000)
}

/// Our initial sequence number for a SYN with sequence number `theirs`.
pub(super) fn make(secret: &Secret, now: Instant, ends: &Ends, theirs: Seq, mss: u16) -> Seq {
    let (period, index) = (period(now), index(mss) as u32);
    Seq(hash(secret, ends, theirs, period, index) | if period % 2 == 1 { PARITY } else { 0 } | index)
}

/// The segment size encoded in the cookie `ours`; `None` if the cookie is not ours or too old.
pub(super) fn verify(secret: &Secret, now: Instant, ends: &Ends, theirs: Seq, ours: Seq) -> Option<u16> {
    let index = ours.0 & (LOW ^ PARITY);
    let now = period(now);
    let odd = u64::from(ours.0 & PARITY != 0);
    let made = if now % 2 == odd { now } else { now.checked_sub(1)? };
    let size = SIZES.get(index as usize)?;
    (hash(secret, ends, theirs, made, index) == ours.0 & !LOW).then_some(*size)
}

/// Our first timestamp, which encodes the options; at most `stamp`.
pub(super) fn write(stamp: u32, offer: Offer) -> u32 {
    let mut bits = offer.scale.map_or(NO_SCALE, |s| u32::from(s.min(14)));
    bits |= if offer.sack { SACK } else { 0 } | if offer.probes { PROBES } else { 0 };
    let value = stamp & !STAMP_BITS | bits;
    if value.wrapping_sub(stamp) as i32 > 0 { value.wrapping_sub(STAMP_BITS + 1) } else { value }
}
/// The options encoded in the echo of that timestamp.
pub(super) fn read(echo: u32) -> Offer {
    let scale = echo & SCALE;
    Offer {
        scale: (scale != NO_SCALE).then_some(scale as u8),
        sack: echo & SACK != 0,
        probes: echo & PROBES != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_base::Duration;

    fn ends(port: u16) -> Ends {
        Ends::new("10.0.0.1:80".parse().unwrap(), ([192, 0, 2, 7], port).into())
    }

    #[test]
    fn a_cookie_is_good_for_its_ends_its_number_and_a_minute() {
        let secret = Secret::fixed([9; 16]);
        let t = |s: u64| Instant::ZERO + Duration::from_secs(s);
        for (mss, encoded) in [(0, 64), (536, 536), (1439, 1400), (1460, 1460), (8960, 1460)] {
            assert_eq!(size(mss), encoded);
            for at in [0, 63, 64, 1000] {
                let c = make(&secret, t(at), &ends(5), Seq(7), mss);
                for age in [0, 1, 63] {
                    assert_eq!(verify(&secret, t(at + age), &ends(5), Seq(7), c), Some(encoded));
                }
                assert_eq!(verify(&secret, t(at + 128), &ends(5), Seq(7), c), None, "too old");
                assert_eq!(verify(&secret, t(at), &ends(6), Seq(7), c), None);
                assert_eq!(verify(&secret, t(at), &ends(5), Seq(8), c), None);
                assert_eq!(verify(&Secret::fixed([8; 16]), t(at), &ends(5), Seq(7), c), None);
                for bit in 0..32 {
                    assert_eq!(
                        verify(&secret, t(at), &ends(5), Seq(7), Seq(c.0 ^ 1 << bit)),
                        None,
                        "bit {bit}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_timestamp_carries_what_was_offered_and_is_never_ahead() {
        for scale in [None, Some(0), Some(7), Some(14)] {
            for (sack, probes) in [(false, false), (true, false), (false, true), (true, true)] {
                let offer = Offer { scale, sack, probes };
                for stamp in [0, 1, 63, 64, 1000, u32::MAX] {
                    let v = write(stamp, offer);
                    assert_eq!(read(v), offer);
                    assert!(stamp.wrapping_sub(v) < 64, "{stamp} {v}");
                }
            }
        }
    }
}

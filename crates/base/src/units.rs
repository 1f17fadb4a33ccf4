//! Link rates and exact serialisation times.

use crate::time::{Duration, Instant};
use core::fmt;

/// A data rate in bit/s.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// A rate of `bits` bit/s.
    #[must_use]
    pub const fn from_bits_per_sec(bits: u64) -> Self {
        Self(bits)
    }
    /// Bits per second.
    #[must_use]
    pub const fn bits_per_sec(self) -> u64 {
        self.0
    }
    /// Bytes per second.
    #[must_use]
    pub fn bytes_per_sec(self) -> f64 {
        self.0 as f64 / 8.0
    }
    /// The rate at which `bytes` pass in `over`, rounded down to whole bit/s; `None` for an empty interval.
    #[must_use]
    pub fn from_bytes_over(bytes: f64, over: Duration) -> Option<Self> {
        if over.is_zero() { None } else { Some(Self((bytes * 8.0 / over.as_secs_f64()) as u64)) }
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bit/s", self.0)
    }
}

/// A transmitter that serialises packets one after the other at a constant rate.
///
/// The part of a nanosecond that a packet's end time cannot express is carried into the next packet of the
/// same busy period, so that any rate is exact over any number of packets.
#[derive(Clone, Debug)]
pub struct Serializer {
    rate: Rate,
    free_at: Instant,
    /// Remainder in units of 1/rate nanoseconds; always below `rate`.
    carry: u64,
    /// Size and time of the last packet: most are as large as the one before, and divisions are slow.
    last: (u32, Serialized),
}

/// How long a packet takes: whole nanoseconds, and a rest in units of 1/rate nanoseconds, below `rate`.
#[derive(Clone, Copy, Debug)]
struct Serialized {
    whole: u64,
    rest: u64,
}

impl Serialized {
    const NOTHING: Self = Self { whole: 0, rest: 0 };

    /// Bits of a byte, in units of 1/rate nanoseconds.
    const SCALE: u64 = 8_000_000_000;

    #[inline(always)]
    fn new(size: u32, rate: Rate) -> Self {
        if size > i32::MAX as u32 {
            return Self::of_huge(size, rate);
        }
        let scaled = u64::from(size) * Self::SCALE;
        Self { whole: scaled / rate.0, rest: scaled % rate.0 }
    }
    #[cold]
    #[inline(never)]
    fn of_huge(size: u32, rate: Rate) -> Self {
        let (scaled, rate) = (u128::from(size) * u128::from(Self::SCALE), u128::from(rate.0));
        Self { whole: u64::try_from(scaled / rate).unwrap_or(u64::MAX), rest: (scaled % rate) as u64 }
    }
}

impl Serializer {
    /// A transmitter of the given rate, idle.
    ///
    /// # Panics
    /// If the rate is zero: a link that never sends is expressed as a link that is down.
    #[must_use]
    pub fn new(rate: Rate) -> Self {
        assert!(rate.0 > 0, "a link rate must be positive");
        Self { rate, free_at: Instant::ZERO, carry: 0, last: (0, Serialized::NOTHING) }
    }
    /// The rate.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.rate
    }
    /// Changes the rate for packets that start from now on.
    ///
    /// # Panics
    /// If the rate is zero.
    pub fn set_rate(&mut self, rate: Rate) {
        assert!(rate.0 > 0, "a link rate must be positive");
        self.rate = rate;
        self.carry = 0;
        self.last = (0, Serialized::NOTHING);
    }
    /// When the last bit of everything accepted so far has left.
    #[must_use]
    pub fn free_at(&self) -> Instant {
        self.free_at
    }
    /// Starts a packet of `size` bytes at `now` or when the transmitter becomes free, whichever is later;
    /// returns when its last bit leaves.
    #[inline(always)]
    pub fn send(&mut self, now: Instant, size: u32) -> Instant {
        if now > self.free_at {
            self.free_at = now;
            self.carry = 0;
        }
        if size != self.last.0 {
            self.last = (size, Serialized::new(size, self.rate));
        }
        let Serialized { whole, rest } = self.last.1;
        // Carry and rest are both below the rate: their sum is less than two nanoseconds.
        let missing = self.rate.0 - rest;
        let over = self.carry >= missing;
        self.carry = if over { self.carry - missing } else { self.carry + rest };
        self.free_at += Duration::from_nanos(whole.saturating_add(over.into()));
        self.free_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_rates_do_not_drift() {
        // 7 bit/s: one byte takes 8/7 s, which no whole number of nanoseconds expresses.
        let mut link = Serializer::new(Rate::from_bits_per_sec(7));
        let mut last = Instant::ZERO;
        for _ in 0..7_000 {
            last = link.send(Instant::ZERO, 1);
        }
        assert_eq!(last, Instant::from_secs_f64(8_000.0));
    }

    #[test]
    fn an_idle_transmitter_starts_at_once() {
        let mut link = Serializer::new(Rate::from_bits_per_sec(10_400_000));
        let t = Instant::from_secs_f64(1.0);
        assert_eq!((link.send(t, 1000) - t).as_nanos(), 769_230);
        assert_eq!((link.send(t, 1000) - t).as_nanos(), 1_538_461);
    }

    #[test]
    fn huge_packets_on_slow_links_do_not_overflow() {
        let mut link = Serializer::new(Rate::from_bits_per_sec(1));
        let end = link.send(Instant::ZERO, u32::MAX);
        assert_eq!(end, Instant::MAX, "34 billion seconds saturate the clock");
    }
}

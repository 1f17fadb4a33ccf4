//! Independent bit errors. The rate is the residual one, that is after any decoding: read as a channel error rate the
//! same number means far fewer lost packets.

use super::model::{Losses, Model};
use crate::packet::PacketView;
use crate::param::{ParamError, probability};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
#[cfg(feature = "schema")]
use skyhaul_base::amount::Probability;
use skyhaul_base::rng::Chance;
use skyhaul_base::{Rng, math};

/// Residual bit errors; one wrong bit loses the packet.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Config {
    /// Bit error rate after all decoding.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::probability"))]
    #[cfg_attr(feature = "schema", schemars(with = "Probability"))]
    pub ber: f64,
}

impl Model for Config {
    type Losses = Box<Ber>;
    type Invalid = ParamError;
    type Canonical = Self;

    fn validate(&self) -> Result<(), ParamError> {
        probability("ber", self.ber).map(|_| ())
    }
    fn build(&self) -> Box<Ber> {
        Box::new(Ber::of(self.ber))
    }
    fn canonical(self) -> Self {
        self
    }
    fn mean_loss(&self, size: u32) -> f64 {
        // A packet without bits has no wrong one, but whoever asks for this rate means packets.
        if self.ber >= 1.0 { 1.0 } else { packet_error_rate(self.ber, size) }
    }
    fn words(&self, number: &dyn Fn(f64) -> String) -> String {
        format!("bit error rate {}", number(self.ber))
    }
}

/// Probability that a packet of `size` bytes holds at least one wrong bit: 1 − (1 − ber)^(8·size).
#[must_use]
pub fn packet_error_rate(ber: f64, size: u32) -> f64 {
    // The direct form loses all digits for small rates.
    -math::expm1(f64::from(size) * ln_byte_intact(ber))
}

/// Logarithm of the probability that all bits of a byte are right.
fn ln_byte_intact(ber: f64) -> f64 {
    8.0 * math::ln_1p(-ber)
}

/// Loses a packet if any of its bits is wrong. One draw per packet.
#[derive(Clone, Debug)]
pub struct Ber {
    ber: f64,
    ln_byte_intact: f64,
    /// Probabilities of the sizes seen last, placed by size: traffic has few distinct sizes.
    cache: [(u32, Chance); SLOTS],
}

const SLOTS: usize = 8;

impl Ber {
    /// A channel on which every bit is wrong with probability `ber`.
    ///
    /// # Errors
    /// If `ber` is no probability.
    pub fn new(ber: f64) -> Result<Self, ParamError> {
        probability("ber", ber).map(Self::of)
    }
    fn of(ber: f64) -> Self {
        // An empty packet cannot hold a wrong bit, so size 0 marks a slot that is right from the start.
        Self { ber, ln_byte_intact: ln_byte_intact(ber), cache: [(0, Chance::NEVER); SLOTS] }
    }
    /// The bit error rate.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.ber
    }
    /// True if a packet of `size` bytes is lost.
    #[inline]
    pub fn loses(&mut self, size: u32, rng: &mut Rng) -> bool {
        // Fibonacci hashing: common sizes are multiples of 4, so their low bits alone would collide.
        let slot = &mut self.cache[(size.wrapping_mul(0x9e37_79b9) >> 29) as usize];
        if slot.0 != size {
            *slot = (size, Chance::new(-math::expm1(f64::from(size) * self.ln_byte_intact)));
        }
        rng.chance(slot.1)
    }
}

impl Losses for Box<Ber> {
    #[inline(never)]
    fn loses(&mut self, p: &impl PacketView, rng: &mut Rng) -> bool {
        // Without errors nothing is drawn.
        self.ber != 0.0 && Ber::loses(self, p.size(), rng)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packet_error_rates_of_common_sizes() {
        // To the digits printed: half a unit of the last one.
        for (ber, size, expected, half) in [
            (1e-7, 1000, 8.00e-4, 0.005e-4),
            (1e-7, 40, 3.2e-5, 0.05e-5),
            (1e-6, 1000, 7.968e-3, 0.0005e-3),
            (1e-6, 40, 3.20e-4, 0.005e-4),
            (1e-5, 1000, 7.688e-2, 0.0005e-2),
            (1e-5, 40, 3.195e-3, 0.0005e-3),
            (1e-4, 1000, 0.5507, 0.000_05),
            (1e-4, 40, 3.15e-2, 0.005e-2),
        ] {
            let p = packet_error_rate(ber, size);
            assert!((p - expected).abs() <= half, "{ber} {size}: {p}");
        }
        assert_eq!((packet_error_rate(1.0, 1), packet_error_rate(0.5, 0)), (1.0, 0.0));
        // Where the direct form would give 0.
        assert!((packet_error_rate(1e-18, 1000) / 8e-15 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn sizes_that_share_a_slot_do_not_mix() {
        // All sizes up to 20000 through 8 slots: an undivided stream must give the uncached outcome.
        let mut model = Ber::new(1e-5).unwrap();
        let (mut a, mut b) = (Rng::stream(1, "e"), Rng::stream(1, "e"));
        for i in 0..100_000u32 {
            let size = i * 7919 % 20_000;
            let expected = b.chance(Chance::new(packet_error_rate(1e-5, size)));
            assert_eq!(model.loses(size, &mut a), expected);
        }
        assert_eq!(a, b);
    }
}

//! Independent bit errors.

use crate::param::{ParamError, probability};
use skyhaul_base::rng::Chance;
use skyhaul_base::{Rng, math};

/// Probability that a packet of `size` bytes holds at least one wrong bit: 1 − (1 − ber)^(8·size).
#[must_use]
pub fn packet_error_rate(ber: f64, size: u32) -> f64 {
    // The direct form loses all digits for small rates.
    -math::expm1(8.0 * f64::from(size) * math::ln_1p(-ber))
}

/// Loses a packet if any of its bits is wrong. One draw per packet, unless the rate is zero.
#[derive(Clone, Debug)]
pub struct Ber {
    ber: f64,
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
        // An empty packet cannot hold a wrong bit, so size 0 marks a slot that is right from the start.
        Ok(Self { ber: probability("ber", ber)?, cache: [(0, Chance::NEVER); SLOTS] })
    }
    /// The bit error rate.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.ber
    }
    /// True if a packet of `size` bytes is lost.
    #[inline]
    pub fn loses(&mut self, size: u32, rng: &mut Rng) -> bool {
        if self.ber == 0.0 {
            return false;
        }
        // Fibonacci hashing: common sizes are multiples of 4, so their low bits alone would collide.
        let slot = &mut self.cache[(size.wrapping_mul(0x9e37_79b9) >> 29) as usize];
        if slot.0 != size {
            *slot = (size, Chance::new(packet_error_rate(self.ber, size)));
        }
        rng.chance(slot.1)
    }
}

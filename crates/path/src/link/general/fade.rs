//! Losses by rain or shadowing in addition to a link's own errors.

use crate::error::ErrorModel;
use skyhaul_base::{Rng, math};

/// Size of the packets to which a fade's loss probability refers: an MPEG-2 packet, for which ETSI EN 302 307 gives
/// its thresholds.
pub const FADE_BYTES: u32 = 188;

/// The losses that a packet may meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Losing {
    /// None: nothing is drawn.
    Nothing,
    /// The link's own.
    Own,
    /// The link's own and those of a fade.
    Faded,
}

impl Losing {
    pub(super) fn of(error: &ErrorModel, fade: &Fade) -> Self {
        match (fade.is_none(), error.is_lossless()) {
            (false, _) => Self::Faded,
            (true, false) => Self::Own,
            (true, true) => Self::Nothing,
        }
    }
}

/// Independent losses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fade {
    /// Logarithm of the probability that a byte survives; 0 without a fade.
    per_byte: f64,
}

impl Fade {
    pub(super) const NONE: Self = Self { per_byte: 0.0 };

    /// Loses this fraction of packets of [`FADE_BYTES`] bytes, and more of larger packets:
    /// 1 − (1 − loss)^(size / 188).
    pub(super) fn new(loss: f64) -> Self {
        Self { per_byte: math::ln_1p(-loss.clamp(0.0, 1.0)) / f64::from(FADE_BYTES) }
    }
    fn is_none(&self) -> bool {
        self.per_byte == 0.0
    }
    pub(super) fn loses(&self, size: u32, rng: &mut Rng) -> bool {
        let loss = -math::expm1(self.per_byte * f64::from(size));
        rng.unit() < loss
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(loss: f64, size: u32) -> f64 {
        let (fade, mut rng) = (Fade::new(loss), Rng::stream(1, "test"));
        let n = 100_000;
        f64::from((0..n).map(|_| u32::from(fade.loses(size, &mut rng))).sum::<u32>()) / f64::from(n)
    }

    #[test]
    fn larger_packets_are_lost_more_often() {
        for (loss, size) in [(0.1, 188), (0.1, 1500), (0.001, 1500), (0.5, 40)] {
            let expected = 1.0 - (1.0f64 - loss).powf(f64::from(size) / 188.0);
            // Five standard deviations.
            let tolerance = 5.0 * (expected * (1.0 - expected) / 1e5).sqrt();
            assert!((share(loss, size) - expected).abs() < tolerance, "{loss} {size}");
        }
        assert_eq!((share(0.0, 1500), share(1.0, 40)), (0.0, 1.0));
    }
}

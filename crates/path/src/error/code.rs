//! Block codes: the bit errors left by a code on a channel.
//!
//! A hard-decision decoder corrects up to *t* wrong symbols of a code word and fails beyond. Closed forms for
//! independent bit errors (J. G. Proakis, "Digital Communications", chapter on linear block codes):
//!
//! ```text
//! symbol of b bits wrong:  q = 1 − (1 − ber)^b
//! code word fails:         F = Σ_{i > t} C(n, i)·q^i·(1 − q)^(n − i)
//! packet of s bytes lost:  1 − (1 − F)^⌈8·s/(k·b)⌉        (each packet begins a new code word)
//! ```
//! BCH (n, k, t) has symbols of one bit. Reed–Solomon (n, k) has symbols of 8 bits and t = ⌊(n − k)/2⌋; (255, 223) is the
//! outer code of CCSDS 131.0-B.

use crate::param::{ParamError, within};
use skyhaul_base::math;

/// A block code.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "BlockCodeSpec"))]
pub enum Code {
    /// A binary BCH code, or with t = 1 a Hamming code.
    Bch {
        /// Bits of a code word.
        n: u32,
        /// Data bits of a code word.
        k: u32,
        /// Bit errors that the code corrects.
        t: u32,
    },
    /// A Reed–Solomon code over bytes.
    ReedSolomon {
        /// Bytes of a code word.
        n: u32,
        /// Data bytes of a code word.
        k: u32,
    },
}

impl Code {
    /// Symbols of a code word, information symbols, correctable symbols, and bits per symbol.
    fn shape(&self) -> (u32, u32, u32, u32) {
        match *self {
            Self::Bch { n, k, t } => (n, k, t, 1),
            Self::ReedSolomon { n, k } => (n, k, n.saturating_sub(k) / 2, 8),
        }
    }

    /// Refuses codes that cannot exist by the Hamming bound.
    ///
    /// # Errors
    /// The key, and its range.
    pub fn validate(&self) -> Result<(), ParamError> {
        match *self {
            Self::Bch { n, k, t } => {
                within("code.n", n.into(), 3.0, 65_535.0)?;
                // One wrong bit needs n + 1 syndromes: that of each position, and that of no error.
                let check_bits = u32::BITS - n.leading_zeros();
                within("code.k", k.into(), 1.0, f64::from(n - check_bits))?;
                within("code.t", t.into(), 1.0, f64::from(most_corrected(n, n - k)))?;
            }
            Self::ReedSolomon { n, k } => {
                within("code.n", n.into(), 3.0, 255.0)?;
                within("code.k", k.into(), 1.0, f64::from(n - 2))?;
            }
        }
        Ok(())
    }

    /// Logarithm of the probability that a code word is decoded at this bit error rate.
    pub(super) fn ln_decoded(&self, ber: f64) -> f64 {
        let (n, _, t, bits) = self.shape();
        math::ln_1p(-failure(n, t, -math::expm1(f64::from(bits) * math::ln_1p(-ber))))
    }

    /// Code words needed for a packet of `size` bytes.
    pub(super) fn words(&self, size: u32) -> u64 {
        let (_, k, _, bits) = self.shape();
        (u64::from(size) * 8).div_ceil(u64::from(k) * u64::from(bits))
    }
}

/// ln C(n, i).
fn ln_choose(n: u32, i: u32) -> f64 {
    let ln_factorial = |i: u32| math::ln_gamma(f64::from(i) + 1.0);
    ln_factorial(n) - ln_factorial(i) - ln_factorial(n - i)
}

/// The largest t by the Hamming bound: each pattern of up to t wrong bits among `n` needs its own syndrome, and there
/// are 2^check_bits of them.
fn most_corrected(n: u32, check_bits: u32) -> u32 {
    // Logarithms, since the numbers overflow; the slack is for rounding, as perfect codes meet the bound exactly.
    let ln_syndromes = f64::from(check_bits) * core::f64::consts::LN_2 + 1e-9;
    let mut ln_patterns = 0.0;
    (1..=n / 2)
        .take_while(|t| {
            let ln_more = ln_choose(n, *t);
            ln_patterns = ln_more + math::ln_1p(math::exp(ln_patterns - ln_more));
            ln_patterns <= ln_syndromes
        })
        .last()
        .unwrap_or(0)
}

/// Probability of more than `t` wrong symbols among `n`, each wrong with probability `q`.
fn failure(n: u32, t: u32, q: f64) -> f64 {
    if q <= 0.0 {
        return 0.0;
    }
    if q >= 1.0 {
        return 1.0;
    }
    let term = |i: u32| {
        let wrong = f64::from(i) * math::ln(q) + f64::from(n - i) * math::ln_1p(-q);
        math::exp(ln_choose(n, i) + wrong)
    };
    if f64::from(t) < f64::from(n) * q {
        // Most code words fail: sum the probabilities of those that are decoded.
        return (1.0 - (0..=t).map(term).sum::<f64>()).clamp(0.0, 1.0);
    }
    // Beyond the mean each term is smaller than the previous one.
    let mut sum = 0.0;
    for i in t + 1..=n {
        let next = term(i);
        sum += next;
        if next <= sum * 1e-17 {
            break;
        }
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_word_fails_as_the_binomial_says() {
        // A code that corrects nothing fails with 1 − (1 − q)^n.
        assert!((failure(255, 0, 1e-3) - (1.0 - 0.999f64.powi(255))).abs() < 1e-14);
        // Small q: two wrong symbols, C(255, 2)·q²·(1 − q)^253, and three, C(255, 3)·q³ = C(255, 2)·q²·253/3·q.
        let two = 32_385.0 * 1e-12 * (1.0 - 253.0 * 1e-6 + 253.0 * 1e-6 / 3.0);
        assert!((failure(255, 1, 1e-6) / two - 1.0).abs() < 1e-6);
        // Every one of 3 with probability 1/2: 4 of 8 cases have two or more wrong.
        assert!((failure(3, 1, 0.5) - 0.5).abs() < 1e-12 && (failure(3, 2, 0.5) - 0.125).abs() < 1e-12);
        assert_eq!((failure(9, 3, 0.0), failure(9, 3, 1.0)), (0.0, 1.0));
    }

    #[test]
    fn a_packet_begins_a_code_word() {
        let rs = Code::ReedSolomon { n: 255, k: 223 };
        assert_eq!([1, 223, 224, 1000].map(|size| rs.words(size)), [1, 1, 2, 5]);
        let bch = Code::Bch { n: 255, k: 247, t: 1 };
        assert_eq!([40, 1000].map(|size| bch.words(size)), [2, 33]);
    }

    #[test]
    fn codes_that_cannot_be_are_refused() {
        for good in [
            Code::ReedSolomon { n: 255, k: 223 },
            Code::ReedSolomon { n: 204, k: 188 },
            Code::Bch { n: 255, k: 247, t: 1 },
            Code::Bch { n: 7, k: 4, t: 1 },
            Code::Bch { n: 32_400, k: 32_208, t: 12 },
            // Perfect codes, which meet the bound exactly: repetition, and the binary Golay code.
            Code::Bch { n: 65_535, k: 1, t: 32_767 },
            Code::Bch { n: 23, k: 12, t: 3 },
        ] {
            assert!(good.validate().is_ok(), "{good:?}");
        }
        for bad in [
            Code::ReedSolomon { n: 256, k: 223 },
            Code::ReedSolomon { n: 255, k: 255 },
            Code::ReedSolomon { n: 0, k: 0 },
            Code::ReedSolomon { n: 255, k: 254 },
            Code::Bch { n: 0, k: 0, t: 0 },
            Code::Bch { n: 255, k: 0, t: 1 },
            Code::Bch { n: 255, k: 247, t: 0 },
            Code::Bch { n: 255, k: 247, t: 5 },
            // One parity bit finds an error, but not its position; 8 syndromes are too few for 8 positions and no error.
            Code::Bch { n: 255, k: 254, t: 1 },
            Code::Bch { n: 8, k: 5, t: 1 },
        ] {
            assert!(bad.validate().is_err(), "{bad:?}");
        }
    }
}

//! Block codes: the bit errors left by a code on a channel.
//!
//! A hard-decision decoder corrects up to *t* wrong symbols of a code word and fails beyond. Closed forms for
//! independent bit errors (J. G. Proakis, "Digital Communications", chapter on linear block codes):
//!
//! ```text
//! symbol of b bits wrong:  q = 1 − (1 − ber)^b
//! code word fails:         F = Σ_{i > t} C(n, i)·q^i·(1 − q)^(n − i)
//! packet of s bytes lost:  1 − (1 − F)^⌈8·s/(k·b)⌉        (it begins a code word)
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

    /// Refuses impossible codes.
    ///
    /// # Errors
    /// The key, and its range.
    pub fn validate(&self) -> Result<(), ParamError> {
        match *self {
            Self::Bch { n, k, t } => {
                within("code.n", n.into(), 3.0, 65_535.0)?;
                within("code.k", k.into(), 1.0, f64::from(n - 1))?;
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

/// The Hamming bound: each pattern of t wrong bits among `n` needs its own syndrome, and there are 2^added of them.
fn most_corrected(n: u32, added: u32) -> u32 {
    let syndromes = f64::from(added) * core::f64::consts::LN_2 + 1e-9;
    (1..=n / 2).take_while(|t| ln_choose(n, *t) <= syndromes).last().unwrap_or(1)
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
        // Most code words fail: sum the remainder instead.
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
        // 1 − (1 − q)^n for a code that corrects nothing; the first term beyond t where q is small.
        assert!((failure(255, 0, 1e-3) - (1.0 - 0.999f64.powi(255))).abs() < 1e-14);
        // C(255, 2)·1e-12 = 3.2385e-8, less 253·1e-6 of it for the words with both and no third.
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
        ] {
            assert!(bad.validate().is_err(), "{bad:?}");
        }
    }
}

//! Independent bit errors. By default the rate is the residual one, after any decoding. Interpreted as that of a
//! channel before a decoder, the same number means far fewer lost packets: papers that equate a bit error rate of
//! 1e-4 with the loss of about 1 % of packets mean a coded channel, which requires naming a code.

use super::code::Code;
use super::model::{Losses, Model};
use crate::packet::PacketView;
use crate::param::{ParamError, Refusal, probability};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
#[cfg(feature = "schema")]
use skyhaul_base::amount::Probability;
use skyhaul_base::rng::Chance;
use skyhaul_base::{Rng, math};

/// Independent bit errors; a packet with any remaining bit error is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields, rename_all = "kebab-case")
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Config {
    /// Bit error rate.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::probability"))]
    #[cfg_attr(feature = "schema", schemars(with = "Probability"))]
    pub ber: f64,
    /// What is wrong with probability `ber`: each "bit" (default), or each "byte", as with the unit `byte` of ns-2's
    /// error model, which loses about an eighth as many packets. With a code, only "bit" is possible.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Unit::is_bit"))]
    pub ber_unit: Unit,
    /// Where the bit error rate applies: "residual" (default) or "channel".
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Place::is_residual"))]
    pub ber_is: Place,
    /// The block code; required if, and only if, `ber-is` is "channel". The link's rate excludes the redundancy of the
    /// code.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub code: Option<Code>,
}

/// What an error rate counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "BerUnit"))]
pub enum Unit {
    /// Wrong bits.
    #[default]
    Bit,
    /// Wrong bytes.
    Byte,
}

impl Unit {
    /// True for the default.
    #[cfg(feature = "serde")]
    fn is_bit(&self) -> bool {
        *self == Self::Bit
    }

    /// Logarithm of the probability that a byte is right.
    fn ln_byte_intact(self, ber: f64) -> f64 {
        let bits = match self {
            Self::Bit => 8.0,
            Self::Byte => 1.0,
        };
        bits * math::ln_1p(-ber)
    }
}

/// Where a bit error rate applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "BerPlace"))]
pub enum Place {
    /// After decoding.
    #[default]
    Residual,
    /// On the channel, before decoding.
    Channel,
}

impl Place {
    /// True for the default.
    #[cfg(feature = "serde")]
    fn is_residual(&self) -> bool {
        *self == Self::Residual
    }
}

/// An invalid configuration of bit errors.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Invalid {
    /// A parameter is out of its range.
    #[error(transparent)]
    Param(#[from] ParamError),
    /// A channel without a code, which would be the residual rate.
    #[error(
        "missing: name the channel's code, such as code = {{ kind = \"bch\", n = 255, k = 247, t = 1 }} or \
         {{ kind = \"reed-solomon\", n = 255, k = 223 }}"
    )]
    NoCode,
    /// A code without a channel that uses it.
    #[error("a residual rate already includes decoding: leave this out, or write ber-is = \"channel\"")]
    CodeBehind,
    /// A code over bits, with a rate of wrong bytes.
    #[error("a code corrects bits of the channel: write \"bit\", or leave ber-is and code out")]
    CodedBytes,
}

impl Refusal for Invalid {
    fn key(&self) -> &'static str {
        match self {
            Self::Param(e) => e.key(),
            Self::NoCode | Self::CodeBehind => "code",
            Self::CodedBytes => "ber-unit",
        }
    }
}

impl Model for Config {
    type Losses = Box<Ber>;
    type Invalid = Invalid;
    type Canonical = Self;

    fn validate(&self) -> Result<(), Invalid> {
        probability("ber", self.ber)?;
        if self.ber_is == Place::Channel && self.ber_unit == Unit::Byte {
            return Err(Invalid::CodedBytes);
        }
        match (self.ber_is, self.code) {
            (Place::Residual, None) => Ok(()),
            (Place::Residual, Some(_)) => Err(Invalid::CodeBehind),
            (Place::Channel, None) => Err(Invalid::NoCode),
            (Place::Channel, Some(code)) => Ok(code.validate()?),
        }
    }
    fn build(&self) -> Box<Ber> {
        Box::new(Ber::of(self.ber, self.ber_unit, self.code))
    }
    fn canonical(self) -> Self {
        self
    }
    fn mean_loss(&self, size: u32) -> f64 {
        Ber::of(self.ber, self.ber_unit, self.code).loss(size)
    }
    fn words(&self, number: &dyn Fn(f64) -> String) -> String {
        let of = if self.code.is_some() { " of a coded channel" } else { "" };
        let unit = match self.ber_unit {
            Unit::Bit => "bit",
            Unit::Byte => "byte",
        };
        format!("{unit} error rate {}{of}", number(self.ber))
    }
}

/// Probability that a packet of `size` bytes has at least one wrong bit: 1 − (1 − ber)^(8·size).
#[must_use]
pub fn packet_error_rate(ber: f64, size: u32) -> f64 {
    any_wrong(f64::from(size), Unit::Bit.ln_byte_intact(ber))
}

/// Probability that at least one of `n` units is wrong, from the logarithm of the probability that one is right.
fn any_wrong(n: f64, ln_right: f64) -> f64 {
    // The logarithm is infinite for a rate of 1. The direct form 1 − p^n loses all precision at small rates.
    if n == 0.0 { 0.0 } else { -math::expm1(n * ln_right) }
}

/// Loses a packet if any wrong bit or byte remains after decoding. One draw per packet, none at a rate of 0.
#[derive(Clone, Debug)]
pub struct Ber {
    ber: f64,
    ln_byte_intact: f64,
    /// The code, and the logarithm of the probability that a code word is decoded.
    code: Option<(Code, f64)>,
    /// Probabilities of recent sizes, indexed by size: traffic has few distinct sizes.
    cache: [(u32, Chance); SLOTS],
}

const SLOTS: usize = 8;

impl Ber {
    /// A channel without a code on which each bit is wrong with probability `ber`.
    ///
    /// # Errors
    /// If `ber` is no probability.
    pub fn new(ber: f64) -> Result<Self, ParamError> {
        probability("ber", ber).map(|ber| Self::of(ber, Unit::Bit, None))
    }
    fn of(ber: f64, unit: Unit, code: Option<Code>) -> Self {
        let code = code.map(|code| (code, code.ln_decoded(ber)));
        // An empty packet has no wrong bit, so size 0 marks an entry that is correct from the start.
        Self { ber, ln_byte_intact: unit.ln_byte_intact(ber), code, cache: [(0, Chance::NEVER); SLOTS] }
    }
    /// The bit error rate.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.ber
    }
    /// Probability that a packet of `size` bytes is lost.
    fn loss(&self, size: u32) -> f64 {
        match &self.code {
            None => any_wrong(f64::from(size), self.ln_byte_intact),
            Some((code, ln_decoded)) => any_wrong(code.words(size) as f64, *ln_decoded),
        }
    }
    /// Whether a packet of `size` bytes is lost.
    #[inline]
    pub fn loses(&mut self, size: u32, rng: &mut Rng) -> bool {
        // Fibonacci hashing: common sizes are multiples of 4, so their low bits alone would collide.
        let slot = (size.wrapping_mul(0x9e37_79b9) >> 29) as usize;
        if self.cache[slot].0 != size {
            self.cache[slot] = (size, Chance::new(self.loss(size)));
        }
        rng.chance(self.cache[slot].1)
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
        assert_eq!(
            [(1.0, 1), (0.5, 0), (1.0, 0)].map(|(ber, size)| packet_error_rate(ber, size)),
            [1.0, 0.0, 0.0]
        );
        // Where the direct form would give 0.
        assert!((packet_error_rate(1e-18, 1000) / 8e-15 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn sizes_that_share_a_slot_do_not_mix() {
        // Sizes up to 20000 share 8 slots of the cache: each outcome must be that without a cache, from the same draw.
        let mut model = Ber::new(1e-5).unwrap();
        let (mut a, mut b) = (Rng::stream(1, "e"), Rng::stream(1, "e"));
        for i in 0..100_000u32 {
            let size = i * 7919 % 20_000;
            let expected = b.chance(Chance::new(packet_error_rate(1e-5, size)));
            assert_eq!(model.loses(size, &mut a), expected);
        }
        assert_eq!(a, b);
    }

    fn coded(ber: f64, code: Code) -> Config {
        Config { ber, ber_is: Place::Channel, code: Some(code), ..Config::default() }
    }

    /// ns-2.35, `ErrorModel::CorruptByte`: 1 − (1 − rate)^size.
    #[test]
    fn a_rate_of_bytes_loses_an_eighth() {
        let bytes = Config { ber: 1e-5, ber_unit: Unit::Byte, ..Config::default() };
        assert!((bytes.mean_loss(1000) - (1.0 - (1.0 - 1e-5f64).powi(1000))).abs() < 1e-12);
        assert!(
            (bytes.mean_loss(1000) - 9.95e-3).abs() < 0.5e-5 && (bytes.mean_loss(40) - 4e-4).abs() < 0.5e-6
        );
        let bits = Config { ber: 1e-5, ..Config::default() };
        assert!((bits.mean_loss(1000) - packet_error_rate(1e-5, 1000)).abs() < 1e-15);
        let (mut model, mut rng, n) = (bytes.build(), Rng::stream(1, "e"), 200_000);
        let lost = f64::from((0..n).filter(|_| Ber::loses(&mut model, 1000, &mut rng)).count() as u32);
        // Binomial: four deviations.
        let (p, n) = (bytes.mean_loss(1000), f64::from(n));
        assert!((lost - n * p).abs() < 4.0 * (n * p * (1.0 - p)).sqrt(), "{lost}");
        assert_eq!(
            (bytes.validate(), bytes.words(&|x| format!("{x}"))),
            (Ok(()), "byte error rate 0.00001".into())
        );
        let code = Some(Code::ReedSolomon { n: 255, k: 223 });
        let coded = Config { ber_is: Place::Channel, code, ..bytes };
        assert_eq!(coded.validate(), Err(Invalid::CodedBytes));
    }

    #[test]
    fn a_coded_channel_loses_far_less_than_its_bits_say() {
        // Without a code a rate of 1e-4 loses 55 % of 1000-byte packets. The Hamming code (255, 247) fails with two or more
        // wrong bits of 255: 1 − (1 − p)^255 − 255·p·(1 − p)^254. A packet has 33 code words.
        let p: f64 = 1e-4;
        let word = 1.0 - (1.0 - p).powi(255) - 255.0 * p * (1.0 - p).powi(254);
        let hamming = coded(p, Code::Bch { n: 255, k: 247, t: 1 });
        assert!((hamming.mean_loss(1000) - (1.0 - (1.0 - word).powi(33))).abs() < 1e-12);
        assert!(
            hamming.mean_loss(1000) > 0.01 && hamming.mean_loss(1000) < 0.0106,
            "{}",
            hamming.mean_loss(1000)
        );
        // Reed–Solomon (255, 223) corrects 16 bytes: of 255, each wrong with 1 − (1 − 5e-3)^8 = 3.931e-2, 10.02 are wrong
        // on average.
        let q = 1.0 - 0.995f64.powi(8);
        let (mut term, mut good) = ((1.0 - q).powi(255), 0.0);
        for i in 0..=16 {
            good += term;
            term *= f64::from(255 - i) / f64::from(i + 1) * q / (1.0 - q);
        }
        let rs = coded(5e-3, Code::ReedSolomon { n: 255, k: 223 });
        assert!((rs.mean_loss(1000) - (1.0 - f64::powi(good, 5))).abs() < 1e-11, "{}", rs.mean_loss(1000));
        assert!(coded(1e-4, Code::ReedSolomon { n: 255, k: 223 }).mean_loss(1000) < 1e-18);
        let broken = coded(1.0, rs.code.unwrap());
        assert_eq!([hamming.mean_loss(0), broken.mean_loss(0), broken.mean_loss(9)], [0.0, 0.0, 1.0]);
    }

    #[test]
    fn a_coded_channel_draws_what_its_formula_says() {
        let c = coded(1e-4, Code::Bch { n: 255, k: 247, t: 1 });
        let (mut model, mut rng, n) = (c.build(), Rng::stream(1, "e"), 200_000);
        let lost = (0..n).filter(|_| Ber::loses(&mut model, 1000, &mut rng)).count() as f64;
        // Binomial: four deviations.
        let (p, n) = (c.mean_loss(1000), f64::from(n));
        assert!((lost - n * p).abs() < 4.0 * (n * p).sqrt(), "{lost}");
    }

    #[test]
    fn a_channel_needs_a_code_and_what_is_residual_has_none() {
        let code = Code::Bch { n: 255, k: 247, t: 1 };
        let refused = |c: Config| c.validate().unwrap_err();
        assert_eq!(refused(Config { code: None, ..coded(0.1, code) }), Invalid::NoCode);
        assert_eq!(refused(Config { ber_is: Place::Residual, ..coded(0.1, code) }), Invalid::CodeBehind);
        assert_eq!(refused(coded(2.0, code)).key(), "ber");
        assert_eq!(refused(coded(0.1, Code::Bch { n: 9, k: 9, t: 1 })).key(), "code.k");
    }
}

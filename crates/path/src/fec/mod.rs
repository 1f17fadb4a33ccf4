//! Forward error correction: redundancy that a link sends so that the receiver can repair losses by itself.
//!
//! There are two kinds. A code in the modem protects bits: it takes a share of the rate and leaves a residual error
//! rate. A code above the modem protects packets against erasure: parity packets follow the packets of a block, and
//! any packets, as many as the block has, suffice (RFC 5052, RFC 6363). Both cost capacity even if nothing is lost.
//!
//! Each kind has its own file with its [`Model`], whose configuration is its form in scenario files. A new kind
//! needs only that file and one line in the list below.

pub mod block;
pub mod code_rate;
mod model;
pub mod repeat;

use crate::param::Refusal;
use alloc::string::String;
use skyhaul_base::math;

pub use model::{Code, Model, Shape};

skyhaul_base::kinds! {
    each;
    /// Forward error correction of a link.
    #[derive(Clone, Debug, PartialEq)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(tag = "kind"))]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "FecSpec"))]
    #[expect(missing_docs, reason = "the configuration of each kind documents itself")]
    pub enum Config {
        "block" Block(block::Config),
        "rate" Rate(code_rate::Config),
        "repeat" Repeat(repeat::Config),
    }
    /// Why a configuration is invalid.
    #[derive(Clone, Debug, PartialEq)]
    #[expect(missing_docs, reason = "the error of each kind documents itself")]
    pub error Invalid = Model::Invalid;
}

impl Config {
    /// The kind's name in files.
    #[must_use]
    pub fn name(&self) -> &'static str {
        each!(self, Config => name)
    }
    /// Refuses parameters that are outside their domain or contradict each other.
    ///
    /// # Errors
    /// The key, and a sentence that says what to write instead.
    pub fn validate(&self) -> Result<(), Invalid> {
        each!(self, Config(c), Invalid(refuse) => c.validate().map_err(refuse))
    }
    /// The canonical form, shared by all equivalent configurations.
    ///
    /// # Errors
    /// As [`Self::validate`].
    pub fn canonical(self) -> Result<Self, Invalid> {
        self.validate()?;
        Ok(each!(self, Config(c) => c.canonical().into()))
    }
    /// Its effect on packets; the parameters must be valid ([`Self::validate`]).
    #[must_use]
    pub fn code(&self) -> Code {
        each!(self, Config(c) => c.code())
    }
    /// A short description for reports, which choose the format of each `number`.
    #[must_use]
    pub fn words(&self, number: &dyn Fn(f64) -> String) -> String {
        each!(self, Config(c) => c.words(number))
    }
}

impl Refusal for Invalid {
    fn key(&self) -> &'static str {
        each!(self, Invalid(e) => e.key())
    }
}

impl Code {
    /// The share of the capacity left for packets, if all blocks are full and all packets have one size.
    #[must_use]
    pub fn rate(&self) -> f64 {
        let Shape { k, parity, .. } = self.shape;
        self.bits * f64::from(k) / (f64::from(k) + f64::from(parity))
    }

    /// The fraction of packets lost if transmissions are lost independently with probability `p` and all blocks are
    /// full: a block loses packets if more than n − k of its n transmissions are lost, Σ_{i>n−k} C(n,i) p^i
    /// (1−p)^(n−i) i/n.
    #[must_use]
    pub fn residual_loss(&self, p: f64) -> f64 {
        let Shape { k, parity, .. } = self.shape;
        if p <= 0.0 || p >= 1.0 {
            return p.clamp(0.0, 1.0);
        }
        let n = f64::from(k) + f64::from(parity);
        // Logarithms: the coefficients of long blocks overflow, and the powers underflow.
        let (ln_p, ln_q, ln_n_factorial) = (math::ln(p), math::ln_1p(-p), math::ln_gamma(n + 1.0));
        let (mut sum, mut i) = (0.0, f64::from(parity) + 1.0);
        while i <= n {
            let ln_choose = ln_n_factorial - math::ln_gamma(i + 1.0) - math::ln_gamma(n - i + 1.0);
            sum += math::exp(ln_choose + i * ln_p + (n - i) * ln_q) * i / n;
            i += 1.0;
        }
        sum.min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_base::Duration;

    fn block(n: u64, k: u64) -> Config {
        block::Config { n, k, ..block::Config::default() }.into()
    }
    fn repeat(times: u64) -> Config {
        repeat::Config { times }.into()
    }

    #[test]
    fn residual_losses_of_common_codes() {
        // To the digits printed: half a unit of the last one.
        for (n, k, p, expected, half) in [
            (20, 18, 0.01, 1.527e-4, 0.0005e-4),
            (20, 16, 0.01, 3.437e-7, 0.0005e-7),
            (20, 16, 0.05, 6.618e-4, 0.0005e-4),
            (255, 239, 0.02, 1.315e-6, 0.0005e-6),
        ] {
            let left = block(n, k).code().residual_loss(p);
            assert!((left - expected).abs() <= half, "({n},{k}) {p}: {left}");
        }
        // All copies are lost.
        for (times, p, expected) in [(1, 0.3, 0.3), (2, 0.1, 0.01), (3, 0.1, 1e-3), (4, 0.5, 0.0625)] {
            let left = repeat(times).code().residual_loss(p);
            assert!((left / expected - 1.0).abs() < 1e-9, "{times} {p}: {left}");
        }
        // Without parity nothing is repaired.
        assert!((block(20, 20).code().residual_loss(0.07) - 0.07).abs() < 1e-12);
        let ends = [0.0, 1.0].map(|p| block(20, 18).code().residual_loss(p));
        assert_eq!(ends, [0.0, 1.0]);
    }

    #[test]
    fn code_rates() {
        assert_eq!(block(20, 18).code().rate(), 0.9);
        assert_eq!(repeat(4).code().rate(), 0.25);
        assert_eq!(code_rate::Config { rate: 0.75, residual: None }.code().rate(), 0.75);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_key() {
        let refused = |c: Config| {
            let e = c.validate().expect_err("refused");
            (e.key(), alloc::string::ToString::to_string(&e))
        };
        let rate = |rate| Config::from(code_rate::Config { rate, residual: None });
        let depth =
            |interleave| block::Config { n: 20, k: 18, interleave, ..block::Config::default() }.into();
        let no_time = block::Config { n: 20, k: 18, fill_time: Duration::ZERO, ..block::Config::default() };
        for (config, key, remedy) in [
            (block(17, 18), "n", "write n = 18 or more"),
            (block(20, 0), "k", "write k = 1 or more"),
            (block(100_000, 18), "n", "write at most 65535"),
            (depth(0), "interleave", "write 1 for none"),
            (depth(100_000), "interleave", "write at most 65535"),
            (depth(40_000), "interleave", "80000 packets of parity follow"),
            (no_time.into(), "fill-time", "such as \"50 ms\""),
            (rate(0.0), "rate", "write a number from 0.001 to 1"),
            (rate(1e-300), "rate", "write a number from 0.001 to 1"),
            (rate(1.01), "rate", "write a number from 0.001 to 1"),
            (rate(f64::NAN), "rate", "write a number from 0.001 to 1"),
            (repeat(0), "times", "write 1 or more"),
            (repeat(70_000), "times", "write at most 65535"),
        ] {
            let (at, message) = refused(config);
            assert!(at == key && message.contains(remedy), "{at}: {message}");
        }
        assert!(
            [block(18, 18), block(1, 1), rate(1.0), rate(1e-3), repeat(1)]
                .iter()
                .all(|c| c.validate().is_ok())
        );
    }
}

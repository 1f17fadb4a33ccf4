//! Forward error correction: what a link sends besides its packets, so that the receiver repairs losses by itself.
//!
//! Two places are known. In the modem a code protects bits: it takes a share of the rate, and what it leaves is the
//! residual error rate. Above the modem a code protects packets against erasure: packets of parity follow the packets
//! of a block, and as many as the block has packets are enough, whichever arrive (RFC 5052, RFC 6363). Both cost
//! capacity whether or not anything is lost.
//!
//! Each kind has a file with its [`Model`], whose configuration is its form in scenario files; the list below is the
//! only line outside of that file that a new one needs.

pub mod block;
pub mod code_rate;
mod model;
pub mod repeat;

use crate::param::Refusal;
use alloc::string::String;
use core::fmt;
use skyhaul_base::math;

pub use model::{Code, Model, Shape};

/// Expands the list below into the enum of configurations, the names, and the dispatch to each.
macro_rules! codes {
    ($($name:literal $variant:ident($config:ty)),* $(,)?) => {
        /// Forward error correction of a link.
        #[derive(Clone, Debug, PartialEq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(tag = "kind"))]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "FecSpec"))]
        #[expect(missing_docs, reason = "the configuration of each kind documents itself")]
        pub enum Config {
            $(#[cfg_attr(feature = "serde", serde(rename = $name))] $variant($config),)*
        }

        /// Why a configuration makes no sense.
        #[derive(Clone, Debug, PartialEq)]
        #[expect(missing_docs, reason = "the error of each kind documents itself")]
        pub enum Invalid {
            $($variant(<$config as Model>::Invalid),)*
        }

        /// The names of all kinds in files.
        pub const NAMES: &[&str] = &[$($name),*];

        impl Config {
            /// The kind's name in files.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)* }
            }
            /// Refuses parameters that are outside their domain or contradict each other.
            ///
            /// # Errors
            /// The key, and a sentence that says what to write instead.
            pub fn validate(&self) -> Result<(), Invalid> {
                match self { $(Self::$variant(c) => c.validate().map_err(Invalid::$variant),)* }
            }
            /// The same code in the one form that equal configurations have.
            ///
            /// # Errors
            /// As [`Self::validate`].
            pub fn canonical(self) -> Result<Self, Invalid> {
                self.validate()?;
                Ok(match self { $(Self::$variant(c) => c.canonical().into(),)* })
            }
            /// What it does to packets; the parameters are those that [`Self::validate`] accepts.
            #[must_use]
            pub fn code(&self) -> Code {
                match self { $(Self::$variant(c) => c.code(),)* }
            }
            /// What it does in a few words, for reports, which say how they write a `number`.
            #[must_use]
            pub fn words(&self, number: &dyn Fn(f64) -> String) -> String {
                match self { $(Self::$variant(c) => c.words(number),)* }
            }
        }

        $(impl From<$config> for Config {
            fn from(c: $config) -> Self {
                Self::$variant(c)
            }
        })*

        impl fmt::Display for Invalid {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self { $(Self::$variant(e) => e.fmt(f),)* }
            }
        }

        impl core::error::Error for Invalid {}

        impl Refusal for Invalid {
            fn key(&self) -> &'static str {
                match self { $(Self::$variant(e) => e.key(),)* }
            }
        }
    };
}

codes! {
    "block" Block(block::Config),
    "rate" Rate(code_rate::Config),
    "repeat" Repeat(repeat::Config),
}

impl Code {
    /// The share of the capacity that packets have of their own, where all blocks are full and all packets of a size.
    #[must_use]
    pub fn rate(&self) -> f64 {
        let Shape { k, parity, .. } = self.shape;
        self.bits * f64::from(k) / (f64::from(k) + f64::from(parity))
    }

    /// The share of packets lost where each transmission is lost with probability `p`, independently: a block of k
    /// packets out of n is lost in so far as more than n − k transmissions are,
    /// Σ_{i>n−k} C(n,i) p^i (1−p)^(n−i) i/n.
    #[must_use]
    pub fn residual_loss(&self, p: f64) -> f64 {
        let Shape { k, parity, .. } = self.shape;
        if p <= 0.0 || p >= 1.0 {
            return p.clamp(0.0, 1.0);
        }
        let n = f64::from(k) + f64::from(parity);
        // Logarithms: the coefficients of long blocks exceed any number, and their powers fall below any.
        let (ln_p, ln_q, ln_all) = (math::ln(p), math::ln_1p(-p), math::ln_gamma(n + 1.0));
        let (mut sum, mut i) = (0.0, f64::from(parity) + 1.0);
        while i <= n {
            let ln_ways = ln_all - math::ln_gamma(i + 1.0) - math::ln_gamma(n - i + 1.0);
            sum += math::exp(ln_ways + i * ln_p + (n - i) * ln_q) * i / n;
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
            (no_time.into(), "fill-time", "such as \"50 ms\""),
            (rate(0.0), "rate", "write a number above 0 and up to 1"),
            (rate(1.01), "rate", "write a number above 0 and up to 1"),
            (rate(f64::NAN), "rate", "write a number above 0 and up to 1"),
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

//! Channel losses.
//!
//! Each link has a random stream for its losses. A model draws from it in the order of departures, equally often
//! whether or not a packet is lost. A lost packet has used queue space and transmission time.
//!
//! Each model has its own file with its [`Model`], whose configuration is its form in scenario files. A new model
//! needs only that file and one line in the list below.

pub mod ber;
pub mod bursts;
pub mod code;
pub mod gilbert;
pub mod list;
mod model;
pub mod mtu;
pub mod none;
pub mod per;

use crate::packet::PacketView;
use crate::param::Refusal;
use alloc::string::String;
use skyhaul_base::Rng;

pub use list::Scope;
pub use model::{Losses, Model};

skyhaul_base::kinds! {
    each;
    /// Channel losses. Short form: "none".
    #[derive(Clone, Debug, PartialEq)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(tag = "kind"))]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ErrorSpec"))]
    #[expect(missing_docs, reason = "the configuration of each model documents itself")]
    pub enum Config {
        "ber" Ber(ber::Config),
        "bursts" Bursts(bursts::Config),
        "gilbert-elliott" GilbertElliott(gilbert::Config),
        "list" List(list::Config),
        "mtu" Mtu(mtu::Config),
        "none" None(none::Config),
        "per" Per(per::Config),
    }
    /// A running model of channel losses.
    ///
    /// Models with more than a few bytes of state are boxed: most links have none, and links are scanned often.
    #[derive(Clone, Debug)]
    #[expect(missing_docs, reason = "each model documents itself")]
    pub enum ErrorModel = Model::Losses;
    /// Why a configuration is invalid.
    #[derive(Clone, Debug, PartialEq)]
    #[expect(missing_docs, reason = "the error of each model documents itself")]
    pub error Invalid = Model::Invalid;
}

impl Config {
    /// The model's name in files.
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
    /// The running model before the first packet.
    ///
    /// # Panics
    /// If [`Self::validate`] refuses the configuration.
    #[must_use]
    pub fn build(&self) -> ErrorModel {
        if let Err(e) = self.validate() {
            panic!("{}: {e}", e.key());
        }
        each!(self, Config(c), ErrorModel(running) => running(c.build()))
    }
    /// The canonical form, shared by all equivalent configurations.
    ///
    /// # Errors
    /// As [`Self::validate`].
    pub fn canonical(self) -> Result<Self, Invalid> {
        self.validate()?;
        Ok(each!(self, Config(c) => c.canonical().into()))
    }
    /// Long-run fraction of packets of `size` bytes lost; 0 if it does not exist. The parameters must be
    /// valid ([`Self::validate`]).
    #[must_use]
    pub fn mean_loss(&self, size: u32) -> f64 {
        each!(self, Config(c) => c.mean_loss(size))
    }
    /// A short description for reports, which choose the format of each `number`.
    #[must_use]
    pub fn words(&self, number: &dyn Fn(f64) -> String) -> String {
        each!(self, Config(c) => c.words(number))
    }
}

impl ErrorModel {
    /// Whether the packet is lost; advances the model by one packet.
    #[inline(always)]
    pub fn loses(&mut self, p: &impl PacketView, rng: &mut Rng) -> bool {
        each!(self, ErrorModel(m) => Losses::loses(m, p, rng))
    }
    /// Longest packet sent in one piece, bytes.
    pub(crate) fn longest_whole(&self) -> u32 {
        each!(self, ErrorModel(m) => m.longest_whole())
    }
    /// Bytes that a packet of `size` bytes takes on the link: more than `size` if it is fragmented.
    pub(crate) fn on_wire(&self, size: u32) -> u32 {
        each!(self, ErrorModel(m) => m.on_wire(size))
    }
    /// Whether it loses nothing and draws nothing.
    #[must_use]
    pub fn is_lossless(&self) -> bool {
        each!(self, ErrorModel(m) => m.is_lossless())
    }
}

impl Refusal for Invalid {
    fn key(&self) -> &'static str {
        each!(self, Invalid(e) => e.key())
    }
}

impl Config {
    /// No losses.
    pub const NONE: Self = Self::None(none::Config {});
}

impl Default for Config {
    fn default() -> Self {
        Self::NONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::param::ParamError;
    use gilbert::GilbertElliott;

    fn per(p: f64) -> Config {
        per::Config { p }.into()
    }
    fn ber(ber: f64) -> Config {
        ber::Config { ber, ..ber::Config::default() }.into()
    }

    #[derive(Default)]
    struct Data;
    impl PacketView for Data {
        fn size(&self) -> u32 {
            1000
        }
        fn low_priority(&self) -> bool {
            false
        }
        fn flow(&self) -> u32 {
            0
        }
    }

    #[test]
    fn parameters_that_are_no_probabilities_are_refused() {
        for bad in [-1e-9, 1.000_001, f64::NAN, f64::INFINITY] {
            assert!(per(bad).validate().is_err() && ber(bad).validate().is_err(), "{bad}");
            assert!(GilbertElliott::new(0.1, 0.1, bad, 1.0).is_err(), "{bad}");
            assert!(GilbertElliott::new(bad, 0.1, 0.0, 1.0).is_err(), "{bad}");
        }
        assert!(matches!(
            per(2.0).validate(),
            Err(Invalid::Per(ParamError::OutOfRange { name: "p", value: 2.0, min: 0.0, max: 1.0 }))
        ));
    }

    #[test]
    fn a_lossless_channel_draws_nothing() {
        let mut rng = Rng::stream(1, "links.sat.error");
        let before = rng.clone();
        for mut model in [Config::NONE, per(0.0), ber(0.0)].map(|c| c.build()) {
            assert!((0..100).all(|_| !model.loses(&Data, &mut rng)));
        }
        assert_eq!(rng, before);
    }

    #[test]
    fn losses_of_a_lower_rate_are_among_those_of_a_higher_one() {
        // Common random numbers: one draw per packet, compared with the probability.
        let run = |p| {
            let mut rng = Rng::stream(1, "links.sat.error");
            let mut model = per(p).build();
            (0..10_000).map(|_| model.loses(&Data, &mut rng)).collect::<alloc::vec::Vec<_>>()
        };
        let (rare, often) = (run(0.001), run(0.01));
        assert!(rare.iter().zip(&often).all(|(r, o)| *o || !r));
        assert!(rare.contains(&true));
    }
}

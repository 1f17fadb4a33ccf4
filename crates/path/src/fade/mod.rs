//! Fades: rain, shadowing, or a file give the attenuation of a carrier, which changes the rate of a link and its
//! losses.
//!
//! ```text
//! sky (rain, shadowing, file) -> attenuation -> Es/N0 of the carrier -> ModCod -> rate
//!                                                                    -> margin -> loss
//! ```
//! Each kind has its own file with its [`Model`], whose configuration is its form in scenario files. A new kind
//! needs only that file and one line in the list below. A fade that follows a file is not a table in the scenario: it is a
//! file of values.

pub mod carrier;
mod channel;
mod fading;
mod gauge;
pub mod modcod;
mod model;
mod normal;
pub mod rain;
mod series;
pub mod shadowing;

use crate::course::Course;
use alloc::boxed::Box;
use alloc::string::String;
use channel::Channel;
use fading::Fading;
use skyhaul_base::Rng;

pub use crate::param::Invalid;
pub use gauge::{CarrierReading, Gauge, Reading};
pub use model::{Model, Sky, Weather};
pub use series::Series;

skyhaul_base::kinds! {
    each;
    /// A fade.
    #[derive(Clone, Debug, PartialEq)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(tag = "kind"))]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "FadeSpec"))]
    #[expect(missing_docs, reason = "each fade documents itself")]
    pub enum Config {
        "rain" Rain(rain::Config),
        "shadowing" Shadowing(shadowing::Config),
    } + {
        /// Attenuation that follows a file. No draws.
        skip Series(Series),
    }
}

impl Config {
    /// Refuses parameters that are outside their domain or contradict each other.
    ///
    /// # Errors
    /// The key, and a sentence that says what to write instead.
    pub fn validate(&self) -> Result<(), Invalid> {
        each!(self, Config(c) => c.validate())
    }
    /// The carrier that fades; `None` for a fade that gives the loss of packets directly.
    #[must_use]
    pub fn carrier(&self) -> Option<&carrier::Config> {
        each!(self, Config(c) => c.carrier())
    }
    /// The fading carrier, for filling in what follows from the link.
    pub fn carrier_mut(&mut self) -> Option<&mut carrier::Config> {
        each!(self, Config(c) => c.carrier_mut())
    }
    /// Whether both directions of a link fade together, if both fade: they then need a common random
    /// stream.
    #[must_use]
    pub fn shared(&self) -> bool {
        each!(self, Config(c) => c.shared())
    }
    /// Long-run fraction of time with an attenuation above `a` dB; for a file, up to its last time.
    #[must_use]
    pub fn exceeded(&self, a: f64) -> f64 {
        each!(self, Config(c) => c.exceeded(a))
    }
    /// Long-run fraction of packets that the fade loses directly, not by a weak carrier.
    #[must_use]
    pub fn loss(&self) -> f64 {
        each!(self, Config(c) => c.loss())
    }
    /// A short description for reports.
    #[must_use]
    pub fn words(&self) -> String {
        each!(self, Config(c) => c.words())
    }
    /// The changes of a directed link during a run, drawn from `rng`. The parameters must be
    /// valid ([`Self::validate`]).
    #[must_use]
    pub fn course(&self, rng: Rng) -> Box<dyn Course> {
        let carrier = self.carrier().map(carrier::Config::build);
        each!(self, Config(c) => Fading::start(Channel::start(c.run(rng), carrier)))
    }
    /// The same fade for those who look at it: with an equal `rng` it shows what [`Self::course`] does to the link.
    #[must_use]
    pub fn gauge(&self, rng: Rng) -> Box<dyn Gauge> {
        let carrier = self.carrier().map(carrier::Config::build);
        each!(self, Config(c) => Box::new(Channel::start(c.run(rng), carrier)))
    }
}

impl Config {
    /// Whether it changes the rate of its link.
    #[must_use]
    pub fn sets_rate(&self) -> bool {
        self.carrier().is_some_and(|c| c.symbol_rate.is_some())
    }

    /// Fraction of time without reception: the signal is too weak for the most robust ModCod, or for the fixed one.
    #[must_use]
    pub fn outage(&self) -> f64 {
        let Some(carrier) = self.carrier() else { return 0.0 };
        match carrier.ladder().pop() {
            // Too weak even under a clear sky.
            Some((modcod, _)) if carrier.es_n0 < modcod.es_n0 => 1.0,
            Some((_, attenuation)) => self.exceeded(attenuation),
            None => 0.0,
        }
    }
}

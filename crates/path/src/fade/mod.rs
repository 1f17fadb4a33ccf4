//! Fades: rain, shadowing, or a file say how much of a carrier arrives; what its receiver makes of that changes the rate
//! of a link and its losses.
//!
//! ```text
//! sky (rain, shadowing, file) -> attenuation -> Es/N0 of the carrier -> ModCod -> rate
//!                                                                    -> margin -> loss
//! ```
//! Each sky has a file with its [`Model`], whose configuration is its form in scenario files; the list below is the only
//! line outside of that file that a new one needs. One that follows a file has no form of its own there: it is read from
//! a file of values.

pub mod carrier;
mod fading;
pub mod modcod;
mod model;
mod normal;
pub mod rain;
mod series;
pub mod shadowing;

use crate::course::Course;
use alloc::boxed::Box;
use alloc::string::String;
use fading::Fading;
use skyhaul_base::Rng;

pub use crate::param::Invalid;
pub use model::{Model, Sky, Weather};
pub use series::Series;

/// Expands the list below into the enum of fades, their names in files, and the dispatch to each.
macro_rules! fades {
    ($($name:literal $variant:ident($config:ty)),* $(,)?) => {
        /// A fade.
        #[derive(Clone, Debug, PartialEq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(tag = "kind"))]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "FadeSpec"))]
        #[expect(missing_docs, reason = "each fade documents itself")]
        pub enum Config {
            $(#[cfg_attr(feature = "serde", serde(rename = $name))] $variant($config),)*
            /// Attenuation that follows a file. No draws.
            #[cfg_attr(feature = "serde", serde(skip))]
            Series(Series),
        }

        /// The names of all fades in files.
        pub const NAMES: &[&str] = &[$($name),*];

        impl Config {
            /// Refuses parameters that are outside their domain or contradict each other.
            ///
            /// # Errors
            /// The key, and a sentence that says what to write instead.
            pub fn validate(&self) -> Result<(), Invalid> {
                match self { $(Self::$variant(c) => c.validate(),)* Self::Series(c) => c.validate() }
            }
            /// The carrier that fades; `None` if packets are lost without one.
            #[must_use]
            pub fn carrier(&self) -> Option<&carrier::Config> {
                match self { $(Self::$variant(c) => c.carrier(),)* Self::Series(c) => c.carrier() }
            }
            /// The same, to fill in what follows from the link.
            pub fn carrier_mut(&mut self) -> Option<&mut carrier::Config> {
                match self { $(Self::$variant(c) => c.carrier_mut(),)* Self::Series(c) => c.carrier_mut() }
            }
            /// Both directions of a link see the same, if both have a fade: give both one stream.
            #[must_use]
            pub fn shared(&self) -> bool {
                match self { $(Self::$variant(c) => c.shared(),)* Self::Series(c) => c.shared() }
            }
            /// Share of time for which the attenuation is above `a` dB in the long run; of a file, up to its last time.
            #[must_use]
            pub fn exceeded(&self, a: f64) -> f64 {
                match self { $(Self::$variant(c) => c.exceeded(a),)* Self::Series(c) => c.exceeded(a) }
            }
            /// Share of packets lost in the long run besides what the carrier loses.
            #[must_use]
            pub fn lost(&self) -> f64 {
                match self { $(Self::$variant(c) => c.lost(),)* Self::Series(c) => c.lost() }
            }
            /// What it is in a few words, for reports.
            #[must_use]
            pub fn words(&self) -> String {
                match self { $(Self::$variant(c) => c.words(),)* Self::Series(c) => c.words() }
            }
            /// The changes that it makes to a directed link from the start of the run on; it draws from `rng`. Parameters
            /// are those that [`Self::validate`] accepts.
            #[must_use]
            pub fn course(&self, rng: Rng) -> Box<dyn Course> {
                let carrier = self.carrier().map(carrier::Config::build);
                match self {
                    $(Self::$variant(c) => Fading::start(c.run(rng), carrier),)*
                    Self::Series(c) => Fading::start(c.run(rng), carrier),
                }
            }
        }

        $(impl From<$config> for Config {
            fn from(c: $config) -> Self {
                Self::$variant(c)
            }
        })*
    };
}

fades! {
    "rain" Rain(rain::Config),
    "shadowing" Shadowing(shadowing::Config),
}

impl Config {
    /// It changes the rate of its link.
    #[must_use]
    pub fn sets_rate(&self) -> bool {
        self.carrier().is_some_and(|c| c.symbol_rate.is_some())
    }

    /// Share of time in which nothing arrives: the most robust ModCod, or the one that is always used, has too little
    /// signal.
    #[must_use]
    pub fn outage(&self) -> f64 {
        let lowest = self.carrier().and_then(|c| c.ladder().pop());
        lowest.map_or(0.0, |(_, attenuation)| self.exceeded(attenuation))
    }
}

//! Rates of transmitters.
//!
//! A link sends at a constant rate ([`skyhaul_base::units::Serializer`]) unless its rate varies: then it is given
//! by a file or, if it depends on the traffic, by a table of keys. Each time-varying rate has its own file with its
//! [`Model`], which reads and writes a user's file, or with its [`Table`], whose fields are the keys. A new one
//! needs only that file and one line in the list below. Time in a model is that of the run: it starts with the run,
//! whenever the link is given the model.

pub mod dama;
mod model;
pub mod opportunities;
pub mod steps;

use crate::trace::broken;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use skyhaul_base::units::Serializer;
use skyhaul_base::{Duration, Instant, Rate};

use model::Sending as _;

pub use model::{Model, Table};

pub use crate::param::Invalid;
pub use crate::trace::{Broken, End, TraceError};

/// Expands the list below into the enum of rates, that of running rates, their names in files, and the dispatch to
/// each. Rates given by a file are before the semicolon, those with a table of keys after it.
///
/// This is not a list of `skyhaul_base::kinds!`, which makes one enum of configurations from one list. Here two lists with different
/// traits share the enums `Config` and `Transmitter`, and only the second has a form of its own in files, `Kind`.
macro_rules! rates {
    ($($name:literal $variant:ident($model:ty),)* ; $($kind:literal $asked:ident($table:ty),)*) => {
        /// The rate of a transmitter.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[expect(missing_docs, reason = "each rate documents itself")]
        pub enum Config {
            /// Infinitely fast, so that nothing waits while the link is up.
            #[default]
            Unlimited,
            /// Constant; never zero.
            Constant(Rate),
            $($variant(Arc<$model>),)*
            $($asked(Arc<$table>),)*
        }

        /// A rate that depends on the traffic.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(tag = "kind"))]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "RateKindSpec"))]
        #[expect(missing_docs, reason = "each rate documents itself")]
        pub enum Kind {
            $(#[cfg_attr(feature = "serde", serde(rename = $kind))] $asked($table),)*
        }

        /// Serialises the packets of a link.
        #[derive(Clone, Debug)]
        pub(crate) enum Transmitter {
            /// Infinitely fast.
            Unlimited,
            /// At a constant rate.
            Constant(Serializer),
            $($variant(Box<<$model as Model>::Run>),)*
            $($asked(Box<<$table as Table>::Run>),)*
        }

        /// The keys that name a file with a time-varying rate, one for each model.
        pub const NAMES: &[&str] = &[$($name),*];

        /// The names in files of all rates with a table of keys.
        pub const KINDS: &[&str] = &[$($kind),*];

        /// A description of the file named by the key `name`, one of [`NAMES`].
        #[must_use]
        pub fn file(name: &str) -> Option<&'static str> {
            match name { $($name => Some(<$model as Model>::FILE),)* _ => None }
        }

        /// Why the behaviour after the end of the file named by the key `name` cannot be chosen; `None` if it can.
        #[must_use]
        pub fn no_end(name: &str) -> Option<&'static str> {
            match name { $($name => <$model as Model>::NO_END,)* _ => None }
        }

        /// Parses the file named by the key `name`.
        ///
        /// # Errors
        /// The line and what to write instead, or that no such key names a file.
        pub fn read(name: &str, text: &str, end: End) -> Result<Config, Broken> {
            match name {
                $($name => <$model>::read(text, end).map(|m| Config::$variant(Arc::new(m))),)*
                _ => broken(0, format!("\"{name}\" is not a rate file format (known: {})", NAMES.join(", "))),
            }
        }

        impl Config {
            /// The rate, never zero; for a time-varying one the mean over its period if it repeats, or up to its
            /// last change. `None` if infinitely fast.
            #[must_use]
            pub fn mean(&self) -> Option<Rate> {
                match self {
                    Self::Unlimited => None,
                    Self::Constant(rate) => Some(*rate),
                    $(Self::$variant(m) => Some(Model::mean(&**m)),)*
                    $(Self::$asked(t) => Some(Table::mean(&**t)),)*
                }
            }
            /// Whether it is time-varying.
            #[must_use]
            pub fn varies(&self) -> bool {
                match self {
                    Self::Unlimited | Self::Constant(_) => false,
                    $(Self::$variant(_) => true,)*
                    $(Self::$asked(_) => false,)*
                }
            }
            /// Its table of keys, if it depends on the traffic.
            #[must_use]
            pub fn kind(&self) -> Option<Kind> {
                match self { $(Self::$asked(t) => Some(Kind::$asked((**t).clone())),)* _ => None }
            }
            /// For a time-varying rate: bits that can leave until `t`, from the start of the run.
            #[must_use]
            pub fn bits_until(&self, t: Instant) -> Option<f64> {
                match self {
                    $(Self::$variant(m) => Some(Model::bits_until(&**m, t)),)*
                    _ => None,
                }
            }
            /// For a time-varying rate: the last time of its file.
            #[must_use]
            pub fn last(&self) -> Option<Duration> {
                match self {
                    $(Self::$variant(m) => Some(Model::last(&**m)),)*
                    _ => None,
                }
            }
            /// For a time-varying rate: its name, an equivalent file, and the behaviour after its end if that can
            /// be chosen.
            #[must_use]
            pub fn write(&self) -> Option<(&'static str, String, Option<End>)> {
                match self {
                    $(Self::$variant(m) => {
                        let (text, end) = Model::write(&**m);
                        Some(($name, text, end))
                    })*
                    _ => None,
                }
            }
            /// The transmitter at the start of the run.
            pub(crate) fn build(&self) -> Transmitter {
                match self {
                    Self::Unlimited => Transmitter::Unlimited,
                    Self::Constant(rate) => Transmitter::Constant(Serializer::new(*rate)),
                    $(Self::$variant(m) => Transmitter::$variant(Box::new(m.run())),)*
                    $(Self::$asked(t) => Transmitter::$asked(Box::new(t.run())),)*
                }
            }
        }

        impl Kind {
            /// Its name in files.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self { $(Self::$asked(_) => $kind,)* }
            }
            /// Refuses parameters that are outside their domain or contradict each other.
            ///
            /// # Errors
            /// The key, and a sentence that says what to write instead.
            pub fn validate(&self) -> Result<(), Invalid> {
                match self { $(Self::$asked(t) => t.validate(),)* }
            }
            /// A short description for reports, which choose the format of rates.
            #[must_use]
            pub fn words(&self, rate: &dyn Fn(Rate) -> String) -> String {
                match self { $(Self::$asked(t) => t.words(rate),)* }
            }
        }

        impl From<Kind> for Config {
            fn from(kind: Kind) -> Self {
                match kind { $(Kind::$asked(t) => Self::$asked(Arc::new(t)),)* }
            }
        }

        $(impl From<$table> for Config {
            fn from(t: $table) -> Self {
                Self::$asked(Arc::new(t))
            }
        })*

        impl Transmitter {
            /// Starts a packet at `start`, when the transmitter is free; returns when its last bit leaves.
            /// `waited`: the packet arrived before `start`.
            #[inline(always)]
            pub(crate) fn send(&mut self, start: Instant, size: u32, waited: bool) -> Instant {
                match self {
                    Self::Constant(s) => s.send(start, size),
                    Self::Unlimited => start,
                    _ => self.send_varying(start, size, waited),
                }
            }

            #[cold]
            #[inline(never)]
            fn send_varying(&mut self, start: Instant, size: u32, waited: bool) -> Instant {
                match self {
                    Self::Unlimited | Self::Constant(_) => start,
                    $(Self::$variant(run) => run.send(start, size, waited),)*
                    $(Self::$asked(run) => run.send(start, size, waited),)*
                }
            }

            /// The configuration it was built from.
            fn config(&self) -> Config {
                match self {
                    Self::Unlimited => Config::Unlimited,
                    Self::Constant(s) => Config::Constant(s.rate()),
                    $(Self::$variant(run) => Config::$variant(Arc::clone(run.model())),)*
                    $(Self::$asked(run) => Config::$asked(Arc::clone(run.model())),)*
                }
            }
        }
    };
}

rates! {
    "mahimahi" Opportunities(opportunities::Opportunities),
    "trace" Steps(steps::Steps),
    ;
    "dama" Dama(dama::Config),
}

impl From<Rate> for Config {
    fn from(rate: Rate) -> Self {
        Self::Constant(rate)
    }
}

impl From<Option<Rate>> for Config {
    /// Without a rate it is infinitely fast.
    fn from(rate: Option<Rate>) -> Self {
        rate.map_or(Self::Unlimited, Self::Constant)
    }
}

impl Transmitter {
    /// Changes to another rate, for packets that start from now on. A constant rate that replaces a constant one keeps the
    /// time at which the transmitter becomes free; the fraction of a nanosecond beyond it is dropped.
    pub(crate) fn change(&mut self, rate: &Config) {
        match (rate, self) {
            (Config::Constant(rate), Self::Constant(s)) => s.set_rate(*rate),
            (rate, t) => *t = rate.build(),
        }
    }

    /// The rate, or the mean of a time-varying one; `None` if infinitely fast.
    pub(crate) fn rate(&self) -> Option<Rate> {
        self.config().mean()
    }

    /// The mean rate in bit/s between two times, or the current one if it is not time-varying; `None` if infinitely
    /// fast, or if a time-varying rate has no time between the two.
    pub(crate) fn rate_over(&self, from: Instant, to: Instant) -> Option<f64> {
        let rate = self.config();
        match (rate.bits_until(from), rate.bits_until(to)) {
            (Some(before), Some(after)) => (to > from).then(|| (after - before) / (to - from).as_secs_f64()),
            _ => rate.mean().map(|rate| rate.bits_per_sec() as f64),
        }
    }
}

/// A transmitter that always has more to send, in units of [`opportunities::OPPORTUNITY_BYTES`].
#[derive(Clone, Debug)]
pub struct Saturated(Transmitter);

impl Saturated {
    /// A saturated transmitter with this rate.
    #[must_use]
    pub fn new(rate: &Config) -> Self {
        Self(rate.build())
    }

    /// When the unit that begins at `start`, or after the previous one, has left.
    pub fn next(&mut self, start: Instant) -> Instant {
        self.0.send(start, opportunities::OPPORTUNITY_BYTES, true)
    }
}

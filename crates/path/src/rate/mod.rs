//! Rates of transmitters that change by themselves.
//!
//! A link sends at a constant rate ([`skyhaul_base::units::Serializer`]) unless it is given a model of this module. Time
//! in a model is that of the run: it begins with the run, whenever the link is given the model.

mod model;
mod opportunities;
mod steps;

use alloc::boxed::Box;
use alloc::sync::Arc;
use skyhaul_base::units::Serializer;
use skyhaul_base::{Instant, Rate};

use model::Sending as _;

pub use model::Model;
pub use opportunities::{OPPORTUNITY_BYTES, Opportunities};
pub use steps::Steps;

pub use crate::trace::{End, TraceError};

/// Expands the list below into the enum of rates that change by themselves, that of rates in use, and the dispatch to
/// each.
macro_rules! rates {
    ($($variant:ident($model:ty)),* $(,)?) => {
        /// A rate that changes by itself.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "each rate documents itself")]
        pub enum Varying {
            $($variant(Arc<$model>),)*
        }

        /// A model at work.
        #[derive(Clone, Debug)]
        pub(crate) enum Run {
            $($variant(<$model as Model>::Run),)*
        }

        impl Varying {
            /// The mean rate over the period of a model that repeats, or up to its last change; at least 1 bit/s.
            #[must_use]
            pub fn mean(&self) -> Rate {
                match self { $(Self::$variant(m) => Model::mean(&**m),)* }
            }
            /// Bits that can leave until `t`, from the start of the run.
            #[must_use]
            pub fn bits_until(&self, t: Instant) -> f64 {
                match self { $(Self::$variant(m) => Model::bits_until(&**m, t),)* }
            }
            fn run(&self) -> Run {
                match self { $(Self::$variant(m) => Run::$variant(m.run()),)* }
            }
        }

        impl Run {
            #[cold]
            #[inline(never)]
            fn send(&mut self, start: Instant, size: u32, waited: bool) -> Instant {
                match self { $(Self::$variant(run) => run.send(start, size, waited),)* }
            }

            fn model(&self) -> Varying {
                match self { $(Self::$variant(run) => Varying::$variant(Arc::clone(run.model())),)* }
            }
        }
    };
}

rates! {
    Opportunities(Opportunities),
    Steps(Steps),
}

/// What sends the packets of a link one after the other.
#[derive(Clone, Debug)]
pub(crate) enum Transmitter {
    /// Infinitely fast.
    Unlimited,
    /// At a constant rate.
    Constant(Serializer),
    /// As a model says.
    Varying(Box<Run>),
}

impl Transmitter {
    pub(crate) fn new(rate: Option<Rate>, varying: Option<&Varying>) -> Self {
        match (varying, rate) {
            (Some(v), _) => Self::varying(v),
            (None, Some(rate)) => Self::Constant(Serializer::new(rate)),
            (None, None) => Self::Unlimited,
        }
    }

    pub(crate) fn varying(v: &Varying) -> Self {
        Self::Varying(Box::new(v.run()))
    }

    /// Starts a packet at `start`, when the transmitter is free; returns when its last bit leaves. `waited` says that the
    /// packet was there before `start`.
    #[inline(always)]
    pub(crate) fn send(&mut self, start: Instant, size: u32, waited: bool) -> Instant {
        match self {
            Self::Constant(s) => s.send(start, size),
            Self::Unlimited => start,
            Self::Varying(run) => run.send(start, size, waited),
        }
    }

    /// The rate, on average where it changes by itself; `None` if infinitely fast.
    pub(crate) fn rate(&self) -> Option<Rate> {
        match self {
            Self::Constant(s) => Some(s.rate()),
            Self::Unlimited => None,
            Self::Varying(run) => Some(run.model().mean()),
        }
    }

    /// The mean rate in bit/s between two times, or at present where it does not change by itself; `None` if infinitely
    /// fast, or if no time lies between the two and the rate changes by itself.
    pub(crate) fn rate_over(&self, from: Instant, to: Instant) -> Option<f64> {
        match self {
            Self::Varying(_) if to <= from => None,
            Self::Varying(run) => {
                let model = run.model();
                Some((model.bits_until(to) - model.bits_until(from)) / (to - from).as_secs_f64())
            }
            _ => self.rate().map(|rate| rate.bits_per_sec() as f64),
        }
    }
}

/// A transmitter that always has more to send, in units of [`OPPORTUNITY_BYTES`].
#[derive(Clone, Debug)]
pub struct Saturated(Transmitter);

impl Saturated {
    /// One of this rate; `varying` in its place if given.
    #[must_use]
    pub fn new(rate: Option<Rate>, varying: Option<&Varying>) -> Self {
        Self(Transmitter::new(rate, varying))
    }

    /// When the unit has left that begins at `start`, or at the end of the one before it.
    pub fn next(&mut self, start: Instant) -> Instant {
        self.0.send(start, OPPORTUNITY_BYTES, true)
    }
}

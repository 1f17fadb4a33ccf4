//! Rates of transmitters that change by themselves.
//!
//! A link sends at a constant rate ([`skyhaul_base::units::Serializer`]) unless it is given a model of this module. Time
//! in a model is that of the run: it begins with the run, whenever the link is given the model.

mod opportunities;
mod steps;

use alloc::boxed::Box;
use alloc::sync::Arc;
use skyhaul_base::units::Serializer;
use skyhaul_base::{Instant, Rate};

pub use opportunities::{OPPORTUNITY_BYTES, Opportunities};
pub use steps::Steps;

pub use crate::trace::{End, TraceError};

/// A rate that changes by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Varying {
    /// Instants at which a number of bytes may leave, as Mahimahi replays them.
    Opportunities(Arc<Opportunities>),
    /// A rate that holds until the next one.
    Steps(Arc<Steps>),
}

impl Varying {
    /// The mean rate over the period of a model that repeats, or up to its last change; at least 1 bit/s.
    #[must_use]
    pub fn mean(&self) -> Rate {
        match self {
            Self::Opportunities(o) => o.mean(),
            Self::Steps(s) => s.mean(),
        }
    }

    /// Bits that can leave until `t`, from the start of the run.
    #[must_use]
    pub fn bits_until(&self, t: Instant) -> f64 {
        match self {
            Self::Opportunities(o) => o.count_until(t) as f64 * 8.0 * f64::from(OPPORTUNITY_BYTES),
            Self::Steps(s) => s.bits_until(t),
        }
    }
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

/// A model at work.
#[derive(Clone, Debug)]
pub(crate) enum Run {
    /// Mahimahi's.
    Opportunities(opportunities::Run),
    /// Steps of a rate.
    Steps(steps::Run),
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
        Self::Varying(Box::new(match v {
            Varying::Opportunities(o) => Run::Opportunities(opportunities::Run::new(Arc::clone(o))),
            Varying::Steps(s) => Run::Steps(steps::Run::new(Arc::clone(s))),
        }))
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

impl Run {
    #[cold]
    #[inline(never)]
    fn send(&mut self, start: Instant, size: u32, waited: bool) -> Instant {
        match self {
            Self::Opportunities(run) => run.send(start, size, waited),
            Self::Steps(run) => run.send(start, size),
        }
    }

    fn model(&self) -> Varying {
        match self {
            Self::Opportunities(run) => Varying::Opportunities(Arc::clone(run.model())),
            Self::Steps(run) => Varying::Steps(Arc::clone(run.model())),
        }
    }
}

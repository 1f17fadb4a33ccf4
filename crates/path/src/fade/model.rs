//! What a fade provides; each has a file of its own.

use super::Invalid;
use super::carrier;
use alloc::string::String;
use core::fmt::Debug;
use skyhaul_base::{Instant, Rng};

/// The configuration of a fade, in plain values.
///
/// Its documentation is that of the schema of scenario files; the keys there are its fields.
pub trait Model: Clone + Debug + PartialEq {
    /// The fade in progress.
    type Run: Sky;

    /// Refuses parameters that are outside their domain or contradict each other.
    ///
    /// # Errors
    /// The key, and a sentence that says what to write instead.
    fn validate(&self) -> Result<(), Invalid>;
    /// The carrier that fades; `None` if packets are lost without one.
    fn carrier(&self) -> Option<&carrier::Config>;
    /// The same, to fill in what follows from the link.
    fn carrier_mut(&mut self) -> Option<&mut carrier::Config>;
    /// Both directions of a link see the same.
    fn shared(&self) -> bool;
    /// Share of time for which the attenuation is above `a` dB in the long run.
    fn exceeded(&self, a: f64) -> f64;
    /// Share of packets lost in the long run besides what the carrier loses.
    fn lost(&self) -> f64;
    /// What it is in a few words, for reports.
    fn words(&self) -> String;
    /// The fade at the start of the run, which draws from `rng`; parameters are those that [`Self::validate`] accepts.
    fn run(&self, rng: Rng) -> Self::Run;
}

/// What a path is like for some time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weather {
    /// Attenuation in dB, 0 or more.
    pub attenuation: f64,
    /// Loss of a packet of 188 bytes besides what the attenuation does.
    pub loss: f64,
}

/// A fade in progress: what the path is like, and until when.
pub trait Sky: Clone + Debug + Send + 'static {
    /// What the path is like.
    fn weather(&self) -> Weather;
    /// When it may be like something else; `Instant::MAX` if never.
    fn next(&self) -> Instant;
    /// Goes on to that time.
    fn step(&mut self);
}

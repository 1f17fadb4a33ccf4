//! Interface of a fade; each kind has its own file.

use super::Invalid;
use super::carrier;
use alloc::string::String;
use core::fmt::Debug;
use skyhaul_base::{Instant, Rng};

/// The configuration of a fade, in plain values.
///
/// Its doc comments become those of the schema of scenario files; its fields are the keys.
pub trait Model: Clone + Debug + PartialEq {
    /// The fade in progress.
    type Run: Sky;

    /// Refuses parameters that are outside their domain or contradict each other.
    ///
    /// # Errors
    /// The key, and a sentence that says what to write instead.
    fn validate(&self) -> Result<(), Invalid>;
    /// The carrier that fades; `None` for a fade that gives the loss of packets directly.
    fn carrier(&self) -> Option<&carrier::Config>;
    /// The fading carrier, for filling in what follows from the link.
    fn carrier_mut(&mut self) -> Option<&mut carrier::Config>;
    /// Whether both directions of a link fade together, if both fade.
    fn shared(&self) -> bool;
    /// Long-run fraction of time with an attenuation above `a` dB.
    fn exceeded(&self, a: f64) -> f64;
    /// Long-run fraction of packets that the fade loses directly, not by a weak carrier.
    fn loss(&self) -> f64;
    /// A short description for reports.
    fn words(&self) -> String;
    /// The fade at the start of the run, drawn from `rng`; the parameters must be valid ([`Self::validate`]).
    fn run(&self, rng: Rng) -> Self::Run;
}

/// The state of a path for some time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weather {
    /// Attenuation in dB, 0 or more.
    pub attenuation: f64,
    /// Loss of a packet of 188 bytes in addition to the effect of the attenuation.
    pub loss: f64,
}

/// A fade in progress: the state of the path, and until when it holds.
pub trait Sky: Clone + Debug + Send + 'static {
    /// The current state of the path.
    fn weather(&self) -> Weather;
    /// When it may change; `Instant::MAX` means never.
    fn next(&self) -> Instant;
    /// Advances to that time.
    fn step(&mut self);
}

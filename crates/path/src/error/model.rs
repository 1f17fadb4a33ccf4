//! Interface of an error model; each has its own file.

use crate::packet::PacketView;
use crate::param::Refusal;
use alloc::string::String;
use core::fmt::Debug;
use skyhaul_base::Rng;

/// The configuration of an error model, in plain values.
///
/// Its doc comments become those of the schema of scenario files; its fields are the keys.
pub trait Model: Clone + Debug + PartialEq {
    /// The running model.
    type Losses: Losses;
    /// Why a configuration is invalid.
    type Invalid: Refusal;
    /// The configuration in which it is stored: its own, or that of a more general model.
    type Canonical;

    /// Refuses parameters that are outside their domain or contradict each other.
    ///
    /// # Errors
    /// The key, and a sentence that says what to write instead.
    fn validate(&self) -> Result<(), Self::Invalid>;
    /// The running model before the first packet; the parameters must be valid ([`Self::validate`]).
    fn build(&self) -> Self::Losses;
    /// The canonical form, shared by all equivalent configurations; parameters as in [`Self::build`].
    fn canonical(self) -> Self::Canonical;
    /// Long-run fraction of packets of `size` bytes lost; 0 if it does not exist.
    fn mean_loss(&self, size: u32) -> f64;
    /// A short description for reports, which choose the format of each `number`.
    fn words(&self, number: &dyn Fn(f64) -> String) -> String;
}

/// A running error model.
pub trait Losses: Clone + Debug {
    /// Whether it loses nothing and draws nothing.
    fn is_lossless(&self) -> bool {
        false
    }
    /// Longest packet sent in one piece, bytes.
    fn longest_whole(&self) -> u32 {
        u32::MAX
    }
    /// Bytes that a packet of `size` bytes takes on the link: more than `size` if it is fragmented.
    fn on_wire(&self, size: u32) -> u32 {
        size
    }
    /// Whether the packet is lost; advances the model by one packet.
    fn loses(&mut self, p: &impl PacketView, rng: &mut Rng) -> bool;
}

//! What an error model provides; each has a file of its own.

use crate::packet::PacketView;
use crate::param::Refusal;
use alloc::string::String;
use core::fmt::Debug;
use skyhaul_base::Rng;

/// The configuration of an error model, in plain values.
///
/// Its documentation is that of the schema of scenario files; the keys there are its fields.
pub trait Model: Clone + Debug + PartialEq {
    /// The model at work.
    type Losses: Losses;
    /// Why a configuration makes no sense.
    type Invalid: Refusal;
    /// The configuration in which it is kept: its own, or that of another model of which it is a special case.
    type Canonical;

    /// Refuses parameters that are outside their domain or contradict each other.
    ///
    /// # Errors
    /// The key, and a sentence that says what to write instead.
    fn validate(&self) -> Result<(), Self::Invalid>;
    /// The model before the first packet; parameters are those that [`Self::validate`] accepts.
    fn build(&self) -> Self::Losses;
    /// The same losses in the one form that equal configurations have; parameters as in [`Self::build`].
    fn canonical(self) -> Self::Canonical;
    /// Share of packets of `size` bytes lost in the long run; 0 where there is no such share.
    fn mean_loss(&self, size: u32) -> f64;
    /// What it does in a few words, for reports, which say how they write a `number`.
    fn words(&self, number: &dyn Fn(f64) -> String) -> String;
}

/// An error model at work.
pub trait Losses: Clone + Debug {
    /// It loses nothing and draws nothing.
    fn is_lossless(&self) -> bool {
        false
    }
    /// The longest packet that goes in one piece, bytes.
    fn longest_whole(&self) -> u32 {
        u32::MAX
    }
    /// What a packet of `size` bytes takes on the link, bytes: more than that if it goes in pieces.
    fn on_wire(&self, size: u32) -> u32 {
        size
    }
    /// True if the packet is lost; moves the model on by one packet.
    fn loses(&mut self, p: &impl PacketView, rng: &mut Rng) -> bool;
}

//! What a kind of forward error correction provides; each has a file of its own.

use crate::error;
use crate::param::Refusal;
use alloc::string::String;
use core::fmt::Debug;
use skyhaul_base::Duration;

/// The configuration of a code, in plain values.
///
/// Its documentation is that of the schema of scenario files; the keys there are its fields.
pub trait Model: Clone + Debug + PartialEq {
    /// Why a configuration makes no sense.
    type Invalid: Refusal;

    /// Refuses parameters that are outside their domain or contradict each other.
    ///
    /// # Errors
    /// The key, and a sentence that says what to write instead.
    fn validate(&self) -> Result<(), Self::Invalid>;
    /// The same code in the one form that equal configurations have; parameters as in [`Self::code`].
    #[must_use]
    fn canonical(self) -> Self {
        self
    }
    /// What it does to packets; parameters are those that [`Self::validate`] accepts.
    fn code(&self) -> Code;
    /// What it does in a few words, for reports, which say how they write a `number`.
    fn words(&self, number: &dyn Fn(f64) -> String) -> String;
}

/// What a code does to packets.
#[derive(Clone, Debug, PartialEq)]
pub struct Code {
    /// The share of the bits sent that are bits of packets: the code rate of the modem, in (0, 1].
    pub bits: f64,
    /// What the decoder of the modem leaves, in the place of the link's own losses.
    pub residual: Option<error::Config>,
    /// Parity that follows packets.
    pub shape: Shape,
}

/// How packets and parity make blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Packets of a full block, at least 1.
    pub k: u32,
    /// Packets of parity that follow them.
    pub parity: u32,
    /// How many blocks are filled in turn, at least 1.
    pub depth: u32,
    /// A block is closed so long after the first packet was sent, however few it has.
    pub fill_time: Duration,
    /// What arrives behind a packet that may still be repaired waits for it.
    pub in_order: bool,
}

impl Shape {
    /// No parity: each packet is a block of its own.
    pub const NONE: Self = Self { k: 1, parity: 0, depth: 1, fill_time: Duration::ZERO, in_order: false };
}

impl Code {
    /// No code.
    pub const NONE: Self = Self { bits: 1.0, residual: None, shape: Shape::NONE };
}

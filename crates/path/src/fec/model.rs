//! Interface of forward error correction; each kind has its own file.

use crate::error;
use crate::param::Refusal;
use alloc::string::String;
use core::fmt::Debug;
use skyhaul_base::Duration;

/// The configuration of a code, in plain values.
///
/// Its doc comments become those of the schema of scenario files; its fields are the keys.
pub trait Model: Clone + Debug + PartialEq {
    /// Why a configuration is invalid.
    type Invalid: Refusal;

    /// Refuses parameters that are outside their domain or contradict each other.
    ///
    /// # Errors
    /// The key, and a sentence that says what to write instead.
    fn validate(&self) -> Result<(), Self::Invalid>;
    /// The canonical form, shared by all equivalent configurations; parameters as in [`Self::code`].
    #[must_use]
    fn canonical(self) -> Self {
        self
    }
    /// Its effect on packets; the parameters must be valid ([`Self::validate`]).
    fn code(&self) -> Code;
    /// A short description for reports, which choose the format of each `number`.
    fn words(&self, number: &dyn Fn(f64) -> String) -> String;
}

/// The effect of a code on packets.
#[derive(Clone, Debug, PartialEq)]
pub struct Code {
    /// The fraction of transmitted bits that belong to packets: the code rate of the modem, from 0.001 to 1.
    pub bits: f64,
    /// Losses after decoding in the modem, instead of the link's own losses.
    pub residual: Option<error::Config>,
    /// Parity that follows packets.
    pub shape: Shape,
}

/// The structure of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Packets of a full block, at least 1.
    pub k: u32,
    /// Packets of parity that follow them.
    pub parity: u32,
    /// Number of blocks filled in turn, at least 1.
    pub depth: u32,
    /// Time after its first packet at which a block that is not full is closed.
    pub fill_time: Duration,
    /// Packets behind one that may still be repaired wait for it.
    pub in_order: bool,
}

impl Shape {
    /// No parity: each packet is its own block.
    pub const NONE: Self = Self { k: 1, parity: 0, depth: 1, fill_time: Duration::ZERO, in_order: false };
}

impl Code {
    /// No code.
    pub const NONE: Self = Self { bits: 1.0, residual: None, shape: Shape::NONE };
}

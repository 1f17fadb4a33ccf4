//! Sends each packet several times in a row. A packet is lost if all its transmissions are.

use super::block::MOST;
use super::model::{Code, Model, Shape};
use crate::param::Refusal;
use alloc::format;
use alloc::string::String;
#[cfg(feature = "schema")]
use skyhaul_base::amount::Count;

/// Repetition: each packet is sent several times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Config {
    /// Number of times that each packet is sent, at least 1.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::count"))]
    #[cfg_attr(feature = "schema", schemars(with = "Count"))]
    pub times: u64,
}

/// Impossible repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// Nothing would be sent.
    #[error("a packet that is sent 0 times never arrives: write 1 or more")]
    Never,
    /// More than 16 bits can count.
    #[error("{0} times is too many: write at most 65535")]
    Often(u64),
}

impl Refusal for Invalid {
    fn key(&self) -> &'static str {
        "times"
    }
}

impl Model for Config {
    type Invalid = Invalid;

    fn validate(&self) -> Result<(), Invalid> {
        match self.times {
            0 => Err(Invalid::Never),
            1..=MOST => Ok(()),
            n => Err(Invalid::Often(n)),
        }
    }
    /// A packet is a block of one packet, and its repetitions are the parity.
    fn code(&self) -> Code {
        Code { shape: Shape { parity: self.times as u32 - 1, ..Shape::NONE }, ..Code::NONE }
    }
    fn words(&self, _: &dyn Fn(f64) -> String) -> String {
        format!("each packet {} times", self.times)
    }
}

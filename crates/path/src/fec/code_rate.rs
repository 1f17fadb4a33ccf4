//! A code in the modem, which protects bits: ETSI EN 302 307-1 has eleven rates from 1/4 to 9/10.
//!
//! At a code rate of r, a packet of s bytes takes the transmission time of s/r bytes. Fractions of bytes are carried
//! over to the next packet, so the rate is exact in the long run (*our choice*).

use super::model::{Code, Model, Shape};
use crate::error;
use crate::param::Refusal;
use alloc::format;
use alloc::string::String;
#[cfg(feature = "schema")]
use skyhaul_base::amount::Probability;

/// Lowest code rate (*our choice*): far below that of any modem, and a packet is still sent in finite time.
const LEAST: f64 = 1e-3;

/// A code in the modem.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Config {
    /// Code rate: the fraction of the transmitter's rate available to packets, from 0.001 to 1.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::probability"))]
    #[cfg_attr(feature = "schema", schemars(with = "Probability"))]
    pub rate: f64,
    /// Residual losses after decoding; by default those of the link's `error`.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub residual: Option<error::Config>,
}

/// An impossible code.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Invalid {
    /// The fraction left for packets is below 0.001 or above 1.
    #[error("{0} is not a code rate: write a number from 0.001 to 1, such as 0.75")]
    Rate(f64),
    /// The losses after decoding are invalid.
    #[error("{key}: {why}", key = .why.key())]
    Residual {
        /// The reason.
        why: error::Invalid,
    },
}

impl Refusal for Invalid {
    fn key(&self) -> &'static str {
        match self {
            Self::Rate(_) => "rate",
            Self::Residual { .. } => "residual",
        }
    }
}

impl Model for Config {
    type Invalid = Invalid;

    fn validate(&self) -> Result<(), Invalid> {
        if !(LEAST..=1.0).contains(&self.rate) {
            return Err(Invalid::Rate(self.rate));
        }
        self.residual
            .as_ref()
            .map_or(Ok(()), error::Config::validate)
            .map_err(|why| Invalid::Residual { why })
    }
    fn canonical(self) -> Self {
        let residual = self.residual.map(|e| e.clone().canonical().unwrap_or(e));
        Self { residual, ..self }
    }
    fn code(&self) -> Code {
        Code { bits: self.rate, residual: self.residual.clone(), shape: Shape::NONE }
    }
    fn words(&self, number: &dyn Fn(f64) -> String) -> String {
        let left = self
            .residual
            .as_ref()
            .map_or_else(String::new, |e| format!(", which leaves {}", e.words(number)));
        format!("code of rate {}{left}", number(self.rate))
    }
}

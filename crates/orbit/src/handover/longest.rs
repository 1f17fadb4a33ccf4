//! A satellite serves until it sets; the one that remains visible longest follows.

use super::model::{Candidate, Model, greatest};
use crate::invalid::Invalid;

/// A satellite serves until it sets; the one that remains visible longest follows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Config {}

impl Model for Config {
    fn validate(&self) -> Result<(), Invalid> {
        Ok(())
    }
    fn choose(
        &self,
        serving: Option<&Candidate>,
        candidates: &[Candidate],
        remaining: &mut dyn FnMut(u32) -> f64,
    ) -> Option<u32> {
        match serving {
            Some(serving) => Some(serving.satellite),
            None => greatest(candidates, |c| remaining(c.satellite)).map(|c| c.satellite),
        }
    }
}

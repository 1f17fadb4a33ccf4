//! Scenario files: from TOML text with units to a resolved, validated, hashable scenario.
#![forbid(unsafe_code)]

mod error;
pub mod quantity;
pub mod resolved;

pub use error::ScenarioError;
pub use resolved::Resolved;

//! Scenario files: from TOML text with units to a resolved, validated, hashable scenario.
#![forbid(unsafe_code)]

pub mod resolved;

pub use resolved::Resolved;

//! Scenario files: from TOML text with units to a resolved, validated, hashable scenario.
//!
//! ```text
//! text ── Document::parse ──▶ Document ── set ──▶ Document ── resolve ──▶ Resolved ── check ──▶ Check
//!         (extends, presets)            (--set)             (defaults,               (derived values,
//!                                                            validation)              warnings)
//! ```
//! The crate touches no file system: a closure of the caller reads the files that a scenario extends.
#![forbid(unsafe_code)]

mod agenda;
mod canonical;
mod chain;
pub mod check;
mod direction;
mod document;
mod error;
mod event;
mod explain;
pub mod memory;
pub mod model;
pub mod orbit;
pub mod preset;
mod quoted;
mod resolve;
pub mod resolved;
mod schema;
mod series;
mod trace;
mod transport;
pub mod workload;

pub use agenda::Gauges;
pub use skyhaul_base::amount;

pub use check::{Check, check};
pub use document::{Document, Load, no_files, resolve_text};
pub use error::{LoadError, ScenarioError, did_you_mean};
pub use memory::Memory;
pub use quoted::shortened;
pub use resolved::Resolved;
pub use schema::scenario_schema;

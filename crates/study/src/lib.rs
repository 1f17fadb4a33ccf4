//! Studies: base scenario × axes × seeds → cells → metrics → claims with verdicts → figures.
//!
//! ```text
//! TOML ──▶ StudyFile ──plan──▶ Plan ──run──▶ Cells ──▶ Results ──▶ claims, figures ──▶ report, files
//!                     (all resolved first)  (all cores,           (intervals over seeds,
//!                                            cache)                paired)
//! ```
//! [`runner::CellRunner`] abstracts how a cell runs; [`engine::Simulator`] simulates it.
#![forbid(unsafe_code)]

pub mod batch;
pub mod book;
pub mod cache;
pub mod claim;
pub mod engine;
pub mod error;
pub mod evaluation;
pub mod expr;
pub mod figure;
pub mod files;
pub mod fingerprint;
pub mod fit;
pub mod format;
pub mod key;
pub mod leaderboard;
pub mod metric;
pub mod model;
pub mod observed;
pub mod output;
pub mod overview;
pub mod plan;
pub mod planned;
pub mod profile;
pub mod report;
pub mod requirement;
pub mod results;
pub mod run;
pub mod runner;
pub mod schema;
pub mod sections;
mod space;
pub mod stats;
pub mod summary;
pub mod table;
pub mod tabulate;
pub mod tracker;

pub use error::{EntryError, RenderError, StudyError, io_words};

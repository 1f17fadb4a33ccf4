//! The work shared by the command and the Python package: cases of a scenario and their runs, results directories,
//! measurements as tables, JSON and text, captures, exports, studies, reproductions, comparisons.
//!
//! Nothing here reads arguments or writes to a terminal. Observers are arguments: [`run::RunObserver`] for runs, which may
//! also stop them, [`skyhaul_study::run::Progress`] for studies, and a function for warnings.
#![forbid(unsafe_code)]

pub mod attack;
pub mod capture;
pub mod cases;
pub mod clock;
pub mod compare;
mod control;
pub mod engine;
pub mod errant;
pub mod error;
pub mod evaluate;
pub mod export;
pub mod film;
pub mod leaderboard;
pub mod lease;
pub mod library;
pub mod measure;
pub mod parquet;
mod picture;
pub mod readings;
pub mod reproduce;
pub mod results;
pub mod run;
pub mod sky;
pub mod studies;
pub mod summary;
pub mod sweep;
pub mod text;
mod workers;

pub use error::LabError;

/// Version of the program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

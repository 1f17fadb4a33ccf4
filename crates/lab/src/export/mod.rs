//! `skyhaul export`: results in other formats.
//!
//! Tables come from the tables of a results directory, of runs and of studies ([`csv()`], [`parquet()`]). Formats of
//! measurement tools come from the recorded series of a run ([`flent()`], [`iperf3()`](iperf3::iperf3)). An event log
//! comes from running the recorded scenario again ([`qlog()`]), and the times when packets could leave from the
//! scenario ([`mahimahi()`]).

mod flent;
pub mod iperf3;
mod mahimahi;
mod qlog;
mod recorded;
mod tables;

pub use flent::flent;
pub use mahimahi::mahimahi;
pub use qlog::{qlog, qlog_with};
pub use tables::{csv, parquet};

use crate::error::{ExportError, LabError};
use crate::results::MANIFEST;
use serde_json::Value;
use skyhaul_study::files::read_text;
use std::path::Path;

/// The manifest of a results directory.
fn manifest(results: &Path) -> Result<Value, LabError> {
    let path = results.join(MANIFEST);
    if !path.is_file() {
        return Err(ExportError::NoManifest { results: results.to_owned() }.into());
    }
    json(&path)
}

fn json(path: &Path) -> Result<Value, LabError> {
    let text = read_text(path).map_err(LabError::read(path))?;
    Ok(serde_json::from_str(&text).map_err(|e| unreadable(path, &e))?)
}

fn unreadable(path: &Path, why: &dyn std::fmt::Display) -> ExportError {
    ExportError::Unreadable { path: path.to_owned(), why: why.to_string() }
}

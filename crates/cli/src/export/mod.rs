//! `skyhaul export`: results in other formats.
//!
//! Tables are written from the tables of a results directory, of runs and of studies ([`csv()`], [`parquet()`]). Formats of
//! measuring tools are written from what a run has recorded ([`flent`], [`iperf3`]); a log of events is written by
//! running the recorded scenario again ([`qlog`]); when packets could leave follows from the scenario ([`mahimahi`]).

mod flent;
pub(crate) mod iperf3;
mod mahimahi;
mod qlog;
mod recorded;
mod tables;

pub use flent::flent;
pub use iperf3::iperf3;
pub use mahimahi::mahimahi;
pub use qlog::qlog;
pub use tables::{csv, parquet};

use crate::results::MANIFEST;
use crate::stop::{Stop, io_words};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// What a results directory says of itself.
fn manifest(results: &Path) -> Result<Value, Stop> {
    let path = results.join(MANIFEST);
    if !path.is_file() {
        return Err(Stop::bad(format!(
            "{}: there is no manifest.json: name a results directory of `skyhaul run --out` or `study report`",
            results.display()
        )));
    }
    json(&path)
}

fn json(path: &Path) -> Result<Value, Stop> {
    let text = fs::read_to_string(path).map_err(|e| cannot_read(path, &io_words(&e)))?;
    serde_json::from_str(&text).map_err(|e| cannot_read(path, &e.to_string()))
}

fn cannot_read(path: &Path, why: &str) -> Stop {
    Stop::bad(format!("cannot read {}: {}", path.display(), why.lines().next().unwrap_or_default()))
}

/// Does something for each, until one fails.
fn in_order<T, U>(all: Vec<T>, mut each: impl FnMut(&T) -> Result<U, Stop>) -> Result<Vec<U>, Stop> {
    all.iter().map(&mut each).collect()
}

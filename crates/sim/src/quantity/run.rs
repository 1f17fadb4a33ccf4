//! Quantities of a whole run.

use super::{Quantity, Unit, amount, count, level};
use crate::result::RunResult;

/// Quantities of the whole run: `run.NAME` in studies, the top level of JSON.
pub const RUN: &[Quantity<RunResult>] = &[
    level("duration", Unit::Second, "simulated time", |r, _| r.duration.as_secs_f64()),
    count("events", "events processed by the engine, a measure of work", |r, _| r.events),
    count("flows", "number of flows; in JSON, the list of flows has this name", |r, _| r.flows.len() as u64),
    amount("goodput", Unit::BitPerSecond, "total goodput of all flows", |r, _| r.goodput()),
    amount(
        "unique_segments",
        Unit::Segments,
        "distinct data segments acknowledged, over all flows",
        |r, _| r.segments_acked(),
    ),
    level("jain", Unit::Share, "Jain's index of fairness over the goodput of all flows", |r, _| r.jain()),
];

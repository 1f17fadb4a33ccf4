//! Quantities of a group of flows as a whole.

use super::{Datum, FLOW, Quantity, Source, Unit, count, level, maybe, mean};
use crate::result::{FlowResult, jain};
use skyhaul_base::Duration;

/// Quantities of a group of flows besides the sums over its flows, for JSON and the output of `run`.
pub const GROUP: &[Quantity<[FlowResult]>] = &[
    count("flows", "number of flows", |all, _| all.len() as u64),
    level("goodput_min", Unit::BitPerSecond, "goodput of the slowest flow", |all, _| {
        all.iter().map(|f| f.goodput).fold(f64::INFINITY, f64::min)
    }),
    level("goodput_max", Unit::BitPerSecond, "goodput of the fastest flow", |all, _| {
        all.iter().map(|f| f.goodput).fold(0.0, f64::max)
    }),
    maybe("page_time_mean", "mean page time over the pages of all flows", |all, _| {
        mean(all.iter().flat_map(|f| &f.pages).map(|p| p.took.as_secs_f64()))
    }),
    maybe(
        "page_time_least",
        "lower bound of the mean time of all pages: unfinished pages count with the time that they had taken",
        |all, _| mean(all.iter().flat_map(FlowResult::page_times_so_far)),
    ),
    maybe("mean_srtt", "mean smoothed RTT, averaged over the flows", |all, _| {
        mean(all.iter().filter_map(|f| f.mean_srtt))
    }),
    level("jain", Unit::Share, "Jain's index of fairness over the goodput of the flows", |all, _| {
        jain(all.iter())
    }),
];

impl Quantity<FlowResult> {
    /// Whether the value of a group is the sum over its flows.
    #[must_use]
    pub const fn adds_up(&self) -> bool {
        matches!(self.of, Source::Count(_) | Source::Amount(_))
    }

    /// The sum over several flows, if it [adds up](Self::adds_up).
    fn sum(&self, flows: &[FlowResult], duration: Duration) -> Option<Datum> {
        match self.of {
            Source::Count(of) => Some(Datum::Count(flows.iter().map(|f| of(f, duration)).sum())),
            Source::Amount(of) => Some(Datum::Real(flows.iter().map(|f| of(f, duration)).sum())),
            Source::Level(_) | Source::Maybe(_) => None,
        }
    }
}

/// All quantities of a group of flows, by [column](Quantity::column): [`GROUP`], and the sums of [`FLOW`].
#[must_use]
pub fn group(flows: &[FlowResult], duration: Duration) -> Vec<(String, Datum)> {
    let own = GROUP.iter().map(|q| (q.column(), q.value(flows, duration)));
    let sums = FLOW.iter().filter_map(|q| Some((q.column(), q.sum(flows, duration)?)));
    own.chain(sums).collect()
}

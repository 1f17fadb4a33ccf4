//! Memory that a run will need: an estimate before it starts, so that a typing error is refused instead of ending in
//! an out-of-memory kill.

use crate::resolved::{FlowGroup, Resolved, Series};
use serde::Serialize;

/// Memory of a flow from its start, bytes: both ends of a connection, and its counters. Measured with a million
/// flows.
const FLOW: f64 = 6500.0;
/// Bytes of a row of a series besides its values: the time and the number of the flow or link.
const ROW: f64 = 12.0;
/// Columns grow by doubling, and the old and the new one exist at the same time.
const GROWTH: f64 = 2.0;
/// Default memory limit of a scenario, bytes.
pub(crate) const USUAL_LIMIT: u64 = 4_000_000_000;

/// Memory that a run will need, by purpose, bytes. Packets in flight are not counted: links bound them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Memory {
    /// Flows that exist from the start.
    pub flows: f64,
    /// Short transfers that arrive faster than the path can carry them and accumulate.
    pub arrivals: f64,
    /// Series over time.
    pub samples: f64,
}

impl Memory {
    /// The total.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.flows + self.arrivals + self.samples
    }

    /// The largest item, and how to reduce it.
    pub(crate) fn worst(&self) -> (&'static str, &'static str, &'static str) {
        if self.samples >= self.flows.max(self.arrivals) {
            ("record.sample", "samples", "a longer sampling interval, or fewer series")
        } else if self.arrivals >= self.flows {
            ("flows", "transfers that arrive faster than the path can carry them", "a lower arrival rate")
        } else {
            ("flows", "flows", "fewer of them")
        }
    }
}

/// The memory that a run of this scenario will need.
pub(crate) fn estimate(scenario: &Resolved) -> Memory {
    let count: f64 = scenario.flows.iter().map(|f| f64::from(f.count)).sum();
    let duration = scenario.duration.as_secs_f64();
    let arrivals: f64 = scenario.flows.iter().map(|f| piled_up(scenario, f, duration)).sum();
    Memory { flows: FLOW * count, arrivals: FLOW * arrivals, samples: samples(scenario, count, duration) }
}

/// The limit that a scenario must state if it needs more than the default.
pub(crate) fn needed_limit(scenario: &Resolved) -> Option<u64> {
    let bytes = estimate(scenario).total().ceil() as u64;
    (bytes > USUAL_LIMIT).then_some(bytes)
}

/// Transfers of a group that have arrived but not finished at the end of the run.
fn piled_up(scenario: &Resolved, group: &FlowGroup, duration: f64) -> f64 {
    let (Some(opened), Some(offered)) = (group.app.opens(), group.app.offered()) else { return 0.0 };
    let slowest = group.path.iter().filter_map(|&i| group.data_way(&scenario.links[i]).rate.mean());
    let capacity = slowest.map(|r| r.bits_per_sec() as f64).fold(f64::INFINITY, f64::min);
    let count = f64::from(group.count);
    opened * duration * count * (1.0 - capacity / (offered * count)).max(0.0)
}

fn samples(scenario: &Resolved, flows: f64, duration: f64) -> f64 {
    let Some(interval) = scenario.record.sample else { return 0.0 };
    let rows = duration / interval.as_secs_f64() + 1.0;
    let (of_links, of_flows): (Vec<Series>, Vec<Series>) =
        scenario.record.series.iter().partition(|s| of_link(**s));
    let row = |kinds: &[Series]| if kinds.is_empty() { 0.0 } else { ROW + 8.0 * kinds.len() as f64 };
    let links = 2.0 * scenario.links.len() as f64;
    GROWTH * rows * (flows * row(&of_flows) + links * row(&of_links))
}

/// Whether the series is sampled per direction of a link instead of per flow.
fn of_link(series: Series) -> bool {
    use Series::{Delay, Marked, Queue, Rate, Up, Utilization};
    matches!(series, Delay | Marked | Queue | Rate | Up | Utilization)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Document, no_files};

    const HEAD: &str = "duration = \"100 s\"\n[links.sat]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n";

    fn of(flows: &str) -> Result<Memory, String> {
        let text = format!("{HEAD}{flows}");
        let document = Document::parse("big.toml", &text, &no_files).expect("TOML");
        document.resolve().map(|r| estimate(&r)).map_err(|e| e.to_string())
    }

    #[test]
    fn flows_and_samples_are_counted() {
        let m = of("[flows.a]\npath = [\"sat\"]\ncount = 1000\n[record]\nsample = \"1 s\"\nseries = [\"cwnd\", \"queue\"]").unwrap();
        assert_eq!(m.flows, 6.5e6);
        // 101 rows of 1000 flows and 2 directions, each with a time, a number and a value.
        assert_eq!(m.samples, 2.0 * 101.0 * (1000.0 + 2.0) * 20.0);
        assert_eq!(m.arrivals, 0.0);
    }

    #[test]
    fn arrivals_pile_up_where_the_path_is_too_slow() {
        let app = |rate: &str| {
            format!(
                "[flows.a]\npath = [\"sat\"]\napp = {{ kind = \"arrivals\", rate = \"{rate}\", size = \"10 kB\" }}"
            )
        };
        // 80 kbit each: 12.5 a second fill the link.
        assert_eq!(of(&app("12 /s")).unwrap().arrivals, 0.0);
        let m = of(&app("25 /s")).unwrap();
        assert!((m.arrivals - 1250.0 * 6500.0).abs() < 1.0, "{m:?}");
    }

    #[test]
    fn more_than_the_limit_is_refused_with_the_key_that_takes_it_and_the_key_that_raises_it() {
        let sampled = "[flows.a]\npath = [\"sat\"]\n[record]\nsample = \"1 ns\"";
        let e = of(sampled).unwrap_err();
        assert!(e.starts_with("big.toml:8: record.sample: this run needs about "), "{e}");
        assert!(
            e.contains("more than 4 GB")
                && e.ends_with("a longer sampling interval, or fewer series, or write max-memory"),
            "{e}"
        );
        let many = "[flows.a]\npath = [\"sat\"]\ncount = 1000000";
        let e = of(many).unwrap_err();
        assert!(e.starts_with("big.toml:5: flows: this run needs about 6.5 GB of memory, more than 4 GB, most of it for flows"), "{e}");
        let text = format!("max-memory = \"7 GB\"\n{HEAD}{many}");
        assert!(Document::parse("big.toml", &text, &no_files).unwrap().resolve().is_ok());
    }
}

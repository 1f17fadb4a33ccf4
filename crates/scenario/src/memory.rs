//! Memory that a run needs: an estimate before it starts, so that a typing error is refused instead of ending in
//! an out-of-memory kill, and the sizes by which the simulator counts what it holds during the run.

use crate::resolved::{FlowGroup, Resolved, Series, Transport};
use serde::Serialize;
use skyhaul_path::Limit;

/// Memory of a flow, bytes: both ends of a connection, and its counters. Measured with a million flows.
pub const FLOW: u64 = 6500;
/// Memory of a packet that waits or is in flight, bytes: its place in a queue that grows by doubling, the header fields of
/// its segment, and its record at the sender.
pub const PACKET: u64 = 200;
/// Memory of the row of a page or transfer, bytes, in a list that grows by doubling.
pub const PAGE: u64 = 64;
/// Bytes of a row of a series besides its values: the time and the number of the flow or link.
const ROW: u64 = 12;
/// Factor for columns that grow by doubling: the old and the new one exist at the same time.
const GROWTH: u64 = 2;
/// Default memory limit of a scenario, bytes.
pub const USUAL_LIMIT: u64 = 4_000_000_000;

/// Memory of `rows` rows of a sampled series with `columns` columns of values, bytes.
#[must_use]
pub fn of_rows(rows: f64, columns: usize) -> f64 {
    if columns == 0 { 0.0 } else { GROWTH as f64 * rows * (ROW + 8 * columns as u64) as f64 }
}

/// This number of bytes in a unit that fits it, such as "6.5 GB".
#[must_use]
pub fn words(bytes: f64) -> String {
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let (size, unit) = units.into_iter().find(|(size, _)| bytes >= *size).unwrap_or((1.0, "B"));
    format!("{} {unit}", (bytes / size * 1e3).round() / 1e3)
}

/// Memory that a run will need, by purpose, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Memory {
    /// Flows that exist from the start.
    pub flows: f64,
    /// Short transfers: those that are open at a time, and the durations of all.
    pub arrivals: f64,
    /// Packets that wait in queues or are in flight. Where no link of a path has a rate there is no estimate, only the limit
    /// during the run.
    pub packets: f64,
    /// Series over time.
    pub samples: f64,
}

impl Memory {
    /// The total.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.flows + self.arrivals + self.packets + self.samples
    }

    /// The largest item: its key, its name, and how to reduce it.
    pub(crate) fn worst(&self) -> (&'static str, &'static str, &'static str) {
        let items = [
            (self.samples, ("record.sample", "samples", "a longer sampling interval, or fewer series")),
            (self.arrivals, ("flows", "transfers", "a lower arrival rate, or fewer connections at a time")),
            (
                self.packets,
                ("links", "packets in queues and in flight", "a shorter queue, or less data on the way"),
            ),
            (self.flows, ("flows", "flows", "fewer of them")),
        ];
        items
            .into_iter()
            .fold((0.0, ("flows", "flows", "fewer of them")), |a, b| if b.0 > a.0 { b } else { a })
            .1
    }
}

/// The memory that a run of this scenario will need.
pub(crate) fn estimate(scenario: &Resolved) -> Memory {
    let count: f64 = scenario.flows.iter().map(|f| f64::from(f.count)).sum();
    let duration = scenario.duration.as_secs_f64();
    Memory {
        flows: FLOW as f64 * count,
        arrivals: scenario.flows.iter().map(|f| transfers(scenario, f, duration)).sum(),
        packets: PACKET as f64 * scenario.flows.iter().map(|f| packets(scenario, f, duration)).sum::<f64>(),
        samples: samples(scenario, count, duration),
    }
}

/// Rate of a flow of the group in the long run with headers, bit/s, and its mean packet, bit; `None` without an offered
/// rate.
fn on_wire(group: &FlowGroup) -> Option<(f64, f64)> {
    let (offered, header, mss) =
        (group.app.offered()?, f64::from(group.endpoint.header), f64::from(group.endpoint.mss));
    let size = match group.app.opens() {
        // Each transfer ends with a short segment.
        Some(opens) => offered / opens / 8.0,
        None => mss,
    };
    let segments = (size / mss).ceil().max(1.0);
    let bytes = size + segments * header;
    Some((offered * bytes / size, 8.0 * bytes / segments))
}

/// The lowest mean rate of the links that a group's data crosses, bit/s; infinite if none has a rate.
fn capacity(scenario: &Resolved, group: &FlowGroup) -> f64 {
    let rates = group.path.iter().filter_map(|&i| group.data_direction(&scenario.links[i]).rate.mean());
    rates.map(|r| r.bits_per_sec() as f64).fold(f64::INFINITY, f64::min)
}

/// Memory for the transfers of a group, bytes. Those that have arrived faster than the path carries them are open at the end
/// of the run, at most as many as its sources open at a time.
fn transfers(scenario: &Resolved, group: &FlowGroup, duration: f64) -> f64 {
    let (Some(opened), Some((wire, _))) = (group.app.opens(), on_wire(group)) else { return 0.0 };
    let count = f64::from(group.count);
    let share = (1.0 - capacity(scenario, group) / (wire * count)).max(0.0);
    let most = group.app.connections().map_or(f64::INFINITY, |most| f64::from(most) * count);
    let all = opened * duration * count;
    (all * share).min(most) * FLOW as f64 + all * (1.0 - share) * PAGE as f64
}

/// Packets of a group that wait or are in flight at a time: what its windows admit, unless the path holds less.
fn packets(scenario: &Resolved, group: &FlowGroup, duration: f64) -> f64 {
    let capacity = capacity(scenario, group);
    if capacity.is_infinite() {
        return 0.0;
    }
    let (count, endpoint) = (f64::from(group.count), &group.endpoint);
    let tcp = group.transport == Transport::Tcp;
    let full = u64::from(endpoint.mss + endpoint.header);
    let size = 8.0 * if tcp { full } else { group.app.packet().unwrap_or(full) } as f64;
    // A queue without a limit grows by what comes faster than it is served, bit/s; slow start doubles what is served.
    let excess = match group.app.offered() {
        Some(offered) if !tcp => (offered * count - capacity).max(0.0),
        _ => capacity,
    };
    let on_links = group.path.iter().map(|&i| {
        let direction = group.data_direction(&scenario.links[i]);
        let waiting = match direction.queue.limit {
            _ if direction.rate.mean().is_none() => 0.0,
            Limit::Packets(n) => f64::from(n),
            Limit::Bytes(n) => 8.0 * n as f64 / size,
            Limit::Unlimited => f64::INFINITY,
        };
        waiting.min(excess * duration / size) + capacity * direction.delay.base().as_secs_f64() / size
    });
    let windows = if tcp {
        count * endpoint.receive_buffer.min(endpoint.send_buffer) as f64 / f64::from(endpoint.mss)
    } else {
        f64::INFINITY
    };
    on_links.sum::<f64>().min(windows)
}

fn samples(scenario: &Resolved, flows: f64, duration: f64) -> f64 {
    let Some(interval) = scenario.record.sample else { return 0.0 };
    let rows = duration / interval.as_secs_f64() + 1.0;
    let (of_links, of_flows): (Vec<Series>, Vec<Series>) =
        scenario.record.series.iter().partition(|s| of_link(**s));
    let links = 2.0 * scenario.links.len() as f64;
    of_rows(rows * flows, of_flows.len()) + of_rows(rows * links, of_links.len())
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
    fn bytes_have_a_unit_that_fits() {
        let cases =
            [(0.0, "0 B"), (999.0, "999 B"), (20e3, "20 kB"), (10_012_345.0, "10.012 MB"), (6.5e9, "6.5 GB")];
        for (bytes, text) in cases {
            assert_eq!(words(bytes), text);
        }
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
        // 83 kbit each with headers: 12 a second fill the link.
        assert_eq!(of(&app("11 /s")).unwrap().arrivals, 1100.0 * PAGE as f64);
        let m = of(&app("25 /s")).unwrap();
        // Seven segments with headers of 52 bytes.
        let share = 1.0 - 1e6 / (25.0 * 8.0 * (1e4 + 7.0 * 52.0));
        let expected = 2500.0 * (share * FLOW as f64 + (1.0 - share) * PAGE as f64);
        assert!((m.arrivals - expected).abs() < 1.0, "{m:?} {expected}");
        // A byte is mostly headers, and a source opens no more than its ports. Every transfer that completes has a row.
        let tiny = app("20000 /s").replace("10 kB", "1 B");
        let m = of(&tiny).unwrap();
        let complete = 100.0 * 1e6 / (8.0 * 53.0);
        let expected = 65_535.0 * FLOW as f64 + complete * PAGE as f64;
        assert!((m.arrivals - expected).abs() < 1.0, "{m:?} {expected}");
    }

    #[test]
    fn packets_are_those_that_queues_and_windows_admit() {
        let packets = |queue: &str, flow: &str| {
            let text = format!(
                "duration = \"100 s\"\n[links.sat]\nrate = \"12 Mbit/s\"\ndelay = \"250 ms\"\nqueue = {{ limit = {queue} }}\n\
                 [flows.a]\npath = [\"sat\"]\n{flow}"
            );
            let document = Document::parse("big.toml", &text, &no_files).expect("TOML");
            (estimate(&document.resolve().unwrap()).packets / PACKET as f64).round()
        };
        // 1000 packets of 1500 bytes a second: 250 in flight, as many as wait, as many as the windows of two flows.
        assert_eq!(packets("\"80 packets\"", "count = 2"), 330.0);
        assert_eq!(packets("\"80 packets\"", "count = 2\nrwnd = \"40 segments\""), 80.0);
        // Twice what the link carries, and no limit.
        let udp = "transport = \"udp\"\napp = { kind = \"cbr\", rate = \"24 Mbit/s\", packet = \"1500 B\" }";
        assert_eq!(packets("\"unlimited\"", udp), 100_250.0);
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

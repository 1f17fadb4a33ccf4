//! What a run measured, as tables, as JSON and as text.

use crate::table::{Column, Table};
use crate::text::{Grid, bit_rate, percent, seconds, short};
use serde_json::{Value, json};
use skyhaul_base::Instant;
use skyhaul_scenario::Resolved;
use skyhaul_sim::result::jain;
use skyhaul_sim::{Cuts, FlowResult, LinkResult, RunResult};
use skyhaul_study::runner::CellRunner;
use skyhaul_trace::{Class, LossCause};

/// A group of flows, summed up.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Its congestion control.
    pub cc: String,
    /// How many flows.
    pub flows: usize,
    /// Goodput of all together, in bit/s.
    pub goodput: f64,
    /// Goodput of the slowest and the fastest flow, in bit/s.
    pub range: (f64, f64),
    /// Distinct segments acknowledged per second, all flows together.
    pub segments_per_second: f64,
    /// Data segments sent, retransmissions included.
    pub sent: u64,
    /// Of these, retransmissions.
    pub retransmissions: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Recoveries without a timeout.
    pub recoveries: u64,
    /// Cuts of the window, by what they truly answered.
    pub cuts: Cuts,
    /// Of these, by expiry of the retransmission timer.
    pub timeout_cuts: Cuts,
    /// Of all cuts, those that the sender undid.
    pub cuts_undone: u64,
    /// Probes sent.
    pub probes_sent: u64,
    /// Probes answered.
    pub probes_answered: u64,
    /// Pages finished.
    pub pages: usize,
    /// Mean time of a page, in seconds.
    pub mean_page: Option<f64>,
    /// Mean over the flows of their mean smoothed RTT, in seconds.
    pub srtt: Option<f64>,
    /// Jain's index over the flows of the group.
    pub jain: f64,
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (n, sum) = values.fold((0u32, 0.0), |(n, s), x| (n + 1, s + x));
    (n > 0).then(|| sum / f64::from(n))
}

/// The groups of a run in the order of the scenario.
#[must_use]
pub fn groups(scenario: &Resolved, result: &RunResult) -> Vec<Group> {
    let of = |group: &skyhaul_scenario::resolved::FlowGroup| {
        let flows: Vec<&FlowResult> = result.group(&group.name).collect();
        let sum = |f: fn(&FlowResult) -> u64| flows.iter().map(|x| f(x)).sum();
        let cuts = |of: fn(&FlowResult) -> &Cuts| {
            let mut all = Cuts::default();
            flows.iter().for_each(|f| all.add(of(f)));
            all
        };
        let goodput = || flows.iter().map(|f| f.goodput);
        Group {
            name: group.name.clone(),
            cc: group.label().into(),
            flows: flows.len(),
            goodput: goodput().sum(),
            range: (goodput().fold(f64::INFINITY, f64::min), goodput().fold(0.0, f64::max)),
            segments_per_second: flows.iter().map(|f| f.segments_per_second(result.duration)).sum(),
            sent: sum(|f| f.segments_sent),
            retransmissions: sum(|f| f.retransmissions),
            timeouts: sum(|f| f.timeouts),
            recoveries: sum(|f| f.recoveries),
            cuts: cuts(|f| &f.cuts),
            timeout_cuts: cuts(|f| &f.timeout_cuts),
            cuts_undone: sum(|f| f.cuts_undone),
            probes_sent: sum(|f| f.probes_sent),
            probes_answered: sum(|f| f.probes_answered),
            pages: flows.iter().map(|f| f.pages.len()).sum(),
            mean_page: mean(flows.iter().flat_map(|f| &f.pages).map(|p| p.as_secs_f64())),
            srtt: mean(flows.iter().filter_map(|f| f.mean_srtt)),
            jain: jain(goodput()),
        }
    };
    scenario.flows.iter().map(of).collect()
}

/// The whole result as JSON: the content of `summary.json` and of `run --json`. Quantities carry their unit in
/// the name of the key.
#[must_use]
pub fn json(scenario: &Resolved, seed: u64, result: &RunResult) -> Value {
    let group = |g: Group| {
        json!({
            "group": g.name, "cc": g.cc, "flows": g.flows, "goodput_bit_s": g.goodput,
            "goodput_min_bit_s": g.range.0, "goodput_max_bit_s": g.range.1,
            "goodput_segments_s": g.segments_per_second, "segments_sent": g.sent,
            "retransmissions": g.retransmissions, "timeouts": g.timeouts, "recoveries": g.recoveries,
            "cuts": cuts_json(&g.cuts), "timeout_cuts": cuts_json(&g.timeout_cuts),
            "cuts_undone": g.cuts_undone,
            "probes_sent": g.probes_sent, "probes_answered": g.probes_answered, "pages": g.pages,
            "mean_page_s": g.mean_page, "mean_srtt_s": g.srtt, "jain": g.jain,
        })
    };
    json!({
        "version": crate::VERSION,
        "engine": crate::studies::simulator().engine(),
        "title": scenario.title,
        "scenario": scenario.hash(),
        "seed": seed,
        "duration_s": result.duration.as_secs_f64(),
        "events": result.events,
        "digest": result.digest.map(|d| format!("{d:016x}")),
        "goodput_bit_s": result.goodput(),
        "segments_acked": result.segments_acked(),
        "jain": result.jain(),
        "groups": groups(scenario, result).into_iter().map(group).collect::<Vec<_>>(),
        "flows": result.flows.iter().map(flow_json).collect::<Vec<_>>(),
        "links": result.links.iter().map(link_json).collect::<Vec<_>>(),
    })
}

fn cuts_json(c: &Cuts) -> Value {
    json!({ "error": c.error, "congestion": c.congestion, "outage": c.outage, "spurious": c.spurious })
}

fn flow_json(f: &FlowResult) -> Value {
    let time = |t: Option<Instant>| t.map(Instant::as_secs_f64);
    json!({
        "group": f.group, "index": f.index, "started_s": time(f.started), "finished_s": time(f.finished),
        "last_ack_s": time(f.last_ack), "bytes_acked": f.bytes_acked, "segments_acked": f.segments_acked,
        "goodput_bit_s": f.goodput, "segments_sent": f.segments_sent, "retransmissions": f.retransmissions,
        "timeouts": f.timeouts, "recoveries": f.recoveries, "cuts": cuts_json(&f.cuts),
        "timeout_cuts": cuts_json(&f.timeout_cuts), "cuts_undone": f.cuts_undone, "probes_sent": f.probes_sent,
        "probes_answered": f.probes_answered, "acks": f.acks, "duplicate_acks": f.duplicate_acks,
        "discarded": f.discarded, "rejected": f.rejected, "pages": f.pages.len(), "mean_page_s": f.mean_page(),
        "page_p50_s": f.page_quantile(0.5), "page_p95_s": f.page_quantile(0.95),
        "page_p99_s": f.page_quantile(0.99), "transfers": f.transfers,
        "lost": LossCause::ALL.iter().map(|c| (c.name().into(), json!(f.lost[*c as usize])))
            .collect::<serde_json::Map<_, _>>(),
        "datagrams": f.datagrams.map(|d| json!({
            "delivered": d.delivered, "delay_mean_s": d.delay_mean, "delay_p50_s": d.delay_p50,
            "delay_p95_s": d.delay_p95, "delay_p99_s": d.delay_p99, "delay_max_s": d.delay_max,
            "jitter_s": d.jitter,
        })),
        "mean_srtt_s": f.mean_srtt,
    })
}

/// Name of a direction of a link.
#[must_use]
pub const fn direction(forward: bool) -> &'static str {
    if forward { "forward" } else { "reverse" }
}

fn link_json(l: &LinkResult) -> Value {
    let class = |class: &Class| {
        let c = l.class(*class);
        let drops =
            LossCause::ALL.iter().map(|cause| (cause.name().into(), json!(c.dropped[*cause as usize])));
        let counts = json!({
            "offered": c.offered, "delivered": c.delivered,
            "dropped": drops.collect::<serde_json::Map<_, _>>(),
        });
        (class.name().to_owned(), counts)
    };
    json!({
        "link": l.name, "direction": direction(l.forward), "utilization": l.utilization,
        "mean_queue_packets": l.mean_queue, "max_queue_packets": l.max_queue,
        "offered_bytes": l.offered_bytes, "delivered_bytes": l.delivered_bytes,
        "packets": Class::ALL.iter().map(class).collect::<serde_json::Map<_, _>>(),
    })
}

/// The table `flows`: a row per flow.
#[must_use]
pub fn flow_table(result: &RunResult) -> Table {
    let flows = &result.flows;
    let count = |name: &str, f: fn(&FlowResult) -> u64| {
        (name.to_owned(), Column::Count(flows.iter().map(f).collect()))
    };
    let real = |name: &str, f: fn(&FlowResult) -> f64| {
        (name.to_owned(), Column::Real(flows.iter().map(f).collect()))
    };
    let maybe = |name: &str, f: fn(&FlowResult) -> Option<f64>| {
        (name.to_owned(), Column::Maybe(flows.iter().map(f).collect()))
    };
    Table::new(vec![
        ("group".into(), Column::text(flows.iter().map(|f| f.group.as_str()))),
        count("index", |f| f.index.into()),
        maybe("started_s", |f| f.started.map(Instant::as_secs_f64)),
        maybe("finished_s", |f| f.finished.map(Instant::as_secs_f64)),
        maybe("last_ack_s", |f| f.last_ack.map(Instant::as_secs_f64)),
        count("bytes_acked", |f| f.bytes_acked),
        real("segments_acked", |f| f.segments_acked),
        real("goodput_bit_s", |f| f.goodput),
        count("segments_sent", |f| f.segments_sent),
        count("retransmissions", |f| f.retransmissions),
        count("timeouts", |f| f.timeouts),
        count("recoveries", |f| f.recoveries),
        count("cuts_error", |f| f.cuts.error),
        count("cuts_congestion", |f| f.cuts.congestion),
        count("cuts_outage", |f| f.cuts.outage),
        count("cuts_spurious", |f| f.cuts.spurious),
        count("timeout_cuts_error", |f| f.timeout_cuts.error),
        count("timeout_cuts_congestion", |f| f.timeout_cuts.congestion),
        count("timeout_cuts_outage", |f| f.timeout_cuts.outage),
        count("timeout_cuts_spurious", |f| f.timeout_cuts.spurious),
        count("cuts_undone", |f| f.cuts_undone),
        count("probes_sent", |f| f.probes_sent),
        count("probes_answered", |f| f.probes_answered),
        count("acks", |f| f.acks),
        count("duplicate_acks", |f| f.duplicate_acks),
        count("discarded", |f| f.discarded),
        count("rejected", |f| f.rejected),
        count("pages", |f| f.pages.len() as u64),
        maybe("mean_page_s", FlowResult::mean_page),
        maybe("page_p50_s", |f| f.page_quantile(0.5)),
        maybe("page_p95_s", |f| f.page_quantile(0.95)),
        maybe("page_p99_s", |f| f.page_quantile(0.99)),
        count("transfers", |f| f.transfers),
        count("lost_error", |f| f.lost[LossCause::Error as usize]),
        count("lost_full", |f| f.lost[LossCause::Full as usize]),
        count("lost_pushed_out", |f| f.lost[LossCause::PushedOut as usize]),
        count("lost_link_down", |f| f.lost[LossCause::LinkDown as usize]),
        maybe("delivered_packets", |f| f.datagrams.map(|d| d.delivered as f64)),
        maybe("delay_mean_s", |f| f.datagrams.and_then(|d| d.delay_mean)),
        maybe("delay_p50_s", |f| f.datagrams.and_then(|d| d.delay_p50)),
        maybe("delay_p95_s", |f| f.datagrams.and_then(|d| d.delay_p95)),
        maybe("delay_p99_s", |f| f.datagrams.and_then(|d| d.delay_p99)),
        maybe("delay_max_s", |f| f.datagrams.and_then(|d| d.delay_max)),
        maybe("jitter_s", |f| f.datagrams.and_then(|d| d.jitter)),
        maybe("mean_srtt_s", |f| f.mean_srtt),
    ])
}

/// The table `links`: a row per direction of a link.
#[must_use]
pub fn link_table(result: &RunResult) -> Table {
    let links = &result.links;
    let count = |f: &dyn Fn(&LinkResult) -> u64| Column::Count(links.iter().map(f).collect());
    let real = |f: fn(&LinkResult) -> f64| Column::Real(links.iter().map(f).collect());
    let mut columns = vec![
        ("link".into(), Column::text(links.iter().map(|l| l.name.as_str()))),
        ("direction".into(), Column::text(links.iter().map(|l| direction(l.forward)))),
        ("utilization".into(), real(|l| l.utilization)),
        ("mean_queue_packets".into(), real(|l| l.mean_queue)),
        ("max_queue_packets".into(), count(&|l| l.max_queue.into())),
        ("offered_bytes".into(), count(&|l| l.offered_bytes)),
        ("delivered_bytes".into(), count(&|l| l.delivered_bytes)),
    ];
    for class in Class::ALL {
        let name = class.name();
        columns.push((format!("{name}_offered"), count(&|l| l.class(class).offered)));
        columns.push((format!("{name}_delivered"), count(&|l| l.class(class).delivered)));
        for cause in LossCause::ALL {
            let column = count(&|l| l.class(class).dropped[cause as usize]);
            columns.push((format!("{name}_dropped_{}", cause.name().replace('-', "_")), column));
        }
    }
    Table::new(columns)
}

/// The table `series`: a row per time, object and series. Objects are called as in the scenario:
/// `flows.bulk[3]`, `links.sat.forward`; the variables of a congestion control are series `telemetry.NAME`. A
/// flow has no values before it starts.
#[must_use]
pub fn series_table(result: &RunResult) -> Table {
    let objects = result.flows.iter().map(|f| format!("flows.{}[{}]", f.group, f.index));
    let links = result.links.iter().map(|l| format!("links.{}.{}", l.name, direction(l.forward)));
    let objects: Vec<String> = objects.chain(links).collect();
    let (mut time, mut object, mut value) = (Vec::new(), Vec::new(), Vec::new());
    let (mut names, mut series): (Vec<String>, Vec<u32>) = (Vec::new(), Vec::new());
    let s = &result.series;
    for (columns, first) in [(&s.flows, 0), (&s.links, result.flows.len() as u32)] {
        for (name, column) in columns.names.iter().zip(&columns.columns) {
            names.push((*name).into());
            time.extend(columns.time.iter().map(|t| t.as_secs_f64()));
            object.extend(columns.entity.iter().map(|e| e + first));
            series.extend(column.iter().map(|_| names.len() as u32 - 1));
            value.extend_from_slice(column);
        }
    }
    let telemetry = &s.telemetry;
    for (row, name) in telemetry.name.iter().enumerate() {
        let name = format!("telemetry.{name}");
        let index = names.iter().position(|n| *n == name).unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        });
        time.push(telemetry.time[row].as_secs_f64());
        object.push(telemetry.flow[row]);
        series.push(index as u32);
        value.push(telemetry.value[row]);
    }
    Table::new(vec![
        ("time_s".into(), Column::Real(time)),
        ("object".into(), Column::Text { values: objects, rows: object }),
        ("series".into(), Column::Text { values: names, rows: series }),
        ("value".into(), Column::Maybe(value.into_iter().map(|x| (!x.is_nan()).then_some(x)).collect())),
    ])
}

/// What the cuts of the window truly answered; in brackets those by timeout.
fn cut_lines(groups: &[Group]) -> String {
    let mut cuts = Grid::new(&["window cuts after", "link error", "congestion", "outage", "no loss"]);
    for g in groups {
        let cell = |of: fn(&Cuts) -> u64| match (of(&g.cuts), of(&g.timeout_cuts)) {
            (all, 0) => all.to_string(),
            (all, timeouts) => format!("{all} ({timeouts} by timeout)"),
        };
        cuts.row(vec![
            g.name.clone(),
            cell(|c| c.error),
            cell(|c| c.congestion),
            cell(|c| c.outage),
            cell(|c| c.spurious),
        ]);
    }
    cuts.lines(0)
}

/// What `run` prints: tables of flow groups, of the causes of window cuts, of pages, and of links.
#[must_use]
pub fn report(scenario: &Resolved, seed: u64, result: &RunResult) -> String {
    let title = if scenario.title.is_empty() { String::new() } else { format!("{} · ", scenario.title) };
    let duration = seconds(result.duration.as_secs_f64());
    let mut out = format!("{title}{duration} · seed {seed} · {} events\n\n", result.events);
    let mut flows = Grid::new(&[
        "flows",
        "n",
        "cc",
        "goodput",
        "segments/s",
        "per flow",
        "sent",
        "retrans.",
        "timeouts",
        "probes",
        "answered",
        "RTT",
        "Jain",
    ])
    .left(2);
    let groups = groups(scenario, result);
    for g in &groups {
        let (low, high) = (bit_rate(g.range.0), bit_rate(g.range.1));
        flows.row(vec![
            g.name.clone(),
            g.flows.to_string(),
            g.cc.clone(),
            bit_rate(g.goodput),
            short(g.segments_per_second),
            if low == high { low } else { format!("{low} … {high}") },
            g.sent.to_string(),
            g.retransmissions.to_string(),
            g.timeouts.to_string(),
            g.probes_sent.to_string(),
            g.probes_answered.to_string(),
            g.srtt.map_or_else(|| "–".into(), seconds),
            format!("{:.3}", g.jain),
        ]);
    }
    out.push_str(&flows.lines(0));
    if groups.iter().any(|g| g.cuts.total() > 0) {
        out.push('\n');
        out.push_str(&cut_lines(&groups));
    }
    if groups.iter().any(|g| g.pages > 0) {
        let mut pages = Grid::new(&["pages", "done", "mean time"]);
        for g in groups.iter().filter(|g| g.pages > 0) {
            pages.row(vec![
                g.name.clone(),
                g.pages.to_string(),
                g.mean_page.map_or_else(|| "–".into(), seconds),
            ]);
        }
        out.push('\n');
        out.push_str(&pages.lines(0));
    }
    let mut links = Grid::new(&[
        "links",
        "direction",
        "packets",
        "delivered",
        "lost: error",
        "full",
        "pushed out",
        "link down",
        "busy",
        "queue mean",
        "max",
    ])
    .left(1);
    for l in &result.links {
        let (offered, delivered) =
            l.classes.iter().fold((0, 0), |(o, d), c| (o + c.offered, d + c.delivered));
        links.row(vec![
            l.name.clone(),
            direction(l.forward).into(),
            offered.to_string(),
            delivered.to_string(),
            l.dropped(LossCause::Error).to_string(),
            l.dropped(LossCause::Full).to_string(),
            l.dropped(LossCause::PushedOut).to_string(),
            l.dropped(LossCause::LinkDown).to_string(),
            percent(l.utilization),
            short(l.mean_queue),
            l.max_queue.to_string(),
        ]);
    }
    if !result.links.is_empty() {
        out.push('\n');
        out.push_str(&links.lines(0));
    }
    out
}

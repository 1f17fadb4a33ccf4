//! Comparison of several worlds: a table, or JSON.

use super::figures;
use super::measure::{Datagrams, Group, Rate, RunMeasures};
use super::runs::{Entry, Ran};
use crate::args::CompareArgs;
use crate::output::print;
use crate::stop::Stop;
use serde_json::{Value, json};
use skyhaul_sim::{Share, Viewed};
use skyhaul_study::format;
use skyhaul_study::stats::{self, Estimate};
use std::fmt::Write as _;

/// A row of the table: the runs of one entry, and the results of one flow group in each run.
struct EntryRuns<'a> {
    entry: &'a Entry,
    /// Number of the entry, from 0.
    number: usize,
    runs: Vec<&'a RunMeasures>,
    groups: Vec<&'a Group>,
}

/// A column: its header and its value.
type Column<'a> = (&'static str, Box<dyn Fn(&EntryRuns<'_>) -> String + 'a>);

impl EntryRuns<'_> {
    fn mean(&self, f: impl Fn(&Group) -> f64) -> f64 {
        mean(self.groups.iter().map(|g| f(g)))
    }
    fn datagrams(&self, f: impl Fn(&Datagrams) -> f64) -> f64 {
        mean(self.groups.iter().filter_map(|g| g.datagrams.as_ref()).map(f))
    }
    fn rates(&self, f: impl Fn(&Rate) -> Option<f64>) -> f64 {
        mean(self.groups.iter().flat_map(|g| &g.rates).filter_map(f))
    }
    /// The mean over films and runs; NaN if one of them has no value, as after a failure of the transport.
    fn films(&self, f: impl Fn(&Viewed) -> Option<f64>) -> f64 {
        let all: Vec<f64> =
            self.groups.iter().flat_map(|g| &g.films).map(|v| f(v).unwrap_or(f64::NAN)).collect();
        if all.iter().all(|x| x.is_finite()) { mean(all.into_iter()) } else { f64::NAN }
    }
    fn goodputs(&self) -> Vec<f64> {
        self.groups.iter().map(|g| g.goodput).collect()
    }
}

/// The mean of the finite values; NaN without any.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let all: Vec<f64> = values.filter(|x| x.is_finite()).collect();
    all.iter().sum::<f64>() / all.len() as f64
}
/// A number as text; empty if it is not finite.
fn number(x: f64) -> String {
    if x.is_finite() { format::number(x) } else { String::new() }
}
/// `part / whole` as text; empty if the whole is zero.
fn part_of(part: f64, whole: f64) -> String {
    if whole > 0.0 { format!("{} / {}", format::number(part), format::number(whole)) } else { String::new() }
}
fn mbit(e: &Estimate) -> String {
    let scaled = Estimate { mean: e.mean / 1e6, half: e.half / 1e6, ..*e };
    format::estimate(&scaled)
}
/// The relative excess of `values` over `first`, in per cent, paired by seed.
fn difference(values: &[f64], first: &[f64]) -> Estimate {
    let ratio = stats::paired_ratio(values, first);
    Estimate { mean: (ratio.mean - 1.0) * 100.0, half: ratio.half * 100.0, n: ratio.n }
}

/// Prints the results, and writes the page if requested.
pub(super) fn show(args: &CompareArgs, ran: &Ran) -> Result<(), Stop> {
    let table = table(&rows(ran));
    let doubts: Vec<String> = (0..).zip(&ran.entries).filter_map(|(e, entry)| doubt(ran, e, entry)).collect();
    if let Some(folder) = &args.out {
        figures::write(args, folder, ran, &table, &doubts)?;
    }
    let mut out = String::new();
    if args.json {
        let worlds: Vec<Value> = (0..ran.entries.len()).map(|e| world(ran, e)).collect();
        let _ = writeln!(out, "{:#}", json!({ "scenario": args.a, "seeds": ran.seeds, "worlds": worlds }));
    } else {
        columns(&mut out, &table);
        let n = ran.seeds.len();
        let _ = writeln!(
            out,
            "\n{n} seed{}; intervals of 95 % over seeds, differences seed by seed.",
            if n == 1 { "" } else { "s" }
        );
        if ran.entries.iter().any(Entry::has_kernel_sender) {
            let _ = writeln!(out, "{KERNEL_WINDOWS}");
        }
        for d in &doubts {
            let _ = writeln!(out, "{d}");
        }
        if let Some(folder) = &args.out {
            let _ = writeln!(out, "Page: {}", folder.join("worlds.html").display());
        }
    }
    print(&out)
}

/// A note on kernel senders for the reader of the table.
const KERNEL_WINDOWS: &str = "Kernel senders use their own windows, buffers and timers; those of the scenario's endpoint do \
                              not hold for them.";

/// Why runs of an entry are not trusted, in one line.
fn doubt(ran: &Ran, number: usize, entry: &Entry) -> Option<String> {
    let doubtful: Vec<&RunMeasures> = ran.of(number).filter(|d| !d.doubts.is_empty()).collect();
    let first = doubtful.first()?;
    let (n, all) = (doubtful.len(), ran.of(number).count());
    Some(format!("{}: not trusted in {n} of {all} runs: {}", entry.label, first.doubts.join("; ")))
}

/// The rows of the table: one for each flow group in each world.
fn rows(ran: &Ran) -> Vec<EntryRuns<'_>> {
    let mut rows = Vec::new();
    for (number, entry) in ran.entries.iter().enumerate() {
        let runs: Vec<&RunMeasures> = ran.of(number).collect();
        let groups = runs.first().map_or(0, |d| d.groups.len());
        for group in 0..groups {
            let groups = runs.iter().filter_map(|d| d.groups.get(group)).collect();
            rows.push(EntryRuns { entry, number, runs: runs.clone(), groups });
        }
    }
    rows
}

/// The table with its headers. Columns that apply to no group, such as those of datagrams, are left out.
fn table(rows: &[EntryRuns<'_>]) -> Vec<Vec<String>> {
    let name = |p: &EntryRuns<'_>| p.groups.first().map_or("", |g| g.name.as_str()).to_owned();
    let first = |p: &EntryRuns<'_>| {
        let same = rows.iter().find(|f| f.number == 0 && name(f) == name(p));
        same.map_or_else(Vec::new, EntryRuns::goodputs)
    };
    let several = rows.iter().any(|p| name(p) != name(&rows[0]));
    let pages = rows.iter().any(|p| p.groups.iter().any(|g| !g.pages.is_empty() || g.transfers > 0));
    let datagrams = rows.iter().any(|p| p.groups.iter().any(|g| g.datagrams.is_some()));
    let mut columns: Vec<Column<'_>> = vec![("world", Box::new(|p| p.entry.label.clone()))];
    if several {
        columns.push(("flows", Box::new(name)));
    }
    columns.push(("goodput, Mbit/s", Box::new(|p| mbit(&stats::estimate(&p.goodputs())))));
    columns.push((
        "against the first, %",
        Box::new(|p| {
            let (own, first) = (p.goodputs(), first(p));
            let comparable = p.number > 0 && own.len() == first.len() && first.iter().any(|g| *g > 0.0);
            if comparable { format::estimate(&difference(&own, &first)) } else { String::new() }
        }),
    ));
    columns.push(("retransmissions", Box::new(|p| number(p.mean(|g| g.retransmissions as f64)))));
    columns.push((
        "timeouts",
        Box::new(|p| {
            let known = p.groups.iter().all(|g| g.timeouts.is_some());
            if known { number(p.mean(|g| g.timeouts.unwrap_or(0) as f64)) } else { "?".into() }
        }),
    ));
    if rows.iter().any(|p| p.groups.iter().any(|g| g.probes.0 > 0)) {
        columns.push((
            "probes answered / sent",
            Box::new(|p| part_of(p.mean(|g| g.probes.1 as f64), p.mean(|g| g.probes.0 as f64))),
        ));
    }
    if pages {
        let count = |p: &EntryRuns<'_>| match p.mean(|g| g.pages.len() as f64) {
            n if n > 0.0 || p.mean(|g| g.transfers as f64) > 0.0 => number(n),
            _ => String::new(),
        };
        columns.push(("pages", Box::new(count)));
        columns.push(("time of a page, s", Box::new(|p| number(p.mean(Group::page)))));
    }
    if datagrams {
        columns.push((
            "datagrams delivered / sent",
            Box::new(|p| part_of(p.datagrams(|d| d.delivered as f64), p.datagrams(|d| d.sent as f64))),
        ));
        columns.push(("one-way delay, ms", Box::new(|p| number(p.datagrams(|d| d.delay() * 1e3)))));
        columns.push(("jitter, ms", Box::new(|p| number(p.datagrams(|d| d.jitter() * 1e3)))));
    }
    if rows.iter().any(|p| p.groups.iter().any(|g| !g.rates.is_empty())) {
        columns.push(("loss event rate", Box::new(|p| number(p.rates(|r| r.loss)))));
        columns.push(("reports", Box::new(|p| number(p.rates(|r| Some(r.reports as f64))))));
    }
    if rows.iter().any(|p| p.groups.iter().any(|g| !g.films.is_empty())) {
        let percent = |share: Option<Share>| share.and_then(Share::value).map(|s| 100.0 * s);
        columns.push(("packets delayed, %", Box::new(move |p| number(p.films(|v| percent(v.delayed))))));
        columns
            .push(("frames in time, %", Box::new(move |p| number(p.films(|v| percent(Some(complete(v))))))));
        columns.push(("decodable, %", Box::new(move |p| number(p.films(|v| percent(Some(v.decodable)))))));
        columns.push(("start-up, s", Box::new(|p| number(p.films(|v| v.played.startup)))));
        columns.push(("stalls", Box::new(|p| number(p.films(|v| Some(v.played.stalls as f64))))));
        columns.push(("stands still, s", Box::new(|p| number(p.films(|v| Some(v.played.stalled))))));
    }
    columns.push((
        "emulation",
        Box::new(|p| match (&p.entry.world, p.runs.iter().all(|d| d.doubts.is_empty())) {
            (None, _) => String::new(),
            (_, true) => "trusted".into(),
            (_, false) => "not trusted".into(),
        }),
    ));
    let header = columns.iter().map(|(head, _)| (*head).to_owned()).collect();
    let cells = rows.iter().map(|p| columns.iter().map(|(_, cell)| cell(p)).collect());
    std::iter::once(header).chain(cells).collect()
}

/// Frames of all types that were complete in time.
fn complete(film: &Viewed) -> Share {
    let sum = |f: fn(&Share) -> u64| -> u64 { film.complete.iter().map(f).sum() };
    Share { part: sum(|s| s.part), of: sum(|s| s.of) }
}

/// A world in JSON: results of all flows together, and of each group. Lists have an element per seed.
fn world(ran: &Ran, entry: usize) -> Value {
    let runs: Vec<&RunMeasures> = ran.of(entry).collect();
    let goodput: Vec<f64> = runs.iter().map(|d| d.goodput).collect();
    let first: Vec<f64> = ran.of(0).map(|d| d.goodput).collect();
    let difference = difference(&goodput, &first);
    let timeouts = runs.iter().map(|d| d.timeouts).collect::<Option<Vec<_>>>();
    let groups = runs.first().map_or(0, |d| d.groups.len());
    let group = |number: usize| group(runs.iter().filter_map(|d| d.groups.get(number)).collect());
    json!({
        "world": ran.entries[entry].label,
        "goodput_bit_s": goodput,
        "difference_percent": if entry == 0 { Value::Null } else { json!({ "mean": difference.mean, "half": difference.half }) },
        "retransmissions": runs.iter().map(|d| d.retransmissions).collect::<Vec<_>>(),
        "timeouts": timeouts,
        "probes_sent": runs.iter().map(|d| d.probes.0).collect::<Vec<_>>(),
        "probes_answered": runs.iter().map(|d| d.probes.1).collect::<Vec<_>>(),
        "groups": (0..groups).map(group).collect::<Vec<_>>(),
        "doubts": runs.iter().map(|d| &d.doubts).collect::<Vec<_>>(),
    })
}

/// A flow group in JSON; lists have an element per seed.
fn group(runs: Vec<&Group>) -> Value {
    let each = |f: &dyn Fn(&Group) -> Value| runs.iter().map(|g| f(g)).collect::<Vec<_>>();
    let datagrams = |f: &dyn Fn(&Datagrams) -> Value| each(&|g| g.datagrams.as_ref().map_or(Value::Null, f));
    let mut value = json!({
        "group": runs.first().map(|g| &g.name),
        "goodput_bit_s": each(&|g| json!(g.goodput)),
        "retransmissions": each(&|g| json!(g.retransmissions)),
        "timeouts": each(&|g| json!(g.timeouts)),
        "pages": each(&|g| json!(g.pages.len())),
        "page_time_mean_s": each(&|g| json!(g.page())),
        "transfers": each(&|g| json!(g.transfers)),
    });
    if runs.iter().any(|g| g.datagrams.is_some()) {
        value["datagrams_sent"] = datagrams(&|d| json!(d.sent)).into();
        value["datagrams_delivered"] = datagrams(&|d| json!(d.delivered)).into();
        value["datagrams_missing"] = datagrams(&|d| json!(d.missing)).into();
        value["delay_mean_s"] = datagrams(&|d| json!(d.delay())).into();
        value["jitter_s"] = datagrams(&|d| json!(d.jitter())).into();
    }
    if runs.iter().any(|g| !g.rates.is_empty()) {
        let rates = |f: &dyn Fn(&Rate) -> Value| each(&|g| g.rates.iter().map(f).collect());
        value["loss_event_rate"] = rates(&|r| json!(r.loss)).into();
        value["reports"] = rates(&|r| json!(r.reports)).into();
    }
    if runs.iter().any(|g| !g.films.is_empty()) {
        value["films"] = each(&|g| g.films.iter().map(film).collect()).into();
    }
    value
}

/// The results of a video viewer, with the names of the simulator's quantities; names of times end with their unit. `died`: whether
/// the transport gave up, not when.
fn film(v: &Viewed) -> Value {
    let share = |s: Option<Share>| s.and_then(Share::value);
    json!({
        "frames": v.frames.iter().sum::<u64>(),
        "frames_packets": v.packets,
        "frames_complete": share(Some(complete(v))),
        "decodable": share(Some(v.decodable)),
        "delayed": share(v.delayed),
        "delayed_arrival": share(v.delayed_arrival),
        "late_1s": share(Some(v.late[1])),
        "startup_s": v.played.startup,
        "stalls": v.played.stalls,
        "stalled_s": v.played.stalled,
        "stalled_share": v.still,
        "freeze_max_s": v.played.freeze,
        "jitter_s": v.measured.jitter,
        "delay_p99_s": v.measured.delay_p99,
        "switches": v.switches,
        "useless": share(Some(v.useless)),
        "died": v.died.is_some(),
    })
}

/// A table in columns: the first one is aligned left, the others right.
fn columns(out: &mut String, table: &[Vec<String>]) {
    let width = |c: usize| table.iter().map(|r| r[c].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..table[0].len()).map(width).collect();
    for r in table {
        let mut line = format!("{:<1$}", r[0], widths[0]);
        for (c, w) in r.iter().zip(&widths).skip(1) {
            let _ = write!(line, "  {c:>w$}");
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

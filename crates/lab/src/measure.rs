//! Measurements of a run, as tables and as text.

use crate::text::{Grid, bit_rate, percent, seconds, short};
use skyhaul_base::Duration;
use skyhaul_scenario::Resolved;
use skyhaul_scenario::resolved::FlowGroup;
use skyhaul_sim::quantity::{self, Datum, FLOW, LINK, Quantity, Source};
use skyhaul_sim::result::direction;
use skyhaul_sim::{FlowResult, LinkResult, Page, RunResult};
use skyhaul_study::table::{Column, Table};

/// A flow group with its joint measurements; each has the name of its column.
pub(crate) struct Group<'a> {
    pub(crate) name: &'a str,
    pub(crate) cc: String,
    pub(crate) measured: Vec<(String, Datum)>,
}

impl Group<'_> {
    /// A quantity; NaN if it is missing.
    fn real(&self, column: &str) -> f64 {
        let found = self.measured.iter().find(|(name, _)| name == column);
        found.unwrap_or_else(|| unreachable!("a group has a column `{column}`")).1.real()
    }

    /// A count as text.
    fn count(&self, column: &str) -> String {
        format!("{:.0}", self.real(column))
    }
}

/// The groups of a run in the order of the scenario.
pub(crate) fn groups<'a>(scenario: &'a Resolved, result: &RunResult) -> Vec<Group<'a>> {
    let flows = |name: &str| result.groups().find(|(n, _)| *n == name).map_or(&[][..], |(_, flows)| flows);
    let of = |g: &'a FlowGroup| Group {
        name: &g.name,
        cc: g.label().into(),
        measured: quantity::group(flows(&g.name), result.duration),
    };
    scenario.flows.iter().map(of).collect()
}

/// The table `flows`: one row per flow.
#[must_use]
pub fn flow_table(result: &RunResult) -> Table {
    let flows = &result.flows;
    let keys = vec![
        ("group".into(), Column::text(flows.iter().map(|f| f.group.as_str()))),
        ("index".into(), Column::Count(flows.iter().map(|f| f.index.into()).collect())),
    ];
    table(keys, FLOW, flows, result.duration)
}

/// The table `links`: one row per link direction.
#[must_use]
pub fn link_table(result: &RunResult) -> Table {
    let links = &result.links;
    let keys = vec![
        ("link".into(), Column::text(links.iter().map(|l| l.name.as_str()))),
        ("direction".into(), Column::text(links.iter().map(|l| direction(l.forward)))),
    ];
    table(keys, LINK, links, result.duration)
}

/// The table `transfers`: one row per page or random transfer, in the order of the flows and then of their numbers. `end_s`
/// is missing for one in progress at the end of the run or flow; its `duration_s` is the time that it had taken.
#[must_use]
pub fn transfer_table(result: &RunResult) -> Table {
    let mut rows: Vec<(&FlowResult, &Page, bool)> = Vec::new();
    for flow in &result.flows {
        let first = rows.len();
        rows.extend(flow.pages.iter().map(|page| (flow, page, true)));
        rows.extend(flow.unfinished.iter().map(|page| (flow, page, false)));
        rows[first..].sort_by_key(|(_, page, _)| page.number);
    }
    let end = |(_, page, done): &(_, &Page, bool)| done.then(|| (page.began + page.took).as_secs_f64());
    Table::new(vec![
        ("group".into(), Column::text(rows.iter().map(|(f, ..)| f.group.as_str()))),
        ("index".into(), Column::Count(rows.iter().map(|(f, ..)| f.index.into()).collect())),
        ("number".into(), Column::Count(rows.iter().map(|(_, p, _)| p.number).collect())),
        ("start_s".into(), Column::Real(rows.iter().map(|(_, p, _)| p.began.as_secs_f64()).collect())),
        ("bytes".into(), Column::Count(rows.iter().map(|(_, p, _)| p.bytes).collect())),
        ("end_s".into(), Column::Maybe(rows.iter().map(end).collect())),
        ("completed".into(), Column::Count(rows.iter().map(|(.., done)| u64::from(*done)).collect())),
        ("duration_s".into(), Column::Real(rows.iter().map(|(_, p, _)| p.took.as_secs_f64()).collect())),
    ])
}

/// Columns that identify a row, then one per quantity.
fn table<T>(keys: Vec<(String, Column)>, list: &[Quantity<T>], rows: &[T], duration: Duration) -> Table {
    let column = |q: &Quantity<T>| match q.of {
        Source::Count(of) => Column::Count(rows.iter().map(|r| of(r, duration)).collect()),
        Source::Amount(of) | Source::Level(of) => {
            Column::Real(rows.iter().map(|r| of(r, duration)).collect())
        }
        Source::Maybe(of) => Column::Maybe(rows.iter().map(|r| of(r, duration)).collect()),
    };
    let quantities = list.iter().map(|q| (q.column(), column(q)));
    Table::new(keys.into_iter().chain(quantities).collect())
}

/// The table `series`: one row per time, object and series. Objects have their names in the scenario:
/// `flows.bulk[3]`, `links.sat.forward`; the variables of a congestion control are series `telemetry.NAME`. A flow
/// has no values before it starts.
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

/// The true causes of window reductions; in brackets those by timeout.
fn cut_grid(groups: &[Group<'_>]) -> Grid {
    let mut cuts = Grid::new(&["window cuts after", "link error", "congestion", "outage", "no loss"]);
    for g in groups {
        let cell =
            |cause: &str| match (g.count(&format!("cuts_{cause}")), g.real(&format!("timeout_cuts_{cause}")))
            {
                (all, 0.0) => all,
                (all, timeouts) => format!("{all} ({timeouts:.0} by timeout)"),
            };
        let causes = ["error", "congestion", "outage", "spurious"].map(cell);
        cuts.row(std::iter::once(g.name.to_owned()).chain(causes).collect());
    }
    cuts
}

/// How films played: frames and stalls in all, and means over the flows of a group of the share of frames in time and of
/// the share of time stalled. A film that never started stalls all of its time.
fn film_grid(groups: &[Group<'_>], result: &RunResult) -> Option<Grid> {
    let mut films = Grid::new(&["films", "frames", "in time", "stalls", "stalled"]);
    let mut any = false;
    for g in groups.iter().filter(|g| g.real("frames") > 0.0) {
        let mean = |name: &str| {
            let quantity = FLOW.iter().find(|q| q.name == name);
            let quantity = quantity.unwrap_or_else(|| unreachable!("a flow has `{name}`"));
            let all = result.flows.iter().filter(|f| f.group == g.name);
            let values: Vec<f64> = all.map(|f| quantity.value(f, result.duration).real()).collect();
            let known = || values.iter().filter(|x| !x.is_nan());
            known().sum::<f64>() / known().count() as f64
        };
        let share = |x: f64| if x.is_nan() { "–".into() } else { percent(x) };
        films.row(vec![
            g.name.to_owned(),
            g.count("frames"),
            share(mean("frames_complete")),
            g.count("stalls"),
            share(mean("stalled_share")),
        ]);
        any = true;
    }
    any.then_some(films)
}

/// The output of `run`: a head, then the tables.
#[must_use]
pub fn report(scenario: &Resolved, seed: u64, result: &RunResult) -> String {
    let title = if scenario.title.is_empty() { String::new() } else { format!("{} · ", scenario.title) };
    let duration = seconds(result.duration.as_secs_f64());
    let mut out = format!("{title}{duration} · seed {seed} · {} events\n\n", result.events);
    if let Some(why) = result.ended {
        out += &format!("{why}\n\n");
    }
    out + &tables(scenario, result).iter().map(|grid| grid.lines(0)).collect::<Vec<_>>().join("\n")
}

/// The tables that `run` prints: of flow groups, of the causes of window reductions, of pages, of films, and of links. Each
/// packet offered to a link is delivered, lost for one reason, or under way at the end.
#[must_use]
pub fn tables(scenario: &Resolved, result: &RunResult) -> Vec<Grid> {
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
        let (low, high) = (bit_rate(g.real("goodput_min_bit_s")), bit_rate(g.real("goodput_max_bit_s")));
        flows.row(vec![
            g.name.to_owned(),
            g.count("flows"),
            g.cc.clone(),
            bit_rate(g.real("goodput_bit_s")),
            short(g.real("goodput_segments_s")),
            if low == high { low } else { format!("{low} … {high}") },
            g.count("segments_sent"),
            g.count("retransmissions"),
            g.count("timeouts"),
            g.count("probes_sent"),
            g.count("probes_answered"),
            time(g.real("mean_srtt_s")),
            format!("{:.3}", g.real("jain")),
        ]);
    }
    let mut all = vec![flows];
    if groups.iter().any(|g| g.real("cuts") > 0.0) {
        all.push(cut_grid(&groups));
    }
    let with_pages = || groups.iter().filter(|g| g.real("pages") + g.real("pages_unfinished") > 0.0);
    if with_pages().next().is_some() {
        let mut pages = Grid::new(&["pages", "done", "mean time", "unfinished", "mean of all, at least"]);
        for g in with_pages() {
            pages.row(vec![
                g.name.to_owned(),
                g.count("pages"),
                time(g.real("page_time_mean_s")),
                g.count("pages_unfinished"),
                time(g.real("page_time_least_s")),
            ]);
        }
        all.push(pages);
    }
    all.extend(film_grid(&groups, result));
    let of = |l: &LinkResult, name: &str| {
        let found = LINK.iter().find(|q| q.name == name);
        found.unwrap_or_else(|| unreachable!("a link has `{name}`")).value(l, result.duration).real()
    };
    // AQM, ARQ and ACK filtering have columns only where they have counted packets.
    let some = |name: &str| result.links.iter().any(|l| of(l, name) > 0.0);
    let counts: Vec<(&str, &str)> = [
        ("packets", "offered", true),
        ("delivered", "delivered", true),
        ("lost: error", "dropped_error", true),
        ("full", "dropped_full", true),
        ("aqm", "dropped_aqm", some("dropped_aqm")),
        ("pushed out", "dropped_pushed_out", true),
        ("link down", "dropped_link_down", true),
        ("ARQ", "dropped_arq_gave_up", some("dropped_arq_gave_up")),
        ("filtered", "dropped_filtered", some("dropped_filtered")),
        ("marked", "marked", some("marked")),
        ("copies", "duplicated", some("duplicated")),
    ]
    .into_iter()
    .filter_map(|(head, name, shown)| shown.then_some((head, name)))
    .collect();
    // A packet that is neither delivered nor lost is queued or in flight. Marked packets are delivered or lost as others
    // are, and copies are delivered in addition.
    let under_way = |l: &LinkResult| {
        let lost: f64 = LINK.iter().filter(|q| q.name.starts_with("dropped_")).map(|q| of(l, q.name)).sum();
        of(l, "offered") - of(l, "delivered") - lost
    };
    let heads: Vec<&str> = ["links", "direction"]
        .into_iter()
        .chain(counts.iter().map(|c| c.0))
        .chain(["under way", "busy", "queue mean", "max"])
        .collect();
    let mut links = Grid::new(&heads).left(1);
    for l in &result.links {
        let head = [l.name.clone(), direction(l.forward).into()];
        let tail = [
            format!("{:.0}", under_way(l)),
            percent(l.utilization),
            short(l.mean_queue),
            l.max_queue.to_string(),
        ];
        links.row(
            head.into_iter().chain(counts.iter().map(|c| format!("{:.0}", of(l, c.1)))).chain(tail).collect(),
        );
    }
    if !result.links.is_empty() {
        all.push(links);
    }
    all
}

/// A time in seconds, or a dash where none was measured.
fn time(x: f64) -> String {
    if x.is_nan() { "–".into() } else { seconds(x) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_scenario::Document;

    fn printed(preset: &str, sets: &[&str]) -> String {
        let mut document = Document::preset(preset).expect("a preset");
        sets.iter().for_each(|set| document.set(set).unwrap_or_else(|e| panic!("{e}")));
        let scenario = document.resolve().unwrap_or_else(|e| panic!("{e}"));
        report(&scenario, 1, &skyhaul_sim::run(&scenario, 1, skyhaul_trace::Null).expect("a run"))
    }

    #[test]
    fn packets_of_a_link_add_up() {
        let text = printed(
            "papadimitriou",
            &[
                "duration=20 s",
                "links.sat.queue={ kind = 'codel', limit = '100 packets', target = '5 ms', interval = '100 ms' }",
                "links.sat.reverse.rate=64 kbit/s",
                "links.sat.reverse.queue={ kind = 'ack-filter', limit = '10 packets' }",
            ],
        );
        let words = |line: &str| {
            let cells = line.split("  ").map(|cell| cell.trim().to_owned());
            cells.filter(|cell| !cell.is_empty()).collect::<Vec<_>>()
        };
        let mut lines = text.lines().skip_while(|line| !line.starts_with("links"));
        let heads = words(lines.next().expect("a table of links"));
        let losses = ["lost: error", "full", "aqm", "pushed out", "link down", "ARQ", "filtered"];
        let (mut filtered, mut dropped) = (0.0, 0.0);
        for row in lines.map(words) {
            let of = |head: &str| {
                let at = heads.iter().position(|h| h == head);
                at.map_or(0.0, |at| row[at].parse::<f64>().expect("a number"))
            };
            let lost: f64 = losses.iter().map(|head| of(head)).sum();
            assert_eq!(of("packets"), of("delivered") + lost + of("under way"), "{text}");
            assert!((0.0..5000.0).contains(&of("under way")), "{text}");
            filtered += of("filtered");
            dropped += of("aqm");
        }
        assert!(filtered > 0.0 && dropped > 0.0, "{text}");
    }

    #[test]
    fn the_table_of_transfers_has_a_row_for_each_complete_or_not() {
        let mut document = Document::preset("geo-today").expect("a preset");
        for set in ["duration=17 s", "flows.own.app={ kind = 'pages', segments = 400, idle = '1 s' }"] {
            document.set(set).unwrap_or_else(|e| panic!("{e}"));
        }
        let scenario = document.resolve().unwrap_or_else(|e| panic!("{e}"));
        let result = skyhaul_sim::run(&scenario, 1, skyhaul_trace::Null).expect("a run");
        let flow = result.flows.iter().find(|f| f.group == "own").expect("a flow");
        let text = skyhaul_study::table::csv(&transfer_table(&result));
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("group,index,number,start_s,bytes,end_s,completed,duration_s"));
        let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
        assert!(flow.pages.len() > 2 && flow.unfinished.len() == 1, "{text}");
        assert_eq!(rows.len(), flow.pages.len() + 1);
        let number = |cell: &str| cell.parse::<f64>().expect("a number");
        for (i, row) in rows.iter().enumerate() {
            assert_eq!((row[0], row[2]), ("own", i.to_string().as_str()));
            assert_eq!(number(row[4]), 400.0 * f64::from(scenario.flows[0].endpoint.mss), "{text}");
            let open = i + 1 == rows.len();
            assert_eq!((row[5].is_empty(), row[6]), (open, if open { "0" } else { "1" }));
            let end = if open { 17.0 } else { number(row[5]) };
            assert!((end - number(row[3]) - number(row[7])).abs() < 1e-9, "{text}");
        }
    }

    #[test]
    fn films_and_pages_that_did_not_finish_have_a_line() {
        let film = "flows.own={ transport = 'udp', app = { kind = 'video', movie = 'jp-medium' } }";
        let text = printed("geo-today", &["duration=20 s", film]);
        let line = text.lines().skip_while(|line| !line.starts_with("films")).nth(1).expect("a film");
        assert!(line.starts_with("own") && line.contains('%'), "{text}");

        let pages = "flows.own.app={ kind = 'pages', segments = 100000 }";
        let text = printed("geo-today", &["duration=20 s", pages]);
        let line = text.lines().skip_while(|line| !line.starts_with("pages")).nth(1).expect("pages");
        // None done, one unfinished, and it has taken all of the run.
        let cells: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(cells[..4], ["own", "0", "–", "1"], "{text}");
        assert!(!printed("geo-today", &["duration=2 s"]).contains("films"));
    }
}

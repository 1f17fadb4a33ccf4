//! `skyhaul compare SCENARIO --worlds …`: one scenario in the simulator, by our transport and by the kernel's over the
//! emulated links.

use crate::args::CompareArgs;
use crate::stop::Stop;

#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_: &CompareArgs) -> Result<(), Stop> {
    Err(Stop::bad("--worlds needs Linux: its TUN devices and network namespaces"))
}

#[cfg(target_os = "linux")]
pub(crate) use linux::run;

#[cfg(target_os = "linux")]
mod linux {
    use super::{CompareArgs, Stop};
    use crate::interrupt;
    use crate::output::print;
    use crate::progress::{Runs, progress};
    use serde_json::{Value, json};
    use skyhaul_lab::cases::{self, Case};
    use skyhaul_lab::results;
    use skyhaul_lab::run::execute;
    use skyhaul_net::world::{self, Outcome, World};
    use skyhaul_scenario::resolved::{Record, Series};
    use skyhaul_study::figure::{Row, overlay};
    use skyhaul_study::stats::{self, Estimate};
    use skyhaul_study::{format, report};
    use std::collections::VecDeque;
    use std::fmt::Write as _;
    use std::sync::Mutex;

    /// A world with a case of the scenario.
    struct Entry {
        label: String,
        /// `None`: the simulator.
        world: Option<World>,
        case: usize,
    }

    /// What one run gave.
    struct Done {
        /// bit/s.
        goodput: f64,
        retransmissions: u64,
        timeouts: Option<u64>,
        probes: (u64, u64),
        doubts: Vec<String>,
        samples: Vec<Point>,
    }

    /// Seconds, flow, cwnd in segments, payload acknowledged in bytes.
    type Point = (f64, u32, f64, f64);

    fn entries(args: &CompareArgs, cases: &[Case]) -> Result<Vec<Entry>, Stop> {
        let mut all = Vec::new();
        for text in &args.worlds {
            let text = text.trim();
            let world = match text {
                "sim" => None,
                _ => Some(World::parse(text).ok_or_else(|| {
                    Stop::bad(format!(
                        "--worlds: {text:?} is no world; write sim, wire, wire-to-kernel, or kernel:NAME, such as kernel:cubic"
                    ))
                })?),
            };
            // The kernel does not care which congestion control of ours the scenario names.
            let kernel = matches!(world, Some(World::Kernel(_)));
            for (case, c) in cases.iter().enumerate().take(if kernel { 1 } else { cases.len() }) {
                // The label says the congestion control already.
                let says = c.choice.iter().any(|(key, _)| !key.ends_with(".cc"));
                let choice = if kernel || !says { String::new() } else { format!(", {}", c.label()) };
                let control =
                    if kernel { String::new() } else { format!(" {}", c.scenario.flows[0].label()) };
                all.push(Entry { label: format!("{text}{control}{choice}"), world: world.clone(), case });
            }
        }
        Ok(all)
    }

    fn simulate(case: &Case, seed: u64) -> Result<Done, Stop> {
        let mut scenario = case.scenario.clone();
        let sample = scenario.record.sample.unwrap_or(skyhaul_base::Duration::from_millis(100));
        scenario.record = Record { sample: Some(sample), series: vec![Series::Acked, Series::Cwnd] };
        let case = Case { scenario, seed, choice: case.choice.clone() };
        let r = execute(std::slice::from_ref(&case), 1, false, &Runs::new())?.remove(0);
        let mss = f64::from(case.scenario.flows[0].endpoint.mss);
        let series = &r.series.flows;
        let column =
            |name: &str| series.names.iter().position(|n| *n == name).and_then(|i| series.columns.get(i));
        let mut samples = Vec::new();
        if let (Some(acked), Some(cwnd)) = (column("acked"), column("cwnd")) {
            for (i, at) in series.time.iter().enumerate() {
                samples.push((at.as_secs_f64(), series.entity[i], cwnd[i], acked[i] * mss));
            }
        }
        let sum = |f: fn(&skyhaul_sim::FlowResult) -> u64| r.flows.iter().map(f).sum::<u64>();
        Ok(Done {
            goodput: r.flows.iter().map(|f| f.goodput).sum(),
            retransmissions: sum(|f| f.retransmissions),
            timeouts: Some(sum(|f| f.timeouts)),
            probes: (sum(|f| f.probes_sent), sum(|f| f.probes_answered)),
            doubts: Vec::new(),
            samples,
        })
    }

    fn measured(o: Outcome) -> Done {
        Done {
            goodput: o.goodput,
            retransmissions: o.retransmissions,
            timeouts: o.timeouts,
            probes: o.probes,
            doubts: o.emulation.doubts(),
            samples: o.samples.iter().map(|s| (s.at.as_secs_f64(), s.flow, s.cwnd, s.acked as f64)).collect(),
        }
    }

    pub(crate) fn run(args: &CompareArgs) -> Result<(), Stop> {
        let path = args.a.to_string_lossy();
        let cases = cases::resolve(&path, &args.set, None)?;
        let entries = entries(args, &cases)?;
        if let Some(folder) = &args.out {
            results::prepare(folder)?;
        }
        interrupt::listen();
        let seeds: Vec<u64> = (0..u64::from(args.repeat)).map(|n| cases[0].seed + n).collect();
        let jobs: VecDeque<(usize, usize)> =
            (0..seeds.len()).flat_map(|s| (0..entries.len()).map(move |e| (e, s))).collect();
        let bar = progress(jobs.len() as u64);
        let (queue, failure) = (Mutex::new(jobs), Mutex::new(None));
        let done: Mutex<Vec<(usize, usize, Done)>> = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..args.jobs {
                scope.spawn(|| {
                    while let Some((e, s)) = queue.lock().ok().and_then(|mut q| q.pop_front()) {
                        let over = || interrupt::requested() || failure.lock().is_ok_and(|f| f.is_some());
                        if over() {
                            return;
                        }
                        let (entry, case) = (&entries[e], &cases[entries[e].case]);
                        let outcome = match &entry.world {
                            None => simulate(case, seeds[s]),
                            Some(w) => world::run(&case.scenario, w, seeds[s], &over)
                                .map(measured)
                                .map_err(|e| Stop::bad(format!("{}: {e}", entry.label))),
                        };
                        match outcome {
                            Ok(d) => done.lock().map(|mut all| all.push((e, s, d))).unwrap_or_default(),
                            Err(e) => {
                                if let Ok(mut f) = failure.lock() {
                                    f.get_or_insert(e);
                                }
                            }
                        }
                        bar.inc(1);
                    }
                });
            }
        });
        bar.finish_and_clear();
        if let Ok(Some(e)) = failure.into_inner() {
            return Err(e);
        }
        if interrupt::requested() {
            return Err(Stop::Interrupted("interrupted: nothing is kept of runs in real time".into()));
        }
        let mut done = done.into_inner().unwrap_or_default();
        done.sort_by_key(|(e, s, _)| (*e, *s));
        show(args, &entries, &seeds, &done)
    }

    /// Goodputs of an entry in the order of seeds.
    fn goodputs(done: &[(usize, usize, Done)], entry: usize) -> Vec<f64> {
        done.iter().filter(|(e, ..)| *e == entry).map(|(.., d)| d.goodput).collect()
    }

    fn mbit(e: &Estimate) -> String {
        let scaled = Estimate { mean: e.mean / 1e6, half: e.half / 1e6, ..*e };
        format::estimate(&scaled)
    }

    fn show(
        args: &CompareArgs,
        entries: &[Entry],
        seeds: &[u64],
        done: &[(usize, usize, Done)],
    ) -> Result<(), Stop> {
        let first = goodputs(done, 0);
        let heads = [
            "world",
            "goodput, Mbit/s",
            "against the first, %",
            "retransmissions",
            "timeouts",
            "probes answered / sent",
            "emulation",
        ];
        let mut table: Vec<Vec<String>> = vec![heads.map(str::to_owned).to_vec()];
        let mut values = Vec::new();
        let mut doubts: Vec<String> = Vec::new();
        for (e, entry) in entries.iter().enumerate() {
            let own: Vec<&Done> = done.iter().filter(|(i, ..)| *i == e).map(|(.., d)| d).collect();
            let g = goodputs(done, e);
            let ratio = stats::paired_ratio(&g, &first);
            let difference =
                Estimate { mean: (ratio.mean - 1.0) * 100.0, half: ratio.half * 100.0, n: ratio.n };
            let mean =
                |f: &dyn Fn(&Done) -> f64| own.iter().map(|d| f(d)).sum::<f64>() / own.len().max(1) as f64;
            let timeouts = own.iter().map(|d| d.timeouts).collect::<Option<Vec<_>>>();
            let trusted = own.iter().all(|d| d.doubts.is_empty());
            doubts.extend(own.iter().flat_map(|d| &d.doubts).map(|d| format!("{}: {d}", entry.label)));
            let (sent, answered) = (mean(&|d| d.probes.0 as f64), mean(&|d| d.probes.1 as f64));
            table.push(vec![
                entry.label.clone(),
                mbit(&stats::estimate(&g)),
                if e == 0 { String::new() } else { format::estimate(&difference) },
                format::number(mean(&|d| d.retransmissions as f64)),
                timeouts.as_ref().map_or_else(
                    || "?".into(),
                    |_| format::number(mean(&|d| d.timeouts.unwrap_or(0) as f64)),
                ),
                if sent > 0.0 {
                    format!("{} / {}", format::number(answered), format::number(sent))
                } else {
                    String::new()
                },
                match (&entry.world, trusted) {
                    (None, _) => String::new(),
                    (_, true) => "trusted".into(),
                    (_, false) => "not trusted".into(),
                },
            ]);
            values.push(json!({
                "world": entry.label,
                "goodput_bit_s": g,
                "difference_percent": if e == 0 { Value::Null } else { json!({ "mean": difference.mean, "half": difference.half }) },
                "retransmissions": own.iter().map(|d| d.retransmissions).collect::<Vec<_>>(),
                "timeouts": timeouts,
                "probes_sent": own.iter().map(|d| d.probes.0).collect::<Vec<_>>(),
                "probes_answered": own.iter().map(|d| d.probes.1).collect::<Vec<_>>(),
                "doubts": own.iter().map(|d| &d.doubts).collect::<Vec<_>>(),
            }));
        }
        if let Some(folder) = &args.out {
            write(args, folder, entries, seeds, done, &table, &doubts)?;
        }
        let mut out = String::new();
        if args.json {
            let _ = writeln!(out, "{:#}", json!({ "scenario": args.a, "seeds": seeds, "worlds": values }));
        } else {
            columns(&mut out, &table);
            let n = seeds.len();
            let _ = writeln!(
                out,
                "\n{n} seed{}; intervals of 95 % over seeds, differences seed by seed.",
                if n == 1 { "" } else { "s" }
            );
            for d in &doubts {
                let _ = writeln!(out, "{d}");
            }
            if let Some(folder) = &args.out {
                let _ = writeln!(out, "Page: {}", folder.join("worlds.html").display());
            }
        }
        print(&out)
    }

    /// A table in columns; the first one to the left, the others to the right.
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

    fn write(
        args: &CompareArgs,
        folder: &std::path::Path,
        entries: &[Entry],
        seeds: &[u64],
        done: &[(usize, usize, Done)],
        table: &[Vec<String>],
        doubts: &[String],
    ) -> Result<(), Stop> {
        // The curves of the first seed: those of several would hide each other.
        let rows = |y: &dyn Fn(&Point) -> f64| -> Vec<Row> {
            let first = done.iter().filter(|(_, s, _)| *s == 0);
            first
                .flat_map(|(e, _, d)| {
                    d.samples.iter().map(|s| Row {
                        x: Some(s.0),
                        at: String::new(),
                        y: y(s),
                        low: None,
                        high: None,
                        series: entries[*e].label.clone(),
                        reading: String::new(),
                        flow: Some(s.1),
                    })
                })
                .collect()
        };
        let figures = [
            overlay("cwnd", "Congestion window", ("time, s", "cwnd, segments"), rows(&|s| s.2)),
            overlay("acked", "Data acknowledged", ("time, s", "acknowledged, MB"), rows(&|s| s.3 / 1e6)),
        ];
        let mut paragraphs = vec![format!(
            "Scenario {}; {} seeds from {}. The curves are those of the first seed. Intervals of 95 % over seeds; differences are taken seed by seed.",
            args.a.display(),
            seeds.len(),
            seeds[0]
        )];
        paragraphs.extend(doubts.iter().cloned());
        let page = report::plain("One scenario in several worlds", &paragraphs, table, &figures);
        let to = folder.join("worlds.html");
        std::fs::write(&to, page).map_err(|e| Stop::write(&to, &e))?;
        let to = folder.join("samples.csv");
        let fail = |e: csv::Error| Stop::bad(format!("cannot write {}: {e}", to.display()));
        let mut w = csv::Writer::from_path(&to).map_err(fail)?;
        w.write_record(["world", "seed", "time_s", "flow", "cwnd_segments", "acked_bytes"]).map_err(fail)?;
        for (e, s, d) in done {
            for (at, flow, cwnd, acked) in &d.samples {
                let record = [
                    entries[*e].label.clone(),
                    seeds[*s].to_string(),
                    at.to_string(),
                    flow.to_string(),
                    cwnd.to_string(),
                    acked.to_string(),
                ];
                w.write_record(record).map_err(fail)?;
            }
        }
        w.flush().map_err(|e| Stop::write(&to, &e))
    }
}

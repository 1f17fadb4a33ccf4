//! `skyhaul run`.

use crate::args::{RunArgs, jobs};
use crate::command::simulate::progress::Runs;
use crate::output::{print, warn};
use crate::stop::Stop;
use serde_json::Value;
use skyhaul_lab::capture::{self, CaptureOptions};
use skyhaul_lab::clock::Stopwatch;
use skyhaul_lab::lease::Lease;
use skyhaul_lab::results::json_text;
use skyhaul_lab::run::{captured, execute};
use skyhaul_lab::summary::Summary;
use skyhaul_lab::{cases, measure, results};
use skyhaul_sim::RunResult;
use skyhaul_study::table::csv;
use std::collections::BTreeMap;
use std::fmt::Write as _;

pub(crate) fn run(args: &RunArgs) -> Result<(), Stop> {
    let cases = cases::resolve(&args.scenario.scenario, &args.scenario.set, args.seed)?;
    if args.transfers.is_some() && cases.len() > 1 {
        return Err(Stop::bad(format!(
            "--transfers writes the transfers of one run, and --set makes {}: give each key one value, or write all with --out",
            cases.len()
        )));
    }
    // An unsuitable results folder is refused before the runs, not after them.
    let lease = args.out.as_deref().map(Lease::take).transpose()?;
    let watch = Stopwatch::start();
    let done = match (&args.pcap, cases.as_slice()) {
        (None, _) => execute(&cases, jobs(args.jobs), args.digest, &Runs::of(&cases))?,
        (Some(path), [case]) => {
            capture::check_path(path, args.force).map_err(Stop::bad)?;
            let (at, flows) = (args.pcap_at.clone(), args.pcap_flow.clone());
            let options = CaptureOptions { path: path.clone(), at, flows, snaplen: args.pcap_snaplen.into() };
            vec![captured(case, args.digest, &options, &Runs::of(&cases))?]
        }
        (Some(_), _) => {
            let n = cases.len();
            return Err(Stop::bad(format!(
                "--pcap captures one run, and --set makes {n}: give each key one value"
            )));
        }
    };
    let took = watch.elapsed().as_secs_f64();
    if let (Some(path), [result]) = (&args.transfers, done.as_slice()) {
        let text = csv(&measure::transfer_table(result));
        results::text(path, &text)?;
    }
    if let Some(folder) = &args.out {
        let written = match cases.as_slice() {
            [case] => results::write(folder, case, &done[0], Some(took))?,
            _ => results::write_all(folder, &cases, &done, took)?,
        };
        lease.map_or(Ok(()), |l| l.finish(&written))?;
    }
    if args.scenario.json {
        print(&as_json(&cases, &done))?;
        print_warnings(&cases);
        return report_early_ends(&cases, &done);
    }
    let mut out = String::new();
    for (i, (case, result)) in cases.iter().zip(&done).enumerate() {
        if i > 0 {
            out.push('\n');
        }
        if !case.choice.is_empty() {
            let _ = writeln!(out, "── {}", case.label());
        }
        out.push_str(&measure::report(&case.scenario, case.seed, result));
        if let Some(digest) = result.digest {
            let _ = writeln!(out, "\ndigest {digest:016x}");
        }
    }
    if let Some(folder) = &args.out {
        let _ = writeln!(out, "\nResults: {}", folder.display());
    }
    print(&out)?;
    print_warnings(&cases);
    report_early_ends(&cases, &done)
}

/// Reports the runs that ended before their time, whose results have been written all the same.
fn report_early_ends(cases: &[cases::Case], done: &[RunResult]) -> Result<(), Stop> {
    let ended: Vec<_> = cases.iter().zip(done).filter_map(|(case, run)| Some((case, run.ended?))).collect();
    for (case, why) in &ended {
        let which = if case.choice.is_empty() { String::new() } else { format!("{}: ", case.label()) };
        warn(&format!("{which}{why}"));
    }
    if ended.is_empty() { Ok(()) } else { Err(Stop::Status(1)) }
}

/// Prints the warnings of `skyhaul check` after the results, each line once for all cases.
fn print_warnings(cases: &[cases::Case]) {
    let mut lines: Vec<String> = Vec::new();
    for w in cases.iter().flat_map(|c| skyhaul_scenario::check(&c.scenario).warnings) {
        let line = format!("warning: {}: {}", w.key, w.message);
        if !lines.contains(&line) {
            warn(&line);
            lines.push(line);
        }
    }
}

fn as_json(cases: &[cases::Case], done: &[RunResult]) -> String {
    match (cases, done) {
        ([case], [result]) => json_text(&summary(case, result, None)),
        _ => {
            let choices: Vec<_> = cases.iter().map(results::choice).collect();
            let runs = cases.iter().zip(done).zip(&choices);
            let runs: Vec<_> = runs.map(|((case, result), c)| summary(case, result, Some(c))).collect();
            json_text(&BTreeMap::from([("cases", runs)]))
        }
    }
}

fn summary<'a>(case: &'a cases::Case, result: &'a RunResult, choice: Option<&'a Value>) -> Summary<'a> {
    Summary { scenario: &case.scenario, seed: case.seed, result, choice }
}

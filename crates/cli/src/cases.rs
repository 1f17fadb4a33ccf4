//! Runs of a scenario: one, or one per combination of values given with commas.

use crate::capture::{CaptureOptions, PcapTap};
use crate::interrupt;
use crate::stop::{Stop, io_words};
use indicatif::{ProgressBar, ProgressStyle};
use skyhaul_base::Instant;
use skyhaul_scenario::{Document, Resolved};
use skyhaul_sim::{RunResult, Sim, Tap};
use skyhaul_trace::{Digest, Null};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One run to make.
#[derive(Clone, Debug)]
pub struct Case {
    /// What was chosen for it where `--set` gave several values: key and value as written.
    pub choice: Vec<(String, String)>,
    /// The scenario.
    pub scenario: Resolved,
    /// The seed.
    pub seed: u64,
}

impl Case {
    /// The choice in words.
    #[must_use]
    pub fn label(&self) -> String {
        self.choice.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(" ")
    }
}

/// Reads a file that a scenario or the command line names.
///
/// # Errors
/// The system's words.
pub fn load(path: &str) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| io_words(&e))
}

/// Opens a scenario and resolves all combinations of what `sets` says; several values of a key are separated by
/// commas outside quotes and brackets. Nothing runs before everything is resolved.
///
/// # Errors
/// One line that says where and what.
pub fn resolve(path: &str, sets: &[String], seed: Option<u64>) -> Result<Vec<Case>, Stop> {
    let document = Document::open(path, &load).map_err(Stop::bad)?;
    let mut open: Vec<(Document, Vec<(String, String)>)> = vec![(document, Vec::new())];
    for set in sets {
        let (key, values) = match set.split_once('=') {
            Some((key, values)) => (key.trim(), split(values)),
            None => ("", vec![]),
        };
        let assignments: Vec<(String, Option<&str>)> = match values.len() {
            0 | 1 => vec![(set.clone(), None)],
            _ => values.iter().map(|v| (format!("{key}={v}"), Some(*v))).collect(),
        };
        let mut next = Vec::new();
        for (document, choice) in &open {
            for (assignment, value) in &assignments {
                let (mut document, mut choice) = (document.clone(), choice.clone());
                document.set(assignment).map_err(Stop::bad)?;
                choice.extend(value.map(|v| (key.to_owned(), v.to_owned())));
                next.push((document, choice));
            }
        }
        open = next;
        if open.len() > MAX_CASES {
            return Err(Stop::bad(format!(
                "--set: more than {MAX_CASES} combinations; write a study instead"
            )));
        }
    }
    open.into_iter()
        .map(|(mut document, choice)| {
            document.read_traces(&load).map_err(Stop::bad)?;
            let scenario = document.resolve().map_err(Stop::bad)?;
            let seed = seed.unwrap_or(scenario.seed);
            Ok(Case { choice, scenario, seed })
        })
        .collect()
}

const MAX_CASES: usize = 1000;

/// Splits at commas that are not inside quotes or brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut quote, mut from, mut parts) = (0i32, None, 0, Vec::new());
    for (i, c) in text.char_indices() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth -= 1,
            (None, ',') if depth == 0 => {
                parts.push(text[from..i].trim());
                from = i + 1;
            }
            _ => {}
        }
    }
    parts.push(text[from..].trim());
    parts
}

/// Portions into which a run is cut, to show progress and to look for Ctrl-C.
const STEPS: u64 = 200;

/// Runs all cases, at most `jobs` at a time; results are in the order of the cases.
///
/// # Errors
/// If a case cannot be simulated, or the user asks to stop.
pub fn execute(cases: &[Case], jobs: usize, digest: bool) -> Result<Vec<RunResult>, Stop> {
    interrupt::listen();
    let bar = progress(cases.len() as u64 * STEPS);
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<Result<RunResult, Stop>>>> = Mutex::new(vec![None; cases.len()]);
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, cases.len().max(1)) {
            scope.spawn(|| {
                while !interrupt::requested() {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(i) else { break };
                    let result =
                        if digest { one(case, Digest::default(), &bar) } else { one(case, Null, &bar) };
                    done.lock().unwrap_or_else(std::sync::PoisonError::into_inner)[i] = Some(result);
                }
            });
        }
    });
    bar.finish_and_clear();
    let done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let stopped = || Err(Stop::Interrupted("stopped; nothing was written".into()));
    done.into_iter().map(|d| d.unwrap_or_else(stopped)).collect()
}

/// Runs one case and captures its packets. Whatever ends the run, what was captured until then is readable.
///
/// # Errors
/// As [`execute`], and if the capture cannot be written.
pub fn captured(case: &Case, digest: bool, options: &CaptureOptions) -> Result<RunResult, Stop> {
    interrupt::listen();
    let bar = progress(STEPS);
    let mut tap = PcapTap::open(options, case)?;
    let result =
        if digest { one(case, (Digest::default(), &mut tap), &bar) } else { one(case, &mut tap, &bar) };
    bar.finish_and_clear();
    let written = tap.finish();
    let file = options.path.display();
    match result {
        Err(Stop::Interrupted(_)) => {
            written?;
            Err(Stop::Interrupted(format!("stopped; {file} holds the packets until then")))
        }
        Err(e) => Err(e),
        Ok(result) => written.map(|()| result),
    }
}

/// Runs one case with a recorder of one's own.
///
/// # Errors
/// As [`execute`].
pub fn recorded<R: Tap>(case: &Case, recorder: R) -> Result<RunResult, Stop> {
    interrupt::listen();
    let bar = progress(STEPS);
    let result = one(case, recorder, &bar);
    bar.finish_and_clear();
    result
}

fn one<R: Tap>(case: &Case, recorder: R, bar: &ProgressBar) -> Result<RunResult, Stop> {
    let mut sim = Sim::new(&case.scenario, case.seed, recorder).map_err(Stop::bad)?;
    let end = sim.end().as_nanos();
    for step in 1..=STEPS {
        if interrupt::requested() {
            return Err(Stop::Interrupted("stopped; nothing was written".into()));
        }
        let until = u128::from(end) * u128::from(step) / u128::from(STEPS);
        sim.run_until(Instant::from_nanos(until as u64));
        bar.inc(1);
    }
    Ok(sim.finish())
}

/// A bar on the terminal; invisible where standard error is none.
pub(crate) fn progress(length: u64) -> ProgressBar {
    let bar = ProgressBar::new(length);
    let style = ProgressStyle::with_template("{bar:40} {percent:>3} %  {elapsed} of about {duration}  {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// How many runs at a time: what was asked for, or one per processor.
#[must_use]
pub fn jobs(asked: Option<u16>) -> usize {
    asked.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_in_quotes_and_brackets_separate_nothing() {
        assert_eq!(split("sack,peach"), ["sack", "peach"]);
        assert_eq!(split(" 1e-3 , 1e-2 "), ["1e-3", "1e-2"]);
        assert_eq!(split("'a, b',c"), ["'a, b'", "c"]);
        assert_eq!(
            split("{ name = 'peach', start = 'slow' },sack"),
            ["{ name = 'peach', start = 'slow' }", "sack"]
        );
        assert_eq!(split("['a', 'b']"), ["['a', 'b']"]);
    }

    #[test]
    fn every_combination_is_a_case() {
        let sets = ["flows.bulk.cc=sack,peach".to_owned(), "links.sat.error.p=0,1e-3,1e-2".to_owned()];
        let cases = resolve("preset:peach-geo", &sets, Some(7)).expect("good settings");
        assert_eq!(cases.len(), 6);
        assert_eq!(cases[5].label(), "flows.bulk.cc=peach links.sat.error.p=1e-2");
        assert!(cases.iter().all(|c| c.seed == 7));
        assert_eq!(cases[0].scenario.flows[0].cc.name(), "sack");
    }
}

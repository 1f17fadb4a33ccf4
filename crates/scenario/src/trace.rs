//! Files of values over time: what is in them, and what is wrong with them.
//!
//! Two formats: a table in CSV, whose header names time and value with their units, and the schedules of Mahimahi, a
//! millisecond per line. A resolved scenario holds the content, so that its hash covers it and nothing needs the files.

use crate::error::Problem;
use crate::model::{EndSpec, TraceSpec};
use crate::quantity::Decimal;
use core::fmt::Write;
use skyhaul_base::{Duration, Rate};
use skyhaul_path::delay::{DelayTrace, Interpolation, LONGEST};
use skyhaul_path::rate::{End, Opportunities, Steps, TraceError, Varying};
use std::sync::Arc;

/// Most lines of a file.
const MAX_LINES: usize = 10_000_000;
/// What canonical texts are called in messages.
const CANONICAL: &str = "trace";

/// Columns and the base units in one of theirs.
const TIMES: &[(&str, u64)] =
    &[("time_s", 1_000_000_000), ("time_ms", 1_000_000), ("time_us", 1_000), ("time_ns", 1)];
const RATES: &[(&str, u64)] =
    &[("rate_bit_s", 1), ("rate_kbit_s", 1_000), ("rate_mbit_s", 1_000_000), ("rate_gbit_s", 1_000_000_000)];
const DELAYS: &[(&str, u64)] =
    &[("delay_s", 1_000_000_000), ("delay_ms", 1_000_000), ("delay_us", 1_000), ("delay_ns", 1)];

/// What is wrong with a text: the line, from 1, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Line; 0 where the text as a whole is meant.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

fn broken<T>(line: usize, message: impl Into<String>) -> Result<T, Broken> {
    Err(Broken { line, message: message.into() })
}

/// A schedule of Mahimahi.
///
/// # Errors
/// If a line is no whole number of milliseconds, the times descend, there is none, or the last one is 0.
pub fn mahimahi(text: &str) -> Result<Opportunities, Broken> {
    let mut times: Vec<u32> = Vec::new();
    for (line, word) in (1..).zip(text.lines()) {
        let word = word.trim();
        let accepted = "write a whole number of milliseconds, from 0 to 4294967295, in each line";
        let Some(ms) = word.parse::<u32>().ok().filter(|_| word.bytes().all(|b| b.is_ascii_digit())) else {
            return broken(line, format!("{} is no time: {accepted}", shown(word)));
        };
        if let Some(before) = times.last().filter(|before| ms < **before) {
            return broken(line, format!("{ms} comes after {before}: times must not descend"));
        }
        times.push(ms);
        if times.len() > MAX_LINES {
            return broken(line, format!("more than {MAX_LINES} lines"));
        }
    }
    let last = times.len();
    Opportunities::new(times).map_err(|e| match e {
        TraceError::Empty => Broken { line: 0, message: "empty: it needs at least one line".into() },
        TraceError::NoPeriod => Broken {
            line: last,
            message: "the last time is 0, which is no period: end with a later time".into(),
        },
        other => Broken { line: last, message: other.to_string() },
    })
}

/// Times with rates, from CSV with the columns `time_s` and `rate_bit_s`, or others of their units.
///
/// # Errors
/// If a column is missing, a value is none, or times do not ascend.
pub fn rates(text: &str, end: End) -> Result<Steps, Broken> {
    let (points, lines) = table(text, "rate", RATES)?;
    let points = points.into_iter().map(|(t, v)| (t, Rate::from_bits_per_sec(v))).collect();
    Steps::new(points, end).map_err(|e| placed(e, &lines))
}

/// Times with delays, from CSV with the columns `time_s` and `delay_ms`, or others of their units.
///
/// # Errors
/// If a column is missing, a value is none, or times do not ascend.
pub fn delays(text: &str, interpolation: Interpolation, end: End) -> Result<DelayTrace, Broken> {
    let (points, lines) = table(text, "delay", DELAYS)?;
    if let Some(i) = points.iter().position(|p| p.1 > LONGEST.as_nanos()) {
        return broken(lines[i], "a delay of more than an hour");
    }
    let points: Vec<_> = points.into_iter().map(|(t, v)| (t, Duration::from_nanos(v))).collect();
    DelayTrace::new(&points, interpolation, end).map_err(|e| placed(e, &lines))
}

fn placed(e: TraceError, lines: &[usize]) -> Broken {
    let line = match e {
        TraceError::Empty => 0,
        TraceError::NotAscending(i) => lines.get(i).copied().unwrap_or(0),
        TraceError::NoPeriod | TraceError::NeverSends => lines.last().copied().unwrap_or(0),
    };
    Broken { line, message: e.to_string() }
}

type Points = Vec<(Duration, u64)>;

/// The rows of a table with the columns of time and of `what`, in base units, and the line of each.
fn table(text: &str, what: &str, units: &[(&str, u64)]) -> Result<(Points, Vec<usize>), Broken> {
    let mut rows = (1..)
        .zip(text.lines())
        .map(|(line, row)| (line, row.trim()))
        .filter(|(_, row)| !row.is_empty() && !row.starts_with('#'));
    let names = |units: &[(&str, u64)]| units.iter().map(|u| u.0).collect::<Vec<_>>().join(", ");
    let example = format!("time_s,{}", units[0].0);
    let Some((at, header)) = rows.next() else {
        return broken(0, format!("empty: begin with a header such as {example}"));
    };
    let columns: Vec<&str> = header.split(',').map(str::trim).collect();
    let find = |what: &str, units: &[(&str, u64)]| {
        let mut found = columns
            .iter()
            .enumerate()
            .filter_map(|(i, name)| units.iter().find(|u| u.0 == *name).map(|u| (i, u.1)));
        match (found.next(), found.next()) {
            (Some(column), None) => Ok(column),
            (None, _) => broken(
                at,
                format!("the header names no {what}: write one of {}, as in {example}", names(units)),
            ),
            _ => broken(at, format!("the header names two columns of {what}: leave one out")),
        }
    };
    let (time, value) = (find("time", TIMES)?, find(what, units)?);
    let (mut points, mut lines): (Points, _) = (Vec::new(), Vec::new());
    for (line, row) in rows {
        let fields: Vec<&str> = row.split(',').map(str::trim).collect();
        if fields.len() != columns.len() {
            let (n, all) = (fields.len(), columns.len());
            return broken(line, format!("{n} values, but the header has {all} columns"));
        }
        let read = |(column, unit): (usize, u64)| {
            let (word, name) = (fields[column], columns[column]);
            let number = Decimal::parse(word).and_then(|d| d.times(unit));
            number.ok_or_else(|| {
                let message = if word.starts_with('-') {
                    format!("{name} is {}, which is negative: write a number, 0 or more", shown(word))
                } else {
                    format!(
                        "{name} is {}, which is no number that fits: write a number, 0 or more",
                        shown(word)
                    )
                };
                Broken { line, message }
            })
        };
        points.push((Duration::from_nanos(read(time)?), read(value)?));
        lines.push(line);
        if lines.len() > MAX_LINES {
            return broken(line, format!("more than {MAX_LINES} lines"));
        }
    }
    if points.is_empty() {
        return broken(at, "there is no line after the header: write at least one");
    }
    Ok((points, lines))
}

/// A word of a file as messages show it.
fn shown(word: &str) -> String {
    let short: String = word.chars().take(40).collect();
    format!("{short:?}")
}

/// The rate that a table in a scenario asks for. `key` is that of the table.
pub(crate) fn resolve_rate(key: &str, spec: &TraceSpec, run: Duration) -> Result<Varying, Problem> {
    let file = File::of(key, spec, "rate")?;
    if let Some(i) = &spec.interpolation {
        return if *i == Interpolation::Hold && !file.mahimahi {
            steps(&file, spec, run)
        } else {
            Err(Problem::new(
                format!("{key}.interpolation"),
                "a rate holds until the next: leave this out (only delays interpolate)",
            ))
        };
    }
    if !file.mahimahi {
        return steps(&file, spec, run);
    }
    if spec.end.is_some_and(|e| e != EndSpec::Loop) {
        return Err(Problem::new(
            format!("{key}.end"),
            "a file of Mahimahi always begins anew: leave this out",
        ));
    }
    mahimahi(file.text).map(|o| Varying::Opportunities(Arc::new(o))).map_err(|e| file.problem(e))
}

fn steps(file: &File<'_>, spec: &TraceSpec, run: Duration) -> Result<Varying, Problem> {
    let steps = rates(file.text, end(spec)).map_err(|e| file.problem(e))?;
    file.long_enough(spec, steps.last(), run)?;
    Ok(Varying::Steps(Arc::new(steps)))
}

/// The delay that a table in a scenario asks for.
pub(crate) fn resolve_delay(key: &str, spec: &TraceSpec, run: Duration) -> Result<DelayTrace, Problem> {
    let file = File::of(key, spec, "delay")?;
    let trace =
        delays(file.text, spec.interpolation.unwrap_or_default(), end(spec)).map_err(|e| file.problem(e))?;
    file.long_enough(spec, trace.last(), run)?;
    Ok(trace)
}

fn end(spec: &TraceSpec) -> End {
    match spec.end {
        Some(EndSpec::Loop) => End::Loop,
        Some(EndSpec::Error | EndSpec::Hold) | None => End::Hold,
    }
}

/// A file that a scenario names, with its content.
struct File<'a> {
    key: String,
    name: &'a str,
    text: &'a str,
    mahimahi: bool,
}

impl<'a> File<'a> {
    fn of(key: &str, spec: &'a TraceSpec, what: &str) -> Result<Self, Problem> {
        let (name, mahimahi) = match (&spec.trace, &spec.mahimahi) {
            (Some(name), None) => (name, false),
            (None, Some(name)) if what == "rate" => (name, true),
            (None, Some(_)) => {
                let message = "a file of Mahimahi says when packets leave, not how long they travel: write trace = \
                               \"FILE.csv\"";
                return Err(Problem::new(format!("{key}.mahimahi"), message));
            }
            _ => return Err(Problem::new(key, "write either trace = \"FILE\" or mahimahi = \"FILE\"")),
        };
        let kind = if mahimahi { "mahimahi" } else { "trace" };
        let key = format!("{key}.{kind}");
        let Some(text) = &spec.text else {
            let message =
                format!("\"{name}\" cannot be read from here: write its content as text = \"\"\"…\"\"\"");
            return Err(Problem::new(key, message));
        };
        Ok(Self { key, name, text, mahimahi })
    }

    fn problem(&self, e: Broken) -> Problem {
        Problem { key: self.key.clone(), message: e.message, file: Some((self.name.to_owned(), e.line)) }
    }

    /// Refuses a trace that must not end before the run does.
    fn long_enough(&self, spec: &TraceSpec, last: Duration, run: Duration) -> Result<(), Problem> {
        if spec.end != Some(EndSpec::Error) || last >= run {
            return Ok(());
        }
        let message = format!(
            "the trace ends at {} s and the run at {} s: write end = \"hold\" or \"loop\", or a shorter duration",
            last.as_secs_f64(),
            run.as_secs_f64()
        );
        Err(Problem::new(self.key.clone(), message))
    }
}

/// A rate as a table with its content, which reads back to the same.
pub(crate) fn rate_spec(varying: &Varying) -> TraceSpec {
    let mut text = String::new();
    match varying {
        Varying::Opportunities(o) => {
            for ms in o.times() {
                let _ = writeln!(text, "{ms}");
            }
            TraceSpec { mahimahi: Some(CANONICAL.into()), text: Some(text), ..TraceSpec::default() }
        }
        Varying::Steps(steps) => {
            text.push_str("time_ns,rate_bit_s\n");
            for (t, rate) in steps.points() {
                let _ = writeln!(text, "{},{}", t.as_nanos(), rate.bits_per_sec());
            }
            let end = Some(end_spec(steps.end()));
            TraceSpec { trace: Some(CANONICAL.into()), text: Some(text), end, ..TraceSpec::default() }
        }
    }
}

/// A delay as a table with its content, which reads back to the same.
pub(crate) fn delay_spec(trace: &DelayTrace) -> TraceSpec {
    let mut text = "time_ns,delay_ns\n".to_owned();
    for (t, delay) in trace.points() {
        let _ = writeln!(text, "{},{}", t.as_nanos(), delay.as_nanos());
    }
    TraceSpec {
        trace: Some(CANONICAL.into()),
        text: Some(text),
        interpolation: Some(trace.interpolation()),
        end: Some(end_spec(trace.end())),
        ..TraceSpec::default()
    }
}

fn end_spec(end: End) -> EndSpec {
    match end {
        End::Hold => EndSpec::Hold,
        End::Loop => EndSpec::Loop,
    }
}

//! Rates and delays from trace files. A resolved scenario holds the content of the file, so that its hash covers the
//! content and the files are no longer needed.

use crate::error::Problem;
use crate::model::{EndSpec, FadeSpec, SeriesSpec, TraceSpec};
use skyhaul_base::Duration;
use skyhaul_path::Broken;
use skyhaul_path::delay::{DelayTrace, Interpolation};
use skyhaul_path::fade::{self, Series};
use skyhaul_path::rate::{self, End};

/// The name of canonical texts in messages.
const CANONICAL: &str = "trace";
/// The key that names a file with delays.
const DELAYS: &str = "trace";
/// The key that names a file with attenuations.
const FADES: &str = "trace";

/// Resolves the rate in a table of a scenario. `key` is that of the table.
pub(crate) fn resolve_rate(key: &str, spec: &TraceSpec, run: Duration) -> Result<rate::Config, Problem> {
    let file = File::of(key, spec)?;
    let no_end = rate::no_end(file.kind);
    if spec.interpolation.is_some_and(|i| i != Interpolation::Hold || no_end.is_some()) {
        let message = "rates are steps and never interpolated: leave this out (only delays interpolate)";
        return Err(Problem::new(format!("{key}.interpolation"), message));
    }
    if let (Some(why), Some(EndSpec::Error | EndSpec::Hold)) = (no_end, spec.end) {
        return Err(Problem::new(format!("{key}.end"), format!("{why}: leave this out")));
    }
    let rate = rate::read(file.kind, file.text, end(spec)).map_err(|e| file.problem(e))?;
    file.long_enough(spec, rate.last().unwrap_or_default(), run)?;
    Ok(rate)
}

/// Resolves the delay in a table of a scenario.
pub(crate) fn resolve_delay(key: &str, spec: &TraceSpec, run: Duration) -> Result<DelayTrace, Problem> {
    let file = File::of(key, spec)?;
    if file.kind != DELAYS {
        let message = format!("this file gives a rate, not a delay: write {DELAYS} = \"FILE.csv\"");
        return Err(Problem::new(file.key, message));
    }
    let interpolation = spec.interpolation.unwrap_or_default();
    let trace = DelayTrace::read(file.text, interpolation, end(spec)).map_err(|e| file.problem(e))?;
    file.long_enough(spec, trace.last(), run)?;
    Ok(trace)
}

/// Resolves the fade in a table with a file.
pub(crate) fn resolve_fade(key: &str, spec: &SeriesSpec, run: Duration) -> Result<Series, Problem> {
    let file_spec = TraceSpec {
        files: vec![(FADES, spec.trace.clone())],
        text: spec.text.clone(),
        interpolation: None,
        end: spec.end,
    };
    let file = File::of(key, &file_spec)?;
    let series =
        Series::read(file.text, end(&file_spec), spec.carrier.clone()).map_err(|e| file.problem(e))?;
    file.long_enough(&file_spec, series.last(), run)?;
    Ok(series)
}

/// A fade as a table with its content, which reads back as the same fade.
pub(crate) fn fade_spec(fade: &fade::Config) -> FadeSpec {
    let (fade::Config::Series(series), Some(carrier)) = (fade, fade.carrier()) else {
        return FadeSpec::Model(Box::new(fade.clone()));
    };
    FadeSpec::Series(Box::new(SeriesSpec {
        trace: CANONICAL.into(),
        text: Some(series.write()),
        end: Some(end_spec(series.end())),
        carrier: carrier.clone(),
    }))
}

fn end(spec: &TraceSpec) -> End {
    match spec.end {
        Some(EndSpec::Loop) => End::Loop,
        Some(EndSpec::Error | EndSpec::Hold) | None => End::Hold,
    }
}

/// A trace file of a scenario, with its content.
struct File<'a> {
    /// The full path of the key that names it.
    key: String,
    /// That key alone, which says what the file gives.
    kind: &'static str,
    name: &'a str,
    text: &'a str,
}

impl<'a> File<'a> {
    fn of(key: &str, spec: &'a TraceSpec) -> Result<Self, Problem> {
        let [(kind, name)] = spec.files.as_slice() else {
            let one = rate::NAMES.iter().map(|kind| format!("{kind} = \"FILE\"")).collect::<Vec<_>>();
            return Err(Problem::new(key, format!("write one of {}", one.join(", "))));
        };
        let key = format!("{key}.{kind}");
        let Some(text) = &spec.text else {
            let message =
                format!("\"{name}\" cannot be read from here: write its content as text = \"\"\"…\"\"\"");
            return Err(Problem::new(key, message));
        };
        Ok(Self { key, kind, name, text })
    }

    fn problem(&self, e: Broken) -> Problem {
        Problem { key: self.key.clone(), message: e.message, file: Some((self.name.to_owned(), e.line)) }
    }

    /// Refuses a trace that ends before the run although it must not.
    fn long_enough(&self, spec: &TraceSpec, last: Duration, run: Duration) -> Result<(), Problem> {
        if spec.end != Some(EndSpec::Error) || last >= run {
            return Ok(());
        }
        let message = format!(
            "the trace ends at {} s, but the run at {} s: write end = \"hold\" or \"loop\", or a shorter duration",
            last.as_secs_f64(),
            run.as_secs_f64()
        );
        Err(Problem::new(self.key.clone(), message))
    }
}

/// A rate trace as a table with its content, which reads back as the same rate.
pub(crate) fn rate_spec(rate: &rate::Config) -> TraceSpec {
    let Some((kind, text, end)) = rate.write() else { return TraceSpec::default() };
    TraceSpec {
        files: vec![(kind, CANONICAL.into())],
        text: Some(text),
        end: end.map(end_spec),
        ..TraceSpec::default()
    }
}

/// A delay as a table with its content, which reads back as the same delay.
pub(crate) fn delay_spec(trace: &DelayTrace) -> TraceSpec {
    TraceSpec {
        files: vec![(DELAYS, CANONICAL.into())],
        text: Some(trace.write()),
        interpolation: Some(trace.interpolation()),
        end: Some(end_spec(trace.end())),
    }
}

fn end_spec(end: End) -> EndSpec {
    match end {
        End::Hold => EndSpec::Hold,
        End::Loop => EndSpec::Loop,
    }
}

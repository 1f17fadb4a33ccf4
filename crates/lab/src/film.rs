//! A movie model from a video trace: `skyhaul video fit`, and `skyhaul.video` in Python.

use crate::error::LabError;
use serde_json::{Value, json};
use skyhaul_apps::film::fit::{Aggregates, Fit, fit};
pub use skyhaul_apps::film::movie::Mode;
use skyhaul_apps::film::movie::Movie;
use skyhaul_apps::film::{Pattern, Trace};
use skyhaul_study::files::read_text;
use std::fmt::Write as _;
use std::path::Path;

/// Frames per second of traces without times, and pattern of frame types of traces without types.
const DEFAULTS: (f64, &str) = (25.0, "IBBPBBPBBPBB");

/// A movie fitted to a trace.
#[derive(Debug)]
pub struct MovieFit {
    fit: Fit,
}

/// The name of a flow group as a scenario's header takes it without quotes.
///
/// # Errors
/// What to write, if the name has other characters or none.
pub fn flow_name(name: &str) -> Result<&str, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(plain) {
        return Ok(name);
    }
    Err(format!("{name:?} is not accepted as the name of a flow group: write letters, digits, - and _"))
}

/// Reads a trace and fits a movie to it; `mode` says whether the sizes of the frame types are correlated.
///
/// # Errors
/// If the file cannot be read, has a line that is no frame, or has too few frames.
pub fn fit_movie(path: &Path, mode: Mode) -> Result<MovieFit, LabError> {
    let read = |source| LabError::Read { path: path.to_owned(), source };
    let refuse = |line: usize, message: String| LabError::Trace { path: path.to_owned(), line, message };
    let text = read_text(path).map_err(read)?;
    let pattern = Pattern::parse(DEFAULTS.1).expect("a pattern");
    let trace = Trace::read(&text, &pattern, DEFAULTS.0).map_err(|e| refuse(e.line, e.message))?;
    Ok(MovieFit { fit: fit(&trace, mode).map_err(|e| refuse(0, e.to_string()))? })
}

impl MovieFit {
    /// The movie.
    #[must_use]
    pub fn movie(&self) -> &Movie {
        &self.fit.movie
    }

    /// The lines of a scenario that sends the movie in flows of the group `flow`, with the results of the fit as
    /// comments above.
    #[must_use]
    pub fn scenario(&self, flow: &str) -> String {
        let mut text: String =
            self.report().lines().map(|l| format!("# {l}").trim_end().to_owned() + "\n").collect();
        let movie = toml::to_string(&self.fit.movie).expect("a movie is a table");
        let _ = writeln!(text, "[flows.{flow}.app]\nkind = \"video\"\n\n[flows.{flow}.app.movie]");
        for line in movie.lines() {
            match line.strip_prefix('[') {
                Some(table) => {
                    let _ = writeln!(text, "[flows.{flow}.app.movie.{table}");
                }
                None => {
                    let _ = writeln!(text, "{line}");
                }
            }
        }
        text
    }

    /// The quality of the fit, as text. It compares the trace with as many frames drawn from the movie.
    #[must_use]
    pub fn report(&self) -> String {
        let Fit { trace, played, types, other_mode, movie } = &self.fit;
        let mut text = format!(
            "{} frames, {} per second, {}: {:.0} kbit/s\n",
            trace.frames,
            movie.frames,
            movie.gop,
            trace.mean * movie.frames * 8e-3
        );
        for t in types {
            let of = movie.of(t.kind);
            let (xi, sign) = of.map_or((0.0, "+"), |f| {
                (f.xi, if f.sign == skyhaul_apps::film::tes::Sign::Minus { "-" } else { "+" })
            });
            let step = match of.and_then(|f| f.step) {
                Some(step) => format!("step {step}"),
                None => format!("{} steps", of.and_then(|f| f.steps.as_ref()).map_or(0, Vec::len)),
            };
            let _ = writeln!(
                text,
                "{}: {} frames, mean {:.0} B, variation {:.2}, {} to {} B; TES{sign}, xi {xi}, {step}; \
                 autocorrelation error {:.3} (root mean square) over {} lags",
                t.kind.letter(),
                t.count,
                t.mean,
                t.variation,
                t.bounds.0,
                t.bounds.1,
                t.error,
                t.correlation.len()
            );
        }
        let row = |a: &Aggregates| {
            format!(
                "mean {:.0} B, variation {:.2}, groups of pictures {:.2}",
                a.mean, a.variation, a.group_variation
            )
        };
        let _ = writeln!(text, "the trace:          {}", row(trace));
        let _ = writeln!(text, "the fitted movie:   {}", row(played));
        let other = if movie.mode == Mode::Coupled { "independent" } else { "coupled" };
        let _ = writeln!(text, "groups of pictures with mode = \"{other}\": {other_mode:.2}");
        text.push_str(
            "The autocorrelation of a TES process decays exponentially, that of a film more slowly: where long-range dependence matters, replay the trace.\n",
        );
        text
    }

    /// All results of the fit.
    #[must_use]
    pub fn json(&self) -> Value {
        let Fit { trace, played, types, other_mode, movie } = &self.fit;
        let aggregates = |a: &Aggregates| {
            json!({
                "frames": a.frames, "mean_bytes": a.mean, "variation": a.variation,
                "largest_bytes": a.largest, "group_variation": a.group_variation,
            })
        };
        let one = |t: &skyhaul_apps::film::fit::Fitted| {
            json!({
                "type": t.kind.letter().to_string(), "frames": t.count, "mean_bytes": t.mean,
                "variation": t.variation, "least_bytes": t.bounds.0, "most_bytes": t.bounds.1,
                "autocorrelation_error": t.error,
                "autocorrelation_trace": t.correlation.iter().map(|c| c.0).collect::<Vec<_>>(),
                "autocorrelation_model": t.correlation.iter().map(|c| c.1).collect::<Vec<_>>(),
            })
        };
        json!({
            "movie": movie,
            "types": types.iter().map(one).collect::<Vec<_>>(),
            "trace": aggregates(trace),
            "played": aggregates(played),
            "group_variation_other_mode": other_mode,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_scenario::{Document, no_files};

    /// Sizes that rise and fall over 40 groups of pictures.
    fn trace() -> String {
        let mut text = String::from("# made by a test\n");
        for n in 0..2400_u32 {
            let (kind, base) = match n % 12 {
                0 => ('I', 3000),
                i if i % 3 == 1 => ('P', 1500),
                _ => ('B', 900),
            };
            let wave = (f64::from(n) / 75.0).sin() * 0.4 + 1.0;
            let noise = f64::from(n.wrapping_mul(2_654_435_761) >> 24) / 2560.0 + 0.95;
            let _ = writeln!(text, "{n} {kind} {} {}", 40 * n, (f64::from(base) * wave * noise) as u32);
        }
        text
    }

    #[test]
    fn a_name_that_a_header_does_not_take_is_refused() {
        assert_eq!(flow_name("film-2_b"), Ok("film-2_b"));
        for name in ["", "a b", "a.b", "a]\n[links.x", "é"] {
            let why = flow_name(name).unwrap_err();
            assert!(why.contains("write letters, digits, - and _") && !why.contains('\n'), "{why}");
        }
    }

    #[test]
    fn a_fitted_movie_can_be_put_into_a_scenario() {
        let dir = std::env::temp_dir().join(format!("skyhaul-film-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join("film.txt");
        std::fs::write(&file, trace()).unwrap();
        for mode in [Mode::Independent, Mode::Coupled] {
            let fitted = fit_movie(&file, mode).unwrap();
            let text = format!(
                "duration = \"1 s\"\n[links.sat]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n{}",
                fitted.scenario("film")
            );
            let scenario = Document::parse("t.toml", &text, &no_files).and_then(|d| d.resolve());
            let scenario = scenario.unwrap_or_else(|e| panic!("{e}\n{text}"));
            let offered = scenario.flows[0].app.offered().unwrap();
            // Frames of about 1300 bytes, 25 times a second, each with a header of 16 bytes.
            assert!((200e3..330e3).contains(&offered), "{offered}");
            assert!(fitted.json()["types"].as_array().unwrap().len() == 3 && fitted.report().contains("TES"));
        }
        std::fs::write(&file, "1 I 0 100\n2 P 40 -3\n").unwrap();
        let e = fit_movie(&file, Mode::Independent).unwrap_err().to_string();
        assert!(e.contains("film.txt:2: \"-3\" is not a frame size"), "{e}");
        std::fs::remove_dir_all(&dir).unwrap();
        assert!(fit_movie(&file, Mode::Independent).unwrap_err().to_string().starts_with("cannot read"));
    }
}

//! A page with the curves of several worlds, and all samples.

use super::measure::Point;
use super::runs::Ran;
use crate::args::CompareArgs;
use crate::stop::Stop;
use skyhaul_study::figure::{Row, overlay};
use skyhaul_study::report;
use std::path::Path;

/// Writes `worlds.html` and `samples.csv` into a folder.
pub(super) fn write(
    args: &CompareArgs,
    folder: &Path,
    ran: &Ran,
    table: &[Vec<String>],
    doubts: &[String],
) -> Result<(), Stop> {
    let figures = [
        overlay("cwnd", "Congestion window", ("Time (s)", "cwnd (segments)"), rows(ran, |s| s.cwnd)),
        overlay(
            "acked",
            "Data acknowledged",
            ("Time (s)", "Acknowledged (MB)"),
            rows(ran, |s| Some(s.acked / 1e6)),
        ),
    ];
    let seeds = match ran.seeds[..] {
        [only] => format!("seed {only}"),
        [first, .., last] => format!("seeds {first} to {last}"),
        [] => "no seed".to_owned(),
    };
    let mut paragraphs = vec![format!(
        "Scenario {}; {seeds}. The curves show the TCP flows of the first seed. Intervals of 95 % over the seeds; differences are \
         paired by seed.",
        args.a.display(),
    )];
    paragraphs.extend(doubts.iter().cloned());
    let page = report::plain("One scenario in several worlds", &paragraphs, table, &figures);
    let to = folder.join("worlds.html");
    std::fs::write(&to, page).map_err(|e| Stop::write(&to, &e))?;
    let to = folder.join("samples.csv");
    let fail = |e: csv::Error| Stop::bad(format!("cannot write {}: {e}", to.display()));
    let mut w = csv::Writer::from_path(&to).map_err(fail)?;
    w.write_record(["world", "seed", "time_s", "flow", "cwnd_segments", "acked_bytes"]).map_err(fail)?;
    for (e, s, d) in &ran.done {
        for point in &d.samples {
            let record = [
                ran.entries[*e].label.clone(),
                ran.seeds[*s].to_string(),
                point.at.to_string(),
                point.flow.to_string(),
                point.cwnd.map_or_else(String::new, |w| w.to_string()),
                point.acked.to_string(),
            ];
            w.write_record(record).map_err(fail)?;
        }
    }
    w.flush().map_err(|e| Stop::write(&to, &e))
}

/// The curves of the first seed; those of several seeds would hide each other.
fn rows(ran: &Ran, y: impl Fn(&Point) -> Option<f64>) -> Vec<Row> {
    let first = ran.done.iter().filter(|(_, s, _)| *s == 0);
    let points = first.flat_map(|(e, _, d)| d.samples.iter().map(move |s| (*e, s)));
    let row = |(e, s): (usize, &Point)| {
        Some(Row {
            x: Some(s.at),
            at: String::new(),
            left: None,
            right: None,
            y: y(s)?,
            low: None,
            high: None,
            series: ran.entries[e].label.clone(),
            reading: String::new(),
            flow: Some(s.flow),
            outline: None,
        })
    };
    points.filter_map(row).collect()
}

//! Traces of Mahimahi: when packets could leave on the links of a run.
//!
//! What is written is what a link offered, not what was used of it: its rate, as it was given, as a trace had it and as
//! events changed it, without the times while it was down. Nothing of it is measured, so that no series is needed.

use super::recorded::{Recorded, runs};
use crate::error::{ExportError, LabError};
use skyhaul_base::Instant;
use skyhaul_path::rate::{self, Saturated};
use skyhaul_scenario::resolved::{Change, Direction, Event};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Most lines of a file.
const MOST: usize = 20_000_000;

/// Writes `links.NAME.DIRECTION.mahimahi` for every direction of a link that has a rate, of every run, under `out`;
/// returns the files.
///
/// # Errors
/// If no link has a rate, a trace would be too long, or something cannot be read or written.
pub fn mahimahi(results: &Path, out: &Path) -> Result<Vec<PathBuf>, LabError> {
    let mut written = Vec::new();
    for run in runs(results)? {
        let folder = out.join(run.folder.strip_prefix(results).unwrap_or(Path::new("")));
        fs::create_dir_all(&folder).map_err(LabError::write(&folder))?;
        let before = written.len();
        for (i, link) in run.scenario().links.iter().enumerate() {
            for (forward, way, direction) in
                [(true, "forward", &link.forward), (false, "reverse", &link.reverse)]
            {
                let changes = run.scenario().events.iter().filter(|c| (c.link, c.forward) == (i, forward));
                let name = format!("links.{}.{way}", link.name);
                let Some(times) = opportunities(&run, direction, changes, &name)? else { continue };
                let path = folder.join(format!("{name}.mahimahi"));
                fs::write(&path, times).map_err(LabError::write(&path))?;
                written.push(path);
            }
        }
        if written.len() == before {
            return Err(ExportError::NoRate { folder: run.folder }.into());
        }
    }
    Ok(written)
}

/// The lines of a trace; none for a transmitter that is infinitely fast at any time.
fn opportunities<'a>(
    run: &Recorded,
    direction: &Direction,
    changes: impl Iterator<Item = &'a Event>,
    name: &str,
) -> Result<Option<String>, ExportError> {
    let end = Instant::ZERO + run.scenario().duration;
    let model = |rate: &rate::Config| rate.mean().map(|_| Saturated::new(rate));
    let Some(mut transmitter) = model(&direction.rate) else { return Ok(None) };
    let (mut up, mut now, mut lines, mut text) = (direction.up, Instant::ZERO, 0usize, String::new());
    let mut changes = changes.peekable();
    loop {
        // A change follows what else happens at its instant, so what begins then begins before it.
        while let Some(event) = changes.next_if(|c| !up || Instant::ZERO + c.at < now) {
            now = now.max(Instant::ZERO + event.at);
            match &event.change {
                Change::Up(yes) => up = *yes,
                Change::Rate(rate) => match model(rate) {
                    Some(new) => transmitter = new,
                    None => return Ok(None),
                },
                Change::Delay(_) | Change::Error(_) | Change::Limit(_) => {}
            }
        }
        if !up {
            break;
        }
        let left = transmitter.next(now);
        if left > end {
            break;
        }
        now = left;
        lines += 1;
        if lines > MOST {
            return Err(ExportError::TooLong { name: name.to_owned(), most: MOST });
        }
        // The first whole millisecond at which it has left.
        let _ = writeln!(text, "{}", left.as_nanos().div_ceil(1_000_000));
    }
    if lines == 0 {
        return Err(ExportError::Empty { name: name.to_owned() });
    }
    Ok(Some(text))
}

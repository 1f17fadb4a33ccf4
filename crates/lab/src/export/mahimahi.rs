//! Mahimahi traces: the times when packets could leave on the links of a run.
//!
//! A trace holds the capacity of a link, not its use: the configured rate, with trace files, fades, events and down times.
//! Nothing of it is measured, so no series is needed.

use super::recorded::{Recorded, runs};
use crate::error::{ExportError, LabError};
use skyhaul_base::Instant;
use skyhaul_path::Agenda;
use skyhaul_path::rate::Saturated;
use skyhaul_scenario::resolved::{Change, Direction};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Largest number of lines of a file.
const MOST: usize = 20_000_000;

/// Writes `links.NAME.DIRECTION.mahimahi` for every direction of a link that has a rate, of every run, under `out`;
/// returns the files.
///
/// # Errors
/// If no link of a run has a rate, a link never transmits, a trace would be too long, or a file cannot be read or written.
pub fn mahimahi(results: &Path, out: &Path) -> Result<Vec<PathBuf>, LabError> {
    let mut written = Vec::new();
    for run in runs(results)? {
        let folder = out.join(run.folder.strip_prefix(results).unwrap_or(Path::new("")));
        fs::create_dir_all(&folder).map_err(LabError::write(&folder))?;
        let before = written.len();
        for (i, link) in run.scenario().links.iter().enumerate() {
            for (forward, word, direction) in
                [(true, "forward", &link.forward), (false, "reverse", &link.reverse)]
            {
                let seed = run.case.seed;
                let (agenda, first) = run.scenario().agenda(seed, |l, f| (l, f) == (i, forward));
                let name = format!("links.{}.{word}", link.name);
                let Some(times) = opportunities(&run, direction, agenda, first, &name)? else { continue };
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

/// The transmitter of a link, and whether it may transmit.
struct Sending {
    transmitter: Option<Saturated>,
    up: bool,
    visible: bool,
}

impl Sending {
    fn change(&mut self, change: &Change) {
        match change {
            Change::Up(up) => self.up = *up,
            Change::Visible(visible) => self.visible = *visible,
            Change::Rate(rate) => self.transmitter = rate.mean().map(|_| Saturated::new(rate)),
            Change::Delay(_)
            | Change::Error(_)
            | Change::Limit(_)
            | Change::Fade(_)
            | Change::Path(..)
            | Change::Handover(_) => {}
        }
    }

    fn is_up(&self) -> bool {
        self.up && self.visible
    }
}

/// The lines of a trace; `None` if the transmitter is infinitely fast at any time.
fn opportunities(
    run: &Recorded,
    direction: &Direction,
    mut agenda: Agenda,
    first: Vec<(u32, Change)>,
    name: &str,
) -> Result<Option<String>, ExportError> {
    let end = Instant::ZERO + run.scenario().duration;
    let mut sending = Sending { transmitter: None, up: true, visible: true };
    sending.change(&Change::Rate(direction.rate.clone()));
    first.iter().for_each(|(_, change)| sending.change(change));
    let (mut now, mut lines, mut text) = (Instant::ZERO, 0usize, String::new());
    loop {
        // A change follows what else happens at its instant, so what begins then begins before it.
        while agenda.next() <= end && (!sending.is_up() || agenda.next() < now) {
            now = now.max(agenda.next());
            if let Some((_, change)) = agenda.take(now) {
                sending.change(&change);
            }
        }
        let Some(transmitter) = &mut sending.transmitter else { return Ok(None) };
        if !(sending.up && sending.visible) {
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

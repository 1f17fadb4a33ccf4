//! Progress bars, invisible if standard error is not a terminal.

use crate::interrupt;
use crate::output::warn;
use indicatif::{ProgressBar, ProgressStyle};
use skyhaul_lab::cases::Case;
use skyhaul_lab::clock::Stopwatch;
use skyhaul_lab::run::RunObserver;
use skyhaul_lab::text::{seconds, short};
use skyhaul_study::run::Progress;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A bar with this number of steps.
pub(crate) fn progress(length: u64) -> ProgressBar {
    let bar = ProgressBar::new(length);
    let style = ProgressStyle::with_template("{bar:40} {percent:>3} %  {elapsed} of about {duration}  {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// Shows runs on the terminal; Ctrl-C stops them.
#[derive(Debug)]
pub(crate) struct Runs {
    bar: ProgressBar,
    /// The duration of a single run, s.
    duration: Option<f64>,
    watch: Stopwatch,
}

impl Runs {
    /// Shows the share of the work that is done.
    pub(crate) fn new() -> Self {
        interrupt::listen();
        Self { bar: progress(0), duration: None, watch: Stopwatch::start() }
    }
    /// As [`Self::new`]; for a single run also its simulated time.
    pub(crate) fn of(cases: &[Case]) -> Self {
        let duration = match cases {
            [one] => Some(one.scenario.duration.as_secs_f64()),
            _ => None,
        };
        Self { duration, ..Self::new() }
    }
}

impl RunObserver for Runs {
    fn begin(&self, steps: u64) {
        self.bar.set_length(steps);
    }
    fn step(&self) {
        self.bar.inc(1);
        if let (Some(duration), Some(steps)) = (self.duration, self.bar.length()) {
            let simulated = duration * self.bar.position() as f64 / steps.max(1) as f64;
            self.bar.set_message(simulated_time(simulated, duration, self.watch.elapsed().as_secs_f64()));
        }
    }
    fn end(&self) {
        self.bar.finish_and_clear();
    }
    fn stopped(&self) -> bool {
        interrupt::requested()
    }
}

/// The simulated time of a run, and its rate after `took` seconds of work; all times in seconds.
fn simulated_time(simulated: f64, duration: f64, took: f64) -> String {
    let rate =
        if took > 0.0 { format!(", {} times real time", short(simulated / took)) } else { String::new() };
    format!("{} of {} simulated{rate}", seconds(simulated), seconds(duration))
}

/// Shows a study on the terminal.
#[derive(Debug)]
pub(crate) struct Bar(ProgressBar);

impl Bar {
    pub(crate) fn new() -> Self {
        Self(progress(0))
    }
}

impl Progress for Bar {
    fn begin(&self, total: usize, cached: usize) {
        self.0.set_length(total as u64);
        self.0.set_position(cached as u64);
        self.0.reset_eta();
    }
    fn cell(&self, done: usize, _: usize, label: &str) {
        self.0.set_position(done as u64);
        self.0.set_message(label.to_owned());
    }
    fn warn(&self, message: &str) {
        self.0.suspend(|| warn(message));
    }
    fn end(&self) {
        self.0.finish_and_clear();
    }
}

/// Shows the progress of many studies: on a terminal as a bar, elsewhere as an occasional line.
#[derive(Debug)]
pub(crate) struct BatchProgress {
    bar: ProgressBar,
    watch: Stopwatch,
    log: Mutex<Log>,
}

/// The state of the lines that appear without a terminal.
#[derive(Debug, Default)]
struct Log {
    /// Cells that the cache had at the start.
    cached: usize,
    /// Time from the start of the command to the first cell, s: the planning before it says nothing of how long a cell takes.
    began: u64,
    /// Time of the last line, s.
    last: u64,
}

/// Time between lines without a terminal, s.
const LOG_INTERVAL: u64 = 30;

impl BatchProgress {
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::new(0);
        let style = "{bar:30} {pos} of {len} cells  {elapsed}, about {eta} left  {wide_msg}";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        Self { bar, watch: Stopwatch::start(), log: Mutex::default() }
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next line, if there is no terminal and the last line is old enough.
    fn line(&self, done: usize, total: usize) -> Option<String> {
        let now = self.watch.elapsed().as_secs();
        let mut log = self.log();
        if !self.bar.is_hidden() || now < log.last + LOG_INTERVAL {
            return None;
        }
        log.last = now;
        let ran = done.saturating_sub(log.cached).max(1);
        let left = (now - log.began) * (total - done) as u64 / ran as u64;
        Some(format!("{done} of {total} cells, {now} s, about {left} s left"))
    }
}

impl Progress for BatchProgress {
    fn begin(&self, total: usize, cached: usize) {
        self.bar.set_length(total as u64);
        self.bar.set_position(cached as u64);
        self.bar.reset_eta();
        let began = self.watch.elapsed().as_secs();
        *self.log() = Log { cached, began, last: began };
    }
    fn cell(&self, done: usize, total: usize, label: &str) {
        self.bar.set_position(done as u64);
        self.bar.set_message(label.to_owned());
        if let Some(line) = self.line(done, total) {
            warn(&line);
        }
    }
    fn warn(&self, message: &str) {
        self.bar.suspend(|| warn(message));
    }
    fn end(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_progress_of_a_run_names_its_simulated_time_and_its_rate() {
        assert_eq!(simulated_time(15.0, 60.0, 2.0), "15 s of 60 s simulated, 7.5 times real time");
        assert_eq!(simulated_time(0.0, 60.0, 0.0), "0 s of 60 s simulated");
    }
}

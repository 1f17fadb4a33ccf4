//! Attenuation that follows a file.

use super::Invalid;
use super::carrier;
use super::model::{Model, Sky, Weather};
use crate::table;
use crate::trace::{Broken, End, TraceError, broken};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Write;
use skyhaul_base::{Duration, Instant, Rng};

/// The column of attenuations in a file, and how many times 1e-6 dB its unit is.
const ATTENUATIONS: &[(&str, u64)] = &[("attenuation_dB", 1_000_000)];
/// The largest attenuation of a file, 1000 dB, in units of 1e-6 dB.
const MOST: u64 = 1_000 * ATTENUATIONS[0].1;

/// Times and attenuations, each of which holds until the next. Before the first time the first one holds. With
/// [`End::Loop`] the last time is the period, and its attenuation is unused, unless it is the only one.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Nanoseconds and 1e-6 dB; times ascend.
    points: Arc<Vec<(u64, u64)>>,
    end: End,
    /// The carrier that fades.
    carrier: carrier::Config,
}

impl Series {
    /// Reads CSV with the columns `time_s`, or another of time, and `attenuation_dB`.
    ///
    /// # Errors
    /// If a column is missing, a value is invalid, or times do not ascend.
    pub fn read(text: &str, end: End, carrier: carrier::Config) -> Result<Self, Broken> {
        let (points, lines) = table::read(text, "attenuation", ATTENUATIONS)?;
        if let Some(i) = points.iter().position(|p| p.1 > MOST) {
            return broken(lines[i], "an attenuation of more than 1000 dB");
        }
        let placed = |e| Err(Broken::placed(e, &lines));
        if let Some(i) = points.windows(2).position(|w| w[1].0 <= w[0].0) {
            return placed(TraceError::NotAscending(i + 1));
        }
        if end == End::Loop && points.last().is_some_and(|p| p.0.is_zero()) {
            return placed(TraceError::NoPeriod);
        }
        let points = points.into_iter().map(|(t, a)| (t.as_nanos(), a)).collect();
        Ok(Self { points: Arc::new(points), end, carrier })
    }

    /// Equivalent CSV.
    #[must_use]
    pub fn write(&self) -> String {
        let mut text = String::from("time_ns,attenuation_dB\n");
        for (t, a) in self.points.iter() {
            let _ = writeln!(text, "{t},{}.{:06}", a / MICRO, a % MICRO);
        }
        text
    }

    /// What happens after the last time.
    #[must_use]
    pub fn end(&self) -> End {
        self.end
    }

    /// The last time.
    #[must_use]
    pub fn last(&self) -> Duration {
        Duration::from_nanos(self.points.last().map_or(0, |p| p.0))
    }

    /// How long the attenuation of each point holds within one pass, in nanoseconds, and that attenuation.
    fn spans(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.points.iter().enumerate().map(|(i, &(t, a))| {
            let from = if i == 0 { 0 } else { t };
            (self.points.get(i + 1).map_or(from, |next| next.0) - from, a)
        })
    }
}

/// Units of 1e-6 dB in 1 dB.
const MICRO: u64 = 1_000_000;

impl Model for Series {
    type Run = Run;

    fn validate(&self) -> Result<(), Invalid> {
        self.carrier.validate()
    }
    fn carrier(&self) -> Option<&carrier::Config> {
        Some(&self.carrier)
    }
    fn carrier_mut(&mut self) -> Option<&mut carrier::Config> {
        Some(&mut self.carrier)
    }
    fn shared(&self) -> bool {
        false
    }
    /// The fraction of the time up to the last point: what holds after it is not counted.
    fn exceeded(&self, a: f64) -> f64 {
        let all: u64 = self.spans().map(|s| s.0).sum();
        if all == 0 {
            // A single point, which holds for ever.
            let only = self.points.last().map_or(0, |p| p.1);
            return f64::from(u8::from(only as f64 / MICRO as f64 > a));
        }
        let above: u64 = self.spans().filter(|s| s.1 as f64 / MICRO as f64 > a).map(|s| s.0).sum();
        above as f64 / all as f64
    }
    fn loss(&self) -> f64 {
        0.0
    }
    fn words(&self) -> String {
        "attenuation of a file".into()
    }
    /// A series draws nothing.
    fn run(&self, _: Rng) -> Run {
        let mut run =
            Run { points: Arc::clone(&self.points), end: self.end, begin: 0, at: 0, next: Instant::MAX };
        run.next = run.following();
        run
    }
}

/// A running series.
#[derive(Clone, Debug)]
pub struct Run {
    points: Arc<Vec<(u64, u64)>>,
    end: End,
    /// When the current pass began, nanoseconds.
    begin: u64,
    /// The current point.
    at: usize,
    next: Instant,
}

impl Run {
    /// When the next point begins to hold.
    fn following(&self) -> Instant {
        match (self.points.get(self.at + 1), self.end) {
            (Some(p), _) => Instant::from_nanos(self.begin.saturating_add(p.0)),
            (None, End::Hold | End::Loop) => Instant::MAX,
        }
    }
}

impl Sky for Run {
    fn weather(&self) -> Weather {
        let a = self.points.get(self.at).map_or(0, |p| p.1);
        Weather { attenuation: a as f64 / MICRO as f64, loss: 0.0 }
    }
    fn next(&self) -> Instant {
        self.next
    }
    fn step(&mut self) {
        self.at += 1;
        // The last time of a repeating series is the first of its next pass.
        if self.end == End::Loop && self.at + 1 == self.points.len() {
            self.begin = self.next.as_nanos();
            self.at = 0;
        }
        self.next = self.following();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(text: &str, end: End) -> Result<Series, Broken> {
        Series::read(text, end, carrier::Config::default())
    }
    fn walk(text: &str, end: End, steps: usize) -> Vec<(u64, f64)> {
        let mut run = series(text, end).unwrap().run(Rng::stream(1, "x"));
        let mut seen = alloc::vec![(0, run.weather().attenuation)];
        for _ in 0..steps {
            let at = run.next();
            if at == Instant::MAX {
                break;
            }
            run.step();
            seen.push((at.as_nanos() / 1_000_000_000, run.weather().attenuation));
        }
        seen
    }

    #[test]
    fn each_value_holds_until_the_next() {
        let text = "time_s,attenuation_dB\n5,0.5\n10,3.25\n12,0\n";
        assert_eq!(walk(text, End::Hold, 9), [(0, 0.5), (10, 3.25), (12, 0.0)]);
        // A period of 12 s: the attenuation of the last line is not used.
        assert_eq!(walk(text, End::Loop, 4), [(0, 0.5), (10, 3.25), (12, 0.5), (22, 3.25), (24, 0.5)]);
        let s = series(text, End::Hold).unwrap();
        assert_eq!((s.exceeded(0.4), s.exceeded(1.0), s.exceeded(4.0)), (1.0, 2.0 / 12.0, 0.0));
        assert_eq!(series(&s.write(), End::Hold).unwrap(), s);
    }

    #[test]
    fn one_value_holds_for_ever() {
        let text = "time_s,attenuation_dB\n3,1.5\n";
        assert_eq!(walk(text, End::Hold, 9), [(0, 1.5)]);
        assert_eq!(walk(text, End::Loop, 9), [(0, 1.5)]);
        assert_eq!(series(text, End::Hold).unwrap().exceeded(1.0), 1.0);
    }

    #[test]
    fn files_without_sense_are_refused_with_their_line() {
        let line = |text, end| series(text, end).unwrap_err().line;
        assert_eq!(line("time_s,attenuation_dB\n1,0\n1,2\n", End::Hold), 3);
        assert_eq!(line("time_s,attenuation_dB\n0,1\n", End::Loop), 2);
        assert_eq!(line("time_s,attenuation_dB\n0,1\n1,-2\n", End::Hold), 3);
        assert_eq!(line("time_s,attenuation_dB\n0,1001\n", End::Hold), 2);
        assert_eq!(line("time_s,loss\n0,1\n", End::Hold), 1);
    }
}

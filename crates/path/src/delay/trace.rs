//! A delay that follows a trace.

use super::LONGEST;
use super::model::Model;
use crate::table;
use crate::trace::{Broken, End, TraceError, broken};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use skyhaul_base::{Duration, Instant, Rng};

/// Columns of delays in a file, and nanoseconds per unit.
const DELAYS: &[(&str, u64)] =
    &[("delay_s", 1_000_000_000), ("delay_ms", 1_000_000), ("delay_us", 1_000), ("delay_ns", 1)];

/// What lies between two lines of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "InterpolationSpec"))]
pub enum Interpolation {
    /// The earlier value.
    #[default]
    Hold,
    /// A straight line.
    Linear,
}

/// Times and delays. The first delay also holds before the first time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelayTrace {
    /// Nanoseconds; times ascend.
    points: Vec<(u64, u64)>,
    interpolation: Interpolation,
    end: End,
}

impl DelayTrace {
    /// A delay for each time. With [`End::Loop`] the last time is the period; its value is the target of
    /// [`Interpolation::Linear`] and unused otherwise.
    ///
    /// # Errors
    /// If there is no point, times do not ascend, or a period is 0.
    pub fn new(
        points: &[(Duration, Duration)],
        interpolation: Interpolation,
        end: End,
    ) -> Result<Self, TraceError> {
        if let Some(i) = points.windows(2).position(|w| w[1].0 <= w[0].0) {
            return Err(TraceError::NotAscending(i + 1));
        }
        let points: Vec<(u64, u64)> = points.iter().map(|(t, d)| (t.as_nanos(), d.as_nanos())).collect();
        match points.last() {
            None => Err(TraceError::Empty),
            Some((0, _)) if end == End::Loop => Err(TraceError::NoPeriod),
            Some(_) => Ok(Self { points, interpolation, end }),
        }
    }

    /// Reads CSV with the columns `time_s` and `delay_ms`, or others of their units.
    ///
    /// # Errors
    /// As [`Self::new`], and if a column is missing, a value is invalid, or a delay exceeds [`LONGEST`].
    pub fn read(text: &str, interpolation: Interpolation, end: End) -> Result<Self, Broken> {
        let (points, lines) = table::read(text, "delay", DELAYS)?;
        if let Some(i) = points.iter().position(|p| p.1 > LONGEST.as_nanos()) {
            return broken(lines[i], "a delay of more than an hour");
        }
        let points: Vec<_> = points.into_iter().map(|(t, v)| (t, Duration::from_nanos(v))).collect();
        Self::new(&points, interpolation, end).map_err(|e| Broken::placed(e, &lines))
    }

    /// Equivalent CSV.
    #[must_use]
    pub fn write(&self) -> String {
        let mut text = String::from("time_ns,delay_ns\n");
        for (t, delay) in &self.points {
            let _ = writeln!(text, "{t},{delay}");
        }
        text
    }

    /// Times and delays.
    pub fn points(&self) -> impl Iterator<Item = (Duration, Duration)> + '_ {
        self.points.iter().map(|&(t, d)| (Duration::from_nanos(t), Duration::from_nanos(d)))
    }

    /// What lies between two points.
    #[must_use]
    pub fn interpolation(&self) -> Interpolation {
        self.interpolation
    }

    /// What happens after the last time.
    #[must_use]
    pub fn end(&self) -> End {
        self.end
    }

    /// The time of the last point.
    #[must_use]
    pub fn last(&self) -> Duration {
        Duration::from_nanos(self.points.last().map_or(0, |p| p.0))
    }

    /// The minimum of all delays that are used.
    #[must_use]
    pub fn least(&self) -> Duration {
        // The last of several points of a trace that repeats and holds its values only ends the period.
        let unused =
            self.points.len() > 1 && (self.end, self.interpolation) == (End::Loop, Interpolation::Hold);
        let used = self.points.iter().rev().skip(unused.into());
        Duration::from_nanos(used.map(|p| p.1).min().unwrap_or(0))
    }

    /// The delay at a time, rounded down to nanoseconds.
    #[must_use]
    pub fn at(&self, t: Instant) -> Duration {
        let t = match self.end {
            End::Hold => t.as_nanos(),
            End::Loop => t.as_nanos() % self.last().as_nanos().max(1),
        };
        let after = self.points.partition_point(|p| p.0 <= t);
        let before = self.points[after.saturating_sub(1)];
        let next = self.points.get(after).filter(|_| after > 0);
        let delay = match (self.interpolation, next) {
            (Interpolation::Linear, Some(next)) => {
                let (span, gone) = (u128::from(next.0 - before.0), u128::from(t - before.0));
                let sum = u128::from(before.1) * (span - gone) + u128::from(next.1) * gone;
                (sum / span) as u64
            }
            _ => before.1,
        };
        Duration::from_nanos(delay)
    }
}

impl Model for DelayTrace {
    fn base(&self) -> Duration {
        self.least()
    }
    fn spread(&self) -> Duration {
        Duration::ZERO
    }
    fn base_at(&self, departure: Instant) -> Duration {
        self.at(departure)
    }
    fn sample(&self, departure: Instant, _: &mut Rng) -> Duration {
        self.at(departure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(
        points: &[(u64, u64)],
        interpolation: Interpolation,
        end: End,
    ) -> Result<DelayTrace, TraceError> {
        let points: Vec<_> =
            points.iter().map(|&(t, d)| (Duration::from_millis(t), Duration::from_millis(d))).collect();
        DelayTrace::new(&points, interpolation, end)
    }
    fn at(trace: &DelayTrace, ms: u64) -> u64 {
        trace.at(Instant::from_nanos(ms * 1_000_000)).as_nanos() / 1_000_000
    }

    #[test]
    fn it_holds_or_runs_straight_and_ends_or_repeats() {
        let points = [(10, 100), (20, 200), (40, 100)];
        let values = |i, e| [0, 10, 15, 20, 30, 39, 40, 55].map(|t| at(&trace(&points, i, e).unwrap(), t));
        assert_eq!(values(Interpolation::Hold, End::Hold), [100, 100, 100, 200, 200, 200, 100, 100]);
        assert_eq!(values(Interpolation::Hold, End::Loop), [100, 100, 100, 200, 200, 200, 100, 100]);
        assert_eq!(values(Interpolation::Linear, End::Hold), [100, 100, 150, 200, 150, 105, 100, 100]);
        assert_eq!(values(Interpolation::Linear, End::Loop), [100, 100, 150, 200, 150, 105, 100, 150]);
        let repeats = trace(&points, Interpolation::Hold, End::Loop).unwrap();
        assert_eq!((at(&repeats, 65), at(&repeats, 4_025)), (200, 200));
        assert_eq!(repeats.least(), Duration::from_millis(100));
    }

    #[test]
    fn the_least_delay_is_one_that_is_used() {
        let points = [(10, 100), (20, 200), (40, 50)];
        let least = |points: &[_], i, e| trace(points, i, e).unwrap().least();
        assert_eq!(least(&points, Interpolation::Hold, End::Loop), Duration::from_millis(100));
        assert_eq!(least(&points, Interpolation::Hold, End::Hold), Duration::from_millis(50));
        assert_eq!(least(&points, Interpolation::Linear, End::Loop), Duration::from_millis(50));
        assert_eq!(least(&[(40, 50)], Interpolation::Hold, End::Loop), Duration::from_millis(50));
    }

    #[test]
    fn traces_without_sense_are_refused() {
        let refused = |points: &[(u64, u64)], end| trace(points, Interpolation::Hold, end).unwrap_err();
        assert_eq!(refused(&[], End::Hold), TraceError::Empty);
        assert_eq!(refused(&[(5, 1), (5, 2)], End::Hold), TraceError::NotAscending(1));
        assert_eq!(refused(&[(0, 1)], End::Loop), TraceError::NoPeriod);
    }
}

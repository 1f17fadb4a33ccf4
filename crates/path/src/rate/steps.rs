//! A rate that holds until the next one.

use super::model::{Model, Sending};
use crate::table;
use crate::trace::{Broken, End, TraceError};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Write;
use skyhaul_base::{Duration, Instant, Rate};

/// Bits are counted in units of 1e-9, so that bits over bit/s are nanoseconds.
const UNIT: u128 = 1_000_000_000;

/// Columns of rates in a file, and bit/s per unit.
const RATES: &[(&str, u64)] =
    &[("rate_bit_s", 1), ("rate_kbit_s", 1_000), ("rate_mbit_s", 1_000_000), ("rate_gbit_s", 1_000_000_000)];

/// Times and rates. Before the first time the first rate holds. A rate of 0 sends nothing while it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steps {
    /// Nanoseconds and bit/s; times ascend.
    points: Vec<(u64, u64)>,
    end: End,
    /// Work of one period in units of 1e-9 bit, if it repeats.
    per_period: u128,
}

impl Steps {
    /// A rate for each time. With [`End::Loop`] the last time is the period, and its rate is unused.
    ///
    /// # Errors
    /// If there is none, times do not ascend, a period is 0, or the rate is zero from some time on.
    pub fn new(points: Vec<(Duration, Rate)>, end: End) -> Result<Self, TraceError> {
        if let Some(i) = points.windows(2).position(|w| w[1].0 <= w[0].0) {
            return Err(TraceError::NotAscending(i + 1));
        }
        let points: Vec<(u64, u64)> =
            points.iter().map(|(t, rate)| (t.as_nanos(), rate.bits_per_sec())).collect();
        let Some(&(last, rate)) = points.last() else { return Err(TraceError::Empty) };
        let mut steps = Self { points, end, per_period: 0 };
        match end {
            End::Hold if rate == 0 => return Err(TraceError::NeverSends),
            End::Hold => {}
            End::Loop if last == 0 => return Err(TraceError::NoPeriod),
            End::Loop => {
                steps.per_period = steps.work_within(last);
                if steps.per_period == 0 {
                    return Err(TraceError::NeverSends);
                }
            }
        }
        Ok(steps)
    }

    /// Times and rates.
    pub fn points(&self) -> impl Iterator<Item = (Duration, Rate)> + '_ {
        self.points.iter().map(|&(t, rate)| (Duration::from_nanos(t), Rate::from_bits_per_sec(rate)))
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

    /// The mean up to the last time, or the only rate; at least 1 bit/s.
    #[must_use]
    pub fn mean(&self) -> Rate {
        let &(last, rate) = self.points.last().unwrap_or(&(0, 1));
        let mean = match last {
            0 => u128::from(rate),
            _ => self.work_within(last) / u128::from(last),
        };
        Rate::from_bits_per_sec(u64::try_from(mean).unwrap_or(u64::MAX).max(1))
    }

    /// Bits that can leave until `t`.
    #[must_use]
    pub fn bits_until(&self, t: Instant) -> f64 {
        let t = t.as_nanos();
        let work = match self.end {
            End::Hold => self.work_within(t),
            End::Loop => {
                let period = self.last().as_nanos();
                u128::from(t / period) * self.per_period + self.work_within(t % period)
            }
        };
        work as f64 / UNIT as f64
    }

    /// Work of the first `t` nanoseconds in units of 1e-9 bit, without repetition.
    fn work_within(&self, t: u64) -> u128 {
        let (mut work, mut from) = (0, 0);
        for (i, &(_, rate)) in self.points.iter().enumerate() {
            let until = self.points.get(i + 1).map_or(u64::MAX, |p| p.0).min(t);
            work += u128::from(rate) * u128::from(until.saturating_sub(from));
            from = from.max(until);
        }
        work
    }

    /// The rate in bit/s at `t`, until when it holds, and whether a period begins at `t`. Times are in nanoseconds.
    fn at(&self, t: u64) -> (u64, u64, bool) {
        let (begin, local, end) = match self.end {
            End::Hold => (0, t, u64::MAX),
            End::Loop => {
                let period = self.last().as_nanos();
                (t - t % period, t % period, period)
            }
        };
        let i = self.points.partition_point(|p| p.0 <= local);
        let rate = self.points[i.saturating_sub(1)].1;
        let until = self.points.get(i.max(1)).map_or(end, |p| p.0);
        (rate, begin.saturating_add(until), self.end == End::Loop && local == 0)
    }
}

/// A running schedule of steps. The fraction of a nanosecond lost by rounding the end of a packet is carried over
/// to the next one, as at a constant rate.
#[derive(Clone, Debug)]
pub struct Run {
    steps: Arc<Steps>,
    free_at: Instant,
    /// The part of the last packet, in units of 1e-9 bit, that takes a fraction of a nanosecond beyond `free_at`.
    carry: u64,
}

impl Model for Steps {
    type Run = Run;

    const FILE: &'static str =
        "A CSV file: a header such as `time_s,rate_bit_s` or `time_s,delay_ms`, then a line per time.";
    const NO_END: Option<&'static str> = None;

    fn mean(&self) -> Rate {
        Self::mean(self)
    }
    fn bits_until(&self, t: Instant) -> f64 {
        Self::bits_until(self, t)
    }
    fn last(&self) -> Duration {
        Self::last(self)
    }
    /// Reads CSV with the columns `time_s` and `rate_bit_s`, or others of their units.
    fn read(text: &str, end: End) -> Result<Self, Broken> {
        let (points, lines) = table::read(text, "rate", RATES)?;
        let points = points.into_iter().map(|(t, v)| (t, Rate::from_bits_per_sec(v))).collect();
        Self::new(points, end).map_err(|e| Broken::placed(e, &lines))
    }
    fn write(&self) -> (String, Option<End>) {
        let mut text = String::from("time_ns,rate_bit_s\n");
        for (t, rate) in &self.points {
            let _ = writeln!(text, "{t},{rate}");
        }
        (text, Some(self.end))
    }
    fn run(self: &Arc<Self>) -> Run {
        Run { steps: Arc::clone(self), free_at: Instant::ZERO, carry: 0 }
    }
}

impl Sending for Run {
    type Model = Steps;

    fn model(&self) -> &Arc<Steps> {
        &self.steps
    }

    fn send(&mut self, start: Instant, size: u32, _waited: bool) -> Instant {
        Self::send(self, start, size)
    }
}

impl Run {
    fn send(&mut self, start: Instant, size: u32) -> Instant {
        if start > self.free_at {
            self.free_at = start;
            self.carry = 0;
        }
        let mut work = u128::from(size) * 8 * UNIT + u128::from(self.carry);
        let mut t = self.free_at.as_nanos();
        self.carry = 0;
        while t < u64::MAX {
            let (rate, until, begins) = self.steps.at(t);
            if begins && work > self.steps.per_period {
                // Whole periods at once, except the last one.
                let periods = (work - 1) / self.steps.per_period;
                let span = periods.saturating_mul(self.steps.last().as_nanos().into());
                work -= periods * self.steps.per_period;
                t = t.saturating_add(u64::try_from(span).unwrap_or(u64::MAX));
                continue;
            }
            let room = u128::from(rate) * u128::from(until - t);
            if work <= room {
                let rate = u128::from(rate.max(1));
                t = t.saturating_add(u64::try_from(work / rate).unwrap_or(u64::MAX));
                self.carry = (work % rate) as u64;
                break;
            }
            work -= room;
            t = until;
        }
        self.free_at = Instant::from_nanos(t);
        self.free_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_base::units::Serializer;

    fn steps(points: &[(u64, u64)], end: End) -> Result<Steps, TraceError> {
        let point = |&(ms, bits): &(u64, u64)| (Duration::from_millis(ms), Rate::from_bits_per_sec(bits));
        Steps::new(points.iter().map(point).collect(), end)
    }
    fn run(points: &[(u64, u64)], end: End) -> Run {
        Arc::new(steps(points, end).unwrap()).run()
    }
    fn ms(t: u64) -> Instant {
        Instant::from_nanos(t * 1_000_000)
    }

    #[test]
    fn a_packet_continues_at_the_next_rate() {
        // 8 Mbit/s: 1000 bytes in 1 ms.
        let mut r = run(&[(0, 8_000_000), (10, 0), (20, 4_000_000)], End::Hold);
        assert_eq!(r.send(ms(0), 1000), ms(1));
        // Half of it before the pause, half after it at half the rate.
        assert_eq!(r.send(Instant::from_nanos(9_500_000), 1000), ms(21));
        assert_eq!(r.send(ms(25), 1000), ms(27));
    }

    #[test]
    fn a_trace_that_repeats_is_exact_over_many_periods() {
        // 3000 bits per period of 2 ms.
        let mut r = run(&[(0, 1_000_000), (1, 2_000_000), (2, 7)], End::Loop);
        assert_eq!(r.send(ms(0), 3000), ms(16));
        assert_eq!(r.send(ms(16), 125), ms(17));
        assert_eq!(r.send(ms(17), 250), ms(18));
        // From the middle of a period: 2000 bits, 999 periods, and 504 bits at the first rate.
        let end = r.send(ms(19), (2_000 + 999 * 3_000 + 8 * 63) / 8);
        assert_eq!(end, Instant::from_nanos(20_000_000 + 999 * 2_000_000 + 504_000));
        let s = steps(&[(0, 1_000_000), (1, 2_000_000), (2, 7)], End::Loop).unwrap();
        assert_eq!((s.mean().bits_per_sec(), s.bits_until(ms(5))), (1_500_000, 7_000.0));
    }

    #[test]
    fn one_step_is_a_constant_rate() {
        let mut constant = Serializer::new(Rate::from_bits_per_sec(7_777_777));
        let mut r = run(&[(3, 7_777_777)], End::Hold);
        let mut rng = skyhaul_base::Rng::stream(1, "steps");
        let mut t = Instant::ZERO;
        for _ in 0..10_000 {
            let size = 40 + (rng.next_u64() % 1461) as u32;
            t += Duration::from_nanos(rng.next_u64() % 2_000_000);
            assert_eq!(r.send(t, size), constant.send(t, size));
        }
    }

    #[test]
    fn traces_without_sense_are_refused() {
        assert_eq!(steps(&[], End::Hold), Err(TraceError::Empty));
        assert_eq!(steps(&[(0, 1), (0, 2)], End::Hold), Err(TraceError::NotAscending(1)));
        assert_eq!(steps(&[(0, 1), (5, 0)], End::Hold), Err(TraceError::NeverSends));
        assert_eq!(steps(&[(0, 0), (5, 1)], End::Loop), Err(TraceError::NeverSends));
        assert_eq!(steps(&[(0, 1)], End::Loop), Err(TraceError::NoPeriod));
        let slow = steps(&[(0, 1)], End::Hold).unwrap();
        assert_eq!(Arc::new(slow).run().send(ms(0), u32::MAX), Instant::MAX);
    }
}

//! The gap between packets of an SSVP sender.

use super::{Config, Startup};
use crate::option::bytes;
use skyhaul_base::amount::RateSpec;
use skyhaul_base::{Duration, Instant};

/// The timer before there is a round-trip time.
const FIRST_TIMER: Duration = Duration::from_secs(2);

/// State of the sender, with its inter-packet gap.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    config: Config,
    /// Bytes of a packet.
    segment: f64,
    /// Gap between packets, in seconds, and its limits.
    gap: f64,
    gaps: (f64, f64),
    /// Smoothed round-trip time in seconds.
    srtt: Option<f64>,
    /// When the gap was last reduced, or the first report arrived.
    updated: Instant,
    /// A packet had to wait for its slot since then.
    limited: bool,
    /// When the gap was last increased for a loss.
    decreased: Option<Instant>,
    /// Packets reported lost so far.
    lost: u32,
    /// When the gap doubles unless a report arrives before.
    timer: Instant,
    /// A packet was sent since the timer was set.
    active: bool,
    expiries: u64,
}

impl Control {
    /// State at the start: the lowest rate until the first report.
    pub(crate) fn new(now: Instant, config: Config, segment: u32) -> Self {
        let segment = f64::from(segment.max(1));
        let gap_at = |rate: Option<RateSpec>, or: f64| segment / rate.map_or(or, bytes);
        let gaps = (gap_at(config.max_rate, f64::INFINITY), gap_at(config.min_rate, segment));
        Self {
            config,
            segment,
            gap: gaps.1,
            gaps,
            srtt: None,
            updated: now,
            limited: false,
            decreased: None,
            lost: 0,
            timer: Instant::MAX,
            active: false,
            expiries: 0,
        }
    }

    /// Bytes per second.
    pub(crate) fn rate(&self) -> f64 {
        self.segment / self.gap
    }
    pub(crate) fn rtt(&self) -> Option<Duration> {
        self.srtt.map(Duration::from_secs_f64)
    }
    pub(crate) fn expiries(&self) -> u64 {
        self.expiries
    }
    pub(crate) fn next_timeout(&self) -> Instant {
        self.timer
    }

    /// A packet leaves; `waits`: more are waiting.
    pub(crate) fn sent(&mut self, now: Instant, waits: bool) {
        self.active = true;
        self.limited |= waits;
        if self.timer == Instant::MAX {
            self.restart(now);
        }
    }

    /// A report arrives; `lost` packets were missing so far.
    pub(crate) fn on_report(&mut self, now: Instant, (echo, held): (Instant, Duration), lost: u32) {
        let sample = ((now - echo) - held).max(Duration::from_micros(1)).as_secs_f64();
        let Some(before) = self.srtt else {
            self.srtt = Some(sample);
            self.set(sample);
            (self.updated, self.lost) = (now, lost);
            self.restart(now);
            return;
        };
        let srtt = before + (sample - before) / 8.0;
        self.srtt = Some(srtt);
        // Counters wrap; a decrease means an older report.
        let new = lost.wrapping_sub(self.lost);
        let one = Duration::from_secs_f64(srtt);
        if new > 0 && new < 1 << 31 {
            self.lost = lost;
            if self.decreased.is_none_or(|at| now - at > one) {
                self.set(self.gap / self.config.beta);
                self.decreased = Some(now);
            }
        } else if new == 0 && now - self.updated >= one {
            // An application below the rate says nothing about the path: its rate would double without bound.
            let doubles = self.config.startup == Startup::Double && self.decreased.is_none() && self.limited;
            let alpha = self.config.alpha;
            self.set(if doubles { self.gap / 2.0 } else { self.gap * srtt / (srtt + alpha * self.gap) });
            (self.updated, self.limited) = (now, false);
        }
        self.restart(now);
    }

    /// No report for too long: the gap doubles, if a packet was sent meanwhile.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.timer > now {
            return;
        }
        if self.active {
            let before = self.gap;
            self.set(2.0 * self.gap);
            self.expiries += u64::from(self.gap > before);
        }
        self.restart(now);
    }

    fn restart(&mut self, now: Instant) {
        let two = Duration::from_secs_f64(2.0 * self.gap);
        self.timer = now + self.srtt.map_or(FIRST_TIMER, |r| Duration::from_secs_f64(4.0 * r)).max(two);
        self.active = false;
    }
    fn set(&mut self, gap: f64) {
        self.gap = gap.clamp(self.gaps.0, self.gaps.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const R: u64 = 550;
    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }
    /// At 550 ms with a sample of 550 ms and a gap of 25 ms: 320 kbit/s.
    fn steady(config: Config) -> Control {
        let config = config.resolve(1000, None).unwrap();
        let mut c = Control::new(at(0), config, 1000);
        c.sent(at(0), false);
        c.on_report(at(R), (at(0), Duration::ZERO), 0);
        assert_eq!(c.gap, 0.55, "one packet per round-trip time");
        c.gap = 0.025;
        c
    }
    fn report(c: &mut Control, ms: u64, lost: u32) {
        c.on_report(at(ms), (at(ms - R), Duration::ZERO), lost);
    }

    #[test]
    fn one_increase_and_one_decrease_by_hand() {
        for (alpha, gap, kbit) in
            [(0.31, 24.65262, 324.51), (0.20, 24.77477, 322.91), (1.0, 23.91304, 334.55)]
        {
            let mut c = steady(Config { alpha, ..Config::default() });
            report(&mut c, 2 * R - 1, 0);
            assert_eq!(c.gap, 0.025, "not yet a round-trip time");
            report(&mut c, 2 * R, 0);
            assert!((c.gap * 1e3 - gap).abs() < 1e-5, "{}", c.gap);
            assert!((c.rate() * 8e-3 - kbit).abs() < 5e-3, "{}", c.rate());
        }
        let mut c = steady(Config::default());
        report(&mut c, 2 * R, 1);
        assert!((c.gap * 1e3 - 28.57143).abs() < 1e-5 && (c.rate() * 8e-3 - 280.0).abs() < 1e-9);
        // One decrease in a round-trip time.
        report(&mut c, 3 * R, 2);
        assert!((c.gap * 1e3 - 28.57143).abs() < 1e-5);
        report(&mut c, 3 * R + 1, 3);
        assert!((c.gap * 1e3 - 28.57143 / 0.875).abs() < 1e-5);
    }

    #[test]
    fn without_reports_the_gap_doubles_on_schedule_down_to_the_smallest_rate() {
        let mut c = steady(Config::default());
        report(&mut c, R + 1, 0);
        let (mut due, mut gap) = (R + 1, 0.025);
        for _ in 0..8 {
            due += f64::max(4.0 * 550.0, 2e3 * gap) as u64;
            assert_eq!(c.next_timeout(), at(due));
            c.sent(at(due - 1), false);
            c.handle_timeout(at(due));
            gap = f64::min(2.0 * gap, 1.0);
            assert!((c.gap - gap).abs() < 1e-12);
        }
        assert_eq!((c.gap, c.expiries()), (1.0, 6));
        // Idle: nothing is missed.
        let mut c = steady(Config::default());
        report(&mut c, R + 1, 0);
        c.handle_timeout(at(10_000));
        assert_eq!(c.gap, 0.025);
    }

    #[test]
    fn start_up_may_double_until_the_first_loss() {
        let mut c = steady(Config { startup: Startup::Double, ..Config::default() });
        c.gap = 0.55;
        for k in 2..=5 {
            c.sent(at(k * R - 1), true);
            report(&mut c, k * R, 0);
        }
        assert!((c.gap - 0.55 / 16.0).abs() < 1e-12);
        report(&mut c, 6 * R, 1);
        let gap = c.gap;
        report(&mut c, 7 * R, 1);
        let window = |gap: f64| 0.55 / gap;
        assert!((window(c.gap) - window(gap) - 0.31).abs() < 1e-9, "linear from there");
    }

    #[test]
    fn start_up_is_linear_while_the_application_offers_less_than_the_rate() {
        let mut c = steady(Config { startup: Startup::Double, ..Config::default() });
        c.gap = 0.55;
        for k in 2..=2001 {
            c.sent(at(k * R - 1), false);
            report(&mut c, k * R, 0);
        }
        assert!((0.55 / c.gap - (1.0 + 0.31 * 2000.0)).abs() < 1e-6, "{}", c.gap);
    }

    #[test]
    fn the_rate_stays_within_its_limits() {
        let config = Config::default().resolve(1000, Some(320_000.0)).unwrap();
        let mut c = Control::new(at(0), config, 1000);
        c.on_report(at(R), (at(0), Duration::ZERO), 0);
        (2..2000).for_each(|k| report(&mut c, k * R, 0));
        assert!((c.rate() * 8.0 - 640_000.0).abs() < 1e-6, "twice the application's rate: {}", c.rate());
        let slow = Config::default().resolve(1000, Some(1000.0)).unwrap();
        assert!((Control::new(at(0), slow, 1000).rate() - 250.0).abs() < 1e-9);
    }
}

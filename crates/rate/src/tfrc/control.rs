//! The rate of a TFRC sender (RFC 5348 §4).

use super::limited::Limited;
use super::receive_rates::ReceiveRates;
use super::{Config, allowed};
use skyhaul_base::{Duration, Instant, math};

/// Maximum inter-packet gap, seconds (t_mbi).
const SLOWEST: f64 = 64.0;
/// The nofeedback timer before there is a round-trip time.
const FIRST_TIMER: Duration = Duration::from_secs(2);
/// The constant of the initial window min(4 s, max(2 s, 4380)), bytes (RFC 5348 §4.2).
const INITIAL: f64 = 4380.0;

/// State of the sender, with its allowed rate.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    config: Config,
    /// s: segment size, bytes.
    segment: f64,
    /// X: the allowed rate, bytes per second.
    rate: f64,
    /// R: smoothed round-trip time, also in seconds.
    rtt: Option<(Duration, f64)>,
    /// Mean and last square root of the RTT samples (R_sqmean), which damping compares.
    roots: (f64, f64),
    received: ReceiveRates,
    /// When the rate was last doubled (tld).
    doubled: Instant,
    /// p: the loss event rate reported last.
    loss: f64,
    limited: Limited,
    /// The nofeedback timer.
    timer: Instant,
    /// A packet was sent since the timer was set.
    active: bool,
    expiries: u64,
}

impl Control {
    /// State at the start: one packet per second.
    pub(crate) fn new(now: Instant, config: Config, segment: u32) -> Self {
        let segment = f64::from(segment.max(1));
        Self {
            config,
            segment,
            rate: segment,
            rtt: None,
            roots: (1.0, 1.0),
            received: ReceiveRates::new(now),
            doubled: now,
            loss: 0.0,
            limited: Limited::default(),
            timer: Instant::MAX,
            active: false,
            expiries: 0,
        }
    }

    /// X, bytes per second.
    pub(crate) fn rate(&self) -> f64 {
        self.rate
    }
    /// The sending rate, bytes per second: with damping, below X while the RTT is above its mean, and above X while it is
    /// below (§4.5).
    pub(crate) fn instant_rate(&self) -> f64 {
        if self.config.damping {
            (self.rate * self.roots.0 / self.roots.1).max(self.least())
        } else {
            self.rate
        }
    }
    pub(crate) fn rtt(&self) -> Option<Duration> {
        self.rtt.map(|(rtt, _)| rtt)
    }
    pub(crate) fn loss(&self) -> f64 {
        self.loss
    }
    pub(crate) fn expiries(&self) -> u64 {
        self.expiries
    }
    pub(crate) fn next_timeout(&self) -> Instant {
        self.timer
    }

    /// A packet is sent; `waits`: more are waiting.
    pub(crate) fn sent(&mut self, now: Instant, waits: bool) {
        self.active = true;
        if self.timer == Instant::MAX {
            self.timer = now + FIRST_TIMER;
        }
        if waits {
            self.limited.by_rate(now);
        }
    }

    /// A report arrives on the packet that left at `echo` and had arrived `held` before (§4.3).
    pub(crate) fn on_report(
        &mut self,
        now: Instant,
        (echo, held): (Instant, Duration),
        received: f64,
        loss: f64,
    ) {
        // An RTT below a microsecond is impossible: a report with a time in the future, or from another clock.
        let sample = ((now - echo) - held).max(Duration::from_micros(1)).as_secs_f64();
        let root = math::sqrt(sample);
        let first = self.rtt.is_none();
        let rtt = self.rtt.map_or(sample, |(_, r)| 0.9 * r + 0.1 * sample);
        self.rtt = Some((Duration::from_secs_f64(rtt), rtt));
        self.roots = (if first { root } else { 0.9 * self.roots.0 + 0.1 * root }, root);
        let timeout = self.timeout();
        let rose = loss > self.loss;
        self.loss = loss;
        let limited = self.limited.covers(now, echo, self.span());
        if first {
            self.rate = self.initial();
            self.doubled = now;
        } else {
            let limit = self.limit(now, received, limited, rose);
            self.recompute(now, limit);
        }
        self.restart(now, timeout);
    }

    /// The limit set by the receive rates, including a new one.
    fn limit(&mut self, now: Instant, received: f64, limited: bool, rose: bool) -> f64 {
        if !limited {
            self.received.update(now, received, self.span());
            return 2.0 * self.received.max();
        }
        if rose {
            self.received.halve();
            self.received.maximize(now, 0.85 * received);
            return self.received.max();
        }
        self.received.maximize(now, received);
        2.0 * self.received.max()
    }

    fn recompute(&mut self, now: Instant, limit: f64) {
        if self.loss > 0.0 {
            self.rate = self.equation().min(limit).max(self.least());
        } else if now - self.doubled >= self.span() {
            self.rate = (2.0 * self.rate).min(limit).max(self.initial());
            self.doubled = now;
        }
    }

    /// The nofeedback timer expires (§4.4).
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.timer > now {
            return;
        }
        let received = self.received.max();
        let idle = !self.active;
        let recover = self.initial();
        let slow = if self.loss > 0.0 { received < recover } else { self.rate < 2.0 * recover };
        let before = self.rate;
        match self.rtt {
            None if !idle => self.rate = (self.rate / 2.0).max(self.least()),
            // Nothing was sent, so there was nothing to report, and the rate does not exceed that of a new sender.
            _ if idle && slow => {}
            _ if self.loss <= 0.0 => self.rate = (self.rate / 2.0).max(self.least()),
            _ if self.equation() > 2.0 * received => self.limit_to(now, received),
            _ => self.limit_to(now, self.equation() / 2.0),
        }
        self.expiries += u64::from(self.rate < before);
        let timeout = if self.rtt.is_some() { self.timeout() } else { self.slow_timer() };
        self.restart(now, timeout);
    }

    fn limit_to(&mut self, now: Instant, limit: f64) {
        let limit = limit.max(self.least());
        self.received.replace(now, limit / 2.0);
        self.recompute(now, limit);
    }

    fn restart(&mut self, now: Instant, timeout: Duration) {
        self.timer = now + timeout;
        self.active = false;
    }

    /// max(4 R, 2 s / X)
    fn timeout(&self) -> Duration {
        (self.span() * 4).max(self.slow_timer())
    }
    fn slow_timer(&self) -> Duration {
        Duration::from_secs_f64(2.0 * self.segment / self.rate)
    }
    fn span(&self) -> Duration {
        self.rtt().unwrap_or(FIRST_TIMER)
    }
    /// W_init / R; before the first RTT sample, the initial rate.
    fn initial(&self) -> f64 {
        let window = (4.0 * self.segment).min((2.0 * self.segment).max(INITIAL));
        self.rtt.map_or(self.segment, |(_, r)| window / r)
    }
    fn least(&self) -> f64 {
        self.segment / SLOWEST
    }
    fn equation(&self) -> f64 {
        let r = self.rtt.map_or(1.0, |(_, r)| r);
        allowed(self.segment, r, self.config.timeout(r), self.loss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const R: u64 = 550;
    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }
    /// A sender with a sample of 550 ms, at 550 ms.
    fn started() -> Control {
        let mut c = Control::new(at(0), Config::default(), 1000);
        c.sent(at(0), true);
        c.on_report(at(R), (at(0), Duration::ZERO), 0.0, 0.0);
        c
    }
    fn report(c: &mut Control, ms: u64, received: f64, loss: f64) {
        c.on_report(at(ms), (at(ms - R), Duration::ZERO), received, loss);
    }
    fn near(x: f64, y: f64) {
        assert!((x / y - 1.0).abs() < 1e-5, "{x} is not {y}");
    }

    #[test]
    fn slow_start_from_a_window_and_once_per_round_trip_time() {
        let mut c = started();
        near(c.rate(), 4000.0 / 0.55);
        near(Control::new(at(0), Config::default(), 1000).rate(), 1000.0);
        // Larger packets: two of 2000 B, or 4380 B.
        let mut large = Control::new(at(0), Config::default(), 2000);
        large.on_report(at(R), (at(0), Duration::ZERO), 0.0, 0.0);
        near(large.rate(), 4380.0 / 0.55);
        // 320 kbit/s after three doublings.
        let mut x = c.rate();
        for k in 2..=4 {
            c.sent(at(k * R - R), true);
            report(&mut c, k * R, x, 0.0);
            x *= 2.0;
            near(c.rate(), x);
            c.sent(at(k * R - R + 1), true);
            report(&mut c, k * R + 1, x, 0.0);
            near(c.rate(), x);
        }
        assert!(x > 40_000.0, "{x}");
        // Never more than twice what arrives.
        c.sent(at(6 * R), true);
        report(&mut c, 7 * R, 20_000.0, 0.0);
        near(c.rate(), 40_000.0);
    }

    #[test]
    fn with_losses_the_equation_holds_within_twice_the_receive_rate() {
        let mut c = started();
        for (k, loss, received, expected) in
            [(2, 1e-2, 30_000.0, 20_424.0), (3, 1e-3, 30_000.0, 60_000.0), (4, 1e-3, 60_000.0, 69_789.8)]
        {
            c.sent(at(k * R - R), true);
            report(&mut c, k * R, received, loss);
            assert!((c.rate() - expected).abs() < 0.1, "{} {expected}", c.rate());
        }
        c.sent(at(6 * R - R), true);
        report(&mut c, 6 * R, 0.0, 1.0);
        assert!(c.rate() >= 1000.0 / 64.0);
    }

    #[test]
    fn without_reports_the_rate_halves_on_schedule() {
        // Before any report: 2 s, then 2 s/X, halving.
        let mut c = Control::new(at(0), Config::default(), 1000);
        c.sent(at(0), true);
        let mut due = 2000;
        let mut x = 1000.0;
        for _ in 0..10 {
            assert_eq!(c.next_timeout(), at(due));
            c.sent(at(due - 1), true);
            c.handle_timeout(at(due));
            x = f64::max(x / 2.0, 1000.0 / 64.0);
            near(c.rate(), x);
            due += (2000.0 / x * 1000.0) as u64;
        }
        near(c.rate(), 1000.0 / 64.0);
        // With a loss rate: to the receive rate, then half of that each time, whatever the equation says.
        let mut c = started();
        c.sent(at(R), true);
        report(&mut c, 2 * R, 15_000.0, 1e-2);
        near(c.rate(), 20_424.0);
        let mut now = 2 * R;
        for expected in [20_424.0 / 2.0, 20_424.0 / 4.0, 20_424.0 / 8.0] {
            now += 4 * R;
            assert_eq!(c.next_timeout(), at(now));
            c.sent(at(now - 1), true);
            c.handle_timeout(at(now));
            assert!((c.rate() / expected - 1.0).abs() < 1e-4, "{} {expected}", c.rate());
        }
    }

    #[test]
    fn an_idle_sender_keeps_what_a_new_one_may_send() {
        let mut c = started();
        for k in 2..=5 {
            c.sent(at(k * R - R), true);
            report(&mut c, k * R, 1e6, 0.0);
        }
        near(c.rate(), 16.0 * 4000.0 / 0.55);
        // Nothing sent from here on: halved down to below twice the initial rate and no further.
        for _ in 0..10 {
            let due = c.next_timeout();
            c.handle_timeout(due);
        }
        near(c.rate(), 4000.0 / 0.55);
    }

    #[test]
    fn a_loss_while_the_application_limits_the_rate_lowers_what_it_may_grow_to() {
        let mut c = started();
        // The application sends 10 kB/s and never waits.
        for k in 2..=6 {
            c.sent(at(k * R - R), false);
            report(&mut c, k * R, 10_000.0, 0.0);
        }
        near(c.rate(), 20_000.0);
        c.sent(at(6 * R), false);
        report(&mut c, 7 * R, 10_000.0, 1e-4);
        // Halved entries are 5000; 0.85 of the new one is larger.
        near(c.rate(), 8500.0);
        c.sent(at(7 * R), false);
        report(&mut c, 8 * R, 10_000.0, 1e-4);
        near(c.rate(), 20_000.0);
    }

    #[test]
    fn damping_slows_while_the_queue_grows() {
        let mut c = started();
        near(c.instant_rate(), c.rate());
        c.sent(at(R), true);
        c.on_report(at(2 * R), (at(0), Duration::ZERO), 1e6, 0.0);
        let (short, long) = (math::sqrt(0.55), math::sqrt(1.1));
        near(c.instant_rate(), c.rate() * (0.9 * short + 0.1 * long) / long);
        let mut plain = Control::new(at(0), Config { damping: false, ..Config::default() }, 1000);
        plain.on_report(at(R), (at(0), Duration::ZERO), 0.0, 0.0);
        plain.on_report(at(2 * R), (at(0), Duration::ZERO), 1e6, 0.0);
        near(plain.instant_rate(), plain.rate());
    }
}

//! Round-trip time estimation and the retransmission timeout (RFC 6298).
//!
//! The estimator stores no configuration: the caller passes it, and thousands of flows share it.

use crate::config::Rto;
use skyhaul_base::{Duration, Instant};

/// No sample yet.
const NONE: Duration = Duration::MAX;
/// RFC 6298 §5.7.
const AFTER_A_LOST_SYN: Duration = Duration::from_secs(3);
/// No segment is being timed: beyond every acknowledgement.
const NOTHING: u64 = u64::MAX;

/// Smoothed RTT, its variation and the timeout that follows.
#[derive(Clone, Debug)]
pub struct Estimator {
    srtt: Duration,
    rttvar: Duration,
    min: Duration,
    /// The current timeout, with bounds and backoff.
    rto: Duration,
    /// End and send time of the segment being timed.
    timed_end: u64,
    timed_at: Instant,
    /// `srtt + max(G, margin, 4·rttvar)`, before bounds and backoff.
    base: Duration,
    backoff: u32,
}

/// Moves a mean by one `parts`-th toward a sample.
fn toward(mean: Duration, sample: u64, parts: u64) -> Duration {
    let step = (i128::from(sample) - i128::from(mean.as_nanos())) / i128::from(parts);
    Duration::from_nanos(mean.as_nanos().saturating_add_signed(step as i64))
}

impl Estimator {
    /// Nothing has been measured.
    #[must_use]
    pub fn new(config: &Rto) -> Self {
        let mut e = Self {
            srtt: NONE,
            rttvar: Duration::ZERO,
            min: NONE,
            rto: Duration::ZERO,
            timed_end: NOTHING,
            timed_at: Instant::ZERO,
            base: config.initial,
            backoff: 0,
        };
        e.settle(config);
        e
    }

    /// Starts with the values of an earlier connection on the path, unless there is a sample already.
    pub(crate) fn seed(&mut self, srtt: Duration, rttvar: Duration, config: &Rto) {
        if self.srtt == NONE {
            self.srtt = srtt;
            self.rttvar = rttvar;
            self.base = srtt + config.tick.max(config.margin).max(rttvar * 4);
            self.settle(config);
        }
    }

    /// Data follows a retransmitted SYN: without a sample the timeout becomes at least 3 s (RFC 6298 §5.7).
    pub(crate) fn restart_without_sample(&mut self, config: &Rto) {
        if self.srtt == NONE {
            self.base = self.base.max(AFTER_A_LOST_SYN);
            self.settle(config);
        }
    }

    /// A valid sample, one of `per_rtt` expected in a round trip; clears the backoff.
    #[inline]
    pub fn sample(&mut self, rtt: Duration, per_rtt: u64, config: &Rto) {
        if self.srtt == NONE {
            self.srtt = rtt;
            self.rttvar = rtt / 2;
        } else if per_rtt > 1 {
            let error = self.srtt.abs_diff(rtt).as_nanos();
            self.rttvar = toward(self.rttvar, error, 4 * per_rtt);
            self.srtt = toward(self.srtt, rtt.as_nanos(), 8 * per_rtt);
        } else {
            // RFC 6298 §2.3: rttvar first, from the old srtt.
            let error = self.srtt.abs_diff(rtt).as_nanos();
            self.rttvar = Duration::from_nanos((self.rttvar.as_nanos() * 3 + error) / 4);
            self.srtt = Duration::from_nanos((self.srtt.as_nanos() * 7 + rtt.as_nanos()) / 8);
        }
        self.min = self.min.min(rtt);
        self.backoff = 0;
        self.base = self.srtt + config.tick.max(config.margin).max(self.rttvar * 4);
        self.settle(config);
    }

    /// Applies bounds and backoff.
    #[inline]
    fn settle(&mut self, config: &Rto) {
        let (min, max) = (config.min, config.max);
        self.rto = if self.backoff == 0 {
            self.base.max(min).min(max)
        } else {
            let factor = 1u64.checked_shl(self.backoff).unwrap_or(u64::MAX);
            if config.min_before_backoff {
                (self.base.max(min) * factor).min(max)
            } else {
                (self.base * factor).max(min).min(max)
            }
        };
    }

    /// The current timeout.
    #[inline]
    #[must_use]
    pub fn rto(&self) -> Duration {
        self.rto
    }
    /// The RTT from a timestamp echo of age `echo`, if that is plausible. `oldest`: time since the first transmission of
    /// the oldest segment acknowledged. `newest`: time since the transmission of the newest acknowledged segment that was
    /// never retransmitted. An echo is forged, or noise, if it is
    ///
    /// - older than `oldest` by more than a clock tick: none of the acknowledged segments had been sent;
    /// - older than twice the timeout: the oldest outstanding segment left at most one RTT before the start of the timer,
    ///   and the timer has not expired since;
    /// - younger than both the minimum RTT and `newest`: the echoed segment would have left after all acknowledged ones.
    ///   The minimum RTT is used then, so an echo cannot lower it.
    #[inline]
    pub(crate) fn plausible_echo(
        &self,
        echo: Duration,
        oldest: Option<Duration>,
        newest: Option<Duration>,
        tick: Duration,
    ) -> Option<Duration> {
        if echo > self.rto * 2 || oldest.is_some_and(|o| echo > o + tick) {
            return None;
        }
        if echo >= self.min && self.min != NONE || newest.is_some_and(|n| echo + tick > n) {
            return Some(echo);
        }
        self.min()
    }
    /// The timer has expired. With `spared`, the first expiration in a row leaves the timeout as it is: the algorithm
    /// takes losses for channel errors.
    pub fn back_off(&mut self, config: &Rto, spared: bool) {
        self.backoff = (self.backoff + 1).min(32);
        if !(spared && self.backoff == 1) {
            self.settle(config);
        }
    }
    /// An acknowledgement of new data gives no sample: the path works, so the backoff ends.
    pub fn end_backoff(&mut self, config: &Rto) {
        if core::mem::take(&mut self.backoff) > 0 {
            self.settle(config);
        }
    }
    /// Expirations in a row, at most 32.
    pub(crate) fn backoff(&self) -> u32 {
        self.backoff
    }
    /// The smoothed RTT, after the first sample.
    #[inline]
    #[must_use]
    pub fn srtt(&self) -> Option<Duration> {
        (self.srtt != NONE).then_some(self.srtt)
    }
    #[inline]
    pub(crate) fn rttvar(&self) -> Duration {
        self.rttvar
    }
    #[inline]
    pub(crate) fn min(&self) -> Option<Duration> {
        (self.min != NONE).then_some(self.min)
    }

    /// Starts timing a segment that ends at `end`, unless one is being timed.
    #[inline]
    pub(crate) fn time(&mut self, end: u64, now: Instant) {
        if self.timed_end == NOTHING {
            (self.timed_end, self.timed_at) = (end, now);
        }
    }
    /// Karn's rule: after a retransmission the timed segment gives no sample.
    pub(crate) fn stop_timing(&mut self) {
        self.timed_end = NOTHING;
    }
    /// The RTT of the timed segment, if `una` covers it.
    #[inline]
    pub(crate) fn timed_sample(&mut self, una: u64, now: Instant) -> Option<Duration> {
        if una < self.timed_end {
            return None;
        }
        self.timed_end = NOTHING;
        Some(now - self.timed_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    const RTO: Rto = Config::rfc().rto;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn rfc_6298_arithmetic() {
        let mut e = Estimator::new(&RTO);
        assert_eq!(e.rto(), ms(1000));
        e.sample(ms(550), 1, &RTO);
        assert_eq!((e.srtt(), e.rttvar(), e.rto()), (Some(ms(550)), ms(275), ms(550 + 1100)));
        e.sample(ms(630), 1, &RTO);
        // rttvar = 3/4·275 + 1/4·80 = 226.25; srtt = 7/8·550 + 1/8·630 = 560.
        assert_eq!((e.srtt(), e.rttvar()), (Some(ms(560)), Duration::from_micros(226_250)));
        assert_eq!(e.rto(), ms(560 + 905));
    }

    #[test]
    fn a_remembered_rtt_is_refined_and_never_replaces_a_sample() {
        let mut e = Estimator::new(&RTO);
        e.seed(ms(550), ms(100), &RTO);
        assert_eq!((e.srtt(), e.rttvar(), e.rto(), e.min()), (Some(ms(550)), ms(100), ms(1000), None));
        e.sample(ms(630), 1, &RTO);
        // rttvar = 3/4·100 + 1/4·80; srtt = 7/8·550 + 1/8·630.
        assert_eq!((e.srtt(), e.rttvar()), (Some(ms(560)), ms(95)));
        e.seed(ms(100), ms(10), &RTO);
        assert_eq!(e.srtt(), Some(ms(560)));
        let mut e = Estimator::new(&RTO);
        e.seed(ms(550), ms(200), &RTO);
        assert_eq!(e.rto(), ms(1350));
    }

    #[test]
    fn backoff_doubles_up_to_the_maximum_and_a_sample_clears_it() {
        let mut e = Estimator::new(&RTO);
        e.sample(ms(100), 1, &RTO);
        for _ in 0..40 {
            e.back_off(&RTO, false);
        }
        assert_eq!(e.rto(), ms(60_000));
        e.sample(ms(100), 1, &RTO);
        assert_eq!(e.backoff(), 0);
    }

    #[test]
    fn the_margin_outlasts_a_steady_path() {
        let steady = |rto: Rto| {
            let mut e = Estimator::new(&rto);
            (0..200).for_each(|_| e.sample(ms(400), 1, &rto));
            e.rto()
        };
        let modern = Config::modern().rto;
        assert_eq!(steady(modern), ms(600));
        assert!(steady(Rto { margin: Duration::ZERO, ..modern }) < ms(410), "the variation is all there is");
        // A short path: no less than the lower bound.
        let mut e = Estimator::new(&modern);
        (0..200).for_each(|_| e.sample(ms(1), 1, &modern));
        assert_eq!(e.rto(), ms(201));
    }

    #[test]
    fn the_minimum_applies_before_or_after_the_backoff() {
        // Converged: srtt 100 ms, rttvar near 0, G 100 ms: base 200 ms.
        let settle = |rto: Rto| {
            let mut e = Estimator::new(&rto);
            (0..200).for_each(|_| e.sample(ms(100), 1, &rto));
            e.back_off(&rto, false);
            e.rto()
        };
        let after = Config::ns2_2001().rto;
        assert_eq!(settle(after), ms(1000), "2 · 200 ms is raised to 1 s");
        assert_eq!(settle(Rto { min_before_backoff: true, ..after }), ms(2000), "1 s is doubled");
    }

    #[test]
    fn a_round_of_many_samples_weighs_as_much_as_one() {
        let mut one = Estimator::new(&RTO);
        one.sample(ms(250), 1, &RTO);
        let mut many = one.clone();
        one.sample(ms(100), 1, &RTO);
        (0..50).for_each(|_| many.sample(ms(100), 50, &RTO));
        let srtt = many.srtt().expect("measured");
        // exp(-1/8) and exp(-1/4) in place of 7/8 and 3/4.
        assert!(srtt.abs_diff(one.srtt().expect("measured")) < ms(3), "{srtt:?}");
        assert!(many.rttvar() > ms(105) && many.rttvar() < one.rttvar(), "{:?}", many.rttvar());
    }
}

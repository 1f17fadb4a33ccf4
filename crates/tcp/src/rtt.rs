//! Round-trip time estimation and the retransmission timeout (RFC 6298).

use crate::config::Rto;
use skyhaul_base::{Duration, Instant};

/// Smoothed RTT, its variation and the timeout that follows.
#[derive(Clone, Debug)]
pub(crate) struct Estimator {
    config: Rto,
    srtt: Option<Duration>,
    rttvar: Duration,
    min: Option<Duration>,
    latest: Option<Duration>,
    /// `srtt + max(G, 4·rttvar)`, before bounds and backoff.
    base: Duration,
    backoff: u32,
    /// One segment being timed: its end and when it left.
    timed: Option<(u64, Instant)>,
}

impl Estimator {
    pub(crate) fn new(config: Rto) -> Self {
        Self {
            base: config.initial,
            config,
            srtt: None,
            rttvar: Duration::ZERO,
            min: None,
            latest: None,
            backoff: 0,
            timed: None,
        }
    }

    /// Begins with what an earlier connection on the path knew, unless there is a sample already.
    pub(crate) fn seed(&mut self, srtt: Duration, rttvar: Duration) {
        if self.srtt.is_none() {
            self.srtt = Some(srtt);
            self.rttvar = rttvar;
            self.base = srtt + self.config.tick.max(rttvar * 4);
        }
    }
    /// A valid sample; clears the backoff.
    pub(crate) fn sample(&mut self, rtt: Duration) {
        match self.srtt {
            None => {
                self.srtt = Some(rtt);
                self.rttvar = rtt / 2;
            }
            Some(srtt) => {
                // RFC 6298 §2.3: rttvar first, from the old srtt.
                self.rttvar =
                    Duration::from_nanos((self.rttvar.as_nanos() * 3 + srtt.abs_diff(rtt).as_nanos()) / 4);
                self.srtt = Some(Duration::from_nanos((srtt.as_nanos() * 7 + rtt.as_nanos()) / 8));
            }
        }
        self.latest = Some(rtt);
        self.min = Some(self.min.map_or(rtt, |m| m.min(rtt)));
        self.backoff = 0;
        let srtt = self.srtt.unwrap_or(rtt);
        self.base = srtt + self.config.tick.max(self.rttvar * 4);
    }

    /// The timeout in force.
    pub(crate) fn rto(&self) -> Duration {
        let (min, max) = (self.config.min, self.config.max);
        let factor = 1u64.checked_shl(self.backoff).unwrap_or(u64::MAX);
        if self.config.min_before_backoff {
            (self.base.max(min) * factor).min(max)
        } else {
            (self.base * factor).max(min).min(max)
        }
    }
    pub(crate) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(32);
    }
    pub(crate) fn backoff(&self) -> u32 {
        self.backoff
    }
    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.srtt
    }
    pub(crate) fn rttvar(&self) -> Duration {
        self.rttvar
    }
    pub(crate) fn min(&self) -> Option<Duration> {
        self.min
    }

    /// Starts timing a segment that ends at `end`, unless one is being timed.
    pub(crate) fn time(&mut self, end: u64, now: Instant) {
        if self.timed.is_none() {
            self.timed = Some((end, now));
        }
    }
    /// Karn's rule: after a retransmission the segment being timed says nothing.
    pub(crate) fn stop_timing(&mut self) {
        self.timed = None;
    }
    /// The RTT of the timed segment, if `una` covers it.
    pub(crate) fn timed_sample(&mut self, una: u64, now: Instant) -> Option<Duration> {
        match self.timed {
            Some((end, sent)) if una >= end => {
                self.timed = None;
                Some(now - sent)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn rfc_6298_arithmetic() {
        let mut e = Estimator::new(Config::rfc().rto);
        assert_eq!(e.rto(), ms(1000));
        e.sample(ms(550));
        assert_eq!((e.srtt(), e.rttvar(), e.rto()), (Some(ms(550)), ms(275), ms(550 + 1100)));
        e.sample(ms(630));
        // rttvar = 3/4·275 + 1/4·80 = 226.25; srtt = 7/8·550 + 1/8·630 = 560.
        assert_eq!((e.srtt(), e.rttvar()), (Some(ms(560)), Duration::from_micros(226_250)));
        assert_eq!(e.rto(), ms(560 + 905));
    }

    #[test]
    fn a_remembered_rtt_is_refined_and_never_replaces_a_sample() {
        let mut e = Estimator::new(Config::rfc().rto);
        e.seed(ms(550), ms(100));
        assert_eq!((e.srtt(), e.rttvar(), e.rto(), e.min()), (Some(ms(550)), ms(100), ms(1000), None));
        e.sample(ms(630));
        // rttvar = 3/4·100 + 1/4·80; srtt = 7/8·550 + 1/8·630.
        assert_eq!((e.srtt(), e.rttvar()), (Some(ms(560)), ms(95)));
        e.seed(ms(100), ms(10));
        assert_eq!(e.srtt(), Some(ms(560)));
        let mut e = Estimator::new(Config::rfc().rto);
        e.seed(ms(550), ms(200));
        assert_eq!(e.rto(), ms(1350));
    }

    #[test]
    fn backoff_doubles_up_to_the_maximum_and_a_sample_clears_it() {
        let mut e = Estimator::new(Config::rfc().rto);
        e.sample(ms(100));
        for _ in 0..40 {
            e.back_off();
        }
        assert_eq!(e.rto(), ms(60_000));
        e.sample(ms(100));
        assert_eq!(e.backoff(), 0);
    }

    #[test]
    fn the_minimum_applies_before_or_after_the_backoff() {
        // Converged: srtt 100 ms, rttvar near 0, G 100 ms: base 200 ms.
        let settle = |rto: Rto| {
            let mut e = Estimator::new(rto);
            (0..200).for_each(|_| e.sample(ms(100)));
            e.back_off();
            e.rto()
        };
        let after = Config::ns2_2001().rto;
        assert_eq!(settle(after), ms(1000), "min(2·200 ms) is raised to 1 s");
        assert_eq!(settle(Rto { min_before_backoff: true, ..after }), ms(2000), "1 s is doubled");
    }
}

//! The receive rates that limit the sender (X_recv_set of RFC 5348 §4.3).

use skyhaul_base::{Duration, Instant};

/// Reported receive rates with the times of their reports. It begins with infinity: nothing limits yet.
#[derive(Clone, Debug)]
pub(crate) struct ReceiveRates {
    set: Vec<(Instant, f64)>,
}

impl ReceiveRates {
    pub(crate) fn new(now: Instant) -> Self {
        Self { set: vec![(now, f64::INFINITY)] }
    }
    /// The maximum.
    pub(crate) fn max(&self) -> f64 {
        self.set.iter().map(|(_, x)| *x).fold(0.0, f64::max)
    }
    /// Adds a rate; those older than two RTTs are dropped.
    pub(crate) fn update(&mut self, now: Instant, rate: f64, rtt: Duration) {
        self.set.retain(|(at, _)| now - *at <= rtt * 2);
        self.set.push((now, rate));
    }
    /// Adds a rate; only the maximum stays, with the current time, and never infinity.
    pub(crate) fn maximize(&mut self, now: Instant, rate: f64) {
        let finite = self.set.iter().map(|(_, x)| *x).filter(|x| x.is_finite());
        let most = finite.fold(rate, f64::max);
        self.replace(now, most);
    }
    pub(crate) fn halve(&mut self) {
        self.set.iter_mut().for_each(|(_, x)| *x /= 2.0);
    }
    /// Replaces all rates by this one.
    pub(crate) fn replace(&mut self, now: Instant, rate: f64) {
        self.set.clear();
        self.set.push((now, rate));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_old_is_forgotten_and_infinity_yields_to_what_was_measured() {
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let rtt = Duration::from_millis(100);
        let mut set = ReceiveRates::new(at(0));
        set.update(at(100), 50.0, rtt);
        assert_eq!(set.max(), f64::INFINITY);
        set.update(at(250), 40.0, rtt);
        assert_eq!(set.max(), 50.0);
        set.update(at(301), 30.0, rtt);
        assert_eq!(set.max(), 40.0, "the first is older than two round-trip times");
        set.halve();
        assert_eq!(set.max(), 20.0);
        set.maximize(at(400), 10.0);
        assert_eq!(set.max(), 20.0);
        set.update(at(550), 5.0, rtt);
        assert_eq!(set.max(), 20.0, "stamped anew when it was the largest");
        let mut set = ReceiveRates::new(at(0));
        set.maximize(at(1), 7.0);
        assert_eq!(set.max(), 7.0);
    }
}

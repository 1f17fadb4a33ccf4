//! The RTT samples of one round, and their quantiles.

use skyhaul_base::Duration;

/// Maximum samples kept per round: enough for a quantile of 90 %, few enough to sort once a round.
const KEPT: usize = 64;
/// Below this many samples the minimum is used as lower quartile: a quarter of fewer is no more than one sample.
const QUARTILE: usize = 8;
/// Below this many samples no quantile counts as measured.
const FEW: usize = 3;

/// The samples of the current round, in seconds. When there are too many, every second one is dropped, and from
/// then on only every second one is taken, so that they stay spread over the whole round.
#[derive(Clone, Debug)]
pub(super) struct Samples {
    /// Minimum, upper bounds included.
    least: f64,
    /// The samples kept, and their number.
    kept: [f64; KEPT],
    count: usize,
    /// One sample in `stride` is taken; `skipped` counts the samples since the last one taken.
    stride: u32,
    skipped: u32,
}

/// RTTs of a round, s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rtts {
    /// Minimum, upper bounds included.
    pub(super) least: f64,
    /// Lower quartile: a queue that stands delays even these, jitter does not. The minimum if there were few.
    pub(super) lower: f64,
    /// Median.
    pub(super) median: f64,
    /// 90 % quantile.
    pub(super) peak: f64,
    /// There were enough samples for quantiles, and enough for a lower quartile of its own.
    pub(super) measured: bool,
    pub(super) many: bool,
}

impl Samples {
    pub(super) const NONE: Self =
        Self { least: f64::INFINITY, kept: [0.0; KEPT], count: 0, stride: 1, skipped: 0 };

    /// Adds an upper bound of an RTT, s: for the minimum only.
    pub(super) fn bound(&mut self, rtt: f64) {
        self.least = self.least.min(rtt);
    }

    pub(super) fn add(&mut self, rtt: Duration) {
        self.bound(rtt.as_secs_f64());
        self.skipped += 1;
        if self.skipped < self.stride {
            return;
        }
        self.skipped = 0;
        if self.count == KEPT {
            for i in 0..KEPT / 2 {
                self.kept[i] = self.kept[2 * i];
            }
            self.count = KEPT / 2;
            self.stride *= 2;
        }
        self.kept[self.count] = rtt.as_secs_f64();
        self.count += 1;
    }

    /// RTTs of the completed round, `None` without any; the next round begins.
    pub(super) fn take(&mut self) -> Option<Rtts> {
        let round = &mut self.kept[..self.count];
        round.sort_unstable_by(f64::total_cmp);
        let (least, count) = (self.least, round.len());
        let at = |percent: usize| round.get(percent * count.saturating_sub(1) / 100).map_or(least, |r| *r);
        let found = least.is_finite().then(|| Rtts {
            least,
            lower: if count >= QUARTILE { at(25) } else { least },
            median: at(50),
            peak: at(90),
            measured: count >= FEW,
            many: count >= QUARTILE,
        });
        (self.least, self.count, self.stride, self.skipped) = (f64::INFINITY, 0, 1, 0);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_few_and_of_many() {
        let mut samples = Samples::NONE;
        assert_eq!(samples.take(), None);
        samples.add(Duration::from_millis(2));
        samples.add(Duration::from_millis(1));
        let two = samples.take().expect("a minimum");
        assert_eq!((two.least, two.lower, two.measured, two.many), (1e-3, 1e-3, false, false));
        for n in [11, 1000] {
            for i in (0..n).rev() {
                samples.add(Duration::from_secs(i));
            }
            let q = samples.take().expect("enough");
            assert_eq!((q.least, q.measured, q.many), (0.0, true, true));
            for (found, share) in [(q.lower, 0.25), (q.median, 0.5), (q.peak, 0.9)] {
                let expected = share * n as f64;
                assert!((found - expected).abs() <= 1.0 + n as f64 / 32.0, "{n}: {found}, {expected}");
            }
        }
    }

    #[test]
    fn a_bound_is_no_measurement() {
        let mut samples = Samples::NONE;
        samples.bound(0.5);
        let found = samples.take().expect("a bound");
        assert_eq!((found.lower, found.peak, found.measured), (0.5, 0.5, false));
    }
}

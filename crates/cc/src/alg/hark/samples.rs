//! The RTT samples of one round, and their quantiles.

use skyhaul_base::Duration;

/// Maximum samples kept per round: enough for a quantile of 90 %, few enough to sort once a round.
const KEPT: usize = 64;

/// The samples of the current round, in seconds. When there are too many, every second one is dropped, and from
/// then on only every second one is taken, so that they stay spread over the whole round.
#[derive(Clone, Debug)]
pub(super) struct Samples {
    kept: [f64; KEPT],
    count: usize,
    stride: u32,
    skipped: u32,
}

/// Quantiles of the RTTs of a round, s.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Quantiles {
    /// Half of them were no longer.
    pub(super) median: f64,
    /// Upper quartile.
    pub(super) upper: f64,
    /// 90 % quantile.
    pub(super) peak: f64,
}

impl Quantiles {
    /// Quantiles of a single value.
    pub(super) fn of_one(rtt: f64) -> Self {
        Self { median: rtt, upper: rtt, peak: rtt }
    }

    /// Distances of the quantiles from the median.
    pub(super) fn beyond_median(self) -> Self {
        Self { median: 0.0, upper: self.upper - self.median, peak: self.peak - self.median }
    }
}

impl Samples {
    pub(super) const NONE: Self = Self { kept: [0.0; KEPT], count: 0, stride: 1, skipped: 0 };

    pub(super) fn add(&mut self, rtt: Duration) {
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

    /// The quantiles of the completed round, `None` with fewer than three samples; the next round begins.
    pub(super) fn take(&mut self) -> Option<Quantiles> {
        let round = &mut self.kept[..self.count];
        round.sort_unstable_by(f64::total_cmp);
        let at = |percent: usize| round[percent * (round.len() - 1) / 100];
        let found = (round.len() >= 3).then(|| Quantiles { median: at(50), upper: at(75), peak: at(90) });
        (self.count, self.stride, self.skipped) = (0, 1, 0);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_few_and_of_many() {
        let mut samples = Samples::NONE;
        samples.add(Duration::from_millis(2));
        samples.add(Duration::from_millis(1));
        assert_eq!(samples.take(), None, "two say nothing");
        for n in [11, 1000] {
            for i in (0..n).rev() {
                samples.add(Duration::from_secs(i));
            }
            let q = samples.take().expect("enough");
            for (found, share) in [(q.median, 0.5), (q.upper, 0.75), (q.peak, 0.9)] {
                let expected = share * n as f64;
                assert!((found - expected).abs() <= 1.0 + n as f64 / 32.0, "{n}: {found}, {expected}");
            }
        }
    }
}

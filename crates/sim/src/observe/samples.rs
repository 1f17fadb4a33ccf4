//! Mean and standard deviation of samples.

/// Running mean and sum of squared deviations (Welford 1962), which loses no precision if the deviation is small.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Samples {
    n: u64,
    mean: f64,
    squares: f64,
}

impl Samples {
    pub(crate) fn add(&mut self, x: f64) {
        self.n += 1;
        let d = x - self.mean;
        self.mean += d / self.n as f64;
        self.squares += d * (x - self.mean);
    }

    /// Mean and standard deviation of the samples themselves; `None` without any.
    pub(crate) fn spread(&self) -> Option<Spread> {
        let n = self.n as f64;
        (self.n > 0).then(|| Spread { mean: self.mean, deviation: (self.squares / n).sqrt() })
    }
}

/// Mean and standard deviation over time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// Standard deviation, in the unit of the mean.
    pub deviation: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_deviation_by_hand() {
        let mut s = Samples::default();
        assert_eq!(s.spread(), None);
        s.add(5e9);
        assert_eq!(s.spread(), Some(Spread { mean: 5e9, deviation: 0.0 }));
        [5e9 + 1.0, 5e9 + 2.0, 5e9 + 1.0].into_iter().for_each(|x| s.add(x));
        let spread = s.spread().expect("four");
        assert_eq!(spread.mean, 5e9 + 1.0);
        assert!((spread.deviation - 0.5_f64.sqrt()).abs() < 1e-6, "{spread:?}");
    }
}

//! A histogram of time spans, with the bins of HdrHistogram (G. Tene, "HdrHistogram: a high dynamic range histogram") for
//! three digits: accurate to 0.1 % or 1 µs, up to a day.

use hdrhistogram::Histogram;
use skyhaul_base::Duration;

/// Longer spans count as this, in microseconds: a day.
const LONGEST: u64 = 86_400_000_000;

/// Counts time spans. It uses no memory before the first one.
#[derive(Clone, Debug, Default)]
pub struct Spans(Option<Histogram<u32>>);

impl Spans {
    /// Adds a time span.
    pub fn record(&mut self, span: Duration) {
        let new = || Histogram::new_with_bounds(1, LONGEST, 3).expect("from 1 to a number above 2");
        self.0.get_or_insert_with(new).saturating_record(span.as_nanos() / 1000);
    }
    /// Number of entries.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.as_ref().map_or(0, Histogram::len)
    }
    /// The time span at `quantile`, which is from 0 to 1, in seconds; `None` without entries.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Option<f64> {
        Some(self.0.as_ref()?.value_at_quantile(quantile) as f64 * 1e-6)
    }
    /// Memory of its counts, bytes.
    #[must_use]
    pub fn held(&self) -> usize {
        self.0.as_ref().map_or(0, |counts| counts.distinct_values() * size_of::<u32>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_accurate_to_a_thousandth_or_a_microsecond() {
        let mut spans = Spans::default();
        assert_eq!((spans.total(), spans.quantile(0.5)), (0, None));
        let micros: Vec<u64> = (0..34).flat_map(|doubling| [1 << doubling, 3 << doubling]).collect();
        micros.iter().for_each(|us| spans.record(Duration::from_micros(*us)));
        let mut sorted = micros;
        sorted.sort_unstable();
        for (i, us) in sorted.iter().enumerate() {
            let exact = *us as f64 * 1e-6;
            let found = spans.quantile((i + 1) as f64 / sorted.len() as f64).expect("there are some");
            assert!((found - exact).abs() <= (1e-3 * exact).max(1e-6), "{exact}: {found}");
        }
        spans.record(Duration::from_secs(1_000_000));
        assert!(spans.quantile(1.0).is_some_and(|longest| (longest / 86_400.0 - 1.0).abs() < 1e-3));
    }
}

//! Time spans of a condition, from a curve that rises while it lasts.

use serde::Serialize;

/// Tolerance between a sum of times and the time between two samples, s.
const ROUNDED: f64 = 1e-6;

/// A time span.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Span {
    pub(super) from: f64,
    pub(super) to: f64,
    /// The series, distinguished by colour.
    pub(super) series: String,
}

/// The spans in which a curve of accumulated time rose, in the unit of the times. Exact for spans that include a
/// sample; a span that begins and ends between two samples is placed at the later one.
pub(super) fn rising(points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut spans: Vec<(f64, f64)> = Vec::new();
    let mut before: Option<(f64, f64)> = None;
    for (t, v) in points {
        let Some((t0, v0)) = before.replace((t, v)) else { continue };
        let gain = v - v0;
        if gain.is_nan() || gain <= 0.0 {
            continue;
        }
        let gain = gain.min(t - t0);
        match spans.last_mut().filter(|(_, end)| *end + ROUNDED >= t0) {
            // The span goes on from the last sample, and may have ended since.
            Some((_, end)) => *end = t0 + gain,
            None => spans.push((t - gain, t)),
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_over_samples_is_one_span_and_exact() {
        // From 1.7 to 4.25, and 0.1 s between 6 and 7.
        let curve = [
            (0.0, f64::NAN),
            (1.0, 0.0),
            (2.0, 0.3),
            (3.0, 1.3),
            (4.0, 2.3),
            (5.0, 2.55),
            (6.0, 2.55),
            (7.0, 2.65),
        ];
        let found = rising(curve.into_iter());
        let near = |a: (f64, f64), b: (f64, f64)| (a.0 - b.0).abs() < 1e-9 && (a.1 - b.1).abs() < 1e-9;
        assert!(found.len() == 2 && near(found[0], (1.7, 4.25)) && near(found[1], (6.9, 7.0)), "{found:?}");
        assert_eq!(rising([(0.0, 1.0), (1.0, 1.0)].into_iter()), []);
    }
}

//! Functions of cumulative curves, such as `acked`, over sliding windows: when a share settles, when a rate is there
//! again, how uneven a rate is.
//!
//! What never happens within the run is *censored*: the time is that from the beginning to the end of the run, so
//! that a mean over seeds is a lower bound, and never misses the seeds that did worst.

use crate::observed::Sampled;
use crate::stats;

/// How much curves grow together in (from, to]. Before its first sample a curve has not begun.
fn growth(curves: &[&Sampled], from: f64, to: f64) -> f64 {
    let at = |c: &Sampled, t: f64| Some(c.at(t)).filter(|v| v.is_finite()).unwrap_or(0.0);
    curves.iter().map(|c| at(c, to) - at(c, from)).sum()
}

/// The most intervals of [`variation`]: samples of a run are far fewer.
const MOST_INTERVALS: f64 = 1e6;

/// Times at which a window may begin: those of the samples from `from` on from which a whole window lies in the run;
/// and the end of the run. `None` without curves, without a window, if `from` is after the end, and if a bound is NaN.
fn begins(curves: &[&Sampled], from: f64, window: f64, bounds: &[f64]) -> Option<(Vec<f64>, f64)> {
    let end = curves.iter().filter_map(|c| c.time.last()).map(|t| t.0).fold(f64::NAN, f64::max);
    if !(window > 0.0 && from <= end) || bounds.iter().any(|b| b.is_nan()) {
        return None;
    }
    let longest = curves.iter().max_by_key(|c| c.time.len());
    let times = longest.into_iter().flat_map(|c| &c.time).map(|t| t.0);
    Some((times.filter(|t| *t >= from && *t + window <= end).collect(), end))
}

/// The time from `from` until the share of `part` in `whole` has settled: in every window that begins later it is
/// from `low` to `high`. NaN without curves, without a window, if `from` is after the end, and if a bound is NaN.
///
/// RFC 5166 §2.3.3: the delta-fair convergence time of Bansal, Balakrishnan, Floyd, Shenker 2001 (two flows go from
/// shares of 100/101 and 1/101 of the link to (1 + δ)/2 and (1 − δ)/2), here of a flow that stays there.
pub(super) fn settle(part: &[&Sampled], whole: &[&Sampled], [from, window, low, high]: [f64; 4]) -> f64 {
    let Some((times, end)) = begins(whole, from, window, &[low, high]) else { return f64::NAN };
    let fair = |t: f64| {
        let share = growth(part, t, t + window) / growth(whole, t, t + window);
        (low..=high).contains(&share)
    };
    let settled = times.iter().rev().take_while(|t| fair(**t)).last();
    settled.map_or(end, |t| *t) - from
}

/// The time from `from` until the curves together grow by `level` a second over a window that begins then. NaN
/// as for [`settle`].
pub(super) fn regain(curves: &[&Sampled], [from, window, level]: [f64; 3]) -> f64 {
    let Some((times, end)) = begins(curves, from, window, &[level]) else { return f64::NAN };
    let enough = |t: &f64| growth(curves, *t, *t + window) >= level * window;
    times.into_iter().find(enough).unwrap_or(end) - from
}

/// Coefficient of variation of the growth in intervals of `step` between `from` and `to` (RFC 5166 §2.2.2); NaN of
/// fewer than two intervals or more than a million, or without growth.
pub(super) fn variation(curve: &Sampled, from: f64, to: f64, step: f64) -> f64 {
    let n = (to - from) / step + 1e-9;
    if !(2.0..=MOST_INTERVALS).contains(&n) || step <= 0.0 {
        return f64::NAN;
    }
    let n = n as usize;
    let edge = |i: usize| from + step * i as f64;
    let parts: Vec<f64> = (0..n).map(|i| growth(&[curve], edge(i), edge(i + 1))).collect();
    stats::deviation(&parts) / stats::mean(&parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observed::Number;

    /// A curve with a sample each second, that grows by these amounts.
    fn grows(by: &[f64]) -> Sampled {
        let mut sum = 0.0;
        let mut value = vec![Number(0.0)];
        for more in by {
            sum += more;
            value.push(Number(sum));
        }
        let time = (0..value.len()).map(|i| Number(i as f64)).collect();
        Sampled { name: "acked".into(), group: "a".into(), flow: 0, time, value }
    }

    #[test]
    fn a_share_has_settled_when_it_leaves_the_range_no_more() {
        let first = grows(&[10.0, 10.0, 10.0, 9.0, 6.0, 5.0, 9.0, 5.0, 5.0, 5.0]);
        let late = grows(&[0.0, 0.0, 0.0, 1.0, 4.0, 5.0, 1.0, 5.0, 5.0, 5.0]);
        let both = [&first, &late];
        // By second: shares of 0.1, 0.4, 0.5, then once more 0.1, and 0.5 from the seventh second on.
        assert_eq!(settle(&[&late], &both, [3.0, 1.0, 0.25, 0.75]), 4.0);
        // Over two seconds the relapse is 6 of 20: it does not leave the range.
        assert_eq!(settle(&[&late], &both, [3.0, 2.0, 0.25, 0.75]), 0.0);
        // It never gets more than half: censored at the end.
        assert_eq!(settle(&[&late], &both, [3.0, 1.0, 0.6, 1.0]), 7.0);
        // A window longer than the run proves nothing.
        assert_eq!(settle(&[&late], &both, [3.0, 20.0, 0.0, 1.0]), 7.0);
        assert_eq!(settle(&[&first], &both, [0.0, 1.0, 0.0, 1.0]), 0.0);
        assert!(settle(&[], &[], [0.0, 1.0, 0.0, 1.0]).is_nan());
        // After the end, without a window, without a bound.
        for [from, window, low] in
            [[20.0, 1.0, 0.2], [3.0, 0.0, 0.2], [3.0, 1.0, f64::NAN], [f64::NAN, 1.0, 0.2]]
        {
            assert!(settle(&[&late], &both, [from, window, low, 0.8]).is_nan(), "{from} {window} {low}");
            assert!(regain(&both, [from, window, low]).is_nan(), "{from} {window} {low}");
        }
    }

    #[test]
    fn nothing_at_all_is_no_fair_share() {
        let (a, b) = (grows(&[1.0, 0.0, 0.0]), grows(&[1.0, 0.0, 0.0]));
        assert_eq!(settle(&[&a], &[&a, &b], [0.0, 1.0, 0.25, 0.75]), 3.0);
    }

    #[test]
    fn a_rate_is_regained_when_a_whole_window_has_it() {
        let c = grows(&[8.0, 8.0, 0.0, 0.0, 2.0, 9.0, 7.0, 8.0]);
        assert_eq!(regain(&[&c], [2.0, 1.0, 8.0]), 3.0);
        assert_eq!(regain(&[&c], [2.0, 2.0, 8.0]), 3.0);
        assert_eq!(regain(&[&c], [0.0, 1.0, 8.0]), 0.0);
        assert_eq!(regain(&[&c], [2.0, 1.0, 10.0]), 6.0, "never: until the end");
        assert_eq!(regain(&[&c, &c], [2.0, 1.0, 18.0]), 3.0, "curves count together");
        assert!(regain(&[], [0.0, 1.0, 1.0]).is_nan());
    }

    #[test]
    fn variation_is_that_of_the_textbook() {
        // 4, 8, 4, 8: mean 6, deviation √(16/3).
        let c = grows(&[4.0, 8.0, 4.0, 8.0]);
        assert!((variation(&c, 0.0, 4.0, 1.0) - (16.0f64 / 3.0).sqrt() / 6.0).abs() < 1e-12);
        assert_eq!(variation(&c, 0.0, 4.0, 2.0), 0.0);
        let bad = [(0.0, 1.0, 1.0), (0.0, 4.0, 0.0), (4.0, 0.0, 1.0), (0.0, 4.0, f64::NAN), (4.0, 0.0, -1.0)];
        let without_end = [(0.0, f64::INFINITY, 1.0), (0.0, 4.0, 1e-12), (f64::NEG_INFINITY, 4.0, 1.0)];
        for (from, to, step) in bad.into_iter().chain(without_end) {
            assert!(variation(&c, from, to, step).is_nan(), "{from} {to} {step}");
        }
    }
}

//! Comparison of two results directories: metrics that differ significantly, and verdicts that changed.
//!
//! The same seed gives the same random losses, so runs with equal seeds are compared seed by seed (the 95 % interval
//! of the paired differences), and runs with other seeds by Welch's interval of the difference of means. A single
//! common seed has no interval: then any difference counts. A single, different seed on each side decides nothing.

mod read;
mod show;

pub use read::{Kind, Measured, REQUIREMENTS, Results, Set, read};
pub use show::{json, text};

use crate::error::CompareError;
use crate::results::MANIFEST;
use skyhaul_study::stats::{self, Estimate};
use std::collections::{BTreeMap, BTreeSet};

/// Outcome for a metric of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The interval of the difference contains zero: not significant.
    Within,
    /// A single, different seed on each side: there is no interval.
    Unknown,
    /// The interval does not contain zero.
    Different,
}

/// A metric of a cell on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Label of the cell.
    pub cell: String,
    /// The metric.
    pub metric: String,
    /// Mean on the left.
    pub left: f64,
    /// Mean on the right.
    pub right: f64,
    /// Right minus left with its interval; `n` is the number of pairs, or of seeds on the side with fewer.
    pub difference: Estimate,
    /// Whether compared seed by seed.
    pub paired: bool,
    /// The outcome.
    pub status: Status,
}

/// A study, or a run, on both sides.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// Name; empty if there is only one.
    pub name: String,
    /// Metrics with the same numbers.
    pub identical: usize,
    /// All other metrics present on both sides.
    pub differences: Vec<Difference>,
    /// Items only on the left.
    pub only_left: Vec<String>,
    /// Items only on the right.
    pub only_right: Vec<String>,
    /// Claims whose verdict changed: claim, left, right.
    pub verdicts: Vec<(String, String, String)>,
}

impl Compared {
    /// Metrics that differ significantly.
    pub fn certain(&self) -> impl Iterator<Item = &Difference> {
        self.differences.iter().filter(|d| d.status == Status::Different)
    }

    /// True if nothing differs significantly.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        let sides = self.only_left.is_empty() && self.only_right.is_empty() && self.verdicts.is_empty();
        sides && self.certain().next().is_none()
    }
}

/// Compares two results directories.
///
/// # Errors
/// If they are of different kinds, profiles or, unless `across_versions`, engines.
pub fn compare(
    left: &Results,
    right: &Results,
    across_versions: bool,
) -> Result<Vec<Compared>, CompareError> {
    let (a, b) = (left.path.clone(), right.path.clone());
    if left.kind != right.kind {
        return Err(CompareError::Kinds { a, b, left: left.kind.word(), right: right.kind.word() });
    }
    if left.profile != right.profile {
        let (left, right) = (left.profile.clone(), right.profile.clone());
        return Err(CompareError::Profiles { a, b, left, right });
    }
    if left.engine != right.engine && !across_versions {
        let (left, right) = (left.engine.clone(), right.engine.clone());
        return Err(CompareError::Engines { manifest: b.join(MANIFEST), a, b, left, right });
    }
    let empty = Set::default();
    let names: BTreeSet<&String> = left.sets.keys().chain(right.sets.keys()).collect();
    let one = |name: &String| match (left.sets.get(name), right.sets.get(name)) {
        (Some(_), None) => {
            Compared { name: name.clone(), only_left: vec!["all of it".into()], ..Compared::default() }
        }
        (None, Some(_)) => {
            Compared { name: name.clone(), only_right: vec!["all of it".into()], ..Compared::default() }
        }
        (l, r) => sets(name, l.unwrap_or(&empty), r.unwrap_or(&empty)),
    };
    Ok(names.into_iter().map(one).collect())
}

fn sets(name: &str, left: &Set, right: &Set) -> Compared {
    let mut out = Compared { name: name.to_owned(), ..Compared::default() };
    let cells: BTreeSet<&String> = left.cells.keys().chain(right.cells.keys()).collect();
    for cell in cells {
        match (left.cells.get(cell), right.cells.get(cell)) {
            (Some(l), Some(r)) => metrics(&mut out, cell, l, r),
            (Some(_), None) => out.only_left.push(cell.clone()),
            _ => out.only_right.push(cell.clone()),
        }
    }
    let claims: BTreeSet<&String> = left.verdicts.keys().chain(right.verdicts.keys()).collect();
    for claim in claims {
        let of = |set: &Set| set.verdicts.get(claim).cloned().unwrap_or_else(|| "not there".to_owned());
        let (l, r) = (of(left), of(right));
        if l != r {
            out.verdicts.push((claim.clone(), l, r));
        }
    }
    out
}

fn metrics(out: &mut Compared, cell: &str, left: &Measured, right: &Measured) {
    let names: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
    let words = |metric: &String| if cell.is_empty() { metric.clone() } else { format!("{cell}: {metric}") };
    for metric in names {
        match (left.get(metric), right.get(metric)) {
            (Some(l), Some(r)) => match one(cell, metric, l, r) {
                Some(d) => out.differences.push(d),
                None => out.identical += 1,
            },
            (Some(_), None) => out.only_left.push(words(metric)),
            _ => out.only_right.push(words(metric)),
        }
    }
}

/// Compares the values by seed; `None` if they are the same.
fn one(
    cell: &str,
    metric: &str,
    left: &BTreeMap<u64, f64>,
    right: &BTreeMap<u64, f64>,
) -> Option<Difference> {
    let same = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan());
    if left.len() == right.len() && left.iter().zip(right).all(|((s, a), (t, b))| s == t && same(*a, *b)) {
        return None;
    }
    // A seed whose value is missing on both sides says nothing.
    let known = |side: &BTreeMap<u64, f64>, other: &BTreeMap<u64, f64>| -> BTreeMap<u64, f64> {
        let both_missing = |seed: u64, x: f64| x.is_nan() && other.get(&seed).is_some_and(|y| y.is_nan());
        side.iter().map(|(seed, x)| (*seed, *x)).filter(|(seed, x)| !both_missing(*seed, *x)).collect()
    };
    let (left, right) = (&known(left, right), &known(right, left));
    let pairs: Vec<(f64, f64)> = left.iter().filter_map(|(s, a)| Some((*a, *right.get(s)?))).collect();
    let alone = |side: &BTreeMap<u64, f64>| side.values().copied().collect::<Vec<f64>>();
    let paired = pairs.len() > 1 || (pairs.len() == 1 && left.len() == 1 && right.len() == 1);
    let (l, r): (Vec<f64>, Vec<f64>) =
        if paired { pairs.into_iter().unzip() } else { (alone(left), alone(right)) };
    let difference = if paired { stats::paired_difference(&r, &l, 1.0, 0.0) } else { welch(&l, &r) };
    let missing = |side: &[f64]| side.iter().all(|x| x.is_nan());
    if !paired && (difference.n < 2 && l == r || missing(&l) && missing(&r)) {
        return None;
    }
    let status = if !difference.mean.is_finite() {
        // A value is missing.
        Status::Different
    } else if paired && difference.n == 1 {
        Status::Different
    } else if difference.half.is_infinite() {
        Status::Unknown
    } else if difference.mean.abs() > difference.half {
        Status::Different
    } else {
        Status::Within
    };
    let (left, right) = (stats::mean(&l), stats::mean(&r));
    let (cell, metric) = (cell.to_owned(), metric.to_owned());
    Some(Difference { cell, metric, left, right, difference, paired, status })
}

/// The difference of means of independent samples with Welch's interval; the degrees of freedom (Satterthwaite) are
/// rounded down, which widens the interval.
fn welch(left: &[f64], right: &[f64]) -> Estimate {
    let mean = stats::mean(right) - stats::mean(left);
    let n = left.len().min(right.len());
    if n < 2 {
        return Estimate { mean, half: f64::INFINITY, n };
    }
    let share = |v: &[f64]| stats::deviation(v).powi(2) / v.len() as f64;
    let (a, b) = (share(left), share(right));
    if a + b == 0.0 {
        return Estimate { mean, half: 0.0, n };
    }
    let freedom = (a + b).powi(2) / (a * a / (left.len() - 1) as f64 + b * b / (right.len() - 1) as f64);
    let half = stats::t_quantile_975((freedom as usize).max(1)) * (a + b).sqrt();
    Estimate { mean, half, n }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(first: u64, values: &[f64]) -> BTreeMap<u64, f64> {
        values.iter().enumerate().map(|(i, v)| (first + i as u64, *v)).collect()
    }

    #[test]
    fn equal_seeds_are_compared_in_pairs_and_others_are_not() {
        // A common spread of 10 hides a difference of 1 unless it is taken out seed by seed.
        let left = [10.0, 20.0, 30.0, 40.0];
        let right = [11.0, 21.1, 30.9, 41.0];
        let status = |r| one("", "m", &values(1, &left), &r).map(|d| (d.paired, d.status));
        assert_eq!(status(values(1, &left)), None);
        assert_eq!(status(values(1, &right)), Some((true, Status::Different)));
        assert_eq!(status(values(5, &right)), Some((false, Status::Within)));
        assert_eq!(status(values(5, &[110.0, 121.0, 131.0, 140.0])), Some((false, Status::Different)));
        // Differences of both signs: nothing is certain.
        assert_eq!(status(values(1, &[11.0, 19.0, 31.0, 39.0])), Some((true, Status::Within)));
        // A value that one side misses is a difference; one that both sides miss is none.
        assert_eq!(status(values(1, &[10.0, 20.0, 30.0, f64::NAN])), Some((true, Status::Different)));
        let with_gap = |v: [f64; 3]| values(1, &[v[0], v[1], v[2], f64::NAN]);
        let status = |r| one("", "m", &with_gap([10.0, 20.0, 30.0]), &r).map(|d| (d.paired, d.status));
        assert_eq!(status(with_gap([11.0, 19.0, 31.0])), Some((true, Status::Within)));
        assert_eq!(status(with_gap([11.0, 21.1, 30.9])), Some((true, Status::Different)));
        let missing = |first, n| values(first, &vec![f64::NAN; n]);
        assert_eq!(one("", "m", &missing(1, 3), &missing(4, 3)), None);
        assert_eq!(one("", "m", &missing(1, 1), &missing(2, 1)), None);
        let found = one("", "m", &missing(1, 3), &values(4, &[1.0, 2.0, 3.0])).map(|d| d.status);
        assert_eq!(found, Some(Status::Different));
    }

    #[test]
    fn a_single_seed_counts_only_if_it_is_the_same() {
        let status = |l: (u64, f64), r: (u64, f64)| {
            one("", "m", &values(l.0, &[l.1]), &values(r.0, &[r.1])).map(|d| d.status)
        };
        assert_eq!(status((1, 5.0), (1, 5.0)), None);
        assert_eq!(status((1, 5.0), (1, 5.1)), Some(Status::Different));
        assert_eq!(status((1, 5.0), (2, 5.1)), Some(Status::Unknown));
        assert_eq!(status((1, 5.0), (2, 5.0)), None);
    }

    #[test]
    fn welch_is_that_of_the_textbook() {
        // Means 3 and 5, variances 2.5 and 10, n = 5: standard error √2.5, 5.88 degrees of freedom.
        let e = welch(&[1.0, 2.0, 3.0, 4.0, 5.0], &[1.0, 3.0, 5.0, 7.0, 9.0]);
        assert!((e.mean - 2.0).abs() < 1e-12 && (e.half - 2.570_582 * 2.5f64.sqrt()).abs() < 1e-5, "{e:?}");
    }
}

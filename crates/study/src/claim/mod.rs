//! Claims and their verdicts.
//!
//! A claim is about means over the seeds, as the sources print them, or about medians where its metric says so. The values
//! of a run never decide which. It *holds* if the 95 % interval of its quantity lies within the claimed range, *differs* if it lies outside,
//! and is *undecided* if it overlaps the limit: more seeds would decide.

mod evaluate;
mod named;
mod plan;

pub use evaluate::evaluate;
pub use plan::{Case, PlannedClaim, Point, Test, plan};

use crate::model::{ClaimKind, Standing};
use crate::stats::{Center, seeds_needed};
use crate::summary::Summary;
use serde::Serialize;

/// The verdict on a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "verdict")]
pub enum Verdict {
    /// The results agree with it.
    Holds,
    /// The results contradict it.
    Differs,
    /// Too few seeds to decide.
    Undecided {
        /// Estimated number of seeds needed; `None` if more than 10 000, because it is too close to the limit.
        needs_seeds: Option<u64>,
    },
    /// Some of its cells do not belong to the profile that ran.
    NotInProfile,
    /// Values are missing.
    NotEvaluable {
        /// Why.
        reason: String,
    },
}

impl Verdict {
    /// One or two words.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Differs => "differs",
            Self::Undecided { .. } => "undecided",
            Self::NotInProfile => "not in the quick profile",
            Self::NotEvaluable { .. } => "could not be evaluated",
        }
    }

    /// One or two words on a control under test, which fails where its results contradict the claim.
    #[must_use]
    pub const fn word_for_control(&self) -> &'static str {
        match self {
            Self::Differs => "fails",
            other => other.word(),
        }
    }

    /// Advice for the reader; empty if none is needed.
    #[must_use]
    pub fn detail(&self) -> String {
        match self {
            Self::Holds | Self::Differs | Self::NotInProfile => String::new(),
            Self::Undecided { needs_seeds: Some(n) } => format!("needs about {n} seeds"),
            Self::Undecided { needs_seeds: None } => {
                "too close to the limit for any reasonable number of seeds".to_owned()
            }
            Self::NotEvaluable { reason } => reason.clone(),
        }
    }
}

/// A claim with its results.
#[derive(Clone, Debug, Serialize)]
pub struct ClaimResult {
    /// Its number.
    pub id: String,
    /// The statement.
    pub says: String,
    /// Kind of statement.
    pub kind: ClaimKind,
    /// How the totals count it.
    pub standing: Standing,
    /// The claim that it repeats, as `paper/study/id`.
    pub repeats: Option<String>,
    /// Place in the source.
    #[serde(rename = "where")]
    pub place: Option<String>,
    /// The source's value.
    pub paper: Option<String>,
    /// Note for the reader.
    pub note: Option<String>,
    /// Title of the metric, if it is a single one.
    pub metric: Option<String>,
    /// One outcome per reading for which it is evaluated, the default first.
    pub outcomes: Vec<Outcome>,
}

impl ClaimResult {
    /// The verdict under the default reading.
    #[must_use]
    pub fn verdict(&self) -> &Verdict {
        &self.outcomes[0].verdict
    }

    /// Whether the totals count it: a finding of the source or of the study's author that repeats no other claim.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.repeats.is_none() && matches!(self.standing, Standing::Finding | Standing::Own)
    }

    /// Why the totals do not count it.
    #[must_use]
    pub fn why_not_counted(&self) -> Option<String> {
        match (&self.repeats, self.counts()) {
            (Some(other), _) => Some(format!("repeats {other}")),
            (None, false) => Some(self.standing.word().to_owned()),
            (None, true) => None,
        }
    }
}

/// A claim under one reading.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The reading.
    pub reading: String,
    /// The verdict over all cases.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Our measurement, in one line.
    pub ours: String,
    /// Case by case.
    pub cases: Vec<CaseOutcome>,
}

/// One case of a claim.
#[derive(Clone, Debug, Serialize)]
pub struct CaseOutcome {
    /// Label; empty if there is only one.
    pub case: String,
    /// Our measurement.
    pub ours: String,
    /// The verdict.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// The deciding quantity, if it is a single one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided: Option<DecidingQuantity>,
}

/// The quantity whose interval decides a case.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DecidingQuantity {
    /// Its kind: `value` (of the metric), `sum` (of a contrast), `ratio`, or `lead` (left − right·(1 + by) −
    /// `by_abs`, paired), in the unit of the metric.
    pub quantity: &'static str,
    /// Its mean over the seeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// Half-width of its 95 % interval; missing with a single seed.
    pub ci95: Option<f64>,
    /// Its median, instead of the mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub median: Option<f64>,
    /// Lower end of the 95 % interval of the median; missing with fewer than six seeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Number of seeds.
    pub n: usize,
}

impl DecidingQuantity {
    /// From the statistic that summarises its values.
    fn new(quantity: &'static str, e: &Center) -> Self {
        let (n, interval) = (e.n, e.interval());
        match e.summary {
            Summary::Mean => {
                let (mean, ci95) = (Some(e.value), e.half.is_finite().then_some(e.half));
                Self { quantity, mean, ci95, median: None, low: None, high: None, n }
            }
            Summary::Median => {
                let (low, high) = (interval.map(|i| i.0), interval.map(|i| i.1));
                Self { quantity, mean: None, ci95: None, median: Some(e.value), low, high, n }
            }
        }
    }
}

/// Whether an estimate lies within bounds; `strict` excludes the bounds themselves.
#[must_use]
pub fn decide(e: &Center, low: Option<f64>, high: Option<f64>, strict: bool) -> Verdict {
    if !e.is_valid() {
        return Verdict::NotEvaluable { reason: "there is no value".to_owned() };
    }
    let (low, high) = (low.unwrap_or(f64::NEG_INFINITY), high.unwrap_or(f64::INFINITY));
    let inside = |x: f64| if strict { x > low && x < high } else { x >= low && x <= high };
    // An interval outside that ends on a strict bound is outside.
    let outside = if strict { e.high <= low || e.low >= high } else { e.high < low || e.low > high };
    if inside(e.low) && inside(e.high) {
        Verdict::Holds
    } else if outside {
        Verdict::Differs
    } else {
        let nearest = (e.value - low).abs().min((e.value - high).abs());
        Verdict::Undecided { needs_seeds: seeds_needed(e, nearest) }
    }
}

/// The verdict of a claim from those of its cases: all hold, or at least `share` of them.
#[must_use]
pub fn combine<'a>(verdicts: impl IntoIterator<Item = &'a Verdict>, share: Option<f64>) -> Verdict {
    let all: Vec<&Verdict> = verdicts.into_iter().collect();
    let count = |f: fn(&Verdict) -> bool| all.iter().filter(|v| f(v)).count();
    let holds = count(|v| matches!(v, Verdict::Holds));
    let differs = count(|v| matches!(v, Verdict::Differs));
    // In floating point 0.07 × 100 is more than 7: without the subtraction the eighth case would have to hold too.
    let needed = share.map_or(all.len(), |s| (s * all.len() as f64 - 1e-9).ceil().max(0.0) as usize);
    if holds >= needed {
        return Verdict::Holds;
    }
    if all.len() - differs < needed {
        return Verdict::Differs;
    }
    if let Some(v) = all.iter().find(|v| matches!(v, Verdict::NotEvaluable { .. })) {
        return (*v).clone();
    }
    let mut needs = Some(0);
    for v in all {
        if let Verdict::Undecided { needs_seeds } = v {
            needs = needs.zip(*needs_seeds).map(|(a, b)| a.max(b));
        }
    }
    Verdict::Undecided { needs_seeds: needs }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Estimate;

    fn e(mean: f64, half: f64) -> Center {
        Estimate { mean, half, n: 10 }.into()
    }

    #[test]
    fn intervals_decide_and_overlap_does_not() {
        let within = |mean, half| decide(&e(mean, half), Some(1.0), Some(2.0), false);
        assert_eq!(within(1.5, 0.4), Verdict::Holds);
        assert_eq!(within(3.0, 0.4), Verdict::Differs);
        assert!(
            matches!(within(1.9, 0.2), Verdict::Undecided { needs_seeds: Some(42) }),
            "{:?}",
            within(1.9, 0.2)
        );
        assert!(matches!(within(1.5, f64::INFINITY), Verdict::Undecided { .. }));
        assert!(matches!(within(f64::NAN, 0.0), Verdict::NotEvaluable { .. }));
    }

    #[test]
    fn greater_needs_an_interval_that_excludes_zero() {
        let greater = |mean, half| decide(&e(mean, half), Some(0.0), None, true);
        assert_eq!(greater(1.0, 0.9), Verdict::Holds);
        assert!(matches!(greater(1.0, 1.1), Verdict::Undecided { .. }));
        assert!(matches!(greater(-1.0, 1.1), Verdict::Undecided { .. }));
        assert_eq!(greater(-1.0, 0.5), Verdict::Differs);
        // Exactly equal without any spread is not greater.
        assert_eq!(greater(0.0, 0.0), Verdict::Differs);
    }

    #[test]
    fn one_seed_decides_nothing() {
        let one = Estimate { mean: 5.0, half: f64::INFINITY, n: 1 }.into();
        assert_eq!(decide(&one, Some(0.0), None, true), Verdict::Undecided { needs_seeds: Some(2) });
    }

    #[test]
    fn cases_combine() {
        let (h, d) = (Verdict::Holds, Verdict::Differs);
        let u = Verdict::Undecided { needs_seeds: Some(50) };
        let v = Verdict::Undecided { needs_seeds: None };
        assert_eq!(combine([&h, &h], None), h);
        assert_eq!(combine([&h, &u, &d], None), d);
        assert_eq!(combine([&h, &u], None), u);
        assert_eq!(combine([&u, &v], None), v);
        assert_eq!(combine([&h, &h, &d], Some(0.6)), h);
        assert_eq!(combine([&h, &u, &d], Some(0.6)), u);
        assert_eq!(combine([&h, &d, &d], Some(0.6)), d);
    }
}

//! From values to verdicts.

use super::{Case, CaseOutcome, ClaimResult, DecidingQuantity, Outcome, Point, Test, Verdict, combine};
use crate::format;
use crate::model::{ClaimKind, Curve, Relation};
use crate::observed::Observed;
use crate::results::Results;
use crate::stats::{self, Center, Estimate};
use crate::summary::Summary;

/// Evaluates all claims under all readings that affect them.
#[must_use]
pub fn evaluate(results: &Results<'_>) -> Vec<ClaimResult> {
    let study = &results.plan.file.study;
    let readings = results.plan.readings();
    let tested = results.plan.file.candidate.is_some();
    let one = |planned: &super::PlannedClaim| {
        let claim = &study.claim[planned.index];
        let concerns = |r: usize| {
            let Some(reading) = r.checked_sub(1).map(|r| &study.reading[r]) else { return true };
            let named = reading.claims.is_empty() || reading.claims.contains(&claim.id);
            named && planned.needs.iter().any(|at| results.differs(r, *at))
        };
        let chance = !matches!(claim.kind, ClaimKind::Exact | ClaimKind::Definition);
        let judge = |reading: usize| CaseEvaluator { results, reading, chance, varied: &claim.for_each };
        let left_out = |r: usize| planned.needs.iter().any(|at| !results.is_planned(r, *at));
        let outcome = |r: usize| {
            if left_out(r) {
                let (reading, verdict) = (readings[r].clone(), Verdict::NotInProfile);
                return Outcome { reading, verdict, ours: String::new(), cases: Vec::new() };
            }
            // A case that needs cells that this reading does not run is left out, and named: it would mix cells of two readings.
            let needs = |c: &Case| c.test.needs(&results.plan.file, &results.plan.metrics);
            let lacking = |c: &Case| needs(c).into_iter().find(|at| results.lacks(r, *at));
            let (mut own, mut without) = (Vec::new(), Vec::new());
            for case in &planned.cases {
                match lacking(case) {
                    None => own.push(judge(r).case(case)),
                    Some(at) => without.push(results.plan.label(at)),
                }
            }
            without.dedup();
            if let (true, Some(at)) = (own.is_empty(), without.first()) {
                let reason =
                    format!("this reading does not run {at}, and a claim mixes no cells of two readings");
                let (reading, verdict) = (readings[r].clone(), Verdict::NotEvaluable { reason });
                return Outcome { reading, verdict, ours: String::new(), cases: Vec::new() };
            }
            let verdict = combine(own.iter().map(|c| &c.verdict), claim.share);
            let mut ours = summary(&own, tested);
            if !without.is_empty() {
                let (has, all) = (own.len(), planned.cases.len());
                ours =
                    format!("{ours}; {has} of {all} cases: this reading does not run {}", without.join("; "));
            }
            Outcome { reading: readings[r].clone(), verdict, ours, cases: own }
        };
        ClaimResult {
            id: claim.id.clone(),
            says: claim.says.clone(),
            kind: claim.kind,
            standing: claim.standing,
            repeats: claim.repeats.clone(),
            place: claim.place.clone(),
            paper: claim.paper.clone(),
            note: claim.note.clone(),
            metric: metric(results, planned),
            outcomes: (0..readings.len()).filter(|r| concerns(*r)).map(outcome).collect(),
        }
    };
    results.plan.claims.iter().map(one).collect()
}

/// Title of the metric of all cases, if it is a single one.
fn metric(results: &Results<'_>, planned: &super::PlannedClaim) -> Option<String> {
    let points: Vec<Point> = planned.cases.iter().flat_map(|c| c.test.points()).collect();
    let first = points.first()?.metric;
    points.iter().all(|p| p.metric == first).then(|| results.plan.metrics[first].title.clone())
}

/// Summary of the cases in one line; `tested`: the study has a control under test.
fn summary(cases: &[CaseOutcome], tested: bool) -> String {
    let line = |c: &CaseOutcome| match (tested, c.case.is_empty()) {
        (true, true) => format!("{}: {}", c.ours, c.verdict.word_for_control()),
        (true, false) => format!("{}: {}: {}", c.case, c.ours, c.verdict.word_for_control()),
        (false, _) => format!("{}: {} ({})", c.case, c.ours, c.verdict.word()),
    };
    if let ([one], false) = (cases, tested) {
        return one.ours.clone();
    }
    cases.iter().map(line).collect::<Vec<_>>().join("; ")
}

pub(super) struct CaseEvaluator<'a> {
    pub(super) results: &'a Results<'a>,
    reading: usize,
    /// Whether the claim involves randomness: then a single seed decides nothing.
    chance: bool,
    /// The axes of the claim's `for_each`, which the label of a case names.
    pub(super) varied: &'a [String],
}

impl CaseEvaluator<'_> {
    /// The estimate. Without randomness, the value of a single seed is certain.
    fn certain(&self, e: Center) -> Center {
        if e.n == 1 && !self.chance { e.certain() } else { e }
    }

    /// What a test over these points is about: medians if each of their metrics says so. The values do not choose.
    pub(super) fn summary(&self, points: &[Point]) -> Summary {
        let says = |p: &Point| self.results.plan.metrics[p.metric].summary == Some(Summary::Median);
        if !points.is_empty() && points.iter().all(says) { Summary::Median } else { Summary::Mean }
    }

    fn decide(&self, e: &Center, low: Option<f64>, high: Option<f64>, strict: bool) -> Verdict {
        super::decide(&self.certain(*e), low, high, strict)
    }

    fn case(&self, case: &Case) -> CaseOutcome {
        let plan = self.results.plan;
        let needs = case.test.needs(&plan.file, &plan.metrics);
        let missing = needs.into_iter().find(|at| !self.results.is_complete(self.reading, *at));
        let (ours, verdict) = match missing {
            Some(at) => {
                let reason = self.why_missing(at);
                (String::new(), Verdict::NotEvaluable { reason })
            }
            None => self.test(&case.test),
        };
        let known = !matches!(verdict, Verdict::NotEvaluable { .. });
        let ours = self.named(&case.test).filter(|_| known).unwrap_or(ours);
        let decided = if known { self.decided(&case.test) } else { None };
        CaseOutcome { case: case.label.clone(), ours, verdict, decided }
    }

    /// The quantity whose interval decides, if it is a single one.
    fn decided(&self, test: &Test) -> Option<DecidingQuantity> {
        let (quantity, e) = match test {
            Test::Bounds { of, .. } => ("value", self.center(*of)),
            Test::Contrast { terms, .. } => ("sum", self.sum(terms)),
            Test::Greater { left, right, by, by_abs } => {
                ("lead", self.difference(*left, *right, 1.0 + by, *by_abs))
            }
            Test::Ratio { left, right, .. } => ("ratio", self.ratio(*left, *right)),
            Test::Curves { .. } | Test::Extreme { .. } | Test::Steps { .. } => return None,
        };
        Some(DecidingQuantity::new(quantity, &e))
    }

    /// The mean or the median of the values at a point.
    fn center(&self, p: Point) -> Center {
        Center::of(self.summary(&[p]), self.values(p))
    }

    /// The mean or the median of the paired differences `left − scale·right − offset`.
    pub(super) fn difference(&self, left: Point, right: Point, scale: f64, offset: f64) -> Center {
        let values = stats::differences(self.values(left), self.values(right), scale, offset);
        Center::of(self.summary(&[left, right]), &values)
    }

    /// The ratio of the means, or the median of the ratios.
    pub(super) fn ratio(&self, left: Point, right: Point) -> Center {
        let (l, r) = (self.values(left), self.values(right));
        match self.summary(&[left, right]) {
            Summary::Mean => stats::paired_ratio(l, r).into(),
            Summary::Median => stats::median_ratio(l, r),
        }
    }

    fn sum(&self, terms: &[(f64, Point)]) -> Center {
        let of_seed = |seed: usize| terms.iter().map(|(w, p)| w * self.values(*p)[seed]).sum();
        let points: Vec<Point> = terms.iter().map(|(_, p)| *p).collect();
        let values: Vec<f64> = (0..self.results.plan.seeds()).map(of_seed).collect();
        Center::of(self.summary(&points), &values)
    }

    fn why_missing(&self, at: usize) -> String {
        let plan = self.results.plan;
        let failed = |(i, seed)| self.results.failure(self.reading, at, i).map(|f| (seed, f));
        match plan.file.study.seeds.iter().enumerate().find_map(failed) {
            Some((seed, f)) => format!("{} failed with seed {seed}: {}", plan.label(at), f.message),
            None => format!("{} has not run with all seeds", plan.label(at)),
        }
    }

    pub(super) fn values(&self, p: Point) -> &[f64] {
        self.results.metric(self.reading, p.at, p.metric)
    }

    /// The values at a point, by what decides.
    fn shown(&self, p: Point, summary: Summary) -> String {
        let unit = &self.results.plan.metrics[p.metric].unit;
        format::with_unit(self.bare(p, summary), unit)
    }

    /// As [`Self::shown`], without the unit.
    pub(super) fn bare(&self, p: Point, summary: Summary) -> String {
        match summary {
            Summary::Mean => format::mean(self.values(p), self.results.shown(p.metric)),
            Summary::Median => format::median(self.values(p)),
        }
    }

    /// The verdict for points of which one has no value; `None` if all have one.
    fn hole(&self, points: &[Point]) -> Option<Verdict> {
        let hole = points.iter().find(|p| self.values(**p).iter().any(|x| !x.is_finite()))?;
        let (metric, at) = (&self.results.plan.metrics[hole.metric].name, self.results.plan.label(hole.at));
        let reason = format!("`{metric}` has no value at {at}: a division by zero, or a value never reached");
        Some(Verdict::NotEvaluable { reason })
    }

    fn test(&self, test: &Test) -> (String, Verdict) {
        let unknown = |list: &[Point]| self.hole(list).map(|v| ("–".to_owned(), v));
        match test {
            Test::Bounds { of, within } => unknown(&[*of]).unwrap_or_else(|| {
                let e = self.center(*of);
                (self.shown(*of, e.summary), self.decide(&e, Some(within[0]), Some(within[1]), false))
            }),
            Test::Contrast { terms, min, max } => {
                let list: Vec<Point> = terms.iter().map(|(_, p)| *p).collect();
                unknown(&list).unwrap_or_else(|| self.contrast(terms, *min, *max))
            }
            Test::Curves { curve, left, right } => self.curves(curve, *left, *right),
            Test::Extreme { best, others, sign } => {
                let list: Vec<Point> = others.iter().copied().chain([*best]).collect();
                unknown(&list).unwrap_or_else(|| self.extreme(*best, others, *sign))
            }
            Test::Greater { left, right, by, by_abs } => unknown(&[*left, *right]).unwrap_or_else(|| {
                let e = self.difference(*left, *right, 1.0 + by, *by_abs);
                let (l, r) = (self.shown(*left, e.summary), self.shown(*right, e.summary));
                let mut ours = format!("{l} against {r}");
                if let Some(gain) = self.gain(*left, *right) {
                    ours = format!("{ours} ({gain})");
                }
                (ours, self.decide(&e, Some(0.0), None, *by == 0.0 && *by_abs == 0.0))
            }),
            Test::Ratio { left, right, within } => unknown(&[*left, *right]).unwrap_or_else(|| {
                let e = self.ratio(*left, *right);
                let (l, r) = (self.shown(*left, e.summary), self.shown(*right, e.summary));
                let ours = format!("{} ({l} / {r})", format::center(&e));
                // The interval of a ratio means something only where its denominator is certainly not zero.
                let below = self.certain(Center::of(e.summary, self.values(*right)));
                if below.low <= 0.0 && below.high >= 0.0 {
                    let needs_seeds = stats::seeds_needed(&below, below.value);
                    return (ours, Verdict::Undecided { needs_seeds });
                }
                (ours, self.decide(&e, Some(within[0]), Some(within[1]), false))
            }),
            Test::Steps { points: list, labels, sign, strict } => {
                unknown(list).unwrap_or_else(|| self.steps(list, labels, *sign, *strict))
            }
        }
    }

    /// How much more the left side has: a percentage or a factor.
    pub(super) fn gain(&self, left: Point, right: Point) -> Option<String> {
        let ratio = self.ratio(left, right);
        if !ratio.is_valid() {
            return None;
        }
        Some(match ratio.summary {
            Summary::Mean => {
                format::percent(&Estimate { mean: ratio.value - 1.0, half: ratio.half, n: ratio.n })
            }
            Summary::Median => format::factor(&ratio),
        })
    }

    fn contrast(&self, terms: &[(f64, Point)], min: Option<f64>, max: Option<f64>) -> (String, Verdict) {
        let e = self.sum(terms);
        let mut sum = String::new();
        for (w, p) in terms {
            let sign = if *w < 0.0 { "− " } else { "+ " };
            let factor =
                if w.abs() == 1.0 { String::new() } else { format!("{} × ", format::number(w.abs())) };
            sum = format!("{sum} {sign}{factor}{}", self.shown(*p, e.summary));
        }
        let sum = sum.trim_start_matches(" +").trim();
        (format!("{} (= {sum})", format::center(&e)), self.decide(&e, min, max, false))
    }

    fn extreme(&self, best: Point, others: &[Point], sign: f64) -> (String, Verdict) {
        let lead = |p: &Point| {
            let d = self.difference(best, *p, 1.0, 0.0).times_sign(sign);
            self.decide(&d, Some(0.0), None, true)
        };
        let verdicts: Vec<Verdict> = others.iter().map(lead).collect();
        // All are of the same metric.
        let summary = self.summary(&[best]);
        let of = |p: &Point| Center::of(summary, self.values(*p)).value;
        let by_size = |a: &&Point, b: &&Point| (sign * of(a)).total_cmp(&(sign * of(b)));
        let next = others.iter().max_by(by_size).map_or_else(String::new, |p| {
            format!(", next {} at {}", self.shown(*p, summary), self.results.plan.label(p.at))
        });
        (format!("{}{next}", self.shown(best, summary)), combine(&verdicts, None))
    }

    fn steps(&self, list: &[Point], labels: &[String], sign: f64, strict: bool) -> (String, Verdict) {
        let summary = self.summary(list);
        let shown: Vec<_> =
            list.iter().zip(labels).map(|(p, l)| format!("{l}: {}", self.shown(*p, summary))).collect();
        let change = |a: Point, b: Point| self.difference(b, a, 1.0, 0.0).times_sign(sign);
        let step = |a: Point, b: Point| self.decide(&change(a, b), Some(0.0), None, true);
        let steps: Vec<Verdict> = list.windows(2).map(|w| step(w[0], w[1])).collect();
        let verdict = if strict {
            combine(&steps, None)
        } else {
            // Without any change, a step does not go back.
            let back = |w: &[Point]| self.certain(change(w[0], w[1])).high < 0.0;
            let whole = step(list[0], list[list.len() - 1]);
            if list.windows(2).any(back) { Verdict::Differs } else { whole }
        };
        (shown.join(", "), verdict)
    }

    fn curves(&self, curve: &Curve, left: usize, right: usize) -> (String, Verdict) {
        let seeds = 0..self.results.plan.seeds();
        let observed = |at, seed| self.results.observed(self.reading, at, seed);
        let one =
            |seed| observed(left, seed).zip(observed(right, seed)).and_then(|(l, r)| distance(curve, l, r));
        let Some(values) = seeds.map(one).collect::<Option<Vec<f64>>>() else {
            let reason = format!("series `{}` has no samples to compare on both sides", curve.series);
            return ("–".to_owned(), Verdict::NotEvaluable { reason });
        };
        let e = stats::estimate(&values);
        match curve.relation {
            Relation::Above => {
                let ours = format!("smallest lead {}", format::estimate(&e));
                (ours, self.decide(&e.into(), Some(-curve.tolerance), None, false))
            }
            Relation::Equal => {
                let ours = format!("largest distance {}", format::estimate(&e));
                (ours, self.decide(&e.into(), None, Some(curve.tolerance), false))
            }
        }
    }
}

/// Smallest lead or largest distance over all samples of all flows; `None` if there is nothing to compare.
fn distance(curve: &Curve, left: &Observed, right: &Observed) -> Option<f64> {
    let group = curve.group.as_deref();
    let pairs = left.curves(&curve.series, group).zip(right.curves(&curve.series, group));
    let to = curve.to.unwrap_or(f64::INFINITY);
    let of_pair = |(l, r): (&crate::observed::Sampled, &crate::observed::Sampled)| {
        let r = r.clone();
        l.within(curve.from, to).map(move |(t, v)| v - r.at(t)).collect::<Vec<_>>()
    };
    let all = pairs.flat_map(of_pair).filter(|d| !d.is_nan());
    match curve.relation {
        Relation::Above => all.reduce(f64::min),
        Relation::Equal => all.map(f64::abs).reduce(f64::max),
    }
}

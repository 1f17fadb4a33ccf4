//! From claims to tests on combinations, before anything has run.

use crate::error::StudyError;
use crate::metric::PlannedMetric;
use crate::model::{Check, Claim, Curve, Direction, Selector, Side, StudyFile};
use crate::profile;
use crate::runner::Resolution;
use crate::space::{Space, pins};
use std::collections::BTreeSet;

/// A claim ready to be tested.
#[derive(Clone, Debug)]
pub struct PlannedClaim {
    /// Position in the study.
    pub index: usize,
    /// The cases to test.
    pub cases: Vec<Case>,
    /// All combinations that it needs, in ascending order.
    pub needs: Vec<usize>,
}

/// One case.
#[derive(Clone, Debug)]
pub struct Case {
    /// The axis values of `for_each`; empty without `for_each`.
    pub label: String,
    /// The test.
    pub test: Test,
}

/// A metric at a combination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Index of the metric.
    pub metric: usize,
    /// Index of the combination.
    pub at: usize,
}

/// A test on points.
#[derive(Clone, Debug)]
pub enum Test {
    /// A metric within bounds.
    Bounds {
        /// The metric and its combination.
        of: Point,
        /// Bounds.
        within: [f64; 2],
    },
    /// A weighted sum within bounds.
    Contrast {
        /// Weights and points.
        terms: Vec<(f64, Point)>,
        /// Lower bound.
        min: Option<f64>,
        /// Upper bound.
        max: Option<f64>,
    },
    /// Two recorded curves.
    Curves {
        /// The relation.
        curve: Curve,
        /// Combination of the left curve.
        left: usize,
        /// Combination of the right curve.
        right: usize,
    },
    /// One value above, or below, all others.
    Extreme {
        /// The point that is largest or smallest.
        best: Point,
        /// The others.
        others: Vec<Point>,
        /// +1: largest; −1: smallest.
        sign: f64,
    },
    /// left > right·(1 + by) + `by_abs`.
    Greater {
        /// Left.
        left: Point,
        /// Right.
        right: Point,
        /// Relative lead.
        by: f64,
        /// Absolute lead.
        by_abs: f64,
    },
    /// left / right within bounds.
    Ratio {
        /// Numerator.
        left: Point,
        /// Denominator.
        right: Point,
        /// Bounds.
        within: [f64; 2],
    },
    /// Rising or falling.
    Steps {
        /// The points in the order in which they rise or fall.
        points: Vec<Point>,
        /// For each point the label of its axis value.
        labels: Vec<String>,
        /// +1: rising; −1: falling.
        sign: f64,
        /// Whether each step must be significant.
        strict: bool,
    },
}

impl Test {
    /// The metrics and combinations that it uses; curves have no metric.
    pub(crate) fn points(&self) -> Vec<Point> {
        match self {
            Self::Bounds { of, .. } => vec![*of],
            Self::Contrast { terms, .. } => terms.iter().map(|(_, p)| *p).collect(),
            Self::Curves { .. } => Vec::new(),
            Self::Extreme { best, others, .. } => others.iter().chain([best]).copied().collect(),
            Self::Greater { left, right, .. } | Self::Ratio { left, right, .. } => vec![*left, *right],
            Self::Steps { points, .. } => points.clone(),
        }
    }

    /// The combinations that it uses.
    pub(crate) fn combinations(&self) -> Vec<usize> {
        match self {
            Self::Curves { left, right, .. } => vec![*left, *right],
            other => other.points().iter().map(|p| p.at).collect(),
        }
    }

    /// The combinations that it uses, and those that their metrics are compared with.
    pub(crate) fn needs(&self, file: &StudyFile, metrics: &[PlannedMetric]) -> Vec<usize> {
        let behind = |p: &Point| profile::needed(file, metrics, p.metric, p.at);
        self.combinations().into_iter().chain(self.points().iter().flat_map(behind)).collect()
    }
}

/// Checks claims and turns them into tests.
///
/// # Errors
/// If a claim names something that does not exist or leaves an axis open.
pub fn plan(
    file: &StudyFile,
    metrics: &[PlannedMetric],
    base: &Resolution,
) -> Result<Vec<PlannedClaim>, StudyError> {
    let one = |(index, claim): (usize, &Claim)| {
        Planner { file, metrics, base, space: Space::of(file), index, claim }.claim()
    };
    file.study.claim.iter().enumerate().map(one).collect()
}

struct Planner<'a> {
    file: &'a StudyFile,
    metrics: &'a [PlannedMetric],
    /// The base scenario, with the series that it records.
    base: &'a Resolution,
    space: Space,
    index: usize,
    claim: &'a Claim,
}

/// The value of each axis, where it is fixed.
type Partial = Vec<Option<usize>>;

impl Planner<'_> {
    fn refuse(&self, key: &str, message: String, accepted: &[&str]) -> StudyError {
        let id = &self.claim.id;
        self.file.refuse(&format!("claim[{}].{key}", self.index), format!("claim {id}: {message}"), accepted)
    }

    fn claim(&self) -> Result<PlannedClaim, StudyError> {
        if self.claim.share.is_some_and(|s| !(s > 0.0 && s <= 1.0)) {
            return Err(self.refuse("share", "a share is greater than 0 and at most 1".to_owned(), &[]));
        }
        let at = pins(self.file, &self.claim.at, &format!("claim[{}].at", self.index))?;
        let axes = &self.file.study.axis;
        for axis in &self.claim.for_each {
            self.axis(axis, "for_each")?;
        }
        // Axes with one value need no mention.
        let mut cases: Vec<Partial> = vec![axes.iter().map(|a| (a.values.len() == 1).then_some(0)).collect()];
        for (i, axis) in axes.iter().enumerate() {
            let every = self.claim.for_each.contains(&axis.name);
            let choices = match (&at[i], every) {
                (Some(list), _) if list.len() == 1 || every => list.clone(),
                (None, true) => (0..axis.values.len()).collect(),
                // Several values without `for_each` limit the values that `along` of the check runs over.
                (_, false) | (Some(_), true) => continue,
            };
            let with = |c: Partial| {
                choices.iter().map(move |v| {
                    let mut c = c.clone();
                    c[i] = Some(*v);
                    c
                })
            };
            cases = cases.into_iter().flat_map(with).collect();
        }
        let cases: Vec<Case> = cases.into_iter().map(|c| self.case(&c, &at)).collect::<Result<_, _>>()?;
        let of_case = |c: &Case| c.test.needs(self.file, self.metrics);
        let needs: BTreeSet<usize> = cases.iter().flat_map(of_case).collect();
        Ok(PlannedClaim { index: self.index, cases, needs: needs.into_iter().collect() })
    }

    fn axis(&self, name: &str, key: &str) -> Result<usize, StudyError> {
        let axes = &self.file.study.axis;
        axes.iter().position(|a| a.name == name).ok_or_else(|| {
            let names: Vec<&str> = axes.iter().map(|a| a.name.as_str()).collect();
            self.refuse(key, format!("there is no axis `{name}`"), &names)
        })
    }

    fn metric(&self, name: &str) -> Result<usize, StudyError> {
        self.metrics.iter().position(|m| m.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.metrics.iter().map(|m| m.name.as_str()).collect();
            self.refuse("check", format!("there is no metric `{name}`"), &names)
        })
    }

    /// The combination of a case that fixes every axis.
    ///
    /// # Errors
    /// If the case leaves an axis open.
    fn flat(&self, case: &Partial) -> Result<usize, StudyError> {
        let axes = &self.file.study.axis;
        if let Some(open) = case.iter().position(Option::is_none) {
            let name = &axes[open].name;
            let message = format!("axis `{name}` is left open");
            let fix = [format!("at = {{ {name} = … }}"), format!("for_each = [\"{name}\"]")];
            return Err(self.refuse("check", message, &[&fix[0], &fix[1]]));
        }
        let index: Vec<usize> = case.iter().flatten().copied().collect();
        Ok(self.space.flatten(&index))
    }

    fn combination(&self, case: &Partial, side: &Selector) -> Result<usize, StudyError> {
        let mut case = case.clone();
        let key = format!("claim[{}].check", self.index);
        for (slot, pin) in case.iter_mut().zip(pins(self.file, side, &key)?) {
            match pin.as_deref() {
                None => {}
                Some([one]) => *slot = Some(*one),
                Some(_) => {
                    return Err(self.refuse("check", "a side takes one value per axis".to_owned(), &[]));
                }
            }
        }
        self.flat(&case)
    }

    fn point(&self, case: &Partial, metric: &str, side: &Side) -> Result<Point, StudyError> {
        let metric = self.metric(side.metric.as_deref().unwrap_or(metric))?;
        Ok(Point { metric, at: self.combination(case, &side.at)? })
    }

    fn case(&self, case: &Partial, at: &[Option<Vec<usize>>]) -> Result<Case, StudyError> {
        let axes = &self.file.study.axis;
        let named = axes.iter().zip(case).filter(|(a, _)| self.claim.for_each.contains(&a.name));
        let label = named.filter_map(|(a, v)| Some(format!("{} = {}", a.name, a.label((*v)?))));
        let label = label.collect::<Vec<_>>().join(", ");
        let here = Side::default();
        let limits = |within: &[f64; 2], accepted: &[&str]| {
            if within[0] <= within[1] {
                return Ok(*within);
            }
            Err(self.refuse("check", "write the lower limit first".to_owned(), accepted))
        };
        let low_high = ["within = [low, high]"];
        let test = match &self.claim.check {
            Check::Contrast { metric, terms, min, max } => {
                let term = |t: &crate::model::Term| Ok((t.weight, self.point(case, metric, &t.at)?));
                let terms = terms.iter().map(term).collect::<Result<Vec<_>, _>>()?;
                if terms.is_empty() || (min.is_none() && max.is_none()) {
                    let message = "a contrast needs terms and a bound".to_owned();
                    return Err(self.refuse(
                        "check",
                        message,
                        &["terms = [{ weight = …, at = { … } }]", "min", "max"],
                    ));
                }
                if terms.iter().any(|(w, _)| !w.is_finite())
                    || [min, max].iter().any(|b| b.is_some_and(f64::is_nan))
                {
                    let message = "weights and bounds are numbers".to_owned();
                    return Err(self.refuse("check", message, &["weight = 1", "min = 0"]));
                }
                if let (Some(min), Some(max)) = (min, max) {
                    limits(&[*min, *max], &["min = low, max = high"])?;
                }
                Test::Contrast { terms, min: *min, max: *max }
            }
            Check::Curve(curve) => {
                if let Some((why, known)) = self.base.without_curve(&curve.series, curve.group.as_deref()) {
                    let known: Vec<&str> = known.iter().map(String::as_str).collect();
                    return Err(self.refuse("check", why, &known));
                }
                if !(curve.tolerance.is_finite() && curve.tolerance >= 0.0) {
                    let message = "`tolerance` is a finite number, and not negative".to_owned();
                    return Err(self.refuse("check", message, &["tolerance = 0.1"]));
                }
                Test::Curves {
                    curve: curve.clone(),
                    left: self.combination(case, &curve.left.at)?,
                    right: self.combination(case, &curve.right.at)?,
                }
            }
            Check::Equal { metric, value, tolerance, relative } => {
                let slack = if *relative { tolerance * value.abs() } else { *tolerance };
                if !(value.is_finite() && slack.is_finite() && slack >= 0.0) {
                    let message = "`value` and `tolerance` are finite, and `tolerance` is not negative";
                    return Err(self.refuse("check", message.to_owned(), &["value = 1, tolerance = 0.1"]));
                }
                Test::Bounds { of: self.point(case, metric, &here)?, within: [value - slack, value + slack] }
            }
            Check::Greater { metric, left, right, by, by_abs } => {
                if !(by.is_finite() && by_abs.is_finite()) {
                    let message = "`by` and `by_abs` are finite numbers".to_owned();
                    return Err(self.refuse("check", message, &["by = 0.1", "by_abs = 5"]));
                }
                Test::Greater {
                    left: self.point(case, metric, left)?,
                    right: self.point(case, metric, right)?,
                    by: *by,
                    by_abs: *by_abs,
                }
            }
            Check::MaxAt { metric, along, value } => self.extreme(case, at, metric, along, &value.0, 1.0)?,
            Check::MinAt { metric, along, value } => self.extreme(case, at, metric, along, &value.0, -1.0)?,
            Check::Monotone { metric, along, direction, strict } => {
                let axis = self.axis(along, "check")?;
                let over = at[axis].clone().unwrap_or_else(|| (0..axes[axis].values.len()).collect());
                self.steps(case, metric, axis, &over, *direction, *strict)?
            }
            Check::Order { metric, along, values, direction } => {
                let axis = self.axis(along, "check")?;
                let find = |v: &String| self.value(axis, v);
                let over = values.0.iter().map(find).collect::<Result<Vec<_>, _>>()?;
                self.steps(case, metric, axis, &over, *direction, true)?
            }
            Check::Ratio { metric, left, right, within } => Test::Ratio {
                left: self.point(case, metric, left)?,
                right: self.point(case, metric, right)?,
                within: limits(within, &low_high)?,
            },
            Check::Within { metric, within } => {
                Test::Bounds { of: self.point(case, metric, &here)?, within: limits(within, &low_high)? }
            }
        };
        Ok(Case { label, test })
    }

    fn value(&self, axis: usize, pick: &str) -> Result<usize, StudyError> {
        let axis = &self.file.study.axis[axis];
        axis.index_of(pick).ok_or_else(|| {
            let labels: Vec<String> = (0..axis.values.len()).map(|i| axis.label(i)).collect();
            let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
            self.refuse("check", format!("axis `{}` has no value `{pick}`", axis.name), &labels)
        })
    }

    fn along(
        &self,
        case: &Partial,
        metric: &str,
        axis: usize,
        over: &[usize],
    ) -> Result<Vec<Point>, StudyError> {
        let metric = self.metric(metric)?;
        let point = |v: &usize| {
            let mut case = case.clone();
            case[axis] = Some(*v);
            Ok(Point { metric, at: self.flat(&case)? })
        };
        over.iter().map(point).collect()
    }

    fn steps(
        &self,
        case: &Partial,
        metric: &str,
        axis: usize,
        over: &[usize],
        direction: Direction,
        strict: bool,
    ) -> Result<Test, StudyError> {
        if over.len() < 2 {
            return Err(self.refuse("check", "a step needs at least two values".to_owned(), &[]));
        }
        let points = self.along(case, metric, axis, over)?;
        let labels = over.iter().map(|v| self.file.study.axis[axis].label(*v)).collect();
        Ok(Test::Steps { points, labels, sign: direction.sign(), strict })
    }

    fn extreme(
        &self,
        case: &Partial,
        at: &[Option<Vec<usize>>],
        metric: &str,
        along: &str,
        value: &str,
        sign: f64,
    ) -> Result<Test, StudyError> {
        let axis = self.axis(along, "check")?;
        let best = self.value(axis, value)?;
        let over = at[axis].clone().unwrap_or_else(|| (0..self.file.study.axis[axis].values.len()).collect());
        let others: Vec<usize> = over.into_iter().filter(|v| *v != best).collect();
        if others.is_empty() {
            return Err(self.refuse("check", "there is no value to compare it with".to_owned(), &[]));
        }
        let best = self.along(case, metric, axis, &[best])?[0];
        Ok(Test::Extreme { best, others: self.along(case, metric, axis, &others)?, sign })
    }
}

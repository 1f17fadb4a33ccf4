//! The values behind a claim on a control under test, in words: every number with the name of its control and its unit.

use super::evaluate::CaseEvaluator;
use super::{Point, Test};
use crate::format::{self, with_unit};
use crate::model::{CANDIDATE, called};
use crate::space::Space;
use crate::stats::{self, Estimate};
use crate::summary::Summary;

/// Unit of a difference of two values: two percentages differ by percentage points.
fn of_difference(unit: &str) -> &str {
    if unit.starts_with('%') { "points" } else { unit }
}

impl CaseEvaluator<'_> {
    /// The values of a test, such as `CUBIC 57.5 %, hybla 71.5 %: +14.0 ± 1.6 points`: the candidate comes last, and the
    /// difference is that of the last from the first. `None` if there is no control under test, or for a test of other
    /// than one or two values.
    pub(super) fn named(&self, test: &Test) -> Option<String> {
        self.results.plan.file.candidate.as_ref()?;
        match test {
            Test::Bounds { of, .. } => {
                let value = match self.summary(&[*of]) {
                    Summary::Mean => format::estimate(&self.estimate(*of)),
                    Summary::Median => self.bare(*of, Summary::Median),
                };
                let value = with_unit(value, self.unit(*of));
                Some(format!("{} {value}", self.name(*of)?))
            }
            Test::Greater { left, right, by, .. } => {
                let (first, last) = self.in_order(*left, *right);
                let d = self.difference(last, first, 1.0, 0.0);
                let unit = of_difference(self.unit(last));
                let mut text = self.pair(first, last, d.half);
                let difference = match d.summary {
                    Summary::Mean => format::signed(&Estimate { mean: d.value, half: d.half, n: d.n }),
                    Summary::Median => format::center(&d),
                };
                text = format!("{text}: {}", with_unit(difference, unit));
                // A required lead in per cent is a share, so the share is shown too.
                if let Some(gain) = self.gain(last, first).filter(|_| *by != 0.0) {
                    text = format!("{text} ({gain})");
                }
                Some(text)
            }
            Test::Ratio { left, right, .. } => {
                let text = self.pair(*right, *left, f64::INFINITY);
                Some(format!("{text}: {} times", format::center(&self.ratio(*left, *right))))
            }
            Test::Contrast { .. } | Test::Curves { .. } | Test::Extreme { .. } | Test::Steps { .. } => None,
        }
    }

    fn estimate(&self, p: Point) -> Estimate {
        stats::estimate(self.values(p))
    }

    fn unit(&self, p: Point) -> &str {
        &self.results.plan.metrics[p.metric].unit
    }

    /// Both values with their names. `half` is the half-width of the interval that decides how many digits a mean has.
    fn pair(&self, first: Point, last: Point, half: f64) -> String {
        let value = |p: Point| match self.summary(&[first, last]) {
            Summary::Mean => with_unit(format::rounded(self.estimate(p).mean, half), self.unit(p)),
            Summary::Median => {
                let median = format::number(stats::quantile(self.values(p), 0.5));
                with_unit(format!("median {median}"), self.unit(p))
            }
        };
        let [a, b] = self.names(first, last);
        format!("{a} {}, {b} {}", value(first), value(last))
    }

    /// The labels of the axes at a point.
    fn labels(&self, p: Point) -> Vec<(&str, String)> {
        let file = &self.results.plan.file;
        let index = Space::of(file).unflatten(p.at);
        file.study.axis.iter().zip(index).map(|(a, i)| (a.name.as_str(), a.label(i))).collect()
    }

    /// The two points, the one of the candidate last if only one of them is the candidate's.
    fn in_order(&self, left: Point, right: Point) -> (Point, Point) {
        let (l, r) = (self.labels(left), self.labels(right));
        let tests_candidate = |own: &[(&str, String)], other: &[(&str, String)]| {
            own.iter().zip(other).any(|(a, b)| a.1 == CANDIDATE && b.1 != CANDIDATE)
        };
        if tests_candidate(&l, &r) && !tests_candidate(&r, &l) { (right, left) } else { (left, right) }
    }

    /// The names of two points: the labels of the axes in which they differ.
    fn names(&self, first: Point, last: Point) -> [String; 2] {
        let (f, l) = (self.labels(first), self.labels(last));
        let differs: Vec<bool> = f.iter().zip(&l).map(|(a, b)| a != b).collect();
        [f, l].map(|all| self.joined(all.into_iter().zip(&differs).filter(|(_, d)| **d).map(|(a, _)| a)))
    }

    /// The name of a single point: the candidate if the point has it, otherwise the labels of the axes that the label of the
    /// case does not name.
    fn name(&self, p: Point) -> Option<String> {
        let all = self.labels(p);
        let tested = all.iter().any(|(_, label)| label == CANDIDATE);
        let axes = &self.results.plan.file.study.axis;
        let open = |name: &str| {
            let several = axes.iter().any(|a| a.name == name && a.values.len() > 1);
            several && !self.varied.iter().any(|v| v == name)
        };
        let kept =
            all.into_iter().filter(|(name, label)| if tested { label == CANDIDATE } else { open(name) });
        Some(self.joined(kept)).filter(|n| !n.is_empty())
    }

    /// Labels as a name: the label alone if all axes have the same, otherwise each label with its axis.
    fn joined<'b>(&self, labels: impl Iterator<Item = (&'b str, String)>) -> String {
        let candidate = self.results.plan.file.candidate.as_deref();
        let named = |(axis, label): (&'b str, String)| (axis, called(&label, candidate).to_owned());
        let all: Vec<(&str, String)> = labels.map(named).collect();
        match &all[..] {
            [] => String::new(),
            [(_, first), rest @ ..] if rest.iter().all(|(_, l)| l == first) => first.clone(),
            _ => all.iter().map(|(axis, label)| format!("{axis} = {label}")).collect::<Vec<_>>().join(", "),
        }
    }
}

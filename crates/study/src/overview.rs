//! An overview over several studies: the same few configurations side by side, metric by metric, with the intervals of the
//! means and of the paired differences.
//!
//! The studies contain the lines, `paper.toml` the sections; a line belongs to the section that its id names.

use crate::error::StudyError;
use crate::metric::PlannedMetric;
use crate::model::{Paper, Preference, Selector, StudyFile};
use crate::planned::Plan;
use crate::results::Results;
use crate::space::{Space, pins};
use crate::stats::{Estimate, estimate, paired_difference};
use crate::summary::Summary;

/// A measured line.
#[derive(Clone, Debug)]
pub struct Line {
    /// Section of the overview.
    pub id: String,
    /// The metric.
    pub metric: String,
    /// What is measured.
    pub says: String,
    /// Unit of the values.
    pub unit: String,
    /// Whether larger or smaller values are better.
    pub better: Option<Preference>,
    /// One entry for each combination of the values of the axes in `for_each`.
    pub places: Vec<Place>,
}

/// The values of a line at one place.
#[derive(Clone, Debug)]
pub struct Place {
    /// The axis values in words; empty if there is one place only.
    pub at: String,
    /// The mean of each column.
    pub values: Vec<Estimate>,
    /// The first column minus each of the others, seed by seed.
    pub differences: Vec<Estimate>,
}

/// Where the values of a line are.
struct Layout {
    metric: usize,
    /// For each side the value of each axis that it sets.
    sides: Vec<Vec<Option<usize>>>,
    /// Indices of the axes in `for_each`: each combination of their values is a place.
    for_each: Vec<usize>,
    /// The values of each axis that are shown.
    shown: Vec<Vec<usize>>,
}

impl Layout {
    /// The places of the line, numbered.
    fn counter(&self) -> Space {
        Space { lengths: self.for_each.iter().map(|a| self.shown[*a].len()).collect() }
    }

    /// The values of all axes at a place.
    fn index(&self, place: usize) -> Vec<usize> {
        let mut index: Vec<usize> = self.shown.iter().map(|v| v[0]).collect();
        for (a, k) in self.for_each.iter().zip(self.counter().unflatten(place)) {
            index[*a] = self.shown[*a][k];
        }
        index
    }

    /// The values at a place of those axes in `for_each` that show several, in words.
    fn label(&self, file: &StudyFile, index: &[usize]) -> String {
        let several = self.for_each.iter().filter(|a| self.shown[**a].len() > 1);
        several.map(|a| file.study.axis[*a].label(index[*a])).collect::<Vec<_>>().join(", ")
    }
}

fn layout(file: &StudyFile, metrics: &[PlannedMetric], i: usize) -> Result<Layout, StudyError> {
    let line = &file.study.overview[i];
    let key = |k: &str| format!("overview[{i}].{k}");
    let axes: Vec<&str> = file.study.axis.iter().map(|a| a.name.as_str()).collect();
    let axis = |name: &String| {
        let at = axes.iter().position(|a| a == name);
        at.ok_or_else(|| file.refuse(&key("for_each"), format!("there is no axis `{name}`"), &axes))
    };
    let known: Vec<&str> = metrics.iter().map(|m| m.name.as_str()).collect();
    let metric = known.iter().position(|m| *m == line.metric).ok_or_else(|| {
        file.refuse(&key("metric"), format!("there is no metric `{}`", line.metric), &known)
    })?;
    if metrics[metric].summary == Some(Summary::Median) {
        let message = format!("an overview has means, and `{}` is shown by its median", line.metric);
        return Err(file.refuse(&key("metric"), message, &["a metric without `summary`"]));
    }
    let side = |(k, side): (usize, &Selector)| {
        let key = key(&format!("sides[{k}]"));
        let one = |pin: Option<Vec<usize>>| match pin.as_deref() {
            None => Ok(None),
            Some([one]) => Ok(Some(*one)),
            Some(_) => Err(file.refuse(&key, "a side has one value of an axis", &[])),
        };
        pins(file, side, &key)?.into_iter().map(one).collect::<Result<Vec<_>, _>>()
    };
    let sides = line.sides.iter().enumerate().map(side).collect::<Result<Vec<_>, _>>()?;
    if sides.is_empty() {
        return Err(file.refuse(&key("sides"), "nothing is compared", &["[{ cc = \"candidate\" }]"]));
    }
    let for_each = line.for_each.0.iter().map(axis).collect::<Result<Vec<_>, _>>()?;
    let mut shown = Vec::new();
    for (a, pin) in pins(file, &line.at, &key("at"))?.into_iter().enumerate() {
        let all = pin.unwrap_or_else(|| (0..file.study.axis[a].values.len()).collect());
        let set = sides.iter().filter(|s| s[a].is_some()).count();
        let problem = if set > 0 && (set < sides.len() || for_each.contains(&a)) {
            Some(("sides", "is set by some sides only, or listed in `for_each` too"))
        } else if all.len() != 1 && set == 0 && !for_each.contains(&a) {
            Some(("at", "has several values: name one, or list it in `for_each`"))
        } else {
            None
        };
        if let Some((k, why)) = problem {
            return Err(file.refuse(&key(k), format!("axis `{}` {why}", axes[a]), &[]));
        }
        shown.push(all);
    }
    Ok(Layout { metric, sides, for_each, shown })
}

/// Checks that all lines can be measured.
pub(crate) fn check(file: &StudyFile, metrics: &[PlannedMetric]) -> Result<(), StudyError> {
    (0..file.study.overview.len()).try_for_each(|i| layout(file, metrics, i).map(drop))
}

/// Checks that the paper has the sections that the lines of a study name.
///
/// # Errors
/// The first line without a section.
pub fn check_sections(file: &StudyFile, paper: &Paper) -> Result<(), StudyError> {
    let sections = paper.overview.iter().flat_map(|o| &o.section);
    let known: Vec<&str> = sections.map(|s| s.id.as_str()).collect();
    for (i, line) in file.study.overview.iter().enumerate() {
        if !known.contains(&line.id.as_str()) {
            let message = format!("the overview of {} has no section `{}`", Paper::FILE, line.id);
            return Err(file.refuse(&format!("overview[{i}].id"), message, &known));
        }
    }
    Ok(())
}

/// Metric and label of every place of every line of a study.
#[must_use]
pub fn places(plan: &Plan) -> Vec<(String, String)> {
    let file = &plan.file;
    let of_line = |i: usize| {
        // The plan was checked.
        let l = layout(file, &plan.metrics, i).ok()?;
        let place = |number: usize| (plan.metrics[l.metric].name.clone(), l.label(file, &l.index(number)));
        Some((0..l.counter().len()).map(place).collect::<Vec<_>>())
    };
    (0..file.study.overview.len()).filter_map(of_line).flatten().collect()
}

/// Measures all lines of a study, under the default reading.
///
/// # Errors
/// None for a study that was checked.
pub(crate) fn measure(results: &Results<'_>) -> Result<Vec<Line>, StudyError> {
    (0..results.plan.file.study.overview.len()).map(|i| line(results, i)).collect()
}

fn line(results: &Results<'_>, i: usize) -> Result<Line, StudyError> {
    let (plan, file) = (results.plan, &results.plan.file);
    let (l, line) = (layout(file, &plan.metrics, i)?, &file.study.overview[i]);
    let space = Space::of(file);
    let place = |number: usize| {
        let index = l.index(number);
        let at = l.label(file, &index);
        let of_side = |side: &Vec<Option<usize>>| {
            let index: Vec<usize> = side.iter().zip(&index).map(|(own, i)| own.unwrap_or(*i)).collect();
            results.metric(0, space.flatten(&index), l.metric)
        };
        let sides: Vec<&[f64]> = l.sides.iter().map(of_side).collect();
        Place {
            at,
            values: sides.iter().map(|s| estimate(s)).collect(),
            differences: sides.iter().skip(1).map(|s| paired_difference(sides[0], s, 1.0, 0.0)).collect(),
        }
    };
    let metric = &plan.metrics[l.metric];
    Ok(Line {
        id: line.id.clone(),
        metric: metric.name.clone(),
        says: line.says.clone().unwrap_or_else(|| metric.title.clone()),
        unit: metric.unit.clone(),
        better: line.better,
        places: (0..l.counter().len()).map(place).collect(),
    })
}

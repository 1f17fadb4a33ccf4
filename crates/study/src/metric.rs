//! From metrics to expressions that can be evaluated.

use crate::error::StudyError;
use crate::expr::{self, Expr, Names, Shape};
use crate::format;
use crate::model::{Aggregation, Axis, Metric, StudyFile};
use crate::runner::{Resolution, Vocabulary};
use crate::space::pins;
use crate::summary::Summary;

/// A metric ready to be evaluated.
#[derive(Clone, Debug)]
pub struct PlannedMetric {
    /// Name in claims and figures.
    pub name: String,
    /// Title with unit.
    pub heading: String,
    /// Title.
    pub title: String,
    /// Unit.
    pub unit: String,
    /// The expression.
    pub expr: Expr,
    /// How the values of flows are aggregated.
    pub over: Option<Aggregation>,
    /// Only flows of this group.
    pub group: Option<String>,
    /// The value of each axis at `base`; `None`: the same. Empty without a base.
    pub base: Vec<Option<usize>>,
    /// Earlier metrics that the expression names, here or at the base.
    pub needs: Vec<String>,
    /// The statistic that summarises the values over the seeds, if the study says so.
    pub summary: Option<Summary>,
}

/// Units of time, in which a metric is a duration.
const TIME: [&str; 8] = ["s", "ms", "µs", "us", "min", "h", "RTT", "RTTs"];

impl PlannedMetric {
    /// Whether its values are durations, by their unit.
    #[must_use]
    pub fn is_duration(&self) -> bool {
        TIME.contains(&self.unit.as_str())
    }

    /// Its title, which says what a column or curve is if it is no mean.
    #[must_use]
    pub fn title_of(&self, summary: Summary) -> String {
        match summary {
            Summary::Mean => self.title.clone(),
            Summary::Median => format!("{}, median over the seeds", self.title),
        }
    }
}

/// The names that expressions may use, except metrics.
pub(crate) fn names(file: &StudyFile, quantities: Vocabulary, base: &Resolution) -> Names {
    // A constant exists if the study has it, or every value of one axis.
    let axes = &file.study.axis;
    let of_axis = |a: &Axis| -> Vec<String> {
        let first = a.values[0].constants.keys();
        first.filter(|c| a.values.iter().all(|v| v.constants.contains_key(*c))).cloned().collect()
    };
    Names {
        flow: quantities.flow,
        link: quantities.link,
        run: quantities.run,
        groups: base.groups.clone(),
        links: base.links.clone(),
        series: base.series.clone(),
        constants: file.study.constants.keys().cloned().chain(axes.iter().flat_map(of_axis)).collect(),
        metrics: Vec::new(),
        based: false,
    }
}

/// Checks the metrics of a study; `per-group` ones are expanded.
pub(crate) fn metrics(file: &StudyFile, mut names: Names) -> Result<Vec<PlannedMetric>, StudyError> {
    let mut planned: Vec<PlannedMetric> = Vec::new();
    for (i, m) in file.study.metric.iter().enumerate() {
        let key = |k: &str| format!("metric[{i}].{k}");
        let refuse = |e: expr::ExprError| {
            let accepted: Vec<&str> = e.accepted.iter().map(String::as_str).collect();
            file.refuse(&key("from"), format!("in `{}`: {}", m.from, e.message), &accepted)
        };
        if let Some(g) = m.group.as_ref().filter(|g| !names.groups.contains(g)) {
            let groups: Vec<&str> = names.groups.iter().map(String::as_str).collect();
            return Err(file.refuse(&key("group"), format!("there is no group `{g}`"), &groups));
        }
        let mut base = Vec::new();
        if !m.base.is_empty() {
            for (pin, axis) in pins(file, &m.base, &key("base"))?.into_iter().zip(&file.study.axis) {
                base.push(match pin.as_deref() {
                    None => None,
                    Some([one]) => Some(*one),
                    Some(_) => {
                        let message = format!("a metric has one base: write one value of `{}`", axis.name);
                        return Err(file.refuse(&key("base"), message, &[]));
                    }
                });
            }
        }
        names.based = !base.is_empty();
        let expr = expr::parse(&m.from).map_err(refuse)?;
        let over = ["sum", "mean", "min", "max", "jain", "per-group"];
        match (expr::shape(&expr, &names).map_err(refuse)?, m.over) {
            (Shape::Scalar, Some(_)) => {
                let message = "the expression is a single number, so there is nothing to aggregate";
                return Err(file.refuse(&key("over"), message, &["leave it out"]));
            }
            (Shape::PerFlow, None) => {
                let message = "the expression has one value per flow: how are they aggregated?";
                return Err(file.refuse(&key("over"), message, &over));
            }
            (Shape::Curves, _) => {
                let message = "a series is not a number";
                return Err(file.refuse(
                    &key("from"),
                    message,
                    &["at(series.…, t)", "reach(series.…, level)"],
                ));
            }
            (Shape::Scalar, None) | (Shape::PerFlow, Some(_)) => {}
        }
        for new in expand(m, &expr, &base, &names.groups) {
            if names.metrics.contains(&new.name) {
                return Err(file.refuse(&key("name"), format!("there are two metrics `{}`", new.name), &[]));
            }
            names.metrics.push(new.name.clone());
            planned.push(distinct(new, &planned));
        }
    }
    Ok(planned)
}

/// The metric, with its name behind its title if an earlier metric has its heading.
fn distinct(mut new: PlannedMetric, earlier: &[PlannedMetric]) -> PlannedMetric {
    if earlier.iter().any(|m| m.heading == new.heading) {
        new.title = format!("{} [{}]", new.title, new.name);
        new.heading = format::heading(&new.title, &new.unit);
    }
    new
}

fn expand(m: &Metric, expr: &Expr, base: &[Option<usize>], groups: &[String]) -> Vec<PlannedMetric> {
    let mut needs = Vec::new();
    expr.names(&mut |name| {
        if let expr::Name::Metric(m) | expr::Name::Base(m) = name {
            needs.push(m.clone());
        }
    });
    let title = m.title.clone().unwrap_or_else(|| m.name.clone());
    let one = |name: String, title: String, group: Option<String>, over| PlannedMetric {
        name,
        heading: format::heading(&title, &m.unit),
        title,
        unit: m.unit.clone(),
        expr: expr.clone(),
        over,
        group,
        base: base.to_vec(),
        needs: needs.clone(),
        summary: m.summary,
    };
    if m.over != Some(Aggregation::PerGroup) {
        return vec![one(m.name.clone(), title, m.group.clone(), m.over)];
    }
    let of = |g: &String| {
        one(format!("{}.{g}", m.name), format!("{title}, {g}"), Some(g.clone()), Some(Aggregation::Mean))
    };
    groups.iter().filter(|g| m.group.as_ref().is_none_or(|only| only == *g)).map(of).collect()
}

//! Figures: their data as rows, which `vega` turns into a Vega-Lite specification with embedded data.
//!
//! The same specification serves the report, notebooks, the browser and image files.

mod ellipse;
mod layout;
mod overlay;
mod rate;
mod spans;
mod thin;
mod vega;

use crate::error::{RenderError, StudyError};
use crate::files::{NOT_A_NAME, is_plain_name};
use crate::format;
use crate::metric::PlannedMetric;
use crate::model::{Band, Figure, Scale, StudyFile, TimeFigure, called};
use crate::observed::Sampled;
use crate::results::Results;
use crate::runner::Resolution;
use crate::space::{Space, pins};
use crate::stats::Center;
use crate::summary::Summary;
pub use overlay::overlay;
use serde::Serialize;
use skyhaul_scenario::resolved::Series;
use skyhaul_sim::quantity::sampled;
use spans::Span;
use std::path::Path;
pub use vega::PALETTE;

/// A figure with its data.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureData {
    /// Name without extension.
    pub name: String,
    /// Title.
    pub title: String,
    /// Sentence below the plot.
    pub caption: Option<String>,
    /// The Vega-Lite specification, data included.
    pub spec: serde_json::Value,
    /// The numbers, for a table beside the picture.
    pub rows: Vec<Row>,
    /// Heading of the rows' `x`.
    pub x_title: String,
    /// Heading of the rows' `at`, where a metric lies along x.
    pub points: Option<String>,
    /// Heading of the rows' `y`.
    pub y_title: String,
    /// Whether some curves have fewer points than samples.
    pub thinned: bool,
}

impl FigureData {
    /// Whether the figure has no data, for example because the quick profile leaves it out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// One point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Along x; missing on a category axis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub x: Option<f64>,
    /// Label of the value along x; empty over time.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub at: String,
    /// Lower end of the interval along x, where a metric lies there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<f64>,
    /// Upper end of the interval along x.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub right: Option<f64>,
    /// Along y.
    pub y: f64,
    /// Lower end of the band.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end of the band.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// The series, distinguished by colour.
    pub series: String,
    /// The reading.
    pub reading: String,
    /// The flow, in figures with one curve per flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<u32>,
    /// The ellipse around the point, in figures with ellipses. It is not among the data of the point.
    #[serde(skip)]
    pub outline: Option<Vec<(f64, f64)>>,
}

/// Renders a specification to an image: PNG or SVG by the extension of the path.
pub trait FigureRenderer {
    /// Writes the image of `vl_json`, a Vega-Lite specification, to `path`.
    ///
    /// # Errors
    /// If the renderer refuses the specification or cannot write the file.
    fn render(&self, vl_json: &str, path: &Path) -> Result<(), RenderError>;
}

/// What a figure draws of the axes of its study.
struct Extent {
    /// Index of the axis along x, and of the axis whose values are the series.
    x: Option<usize>,
    series: Option<usize>,
    /// For each axis the indices of the drawn values.
    choices: Vec<Vec<usize>>,
}

/// Checks the figures of a study before anything has run.
///
/// # Errors
/// If a figure names something that does not exist or leaves an axis open.
pub fn check(file: &StudyFile, metrics: &[PlannedMetric], base: &Resolution) -> Result<(), StudyError> {
    for (i, figure) in file.study.figure.iter().enumerate() {
        let key = |k: &str| format!("figure[{i}].{k}");
        let names: Vec<&str> = metrics.iter().map(|m| m.name.as_str()).collect();
        if let Some(unknown) = figure.y.0.iter().find(|y| !names.contains(&y.as_str())) {
            return Err(file.refuse(&key("y"), format!("there is no metric `{unknown}`"), &names));
        }
        if !is_plain_name(&figure.file) {
            return Err(file.refuse(&key("file"), NOT_A_NAME, &["a name such as \"goodput\""]));
        }
        let unknown = figure.quantiles.iter().position(|q| !names.contains(&q.metric.as_str()));
        if let Some(q) = unknown {
            let message = format!("there is no metric `{}`", figure.quantiles[q].metric);
            return Err(file.refuse(&key(&format!("quantiles[{q}].metric")), message, &names));
        }
        let along = figure.x.as_ref().filter(|_| figure.x_metric.is_none() && figure.x_scale == Scale::Log);
        if let Some(axis) = along.and_then(|x| file.study.axis.iter().find(|a| a.name == *x)) {
            if let Some(i) = axis.values.iter().position(|v| v.number().is_none_or(|x| x < 0.0)) {
                let message = format!(
                    "`{}` of axis `{}` is no number from 0 on, so a logarithm has no place for it",
                    axis.label(i),
                    axis.name
                );
                return Err(file.refuse(
                    &key("x_scale"),
                    message,
                    &["\"category\"", "x = … in each value of the axis"],
                ));
            }
        }
        if figure.y_scale == Scale::Category {
            let message = "values along y have no categories";
            return Err(file.refuse(&key("y_scale"), message, &["\"linear\"", "\"log\""]));
        }
        if let Some(x) = figure.x_metric.as_deref() {
            if !names.contains(&x) {
                return Err(file.refuse(&key("x_metric"), format!("there is no metric `{x}`"), &names));
            }
            if figure.x.is_none() {
                let message = "a metric along x needs the axis whose values are the points";
                return Err(file.refuse(&key("x_metric"), message, &["x = \"axis\""]));
            }
            if figure.x_scale == Scale::Category {
                let message = "a metric along x has no categories";
                return Err(file.refuse(&key("x_scale"), message, &["\"linear\"", "\"log\""]));
            }
        }
        let plain = figure.x_scale == Scale::Linear && figure.y_scale == Scale::Linear;
        if figure.band == Band::Ellipse && (figure.x_metric.is_none() || !plain) {
            let message = "an ellipse is drawn over two metrics on linear scales";
            return Err(file.refuse(
                &key("band"),
                message,
                &["x_metric = \"metric\"", "\"ci95\"", "\"range\""],
            ));
        }
        if figure.x_reverse && figure.x_metric.is_none() {
            let message = "only a metric along x can be reversed";
            return Err(file.refuse(&key("x_reverse"), message, &["x_metric = \"metric\""]));
        }
        match (&figure.time, &figure.x, figure.y.0.is_empty(), figure.quantiles.is_empty()) {
            (Some(_), None, true, true) | (None, Some(_), false, true) | (None, None, true, false) => {}
            _ => {
                let message = "a figure has either `x` and `y`, or `time`, or `quantiles`";
                let forms = [
                    "x = \"axis\", y = \"metric\"",
                    "time = { series = … }",
                    "quantiles = [{ metric = …, share = … }]",
                ];
                return Err(file.refuse(&key("file"), message, &forms));
            }
        }
        if let Some(time) = &figure.time {
            for (k, series) in [("time", Some(&time.series)), ("time.mark", time.mark.as_ref())] {
                let why = series.and_then(|series| base.without_curve(series, time.group.as_deref()));
                if let Some((why, known)) = why {
                    let known: Vec<&str> = known.iter().map(String::as_str).collect();
                    return Err(file.refuse(&key(k), why, &known));
                }
            }
        }
        let origin = figure.time.as_ref().and_then(|t| t.origin.as_deref());
        if let Some(unknown) = origin.filter(|o| !names.contains(o)) {
            return Err(file.refuse(&key("time"), format!("there is no metric `{unknown}`"), &names));
        }
        extent(file, figure, i)?;
    }
    Ok(())
}

/// What figure `i` of a study draws of its axes.
///
/// # Errors
/// If the figure names an axis that does not exist, or leaves one open.
fn extent(file: &StudyFile, figure: &Figure, i: usize) -> Result<Extent, StudyError> {
    let axes = &file.study.axis;
    let find = |name: &Option<String>, key: &str| match name {
        None => Ok(None),
        Some(name) => axes.iter().position(|a| a.name == *name).map(Some).ok_or_else(|| {
            let names: Vec<&str> = axes.iter().map(|a| a.name.as_str()).collect();
            file.refuse(&format!("figure[{i}].{key}"), format!("there is no axis `{name}`"), &names)
        }),
    };
    let (x, series) = (find(&figure.x, "x")?, find(&figure.series, "series")?);
    let at = pins(file, &figure.at, &format!("figure[{i}].at"))?;
    let choose = |a: usize| -> Result<Vec<usize>, StudyError> {
        let axis = &axes[a];
        let free = Some(a) == x || Some(a) == series;
        let choice = at[a].clone().unwrap_or_else(|| (0..axis.values.len()).collect());
        if choice.len() > 1 && !free {
            let message = format!("axis `{}` is left open", axis.name);
            let fix = format!("at = {{ {} = … }}", axis.name);
            return Err(file.refuse(&format!("figure[{i}].at"), message, &[&fix, "series = …"]));
        }
        Ok(choice)
    };
    Ok(Extent { x, series, choices: (0..axes.len()).map(choose).collect::<Result<_, _>>()? })
}

/// Draws all figures of a study.
///
/// # Errors
/// As [`check`]; none for a plan that passed it.
pub fn draw(results: &Results<'_>) -> Result<Vec<FigureData>, StudyError> {
    let file = &results.plan.file;
    let one = |(i, figure): (usize, &Figure)| {
        let extent = extent(file, figure, i)?;
        let d = Draw { results, figure, extent };
        Ok(match (&figure.time, figure.quantiles.is_empty()) {
            (Some(_), _) => d.over_time(),
            (None, true) => d.over_axis(),
            (None, false) => d.distribution(),
        })
    };
    file.study.figure.iter().enumerate().map(one).collect()
}

struct Draw<'a> {
    results: &'a Results<'a>,
    figure: &'a Figure,
    extent: Extent,
}

/// Whether the curves belong to more than one flow group, or to both directions of a link.
fn several_groups<'a>(mut curves: impl Iterator<Item = &'a Sampled>) -> bool {
    let first = curves.next();
    first.is_some_and(|f| curves.any(|c| c.group != f.group))
}

/// The name of a curve: the value of the series axis, and the group if there are several.
fn curve_label(of_axis: String, group: &str, several: bool) -> String {
    match (of_axis.is_empty(), several) {
        (true, _) => group.to_owned(),
        (false, false) => of_axis,
        (false, true) => format!("{of_axis}, {group}"),
    }
}

/// The title of a figure over time: the name of the series, and its unit if it is drawn unscaled.
fn heading(time: &TimeFigure) -> String {
    let recorded = time.factor == 1.0 && !time.rate;
    let known = Series::ALL.iter().find(|s| recorded && s.name() == time.series);
    match known.map_or("", |s| sampled(*s).unit.symbol()) {
        "" => time.series.clone(),
        unit => format!("{} ({unit})", time.series),
    }
}

/// A line over time: its group, its flow if it belongs to one, and its points.
type Line = (String, Option<u32>, Vec<(f64, f64)>);

impl Draw<'_> {
    /// All drawn combinations: the index of the reading, and for each axis the index of its value. They are in the order of the
    /// readings, then of the axes. A combination that another reading does not change is drawn once.
    fn combinations(&self) -> Vec<(usize, Vec<usize>)> {
        let readings = if self.figure.readings { self.results.plan.grid.len() } else { 1 };
        let mut all = vec![Vec::new()];
        for choice in &self.extent.choices {
            let with = |c: &Vec<usize>| {
                choice.iter().map(|v| c.iter().copied().chain([*v]).collect()).collect::<Vec<Vec<usize>>>()
            };
            all = all.iter().flat_map(with).collect();
        }
        let space = Space::of(&self.results.plan.file);
        let drawn = |(r, c): &(usize, Vec<usize>)| *r == 0 || self.results.differs(*r, space.flatten(c));
        (0..readings).flat_map(|r| all.iter().map(move |c| (r, c.clone()))).filter(drawn).collect()
    }

    /// The label of the series that a combination belongs to; empty without a series axis.
    fn series_label(&self, combination: &[usize]) -> String {
        self.extent.series.map_or_else(String::new, |s| self.label(s, combination[s]))
    }

    /// The label of a value of an axis; that of the control under test is its name.
    fn label(&self, axis: usize, value: usize) -> String {
        let file = &self.results.plan.file;
        called(&file.study.axis[axis].label(value), file.candidate.as_deref()).to_owned()
    }

    /// The series in the order of the legend, which is that of the study.
    fn domain(&self, rows: &[Row]) -> Vec<String> {
        let mut domain: Vec<String> = Vec::new();
        for r in rows {
            if !domain.contains(&r.series) {
                domain.push(r.series.clone());
            }
        }
        domain
    }

    /// Means of metrics along an axis, or along another metric.
    fn over_axis(&self) -> FigureData {
        let plan = self.results.plan;
        let study = &plan.file.study;
        let x_axis = &study.axis[self.extent.x.expect("checked: a figure without `time` has `x`")];
        let numeric = x_axis.values.iter().all(|v| v.number().is_some());
        let x_metric = self.figure.x_metric.as_ref().and_then(|m| plan.metric(m));
        let scale = if numeric || x_metric.is_some() { self.figure.x_scale } else { Scale::Category };
        let metrics: Vec<usize> = self.figure.y.0.iter().filter_map(|y| plan.metric(y)).collect();
        let (space, names) = (Space::of(&plan.file), plan.readings());
        // Metrics may have one title in different units.
        let title_of = |m: usize| plan.metrics[m].title_of(self.shown(m));
        let has_twin = |m: usize| metrics.iter().any(|n| *n != m && title_of(*n) == title_of(m));
        let mut rows = Vec::new();
        for (reading, c) in self.combinations() {
            for &m in &metrics {
                let values = self.results.metric(reading, space.flatten(&c), m);
                let e = Center::of(self.shown(m), values);
                if !e.is_valid() {
                    continue;
                }
                let (low, high) = self.interval(values, &e);
                let title = if has_twin(m) { self.heading(m) } else { title_of(m) };
                let series = match (self.series_label(&c), metrics.len()) {
                    (s, 1) if !s.is_empty() => s,
                    (s, _) if s.is_empty() => title,
                    (s, _) => format!("{s}, {title}"),
                };
                let i = c[self.extent.x.unwrap_or(0)];
                let mut outline = None;
                let (x, left, right) = match x_metric {
                    Some(m) => {
                        let along = self.results.metric(reading, space.flatten(&c), m);
                        let e = Center::of(self.shown(m), along);
                        if !e.is_valid() {
                            continue;
                        }
                        if self.figure.band == Band::Ellipse {
                            outline = ellipse::outline(along, values);
                        }
                        let (left, right) = self.interval(along, &e);
                        (Some(e.value), left, right)
                    }
                    None if scale == Scale::Category => (None, None, None),
                    None => (x_axis.values[i].number(), None, None),
                };
                let (at, reading) = (self.label(self.extent.x.unwrap_or(0), i), names[reading].clone());
                let flow = None;
                rows.push(Row { x, at, left, right, y: e.value, low, high, series, reading, flow, outline });
            }
        }
        let y_title = match &metrics[..] {
            [one] => self.heading(*one),
            many => many.first().map_or_else(String::new, |m| unit_heading(&plan.metrics[*m].unit)),
        };
        let x_title = x_metric.map_or_else(|| x_axis.heading(), |m| self.heading(m));
        self.finish(rows, &[], scale, x_title, y_title, false)
    }

    /// The statistic that summarises the values of a metric. An ellipse of one standard deviation is about means.
    fn shown(&self, metric: usize) -> Summary {
        if self.figure.band == Band::Ellipse { Summary::Mean } else { self.results.shown(metric) }
    }

    /// Title of a metric with its unit; it says if medians are drawn.
    fn heading(&self, metric: usize) -> String {
        let m = &self.results.plan.metrics[metric];
        format::heading(&m.title_of(self.shown(metric)), &m.unit)
    }

    /// The ends of the interval that the figure shows about a mean or a median.
    fn interval(&self, values: &[f64], e: &Center) -> (Option<f64>, Option<f64>) {
        let fold = |f: fn(f64, f64) -> f64| values.iter().copied().reduce(f);
        match self.figure.band {
            Band::Ci95 if e.interval().is_some() => (Some(e.low), Some(e.high)),
            Band::Range => (fold(f64::min), fold(f64::max)),
            Band::Ci95 | Band::Ellipse | Band::None => (None, None),
        }
    }

    /// Means of metrics along x, each at its quantile along y. A point without a value for some seed is left out, and
    /// the curve ends there.
    fn distribution(&self) -> FigureData {
        let plan = self.results.plan;
        let (space, names) = (Space::of(&plan.file), plan.readings());
        let mut rows = Vec::new();
        for (reading, c) in self.combinations() {
            for q in &self.figure.quantiles {
                let Some(m) = plan.metric(&q.metric) else { continue };
                let e = Center::of(self.shown(m), self.results.metric(reading, space.flatten(&c), m));
                if !e.is_valid() {
                    continue;
                }
                let at = plan.metrics[m].title_of(self.shown(m));
                let (series, reading) = (self.series_label(&c), names[reading].clone());
                rows.push(Row {
                    x: Some(e.value),
                    at,
                    left: None,
                    right: None,
                    y: q.share,
                    low: None,
                    high: None,
                    series,
                    reading,
                    flow: None,
                    outline: None,
                });
            }
        }
        let first = self.figure.quantiles.first().and_then(|q| plan.metric(&q.metric));
        let x_title = first.map_or_else(String::new, |m| unit_heading(&plan.metrics[m].unit));
        self.finish(rows, &[], self.figure.x_scale, x_title, "Share".to_owned(), false)
    }

    /// Recorded series of the first seed over time.
    fn over_time(&self) -> FigureData {
        let time = self.figure.time.as_ref().expect("checked: this is a figure over time");
        let plan = self.results.plan;
        let (space, names) = (Space::of(&plan.file), plan.readings());
        let to = time.to.unwrap_or(f64::INFINITY);
        let mut rows = Vec::new();
        let mut spans = Vec::new();
        let mut thinned = false;
        for (reading, c) in self.combinations() {
            let Some(observed) = self.results.observed(reading, space.flatten(&c), 0) else { continue };
            let metric = time.origin.as_ref().and_then(|o| plan.metric(o));
            let origin = metric.map_or(0.0, |m| self.results.metric(reading, space.flatten(&c), m)[0]);
            if !origin.is_finite() {
                // Nothing has a place along x: the origin, such as the time of a loss, never came.
                continue;
            }
            if let Some(mark) = &time.mark {
                let several = several_groups(observed.curves(mark, time.group.as_deref()));
                for curve in observed.curves(mark, time.group.as_deref()) {
                    let series = curve_label(self.series_label(&c), &curve.group, several);
                    let points = curve.within(f64::NEG_INFINITY, f64::INFINITY);
                    for (from, until) in spans::rising(points) {
                        let (from, until) = ((from - origin).max(time.from), (until - origin).min(to));
                        if from < until {
                            spans.push(Span { from, to: until, series: series.clone() });
                        }
                    }
                }
            }
            let several = several_groups(observed.curves(&time.series, time.group.as_deref()));
            let curves = observed.curves(&time.series, time.group.as_deref());
            let curves: Vec<Line> = if time.rate {
                rate::per_group(curves).into_iter().map(|(group, points)| (group, None, points)).collect()
            } else {
                let points = |c: &Sampled| c.within(f64::NEG_INFINITY, f64::INFINITY).collect();
                curves.map(|c| (c.group.clone(), Some(c.flow), points(c))).collect()
            };
            for (group, flow, points) in curves {
                let points = points.into_iter().map(|(t, v)| (t - origin, v * time.factor));
                let points = points.filter(|(t, v)| *t >= time.from && *t <= to && v.is_finite());
                let points: Vec<(f64, f64)> = points.collect();
                let drawn = thin::thin(&points, vega::WIDTH);
                thinned |= drawn.len() < points.len();
                let label = curve_label(self.series_label(&c), &group, several);
                let row = |(x, y): &(f64, f64)| Row {
                    x: Some(*x),
                    at: String::new(),
                    left: None,
                    right: None,
                    y: *y,
                    low: None,
                    high: None,
                    series: label.clone(),
                    reading: names[reading].clone(),
                    flow,
                    outline: None,
                };
                rows.extend(drawn.iter().map(row));
            }
        }
        self.finish(rows, &spans, self.figure.x_scale, "Time (s)".to_owned(), heading(time), thinned)
    }

    /// Builds the specification, with the titles of the figure where it has some.
    fn finish(
        &self,
        rows: Vec<Row>,
        spans: &[Span],
        scale: Scale,
        x_title: String,
        y_title: String,
        thinned: bool,
    ) -> FigureData {
        let f = self.figure;
        let study = &self.results.plan.file.study;
        let name = f.name().to_owned();
        let title = f.title.clone().unwrap_or_else(|| study.title.clone());
        let x_title = f.x_title.clone().unwrap_or(x_title);
        let y_title = f.y_title.clone().unwrap_or(y_title);
        let legend = self.extent.series.map(|s| study.axis[s].title_or_name());
        let points = f.x_metric.is_some().then_some(self.extent.x).flatten().map(|x| study.axis[x].heading());
        let domain = self.domain(&rows);
        let readings = self.results.plan.readings();
        let spec = vega::Spec {
            figure: f,
            title: &title,
            x_title: &x_title,
            y_title: &y_title,
            legend,
            points: points.as_deref(),
            scale,
            domain: &domain,
            readings: &readings,
            rows: &rows,
            spans,
        };
        let spec = spec.build();
        FigureData { name, title, caption: f.caption.clone(), spec, rows, x_title, points, y_title, thinned }
    }
}

/// Title of an axis that several metrics share: their unit.
fn unit_heading(unit: &str) -> String {
    if unit.is_empty() { String::new() } else { format!("({unit})") }
}

#[cfg(test)]
mod tests;

//! Figures: what is drawn.

use crate::model::{OneOrMany, Selector};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A figure: metrics over an axis, or recorded series over time (`time`).
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Name of the file; the extension is replaced.
    pub file: String,
    /// Title above the plot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Sentence below it in the report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caption: Option<String>,
    /// Axis of the study along x.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x: Option<String>,
    /// Metric along x instead of the axis: a point for each value of the axis, larger from one value to the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_metric: Option<String>,
    /// Metric along y, or several.
    #[serde(default)]
    pub y: OneOrMany,
    /// Axis of the study whose values are distinguished by colour and shape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<String>,
    /// Recorded series over time instead of metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeFigure>,
    /// Values of axes to draw; axes neither here nor in `x` or `series` must have one value.
    #[serde(default, skip_serializing_if = "Selector::is_empty")]
    pub at: Selector,
    /// Draw the other readings too, as dashed lines.
    #[serde(default)]
    pub readings: bool,
    /// How lines are drawn.
    #[serde(default)]
    pub mark: Mark,
    /// Uncertainty of the means.
    #[serde(default)]
    pub band: Band,
    /// Scale along x. On a logarithmic scale, zero is drawn left of the powers of ten, behind a dashed line.
    #[serde(default)]
    pub x_scale: Scale,
    /// Scale along y.
    #[serde(default)]
    pub y_scale: Scale,
    /// Title along x; by default that of the axis, with its unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_title: Option<String>,
    /// Title along y; by default that of the metric, with its unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y_title: Option<String>,
    /// Range along x.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_range: Option<[f64; 2]>,
    /// With a metric along x: larger values are further left, so that better is up and to the right where the metric is a delay.
    #[serde(default)]
    pub x_reverse: bool,
    /// Range along y.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y_range: Option<[f64; 2]>,
    /// A distribution instead of metrics over an axis: metrics along x, each at its quantile along y.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quantiles: Vec<Quantile>,
    /// Straight lines, such as bounds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rule: Vec<Rule>,
    /// Single points, such as values printed in a paper.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub point: Vec<RefPoint>,
}

impl Figure {
    /// The name of the figure: its file without the extension. An extension begins with a letter, so that `loss-0.01` has none.
    #[must_use]
    pub fn name(&self) -> &str {
        match self.file.rsplit_once('.') {
            Some((name, extension)) if !name.is_empty() && extension.starts_with(char::is_alphabetic) => name,
            _ => &self.file,
        }
    }
}

/// Recorded series over time.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TimeFigure {
    /// The recorded series, e.g. `cwnd`.
    pub series: String,
    /// Only flows of this group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Thin, translucent lines, so that the lines of many flows can be distinguished. Each flow has a line in any case.
    #[serde(default)]
    pub each_flow: bool,
    /// Increase per second of a cumulative series, from sample to sample: one line per flow group, with the sum of
    /// its flows.
    #[serde(default)]
    pub rate: bool,
    /// A recorded series that rises during a condition, such as `stalled`: these times are marked above the plot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
    /// Factor for the values, for another unit; 1 by default.
    #[serde(default = "one")]
    pub factor: f64,
    /// Metric whose value becomes time 0, such as the time of a loss; 0 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// Start, s after the origin.
    #[serde(default)]
    pub from: f64,
    /// End, s after the origin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<f64>,
}

/// A point of a distribution.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Quantile {
    /// The metric with the value at this quantile.
    pub metric: String,
    /// The quantile, along y.
    pub share: f64,
}

const fn one() -> f64 {
    1.0
}

/// How lines are drawn.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// Lines.
    Line,
    /// Lines with a shape at each value.
    #[default]
    LinePoint,
    /// Shapes only.
    Point,
    /// The value holds until the next.
    Step,
}

/// Uncertainty of the means.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Band {
    /// 95 % confidence interval of the mean over the seeds.
    #[default]
    Ci95,
    /// Nothing.
    None,
    /// Smallest to largest over the seeds.
    Range,
    /// With a metric along x: ellipse of one standard deviation over the seeds, from the covariance of both metrics.
    Ellipse,
}

/// Scale of an axis.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// One position per value, in the order of the study.
    Category,
    /// Linear.
    #[default]
    Linear,
    /// Logarithmic.
    Log,
}

/// A straight line across the plot.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The axis on which `value` lies.
    #[serde(default)]
    pub axis: RuleAxis,
    /// Where.
    pub value: f64,
    /// Its label.
    #[serde(default)]
    pub label: String,
}

/// Axis of a plot.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuleAxis {
    /// A vertical line.
    X,
    /// A horizontal line.
    #[default]
    Y,
}

/// A single point.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RefPoint {
    /// Along x.
    pub x: f64,
    /// Along y.
    pub y: f64,
    /// Its label.
    #[serde(default)]
    pub label: String,
}

//! Tests of claims.

use crate::model::{Label, OneOrMany, Side};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A test. Every comparison is between means over the seeds (medians where the metric says so) with 95 % intervals; both sides use the same seeds.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", tag = "kind")]
pub enum Check {
    /// A weighted sum of means is within bounds.
    Contrast {
        /// The metric, unless a term names another.
        metric: String,
        /// The terms of the sum.
        terms: Vec<Term>,
        /// Lower bound.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<f64>,
        /// Upper bound.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<f64>,
    },
    /// Two recorded curves relate over an interval of time.
    Curve(Curve),
    /// The metric has a given value.
    Equal {
        /// The metric.
        metric: String,
        /// The value.
        value: f64,
        /// Accepted deviation, in the unit of the metric or as a fraction of `value`.
        tolerance: f64,
        /// `tolerance` is a fraction of `value`.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        relative: bool,
    },
    /// Left is greater than right.
    Greater {
        /// The metric.
        metric: String,
        /// The greater side.
        left: Side,
        /// The smaller side.
        right: Side,
        /// Required lead as a fraction of the right side: left > right·(1 + by). A negative value grants slack.
        #[serde(default, skip_serializing_if = "is_zero")]
        by: f64,
        /// Additional lead in the unit of the metric.
        #[serde(default, skip_serializing_if = "is_zero")]
        by_abs: f64,
    },
    /// The metric is largest at one value of an axis.
    MaxAt {
        /// The metric.
        metric: String,
        /// The axis.
        along: String,
        /// Label or value of the axis.
        value: Label,
    },
    /// The metric is smallest at one value of an axis.
    MinAt {
        /// The metric.
        metric: String,
        /// The axis.
        along: String,
        /// Label or value of the axis.
        value: Label,
    },
    /// The metric rises or falls along an axis.
    Monotone {
        /// The metric.
        metric: String,
        /// The axis.
        along: String,
        /// Rising or falling.
        direction: Direction,
        /// Every step must be significant. Otherwise no step may be significant in the wrong direction, and the change from
        /// the first value to the last must be significant in the right one.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        strict: bool,
    },
    /// The metric rises or falls over the values of an axis in this order, each step significantly.
    Order {
        /// The metric.
        metric: String,
        /// The axis.
        along: String,
        /// Labels or values of the axis.
        values: OneOrMany,
        /// Rising or falling.
        direction: Direction,
    },
    /// The ratio left / right is within limits.
    Ratio {
        /// The metric.
        metric: String,
        /// Numerator.
        left: Side,
        /// Denominator.
        right: Side,
        /// Limits.
        within: [f64; 2],
    },
    /// The metric is within limits.
    Within {
        /// The metric.
        metric: String,
        /// Limits.
        within: [f64; 2],
    },
}

/// A term of a contrast.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    /// Its weight.
    pub weight: f64,
    /// Its axis values, and optionally its metric.
    #[serde(default)]
    pub at: Side,
}

/// A relation between two recorded curves.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Curve {
    /// The recorded series, e.g. `cwnd`.
    pub series: String,
    /// Only flows of this group; the curves of its flows are compared one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// First curve.
    pub left: Side,
    /// Second curve.
    pub right: Side,
    /// The relation that must hold at every sample.
    pub relation: Relation,
    /// Accepted deviation: |left − right| ≤ tolerance, or left ≥ right − tolerance.
    #[serde(default)]
    pub tolerance: f64,
    /// Start of the interval, s.
    #[serde(default)]
    pub from: f64,
    /// End of the interval, s; the end of the run by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<f64>,
}

/// How two curves relate.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// Left is never below right.
    Above,
    /// They coincide.
    Equal,
}

/// Rising or falling.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Falling.
    Decreasing,
    /// Rising.
    Increasing,
}

impl Direction {
    /// +1 or −1.
    #[must_use]
    pub const fn sign(self) -> f64 {
        match self {
            Self::Decreasing => -1.0,
            Self::Increasing => 1.0,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(x: &f64) -> bool {
    *x == 0.0
}

//! Checking and evaluating trees.

use super::windows::{regain, settle, variation};
use super::{Expr, ExprError, Name};
use crate::observed::{Observed, Sampled};
use crate::stats;
use skyhaul_analysis::forms::{FORMS, Form};
use skyhaul_base::math;
use std::collections::BTreeMap;

/// What an expression yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One number.
    Scalar,
    /// A number per flow.
    PerFlow,
    /// A curve per flow.
    Curves,
}

/// The names that exist, for checking before anything has run.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Quantities of flows.
    pub flow: Vec<String>,
    /// Groups of flows.
    pub groups: Vec<String>,
    /// Quantities of links.
    pub link: Vec<String>,
    /// Links.
    pub links: Vec<String>,
    /// Quantities of runs.
    pub run: Vec<String>,
    /// Recorded series.
    pub series: Vec<String>,
    /// Constants that every combination of axis values has.
    pub constants: Vec<String>,
    /// Metrics defined so far.
    pub metrics: Vec<String>,
    /// Whether the metric has a base to compare with.
    pub based: bool,
}

/// The values of names for an evaluation.
#[derive(Clone, Copy, Debug)]
pub struct Vars<'a> {
    /// The measurements of the cell.
    pub observed: &'a Observed,
    /// Only flows of this group, unless a name says otherwise.
    pub group: Option<&'a str>,
    /// Constants of the axis values.
    pub constants: &'a BTreeMap<String, f64>,
    /// Metrics evaluated so far.
    pub metrics: &'a BTreeMap<String, f64>,
    /// Values of the same metrics at the base of this metric.
    pub base: &'a BTreeMap<String, f64>,
}

/// A function of one number with its name.
type Plain = (&'static str, fn(f64) -> f64);

/// Functions of one number.
const PLAIN: [Plain; 7] = [
    ("abs", math::abs),
    ("ceil", math::ceil),
    ("exp", math::exp),
    ("floor", math::floor),
    ("ln", math::ln),
    ("log2", math::log2),
    ("sqrt", math::sqrt),
];

/// Functions from a value per flow to one number.
const AGGREGATES: [&str; 6] = ["count", "jain", "max", "mean", "min", "sum"];

/// Functions from a curve per flow to a number per flow, with the number of further arguments.
const OF_CURVES: [(&str, usize); 8] = [
    ("at", 1),
    ("last", 0),
    ("peak", 2),
    ("low", 2),
    ("average", 2),
    ("deviation", 2),
    ("reach", 1),
    ("variation", 3),
];

/// Functions from one series or two to one number; the curves of all flows of a series are added. With the name stand the number
/// of series and that of further arguments.
const OF_SUMS: [(&str, usize, usize); 2] = [("settle", 2, 4), ("regain", 1, 3)];

/// Checks an expression and returns the shape of its value.
///
/// # Errors
/// If a name does not exist or a function does not take its arguments; the error lists what is accepted.
pub fn shape(e: &Expr, names: &Names) -> Result<Shape, ExprError> {
    match e {
        Expr::Number(_) => Ok(Shape::Scalar),
        Expr::Name(name) => check_name(name, names),
        Expr::Negate(e) => number(shape(e, names)?, "-"),
        Expr::Binary(op, a, b) => {
            let op = op.to_string();
            join(number(shape(a, names)?, &op)?, number(shape(b, names)?, &op)?)
        }
        Expr::Call(f, arguments) => {
            let shapes = arguments.iter().map(|a| shape(a, names)).collect::<Result<Vec<_>, _>>()?;
            check_call(f, &shapes)
        }
    }
}

fn join(a: Shape, b: Shape) -> Result<Shape, ExprError> {
    Ok(if a == Shape::Scalar { b } else { a })
}

fn number(s: Shape, place: &str) -> Result<Shape, ExprError> {
    if s == Shape::Curves {
        let functions = OF_CURVES.map(|(f, _)| format!("{f}(series.…)"));
        return Err(ExprError::or(format!("`{place}` takes numbers, not a series"), functions));
    }
    Ok(s)
}

fn known(what: &str, name: &str, all: &[String]) -> Result<(), ExprError> {
    if all.iter().any(|n| n == name) {
        return Ok(());
    }
    let none = if all.is_empty() { "; there are none" } else { "" };
    Err(ExprError::or(format!("unknown {what} `{name}`{none}"), all))
}

fn check_name(name: &Name, names: &Names) -> Result<Shape, ExprError> {
    let check_group = |g: &Option<String>| match g {
        Some(g) => known("group of flows", g, &names.groups),
        None => Ok(()),
    };
    match name {
        Name::Flow { group, quantity } => {
            check_group(group)?;
            known("quantity of flows", quantity, &names.flow).map(|()| Shape::PerFlow)
        }
        Name::Series { group, series } => {
            check_group(group)?;
            known("recorded series", series, &names.series).map(|()| Shape::Curves)
        }
        Name::Link { link, quantity } => {
            known("link", link, &names.links)?;
            known("quantity of links", quantity, &names.link).map(|()| Shape::Scalar)
        }
        Name::Run(q) => known("quantity of runs", q, &names.run).map(|()| Shape::Scalar),
        Name::Constant(c) => known("constant", c, &names.constants).map(|()| Shape::Scalar),
        Name::Metric(m) => known("earlier metric", m, &names.metrics).map(|()| Shape::Scalar),
        Name::Base(_) if !names.based => Err(ExprError::or(
            "`base` is the combination that `base` of this metric names, and there is none",
            ["base = { AXIS = \"VALUE\" }"],
        )),
        Name::Base(m) => known("earlier metric", m, &names.metrics).map(|()| Shape::Scalar),
    }
}

fn check_call(f: &str, arguments: &[Shape]) -> Result<Shape, ExprError> {
    let wrong = |takes: &str| Err(ExprError::new(format!("`{f}` takes {takes}")));
    if PLAIN.iter().any(|(name, _)| *name == f) {
        return if let [one] = arguments { number(*one, f) } else { wrong("one number") };
    }
    if let Some((_, more)) = OF_CURVES.iter().find(|(name, _)| *name == f) {
        let fits = arguments.len() == more + 1
            && arguments[0] == Shape::Curves
            && arguments[1..].iter().all(|s| *s == Shape::Scalar);
        return if fits { Ok(Shape::PerFlow) } else { wrong(&format!("a series{}", and_numbers(*more))) };
    }
    if let Some((_, curves, more)) = OF_SUMS.iter().find(|(name, ..)| *name == f) {
        let fits = arguments.len() == curves + more
            && arguments[..*curves].iter().all(|s| *s == Shape::Curves)
            && arguments[*curves..].iter().all(|s| *s == Shape::Scalar);
        let series = if *curves == 1 { "a series" } else { "two series" };
        let takes = || format!("{series}{}", and_numbers(*more));
        return if fits { Ok(Shape::Scalar) } else { wrong(&takes()) };
    }
    if let Some(form) = Form::named(f) {
        if arguments.len() != form.arguments.len() {
            return wrong(&format!("({}): {}", form.arguments.join(", "), form.description));
        }
        return arguments.iter().try_fold(Shape::Scalar, |so_far, s| join(so_far, number(*s, f)?));
    }
    match (f, arguments) {
        ("percentile", [Shape::PerFlow, Shape::Scalar]) => Ok(Shape::Scalar),
        ("percentile", _) => wrong("a value per flow and a number from 0 to 100"),
        ("min" | "max", [a, b]) => join(number(*a, f)?, number(*b, f)?),
        (f, [Shape::PerFlow]) if AGGREGATES.contains(&f) => Ok(Shape::Scalar),
        ("min" | "max", _) => wrong("a value per flow, or two numbers"),
        (f, _) if AGGREGATES.contains(&f) => wrong("a value per flow"),
        _ => {
            let all =
                PLAIN.iter().map(|(n, _)| *n).chain(AGGREGATES).chain(OF_CURVES.iter().map(|(n, _)| *n));
            let all = all.chain(OF_SUMS.iter().map(|(n, ..)| *n)).chain(FORMS.iter().map(|form| form.name));
            let mut all: Vec<_> = all.chain(["percentile"]).collect();
            all.sort_unstable();
            Err(ExprError::or(format!("unknown function `{f}`"), all))
        }
    }
}

/// The further arguments of a function, for a message.
fn and_numbers(n: usize) -> String {
    match n {
        0 => String::new(),
        1 => " and a number".to_owned(),
        n => format!(" and {n} numbers"),
    }
}

/// The value of an expression; a value per flow has one entry for each flow concerned.
///
/// Names that the cell did not measure are NaN, which makes a claim not evaluable.
#[must_use]
pub fn evaluate(e: &Expr, vars: &Vars<'_>) -> Vec<f64> {
    match e {
        Expr::Number(x) => vec![*x],
        Expr::Name(name) => value_of(name, vars),
        Expr::Negate(e) => evaluate(e, vars).into_iter().map(|x| -x).collect(),
        Expr::Binary(op, a, b) => {
            let f: fn(f64, f64) -> f64 = match op {
                '+' => |a, b| a + b,
                '-' => |a, b| a - b,
                '*' => |a, b| a * b,
                '/' => |a, b| a / b,
                _ => math::pow,
            };
            zip(&evaluate(a, vars), &evaluate(b, vars), f)
        }
        Expr::Call(f, arguments) => call(f, arguments, vars),
    }
}

/// Elementwise; a single number pairs with all.
fn zip(a: &[f64], b: &[f64], f: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    match (a, b) {
        ([a], b) => b.iter().map(|b| f(*a, *b)).collect(),
        (a, [b]) => a.iter().map(|a| f(*a, *b)).collect(),
        (a, b) if a.len() == b.len() => a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect(),
        // Groups of different sizes: no flow of one belongs to a flow of the other.
        _ => vec![f64::NAN],
    }
}

fn value_of(name: &Name, vars: &Vars<'_>) -> Vec<f64> {
    let o = vars.observed;
    let one = |x: Option<f64>| vec![x.unwrap_or(f64::NAN)];
    match name {
        Name::Flow { group, quantity } => {
            let group = group.as_deref().or(vars.group);
            let Some(column) = o.flows.columns.get(quantity) else { return vec![f64::NAN] };
            let wanted = |g: &String| group.is_none_or(|wanted| g == wanted);
            let rows = column.iter().zip(&o.flows.group).filter(|(_, g)| wanted(g));
            rows.map(|(x, _)| x.0).collect()
        }
        Name::Link { link, quantity } => one(o.links.get(link).and_then(|l| l.get(quantity)).map(|n| n.0)),
        Name::Run(q) => one(o.run.get(q).map(|n| n.0)),
        Name::Constant(c) => one(vars.constants.get(c).copied()),
        Name::Metric(m) => one(vars.metrics.get(m).copied()),
        Name::Base(m) => one(vars.base.get(m).copied()),
        Name::Series { .. } => vec![f64::NAN],
    }
}

fn call(f: &str, arguments: &[Expr], vars: &Vars<'_>) -> Vec<f64> {
    if let Some((_, curves, _)) = OF_SUMS.iter().find(|(name, ..)| *name == f) {
        return vec![of_sums(f, &arguments[..*curves], &arguments[*curves..], vars)];
    }
    if let [Expr::Name(Name::Series { group, series }), more @ ..] = arguments {
        let group = group.as_deref().or(vars.group);
        let more: Vec<f64> = more.iter().map(|e| evaluate(e, vars)[0]).collect();
        return vars.observed.curves(series, group).map(|c| of_curve(f, c, &more)).collect();
    }
    if let Some(form) = Form::named(f) {
        return closed_form(form, &arguments.iter().map(|e| evaluate(e, vars)).collect::<Vec<_>>());
    }
    let mut values = arguments.iter().map(|e| evaluate(e, vars));
    let Some(first) = values.next() else { return vec![f64::NAN] };
    let second = values.next();
    if let Some((_, plain)) = PLAIN.iter().find(|(name, _)| *name == f) {
        return first.into_iter().map(plain).collect();
    }
    match (f, second) {
        ("min" | "max", Some(b)) => zip(&first, &b, |x, y| aggregate(f, &[x, y])),
        ("percentile", Some(q)) => vec![stats::quantile(&first, q[0] / 100.0)],
        _ => vec![aggregate(f, &first)],
    }
}

fn of_sums(f: &str, curves: &[Expr], more: &[Expr], vars: &Vars<'_>) -> f64 {
    let mut named: Vec<Vec<&Sampled>> = Vec::new();
    for e in curves {
        let Expr::Name(Name::Series { group, series }) = e else { return f64::NAN };
        named.push(vars.observed.curves(series, group.as_deref().or(vars.group)).collect());
    }
    let more: Vec<f64> = more.iter().map(|e| evaluate(e, vars)[0]).collect();
    match (f, &named[..], &more[..]) {
        ("settle", [part, whole], &[from, window, low, high]) => {
            settle(part, whole, [from, window, low, high])
        }
        ("regain", [curves], &[from, window, level]) => regain(curves, [from, window, level]),
        _ => f64::NAN,
    }
}

/// A closed form per flow, or of numbers; NaN outside its domain and where flows cannot be paired.
fn closed_form(form: &Form, arguments: &[Vec<f64>]) -> Vec<f64> {
    let flows = arguments.iter().map(Vec::len).find(|n| *n != 1).unwrap_or(1);
    if arguments.iter().any(|a| a.len() != 1 && a.len() != flows) {
        return vec![f64::NAN];
    }
    let of = |i: usize| {
        let row: Vec<f64> = arguments.iter().map(|a| if a.len() == 1 { a[0] } else { a[i] }).collect();
        form.value(&row).unwrap_or(f64::NAN)
    };
    (0..flows).map(of).collect()
}

/// Aggregates a value per flow into one number; without flows NaN, except for `count` and `sum`.
pub(crate) fn aggregate(f: &str, values: &[f64]) -> f64 {
    let fold = |f: fn(f64, f64) -> f64| values.iter().copied().reduce(f).unwrap_or(f64::NAN);
    // `f64::min` would silently drop a NaN.
    if values.iter().any(|x| x.is_nan()) && f != "count" {
        return f64::NAN;
    }
    match f {
        "count" => values.len() as f64,
        "jain" => stats::jain(values),
        "max" => fold(f64::max),
        "mean" => stats::mean(values),
        "min" => fold(f64::min),
        "sum" => values.iter().sum(),
        _ => f64::NAN,
    }
}

fn of_curve(f: &str, c: &Sampled, more: &[f64]) -> f64 {
    let span = || c.within(more[0], more[1]).map(|(_, v)| v);
    match f {
        "at" => c.at(more[0]),
        "average" => stats::mean(&span().collect::<Vec<_>>()),
        "deviation" => {
            let values: Vec<f64> = span().collect();
            let mean = stats::mean(&values);
            math::sqrt(stats::mean(&values.iter().map(|v| (v - mean) * (v - mean)).collect::<Vec<_>>()))
        }
        "last" => c.value.last().map_or(f64::NAN, |v| v.0),
        "low" => span().reduce(f64::min).unwrap_or(f64::NAN),
        "peak" => span().reduce(f64::max).unwrap_or(f64::NAN),
        "reach" => c.reach(more[0]),
        "variation" => variation(c, more[0], more[1], more[2]),
        _ => f64::NAN,
    }
}

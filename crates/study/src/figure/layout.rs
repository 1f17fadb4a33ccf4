//! Layout of plots: categories with long names are listed at the side, long titles take two lines, and text over
//! curves stays legible.

use crate::model::{RefPoint, Rule, RuleAxis};
use serde_json::{Value, json};

/// Letters are about 7 pixels wide.
const LETTER: usize = 7;

/// Labels of categories longer than this would be cut below the plot.
const LONG: usize = 24;

/// Pixels from one category to the next, down the side.
pub(super) const STEP: usize = 22;

/// Placement of the category names.
pub(super) enum Names {
    /// Level, below the plot.
    Level,
    /// Slanted, below the plot.
    Slanted,
    /// At the side, for many long names: the axes are exchanged.
    Beside,
}

pub(super) fn names<'a>(labels: impl Iterator<Item = &'a str>, points: bool, width: usize) -> Names {
    let mut all: Vec<&str> = labels.collect();
    all.sort_unstable();
    all.dedup();
    let longest = all.iter().map(|l| l.chars().count()).max().unwrap_or(0);
    match longest * LETTER * all.len() > width {
        // Lines along categories would be drawn in the order of the values: only names of points go to the side.
        true if points && longest > LONG => Names::Beside,
        true => Names::Slanted,
        false => Names::Level,
    }
}

/// The title of an axis, in two lines if it is longer than the axis.
pub(super) fn title(text: &str, length: usize) -> Value {
    if text.chars().count() * LETTER <= length {
        return json!(text);
    }
    let middle = text.len() / 2;
    let space = text.match_indices(' ').min_by_key(|(at, _)| at.abs_diff(middle));
    match space {
        Some((at, _)) => json!([&text[..at], &text[at + 1..]]),
        None => json!(text),
    }
}

/// Exchanges the axes of a layer.
pub(super) fn turn(layer: &mut Value) {
    let Some(encoding) = layer["encoding"].as_object_mut() else { return };
    for (a, b) in [("x", "y"), ("x2", "y2")] {
        let (of_a, of_b) = (encoding.remove(a), encoding.remove(b));
        encoding.extend(of_b.map(|v| (a.to_owned(), v)));
        encoding.extend(of_a.map(|v| (b.to_owned(), v)));
    }
}

/// Text with a white outline, legible over curves.
pub(super) fn words(data: &Value, mark: &Value, encoding: &Value) -> [Value; 2] {
    let mut edge = mark.clone();
    edge["stroke"] = json!("white");
    edge["strokeWidth"] = json!(4);
    edge["strokeJoin"] = json!("round");
    [&edge, mark].map(|mark| json!({ "data": data, "mark": mark, "encoding": encoding }))
}

/// A data set of one row, to draw an element once that does not depend on data.
pub(super) fn once() -> Value {
    json!({ "values": [{}] })
}

/// A position that is a number instead of a field; scale, title and ticks stay, so that layers agree on them.
pub(super) fn at(channel: &Value, value: f64) -> Value {
    let mut channel = channel.clone();
    if let Some(map) = channel.as_object_mut() {
        map.remove("field");
        map.insert("datum".into(), json!(value));
    }
    channel
}

/// A line with its label; `turned` exchanges the axes. The labels of several vertical lines are stacked.
pub(super) fn rule(i: usize, r: &Rule, x: &Value, y: &Value, turned: bool) -> Vec<Value> {
    let place = match r.axis {
        RuleAxis::X => json!({ "x": at(x, r.value) }),
        RuleAxis::Y => json!({ "y": at(y, r.value) }),
    };
    let upright = (r.axis == RuleAxis::X) != turned;
    let mut mark = if upright {
        json!({ "align": "left", "dx": 4, "y": 8 + 14 * i })
    } else {
        json!({ "align": "right", "baseline": "bottom", "dy": -3, "x": "width" })
    };
    mark["type"] = json!("text");
    mark["color"] = json!("#444444");
    let mut encoding = place.clone();
    encoding["text"] = json!({ "value": r.label });
    let line = json!({
        "data": once(),
        "mark": { "type": "rule", "strokeDash": [5, 4], "color": "#444444" },
        "encoding": place,
    });
    std::iter::once(line).chain(words(&once(), &mark, &encoding)).collect()
}

/// Single points with their labels.
pub(super) fn points(points: &[RefPoint], x: &Value, y: &Value) -> Vec<Value> {
    if points.is_empty() {
        return Vec::new();
    }
    let values: Vec<Value> = points.iter().map(|p| json!({ "x": p.x, "y": p.y, "label": p.label })).collect();
    let data = json!({ "values": values });
    let position = json!({
        "x": x,
        "y": y,
        "tooltip": [{ "field": "label", "title": "Printed" }, { "field": "y", "type": "quantitative" }],
    });
    let mut encoding = position.clone();
    encoding["text"] = json!({ "field": "label" });
    let cross = json!({
        "data": data,
        "mark": {
            "type": "point", "shape": "cross", "angle": 45, "size": 110, "filled": true, "color": "black",
        },
        "encoding": position,
    });
    let mark = json!({ "type": "text", "align": "right", "dx": -9, "dy": -9, "color": "black" });
    std::iter::once(cross).chain(words(&data, &mark, &encoding)).collect()
}

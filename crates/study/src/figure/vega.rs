//! The Vega-Lite specification.

use super::Row;
use crate::model::{Band, Figure, Mark, RuleAxis, Scale};
use serde_json::{Map, Value, json};

/// Okabe and Ito's palette, which readers with any colour vision tell apart; yellow last, it is pale on white.
const PALETTE: [&str; 8] =
    ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442"];

/// Shapes of the same series, so that colour is never the only difference.
const SHAPES: [&str; 8] = [
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-left",
    "triangle-right",
];

/// Dashes of the readings: the default is solid.
const DASHES: [&[u32]; 6] = [&[], &[6, 3], &[2, 3], &[8, 3, 2, 3], &[12, 4], &[1, 2]];

pub(super) struct Spec<'a> {
    pub(super) figure: &'a Figure,
    pub(super) title: &'a str,
    pub(super) x_title: &'a str,
    pub(super) y_title: &'a str,
    pub(super) legend: Option<&'a str>,
    pub(super) scale: Scale,
    pub(super) domain: &'a [String],
    pub(super) readings: &'a [String],
    pub(super) rows: &'a [Row],
}

impl Spec<'_> {
    pub(super) fn build(&self) -> Value {
        let zero = self.place_of_zero();
        let mut layers = Vec::new();
        if let (Scale::Log, Some(zero)) = (self.scale, zero) {
            // The break between zero and the logarithmic part.
            let datum = zero * 3.2;
            layers.push(json!({
                "mark": { "type": "rule", "strokeDash": [1, 4], "color": "#999999", "tooltip": null },
                "encoding": { "x": { "datum": datum } },
            }));
        }
        layers.extend(self.band());
        layers.extend(self.lines());
        layers.extend(self.figure.rule.iter().flat_map(rule));
        layers.extend(self.reference_points());
        json!({
            "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
            "title": { "text": self.title, "anchor": "start", "fontSize": 14 },
            "width": 560,
            "height": 320,
            "background": "white",
            "data": { "values": self.values(zero) },
            "encoding": { "x": self.x(zero), "y": self.y() },
            "layer": layers,
            "config": config(),
        })
    }

    /// Where zero goes on a logarithmic axis: a decade left of the smallest positive value.
    fn place_of_zero(&self) -> Option<f64> {
        if self.scale != Scale::Log || !self.rows.iter().any(|r| r.x == Some(0.0)) {
            return None;
        }
        let positive = self.rows.iter().filter_map(|r| r.x).filter(|x| *x > 0.0);
        positive.reduce(f64::min).map(|least| decade(least) / 10.0)
    }

    fn values(&self, zero: Option<f64>) -> Vec<Value> {
        let row = |r: &Row| {
            let mut v = serde_json::to_value(r).expect("numbers and strings are JSON");
            if let (Some(zero), Some(0.0)) = (zero, r.x) {
                v["x"] = json!(zero);
                // Zero is not joined to the rest: nothing is known about what lies between.
                v["part"] = json!("zero");
            }
            v
        };
        self.rows.iter().map(row).collect()
    }

    fn x(&self, zero: Option<f64>) -> Value {
        if self.scale == Scale::Category {
            return json!({
                "field": "at", "type": "ordinal", "sort": null, "title": self.x_title,
                "axis": { "labelAngle": 0 },
            });
        }
        let mut x = json!({ "field": "x", "type": "quantitative", "title": self.x_title });
        let mut scale = Map::new();
        if let Some(range) = self.figure.x_range {
            scale.insert("domain".into(), json!(range));
            scale.insert("nice".into(), json!(false));
        }
        if self.scale == Scale::Log {
            scale.insert("type".into(), json!("log"));
            let xs: Vec<f64> = self.rows.iter().filter_map(|r| r.x).filter(|x| *x > 0.0).collect();
            let (least, most) = (xs.iter().copied().reduce(f64::min), xs.iter().copied().reduce(f64::max));
            if let (Some(least), Some(most)) = (least, most) {
                let from = zero.map_or(least / 1.3, |z| z / 1.6);
                if self.figure.x_range.is_none() {
                    scale.insert("domain".into(), json!([from, most * 1.3]));
                    scale.insert("nice".into(), json!(false));
                }
                x["axis"] = decades(zero, least, most);
            }
        } else if self.figure.time.is_some() || self.figure.x_range.is_some() {
            scale.insert("zero".into(), json!(false));
        }
        x["scale"] = Value::Object(scale);
        x
    }

    fn y(&self) -> Value {
        let mut scale = Map::new();
        if self.figure.y_scale == Scale::Log {
            scale.insert("type".into(), json!("log"));
        }
        if let Some(range) = self.figure.y_range {
            scale.insert("domain".into(), json!(range));
            scale.insert("nice".into(), json!(false));
        }
        json!({ "field": "y", "type": "quantitative", "title": self.y_title, "scale": scale })
    }

    fn color(&self) -> Value {
        let range: Vec<&str> = PALETTE.iter().copied().cycle().take(self.domain.len()).collect();
        json!({
            "field": "series", "type": "nominal", "title": self.legend,
            "scale": { "domain": self.domain, "range": range },
            "legend": if self.domain.len() > 1 { json!({}) } else { Value::Null },
        })
    }

    fn shape(&self) -> Value {
        let range: Vec<&str> = SHAPES.iter().copied().cycle().take(self.domain.len()).collect();
        json!({
            "field": "series", "type": "nominal", "title": self.legend,
            "scale": { "domain": self.domain, "range": range },
            "legend": if self.domain.len() > 1 { json!({}) } else { Value::Null },
        })
    }

    fn dash(&self) -> Option<Value> {
        let drawn = |r: &&String| self.rows.iter().any(|row| row.reading == **r);
        let domain: Vec<&String> = self.readings.iter().filter(drawn).collect();
        if domain.len() < 2 {
            return None;
        }
        let range: Vec<&[u32]> = DASHES.iter().copied().cycle().take(domain.len()).collect();
        Some(json!({
            "field": "reading", "type": "nominal", "title": "Reading",
            "scale": { "domain": domain, "range": range },
            "legend": { "symbolType": "stroke" },
        }))
    }

    fn detail(&self) -> Value {
        let mut fields = vec![json!({ "field": "part" }), json!({ "field": "reading" })];
        if self.figure.time.is_some() {
            fields.push(json!({ "field": "flow" }));
        }
        Value::Array(fields)
    }

    fn band(&self) -> Vec<Value> {
        let has = self.rows.iter().any(|r| r.low.zip(r.high).is_some_and(|(l, h)| h > l));
        if self.figure.band == Band::None || !has {
            return Vec::new();
        }
        let (low, high) = (json!({ "field": "low", "type": "quantitative" }), json!({ "field": "high" }));
        let bars = json!({
            "mark": { "type": "rule", "strokeWidth": 1.5 },
            "encoding": { "y": low, "y2": high, "color": self.color(), "detail": self.detail() },
        });
        let area = json!({
            "mark": { "type": "area", "opacity": 0.15 },
            "encoding": { "y": low, "y2": high, "color": self.color(), "detail": self.detail() },
        });
        // Single points (zero on a logarithmic axis) have no area, so bars are drawn in any case.
        let lines = self.scale != Scale::Category && self.figure.mark != Mark::Point;
        if lines { vec![area, bars] } else { vec![bars] }
    }

    fn lines(&self) -> Vec<Value> {
        let mut line = Map::new();
        line.insert("color".into(), self.color());
        line.insert("detail".into(), self.detail());
        line.insert("tooltip".into(), self.tooltip());
        if let Some(dash) = self.dash() {
            line.insert("strokeDash".into(), dash);
        }
        let mut point = line.clone();
        point.remove("strokeDash");
        point.insert("shape".into(), self.shape());
        let each_flow = self.figure.time.as_ref().is_some_and(|t| t.each_flow);
        let (width, opacity) = if each_flow { (1.0, 0.6) } else { (2.0, 1.0) };
        let mut mark = json!({ "type": "line", "strokeWidth": width, "opacity": opacity });
        if self.figure.mark == Mark::Step {
            mark["interpolate"] = json!("step-after");
        }
        let line = json!({ "mark": mark, "encoding": line });
        let point = json!({ "mark": { "type": "point", "filled": true, "size": 55, "opacity": 1 }, "encoding": point });
        match (self.figure.mark, self.figure.time.is_some()) {
            (Mark::Point, _) => vec![point],
            (Mark::LinePoint, false) => vec![line, point],
            (Mark::Line | Mark::LinePoint | Mark::Step, _) => vec![line],
        }
    }

    fn tooltip(&self) -> Value {
        let mut fields = vec![json!({ "field": "series", "title": self.legend.unwrap_or("Series") })];
        if self.figure.time.is_some() {
            fields.push(
                json!({ "field": "x", "type": "quantitative", "title": self.x_title, "format": ".4~g" }),
            );
            fields.push(json!({ "field": "flow", "title": "Flow" }));
        } else {
            fields.push(json!({ "field": "at", "title": self.x_title }));
        }
        fields.push(json!({ "field": "y", "type": "quantitative", "title": self.y_title, "format": ".5~g" }));
        if self.figure.band != Band::None && self.figure.time.is_none() {
            fields.push(json!({ "field": "low", "type": "quantitative", "title": "from", "format": ".5~g" }));
            fields.push(json!({ "field": "high", "type": "quantitative", "title": "to", "format": ".5~g" }));
        }
        if self.figure.readings {
            fields.push(json!({ "field": "reading", "title": "Reading" }));
        }
        Value::Array(fields)
    }

    fn reference_points(&self) -> Vec<Value> {
        if self.figure.point.is_empty() {
            return Vec::new();
        }
        let values: Vec<Value> =
            self.figure.point.iter().map(|p| json!({ "x": p.x, "y": p.y, "label": p.label })).collect();
        let position = json!({
            "x": { "field": "x", "type": "quantitative" },
            "y": { "field": "y", "type": "quantitative" },
            "tooltip": [{ "field": "label", "title": "Printed" }, { "field": "y", "type": "quantitative" }],
        });
        let mut words = position.clone();
        words["text"] = json!({ "field": "label" });
        vec![
            json!({
                "data": { "values": values },
                "mark": { "type": "point", "shape": "cross", "angle": 45, "size": 110, "filled": true, "color": "black" },
                "encoding": position,
            }),
            json!({
                "data": { "values": values },
                "mark": { "type": "text", "align": "right", "dx": -9, "dy": -7, "color": "black" },
                "encoding": words,
            }),
        ]
    }
}

fn rule(r: &crate::model::Rule) -> Vec<Value> {
    let (axis, align) = match r.axis {
        RuleAxis::X => ("x", json!({ "align": "left", "dx": 4, "y": 8 })),
        RuleAxis::Y => ("y", json!({ "align": "right", "dy": -5, "x": "width" })),
    };
    let mut text = align;
    text["type"] = json!("text");
    text["color"] = json!("#444444");
    let place = json!({ axis: { "datum": r.value } });
    let mut words = place.clone();
    words["text"] = json!({ "value": r.label });
    // An empty data set of one row: the mark is drawn once, not once per point.
    let once = json!({ "values": [{}] });
    vec![
        json!({
            "data": once,
            "mark": { "type": "rule", "strokeDash": [5, 4], "color": "#444444" },
            "encoding": place,
        }),
        json!({ "data": once, "mark": text, "encoding": words }),
    ]
}

/// The power of ten at or below x > 0.
fn decade(x: f64) -> f64 {
    power(exponent(x))
}

fn exponent(x: f64) -> i32 {
    // The text of a number knows its exponent exactly; logarithms of powers of ten may fall short.
    format!("{x:e}").split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0)
}

fn power(e: i32) -> f64 {
    format!("1e{e}").parse().unwrap_or(f64::NAN)
}

/// Labelled decades as powers of ten, and zero at its place.
fn decades(zero: Option<f64>, least: f64, most: f64) -> Value {
    let powers: Vec<i32> = (exponent(least)..=exponent(most)).collect();
    let values: Vec<f64> = zero.into_iter().chain(powers.iter().map(|e| power(*e))).collect();
    let label = |value: f64, text: &str| format!("abs(datum.value / {value:e} - 1) < 1e-6 ? '{text}' : ");
    let mut expression: String = zero.map_or_else(String::new, |z| label(z, "0"));
    for e in powers {
        let text =
            if (0..4).contains(&e) { format!("{}", power(e)) } else { format!("10{}", superscript(e)) };
        expression += &label(power(e), &text);
    }
    json!({ "values": values, "labelExpr": expression + "datum.label", "grid": true })
}

fn superscript(e: i32) -> String {
    let digit = |c: char| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        c => c.to_digit(10).and_then(|d| char::from_u32(0x2070 + d)).unwrap_or(c),
    };
    e.to_string().chars().map(digit).collect()
}

fn config() -> Value {
    let font = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif";
    json!({
        "font": font,
        "axis": {
            "labelFontSize": 12, "titleFontSize": 13, "titleFontWeight": "normal", "titlePadding": 10,
            "gridColor": "#e6e6e6", "domainColor": "#888888", "tickColor": "#888888",
            "labelColor": "#222222", "titleColor": "#222222",
        },
        "legend": { "labelFontSize": 12, "titleFontSize": 12, "labelLimit": 320, "symbolSize": 90 },
        "view": { "stroke": null },
    })
}

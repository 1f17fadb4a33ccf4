//! The Vega-Lite specification.

use super::Row;
use super::layout::{self, Names, at, once};
use super::spans::Span;
use crate::model::{Band, Figure, Mark, Scale};
use serde_json::{Map, Value, json};

/// Okabe and Ito's palette, distinguishable with any colour vision; a dark wine (of Paul Tol's) replaces its yellow,
/// which is pale on white.
pub const PALETTE: [&str; 8] =
    ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#882255"];

/// Shapes of the series, so that they never differ by colour alone.
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

/// The version of Vega-Lite of all specifications: that of the library on the pages of reports.
pub(super) const SCHEMA: &str = "https://vega.github.io/schema/vega-lite/v6.json";

/// Width of the plot in pixels.
pub(super) const WIDTH: usize = 560;

/// Height of the plot in pixels.
const HEIGHT: usize = 320;

/// Height of a lane of marks above the plot, in pixels.
const LANE: usize = 7;

/// Half a decade on a logarithmic axis, as a factor.
const SQRT_10: f64 = 3.162_277_660_168_379_5;

/// Dashes of the readings or, in a figure of the default reading alone, of the curves: the first is solid.
const DASHES: [&[u32]; 6] = [&[], &[6, 3], &[2, 3], &[8, 3, 2, 3], &[12, 4], &[1, 2]];

/// A figure with all that its specification needs.
pub(super) struct Spec<'a> {
    pub(super) figure: &'a Figure,
    pub(super) title: &'a str,
    pub(super) x_title: &'a str,
    pub(super) y_title: &'a str,
    /// Title of the legend.
    pub(super) legend: Option<&'a str>,
    /// Title of the axis whose values are the points, where a metric lies along x.
    pub(super) points: Option<&'a str>,
    pub(super) scale: Scale,
    /// The series in the order of the legend.
    pub(super) domain: &'a [String],
    pub(super) readings: &'a [String],
    pub(super) rows: &'a [Row],
    pub(super) spans: &'a [Span],
}

impl Spec<'_> {
    pub(super) fn build(&self) -> Value {
        let zero = self.place_of_zero();
        let (x, y) = (self.x(zero), self.y());
        let mut layers = Vec::new();
        if let Some(zero) = zero {
            // The break between zero and the logarithmic part.
            layers.push(json!({
                "data": once(),
                "mark": { "type": "rule", "strokeDash": [2, 4], "color": "#999999" },
                "encoding": { "x": at(&x, zero * SQRT_10) },
            }));
        }
        for mut layer in self.ellipses().into_iter().chain(self.band()).chain(self.lines()) {
            if layer["encoding"].get("x").is_none() {
                layer["encoding"]["x"] = x.clone();
            }
            if layer["encoding"].get("y").is_none() {
                layer["encoding"]["y"] = y.clone();
            }
            layers.push(layer);
        }
        layers.extend(self.marked(&x));
        let beside = matches!(self.names(), Some(Names::Beside));
        let rules = self.figure.rule.iter().enumerate();
        layers.extend(rules.flat_map(|(i, r)| layout::rule(i, r, &x, &y, beside)));
        layers.extend(layout::points(&self.figure.point, &x, &y));
        if beside {
            layers.iter_mut().for_each(layout::turn);
        }
        json!({
            "$schema": SCHEMA,
            "title": { "text": self.title, "anchor": "start", "fontSize": 14 },
            "width": if beside { WIDTH * 3 / 4 } else { WIDTH },
            "height": if beside { json!({ "step": layout::STEP }) } else { json!(HEIGHT) },
            "background": "white",
            "data": { "values": self.values(zero) },
            "layer": layers,
            "config": config(),
        })
    }

    /// Where zero is drawn on a logarithmic axis, if zero is among the values: one decade below the power of ten at or below
    /// the least positive value.
    fn place_of_zero(&self) -> Option<f64> {
        if self.scale != Scale::Log || !self.rows.iter().any(|r| r.x == Some(0.0)) {
            return None;
        }
        let positive = self.rows.iter().filter_map(|r| r.x).filter(|x| *x > 0.0);
        positive.reduce(f64::min).map(|least| decade(least) / 10.0)
    }

    fn values(&self, zero: Option<f64>) -> Vec<Value> {
        let row = |(i, r): (usize, &Row)| {
            let mut v = serde_json::to_value(r).expect("numbers and strings are JSON");
            v["curve"] = json!(self.curve(r));
            if self.points.is_some() {
                // Lines join the points in the order of the axis, not from left to right.
                v["step"] = json!(i);
            }
            if let (Some(zero), Some(0.0)) = (zero, r.x) {
                v["x"] = json!(zero);
                // Zero is no part of the line: nothing is known about what lies between.
                v["part"] = json!("zero");
            }
            v
        };
        self.rows.iter().enumerate().map(row).collect()
    }

    /// How the values are marked. Values of categories are not joined by lines unless the figure asks for lines.
    fn mark(&self) -> Mark {
        match self.figure.mark {
            Mark::LinePoint if self.scale == Scale::Category => Mark::Point,
            mark => mark,
        }
    }

    /// Placement of the category names, if the axis has any.
    fn names(&self) -> Option<Names> {
        let labels = self.rows.iter().map(|r| r.at.as_str());
        let points = self.mark() == Mark::Point;
        (self.scale == Scale::Category).then(|| layout::names(labels, points, WIDTH))
    }

    fn x(&self, zero: Option<f64>) -> Value {
        if self.scale == Scale::Category {
            let angle = if matches!(self.names(), Some(Names::Slanted)) { -35 } else { 0 };
            return json!({
                "field": "at", "type": "ordinal", "sort": null, "title": self.x_title,
                "axis": { "labelAngle": angle, "labelLimit": 420 },
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
            scale.insert("nice".into(), json!(false));
        } else {
            // If all values are equal, Vega would label them with far too many digits.
            let mut xs = self.rows.iter().filter_map(|r| r.x);
            if let Some(only) = xs.next().filter(|only| xs.all(|x| x == *only)) {
                x["axis"] = json!({ "values": [only], "format": ".5~g" });
            }
        }
        if self.figure.x_reverse {
            scale.insert("reverse".into(), json!(true));
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
        let title = match self.names() {
            Some(Names::Beside) => json!(self.y_title),
            _ => layout::title(self.y_title, HEIGHT),
        };
        json!({ "field": "y", "type": "quantitative", "title": title, "scale": scale })
    }

    /// The name of a row in the legend.
    fn curve(&self, row: &Row) -> String {
        match (self.is_default(row), row.series.is_empty()) {
            (true, _) => row.series.clone(),
            (false, true) => row.reading.clone(),
            (false, false) => format!("{}: {}", row.series, row.reading),
        }
    }

    /// Whether a row belongs to the default reading.
    fn is_default(&self, row: &Row) -> bool {
        self.readings.first() == Some(&row.reading)
    }

    /// All curves in the order of the legend: the default reading first.
    fn curves(&self) -> Vec<String> {
        let mut all: Vec<String> = self.domain.to_vec();
        for row in self.rows {
            let curve = self.curve(row);
            if !all.contains(&curve) {
                all.push(curve);
            }
        }
        all
    }

    /// Colours or shapes of the curves, from a list of eight. For every further eight curves the list is shifted by `shift`
    /// places: colours and shapes have different shifts, so that no two curves have the same colour and shape.
    fn channel(&self, list: [&str; 8], shift: usize) -> Value {
        let domain = self.curves();
        let range: Vec<&str> = (0..domain.len()).map(|i| list[(i + shift * (i / 8)) % 8]).collect();
        let legend = json!({ "symbolOpacity": 1, "symbolStrokeWidth": 2 });
        json!({
            "field": "curve", "type": "nominal", "title": self.legend,
            "scale": { "domain": domain, "range": range },
            "legend": if domain.len() > 1 { legend } else { Value::Null },
        })
    }

    fn color(&self) -> Value {
        self.channel(PALETTE, 0)
    }

    fn shape(&self) -> Value {
        self.channel(SHAPES, 1)
    }

    /// Dashes mark the readings or, in a figure of the default reading alone, the curves: curves never differ by colour alone, and
    /// a line stays visible under a line that covers it.
    fn dash(&self) -> Option<Value> {
        if self.rows.iter().all(|r| self.is_default(r)) {
            let domain = self.curves();
            if domain.len() < 2 {
                return None;
            }
            let range: Vec<&[u32]> = DASHES.iter().copied().cycle().take(domain.len()).collect();
            if self.has_points() {
                // The shapes of the points are the legend. Another field keeps the dashes out of it: they would
                // break the outlines of the shapes.
                return Some(json!({
                    "field": "dash", "type": "nominal", "legend": null,
                    "scale": { "domain": domain, "range": range },
                }));
            }
            return Some(json!({
                "field": "curve", "type": "nominal", "title": self.legend,
                "scale": { "domain": domain, "range": range },
                "legend": { "symbolOpacity": 1, "symbolStrokeWidth": 2 },
            }));
        }
        let range: Vec<&[u32]> = DASHES.iter().copied().cycle().take(self.readings.len()).collect();
        Some(json!({
            "field": "reading", "type": "nominal", "legend": null,
            "scale": { "domain": self.readings, "range": range },
        }))
    }

    /// Whether the values of a curve are marked by points.
    fn has_points(&self) -> bool {
        matches!(self.mark(), Mark::LinePoint | Mark::Point) && self.figure.time.is_none()
    }

    /// The fields that separate lines of one curve.
    fn detail(&self) -> Value {
        let mut fields = vec![json!({ "field": "part" }), json!({ "field": "reading" })];
        if self.figure.time.is_some() {
            fields.push(json!({ "field": "flow" }));
        }
        Value::Array(fields)
    }

    /// Whether curves are clipped: they are if the figure sets the visible range.
    fn clip(&self) -> bool {
        self.figure.x_range.is_some() || self.figure.y_range.is_some()
    }

    /// The ellipses around the points: an area and its outline.
    fn ellipses(&self) -> Vec<Value> {
        let outlined = self.rows.iter().filter_map(|row| Some((row, row.outline.as_ref()?)));
        let corners = outlined.flat_map(|(row, outline)| {
            outline.iter().enumerate().map(|(corner, (x, y))| {
                json!({
                    "x": x, "y": y, "corner": corner, "curve": self.curve(row), "at": row.at, "reading": row.reading,
                })
            })
        });
        let corners: Vec<Value> = corners.collect();
        if corners.is_empty() {
            return Vec::new();
        }
        let mut detail = self.detail();
        if let Some(fields) = detail.as_array_mut() {
            fields.push(json!({ "field": "at" }));
        }
        let layer = |mark: Value| {
            json!({
                "data": { "values": corners }, "mark": mark,
                "encoding": {
                    "color": self.color(), "detail": detail, "order": { "field": "corner", "type": "quantitative" },
                },
            })
        };
        let closed = |filled: bool, opacity: f64| {
            json!({
                "type": "line", "interpolate": "linear-closed", "filled": filled, "opacity": opacity, "strokeWidth": 1.2,
                "clip": self.clip(),
            })
        };
        vec![layer(closed(true, 0.15)), layer(closed(false, 1.0))]
    }

    /// The intervals of the values: an area along lines, and bars.
    fn band(&self) -> Vec<Value> {
        let has_interval = self.rows.iter().any(|r| r.low.zip(r.high).is_some_and(|(l, h)| h > l));
        if self.figure.band == Band::None || !has_interval {
            return Vec::new();
        }
        let mut low = self.y();
        low["field"] = json!("low");
        let high = json!({ "field": "high" });
        let bars = json!({
            "mark": { "type": "rule", "strokeWidth": 1.5, "clip": self.clip() },
            "encoding": { "y": low, "y2": high, "color": self.color(), "detail": self.detail() },
        });
        let area = json!({
            "mark": { "type": "area", "opacity": 0.15, "clip": self.clip() },
            "encoding": { "y": low, "y2": high, "color": self.color(), "detail": self.detail() },
        });
        if self.points.is_some() {
            return vec![bars, self.bars_across()];
        }
        // Single points (zero on a logarithmic axis) have no area, so bars are drawn in any case.
        let lines = self.scale != Scale::Category && self.mark() != Mark::Point;
        if lines { vec![area, bars] } else { vec![bars] }
    }

    /// The intervals of a metric along x.
    fn bars_across(&self) -> Value {
        let mut left = self.x(self.place_of_zero());
        left["field"] = json!("left");
        json!({
            "mark": { "type": "rule", "strokeWidth": 1.5, "clip": self.clip() },
            "encoding": { "x": left, "x2": { "field": "right" }, "color": self.color(), "detail": self.detail() },
        })
    }

    /// The size of the points, where a metric lies along x: it grows from one value of the axis to the next.
    fn size(&self) -> Value {
        let mut labels: Vec<&str> = Vec::new();
        for row in self.rows {
            if !labels.contains(&row.at.as_str()) {
                labels.push(&row.at);
            }
        }
        let sizes: Vec<usize> = (0..labels.len()).map(|i| 35 + 60 * i).collect();
        json!({
            "field": "at", "type": "ordinal", "title": self.points,
            "scale": { "domain": labels, "range": sizes },
            "legend": if labels.len() > 1 { json!({ "symbolFillColor": "#666666" }) } else { Value::Null },
        })
    }

    /// The curves: lines, points or both.
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
        if self.points.is_some() {
            line.insert("order".into(), json!({ "field": "step", "type": "quantitative" }));
            // Where the axis of the points is that of the series too, colour and shape distinguish its values.
            if self.figure.series.is_none() || self.figure.series != self.figure.x {
                point.insert("size".into(), self.size());
            }
        }
        let each_flow = self.figure.time.as_ref().is_some_and(|t| t.each_flow);
        let (width, opacity) = if each_flow { (1.0, 0.6) } else { (2.0, 1.0) };
        let mut mark =
            json!({ "type": "line", "strokeWidth": width, "opacity": opacity, "clip": self.clip() });
        if self.figure.mark == Mark::Step {
            mark["interpolate"] = json!("step-after");
        }
        let uses_dash_field = line.get("strokeDash").is_some_and(|dash| dash["field"] == "dash");
        let mut line = json!({ "mark": mark, "encoding": line });
        if uses_dash_field {
            line["transform"] = json!([{ "calculate": "datum.curve", "as": "dash" }]);
        }
        // A point leaves its ellipse visible.
        let size = if self.figure.band == Band::Ellipse { 25 } else { 55 };
        let mut point = json!({ "mark": { "type": "point", "filled": true, "size": size, "opacity": 1 }, "encoding": point });
        if let Some([from, to]) = self.figure.y_range {
            // Points outside are filtered, not clipped, so that points on the edge are whole.
            point["transform"] = json!([{ "filter": { "field": "y", "range": [from, to] } }]);
        }
        if let (Some([from, to]), true) = (self.figure.x_range, self.scale != Scale::Category) {
            let within = json!({ "filter": { "field": "x", "range": [from, to] } });
            match point["transform"].as_array_mut() {
                Some(filters) => filters.push(within),
                None => point["transform"] = json!([within]),
            }
        }
        match (self.mark(), self.figure.time.is_some()) {
            (Mark::Point, _) => vec![point],
            (Mark::LinePoint, false) => vec![line, point],
            (Mark::Line | Mark::LinePoint | Mark::Step, _) => vec![line],
        }
    }

    /// The marked time spans, as bars above the plot, with a lane for each series.
    fn marked(&self, x: &Value) -> Vec<Value> {
        let Some(what) = self.figure.time.as_ref().and_then(|t| t.mark.as_ref()) else { return Vec::new() };
        // Without a sample between the ends of the figure there is no series, and so no lane.
        if self.spans.is_empty() || self.domain.is_empty() {
            return Vec::new();
        }
        let (mut from, to) = (x.clone(), json!({ "field": "to" }));
        from["field"] = json!("from");
        // The lanes are in the order of the legend, from the top.
        let count = self.domain.len();
        let lane = |place: usize| -(5.0 + (LANE * (count - 1 - place)) as f64);
        let mut layers: Vec<Value> = Vec::new();
        for (place, series) in self.domain.iter().enumerate() {
            let own = self.spans.iter().filter(|s| s.series == *series);
            let own: Vec<Value> =
                own.map(|s| json!({ "from": s.from, "to": s.to, "curve": s.series })).collect();
            layers.push(json!({
                "data": { "values": own },
                "mark": { "type": "rule", "strokeWidth": LANE - 2, "clip": false },
                "encoding": {
                    "x": from, "x2": to, "y": { "value": lane(place) }, "color": self.color(),
                    "tooltip": [
                        { "field": "curve", "title": self.legend.unwrap_or("Series") },
                        { "field": "from", "type": "quantitative", "title": "from (s)", "format": ".5~g" },
                        { "field": "to", "type": "quantitative", "title": "to (s)", "format": ".5~g" },
                    ],
                },
            }));
        }
        layers.push(json!({
            "data": once(),
            "mark": { "type": "text", "align": "right", "baseline": "middle", "color": "#222222" },
            "encoding": {
                "x": { "value": -8 },
                "y": { "value": (lane(0) + lane(count - 1)) / 2.0 },
                "text": { "value": what },
            },
        }));
        layers
    }

    fn tooltip(&self) -> Value {
        let mut fields = vec![json!({ "field": "series", "title": self.legend.unwrap_or("Series") })];
        if self.figure.time.is_some() {
            fields.push(
                json!({ "field": "x", "type": "quantitative", "title": self.x_title, "format": ".4~g" }),
            );
            fields.push(json!({ "field": "flow", "title": "Flow" }));
        } else {
            fields.push(json!({ "field": "at", "title": self.points.unwrap_or(self.x_title) }));
        }
        if self.points.is_some() {
            fields.push(
                json!({ "field": "x", "type": "quantitative", "title": self.x_title, "format": ".5~g" }),
            );
        }
        fields.push(json!({ "field": "y", "type": "quantitative", "title": self.y_title, "format": ".5~g" }));
        if matches!(self.figure.band, Band::Ci95 | Band::Range) && self.figure.time.is_none() {
            fields.push(json!({ "field": "low", "type": "quantitative", "title": "from", "format": ".5~g" }));
            fields.push(json!({ "field": "high", "type": "quantitative", "title": "to", "format": ".5~g" }));
        }
        if self.figure.readings {
            fields.push(json!({ "field": "reading", "title": "Reading" }));
        }
        Value::Array(fields)
    }
}

/// The power of ten at or below x > 0.
fn decade(x: f64) -> f64 {
    power(exponent(x))
}

/// The decimal exponent of x > 0.
fn exponent(x: f64) -> i32 {
    // The text of a number has its exact exponent; the logarithm of a power of ten may be slightly less.
    format!("{x:e}").split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0)
}

/// 10^e, as the nearest number that an `f64` can hold.
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

/// The fonts, colours and sizes of all figures.
pub(super) fn config() -> Value {
    let font = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif";
    json!({
        "font": font,
        "axis": {
            "labelFontSize": 12, "titleFontSize": 13, "titleFontWeight": "normal", "titlePadding": 10,
            "gridColor": "#e6e6e6", "domainColor": "#888888", "tickColor": "#888888",
            "labelColor": "#222222", "titleColor": "#222222",
        },
        // Vega moves the outermost labels inwards, over their neighbours.
        "axisX": { "labelFlush": false, "labelSeparation": 8 },
        "legend": { "labelFontSize": 12, "titleFontSize": 12, "labelLimit": 320, "titleLimit": 320, "symbolSize": 90 },
        "view": { "stroke": null },
    })
}

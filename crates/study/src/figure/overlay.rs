//! Curves over time from several sources in one figure.

use super::vega::{self, PALETTE, SCHEMA};
use super::{FigureData, Row};
use serde_json::json;

/// Draws the rows (`x`, `y`, `series`; several flows of a series share a colour) as lines; colour and dashes
/// distinguish the series.
#[must_use]
pub fn overlay(name: &str, title: &str, (x_title, y_title): (&str, &str), rows: Vec<Row>) -> FigureData {
    let mut series: Vec<&str> = Vec::new();
    for r in &rows {
        if !series.contains(&r.series.as_str()) {
            series.push(&r.series);
        }
    }
    let dashes =
        [json!([]), json!([6, 3]), json!([2, 2]), json!([8, 3, 2, 3]), json!([12, 4]), json!([1, 3])];
    let colours: Vec<&str> = PALETTE.iter().copied().cycle().take(series.len()).collect();
    let dashes: Vec<_> = dashes.iter().cloned().cycle().take(series.len()).collect();
    let spec = json!({
        "$schema": SCHEMA,
        "title": { "text": title, "anchor": "start", "fontSize": 14 },
        "config": vega::config(),
        "width": vega::WIDTH,
        "height": 320,
        // The page makes it transparent on a dark screen.
        "background": "white",
        "data": { "values": rows },
        "mark": { "type": "line", "strokeWidth": 1.5, "clip": true },
        "encoding": {
            "x": { "field": "x", "type": "quantitative", "title": x_title, "scale": { "nice": false } },
            "y": { "field": "y", "type": "quantitative", "title": y_title, "scale": { "zero": true } },
            "detail": { "field": "flow" },
            "color": {
                "field": "series", "type": "nominal", "title": null,
                "scale": { "domain": series, "range": colours },
                "legend": { "orient": "bottom", "columns": 3, "labelLimit": 320, "symbolType": "stroke" },
            },
            "strokeDash": {
                "field": "series", "type": "nominal", "title": null,
                "scale": { "domain": series, "range": dashes }, "legend": { "orient": "bottom", "columns": 3, "labelLimit": 320 },
            },
        },
    });
    FigureData {
        name: name.to_owned(),
        title: title.to_owned(),
        caption: None,
        spec,
        rows,
        x_title: x_title.to_owned(),
        points: None,
        y_title: y_title.to_owned(),
        thinned: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_series_has_a_colour_of_its_own() {
        let row = |series: &str, x: f64| Row {
            x: Some(x),
            at: String::new(),
            left: None,
            right: None,
            y: x,
            low: None,
            high: None,
            series: series.into(),
            reading: String::new(),
            flow: Some(0),
            outline: None,
        };
        let f = overlay("cwnd", "cwnd", ("s", "segments"), vec![row("a", 0.0), row("b", 0.0), row("a", 1.0)]);
        let scale = &f.spec["encoding"]["color"]["scale"];
        assert_eq!(scale["domain"], json!(["a", "b"]));
        assert_eq!(f.spec["background"], "white");
        assert_eq!(f.spec["$schema"], SCHEMA);
        assert_eq!(scale["range"].as_array().map(Vec::len), Some(2));
        assert_eq!(f.spec["data"]["values"].as_array().map(Vec::len), Some(3));
    }
}

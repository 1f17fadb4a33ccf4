//! A figure of a satellite link during a run: elevation and delay of the serving satellite, and outages.

use crate::LabError;
use crate::error::FigureError;
use crate::picture::{Command, INSTALL};
use serde_json::{Value, json};
use skyhaul_base::Duration;
use skyhaul_scenario::Resolved;
use skyhaul_scenario::check::orbit::{Sample, series};
use skyhaul_study::figure::{FigureRenderer, PALETTE};
use std::path::Path;

/// Largest number of points of a curve; more would not be visible.
const POINTS: usize = 2_000;

/// Largest number of satellite names; more would overlap.
const NAMES: usize = 12;

/// Draws the first satellite link of a scenario: SVG or PNG with the renderer, or without one with the command
/// `vl-convert`, or the specification as JSON, by the extension of the path.
///
/// # Errors
/// If no link has satellites, the extension is unknown, there is no renderer, or the file cannot be written.
pub fn figure(
    scenario: &Resolved,
    path: &Path,
    renderer: Option<&dyn FigureRenderer>,
) -> Result<(), LabError> {
    let refuse = |why| LabError::from(FigureError { path: path.into(), why });
    let spec = spec(scenario).ok_or_else(|| refuse("no link of the scenario uses satellites".into()))?;
    let text = spec.to_string();
    match path.extension().and_then(|e| e.to_str()) {
        Some("json") => std::fs::write(path, text).map_err(LabError::write(path)),
        Some("svg" | "png") => {
            let command = Command::find();
            let found = renderer.or(command.as_ref().map(|c| c as &dyn FigureRenderer));
            let missing = || {
                refuse(format!(
                    "cannot draw: {INSTALL}, or write a name that ends in .json for the Vega-Lite specification"
                ))
            };
            found.ok_or_else(missing)?.render(&text, path).map_err(|e| refuse(e.to_string()))
        }
        _ => Err(refuse("write a name that ends in .svg, .png or .json".into())),
    }
}

/// The Vega-Lite specification with embedded data; `None` if no link has satellites.
#[must_use]
pub fn spec(scenario: &Resolved) -> Option<Value> {
    let (link, orbit) = scenario.links.iter().find_map(|l| Some((l, l.forward.orbit.as_ref()?)))?;
    let (config, duration) = (orbit.config(), scenario.duration);
    let mut samples = Vec::new();
    series(orbit, duration, &mut |s| samples.push(s.clone()));
    let title = format!("Link {}: {} - {}", link.name, config.from, config.to);
    let subtitle = format!(
        "Elevation at {} and one-way delay; the colour changes with the satellite, grey means none",
        config.from
    );
    let panel = |field: &str, y: &str, names: bool| panel(field, y, names, &Passes::of(&samples, duration));
    Some(json!({
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "title": { "text": title, "subtitle": subtitle, "anchor": "start", "fontSize": 14 },
        "background": "white",
        "vconcat": [panel("elevation", "Elevation (deg)", true), panel("delay", "Delay (ms)", false)],
    }))
}

/// Points of curves, the serving time of each satellite, and the outages.
#[derive(Debug, Default)]
struct Passes {
    points: Vec<Value>,
    passes: Vec<(f64, f64, String)>,
    gaps: Vec<(f64, f64)>,
    duration: f64,
}

impl Passes {
    fn of(samples: &[Sample], duration: Duration) -> Self {
        let mut found = Self { duration: duration.as_secs_f64(), ..Self::default() };
        let keep = samples.len().div_ceil(POINTS).max(1);
        for (i, s) in samples.iter().enumerate() {
            let next = samples.get(i + 1);
            let until = next.map_or(found.duration, |n| n.time_s);
            let Some((elevation, delay)) = s.elevation_deg.zip(s.delay_s) else {
                match found.gaps.last_mut() {
                    Some((_, to)) if *to == s.time_s => *to = until,
                    _ => found.gaps.push((s.time_s, until)),
                }
                continue;
            };
            let goes_on = i > 0 && samples[i - 1].satellite == s.satellite;
            match found.passes.last_mut() {
                Some((_, to, _)) if goes_on => *to = until,
                _ => found.passes.push((s.time_s, until, s.satellite.clone())),
            }
            // Both ends of a pass are kept, even where samples are left out.
            let last = next.is_none_or(|n| n.satellite != s.satellite);
            if i % keep == 0 || !goes_on || last {
                let pass = found.passes.len() - 1;
                let colour = (pass % 3).to_string();
                let delay = delay * 1e3;
                found.points.push(json!({
                    "t": s.time_s, "elevation": elevation, "delay": delay, "pass": pass, "colour": colour,
                }));
            }
        }
        found
    }
}

/// One curve over time, with the outages in the background.
fn panel(field: &str, title: &str, names: bool, of: &Passes) -> Value {
    let x = json!({
        "field": "t", "type": "quantitative", "title": if names { Value::Null } else { json!("Time (s)") },
        "scale": { "domain": [0.0, of.duration], "nice": false },
    });
    let gaps: Vec<Value> = of.gaps.iter().map(|(from, to)| json!({ "t": from, "to": to })).collect();
    let mut layers = vec![
        // A stroke shows interruptions that are shorter than a pixel.
        json!({
            "data": { "values": gaps },
            "mark": { "type": "rect", "color": "#bbbbbb", "stroke": "#bbbbbb", "strokeWidth": 1 },
            "encoding": { "x": x, "x2": { "field": "to" } },
        }),
        json!({
            "data": { "values": of.points },
            "mark": { "type": "line", "strokeWidth": 2 },
            "encoding": {
                "x": x,
                "y": { "field": field, "type": "quantitative", "title": title, "scale": { "zero": false } },
                "detail": { "field": "pass" },
                "color": {
                    "field": "colour", "type": "nominal", "legend": null,
                    "scale": { "domain": ["0", "1", "2"], "range": &PALETTE[..3] },
                },
            },
        }),
    ];
    if names && of.passes.len() <= NAMES {
        let values: Vec<Value> = of
            .passes
            .iter()
            .map(|(from, to, name)| json!({ "t": (from + to) / 2.0, "name": name }))
            .collect();
        layers.push(json!({
            "data": { "values": values },
            "mark": { "type": "text", "baseline": "bottom", "dy": -3, "fontSize": 10, "color": "#444444" },
            "encoding": { "x": x, "y": { "value": 0 }, "text": { "field": "name" } },
        }));
    }
    json!({ "width": 560, "height": 180, "layer": layers })
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_scenario::{Document, no_files};

    /// A scenario with a link of 10 Mbit/s that has this key.
    fn scenario(key: &str) -> Resolved {
        let text =
            format!("duration = \"600 s\"\nlinks.sat = {{ rate = \"10 Mbit/s\", {key} }}\n[flows.bulk]\n");
        Document::parse("a.toml", &text, &no_files).unwrap().resolve().unwrap()
    }

    #[test]
    fn every_pass_is_drawn_from_end_to_end_and_every_gap() {
        let scenario = scenario("orbit = { from = 'London', to = 'Madrid', constellation = 'leo550' }");
        let check = skyhaul_scenario::check(&scenario);
        let passes = check.links[0].orbit.as_ref().unwrap().passes.clone();
        let spec = spec(&scenario).unwrap();
        let values = |layer: usize| spec["vconcat"][0]["layer"][layer]["data"]["values"].as_array().unwrap();
        let (gaps, points) = (values(0), values(1));
        // A hard handover interrupts the link for 100 ms.
        assert_eq!(gaps.len(), passes.len() - 1);
        assert!(
            gaps.iter().all(|g| (g["to"].as_f64().unwrap() - g["t"].as_f64().unwrap() - 0.1).abs() < 1e-9)
        );
        for (i, pass) in passes.iter().enumerate() {
            let of_pass: Vec<f64> =
                points.iter().filter(|p| p["pass"] == i).map(|p| p["t"].as_f64().unwrap()).collect();
            assert_eq!(of_pass.first(), Some(&pass.from_s));
            // The last sample is a step before the end.
            let gap = pass.until_s - of_pass.last().unwrap();
            assert!(gap > 0.0 && gap <= 0.1 + 1e-9, "{gap}");
        }
        assert!(points.len() <= POINTS + 3 * passes.len());
    }

    #[test]
    fn a_link_without_satellites_has_no_figure() {
        assert_eq!(spec(&scenario("delay = '10 ms'")), None);
    }
}

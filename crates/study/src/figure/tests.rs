use super::*;
use crate::model::{RefPoint, Rule, RuleAxis};

fn row(x: f64, y: f64, series: &str) -> Row {
    let (low, high) = (Some(y - 1.0), Some(y + 1.0));
    let reading = "as printed".to_owned();
    Row { x: Some(x), at: format!("{x}"), y, low, high, series: series.into(), reading, flow: None }
}

fn spec(figure: &Figure, scale: Scale, rows: &[Row]) -> serde_json::Value {
    let domain = ["Peach".to_owned(), "SACK".to_owned()];
    let readings = ["as printed".to_owned(), "Reno recovery".to_owned()];
    vega::Spec {
        figure,
        title: "Goodput",
        x_title: "Loss",
        y_title: "Goodput (segments/s)",
        legend: Some("Control"),
        scale,
        domain: &domain,
        readings: &readings,
        rows,
    }
    .build()
}

/// The encoding along x of the layers that show data.
fn x_of(spec: &serde_json::Value) -> &serde_json::Value {
    let layers = spec["layer"].as_array().expect("layers");
    let with_data = layers.iter().find(|l| l["encoding"]["x"]["field"] == "x");
    &with_data.expect("a layer with data")["encoding"]["x"]
}

#[test]
fn zero_has_a_place_of_its_own_on_a_logarithmic_axis() {
    let rows = [row(0.0, 1290.0, "Peach"), row(1e-4, 1280.0, "Peach"), row(1e-2, 900.0, "SACK")];
    let s = spec(&Figure::default(), Scale::Log, &rows);
    assert_eq!(s["data"]["values"][0]["x"], 1e-5);
    assert_eq!(s["data"]["values"][0]["part"], "zero");
    assert!(s["data"]["values"][1].get("part").is_none());
    let axis = &x_of(&s)["axis"];
    assert_eq!(axis["values"], serde_json::json!([1e-5, 1e-4, 1e-3, 1e-2]));
    let labels = axis["labelExpr"].as_str().expect("text");
    assert!(labels.contains("'0'") && labels.contains("10⁻⁴") && labels.contains("10⁻²"), "{labels}");
}

#[test]
fn a_logarithmic_axis_without_zero_has_no_break() {
    let rows = [row(10.0, 1.0, "Peach"), row(1000.0, 2.0, "SACK")];
    let s = spec(&Figure::default(), Scale::Log, &rows);
    assert_eq!(x_of(&s)["axis"]["values"], serde_json::json!([10.0, 100.0, 1000.0]));
    let text = s.to_string();
    assert!(!text.contains("part\":\"zero"), "{text}");
}

/// The whole specification of a figure with everything in it, so that a change is seen in review.
#[test]
fn snapshot() {
    let figure = Figure {
        file: "fig11.svg".into(),
        readings: true,
        rule: vec![Rule { axis: RuleAxis::Y, value: 1300.0, label: "capacity".into() }],
        point: vec![RefPoint { x: 1e-2, y: 620.0, label: "printed".into() }],
        ..Figure::default()
    };
    let mut rows = vec![row(0.0, 1290.0, "Peach"), row(1e-4, 1280.0, "Peach"), row(1e-2, 900.0, "SACK")];
    rows.push(Row { reading: "Reno recovery".into(), ..row(1e-2, 800.0, "Peach") });
    let got = serde_json::to_string_pretty(&spec(&figure, Scale::Log, &rows)).expect("JSON") + "\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots/figure.vl.json");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(Path::new(path).parent().expect("a folder")).expect("writable");
        std::fs::write(path, &got).expect("writable");
    }
    let expected = std::fs::read_to_string(path).expect("the snapshot; make it with UPDATE=1");
    assert_eq!(got, expected, "UPDATE=1 accepts the new specification");
}

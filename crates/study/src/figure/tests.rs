use super::*;
use crate::model::{Mark, RefPoint, Rule, RuleAxis};

fn row(x: f64, y: f64, series: &str) -> Row {
    let (low, high) = (Some(y - 1.0), Some(y + 1.0));
    let reading = "as printed".to_owned();
    let (left, right) = (None, None);
    Row {
        x: Some(x),
        at: format!("{x}"),
        left,
        right,
        y,
        low,
        high,
        series: series.into(),
        reading,
        flow: None,
        outline: None,
    }
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
        points: figure.x_metric.as_ref().map(|_| "Loss"),
        scale,
        domain: &domain,
        readings: &readings,
        rows,
        spans: &[],
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

#[test]
fn an_axis_of_one_value_has_this_value_as_its_only_label() {
    let one = [row(8.03, 1.0, "Peach"), row(8.03, 2.0, "SACK")];
    let axis = x_of(&spec(&Figure::default(), Scale::Linear, &one))["axis"].clone();
    assert_eq!(axis, serde_json::json!({ "values": [8.03], "format": ".5~g" }));
    let two = [row(8.03, 1.0, "Peach"), row(1.56, 2.0, "SACK")];
    assert!(x_of(&spec(&Figure::default(), Scale::Linear, &two)).get("axis").is_none());
}

/// A row of a category.
fn named(at: &str, y: f64) -> Row {
    Row { x: None, at: at.into(), ..row(0.0, y, "Peach") }
}

#[test]
fn many_categories_with_long_names_go_down_the_side() {
    let names: Vec<String> = (0..9).map(|i| format!("reading {i} of what the paper leaves open")).collect();
    let rows: Vec<Row> = names.iter().map(|n| named(n, 3.0)).collect();
    let rule = vec![Rule { axis: RuleAxis::Y, value: 30.65, label: "printed".into() }];
    let figure = Figure { mark: Mark::Point, rule: rule.clone(), ..Figure::default() };
    let s = spec(&figure, Scale::Category, &rows);
    let layers = s["layer"].as_array().expect("layers");
    let data = layers.iter().find(|l| l["mark"]["type"] == "point").expect("points");
    assert_eq!(
        (&data["encoding"]["y"]["field"], &data["encoding"]["x"]["field"]),
        (&"at".into(), &"y".into())
    );
    // As wide as the longest name, which Vega cuts after 180 pixels otherwise.
    assert!(data["encoding"]["y"]["axis"]["labelLimit"].as_u64().is_some_and(|l| l > 7 * 40));
    let bar = layers.iter().find(|l| l["encoding"]["x2"]["field"] == "high").expect("intervals lie too");
    assert_eq!(bar["encoding"]["x"]["field"], "low");
    let line = layers.iter().find(|l| l["encoding"]["x"]["datum"] == 30.65).expect("the line stands");
    assert!(line["encoding"].get("y").is_none());
    // Lines along categories keep them below the plot; names that have room there too, however many series.
    for (mark, rows) in
        [(Mark::Line, rows), (Mark::Point, (0..40).map(|i| named(["1e-3", "1e-2"][i % 2], 1.0)).collect())]
    {
        let s = spec(&Figure { mark, ..Figure::default() }, Scale::Category, &rows);
        let x = s["layer"][0]["encoding"]["x"].clone();
        assert_eq!(
            (&x["field"], &x["axis"]["labelAngle"]),
            (&"at".into(), &if rows.len() == 9 { -35 } else { 0 }.into())
        );
    }
}

#[test]
fn times_are_marked_above_the_plot_in_a_lane_for_each_curve() {
    let time = crate::model::TimeFigure {
        series: "buffered".into(),
        group: None,
        each_flow: false,
        rate: false,
        mark: Some("stalled".into()),
        factor: 1.0,
        origin: None,
        from: 0.0,
        to: None,
    };
    let figure = Figure { time: Some(time), ..Figure::default() };
    let domain = ["Peach".to_owned(), "SACK".to_owned()];
    let rows = [row(1.0, 2.0, "Peach"), row(2.0, 0.0, "SACK")];
    let span = |from: f64, to: f64, series: &str| Span { from, to, series: series.into() };
    let drawn = |spans: &[Span]| {
        let spec = vega::Spec {
            figure: &figure,
            title: "Film",
            x_title: "Time (s)",
            y_title: "Film (s)",
            legend: None,
            points: None,
            scale: Scale::Linear,
            domain: &domain,
            readings: &["as printed".to_owned()],
            rows: &rows,
            spans,
        };
        spec.build()
    };
    let s = drawn(&[span(1.5, 2.0, "SACK"), span(0.5, 0.75, "Peach")]);
    let layers = s["layer"].as_array().expect("layers");
    let lanes: Vec<&serde_json::Value> =
        layers.iter().filter(|l| l["encoding"]["x"]["field"] == "from").collect();
    assert_eq!(lanes.len(), 2);
    assert_eq!(lanes[0]["data"]["values"][0]["to"], 0.75);
    assert_eq!(lanes[1]["data"]["values"][0]["curve"], "SACK");
    let height = |l: &serde_json::Value| l["encoding"]["y"]["value"].as_f64().expect("a place");
    assert!(
        height(lanes[0]) < height(lanes[1]) && height(lanes[1]) < 0.0,
        "above the plot, as in the legend"
    );
    // Without any nothing is different.
    assert!(
        drawn(&[])["layer"].as_array().expect("layers").iter().all(|l| l["encoding"]["x"]["field"] != "from")
    );
}

#[test]
fn a_metric_along_x_has_intervals_too_and_points_that_grow_along_the_axis() {
    let figure = Figure { x_metric: Some("harm".into()), ..Figure::default() };
    let at = |x: f64, y: f64, at: &str| Row {
        at: at.into(),
        left: Some(x - 5.0),
        right: Some(x + 5.0),
        ..row(x, y, "Peach")
    };
    // The second value of the axis lies left of the first.
    let s = spec(&figure, Scale::Linear, &[at(48.0, 9.0, "0"), at(12.0, 7.0, "1e-3")]);
    let layers = s["layer"].as_array().expect("layers");
    let across = layers.iter().find(|l| l["encoding"]["x2"]["field"] == "right").expect("intervals along x");
    assert_eq!(
        (&across["encoding"]["x"]["field"], &across["encoding"]["y"]["field"]),
        (&"left".into(), &"y".into())
    );
    assert!(layers.iter().any(|l| l["encoding"]["y2"]["field"] == "high"), "and along y");
    assert!(layers.iter().all(|l| l["mark"]["type"] != "area"), "no band lies between points side by side");
    let line = layers.iter().find(|l| l["mark"]["type"] == "line").expect("a line");
    assert_eq!(line["encoding"]["order"]["field"], "step");
    let steps: Vec<&serde_json::Value> =
        s["data"]["values"].as_array().expect("rows").iter().map(|v| &v["step"]).collect();
    assert_eq!(steps, [0, 1]);
    let size = &layers.iter().find(|l| l["mark"]["type"] == "point").expect("points")["encoding"]["size"];
    assert_eq!(
        (&size["scale"]["domain"], &size["title"]),
        (&serde_json::json!(["0", "1e-3"]), &"Loss".into())
    );
    let range = size["scale"]["range"].as_array().expect("sizes");
    assert!(range[0].as_u64() < range[1].as_u64());
    // A figure over an axis has none of it.
    let text = spec(&Figure::default(), Scale::Linear, &[row(1.0, 2.0, "Peach")]).to_string();
    assert!(!text.contains("step") && !text.contains("right") && !text.contains("\"size\":{"), "{text}");
}

#[test]
fn ellipses_are_closed_lines_with_data_of_their_own_and_x_may_run_backwards() {
    let axis = || Some("control".to_owned());
    let figure = Figure {
        x: axis(),
        series: axis(),
        x_metric: Some("delay".into()),
        band: Band::Ellipse,
        x_reverse: true,
        mark: Mark::Point,
        ..Figure::default()
    };
    let at = |x: f64, y: f64, name: &str| Row {
        at: name.into(),
        low: None,
        high: None,
        outline: ellipse::outline(&[x - 1.0, x + 1.0, x], &[y, y + 2.0, y - 2.0]),
        ..row(x, y, name)
    };
    let s = spec(&figure, Scale::Linear, &[at(48.0, 9.0, "Peach"), at(12.0, 7.0, "SACK")]);
    let layers = s["layer"].as_array().expect("layers");
    let outlines: Vec<_> = layers.iter().filter(|l| l["mark"]["interpolate"] == "linear-closed").collect();
    assert_eq!(outlines.len(), 2);
    for layer in outlines {
        let corners = layer["data"]["values"].as_array().expect("corners");
        let of = |name: &str| corners.iter().filter(|c| c["curve"] == name).count();
        assert_eq!((of("Peach"), of("SACK"), corners.len()), (64, 64, 128));
        assert_eq!(layer["encoding"]["order"]["field"], "corner");
        assert_eq!(layer["encoding"]["x"]["scale"]["reverse"], true);
    }
    // The points carry no outline, and one size: colour and shape distinguish them.
    assert!(!s["data"].to_string().contains("outline"));
    let point = layers.iter().find(|l| l["mark"]["type"] == "point").expect("points");
    assert!(point["encoding"].get("size").is_none());
}

#[test]
fn what_lies_outside_of_the_range_is_not_drawn_over_the_rest_of_the_page() {
    let figure = Figure { y_range: Some([0.0, 10.0]), ..Figure::default() };
    let s = spec(&figure, Scale::Linear, &[row(1.0, 9.5, "Peach"), row(2.0, 12.0, "Peach")]);
    for layer in s["layer"].as_array().expect("layers") {
        if layer["mark"]["type"] == "point" {
            assert_eq!(layer["transform"][0]["filter"]["range"], serde_json::json!([0.0, 10.0]));
        } else {
            assert_eq!(layer["mark"]["clip"], true, "{layer}");
        }
    }
}

#[test]
fn points_outside_of_the_range_along_x_are_not_drawn() {
    let figure = Figure { x_range: Some([0.0, 10.0]), ..Figure::default() };
    let filters = |scale, rows: &[Row]| {
        let s = spec(&figure, scale, rows);
        let layers = s["layer"].as_array().expect("layers").clone();
        let points = layers.into_iter().find(|l| l["mark"]["type"] == "point");
        points.expect("a layer of points")["transform"].clone()
    };
    let along_x = serde_json::json!([{ "filter": { "field": "x", "range": [0.0, 10.0] } }]);
    assert_eq!(filters(Scale::Linear, &[row(9.0, 1.0, "Peach"), row(12.0, 1.0, "Peach")]), along_x);
    // Categories have no place along x that a range could leave out.
    assert!(filters(Scale::Category, &[named("RED", 1.0)]).is_null());
}

#[test]
fn time_spans_without_any_series_are_not_drawn() {
    let time = "series = \"cwnd\"\nmark = \"stalled\"";
    let figure =
        Figure { time: Some(toml::from_str(time).expect("a figure over time")), ..Figure::default() };
    let spans = [Span { from: 0.2, to: 0.8, series: "Peach".into() }];
    let spec = vega::Spec {
        figure: &figure,
        title: "",
        x_title: "",
        y_title: "",
        legend: None,
        points: None,
        scale: Scale::Linear,
        domain: &[],
        readings: &["as printed".to_owned()],
        rows: &[],
        spans: &spans,
    };
    assert!(!spec.build().to_string().contains("stalled"));
}

#[test]
fn a_title_longer_than_its_axis_takes_two_lines() {
    let long = "Goodput of a flow of GAIMD over the goodput of a flow of Reno";
    let two = serde_json::json!(["Goodput of a flow of GAIMD over", "the goodput of a flow of Reno"]);
    assert_eq!(layout::title(long, 320), two);
    assert_eq!(layout::title("Goodput (Mbit/s)", 320), "Goodput (Mbit/s)");
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

#[test]
fn nothing_joins_categories_unless_the_figure_says_so() {
    let rows = [named("drop-tail", 3.0), named("RED", 5.0)];
    let has_line = |mark| {
        let figure = Figure { mark, ..Figure::default() };
        spec(&figure, Scale::Category, &rows).to_string().contains("\"type\":\"line\"")
    };
    assert!(!has_line(Mark::LinePoint) && has_line(Mark::Line));
}

#[test]
fn curves_over_time_are_told_apart_by_axis_and_group() {
    assert_eq!(curve_label(String::new(), "bulk", false), "bulk");
    assert_eq!(curve_label("Peach".into(), "bulk", false), "Peach");
    assert_eq!(curve_label("Peach".into(), "sat.forward", true), "Peach, sat.forward");
    let text = |rest: &str| format!("series = \"cwnd\"\n{rest}");
    let time = |rest: &str| toml::from_str::<TimeFigure>(&text(rest)).expect("a figure over time");
    assert_eq!(heading(&time("")), "cwnd (segments)");
    // Another scale has another unit, which only the study knows.
    assert_eq!(heading(&time("factor = 2.0")), "cwnd");
}

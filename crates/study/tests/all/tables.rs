//! Metrics relative to another combination, and tables of means.

use crate::common;

use common::{Fake, STUDY, folder, parse, planned};
use skyhaul_study::error::RenderError;
use skyhaul_study::evaluation::{Evaluation, evaluate};
use skyhaul_study::figure::FigureRenderer;
use skyhaul_study::output::{OutputOptions, write};
use skyhaul_study::plan::plan;
use skyhaul_study::report;
use skyhaul_study::run::{RunOptions, run};
use skyhaul_study::table::Column;
use std::collections::BTreeSet;
use std::path::Path;

const MORE: &str = r#"
[[metric]]
name = "gain"
title = "Gain over SACK"
from = "100 * (metric.goodput / base.goodput - 1)"
base = { cc = "SACK" }
unit = "%"

[[table]]
file = "gain"
title = "Gain <of> each control"
rows = "cc"
columns = "loss"
metric = "gain"
caption = "In percent."

[[table]]
file = "all"
rows = ["loss", "cc"]
metric = ["goodput", "gain"]
at = { loss = [0, 0.01] }
"#;

fn evaluation(text: &str) -> Evaluation {
    let fake = Fake::default();
    let plan = plan(&fake, parse(text)).expect("a study");
    let cells = run(&fake, &plan, &RunOptions::default()).expect("cells");
    evaluate(&plan, &cells).expect("an evaluation")
}

#[test]
fn a_metric_named_like_an_axis_has_a_column_of_its_own() {
    let e = evaluation(&format!(
        "{STUDY}{}",
        MORE.replace("\"gain\"", "\"loss\"")
            .replace("columns = \"loss\"", "columns = \"cc\"")
            .replace("rows = \"cc\"", "rows = \"loss\"")
    ));
    let mut names: Vec<_> = e.cells.columns().iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.contains(&"loss") && names.contains(&"metric.loss"), "{names:?}");
    names.sort_unstable();
    assert!(names.windows(2).all(|two| two[0] != two[1]), "{names:?}");
}

#[test]
fn a_base_is_the_same_seed_and_the_same_other_values() {
    let e = evaluation(&format!("{STUDY}{MORE}"));
    let column = |name: &str| {
        let i = e.values.metrics.iter().position(|m| m.starts_with(name)).expect(name);
        move |row: &skyhaul_study::evaluation::ValueRow| row.metrics[i]
    };
    let gain = column("Gain");
    let rows: Vec<_> = e.values.rows.iter().filter(|r| r.reading == e.readings[0].0).collect();
    for pair in rows.chunks(2) {
        let (sack, peach) = (pair[0], pair[1]);
        assert_eq!((sack.at[1].as_str(), peach.at[1].as_str()), ("SACK", "Peach"));
        // Against itself: nothing, with every seed.
        assert_eq!((gain(sack).mean, gain(sack).half), (0.0, 0.0));
    }
    // Seed by seed: the base of each cell is the one with its own seed. Cells come by loss rate, control, seed.
    let real = |name: &str| match e.cells.columns().iter().find(|(n, _)| n == name) {
        Some((_, Column::Real(values))) => values,
        _ => panic!("{name}"),
    };
    let (goodputs, gains) = (real("goodput"), real("gain"));
    for cell in (0..48).filter(|i| i % 16 >= 8) {
        let expected = 100.0 * (goodputs[cell] / goodputs[cell - 8] - 1.0);
        assert!((gains[cell] - expected).abs() < 1e-9, "{cell}: {} {expected}", gains[cell]);
    }
    // A reading is compared with the base as the reading has it.
    let read = e.values.rows.iter().find(|r| r.reading == "Reno recovery").expect("a reading");
    assert!(gain(read).mean.abs() < 2.0, "Reno's recovery is as good as SACK here: {}", gain(read).mean);
}

#[test]
fn tables_have_a_row_per_value_and_a_column_per_value_or_metric() {
    let e = evaluation(&format!("{STUDY}{MORE}"));
    let [gain, all] = &e.tables[..] else { panic!("two tables") };
    let text = gain.text();
    assert_eq!(text[0], ["Control", "loss 0", "loss 0.001", "loss 0.01"]);
    assert_eq!(text.len(), 3);
    assert_eq!(text[1], ["SACK", "0", "0", "0"]);
    assert!(text[2][0] == "Peach" && text[2][3].contains('±'), "{:?}", text[2]);
    assert_eq!(all.rows.len(), 4);
    assert_eq!(all.text()[0].len(), 4);
    assert_eq!(all.rows[3].0, ["0.01", "Peach"]);
    let html = report::html(&e);
    assert!(html.contains("<caption>Gain &lt;of&gt; each control</caption>") && html.contains("In percent."));
    let plain = report::text(&e);
    assert!(plain.contains("Gain <of> each control") && plain.contains("loss 0.01"), "{plain}");
    let folder = folder("tables");
    write(&e, &folder, &OutputOptions::default()).expect("writes");
    let csv = std::fs::read_to_string(folder.join("tables/gain.csv")).expect("a table");
    assert!(csv.starts_with("Control,loss 0,loss 0 ±,"), "{csv}");
    assert_eq!(csv.lines().count(), 3);
}

#[test]
fn columns_and_headings_have_different_names() {
    let twice = "\n[[metric]]\nname = \"seed\"\ntitle = \"Goodput\"\nunit = \"segments/s\"\nfrom = \"metric.goodput\"\n\
                 [[metric]]\nname = \"fast\"\ntitle = \"Goodput\"\nunit = \"segments/ms\"\nfrom = \"metric.goodput / 1000\"\n\
                 [[table]]\nfile = \"both\"\nrows = \"cc\"\nmetric = [\"goodput\", \"seed\"]\nat = { loss = 0 }\n\
                 [[figure]]\nfile = \"both\"\nx = \"cc\"\ny = [\"goodput\", \"seed\", \"fast\"]\nat = { loss = 0 }\n";
    let text = STUDY.replace("title = \"Control\"", "title = \"Loss probability\"");
    let e = evaluation(&format!("{text}{twice}"));
    let different = |names: &[String]| names.iter().enumerate().all(|(i, n)| !names[..i].contains(n));
    let names: Vec<String> = e.cells.columns().iter().map(|(name, _)| name.clone()).collect();
    assert!(different(&names) && names.contains(&"seed".to_owned()), "{names:?}");
    assert!(matches!(e.cells.columns().iter().find(|c| c.0 == "seed"), Some((_, Column::Count(_)))));
    assert_eq!(e.values.axes, ["Loss probability", "Loss probability [cc]"]);
    let metrics = ["Goodput (segments/s)", "Goodput [seed] (segments/s)", "Goodput (segments/ms)"];
    assert_eq!(e.values.metrics, metrics);
    let table = e.tables.iter().find(|t| t.name == "both").expect("the table");
    assert_eq!(table.axes, ["Loss probability [cc]"]);
    assert!(different(&table.columns), "{:?}", table.columns);
    let row = &e.summary()["values"][0];
    let lengths = [&row["at"], &row["metrics"]].map(|map| map.as_object().map(serde_json::Map::len));
    assert_eq!(lengths, [Some(2), Some(3)]);
    let figure = e.figures.iter().find(|f| f.name == "both").expect("the figure");
    let curves: BTreeSet<&str> = figure.rows.iter().map(|r| r.series.as_str()).collect();
    assert_eq!(curves.len(), 3, "{curves:?}");
}

#[test]
fn a_reading_without_an_origin_marks_nothing() {
    // The square root exists for Peach with its own recovery only.
    let more = "\n[[metric]]\nname = \"ahead\"\nfrom = \"sqrt(metric.goodput - 1100)\"\n\
                [[figure]]\nfile = \"marked\"\nat = { loss = 0, cc = \"Peach\" }\nreadings = true\n\
                time = { series = \"cwnd\", mark = \"cwnd\", origin = \"ahead\", from = -20 }\n";
    let e = evaluation(&format!("{STUDY}{more}"));
    let figure = e.figures.iter().find(|f| f.name == "marked").expect("the figure");
    let layers = figure.spec["layer"].as_array().expect("layers");
    let lane = layers.iter().find(|l| l["encoding"]["x"]["field"] == "from").expect("a lane");
    assert_eq!(lane["data"]["values"].as_array().map(Vec::len), Some(1), "{lane}");
}

/// Writes the specification in the place of the image.
struct Copies;

impl FigureRenderer for Copies {
    fn render(&self, vl_json: &str, path: &Path) -> Result<(), RenderError> {
        Ok(std::fs::write(path, vl_json)?)
    }
}

#[test]
fn names_of_figures_may_have_dots() {
    let text = STUDY.replace("fig11.svg", "loss.1.svg").replace("window.svg", "loss.2.svg");
    let e = evaluation(&text);
    let folder = folder("dots");
    let options = OutputOptions { renderer: Some(&Copies), ..OutputOptions::default() };
    let written = write(&e, &folder, &options).expect("writes");
    for name in ["loss.1", "loss.2"] {
        let file = |ending: &str| {
            let path = folder.join(format!("figures/{name}.{ending}"));
            assert!(written.contains(&path), "{path:?} is not in {written:?}");
            std::fs::read_to_string(path).expect("a file")
        };
        assert_eq!([file("svg"), file("png")], [file("vl.json"), file("vl.json")]);
    }
    // An extension begins with a letter.
    let text = STUDY.replace("fig11.svg", "loss-0.01").replace("window.svg", "loss-0.02");
    let names: Vec<_> = evaluation(&text).figures.into_iter().map(|f| f.name).collect();
    assert_eq!(names, ["loss-0.01", "loss-0.02"]);
}

#[test]
fn what_a_table_cannot_show_is_refused_with_the_key() {
    drop(planned(&Fake::default()));
    for (from, to, parts) in [
        ("base = { cc = \"SACK\" }", "", ["metric[1].from", "there is none", "base = {"]),
        (
            "base = { cc = \"SACK\" }",
            "base = { cc = [\"SACK\", \"Peach\"] }",
            ["metric[1].base", "one base", "cc"],
        ),
        (
            "base = { cc = \"SACK\" }",
            "base = { c = \"SACK\" }",
            ["metric[1].base", "no axis `c`", "loss, cc"],
        ),
        ("base.goodput", "base.godput", ["metric[1].from", "godput", "goodput"]),
        ("rows = \"cc\"", "rows = \"c\"", ["table[0].rows", "no axis `c`", "loss, cc"]),
        ("columns = \"loss\"", "", ["table[0].at", "`loss` has several values", "`rows` or `columns`"]),
        ("columns = \"loss\"", "columns = \"los\"", ["table[0].columns", "no axis `los`", "loss, cc"]),
        ("metric = \"gain\"", "metric = \"gian\"", ["table[0].metric", "no metric `gian`", "goodput"]),
        ("metric = \"gain\"", "metric = []", ["table[0].metric", "empty table", "gain"]),
        ("at = { loss = [0, 0.01] }", "at = { loss = 7 }", ["table[1].at", "no value `7`", "0.01"]),
        ("rows = \"cc\"", "rows = [\"cc\", \"loss\"]", ["table[0].columns", "`loss` is among", "rows"]),
        ("rows = [\"loss\", \"cc\"]", "rows = [\"loss\", \"loss\"]", ["table[1].rows", "`loss`", "twice"]),
        ("file = \"all\"", "file = \"gain\"", ["table[1]", "twice", "gain"]),
    ] {
        let text = format!("{STUDY}{}", MORE.replace(from, to));
        let error = plan(&Fake::default(), parse(&text)).expect_err(to).to_string();
        assert!(parts.iter().all(|p| error.contains(p)), "{to}: {error}");
    }
}

#[test]
fn a_metric_along_x_gives_a_point_for_each_value_of_the_axis() {
    let figure = "\n[[figure]]\nfile = \"both\"\nx = \"loss\"\nx_metric = \"goodput\"\ny = \"goodput\"\nseries = \"cc\"\n";
    let e = evaluation(&format!("{STUDY}{figure}"));
    let both = e.figures.iter().find(|f| f.name == "both").expect("the figure");
    assert_eq!(
        (both.x_title.as_str(), both.points.as_deref()),
        ("Goodput (segments/s)", Some("Loss probability"))
    );
    // A metric against itself: both coordinates and both intervals are equal.
    let peach: Vec<_> = both.rows.iter().filter(|r| r.series == "Peach").collect();
    assert_eq!(peach.iter().map(|r| r.at.as_str()).collect::<Vec<_>>(), ["0", "0.001", "0.01"]);
    for r in peach {
        assert_eq!((r.x, r.left, r.right), (Some(r.y), r.low, r.high), "{r:?}");
        assert!(r.left.is_some_and(|left| left < r.y));
    }
    let page = report::html(&e);
    assert!(page.contains("<th>Loss probability</th><th>Goodput (segments/s)</th><th>from</th><th>to</th>"));
}

/// A duration with a long tail: with eight seeds its logarithm spreads over some units.
const TAIL: &str = r#"
[[metric]]
name = "wait"
title = "Wait"
from = "exp((metric.goodput - 1000) / 20)"
unit = "s"

[[claim]]
id = "9.1"
says = "Peach waits longer"
at = { loss = 0.01 }
check = { kind = "greater", metric = "wait", left = { cc = "Peach" }, right = { cc = "SACK" } }

[[claim]]
id = "9.2"
says = "SACK waits a second"
at = { loss = 0, cc = "SACK" }
check = { kind = "within", metric = "wait", within = [1e-6, 1e6] }

[[figure]]
file = "wait"
x = "loss"
y = "wait"
series = "cc"

[[table]]
file = "wait"
rows = ["loss", "cc"]
metric = ["wait", "goodput"]
"#;

#[test]
fn a_duration_with_a_long_tail_is_shown_by_medians_everywhere() {
    let e = evaluation(&format!("{STUDY}{TAIL}"));
    let wait = e.values.metrics.iter().position(|m| m == "Wait (s)").expect("the metric");
    let goodput = e.values.metrics.iter().position(|m| m.starts_with("Goodput")).expect("the metric");
    for row in &e.values.rows {
        let m = row.medians[wait].expect("a median");
        assert!(row.shown[wait].starts_with("median ") && m.low < m.value && m.value < m.high, "{row:?}");
        assert!(row.medians[goodput].is_none() && row.shown[goodput].contains(" ± "), "{row:?}");
    }
    let figure = e.figures.iter().find(|f| f.name == "wait").expect("a figure");
    assert_eq!(figure.y_title, "Wait, median over the seeds (s)");
    let drawn = figure.rows.iter().find(|r| r.series == "SACK" && r.x == Some(0.0)).expect("a point");
    let m = e.values.rows[0].medians[wait].expect("a median");
    assert_eq!((drawn.y, drawn.low, drawn.high), (m.value, Some(m.low), Some(m.high)));
    let table = e.tables.iter().find(|t| t.name == "wait").expect("a table");
    assert!(table.text().iter().skip(1).all(|line| line[2].starts_with("median ")), "{:?}", table.text());
    let names: Vec<String> = table.numbers().columns().iter().map(|c| c.0.clone()).collect();
    assert!(names.contains(&"Wait (s), median".to_owned()), "{names:?}");
    assert!(!names.iter().any(|n| n.starts_with("Goodput") && n.contains("median")), "{names:?}");
    let value = &e.summary()["values"][0]["metrics"]["Wait (s)"];
    assert_eq!(value["median"].as_f64(), Some(m.value));
    // The verdict is on means, whatever the values are, and shows them.
    let ours = &e.claims.iter().find(|c| c.id == "9.2").expect("a claim").outcomes[0];
    assert!(ours.ours.contains(" ± ") && ours.ours.contains("(median "), "{}", ours.ours);
    let decided = ours.cases[0].decided.expect("a number");
    assert!(decided.mean.is_some() && decided.median.is_none());
    // A study that prints a mean says so, and values of another kind have no true zero.
    for (from, to) in
        [("unit = \"s\"", "unit = \"s\"\nsummary = \"mean\""), ("unit = \"s\"", "unit = \"dB\"")]
    {
        let e = evaluation(&format!("{STUDY}{}", TAIL.replacen(from, to, 1)));
        assert!(e.values.rows.iter().all(|r| r.medians.iter().all(Option::is_none)), "{to}");
        assert!(!e.figures.iter().any(|f| f.y_title.contains("median")), "{to}");
    }
    let shifted = TAIL.replacen("/ 20)", "/ 20) - 1", 1);
    let e = evaluation(&format!("{STUDY}{shifted}"));
    assert!(e.values.rows.iter().all(|r| r.medians.iter().all(Option::is_none)), "below zero");
}

#[test]
fn a_claim_is_about_medians_where_its_metric_says_so() {
    let text = TAIL.replacen("unit = \"s\"", "unit = \"dB\"\nsummary = \"median\"", 1);
    let e = evaluation(&format!("{STUDY}{text}"));
    let claim =
        |id: &str| e.claims.iter().find(|c| c.id == id).expect("a claim").outcomes[0].cases[0].clone();
    let one = claim("9.2");
    let wait = e.values.metrics.iter().position(|m| m.starts_with("Wait")).expect("the metric");
    let m = e.values.rows[0].medians[wait].expect("a median");
    let decided = one.decided.expect("a number");
    assert_eq!((decided.median, decided.low, decided.high), (Some(m.value), Some(m.low), Some(m.high)));
    assert!(
        decided.mean.is_none() && one.ours.starts_with("median ") && !one.ours.contains('±'),
        "{}",
        one.ours
    );
    // All eight differences are positive: the interval of their median, smallest to largest, is above zero.
    let two = claim("9.1");
    assert_eq!(two.verdict, skyhaul_study::claim::Verdict::Holds, "{}", two.ours);
    assert!(two.ours.contains(" against median ") && two.ours.contains('×'), "{}", two.ours);
    // Five seeds have no interval of the median.
    let few = format!("{STUDY}{text}").replacen("count = 8", "count = 5", 1);
    let e = evaluation(&few);
    let verdict = e.claims.iter().find(|c| c.id == "9.2").expect("a claim").verdict().clone();
    assert_eq!(verdict, skyhaul_study::claim::Verdict::Undecided { needs_seeds: Some(6) });
}

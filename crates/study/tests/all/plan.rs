//! A study is checked as a whole before anything runs.

use crate::common;

use common::{Fake, STUDY, parse, planned};
use skyhaul_study::plan::plan;

#[test]
fn cells_are_the_product_and_readings_only_add_what_they_change() {
    let p = planned(&Fake::default());
    // 3 loss rates × 2 controls, and Peach once more for each loss rate.
    assert_eq!((p.grid.len(), p.grid[0].len(), p.runs().len()), (2, 6, 9));
    assert_eq!(p.cells().len(), 72);
    assert_eq!(p.grid[0][0], p.grid[1][0], "SACK is not touched by the reading");
    assert_ne!(p.grid[0][1], p.grid[1][1]);
    assert_eq!(p.label(3), "loss = 0.001, cc = Peach");
}

#[test]
fn equal_scenarios_run_once() {
    let text = STUDY.replace(
        "values = [\"sack\", \"peach\"]",
        "values = [\"sack\", { value = \"sack\", label = \"x\" }]",
    );
    let text =
        text.replace("labels = [\"SACK\", \"Peach\"]", "labels = [\"SACK\", \"\"]").replace("Peach\"", "x\"");
    let p = plan(&Fake::default(), parse(&text)).expect("a study");
    assert_eq!(p.grid[0][0], p.grid[0][1]);
}

#[test]
fn what_names_nothing_is_refused_with_file_line_key_and_choice() {
    for (from, to, line, parts) in [
        ("path = \"loss\"", "path = \"lost\"", "path = ", ["axis[0].path", "lost", "cc, loss, recovery"]),
        ("path = \"loss\"", "path = \"seed\"", "path = ", ["axis[0].path", "seed", "seeds = {"]),
        (
            "left = { cc = \"Peach\" }, right",
            "by = nan, left = { cc = \"Peach\" }, right",
            "check = { kind = \"greater\"",
            ["claim[0].check", "by", "finite"],
        ),
        (
            "set = { recovery = \"reno\" }",
            "set = { rec = 1 }",
            "set = ",
            ["reading[0].set", "rec", "recovery"],
        ),
        (
            "only = { cc = \"Peach\" }",
            "only = { cc = \"Pear\" }",
            "only",
            ["reading[0].only", "Pear", "SACK, Peach"],
        ),
        (
            "flow.unique_segments /",
            "flow.segments /",
            "from",
            ["metric[0].from", "segments", "unique_segments"],
        ),
        ("over = \"sum\"", "group = \"x\"", "group", ["metric[0].group", "x", "bulk"]),
        (
            "label = \"Reno recovery\"",
            "label = \"as printed\"",
            "label",
            ["reading[0].label", "name of the default reading", "as_read"],
        ),
        (
            "over = \"sum\"",
            "over = \"per-group\"\n[[metric]]\nname = \"goodput.bulk\"\nfrom = \"1\"",
            "name",
            ["metric[1].name", "two metrics `goodput.bulk`", ""],
        ),
        ("over = \"sum\"\n", "", "[[metric]]", ["metric[0].over", "how are they aggregated", "jain"]),
        (
            "for_each = [\"loss\"]",
            "for_each = [\"los\"]",
            "for_each",
            ["claim[0].for_each", "los", "loss, cc"],
        ),
        ("for_each = [\"loss\"]\n", "", "check", ["claim 1", "`loss` is left open", "at = { loss"]),
        ("metric = \"goodput\", along", "metric = \"good\", along", "check", ["claim 3", "good", "goodput"]),
        ("at = { loss = 0.01 }", "at = { loss = 0.02 }", "at = ", ["claim[1].at", "0.02", "0.01"]),
        ("series = \"cwnd\", relation", "series = \"cwn\", relation", "check", ["claim 5", "cwn", "cwnd"]),
        ("y = \"goodput\"", "y = \"godput\"", "y = ", ["figure[0].y", "godput", "goodput"]),
        (
            "y = \"goodput\"",
            "y = \"goodput\"\nx_metric = \"gain\"",
            "x_metric",
            ["figure[0].x_metric", "gain", "goodput"],
        ),
        (
            "y = \"goodput\"",
            "y = \"goodput\"\ny_scale = \"category\"",
            "y_scale",
            ["figure[0].y_scale", "no categories", "\"log\""],
        ),
        (
            "y = \"goodput\"",
            "y = \"goodput\"\nband = \"ellipse\"",
            "band",
            ["figure[0].band", "two metrics on linear scales", "x_metric"],
        ),
        (
            "y = \"goodput\"",
            "y = \"goodput\"\nx_reverse = true",
            "x_reverse",
            ["figure[0].x_reverse", "only a metric along x", "x_metric"],
        ),
        (
            "values = [0, 1e-3, 0.01]",
            "values = [0, 1e-3, 0.01, -1]",
            "x_scale",
            ["figure[0].x_scale", "`-1` of axis `loss`", "\"category\""],
        ),
        ("at = { loss = 0 }\ntime", "time", "[[figure]]", ["figure[1]", "`loss` is left open", "at = "]),
        (
            "time = { series = \"cwnd\" }",
            "time = { series = \"srtt\" }",
            "time",
            ["figure[1].time", "srtt", "cwnd"],
        ),
        (
            "time = { series = \"cwnd\" }",
            "time = { series = \"cwnd\", group = \"bluk\" }",
            "time",
            ["figure[1].time", "no group `bluk`", "accepted: bulk"],
        ),
        (
            "series = \"cwnd\", relation",
            "series = \"cwnd\", group = \"bluk\", relation",
            "check",
            ["claim 5", "no group `bluk`", "accepted: bulk"],
        ),
        ("id = \"2\"", "id = \"1\"", "[[claim]]", ["claim[1]", "twice", ""]),
        ("window.svg", "fig11.png", "[[figure]]", ["figure[1]", "`fig11` appears twice", ""]),
        (
            "labels = [\"SACK\", \"Peach\"]",
            "labels = [\"SACK\"]",
            "labels",
            ["axis[1].labels", "one label", "2"],
        ),
    ] {
        assert!(STUDY.contains(from), "{from}");
        let text = STUDY.replacen(from, to, 1);
        let e = plan(&Fake::default(), parse(&text)).expect_err(to).to_string();
        assert!(e.starts_with("small.study.toml:"), "{e}");
        for part in parts {
            assert!(e.contains(part), "`{part}` is missing in: {e}");
        }
        let found = e.split(':').nth(1).and_then(|l| l.parse::<usize>().ok()).unwrap_or(0);
        let shown = text.lines().nth(found.wrapping_sub(1)).unwrap_or_default();
        assert!(shown.starts_with(line), "`{shown}` is not where `{line}` is: {e}");
        assert!(!e.contains('\n'), "one line: {e}");
    }
}

#[test]
fn more_cells_than_anybody_meant_are_counted_and_not_made() {
    let axis = |n: usize| {
        let values: Vec<String> = (0..100).map(|i| format!("{{ value = {i} }}")).collect();
        format!("[[axis]]\nname = \"a{n}\"\npath = \"k{n}\"\nvalues = [{}]\n", values.join(", "))
    };
    let study = |axes: usize, head: &str| {
        let axes: String = (0..axes).map(axis).collect();
        parse(&format!("schema = 1\ntitle = \"x\"\nscenario = \"x.toml\"\n{head}\n{axes}"))
    };
    let refused = |file| plan(&Fake::default(), file).expect_err("too many").to_string();
    let e = refused(study(4, "seeds = { count = 10 }"));
    assert!(e.contains("4 axes make 100000000 combinations, 100000000 with all readings"), "{e}");
    assert!(
        e.contains("with 10 seeds each these are 1000000000 cells, more than 200000")
            && e.contains("--max-cells N"),
        "{e}"
    );
    // More than a machine word counts.
    let e = refused(study(11, ""));
    assert!(e.contains("11 axes make over 10^12 combinations"), "{e}");
    let e = refused(study(1, "seeds = { count = 1000000000 }"));
    assert!(e.contains("are 100000000000 cells"), "{e}");
    assert!(refused(study(1, "max_cells = 99\nseeds = { count = 1 }")).contains("more than 99"));
    // The command line has the last word.
    let mut file = study(1, "max_cells = 99\nseeds = { count = 1 }");
    file.max_cells = Some(100);
    let refused = plan(&Fake::default(), file).err().map_or_else(String::new, |e| e.to_string());
    assert!(!refused.contains("cells"), "{refused}");
}

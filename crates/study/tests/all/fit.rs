//! The search over readings finds the reading that made the numbers, within its budget, and always the same.

use crate::common;

use common::{Fake, folder, parse};
use skyhaul_study::cache::Cache;
use skyhaul_study::engine::Simulator;
use skyhaul_study::fit::{Course, Ending, Fitted, fit};
use skyhaul_study::model::{Printed, StudyFile};
use skyhaul_study::run::RunOptions;
use std::path::Path;
use std::sync::atomic::Ordering;

/// The numbers were made with a loss of 5e-3 and Peach's own recovery. SACK tells the loss only, Peach both.
const SEARCH: &str = r#"
schema = 1
title = "Which reading?"
scenario = "fake"
seeds = { first = 1, count = 6 }
let = { per_flow = 0 }

[[axis]]
name = "cc"
path = "cc"
values = ["sack", "peach"]
labels = ["SACK", "Peach"]

[[metric]]
name = "goodput"
from = "flow.unique_segments / run.duration / (1 + let.per_flow)"
over = "sum"

[[metric]]
name = "gain"
from = "metric.goodput / base.goodput"
base = { cc = "SACK" }

[fit]
budget = 1000
finalists = 2
seeds = 4
fresh = 3

[[fit.option]]
name = "recovery"
says = "R1: how"
path = "recovery"
values = ["reno", "sack"]
only = { cc = "Peach" }

[[fit.option]]
name = "loss"
path = "loss"
values = [0, 1e-3, 5e-3, 0.01, 0.02]

[[fit.option]]
name = "goodput"
values = [{ set = {}, label = "of all", let = { per_flow = 0 } }, { set = {}, label = "per flow", let = { per_flow = 1 } }]

[[fit.printed]]
id = "a"
paper = "First"
where = "Fig. 1"
metric = "goodput"
at = { cc = "SACK" }
value = 800

[[fit.printed]]
id = "b"
paper = "Second"
metric = "gain"
at = { cc = "Peach" }
value = 1.4375
weight = 2

[[fit.left_out]]
id = "c"
paper = "First"
says = "1"
why = "it contradicts a"

[[fit.known]]
label = "as it was"
choice = { recovery = "sack", loss = "0.02" }
"#;

/// Readings of all options: 2 recoveries × 5 losses × 2 definitions.
const READINGS: usize = 20;
/// Cells of all readings: 5 losses with SACK, 10 readings of Peach, four seeds each.
const CELLS: usize = 60;

fn ending(runner: &Fake, text: &str, jobs: usize, cache: Option<&Cache>) -> Ending {
    let options = RunOptions { jobs, cache, stop: Some(&runner.stop), ..RunOptions::default() };
    fit(runner, parse(text), &options).expect("a search")
}

fn found(text: &str) -> Fitted {
    complete(ending(&Fake::default(), text, 1, None))
}

fn complete(ending: Ending) -> Fitted {
    match ending {
        Ending::Complete(found) => *found,
        Ending::Stopped { cells } => panic!("stopped with {cells} cells"),
    }
}

#[test]
fn the_reading_that_made_the_numbers_is_found() {
    let f = found(SEARCH);
    assert_eq!((f.course, f.size, f.measured, f.refused), (Course::Grid, 20, READINGS, 0));
    assert_eq!((f.cells, f.seeds, f.fresh), (CELLS, (1, 4), (5, 3)));
    let best = &f.readings[0];
    assert_eq!(best.title(), "recovery: sack; loss: 0.005");
    assert_eq!((best.rank, best.label.as_deref()), (Some(1), None));
    assert!(best.misfit < 0.05 && best.errors.iter().all(|e| e.abs() < 0.07), "{best:?}");
    // Weights 1 and 2.
    let [a, b] = best.errors[..] else { panic!("two numbers") };
    assert!((best.misfit - ((a * a + 2.0 * b * b) / 3.0).sqrt()).abs() < 1e-12);
    // The named reading is measured, too, though it is far off, and the first values.
    let known = f.readings.iter().find(|r| r.label.as_deref() == Some("as it was")).expect("the named one");
    assert!(known.misfit > 0.5 && known.rank > Some(1), "{known:?}");
    assert!(f.readings.iter().any(|r| r.title() == "first values"));
    assert!(f.readings.windows(2).all(|r| r[0].misfit <= r[1].misfit));
}

#[test]
fn what_fits_one_paper_is_tested_on_the_other() {
    let f = found(SEARCH);
    assert_eq!(f.papers, ["First", "Second"]);
    let [first, second, all] = &f.tests[..] else { panic!("{:?}", f.tests) };
    assert_eq!((first.paper.as_deref(), all.paper.as_deref(), all.reading), (Some("First"), None, 0));
    // The number of the first paper says nothing about the recovery: whatever that is, fits.
    let (least, most) = first.open.expect("left open");
    assert!(first.own < 0.05 && least < 0.05 && most > 0.1, "{first:?}");
    let on_second = f.readings[first.reading].of_papers[1];
    assert_eq!(first.others, Some(on_second));
    // The ratio of the second leaves the definition of goodput open, which the first decides.
    let (least, most) = second.open.expect("left open");
    assert!(most > 0.6 && least < most, "{second:?}");
    assert_eq!((second.own, all.others), (f.readings[second.reading].of_papers[1], None));
}

#[test]
fn each_value_has_the_least_misfit_with_it() {
    let f = found(SEARCH);
    let least = |option: usize, value: usize, paper: usize| f.options[option].values[value].least[paper];
    assert_eq!((f.options[0].name.as_str(), f.options[0].says.as_deref()), ("recovery", Some("R1: how")));
    assert_eq!(f.options[1].values[2].label, "0.005");
    assert!(least(0, 1, 0) < least(0, 0, 0), "all papers");
    assert!((least(0, 1, 1) - least(0, 0, 1)).abs() < 1e-12, "the first paper does not know the recovery");
    assert!(least(1, 4, 1) > 1.0 && least(1, 2, 1) < 0.05);
}

#[test]
fn within_a_budget_options_are_changed_one_at_a_time() {
    let of = |budget: usize| found(&SEARCH.replace("budget = 1000", &format!("budget = {budget}")));
    let f = of(CELLS - 1);
    assert!(matches!(f.course, Course::Descent { .. }), "{:?}", f.course);
    assert!(f.cells < CELLS && f.measured < READINGS);
    assert_eq!(f.readings[0].title(), "recovery: sack; loss: 0.005");
    let f = of(20);
    assert_eq!(f.course, Course::Descent { starts: 1, over_budget: true });
    assert!(f.cells <= 20 && f.budget == 20, "{}", f.cells);
    // The limit of the command goes before that of the file.
    let mut file = parse(SEARCH);
    file.max_cells = Some(8);
    let f = complete(fit(&Fake::default(), file, &RunOptions::default()).expect("a search"));
    assert_eq!((f.budget, f.cells), (8, 8));
}

#[test]
fn a_search_is_always_the_same() {
    for text in [SEARCH.to_owned(), SEARCH.replace("budget = 1000", "budget = 40")] {
        let one = found(&text).summary().to_string();
        let many = complete(ending(&Fake::default(), &text, 5, None)).summary().to_string();
        assert_eq!(one, many);
        assert!(one.contains("\"schema\":\"skyhaul.fit/1\"") && one.contains("it contradicts a"), "{one}");
    }
}

#[test]
fn a_search_that_was_stopped_goes_on() {
    for text in [SEARCH.to_owned(), SEARCH.replace("budget = 1000", "budget = 40")] {
        let whole = Fake::default();
        let expected = complete(ending(&whole, &text, 1, None)).summary();
        let cache = Cache::new(folder("fit-cache"));
        let first = Fake { stop_after: 10, ..Fake::default() };
        let stopped = ending(&first, &text, 1, Some(&cache));
        assert!(matches!(stopped, Ending::Stopped { .. }), "{stopped:?}");
        let second = Fake::default();
        let found = complete(ending(&second, &text, 1, Some(&cache)));
        assert_eq!(found.summary(), expected);
        let ran = |f: &Fake| f.ran.load(Ordering::Relaxed);
        // Cells with fresh seeds are in the sum on both sides.
        assert_eq!(ran(&first) + ran(&second), ran(&whole), "no cell runs twice");
    }
}

#[test]
fn what_is_missing_or_contradictory_is_said_in_one_line() {
    let option = "[[fit.option]]\nname = \"recovery\"";
    let (second, rest) = SEARCH.split_once(option).expect("an option");
    let printed = "[[fit.printed]]\nid = \"a\"";
    let without = |from: &str, to: &str| {
        let (start, end) = (SEARCH.find(from).expect(from), SEARCH.find(to).expect(to));
        format!("{}{}", &SEARCH[..start], &SEARCH[end..])
    };
    let no_search = SEARCH[..SEARCH.find("[fit]").expect("a search")].to_owned();
    let no_options = without("[[fit.option]]", "[[fit.printed]]").replace("choice = ", "#");
    let no_numbers = without("[[fit.printed]]", "[[fit.left_out]]");
    let twice = format!("{second}{option}{rest}").replace(
        "[[fit.left_out]]",
        "[[fit.printed]]\nid = \"d\"\npaper = \"Second\"\nmetric = \"goodput\"\nat = { cc = \"SACK\" }\nvalue = 900\n\
         [[fit.left_out]]",
    );
    let changed = |from: &str, to: &str| {
        assert!(SEARCH.contains(from), "{from}");
        SEARCH.replacen(from, to, 1)
    };
    assert!(SEARCH.contains(printed));
    for (text, line, parts) in [
        (no_search, None, ["`fit`", "no search", "[[fit.option]]"]),
        (no_options, Some("[fit]"), ["`fit.option`", "at least one free option", "[[fit.option]]"]),
        (no_numbers, Some("[fit]"), ["`fit.printed`", "at least one printed number", "[[fit.printed]]"]),
        (
            twice,
            Some("at = { cc = \"SACK\" }\nvalue = 900"),
            ["fit.printed[2].at", "`a` is the same metric", "800"],
        ),
        (
            changed("path = \"loss\"", "path = \"recovery\""),
            Some("path = \"recovery\"\nvalues = [0"),
            ["fit.option[1].path", "`recovery` sets `recovery` too", "contradict"],
        ),
        (
            changed("values = [\"reno\", \"sack\"]", "values = [\"reno\"]"),
            Some("values = [\"reno\"]"),
            ["fit.option[0].values", "not free", "two values"],
        ),
        (
            changed("value = 800", "value = -800"),
            Some("value = -800"),
            ["fit.printed[0].value", "logarithms", "above 0"],
        ),
        (
            changed("weight = 2", "weight = 0"),
            Some("weight = 0"),
            ["fit.printed[1].weight", "weight", "left_out"],
        ),
        (changed("id = \"c\"", "id = \"a\""), Some("id = \"a\""), ["fit.printed[0].id", "`a`", "twice"]),
        (
            changed("metric = \"gain\"", "metric = \"gian\""),
            Some("metric = \"gian\""),
            ["fit.printed[1].metric", "gian", "goodput, gain"],
        ),
        (
            changed("at = { cc = \"SACK\" }", ""),
            Some(printed),
            ["fit.printed[0].at", "`cc` is left open", "cc = \"SACK\""],
        ),
        (
            changed("at = { cc = \"SACK\" }", "at = { cc = \"Sack\" }"),
            Some("at = { cc = \"Sack\" }"),
            ["fit.printed[0].at", "no value `Sack`", "SACK, Peach"],
        ),
        (
            changed("let = { per_flow = 1 }", "let = { per_flw = 1 }"),
            Some("values = [{ set"),
            ["fit.option[2].values", "no constant `per_flw`", "let = {"],
        ),
        (
            changed("path = \"loss\"", "path = \"lost\""),
            Some("path = \"lost\""),
            ["fit.option[1].path", "lost", "cc, loss, recovery"],
        ),
        (
            changed("recovery = \"sack\", loss", "recovery = \"tahoe\", loss"),
            Some("choice = "),
            ["fit.known[0].choice", "`recovery` has no value `tahoe`", "reno, sack"],
        ),
        (
            changed("choice = { recovery", "choice = { recovry"),
            Some("choice = "),
            ["fit.known[0].choice", "no free option `recovry`", "recovery, loss, goodput"],
        ),
        (
            changed("fresh = 3", "fresh = 0"),
            Some("fresh = 0"),
            ["fit.fresh", "nothing to report", "1 and more"],
        ),
        (
            changed("seeds = 4", "seeds = 0"),
            Some("seeds = 0"),
            ["fit.seeds", "nothing to report", "1 and more"],
        ),
        (changed("fresh = 3", "frsh = 3"), Some("frsh"), ["frsh", "did you mean", "fresh"]),
    ] {
        let file = StudyFile::parse(&text, Path::new("small.study.toml"));
        let result = file.and_then(|file| fit(&Fake::default(), file, &RunOptions::default()));
        let e = result.map(drop).expect_err(parts[1]).to_string();
        let place = line.map_or_else(String::new, |part| {
            let start = text.find(part).unwrap_or_else(|| panic!("{part} is not in the study"));
            format!(":{}", 1 + text[..start].matches('\n').count())
        });
        assert!(e.starts_with(&format!("small.study.toml{place}: ")), "line of {line:?}: {e}");
        assert!(!e.contains('\n') && parts.iter().all(|p| e.contains(p)), "{parts:?}: {e}");
    }
}

#[test]
fn an_option_that_no_number_needs_is_refused() {
    // Only the goodput of SACK is printed, and the recovery is Peach's.
    let (start, end) =
        (SEARCH.find("[[fit.printed]]\nid = \"b\"").expect("b"), SEARCH.find("[[fit.left").expect("c"));
    let text = format!("{}{}", &SEARCH[..start], &SEARCH[end..]);
    let e = fit(&Fake::default(), parse(&text), &RunOptions::default())
        .map(drop)
        .expect_err("refused")
        .to_string();
    assert!(
        e.contains("fit.option[0].only") && e.contains("no printed number depends on the option `recovery`"),
        "{e}"
    );
    // Nor is a number that no option changes a number to fit.
    let text = SEARCH.replace(
        "name = \"loss\"\npath = \"loss\"",
        "name = \"loss\"\nonly = { cc = \"Peach\" }\npath = \"loss\"",
    );
    let text =
        text.replace("let = { per_flow = 1 } }]", "let = { per_flow = 1 } }]\nonly = { cc = \"Peach\" }");
    let e = fit(&Fake::default(), parse(&text), &RunOptions::default())
        .map(drop)
        .expect_err("refused")
        .to_string();
    assert!(e.contains("fit.printed[0].at") && e.contains("no free option changes `a`"), "{e}");
}

/// Readings of a real control, one combination of which it refuses.
const REAL: &str = r#"
schema = 1
title = "Real"
scenario = "preset:peach-geo"
set = { record = {}, duration = "20 s", "flows.bulk.count" = 2, "links.sat.error.p" = 0.02 }
seeds = { first = 1, count = 2 }
[[metric]]
name = "overhead"
from = "100 * sum(flow.probes_sent) / sum(flow.probes_sent + flow.segments_sent)"
[fit]
fresh = 2
[[fit.option]]
name = "sends"
path = "flows.bulk.cc.final-ack"
values = ["deflate-first", "send-first"]
[[fit.option]]
name = "outstanding"
path = "flows.bulk.cc.nackseg"
values = ["pipe", "flight-size"]
[[fit.printed]]
id = "a"
paper = "A"
metric = "overhead"
value = 17.21
"#;

#[test]
fn combinations_that_a_control_refuses_are_counted_and_values_that_it_never_accepts_are_errors() {
    let simulator = Simulator::new("test");
    let f = complete(fit(&simulator, parse(REAL), &RunOptions::default()).expect("a search"));
    assert_eq!((f.course, f.size, f.measured, f.refused, f.cells), (Course::Grid, 4, 3, 1, 6));
    assert_eq!((f.readings.len(), f.tests.len()), (3, 1), "one paper is not tested on another");
    let text = REAL.replace("[\"pipe\", \"flight-size\"]", "[\"pipe\", \"pype\"]");
    let e = fit(&simulator, parse(&text), &RunOptions::default()).map(drop).expect_err("refused").to_string();
    assert!(
        e.contains("fit.option[0].values") && e.contains("`send-first` is refused"),
        "never with a pipe: {e}"
    );
    let text = REAL.replace("\"flight-size\"]", "\"flight-size\", \"flight\"]");
    let e = fit(&simulator, parse(&text), &RunOptions::default()).map(drop).expect_err("refused").to_string();
    assert!(e.contains("fit.option[1]") && e.contains("flight-size"), "{e}");
}

/// The search of the project's own studies is sound, and names the printed values of the claims on them.
#[test]
fn the_search_over_both_papers_is_sound() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let mut file = StudyFile::read(&root.join("peach-2001/readings-fit.toml")).expect("a study");
    let printed = file.study.fit.as_ref().expect("a search").printed.clone();
    let values: Vec<(&str, f64)> =
        printed.iter().map(|Printed { id, value, .. }| (id.as_str(), *value)).collect();
    assert_eq!(values, [("0.23", 1.3065), ("0.24", 17.21), ("1.5", 1.3024), ("1.8", 1.1803)]);
    // Nothing runs with this budget but the shortest cells of the named readings with one fresh seed.
    file.study.set.0.insert("duration".to_owned(), "2 s".into());
    let fit_of = file.study.fit.as_mut().expect("a search");
    (fit_of.seeds, fit_of.fresh, fit_of.finalists) = (Some(1), 1, 1);
    file.max_cells = Some(40);
    let f = complete(fit(&Simulator::new("test"), file, &RunOptions::default()).expect("a search"));
    assert!(
        matches!(f.course, Course::Descent { over_budget: true, .. }) && f.size == 172_032,
        "{:?}",
        f.course
    );
    let labels: Vec<&str> = f.readings.iter().filter_map(|r| r.label.as_deref()).collect();
    assert!(labels.contains(&"both-papers") && labels.len() == 9, "{labels:?}");
}

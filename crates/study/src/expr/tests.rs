use super::*;
use crate::observed::{Number, Observed, Sampled};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn observed() -> Observed {
    let n = |v: &[f64]| v.iter().copied().map(Number).collect::<Vec<_>>();
    let mut o = Observed::default();
    o.run.insert("duration".into(), Number(10.0));
    o.flows.group = vec!["a".into(), "a".into(), "b".into()];
    o.flows.columns.insert("unique_segments".into(), n(&[100.0, 300.0, 200.0]));
    let quantities = BTreeMap::from([("forward.dropped_error".to_owned(), Number(7.0))]);
    o.links.insert("sat".into(), quantities);
    o.series.push(Sampled {
        name: "cwnd".into(),
        group: "a".into(),
        flow: 0,
        time: n(&[0.0, 1.0, 2.0]),
        value: n(&[1.0, 4.0, 2.0]),
    });
    o
}

fn names() -> Names {
    let s = |v: &[&str]| v.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
    Names {
        flow: s(&["unique_segments", "timeouts"]),
        groups: s(&["a", "b"]),
        link: s(&["forward.dropped_error"]),
        links: s(&["sat"]),
        run: s(&["duration"]),
        series: s(&["cwnd"]),
        constants: s(&["rtt"]),
        metrics: s(&["goodput"]),
        based: true,
    }
}

fn value(text: &str) -> Vec<f64> {
    let e = parse(text).expect(text);
    shape(&e, &names()).expect(text);
    let constants = BTreeMap::from([("rtt".to_owned(), 0.55)]);
    let metrics = BTreeMap::from([("goodput".to_owned(), 60.0)]);
    let base = BTreeMap::from([("goodput".to_owned(), 80.0)]);
    let o = observed();
    let vars = Vars { observed: &o, group: None, constants: &constants, metrics: &metrics, base: &base };
    evaluate(&e, &vars)
}

fn refused(text: &str) -> ExprError {
    match parse(text) {
        Err(e) => e,
        Ok(e) => shape(&e, &names()).expect_err(text),
    }
}

#[test]
fn arithmetic_binds_as_usual() {
    for (text, expected) in [
        ("1 + 2 * 3", 7.0),
        ("(1 + 2) * 3", 9.0),
        ("2 ^ 3 ^ 2", 512.0),
        ("-2 ^ 2", -4.0),
        ("2 ^ -1", 0.5),
        ("10 - 4 - 3", 3.0),
        ("1.5e-3 * 2", 0.003),
        ("let.rtt * (1 + log2(10e6 * let.rtt / 8000))", 5.733_868_747),
        ("metric.goodput / 2", 30.0),
        ("link.sat.forward.dropped_error + 1", 8.0),
        ("max(3, 4)", 4.0),
        ("10000 * packet_loss(1e-5, 1000)", 768.840_228_6),
        ("mathis(1e-2, let.rtt, sqrt(1.5))", 22.268_088_5),
        ("period(2 * 400, 10e6, 256e3, 1000, 40, 0.27)", 1.0),
    ] {
        let got = value(text);
        assert!((got[0] - expected).abs() < 1e-6, "{text}: {got:?}");
    }
}

#[test]
fn closed_forms_take_numbers_and_flows() {
    let per_flow = value("window_limit(flow.unique_segments, let.rtt)");
    assert_eq!(per_flow, [100.0 / 0.55, 300.0 / 0.55, 200.0 / 0.55]);
    assert!(value("pftk(2, let.rtt, 1, 1, 64)")[0].is_nan(), "outside of the domain");
    assert_eq!(
        refused("window_limit(1)").message,
        "`window_limit` takes (window, rtt): rate of one window per RTT, in the unit of the window per second"
    );
    assert!(refused("mathis(1, 2, series.cwnd)").message.contains("not a series"));
    assert!(refused("pfkt(1)").accepted.contains(&"pftk".to_owned()));
}

#[test]
fn flows_are_vectors_until_aggregated() {
    assert_eq!(value("flow.unique_segments / run.duration"), [10.0, 30.0, 20.0]);
    assert_eq!(value("sum(flow.unique_segments) / run.duration"), [60.0]);
    assert_eq!(value("mean(flow[a].unique_segments) / mean(flow[b].unique_segments)"), [1.0]);
    assert_eq!(value("percentile(flow.unique_segments, 50)"), [200.0]);
    assert_eq!(value("count(flow[a].unique_segments)"), [2.0]);
    assert_eq!(value("max(flow.unique_segments, 250)"), [250.0, 300.0, 250.0]);
    assert_eq!(refused("min(1)").message, "`min` takes a value per flow, or two numbers");
}

#[test]
fn the_least_or_greatest_of_a_number_and_none_is_none() {
    for text in ["min(0 / 0, 1)", "min(1, 0 / 0)", "max(0 / 0, 1)", "max(1, 0 / 0)"] {
        assert!(value(text)[0].is_nan(), "{text}");
    }
}

#[test]
fn a_percentile_of_flows_of_which_one_has_no_value_is_none() {
    assert!(value("percentile(0 / (flow.unique_segments - 300), 50)")[0].is_nan());
    assert!(value("percentile(flow.unique_segments, 0 / 0)")[0].is_nan());
}

fn stats_of(values: &[f64]) -> f64 {
    crate::stats::deviation(values) / crate::stats::mean(values)
}

#[test]
fn series_need_a_function() {
    assert_eq!(value("at(series.cwnd, 1.5)"), [4.0]);
    assert_eq!(value("reach(series[a].cwnd, 2)"), [1.0]);
    assert_eq!(value("peak(series.cwnd, 0, 2) - low(series.cwnd, 0, 2)"), [3.0]);
    assert_eq!(value("mean(last(series.cwnd))"), [2.0]);
    assert_eq!(value("average(series.cwnd, 0, 1)"), [2.5]);
    assert_eq!(value("deviation(series.cwnd, 0, 1)"), [1.5]);
    assert_eq!(value("variation(series[a].cwnd, 0, 2, 1)"), [stats_of(&[3.0, -2.0])]);
    // The only flow has all there is, from the first window on; its increase is that of the curve.
    assert_eq!(value("settle(series[a].cwnd, series.cwnd, 0, 1, 0.9, 1)"), [0.0]);
    assert_eq!(value("settle(series[a].cwnd, series.cwnd, 0, 1, 0, 0.5)"), [2.0]);
    assert_eq!(value("regain(series.cwnd, 0, 1, 3)"), [0.0]);
    assert!(refused("settle(series.cwnd, 0, 1, 0, 1)").message.contains("two series and 4 numbers"));
    assert!(refused("regain(series.cwnd, 1)").message.contains("a series and 3 numbers"));
    assert_eq!(refused("reach(series.cwnd)").message, "`reach` takes a series and a number");
    assert_eq!(refused("last(series.cwnd, 1)").message, "`last` takes a series");
    assert!(refused("series.cwnd + 1").message.contains("not a series"));
}

#[test]
fn unknown_names_come_with_the_known_ones() {
    for (text, part, accepted) in [
        ("flow.unique_segment", "quantity of flows `unique_segment`", "unique_segments"),
        ("link.sta.forward.dropped_error", "link `sta`", "sat"),
        ("run.length", "quantity of runs `length`", "duration"),
        ("flow[c].timeouts", "group of flows `c`", "b"),
        ("median(flow.timeouts)", "function `median`", "percentile"),
        ("goodput * 2", "`goodput` is not a quantity", "metric.<name>"),
        ("goodput * 2", "`goodput` is not a quantity", "base.<metric>"),
        ("let.bdp", "constant `bdp`", "rtt"),
    ] {
        let e = refused(text);
        assert!(e.message.contains(part), "{text}: {}", e.message);
        assert!(e.accepted.iter().any(|a| a == accepted), "{text}: {:?}", e.accepted);
    }
}

#[test]
fn broken_texts_are_refused_with_the_place() {
    for text in
        ["", "1 +", "(1", "1 2", "flow.", "flow..x", "sum()", "1..2", "1e", "a b", "#", "sum(1)", "1e999"]
    {
        let e = refused(text);
        assert!(!e.message.is_empty(), "{text}");
    }
    let deep = "(".repeat(5000) + "1" + &")".repeat(5000);
    assert!(refused(&deep).message.contains("deep"));
    assert!(parse(&"1+".repeat(5000)).is_err());
}

#[test]
fn an_expression_has_a_limited_number_of_operators_however_they_are_spread() {
    let terms = |n: usize| format!("1{}", "+1".repeat(n));
    assert_eq!(value(&terms(640)), [641.0]);
    assert!(refused(&terms(641)).message.contains("too long"));
    // Chains of 500 operators, each the first term of the next: a tree of 1000 levels.
    let nested = format!("({}){}", terms(500), "+1".repeat(500));
    assert!(refused(&nested).message.contains("too long"));
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_fall_over(text in "[-+*/^(),.a-z0-9 \\[\\]_eE]{0,80}") {
        if let Ok(e) = parse(&text) {
            let _ = shape(&e, &names());
            let _ = value_without_check(&e);
        }
    }

    #[test]
    fn a_tree_survives_being_written_and_read(tree in tree()) {
        let text = write(&tree);
        prop_assert_eq!(parse(&text).expect("what was written"), tree, "{}", text);
    }
}

fn value_without_check(e: &Expr) -> Vec<f64> {
    let empty = BTreeMap::new();
    let o = observed();
    evaluate(e, &Vars { observed: &o, group: None, constants: &empty, metrics: &empty, base: &empty })
}

fn tree() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        (0u32..100_000).prop_map(|x| Expr::Number(f64::from(x) / 64.0)),
        Just(Expr::Name(Name::Run("duration".into()))),
        Just(Expr::Name(Name::Flow { group: Some("a".into()), quantity: "timeouts".into() })),
    ];
    leaf.prop_recursive(5, 40, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|e| Expr::Negate(Box::new(e))),
            (prop::sample::select(vec!['+', '-', '*', '/', '^']), inner.clone(), inner.clone())
                .prop_map(|(op, a, b)| Expr::Binary(op, Box::new(a), Box::new(b))),
            prop::collection::vec(inner, 1..3).prop_map(|a| Expr::Call("max".into(), a)),
        ]
    })
}

fn write(e: &Expr) -> String {
    match e {
        Expr::Number(x) => format!("{x}"),
        Expr::Name(Name::Run(q)) => format!("run.{q}"),
        Expr::Name(Name::Flow { group: Some(g), quantity }) => format!("flow[{g}].{quantity}"),
        Expr::Name(other) => unreachable!("not generated: {other:?}"),
        Expr::Negate(e) => format!("(-({}))", write(e)),
        Expr::Binary(op, a, b) => format!("(({}) {op} ({}))", write(a), write(b)),
        Expr::Call(f, a) => format!("{f}({})", a.iter().map(write).collect::<Vec<_>>().join(", ")),
    }
}

#[test]
fn a_metric_is_compared_with_its_base() {
    assert_eq!(value("1 - metric.goodput / base.goodput"), [0.25]);
    assert!(refused("base.timeouts").message.contains("earlier metric"));
    let e = parse("base.goodput").expect("parses");
    let error = shape(&e, &Names { based: false, ..names() }).expect_err("no base");
    assert!(error.message.contains("there is none"), "{error}");
}

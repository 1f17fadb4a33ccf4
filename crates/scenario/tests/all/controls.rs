//! Options of the congestion controls outside their domain, and what contradicts the endpoint: one line each that
//! names file, line, key and what to write.

use serde_json::Value;
use skyhaul_cc::NAMES;
use skyhaul_scenario::{resolve_text, scenario_schema};

fn check(cc: &str, endpoint: &str) -> Result<(), String> {
    let text = format!(
        "duration = \"10 s\"\n[links.sat]\nrate = \"10 Mbit/s\"\ndelay = \"275 ms\"\n[flows.bulk]\ncc = {cc}\nendpoint = {endpoint}\n"
    );
    resolve_text("geo.toml", &text, &[], &skyhaul_scenario::no_files).map(|_| ()).map_err(|e| e.to_string())
}
fn refusal(cc: &str) -> String {
    check(cc, "\"rfc\"").expect_err(cc)
}

#[test]
fn every_option_has_its_domain() {
    const FRACTION: &str =
        "beta is the fraction of the window that a loss leaves: between 0 and 1, both excluded";
    const POLE: &str = "pole: the filter is stable and smooths for a pole between 0 and 1, both excluded";
    const POLES: &str = "pole: the filters are stable and smooth for a pole between 0 and 1, both excluded";
    const FAST: &str = "recovery: this control is defined with \"reno\", \"newreno\", \"sack\" or \"prr\"";
    const WINDOW: &str = "initial-window must be from 1 to 1e9 segments";
    const CAP: &str = "probe-cap counts the data segment too: 1 or more, or leave it out";
    const INFLATE: &str = "inflate-ndup must be a number of segments, from 0 to 1e9";
    const DURATION: &str = "probe-rtt-duration must be a number of seconds, 0 or more";
    let cases: &[(&str, &[&str], &str)] = &[
        ("reno", &["inflate-ndup = -1", "inflate-ndup = nan"], INFLATE),
        ("sack", &["initial-window = { segments = 0.5 }", "initial-window = { segments = inf }"], WINDOW),
        (
            "vegas",
            &["alpha = 4", "beta = 0.5", "alpha = -1", "beta = inf"],
            "alpha and beta must be numbers of segments with 0 <= alpha <= beta",
        ),
        ("vegas", &["gamma = -1", "gamma = nan"], "gamma must be a number of segments, 0 or more"),
        (
            "vegas",
            &["recovery = \"tahoe\""],
            "recovery: TCP Vegas is defined with \"reno\", \"newreno\", \"sack\" or \"prr\"",
        ),
        ("vegas", &["initial-window = { segments = 0 }"], WINDOW),
        (
            "bbr",
            &["min-rtt-window = 0", "min-rtt-window = inf"],
            "min-rtt-window must be a positive number of seconds",
        ),
        ("bbr", &["probe-rtt-duration = -0.1"], DURATION),
        ("bbr", &["initial-window = { segments = 0 }"], WINDOW),
        ("bbr3", &["min-rtt-window = 0"], "min-rtt-window must be a positive number of seconds"),
        (
            "bbr3",
            &["probe-rtt-interval = 0", "probe-rtt-interval = 20", "probe-rtt-interval = nan"],
            "probe-rtt-interval must be a positive number of seconds, at most min-rtt-window",
        ),
        ("bbr3", &["probe-rtt-duration = -1"], DURATION),
        ("bbr3", &["loss-threshold = 0", "loss-threshold = 2"], "loss-threshold must lie between 0 and 1"),
        (
            "bbr3",
            &["beta = 1", "beta = 0"],
            "beta must lie between 0 and 1: the part of the window that is kept",
        ),
        ("bbr3", &["headroom = 1", "headroom = -0.1"], "headroom must lie between 0 and 1, or be 0"),
        ("bbr3", &["startup-losses = 0"], "startup-losses is a number of gaps, at least 1"),
        ("bbr3", &["initial-window = { segments = nan }"], WINDOW),
        ("gaimd", &["beta = 1", "beta = 0", "beta = 1.5", "beta = nan"], FRACTION),
        (
            "gaimd",
            &["alpha = 0", "alpha = -1", "alpha = inf"],
            "alpha is the growth in segments per RTT: above 0, at most 1e9",
        ),
        ("gaimd", &["recovery = \"tahoe\""], FAST),
        ("westwood", &["pole = 0", "pole = 1", "pole = nan"], POLE),
        ("westwood", &["tau = 0", "tau = inf"], "tau is a time constant in seconds, from 0.001 to 1e6"),
        ("westwood", &["most-per-ack = 0.5"], "most-per-ack must be at least 1 segment"),
        ("westwood", &["recovery = \"tahoe\""], FAST),
        ("westwood-plus", &["pole = 1", "pole = -0.5"], POLE),
        ("westwood-plus", &["recovery = \"tahoe\""], FAST),
        (
            "westwood-abse",
            &["gain = 0", "gain = 1"],
            "gain: the means are stable and smooth for a gain between 0 and 1, both excluded",
        ),
        ("westwood-abse", &["n = -1", "n = nan"], "n is a number of RTTs, from 0 to 1e6"),
        ("westwood-abse", &["recovery = \"tahoe\""], FAST),
        (
            "tcp-probing",
            &["tolerance = -0.1", "tolerance = nan"],
            "tolerance is a share of the round trip, 0 or more",
        ),
        ("tcp-probing", &["cycles = 0"], "cycles: at least 1 has to be tried"),
        ("tcp-probing", &["recovery = \"tahoe\""], FAST),
        ("tibet", &["pole = 1", "pole = 0"], POLES),
        ("tibet", &["t0 = 0", "t0 = -1"], "t0 is a time constant in seconds, above 0 and at most 1e6"),
        ("tibet", &["recovery = \"tahoe\""], FAST),
        (
            "hybla",
            &["rtt0-ms = 0", "rtt0-ms = -25"],
            "rtt0-ms is the reference RTT in milliseconds, at least 0.001",
        ),
        (
            "hybla",
            &["most-rho = 0", "most-rho = 65", "most-rho = nan"],
            "most-rho is an exponent of two between 1 (slow start of Reno) and 64",
        ),
        ("hybla", &["recovery = \"tahoe\""], FAST),
        ("cubic", &["c = 0", "c = -0.4"], "c is the aggressiveness of the curve, a number above 0"),
        ("cubic", &["beta = 1", "beta = nan"], FRACTION),
        ("cubic", &["recovery = \"tahoe\""], FAST),
        ("fast-start", &["cached-window = 0"], "cached-window must be from 1 to 1e9 segments"),
        (
            "fast-start",
            &["cached-window = 9, cached-ssthresh = 0"],
            "cached-ssthresh must be from 1 to 1e9 segments",
        ),
        (
            "fast-start",
            &["cached-ssthresh = 9"],
            "cached-ssthresh needs cached-window: write both, in segments",
        ),
        ("fast-start", &["recovery = \"tahoe\""], FAST),
        ("peach", &["inflate-ndup = -1"], INFLATE),
        ("peach", &["probe-cap = 0"], CAP),
        (
            "peach",
            &["recovery = \"tahoe\""],
            "recovery: TCP-Peach is defined with \"reno\", \"newreno\" or \"sack\"",
        ),
        (
            "peach",
            &["recovery = \"reno\", nackseg = \"pipe\""],
            "nackseg = \"pipe\" needs the scoreboard of recovery = \"sack\"",
        ),
        ("peach-plus", &["probe-cap = 0"], CAP),
    ];
    for (name, wrong, sentence) in cases {
        for options in *wrong {
            let got = refusal(&format!("{{ name = \"{name}\", {options} }}"));
            assert_eq!(got, format!("geo.toml:6: flows.bulk.cc: {sentence}"), "{name}: {options}");
        }
    }
}

/// The numeric options of each control, as the schema lists them.
fn numbers(value: &Value, found: &mut Vec<(String, String)>) {
    if let Some(name) = value.pointer("/properties/name/const").and_then(Value::as_str) {
        let properties = value["properties"].as_object().expect("a table");
        let number = |v: &Value| v.to_string().contains("\"number\"");
        found.extend(
            properties.iter().filter(|(_, v)| number(&v["type"])).map(|(k, _)| (name.into(), k.clone())),
        );
    }
    match value {
        Value::Object(fields) => fields.values().for_each(|v| numbers(v, found)),
        Value::Array(items) => items.iter().for_each(|v| numbers(v, found)),
        _ => {}
    }
}

#[test]
fn no_numeric_option_takes_what_is_no_number() {
    let mut found = Vec::new();
    numbers(&scenario_schema(), &mut found);
    // Whoever adds an option is reminded by the controls that have none.
    assert!(found.len() >= 25 && found.iter().all(|(name, _)| NAMES.contains(&name.as_str())), "{found:?}");
    for (name, option) in found {
        for value in ["nan", "inf", "-inf", "-1", "-1e300"] {
            let got = refusal(&format!("{{ name = \"{name}\", {option} = {value} }}"));
            assert!(got.starts_with("geo.toml:6: flows.bulk.cc: "), "{got}");
            assert!(got.contains(&option), "{name}.{option} = {value}: {got}");
        }
    }
}

#[test]
fn unknown_controls_and_the_nearest() {
    for (wrong, nearest) in
        [("newvegas", "vegas"), ("peech", "peach"), ("bbr2", "bbr"), ("westwod+", "westwood")]
    {
        let got = refusal(&format!("\"{wrong}\""));
        let want = format!(
            "geo.toml:6: flows.bulk.cc: \"{wrong}\" is not a congestion control, did you mean \"{nearest}\"? (known: "
        );
        assert!(got.starts_with(&want), "{got}");
        assert!(got.contains("bbr3") && got.contains("peach-plus"), "{got}");
        let table = refusal(&format!("{{ name = \"{wrong}\" }}"));
        assert!(table.contains(&format!("did you mean \"{nearest}\"?")), "{table}");
    }
    // Nothing near: no guess.
    let got = refusal("\"datagrams\"");
    assert!(
        got.starts_with("geo.toml:6: flows.bulk.cc: \"datagrams\" is not a congestion control (known: "),
        "{got}"
    );
}

#[test]
fn what_needs_the_scoreboard_is_refused_without_selective_acknowledgements() {
    let without = "{ preset = \"rfc\", sack = false }";
    let needs = [
        ("\"sack\"", "sack"),
        ("\"prr\"", "prr"),
        ("\"bbr\"", "bbr"),
        ("\"bbr3\"", "bbr3"),
        ("\"cubic\"", "cubic"),
        ("\"peach\"", "peach"),
        ("{ name = \"peach\", recovery = \"sack\" }", "peach"),
        ("\"peach-plus\"", "peach-plus"),
        ("{ name = \"westwood\", recovery = \"prr\" }", "westwood"),
    ];
    for (cc, name) in needs {
        let want = format!(
            "geo.toml:7: flows.bulk.endpoint.sack: false, but cc = \"{name}\" needs selective acknowledgements to \
             repair losses: write sack = true, recovery = \"newreno\" in cc if \"{name}\" has that option, \
             or cc = \"newreno\""
        );
        assert_eq!(check(cc, without), Err(want));
        for with in ["\"rfc\"", "{ preset = \"rfc\", sack = true }"] {
            assert_eq!(check(cc, with), Ok(()), "{cc}");
        }
    }
    for cc in [
        "\"tahoe\"",
        "\"reno\"",
        "\"newreno\"",
        "\"vegas\"",
        "\"westwood\"",
        "{ name = \"peach\", recovery = \"reno\" }",
    ] {
        assert_eq!(check(cc, without), Ok(()), "{cc}");
    }
}

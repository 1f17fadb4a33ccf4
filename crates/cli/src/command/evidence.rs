//! What `skyhaul gateway evidence` and the status of a gateway print of observed connections and tested paths.

use serde_json::Value;
use skyhaul_lab::text::{Grid, bit_rate, percent, seconds};
use std::fmt::Write;

fn number(v: &Value) -> f64 {
    v.as_f64().unwrap_or(f64::NAN)
}
fn text(v: &Value) -> &str {
    v.as_str().unwrap_or("?")
}
fn items(v: &Value) -> &[Value] {
    v.as_array().map_or(&[], Vec::as_slice)
}

/// A time or a goodput, with its unit.
fn amount(of: &str, value: f64) -> String {
    if of == "goodput" { bit_rate(value) } else { seconds(value) }
}

/// A number of things, in the singular if it is one.
fn how_many(n: &Value, one: &str) -> String {
    format!("{n} {one}{}", if *n == 1 { "" } else { "s" })
}

/// The state of the measurements.
pub(super) fn page(v: &Value) -> String {
    if v.is_null() {
        return "no connections are observed: write [evidence] with mode = \"shadow\" or \"ab\" into the gateway's file\n".into();
    }
    let mut out = match text(&v["mode"]) {
        "shadow" => "shadow: connections are measured, none is split\n".to_owned(),
        _ => {
            let arms: Vec<_> = items(&v["arms"]).iter().map(text).collect();
            let share = percent(number(&v["fraction"]));
            format!(
                "A/B: {share} of new connections {}, the others {}\n",
                arms[0],
                arms.get(1).unwrap_or(&"?")
            )
        }
    };
    let _ = write!(out, "{} observed now", how_many(&v["open"], "connection"));
    for (what, of, one) in [
        ("not observed, since there were too many", "unobserved", "connection"),
        ("not observed, since they came too fast", "missed", "packet"),
        ("in prefixes that are not listed", "unlisted", "connection"),
    ] {
        if v[of] != 0 {
            let _ = write!(out, "; {what}: {}", how_many(&v[of], one));
        }
    }
    out.push('\n');
    items(&v["groups"]).iter().for_each(|g| group(&mut out, g));
    if items(&v["arms"]).len() > 1 {
        out += "\nratio: how many times as good the first arm is. Of times: those of the second arm divided by those of the first.\n\
                at any time: holds whenever you look. pointwise: holds only at a moment that was fixed in advance.\n\
                Each interval is right with a probability of 95 %: among 20 of them, one may be wrong.\n";
    }
    out
}

fn group(out: &mut String, g: &Value) {
    let of = text(&g["of"]);
    let _ = writeln!(out, "\n{}", if of == "all" { "all connections" } else { of });
    let mut ends = Grid::new(&[
        "arm",
        "finished",
        "reset",
        "silent",
        "unanswered",
        "not as its arm",
        "to hosts",
        "seen again",
    ]);
    let mut typical =
        Grid::new(&["geometric mean", "bytes to hosts", "arm", "connections", "value", "95 % interval"]);
    typical = typical.left(1).left(2).left(5);
    let mut any = false;
    for a in items(&g["arms"]) {
        let bytes = number(&a["bytes-to-hosts"]);
        let all = (bytes + number(&a["bytes-to-link"])).max(1.0);
        let mut row = vec![text(&a["arm"]).to_owned()];
        row.extend(["finished", "reset", "silent", "unanswered", "crossed"].map(|key| a[key].to_string()));
        row.extend([format!("{:.1} MB", bytes / 1e6), percent(number(&a["bytes-again"]) / all)]);
        ends.row(row);
        for t in items(&a["typical"]) {
            any = true;
            let of = text(&t["of"]);
            let [value, low, high] = ["value", "low", "high"].map(|key| amount(of, number(&t[key])));
            typical.row(vec![
                of.into(),
                text(&t["class"]).into(),
                text(&a["arm"]).into(),
                t["n"].to_string(),
                value,
                format!("{low} to {high}"),
            ]);
        }
    }
    out.push_str(&ends.lines(2));
    if any {
        out.push('\n');
        out.push_str(&typical.lines(2));
    }
    let compared = items(&g["comparisons"]);
    if !compared.is_empty() {
        let mut ratios = Grid::new(&[
            "ratio",
            "bytes to hosts",
            "connections",
            "estimate",
            "at any time",
            "one moment",
            "verdict",
        ]);
        ratios = ratios.left(1).left(6);
        for c in compared {
            let range = |of: &Value| format!("{:.3} to {:.3}", number(&of[0]), number(&of[1]));
            ratios.row(vec![
                text(&c["of"]).into(),
                text(&c["class"]).into(),
                format!("{} and {}", c["n"][0], c["n"][1]),
                format!("{:.3}", number(&c["ratio"])),
                range(&c["lasting"]),
                range(&c["pointwise"]),
                text(&c["verdict"]).into(),
            ]);
        }
        out.push('\n');
        out.push_str(&ratios.lines(2));
    }
    let f = &g["finished"];
    if !f.is_null() {
        let [difference, low, high] = ["difference", "low", "high"].map(|key| 100.0 * number(&f[key]));
        let _ = writeln!(
            out,
            "\n  share that finished: {difference:+.1} percentage points in the first arm ({low:+.1} to {high:+.1} pointwise)"
        );
    }
}

/// Lines of a status: a summary of the measurements, and tested paths.
pub(super) fn summary(status: &Value) -> String {
    let mut out = String::new();
    let e = &status["evidence"];
    if !e.is_null() {
        let all = &e["groups"][0];
        let counts: Vec<_> = items(&all["arms"])
            .iter()
            .map(|a| format!("{} finished {}", text(&a["arm"]), a["finished"]))
            .collect();
        let _ = write!(out, "evidence ({})  {}", text(&e["mode"]), counts.join("  "));
        let c = items(&all["comparisons"]).iter().find(|c| c["of"] == "transfer time" && c["class"] == "all");
        if let Some(c) = c {
            let _ = write!(
                out,
                "  transfers {:.2} times as fast, {:.2} to {:.2}: {}",
                number(&c["ratio"]),
                number(&c["lasting"][0]),
                number(&c["lasting"][1]),
                text(&c["verdict"])
            );
        }
        out.push('\n');
    }
    let p = &status["priority"];
    if !p.is_null() {
        let fallback = text(&p["fallback"]);
        let paths = items(&p["paths"]);
        if paths.is_empty() {
            let _ = writeln!(out, "low priority: no path is tested yet: connections use {fallback}");
        }
        for path in paths {
            let c = &path["last"]["counts"];
            let _ = writeln!(
                out,
                "low priority  gateway {:08x}  {}  tested {:.0} s ago: low second in {} of {} pairs, low lost in {} of {}  {}{}",
                path["gateway"].as_u64().unwrap_or(0),
                text(&path["verdict"]),
                number(&path["age"]),
                c["low-second"],
                c["pairs"],
                c["low-lost"],
                c["broken"],
                if path["trusted"] == true {
                    "trusted".into()
                } else {
                    format!("connections use {fallback}")
                },
                path["last"]["why"].as_str().map_or(String::new(), |why| format!(": {why}"))
            );
        }
    }
    out
}

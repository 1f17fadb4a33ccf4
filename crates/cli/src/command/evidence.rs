//! What `skyhaul gateway evidence` and the status of a gateway print of observed connections and tested paths.

use serde_json::Value;
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
    match value {
        v if of == "goodput" => format!("{:.3} Mbit/s", v / 1e6),
        v if v < 1.0 => format!("{:.1} ms", v * 1e3),
        v => format!("{v:.3} s"),
    }
}

/// The state of the measurements.
pub(super) fn page(v: &Value) -> String {
    if v.is_null() {
        return "no connections are observed: write [evidence] with mode = \"shadow\" or \"ab\"\n".into();
    }
    let mut out = match text(&v["mode"]) {
        "shadow" => "shadow: connections are measured, none is split\n".to_owned(),
        _ => {
            let arms: Vec<_> = items(&v["arms"]).iter().map(text).collect();
            format!(
                "A/B: {} of new connections {}, the rest {}\n",
                v["fraction"],
                arms[0],
                arms.get(1).unwrap_or(&"?")
            )
        }
    };
    let _ = writeln!(
        out,
        "observed now {}  not observed {}  prefix not listed {}  packets missed {}",
        v["open"], v["unobserved"], v["unlisted"], v["missed"]
    );
    items(&v["groups"]).iter().for_each(|g| group(&mut out, g));
    if items(&v["arms"]).len() > 1 {
        out += "\nratio: how many times as good the first arm is (times: the second's divided by the first's), geometric mean.\n\
                At any time: valid whenever you look. Pointwise: valid only at one moment that was fixed in advance.\n\
                Each interval is one statement with 95 %: among 20 of them, one may be wrong.\n";
    }
    out
}

fn group(out: &mut String, g: &Value) {
    let _ = writeln!(out, "\n{}", text(&g["of"]));
    for a in items(&g["arms"]) {
        let _ = writeln!(
            out,
            "  {:<10} finished {}  reset {}  silent {}  unanswered {}  treated otherwise {}  MB to hosts {:.1}  seen again {:.2} %",
            text(&a["arm"]),
            a["finished"],
            a["reset"],
            a["silent"],
            a["unanswered"],
            a["crossed"],
            number(&a["bytes-to-hosts"]) / 1e6,
            100.0 * number(&a["bytes-again"])
                / (number(&a["bytes-to-hosts"]) + number(&a["bytes-to-link"])).max(1.0),
        );
        for t in items(&a["typical"]) {
            let of = text(&t["of"]);
            let _ = writeln!(
                out,
                "    {:<19} {:<16} {:>6} of them: {} ({} to {})",
                of,
                text(&t["class"]),
                t["n"],
                amount(of, number(&t["value"])),
                amount(of, number(&t["low"])),
                amount(of, number(&t["high"]))
            );
        }
    }
    for c in items(&g["comparisons"]) {
        let _ = writeln!(
            out,
            "  ratio {:<19} {:<16} {:>8.3}  at any time {:.3} to {:.3}  pointwise {:.3} to {:.3}  {}",
            text(&c["of"]),
            text(&c["class"]),
            number(&c["ratio"]),
            number(&c["lasting"][0]),
            number(&c["lasting"][1]),
            number(&c["pointwise"][0]),
            number(&c["pointwise"][1]),
            text(&c["verdict"])
        );
    }
    let f = &g["finished"];
    if !f.is_null() {
        let _ = writeln!(
            out,
            "  share finished: {:+.1} percentage points in the first arm (pointwise {:+.1} to {:+.1})",
            100.0 * number(&f["difference"]),
            100.0 * number(&f["low"]),
            100.0 * number(&f["high"])
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
            let _ = writeln!(out, "low priority  no path is tested yet: connections use {fallback}");
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

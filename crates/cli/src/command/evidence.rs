//! What `skyhaul gateway evidence` and the status of a gateway print of observed connections and tested paths.

use skyhaul_gateway::evidence::{ArmReport, Evidence, Group, Mode};
use skyhaul_gateway::status::Status;
use skyhaul_lab::text::{Grid, bit_rate, percent, seconds};
use std::fmt::Write;

/// A value with its unit: a rate if `of` is "goodput", otherwise a time.
fn amount(of: &str, value: f64) -> String {
    if of == "goodput" { bit_rate(value) } else { seconds(value) }
}

/// A number with its noun: `one` in the singular, with an s otherwise.
fn how_many(n: u64, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}

/// What columns of the table of ratios mean.
const LEGEND: [(&str, &str); 3] = [
    (
        "ratio",
        "how many times as good the first arm is. Of times: those of the second arm divided by those of the first.",
    ),
    ("at any time", "holds whenever you look."),
    ("pointwise", "holds only at a moment that was fixed in advance."),
];

/// The text of `skyhaul gateway evidence`.
pub(super) fn page(observed: Option<&Evidence>) -> String {
    let Some(e) = observed else {
        return "no connections are observed: write [evidence] with mode = \"shadow\" or \"ab\" into the gateway's file\n".into();
    };
    let mut out = if e.mode == Mode::Shadow {
        "shadow: connections are measured, none is split\n".to_owned()
    } else {
        let arm = |n: usize| e.arms.get(n).map_or("?", |arm| arm.as_ref());
        format!("A/B: {} of new connections {}, the others {}\n", percent(e.fraction), arm(0), arm(1))
    };
    let _ = write!(out, "{} observed now", how_many(e.open as u64, "connection"));
    for (what, n, one) in [
        ("not observed, since there were too many", e.unobserved, "connection"),
        ("not observed, since they came too fast", e.missed, "packet"),
        ("in prefixes that are not listed", e.unlisted, "connection"),
    ] {
        if n != 0 {
            let _ = write!(out, "; {what}: {}", how_many(n, one));
        }
    }
    out.push('\n');
    e.groups.iter().for_each(|g| group(&mut out, g));
    if e.arms.len() > 1 {
        out.push('\n');
        for (column, meaning) in LEGEND {
            let _ = writeln!(out, "{column}: {meaning}");
        }
        out += "Each interval is right with a probability of 95 %: among 20 of them, one may be wrong.\n";
    }
    out
}

/// The tables of a group of connections.
fn group(out: &mut String, g: &Group) {
    let _ = writeln!(out, "\n{}", if g.of == "all" { "all connections" } else { &g.of });
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
    let mut has_means = false;
    for ArmReport { arm, ended, typical: means } in &g.arms {
        let bytes = ended.bytes_to_hosts as f64;
        let all = (bytes + ended.bytes_to_link as f64).max(1.0);
        let counts = [ended.finished, ended.reset, ended.silent, ended.unanswered, ended.crossed];
        let mut row = vec![arm.to_string()];
        row.extend(counts.map(|n| n.to_string()));
        row.extend([format!("{:.1} MB", bytes / 1e6), percent(ended.bytes_again as f64 / all)]);
        ends.row(row);
        for t in means {
            has_means = true;
            let [value, low, high] = [t.value, t.low, t.high].map(|x| amount(&t.of, x));
            typical.row(vec![
                t.of.to_string(),
                t.class.to_string(),
                arm.to_string(),
                t.n.to_string(),
                value,
                format!("{low} to {high}"),
            ]);
        }
    }
    out.push_str(&ends.lines(2));
    if has_means {
        out.push('\n');
        out.push_str(&typical.lines(2));
    }
    if !g.comparisons.is_empty() {
        let mut ratios = Grid::new(&[
            "ratio",
            "bytes to hosts",
            "connections",
            "estimate",
            "at any time",
            "pointwise",
            "verdict",
        ]);
        ratios = ratios.left(1).left(6);
        for c in &g.comparisons {
            let range = |[low, high]: [f64; 2]| format!("{low:.3} to {high:.3}");
            let [first, second] = c.n;
            ratios.row(vec![
                c.of.to_string(),
                c.class.to_string(),
                format!("{first} and {second}"),
                format!("{:.3}", c.ratio),
                range(c.lasting),
                range(c.pointwise),
                c.verdict.name().into(),
            ]);
        }
        out.push('\n');
        out.push_str(&ratios.lines(2));
    }
    if let Some(f) = &g.finished {
        let [difference, low, high] = [f.difference, f.low, f.high].map(|share| 100.0 * share);
        let _ = writeln!(
            out,
            "\n  share that finished: {difference:+.1} percentage points in the first arm ({low:+.1} to {high:+.1} pointwise)"
        );
    }
}

/// Lines of a status: a summary of the measurements, and tested paths.
pub(super) fn summary(status: &Status) -> String {
    let mut out = String::new();
    if let Some((e, all)) = status.evidence.as_ref().and_then(|e| Some((e, e.groups.first()?))) {
        let counts: Vec<_> =
            all.arms.iter().map(|a| format!("{} finished {}", a.arm, a.ended.finished)).collect();
        let _ = write!(out, "evidence ({})  {}", e.mode.name(), counts.join("  "));
        let c = all.comparisons.iter().find(|c| c.of == "transfer time" && c.class == "all");
        if let Some(c) = c {
            let [low, high] = c.lasting;
            let (ratio, verdict) = (c.ratio, c.verdict.name());
            let _ = write!(out, "  transfers {ratio:.2} times as fast, {low:.2} to {high:.2}: {verdict}");
        }
        out.push('\n');
    }
    if let Some(p) = &status.priority {
        let fallback = &p.fallback;
        if p.paths.is_empty() {
            let _ = writeln!(out, "low priority: no path is tested yet: connections use {fallback}");
        }
        for path in &p.paths {
            let c = &path.last.counts;
            let verdict = path.verdict.name();
            let _ = writeln!(
                out,
                "low priority  gateway {:08x}  {verdict}  tested {:.0} s ago: low second in {} of {} pairs, low lost in {} of {}  \
                 {}{}",
                path.gateway,
                path.age,
                c.low_second,
                c.pairs,
                c.low_lost,
                c.broken,
                if path.trusted { "trusted".into() } else { format!("connections use {fallback}") },
                path.last.why.as_ref().map_or(String::new(), |why| format!(": {why}"))
            );
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_gateway::evidence::{Comparison, Verdict};

    #[test]
    fn the_legend_explains_columns_that_are_there() {
        let comparison = Comparison {
            of: "transfer time".into(),
            class: "all".into(),
            n: [53, 67],
            ratio: 1.5,
            pointwise: [1.4, 1.6],
            lasting: [1.3, 1.7],
            verdict: Verdict::Better,
        };
        let group =
            Group { of: "all".into(), arms: Vec::new(), comparisons: vec![comparison], finished: None };
        let e = Evidence {
            mode: Mode::Ab,
            arms: vec!["split".into(), "unsplit".into()],
            fraction: 0.5,
            open: 0,
            unobserved: 0,
            unlisted: 0,
            missed: 0,
            prefixes: 0,
            groups: vec![group],
        };
        let text = page(Some(&e));
        let header = text.lines().find(|l| l.contains("estimate")).expect("a table of ratios");
        for (column, _) in LEGEND {
            assert!(header.contains(column), "{column} is not a column of {header:?}");
            assert!(text.lines().any(|l| l.starts_with(&format!("{column}: "))), "{text}");
        }
    }
}

//! Display of a comparison.

use super::{Compared, Difference, REQUIREMENTS, Results, Status};
use crate::text::Grid;
use serde_json::{Value, json};
use skyhaul_study::format;
use std::fmt::Write as _;

/// Largest number of lines per list of a study (metrics, items only in A or B); further ones are only counted.
const MOST: usize = 20;

/// The comparison as text.
#[must_use]
pub fn text(left: &Results, right: &Results, all: &[Compared]) -> String {
    let mut out = String::new();
    for (name, r) in [("A", left), ("B", right)] {
        let (path, kind, engine, profile) = (r.path.display(), r.kind.word(), &r.engine, &r.profile);
        let of = r.control.as_ref().map_or_else(String::new, |c| format!(" of {c}"));
        let _ = writeln!(out, "{name}  {path}: {kind}{of}, engine {engine}, {profile} profile");
    }
    // Requirements come first: an evaluation is about them.
    let (requirements, studies): (Vec<&Compared>, Vec<&Compared>) =
        all.iter().partition(|c| c.name == REQUIREMENTS);
    for c in &requirements {
        let _ = writeln!(out, "\n{REQUIREMENTS}");
        if c.verdicts.is_empty() {
            out.push_str("  all verdicts are the same\n");
        }
        for (requirement, l, r) in &c.verdicts {
            let _ = writeln!(out, "  {requirement}: {l} → {r}");
        }
    }
    for c in studies.iter().filter(|c| !c.is_equal() || all.len() == 1 || !c.differences.is_empty()) {
        if !c.name.is_empty() {
            let _ = writeln!(out, "\n{}", c.name);
        } else {
            out.push('\n');
        }
        let mut certain: Vec<&Difference> = c.certain().collect();
        // Metrics of all flows come first, those of single flows of a run last.
        certain.sort_by_key(|d| d.metric.starts_with("flows."));
        let count = |status| c.differences.iter().filter(|d| d.status == status).count();
        let (within, unknown) = (count(Status::Within), count(Status::Unknown));
        let _ = writeln!(
            out,
            "  {} metrics identical, {within} equal within intervals, {} different",
            c.identical,
            certain.len()
        );
        if unknown > 0 {
            let _ = writeln!(out, "  {unknown} without an interval: one seed on each side, and not the same");
        }
        let reading = common(certain.iter().map(|d| d.cell.split(", ").next().unwrap_or_default()));
        let reading = reading.filter(|r| r.starts_with("reading = "));
        let cell = |d: &Difference| match reading {
            Some(same) if d.cell.len() > same.len() => d.cell[same.len() + 2..].to_owned(),
            Some(_) => String::new(),
            None => d.cell.clone(),
        };
        if !certain.is_empty() {
            let mut grid = Grid::new(&["cell", "metric", "A", "B", "B − A"]).left(1);
            for d in certain.iter().take(MOST) {
                let number = |x: f64| format::number(x);
                let row = [cell(d), d.metric.clone(), number(d.left), number(d.right)];
                let row = row.into_iter().chain([format::estimate(&d.difference)]);
                grid.row(row.collect());
            }
            out.push_str(&grid.lines(4));
            more(&mut out, certain.len());
        }
        for (side, list) in [("A", &c.only_left), ("B", &c.only_right)] {
            for what in list.iter().take(MOST) {
                let _ = writeln!(out, "  only in {side}: {what}");
            }
            more(&mut out, list.len());
        }
        let reading =
            common(c.verdicts.iter().map(|(claim, ..)| claim.rsplit(" (").next().unwrap_or_default()));
        for (claim, l, r) in &c.verdicts {
            let claim = reading.and_then(|r| claim.strip_suffix(r)?.strip_suffix(" (")).unwrap_or(claim);
            let _ = writeln!(out, "  claim {claim}: {l} → {r}");
        }
    }
    let verdicts = requirements.iter().map(|c| c.verdicts.len()).sum::<usize>();
    let differ = studies.iter().filter(|c| !c.is_equal()).count();
    let verdict = match (differ, studies.len()) {
        (0, _) if verdicts > 0 => "Only verdicts differ.".to_owned(),
        (0, _) if all.iter().all(|c| c.differences.is_empty()) => "Identical.".to_owned(),
        (0, _) if all.iter().any(|c| c.differences.iter().any(|d| d.status == Status::Unknown)) => {
            "No difference is significant; more seeds may decide.".to_owned()
        }
        (0, _) => "Equal within intervals.".to_owned(),
        (_, 1) if requirements.is_empty() => "Different.".to_owned(),
        (n, total) if requirements.is_empty() => format!("{n} of {total} studies are different."),
        (n, total) => {
            let word = if verdicts == 1 { "verdict" } else { "verdicts" };
            format!("{verdicts} {word} on requirements and {n} of {total} cases are different.")
        }
    };
    let _ = writeln!(out, "\n{verdict}");
    out
}

/// The text, if all are the same.
fn common<'a>(mut all: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let first = all.next()?;
    all.all(|other| other == first).then_some(first)
}

/// Says how many of `n` lines were left out.
fn more(out: &mut String, n: usize) {
    if n > MOST {
        let _ = writeln!(out, "    and {} more (--json has all)", n - MOST);
    }
}

/// Everything that is not identical, as JSON.
#[must_use]
pub fn json(left: &Results, right: &Results, all: &[Compared]) -> Value {
    let side = |r: &Results| {
        let mut side = json!({ "path": r.path, "engine": r.engine, "profile": r.profile });
        if let Some(control) = &r.control {
            side["control"] = json!(control);
        }
        side
    };
    let number = |x: f64| if x.is_finite() { json!(x) } else { Value::Null };
    let difference = |d: &Difference| {
        json!({
            "cell": d.cell,
            "metric": d.metric,
            "a": number(d.left),
            "b": number(d.right),
            "difference": number(d.difference.mean),
            "ci95": number(d.difference.half),
            "n": d.difference.n,
            "paired": d.paired,
            "status": match d.status {
                Status::Within => "within",
                Status::Unknown => "unknown",
                Status::Different => "different",
            },
        })
    };
    let one = |c: &Compared| {
        let verdict = |(claim, a, b): &(String, String, String)| json!({ "claim": claim, "a": a, "b": b });
        json!({
            "name": c.name,
            "equal": c.is_equal(),
            "identical": c.identical,
            "differences": c.differences.iter().map(difference).collect::<Vec<_>>(),
            "only_a": c.only_left,
            "only_b": c.only_right,
            "verdicts": c.verdicts.iter().map(verdict).collect::<Vec<_>>(),
        })
    };
    json!({
        "kind": format!("{:?}", left.kind).to_lowercase(),
        "a": side(left),
        "b": side(right),
        "equal": all.iter().all(Compared::is_equal),
        "studies": all.iter().map(one).collect::<Vec<_>>(),
    })
}

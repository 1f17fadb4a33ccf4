//! The report for a terminal.

use crate::claim::Verdict;
use crate::evaluation::{Counts, Evaluation};
use crate::tabulate::Tabulated;
use std::fmt::Write as _;

/// Maximum length of a line, characters.
const WIDTH: usize = 100;
/// Marker of a failed cell.
const FAILED: char = '✗';

/// The summary as text: counts, claims with verdicts and other readings.
#[must_use]
pub fn text(e: &Evaluation) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", e.title);
    if let Some(source) = &e.source {
        let _ = writeln!(out, "{source}");
    }
    let p = &e.provenance;
    let (cells, seeds) = (number_of(p.cells, "cell", "cells"), number_of(p.seeds as usize, "seed", "seeds"));
    let _ = writeln!(out, "\n{} · {cells}, {seeds}, engine {}", counts(e), p.engine);
    if e.missing > 0 {
        let have = number_of(e.missing, "cell has", "cells have");
        let _ = writeln!(out, "{have} not run: the study was interrupted");
    }
    for f in &e.failed {
        wrap(
            &mut out,
            &format!("{FAILED} failed: "),
            2,
            &format!("{} (seed {}): {}", f.cell, f.seed, f.message),
        );
        for line in f.detail.iter().flat_map(|d| d.lines()) {
            let _ = writeln!(out, "    {line}");
        }
    }
    let width = e.claims.iter().map(|c| c.id.chars().count()).max().unwrap_or(0);
    for claim in &e.claims {
        let _ = writeln!(out);
        let head =
            format!("{} {:width$}  {:<13} ", symbol(claim.verdict()), claim.id, claim.verdict().word());
        let indent = head.chars().count();
        wrap(&mut out, &head, indent, &claim.says);
        let mut line = |name: &str, text: &str| {
            let head = format!("{:indent$}{name}: ", "");
            wrap(&mut out, &head, indent + 2, text);
        };
        if let Some(why) = claim.why_not_counted() {
            line("not counted", &why);
        }
        if let Some(paper) = &claim.paper {
            line("paper", paper);
        }
        // The first outcome is that of the default reading; of the other readings, cases that hold are not listed.
        for (i, o) in claim.outcomes.iter().enumerate() {
            let detail = o.verdict.detail();
            let detail = if detail.is_empty() { String::new() } else { format!(", {detail}") };
            let verdict = format!("{}{detail}", o.verdict.word());
            let head = if i == 0 { "ours".to_owned() } else { format!("read as “{}”", o.reading) };
            match &o.cases[..] {
                [one] if i == 0 && detail.is_empty() => line(&head, &one.ours),
                [one] => line(&head, &format!("{} ({verdict})", one.ours)),
                many if i == 0 => {
                    line(&head, &verdict);
                    for c in many {
                        line(&format!("  {} {}", symbol(&c.verdict), c.case), &c.ours);
                    }
                }
                many => {
                    let others = many.iter().filter(|c| c.verdict != Verdict::Holds);
                    let others = others.map(|c| format!("; {} {}: {}", symbol(&c.verdict), c.case, c.ours));
                    line(&head, &format!("{verdict}{}", others.collect::<String>()));
                }
            }
        }
        if let Some(note) = claim.note.as_ref().filter(|_| *claim.verdict() != Verdict::Holds) {
            line("note", note);
        }
    }
    for t in &e.tables {
        let _ = writeln!(out, "\n{}", t.title);
        grid(&mut out, t);
    }
    out
}

/// A number with its noun or verb, in the singular (`one`) or the plural (`many`).
fn number_of(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// The number of claims per verdict, in words.
#[must_use]
pub fn counts(e: &Evaluation) -> String {
    verdicts(e.counted(), e.not_counted().total())
}

/// The number of claims per verdict, in words; `not_counted` is the number of claims that the totals do not count.
fn verdicts(c: Counts, not_counted: usize) -> String {
    if c.total() + not_counted == 0 {
        return "no claims".to_owned();
    }
    let always = [
        number_of(c.holds, "holds", "hold"),
        number_of(c.differs, "differs", "differ"),
        format!("{} undecided", c.undecided),
    ];
    let others = [
        (c.not_evaluable, "could not be evaluated"),
        (c.not_in_profile, "not in the quick profile"),
        (not_counted, "not counted"),
    ];
    let others = others.into_iter().filter(|(n, _)| *n > 0).map(|(n, words)| format!("{n} {words}"));
    always.into_iter().chain(others).collect::<Vec<_>>().join(", ")
}

/// Writes a table, each column as wide as its widest cell: axes to the left, numbers to the right.
fn grid(out: &mut String, t: &Tabulated) {
    let lines = t.text();
    let columns = lines.first().map_or(0, Vec::len);
    let width = |i: usize| lines.iter().map(|l| l[i].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for line in &lines {
        let mut text = String::new();
        for (i, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let gap = if i == 0 { "" } else { "  " };
            let _ = if i < t.axes.len() {
                write!(text, "{gap}{cell:<width$}")
            } else {
                write!(text, "{gap}{cell:>width$}")
            };
        }
        let _ = writeln!(out, "{}", text.trim_end());
    }
    if let Some(caption) = &t.caption {
        wrap(out, "", 0, caption);
    }
}

/// The character that stands for a verdict.
pub(super) const fn symbol(v: &Verdict) -> &'static str {
    match v {
        Verdict::Holds => "✓",
        Verdict::Differs => "≠",
        Verdict::Undecided { .. } => "?",
        Verdict::NotInProfile => "·",
        Verdict::NotEvaluable { .. } => "–",
    }
}

/// Writes `text` after `head`, broken at spaces into lines of at most [`WIDTH`] characters; lines after the first are
/// indented by `indent` spaces.
fn wrap(out: &mut String, head: &str, indent: usize, text: &str) {
    out.push_str(head);
    let mut column = head.chars().count();
    let mut at_start = true;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if !at_start && column + 1 + length > WIDTH {
            let _ = write!(out, "\n{:indent$}", "");
            column = indent;
            at_start = true;
        }
        if !at_start {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
        at_start = false;
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_follow_their_numbers() {
        let counts = |holds, differs| Counts { holds, differs, ..Counts::default() };
        assert_eq!(verdicts(counts(1, 0), 0), "1 holds, 0 differ, 0 undecided");
        assert_eq!(verdicts(counts(2, 1), 3), "2 hold, 1 differs, 0 undecided, 3 not counted");
        assert_eq!(verdicts(Counts::default(), 0), "no claims");
        assert_eq!(number_of(1, "cell", "cells"), "1 cell");
    }
}

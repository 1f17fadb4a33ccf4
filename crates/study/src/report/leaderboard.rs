//! The page of a leaderboard: one table that its headings sort. Each cell leads to the evaluation behind the cell, and names the
//! command that repeats that evaluation.

use super::parts::{escape, head};
use super::requirements::class;
use crate::format;
use crate::leaderboard::{Leaderboard, Measured, NumberColumn, Row};
use crate::model::Preference;
use crate::requirement::Judgement;
use std::fmt::Write as _;

const SORT: &str = include_str!("../../assets/sort.js");

/// The page.
#[must_use]
pub fn leaderboard(l: &Leaderboard) -> String {
    let mut b = String::new();
    head(&mut b, "Leaderboard");
    let _ = writeln!(
        b,
        "<header><h1>Leaderboard: {} controls</h1></header>\n<p class=\"source\">{} · profile <b>{}</b> · Skyhaul {} · \
         engine {} · {} · <time>{}</time></p>\n<pre>{}</pre>",
        l.rows.len(),
        escape(&l.document),
        escape(&l.profile),
        escape(&l.version),
        escape(&l.engine),
        escape(&l.processor),
        escape(&l.created),
        escape(&l.command)
    );
    if l.profile == "quick" {
        b.push_str(
            "<p class=\"warning\">The quick profile: few seeds. Its verdicts hold for this smaller experiment only.</p>\n",
        );
    }
    let marks = Judgement::ALL.map(|j| format!("{} {}", mark(j), j.word())).join(", ");
    let _ = writeln!(
        b,
        "<p class=\"hint\">{marks}. A heading sorts. A cell leads to the evaluation of its control; the line above the table \
         names the command that repeats it. Numbers are means over the seeds with 95 % intervals.</p>"
    );
    b.push_str("<output class=\"cell\">&nbsp;</output>\n<div class=\"wide\"><table class=\"leaderboard\"><thead><tr>");
    heading(&mut b, "ascending", "", "", "control");
    for j in [Judgement::Met, Judgement::NotMet, Judgement::Undecided] {
        let first = if j == Judgement::Met { "descending" } else { "ascending" };
        heading(&mut b, first, "", &format!("requirements {}", j.word()), j.symbol());
    }
    for n in &l.numbers {
        let first = if n.better == Some(Preference::More) { "descending" } else { "ascending" };
        heading(&mut b, first, "", "", &n.heading());
    }
    for m in &l.requirements {
        heading(&mut b, "ascending", "section", &m.requirement.title, &format!("§{}", m.requirement.section));
    }
    b.push_str("</tr></thead><tbody>\n");
    for r in &l.rows {
        row(&mut b, l, r);
    }
    b.push_str("</tbody></table></div>\n");
    sections(&mut b, l);
    let _ = writeln!(b, "<script>{SORT}</script>\n</main></body></html>");
    b
}

/// A heading that sorts. `first` is the order at the first click, `ascending` or `descending`.
fn heading(b: &mut String, first: &str, class: &str, title: &str, text: &str) {
    let attribute = |name: &str, value: &str| {
        if value.is_empty() { String::new() } else { format!(" {name}=\"{}\"", escape(value)) }
    };
    let (class, title) = (attribute("class", class), attribute("title", title));
    let _ =
        write!(b, "<th scope=\"col\" data-key data-first=\"{first}\"{class}{title}>{}</th>", escape(text));
}

fn mark(j: Judgement) -> String {
    format!("<span class=\"badge {}\">{}</span>", class(j), j.symbol())
}

/// The key by which a verdict sorts, the best verdict first; empty keys come last.
const fn rank(j: Judgement) -> &'static str {
    match j {
        Judgement::Met => "0",
        Judgement::Undecided => "1",
        Judgement::NotMet => "2",
        Judgement::Failed => "3",
        Judgement::NotMeasured => "",
    }
}

fn row(b: &mut String, l: &Leaderboard, r: &Row) {
    let all = link(l, r, "", &[], &format!("{}: the evaluation", r.control), &escape(&r.control));
    let _ = write!(b, "<tr><th scope=\"row\" data-value=\"{}\">{all}</th>", escape(&r.control));
    for j in [Judgement::Met, Judgement::NotMet, Judgement::Undecided] {
        let n = r.count(j);
        let _ = write!(b, "<td class=\"number\" data-value=\"{n}\">{n}</td>");
    }
    for n in &l.numbers {
        number(b, l, r, n);
    }
    for m in &l.requirements {
        verdict(b, l, r, m);
    }
    b.push_str("</tr>\n");
}

fn number(b: &mut String, l: &Leaderboard, r: &Row, n: &NumberColumn) {
    let Some(value) = r.numbers.get(&n.title) else {
        b.push_str("<td class=\"number\" data-value=\"\">–</td>");
        return;
    };
    let e = value.estimate();
    let says = format!(
        "{}: {}: {}, {} seeds, case {}",
        r.control,
        n.title,
        format::with_unit(format::estimate(&e), &n.unit),
        value.n,
        n.case
    );
    let to = link(l, r, &n.anchor, std::slice::from_ref(&n.case), &says, &format::brief(&e));
    let _ = write!(b, "<td class=\"number\" data-value=\"{}\">{to}</td>", value.mean);
}

fn verdict(b: &mut String, l: &Leaderboard, r: &Row, m: &Measured) {
    let j = r.verdicts.get(&m.requirement.section).copied().unwrap_or(Judgement::NotMeasured);
    let says = format!("{}: §{} {}: {}", r.control, m.requirement.section, m.requirement.title, j.word());
    let to = link(l, r, &format!("r-{}", m.requirement.section), &m.cases, &says, j.symbol());
    let _ = write!(b, "<td class=\"verdict {}\" data-value=\"{}\">{to}</td>", class(j), rank(j));
}

/// A link to a place on the page of an evaluation. `says` is what the link is about, `cases` are those of the command that repeats them.
fn link(l: &Leaderboard, r: &Row, anchor: &str, cases: &[String], says: &str, inside: &str) -> String {
    let to = if anchor.is_empty() { r.page.clone() } else { format!("{}#{anchor}", r.page) };
    let command = l.repeat(r, cases);
    let title = command.as_ref().map_or_else(|| says.to_owned(), |c| format!("{says}\n{c}"));
    let command = command.map_or_else(String::new, |c| format!(" data-command=\"{}\"", escape(&c)));
    format!(
        "<a href=\"{}\" data-says=\"{}\"{command} title=\"{}\">{inside}</a>",
        escape(&to),
        escape(says),
        escape(&title)
    )
}

/// What the numbers of sections and the titles of numbers stand for.
fn sections(b: &mut String, l: &Leaderboard) {
    b.push_str("<h2>Columns</h2>\n<dl>\n");
    for m in &l.requirements {
        let _ = writeln!(
            b,
            "<dt>§{}</dt><dd>{} <small>(cases: {})</small></dd>",
            escape(&m.requirement.section),
            escape(&m.requirement.title),
            escape(&m.cases.join(", "))
        );
    }
    for n in &l.numbers {
        let better = n.better.map_or_else(String::new, |p| format!(", {} is better", p.word()));
        let _ = writeln!(
            b,
            "<dt>{}</dt><dd><small>(case: {}{better})</small></dd>",
            escape(&n.heading()),
            escape(&n.case)
        );
    }
    b.push_str("</dl>\n");
    if !l.not_measured.is_empty() {
        let words = l.not_measured.iter().map(|s| format!("§{} {}", s.section, s.title)).collect::<Vec<_>>();
        let _ = writeln!(b, "<p class=\"note\"><b>Not measured:</b> {}.</p>", escape(&words.join("; ")));
    }
}

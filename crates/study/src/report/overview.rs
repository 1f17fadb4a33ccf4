//! The overview of a folder of studies: a table per section, with means, and the paired differences of the first
//! column from the others.

use super::parts::escape;
use crate::book::Chapter;
use crate::format;
use crate::model::{Preference, called};
use crate::overview::Line;
use crate::sections::{Section, sections};
use crate::stats::Estimate;
use std::fmt::Write as _;

/// Its place on the page.
pub(super) const ID: &str = "overview";

/// The overview of a chapter; nothing if its paper has none.
pub(super) fn overview(b: &mut String, c: &Chapter) {
    let Some(plan) = &c.paper.overview else { return };
    let _ = writeln!(b, "<section id=\"{ID}\"><h2>{}</h2>", escape(&plan.title));
    if let Some(about) = &plan.about {
        let _ = writeln!(b, "<p class=\"about\">{}</p>", escape(about));
    }
    let tested = c.evaluations().next().and_then(|e| e.candidate.as_deref());
    let columns: Vec<String> = plan.columns.iter().map(|column| called(column, tested).to_owned()).collect();
    for s in sections(c) {
        section(b, c, &columns, &s);
    }
    b.push_str("</section>\n");
}

fn section(b: &mut String, c: &Chapter, columns: &[String], s: &Section<'_>) {
    let _ = writeln!(b, "<h3>{} {}</h3>", escape(&s.plan.id), escape(&s.plan.says));
    if !s.lines.is_empty() {
        b.push_str("<div class=\"wide\"><table class=\"means lines\"><thead><tr><th>Where</th>");
        for column in columns {
            let _ = write!(b, "<th>{}</th>", escape(column));
        }
        if let Some((first, others)) = columns.split_first() {
            for other in others {
                let _ = write!(b, "<th>{} less {}</th>", escape(first), escape(other));
            }
        }
        b.push_str("</tr></thead>\n");
        for (study, l) in &s.lines {
            line(b, &format!("{}--{study}", c.name), columns.len(), l);
        }
        b.push_str("</table></div>\n");
    }
    if let Some(open) = &s.plan.open {
        let _ = writeln!(b, "<p class=\"note\"><b>Not measured:</b> {}</p>", escape(open));
    } else if s.lines.is_empty() {
        b.push_str("<p class=\"note\">None of its cases ran.</p>\n");
    }
}

fn line(b: &mut String, study: &str, columns: usize, l: &Line) {
    let unit = if l.unit.is_empty() { String::new() } else { format!(" ({})", escape(&l.unit)) };
    let better = l.better.map_or_else(String::new, |b| format!(" <small>{} is better</small>", b.word()));
    let _ = writeln!(
        b,
        "<tbody><tr class=\"says\"><th colspan=\"{}\" scope=\"rowgroup\"><div><a href=\"#{}\">{}</a>{unit}{better}</div></th></tr>",
        2 * columns,
        escape(study),
        escape(&l.says)
    );
    for p in &l.places {
        let _ = write!(b, "<tr><td>{}</td>", escape(&p.at));
        for k in 0..columns {
            number(b, "", p.values.get(k));
        }
        for k in 0..columns.saturating_sub(1) {
            let e = p.differences.get(k);
            number(b, e.map_or("", |e| lead(e, l.better)), e);
        }
        b.push_str("</tr>\n");
    }
    b.push_str("</tbody>\n");
}

/// A cell with few digits; all of them show when the pointer rests on it.
fn number(b: &mut String, class: &str, e: Option<&Estimate>) {
    let Some(e) = e else {
        b.push_str("<td class=\"number\">–</td>");
        return;
    };
    let (brief, all) = (format::brief(e), format::estimate(e));
    let title = if brief == all { String::new() } else { format!(" title=\"{all}\"") };
    let class = if class.is_empty() { String::new() } else { format!(" {class}") };
    let _ = write!(b, "<td class=\"number{class}\"{title}>{brief}</td>");
}

/// Whether the first column is significantly better, or worse.
fn lead(e: &Estimate, better: Option<Preference>) -> &'static str {
    let above = e.mean.is_finite() && e.low() > 0.0;
    let below = e.mean.is_finite() && e.high() < 0.0;
    match better {
        Some(Preference::More) if above => "holds",
        Some(Preference::More) if below => "differs",
        Some(Preference::Less) if below => "holds",
        Some(Preference::Less) if above => "differs",
        _ => "",
    }
}

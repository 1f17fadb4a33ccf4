//! One page over an evaluation: the requirements in the order of the document, each with what was measured, its
//! intervals and its verdict, and what was not measured; then the cases.

use super::all::{chapter, close};
use super::overview::{self, overview};
use super::parts::{self, RULE, escape, open};
use super::text::symbol;
use crate::book::{Book, Chapter};
use crate::claim::{CaseOutcome, ClaimResult, Outcome, Verdict};
use crate::model::Profile;
use crate::requirement::{Answer, Judgement, Requirement, requirements};
use std::fmt::Write as _;

/// The page about a control, as the reader wrote it. `partial`: only some cases were asked for, and the requirements that
/// others answer fold away.
#[must_use]
pub fn evaluation(book: &Book, control: &str, partial: bool) -> String {
    let title = format!("Evaluation of {control}");
    let mut b = String::new();
    open(&mut b, &title, |b| contents(b, book));
    b.push_str("</header>\n");
    let cells = book.cells();
    let _ = writeln!(
        b,
        "<p class=\"source\">Control <code>{}</code>{} · profile <b>{}</b> · Skyhaul {} · \
         engine {} · {cells} cells · <time>{}</time></p>",
        escape(control),
        called(book, control),
        book.profile.word(),
        escape(&book.version),
        escape(&book.engine),
        escape(&book.created)
    );
    if book.profile == Profile::Quick {
        b.push_str(
            "<p class=\"warning\">The quick profile: few seeds and short runs. Its verdicts hold for this smaller \
             experiment only.</p>\n",
        );
    }
    refused(&mut b, book);
    for c in &book.chapters {
        let all = requirements(c);
        let (not_asked, asked): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|r| partial && r.judgement == Judgement::NotMeasured);
        tiles(&mut b, &asked);
        let _ = writeln!(
            b,
            "<p class=\"hint\">A requirement is met if all its claims hold. {RULE} The document sets no limits: those \
             of the claims are ours, and each claim states its own. A difference is that of the control from the \
             baseline before it.</p>"
        );
        verdicts(&mut b, &asked);
        for r in &asked {
            requirement(&mut b, c, r);
        }
        if !not_asked.is_empty() {
            let n = not_asked.len();
            let _ = writeln!(
                b,
                "<details class=\"aside\"><summary>Requirements that were not asked for: {n}</summary>"
            );
            verdicts(&mut b, &not_asked);
            for r in &not_asked {
                requirement(&mut b, c, r);
            }
            b.push_str("</details>\n");
        }
        overview(&mut b, c);
        b.push_str("<h2>The cases</h2>\n");
        chapter(&mut b, c);
    }
    close(&mut b, book);
    b
}

fn contents(b: &mut String, book: &Book) {
    parts::contents(b, "<p><a href=\"#top\">Summary</a></p>", |b| {
        for c in &book.chapters {
            for row in &c.paper.row {
                let _ = writeln!(
                    b,
                    "<li><a href=\"#r-{}\">§{} {}</a></li>",
                    escape(&row.id),
                    escape(&row.id),
                    escape(&row.says)
                );
            }
            if let Some(plan) = &c.paper.overview {
                let _ = writeln!(b, "<li><a href=\"#{}\">{}</a></li>", overview::ID, escape(&plan.title));
            }
            let _ = writeln!(b, "<li><a href=\"#{}\">The cases</a></li>", escape(&c.name));
        }
    });
}

/// The name of the control on the page, where it differs from what the reader wrote.
fn called(book: &Book, control: &str) -> String {
    let name = book.evaluations().find_map(|e| e.candidate.as_deref()).filter(|name| *name != control.trim());
    name.map_or_else(String::new, |name| format!(", called “{}” below", escape(name)))
}

/// Cases that did not run, and cells that failed: the verdicts are without them.
fn refused(b: &mut String, book: &Book) {
    for (case, why) in book.refused() {
        let _ = writeln!(
            b,
            "<p class=\"warning\"><b>{}</b> could not be run: {}</p>",
            escape(&case),
            escape(&why)
        );
    }
    for e in book.evaluations() {
        if let Some(first) = e.failed.first() {
            let _ = writeln!(
                b,
                "<p class=\"warning\"><b>{}</b>: {} of {} cells failed; the first, {} (seed {}): {}</p>",
                escape(&e.name),
                e.failed.len(),
                e.provenance.cells,
                escape(&first.cell),
                first.seed,
                escape(&first.message)
            );
        }
    }
}

pub(super) const fn class(j: Judgement) -> &'static str {
    match j {
        Judgement::Met => "holds",
        Judgement::NotMet => "differs",
        Judgement::Undecided => "undecided",
        Judgement::Failed | Judgement::NotMeasured => "none",
    }
}

fn tiles(b: &mut String, all: &[Requirement<'_>]) {
    b.push_str("<div class=\"tiles\">");
    for j in Judgement::ALL {
        let n = all.iter().filter(|r| r.judgement == j).count();
        let _ = write!(b, "<div class=\"tile {}\"><b>{n}</b><span>{}</span></div>", class(j), j.word());
    }
    b.push_str("</div>\n");
}

fn mark(j: Judgement) -> String {
    format!("<span class=\"badge {}\">{}</span>", class(j), j.word())
}

fn verdicts(b: &mut String, all: &[Requirement<'_>]) {
    b.push_str(
        "<div class=\"wide\"><table class=\"summary verdicts\"><thead><tr><th>§</th><th class=\"words\">Requirement</th>\
         <th class=\"words\">Verdict</th><th>Claims</th><th>Parts not measured</th></tr></thead><tbody>\n",
    );
    for r in all {
        let id = escape(&r.row.id);
        let _ = writeln!(
            b,
            "<tr><th scope=\"row\"><a href=\"#r-{id}\">{id}</a></th><td class=\"words\">{}</td>\
             <td class=\"words\">{}</td><td class=\"number\">{}</td>\
             <td class=\"number\">{}</td></tr>",
            escape(&r.row.says),
            mark(r.judgement),
            r.answers.len(),
            r.open.len()
        );
    }
    b.push_str("</tbody></table></div>\n");
}

fn requirement(b: &mut String, c: &Chapter, r: &Requirement<'_>) {
    let id = escape(&r.row.id);
    let _ =
        writeln!(b, "<section id=\"r-{id}\"><h3>§{id} {} {}</h3>", escape(&r.row.says), mark(r.judgement));
    if !r.answers.is_empty() {
        b.push_str(
            "<table class=\"claims measured\"><thead><tr><th>Claim</th><th>Statement</th><th>Measured</th><th>Verdict</th></tr>\
             </thead><tbody>\n",
        );
        for a in &r.answers {
            answer(b, c, a);
        }
        b.push_str("</tbody></table>\n");
    }
    for o in &r.open {
        let _ =
            writeln!(b, "<p class=\"note\"><b>Not measured:</b> {}. {}</p>", escape(&o.says), escape(&o.why));
    }
    if r.answers.is_empty() && r.open.is_empty() {
        b.push_str("<p class=\"note\">None of the cases that ran is about it.</p>\n");
    }
    b.push_str("</section>\n");
}

fn answer(b: &mut String, c: &Chapter, a: &Answer<'_>) {
    let anchor = escape(&format!("{}--{}--claim-{}", c.name, a.case, a.index));
    let note =
        a.claim.note.as_ref().map_or_else(String::new, |n| format!("<p class=\"note\">{}</p>", escape(n)));
    let outcome = &a.claim.outcomes[0];
    let _ = writeln!(
        b,
        "<tr><th scope=\"row\"><a href=\"#{anchor}\">{}</a></th><td>{}{note}</td><td>{}</td><td>{}</td></tr>",
        escape(&a.claim.id),
        escape(&a.claim.says),
        measured(a.claim, outcome),
        verdict(&outcome.verdict)
    );
}

/// The character for a verdict on a claim. A claim that differs has the character of a requirement that is not met.
fn mark_of(v: &Verdict) -> &'static str {
    if *v == Verdict::Differs { Judgement::NotMet.symbol() } else { symbol(v) }
}

/// The verdict on a claim, with advice if it is undecided.
fn verdict(v: &Verdict) -> String {
    let detail = v.detail();
    let detail =
        if detail.is_empty() { String::new() } else { format!(" <small>{}</small>", escape(&detail)) };
    let (class, symbol, word) = (parts::class(v), mark_of(v), v.word_for_control());
    format!("<span class=\"badge {class}\">{symbol}\u{a0}{word}</span>{detail}")
}

/// What was measured, case by case, each with its verdict. Two or more cases that hold are folded where another case does not
/// hold, or where there are more than [`parts::MANY`].
fn measured(claim: &ClaimResult, outcome: &Outcome) -> String {
    let metric = claim.metric.as_ref().map_or_else(String::new, |m| format!("<small>{}</small>", escape(m)));
    let item = |c: &CaseOutcome| {
        let case = if c.case.is_empty() { String::new() } else { format!("<b>{}</b>: ", escape(&c.case)) };
        let (class, word) = (parts::class(&c.verdict), c.verdict.word_for_control());
        let ours = if c.ours.is_empty() { String::new() } else { format!("{}: ", escape(&c.ours)) };
        format!("<li>{case}{ours}<span class=\"badge {class}\">{word}</span></li>")
    };
    let list = |cases: &[&CaseOutcome]| {
        format!("<ul class=\"cases\">{}</ul>", cases.iter().map(|c| item(c)).collect::<String>())
    };
    let (hold, rest): (Vec<_>, Vec<_>) = outcome.cases.iter().partition(|c| c.verdict == Verdict::Holds);
    if hold.len() < 2 || (rest.is_empty() && hold.len() <= parts::MANY) {
        return metric + &list(&outcome.cases.iter().collect::<Vec<_>>());
    }
    let shown = if rest.is_empty() { String::new() } else { list(&rest) };
    format!("{metric}{shown}<details><summary>{} cases hold</summary>{}</details>", hold.len(), list(&hold))
}

//! One page over all studies: a summary on the first screen, then paper by paper, then an index of all claims.

use super::parts::{
    self, RULE, badge, claims, class, escape, failed, figure, filter, open, readings, scenario, scripts,
    tables,
};
use crate::book::{Book, Chapter, Entry, Line, LineOf};
use crate::evaluation::Evaluation;
use crate::model::Profile;
use std::fmt::Write as _;

/// The report over all studies.
#[must_use]
pub fn all(book: &Book) -> String {
    let mut b = String::new();
    open(&mut b, "What the studies reproduce", |b| contents(b, book));
    b.push_str("</header>\n");
    provenance(&mut b, book);
    summary(&mut b, book);
    warnings(&mut b, book);
    for c in &book.chapters {
        chapter(&mut b, c);
    }
    claims_index(&mut b, book);
    close(&mut b, book);
    b
}

/// The scripts of a page over many studies, and its end.
pub(super) fn close(b: &mut String, book: &Book) {
    scripts(b, book.evaluations().map(|e| e.figures.len()).sum());
    filter(b);
    b.push_str("</main></body></html>\n");
}

/// The table of contents beside the text, or above it on a narrow screen: every paper with its studies.
fn contents(b: &mut String, book: &Book) {
    let before = "<p><a href=\"#top\">Summary</a> · <a href=\"#claims\">All claims</a></p>";
    parts::contents(b, before, |b| {
        for c in &book.chapters {
            let _ = write!(b, "<li><a href=\"#{}\">{}</a><ul>", escape(&c.name), escape(&c.paper.title));
            for entry in &c.entries {
                let title = entry.outcome.as_ref().map_or(&entry.name, |e| &e.title);
                let _ = write!(b, "<li><a href=\"#{}\">{}</a></li>", anchor(c, entry), escape(title));
            }
            b.push_str("</ul></li>\n");
        }
    });
}

fn provenance(b: &mut String, book: &Book) {
    let seeds = match book.seeds() {
        None => "none".to_owned(),
        Some((least, most)) if least == most => format!("{least} for every combination"),
        Some((least, most)) => format!("{least} to {most} for every combination, as the study says"),
    };
    let cells = book.cells();
    let _ = writeln!(
        b,
        "<p class=\"source\">Profile <b>{}</b> · Skyhaul {} · engine {} · seeds: {seeds} · {cells} cells · \
         <time>{}</time></p>",
        book.profile.word(),
        escape(&book.version),
        escape(&book.engine),
        escape(&book.created)
    );
    if book.profile == Profile::Quick {
        b.push_str(
            "<p class=\"warning\">The quick profile: fewer seeds, and shorter or fewer runs than the studies have. \
             The numbers and verdicts below hold for this smaller experiment only.</p>\n",
        );
    }
}

/// The table of verdicts by paper, on the first screen.
fn summary(b: &mut String, book: &Book) {
    b.push_str(
        "<div class=\"wide\"><table class=\"summary papers\"><thead><tr><th>Paper</th><th>Hold</th><th>Differ</th><th>Undecided</th>\
         <th>Could not be evaluated</th><th>Not in the profile</th><th>Not counted</th><th>Proved by a unit test</th><th>Open</th><th>All</th>\
         </tr></thead><tbody>\n",
    );
    for line in book.lines() {
        let (class, head) = match line.of {
            LineOf::Chapter(c) => {
                ("", format!("<a href=\"#{}\">{}</a>", escape(&c.name), escape(&c.paper.title)))
            }
            LineOf::OwnIn(c) => ("", format!("{}: our own findings", escape(&c.paper.title))),
            LineOf::Sources => (" class=\"total\"", "All publications".to_owned()),
            LineOf::Own => (" class=\"total\"", "All our own findings".to_owned()),
            LineOf::All => (" class=\"total\"", "All".to_owned()),
        };
        row(b, class, &head, &line);
    }
    b.push_str("</tbody></table></div>\n");
    let _ = writeln!(
        b,
        "<p class=\"hint\">{RULE} Claims that differ are results, not errors: no model was tuned to fit. \
         Premises, arithmetic, what holds by construction, and repeated statements are judged, too, but not counted. \
         <a href=\"#claims\">All claims</a></p>"
    );
}

fn row(b: &mut String, class: &str, head: &str, line: &Line<'_>) {
    let _ = write!(b, "<tr{class}><th scope=\"row\">{head}</th>");
    let c = line.counts;
    let rest = line.tally.map(|t| [t.not_counted.total(), t.elsewhere, t.open, t.total()]);
    for (class, n) in [
        ("holds", Some(c.holds)),
        ("differs", Some(c.differs)),
        ("undecided", Some(c.undecided)),
        ("none", Some(c.not_evaluable)),
        ("none", Some(c.not_in_profile)),
        ("none", rest.map(|r| r[0])),
        ("none", rest.map(|r| r[1])),
        ("none", rest.map(|r| r[2])),
        ("", rest.map(|r| r[3])),
    ] {
        let class = if n == Some(0) { "zero" } else { class };
        let n = n.map_or_else(String::new, |n| n.to_string());
        let _ = write!(b, "<td class=\"number {class}\">{n}</td>");
    }
    b.push_str("</tr>\n");
}

fn warnings(b: &mut String, book: &Book) {
    for (study, why) in book.refused() {
        let _ = writeln!(
            b,
            "<p class=\"warning\"><b>{}</b> could not be run: {}</p>",
            escape(&study),
            escape(&why)
        );
    }
    if book.failed_cells() > 0 {
        let _ = writeln!(
            b,
            "<p class=\"warning\">{} cells failed; claims over them could not be evaluated. They are listed with \
             their studies below.</p>",
            book.failed_cells()
        );
    }
}

pub(super) fn chapter(b: &mut String, c: &Chapter) {
    let p = &c.paper;
    let _ = write!(b, "<section class=\"paper\" id=\"{}\"><h2>{}</h2>", escape(&c.name), escape(&p.title));
    let by: Vec<String> = [p.authors.join(", "), p.published.clone().unwrap_or_default()]
        .into_iter()
        .filter(|t| !t.is_empty())
        .collect();
    if !by.is_empty() {
        let _ = write!(b, "<p class=\"source\">{}</p>", escape(&by.join(" · ")));
    }
    if let Some(about) = &p.about {
        let _ = write!(b, "<p class=\"about\">{}</p>", escape(about));
    }
    b.push_str("<ul class=\"contents\">\n");
    for entry in &c.entries {
        let id = anchor(c, entry);
        let (title, counts) = match &entry.outcome {
            Ok(e) => (e.title.as_str(), verdicts(e)),
            Err(_) => (entry.name.as_str(), "could not be run".to_owned()),
        };
        let _ =
            writeln!(b, "<li><a href=\"#{id}\">{}</a> {}: {counts}</li>", escape(&entry.name), escape(title));
    }
    b.push_str("</ul>\n");
    for entry in &c.entries {
        match &entry.outcome {
            Ok(e) => study(b, c, &anchor(c, entry), e),
            Err(why) => {
                let _ = writeln!(
                    b,
                    "<article id=\"{}\"><h3>{}</h3><p class=\"warning\">{}</p></article>",
                    anchor(c, entry),
                    escape(&entry.name),
                    escape(&why.line)
                );
            }
        }
    }
    beyond(b, c);
    b.push_str("</section>\n");
}

fn anchor(c: &Chapter, entry: &Entry) -> String {
    escape(&format!("{}--{}", c.name, entry.name))
}

fn verdicts(e: &Evaluation) -> String {
    let c = e.counted();
    let not_counted = e.not_counted().total();
    let words = [
        (c.holds, "hold"),
        (c.differs, "differ"),
        (c.undecided, "undecided"),
        (c.not_evaluable, "could not be evaluated"),
        (c.not_in_profile, "not in the quick profile"),
        (not_counted, "not counted"),
    ];
    let said: Vec<String> = words.iter().filter(|(n, _)| *n > 0).map(|(n, w)| format!("{n} {w}")).collect();
    if said.is_empty() { "no claims".to_owned() } else { said.join(", ") }
}

fn study(b: &mut String, c: &Chapter, id: &str, e: &Evaluation) {
    let _ = write!(
        b,
        "<article id=\"{id}\"><p class=\"back\"><a href=\"#{}\">↑ {}</a> · <a href=\"#top\">Summary</a></p><h3>{}</h3>",
        escape(&c.name),
        escape(&c.paper.title),
        escape(&e.title)
    );
    let source = e.source.as_ref().map_or_else(String::new, |s| format!("{} · ", escape(s)));
    let p = &e.provenance;
    let _ = writeln!(
        b,
        "<p class=\"source\">{source}{} · seeds {}–{} · {} cells</p>",
        verdicts(e),
        p.first_seed,
        p.last_seed(),
        p.cells
    );
    failed(b, e);
    if let Some(about) = &e.about {
        let _ = writeln!(b, "<p class=\"about\">{}</p>", escape(about));
    }
    let prefix = format!("{id}--");
    for (i, f) in e.figures.iter().enumerate() {
        figure(b, &prefix, i, f);
    }
    if !e.claims.is_empty() {
        b.push_str("<h4>Claims</h4>\n");
        claims(b, &prefix, e);
    }
    if e.readings.len() > 1 {
        b.push_str("<h4>Readings</h4>\n");
        readings(b, e);
    }
    if !e.tables.is_empty() {
        b.push_str("<details class=\"tables\"><summary>Tables</summary>\n");
        tables(b, e);
        b.push_str("</details>\n");
    }
    b.push_str("<h4>Scenario</h4>\n");
    scenario(b, e);
    b.push_str("</article>\n");
}

/// The claims of the paper outside its studies.
fn beyond(b: &mut String, c: &Chapter) {
    if !c.paper.elsewhere.is_empty() {
        b.push_str(
            "<h3>Proved by unit tests</h3><div class=\"wide\"><table class=\"claims\"><thead><tr><th>Claim</th><th>Statement</th>\
             <th>Paper</th><th>Test</th></tr></thead><tbody>\n",
        );
        for (i, o) in c.paper.elsewhere.iter().enumerate() {
            let _ = writeln!(
                b,
                "<tr id=\"{}--elsewhere-{i}\" data-verdict=\"none\"><th scope=\"row\">{}{}</th><td>{}</td><td>{}</td><td><code>{}</code></td></tr>",
                escape(&c.name),
                escape(&o.id),
                place(o.place.as_deref()),
                escape(&o.says),
                escape(o.paper.as_deref().unwrap_or("–")),
                escape(&o.test)
            );
        }
        b.push_str("</tbody></table></div>\n");
    }
    if !c.paper.open.is_empty() {
        b.push_str(
            "<h3>Open</h3><div class=\"wide\"><table class=\"claims\"><thead><tr><th>Claim</th><th>Statement</th><th>Paper</th>\
             <th>Why not</th></tr></thead><tbody>\n",
        );
        for (i, o) in c.paper.open.iter().enumerate() {
            let _ = writeln!(
                b,
                "<tr id=\"{}--open-{i}\" data-verdict=\"none\"><th scope=\"row\">{}{}</th><td>{}</td><td>{}</td><td>{}</td></tr>",
                escape(&c.name),
                escape(&o.id),
                place(o.place.as_deref()),
                escape(&o.says),
                escape(o.paper.as_deref().unwrap_or("–")),
                escape(&o.why)
            );
        }
        b.push_str("</tbody></table></div>\n");
    }
}

fn place(place: Option<&str>) -> String {
    place.map_or_else(String::new, |p| format!("<br><small>{}</small>", escape(p)))
}

/// Every claim in one line, with its place on the page.
fn claims_index(b: &mut String, book: &Book) {
    b.push_str("<section id=\"claims\"><h2>All claims</h2>\n<div class=\"wide\"><table class=\"index\">\n");
    for c in &book.chapters {
        let _ = writeln!(
            b,
            "<tbody data-paper=\"{}\"><tr><th colspan=\"4\" scope=\"rowgroup\">{}</th></tr>",
            escape(&c.name),
            escape(&c.paper.title)
        );
        let mut line = |id: &str, anchor: &str, says: &str, place: &str, (class, verdict): (&str, &str)| {
            let _ = writeln!(
                b,
                "<tr id=\"in-{anchor}\" data-verdict=\"{class}\"><td><a href=\"#{anchor}\">{}</a></td><td>{}</td><td>{place}</td><td>{verdict}</td></tr>",
                escape(id),
                escape(says)
            );
        };
        for (entry, e) in c.entries.iter().filter_map(|p| Some((p, p.outcome.as_ref().ok()?))) {
            let id = anchor(c, entry);
            for (i, claim) in e.claims.iter().enumerate() {
                let place = format!("{id}--claim-{i}");
                line(
                    &claim.id,
                    &place,
                    &claim.says,
                    &escape(&entry.name),
                    (class(claim.verdict()), &badge(claim.verdict())),
                );
            }
        }
        let name = escape(&c.name);
        for (i, o) in c.paper.elsewhere.iter().enumerate() {
            line(&o.id, &format!("{name}--elsewhere-{i}"), &o.says, "unit test", ("none", "✓ unit test"));
        }
        for (i, o) in c.paper.open.iter().enumerate() {
            line(&o.id, &format!("{name}--open-{i}"), &o.says, "", ("none", "○ open"));
        }
        b.push_str("</tbody>\n");
    }
    b.push_str("</table></div></section>\n");
}

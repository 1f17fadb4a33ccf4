//! The report of a study as one HTML file: figures are interactive, nothing is fetched.

use super::parts::{
    self, RULE, badge, claims, escape, failed, figure, head, open, readings, scenario, scripts, tables, tiles,
};
use crate::evaluation::{Counts, Evaluation};
use std::fmt::Write as _;

/// The report of a study.
#[must_use]
pub fn html(e: &Evaluation) -> String {
    let mut b = String::new();
    open(&mut b, &e.title, |b| contents(b, e));
    if let Some(source) = &e.source {
        let _ = write!(b, "<p class=\"source\">{}</p>", escape(source));
    }
    b.push_str("</header>\n");
    tiles(&mut b, e.counted(), e.not_counted().total());
    if e.missing > 0 {
        let _ = write!(
            b,
            "<p class=\"warning\">{} of {} cells have not run: the study was interrupted. Run it again to continue.</p>",
            e.missing, e.provenance.cells
        );
    }
    failed(&mut b, e);
    if let Some(about) = &e.about {
        let _ = write!(b, "<p class=\"about\">{}</p>", escape(about));
    }
    overview(&mut b, e);
    if !e.figures.is_empty() {
        b.push_str("<section id=\"figures\"><h2>Figures</h2>\n");
        for (i, f) in e.figures.iter().enumerate() {
            figure(&mut b, "", i, f);
        }
        b.push_str("</section>\n");
    }
    if !e.tables.is_empty() {
        section(&mut b, "tables", "Tables", |b| tables(b, e));
    }
    section(&mut b, "claims", "Claims", |b| {
        let _ = writeln!(b, "<p class=\"hint\">{RULE}</p>");
        claims(b, "", e);
    });
    if e.readings.len() > 1 {
        section(&mut b, "readings", "Readings", |b| readings(b, e));
    }
    section(&mut b, "scenario", "Scenario", |b| scenario(b, e));
    values(&mut b, e);
    provenance(&mut b, e);
    scripts(&mut b, e.figures.len());
    b.push_str("</main></body></html>\n");
    b
}

/// Beside the text, or above it on a narrow screen: the sections, and each figure by its title.
fn contents(b: &mut String, e: &Evaluation) {
    parts::contents(b, "", |b| {
        b.push_str("<li><a href=\"#top\">Overview</a></li>");
        let drawn = || e.figures.iter().enumerate().filter(|(_, f)| !f.is_empty());
        if drawn().next().is_some() {
            b.push_str("<li><a href=\"#figures\">Figures</a><ul>");
            for (i, f) in drawn() {
                let _ = write!(b, "<li><a href=\"#plot-{i}\">{}</a></li>", escape(&f.title));
            }
            b.push_str("</ul></li>");
        }
        let sections = [
            ("tables", "Tables", !e.tables.is_empty()),
            ("claims", "Claims", true),
            ("readings", "Readings", e.readings.len() > 1),
            ("scenario", "Scenario", true),
            ("values", "Values", true),
            ("provenance", "Provenance", true),
        ];
        for (id, title, _) in sections.into_iter().filter(|(.., there)| *there) {
            let _ = write!(b, "<li><a href=\"#{id}\">{title}</a></li>");
        }
    });
}

fn section(b: &mut String, id: &str, title: &str, content: impl FnOnce(&mut String)) {
    let _ = writeln!(b, "<section id=\"{id}\"><h2>{title}</h2>");
    content(b);
    b.push_str("</section>\n");
}

/// The first screen: every claim in one line.
fn overview(b: &mut String, e: &Evaluation) {
    b.push_str("<ul class=\"overview\">\n");
    for (i, c) in e.claims.iter().enumerate() {
        let _ = writeln!(
            b,
            "<li>{} <a href=\"#claim-{i}\">{}</a> {}</li>",
            badge(c.verdict()),
            escape(&c.id),
            escape(&c.says)
        );
    }
    b.push_str("</ul>\n");
}

/// A page over several studies: name, verdicts, and a link to each report.
#[must_use]
pub fn index(title: &str, studies: &[(&Evaluation, String)]) -> String {
    let mut b = String::new();
    head(&mut b, title);
    let _ = writeln!(b, "<header><h1>{}</h1></header>", escape(title));
    let sum = |of: fn(&Evaluation) -> Counts| {
        studies.iter().map(|(e, _)| of(e)).fold(Counts::default(), Counts::add)
    };
    tiles(&mut b, sum(Evaluation::counted), sum(Evaluation::not_counted).total());
    b.push_str("<table class=\"claims studies\"><thead><tr><th>Study</th><th>Claim</th><th>Statement</th><th>Paper</th><th>Ours</th><th>Verdict</th></tr></thead><tbody>\n");
    for (e, link) in studies {
        for (i, c) in e.claims.iter().enumerate() {
            let first = if i > 0 {
                "<td></td>".to_owned()
            } else {
                format!("<td><a href=\"{}\">{}</a></td>", escape(link), escape(&e.title))
            };
            let o = &c.outcomes[0];
            let _ = writeln!(
                b,
                "<tr>{first}<td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
                escape(&c.id),
                escape(&c.says),
                escape(c.paper.as_deref().unwrap_or("")),
                escape(&o.ours),
                badge(&o.verdict)
            );
        }
    }
    b.push_str("</tbody></table></main></body></html>\n");
    b
}

fn values(b: &mut String, e: &Evaluation) {
    b.push_str(
        "<section id=\"values\"><h2>Values</h2><details><summary>Means with 95 % intervals; medians of skewed durations</summary>\
        <div class=\"wide\"><table><thead><tr><th>Reading</th>",
    );
    for h in e.values.axes.iter().chain(&e.values.metrics) {
        let _ = write!(b, "<th>{}</th>", escape(h));
    }
    b.push_str("</tr></thead><tbody>\n");
    for r in &e.values.rows {
        let _ = write!(b, "<tr><td>{}</td>", escape(&r.reading));
        for at in &r.at {
            let _ = write!(b, "<td>{}</td>", escape(at));
        }
        for m in &r.shown {
            let _ = write!(b, "<td class=\"number\">{}</td>", escape(m));
        }
        b.push_str("</tr>\n");
    }
    b.push_str("</tbody></table></div></details></section>\n");
}

fn provenance(b: &mut String, e: &Evaluation) {
    let p = &e.provenance;
    let _ = writeln!(
        b,
        "<section id=\"provenance\"><h2>Provenance</h2><dl><dt>Study</dt><dd>{}</dd><dt>Skyhaul</dt><dd>{}</dd>\
         <dt>Engine</dt><dd>{}</dd><dt>Profile</dt><dd>{}</dd><dt>Seeds</dt><dd>{}–{}, the same for every combination</dd>\
         <dt>Cells</dt><dd>{}</dd><dt>Hash</dt><dd><code>{}</code></dd></dl>\
         <p class=\"hint\">The same study, version and engine give the same numbers on any machine.</p></section>",
        escape(&e.name),
        escape(&p.version),
        escape(&p.engine),
        p.profile.word(),
        p.first_seed,
        p.last_seed(),
        p.cells,
        escape(&p.hash)
    );
}

//! The report as one HTML file: figures are interactive, nothing is fetched.

use super::text::symbol;
use crate::claim::{ClaimResult, Outcome, Verdict};
use crate::evaluation::{Counts, Evaluation};
use crate::figure::Drawn;
use crate::format;
use std::fmt::Write as _;

const VEGA: &str = include_str!("../../assets/vega.min.js");
const VEGA_LITE: &str = include_str!("../../assets/vega-lite.min.js");
const VEGA_EMBED: &str = include_str!("../../assets/vega-embed.min.js");
const STYLE: &str = include_str!("../../assets/report.css");

/// The report of a study.
#[must_use]
pub fn html(e: &Evaluation) -> String {
    let mut b = String::new();
    head(&mut b, &e.title);
    let _ = write!(b, "<header><h1>{}</h1>", escape(&e.title));
    if let Some(source) = &e.source {
        let _ = write!(b, "<p class=\"source\">{}</p>", escape(source));
    }
    b.push_str("</header>\n");
    tiles(&mut b, e.counts());
    if e.missing > 0 {
        let _ = write!(
            b,
            "<p class=\"warning\">{} of {} cells have not run: the study was interrupted. Run it again to go on.</p>",
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
            figure(&mut b, i, f);
        }
        b.push_str("</section>\n");
    }
    tables(&mut b, e);
    claims(&mut b, e);
    readings(&mut b, e);
    scenario(&mut b, e);
    values(&mut b, e);
    provenance(&mut b, e);
    scripts(&mut b, &e.figures);
    b.push_str("</main></body></html>\n");
    b
}

/// Cells without a result, each with its traceback.
fn failed(b: &mut String, e: &Evaluation) {
    if e.failed.is_empty() {
        return;
    }
    let _ = writeln!(
        b,
        "<section id=\"failed\"><p class=\"warning\">{} of {} cells failed; claims over them are not evaluated.</p>",
        e.failed.len(),
        e.provenance.cells
    );
    for f in &e.failed {
        let _ = writeln!(
            b,
            "<details><summary>{} (seed {}): {}</summary><pre>{}</pre></details>",
            escape(&f.cell),
            f.seed,
            escape(&f.message),
            escape(f.detail.as_deref().unwrap_or("No more is known."))
        );
    }
    b.push_str("</section>\n");
}

/// A page over several studies: name, verdicts, and a link to each report.
#[must_use]
pub fn index(title: &str, studies: &[(&Evaluation, String)]) -> String {
    let mut b = String::new();
    head(&mut b, title);
    let _ = writeln!(b, "<header><h1>{}</h1></header>", escape(title));
    let total = studies.iter().map(|(e, _)| e.counts()).fold(Counts::default(), |a, c| Counts {
        holds: a.holds + c.holds,
        differs: a.differs + c.differs,
        undecided: a.undecided + c.undecided,
        not_evaluable: a.not_evaluable + c.not_evaluable,
        not_in_profile: a.not_in_profile + c.not_in_profile,
    });
    tiles(&mut b, total);
    b.push_str("<table class=\"claims\"><thead><tr><th>Study</th><th>Claim</th><th>Statement</th><th>Paper</th><th>Ours</th><th>Verdict</th></tr></thead><tbody>\n");
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

fn head(b: &mut String, title: &str) {
    let _ = write!(
        b,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{}</title><style>\n{STYLE}</style></head><body><main>\n",
        escape(title)
    );
}

fn tiles(b: &mut String, c: Counts) {
    b.push_str("<div class=\"tiles\">");
    let mut tile = |class: &str, n: usize, word: &str| {
        let _ = write!(b, "<div class=\"tile {class}\"><b>{n}</b><span>{word}</span></div>");
    };
    tile("holds", c.holds, "claims hold");
    tile("differs", c.differs, "differ");
    tile("undecided", c.undecided, "undecided");
    if c.not_evaluable > 0 {
        tile("none", c.not_evaluable, "could not be evaluated");
    }
    if c.not_in_profile > 0 {
        tile("none", c.not_in_profile, "not in the quick profile");
    }
    b.push_str("</div>\n");
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

fn figure(b: &mut String, i: usize, f: &Drawn) {
    let _ = write!(
        b,
        "<figure><div class=\"plot\" id=\"plot-{i}\" role=\"img\" aria-label=\"{}\"></div>",
        escape(&f.title)
    );
    let _ = write!(b, "<noscript>The figure needs JavaScript; its numbers are below.</noscript>");
    if let Some(caption) = &f.caption {
        let _ = write!(b, "<figcaption>{}</figcaption>", escape(caption));
    }
    // Over time there are thousands of rows; the drawing and `cells` have them.
    if f.rows.len() <= 400 {
        let _ = write!(
            b,
            "<details><summary>The numbers</summary><table><thead><tr><th>{}</th><th>Series</th><th>Reading</th>\
             <th>{}</th><th>from</th><th>to</th></tr></thead><tbody>",
            escape(&f.x_title),
            escape(&f.y_title)
        );
        for r in &f.rows {
            let at =
                if r.at.is_empty() { r.x.map_or_else(String::new, format::number) } else { r.at.clone() };
            let end = |x: Option<f64>| x.map_or_else(String::new, format::number);
            let _ = write!(
                b,
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
                escape(&at),
                escape(&r.series),
                escape(&r.reading),
                format::number(r.y),
                end(r.low),
                end(r.high)
            );
        }
        b.push_str("</tbody></table></details>");
    }
    let spec = f.spec.to_string().replace('<', "\\u003c");
    let _ = writeln!(b, "<script type=\"application/json\" id=\"spec-{i}\">{spec}</script></figure>");
}

fn tables(b: &mut String, e: &Evaluation) {
    if e.tables.is_empty() {
        return;
    }
    b.push_str("<section id=\"tables\"><h2>Tables</h2>\n");
    for t in &e.tables {
        let _ = write!(b, "<h3>{}</h3><table><thead><tr>", escape(&t.title));
        let mut lines = t.text().into_iter();
        for heading in lines.next().into_iter().flatten() {
            let _ = write!(b, "<th>{}</th>", escape(&heading));
        }
        b.push_str("</tr></thead><tbody>\n");
        for line in lines {
            b.push_str("<tr>");
            for (i, cell) in line.iter().enumerate() {
                let class = if i < t.axes.len() { "" } else { " class=\"number\"" };
                let _ = write!(b, "<td{class}>{}</td>", escape(cell));
            }
            b.push_str("</tr>\n");
        }
        b.push_str("</tbody></table>\n");
        if let Some(caption) = &t.caption {
            let _ = writeln!(b, "<p class=\"hint\">{}</p>", escape(caption));
        }
    }
    b.push_str("</section>\n");
}

fn claims(b: &mut String, e: &Evaluation) {
    b.push_str("<section id=\"claims\"><h2>Claims</h2>\n<p class=\"hint\">A claim holds if the 95 % interval \
        over the seeds lies where the claim says, differs if it lies elsewhere, and is undecided if it reaches \
        across. Comparisons are paired: both sides meet the same random losses.</p>\n\
        <table class=\"claims\"><thead><tr><th>Claim</th><th>Statement</th><th>Paper</th><th>Ours</th>\
        <th>Verdict</th></tr></thead>\n");
    for (i, c) in e.claims.iter().enumerate() {
        claim(b, i, c);
    }
    b.push_str("</table></section>\n");
}

fn claim(b: &mut String, i: usize, c: &ClaimResult) {
    let place = c.place.as_ref().map_or_else(String::new, |p| format!("<br><small>{}</small>", escape(p)));
    let note = c.note.as_ref().map_or_else(String::new, |n| format!("<p class=\"note\">{}</p>", escape(n)));
    let _ = write!(
        b,
        "<tbody id=\"claim-{i}\"><tr><th scope=\"row\">{}{place}<br><small>{}</small></th><td>{}{note}</td><td>{}</td>",
        escape(&c.id),
        c.kind.word(),
        escape(&c.says),
        escape(c.paper.as_deref().unwrap_or("–"))
    );
    for (k, o) in c.outcomes.iter().enumerate() {
        if k > 0 {
            let reading = escape(&o.reading);
            let _ = write!(b, "<tr class=\"reading\"><td></td><td colspan=\"2\">read as “{reading}”</td>");
        }
        let _ = writeln!(b, "<td>{}</td><td>{}</td></tr>", ours(o), badge(&o.verdict));
    }
    b.push_str("</tbody>\n");
}

fn ours(o: &Outcome) -> String {
    if let [one] = &o.cases[..] {
        return escape(&one.ours);
    }
    let item = |c: &crate::claim::CaseOutcome| {
        format!("<li>{} <b>{}</b>: {}</li>", badge(&c.verdict), escape(&c.case), escape(&c.ours))
    };
    format!("<ul class=\"cases\">{}</ul>", o.cases.iter().map(item).collect::<String>())
}

fn badge(v: &Verdict) -> String {
    let class = match v {
        Verdict::Holds => "holds",
        Verdict::Differs => "differs",
        Verdict::Undecided { .. } => "undecided",
        Verdict::NotInProfile | Verdict::NotEvaluable { .. } => "none",
    };
    let detail = v.detail();
    let detail =
        if detail.is_empty() { String::new() } else { format!("<small>{}</small>", escape(&detail)) };
    format!("<span class=\"badge {class}\">{} {}</span>{detail}", symbol(v), v.word())
}

fn readings(b: &mut String, e: &Evaluation) {
    if e.readings.len() < 2 {
        return;
    }
    b.push_str(
        "<section id=\"readings\"><h2>Readings</h2><p class=\"hint\">Where the source is silent or says \
        two things, these are the ways to read it.</p><dl>\n",
    );
    for (label, says) in &e.readings {
        let _ = writeln!(b, "<dt>{}</dt><dd>{}</dd>", escape(label), escape(says));
    }
    b.push_str("</dl></section>\n");
}

fn scenario(b: &mut String, e: &Evaluation) {
    b.push_str("<section id=\"scenario\"><h2>Scenario</h2><dl>\n");
    for (what, value) in &e.words {
        let _ = writeln!(b, "<dt>{}</dt><dd>{}</dd>", escape(what), escape(value));
    }
    let _ = writeln!(
        b,
        "</dl><details><summary>Resolved, as a file</summary><pre>{}</pre></details>\
         <details><summary>The study, as a file</summary><pre>{}</pre></details></section>",
        escape(&e.scenario_text),
        escape(&e.study_text)
    );
}

fn values(b: &mut String, e: &Evaluation) {
    b.push_str(
        "<section id=\"values\"><h2>Values</h2><details><summary>Means with 95 % intervals</summary>\
        <table><thead><tr><th>Reading</th>",
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
        for m in &r.metrics {
            let _ = write!(b, "<td class=\"number\">{}</td>", escape(&format::estimate(m)));
        }
        b.push_str("</tr>\n");
    }
    b.push_str("</tbody></table></details></section>\n");
}

fn provenance(b: &mut String, e: &Evaluation) {
    let p = &e.provenance;
    let last = p.first_seed + u64::from(p.seeds) - 1;
    let _ = writeln!(
        b,
        "<section id=\"provenance\"><h2>Provenance</h2><dl><dt>Study</dt><dd>{}</dd><dt>Skyhaul</dt><dd>{}</dd>\
         <dt>Engine</dt><dd>{}</dd><dt>Seeds</dt><dd>{}–{last}, the same for every combination</dd>\
         <dt>Cells</dt><dd>{}</dd><dt>Hash</dt><dd><code>{}</code></dd></dl>\
         <p class=\"hint\">The same study, version and engine give the same numbers on any machine.</p></section>",
        escape(&e.name),
        escape(&p.version),
        escape(&p.engine),
        p.first_seed,
        p.cells,
        escape(&p.hash)
    );
}

fn scripts(b: &mut String, figures: &[Drawn]) {
    if figures.is_empty() {
        return;
    }
    for library in [VEGA, VEGA_LITE, VEGA_EMBED] {
        // A reference to a source map would be the only thing the page looks for elsewhere.
        let code = library.lines().filter(|l| !l.starts_with("//# sourceMappingURL"));
        let _ = writeln!(b, "<script>{}</script>", code.collect::<Vec<_>>().join("\n"));
    }
    let _ = writeln!(
        b,
        "<script>for (let i = 0; i < {}; i++) {{ \
         const spec = JSON.parse(document.getElementById('spec-' + i).textContent); \
         vegaEmbed('#plot-' + i, spec, {{ renderer: 'svg', \
         actions: {{ export: true, source: false, compiled: false, editor: false }} }}); }}</script>",
        figures.len()
    );
}

/// Text for HTML, in elements and attributes.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_markup() {
        assert_eq!(escape("<b a=\"1\">&"), "&lt;b a=&quot;1&quot;&gt;&amp;");
    }

    #[test]
    fn the_libraries_cannot_end_their_element_and_fit_each_other() {
        for library in [VEGA, VEGA_LITE, VEGA_EMBED] {
            assert!(!library.contains("</script") && !library.contains("<!--"));
        }
        // `vega-embed` warns on a mismatch of the major versions of specification and library.
        assert!(VEGA_LITE.contains("\"6.") || VEGA_LITE.contains("`6.") || VEGA_LITE.contains("'6."));
    }
}

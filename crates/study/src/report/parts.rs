//! Pieces of pages: figures, tables, claims. Ids begin with a prefix, so that several studies fit on one page.

use super::packed;
use super::text::symbol;
use crate::claim::{CaseOutcome, ClaimResult, Outcome, Verdict};
use crate::evaluation::{Counts, Evaluation};
use crate::figure::FigureData;
use crate::format;
use crate::model::called;
use std::fmt::Write as _;

const VEGA: &str = include_str!("../../assets/vega.min.js");
const VEGA_LITE: &str = include_str!("../../assets/vega-lite.min.js");
const VEGA_EMBED: &str = include_str!("../../assets/vega-embed.min.js");
const STYLE: &str = include_str!("../../assets/report.css");
const FIGURES: &str = include_str!("../../assets/figures.js");
const PAGE: &str = include_str!("../../assets/page.js");

/// Failed cells, each with its message and, where there is one, its traceback.
pub(super) fn failed(b: &mut String, e: &Evaluation) {
    if e.failed.is_empty() {
        return;
    }
    let _ = writeln!(
        b,
        "<section class=\"failed\"><p class=\"warning\">{} of {} cells failed; claims over them are not evaluated.</p>",
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
            escape(f.detail.as_deref().unwrap_or("No further details."))
        );
    }
    b.push_str("</section>\n");
}

pub(super) fn head(b: &mut String, title: &str) {
    top(b, title);
    b.push_str("<body><main>\n");
}

/// A page with its contents, up to its heading: the header is still open.
pub(super) fn open(b: &mut String, title: &str, contents: impl FnOnce(&mut String)) {
    top(b, title);
    b.push_str("<body class=\"book\" id=\"top\">");
    contents(b);
    let _ = write!(b, "<main>\n<header><h1>{}</h1>", escape(title));
}

/// Everything before the body.
fn top(b: &mut String, title: &str) {
    let _ = write!(
        b,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{}</title><style>\n{STYLE}</style></head>",
        escape(title)
    );
}

/// The contents beside the text, or above it on a narrow screen; `list` writes the entries.
pub(super) fn contents(b: &mut String, before: &str, list: impl FnOnce(&mut String)) {
    let _ = write!(
        b,
        "<nav class=\"side\" aria-label=\"Contents\"><details open><summary>Contents</summary>{before}<ul>"
    );
    list(b);
    b.push_str("</ul></details></nav>\n");
}

pub(super) fn tiles(b: &mut String, c: Counts, not_counted: usize) {
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
    if not_counted > 0 {
        tile("none", not_counted, "not counted");
    }
    b.push_str("</div>\n");
}

/// Longest list of points that a report prints as numbers. Figures over time have thousands: their points are in the drawing
/// alone.
const PRINTED_POINTS: usize = 400;

pub(super) fn figure(b: &mut String, prefix: &str, i: usize, f: &FigureData) {
    if f.is_empty() {
        let _ = writeln!(
            b,
            "<p class=\"hint\">“{}” is not drawn: none of its combinations ran or has a value.</p>",
            escape(&f.title)
        );
        return;
    }
    let _ = write!(
        b,
        "<figure><div class=\"plot\" id=\"{prefix}plot-{i}\" role=\"img\" aria-label=\"{}\"></div>",
        escape(&f.title)
    );
    let printed = f.rows.len() <= PRINTED_POINTS;
    let below = if printed { "; its numbers are below" } else { "" };
    let _ = write!(b, "<noscript>The figure needs JavaScript{below}.</noscript>");
    if let Some(caption) = &f.caption {
        let _ = write!(b, "<figcaption>{}</figcaption>", escape(caption));
    }
    if printed {
        b.push_str("<details class=\"numbers\"><summary>The numbers</summary><table><thead><tr>");
        if let Some(points) = &f.points {
            let _ = write!(b, "<th>{}</th>", escape(points));
        }
        let along = if f.points.is_some() { "<th>from</th><th>to</th>" } else { "" };
        let _ = write!(
            b,
            "<th>{}</th>{along}<th>Series</th><th>Reading</th><th>{}</th><th>from</th><th>to</th></tr></thead><tbody>",
            escape(&f.x_title),
            escape(&f.y_title)
        );
        for r in &f.rows {
            let end = |x: Option<f64>| x.map_or_else(String::new, format::number);
            let at = if r.at.is_empty() { end(r.x) } else { r.at.clone() };
            let _ = write!(b, "<tr><td>{}</td>", escape(&at));
            if f.points.is_some() {
                let _ = write!(b, "<td>{}</td><td>{}</td><td>{}</td>", end(r.x), end(r.left), end(r.right));
            }
            let _ = write!(
                b,
                "<td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
                escape(&r.series),
                escape(&r.reading),
                format::number(r.y),
                end(r.low),
                end(r.high)
            );
        }
        b.push_str("</tbody></table></details>");
    }
    if f.thinned {
        b.push_str(
            "<p class=\"hint\">Long curves are thinned for the screen: only the smallest and the largest \
            sample of every column of pixels.</p>",
        );
    }
    let spec = packed::pack(&f.spec).to_string().replace('<', "\\u003c");
    let _ = writeln!(
        b,
        "<script type=\"application/json\" class=\"spec\" data-plot=\"{prefix}plot-{i}\">{spec}</script></figure>"
    );
}

pub(super) fn tables(b: &mut String, e: &Evaluation) {
    let tested = e.candidate.as_deref();
    for t in &e.tables {
        let _ = write!(
            b,
            "<div class=\"wide\"><table class=\"means\"><caption>{}</caption><thead><tr>",
            escape(&t.title)
        );
        let mut lines = t.text().into_iter();
        for heading in lines.next().into_iter().flatten() {
            let _ = write!(b, "<th>{}</th>", escape(&named(&heading, t.across.as_deref(), tested)));
        }
        b.push_str("</tr></thead><tbody>\n");
        for line in lines {
            b.push_str("<tr>");
            for (i, cell) in line.iter().enumerate() {
                let (class, cell) = if i < t.axes.len() {
                    ("", called(cell, tested))
                } else {
                    (" class=\"number\"", cell.as_str())
                };
                let _ = write!(b, "<td{class}>{}</td>", escape(cell));
            }
            b.push_str("</tr>\n");
        }
        b.push_str("</tbody></table></div>\n");
        if let Some(caption) = &t.caption {
            let _ = writeln!(b, "<p class=\"hint\">{}</p>", escape(caption));
        }
    }
}

/// The heading of a column for readers: a column for the control under test has the name of that control. `across` is the
/// axis whose values are columns.
fn named(heading: &str, across: Option<&str>, tested: Option<&str>) -> String {
    let label = across.and_then(|axis| heading.strip_prefix(axis)?.strip_prefix(' '));
    let (Some(axis), Some(label)) = (across, label) else { return called(heading, tested).to_owned() };
    match label.split_once(": ") {
        Some((label, metric)) => format!("{axis} {}: {metric}", called(label, tested)),
        None => format!("{axis} {}", called(label, tested)),
    }
}

/// The explanation of the verdicts.
pub(super) const RULE: &str = "A claim is about means over the seeds, as papers print them, or about medians where its metric says so. It holds if \
    the 95 % interval lies where the claim says, differs if it lies elsewhere, and is undecided if it reaches across. Comparisons are paired: both sides meet the same random \
    losses.";

pub(super) fn claims(b: &mut String, prefix: &str, e: &Evaluation) {
    b.push_str(
        "<table class=\"claims\"><thead><tr><th>Claim</th><th>Statement</th><th>Paper</th><th>Ours</th>\
        <th>Verdict</th></tr></thead>\n",
    );
    for (i, c) in e.claims.iter().enumerate() {
        claim(b, prefix, i, c);
    }
    b.push_str("</table>\n");
}

fn claim(b: &mut String, prefix: &str, i: usize, c: &ClaimResult) {
    let place = c.place.as_ref().map_or_else(String::new, |p| format!("<br><small>{}</small>", escape(p)));
    let note = c.note.as_ref().map_or_else(String::new, |n| format!("<p class=\"note\">{}</p>", escape(n)));
    // Pages over several studies have a list of all claims, which this one goes back to.
    let back = if prefix.is_empty() {
        String::new()
    } else {
        format!(" <a class=\"back\" href=\"#in-{prefix}claim-{i}\" title=\"Among all claims\">↑</a>")
    };
    let _ = write!(
        b,
        "<tbody id=\"{prefix}claim-{i}\" data-verdict=\"{}\"><tr><th scope=\"row\">{}{back}{place}<br><small>{}</small></th>\
         <td>{}{note}</td><td>{}</td>",
        class(c.verdict()),
        escape(&c.id),
        c.why_not_counted()
            .map_or_else(|| c.kind.word().to_owned(), |why| format!("{}, {}", c.kind.word(), escape(&why))),
        escape(&c.says),
        escape(c.paper.as_deref().unwrap_or("–"))
    );
    for (k, o) in c.outcomes.iter().enumerate() {
        // A reading with the same result is left out.
        if k > 0 && o.ours == c.outcomes[0].ours && o.verdict == c.outcomes[0].verdict {
            continue;
        }
        if k > 0 {
            let reading = escape(&o.reading);
            let _ = write!(b, "<tr class=\"reading\"><td></td><td colspan=\"2\">read as “{reading}”</td>");
        }
        let _ = writeln!(b, "<td>{}</td><td>{}</td></tr>", ours(o), badge(&o.verdict));
    }
    b.push_str("</tbody>\n");
}

/// Largest number of cases of a claim that are shown unfolded.
pub(super) const MANY: usize = 8;

/// The measurement of a claim, case by case.
pub(super) fn ours(o: &Outcome) -> String {
    if let [one] = &o.cases[..] {
        return escape(&one.ours);
    }
    let item = |c: &CaseOutcome| {
        format!("<li>{} <b>{}</b>: {}</li>", badge(&c.verdict), escape(&c.case), escape(&c.ours))
    };
    let list = format!("<ul class=\"cases\">{}</ul>", o.cases.iter().map(item).collect::<String>());
    if o.cases.len() <= MANY {
        return list;
    }
    let mut words: Vec<(&str, usize)> = Vec::new();
    for case in &o.cases {
        match words.iter_mut().find(|(word, _)| *word == case.verdict.word()) {
            Some((_, n)) => *n += 1,
            None => words.push((case.verdict.word(), 1)),
        }
    }
    let words: Vec<String> = words.iter().map(|(word, n)| format!("{n} × {word}")).collect();
    format!("<details><summary>{} cases: {}</summary>{list}</details>", o.cases.len(), words.join(", "))
}

/// The name of a verdict in styles and filters.
pub(super) fn class(v: &Verdict) -> &'static str {
    match v {
        Verdict::Holds => "holds",
        Verdict::Differs => "differs",
        Verdict::Undecided { .. } => "undecided",
        Verdict::NotInProfile | Verdict::NotEvaluable { .. } => "none",
    }
}

pub(super) fn badge(v: &Verdict) -> String {
    let class = class(v);
    let detail = v.detail();
    let detail =
        if detail.is_empty() { String::new() } else { format!(" <small>{}</small>", escape(&detail)) };
    format!("<span class=\"badge {class}\">{}\u{a0}{}</span>{detail}", symbol(v), v.word())
}

pub(super) fn readings(b: &mut String, e: &Evaluation) {
    if e.readings.len() < 2 {
        return;
    }
    b.push_str(
        "<p class=\"hint\">Where the source is silent or contradicts itself, these are its possible readings.</p><dl>\n",
    );
    for (label, says) in &e.readings {
        let _ = writeln!(b, "<dt>{}</dt><dd>{}</dd>", escape(label), escape(says));
    }
    b.push_str("</dl>\n");
}

/// The scenario in words, and as files to download.
pub(super) fn scenario(b: &mut String, e: &Evaluation) {
    b.push_str("<dl>\n");
    for (what, value) in &e.words {
        let _ = writeln!(b, "<dt>{}</dt><dd>{}</dd>", escape(what), escape(value));
    }
    for (axis, values) in &e.axes {
        let _ = writeln!(b, "<dt>Varied: {}</dt><dd>{}</dd>", escape(axis), escape(&values.join(" · ")));
    }
    b.push_str("</dl>");
    file(
        b,
        "Scenario before the axes, resolved, as a file",
        &format!("{}.scenario.toml", e.name),
        &e.scenario_text,
    );
    file(b, "The study, as a file", &format!("{}.toml", e.name), &e.study_text);
}

/// A file to look at and to download.
fn file(b: &mut String, title: &str, name: &str, text: &str) {
    let _ = writeln!(
        b,
        "<details class=\"file\"><summary>{}</summary><p><a download=\"{}\" href=\"data:text/plain;charset=utf-8,{}\">\
         Download {}</a></p><pre>{}</pre></details>",
        escape(title),
        escape(name),
        percent_encoded(text),
        escape(name),
        escape(text)
    );
}

/// Text in a data URI (RFC 3986 §2.3: unreserved characters stay).
fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 3 / 2);
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}

/// The libraries, once, and the script that draws all figures of the page.
pub(super) fn scripts(b: &mut String, figures: usize) {
    if figures == 0 {
        return;
    }
    for library in [VEGA, VEGA_LITE, VEGA_EMBED, FIGURES] {
        // Without its reference to a source map the page loads nothing from elsewhere.
        let code = library.lines().filter(|l| !l.starts_with("//# sourceMappingURL"));
        let _ = writeln!(b, "<script>{}</script>", code.collect::<Vec<_>>().join("\n"));
    }
}

/// Search and filter of a page over several studies.
pub(super) fn filter(b: &mut String) {
    let _ = writeln!(b, "<script>{PAGE}</script>");
}

/// Text for HTML, in elements and attributes.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_have_the_name_of_the_control_under_test() {
        let of = |heading: &str| named(heading, Some("cc"), Some("hark"));
        assert_eq!(of("cc candidate"), "cc hark");
        assert_eq!(of("cc candidate: Goodput (Mbit/s)"), "cc hark: Goodput (Mbit/s)");
        assert_eq!([of("cc CUBIC"), of("Path")], ["cc CUBIC", "Path"]);
        assert_eq!(named("cc candidate", Some("cc"), None), "cc candidate");
        assert_eq!(named("candidate", None, Some("hark")), "hark");
    }

    #[test]
    fn a_file_in_a_link_is_the_file() {
        assert_eq!(percent_encoded("a = \"é\"\n#"), "a%20%3D%20%22%C3%A9%22%0A%23");
    }

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

//! A standalone page: a table and figures, without a study.

use super::parts::{escape, figure, head, scripts};
use crate::figure::FigureData;
use std::fmt::Write as _;

/// A page with a title, paragraphs, a table (its first row is the head), and figures. Nothing is fetched.
#[must_use]
pub fn plain(title: &str, paragraphs: &[String], table: &[Vec<String>], figures: &[FigureData]) -> String {
    let mut b = String::new();
    head(&mut b, title);
    let _ = writeln!(b, "<header><h1>{}</h1></header>", escape(title));
    for p in paragraphs {
        let _ = writeln!(b, "<p>{}</p>", escape(p));
    }
    if let Some((heads, rows)) = table.split_first() {
        b.push_str("<div class=\"wide\"><table class=\"means\"><thead><tr>");
        for h in heads {
            let _ = write!(b, "<th>{}</th>", escape(h));
        }
        b.push_str("</tr></thead><tbody>");
        for r in rows {
            b.push_str("<tr>");
            for c in r {
                let _ = write!(b, "<td>{}</td>", escape(c));
            }
            b.push_str("</tr>");
        }
        b.push_str("</tbody></table></div>\n");
    }
    for (i, f) in figures.iter().enumerate() {
        figure(&mut b, "", i, f);
    }
    scripts(&mut b, figures.len());
    b.push_str("</main></body></html>\n");
    b
}

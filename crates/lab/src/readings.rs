//! Searches over readings ([`skyhaul_study::fit`]): the text that the command prints, and the files.

use crate::error::LabError;
use crate::results::{self, MANIFEST};
use crate::text::{Grid, short};
use skyhaul_study::fit::{Course, Fitted, ReadingRow};
use skyhaul_study::format;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Name of the file with the text of the command.
const TEXT: &str = "fit.txt";
/// Name of the file with all results as JSON.
const SUMMARY: &str = "fit.json";

/// What the command prints.
#[must_use]
pub fn text(found: &Fitted) -> String {
    let mut out = format!("{}: {}\n", found.name, found.title);
    let _ = writeln!(out, "{}", course(found));
    let _ = writeln!(
        out,
        "Misfit: root mean square of ln(ours / printed); 0.1 is about 10 %. Readings below: fresh seeds {}.\n",
        seeds(found.fresh)
    );
    let mut grid =
        Grid::new(&["printed", "paper", "where", "metric", "value", "weight"]).left(1).left(2).left(3);
    for n in &found.numbers {
        let place = n.place.clone().unwrap_or_default();
        let (value, weight) = (format::number(n.value), format::number(n.weight));
        grid.row(vec![n.id.clone(), n.paper.clone(), place, n.heading.clone(), value, weight]);
    }
    let _ = writeln!(out, "{}", grid.lines(0));
    if !found.left_out.is_empty() {
        let _ = writeln!(out, "Left out, since no reading can meet them:");
        for l in &found.left_out {
            let place = l.place.as_ref().map_or_else(String::new, |p| format!(" {p}"));
            let _ = writeln!(out, "  {} ({}{place}): {}: {}", l.id, l.paper, l.says, l.why);
        }
        let _ = writeln!(out);
    }
    out += &readings(found);
    out += &tests(found);
    out += &options(found);
    out
}

/// Seeds as text: `1-3`, or `1` for a single one.
fn seeds((first, count): (u64, u32)) -> String {
    match count {
        1 => first.to_string(),
        _ => format!("{first}-{}", first.wrapping_add(u64::from(count) - 1)),
    }
}

/// A line on the search: how it went, and how many readings and cells it measured.
fn course(found: &Fitted) -> String {
    let how = match found.course {
        Course::Grid => "all readings".to_owned(),
        Course::Descent { starts, over_budget } => {
            let end = if over_budget { "; the budget is used up" } else { "" };
            format!("one option at a time from {starts} starts{end}")
        }
    };
    let refused = match found.refused {
        0 => String::new(),
        n => format!(", {n} refused"),
    };
    format!(
        "Search: {how}; {} of {} readings differ and were measured{refused}; {} cells of at most {}, seeds {}.",
        found.measured,
        found.size,
        found.cells,
        found.budget,
        seeds(found.seeds)
    )
}

fn readings(found: &Fitted) -> String {
    let several = found.papers.len() > 1;
    let mut heads = vec!["no".to_owned(), "misfit".to_owned()];
    heads.extend(found.papers.iter().filter(|_| several).cloned());
    heads.push("rank".to_owned());
    heads.extend(found.numbers.iter().map(|n| format!("{}: {}", n.id, format::number(n.value))));
    heads.push("reading".to_owned());
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut grid = Grid::new(&heads).left(heads.len() - 1);
    for (i, r) in found.readings.iter().enumerate() {
        let mut cells = vec![format!("{}", i + 1), short(r.misfit)];
        cells.extend(r.of_papers.iter().filter(|_| several).map(|m| short(*m)));
        cells.push(r.rank.map_or_else(|| "–".to_owned(), |rank| rank.to_string()));
        cells.extend(
            r.values.iter().zip(&r.errors).map(|(v, e)| format!("{} ({})", format::brief(v), deviation(*e))),
        );
        cells.push(title(r));
        grid.row(cells);
    }
    format!("{}\n", grid.lines(0))
}

/// Name and options of a reading.
fn title(r: &ReadingRow) -> String {
    let words: Vec<String> = r.words.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    match (&r.label, words.is_empty()) {
        (Some(label), true) => format!("{label} (first values)"),
        (Some(label), false) => format!("{label} ({})", words.join("; ")),
        (None, true) => "first values".to_owned(),
        (None, false) => words.join("; "),
    }
}

/// The deviation of a ratio from 1 as a signed percentage; `error` is the natural logarithm of the ratio.
fn deviation(error: f64) -> String {
    if !error.is_finite() {
        return "–".to_owned();
    }
    let percent = 100.0 * (error.exp() - 1.0);
    format!("{}{:.0} %", if percent < 0.0 { "−" } else { "+" }, percent.abs())
}

/// The table of the readings fitted to one paper, tested on the others.
fn tests(found: &Fitted) -> String {
    let mut grid = Grid::new(&["fitted to", "reading", "misfit", "others", "others, left open"]);
    for t in &found.tests {
        let open =
            t.open.map_or_else(String::new, |(least, most)| format!("{} to {}", short(least), short(most)));
        let paper = t.paper.clone().unwrap_or_else(|| "all".to_owned());
        let others = t.others.map_or_else(String::new, short);
        grid.row(vec![paper, format!("{}", t.reading + 1), short(t.own), others, open]);
    }
    format!("{}\n", grid.lines(0))
}

/// The table of the least misfit with each value of an option.
fn options(found: &Fitted) -> String {
    let several = found.papers.len() > 1;
    let mut heads = vec!["option", "value", "least misfit"];
    heads.extend(found.papers.iter().filter(|_| several).map(String::as_str));
    let mut grid = Grid::new(&heads).left(1);
    for o in &found.options {
        for (i, v) in o.values.iter().enumerate() {
            let name = if i == 0 { o.name.clone() } else { String::new() };
            let least = |m: &f64| if m.is_finite() { short(*m) } else { "–".to_owned() };
            let mut cells = vec![name, v.label.clone(), least(&v.least[0])];
            cells.extend(v.least[1..].iter().filter(|_| several).map(least));
            grid.row(cells);
        }
    }
    grid.lines(0)
}

/// Writes the text, and everything as JSON, into a locked folder ([`Lease`](crate::lease::Lease)); returns the files.
///
/// # Errors
/// The file that could not be written, and why.
pub fn write(found: &Fitted, text: &str, folder: &Path) -> Result<Vec<PathBuf>, LabError> {
    let [lines, summary, manifest] = [TEXT, SUMMARY, MANIFEST].map(|name| folder.join(name));
    results::text(&lines, text)?;
    results::json_file(&summary, &found.summary())?;
    // Last: a folder with a manifest is complete.
    results::json_file(&manifest, &results::manifest("fit"))?;
    Ok(vec![lines, summary, manifest])
}

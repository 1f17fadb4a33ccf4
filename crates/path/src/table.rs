//! Tables of values over time, in CSV: a header that names time and value with their units, then one line per time.

use crate::trace::{Broken, MAX_LINES, broken, shown};
use alloc::format;
use alloc::vec::Vec;
use skyhaul_base::Duration;
use skyhaul_base::decimal::Decimal;

/// Columns of time in a file, and nanoseconds per unit.
const TIMES: &[(&str, u64)] =
    &[("time_s", 1_000_000_000), ("time_ms", 1_000_000), ("time_us", 1_000), ("time_ns", 1)];

pub(crate) type Points = Vec<(Duration, u64)>;

/// The rows of a table with a column of time and one of `what`, in base units, and the line number of each.
pub(crate) fn read(text: &str, what: &str, units: &[(&str, u64)]) -> Result<(Points, Vec<usize>), Broken> {
    let mut rows = (1..)
        .zip(text.lines())
        .map(|(line, row)| (line, row.trim()))
        .filter(|(_, row)| !row.is_empty() && !row.starts_with('#'));
    let names = |units: &[(&str, u64)]| units.iter().map(|u| u.0).collect::<Vec<_>>().join(", ");
    let example = format!("time_s,{}", units[0].0);
    let Some((at, header)) = rows.next() else {
        return broken(0, format!("empty: begin with a header such as {example}"));
    };
    let columns: Vec<&str> = header.split(',').map(str::trim).collect();
    let find = |what: &str, units: &[(&str, u64)]| {
        let mut found = columns
            .iter()
            .enumerate()
            .filter_map(|(i, name)| units.iter().find(|u| u.0 == *name).map(|u| (i, u.1)));
        match (found.next(), found.next()) {
            (Some(column), None) => Ok(column),
            (None, _) => broken(
                at,
                format!("the header has no column of {what}: write one of {}, as in {example}", names(units)),
            ),
            _ => broken(at, format!("the header has two columns of {what}: leave one out")),
        }
    };
    let (time, value) = (find("time", TIMES)?, find(what, units)?);
    let (mut points, mut lines): (Points, _) = (Vec::new(), Vec::new());
    for (line, row) in rows {
        let fields: Vec<&str> = row.split(',').map(str::trim).collect();
        if fields.len() != columns.len() {
            let (n, all) = (fields.len(), columns.len());
            return broken(line, format!("{n} values, but the header has {all} columns"));
        }
        let read = |(column, unit): (usize, u64)| {
            let (word, name) = (fields[column], columns[column]);
            let number = Decimal::parse(word).and_then(|d| d.times(unit));
            number.ok_or_else(|| {
                let message = if word.starts_with('-') {
                    format!("{name} is {}, which is negative: write a number ≥ 0", shown(word))
                } else {
                    format!("{name} is {}, which is not a valid number: write a number ≥ 0", shown(word))
                };
                Broken { line, message }
            })
        };
        points.push((Duration::from_nanos(read(time)?), read(value)?));
        lines.push(line);
        if lines.len() > MAX_LINES {
            return broken(line, format!("more than {MAX_LINES} lines"));
        }
    }
    if points.is_empty() {
        return broken(at, "there is no line after the header: write at least one");
    }
    Ok((points, lines))
}

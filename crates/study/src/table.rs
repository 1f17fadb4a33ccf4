//! Tables in columns, for whoever writes Parquet, Arrow or CSV.

use std::fmt::Write as _;
use std::path::Path;

/// Named columns of equal length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Name and values.
    pub columns: Vec<(String, Column)>,
}

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Whole numbers.
    Count(Vec<u64>),
    /// Real numbers; NaN is missing.
    Real(Vec<f64>),
    /// Texts.
    Text(Vec<String>),
}

/// Writes tables in the caller's format.
pub trait TableWriter {
    /// Ending of its files, such as `parquet`.
    fn extension(&self) -> &str;
    /// Writes.
    ///
    /// # Errors
    /// One sentence.
    fn write(&self, table: &Table, path: &Path) -> Result<(), String>;
}

/// Comma-separated values: the format that needs no library.
#[derive(Clone, Copy, Debug, Default)]
pub struct Csv;

impl TableWriter for Csv {
    fn extension(&self) -> &'static str {
        "csv"
    }
    fn write(&self, table: &Table, path: &Path) -> Result<(), String> {
        crate::cache::write_atomically(path, csv(table).as_bytes()).map_err(|e| e.to_string())
    }
}

impl Table {
    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, c)| match c {
            Column::Count(v) => v.len(),
            Column::Real(v) => v.len(),
            Column::Text(v) => v.len(),
        })
    }
}

/// The table as comma-separated values (RFC 4180), missing numbers empty.
#[must_use]
pub fn csv(table: &Table) -> String {
    let quoted = |s: &str| {
        let special = s.contains(['"', ',', '\n', '\r']);
        if special { format!("\"{}\"", s.replace('"', "\"\"")) } else { s.to_owned() }
    };
    let names: Vec<_> = table.columns.iter().map(|(n, _)| quoted(n)).collect();
    let mut text = names.join(",") + "\n";
    for row in 0..table.rows() {
        for (i, (_, column)) in table.columns.iter().enumerate() {
            if i > 0 {
                text.push(',');
            }
            let _ = match column {
                Column::Count(v) => write!(text, "{}", v[row]),
                Column::Real(v) if v[row].is_nan() => Ok(()),
                Column::Real(v) => write!(text, "{}", v[row]),
                Column::Text(v) => write!(text, "{}", quoted(&v[row])),
            };
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_and_quotes_are_quoted_and_gaps_are_empty() {
        let t = Table {
            columns: vec![
                ("seed".into(), Column::Count(vec![1, 2])),
                ("x, y".into(), Column::Text(vec!["a \"b\"".into(), "c".into()])),
                ("goodput".into(), Column::Real(vec![0.5, f64::NAN])),
            ],
        };
        assert_eq!(csv(&t), "seed,\"x, y\",goodput\n1,\"a \"\"b\"\"\",0.5\n2,c,\n");
    }
}

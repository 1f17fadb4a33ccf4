//! Tables in columns, for writers of Parquet, Arrow or CSV.

use crate::files;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Named columns of equal length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    columns: Vec<(String, Column)>,
}

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Counts.
    Count(Vec<u64>),
    /// Real numbers, any of which may be missing.
    Maybe(Vec<Option<f64>>),
    /// Real numbers.
    Real(Vec<f64>),
    /// Strings with few distinct values: each row is an index into `values`.
    Text {
        /// The distinct texts.
        values: Vec<String>,
        /// One index per row.
        rows: Vec<u32>,
    },
}

/// Writes tables in the caller's format.
pub trait TableWriter {
    /// Extension of its files, such as `parquet`.
    fn extension(&self) -> &str;
    /// Writes.
    ///
    /// # Errors
    /// If the file cannot be written.
    fn write(&self, table: &Table, path: &Path) -> std::io::Result<()>;
}

/// Comma-separated values, which need no library.
#[derive(Clone, Copy, Debug, Default)]
pub struct Csv;

impl TableWriter for Csv {
    fn extension(&self) -> &'static str {
        "csv"
    }
    fn write(&self, table: &Table, path: &Path) -> std::io::Result<()> {
        files::replace(path, csv(table).as_bytes())
    }
}

impl Column {
    /// A column of texts.
    pub fn text<S: Into<String>>(rows: impl IntoIterator<Item = S>) -> Self {
        let mut values: Vec<String> = Vec::new();
        let mut index = BTreeMap::new();
        let rows = rows
            .into_iter()
            .map(|row| {
                let row: String = row.into();
                *index.entry(row).or_insert_with_key(|row| {
                    values.push(row.clone());
                    values.len() as u32 - 1
                })
            })
            .collect();
        Self::Text { values, rows }
    }

    /// A column of real numbers; NaN is missing.
    #[must_use]
    pub fn real(values: Vec<f64>) -> Self {
        if values.iter().any(|x| x.is_nan()) {
            Self::Maybe(values.into_iter().map(|x| (!x.is_nan()).then_some(x)).collect())
        } else {
            Self::Real(values)
        }
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Count(v) => v.len(),
            Self::Maybe(v) => v.len(),
            Self::Real(v) => v.len(),
            Self::Text { rows, .. } => rows.len(),
        }
    }

    /// True without rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Table {
    /// A table of these columns.
    ///
    /// # Panics
    /// If their lengths differ.
    #[must_use]
    pub fn new(columns: Vec<(String, Column)>) -> Self {
        let rows = columns.first().map_or(0, |c| c.1.len());
        for (name, column) in &columns {
            assert_eq!(column.len(), rows, "column {name} is as long as the others");
        }
        Self { columns }
    }

    /// Names and values, in order.
    #[must_use]
    pub fn columns(&self) -> &[(String, Column)] {
        &self.columns
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |c| c.1.len())
    }
}

/// A string as a spreadsheet cell that must not be taken for a formula: if it begins like one, it gets an apostrophe
/// in front, which spreadsheets hide. Numbers are unchanged.
#[must_use]
pub fn inert(text: &str) -> Cow<'_, str> {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']) && text.len() > 1;
    if formula && text.parse::<f64>().is_err() { format!("'{text}").into() } else { text.into() }
}

/// The table as comma-separated values, quoted as in RFC 4180, in lines that end with LF. Missing numbers are empty. Strings
/// are [`inert`].
#[must_use]
pub fn csv(table: &Table) -> String {
    let quoted = |s: &str| {
        let s = inert(s);
        let special = s.contains(['"', ',', '\n', '\r']);
        if special { format!("\"{}\"", s.replace('"', "\"\"")) } else { s.into_owned() }
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
                Column::Maybe(v) => v[row].map_or(Ok(()), |x| write!(text, "{x}")),
                Column::Real(v) => write!(text, "{}", v[row]),
                Column::Text { values, rows } => write!(text, "{}", quoted(&values[rows[row] as usize])),
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
        let t = Table::new(vec![
            ("seed".into(), Column::Count(vec![1, 2])),
            ("x, y".into(), Column::text(["a \"b\"", "c"])),
            ("goodput".into(), Column::real(vec![0.5, f64::NAN])),
        ]);
        assert_eq!(csv(&t), "seed,\"x, y\",goodput\n1,\"a \"\"b\"\"\",0.5\n2,c,\n");
    }

    #[test]
    fn no_text_is_a_formula() {
        let t = Table::new(vec![(
            "=A1".into(),
            Column::text(["=1+1", "@SUM(A1)", "-3 dB", "-1e-3", "-", "a=b"]),
        )]);
        assert_eq!(csv(&t), "'=A1\n'=1+1\n'@SUM(A1)\n'-3 dB\n-1e-3\n-\na=b\n");
    }

    #[test]
    fn texts_are_kept_once() {
        let column = Column::text(["bulk", "web", "bulk"]);
        assert_eq!(column, Column::Text { values: vec!["bulk".into(), "web".into()], rows: vec![0, 1, 0] });
        assert_eq!(Column::real(vec![1.0]), Column::Real(vec![1.0]));
    }
}

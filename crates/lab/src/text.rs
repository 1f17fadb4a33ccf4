//! Numbers with units and aligned columns for the terminal.

use skyhaul_base::readable;
use std::fmt::Write as _;

/// Three significant digits, by the rule of [`readable`].
#[must_use]
pub fn short(x: f64) -> String {
    readable::significant(x, readable::USUAL)
}

/// A rate in bit/s with a suitable prefix.
#[must_use]
pub fn bit_rate(x: f64) -> String {
    let (by, unit) = match x {
        x if x >= 1e9 => (1e9, "Gbit/s"),
        x if x >= 1e6 => (1e6, "Mbit/s"),
        x if x >= 1e3 => (1e3, "kbit/s"),
        _ => (1.0, "bit/s"),
    };
    format!("{} {unit}", short(x / by))
}

/// A time in seconds with a suitable prefix.
#[must_use]
pub fn seconds(x: f64) -> String {
    if x != 0.0 && x < 0.9995 { format!("{} ms", short(x * 1e3)) } else { format!("{} s", short(x)) }
}

/// A fraction in per cent.
#[must_use]
pub fn percent(x: f64) -> String {
    format!("{} %", short(x * 100.0))
}

/// Rows of cells; the first row is the header. Columns are as wide as necessary; the first is left-aligned, all others
/// right-aligned unless [`Grid::left`] says otherwise.
#[derive(Clone, Debug, Default)]
pub struct Grid {
    rows: Vec<Vec<String>>,
    left: Vec<usize>,
}

impl Grid {
    /// A grid with this header.
    #[must_use]
    pub fn new(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(|h| (*h).into()).collect()], left: vec![0] }
    }

    /// Aligns a column to the left.
    #[must_use]
    pub fn left(mut self, column: usize) -> Self {
        self.left.push(column);
        self
    }

    /// Appends a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The rows, the header first.
    #[must_use]
    pub fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// The lines, each indented by `indent` spaces and ended by a line break.
    #[must_use]
    pub fn lines(&self, indent: usize) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |c: usize| self.rows.iter().filter_map(|r| r.get(c)).map(|t| t.chars().count()).max();
        let widths: Vec<usize> = (0..columns).map(|c| width(c).unwrap_or(0)).collect();
        let mut out = String::new();
        for row in &self.rows {
            let mut line = " ".repeat(indent);
            for (c, cell) in row.iter().enumerate() {
                let gap = if c == 0 { 0 } else { 2 };
                let fill = widths[c] - cell.chars().count();
                let (before, after) = if self.left.contains(&c) { (0, fill) } else { (fill, 0) };
                let _ = write!(line, "{}{cell}{}", " ".repeat(gap + before), " ".repeat(after));
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_times_and_shares_have_three_digits() {
        assert_eq!(bit_rate(10_400_000.0), "10.4 Mbit/s");
        assert_eq!(bit_rate(999.0), "999 bit/s");
        assert_eq!(
            (seconds(0.55), seconds(550.0), seconds(0.0)),
            ("550 ms".into(), "550 s".into(), "0 s".into())
        );
        assert_eq!(percent(0.1721), "17.2 %");
    }

    #[test]
    fn columns_line_up() {
        let mut g = Grid::new(&["flows", "n"]);
        g.row(vec!["bulk".into(), "20".into()]);
        assert_eq!(g.lines(2), "  flows   n\n  bulk   20\n");
    }
}

//! Sampled values, in columns.

use alloc::vec::Vec;
use skyhaul_base::Instant;

/// Rows of (time, entity, one value per metric), stored as columns for figures, Arrow and Parquet.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The metrics, in the order of `columns`.
    pub names: Vec<&'static str>,
    /// Time of each row; never decreases.
    pub time: Vec<Instant>,
    /// The flow or link of each row.
    pub entity: Vec<u32>,
    /// One column per metric, each as long as `time`.
    pub columns: Vec<Vec<f64>>,
}

impl Series {
    /// A series of the given metrics without rows.
    #[must_use]
    pub fn new(names: Vec<&'static str>) -> Self {
        let columns = alloc::vec![Vec::new(); names.len()];
        Self { names, time: Vec::new(), entity: Vec::new(), columns }
    }
    /// Appends a row.
    ///
    /// # Panics
    /// If there is not exactly one value per metric.
    pub fn push(&mut self, now: Instant, entity: u32, values: &[f64]) {
        assert_eq!(values.len(), self.columns.len(), "one value per metric");
        self.time.push(now);
        self.entity.push(entity);
        self.columns.iter_mut().zip(values).for_each(|(column, v)| column.push(*v));
    }
    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.time.len()
    }
    /// True without rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.time.is_empty()
    }
    /// The column of a metric.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&[f64]> {
        let i = self.names.iter().position(|n| *n == name)?;
        Some(&self.columns[i])
    }
    /// Time (in seconds) and value of one metric of one entity.
    pub fn of(&self, entity: u32, name: &str) -> impl Iterator<Item = (f64, f64)> + '_ {
        let column = self.column(name).unwrap_or_default();
        let rows = self.time.iter().zip(&self.entity).zip(column);
        rows.filter(move |((_, e), _)| **e == entity).map(|((t, _), v)| (t.as_secs_f64(), *v))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_go_in_and_columns_come_out() {
        let mut s = Series::new(alloc::vec!["cwnd", "srtt"]);
        for i in 0..4u32 {
            s.push(Instant::from_secs_f64(f64::from(i / 2)), i % 2, &[f64::from(i), 0.5]);
        }
        assert_eq!((s.len(), s.column("cwnd")), (4, Some(&[0.0, 1.0, 2.0, 3.0][..])));
        assert_eq!(s.of(1, "cwnd").collect::<Vec<_>>(), [(0.0, 1.0), (1.0, 3.0)]);
        assert_eq!((s.column("none"), s.of(1, "none").count()), (None, 0));
    }
}

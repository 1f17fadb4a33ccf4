//! Tables in columns, and how they become Parquet files. The Python package makes Arrow tables of the same
//! columns.

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use std::io::Write;
use std::sync::Arc;

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
    /// Texts of which there are few: each row is an index into `values`.
    Text {
        /// The distinct texts.
        values: Vec<String>,
        /// One index per row.
        rows: Vec<u32>,
    },
}

impl Column {
    /// A column of texts.
    pub fn text<S: Into<String>>(rows: impl IntoIterator<Item = S>) -> Self {
        let mut values: Vec<String> = Vec::new();
        let mut index = std::collections::BTreeMap::new();
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

    fn field(&self, name: &str) -> Result<Type> {
        let (physical, logical, repetition) = match self {
            Self::Count(_) => (Physical::INT64, Some(LogicalType::integer(64, false)), Repetition::REQUIRED),
            Self::Maybe(_) => (Physical::DOUBLE, None, Repetition::OPTIONAL),
            Self::Real(_) => (Physical::DOUBLE, None, Repetition::REQUIRED),
            Self::Text { .. } => (Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::REQUIRED),
        };
        Type::primitive_type_builder(name, physical)
            .with_logical_type(logical)
            .with_repetition(repetition)
            .build()
    }

    fn write<W: Write + Send>(&self, group: &mut SerializedRowGroupWriter<'_, W>) -> Result<()> {
        let mut column = group.next_column()?.expect("one column per field of the schema");
        match self {
            Self::Count(values) => {
                // The logical type says that the bits are unsigned.
                let values: Vec<i64> = values.iter().map(|v| v.cast_signed()).collect();
                column.typed::<Int64Type>().write_batch(&values, None, None)?;
            }
            Self::Maybe(values) => {
                let there: Vec<i16> = values.iter().map(|v| v.is_some().into()).collect();
                let values: Vec<f64> = values.iter().copied().flatten().collect();
                column.typed::<DoubleType>().write_batch(&values, Some(&there), None)?;
            }
            Self::Real(values) => {
                column.typed::<DoubleType>().write_batch(values, None, None)?;
            }
            Self::Text { values, rows } => {
                let values: Vec<ByteArray> = values.iter().map(|v| v.as_str().into()).collect();
                // In portions: a reference per row is cheap, all at once would not be.
                for rows in rows.chunks(1 << 16) {
                    let rows: Vec<ByteArray> = rows.iter().map(|&i| values[i as usize].clone()).collect();
                    column.typed::<ByteArrayType>().write_batch(&rows, None, None)?;
                }
            }
        }
        column.close()
    }
}

impl Table {
    /// A table of these columns.
    ///
    /// # Panics
    /// If they are not equally long.
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

    /// Writes the table in the Parquet format.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_parquet<W: Write + Send>(&self, to: W) -> std::io::Result<W> {
        self.parquet(to).map_err(|e| match e {
            parquet::errors::ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
                Ok(io) => *io,
                Err(other) => std::io::Error::other(other),
            },
            other => std::io::Error::other(other),
        })
    }

    fn parquet<W: Write + Send>(&self, to: W) -> Result<W> {
        let fields: Result<Vec<_>> = self.columns.iter().map(|(n, c)| c.field(n).map(Arc::new)).collect();
        let schema = Arc::new(Type::group_type_builder("schema").with_fields(fields?).build()?);
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let mut file = SerializedFileWriter::new(to, schema, Arc::new(properties))?;
        let mut group = file.next_row_group()?;
        for (_, column) in &self.columns {
            column.write(&mut group)?;
        }
        group.close()?;
        file.into_inner()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    #[test]
    fn what_is_written_is_read_back() {
        let table = Table::new(vec![
            ("n".into(), Column::Count(vec![0, u64::MAX, 7])),
            ("maybe".into(), Column::Maybe(vec![None, Some(0.5), None])),
            ("x".into(), Column::Real(vec![1e-300, -0.0, f64::INFINITY])),
            ("who".into(), Column::text(["bulk", "web", "bulk"])),
        ]);
        let bytes = table.write_parquet(Vec::new()).expect("memory does not fail");
        let file = SerializedFileReader::new(bytes::Bytes::from(bytes)).expect("a Parquet file");
        let rows = file.get_row_iter(None).expect("rows");
        let rows: Vec<_> = rows.map(|r| r.expect("a row")).collect();
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[1].get_ulong(0).unwrap(), u64::MAX);
        assert!(rows[0].get_double(1).is_err());
        assert_eq!(rows[1].get_double(1).unwrap(), 0.5);
        assert_eq!(rows[2].get_double(2).unwrap(), f64::INFINITY);
        assert_eq!(
            rows.iter().map(|r| r.get_string(3).unwrap().as_str()).collect::<Vec<_>>(),
            ["bulk", "web", "bulk"]
        );
    }

    #[test]
    fn no_rows_are_a_table_too() {
        let table =
            Table::new(vec![("x".into(), Column::Real(vec![])), ("t".into(), Column::text::<String>([]))]);
        assert_eq!(table.rows(), 0);
        assert!(!table.write_parquet(Vec::new()).unwrap().is_empty());
    }
}

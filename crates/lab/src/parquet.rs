//! Tables as Parquet files.

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use skyhaul_study::table::{Column, Table, TableWriter};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

/// Writes tables as Parquet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parquet;

impl TableWriter for Parquet {
    fn extension(&self) -> &'static str {
        "parquet"
    }
    fn write(&self, table: &Table, path: &Path) -> std::io::Result<()> {
        write(table, BufWriter::new(File::create(path)?))?.flush()
    }
}

/// Writes a table in the Parquet format.
///
/// # Errors
/// Those of the writer.
pub fn write<W: Write + Send>(table: &Table, to: W) -> std::io::Result<W> {
    encode(table, to).map_err(|e| match e {
        parquet::errors::ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(io) => *io,
            Err(other) => std::io::Error::other(other),
        },
        other => std::io::Error::other(other),
    })
}

fn encode<W: Write + Send>(table: &Table, to: W) -> Result<W> {
    let fields: Result<Vec<_>> = table.columns().iter().map(|(n, c)| field(n, c).map(Arc::new)).collect();
    let schema = Arc::new(Type::group_type_builder("schema").with_fields(fields?).build()?);
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut file = SerializedFileWriter::new(to, schema, Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    for (_, column) in table.columns() {
        values(column, &mut group)?;
    }
    group.close()?;
    file.into_inner()
}

fn field(name: &str, column: &Column) -> Result<Type> {
    let (physical, logical, repetition) = match column {
        Column::Count(_) => (Physical::INT64, Some(LogicalType::integer(64, false)), Repetition::REQUIRED),
        Column::Maybe(_) => (Physical::DOUBLE, None, Repetition::OPTIONAL),
        Column::Real(_) => (Physical::DOUBLE, None, Repetition::REQUIRED),
        Column::Text { .. } => (Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::REQUIRED),
    };
    Type::primitive_type_builder(name, physical)
        .with_logical_type(logical)
        .with_repetition(repetition)
        .build()
}

fn values<W: Write + Send>(column: &Column, group: &mut SerializedRowGroupWriter<'_, W>) -> Result<()> {
    let mut to = group.next_column()?.expect("one column per field of the schema");
    match column {
        Column::Count(values) => {
            // The logical type says that the bits are unsigned.
            let values: Vec<i64> = values.iter().map(|v| v.cast_signed()).collect();
            to.typed::<Int64Type>().write_batch(&values, None, None)?;
        }
        Column::Maybe(values) => {
            let there: Vec<i16> = values.iter().map(|v| v.is_some().into()).collect();
            let values: Vec<f64> = values.iter().copied().flatten().collect();
            to.typed::<DoubleType>().write_batch(&values, Some(&there), None)?;
        }
        Column::Real(values) => {
            to.typed::<DoubleType>().write_batch(values, None, None)?;
        }
        Column::Text { values, rows } => {
            let values: Vec<ByteArray> = values.iter().map(|v| v.as_str().into()).collect();
            // In portions, so that memory never holds a value for every row.
            for rows in rows.chunks(1 << 16) {
                let rows: Vec<ByteArray> = rows.iter().map(|&i| values[i as usize].clone()).collect();
                to.typed::<ByteArrayType>().write_batch(&rows, None, None)?;
            }
        }
    }
    to.close()
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
        let bytes = write(&table, Vec::new()).expect("memory does not fail");
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
        assert!(!write(&table, Vec::new()).unwrap().is_empty());
    }
}

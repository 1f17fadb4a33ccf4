//! The tables of a results directory, as CSV or unchanged.

use super::unreadable;
use crate::error::{ExportError, LabError};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use skyhaul_study::table::inert;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// Deepest folder level below a results directory.
const DEPTH: usize = 4;

/// Writes every table of a results directory, of a run or of a study, as CSV (RFC 4180) under `out`, in the same
/// folders; returns the files. Columns keep their names, which carry the units; numbers have the fewest digits that
/// read back to the same value; missing values are empty.
///
/// # Errors
/// If the directory has no results, or a file cannot be read or written.
pub fn csv(results: &Path, out: &Path) -> Result<Vec<PathBuf>, LabError> {
    each(results, out, "csv", &one)
}

/// Copies every table of a results directory, of a run or of a study, to `out`, in the same folders; returns the files.
///
/// # Errors
/// If the directory has no results, `out` is that directory, or a file cannot be read or written.
pub fn parquet(results: &Path, out: &Path) -> Result<Vec<PathBuf>, LabError> {
    let same = matches!((results.canonicalize(), out.canonicalize()), (Ok(a), Ok(b)) if a == b);
    if same {
        return Err(ExportError::SameFolder { results: results.to_owned() }.into());
    }
    each(results, out, "parquet", &|from, to| fs::copy(from, to).map(drop).map_err(LabError::write(to)))
}

fn each(
    results: &Path,
    out: &Path,
    extension: &str,
    write: &dyn Fn(&Path, &Path) -> Result<(), LabError>,
) -> Result<Vec<PathBuf>, LabError> {
    super::manifest(results)?;
    let mut tables = Vec::new();
    find(results, DEPTH, &mut tables)?;
    tables.sort();
    if tables.is_empty() {
        return Err(ExportError::NoTables { results: results.to_owned() }.into());
    }
    let one = |table: &PathBuf| {
        let inside = table.strip_prefix(results).unwrap_or(table);
        let target = out.join(inside).with_extension(extension);
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder).map_err(LabError::write(folder))?;
        }
        write(table, &target)?;
        Ok(target)
    };
    tables.iter().map(one).collect()
}

fn find(folder: &Path, depth: usize, tables: &mut Vec<PathBuf>) -> Result<(), LabError> {
    let entries = fs::read_dir(folder).map_err(LabError::read(folder))?;
    for path in entries.flatten().map(|e| e.path()) {
        if path.is_dir() && depth > 0 {
            find(&path, depth - 1, tables)?;
        } else if path.extension().is_some_and(|e| e == "parquet") {
            tables.push(path);
        }
    }
    Ok(())
}

fn one(table: &Path, target: &Path) -> Result<(), LabError> {
    let unreadable = |e: &dyn std::fmt::Display| unreadable(table, e);
    let file = File::open(table).map_err(LabError::read(table))?;
    let reader = SerializedFileReader::new(file).map_err(|e| unreadable(&e))?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let unwritable = |e: csv::Error| match e.into_kind() {
        csv::ErrorKind::Io(e) => LabError::write(target)(e),
        other => ExportError::Unwritable { path: target.to_owned(), why: format!("{other:?}") }.into(),
    };
    let to = File::create(target).map_err(LabError::write(target))?;
    let mut out = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(BufWriter::new(to));
    out.write_record(schema.columns().iter().map(|c| inert(c.name()).into_owned())).map_err(unwritable)?;
    let mut record = csv::StringRecord::new();
    for row in reader.get_row_iter(None).map_err(|e| unreadable(&e))? {
        let row = row.map_err(|e| unreadable(&e))?;
        record.clear();
        for (name, field) in row.get_column_iter() {
            match field {
                Field::Null => record.push_field(""),
                Field::Str(text) => record.push_field(&inert(text)),
                Field::Double(x) => record.push_field(&x.to_string()),
                Field::Float(x) => record.push_field(&x.to_string()),
                Field::ULong(n) => record.push_field(&n.to_string()),
                Field::Long(n) => record.push_field(&n.to_string()),
                Field::Bool(b) => record.push_field(if *b { "true" } else { "false" }),
                other => {
                    return Err(unreadable(&format!("column `{name}` has an unknown type: {other}")).into());
                }
            }
        }
        out.write_record(&record).map_err(unwritable)?;
    }
    out.flush().map_err(LabError::write(target))
}

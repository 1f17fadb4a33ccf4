//! Tables for Python through the Arrow C stream interface, which pyarrow, pandas and polars read. The stream shares the
//! memory of the table; a reader that keeps a column in another form copies it.

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, RecordBatchIterator, StringArray, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use skyhaul_study::table::{self, Column};
use std::sync::Arc;

/// Named columns of equal length.
#[pyclass(frozen, module = "skyhaul._core")]
#[derive(Debug)]
pub(crate) struct Table {
    batch: RecordBatch,
}

fn refuse(e: ArrowError) -> PyErr {
    PyValueError::new_err(e.to_string())
}

impl Table {
    pub(crate) fn new(table: &table::Table) -> PyResult<Self> {
        let (mut fields, mut arrays): (Vec<Field>, Vec<ArrayRef>) = (Vec::new(), Vec::new());
        for (name, column) in table.columns() {
            let (kind, maybe, array): (_, _, ArrayRef) = match column {
                Column::Count(v) => (DataType::UInt64, false, Arc::new(UInt64Array::from(v.clone()))),
                Column::Maybe(v) => (DataType::Float64, true, Arc::new(Float64Array::from(v.clone()))),
                Column::Real(v) => (DataType::Float64, false, Arc::new(Float64Array::from(v.clone()))),
                Column::Text { values, rows } => {
                    let texts = rows.iter().map(|&i| values[i as usize].as_str());
                    (DataType::Utf8, false, Arc::new(StringArray::from_iter_values(texts)))
                }
            };
            fields.push(Field::new(name, kind, maybe));
            arrays.push(array);
        }
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map_err(refuse)?;
        Ok(Self { batch })
    }
}

#[pymethods]
impl Table {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets a producer answer with its own schema.
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|f| f.name().clone()).collect()
    }

    /// The values of a column as a list, with `None` where there is no value.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let Some(array) = self.batch.column_by_name(name) else {
            return Err(pyo3::exceptions::PyKeyError::new_err(name.to_owned()));
        };
        let array = array.as_any();
        if let Some(a) = array.downcast_ref::<UInt64Array>() {
            return a.values().to_vec().into_pyobject(py);
        }
        if let Some(a) = array.downcast_ref::<Float64Array>() {
            return a.iter().collect::<Vec<_>>().into_pyobject(py);
        }
        let texts = array.downcast_ref::<StringArray>().into_iter().flat_map(|a| a.iter().flatten());
        texts.collect::<Vec<_>>().into_pyobject(py)
    }
}

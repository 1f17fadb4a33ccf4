//! Work that ends when its report is written.

use pyo3::PyResult;
use pyo3::exceptions::PyRuntimeError;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Work in progress, until it is taken for the report.
#[derive(Debug)]
pub(crate) struct Unfinished<T>(Mutex<Option<T>>);

/// Locks a mutex, even if a thread panicked while it held the lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> Unfinished<T> {
    pub(crate) const fn new(work: T) -> Self {
        Self(Mutex::new(Some(work)))
    }

    /// Uses the work.
    ///
    /// # Errors
    /// If the report has been written.
    pub(crate) fn with<R>(&self, then: impl FnOnce(&T) -> PyResult<R>) -> PyResult<R> {
        then(lock(&self.0).as_ref().ok_or_else(written)?)
    }

    /// Takes the work.
    ///
    /// # Errors
    /// If the report has been written.
    pub(crate) fn take(&self) -> PyResult<T> {
        lock(&self.0).take().ok_or_else(written)
    }
}

fn written() -> pyo3::PyErr {
    PyRuntimeError::new_err("the report has been written")
}

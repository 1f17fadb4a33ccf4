//! Long work on Rust threads, while the calling Python thread reports progress to its functions and checks for
//! Ctrl-C.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use skyhaul_study::run::Progress;
use std::io::Write as _;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Interval at which a waiting thread checks for Ctrl-C.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

enum Message {
    Cell(usize, usize, String),
    Warning(String),
}

/// Passes messages to the thread that runs Python.
#[derive(Debug)]
pub(crate) struct ProgressSender(Sender<Message>);

impl Progress for ProgressSender {
    fn begin(&self, total: usize, cached: usize) {
        let _ = self.0.send(Message::Cell(cached, total, String::new()));
    }
    fn cell(&self, done: usize, total: usize, label: &str) {
        let _ = self.0.send(Message::Cell(done, total, label.to_owned()));
    }
    fn warn(&self, message: &str) {
        let _ = self.0.send(Message::Warning(message.to_owned()));
    }
}

/// Prints one line on standard error; errors are ignored.
pub(crate) fn print_line(line: &str) {
    let _ = writeln!(std::io::stderr(), "skyhaul: {line}");
}

/// Does `work` on a separate thread. `progress` is called with the number of finished cells, the number of all cells, and the
/// label of the last finished one; `warn` with each warning. After an exception of theirs, or Ctrl-C, `stop` is called
/// repeatedly until the work has ended: a method that never returns may begin after the first call.
///
/// # Errors
/// The exceptions of the functions.
pub(crate) fn with_progress<T: Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    warn: Option<&Py<PyAny>>,
    stop: impl Fn() + Sync,
    work: impl FnOnce(&ProgressSender) -> T + Send,
) -> PyResult<T> {
    let (sender, messages) = channel();
    let sender = ProgressSender(sender);
    let deliver = |message: &Message| -> PyResult<()> {
        Python::attach(|py| {
            py.check_signals()?;
            match (message, progress, warn) {
                (Message::Cell(done, total, label), Some(f), _) => {
                    f.call1(py, (done, total, label)).map(drop)
                }
                (Message::Warning(line), _, Some(f)) => f.call1(py, (line,)).map(drop),
                _ => Ok(()),
            }
        })
    };
    py.detach(|| {
        // Moves the receiver in, since a receiver cannot be shared between threads.
        let messages = messages;
        std::thread::scope(|scope| {
            let worker = scope.spawn(move || {
                let result = work(&sender);
                drop(sender);
                result
            });
            let mut first_error = Ok(());
            // Until the worker drops the sender.
            loop {
                let outcome = match messages.recv_timeout(POLL_INTERVAL) {
                    Ok(message) => deliver(&message),
                    Err(RecvTimeoutError::Timeout) => Python::attach(|py| py.check_signals()),
                    Err(RecvTimeoutError::Disconnected) => break,
                };
                first_error = first_error.and(outcome);
                if first_error.is_err() {
                    stop();
                }
            }
            let result = worker.join().map_err(|_| PyRuntimeError::new_err("a worker thread failed"))?;
            first_error.map(|()| result)
        })
    })
}

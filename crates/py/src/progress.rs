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

/// Does `work` on a separate thread. `progress` is called with the number of finished cells, of all cells, and the
/// label of the last one; `warn` with lines. Their exceptions, and Ctrl-C, end the work through `stop`, called
/// repeatedly until the work has ended: a method that never returns may have started only now.
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
    let deliver = |n: &Message| -> PyResult<()> {
        Python::attach(|py| {
            py.check_signals()?;
            match (n, progress, warn) {
                (Message::Cell(done, total, label), Some(f), _) => {
                    f.call1(py, (done, total, label)).map(drop)
                }
                (Message::Warning(line), _, Some(f)) => f.call1(py, (line,)).map(drop),
                _ => Ok(()),
            }
        })
    };
    py.detach(|| {
        let messages = messages; // Moves it in: a receiver belongs to one thread.
        std::thread::scope(|scope| {
            let worker = scope.spawn(move || {
                let result = work(&sender);
                drop(sender);
                result
            });
            // Until the worker drops its end.
            let mut trouble = Ok(());
            loop {
                let outcome = match messages.recv_timeout(POLL_INTERVAL) {
                    Ok(n) => deliver(&n),
                    Err(RecvTimeoutError::Timeout) => Python::attach(|py| py.check_signals()),
                    Err(RecvTimeoutError::Disconnected) => break,
                };
                trouble = trouble.and(outcome);
                if trouble.is_err() {
                    stop();
                }
            }
            let result = worker.join().map_err(|_| PyRuntimeError::new_err("a worker thread failed"))?;
            trouble.map(|()| result)
        })
    })
}

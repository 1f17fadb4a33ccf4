//! Long work on threads of Rust while the thread that Python called tells its functions how it goes, and looks for
//! Ctrl-C.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use skyhaul_study::run::Progress;
use std::io::Write as _;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// How often a waiting thread looks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);

enum News {
    Cell(usize, usize, String),
    Warning(String),
}

/// Passes news to the thread that talks to Python.
#[derive(Debug)]
pub(crate) struct Tell(Sender<News>);

impl Progress for Tell {
    fn begin(&self, total: usize, cached: usize) {
        let _ = self.0.send(News::Cell(cached, total, String::new()));
    }
    fn cell(&self, done: usize, total: usize, label: &str) {
        let _ = self.0.send(News::Cell(done, total, label.to_owned()));
    }
    fn warn(&self, message: &str) {
        let _ = self.0.send(News::Warning(message.to_owned()));
    }
}

/// One line on standard error that stops nothing.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "skyhaul: {line}");
}

/// Does `work` on a thread of its own. `progress` is called with the number of finished cells, of all cells, and the
/// last one in words; `warn` with lines. What they raise, and Ctrl-C, ends the work by `stop`, again and again until it
/// is over: a method that never ends may have begun only now.
///
/// # Errors
/// What the functions raise.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    warn: Option<&Py<PyAny>>,
    stop: impl Fn() + Sync,
    work: impl FnOnce(&Tell) -> T + Send,
) -> PyResult<T> {
    let (sender, news) = channel();
    let tell = Tell(sender);
    let tell_one = |n: &News| -> PyResult<()> {
        Python::attach(|py| {
            py.check_signals()?;
            match (n, progress, warn) {
                (News::Cell(done, total, label), Some(f), _) => f.call1(py, (done, total, label)).map(drop),
                (News::Warning(line), _, Some(f)) => f.call1(py, (line,)).map(drop),
                _ => Ok(()),
            }
        })
    };
    py.detach(|| {
        let news = news; // Moves it in: a receiver belongs to one thread.
        std::thread::scope(|scope| {
            let worker = scope.spawn(move || {
                let result = work(&tell);
                drop(tell);
                result
            });
            // Until the worker drops its end.
            let mut trouble = Ok(());
            loop {
                let told = match news.recv_timeout(LOOK) {
                    Ok(n) => tell_one(&n),
                    Err(RecvTimeoutError::Timeout) => Python::attach(|py| py.check_signals()),
                    Err(RecvTimeoutError::Disconnected) => break,
                };
                trouble = trouble.and(told);
                if trouble.is_err() {
                    stop();
                }
            }
            let result = worker.join().map_err(|_| PyRuntimeError::new_err("a worker thread failed"))?;
            trouble.map(|()| result)
        })
    })
}

//! What is said on standard output and standard error.

use crate::stop::Stop;
use skyhaul_study::io_words;
use std::io::{ErrorKind, Write};

/// Writes to standard output.
///
/// # Errors
/// If that is not possible; a reader that went away is no error of ours.
pub(crate) fn print(text: &str) -> Result<(), Stop> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|e| match e.kind() {
        ErrorKind::BrokenPipe => Stop::Closed,
        _ => Stop::Bad(format!("cannot write standard output: {}", io_words(&e))),
    })
}

/// One line on standard error that stops nothing.
pub(crate) fn warn(message: &str) {
    let _ = writeln!(std::io::stderr(), "skyhaul: {message}");
}

//! Standard output and standard error.

use crate::stop::Stop;
use skyhaul_study::io_words;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{ErrorKind, Write as _};

/// Text for a terminal: control characters (titles and labels come from files) are written as JSON escapes, such as
/// `\u001b`, so that JSON keeps its values.
pub(crate) fn tame(text: &str) -> Cow<'_, str> {
    let steers = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    // Control characters beyond ASCII are encoded as 0xc2 and one more byte. Results may be many megabytes.
    if !text.bytes().any(|b| b == 0xc2 || steers(char::from(b))) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let ends_line = c == '\r' && rest.peek() == Some(&'\n');
        if steers(c) && !ends_line {
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out.into()
}

fn write_stdout(text: &str) -> Result<(), Stop> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|e| match e.kind() {
        ErrorKind::BrokenPipe => Stop::Closed,
        _ => Stop::Bad(format!("cannot write standard output: {}", io_words(&e))),
    })
}

/// Writes to standard output.
///
/// # Errors
/// [`Stop::Closed`] if the reader closed the pipe, [`Stop::Bad`] if the output cannot be written.
pub(crate) fn print(text: &str) -> Result<(), Stop> {
    write_stdout(&tame(text))
}

/// Clears the terminal and writes to standard output.
///
/// # Errors
/// As [`print`].
#[cfg(target_os = "linux")]
pub(crate) fn redraw(text: &str) -> Result<(), Stop> {
    // ANSI: cursor to the upper left corner, then clear the screen.
    write_stdout(&format!("\x1b[H\x1b[2J{}", tame(text)))
}

/// Writes to standard error. Errors are ignored: nothing depends on these texts.
pub(crate) fn note(text: &str) {
    let _ = std::io::stderr().write_all(tame(text).as_bytes());
}

/// A warning: one line on standard error.
pub(crate) fn warn(message: &str) {
    note(&format!("skyhaul: {message}\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(tame("Größe\tof λ\r\n"), "Größe\tof λ\r\n");
        assert_eq!(tame("550 µs ± 2 °"), "550 µs ± 2 °");
        assert_eq!(tame("\u{1b}[2Jgone\r\u{9b}31m\u{7}"), "\\u001b[2Jgone\\u000d\\u009b31m\\u0007");
    }
}

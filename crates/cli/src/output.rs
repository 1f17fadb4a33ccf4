//! Standard output and standard error.

use crate::stop::Stop;
use skyhaul_study::io_words;
use std::borrow::Cow;
use std::io::{ErrorKind, Write};

/// Text for a terminal: control characters (titles and labels come from files) are shown as `\u{1b}`.
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
        if steers(c) && !ends_line { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out.into()
}

/// Writes to standard output.
///
/// # Errors
/// If that is impossible; a reader that closed the pipe is not an error.
pub(crate) fn print(text: &str) -> Result<(), Stop> {
    let mut out = std::io::stdout().lock();
    out.write_all(tame(text).as_bytes()).and_then(|()| out.flush()).map_err(|e| match e.kind() {
        ErrorKind::BrokenPipe => Stop::Closed,
        _ => Stop::Bad(format!("cannot write standard output: {}", io_words(&e))),
    })
}

/// A warning: one line on standard error.
pub(crate) fn warn(message: &str) {
    let _ = writeln!(std::io::stderr(), "skyhaul: {}", tame(message));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(tame("Größe\tof λ\r\n"), "Größe\tof λ\r\n");
        assert_eq!(tame("550 µs ± 2 °"), "550 µs ± 2 °");
        assert_eq!(tame("\u{1b}[2Jgone\r\u{9b}31m\u{7}"), "\\u{1b}[2Jgone\\r\\u{9b}31m\\u{7}");
    }
}

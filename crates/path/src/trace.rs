//! Common parts of traces of rates and of delays.

use alloc::format;
use alloc::string::{String, ToString};

/// What happens after the end of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// The last value holds.
    #[default]
    Hold,
    /// The trace restarts; the time of its last point is the period.
    Loop,
}

/// An invalid trace. Points are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// The trace has no point.
    #[error("the trace is empty: it needs at least one point")]
    Empty,
    /// The time of this point is not after that of the previous one.
    #[error("times must ascend")]
    NotAscending(usize),
    /// The trace repeats, but its last point is at 0.
    #[error("the last time is 0, which is not a period to repeat: end with a later time")]
    NoPeriod,
    /// From some time on the rate is zero for ever.
    #[error("nothing is ever sent after the last time: end with a rate above 0, or repeat the trace")]
    NeverSends,
}

/// An error in a text: the line, from 1, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Broken {
    /// Line; 0 means the whole text.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

/// An error in a line.
pub(crate) fn broken<T>(line: usize, message: impl Into<String>) -> Result<T, Broken> {
    Err(Broken { line, message: message.into() })
}

impl Broken {
    /// An invalid trace, whose points are on these lines.
    pub(crate) fn placed(e: TraceError, lines: &[usize]) -> Self {
        let line = match e {
            TraceError::Empty => 0,
            TraceError::NotAscending(i) => lines.get(i).copied().unwrap_or(0),
            TraceError::NoPeriod | TraceError::NeverSends => lines.last().copied().unwrap_or(0),
        };
        Self { line, message: e.to_string() }
    }
}

/// Maximum lines of a file.
pub(crate) const MAX_LINES: usize = 10_000_000;

/// A word of a file for messages.
pub(crate) fn shown(word: &str) -> String {
    let short: String = word.chars().take(40).collect();
    format!("{short:?}")
}

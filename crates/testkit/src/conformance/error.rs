//! What is wrong with the text of a case.

use std::fmt;

/// A line that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// The file.
    pub file: String,
    /// The line, from 1; 0 for a whole case or file.
    pub line: usize,
    /// What is wrong, and what would be right.
    pub what: String,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.what)
    }
}

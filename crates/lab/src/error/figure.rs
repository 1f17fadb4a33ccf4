//! A figure that cannot be drawn.

use std::path::PathBuf;

/// Why a figure cannot be drawn.
#[derive(Debug, thiserror::Error)]
#[error("--figure {}: {why}", path.display())]
pub struct FigureError {
    /// The file that was asked for.
    pub path: PathBuf,
    /// What is wrong, and what to do instead.
    pub why: String,
}

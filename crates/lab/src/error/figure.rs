//! A figure that cannot be drawn.

use std::path::PathBuf;

/// Why a figure cannot be drawn.
#[derive(Debug, thiserror::Error)]
#[error("--figure {}: {why}", path.display())]
pub struct FigureError {
    /// The requested file.
    pub path: PathBuf,
    /// The problem, and what to do instead.
    pub why: String,
}

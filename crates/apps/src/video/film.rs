//! A video: a movie model or a trace.

use super::movie::Compiled;
use super::trace::Trace;
use std::sync::Arc;

/// A video, ready to be played.
#[derive(Clone, Debug, PartialEq)]
pub enum Film {
    /// A model.
    Movie(Arc<Compiled>),
    /// A trace.
    Trace(Arc<Trace>),
}

impl Film {
    /// Mean size in bytes.
    pub(super) fn mean(&self) -> f64 {
        match self {
            Self::Movie(m) => m.mean(),
            Self::Trace(t) => t.mean(),
        }
    }
    /// Bytes of the largest frame.
    pub(super) fn largest(&self) -> f64 {
        match self {
            Self::Movie(m) => m.largest(),
            Self::Trace(t) => t.largest().into(),
        }
    }
    /// Frames per second.
    pub(super) fn frames(&self) -> f64 {
        match self {
            Self::Movie(m) => m.frames(),
            Self::Trace(t) => t.rate(),
        }
    }
    /// Frames of a group of pictures.
    pub(super) fn group(&self) -> usize {
        match self {
            Self::Movie(m) => m.pattern.types().len(),
            Self::Trace(t) => t.group().len().max(1),
        }
    }
    /// In bit/s, unscaled.
    pub(super) fn rate(&self) -> f64 {
        8.0 * self.mean() * self.frames()
    }
}

//! Films: sequences of frame types and sizes, from a model (a movie) or from a trace.
//!
//! ```text
//! movie (tes, marginal) ─┐
//!                        ├─ source ──▶ type and size of each frame
//! trace ─────────────────┘
//! ```
//! Papadimitriou, Tsaoussidis 2007 §4.1 send video produced by three TES models, one per frame type, without naming
//! the trace or the parameters. Their models and ours follow the method of Melamed; [`movie`] describes the movie. A
//! TES process has short memory: its correlations decay exponentially, those of videos do not. Where that matters,
//! replay a trace.

pub mod correlation;
pub mod fit;
mod gamma;
mod marginal;
pub mod movie;
mod normal;
mod pattern;
mod source;
pub mod tes;
mod trace;

pub use marginal::{Inverse, Marginal};
pub use movie::Movie;
pub use pattern::Pattern;
pub use source::Source;
pub use trace::{Broken, Trace};

use crate::workload::Streams;
use std::sync::Arc;

/// A film, ready to be played.
#[derive(Clone, Debug, PartialEq)]
pub enum Film {
    /// A model.
    Movie(Arc<movie::Compiled>),
    /// A trace.
    Trace(Arc<Trace>),
}

impl Film {
    /// The frames of the film, from the beginning; a trace starts again at its end if it `repeats`.
    pub(crate) fn play(&self, streams: &Streams, repeats: bool) -> Source {
        match self {
            Self::Movie(m) => Source::movie(Arc::clone(m), streams),
            Self::Trace(t) => Source::replay(Arc::clone(t), repeats),
        }
    }
    /// Mean size of a frame in bytes.
    pub(crate) fn mean(&self) -> f64 {
        match self {
            Self::Movie(m) => m.mean(),
            Self::Trace(t) => t.mean(),
        }
    }
    /// Bytes of the largest frame.
    pub(crate) fn largest(&self) -> f64 {
        match self {
            Self::Movie(m) => m.largest(),
            Self::Trace(t) => t.largest().into(),
        }
    }
    /// Frames per second.
    pub(crate) fn frame_rate(&self) -> f64 {
        match self {
            Self::Movie(m) => m.frames(),
            Self::Trace(t) => t.rate(),
        }
    }
    /// Number of frames in a group of pictures.
    pub(crate) fn group(&self) -> usize {
        match self {
            Self::Movie(m) => m.pattern.types().len(),
            Self::Trace(t) => t.group().len().max(1),
        }
    }
    /// Mean rate in bit/s, before frame sizes are scaled to the rate of the configuration.
    pub(crate) fn bit_rate(&self) -> f64 {
        8.0 * self.mean() * self.frame_rate()
    }
}

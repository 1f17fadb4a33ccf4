//! Video: MPEG-4 videos and their viewers.
//!
//! ```text
//! movie (tes, marginal) ─┐                 ┌─ packet ──▶ transport ──▶ view ──▶ Viewed
//!                        ├─ source ─ sender┤
//! trace ─────────────────┘                 └─ coder ◀── what the transport allows
//! ```
//! Papadimitriou, Tsaoussidis 2007 §4.1 send video produced by three TES models, one per frame type, without naming
//! the trace or the parameters. Both theirs and ours follow the method of Melamed; [`movie`] describes the movie. A
//! TES process has short memory: its correlations decay exponentially, those of videos do not. Where that matters,
//! replay a trace.

mod clock;
mod coded;
mod coder;
mod config;
pub mod correlation;
mod film;
pub mod fit;
mod gamma;
mod groups;
mod layers;
mod marginal;
pub mod movie;
mod normal;
mod overhead;
pub mod packet;
mod pattern;
mod sender;
mod source;
pub mod tes;
mod trace;
mod view;
mod whole;

pub use coder::Coder;
pub use config::{Config, Invalid};
pub use film::Film;
pub use layers::Buffer;
pub use marginal::{Inverse, Marginal};
pub use movie::Movie;
pub use pattern::Pattern;
pub use sender::{FRAME_HEADER, Full, RTP_HEADER, Spread, Video};
pub use source::Source;
pub use trace::{Broken, Trace};
pub use view::{Settings, Viewer};

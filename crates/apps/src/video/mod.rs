//! Video: films of MPEG-4 and their viewers.
//!
//! ```text
//! movie (tes, marginal) ─┐                 ┌─ packet ──▶ transport ──▶ view ──▶ Viewed
//!                        ├─ source ─ sender┤
//! trace ─────────────────┘                 └─ coder ◀── what the transport allows
//! ```
//! Papadimitriou, Tsaoussidis 2007 §4.1 send video that three TES models, one for each type of frame, produce and name
//! neither trace nor parameters. Theirs and ours follow the method of Melamed; the movie is described in [`movie`].
//! A TES process forgets: its correlations fall exponentially in the long run, those of films do not. Where that matters,
//! replay a trace.

mod coder;
mod config;
pub mod correlation;
mod film;
pub mod fit;
mod gamma;
mod layers;
mod marginal;
pub mod movie;
mod normal;
pub mod packet;
mod pattern;
mod sender;
mod source;
pub mod tes;
mod trace;
mod view;

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

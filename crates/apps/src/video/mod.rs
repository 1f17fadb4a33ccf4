//! Video: MPEG-4 films and their viewers.
//!
//! ```text
//! film ──▶ sender ──▶ packet ──▶ transport ──▶ view ──▶ Viewed
//!            └─ coder ◀── what the transport allows
//! ```
//! One object is the application at both ends: a frame is drawn from the film when it is due, divided into packets and
//! passed to the transport; each frame, and every arrival, is reported to the viewer.

mod coder;
mod config;
mod layers;
pub mod packet;
mod sender;
mod view;

pub use coder::Coder;
pub use config::{Config, Invalid};
pub use layers::LayerRule;
pub use sender::{FRAME_HEADER, OverflowPolicy, RTP_HEADER, Spread, Video};
pub use view::{Settings, Viewer};

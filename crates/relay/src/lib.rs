//! Parts of a gateway that terminates connections on one side and continues with others on the other side (RFC
//! 3135), without I/O: it reads no clock, opens no socket and knows no link. The simulator and a gateway on a real
//! network run the same code.
//!
//! ```text
//! S ══leg══▶ End ─▶ Fifo ─▶ End ══leg══▶ R
//!            End ◀─ Fifo ◀─ End             one Relay, one bounded Fifo per direction
//! ```
#![forbid(unsafe_code)]

mod fifo;
pub mod headers;
mod join;
mod ranges;
mod transport;
pub mod xtp;

pub use fifo::{Bytes, Count, Fifo};
pub use join::{Direction, End, Progress, Relay};
pub use ranges::Ranges;
pub use transport::Transport;

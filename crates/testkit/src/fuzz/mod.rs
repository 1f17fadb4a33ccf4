//! The bodies of the fuzz targets: each turns bytes into operations and panics if something is wrong.
//!
//! `fuzz/` hands them to libFuzzer; `tests/replay.rs` replays the corpus and pseudo-random bytes without it.

mod frames;
mod headers;
mod queue;
mod rack;
mod scoreboard;
mod tcp;
mod wire;

pub use frames::repair_frames;
pub use headers::repair_headers;
pub use queue::queue_ops;
pub use rack::rack_ops;
pub use scoreboard::scoreboard_ops;
pub use tcp::tcp_ops;
pub use wire::{repair, wire_packet};

/// Bytes read as numbers; zeros after the end.
#[derive(Clone, Debug)]
pub struct ByteReader<'a>(pub &'a [u8]);

impl ByteReader<'_> {
    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        let Some((&b, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        b
    }
    /// A number below `n` (0 if `n` is 0).
    pub fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n.max(1)
    }
    /// Two bytes.
    pub fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }
    /// Four bytes.
    pub fn long(&mut self) -> u32 {
        u32::from(self.word()) << 16 | u32::from(self.word())
    }
    /// True with probability 1/n.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
    /// True at the end.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

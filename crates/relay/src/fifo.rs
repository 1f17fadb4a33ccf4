//! Data waiting in a gateway for the next leg: the bytes, or only their number.

use std::collections::VecDeque;

/// Bytes of a stream, first in, first out.
pub trait Fifo: Default {
    /// Number of waiting bytes.
    fn len(&self) -> u64;
    /// Nothing waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Drops all bytes and releases their memory.
    fn clear(&mut self);
}

/// Only the number of bytes: a simulation carries no payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count(pub u64);

impl Fifo for Count {
    fn len(&self) -> u64 {
        self.0
    }
    fn clear(&mut self) {
        self.0 = 0;
    }
}

/// The bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bytes(pub VecDeque<u8>);

impl Fifo for Bytes {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }
    fn clear(&mut self) {
        self.0 = VecDeque::new();
    }
}

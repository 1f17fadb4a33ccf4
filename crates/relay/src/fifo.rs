//! What waits in a gateway for the next leg: the bytes themselves, or their number where nobody looks at them.

use std::collections::VecDeque;

/// Bytes of a stream, first in, first out.
pub trait Fifo: Default {
    /// How many bytes wait.
    fn len(&self) -> u64;
    /// Nothing waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Forgets all of them, and gives their room back.
    fn clear(&mut self);
}

/// Their number alone: a simulation carries no payload.
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

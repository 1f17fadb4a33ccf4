//! Data waiting in a gateway for the next leg: its bytes, or only their number.

/// Bytes of a stream, first in, first out.
pub trait Fifo: Default {
    /// Number of waiting bytes.
    fn len(&self) -> u64;
    /// Whether nothing waits.
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

/// The bytes, contiguous in memory.
#[derive(Clone, Debug, Default)]
pub struct Bytes {
    memory: Vec<u8>,
    /// The waiting bytes are `memory[from..to]`.
    from: usize,
    to: usize,
}

impl Bytes {
    /// The waiting bytes.
    #[must_use]
    pub fn waiting(&self) -> &[u8] {
        &self.memory[self.from..self.to]
    }
    /// Drops the first `n` waiting bytes.
    ///
    /// # Panics
    /// If fewer wait.
    pub fn consume(&mut self, n: usize) {
        assert!(n <= self.to - self.from, "more than wait");
        self.from += n;
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        }
    }
    /// Room for `n` more bytes behind the waiting ones. Bytes written there wait once [`Self::append`] is called.
    pub fn room(&mut self, n: usize) -> &mut [u8] {
        if self.memory.len() - self.to < n && self.from > 0 {
            self.memory.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
        }
        if self.memory.len() - self.to < n {
            self.memory.resize(self.to + n, 0);
        }
        &mut self.memory[self.to..][..n]
    }
    /// The first `n` bytes of the room now wait, too.
    ///
    /// # Panics
    /// If there is less room.
    pub fn append(&mut self, n: usize) {
        assert!(n <= self.memory.len() - self.to, "more than there is room for");
        self.to += n;
    }
    /// `read` writes up to `most` bytes into room behind the waiting ones, and returns how many; these now wait. A buffer without
    /// memory takes that of `spare`, and memory without waiting bytes goes back there, so that an idle connection holds none.
    pub fn fill(&mut self, spare: &mut Vec<u8>, most: usize, read: impl FnOnce(&mut [u8]) -> usize) -> usize {
        if self.memory.is_empty() {
            core::mem::swap(&mut self.memory, spare);
        }
        let n = read(self.room(most));
        self.append(n);
        self.give_back(spare);
        n
    }
    /// Calls `write`, which takes some of the waiting bytes and returns how many, until none wait or it takes none. Memory without
    /// waiting bytes goes to `spare`. Returns how many were taken.
    pub fn drain(&mut self, spare: &mut Vec<u8>, mut write: impl FnMut(&[u8]) -> usize) -> usize {
        let mut taken = 0;
        while !self.is_empty() {
            let n = write(self.waiting());
            if n == 0 {
                break;
            }
            self.consume(n);
            taken += n;
        }
        self.give_back(spare);
        taken
    }
    /// Returns its memory, if it has any and nothing waits.
    fn give_back(&mut self, spare: &mut Vec<u8>) {
        if self.is_empty() && !self.memory.is_empty() {
            core::mem::swap(&mut self.memory, spare);
            self.clear();
        }
    }
}

impl Fifo for Bytes {
    fn len(&self) -> u64 {
        (self.to - self.from) as u64
    }
    fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn without_memory_of_its_own_nothing_is_given_back() {
        let mut spare = vec![0; 10];
        Bytes::default().give_back(&mut spare);
        assert_eq!(spare.len(), 10);
    }

    /// Appends and consumes at random, with memory of its own or from `spare`.
    #[test]
    fn bytes_are_a_queue() {
        let (mut bytes, mut queue, mut spare) = (Bytes::default(), VecDeque::new(), vec![9; 10]);
        let mut draw = 1_u32;
        for step in 0..2000_u32 {
            draw = draw.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let n = (draw >> 16) as usize % 40;
            if draw % 8 < 4 {
                // Less is written than there is room for.
                let written = bytes.fill(&mut spare, n, |room| {
                    assert_eq!(room.len(), n);
                    room[..n / 2].fill(step as u8);
                    n / 2
                });
                assert_eq!(written, n / 2);
                queue.extend(core::iter::repeat_n(step as u8, written));
            } else {
                // Three bytes at a time.
                let mut left = n.min(queue.len());
                let taken = bytes.drain(&mut spare, |waiting| {
                    let some = left.min(3).min(waiting.len());
                    left -= some;
                    some
                });
                assert_eq!(taken, n.min(queue.len()));
                queue.drain(..taken);
            }
            assert_eq!(
                (bytes.len(), bytes.waiting()),
                (queue.len() as u64, &*queue.make_contiguous()),
                "{step}"
            );
            assert!(!queue.is_empty() || bytes.memory.is_empty(), "memory without bytes");
        }
        assert!(
            spare.len() + bytes.memory.len() < 200,
            "memory for the most bytes that waited, not for all that passed"
        );
    }
}

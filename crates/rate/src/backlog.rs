//! Data waiting to be sent.

use std::collections::VecDeque;

/// Waiting datagrams, or endless data.
#[derive(Clone, Debug)]
pub(crate) struct Backlog {
    /// Datagrams by the number under which they were offered, from 0, with their sizes in bytes including headers.
    waiting: VecDeque<(u64, u32)>,
    /// Datagrams offered so far, including refused ones.
    offered: u64,
    /// Maximum number of waiting datagrams.
    most: usize,
    /// There is always another full packet to send.
    greedy: bool,
    /// Datagrams refused because the queue was full.
    refused: u64,
}

impl Backlog {
    /// A queue for this many datagrams.
    pub(crate) fn new(most: usize) -> Self {
        Self { waiting: VecDeque::new(), offered: 0, most, greedy: false, refused: 0 }
    }
    /// Adds a datagram; false if the queue is full.
    pub(crate) fn push(&mut self, size: u32) -> bool {
        let number = self.offered;
        self.offered += 1;
        if self.waiting.len() >= self.most {
            self.refused += 1;
            return false;
        }
        self.waiting.push_back((number, size));
        true
    }
    pub(crate) fn set_greedy(&mut self, greedy: bool) {
        self.greedy = greedy;
    }
    pub(crate) fn is_empty(&self) -> bool {
        !self.greedy && self.waiting.is_empty()
    }
    /// The next packet: the number under which it was offered, and its size; a packet of endless data has no number and
    /// `segment` bytes.
    pub(crate) fn pop(&mut self, segment: u32) -> Option<(Option<u64>, u32)> {
        let offered = self.waiting.pop_front().map(|(number, size)| (Some(number), size));
        offered.or_else(|| self.greedy.then_some((None, segment)))
    }
    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }
}

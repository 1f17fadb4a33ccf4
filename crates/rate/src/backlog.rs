//! What waits to be sent.

use std::collections::VecDeque;

/// Datagrams that wait, or data without end.
#[derive(Clone, Debug)]
pub(crate) struct Backlog {
    /// Sizes of datagrams, bytes with headers.
    waiting: VecDeque<u32>,
    most: usize,
    /// Besides there are always full packets to send.
    greedy: bool,
    /// Datagrams that found no room.
    refused: u64,
}

impl Backlog {
    /// With room for so many datagrams.
    pub(crate) fn new(most: usize) -> Self {
        Self { waiting: VecDeque::new(), most, greedy: false, refused: 0 }
    }
    /// One more datagram; false if there is no room.
    pub(crate) fn push(&mut self, size: u32) -> bool {
        if self.waiting.len() >= self.most {
            self.refused += 1;
            return false;
        }
        self.waiting.push_back(size);
        true
    }
    pub(crate) fn set_greedy(&mut self, greedy: bool) {
        self.greedy = greedy;
    }
    pub(crate) fn is_empty(&self) -> bool {
        !self.greedy && self.waiting.is_empty()
    }
    /// The next packet, where a full one has `segment` bytes.
    pub(crate) fn pop(&mut self, segment: u32) -> Option<u32> {
        self.waiting.pop_front().or_else(|| self.greedy.then_some(segment))
    }
    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }
}

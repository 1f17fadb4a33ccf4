//! What waits to be sent.

use std::collections::VecDeque;

/// Datagrams that wait, or data without end.
#[derive(Clone, Debug)]
pub(crate) struct Backlog {
    /// Datagrams by what number they were offered as, from 0, and their sizes in bytes with headers.
    waiting: VecDeque<(u64, u32)>,
    offered: u64,
    most: usize,
    /// Besides there are always full packets to send.
    greedy: bool,
    /// Datagrams that found no room.
    refused: u64,
}

impl Backlog {
    /// With room for so many datagrams.
    pub(crate) fn new(most: usize) -> Self {
        Self { waiting: VecDeque::new(), offered: 0, most, greedy: false, refused: 0 }
    }
    /// One more datagram; false if there is no room.
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
    /// The next packet, where a full one has `segment` bytes: the number that it was offered as, if it was, and its size.
    pub(crate) fn pop(&mut self, segment: u32) -> Option<(Option<u64>, u32)> {
        let offered = self.waiting.pop_front().map(|(number, size)| (Some(number), size));
        offered.or_else(|| self.greedy.then_some((None, segment)))
    }
    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }
}

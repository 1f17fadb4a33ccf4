//! Losses by number, for tests and worked traces.

use alloc::vec::Vec;

/// Which packets the numbers of a [`List`] count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// All packets.
    #[default]
    All,
    /// Packets that are not of low priority; others pass unharmed.
    HighPriority,
    /// Packets of low priority; others pass unharmed.
    LowPriority,
}

/// Loses exactly the listed packets. No draws.
#[derive(Clone, Debug)]
pub struct List {
    /// Ascending, without repetitions.
    indices: Vec<u64>,
    /// How many of `indices` have passed.
    passed: usize,
    /// Number of the next packet within the scope.
    next: u64,
    scope: Scope,
}

impl List {
    /// Loses the packets with the given numbers, counted from 0 over `scope` in the order of transmission.
    /// The order of `indices` and repetitions do not matter.
    #[must_use]
    pub fn new(indices: impl IntoIterator<Item = u64>, scope: Scope) -> Self {
        let mut indices: Vec<u64> = indices.into_iter().collect();
        indices.sort_unstable();
        indices.dedup();
        Self { indices, passed: 0, next: 0, scope }
    }
    /// True if this packet is listed.
    pub fn loses(&mut self, low_priority: bool) -> bool {
        let counted = match self.scope {
            Scope::All => true,
            Scope::HighPriority => !low_priority,
            Scope::LowPriority => low_priority,
        };
        if !counted {
            return false;
        }
        let hit = self.indices.get(self.passed) == Some(&self.next);
        self.passed += usize::from(hit);
        self.next += 1;
        hit
    }
}

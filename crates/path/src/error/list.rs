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

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of `n` packets are lost when every third one, from the first, is of low priority.
    fn lost(scope: Scope, n: u64) -> Vec<u64> {
        let mut list = List::new([4, 0, 2, 2], scope);
        (0..n).filter(|i| list.loses(i % 3 == 0)).collect()
    }

    #[test]
    fn indices_count_the_packets_of_the_scope() {
        assert_eq!(lost(Scope::All, 12), [0, 2, 4]);
        // High: 1 2 4 5 7 8 10 11. Low: 0 3 6 9 12.
        assert_eq!(lost(Scope::HighPriority, 12), [1, 4, 7]);
        assert_eq!(lost(Scope::LowPriority, 13), [0, 6, 12]);
    }
}

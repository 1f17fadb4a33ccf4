//! Losses by packet number, for tests and worked traces. Packets that are not counted are never lost.

use super::model::{Losses, Model};
use crate::packet::PacketView;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::convert::Infallible;
use skyhaul_base::Rng;

/// Loses exactly the packets with the listed numbers, counted from 0 in the order of transmission.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Config {
    /// Numbers of the packets.
    pub indices: Vec<u64>,
    /// Which packets are counted; "all" by default.
    #[cfg_attr(feature = "serde", serde(default))]
    pub class: Scope,
}

/// Which packets a list of losses counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ClassSpec"))]
pub enum Scope {
    /// All packets.
    #[default]
    All,
    /// Packets without low priority.
    #[cfg_attr(feature = "serde", serde(rename = "high"))]
    HighPriority,
    /// Packets of low priority.
    #[cfg_attr(feature = "serde", serde(rename = "low"))]
    LowPriority,
}

impl Config {
    /// All packets with the numbers `indices`.
    #[must_use]
    pub fn all(indices: impl IntoIterator<Item = u64>) -> Self {
        Self { indices: indices.into_iter().collect(), class: Scope::All }
    }
}

impl Model for Config {
    type Losses = Box<List>;
    type Invalid = Infallible;
    type Canonical = Self;

    fn validate(&self) -> Result<(), Infallible> {
        Ok(())
    }
    fn build(&self) -> Box<List> {
        Box::new(List::new(self.indices.iter().copied(), self.class))
    }
    /// Ascending, without duplicates.
    fn canonical(mut self) -> Self {
        self.indices.sort_unstable();
        self.indices.dedup();
        self
    }
    fn mean_loss(&self, _: u32) -> f64 {
        0.0
    }
    fn words(&self, _: &dyn Fn(f64) -> String) -> String {
        let of = match self.class {
            Scope::All => "",
            Scope::HighPriority => " of high priority",
            Scope::LowPriority => " of low priority",
        };
        let first: Vec<_> = self.indices.iter().take(8).map(u64::to_string).collect();
        match self.indices.len() {
            0 => "no packets lost".into(),
            1..=8 => format!("exactly these packets{of} lost: {}", first.join(", ")),
            n => format!("exactly these packets{of} lost: {} and {} more", first.join(", "), n - 8),
        }
    }
}

/// Loses exactly the listed packets. No draws.
#[derive(Clone, Debug)]
pub struct List {
    /// Ascending, without duplicates.
    indices: Vec<u64>,
    /// Number of `indices` already passed.
    passed: usize,
    /// Number of the next packet within the scope.
    next: u64,
    scope: Scope,
}

impl List {
    /// Loses the packets with the given numbers, counted from 0 over `scope` in the order of transmission. Order
    /// and duplicates in `indices` do not matter.
    #[must_use]
    pub fn new(indices: impl IntoIterator<Item = u64>, scope: Scope) -> Self {
        let mut indices: Vec<u64> = indices.into_iter().collect();
        indices.sort_unstable();
        indices.dedup();
        Self { indices, passed: 0, next: 0, scope }
    }
    /// Whether this packet is listed.
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

impl Losses for Box<List> {
    #[inline(never)]
    fn loses(&mut self, p: &impl PacketView, _: &mut Rng) -> bool {
        List::loses(self, p.low_priority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of `n` packets are lost when every third one, starting with the first, is of low priority.
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

    #[test]
    fn the_description_says_how_many_it_leaves_out() {
        let words = |n: u64, class| Config { indices: (0..n).collect(), class }.words(&|x| x.to_string());
        assert_eq!(words(0, Scope::All), "no packets lost");
        assert_eq!(words(2, Scope::All), "exactly these packets lost: 0, 1");
        let low = "exactly these packets of low priority lost: 0, 1, 2, 3, 4, 5, 6, 7 and 1 more";
        assert_eq!(words(9, Scope::LowPriority), low);
    }
}

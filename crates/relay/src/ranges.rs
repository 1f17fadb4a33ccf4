//! Ranges of a byte stream that have arrived, or were acknowledged, beyond gaps.

use std::collections::BTreeMap;

/// Ranges that neither overlap nor touch, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    /// The end of each range, by its begin.
    by_begin: BTreeMap<u64, u64>,
}

impl Ranges {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_begin.is_empty()
    }
    /// Begin and end of each range, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.by_begin.iter().map(|(&from, &to)| (from, to))
    }
    /// The end of the last range.
    #[must_use]
    pub fn end(&self) -> Option<u64> {
        self.by_begin.last_key_value().map(|(_, &to)| to)
    }
    /// Whether a byte is in one of the ranges.
    #[must_use]
    pub fn contains(&self, at: u64) -> bool {
        self.by_begin.range(..=at).next_back().is_some_and(|(_, &to)| to > at)
    }
    /// Adds a range, and joins it with those that it overlaps or touches.
    pub fn add(&mut self, from: u64, to: u64) {
        let (mut from, mut to) = (from, to);
        while let Some((&begin, &end)) = self.by_begin.range(..=to).next_back() {
            if end < from {
                break;
            }
            self.by_begin.remove(&begin);
            (from, to) = (from.min(begin), to.max(end));
        }
        self.by_begin.insert(from, to);
    }
    /// Removes the ranges that begin at or before `at`. Returns the end of the contiguous data from `at` on.
    pub fn cut(&mut self, at: u64) -> u64 {
        let mut reached = at;
        while let Some(first) = self.by_begin.first_entry().filter(|f| *f.key() <= at) {
            reached = reached.max(first.remove());
        }
        reached
    }
    /// Removes all of them.
    pub fn clear(&mut self) {
        self.by_begin.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn ranges_are_the_set_of_their_bytes(
            steps in proptest::collection::vec((0..60_u64, 1..20_u64, 0..5_u8), 1..60),
        ) {
            let (mut ranges, mut bytes) = (Ranges::default(), BTreeSet::new());
            for (from, len, what) in steps {
                if what == 0 {
                    let end = ranges.cut(from);
                    let reached = (from..).find(|b| !bytes.contains(b)).unwrap_or(from);
                    prop_assert_eq!(end, reached);
                    bytes = bytes.split_off(&reached);
                } else {
                    ranges.add(from, from + len);
                    bytes.extend(from..from + len);
                }
                prop_assert!((0..100).all(|b| ranges.contains(b) == bytes.contains(&b)));
                prop_assert_eq!(ranges.end(), bytes.last().map(|b| b + 1));
                let all: Vec<_> = ranges.iter().collect();
                prop_assert!(all.windows(2).all(|w| w[0].1 < w[1].0));
            }
        }
    }
}

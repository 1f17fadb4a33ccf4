//! An oracle: an observer of the links reports which packets were lost and why. Only a simulator can.

use alloc::vec::Vec;

/// Reports on lost packets whose data is not yet acknowledged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Oracle {
    /// Start and end of the data, and whether a channel error was the cause, in the order of the reports.
    losses: Vec<(u64, u64, bool)>,
}

impl Oracle {
    pub(crate) fn report(&mut self, from: u64, to: u64, error: bool) {
        self.losses.push((from, to.max(from + 1), error));
    }

    /// A segment is lost if all its copies are; the cause is that of the last copy. A loss of which the observer
    /// knows nothing is a false detection, which counts as congestion.
    pub(crate) fn is_error(&mut self, una: u64, offset: u64, transmissions: u32) -> bool {
        self.losses.retain(|(_, to, _)| *to > una);
        let copies = self.losses.iter().filter(|(from, to, _)| (*from..*to).contains(&offset));
        let (n, last) = copies.fold((0, false), |(n, _), (_, _, error)| (n + 1, *error));
        n >= transmissions.max(1) && last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_copy_says_why_once_all_are_lost() {
        let mut t = Oracle::default();
        assert!(!t.is_error(1, 1, 1), "nothing is known of a loss");
        t.report(1, 101, true);
        t.report(201, 301, false);
        assert!(t.is_error(1, 1, 1) && !t.is_error(1, 201, 1) && !t.is_error(1, 101, 1));
        assert!(!t.is_error(1, 1, 2), "the second copy is under way");
        t.report(1, 101, false);
        assert!(!t.is_error(1, 1, 2), "the second copy was lost to congestion");
        assert!(!t.is_error(101, 50, 1), "forgotten once acknowledged");
        assert_eq!(t.losses.len(), 1);
    }
}

//! Number of segments that an acknowledgement reports as received (Westwood's `AckedCount`).
//!
//! Each duplicate acknowledgement counts as one segment. The cumulative acknowledgement that ends the series covers
//! them again, so the credit is subtracted from it, down to one segment.

use crate::event::{Ack, AckKind};

/// Segments credited to duplicates and not yet covered by a cumulative acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Credit(f64);

impl Credit {
    /// Segments that `ack` reports for the first time. A cumulative acknowledgement of `n` segments, all of them credited
    /// before, subtracts `n - kept` from the credit: `kept` is 1 in ns-2's module, 0 in the paper and in Linux.
    pub fn of(&mut self, ack: &Ack, kept: f64) -> f64 {
        if let AckKind::Duplicate { .. } = ack.kind {
            self.0 += 1.0;
            return 1.0;
        }
        let n = ack.acked;
        if n <= 1.0 {
            n
        } else if self.0 >= n {
            self.0 -= n - kept;
            1.0
        } else {
            n - core::mem::take(&mut self.0)
        }
    }

    /// Clears the credit (after a timeout, the next acknowledgements are for retransmissions).
    pub fn clear(&mut self) {
        self.0 = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ack;

    fn dup() -> Ack {
        ack(AckKind::Duplicate { count: 1, new_sack: false, dsack: false }, 0.0)
    }

    #[test]
    fn a_row_of_duplicates_is_not_counted_twice() {
        let mut c = Credit::default();
        let row: f64 = (0..5).map(|_| c.of(&dup(), 1.0)).sum();
        // Eight segments in all: five were counted, three are new.
        assert_eq!((row, c.of(&ack(AckKind::Full, 8.0), 1.0)), (5.0, 3.0));
        assert_eq!(c.of(&ack(AckKind::New, 2.0), 1.0), 2.0);
        assert_eq!(c.of(&ack(AckKind::New, 0.5), 1.0), 0.5);
    }

    #[test]
    fn partial_acknowledgements_take_back_what_they_cover() {
        let (mut ns2, mut linux) = (Credit::default(), Credit::default());
        for _ in 0..6 {
            ns2.of(&dup(), 1.0);
            linux.of(&dup(), 0.0);
        }
        // Four of six covered, one credited; then five more.
        let partial = ack(AckKind::Partial, 4.0);
        assert_eq!((ns2.of(&partial, 1.0), linux.of(&partial, 0.0)), (1.0, 1.0));
        let full = ack(AckKind::Full, 5.0);
        assert_eq!((ns2.of(&full, 1.0), linux.of(&full, 0.0)), (2.0, 3.0));
        ns2.of(&dup(), 1.0);
        ns2.clear();
        assert_eq!(ns2.of(&ack(AckKind::New, 3.0), 1.0), 3.0);
    }
}

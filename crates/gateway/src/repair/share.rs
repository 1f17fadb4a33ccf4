//! How repaired datagrams and split connections share the rate of the link. Each may use what the other one leaves, and at least half.

use skyhaul_base::Rate;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The rate that both share.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    rate: Rate,
    /// Bytes that split connections have sent.
    split: Arc<AtomicU64>,
    /// The rate of split connections, bit/s.
    split_rate: Arc<AtomicU64>,
}

impl Share {
    pub(crate) fn new(rate: Rate) -> Self {
        Self { rate, split: Arc::default(), split_rate: Arc::new(AtomicU64::new(rate.bits_per_sec())) }
    }
    /// The rate that split connections may use, bit/s; it changes.
    pub(crate) fn split_rate(&self) -> Arc<AtomicU64> {
        self.split_rate.clone()
    }
    /// Split connections have sent this many bytes so far.
    pub(crate) fn note(&self, bytes: u64) {
        self.split.store(bytes, Ordering::Relaxed);
    }
}

/// What each side has sent in the last interval.
#[derive(Debug)]
pub(super) struct Divider {
    share: Share,
    last: Option<(u64, u64)>,
}

impl Divider {
    pub(super) fn new(share: Share) -> Self {
        Self { share, last: None }
    }
    /// `seconds` have passed since the last call, and `repaired` bytes with repair have been sent so far. Returns the rate of these, and sets that
    /// of split connections.
    pub(super) fn divide(&mut self, seconds: f64, repaired: u64) -> Rate {
        let split = self.share.split.load(Ordering::Relaxed);
        let (split_before, repaired_before) =
            self.last.replace((split, repaired)).unwrap_or((split, repaired));
        let whole = self.share.rate.bits_per_sec() as f64;
        let left_by = |now: u64, before: u64| {
            let used = now.saturating_sub(before) as f64 * 8.0 / seconds;
            (whole - used).max(whole / 2.0) as u64
        };
        self.share.split_rate.store(left_by(repaired, repaired_before), Ordering::Relaxed);
        Rate::from_bits_per_sec(left_by(split, split_before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_what_the_other_leaves_and_at_least_half() {
        let share = Share::new(Rate::from_bits_per_sec(10_000_000));
        let mut divider = Divider::new(share.clone());
        let mut sent = [0; 2];
        let mut divide = |split: u64, repaired: u64| {
            sent[0] += split / 8;
            sent[1] += repaired / 8;
            share.note(sent[0]);
            let repaired = divider.divide(1.0, sent[1]).bits_per_sec();
            [share.split_rate().load(Ordering::Relaxed), repaired]
        };
        assert_eq!(divide(0, 0), [10_000_000; 2]);
        assert_eq!(divide(3_000_000, 0), [10_000_000, 7_000_000]);
        assert_eq!(divide(10_000_000, 7_000_000), [5_000_000; 2]);
        assert_eq!(divide(1_000_000, 5_000_000), [5_000_000, 9_000_000]);
        assert_eq!(divide(0, 0), [10_000_000; 2]);
    }
}

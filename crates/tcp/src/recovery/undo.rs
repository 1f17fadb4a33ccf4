//! Undoing of spurious reductions: how the sender detects them, and what it restores.
//!
//! There are two tests here; the third is in [`frto`](super::frto):
//!
//! - every retransmission of the episode is reported as a duplicate (RFC 3708, counted as in Linux): all originals
//!   had arrived;
//! - the first acknowledgement after the first retransmission echoes a timestamp from before it (Eifel, RFC 3522):
//!   the original arrived.
//!
//! Both tests are valid only if every outstanding retransmission is known. A recovery that directly follows another
//! may concern data that the other one retransmitted: the acknowledgement of that copy echoes a timestamp from before
//! the new recovery and proves nothing.
//!
//! The response is that of Linux and of RFC 9438 §4.9: it restores the previous state, unlike the more conservative
//! RFC 4015.

use skyhaul_base::{Duration, Instant};

/// Data that a reduction concerns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReducedData {
    /// From `SND.UNA` to `SND.MAX`.
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// The segment at `SND.UNA` has been retransmitted before: an echo from before its next retransmission may be
    /// from the previous one (RFC 3522 §3.2: `RetransmitTS` stays that of the first).
    pub(crate) head_repeated: bool,
    /// Segments of this data whose retransmissions are in flight.
    pub(crate) repeated: u32,
}

/// State of the last reduction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Undo {
    /// The next acknowledgement must be examined: its timestamp may decide (Eifel), or F-RTO is in progress.
    pub(crate) watch: bool,
    /// There is a reduction that may be undone.
    open: bool,
    /// The congestion control reduced its window.
    cut: bool,
    /// The data concerned, from the `SND.UNA` to the `SND.MAX` of that time.
    from: u64,
    to: u64,
    /// Retransmissions of this data, and those of them not yet reported as duplicates.
    sent: u32,
    unreported: u32,
    /// Time of the first retransmission.
    first: Option<Instant>,
    /// The timestamp test is open: no acknowledgement of new data has arrived since.
    undecided: bool,
}

impl Undo {
    /// The last reduction can no longer be undone.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Whether the timestamp of the next acknowledgement may decide (Eifel).
    pub(crate) fn asks(&self) -> bool {
        self.undecided && self.first.is_some()
    }
    /// Sets whether timestamps are examined.
    pub(crate) fn ask_timestamps(&mut self, looked_at: bool) {
        self.undecided &= looked_at;
    }
    /// New data was acknowledged without any proof.
    pub(crate) fn no_answer(&mut self) {
        self.undecided = false;
    }
    /// Whether it reduced the window.
    pub(crate) fn cut(&self) -> bool {
        self.cut
    }

    /// `SND.MAX` at the time of the reduction: the end of the data that it concerns.
    pub(crate) fn until(&self) -> u64 {
        self.to
    }

    /// A reduction begins. `again`: the retransmission timer has expired again, and the state before its first
    /// expiration would be restored. `nested`: retransmissions of an earlier episode may still be in flight.
    pub(crate) fn begin(&mut self, data: ReducedData, cut: bool, again: bool, nested: bool) {
        let ReducedData { from, to, head_repeated, repeated } = data;
        if !(nested && self.open) {
            *self = Self { from, sent: repeated, unreported: repeated, ..Self::default() };
        }
        if !again {
            (self.first, self.cut) = (None, false);
        }
        self.open = true;
        self.cut |= cut;
        self.to = to;
        self.undecided = (self.undecided || !again) && !head_repeated;
        self.watch = false;
    }

    /// A segment that starts at `seq` is retransmitted.
    #[inline(never)]
    pub(crate) fn resent(&mut self, now: Instant, seq: u64) {
        if self.open && seq < self.to {
            self.sent += 1;
            self.unreported += 1;
            self.first.get_or_insert(now);
            self.watch |= self.undecided;
        }
    }

    /// The receiver reported `[from, to)` as a duplicate. Returns true if all retransmissions have been reported.
    /// Reports do not identify retransmissions, so they are counted (RFC 3708 §2 checks each; a network that
    /// duplicates packets fools both).
    pub(crate) fn reported(&mut self, (from, to): (u64, u64), smss: u32) -> bool {
        if !self.open || self.unreported == 0 || from < self.from || to > self.to || to <= from {
            return false;
        }
        let segments = (to - from).div_ceil(u64::from(smss)).min(u64::from(self.unreported)) as u32;
        self.unreported -= segments.max(1);
        self.unreported == 0
    }

    /// The first acknowledgement of new data since a retransmission echoes a timestamp of this `age`. Returns true
    /// if it is from before the retransmission. Timestamps are compared in ticks, as the peer sees them; an equal
    /// tick proves nothing (RFC 3522 §3.2, step 5).
    pub(crate) fn older(&mut self, now: Instant, age: Option<Duration>, tick: Duration) -> bool {
        let (true, true, Some(first)) = (self.open, self.undecided, self.first) else { return false };
        self.undecided = false;
        let ticks = |t: Instant| t.as_nanos() / tick.as_nanos();
        age.is_some_and(|age| age.as_nanos() / tick.as_nanos() > ticks(now) - ticks(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }
    const DATA: ReducedData = ReducedData { from: 1001, to: 5001, head_repeated: false, repeated: 0 };
    /// Segments of 1000 bytes from 1001 to 5000 in flight.
    fn begun() -> Undo {
        let mut u = Undo::default();
        u.begin(DATA, true, false, false);
        u
    }

    #[test]
    fn every_retransmission_has_to_be_reported() {
        let mut u = begun();
        assert!(!u.reported((1001, 2001), 1000), "nothing was sent again");
        u.resent(at(10), 1001);
        u.resent(at(10), 2001);
        u.resent(at(10), 5001); // New after the reduction: no part of it.
        assert!(!u.reported((1001, 2001), 1000));
        assert!(!u.reported((1, 1001), 1000), "before the reduced data");
        assert!(!u.reported((5001, 6001), 1000), "after the reduced data");
        assert!(u.reported((2001, 3001), 1000));
        // Nothing, and a report that ends before it begins.
        u.resent(at(10), 1001);
        assert!(!u.reported((2001, 2001), 1000) && !u.reported((3001, 2001), 1000));
        // A retransmission in flight at the start of the reduction counts too.
        let mut u = Undo::default();
        u.begin(ReducedData { repeated: 1, ..DATA }, true, false, false);
        u.resent(at(10), 1001);
        assert!(!u.reported((2001, 3001), 1000));
        assert!(u.reported((1001, 2001), 1000));
        // Both in one report.
        let mut u = begun();
        u.resent(at(10), 1001);
        u.resent(at(10), 2001);
        assert!(u.reported((1001, 3001), 1000));
    }

    #[test]
    fn a_timeout_within_an_episode_counts_on() {
        let mut u = begun();
        u.resent(at(10), 1001);
        u.begin(DATA, true, false, true);
        u.resent(at(500), 1001);
        assert!(!u.reported((1001, 2001), 1000));
        assert!(u.reported((1001, 2001), 1000));
    }

    #[test]
    fn only_the_first_acknowledgement_and_only_an_older_echo_count() {
        let ms = Duration::from_millis;
        // At 60 ms an echo of 51 ms ago is from 9 ms; the retransmission left at 10 ms.
        for (age, older) in [(51, true), (50, false), (20, false)] {
            let mut u = begun();
            u.resent(at(10), 1001);
            u.resent(at(30), 2001);
            assert!(u.watch);
            assert_eq!(u.older(at(60), Some(ms(age)), ms(1)), older, "{age}");
            assert!(!u.older(at(61), Some(ms(60)), ms(1)), "the second acknowledgement");
        }
        let mut u = begun();
        u.resent(at(10), 1001);
        assert!(!u.older(at(60), None, ms(1)), "no timestamp");
        // The echo is of the copy that the previous recovery sent at 9 ms.
        let mut u = Undo::default();
        u.begin(ReducedData { head_repeated: true, repeated: 1, ..DATA }, true, false, false);
        u.resent(at(10), 1001);
        assert!(!u.older(at(60), Some(ms(51)), ms(1)), "a retransmission of an earlier recovery");
        assert!(!begun().older(at(60), Some(ms(60)), ms(1)), "nothing was sent again");
    }
}

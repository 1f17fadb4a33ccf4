//! Reductions that answered no loss: how the sender finds out, and what it takes back.
//!
//! Two proofs stand here, the third is in [`frto`](super::frto):
//!
//! - every retransmission of the episode is reported as a duplicate (RFC 3708, as Linux counts them): the originals
//!   had arrived, all of them;
//! - the first acknowledgement after the first retransmission echoes a timestamp from before it (Eifel, RFC 3522): it
//!   was the original that arrived.
//!
//! Both hold only where every retransmission under way is known. A recovery that begins as another ends may concern data
//! which the other one sent again: the acknowledgement of that copy is older than the new recovery, and proves nothing.
//!
//! The response is that of Linux and of RFC 9438 §4.9, the state of before, rather than the more careful one of
//! RFC 4015.

use skyhaul_base::{Duration, Instant};

/// Data that a reduction concerns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Concerned {
    /// From `SND.UNA` to `SND.MAX`.
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// The segment at `SND.UNA` has been sent again before: an echo from before its next retransmission may be that of the
    /// one before (RFC 3522 §3.2: `RetransmitTS` stays that of the first).
    pub(crate) head_repeated: bool,
    /// Segments of it whose retransmissions are under way.
    pub(crate) repeated: u32,
}

/// What is known of the last reduction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Undo {
    /// The next acknowledgement may decide.
    pub(crate) watch: bool,
    /// There is a reduction that may be undone.
    open: bool,
    /// It made the window smaller.
    cut: bool,
    /// Data concerned: from `SND.UNA` to `SND.MAX` as they were.
    from: u64,
    to: u64,
    /// Retransmissions of it, and those not reported as duplicates.
    sent: u32,
    unreported: u32,
    /// When the first retransmission left.
    first: Option<Instant>,
    /// No acceptable acknowledgement came since.
    undecided: bool,
}

impl Undo {
    /// Something that no later report undoes.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// There is a question that the next acknowledgement may answer.
    pub(crate) fn asks(&self) -> bool {
        self.undecided && self.first.is_some()
    }
    /// Timestamps decide only where they are looked at.
    pub(crate) fn ask_timestamps(&mut self, looked_at: bool) {
        self.undecided &= looked_at;
    }
    /// New data was acknowledged by what proves nothing.
    pub(crate) fn no_answer(&mut self) {
        self.undecided = false;
    }
    /// It made the window smaller.
    pub(crate) fn cut(&self) -> bool {
        self.cut
    }

    /// A reduction begins. `again`: the retransmission timer repeats itself, and what would be restored is the state
    /// before its first expiry. `nested`: retransmissions of an episode before may still be under way.
    pub(crate) fn begin(&mut self, data: Concerned, cut: bool, again: bool, nested: bool) {
        let Concerned { from, to, head_repeated, repeated } = data;
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

    /// A segment that starts at `seq` leaves again.
    #[inline(never)]
    pub(crate) fn resent(&mut self, now: Instant, seq: u64) {
        if self.open && seq < self.to {
            self.sent += 1;
            self.unreported += 1;
            self.first.get_or_insert(now);
            self.watch |= self.undecided;
        }
    }

    /// The receiver got `[from, to)` twice. True if it did so with every retransmission. A report names no
    /// retransmission, so they are counted (RFC 3708 §2 looks at each; a network that duplicates fools both).
    pub(crate) fn reported(&mut self, (from, to): (u64, u64), smss: u32) -> bool {
        if !self.open || self.unreported == 0 || from < self.from || to > self.to || to <= from {
            return false;
        }
        let segments = (to - from).div_ceil(u64::from(smss)).min(u64::from(self.unreported)) as u32;
        self.unreported -= segments.max(1);
        self.unreported == 0
    }

    /// The first acknowledgement of new data since a retransmission echoes a timestamp of this `age`. True if that
    /// is from before the retransmission. Timestamps are compared as the peer sees them: in ticks, and one of the
    /// same tick proves nothing (RFC 3522 §3.2, step 5).
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
    const DATA: Concerned = Concerned { from: 1001, to: 5001, head_repeated: false, repeated: 0 };
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
        assert!(!u.reported((1, 1001), 1000), "of before");
        assert!(!u.reported((5001, 6001), 1000), "of after");
        assert!(u.reported((2001, 3001), 1000));
        // Nothing, and a report that ends before it begins.
        u.resent(at(10), 1001);
        assert!(!u.reported((2001, 2001), 1000) && !u.reported((3001, 2001), 1000));
        // One that was under way before counts too.
        let mut u = Undo::default();
        u.begin(Concerned { repeated: 1, ..DATA }, true, false, false);
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
        // The copy that the recovery before sent at 9 ms.
        let mut u = Undo::default();
        u.begin(Concerned { head_repeated: true, repeated: 1, ..DATA }, true, false, false);
        u.resent(at(10), 1001);
        assert!(!u.older(at(60), Some(ms(51)), ms(1)), "a retransmission of before");
        assert!(!begun().older(at(60), Some(ms(60)), ms(1)), "nothing was sent again");
    }
}

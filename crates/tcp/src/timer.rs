//! The timers of a sender: one deadline each, and the earliest of them.

use skyhaul_base::Instant;

/// Purpose of a timer of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// Retransmission (RFC 6298).
    Retransmission,
    /// Pacing.
    Pacing,
    /// The reordering window, or the wait for a tail loss probe (RFC 8985 §8: never both at once).
    Loss,
    /// Persist: the next probe of a closed window (RFC 9293 §3.8.6.1), or of a link that is down.
    Persist,
    /// A wake-up requested by the congestion control.
    Wake,
    /// The next segment of a train of probes.
    Train,
}

/// Number of timers.
const COUNT: usize = 6;

/// The deadlines; [`Instant::MAX`] means none.
#[derive(Clone, Debug)]
pub(crate) struct Timers {
    at: [Instant; COUNT],
    /// The earliest deadline of the timers other than retransmission. It is kept because the retransmission timer changes
    /// with every acknowledgement; without pacing and tail loss probes, the others change rarely.
    others: Instant,
}

impl Timers {
    pub(crate) const NONE: Self = Self { at: [Instant::MAX; COUNT], others: Instant::MAX };

    /// When `timer` expires; [`Instant::MAX`] if it is not running.
    #[inline]
    pub(crate) fn at(&self, timer: Timer) -> Instant {
        self.at[timer as usize]
    }
    /// Whether `timer` has expired.
    #[inline]
    pub(crate) fn expired(&self, timer: Timer, now: Instant) -> bool {
        self.at(timer) <= now
    }
    /// Sets a timer, or stops it with [`Instant::MAX`].
    #[inline]
    pub(crate) fn set(&mut self, timer: Timer, at: Instant) {
        self.at[timer as usize] = at;
        if !matches!(timer, Timer::Retransmission) {
            // Index 0 is the retransmission timer.
            self.others = self.at[1..].iter().copied().fold(Instant::MAX, Instant::min);
        }
    }
    /// Stops a timer.
    #[inline]
    pub(crate) fn stop(&mut self, timer: Timer) {
        if self.at(timer) != Instant::MAX {
            self.set(timer, Instant::MAX);
        }
    }
    /// The earliest deadline.
    #[inline]
    pub(crate) fn next(&self) -> Instant {
        self.at[Timer::Retransmission as usize].min(self.others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_deadline_is_known_whatever_is_set_and_stopped() {
        let at = Instant::from_nanos;
        let mut t = Timers::NONE;
        assert_eq!(t.next(), Instant::MAX);
        t.set(Timer::Retransmission, at(50));
        t.set(Timer::Pacing, at(20));
        t.set(Timer::Train, at(30));
        assert_eq!(t.next(), at(20));
        t.stop(Timer::Pacing);
        assert_eq!(t.next(), at(30));
        t.stop(Timer::Train);
        assert_eq!(t.next(), at(50));
        assert!(t.expired(Timer::Retransmission, at(50)) && !t.expired(Timer::Pacing, at(50)));
    }
}

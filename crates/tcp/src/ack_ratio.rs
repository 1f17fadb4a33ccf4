//! ACK congestion control, at the data sender: how many segments the peer acknowledges at once.
//!
//! **RFC 5690**, with the rule of RFC 4341 §6.1.2. The ratio R starts at 2. A window of data in which an
//! acknowledgement was lost or marked doubles it; after `cwnd/(R² - R)` consecutive windows without one, it
//! decreases by one. It never exceeds half the congestion window, rounded up, so that every window gets two
//! acknowledgements, except that 2 is always allowed (RFC 4341 §6.1.2); it is at least 2 for windows of four segments
//! or more.
//!
//! An acknowledgement counts as lost when the next one covers more than R segments (§4.4), except during loss
//! recovery, when the cumulative acknowledgement jumps anyway (§4.4.1). A reordered acknowledgement counts as lost.
//!
//! **RFC 3449 §4.3.** Only marks count: the queue of the return link marks acknowledgements before it is full. A
//! round trip with a mark doubles the ratio, each one without a mark decreases it by one: the reverse of what
//! congestion control does with a window. Every window of data gets at least one acknowledgement. In the RFC the receiver keeps the
//! ratio, from marks that the sender echoes and a window that the sender reports. Here the sender, which knows both
//! and the RTT, keeps it and sends the ratio to the receiver. Content, timing and effect of the messages are the
//! same.

use crate::config::AckCc;
use core::num::NonZeroU8;
use skyhaul_base::{Duration, math};

/// The initial ratio of RFC 5690 §4.1, which is that of delayed acknowledgements (RFC 1122 §4.2.3.2).
const FIRST: u32 = 2;
/// Largest ratio, segments per acknowledgement: the option has eight bits (RFC 5690 §4.2).
const MOST: u32 = 255;

/// Longest delay of an acknowledgement if the peer sets the ACK ratio, as in ns-2 (`interval_` of TCPSink/DelAck).
pub(crate) const LONGEST_HELD: Duration = Duration::from_millis(100);

/// An acknowledgement, and the sender's state at that time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckSample {
    /// `SND.UNA` before it.
    pub(crate) una_before: u64,
    /// `SND.UNA` after it.
    pub(crate) una: u64,
    /// `SND.MAX`.
    pub(crate) max: u64,
    /// Size of a full segment, bytes.
    pub(crate) smss: u32,
    /// Congestion window, segments.
    pub(crate) cwnd: f64,
    /// A recovery was in progress, at least until this acknowledgement.
    pub(crate) repairing: bool,
    /// A router has marked it.
    pub(crate) marked: bool,
}

/// What the peer knows of the ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Announcement {
    /// The peer knows the ratio.
    Known,
    /// The next segment carries it first.
    Due,
    /// The first segment that carries it ends at this offset; the peer knows it once that offset is acknowledged.
    Sent(u64),
}

/// The ACK ratio of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckRatio {
    /// The rule of RFC 3449 applies.
    by_marks: bool,
    /// Segments per acknowledgement.
    ratio: u32,
    /// The previous ratio, which the peer may still be using.
    previous: u32,
    announcement: Announcement,
    /// End of the current window of data, as an offset in the stream.
    window_end: u64,
    /// An acknowledgement of the current window was lost or marked.
    congested: bool,
    /// Consecutive windows without loss or mark.
    clean: u32,
    /// Consecutive clean windows after which the ratio decreases.
    needed: u32,
}

impl AckRatio {
    /// A ratio with this rule; `None` without a rule.
    pub(crate) fn new(rule: AckCc) -> Option<Self> {
        let by_marks = match rule {
            AckCc::None => return None,
            AckCc::Rfc5690 => false,
            AckCc::Rfc3449 => true,
        };
        Some(Self {
            by_marks,
            ratio: FIRST,
            previous: FIRST,
            announcement: Announcement::Known,
            window_end: 0,
            congested: false,
            clean: 0,
            needed: 1,
        })
    }

    /// The ratio that the peer has been sent, or will be.
    pub(crate) const fn ratio(&self) -> u32 {
        self.ratio
    }

    /// The ratio that a data segment ending at `end` must carry. Every segment carries it until one of them is
    /// acknowledged, so that the peer cannot miss it.
    pub(crate) fn tell(&mut self, end: u64) -> Option<NonZeroU8> {
        match self.announcement {
            Announcement::Known => return None,
            Announcement::Due => self.announcement = Announcement::Sent(end),
            Announcement::Sent(_) => {}
        }
        NonZeroU8::new(self.ratio as u8)
    }

    fn is_known(&self) -> bool {
        self.announcement == Announcement::Known
    }

    /// Processes an acknowledgement.
    pub(crate) fn acknowledged(&mut self, s: &AckSample) {
        let covered = s.una.saturating_sub(s.una_before).div_ceil(s.smss.max(1).into());
        let lost = !self.by_marks && !s.repairing && covered > self.ratio.max(self.previous).into();
        self.congested |= lost || s.marked;
        if matches!(self.announcement, Announcement::Sent(end) if s.una >= end) {
            (self.announcement, self.previous) = (Announcement::Known, self.ratio);
        }
        if s.una > self.window_end {
            self.end_window(s.cwnd);
            self.window_end = s.max;
        }
        // Not before the peer knows the last change (§4.5).
        let most = self.most(s.cwnd);
        if self.ratio > most && self.is_known() {
            self.change(most, s.cwnd);
        }
    }

    /// The maximum ratio (RFC 5690 §4.5, constraint 2). RFC 3449 §4.3 needs only one acknowledgement per window: the ratio is
    /// at most one segment less than the window.
    fn most(&self, cwnd: f64) -> u32 {
        let window = cwnd.min(1e6) as u32;
        let most = if self.by_marks { window.saturating_sub(1) } else { window.div_ceil(2) };
        most.clamp(FIRST, MOST)
    }

    fn end_window(&mut self, cwnd: f64) {
        if self.congested {
            // While the peer is being told the last change, the ratio may not change again (§4.5): the congestion counts for
            // the next window.
            (self.clean, self.congested) = (0, !self.is_known());
            if self.is_known() {
                self.change((2 * self.ratio).min(self.most(cwnd)), cwnd);
            }
            return;
        }
        self.clean = self.clean.saturating_add(1);
        // RFC 5690 §4.5, constraint 3.
        let least = if cwnd >= 4.0 || self.by_marks { FIRST } else { 1 };
        if self.clean >= self.needed && self.ratio > least && self.is_known() {
            self.change(self.ratio - 1, cwnd);
        } else if self.ratio < least && self.is_known() {
            self.change(least, cwnd);
        }
    }

    fn change(&mut self, ratio: u32, cwnd: f64) {
        self.clean = 0;
        let r = f64::from(ratio);
        // A ratio of one cannot decrease.
        self.needed = if self.by_marks {
            1
        } else if ratio > 1 {
            // RFC 4341 §6.1.2: cwnd/(R² - R) windows; of a fraction of a window the whole is needed.
            math::ceil((cwnd / (r * r - r)).min(1e6)).max(1.0) as u32
        } else {
            u32::MAX
        };
        if ratio != self.ratio {
            (self.previous, self.ratio, self.announcement) = (self.ratio, ratio, Announcement::Due);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// A sender with a window of so many segments of 1000 bytes.
    struct SimulatedSender {
        acc: AckRatio,
        una: u64,
        cwnd: u64,
    }

    impl SimulatedSender {
        /// The next acknowledgement covers so many segments.
        fn ack(&mut self, segments: u64, marked: bool) -> u32 {
            let (una_before, window) = (self.una, self.cwnd * 1000);
            let max = una_before + window;
            let _ = self.acc.tell(max);
            self.una += segments * 1000;
            let (una, cwnd) = (self.una, self.cwnd as f64);
            let s = AckSample { una_before, una, max, smss: 1000, cwnd, repairing: false, marked };
            self.acc.acknowledged(&s);
            self.acc.ratio()
        }
        /// So many windows in which the peer follows the ratio.
        fn windows(&mut self, n: u64) -> u32 {
            let to = self.una + n * self.cwnd * 1000;
            while self.una < to {
                self.ack(self.acc.ratio().into(), false);
            }
            self.acc.ratio()
        }
    }
    fn talk(cwnd: u64) -> SimulatedSender {
        SimulatedSender { acc: AckRatio::new(AckCc::Rfc5690).expect("a rule"), una: 1, cwnd }
    }

    #[test]
    fn by_marks_it_doubles_and_falls_by_one_in_each_window_without() {
        let mut t = SimulatedSender { acc: AckRatio::new(AckCc::Rfc3449).expect("a rule"), una: 1, cwnd: 24 };
        assert!(AckRatio::new(AckCc::None).is_none());
        // Losses say nothing.
        for _ in 0..50 {
            t.ack(6, false);
        }
        assert_eq!(t.acc.ratio(), 2);
        // Every acknowledgement is marked: 2, 4, 8, 16, and at most one segment less than the window (24), so that each window
        // gets an acknowledgement.
        let mut seen = vec![2];
        for _ in 0..400 {
            let ratio = t.acc.ratio();
            let now = t.ack(ratio.into(), true);
            if seen.last() != Some(&now) {
                seen.push(now);
            }
        }
        assert_eq!(seen, [2, 4, 8, 16, 23]);
        // The ratio decreases one by one. Each step takes the window that carries the new ratio and the one after it.
        let mut seen = vec![];
        for _ in 0..60 {
            seen.push(t.windows(1));
        }
        seen.dedup();
        assert_eq!(seen.first().map(|n| n >= &22), Some(true), "{seen:?}");
        assert!(seen.windows(2).all(|w| w[1] + 1 == w[0]), "{seen:?}");
        assert_eq!(seen.last(), Some(&2));
    }

    #[test]
    fn a_lost_acknowledgement_doubles_the_ratio_once_per_window() {
        let mut t = talk(24);
        assert_eq!(t.windows(3), 2, "all is well: one for every second segment");
        // Four segments at once: one was lost. The window ends before the ratio changes.
        let mut seen = vec![t.ack(4, false), t.ack(4, false)];
        while seen.last() == Some(&2) && seen.len() < 40 {
            seen.push(t.ack(2, false));
        }
        assert_eq!(seen.last(), Some(&4), "{seen:?}");
        assert!(seen.len() <= 13, "within one window: {seen:?}");
        // What covers four is as it should be now.
        assert_eq!(t.windows(1), 4);
    }

    #[test]
    fn it_falls_by_one_after_so_many_clean_windows() {
        let mut t = talk(24);
        t.windows(1);
        t.ack(2, true);
        let mut waited = 0;
        while t.acc.ratio() == 2 && waited < 24 {
            t.ack(2, false);
            waited += 1;
        }
        assert_eq!(t.acc.ratio(), 4, "a mark is as good as a loss");
        // cwnd/(R² - R): 24/12 = 2 windows from 4 to 3, 24/6 = 4 from 3 to 2; and no further with such a window.
        let windows_at = |t: &mut SimulatedSender, ratio: u32| {
            let mut n = 0;
            while t.acc.ratio() == ratio && n < 50 {
                t.windows(1);
                n += 1;
            }
            n
        };
        assert_eq!((windows_at(&mut t, 4), windows_at(&mut t, 3)), (2, 4));
        assert_eq!(t.windows(50), 2);
    }

    #[test]
    fn of_a_fraction_of_a_window_the_whole_is_needed() {
        let mut acc = talk(24).acc;
        // cwnd/(R² - R): 24/12, 25/12, 1/2 and 24/1980.
        for (ratio, cwnd, needed) in [(4, 24.0, 2), (4, 25.0, 3), (2, 1.0, 1), (45, 24.0, 1)] {
            acc.change(ratio, cwnd);
            assert_eq!(acc.needed, needed, "{cwnd} segments, ratio {ratio}");
        }
        acc.change(1, 3.0);
        assert_eq!(acc.needed, u32::MAX, "a ratio of one cannot decrease");
    }

    #[test]
    fn at_least_two_acknowledgements_answer_a_window() {
        let mut t = talk(9);
        for _ in 0..200 {
            t.ack(1, true);
            assert!(t.acc.ratio() <= 5, "{}", t.acc.ratio());
        }
        assert_eq!(t.acc.ratio(), 5, "ceil(9/2)");
        // The window shrinks: so does the ratio, but 2 is always allowed.
        t.cwnd = 1;
        (0..5).for_each(|_| {
            t.ack(1, true);
        });
        assert_eq!(t.acc.ratio(), 2);
        // One acknowledgement per segment only with a window of less than four.
        t.cwnd = 3;
        assert_eq!(t.windows(40), 1);
        t.cwnd = 4;
        assert_eq!(t.windows(5), 2);
    }

    #[test]
    fn nothing_is_taken_for_lost_while_data_is_repaired() {
        let mut t = talk(24);
        t.windows(2);
        for _ in 0..10 {
            let (una_before, una) = (t.una, t.una + 20_000);
            let max = una + 24_000;
            let s =
                AckSample { una_before, una, max, smss: 1000, cwnd: 24.0, repairing: true, marked: false };
            t.acc.acknowledged(&s);
            t.una = una;
        }
        assert_eq!(t.acc.ratio(), 2);
    }

    #[test]
    fn every_segment_says_it_until_one_is_acknowledged() {
        let mut t = talk(24);
        while t.acc.ratio() == 2 {
            t.ack(2, true);
        }
        let (a, b) = (t.acc.tell(t.una + 1000), t.acc.tell(t.una + 2000));
        assert_eq!((a, b), (NonZeroU8::new(4), NonZeroU8::new(4)));
        let s = |una| AckSample {
            una_before: t.una,
            una,
            max: una,
            smss: 1000,
            cwnd: 24.0,
            repairing: false,
            marked: false,
        };
        let (early, late) = (s(t.una + 999), s(t.una + 1000));
        t.acc.acknowledged(&early);
        assert_eq!(t.acc.tell(t.una + 3000), NonZeroU8::new(4));
        t.acc.acknowledged(&late);
        assert_eq!(t.acc.tell(t.una + 4000), None);
    }
}

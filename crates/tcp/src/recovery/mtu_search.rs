//! Packetization layer path MTU discovery (RFC 4821; names follow RFC 8899): searches for the longest segment that
//! a path carries, with probe segments. It does not depend on routers; their messages only shorten the search.
//!
//! ```text
//! Base ── a probe arrives ──> longer segments ── no size is left to try ──> Search Complete
//!   ^                               ^                                         │     │
//!   │                               └── after 600 s, from the largest size ───┘     │
//!   └──── four timeouts in a row (black hole) ──────────────────────────────────────┘
//! ```
//! The largest size is tried first, since most paths carry it. Then the range is halved until the remainder is not
//! worth a probe. A probe that is lost alone, with later segments delivered, was either too long or hit by a channel
//! error: only three such losses of one size rule the size out.

use super::black_hole::BASE;
use skyhaul_base::{Duration, Instant};

/// Probes of one size that may be lost (RFC 8899 §5.1.2, `MAX_PROBES`).
const MAX_PROBES: u8 = 3;
/// Minimum gain for which a probe is worthwhile, bytes (Linux: `tcp_probe_threshold`).
const WORTH: u32 = 8;
/// Time from the end of a search to the next (RFC 8899 §5.1.1, `PMTU_RAISE_TIMER`).
const RAISE: Duration = Duration::from_secs(600);

/// The state of a search. Sizes are payload, bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search {
    /// Size that the path is known to carry: that of full segments.
    low: u32,
    /// Largest size that it may carry.
    high: u32,
    /// Size that both ends negotiated.
    top: u32,
    /// The largest remaining size is tried before the middle of the range.
    top_first: bool,
    /// Probes of the current size that were lost alone.
    lost: u8,
    /// The probe in flight: its first offset, and the end of its data.
    probe: Option<(u64, u64)>,
    /// End of the data of the probe lost last.
    lost_until: u64,
    /// Earliest time of the next search, if the last one is complete.
    again: Option<Instant>,
}

impl Search {
    /// Starts with segments of up to `top` bytes, as negotiated. `None` if there is nothing to search for.
    pub(crate) fn new(top: u32) -> Option<Self> {
        (top > BASE).then_some(Self {
            low: BASE,
            high: top,
            top,
            top_first: true,
            lost: 0,
            probe: None,
            lost_until: 0,
            again: None,
        })
    }

    /// Payload of a full segment.
    pub(crate) fn size(&self) -> u32 {
        self.low
    }
    /// Whether the search is complete: no probe leaves before the next search begins.
    pub(crate) fn is_complete(&self) -> bool {
        self.again.is_some()
    }
    /// The probe in flight.
    pub(crate) fn probe(&self) -> Option<(u64, u64)> {
        self.probe
    }

    /// End of the data of the probe lost last; 0 before the first.
    pub(crate) fn lost_until(&self) -> u64 {
        self.lost_until
    }

    /// The size of the next probe, if one may leave now.
    pub(crate) fn next(&mut self, now: Instant) -> Option<u32> {
        if self.probe.is_some() || self.low >= self.top {
            return None;
        }
        if let Some(at) = self.again {
            if now < at {
                return None;
            }
            (self.again, self.high, self.top_first) = (None, self.top, true);
        }
        Some(if self.top_first { self.high } else { (self.low + self.high).div_ceil(2) })
    }
    /// A probe from `from` to `to` leaves.
    pub(crate) fn sent(&mut self, from: u64, to: u64) {
        self.probe = Some((from, to));
    }

    /// Everything before `una` has arrived. Returns the new size of full segments, if this includes the probe.
    pub(crate) fn acknowledged(&mut self, now: Instant, una: u64) -> Option<u32> {
        let (from, to) = self.probe.filter(|(_, to)| una >= *to)?;
        self.probe = None;
        self.low = (to - from) as u32;
        // The path carries more than a router reported while the probe was in flight.
        self.high = self.high.max(self.low);
        self.next_size(now);
        Some(self.low)
    }
    /// The data of the probe must be retransmitted in shorter segments. `too_long`: only the probe was lost, so its
    /// length may be the cause.
    pub(crate) fn failed(&mut self, now: Instant, too_long: bool) {
        let Some((from, to)) = self.probe.take() else { return };
        self.lost_until = to;
        // A router may have ruled the size out already.
        if !too_long || to - from > u64::from(self.high) {
            return;
        }
        self.lost += 1;
        if self.lost >= MAX_PROBES {
            self.high = (to - from) as u32 - 1;
            self.next_size(now);
        }
    }
    /// A router reported the path MTU: full segments of `size` bytes.
    pub(crate) fn path_mtu_reported(&mut self, now: Instant, size: u32) {
        if size >= self.high {
            return;
        }
        if size < self.low {
            // Everything outstanding is cut anew and retransmitted.
            self.probe = None;
        }
        (self.high, self.low) = (size, self.low.min(size));
        self.lost = 0;
        // The reported size is most likely right.
        self.top_first = true;
        if self.low == self.high {
            self.complete(now);
        }
    }
    /// The path drops full segments: falls back to `size`, and the search restarts.
    pub(crate) fn fall_back(&mut self, size: u32) {
        *self =
            Self { low: size, high: self.top, top_first: true, lost: 0, probe: None, again: None, ..*self };
    }

    /// Chooses the next size after one is decided.
    fn next_size(&mut self, now: Instant) {
        (self.lost, self.top_first) = (0, false);
        if self.high < self.low + WORTH {
            self.complete(now);
        }
    }
    fn complete(&mut self, now: Instant) {
        self.again = Some(now + RAISE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Probes until none may leave, on a path that takes `limit`; the sizes tried.
    fn search(s: &mut Search, now: Instant, limit: u32) -> Vec<u32> {
        let mut tried = Vec::new();
        let mut at = 1;
        while let Some(size) = s.next(now) {
            assert!(size > s.size() && size <= s.top, "{s:?}");
            tried.push(size);
            s.sent(at, at + u64::from(size));
            at += u64::from(size);
            if size > limit {
                s.failed(now, true);
            } else {
                assert_eq!(s.acknowledged(now, at), Some(size));
            }
        }
        tried
    }

    #[test]
    fn every_limit_is_found_to_within_what_is_worth_a_probe() {
        for top in [1025, 1460, 8948] {
            for limit in (BASE..=top).step_by(7).chain([top]) {
                let mut s = Search::new(top).expect("above the base");
                let tried = search(&mut s, Instant::ZERO, limit);
                assert!(s.size() <= limit && limit - s.size() < WORTH, "{limit} of {top}: {}", s.size());
                // Halving a range of `top - BASE` takes its logarithm, and three probes for each answer of no.
                let halvings = (top - BASE).ilog2() + 2;
                assert!(tried.len() <= 3 * halvings as usize, "{limit} of {top}: {tried:?}");
                assert_eq!(tried.len() == 1, limit == top || top == 1025 && tried.len() == 1);
            }
        }
        assert!(Search::new(BASE).is_none());
    }

    #[test]
    fn one_lost_probe_of_three_decides_nothing() {
        let mut s = Search::new(1460).expect("above the base");
        for _ in 0..2 {
            assert_eq!(s.next(Instant::ZERO), Some(1460));
            s.sent(1, 1461);
            assert_eq!(s.next(Instant::ZERO), None, "one at a time");
            s.failed(Instant::ZERO, true);
        }
        // Lost with others: that says nothing of its length.
        s.sent(1, 1461);
        s.failed(Instant::ZERO, false);
        s.sent(1, 1461);
        assert_eq!(s.acknowledged(Instant::ZERO, 1460), None);
        assert_eq!(s.acknowledged(Instant::ZERO, 1461), Some(1460));
    }

    #[test]
    fn a_complete_search_begins_again_after_ten_minutes() {
        let mut s = Search::new(1460).expect("above the base");
        search(&mut s, Instant::ZERO, 1300);
        let low = s.size();
        assert!(s.is_complete());
        assert_eq!(s.next(Instant::from_secs_f64(599.0)), None);
        assert_eq!(s.next(Instant::from_secs_f64(600.0)), Some(1460));
        assert!(!s.is_complete());
        assert!(low < 1300 && s.size() == low);
        // What takes the whole size is never asked again.
        search(&mut s, Instant::from_secs_f64(600.0), 1460);
        assert_eq!((s.size(), s.next(Instant::from_secs_f64(1e6))), (1460, None));
    }

    #[test]
    fn what_a_router_says_shortens_the_search() {
        let mut s = Search::new(1460).expect("above the base");
        s.sent(1, 1461);
        s.path_mtu_reported(Instant::ZERO, 1360);
        assert_eq!(
            (s.next(Instant::ZERO), s.probe()),
            (None, Some((1, 1461))),
            "the probe is still in flight"
        );
        s.failed(Instant::ZERO, true);
        assert_eq!((s.lost, s.high, s.lost_until()), (0, 1360, 1461));
        assert_eq!(search(&mut s, Instant::ZERO, 1360), [1360]);
        // Below what is known: shorter at once, and up again later.
        s.sent(5000, 6460);
        s.path_mtu_reported(Instant::ZERO, 600);
        assert_eq!((s.size(), s.next(Instant::ZERO), s.probe()), (600, None, None));
        assert_eq!(s.next(Instant::from_secs_f64(600.0)), Some(1460));
        s.fall_back(512);
        assert_eq!((s.size(), s.next(Instant::ZERO)), (512, Some(1460)));
        // A report that the probe in flight refutes; the same report later counts again.
        s.sent(1, 1461);
        s.path_mtu_reported(Instant::ZERO, 1360);
        assert_eq!((s.acknowledged(Instant::ZERO, 1461), s.is_complete()), (Some(1460), true));
        s.path_mtu_reported(Instant::ZERO, 1360);
        assert_eq!((s.size(), s.probe()), (1360, None));
    }
}

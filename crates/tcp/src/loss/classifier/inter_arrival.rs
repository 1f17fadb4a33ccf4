//! Classification by inter-arrival times (Biaz, Vaidya, "Discriminating congestion losses from wireless losses
//! using inter-arrival times at the receiver", ASSET 1999).
//!
//! *Idea*: if the last link, the one with errors, is also the slowest, packets arrive there back to back, one every
//! `T_min`. If `n` of them are lost by errors, the next one arrives on time, `n + 1` times `T_min` after the one
//! before them. If they were lost in a queue before that link, the next one takes their place and arrives too
//! early, or too late if that queue runs empty. *Read as*: an error if
//! `(n + low) · T_min <= T < (n + high) · T_min`, with `low = 1` in all versions, `high = 2` in the original and
//! 1.25, the default, in the version of Cen, Cosman, Voelker ("End-to-end differentiation of congestion and wireless
//! losses", IEEE/ACM Trans. Networking 11(5), 2003). The papers were not available: rule and constants are
//! *confirmed* by a published program that cites the latter. The papers measure at the receiver; a sender sees
//! acknowledgements instead, so the return path affects the result as well. `T_min` is the minimum time per segment
//! over all arrivals so far.

use super::Arrived;
use alloc::vec::Vec;
use skyhaul_base::{Duration, Instant};

/// Arrivals, and the holes between them.
#[derive(Clone, Debug)]
pub(crate) struct InterArrival {
    low: f64,
    high: f64,
    /// End of the highest data that has arrived, and its arrival time.
    last: Option<(u64, Instant)>,
    /// Minimum time between arrivals, seconds per segment.
    least: f64,
    /// Start and end of the data missing between two arrivals, and the time between these.
    holes: Vec<(u64, u64, Duration)>,
}

impl InterArrival {
    pub(crate) fn new(low: f64, high: f64) -> Self {
        Self { low, high, last: None, least: f64::INFINITY, holes: Vec::new() }
    }

    pub(crate) fn arrived(&mut self, now: Instant, smss: u32, a: &Arrived) {
        if let Some((end, at)) = self.last {
            if a.to <= end {
                // A retransmission that fills a hole carries no information on the order of arrival.
                return;
            }
            let interval = now - at;
            if a.from > end {
                self.holes.push((end, a.from, interval));
            } else if !interval.is_zero() {
                // Several segments reported by one acknowledgement arrived one after the other.
                let segments = ((a.to - end) as f64 / f64::from(smss)).max(1.0);
                self.least = self.least.min(interval.as_secs_f64() / segments);
            }
        }
        self.last = Some((a.to, now));
    }

    pub(crate) fn is_error(&mut self, una: u64, smss: u32, offset: u64) -> bool {
        self.holes.retain(|(_, to, _)| *to > una);
        let hole = self.holes.iter().find(|(from, to, _)| (*from..*to).contains(&offset));
        let Some(&(from, to, interval)) = hole else { return false };
        let n = (to - from).div_ceil(u64::from(smss)) as f64;
        let interval = interval.as_secs_f64();
        (n + self.low) * self.least <= interval && interval < (n + self.high) * self.least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }
    fn arrives(i: &mut InterArrival, ms: u64, from: u64, to: u64) {
        i.arrived(at(ms), 100, &Arrived { from, to, rtt: None });
    }
    /// A segment of 100 bytes arrives every 10 ms, then `lost` segments are missing, and the next one arrives `ms` after
    /// the last.
    fn after(high: f64, lost: u64, ms: u64) -> bool {
        let mut i = InterArrival::new(1.0, high);
        (0..5).for_each(|k| arrives(&mut i, 10 * k, 1 + 100 * k, 101 + 100 * k));
        let next = 501 + 100 * lost;
        arrives(&mut i, 40 + ms, next, next + 100);
        i.is_error(501, 100, 501)
    }

    #[test]
    fn one_that_comes_on_time_tells_of_an_error() {
        assert!(after(1.25, 1, 20) && after(1.25, 1, 22));
        assert!(!after(1.25, 1, 23) && after(2.0, 1, 23), "less than (1 + 1.25) or (1 + 2) times 10 ms");
        assert!(!after(1.25, 1, 10), "it took the place of the lost one, which a queue dropped");
        assert!(!after(1.25, 1, 40), "the queue ran empty");
        assert!(after(1.25, 3, 40) && !after(1.25, 3, 20), "three are missing");
    }

    #[test]
    fn of_several_segments_at_once_each_has_its_share_of_the_time() {
        let mut i = InterArrival::new(1.0, 1.25);
        arrives(&mut i, 0, 1, 201);
        arrives(&mut i, 20, 201, 401);
        // A segment every 10 ms; one is missing, and the retransmission that fills the hole later is no arrival.
        arrives(&mut i, 40, 501, 601);
        assert!(i.is_error(401, 100, 401));
        arrives(&mut i, 45, 401, 501);
        arrives(&mut i, 50, 601, 701);
        assert!((i.least - 0.01).abs() < 1e-12, "{}", i.least);
        assert!(!i.is_error(701, 100, 401), "the hole is acknowledged and forgotten");
        assert!(i.holes.is_empty());
    }

    #[test]
    fn without_arrivals_around_it_nothing_speaks_for_an_error() {
        assert!(!InterArrival::new(1.0, 1.25).is_error(1, 100, 1));
    }
}

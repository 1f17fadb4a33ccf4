//! Delivery-rate samples (draft-ietf-ccwg-bbr, "Delivery Rate Samples"; Cheng et al.).

use alloc::collections::VecDeque;
use skyhaul_base::{Duration, Instant, Rate};
use skyhaul_cc::RateSample;

/// Delivery state when a segment was last sent.
#[derive(Clone, Copy, Debug)]
struct Snapshot {
    delivered: u64,
    delivered_time: Instant,
    first_sent_time: Instant,
    sent_time: Instant,
    lost: u64,
    in_flight: u64,
    app_limited: bool,
}

/// Takes a snapshot per segment sent and turns the newest one delivered by an acknowledgement into a sample.
/// The ring runs in step with the scoreboard's.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sampler {
    snapshots: VecDeque<Snapshot>,
    delivered_time: Instant,
    first_sent_time: Instant,
    /// Delivered count at which the current application-limited phase ends.
    app_limited_until: u64,
    newest: Option<Snapshot>,
}

impl Sampler {
    /// A segment was sent. `index` counts from the oldest outstanding one.
    pub(crate) fn sent(
        &mut self,
        index: usize,
        now: Instant,
        delivered: u64,
        lost: u64,
        in_flight: u64,
        nothing_outstanding: bool,
    ) {
        if nothing_outstanding {
            self.first_sent_time = now;
            self.delivered_time = now;
        }
        let snapshot = Snapshot {
            delivered,
            delivered_time: self.delivered_time,
            first_sent_time: self.first_sent_time,
            sent_time: now,
            lost,
            in_flight,
            app_limited: self.app_limited_until > delivered,
        };
        match self.snapshots.get_mut(index) {
            Some(slot) => *slot = snapshot,
            None => self.snapshots.push_back(snapshot),
        }
    }

    /// The application has nothing to send: samples taken until what is in flight is delivered are limited.
    pub(crate) fn app_limited(&mut self, delivered: u64, in_flight: u64) {
        self.app_limited_until = delivered + in_flight.max(1);
    }

    /// The segment at `index` was delivered.
    pub(crate) fn delivered(&mut self, index: usize, now: Instant) {
        let Some(s) = self.snapshots.get(index).copied() else { return };
        self.delivered_time = now;
        let newer = self.newest.is_none_or(|n| (s.delivered, s.sent_time) > (n.delivered, n.sent_time));
        if newer {
            self.newest = Some(s);
            self.first_sent_time = s.sent_time;
        }
    }

    /// The oldest `n` segments are gone.
    pub(crate) fn popped(&mut self, n: usize) {
        self.snapshots.drain(..n.min(self.snapshots.len()));
    }

    /// The sample of the acknowledgement just processed, if it is valid.
    pub(crate) fn take(
        &mut self,
        delivered: u64,
        lost: u64,
        min_rtt: Option<Duration>,
    ) -> Option<RateSample> {
        let s = self.newest.take()?;
        let send = s.sent_time - s.first_sent_time;
        let ack = self.delivered_time - s.delivered_time;
        let interval = send.max(ack);
        // A sample shorter than the minimum RTT over-estimates.
        if interval.is_zero() || min_rtt.is_some_and(|m| interval < m) {
            return None;
        }
        let bytes = delivered - s.delivered;
        Some(RateSample {
            delivered: bytes,
            interval,
            rate: Rate::from_bytes_over(bytes as f64, interval)?,
            app_limited: s.app_limited,
            prior_delivered: s.delivered,
            lost: lost - s.lost,
            in_flight: s.in_flight,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_stream_is_measured_at_its_rate() {
        // One 1000-byte segment every 10 ms, RTT 100 ms: 800 kbit/s.
        let mut s = Sampler::default();
        let at = |i: u64| Instant::ZERO + Duration::from_millis(10 * i);
        let mut delivered = 0;
        let mut rates = alloc::vec::Vec::new();
        for i in 0..40u64 {
            if i >= 10 {
                delivered += 1000;
                s.delivered(0, at(i));
                s.popped(1);
                if let Some(sample) = s.take(delivered, 0, Some(Duration::from_millis(100))) {
                    rates.push(sample.rate.bits_per_sec());
                }
            }
            let outstanding = i.min(10) as usize - usize::from(i >= 10);
            s.sent(outstanding, at(i), delivered, 0, 1000 * outstanding as u64, i == 0);
        }
        assert_eq!(rates.last(), Some(&800_000));
    }
}

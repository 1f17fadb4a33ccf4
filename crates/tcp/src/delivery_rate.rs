//! Delivery-rate samples and records of lost segments (draft-ietf-ccwg-bbr-06 §4.1).

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use skyhaul_base::{Duration, Instant, Rate};
use skyhaul_cc::{Lost, RateSample};

/// Delivery state when a segment was last sent.
#[derive(Clone, Copy, Debug)]
struct Snapshot {
    /// `C.delivered`, bytes.
    delivered: u64,
    /// `C.delivered_time`.
    delivered_time: Instant,
    /// `C.first_send_time`.
    first_sent_time: Instant,
    sent_time: Instant,
    /// Bytes ever marked lost.
    lost: u64,
    /// Bytes in flight, the segment included.
    in_flight: u64,
    app_limited: bool,
    /// The segment has already been delivered: an acknowledgement that covers it again gives no sample.
    delivered_already: bool,
}

/// Takes a snapshot per segment sent. The newest snapshot of the segments that an acknowledgement delivers becomes a
/// sample. Snapshots have the indices of their segments in the scoreboard.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sampler {
    snapshots: VecDeque<Snapshot>,
    /// When a segment was last delivered, or when sending began after a time with nothing outstanding.
    delivered_time: Instant,
    /// When the newest segment delivered was sent, or when sending began as above.
    first_sent_time: Instant,
    /// The current application-limited phase ends when more bytes than these have been delivered; 0 if there was none.
    app_limited_until: u64,
    /// The newest snapshot delivered since [`Self::take`].
    newest: Option<Snapshot>,
    /// Segments removed at the front. This number plus its index is the position of a segment, which never changes.
    gone: u64,
    /// Records of segments marked lost and not yet reported.
    lost: Vec<Lost>,
    /// Position of the last segment marked lost.
    last_lost: Option<u64>,
}

impl Sampler {
    /// Memory use of the records, bytes.
    pub(crate) fn held(&self) -> usize {
        self.snapshots.capacity() * size_of::<Snapshot>() + self.lost.capacity() * size_of::<Lost>()
    }
    /// Releases unused memory.
    pub(crate) fn trim(&mut self) {
        self.snapshots.shrink_to_fit();
        self.lost.shrink_to_fit();
    }

    /// A segment was sent. `index` counts from the oldest outstanding one. `delivered` and `lost` are the bytes ever
    /// delivered and marked lost; `in_flight` includes the segment. `nothing_outstanding`: no segment was
    /// outstanding before this one.
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
            app_limited: self.app_limited_until > 0 && delivered <= self.app_limited_until,
            delivered_already: false,
        };
        match self.snapshots.get_mut(index) {
            Some(slot) => *slot = snapshot,
            None => self.snapshots.push_back(snapshot),
        }
    }

    /// The application has nothing to send: segments are application-limited until more than the data in flight is
    /// delivered (`C.app_limited`).
    pub(crate) fn app_limited(&mut self, delivered: u64, in_flight: u64) {
        // 0 would mean that there was no such phase.
        self.app_limited_until = (delivered + in_flight).max(1);
    }

    /// The segment at `index` was delivered.
    pub(crate) fn delivered(&mut self, index: usize, now: Instant) {
        let Some(slot) = self.snapshots.get_mut(index).filter(|s| !s.delivered_already) else { return };
        slot.delivered_already = true;
        let s = *slot;
        self.delivered_time = now;
        let newer = self.newest.is_none_or(|n| (s.delivered, s.sent_time) > (n.delivered, n.sent_time));
        if newer {
            self.newest = Some(s);
            self.first_sent_time = s.sent_time;
        }
    }

    /// The oldest `n` segments are removed.
    pub(crate) fn popped(&mut self, n: usize) {
        self.snapshots.drain(..n.min(self.snapshots.len()));
        self.gone += n as u64;
    }

    /// The segment at `index`, of `len` bytes, was marked lost; `total` bytes have ever been marked lost.
    pub(crate) fn marked_lost(&mut self, index: usize, len: u32, total: u64) {
        let Some(s) = self.snapshots.get(index) else { return };
        let position = self.gone + index as u64;
        let same_gap = self.last_lost.is_some_and(|last| last + 1 == position);
        self.last_lost = Some(position);
        let (in_flight, app_limited) = (s.in_flight, s.app_limited);
        self.lost.push(Lost { len, in_flight, lost: total - s.lost, app_limited, same_gap });
    }

    /// The `i`-th of the segments marked lost since [`Self::forget_lost`].
    pub(crate) fn lost(&self, i: usize) -> Option<Lost> {
        self.lost.get(i).copied()
    }

    /// The records of losses have been reported.
    pub(crate) fn forget_lost(&mut self) {
        self.lost.clear();
    }

    /// The sample of the last acknowledgement; `None` if it delivered nothing new. `delivered` and `lost` are as in
    /// [`Self::sent`]. A sample over less than `min_rtt` has no rate.
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
        // Over less than the minimum RTT the rate would be overestimated.
        let reliable = !interval.is_zero() && min_rtt.is_none_or(|m| interval >= m);
        let bytes = delivered - s.delivered;
        Some(RateSample {
            delivered: bytes,
            interval,
            rate: Rate::from_bytes_over(bytes as f64, interval).filter(|_| reliable),
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
                    rates.extend(sample.rate.map(Rate::bits_per_sec));
                }
            }
            let outstanding = i.min(10) as usize - usize::from(i >= 10);
            s.sent(outstanding, at(i), delivered, 0, 1000 * (outstanding as u64 + 1), i == 0);
        }
        assert_eq!(rates.last(), Some(&800_000));
    }

    /// Five segments of 1000 bytes, 10 ms apart.
    fn five() -> Sampler {
        let mut s = Sampler::default();
        (0..5).for_each(|i| s.sent(i as usize, ms(10 * i), 0, 0, 1000 * (i + 1), i == 0));
        s
    }
    fn ms(t: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(t)
    }

    #[test]
    fn an_application_limited_phase_ends_when_more_than_was_in_flight_is_delivered() {
        // 5000 bytes are in flight when the application has nothing to send. A segment that is sent when exactly these are
        // delivered is still application-limited; one that is sent after more were delivered is not.
        let mut s = five();
        s.app_limited(0, 5000);
        let limited = |s: &mut Sampler, delivered| {
            s.sent(5, ms(200), delivered, 0, 1000, false);
            s.snapshots[5].app_limited
        };
        assert!(limited(&mut s, 4000) && limited(&mut s, 5000) && !limited(&mut s, 5001));
        // Never before the first such phase.
        assert!(!limited(&mut five(), 0));
    }

    #[test]
    fn a_segment_delivered_before_gives_no_second_sample() {
        let mut s = five();
        // Segments 1 to 4 arrive; the sample is that of the newest.
        (1..5).for_each(|i| s.delivered(i, ms(100 + 10 * i as u64)));
        let sample = s.take(4000, 0, None).expect("something was delivered");
        assert_eq!((sample.prior_delivered, sample.in_flight, sample.delivered), (0, 5000, 4000));
        // Segment 0 is sent again when 4000 bytes are delivered; its acknowledgement covers nothing else that is new.
        s.sent(0, ms(150), 4000, 1000, 1000, false);
        (0..5).for_each(|i| s.delivered(i, ms(250)));
        let sample = s.take(5000, 1000, Some(Duration::from_millis(100))).expect("the hole was delivered");
        assert_eq!((sample.prior_delivered, sample.delivered, sample.lost), (4000, 1000, 0));
        // From the last delivery before segment 0 left, at 140 ms, to the delivery of segment 0, at 250 ms.
        assert_eq!(sample.interval, Duration::from_millis(110));
        (0..5).for_each(|i| s.delivered(i, ms(260)));
        assert_eq!(s.take(5000, 1000, None), None);
    }

    #[test]
    fn a_sample_shorter_than_the_least_rtt_has_no_rate() {
        let mut s = five();
        s.delivered(0, ms(90));
        let sample = s.take(1000, 0, Some(Duration::from_millis(100))).expect("delivered");
        assert_eq!((sample.rate, sample.delivered), (None, 1000));
    }

    #[test]
    fn a_lost_segment_has_the_state_of_the_path_at_its_transmission() {
        let mut s = five();
        s.popped(1);
        // The second, third and fifth of the five.
        s.marked_lost(0, 1000, 1000);
        s.marked_lost(1, 1000, 2000);
        s.marked_lost(3, 1000, 3000);
        let lost = |in_flight, lost, same_gap| {
            Some(Lost { len: 1000, in_flight, lost, app_limited: false, same_gap })
        };
        let samples: Vec<_> = (0..4).map(|i| s.lost(i)).collect();
        assert_eq!(samples, [lost(2000, 1000, false), lost(3000, 2000, true), lost(5000, 3000, false), None]);
        s.forget_lost();
        assert_eq!(s.lost(0), None);
        // Sent again after 3000 bytes were lost, and lost again: only what was lost since counts.
        s.sent(0, ms(200), 0, 3000, 2000, false);
        s.marked_lost(0, 1000, 4000);
        assert_eq!(s.lost(0), lost(2000, 1000, false));
    }
}

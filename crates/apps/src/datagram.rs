//! Datagrams: numbering at the sender, and measurements at the receiver.

use crate::spans::{Spans, nanos};
use crate::unrolled::unrolled;
use skyhaul_base::{Duration, Instant, math};

/// Header bytes at the front of a datagram's payload.
pub const HEADER: usize = 16;
/// Maximum delay resolved by the histogram, microseconds: an hour.
const LONGEST: u64 = 3_600_000_000;

/// The header of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Its number, from 0.
    pub number: u64,
    /// When it was sent, on the sender's clock.
    pub sent_at: Instant,
    /// Payload in bytes, including the header if there are bytes.
    pub len: u32,
}

impl Datagram {
    /// Writes the header at the front of a payload; false if that is too short for it.
    #[must_use]
    pub fn write(&self, payload: &mut [u8]) -> bool {
        let Some(head) = payload.get_mut(..HEADER) else { return false };
        head[..8].copy_from_slice(&self.number.to_be_bytes());
        head[8..].copy_from_slice(&self.sent_at.as_nanos().to_be_bytes());
        true
    }
    /// Reads the header of a payload; `None` if that is too short to have one.
    #[must_use]
    pub fn read(payload: &[u8]) -> Option<Self> {
        let (number, rest) = payload.split_first_chunk::<8>()?;
        let (sent_at, _) = rest.split_first_chunk::<8>()?;
        Some(Self {
            number: u64::from_be_bytes(*number),
            sent_at: Instant::from_nanos(u64::from_be_bytes(*sent_at)),
            len: u32::try_from(payload.len()).ok()?,
        })
    }
}

/// Numbers the datagrams of a sender.
#[derive(Clone, Copy, Debug, Default)]
pub struct Numbered {
    sent: u64,
}

impl Numbered {
    /// The next datagram, of `len` bytes of payload.
    pub fn next(&mut self, now: Instant, len: u32) -> Datagram {
        let datagram = Datagram { number: self.sent, sent_at: now, len };
        self.sent += 1;
        datagram
    }
    /// Number of datagrams sent.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent
    }
}

/// Measurements of a datagram receiver; delays are one-way, from the sender's first bit to the receiver's last.
/// `None` if nothing was delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Packets delivered.
    pub delivered: u64,
    /// Packets missing below the highest number received: lost, or still in flight. The receiver does not know of
    /// packets lost after it.
    pub missing: u64,
    /// Shortest delay in seconds.
    pub delay_min: Option<f64>,
    /// Mean delay in seconds.
    pub delay_mean: Option<f64>,
    /// Median of the delay in seconds; quantiles are accurate to 0.1 % or 1 µs.
    pub delay_p50: Option<f64>,
    /// 95th percentile of the delay in seconds.
    pub delay_p95: Option<f64>,
    /// 99th percentile of the delay in seconds.
    pub delay_p99: Option<f64>,
    /// Longest delay in seconds.
    pub delay_max: Option<f64>,
    /// Interarrival jitter at the end (RFC 3550 §6.4.1), in seconds.
    pub jitter: Option<f64>,
    /// Mean of the interarrival jitter over the packets, in seconds.
    pub jitter_mean: Option<f64>,
}

/// Measures the delays of arriving datagrams.
#[derive(Clone, Debug, Default)]
pub struct Delays {
    count: u64,
    bytes: u64,
    /// Packets expected up to the highest number.
    expected: u64,
    /// In nanoseconds.
    sum: u128,
    min: Duration,
    max: Duration,
    last: Duration,
    /// In nanoseconds, now and summed over the packets.
    jitter: f64,
    jitters: f64,
    /// Empty before the first packet: flows without datagrams use no memory.
    spans: Spans,
}

impl Delays {
    /// A datagram arrived; both ends share one clock.
    #[inline]
    pub fn arrived(&mut self, now: Instant, datagram: &Datagram) {
        self.bytes += u64::from(datagram.len);
        self.packet(datagram.number, now - datagram.sent_at);
    }

    /// A packet arrived with this delay.
    #[inline]
    pub(crate) fn packet(&mut self, number: u64, delay: Duration) {
        if self.count == 0 {
            self.begin(delay);
        }
        self.count += 1;
        self.expected = self.expected.max(number.saturating_add(1));
        self.sum += u128::from(delay.as_nanos());
        self.min = self.min.min(delay);
        self.max = self.max.max(delay);
        let difference = delay.abs_diff(core::mem::replace(&mut self.last, delay)).as_nanos() as f64;
        self.jitter += (difference - self.jitter) / 16.0;
        self.jitters += self.jitter;
        self.spans.record(delay);
    }

    /// Packets arrived with these delays; `next` is the number after the last one. Returns the shortest and the longest.
    #[inline]
    pub(crate) fn packets(&mut self, next: u64, delays: &[Duration]) -> (Duration, Duration) {
        let Some(first) = delays.first() else { return (Duration::MAX, Duration::ZERO) };
        if self.count == 0 {
            self.begin(*first);
        }
        self.count += delays.len() as u64;
        self.expected = self.expected.max(next);
        let (mut last, mut jitter, mut jitters, mut sum) =
            (nanos(self.last), self.jitter, self.jitters, 0_u64);
        let (mut min, mut max) = (nanos(*first), nanos(*first));
        self.spans.record_all(delays.iter().copied(), |cells| {
            unrolled(delays, |delay| {
                sum = sum.wrapping_add(delay.as_nanos());
                let nanos = nanos(*delay);
                // In this order each is one instruction.
                min = if min < nanos { min } else { nanos };
                max = if max > nanos { max } else { nanos };
                let difference = math::abs(nanos - last);
                last = nanos;
                jitter += (difference - jitter) / 16.0;
                jitters += jitter;
                cells.add(nanos);
            });
        });
        (self.jitter, self.jitters) = (jitter, jitters);
        // Years of delay need more bits; from 2⁶³ ns on they are negative.
        let fits = min >= 0.0 && max * (delays.len() as f64) < u64::MAX as f64 / 2.0;
        let exact = || delays.iter().map(|delay| u128::from(delay.as_nanos())).sum::<u128>();
        self.sum += if fits { sum.into() } else { exact() };
        self.last = delays.last().copied().unwrap_or(self.last);
        let (min, max) = (Duration::from_nanos(min as u64), Duration::from_nanos(max as u64));
        (self.min, self.max) = (self.min.min(min), self.max.max(max));
        (min, max)
    }

    /// Before the first datagram: its delay differs from no other.
    #[cold]
    fn begin(&mut self, delay: Duration) {
        (self.min, self.last) = (delay, delay);
        self.spans = Spans::new(LONGEST);
    }

    /// Payload bytes received.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Measurements so far.
    #[must_use]
    pub fn measured(&self) -> Measured {
        let seconds = |nanos: f64| (self.count > 0).then_some(nanos * 1e-9);
        let quantiles = self.spans.quantiles([0.5, 0.95, 0.99]);
        let [p50, p95, p99] = quantiles.map(|micros| (self.count > 0).then_some(micros as f64 * 1e-6));
        Measured {
            delivered: self.count,
            // A network may deliver a packet twice.
            missing: self.expected.saturating_sub(self.count),
            delay_min: seconds(self.min.as_nanos() as f64),
            delay_mean: seconds(self.sum as f64 / self.count.max(1) as f64),
            delay_p50: p50,
            delay_p95: p95,
            delay_p99: p99,
            delay_max: seconds(self.max.as_nanos() as f64),
            jitter: seconds(self.jitter),
            jitter_mean: seconds(self.jitters / self.count.max(1) as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_and_jitter_by_hand() {
        let (mut sender, mut d) = (Numbered::default(), Delays::default());
        assert_eq!(d.measured(), Measured::default());
        // Sent every 10 ms, delayed by 100, 116 and 100 ms; longer than 32 bits of nanoseconds.
        for (i, delay) in [100u64, 116, 100].into_iter().enumerate() {
            let sent = Instant::ZERO + Duration::from_secs(10) + Duration::from_millis(10 * i as u64);
            let datagram = sender.next(sent, 972);
            assert_eq!(datagram.number, i as u64);
            d.arrived(sent + Duration::from_millis(delay), &datagram);
        }
        let r = d.measured();
        assert_eq!((sender.sent(), d.bytes()), (3, 3 * 972));
        assert_eq!((r.delivered, r.delay_max), (3, Some(0.116)));
        let close = |x: Option<f64>, y: f64| (x.unwrap() - y).abs() < 1e-3 * y;
        assert!(close(r.delay_mean, 0.316 / 3.0) && close(r.delay_p50, 0.1) && close(r.delay_p99, 0.116));
        // J = 16/16 = 1 ms, then 1 + (16 − 1)/16 = 1.9375 ms.
        assert!((r.jitter.unwrap() - 1.9375e-3).abs() < 1e-12);
    }

    #[test]
    fn packets_together_are_as_packets_one_by_one() {
        let mut rng = skyhaul_base::Rng::stream(15, "together");
        for most in [1_000_000, 1_000_000_000, 1 << 63] {
            let (mut together, mut one_by_one) = (Delays::default(), Delays::default());
            let mut number = 0;
            for count in 0..100 {
                let delays: Vec<Duration> =
                    (0..count).map(|_| Duration::from_nanos(rng.below(most))).collect();
                for delay in &delays {
                    one_by_one.packet(number, *delay);
                    number += 1;
                }
                let bounds = together.packets(number, &delays);
                let exact = delays.iter().min().zip(delays.iter().max());
                if let Some((min, max)) = exact {
                    let close = |a: Duration, b: &Duration| a.abs_diff(*b).as_nanos() <= b.as_nanos() >> 52;
                    assert!(close(bounds.0, min) && close(bounds.1, max), "{bounds:?} {exact:?}");
                }
                let (t, o) = (together.measured(), one_by_one.measured());
                assert_eq!(
                    (t.delivered, t.delay_mean, t.delay_p50),
                    (o.delivered, o.delay_mean, o.delay_p50)
                );
                assert_eq!(t.delay_p99, o.delay_p99);
                // Differences of years are rounded.
                let close = |a: Option<f64>, b: Option<f64>| {
                    (a.unwrap_or(0.0) - b.unwrap_or(0.0)).abs() <= 1e-12 * b.unwrap_or(0.0)
                };
                assert!(close(t.jitter, o.jitter) && close(t.jitter_mean, o.jitter_mean), "{t:?} {o:?}");
            }
        }
    }

    #[test]
    fn what_is_missing_is_what_others_have_overtaken() {
        let (mut sender, mut d) = (Numbered::default(), Delays::default());
        let sent: Vec<Datagram> = (0..6).map(|_| sender.next(Instant::ZERO, 100)).collect();
        for (arrives, missing) in [(1, 1), (0, 0), (4, 2), (2, 1)] {
            d.arrived(Instant::from_nanos(5), &sent[arrives]);
            assert_eq!(d.measured().missing, missing, "after number {arrives}");
        }
        // One packet twice: no fewer are missing than none.
        d.arrived(Instant::from_nanos(5), &sent[4]);
        d.arrived(Instant::from_nanos(5), &sent[4]);
        assert_eq!(d.measured().missing, 0);
    }

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let datagram = Datagram { number: 1 << 40, sent_at: Instant::from_nanos(987_654_321), len: 20 };
        let mut payload = [7; 20];
        assert!(datagram.write(&mut payload));
        assert_eq!(Datagram::read(&payload), Some(datagram));
        assert_eq!(payload[HEADER..], [7; 4]);
        assert!(!datagram.write(&mut payload[..15]));
        assert_eq!(Datagram::read(&payload[..15]), None);
    }
}

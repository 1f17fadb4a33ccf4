//! Datagrams: numbering at the sender, and measurements at the receiver.

use crate::spans::Spans;
use skyhaul_base::{Duration, Instant};

/// Header bytes at the front of a datagram's payload.
pub const HEADER: usize = 16;

/// The header of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Its number, from 0.
    pub number: u64,
    /// When it was sent, on the sender's clock.
    pub sent_at: Instant,
    /// Payload in bytes; the header is part of it where real bytes are sent.
    pub len: u32,
}

impl Datagram {
    /// Writes the header at the front of `payload`; false if the payload is shorter than the header.
    #[must_use]
    pub fn write(&self, payload: &mut [u8]) -> bool {
        let Some(head) = payload.get_mut(..HEADER) else { return false };
        head[..8].copy_from_slice(&self.number.to_be_bytes());
        head[8..].copy_from_slice(&self.sent_at.as_nanos().to_be_bytes());
        true
    }
    /// Reads the header of `payload`; `None` if the payload is shorter than a header.
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
/// Delays and jitter are `None` if nothing was delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Packets delivered.
    pub delivered: u64,
    /// Packets missing below the highest number received: lost, or still in flight. The receiver does not know of
    /// packets lost after that number, and a packet that arrives twice hides a missing one.
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
    /// Number of packets up to the highest number received.
    expected: u64,
    /// Sum of the delays, in nanoseconds.
    sum: u128,
    min: Duration,
    max: Duration,
    /// Delay of the packet that arrived last.
    last: Duration,
    /// Current jitter, and its sum over the packets, in nanoseconds.
    jitter: f64,
    jitter_sum: f64,
    spans: Spans,
}

impl Delays {
    /// A datagram arrived; both ends share one clock.
    pub fn arrived(&mut self, now: Instant, datagram: &Datagram) {
        self.bytes += u64::from(datagram.len);
        self.packet(datagram.number, now - datagram.sent_at);
    }

    /// A packet arrived with this delay.
    pub(crate) fn packet(&mut self, number: u64, delay: Duration) {
        if self.count == 0 {
            // The first packet has no predecessor from which its delay could differ.
            (self.min, self.last) = (delay, delay);
        }
        self.count += 1;
        self.expected = self.expected.max(number.saturating_add(1));
        self.sum += u128::from(delay.as_nanos());
        self.min = self.min.min(delay);
        self.max = self.max.max(delay);
        let difference = delay.abs_diff(core::mem::replace(&mut self.last, delay)).as_nanos() as f64;
        self.jitter += (difference - self.jitter) / 16.0;
        self.jitter_sum += self.jitter;
        self.spans.record(delay);
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
        Measured {
            delivered: self.count,
            // Packets that arrive twice may make the count the larger one.
            missing: self.expected.saturating_sub(self.count),
            delay_min: seconds(self.min.as_nanos() as f64),
            delay_mean: seconds(self.sum as f64 / self.count.max(1) as f64),
            delay_p50: self.spans.quantile(0.5),
            delay_p95: self.spans.quantile(0.95),
            delay_p99: self.spans.quantile(0.99),
            delay_max: seconds(self.max.as_nanos() as f64),
            jitter: seconds(self.jitter),
            jitter_mean: seconds(self.jitter_sum / self.count.max(1) as f64),
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
    fn what_is_missing_is_what_others_have_overtaken() {
        let (mut sender, mut d) = (Numbered::default(), Delays::default());
        let sent: Vec<Datagram> = (0..6).map(|_| sender.next(Instant::ZERO, 100)).collect();
        for (arrives, missing) in [(1, 1), (0, 0), (4, 2), (2, 1)] {
            d.arrived(Instant::from_nanos(5), &sent[arrives]);
            assert_eq!(d.measured().missing, missing, "after number {arrives}");
        }
        // One packet arrives three times in all: `missing` does not fall below 0.
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

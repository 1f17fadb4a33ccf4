//! Datagrams: a sender that nothing slows down, and a receiver that measures.

use hdrhistogram::Histogram;
use skyhaul_base::{Duration, Instant};

/// Longest delay that the histogram tells from longer ones, in microseconds: an hour.
const LONGEST: u64 = 3_600_000_000;

/// Both ends of a datagram flow.
#[derive(Debug)]
pub(crate) struct Datagrams {
    /// Payload of a packet.
    payload: u32,
    sent: u64,
    delays: Delays,
}

impl Datagrams {
    pub(crate) fn new(payload: u32) -> Self {
        Self { payload, sent: 0, delays: Delays::default() }
    }

    /// The next packet: its number and its payload in bytes.
    pub(crate) fn send(&mut self) -> (u32, u32) {
        #[expect(clippy::cast_possible_truncation, reason = "numbers of packets wrap")]
        let number = self.sent as u32;
        self.sent += 1;
        (number, self.payload)
    }

    /// A packet that was sent at `sent_at` arrived.
    pub(crate) fn receive(&mut self, now: Instant, sent_at: Instant) {
        self.delays.record(now - sent_at);
    }

    /// Packets sent, and payload bytes delivered.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.sent, self.delays.count * u64::from(self.payload))
    }

    pub(crate) fn result(&self) -> DatagramResult {
        let d = &self.delays;
        let seconds = |nanos: f64| (d.count > 0).then_some(nanos * 1e-9);
        let quantile = |q: f64| {
            let micros = d.histogram.as_ref().map(|h| h.value_at_quantile(q) as f64);
            micros.filter(|_| d.count > 0).map(|us| us * 1e-6)
        };
        DatagramResult {
            delivered: d.count,
            delay_mean: seconds(d.sum as f64 / d.count.max(1) as f64),
            delay_p50: quantile(0.5),
            delay_p95: quantile(0.95),
            delay_p99: quantile(0.99),
            delay_max: seconds(d.max.as_nanos() as f64),
            jitter: seconds(d.jitter),
        }
    }
}

/// What the receiver of a datagram flow measured; delays are one way, from the sender's first bit to the
/// receiver's last. `None` where nothing was delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DatagramResult {
    /// Packets delivered.
    pub delivered: u64,
    /// Mean delay in seconds.
    pub delay_mean: Option<f64>,
    /// Median of the delay in seconds; quantiles are good to 0.1 % or 1 µs.
    pub delay_p50: Option<f64>,
    /// 95th percentile of the delay in seconds.
    pub delay_p95: Option<f64>,
    /// 99th percentile of the delay in seconds.
    pub delay_p99: Option<f64>,
    /// Longest delay in seconds.
    pub delay_max: Option<f64>,
    /// Interarrival jitter at the end (RFC 3550 §6.4.1), in seconds.
    pub jitter: Option<f64>,
}

#[derive(Debug, Default)]
struct Delays {
    count: u64,
    /// In nanoseconds.
    sum: u128,
    max: Duration,
    last: Option<Duration>,
    /// In nanoseconds.
    jitter: f64,
    /// Of microseconds. Made by the first packet: flows that send none take no room.
    histogram: Option<Box<Histogram<u32>>>,
}

impl Delays {
    fn record(&mut self, delay: Duration) {
        self.count += 1;
        self.sum += u128::from(delay.as_nanos());
        self.max = self.max.max(delay);
        if let Some(last) = self.last.replace(delay) {
            let difference = delay.as_nanos().abs_diff(last.as_nanos()) as f64;
            self.jitter += (difference - self.jitter) / 16.0;
        }
        let histogram = self.histogram.get_or_insert_with(|| {
            Box::new(Histogram::new_with_bounds(1, LONGEST, 3).expect("bounds that a histogram takes"))
        });
        histogram.saturating_record(delay.as_nanos() / 1000);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_and_jitter_by_hand() {
        let mut d = Datagrams::new(972);
        assert_eq!(d.result(), DatagramResult::default());
        // Sent every 10 ms, delayed by 100, 116 and 100 ms; longer than 32 bits of nanoseconds.
        for (i, delay) in [100u64, 116, 100].into_iter().enumerate() {
            let sent = Instant::ZERO + Duration::from_secs(10) + Duration::from_millis(10 * i as u64);
            assert_eq!(d.send(), (i as u32, 972));
            d.receive(sent + Duration::from_millis(delay), sent);
        }
        let r = d.result();
        assert_eq!(d.counts(), (3, 3 * 972));
        assert_eq!((r.delivered, r.delay_max), (3, Some(0.116)));
        let close = |x: Option<f64>, y: f64| (x.unwrap() - y).abs() < 1e-3 * y;
        assert!(close(r.delay_mean, 0.316 / 3.0) && close(r.delay_p50, 0.1) && close(r.delay_p99, 0.116));
        // J = 16/16 = 1 ms, then 1 + (16 − 1)/16 = 1.9375 ms.
        assert!((r.jitter.unwrap() - 1.9375e-3).abs() < 1e-12);
    }
}

//! A stream of datagrams: sending at a constant rate, and measuring at the receiver.
//!
//! ```text
//! seconds (4)  microseconds (4)  number (4, or 8)  anything
//! ```
//! Sequence numbers start at 1. Timestamps are on the sender's clock: only differences are used.

use super::parameters::TestParameters;
use crate::host::{Arrived, Host};
use skyhaul_base::{Duration, Instant};
use std::net::SocketAddr;

/// Maximum datagrams that one stream sends at a time, so that others get their turn.
const BATCH: usize = 64;
/// Datagrams overdue by more than this are not sent any more.
const LATE: Duration = Duration::from_millis(500);

/// A stream of datagrams.
#[derive(Clone, Debug)]
pub struct Datagrams {
    /// Local address and port.
    pub local: SocketAddr,
    /// Remote address and port.
    pub remote: SocketAddr,
    /// We send, and the client counts.
    pub sends: bool,
    /// Payload sent, or received, bytes.
    pub bytes: u64,
    /// Datagrams sent, or the highest number received.
    pub packets: u64,
    /// Datagrams that have not arrived.
    pub lost: u64,
    /// Datagrams that arrived after one with a higher number, or with the same number again.
    pub out_of_order: u64,
    /// Jitter of a receiver (RFC 3550 §6.4.1).
    pub jitter: Duration,
    /// How long the stream has lasted.
    pub time: Duration,
    began: Instant,
    /// Arrival time minus timestamp of the last datagram, on the two clocks, nanoseconds.
    transit: Option<i128>,
    /// When the next datagram is due.
    next: Instant,
    /// Buffer for the datagram being sent.
    room: Vec<u8>,
}

impl Datagrams {
    /// A stream between a client and us.
    pub(super) fn new(now: Instant, local: SocketAddr, remote: SocketAddr, sends: bool) -> Self {
        Self {
            local,
            remote,
            sends,
            bytes: 0,
            packets: 0,
            lost: 0,
            out_of_order: 0,
            jitter: Duration::ZERO,
            time: Duration::ZERO,
            began: now,
            transit: None,
            next: now,
            room: Vec::new(),
        }
    }
    /// The test begins now.
    pub(super) fn begin(&mut self, now: Instant) {
        (self.began, self.next) = (now, now);
    }
    /// The test ends now.
    pub(super) fn end(&mut self, now: Instant) {
        self.time = now - self.began;
    }
    /// Goodput, bit/s.
    #[must_use]
    pub fn goodput(&self) -> f64 {
        let secs = self.time.as_secs_f64();
        if secs > 0.0 { self.bytes as f64 * 8.0 / secs } else { 0.0 }
    }

    /// Counts an arriving datagram in the same way as iperf3.
    pub(super) fn arrived(&mut self, d: &Arrived, wide: bool) {
        let word = |at: usize| Some(u32::from_be_bytes(*d.payload.get(at..)?.first_chunk()?));
        let (Some(secs), Some(micros), Some(first)) = (word(0), word(4), word(8)) else { return };
        let number = match (wide, word(12)) {
            (true, Some(second)) => u64::from(first) << 32 | u64::from(second),
            (true, None) => return,
            (false, _) => first.into(),
        };
        self.bytes += d.payload.len() as u64;
        if number > self.packets {
            self.lost += number - 1 - self.packets;
            self.packets = number;
        } else {
            self.out_of_order += 1;
            self.lost = self.lost.saturating_sub(1);
        }
        let sent = i128::from(secs) * 1_000_000_000 + i128::from(micros) * 1000;
        let transit = i128::from(d.at.as_nanos()) - sent;
        if let Some(before) = self.transit.replace(transit) {
            let difference =
                Duration::from_nanos(u64::try_from((transit - before).abs()).unwrap_or(u64::MAX));
            // J += (|D| - J) / 16
            self.jitter = self.jitter - self.jitter / 16 + difference / 16;
        }
    }

    /// Sends the datagrams that are due; returns when the next one is.
    pub(super) fn send(&mut self, now: Instant, host: &mut Host, parameters: &TestParameters) -> Instant {
        if self.next + LATE < now {
            self.next = now;
        }
        for _ in 0..BATCH {
            if self.next > now {
                break;
            }
            self.room.resize(parameters.length, 0);
            let number = self.packets + 1;
            let (secs, micros) = (now.as_nanos() / 1_000_000_000, now.as_nanos() / 1000 % 1_000_000);
            let mut header = [(secs as u32).to_be_bytes(), (micros as u32).to_be_bytes()].concat();
            if parameters.wide {
                header.extend(number.to_be_bytes());
            } else {
                header.extend((number as u32).to_be_bytes());
            }
            self.room.iter_mut().zip(header).for_each(|(place, byte)| *place = byte);
            // It fits: the length was checked before the test.
            if host.send_to(self.local, self.remote, &self.room).is_err() {
                return Instant::MAX;
            }
            self.packets = number;
            self.bytes += parameters.length as u64;
            let bits = parameters.length as u64 * 8;
            // 0 bit/s: as fast as possible.
            let gap = (bits * 1_000_000_000).checked_div(parameters.rate).unwrap_or(0);
            self.next += Duration::from_nanos(gap);
        }
        self.next
    }
}

/// The reply to the first datagram of a client, which tells us its port. Newer versions of iperf3 send the number
/// 0x36373839 in their own byte order, and expect 0x39383736 in the same order; older ones accept any reply.
pub(super) fn welcome(hello: &[u8]) -> [u8; 4] {
    match hello {
        b"9876" => *b"6789",
        b"6789" => *b"9876",
        _ => 987_654_321_u32.to_le_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream() -> Datagrams {
        let end = |n| SocketAddr::from(([10, 0, 0, n], 5201));
        Datagrams::new(Instant::ZERO, end(2), end(1), false)
    }
    fn datagram(number: u32, sent_ms: u64, at_ms: u64) -> Arrived {
        let mut payload = vec![0; 100];
        payload[..4].copy_from_slice(&((sent_ms / 1000) as u32).to_be_bytes());
        payload[4..8].copy_from_slice(&((sent_ms % 1000 * 1000) as u32).to_be_bytes());
        payload[8..12].copy_from_slice(&number.to_be_bytes());
        let s = stream();
        let at = Instant::ZERO + Duration::from_millis(at_ms);
        Arrived { at, from: s.remote, to: s.local, payload }
    }

    #[test]
    fn losses_order_and_jitter_are_counted_as_iperf3_does() {
        let mut s = stream();
        // 3 is late, 5 is lost; every transit is 50 ms but that of the last, 66 ms.
        for (n, sent, at) in [(1, 0, 50), (2, 10, 60), (4, 30, 80), (3, 20, 70), (6, 50, 116)] {
            s.arrived(&datagram(n, sent, at), false);
        }
        assert_eq!((s.packets, s.lost, s.out_of_order, s.bytes), (6, 1, 1, 500));
        assert_eq!(s.jitter, Duration::from_millis(1));
        // Too short for a header: not counted.
        let mut d = datagram(7, 0, 0);
        d.payload.truncate(11);
        s.arrived(&d, false);
        assert_eq!(s.packets, 6);
    }
}

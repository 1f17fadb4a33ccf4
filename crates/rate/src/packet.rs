//! Messages between the two ends, and their encoding.
//!
//! Data packets begin with the header of all measured datagrams (number and send time), followed by the sender's
//! RTT; reports have 32 bytes (docs/wire.md).

use skyhaul_base::{Duration, Instant};

/// Header bytes at the front of a data packet's payload.
pub const DATA_HEADER: usize = 24;
/// Payload of a report, bytes. With IPv4 and UDP it is a packet of 60 bytes.
pub const REPORT_BYTES: usize = 32;

/// A data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Its number, from 0; each is used once.
    pub number: u64,
    /// Its send time, on the sender's clock.
    pub sent_at: Instant,
    /// The sender's RTT estimate; `None` before the first report.
    pub rtt: Option<Duration>,
    /// The whole packet with its headers, bytes.
    pub size: u32,
}

impl Data {
    /// Writes the header at the front of a payload; false if that is too short.
    #[must_use]
    pub fn write(&self, payload: &mut [u8]) -> bool {
        let Some(head) = payload.get_mut(..DATA_HEADER) else { return false };
        head[..8].copy_from_slice(&self.number.to_be_bytes());
        head[8..16].copy_from_slice(&self.sent_at.as_nanos().to_be_bytes());
        head[16..].copy_from_slice(&self.rtt.map_or(0, Duration::as_nanos).to_be_bytes());
        true
    }
    /// Reads a payload that has `header` bytes of headers before it; `None` if it is too short.
    #[must_use]
    pub fn read(payload: &[u8], header: u32) -> Option<Self> {
        let (number, rest) = payload.split_first_chunk::<8>()?;
        let (sent_at, rest) = rest.split_first_chunk::<8>()?;
        let (rtt, _) = rest.split_first_chunk::<8>()?;
        Some(Self {
            number: u64::from_be_bytes(*number),
            sent_at: Instant::from_nanos(u64::from_be_bytes(*sent_at)),
            rtt: Some(Duration::from_nanos(u64::from_be_bytes(*rtt))).filter(|r| !r.is_zero()),
            size: u32::try_from(payload.len()).ok()?.checked_add(header)?,
        })
    }
}

/// A report of the receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report {
    /// Send time, on the sender's clock, of the packet with the highest number received.
    pub echo: Instant,
    /// Time since the arrival of that packet, in whole microseconds.
    pub held: Duration,
    /// The part that depends on the protocol.
    pub body: ReportBody,
}

/// The part of a report that depends on the protocol.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReportBody {
    /// RFC 5348 §3.2.2.
    Tfrc {
        /// X_recv, the rate at which data arrived, bytes per second.
        received: f32,
        /// p, the loss event rate.
        loss: f32,
    },
    /// SSVP, reconstructed.
    Ssvp {
        /// Lower half of the highest number that has arrived.
        highest: u32,
        /// Packets found missing so far; wraps.
        lost: u32,
    },
}

impl Report {
    /// A report sent now, based on a packet that arrived at `arrived`.
    pub(crate) fn new(now: Instant, echo: Instant, arrived: Instant, body: ReportBody) -> Self {
        let micros = (now - arrived).as_nanos() / 1000;
        Self { echo, held: Duration::from_micros(micros.min(u32::MAX.into())), body }
    }

    /// The report in words of 32 bits: the echo (two), the delay in microseconds, and the rest (two).
    #[must_use]
    pub fn words(&self) -> [u32; 5] {
        let (echo, held) = (self.echo.as_nanos(), self.held.as_nanos() / 1000);
        let (a, b) = match self.body {
            ReportBody::Tfrc { received, loss } => (received.to_bits(), loss.to_bits()),
            ReportBody::Ssvp { highest, lost } => (highest, lost),
        };
        [(echo >> 32) as u32, echo as u32, u32::try_from(held).unwrap_or(u32::MAX), a, b]
    }
    /// The report in these words, of TFRC or SSVP; `None` if a number in it is invalid.
    #[must_use]
    pub fn from_words([high, low, held, a, b]: [u32; 5], tfrc: bool) -> Option<Self> {
        let body = if tfrc {
            let (received, loss) = (f32::from_bits(a), f32::from_bits(b));
            if !(received.is_finite() && received >= 0.0 && (0.0..=1.0).contains(&loss)) {
                return None;
            }
            ReportBody::Tfrc { received, loss }
        } else {
            ReportBody::Ssvp { highest: a, lost: b }
        };
        let echo = Instant::from_nanos((u64::from(high) << 32) | u64::from(low));
        Some(Self { echo, held: Duration::from_micros(held.into()), body })
    }

    /// The encoding in a datagram.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; REPORT_BYTES] {
        let mut bytes = [0; REPORT_BYTES];
        bytes[0] = match self.body {
            ReportBody::Tfrc { .. } => 1,
            ReportBody::Ssvp { .. } => 2,
        };
        for (room, word) in bytes[4..].chunks_exact_mut(4).zip(self.words()) {
            room.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }
    /// Parses a payload; `None` if it is not a report.
    #[must_use]
    pub fn read(payload: &[u8]) -> Option<Self> {
        let bytes: &[u8; REPORT_BYTES] = payload.try_into().ok()?;
        let tfrc = match bytes[0] {
            1 => true,
            2 => false,
            _ => return None,
        };
        let mut words = [0; 5];
        for (word, room) in words.iter_mut().zip(bytes[4..].chunks_exact(4)) {
            *word = u32::from_be_bytes([room[0], room[1], room[2], room[3]]);
        }
        Self::from_words(words, tfrc)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_read_as_they_were_written() {
        for rtt in [None, Some(Duration::from_millis(550))] {
            let data = Data { number: 1 << 40, sent_at: Instant::from_nanos(123_456_789), rtt, size: 128 };
            let mut payload = [7; 100];
            assert!(data.write(&mut payload));
            assert_eq!(Data::read(&payload, 28), Some(data));
            assert!(!data.write(&mut payload[..23]));
            assert_eq!(Data::read(&payload[..23], 28), None);
        }
        let body = [
            ReportBody::Tfrc { received: 12_345.5, loss: 0.01 },
            ReportBody::Ssvp { highest: 9, lost: u32::MAX },
        ];
        for body in body {
            let echo = Instant::from_nanos((7 << 32) + 5);
            let report = Report::new(echo + Duration::from_nanos(2_500_999), echo, echo, body);
            assert_eq!(report.held, Duration::from_micros(2500), "whole microseconds");
            let bytes = report.to_bytes();
            assert_eq!(Report::read(&bytes), Some(report));
            assert_eq!(Report::read(&bytes[..31]), None);
        }
    }

    #[test]
    fn reports_with_absurd_numbers_are_none() {
        let good = Report::new(
            Instant::ZERO,
            Instant::ZERO,
            Instant::ZERO,
            ReportBody::Tfrc { received: 1.0, loss: 0.5 },
        );
        for (received, loss) in
            [(f32::NAN, 0.1), (-1.0, 0.1), (f32::INFINITY, 0.1), (1.0, 1.5), (1.0, f32::NAN)]
        {
            let bad = Report { body: ReportBody::Tfrc { received, loss }, ..good };
            assert_eq!(Report::read(&bad.to_bytes()), None, "{received} {loss}");
        }
        let mut bytes = good.to_bytes();
        bytes[0] = 3;
        assert_eq!(Report::read(&bytes), None);
    }
}

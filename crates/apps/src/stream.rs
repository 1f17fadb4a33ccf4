//! Data at a constant rate, with or without pauses, over a byte stream or in datagrams.

use crate::short;
use crate::workload::{Demand, Refusal, Start, Stop, Transport, Workload};
use skyhaul_base::amount::RateSpec;
use skyhaul_base::dist::{InvalidDistribution, Times};
use skyhaul_base::units::Serializer;
use skyhaul_base::{Duration, Instant, Rate, Rng};

/// Default datagram size, bytes with headers.
pub const USUAL_PACKET: u64 = 1000;
/// Largest packet.
const LARGEST: u64 = 65_535;

/// Why a data rate is invalid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Invalid {
    /// The packet size is invalid.
    #[error("\"{size} B\": write a size from {least} B to {LARGEST} B")]
    Packet {
        /// The given value, bytes.
        size: u64,
        /// The minimum.
        least: u64,
    },
    /// Too many packets per second, or none.
    #[error("not a rate to send at: write, say, \"1 Mbit/s\"")]
    NoSuchRate,
    /// There is no rate.
    #[error("a source needs a rate, such as \"1 Mbit/s\"; for unlimited data write app = \"bulk\"")]
    Unlimited,
    /// The source is never on.
    #[error("a source that is never on sends nothing: write a time above zero")]
    NeverOn,
    /// The time that the source is on is invalid.
    #[error(transparent)]
    On(InvalidDistribution),
    /// The duration of the pauses is invalid.
    #[error(transparent)]
    Off(InvalidDistribution),
}

impl Refusal for Invalid {
    fn key(&self) -> String {
        match self {
            Self::Packet { .. } => "packet".into(),
            Self::NoSuchRate | Self::Unlimited => "rate".into(),
            Self::NeverOn => "on".into(),
            Self::On(e) => short::within("on", e),
            Self::Off(e) => short::within("off", e),
        }
    }
}

/// Rate and packet size with defaults filled in.
pub(crate) fn resolve(
    rate: RateSpec,
    packet: Option<u64>,
    over: Transport,
) -> Result<(RateSpec, Option<u64>), Invalid> {
    let (least, usual) = match over {
        Transport::Stream { segment } => (1, segment.into()),
        Transport::Datagrams { header, .. } => (u64::from(header) + 1, USUAL_PACKET),
    };
    let size = packet.unwrap_or(usual);
    if packet.is_some() && !(least..=LARGEST).contains(&size) {
        return Err(Invalid::Packet { size, least });
    }
    let rate = match rate {
        RateSpec::Bits(rate) => rate,
        RateSpec::Packets(n) => match n.times(size * 8) {
            Some(bits) if bits > 0 => Rate::from_bits_per_sec(bits),
            _ => return Err(Invalid::NoSuchRate),
        },
        RateSpec::Unlimited => return Err(Invalid::Unlimited),
    };
    Ok((RateSpec::Bits(rate), Some(size)))
}

/// A resolved rate, in bit/s.
pub(crate) fn bits(rate: RateSpec) -> u64 {
    match rate {
        RateSpec::Bits(rate) => rate.bits_per_sec(),
        RateSpec::Packets(_) | RateSpec::Unlimited => panic!("a rate that is not resolved"),
    }
}

/// What a source writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Output {
    /// Each packet is a datagram.
    Datagrams,
    /// The packets are written to the byte stream of a connection.
    Bytes,
}

/// How far a source has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Its connection must be opened first.
    Opening,
    /// It sends.
    Running,
    /// It sends nothing more.
    Stopped,
}

/// Packets at a constant rate, with or without pauses.
///
/// The source's clock runs only while the source is on. What is left of the interval to the next packet when a pause
/// begins is still left when the pause ends, so the rate is exact whatever the length of phases. The first packet is
/// due at once.
#[derive(Clone, Debug)]
pub struct Stream {
    /// When the next packet is due; [`Instant::MAX`] once the source is stopped.
    next: Instant,
    /// Size of a packet, bytes.
    packet: u32,
    output: Output,
    phase: Phase,
    /// Gives the times of packets on the source's clock, without rounding errors.
    clock: Serializer,
    /// When the next packet is due, on the source's clock.
    due: Instant,
    /// Start of the next pause, on the source's clock.
    pause: Instant,
    /// Sum of the pauses so far: how far the source's clock is behind.
    behind: Duration,
    pauses: Option<(Times, Times, Rng)>,
}

impl Stream {
    pub(crate) fn new(
        start: &Start<'_>,
        rate: RateSpec,
        packet: Option<u64>,
        pauses: Option<(Times, Times)>,
    ) -> Self {
        let now = start.now;
        let mut pauses = pauses.map(|(on, off)| (on, off, start.streams.named("pauses")));
        let pause = pauses.as_mut().map_or(Instant::MAX, |(on, _, rng)| now + on.draw(rng));
        let (output, phase) = match start.over {
            Transport::Datagrams { .. } => (Output::Datagrams, Phase::Running),
            Transport::Stream { .. } => (Output::Bytes, Phase::Opening),
        };
        let mut stream = Self {
            next: now,
            packet: packet.map_or(0, |n| n as u32),
            output,
            phase,
            clock: Serializer::new(Rate::from_bits_per_sec(bits(rate))),
            due: now,
            pause,
            behind: Duration::ZERO,
            pauses,
        };
        stream.skip_pauses();
        stream
    }

    /// Passes the pauses that begin before the next packet is due, and sets the time of that packet.
    fn skip_pauses(&mut self) {
        if let Some((on, off, rng)) = &mut self.pauses {
            while self.due >= self.pause {
                self.behind = self.behind + off.draw(rng);
                self.pause += on.draw(rng);
            }
        }
        self.next = self.due + self.behind;
    }
}

impl Workload for Stream {
    #[inline]
    fn next(&self) -> Instant {
        self.next
    }
    #[inline]
    fn poll(&mut self, now: Instant) -> Option<Demand> {
        if self.phase == Phase::Opening {
            self.phase = Phase::Running;
            return Some(Demand::Open { transfer: 0, bytes: 0 });
        }
        if self.next > now {
            return None;
        }
        self.due = self.clock.send(self.due, self.packet);
        self.skip_pauses();
        Some(match self.output {
            Output::Datagrams => Demand::Datagram(self.packet),
            Output::Bytes => Demand::Write(self.packet.into()),
        })
    }
    fn stop(&mut self) -> Stop {
        self.phase = Phase::Stopped;
        (self.next, self.due, self.pauses) = (Instant::MAX, Instant::MAX, None);
        match self.output {
            Output::Datagrams => Stop::Over,
            Output::Bytes => Stop::Drain,
        }
    }
    fn is_finite(&self) -> bool {
        self.phase == Phase::Stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Streams;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }
    fn stream(now: Instant, bits: u64, packet: u64, pauses: Option<(Times, Times)>) -> Stream {
        let (over, streams) = (Transport::Datagrams { header: 28, yields: false }, Streams::of(1, "a"));
        let start = Start { now, over, streams: &streams };
        Stream::new(&start, RateSpec::Bits(Rate::from_bits_per_sec(bits)), Some(packet), pauses)
    }
    fn times(mut stream: Stream, n: usize) -> Vec<Instant> {
        let one = |_| {
            let next = stream.next();
            assert!(matches!(stream.poll(next), Some(Demand::Datagram(_))));
            next
        };
        (0..n).map(one).collect()
    }

    #[test]
    fn a_constant_rate_is_exact() {
        // 1000 bytes at 8 Mbit/s: one a millisecond.
        assert_eq!(times(stream(at(5), 8_000_000, 1000, None), 4), [at(5), at(6), at(7), at(8)]);
        // 2 ⅔ ns per packet: the rounding errors do not add up.
        let last = times(stream(at(0), 3_000_000_000, 1, None), 3001)[3000];
        assert_eq!(last, Instant::from_nanos(8000));
    }

    #[test]
    fn pauses_keep_what_was_left_of_an_interval() {
        // On for 2.5 ms, off for 10 ms, a packet in each millisecond that it is on. The packets at 0, 1 and 2 ms precede
        // the first pause; of the interval to the fourth, 3 − 2.5 = 0.5 ms remain after the pause, which ends at 12.5 ms.
        let on = Times::Constant(Duration::from_micros(2500));
        let off = Times::Constant(Duration::from_millis(10));
        let stream = stream(at(0), 8_000_000, 1000, Some((on, off)));
        assert_eq!(times(stream, 7), [at(0), at(1), at(2), at(13), at(14), at(25), at(26)]);
    }

    #[test]
    fn over_a_byte_stream_the_connection_comes_first() {
        let (over, streams) = (Transport::Stream { segment: 1000 }, Streams::of(1, "a"));
        let start = Start { now: at(1), over, streams: &streams };
        let mut s = Stream::new(&start, RateSpec::Bits(Rate::from_bits_per_sec(8_000_000)), Some(500), None);
        assert_eq!(s.poll(at(1)), Some(Demand::Open { transfer: 0, bytes: 0 }));
        assert_eq!(s.poll(at(1)), Some(Demand::Write(500)));
        assert_eq!((s.poll(at(1)), s.is_finite()), (None, false));
        assert_eq!((s.stop(), s.poll(at(9)), s.is_finite()), (Stop::Drain, None, true));
    }
}

//! What a viewer gets of a film, in numbers.

use crate::datagram::Measured;
use crate::frame::FrameType;
use skyhaul_base::{Duration, Instant};

/// Delays of a play-out without buffer control at which late packets are counted.
pub const FIXED: [Duration; 3] = [Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(2)];
/// Shares of the frames of which is told within what time they were there.
pub const FRAME_SHARES: [f64; 8] = [0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999];
/// What was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Played {
    /// From the first frame's production to the start of the film, s; `None` if it never started.
    pub startup: Option<f64>,
    /// How often the film stood still.
    pub stalls: u64,
    /// How long in all, s.
    pub stalled: f64,
    /// How long the film ran, s.
    pub played: f64,
    /// Longest time without a new picture, s: a stall, or frames in a row that were missing or not sent.
    pub freeze: f64,
}

/// How often something was so, of how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// How often.
    pub part: u64,
    /// Of how many.
    pub of: u64,
}

impl Share {
    /// One more.
    pub(crate) fn count(&mut self, is: bool) {
        self.part += u64::from(is);
        self.of += 1;
    }
    /// As a number from 0 to 1; `None` of nothing.
    #[must_use]
    pub fn value(self) -> Option<f64> {
        (self.of > 0).then(|| self.part as f64 / self.of as f64)
    }
}

/// What a viewer got of a film. Where the transport died, what is measured of delivered data alone is missing: it would look
/// as if nothing had happened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Viewed {
    /// Frames produced, by type (`kind as usize`), those that were not sent among them.
    pub frames: [u64; FrameType::COUNT],
    /// Of these, not sent since the buffer was full.
    pub skipped: u64,
    /// Of these, not sent while the coder changed its rate.
    pub gaps: u64,
    /// Of the frames whose time is over, by type: how many were complete in time.
    pub complete: [Share; FrameType::COUNT],
    /// Of the same: how many could be decoded.
    pub decodable: Share,
    /// Packets of the application that were complete.
    pub packets: u64,
    /// Of the packets that arrived, how many came late after the one before in number (Algorithm 1).
    pub delayed: Option<Share>,
    /// The same, after the one that arrived before.
    pub delayed_arrival: Option<Share>,
    /// The same as the first for segments as they arrive, in order or not; `None` of datagrams, which have no other.
    pub delayed_wire: Option<Share>,
    /// Delays and jitter of packets.
    pub measured: Measured,
    /// Time from the production of a frame to its last byte, s, within which each share of [`FRAME_SHARES`] of the frames
    /// whose time is over was there; `None` where fewer came.
    pub frame_delays: [Option<f64>; FRAME_SHARES.len()],
    /// Of all packets, how many were not there a fixed time after they were produced, for each of [`FIXED`].
    pub late: [Share; FIXED.len()],
    /// The play-out.
    pub played: Played,
    /// Share of the time since the first frame was produced, less that until the start, in which the film stood still; 1 if it
    /// never started.
    pub still: Option<f64>,
    /// Coefficient of variation of the throughput over half seconds.
    pub variation: Option<f64>,
    /// Longest time in which nothing arrived, s.
    pub silence: Option<f64>,
    /// How often the rate of the coder changed, and by how much in the mean, bit/s.
    pub switches: u64,
    /// Mean change, bit/s.
    pub switched_by: Option<f64>,
    /// Of the bytes delivered, how many came too late or belong to frames that could not be decoded.
    pub useless: Share,
    /// When the transport died, if it did.
    pub died: Option<Instant>,
}

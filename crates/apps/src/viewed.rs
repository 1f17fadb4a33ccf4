//! Results of a video viewer.

use crate::datagram::Measured;
use crate::frame::FrameType;
use skyhaul_base::{Duration, Instant};

/// Fixed playout delays after the production of a frame: a packet of it that arrives later counts as late.
pub const PLAYOUT_DELAYS: [Duration; 3] =
    [Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(2)];
/// Fractions of frames for which the delay is reported.
pub const FRAME_SHARES: [f64; 8] = [0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999];

/// Playout results.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Played {
    /// From the first frame's production to the start of playout, s; `None` if it never started.
    pub startup: Option<f64>,
    /// Number of stalls; with datagrams, of times that the picture froze.
    pub stalls: u64,
    /// Total stall time, s.
    pub stalled: f64,
    /// Total playout time, s.
    pub played: f64,
    /// Longest time without a new picture, s: a stall, or consecutive frames that were missing or not sent.
    pub freeze: f64,
}

/// A count of cases with a property, out of a total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// The count.
    pub part: u64,
    /// The total.
    pub of: u64,
}

impl Share {
    /// Counts one more case.
    pub(crate) fn count(&mut self, is: bool) {
        self.part += u64::from(is);
        self.of += 1;
    }
    /// The fraction from 0 to 1; `None` for a total of 0.
    #[must_use]
    pub fn value(self) -> Option<f64> {
        (self.of > 0).then(|| self.part as f64 / self.of as f64)
    }
}

/// Results of a video viewer. If the transport died, what is measured on delivered data alone is omitted: it would look
/// as if nothing had happened.
///
/// Frames produced during the warm-up, and their packets, do not enter the counts and delays of frames and packets; all other
/// results cover the whole film. A frame is judged once it is complete, past its deadline, or known not to be sent; frames are
/// judged in the order of coding.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Viewed {
    /// Frames produced, by type (`kind as usize`), including those that were not sent.
    pub frames: [u64; FrameType::COUNT],
    /// Frames of `frames` that were not sent because the buffer was full.
    pub skipped: u64,
    /// Frames of `frames` that were not sent because the coder was changing its rate.
    pub gaps: u64,
    /// Frames complete in time, among those judged, by type.
    pub complete: [Share; FrameType::COUNT],
    /// Frames that could be decoded, among those judged.
    pub decodable: Share,
    /// Packets of the application, counted when the last byte of each is produced.
    pub packets: u64,
    /// Packets that arrived more than a threshold after the previous one in number (Papadimitriou, Tsaoussidis 2007,
    /// Algorithm 1), among those that arrived.
    pub delayed: Option<Share>,
    /// Packets that arrived more than a threshold after the previous one in order of arrival, among those that arrived.
    pub delayed_arrival: Option<Share>,
    /// As `delayed`, for segments as they arrive, in order or not; `None` for datagrams, where there is no difference.
    pub delayed_wire: Option<Share>,
    /// Delays and jitter of packets.
    pub measured: Measured,
    /// Time from the production of a frame to its last byte, s: for each fraction of [`FRAME_SHARES`], the time within which
    /// that fraction of the frames judged was complete; `None` if fewer were.
    pub frame_delays: [Option<f64>; FRAME_SHARES.len()],
    /// Packets that arrived later than each of [`PLAYOUT_DELAYS`] after the production of their frame, or not at all.
    pub late: [Share; PLAYOUT_DELAYS.len()],
    /// Playout results.
    pub played: Played,
    /// Stall time as a fraction of stall and playout time; 1 if playout never started, `None` before the first frame.
    pub still: Option<f64>,
    /// Coefficient of variation of the throughput in bins of half a second, from the first arrival on.
    pub variation: Option<f64>,
    /// Longest time without an arrival, s, from the first arrival to the end.
    pub silence: Option<f64>,
    /// Number of rate changes of the coder.
    pub switches: u64,
    /// Mean size of a rate change, bit/s.
    pub switched_by: Option<f64>,
    /// Bytes that arrived too late or belong to frames that could not be decoded, or are incomplete at the end, among those
    /// delivered.
    pub useless: Share,
    /// When the transport died, if it did.
    pub died: Option<Instant>,
}

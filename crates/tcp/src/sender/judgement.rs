//! Records signs of congestion and their effect on the window, for an observer that knows the true causes of
//! losses.

use super::{Engine, Phase};
use crate::store::Store;
use skyhaul_base::Instant;
use skyhaul_cc::{Algorithm, CongestionControl, Cx, Path};

/// A sign of congestion seen by the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Duplicate or selective acknowledgements.
    Acks,
    /// The retransmission timer.
    Timeout,
    /// An ECN echo.
    Ecn,
}

/// A sign of congestion that was reported to the algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The sign.
    pub sign: Sign,
    /// Stream offset of the segment: the oldest outstanding one, or the one repaired by a tail loss probe.
    pub offset: u64,
    /// How often that segment had been sent; at least 1.
    pub transmissions: u32,
    /// The algorithm reduced its window: cwnd or ssthresh is smaller than before.
    pub cut: bool,
}

impl<S: Store> Engine<S> {
    /// Reports a sign of congestion to the algorithm, with these path facts.
    pub(super) fn judge(
        &mut self,
        now: Instant,
        path: &Path,
        sign: Sign,
        event: impl FnOnce(&mut Algorithm, &mut Cx<'_>),
    ) {
        let transmissions = self.board.head().map_or(1, |h| h.rtx_count + 1);
        self.judge_segment(now, path, sign, (self.board.una(), transmissions), event);
    }

    /// As [`Self::judge`], for the segment at this offset, which had been sent this many times.
    pub(super) fn judge_segment(
        &mut self,
        now: Instant,
        path: &Path,
        sign: Sign,
        (offset, transmissions): (u64, u32),
        event: impl FnOnce(&mut Algorithm, &mut Cx<'_>),
    ) {
        let before = self.control.cc.window();
        // Window inflation by duplicate ACKs does not count.
        let inflated = self.phase == Phase::Recovery && !self.quiet;
        let level = if inflated { before.cwnd.min(before.ssthresh) } else { before.cwnd };
        self.tell_with(now, path, event);
        let after = self.control.cc.window();
        let cut = after.cwnd < level || after.ssthresh < before.ssthresh;
        self.reduced |= cut;
        self.judged = true;
        self.judgement = Some(Judgement { sign, offset, transmissions, cut });
    }
}

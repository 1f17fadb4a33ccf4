//! Signs of congestion and what they did to the window: for whoever knows the truth about losses.

use super::{Engine, Phase};
use crate::store::Store;
use skyhaul_base::Instant;
use skyhaul_cc::{Algorithm, CongestionControl, Cx, Path};

/// What the sender took for a sign of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Duplicate or selective acknowledgements.
    Acks,
    /// The retransmission timer.
    Timeout,
    /// An ECN echo.
    Ecn,
}

/// A segment was judged lost, or the path congested, and the algorithm was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// By what sign.
    pub sign: Sign,
    /// Stream offset of the segment: the oldest outstanding one, or that which a tail loss probe has repaired.
    pub offset: u64,
    /// How often that segment had been sent, at least 1.
    pub transmissions: u32,
    /// The algorithm cut its window: the congestion window or the slow start threshold is smaller than before.
    pub cut: bool,
}

impl<S: Store> Engine<S> {
    /// Tells the algorithm of a sign of congestion, with these facts of the path.
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

    /// As [`Self::judge`], of the segment at this offset, which had been sent so many times.
    pub(super) fn judge_segment(
        &mut self,
        now: Instant,
        path: &Path,
        sign: Sign,
        (offset, transmissions): (u64, u32),
        event: impl FnOnce(&mut Algorithm, &mut Cx<'_>),
    ) {
        let before = self.control.cc.window();
        // What duplicates inflated a window by is no part of it.
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

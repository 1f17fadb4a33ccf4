//! Tail loss probe (RFC 8985 §7): without an acknowledgement for about two RTTs, one segment is sent to provoke an
//! acknowledgement, so that RACK detects losses before the retransmission timer expires.

/// No probe is outstanding: an offset beyond every acknowledgement.
const NONE: u64 = u64::MAX;

/// State of the tail loss probe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tlp {
    /// `TLP.end_seq`: `SND.NXT` after the outstanding probe; [`NONE`] without one.
    end_seq: u64,
    /// `TLP.is_retrans`: the probe is a retransmission.
    is_retrans: bool,
    /// The RTT was measured since the last probe, or there was none yet. At most one probe per measurement.
    pub(crate) measured: bool,
    /// A probe must be sent now, before other segments that do not wait for the window.
    pub(crate) due: bool,
}

impl Tlp {
    pub(crate) const NEW: Self = Self { end_seq: NONE, is_retrans: false, measured: true, due: false };

    /// §7.1: a recovery begins, which takes over the outstanding probe.
    pub(crate) fn reset(&mut self) {
        (self.end_seq, self.is_retrans, self.due) = (NONE, false, false);
    }

    /// Whether no probe is outstanding, and the RTT was measured since the last one.
    pub(crate) fn may_probe(&self) -> bool {
        self.end_seq == NONE && self.measured
    }
    /// A probe leaves; everything up to `max` has then been sent.
    pub(crate) fn sent(&mut self, is_retrans: bool, max: u64) {
        (self.measured, self.is_retrans, self.end_seq) = (false, is_retrans, max);
    }
    /// `TLP.end_seq`; beyond every offset without an outstanding probe. If the probe is a retransmission, the segment
    /// that it copies ends here.
    pub(crate) fn end_seq(&self) -> u64 {
        self.end_seq
    }

    /// §7.4.2: whether the acknowledgement proves that the probe repaired a loss. `dsack` is the DSACK block, if any;
    /// `bare` means a duplicate acknowledgement without SACK blocks.
    pub(crate) fn repaired(&mut self, ack: u64, dsack: Option<(u64, u64)>, bare: bool) -> bool {
        let end = self.end_seq;
        if ack < end {
            return false;
        }
        // The probe was new data, or both copies arrived: the receiver reports this by a DSACK or, without DSACK, by
        // one duplicate acknowledgement (`bare`).
        let harmless = !self.is_retrans || dsack.is_some_and(|d| d.1 == end);
        let beyond = ack > end;
        if harmless || beyond || bare {
            self.end_seq = NONE;
        }
        beyond && !harmless
    }
}

//! Proportional Rate Reduction (RFC 9937): how many bytes each acknowledgement of a recovery may clock out.

/// State of one recovery, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prr {
    /// `RecoverFS`: data outstanding at the start, without what had been SACKed before (§6.1).
    recover_fs: u64,
    /// `prr_delivered`: bytes delivered since the start.
    delivered: u64,
    /// `prr_out`: bytes sent since the start.
    out: u64,
    /// Bytes that may still be sent for the current acknowledgement.
    pub(crate) budget: u64,
}

impl Prr {
    pub(crate) fn begin(recover_fs: u64) -> Self {
        Self { recover_fs: recover_fs.max(1), ..Self::default() }
    }
    /// RFC 9937 §6.2, on every acknowledgement during recovery. `safe`: `SND.UNA` advances and no further loss
    /// is indicated.
    pub(crate) fn on_ack(&mut self, delivered: u64, pipe: u64, ssthresh: u64, smss: u64, safe: bool) {
        self.delivered += delivered;
        let count = if pipe > ssthresh {
            // Proportional rate reduction.
            let target =
                (u128::from(self.delivered) * u128::from(ssthresh)).div_ceil(u128::from(self.recover_fs));
            (target as u64).saturating_sub(self.out)
        } else {
            // PRR-CRB, or PRR-SSRB if it is safe.
            let limit = self.delivered.saturating_sub(self.out).max(delivered) + if safe { smss } else { 0 };
            (ssthresh - pipe).min(limit)
        };
        // The fast retransmission itself is always sent.
        self.budget = if self.out == 0 { count.max(smss) } else { count };
    }
    /// At least this many bytes may be sent.
    pub(crate) fn allow(&mut self, bytes: u64) {
        self.budget = self.budget.max(bytes);
    }
    pub(crate) fn sent(&mut self, bytes: u64) {
        self.out += bytes;
        self.budget = self.budget.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_of_20_is_halved_smoothly() {
        // 20 segments in flight, one lost: 19 acknowledgements; ssthresh 10. About every second one sends.
        let mut p = Prr::begin(20);
        let mut pipe = 19;
        let mut sent = 0;
        for _ in 0..19 {
            pipe -= 1;
            p.on_ack(1, pipe, 10, 1, false);
            while p.budget >= 1 {
                p.sent(1);
                pipe += 1;
                sent += 1;
            }
        }
        assert_eq!((sent, pipe), (10, 10));
    }
}

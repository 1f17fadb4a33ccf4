//! Totals of senders over all their connections.

use skyhaul_tcp::Counters;

/// Totals of a sender over all its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Payload bytes acknowledged.
    pub acked: u64,
    /// Data segments sent, retransmissions included, probes excluded.
    pub segments: u64,
    /// Retransmissions among these.
    pub retransmissions: u64,
    /// Expirations of the retransmission timer.
    pub timeouts: u64,
    /// Probes sent.
    pub probes_sent: u64,
    /// Probes answered.
    pub probes_answered: u64,
}

impl Tally {
    /// The totals plus those of another connection.
    #[must_use]
    pub fn with(self, c: &Counters) -> Self {
        Self {
            acked: self.acked + c.bytes_acked,
            segments: self.segments + c.segments_sent,
            retransmissions: self.retransmissions + c.retransmissions,
            timeouts: self.timeouts + c.timeouts,
            probes_sent: self.probes_sent + c.probes_sent,
            probes_answered: self.probes_answered + c.probes_answered,
        }
    }
}

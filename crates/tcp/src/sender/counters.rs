//! Counters of a sender.

/// Counters of a sender: numbers of segments or events, as each field says; bytes where the name says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Data segments sent, including retransmissions, excluding probes.
    pub segments_sent: u64,
    /// Retransmissions among these.
    pub retransmissions: u64,
    /// Expirations of the retransmission timer.
    pub timeouts: u64,
    /// Recoveries entered by duplicate ACKs or SACK, without a timeout.
    pub recoveries: u64,
    /// Duplicate acknowledgements.
    pub duplicate_acks: u64,
    /// Reports of duplicates (RFC 2883).
    pub dsacks: u64,
    /// Acknowledgements processed, answers to probes included.
    pub acks: u64,
    /// Payload bytes cumulatively acknowledged.
    pub bytes_acked: u64,
    /// Probes sent.
    pub probes_sent: u64,
    /// Probes answered.
    pub probes_answered: u64,
    /// Answers beyond the number of probes sent; ignored.
    pub probe_answers_refused: u64,
    /// Zero-window probes sent.
    pub window_probes: u64,
    /// Tail loss probes sent (RFC 8985 §7).
    pub loss_probes: u64,
    /// Reductions of the window that were spurious and undone.
    pub undone: u64,
}

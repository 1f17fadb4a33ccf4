//! What a sender counts.

/// What a sender has done so far. Segments, unless a name says bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Data segments sent, retransmissions included, probes excluded.
    pub segments_sent: u64,
    /// Of these, retransmissions.
    pub retransmissions: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Losses found by duplicate or selective acknowledgements: episodes of recovery without a timeout.
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
    /// Answers to probes that exceed what was sent: ignored.
    pub probe_answers_refused: u64,
    /// Zero-window probes sent.
    pub window_probes: u64,
    /// Tail loss probes sent (RFC 8985 §7).
    pub loss_probes: u64,
    /// Reductions of the window that proved to answer no loss and were undone.
    pub undone: u64,
}

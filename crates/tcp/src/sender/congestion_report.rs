//! Reports of congestion signals and their effect on the window, for an observer that knows the true causes of
//! losses.

/// A congestion signal that the sender has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionSignal {
    /// Duplicate or selective acknowledgements.
    Acks,
    /// The retransmission timer.
    Timeout,
    /// An ECN echo.
    Ecn,
}

/// A congestion signal that was reported to the algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CongestionReport {
    /// The signal.
    pub signal: CongestionSignal,
    /// Stream offset of the segment: the oldest outstanding one, or the one repaired by a tail loss probe.
    pub offset: u64,
    /// How often that segment had been sent; at least 1.
    pub transmissions: u32,
    /// The algorithm reduced its window: cwnd or ssthresh is smaller than before.
    pub cut: bool,
}

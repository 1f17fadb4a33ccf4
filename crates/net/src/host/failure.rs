//! Why connections end.

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The peer does not listen on that port.
    #[error("connection refused: nothing listens there")]
    Refused,
    /// The peer reset it.
    #[error("connection reset by the peer")]
    Reset,
    /// The peer did not answer, or no longer does.
    #[error("the peer does not answer")]
    TimedOut,
    /// A router reported the peer as unreachable.
    #[error("the peer cannot be reached (ICMP)")]
    Unreachable,
    /// A defect of this program has ended it.
    #[error("a defect of this program has ended it")]
    Defect,
}

//! Why an arriving segment was refused. For counters, not for logs.

use thiserror::Error;

/// The reason why a segment was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Rejected {
    /// The acknowledgement covers data that was never sent; an ACK is owed (RFC 5961 §5).
    #[error("acknowledges data never sent")]
    AckOfUnsent,
    /// The acknowledgement is older than the window allows (RFC 5961 §5).
    #[error("acknowledgement too old")]
    AckTooOld,
    /// Received before; it is acknowledged again (and reported, RFC 2883).
    #[error("received before")]
    Duplicate,
    /// Outside of the receive window.
    #[error("outside of the receive window")]
    OutOfWindow,
    /// The timestamp is older than one already seen (PAWS, RFC 7323 §5).
    #[error("old timestamp (PAWS)")]
    Paws,
    /// Without the negotiated timestamps (RFC 7323 §3.2).
    #[error("no timestamps")]
    Unstamped,
    /// A reset or SYN that an attacker could have sent blindly; a challenge ACK is owed (RFC 5961 §3, §4).
    #[error("reset or SYN without the exact sequence number")]
    Challenged,
    /// A reset in TIME-WAIT, which must not end that state (RFC 1337 §3).
    #[error("reset in TIME-WAIT")]
    ResetInTimeWait,
    /// Data or a FIN beyond the peer's FIN (RFC 9293 §3.10.7.4).
    #[error("beyond the FIN")]
    BeyondFin,
    /// One of too many copies: at most two receive windows of them are answered per RTT.
    #[error("too many copies")]
    Rationed,
    /// Lacks the ACK flag or has an invalid combination of flags.
    #[error("impossible flags")]
    Flags,
    /// The connection does not exist any more.
    #[error("the connection is closed")]
    Closed,
}

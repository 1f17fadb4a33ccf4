//! What traces of rates and of delays have in common.

/// What happens after the end of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// The last value holds.
    #[default]
    Hold,
    /// It begins anew; the time of its last point is the period.
    Loop,
}

/// A trace that makes no sense. Points are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// It has no point.
    #[error("the trace is empty: it needs at least one point")]
    Empty,
    /// The time of this point is not after that of the point before it.
    #[error("times must ascend")]
    NotAscending(usize),
    /// It is to begin anew, but its last point is at 0.
    #[error("the last time is 0, which is no period to repeat: end with a later time")]
    NoPeriod,
    /// From some time on nothing is ever sent.
    #[error("from the end on nothing is ever sent: end with a rate above 0, or repeat the trace")]
    NeverSends,
}

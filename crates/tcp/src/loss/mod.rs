//! Outstanding data and loss detection: by acknowledgements beyond a segment ([`scoreboard`], RFC 6675) or by time
//! ([`rack`], RFC 8985, with [`tlp`]). Loss classification is in [`classifier`].

pub(crate) mod board;
pub(crate) mod by_time;
pub(crate) mod classifier;
pub(crate) mod rack;
pub(crate) mod scoreboard;
mod shorts;
pub(crate) mod tlp;

pub(crate) use board::Board;

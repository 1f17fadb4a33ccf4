//! Outstanding data ([`board`]) and loss detection: by acknowledgements beyond a segment ([`scoreboard`], RFC 6675) or
//! by time ([`by_time`]: [`rack`] and [`tlp`], RFC 8985). Loss classification is in [`classifier`].

pub(crate) mod board;
pub(crate) mod by_time;
pub(crate) mod classifier;
pub(crate) mod rack;
pub(crate) mod scoreboard;
mod shorts;
pub(crate) mod tlp;

pub(crate) use board::Board;

//! What is outstanding, and when a loss is a loss: by what was acknowledged beyond it ([`scoreboard`], RFC 6675), or by
//! time ([`rack`], RFC 8985, with [`tlp`]). What a loss was ([`classifier`]).

pub(crate) mod board;
pub(crate) mod classifier;
pub(crate) mod rack;
pub(crate) mod scoreboard;
pub(crate) mod tlp;

pub(crate) use board::Board;

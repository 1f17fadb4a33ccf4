//! Pieces of window arithmetic that several algorithms are made of.

pub mod credit;
pub mod frame;
pub mod growth;
pub mod hystart;
pub mod inflation;
pub mod train;
pub mod windowed;

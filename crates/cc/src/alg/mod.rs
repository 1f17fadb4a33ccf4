//! The algorithms, one file each.

pub mod peach;
pub mod reno;

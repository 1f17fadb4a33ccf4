//! The basis of all other crates: integer time, link rates, named random streams, portable maths, amounts with units,
//! numbers for a reader, and containers.
//!
//! The crate is `no_std`: without `std` there is no clock, no entropy, no thread and no platform maths,
//! so that a run is a function of its inputs and gives the same bits natively and in WebAssembly.
#![no_std]

extern crate alloc;

#[cfg(feature = "serde")]
pub mod amount;
pub mod decimal;
pub mod dist;
pub mod hash;
mod kinds;
pub mod math;
mod options;
pub mod readable;
pub mod rng;
pub mod slab;
pub mod time;
pub mod units;

pub use rng::Rng;
pub use time::{Duration, Instant, Ticks};
pub use units::Rate;

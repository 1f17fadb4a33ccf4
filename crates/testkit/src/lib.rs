//! Harness for the tests of Skyhaul (development only).
//!
//! - [`pair`]: two endpoints joined by two links in virtual time, with a log of every departure and arrival;
//! - [`script`]: one endpoint against a scripted peer, in the manner of packetdrill;
//! - [`conformance`]: cases as text, one TCP against a scripted peer, put to ours and to a kernel;
//! - [`fuzz`]: bodies of the fuzz targets, replayed as tests;
//! - [`naive`]: literal, slow versions of what the core computes incrementally;
//! - [`naive_rack`]: the same for loss detection by time;
//! - [`need`]: what tests need of the machine, and what is skipped without it;
//! - [`one_line`]: a model is one file and one line;
//! - [`spy`]: a congestion control that records what another one does;
//! - [`tshark`]: captures as Wireshark reads them.

pub mod conformance;
pub mod fuzz;
pub mod naive;
pub mod naive_rack;
pub mod need;
pub mod one_line;
pub mod pair;
pub mod script;
pub mod spy;
pub mod tshark;

/// The links of a pair.
pub use skyhaul_path as path;

pub use pair::{Departure, End, Entry, Pair, PayloadStore, SegmentEvent, Setup, Side, Verdict};

//! Congestion control: one trait, one file per algorithm.
//!
//! The sender (another crate, which this one cannot see) decides *which* bytes to send and when a segment counts as
//! lost. An algorithm decides *how much* and *how fast* to send, and *whether to probe*. It receives small event
//! structs, keeps its own window, and writes requests into an [`Actions`] value that the sender carries out after
//! the call.
//!
//! # Order of events
//!
//! For each arriving segment the sender raises the following events in this order, each at most once unless said
//! otherwise:
//!
//! 0. [`on_lost`](CongestionControl::on_lost), for algorithms that ask for it: once for every segment that is newly
//!    lost by the scoreboard, oldest first.
//! 1. [`on_ack`](CongestionControl::on_ack), after scoreboard, `SND.UNA`, RTT and rate sample were updated: for a segment
//!    that advances `SND.UNA` and for a duplicate ACK. An answer to a probe that does not advance `SND.UNA` is neither.
//! 2. [`on_probe`](CongestionControl::on_probe), if the segment answers a probe.
//! 3. [`on_recovered`](CongestionControl::on_recovered), if it ends a recovery; then
//!    [`on_undo`](CongestionControl::on_undo), if it proves that the last reduction was spurious (a recovery in progress
//!    ends first, with `on_recovered`); then [`on_congestion`](CongestionControl::on_congestion), if it reveals a loss
//!    or has an ECN echo: once per episode, before the retransmission.
//! 4. the send loop runs; [`on_sent`](CongestionControl::on_sent) per segment for algorithms that ask for it;
//! 5. [`on_transmit`](CongestionControl::on_transmit), which reports on the send loop. Probes are requested here.
//!
//! Without an arriving segment: `on_start` (connection established, or first transmission after an idle period),
//! `on_timeout` (retransmission timer expired, before the retransmission), `on_wake` (the time set with
//! [`Actions::wake_at`]). Each is followed by 4 and 5. Losses marked by a decision of the sender (a timeout; the
//! head, by duplicate ACKs without SACK) are reported directly after the event of that decision.
//!
//! # A user's own
//!
//! A user's crate implements [`CongestionControl`] and registers it by name in a [`Controls`]; see [`user`] and
//! `docs/algorithms/add-your-own-rust.md`. Its tests use `testing` with `skyhaul-cc = { features = ["testing"] }`
//! among the development dependencies.
//!
//! An algorithm must not move `SND.*`, read a clock or allocate per call. It may delay the first retransmission
//! ([`Actions::hold`]), but not suppress it.
#![no_std]

extern crate alloc;

mod action;
pub mod alg;
mod control;
mod event;
pub mod parts;
mod registry;
mod rules;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod user;

pub use action::{
    Actions, PathCache, Pipe, Policy, Priority, ProbeSource, RecoveryEnd, RecoveryMode, TimerRestart, Train,
    Window,
};
pub use control::{CongestionControl, ControlOptions, Reading};
pub use event::{
    Ack, AckKind, Blocked, Clock, Cx, Facts, Head, Lost, Path, PathState, Phase, ProbeEvent, ProbeSupport,
    RateSample, Sent, Signal, Start, Transmit,
};
pub use registry::{Algorithm, Config, Invalid, NAMES};
pub use rules::{
    CaGrowth, HalvingBase, InitialSsthresh, InitialWindow, InvalidInitialWindow, MOST_SEGMENTS, Rules,
    SharedRules,
};
pub use user::Controls;

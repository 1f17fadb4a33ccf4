//! Congestion control: one trait, one file per algorithm.
//!
//! The sender (another crate, which this one cannot see) decides *which* bytes go and when a loss is a loss;
//! an algorithm decides *how much*, *how fast* and *whether to probe*. It receives small event structs, keeps
//! its own window, and writes requests into an [`Actions`] value that the sender carries out after the call.
//!
//! # Order of events
//!
//! For one arriving segment the sender raises, each at most once unless said otherwise and in this order:
//!
//! 0. [`on_lost`](CongestionControl::on_lost), for algorithms that ask for it: once for every segment that the
//!    scoreboard now finds lost, the oldest first.
//! 1. [`on_ack`](CongestionControl::on_ack), after the scoreboard, `SND.UNA`, RTT and rate sample were
//!    updated. Not raised for a probe acknowledgement that advances nothing.
//! 2. [`on_probe`](CongestionControl::on_probe), if the segment answers a probe.
//! 3. [`on_recovered`](CongestionControl::on_recovered), if it ends a recovery; or
//!    [`on_congestion`](CongestionControl::on_congestion), if it reveals a loss (or carries an ECN echo):
//!    once per episode, before the retransmission leaves; or [`on_undo`](CongestionControl::on_undo), if it proves
//!    that the last reduction answered no loss, which ends a recovery that is under way.
//! 4. the send loop runs; [`on_sent`](CongestionControl::on_sent) per segment for algorithms that ask for it;
//! 5. [`on_transmit`](CongestionControl::on_transmit), which says what the loop did. Probes go here.
//!
//! Outside of arrivals: `on_start` (connection established, or the first transmission after an idle period),
//! `on_timeout` (retransmission timer expired, before the retransmission), `on_wake` (the time asked for with
//! [`Actions::wake_at`]). Each is followed by 4 and 5. What a
//! decision of the sender marks lost (a timeout; the head, by duplicates without selective information) is
//! reported right after the event that tells of the decision.
//!
//! # A user's own
//!
//! A crate of the user implements [`CongestionControl`] and offers it under a name in a [`Controls`]; see [`user`] and
//! `docs/algorithms/add-your-own-rust.md`. Its tests run through `testing` with
//! `skyhaul-cc = { features = ["testing"] }` among the development dependencies.
//!
//! An algorithm may not move `SND.*`, read a clock or allocate per call. The first retransmission it may put off
//! ([`Actions::hold`]), but not suppress.
#![no_std]

extern crate alloc;

mod action;
pub mod alg;
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
pub use event::{
    Ack, AckKind, Blocked, Clock, Cx, Facts, Head, Lost, Path, PathState, Phase, ProbeEvent, ProbeSupport,
    RateSample, Sent, Signal, Start, Transmit,
};
pub use registry::{Algorithm, Config, Invalid, NAMES};
pub use rules::{CaGrowth, EmptyWindow, HalvingBase, InitialSsthresh, InitialWindow, Rules, SharedRules};
pub use user::Controls;

use core::fmt;

/// A congestion control. Windows are real numbers of segments.
pub trait CongestionControl: fmt::Debug + Send {
    /// The window, read by the sender after every call. `cwnd` is finite and at least 1.
    fn window(&self) -> Window;

    /// Departure rate of data; `None` is ACK clocked.
    fn pacing(&self) -> Option<skyhaul_base::Rate> {
        None
    }

    /// Mechanisms of the sender that the algorithm pins. Read before the handshake (which probes to offer), after
    /// the first `on_start`, and after [`ProbeEvent::Unsupported`]; it must not change at any other time, but for
    /// [`Policy::rtt_samples`]: a control that no longer needs them may say so, and is asked after `on_recovered`.
    fn policy(&self) -> Policy {
        Policy::default()
    }

    /// Network priority of a data segment that starts `offset` bytes into the stream.
    fn priority(&self, _offset: u64, _retransmission: bool) -> Priority {
        Priority::Normal
    }

    /// The connection is established, or data is about to leave after an idle period.
    fn on_start(&mut self, _cx: &mut Cx<'_>, _start: &Start) {}

    /// An acknowledgement was processed.
    fn on_ack(&mut self, cx: &mut Cx<'_>, ack: &Ack);

    /// A probe was answered, or the peer turned out not to answer probes.
    fn on_probe(&mut self, _cx: &mut Cx<'_>, _event: ProbeEvent) {}

    /// A loss or congestion signal: once per episode, before the retransmission.
    fn on_congestion(&mut self, cx: &mut Cx<'_>, signal: Signal);

    /// The recovery that the last `on_congestion` started is over.
    fn on_recovered(&mut self, _cx: &mut Cx<'_>) {}

    /// The retransmission timer expired for the `backoff`-th time in a row (1 is the first).
    fn on_timeout(&mut self, cx: &mut Cx<'_>, backoff: u32);

    /// The last reduction answered an event that was no loss. Where that ends a recovery, `on_recovered` comes
    /// first.
    fn on_undo(&mut self, _cx: &mut Cx<'_>) {}

    /// A segment was marked lost. Raised only if [`Policy::loss_events`] is set.
    fn on_lost(&mut self, _cx: &mut Cx<'_>, _lost: &Lost) {}

    /// A data segment left. Raised only if [`Policy::sent_events`] is set.
    fn on_sent(&mut self, _cx: &mut Cx<'_>, _sent: &Sent) {}

    /// `on_transmit` would do something now. Asked after each run of the send loop where [`Policy::transmit_events`] is
    /// set; an algorithm that only listens at times says so here and spares the sender the call.
    fn wants_transmit(&self) -> bool {
        true
    }

    /// The send loop has just run. Raised only if [`Policy::transmit_events`] is set and
    /// [`wants_transmit`](Self::wants_transmit) holds.
    fn on_transmit(&mut self, _cx: &mut Cx<'_>, _transmit: &Transmit) {}

    /// The time asked for with [`Actions::wake_at`] has come.
    fn on_wake(&mut self, _cx: &mut Cx<'_>) {}

    /// Its estimate of the bandwidth, if it keeps one and has one by now: payload, in full segments of `smss` bytes.
    fn bandwidth_estimate(&self, _smss: u32) -> Option<skyhaul_base::Rate> {
        None
    }

    /// Internal variables worth a column in a trace, by name.
    fn telemetry(&self, _out: &mut dyn FnMut(&'static str, f64)) {}
}

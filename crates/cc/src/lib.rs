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
//! 1. [`on_ack`](CongestionControl::on_ack), after scoreboard, `SND.UNA`, RTT and rate sample were updated. Not
//!    raised for the answer to a probe that advances nothing.
//! 2. [`on_probe`](CongestionControl::on_probe), if the segment answers a probe.
//! 3. [`on_recovered`](CongestionControl::on_recovered), if it ends a recovery; or
//!    [`on_congestion`](CongestionControl::on_congestion), if it reveals a loss (or has an ECN echo): once per
//!    episode, before the retransmission; or [`on_undo`](CongestionControl::on_undo), if it proves that the last
//!    reduction was spurious, which ends a recovery in progress.
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

/// The options of a control, as a scenario file gives them.
pub trait ControlOptions {
    /// The control, in a box: [`Algorithm`] then has the size of a pointer and its tag, and a connection allocates memory for its own
    /// algorithm, not for the largest.
    type Control;
    /// Why options are refused. It displays as a sentence that names the option and says what to write instead.
    type Invalid;

    /// Refuses options that are outside their domain or contradict each other.
    ///
    /// # Errors
    /// Names the option and what to write instead.
    fn validate(&self) -> Result<(), Self::Invalid>;

    /// A control with these options for a new connection.
    fn build(&self, rules: SharedRules) -> Self::Control;
}

/// A congestion control. Windows are real numbers of segments.
pub trait CongestionControl: fmt::Debug + Send {
    /// The window, read by the sender after every call. `cwnd` is finite and at least 1.
    fn window(&self) -> Window;

    /// Pacing rate of data; `None` means ACK-clocked.
    fn pacing(&self) -> Option<skyhaul_base::Rate> {
        None
    }

    /// Mechanisms of the sender that the algorithm selects. Read before the handshake (which probes to offer),
    /// after the first `on_start`, and after [`ProbeEvent::Unsupported`]. It must not change at any other time,
    /// except [`Policy::rtt_samples`]: a control may give up RTT samples, and is asked after `on_recovered`.
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

    /// The last reduction was spurious. If this ends a recovery, `on_recovered` comes first.
    fn on_undo(&mut self, _cx: &mut Cx<'_>) {}

    /// A segment was marked lost. Raised only if [`Policy::loss_events`] is set.
    fn on_lost(&mut self, _cx: &mut Cx<'_>, _lost: &Lost) {}

    /// A data segment left. Raised only if [`Policy::sent_events`] is set.
    fn on_sent(&mut self, _cx: &mut Cx<'_>, _sent: &Sent) {}

    /// Whether `on_transmit` has any effect now. Asked after each run of the send loop if
    /// [`Policy::transmit_events`] is set; an algorithm that listens only at times saves the call with it.
    fn wants_transmit(&self) -> bool {
        true
    }

    /// The send loop has just run. Raised only if [`Policy::transmit_events`] is set and
    /// [`wants_transmit`](Self::wants_transmit) holds.
    fn on_transmit(&mut self, _cx: &mut Cx<'_>, _transmit: &Transmit) {}

    /// The time set with [`Actions::wake_at`] has come.
    fn on_wake(&mut self, _cx: &mut Cx<'_>) {}

    /// Its bandwidth estimate, if it has one: payload, in full segments of `smss` bytes.
    fn bandwidth_estimate(&self, _smss: u32) -> Option<skyhaul_base::Rate> {
        None
    }

    /// Internal variables for traces, by name.
    fn telemetry(&self, _out: &mut dyn FnMut(&'static str, f64)) {}
}

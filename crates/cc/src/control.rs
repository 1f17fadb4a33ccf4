//! The trait of congestion controls, and that of their options.

use crate::action::{Policy, Priority, Window};
use crate::event::{Ack, Cx, Lost, ProbeEvent, Sent, Signal, Start, Transmit};
use crate::rules::SharedRules;
use core::fmt;

/// A named set of options: how a text can be read as a whole.
#[derive(Clone, Copy, Debug)]
pub struct Reading<C> {
    /// Name in files: `cc = { name = "peach", reading = "listing" }`.
    pub name: &'static str,
    /// What it follows, with the place in the paper.
    pub about: &'static str,
    /// Its options.
    pub options: fn() -> C,
}

/// The options of a control, as a scenario file gives them.
pub trait ControlOptions: Sized + 'static {
    /// Named sets of these options. The papers on a control may be silent on some points and contradict themselves on
    /// others; each such point is an option, and what a text says as a whole is a set of options.
    const READINGS: &'static [Reading<Self>] = &[];
    /// A connection starts by slow start, at most doubling its window in a round trip; otherwise it may start faster.
    const SLOW_START: bool = false;

    /// The reading of that name, if there is one.
    #[must_use]
    fn reading(name: &str) -> Option<Self> {
        Self::READINGS.iter().find(|r| r.name == name).map(|r| (r.options)())
    }

    /// The control, in a box: [`Algorithm`](crate::Algorithm) then has the size of a pointer and its tag, and a connection
    /// allocates memory for its own algorithm, not for the largest.
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

    /// The time set with [`Actions::wake_at`](crate::Actions::wake_at) has come.
    fn on_wake(&mut self, _cx: &mut Cx<'_>) {}

    /// The bandwidth estimate of the control, if it has one: a rate of payload, in full segments of `smss` bytes.
    fn bandwidth_estimate(&self, _smss: u32) -> Option<skyhaul_base::Rate> {
        None
    }

    /// Internal variables for traces, by name.
    fn telemetry(&self, _out: &mut dyn FnMut(&'static str, f64)) {}
}

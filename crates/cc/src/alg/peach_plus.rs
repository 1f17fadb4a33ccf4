//! TCP-Peach+.
//!
//! *Idea*: TCP-Peach whose probes are useful. A *NIL* segment is low-priority like a dummy but carries data not yet
//! acknowledged, in turn: where it arrives it may fill a hole, and its answer tells of a free slot all the same.
//! A connection starts by spreading `rwnd - 1` of them over the first RTT (Jump Start). After a loss the window is
//! halved once for the whole window of data; while the pipe is too full for data, each acknowledgement clocks out
//! one NIL segment, at most half a window of them, and each that is answered opens the window by one (Quick Recovery).
//! *Source*: Akyildiz, Zhang, Fang, "TCP-Peach+: enhancement of TCP-Peach for satellite IP networks", IEEE
//! Communications Letters 6(7), 2002 — cited as \[Peach+\]; what it takes over from TCP-Peach is cited as \[Peach\].
//! Where the letter is silent or contradicts itself, the choice is a numbered resolution `Q n` and a named option:
//!
//! - Q1 The loop of Fig. 3 has no wait: it is run once per received acknowledgement.
//! - Q2 `adsn` falls when a NIL segment is sent and again when one is answered (text and figure agree): so it is,
//!   not below zero; `nil-ack-decrements = false` counts only those sent.
//! - Q3 A partial acknowledgement subtracts what it acknowledges, so the counter keeps the lost original for ever:
//!   `pipe = "counter"` subtracts that one too (as ns-2 does), `"counter-literal"` does not, and the default
//!   `"rfc6675"` recomputes the pipe from the scoreboard.
//! - Q4 `amountacked` also covers what answers to NIL segments report; counted once, when first reported.
//! - Q5 The letter has no guard: answers count from the first on, so a bottleneck that idles while no data is sent
//!   restores the window after congestion too. `guard = "peach"` brings TCP-Peach's `wdsn` back.
//! - Q6 `HighData` is the end of everything ever sent when the loss is found.
//! - Q7 "round = 64" is read as rwnd = 64.
//! - Q8 No NIL segment while the application has nothing to send; the figure does not ask: `nil-without-data = true`.
//! - Q9 A peer that does not answer turns the control into Reno, as with TCP-Peach.
//! - Q10 The retransmission timer restarts when `SND.UNA` advances or a retransmission of it leaves (the sender's
//!   rule). The letter resets it "whenever a SACK arrives" (§I-C): `retransmit-timer = "every-sack"`, by which
//!   duplicates could postpone a timeout for ever, or `"new-sack"`, by which they do not.
//! - Q11 A NIL segment that filled a hole is still overhead; how many did is the variable `repaired`.
//! - Q12 Fig. 1 lowers `Q` unless the last of the queue is acknowledged, and `i mod Q` jumps when packets leave it:
//!   read as a round robin over what is not acknowledged, from the oldest on.
//!
//! The letter line by line is `pipe = "counter-literal"` with `retransmit-timer = "every-sack"` and `nil-without-data =
//! true`; the default counts by the scoreboard and keeps the sender's timer.
//!
//! Two more where the figure leaves a choice: `pipe` starts at FlightSize less what the duplicates report, the
//! figure's `2*cwnd - ndupacks` when the old window was even and in full use; and `maxburst` limits every
//! acknowledgement (the letter's definition), not only those within Quick Recovery (its figure).

mod config;

pub use config::{Config, Guard, Invalid, Opening, PipeRule, RetransmitTimer};

use crate::CongestionControl;
use crate::action::{Policy, RecoveryMode, Window};
use crate::alg::reno::{self, Reno};
use crate::event::{Ack, Cx, Path, ProbeEvent, Signal, Start, Transmit};
use crate::parts::fallback::{FallsBack, WithFallback};
use crate::parts::probed_window::ProbedWindow;
pub use crate::parts::probed_window::WdsnOnRestart;
use crate::rules::SharedRules;

/// TCP-Peach+; Reno if the peer does not answer NIL segments (Q9).
pub type PeachPlus = WithFallback<TcpPeachPlus, Reno>;

/// TCP-Peach+ with a peer that answers NIL segments.
#[derive(Clone, Debug)]
pub struct TcpPeachPlus {
    /// Window, `adsn`, and `wdsn` (only with the guard of TCP-Peach); Jump Start.
    win: ProbedWindow,
    /// NIL segments that delivered data.
    repaired: u32,
    config: Config,
}

impl PeachPlus {
    /// A TCP-Peach+ control under the endpoint's window rules.
    #[must_use]
    pub fn new(config: &Config, rules: impl Into<SharedRules>) -> Self {
        let win = ProbedWindow::new(config.window(), rules.into());
        TcpPeachPlus { win, repaired: 0, config: config.clone() }.into()
    }
}

impl FallsBack<Reno> for TcpPeachPlus {
    fn afresh(&self) -> Reno {
        Reno::new(&reno::Config::default(), self.win.rules(), RecoveryMode::Sack)
    }
    fn continued(&self, path: &Path) -> Reno {
        let mut reno = self.afresh();
        reno.take_over(self.win.for_reno(path), self.win.infl);
        reno
    }
}

impl CongestionControl for TcpPeachPlus {
    #[inline]
    fn window(&self) -> Window {
        self.win.window()
    }

    fn policy(&self) -> Policy {
        Policy {
            pipe: self.config.pipe(),
            timer_restart: self.config.timer(),
            max_burst: self.config.max_burst,
            probes: true,
            transmit_events: true,
            rtt_samples: false,
            ..Policy::default()
        }
    }

    fn on_start(&mut self, cx: &mut Cx<'_>, start: &Start) {
        self.win.start(cx, start);
    }

    #[inline(always)]
    fn on_ack(&mut self, cx: &mut Cx<'_>, ack: &Ack) {
        self.win.grow(cx, ack);
    }

    fn on_probe(&mut self, cx: &mut Cx<'_>, event: ProbeEvent) {
        let ProbeEvent::Acked { count, stale, newly_acked } = event else { return };
        self.repaired += u32::from(newly_acked > 0);
        if stale && self.config.strict_epoch {
            return;
        }
        let free = self.win.free_slots(count);
        self.win.open(cx.path, free);
        if self.config.nil_ack_decrements {
            self.win.adsn = self.win.adsn.saturating_sub(count);
        }
    }

    fn on_congestion(&mut self, cx: &mut Cx<'_>, signal: Signal) {
        let half = self.win.halve(cx);
        self.win.wdsn = 0;
        if signal == Signal::Ecn {
            return; // An ECN echo halves without probing, as in TCP-Peach (R21).
        }
        let mut adsn = half;
        if self.config.guard == Guard::Peach {
            (adsn, self.win.wdsn) = (2 * half, half);
        }
        if self.config.quick_recovery {
            self.win.allow(cx.path, adsn);
        }
    }

    fn on_recovered(&mut self, _cx: &mut Cx<'_>) {
        self.win.adsn = 0;
    }

    fn on_timeout(&mut self, cx: &mut Cx<'_>, backoff: u32) {
        self.win.timeout(cx, backoff);
    }

    fn on_undo(&mut self, cx: &mut Cx<'_>) {
        self.win.undo(cx);
    }

    #[inline]
    fn wants_transmit(&self) -> bool {
        self.win.adsn > 0
    }

    fn on_transmit(&mut self, cx: &mut Cx<'_>, transmit: &Transmit) {
        // One per acknowledgement that released no data (Fig. 3).
        self.win.clock_out(cx, transmit, transmit.sent == 0, 1);
    }

    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        self.win.silence(cx.path);
    }

    fn telemetry(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("wdsn", f64::from(self.win.wdsn));
        out("adsn", f64::from(self.win.adsn));
        out("repaired", f64::from(self.repaired));
    }
}

#[cfg(test)]
mod tests;

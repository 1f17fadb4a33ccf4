//! TCP-Peach+.
//!
//! *Idea*: TCP-Peach with useful probes. A *NIL* segment has low priority like a dummy, but carries unacknowledged
//! data, taken in turn: it may fill a hole at the receiver, and its answer still shows spare capacity. A connection
//! starts by spreading `rwnd - 1` of them over the first RTT (Jump Start). After a loss the window is halved once per
//! window of data. While the pipe is too full for data, each acknowledgement clocks out one NIL segment, at most half a
//! window of them, and each answer opens the window by one (Quick Recovery). *Source*: Akyildiz, Zhang, Fang,
//! "TCP-Peach+: enhancement of TCP-Peach for satellite IP networks", IEEE Communications Letters 6(7), 2002 — cited as
//! \[Peach+\]; parts taken over from TCP-Peach are cited as \[Peach\]. Where the letter is silent or contradicts
//! itself, the choice is a numbered resolution `Q n` and a named option:
//!
//! - Q1 The loop of Fig. 3 does not wait: it runs once per received acknowledgement.
//! - Q2 `adsn` is decreased when a NIL segment is sent and again when one is answered (text and figure agree), but not
//!   below zero; `nil-ack-decrements = false` counts only those sent.
//! - Q3 A partial acknowledgement subtracts what it acknowledges, so the counter never loses the lost original: `pipe =
//!   "counter"` subtracts it too (as ns-2 does), `"counter-literal"` does not, and the default `"rfc6675"` recomputes
//!   the pipe from the scoreboard.
//! - Q4 `amountacked` includes what answers to NIL segments report, counted once, when first reported.
//! - Q5 The letter has no guard: every answer counts, so a bottleneck that idles while no data is sent restores the
//!   window even after congestion. `guard = "peach"` restores TCP-Peach's `wdsn`.
//! - Q6 `HighData` is the end of everything ever sent when the loss is found.
//! - Q7 "round = 64" is read as rwnd = 64.
//! - Q8 No NIL segment is sent while the application has nothing to send; the figure has no such condition:
//!   `nil-without-data = true`.
//! - Q9 With a peer that does not answer, the control is Reno, as with TCP-Peach.
//! - Q10 The retransmission timer restarts when `SND.UNA` advances or a retransmission of it leaves (the sender's
//!   rule). The letter resets it "whenever a SACK arrives" (§I-C): `retransmit-timer = "every-sack"`, with which
//!   duplicates could postpone a timeout indefinitely, or `"new-sack"`, with which they do not.
//! - Q11 A NIL segment that filled a hole still counts as overhead; the variable `repaired` counts them.
//! - Q12 Fig. 1 decreases `Q` unless the last packet of the queue is acknowledged, and `i mod Q` jumps when packets
//!   leave it. It is read as a round robin over the unacknowledged packets, starting with the oldest.
//!
//! The letter, taken line by line, is `pipe = "counter-literal"` with `retransmit-timer = "every-sack"` and
//! `nil-without-data = true`. The default uses the scoreboard and the sender's own timer rule.
//!
//! Two further choices: `pipe` starts at FlightSize minus what the duplicates report, which is the figure's `2*cwnd -
//! ndupacks` if the old window was even and fully used; and `maxburst` limits every acknowledgement (the letter's
//! definition), not only those within Quick Recovery (its figure).

mod config;

pub use config::{Config, Guard, Invalid, Opening, PipeRule, RetransmitTimer};

use crate::action::{Policy, RecoveryMode, Window};
use crate::alg::reno::{self, Reno};
use crate::control::CongestionControl;
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

//! TCP-Peach+.
//!
//! *Idea*: TCP-Peach with useful probes. A *NIL* segment has low priority like a dummy, but carries unacknowledged
//! data: it may fill a hole at the receiver, and its answer still shows spare capacity. A connection
//! starts by spreading `rwnd - 1` of them over the first RTT (Jump Start). After a loss the window is halved once per
//! window of data. While the pipe is too full for data, each acknowledgement clocks out one NIL segment, at most half a
//! window of them, and each answer opens the window by one (Quick Recovery). *Source*: Akyildiz, Zhang, Fang,
//! "TCP-Peach+: enhancement of TCP-Peach for satellite IP networks", IEEE Communications Letters 6(7), 2002 — cited as
//! \[Peach+\]; parts taken over from TCP-Peach are cited as \[Peach\]. Where the letter is silent or contradicts itself, the
//! choice is a numbered resolution `Q n` (see `docs/algorithms/peach-plus.md`) and, where it can be made otherwise, a named
//! option of [`Config`].

mod config;

pub use config::{Config, Guard, Invalid, NilPick, Opening, PipeRule, PipeStart, RetransmitTimer};

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

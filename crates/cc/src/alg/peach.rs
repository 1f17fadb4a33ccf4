//! TCP-Peach.
//!
//! *Idea*: on a path with a long RTT, probe the network instead of waiting. A connection starts by spreading `rwnd - 1`
//! low-priority *dummy* segments over the first RTT (Sudden Start); each answer shows spare capacity and opens the
//! window by one. After a loss the window is halved as usual, and during the recovery the sender sends as many dummies
//! as the old window had segments (Rapid Recovery). If the network is congested, about half of the dummies are dropped;
//! since the first `wdsn` answers do not count, the window stays halved, as with Reno. If the loss was a link error,
//! all dummies are answered and the window is restored within two RTTs. *Source*: Akyildiz, Morabito, Palazzo,
//! "TCP-Peach: a new congestion control scheme for satellite IP networks", IEEE/ACM Trans. Networking 9(3), 2001 —
//! cited as \[Peach\]. The sender contains no code specific to Peach: dummies are its general low-priority probes.
//! Where the paper is silent or contradicts itself, the choice is a numbered resolution `R n` (see
//! `docs/algorithms/peach.md`) and a named option of [`Config`].

mod avoidance;
mod config;

pub use config::{
    Config, Dummies, DummyAcksInRecovery, FinalAck, Invalid, LeftoverAdsn, Nackseg, Opening, TcpVariant,
    WdsnOnLoss,
};

use crate::action::{Policy, RecoveryEnd, Window};
use crate::alg::reno::{self, Reno};
use crate::control::CongestionControl;
use crate::event::{Ack, AckKind, Cx, Path, Phase, ProbeEvent, Signal, Start, Transmit};
use crate::parts::fallback::{FallsBack, WithFallback};
use crate::parts::probed_window::ProbedWindow;
pub use crate::parts::probed_window::WdsnOnRestart;
use crate::rules::SharedRules;
use alloc::boxed::Box;
use avoidance::Vegas;

/// TCP-Peach; the configured Reno if the peer does not answer dummies \[Peach §III-A\].
pub type Peach = WithFallback<TcpPeach, Reno>;

/// TCP-Peach with a peer that answers dummies.
#[derive(Clone, Debug)]
pub struct TcpPeach {
    /// Window, `wdsn` and `adsn`; Sudden Start.
    win: ProbedWindow,
    /// The window is inflated in recovery, because `nackseg` is FlightSize (R9).
    inflates: bool,
    /// Acknowledgements that release data clock out dummies, too (R9).
    every_ack: bool,
    /// The recovery has ended, and the send loop runs before the inflation is removed (R17).
    inflated_still: bool,
    /// The parts taken from Vegas, if any (R28).
    vegas: Option<Box<Vegas>>,
    config: Config,
}

impl TcpPeach {
    fn deflate(&mut self) {
        self.win.infl.end(&mut self.win.cwnd);
        self.inflated_still = false;
    }
}

impl Peach {
    /// A TCP-Peach control under the endpoint's window rules.
    #[must_use]
    pub fn new(config: &Config, rules: impl Into<SharedRules>) -> Self {
        let proper = TcpPeach {
            win: ProbedWindow::new(config.window(), rules.into()),
            inflates: !config.by_pipe(),
            every_ack: config.dummies == Dummies::EveryAck,
            inflated_still: false,
            vegas: Vegas::of(config).map(Box::new),
            config: config.clone(),
        };
        proper.into()
    }
}

impl FallsBack<Reno> for TcpPeach {
    fn afresh(&self) -> Reno {
        Reno::new(&reno::Config::default(), self.win.rules(), self.config.recovery)
    }
    /// \[Peach §III-B\]: the sender stops sending dummies and uses TCP-Reno.
    fn continued(&self, path: &Path) -> Reno {
        let mut reno = self.afresh();
        reno.take_over(self.win.for_reno(path), self.win.infl);
        reno
    }
}

impl CongestionControl for TcpPeach {
    #[inline]
    fn window(&self) -> Window {
        self.win.window()
    }

    fn policy(&self) -> Policy {
        Policy {
            recovery: self.config.recovery,
            recovery_end: if self.config.rapid_recovery {
                self.config.recovery_end
            } else {
                RecoveryEnd::AllOutstanding
            },
            gate_on_flight: self.config.recovery.uses_pipe() && self.inflates,
            probes: true,
            transmit_events: true,
            rtt_samples: self.vegas.is_some(),
            watch_head: self.config.fast_retransmit == TcpVariant::Vegas,
            ..Policy::default()
        }
    }

    fn on_start(&mut self, cx: &mut Cx<'_>, start: &Start) {
        self.win.start(cx, start);
        if let Some(vegas) = &mut self.vegas {
            vegas.restart(cx.now, 0.0);
        }
    }

    #[inline(always)]
    fn on_ack(&mut self, cx: &mut Cx<'_>, ack: &Ack) {
        let advances = match &mut self.vegas {
            None => self.win.grow(cx, ack),
            Some(vegas) => vegas.on_ack(cx, ack, &mut self.win),
        };
        if advances || !self.inflates || cx.path.phase != Phase::Recovery {
            return;
        }
        match ack.kind {
            // Each acknowledgement inflates, including the final one (R17): the figures peak at 42.
            AckKind::Duplicate { .. } | AckKind::Full => self.win.infl.add(&mut self.win.cwnd, 1.0),
            AckKind::Partial => self.win.infl.partial(&mut self.win.cwnd, ack.acked),
            AckKind::New => {}
        }
    }

    fn on_probe(&mut self, cx: &mut Cx<'_>, event: ProbeEvent) {
        let ProbeEvent::Acked { count, stale, .. } = event else { return };
        let in_recovery = cx.path.phase == Phase::Recovery;
        let ignored = in_recovery && self.config.dummy_acks_in_recovery == DummyAcksInRecovery::Ignore;
        if ignored || (stale && self.config.strict_epoch) {
            return;
        }
        let free = self.win.free_slots(count);
        if !in_recovery {
            self.win.open(cx.path, free);
        } else {
            // \[Peach\] Fig. 4 adds one for each answer beyond `wdsn` inside the loop, too, and takes it back at the end (R16).
            self.win.infl.add(&mut self.win.cwnd, free);
        }
    }

    fn on_congestion(&mut self, cx: &mut Cx<'_>, signal: Signal) {
        if self.inflated_still {
            self.deflate(); // What is halved is the window proper.
        }
        let half = self.win.halve(cx);
        if signal == Signal::Ecn {
            return; // R21: an ECN echo halves without dummies.
        }
        if let Some(vegas) = &mut self.vegas {
            vegas.lost(cx.path);
        }
        if self.inflates && self.config.inflate_ndup > 0.0 {
            self.win.infl.add(&mut self.win.cwnd, self.config.inflate_ndup);
        }
        self.win.wdsn = match self.config.wdsn_on_loss {
            WdsnOnLoss::Overwrite => half,
            WdsnOnLoss::Accumulate => self.win.wdsn.saturating_add(half),
        };
        if self.config.rapid_recovery {
            self.win.allow(cx.path, 2 * half);
        }
    }

    fn on_recovered(&mut self, cx: &mut Cx<'_>) {
        if let Some(vegas) = &mut self.vegas {
            vegas.restart(cx.now, cx.path.in_flight());
        }
        match self.config.final_ack {
            FinalAck::DeflateFirst => self.deflate(),
            FinalAck::SendFirst => self.inflated_still = true,
        }
        if self.config.leftover_adsn == LeftoverAdsn::Drop {
            self.win.adsn = 0;
        }
    }

    fn on_timeout(&mut self, cx: &mut Cx<'_>, backoff: u32) {
        self.inflated_still = false;
        self.win.timeout(cx, backoff);
        if let Some(vegas) = &mut self.vegas {
            vegas.restart(cx.now, 0.0);
        }
    }

    fn on_undo(&mut self, cx: &mut Cx<'_>) {
        self.inflated_still = false;
        self.win.undo(cx);
    }

    #[inline]
    fn wants_transmit(&self) -> bool {
        self.win.adsn > 0 || self.inflated_still
    }

    fn on_transmit(&mut self, cx: &mut Cx<'_>, transmit: &Transmit) {
        if self.inflated_still {
            self.deflate();
        }
        // Two dummies per acknowledgement (Fig. 4).
        self.win.clock_out(cx, transmit, self.every_ack || transmit.sent == 0, 2);
    }

    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        self.win.silence(cx.path);
    }

    fn telemetry(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("wdsn", f64::from(self.win.wdsn));
        out("adsn", f64::from(self.win.adsn));
        if let Some(vegas) = &self.vegas {
            out("queued", vegas.queued());
            out("base_rtt", vegas.base_rtt());
        }
    }
}

#[cfg(test)]
mod tests;

//! The parts that TCP-Peach may take from TCP Vegas: "the Congestion Avoidance and Fast Retransmit algorithms may
//! be those proposed either in TCP-Reno or by TCP-Vegas" \[Peach §III\] (R28).

use super::{Config, TcpVariant};
use crate::event::{Ack, AckKind, Cx, Path, Phase};
use crate::parts::backlog::Backlog;
use crate::parts::fine_timeout::FineTimeout;
use crate::parts::probed_window::ProbedWindow;
use skyhaul_base::Instant;

/// Segments queued, below which the window grows and above which it shrinks: the values of ns-2's Vegas.
const ALPHA: f64 = 1.0;
const BETA: f64 = 3.0;

/// Congestion avoidance, Fast Retransmit, or both, of TCP Vegas.
#[derive(Clone, Debug)]
pub(super) struct Vegas {
    avoids: bool,
    retransmits: bool,
    backlog: Backlog,
    fine: FineTimeout,
    /// Growth per acknowledgement in this round, segments.
    step: f64,
    /// Segments queued at the end of the last round.
    queued: f64,
}

impl Vegas {
    /// The parts selected by the options; `None` if there are none.
    pub(super) fn of(config: &Config) -> Option<Self> {
        let (avoids, retransmits) =
            (config.avoidance == TcpVariant::Vegas, config.fast_retransmit == TcpVariant::Vegas);
        (avoids || retransmits).then(|| Self {
            avoids,
            retransmits,
            backlog: Backlog::default(),
            fine: FineTimeout::default(),
            step: 0.0,
            queued: f64::NAN,
        })
    }

    /// A round begins with this much outstanding: at a start, after a timeout, or at the end of a recovery.
    pub(super) fn restart(&mut self, now: Instant, flight: f64) {
        self.backlog.begin(now, flight);
        self.step = 0.0;
    }

    /// `on_ack`. True if the acknowledgement advances outside of recovery.
    ///
    /// Inlined with its callees: a call would need all facts of an acknowledgement in memory, even if nothing is
    /// taken from Vegas.
    #[inline(always)]
    pub(super) fn on_ack(&mut self, cx: &mut Cx<'_>, ack: &Ack, win: &mut ProbedWindow) -> bool {
        if let AckKind::Duplicate { .. } = ack.kind {
            let overdue = cx.path.head.is_some_and(|h| self.fine.expired(h.age));
            cx.act.retransmit_head |= self.retransmits && cx.path.phase == Phase::Open && overdue;
            return false;
        }
        self.backlog.acked(ack.acked);
        let advances = ProbedWindow::advances(cx, ack);
        if !self.avoids || win.cwnd < win.ssthresh {
            // Slow start is not taken from Vegas.
            win.grow(cx, ack);
        } else if advances {
            self.avoid(cx, ack, win);
        }
        if let Some(rtt) = ack.rtt {
            self.backlog.sample(rtt);
            self.fine.sample(rtt);
        }
        advances
    }

    #[inline(always)]
    fn avoid(&mut self, cx: &Cx<'_>, ack: &Ack, win: &mut ProbedWindow) {
        if self.backlog.is_over() {
            if let Some(queued) = self.backlog.queued(cx.now, cx.path) {
                self.queued = queued;
                self.step = 0.0;
                if queued > BETA {
                    win.cwnd = (win.cwnd - 1.0).max(win.cwnd.min(2.0));
                } else if queued < ALPHA {
                    self.step = 1.0 / win.cwnd;
                }
            }
            self.backlog.begin(cx.now, cx.path.in_flight());
        }
        // No growth if the data in flight is more than two segments short of the window.
        if self.step > 0.0 && ack.cwnd_limited && win.cwnd - (cx.path.in_flight() + 1.0) <= 2.0 {
            win.grow_to(cx.path, win.cwnd + self.step);
        }
    }

    /// The head was found lost and is retransmitted: the fine-grained timeout backs off.
    pub(super) fn lost(&mut self, path: &Path) {
        self.fine.back_off(path.head.is_some_and(|h| h.retransmissions > 0));
    }

    /// Segments queued at the end of the last round; NaN before the first.
    pub(super) fn queued(&self) -> f64 {
        self.queued
    }

    /// RTT of the path without queues, s; NaN before the first sample.
    pub(super) fn base_rtt(&self) -> f64 {
        self.backlog.base_rtt()
    }
}

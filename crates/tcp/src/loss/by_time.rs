//! Loss detection by time: RACK, its tail loss probe, and the timer that they share.

use super::Board;
use super::rack::Rack;
use super::tlp::Tlp;
use crate::config::Config;
use crate::timer::{Timer, Timers};
use skyhaul_base::Instant;

/// RACK and its tail loss probe.
#[derive(Clone, Debug)]
pub(crate) struct ByTime {
    pub(crate) rack: Rack,
    pub(crate) tlp: Tlp,
    /// Losses are found by the receiver's SNACKs (SCPS-TP), not by time.
    pub(crate) by_snack: bool,
    /// [`Timer::Loss`] is waiting for a tail loss probe, not for the reordering window.
    pub(crate) waits_for_probe: bool,
}

impl ByTime {
    pub(crate) fn new(config: &Config, by_snack: bool) -> Self {
        Self { rack: Rack::new(config), tlp: Tlp::NEW, by_snack, waits_for_probe: false }
    }

    /// Sets the reordering timer to `due`. `None` stops it, unless [`Timer::Loss`] is waiting for a tail loss probe.
    pub(crate) fn settle(&mut self, due: Option<Instant>, timers: &mut Timers) {
        if due.is_some() || !self.waits_for_probe {
            timers.set(Timer::Loss, due.unwrap_or(Instant::MAX));
            self.waits_for_probe = false;
        }
    }

    /// A recovery begins and takes over the outstanding tail loss probe (§7.1).
    pub(crate) fn begin_recovery(&mut self, timers: &mut Timers) {
        self.tlp.reset();
        if self.waits_for_probe {
            timers.stop(Timer::Loss);
        }
    }

    /// The retransmission timer expired; `keep` and `all` as in [`Rack::timeout`].
    pub(crate) fn time_out(
        &mut self,
        board: &mut Board,
        timers: &mut Timers,
        now: Instant,
        keep: bool,
        all: bool,
    ) {
        self.rack.timeout(board.ensure_scoreboard(), now, keep, all);
        self.rack.take_lost_again();
        timers.stop(Timer::Loss);
        self.tlp.reset();
    }
}

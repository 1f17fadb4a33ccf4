//! Losses that the congestion control does not hear of: the sender takes them for errors of the channel, they are probes that
//! may have been too long, or the control has reduced for their window since a router had marked it. They are repaired
//! *quietly*, in a recovery of which the control knows nothing.
//!
//! While a recovery is quiet the control sees no more than acknowledgements outside of one: it does not cut, and may grow.
//! What leaves meanwhile the sender decides by itself: by the scoreboard's pipe where the control repairs by that, and
//! otherwise by a window that each duplicate inflates, as fast recovery does. The first further loss that is taken for
//! congestion ends the quiet: the control hears of it as at the beginning of a recovery.

use super::ack::{Arrival, Taken};
use super::{Engine, Phase, Sender, Sign};
use crate::loss::classifier::{Arrived, Verdict};
use crate::loss::scoreboard::Item;
use crate::segment::Seq;
use crate::store::Store;
use alloc::vec::Vec;
use skyhaul_base::Instant;
use skyhaul_cc::{CongestionControl, RecoveryMode, Signal};

impl<S: Store> Sender<S> {
    /// Somebody who sees the links knows that a packet with `len` bytes at sequence number `seq` was lost, and whether it is to
    /// be taken for an error of the channel. Heard only by the classifier that is an oracle.
    pub fn tell_loss(&mut self, seq: Seq, len: u32, error: bool) {
        let una = self.engine.board.una();
        let Some(from) = seq.unwrap(una, Seq(una as u32)) else { return };
        if let Some(classifier) = self.engine.classifier_mut() {
            classifier.told(from, from + u64::from(len), error);
        }
    }
    /// Losses have been classified since [`Self::take_verdicts`].
    #[inline]
    #[must_use]
    pub fn has_verdicts(&self) -> bool {
        self.engine.classifier().is_some_and(|c| c.has_verdicts())
    }
    /// What became of the losses that were found since the last call: an observer that knows the truth can tell right from
    /// wrong.
    pub fn take_verdicts(&mut self) -> Vec<Verdict> {
        self.engine.classifier_mut().map_or_else(Vec::new, |c| c.take())
    }
}

impl<S: Store> Engine<S> {
    /// What an acknowledgement reports for the first time is shown to the classifier.
    pub(super) fn show_arrival(&mut self, now: Instant, a: &Arrival<'_>, t: &Taken) {
        let listens = self.classifier().is_some_and(|c| c.listens());
        if !listens || a.answer.is_some() {
            return;
        }
        let smss = self.space.smss;
        let arrived = if t.sacked > 0 {
            let Some(&(from, to)) = a.blocks.get(usize::from(t.dsack)) else { return };
            let from = from.max(to.saturating_sub(t.sacked));
            let newest = self.board.scoreboard().and_then(|s| s.containing(to - 1));
            let rtt = newest.filter(|i| i.rtx_count == 0).map(|i| now - i.last_sent);
            Arrived { from, to, rtt }
        } else if t.advanced {
            Arrived { from: t.ack - t.acked.bytes, to: t.ack, rtt: t.rtt }
        } else if t.duplicate {
            // Without selective information: one more segment beyond the one that is missing.
            let to = self.board.una() + u64::from(smss) * u64::from(self.dupacks + 1);
            Arrived { from: to - u64::from(smss), to, rtt: None }
        } else {
            return;
        };
        if let Some(classifier) = self.classifier_mut() {
            classifier.arrived(now, smss, &arrived);
        }
    }

    /// A loss was found: is it taken for an error of the channel?
    pub(super) fn takes_for_error(&mut self, (offset, transmissions): (u64, u32)) -> bool {
        let (una, smss) = (self.board.una(), self.space.smss);
        self.classifier_mut().is_some_and(|c| c.is_error(una, smss, (offset, transmissions)))
    }

    /// A recovery is about to begin with the first loss: does it begin quietly?
    pub(super) fn begins_quietly(&mut self, signal: Signal) -> bool {
        let marked = self.marked_until();
        let nobody = self.classifier().is_none() && self.mtu_search().is_none() && marked == 0;
        if nobody || signal != Signal::Loss {
            return false;
        }
        let first = self.first_lost().and_then(|i| self.board.item(i));
        if first
            .is_some_and(|i| i.seq < self.mtu_probe_lost_until() || self.end_of_mtu_probe(i.seq).is_some())
        {
            // RFC 4821 §7.5: a probe that is lost alone is no sign of congestion.
            return true;
        }
        if first.map_or(self.board.una(), |i| i.seq) < marked {
            return true;
        }
        first.is_some_and(|i| self.takes_for_error((i.seq, i.rtx_count + 1)))
    }

    /// The control has reduced for what lies before this, since a router had marked some of it (RFC 3168 §6.1.2); 0 if it
    /// never has.
    pub(super) fn marked_until(&self) -> u64 {
        self.repair.as_ref().map_or(0, |r| r.marked_until)
    }

    /// Within a quiet recovery: further losses that this acknowledgement reveals.
    pub(super) fn listen_again(&mut self, now: Instant, partial: bool) {
        if !self.quiet || self.phase != Phase::Recovery {
            return;
        }
        let by_scoreboard = self.sack && self.mode().uses_pipe();
        loop {
            let asked = self.classifier().map_or(0, |c| c.asked()).max(self.marked_until());
            let asked = asked.max(self.mtu_probe_lost_until());
            let next: Option<Item> = if by_scoreboard {
                self.board.scoreboard().and_then(|s| s.lost_from(asked))
            } else {
                // RFC 6582: a partial acknowledgement reveals that the next segment is missing as well.
                self.board.head().filter(|h| partial && h.seq >= asked)
            };
            let Some(item) = next else { return };
            let segment = (item.seq, item.rtx_count + 1);
            if !self.takes_for_error(segment) {
                self.end_quiet(now, segment);
                return;
            }
        }
    }

    /// The control hears of the recovery in progress, because of this segment.
    fn end_quiet(&mut self, now: Instant, segment: (u64, u32)) {
        let path = self.path(now);
        self.judge_segment(now, &path, Sign::Acks, segment, |cc, cx| cc.on_congestion(cx, Signal::Loss));
        self.quiet = false;
        self.prober.begin_epoch();
        match self.mode() {
            RecoveryMode::Tahoe => {
                self.phase = Phase::Open;
                self.recover = self.board.max();
                self.go_back(now, true);
            }
            RecoveryMode::Prr => {
                let flight = self.board.span();
                self.begin_prr(flight);
            }
            RecoveryMode::Reno | RecoveryMode::NewReno | RecoveryMode::Sack => {}
        }
    }

    /// What duplicates and partial acknowledgements do to the window of a quiet recovery without a scoreboard: a duplicate
    /// reports that a segment has left the network, a partial acknowledgement covers those again (RFC 6582 §3.2).
    #[inline]
    pub(super) fn inflate_quietly(&mut self, t: &Taken) {
        if !self.quiet {
            return;
        }
        let smss = u64::from(self.space.smss);
        let inflation = &mut self.repair().inflation;
        if t.duplicate {
            *inflation += smss;
        } else if t.advanced {
            *inflation = inflation.saturating_sub(t.acked.bytes) + smss;
        }
    }

    /// Bytes that the window of a quiet recovery without a scoreboard is inflated by.
    pub(super) fn quiet_inflation(&self) -> u64 {
        let by_pipe = self.sack && self.mode().uses_pipe();
        if by_pipe { 0 } else { self.repair.as_ref().map_or(0, |r| r.inflation) }
    }
}

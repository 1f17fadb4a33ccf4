//! Losses that are not reported to the congestion control, for one of three reasons: the sender takes them for channel
//! errors; they are path MTU probes that may have been too long; or the control has already reduced for the same window
//! because of an ECN mark. Such losses are repaired *quietly*, in a recovery that is not reported to the control.
//!
//! During a quiet recovery, the control sees acknowledgements as outside of one: it does not reduce, and may grow.
//! The sender itself limits transmission: by the scoreboard's pipe if the control uses SACK recovery, otherwise by
//! a window that each duplicate ACK inflates, as in fast recovery. The first further loss taken for congestion ends
//! the quiet recovery: the control is informed as at the start of a recovery.

use super::ack::{AckEffect, Arrival};
use super::state::{Recovery, Report, State};
use super::{CongestionSignal, Engine, Sender};
use crate::loss::classifier::{Arrived, Verdict};
use crate::loss::scoreboard::Item;
use crate::segment::Seq;
use crate::store::Store;
use alloc::vec::Vec;
use skyhaul_base::Instant;
use skyhaul_cc::{CongestionControl, RecoveryMode, Signal};

impl<S: Store> Sender<S> {
    /// Reports to the classifier that an observer of the links saw the loss of a packet with `len` bytes at sequence number
    /// `seq`, and whether the loss counts as a channel error. Only the oracle classifier uses this.
    pub fn tell_loss(&mut self, seq: Seq, len: u32, error: bool) {
        let una = self.engine.board.una();
        let Some(from) = seq.unwrap(una, Seq(una as u32)) else { return };
        if let Some(classifier) = self.engine.classifier_mut() {
            classifier.report(from, from + u64::from(len), error);
        }
    }
    /// Whether losses have been classified since [`Self::take_verdicts`].
    #[inline]
    #[must_use]
    pub fn has_verdicts(&self) -> bool {
        self.engine.classifier().is_some_and(|c| c.has_verdicts())
    }
    /// The verdicts on the losses found since the last call, for an observer that knows the true causes.
    pub fn take_verdicts(&mut self) -> Vec<Verdict> {
        self.engine.classifier_mut().map_or_else(Vec::new, |c| c.take())
    }
}

impl<S: Store> Engine<S> {
    /// Reports newly acknowledged data to the classifier.
    pub(super) fn show_arrival(&mut self, now: Instant, a: &Arrival<'_>, t: &AckEffect) {
        let listens = self.classifier().is_some_and(|c| c.listens());
        if !listens || a.answer.is_some() {
            return;
        }
        let smss = self.space.smss;
        let arrived = if t.sacked > 0 {
            // The block of the newest segment is the first one, or the second if the first reports a duplicate (RFC 2883).
            let Some(&(from, to)) = a.blocks.get(usize::from(t.dsack)) else { return };
            if from >= to || to > self.board.max() {
                // No such data was sent.
                return;
            }
            let from = from.max(to.saturating_sub(t.sacked));
            let newest = self.board.scoreboard().and_then(|s| s.containing(to - 1));
            let rtt = newest.filter(|i| i.rtx_count == 0).map(|i| now - i.last_sent);
            Arrived { from, to, rtt }
        } else if t.advanced {
            Arrived { from: t.ack - t.acked.bytes, to: t.ack, rtt: t.rtt }
        } else if t.duplicate {
            // Without SACK, a duplicate ACK stands for the next segment beyond the missing one.
            let to = self.board.una() + u64::from(smss) * u64::from(self.dupacks + 1);
            Arrived { from: to - u64::from(smss), to, rtt: None }
        } else {
            return;
        };
        if let Some(classifier) = self.classifier_mut() {
            classifier.arrived(now, smss, &arrived);
        }
    }

    /// Whether a detected loss counts as a channel error.
    pub(super) fn takes_for_error(&mut self, (offset, transmissions): (u64, u32)) -> bool {
        let (una, smss) = (self.board.una(), self.space.smss);
        self.classifier_mut().is_some_and(|c| c.is_error(una, smss, (offset, transmissions)))
    }

    /// Whether the recovery that is about to begin with the first loss is quiet.
    pub(super) fn begins_quietly(&mut self, signal: Signal) -> bool {
        let marked = self.marked_until();
        let no_reason = self.classifier().is_none() && self.mtu_search().is_none() && marked == 0;
        if no_reason || signal != Signal::Loss {
            return false;
        }
        let first = self.first_lost().and_then(|i| self.board.item(i));
        if first
            .is_some_and(|i| i.seq < self.mtu_probe_lost_until() || self.end_of_mtu_probe(i.seq).is_some())
        {
            // RFC 4821 §7.5: a probe that is lost alone is not a congestion signal.
            return true;
        }
        if first.map_or(self.board.una(), |i| i.seq) < marked {
            return true;
        }
        first.is_some_and(|i| self.takes_for_error((i.seq, i.rtx_count + 1)))
    }

    /// The offset up to which the control has reduced for data because some of it was ECN-marked (RFC 3168 §6.1.2); 0 if
    /// it never has.
    pub(super) fn marked_until(&self) -> u64 {
        self.repair.as_ref().map_or(0, |r| r.marked_until)
    }

    /// Classifies the further losses that an acknowledgement reveals during a quiet recovery; the first that is no channel
    /// error ends the quiet recovery. `partial`: it is a partial acknowledgement.
    pub(super) fn classify_further_losses(&mut self, now: Instant, partial: bool) {
        if !self.state.is_quiet() {
            return;
        }
        let by_scoreboard = self.sack && self.mode().uses_pipe();
        loop {
            let classified = self.classifier().map_or(0, |c| c.classified_until()).max(self.marked_until());
            let classified = classified.max(self.mtu_probe_lost_until());
            let next: Option<Item> = if by_scoreboard {
                self.board.scoreboard().and_then(|s| s.lost_from(classified))
            } else {
                // RFC 6582: a partial acknowledgement reveals that the next segment is missing, too.
                self.board.head().filter(|h| partial && h.seq >= classified)
            };
            let Some(item) = next else { return };
            let segment = (item.seq, item.rtx_count + 1);
            if !self.takes_for_error(segment) {
                self.end_quiet(now, segment);
                return;
            }
        }
    }

    /// Reports the recovery in progress to the control, because of the loss of `segment` (offset, transmissions).
    fn end_quiet(&mut self, now: Instant, segment: (u64, u32)) {
        let path = self.path(now);
        self.report_congestion_at(now, &path, CongestionSignal::Acks, segment, |cc, cx| {
            cc.on_congestion(cx, Signal::Loss)
        });
        if let Some(recovery) = self.state.recovery_mut() {
            recovery.report = Report::Notified;
        }
        self.prober.begin_epoch();
        match self.mode() {
            RecoveryMode::Tahoe => {
                self.state = State::Open;
                self.answered.until = self.board.max();
                self.go_back(now, true);
            }
            RecoveryMode::Prr => {
                self.begin_prr(0);
            }
            RecoveryMode::Reno | RecoveryMode::NewReno | RecoveryMode::Sack => {}
        }
    }

    /// Window inflation in a quiet recovery without a scoreboard: a duplicate ACK adds the segment that has left
    /// the network, a partial acknowledgement subtracts what it covers (RFC 6582 §3.2).
    #[inline]
    pub(super) fn inflate_quietly(&mut self, t: &AckEffect) {
        let smss = u64::from(self.space.smss);
        let Some(Recovery { report: Report::Quiet { inflation }, .. }) = self.state.recovery_mut() else {
            return;
        };
        if t.duplicate {
            *inflation += smss;
        } else if t.advanced {
            *inflation = inflation.saturating_sub(t.acked.bytes) + smss;
        }
    }

    /// Current window inflation of a quiet recovery without a scoreboard, bytes.
    pub(super) fn quiet_inflation(&self) -> u64 {
        let by_pipe = self.sack && self.mode().uses_pipe();
        match self.state.recovery() {
            Some(Recovery { report: Report::Quiet { inflation }, .. }) if !by_pipe => *inflation,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Peer, Sender};
    use super::*;
    use crate::config::{Config, LossClassifier};
    use crate::store::Counted;
    use alloc::sync::Arc;
    use skyhaul_base::{Duration, Rng};

    /// A sender with three segments of 1000 bytes outstanding, the first at offset 1, that classifies losses.
    fn classifying(loss_classifier: LossClassifier) -> Sender<Counted> {
        let config = Arc::new(Config { mss: 1000, loss_classifier, ..Config::rfc() });
        let cc = skyhaul_cc::Config::by_name("sack").expect("known").build(&config.rules);
        let mut s: Sender<Counted> = Sender::new(&config, cc, Rng::stream(1, "classifying"));
        let peer = Peer {
            mss: 1000,
            options: 0,
            window: 100_000,
            sack: true,
            snack: false,
            probes: false,
            rtt: None,
            rtt_is_sample: false,
            syn_repeated: false,
            syn_lost: false,
            early: 0,
        };
        s.start(Instant::ZERO, &peer);
        assert_eq!(s.write(Instant::ZERO, &[0; 3000], 3000), 3000);
        assert_eq!(core::iter::from_fn(|| s.poll(Instant::ZERO)).count(), 3);
        s
    }

    #[test]
    fn a_block_of_data_never_sent_is_no_arrival() {
        let methods = [
            LossClassifier::Spike { start: 0.5, end: 1.0 / 3.0 },
            LossClassifier::InterArrival { low: 1.0, high: 1.25 },
        ];
        for method in methods {
            for wrong in [(5, 0), (2001, 9001), (7, 7)] {
                let mut s = classifying(method);
                let now = Instant::ZERO + Duration::from_millis(100);
                let blocks = [wrong, (1001, 2001)];
                let arrival = Arrival { blocks: &blocks, ..Arrival::plain(1, 100_000, None) };
                s.acknowledge(now, &arrival).expect("of data that was sent");
                assert_eq!((s.engine.board.sacked(), s.has_verdicts()), (1000, false), "{wrong:?}");
            }
        }
    }
}

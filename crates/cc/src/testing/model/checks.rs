//! Invariants of every algorithm at every event, and the processing of its requests.

use super::Model;
use crate::event::{Phase, ProbeSupport};
use crate::{Actions, CongestionControl, Cx};
use alloc::format;
use skyhaul_base::Instant;

impl<C: CongestionControl> Model<C> {
    /// Raises one event on both instances and checks the result.
    pub(super) fn call(&mut self, name: &str, event: impl Fn(&mut C, &mut Cx<'_>)) {
        self.call_with(name, &event, &event);
    }

    /// As [`Self::call`], but the second instance does not get information that it did not ask for.
    pub(super) fn call_with(
        &mut self,
        name: &str,
        event: impl Fn(&mut C, &mut Cx<'_>),
        spared: impl Fn(&mut C, &mut Cx<'_>),
    ) {
        self.refresh();
        let before = self.stage.cwnd();
        let mut rng = self.stage.rng.clone();
        let mut theirs = Actions::default();
        let cx = &mut Cx { now: self.stage.now, path: &self.stage.path, rng: &mut rng, act: &mut theirs };
        spared(&mut self.twin, cx);
        let act = self.stage.call(event);

        let at = format!("{name} at operation {}: {:?}", self.step, self.stage.cc);
        assert_eq!(act, theirs, "not a function of its inputs: {at}");
        assert_eq!(
            format!("{:?}", self.stage.cc),
            format!("{:?}", self.twin),
            "not a function of its inputs: {at}"
        );
        self.check_window(name, before, &at);
        self.check_requests(&act, &at);
        self.carry_out(&act);
    }

    fn check_window(&mut self, name: &str, before: f64, at: &str) {
        let w = self.stage.cc.window();
        assert!(w.cwnd.is_finite() && w.cwnd >= 1.0, "cwnd {} in {at}", w.cwnd);
        assert!(w.ssthresh > 0.0, "ssthresh {} in {at}", w.ssthresh);
        if let Some(rate) = self.stage.cc.pacing() {
            assert!(rate.bits_per_sec() > 0, "a pacing rate of zero in {at}");
        }
        self.report.highest_cwnd = self.report.highest_cwnd.max(w.cwnd);
        // The initial window and reductions have their own minimum, and inflation is not growth. Windows of up to four
        // segments, the largest minimum of an algorithm (BBR), are admitted whatever the receive window is.
        let growth = !matches!(name, "on_start" | "on_congestion" | "on_timeout");
        if self.rules.cap_at_rwnd && growth && self.stage.path.phase != Phase::Recovery {
            let limit = before.max(self.stage.path.rwnd).max(4.0) + 1e-9;
            assert!(
                w.cwnd <= limit,
                "cwnd {} beyond the peer's window {} in {at}",
                w.cwnd,
                self.stage.path.rwnd
            );
        }
    }

    fn check_requests(&mut self, act: &Actions, at: &str) {
        let probes = act.probe_now.is_some() || act.train.is_some();
        assert!(
            !probes || self.stage.path.probes != ProbeSupport::No,
            "probes that cannot be answered in {at}"
        );
        assert!(!probes || self.policy.probes, "probes that the policy did not ask for in {at}");
        assert!(act.probe_now.is_none_or(|(_, n)| n > 0), "no probes at all in {at}");
        assert!(act.train.is_none_or(|t| t.count > 0), "an empty train in {at}");
        assert!(act.wake_at.is_none_or(|t| t >= self.stage.now), "a wake-up in the past in {at}");
        assert!(!act.retransmit_head || self.outstanding > 0, "nothing to retransmit in {at}");
    }

    fn carry_out(&mut self, act: &Actions) {
        if act.stop_probes {
            self.train = 0;
        }
        if let Some(train) = act.train {
            self.train = train.count;
            self.report.trains.push((self.stage.path.rwnd, train));
        }
        if let Some((_, n)) = act.probe_now {
            self.credit += n;
            if let Some(last) = self.report.recoveries.last_mut() {
                last.probes += n;
            }
        }
        if let Some(at) = act.wake_at {
            self.wake = (at < Instant::MAX).then_some(at);
        }
        self.retransmit_head |= act.retransmit_head;
        self.rewind |= act.rewind;
    }
}

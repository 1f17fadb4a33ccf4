//! The congestion control with what it has decided: read once after each event, compared with many times.

use super::space::Space;
use skyhaul_base::{Instant, Rate, Rng};
use skyhaul_cc::{Actions, Algorithm, CongestionControl, Cx, Facts, Path, Policy, Priority, Window};

/// A congestion control and its present decision.
#[derive(Debug)]
pub(crate) struct Control {
    pub(super) cc: Algorithm,
    /// Bytes that the congestion window admits.
    window: u64,
    /// Departure rate, if there is one.
    pacing: Option<Rate>,
    /// Its own random stream.
    rng: Rng,
    policy: Policy,
    /// The window admits `floor(cwnd · SMSS)` bytes instead of `floor(cwnd)` segments.
    byte_window: bool,
    /// The algorithm has to be asked about the priority of each segment.
    prioritises: bool,
}

impl Control {
    pub(super) fn new(cc: Algorithm, rng: Rng, byte_window: bool) -> Self {
        let policy = cc.policy();
        let mut control = Self { cc, window: 0, pacing: None, rng, policy, byte_window, prioritises: false };
        control.renew_policy();
        control
    }

    /// The mechanisms that it pins.
    #[inline]
    pub(super) fn policy(&self) -> &Policy {
        &self.policy
    }
    /// Asks for the policy again: at the moments that the trait names.
    pub(super) fn renew_policy(&mut self) {
        self.policy = self.cc.policy();
        // A user's own may forget to say so.
        self.prioritises = self.policy.low_priority_data || matches!(self.cc, Algorithm::Custom(_));
    }

    /// Bytes that the congestion window admits.
    #[inline]
    pub(super) fn window(&self) -> u64 {
        self.window
    }
    /// The departure rate of data.
    #[inline]
    pub(super) fn pacing(&self) -> Option<Rate> {
        self.pacing
    }
    /// `on_transmit` would do something now.
    #[inline]
    pub(super) fn listens_to_transmit(&self) -> bool {
        self.policy.transmit_events && self.cc.wants_transmit()
    }
    /// Whether a segment that starts `offset` bytes into the stream is of low priority.
    #[inline]
    pub(super) fn low_priority(&self, offset: u64, retransmission: bool) -> bool {
        self.prioritises && self.cc.priority(offset, retransmission) == Priority::Low
    }

    /// Reads the decision.
    #[inline(always)]
    pub(super) fn refresh(&mut self, space: &Space) {
        let decision = self.cc.decision();
        self.decided(decision, space);
    }

    /// Takes a decision over.
    #[inline(always)]
    fn decided(&mut self, (window, pacing): (Window, Option<Rate>), space: &Space) {
        let cwnd = window.cwnd;
        self.window = if self.byte_window {
            (cwnd * space.smss_f()) as u64
        } else {
            // Four billion segments are as good as infinitely many.
            u64::from(cwnd as u32) * u64::from(space.smss)
        };
        self.pacing = pacing;
    }

    /// Tells of an acknowledgement; what the algorithm asks for is added to `act`.
    #[inline(always)]
    pub(super) fn acknowledged(
        &mut self,
        now: Instant,
        space: &Space,
        act: &mut Actions,
        facts: &impl Facts,
    ) {
        let decision = self.cc.acknowledged((now, &mut self.rng, act), facts);
        self.decided(decision, space);
    }

    /// Tells of an event; what the algorithm asks for is added to `act`.
    #[inline(always)]
    pub(super) fn tell(
        &mut self,
        now: Instant,
        path: &Path,
        space: &Space,
        act: &mut Actions,
        event: impl FnOnce(&mut Algorithm, &mut Cx<'_>),
    ) {
        event(&mut self.cc, &mut Cx { now, path, rng: &mut self.rng, act });
        self.refresh(space);
    }
}

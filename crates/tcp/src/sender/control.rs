//! The congestion control and its decisions: read once after each event, used many times.

use super::space::Space;
use skyhaul_base::{Instant, Rate, Rng};
use skyhaul_cc::{Actions, Algorithm, CongestionControl, Cx, Facts, Path, Policy, Priority, Window};

/// A congestion control and its current decision.
#[derive(Debug)]
pub(crate) struct Control {
    pub(super) cc: Algorithm,
    /// The congestion window, bytes.
    window: u64,
    /// Pacing rate, if any.
    pacing: Option<Rate>,
    /// Its own random stream.
    rng: Rng,
    policy: Policy,
    /// The window admits `floor(cwnd · SMSS)` bytes instead of `floor(cwnd)` segments.
    byte_window: bool,
    /// The algorithm must be asked for the priority of each segment.
    prioritises: bool,
}

impl Control {
    pub(super) fn new(cc: Algorithm, rng: Rng, byte_window: bool) -> Self {
        let policy = cc.policy();
        let mut control = Self { cc, window: 0, pacing: None, rng, policy, byte_window, prioritises: false };
        control.renew_policy();
        control
    }

    /// Its policy.
    #[inline]
    pub(super) fn policy(&self) -> &Policy {
        &self.policy
    }
    /// Reads the policy again, at the times that the trait names.
    pub(super) fn renew_policy(&mut self) {
        self.policy = self.cc.policy();
        // A user's control may not set `low_priority_data`, so it is asked for every segment.
        self.prioritises = self.policy.low_priority_data || matches!(self.cc, Algorithm::User(_));
    }

    /// The congestion window, bytes.
    #[inline]
    pub(super) fn window(&self) -> u64 {
        self.window
    }
    /// The pacing rate of data.
    #[inline]
    pub(super) fn pacing(&self) -> Option<Rate> {
        self.pacing
    }
    /// Whether data leaves at a rate, or in bursts of a limited size, and not simply as the window admits it.
    #[inline]
    pub(super) fn is_metered(&self) -> bool {
        self.pacing.is_some() || self.policy.max_burst != 0
    }
    /// Whether `on_transmit` has any effect.
    #[inline]
    pub(super) fn listens_to_transmit(&self) -> bool {
        self.policy.transmit_events && self.cc.wants_transmit()
    }
    /// Whether a segment that starts `offset` bytes into the stream has low priority.
    #[inline]
    pub(super) fn low_priority(&self, offset: u64, retransmission: bool) -> bool {
        self.prioritises && self.cc.priority(offset, retransmission) == Priority::Low
    }

    /// Reads the decision again.
    #[inline(always)]
    pub(super) fn refresh(&mut self, space: &Space) {
        let decision = self.cc.decision();
        self.decided(decision, space);
    }

    /// Stores a decision.
    #[inline(always)]
    fn decided(&mut self, (window, pacing): (Window, Option<Rate>), space: &Space) {
        let cwnd = window.cwnd;
        self.window = if self.byte_window {
            (cwnd * space.smss_f()) as u64
        } else {
            // The cast saturates: a window of 2^32 - 1 segments limits no sender.
            u64::from(cwnd as u32) * u64::from(space.smss)
        };
        self.pacing = pacing;
    }

    /// Reports an acknowledgement; requests of the algorithm are added to `act`.
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

    /// Reports an event; requests of the algorithm are added to `act`.
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

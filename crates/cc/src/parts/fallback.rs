//! A control that needs a peer which answers probes, with a fallback for other peers.

use crate::action::{Policy, Priority, Window};
use crate::control::CongestionControl;
use crate::event::{Ack, Cx, Lost, Path, ProbeEvent, ProbeSupport, Sent, Signal, Start, Transmit};
use alloc::boxed::Box;
use skyhaul_base::{Instant, Rate};

/// Creates the control that takes over.
pub trait FallsBack<F> {
    /// For a new connection: the peer is known not to answer.
    fn afresh(&self) -> F;
    /// For a connection in progress, from the current window: the peer turned out not to answer.
    fn continued(&self, path: &Path) -> F;
}

/// `C` while the peer answers probes, or may; `F` once it is known not to.
#[derive(Clone, Debug)]
pub struct WithFallback<C, F> {
    control: C,
    fallback: Option<Box<F>>,
}

impl<C, F> From<C> for WithFallback<C, F> {
    fn from(control: C) -> Self {
        Self { control, fallback: None }
    }
}

macro_rules! either {
    ($self_:expr, $c:ident => $call:expr) => {
        match &$self_.fallback {
            None => {
                let $c = &$self_.control;
                $call
            }
            Some($c) => $call,
        }
    };
    (mut $self_:expr, $c:ident => $call:expr) => {
        match &mut $self_.fallback {
            None => {
                let $c = &mut $self_.control;
                $call
            }
            Some($c) => $call,
        }
    };
}

impl<C, F> CongestionControl for WithFallback<C, F>
where
    C: CongestionControl + FallsBack<F>,
    F: CongestionControl,
{
    #[inline]
    fn window(&self) -> Window {
        either!(self, c => c.window())
    }
    #[inline]
    fn pacing(&self) -> Option<Rate> {
        either!(self, c => c.pacing())
    }
    fn policy(&self) -> Policy {
        either!(self, c => c.policy())
    }
    #[inline]
    fn priority(&self, offset: u64, retransmission: bool) -> Priority {
        either!(self, c => c.priority(offset, retransmission))
    }
    fn on_start(&mut self, cx: &mut Cx<'_>, start: &Start) {
        if cx.path.probes == ProbeSupport::No && self.fallback.is_none() {
            self.fallback = Some(Box::new(self.control.afresh()));
        }
        either!(mut self, c => c.on_start(cx, start));
    }
    #[inline(always)]
    fn on_ack(&mut self, cx: &mut Cx<'_>, ack: &Ack) {
        either!(mut self, c => c.on_ack(cx, ack));
    }
    fn on_probe(&mut self, cx: &mut Cx<'_>, event: ProbeEvent) {
        if event == ProbeEvent::Unsupported && self.fallback.is_none() {
            cx.act.stop_probes = true;
            cx.act.wake_at = Some(Instant::MAX);
            cx.act.hold = Some(false);
            self.fallback = Some(Box::new(self.control.continued(cx.path)));
        } else {
            either!(mut self, c => c.on_probe(cx, event));
        }
    }
    fn on_congestion(&mut self, cx: &mut Cx<'_>, signal: Signal) {
        either!(mut self, c => c.on_congestion(cx, signal));
    }
    fn on_recovered(&mut self, cx: &mut Cx<'_>) {
        either!(mut self, c => c.on_recovered(cx));
    }
    fn on_timeout(&mut self, cx: &mut Cx<'_>, backoff: u32) {
        either!(mut self, c => c.on_timeout(cx, backoff));
    }
    fn on_undo(&mut self, cx: &mut Cx<'_>) {
        either!(mut self, c => c.on_undo(cx));
    }
    fn on_lost(&mut self, cx: &mut Cx<'_>, lost: &Lost) {
        either!(mut self, c => c.on_lost(cx, lost));
    }
    fn on_sent(&mut self, cx: &mut Cx<'_>, sent: &Sent) {
        either!(mut self, c => c.on_sent(cx, sent));
    }
    #[inline]
    fn wants_transmit(&self) -> bool {
        either!(self, c => c.wants_transmit())
    }
    fn on_transmit(&mut self, cx: &mut Cx<'_>, transmit: &Transmit) {
        either!(mut self, c => c.on_transmit(cx, transmit));
    }
    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        either!(mut self, c => c.on_wake(cx));
    }
    fn bandwidth_estimate(&self, smss: u32) -> Option<Rate> {
        either!(self, c => c.bandwidth_estimate(smss))
    }
    /// The variables of the original control keep their values from the time of the fallback.
    fn telemetry(&self, out: &mut dyn FnMut(&'static str, f64)) {
        self.control.telemetry(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alg::reno::{self, Reno};
    use crate::testing::Stage;
    use crate::{InitialSsthresh, RecoveryMode, Rules};
    use skyhaul_base::Duration;

    /// A window of seven that nothing changes.
    #[derive(Clone, Debug)]
    struct ConstantWindow;

    impl CongestionControl for ConstantWindow {
        fn window(&self) -> Window {
            Window { cwnd: 7.0, ssthresh: 7.0 }
        }
        fn policy(&self) -> Policy {
            Policy { probes: true, ..Policy::default() }
        }
        fn on_ack(&mut self, _: &mut Cx<'_>, _: &Ack) {}
        fn on_congestion(&mut self, _: &mut Cx<'_>, _: Signal) {}
        fn on_timeout(&mut self, _: &mut Cx<'_>, _: u32) {}
        fn telemetry(&self, out: &mut dyn FnMut(&'static str, f64)) {
            out("seven", 7.0);
        }
    }

    impl FallsBack<Reno> for ConstantWindow {
        fn afresh(&self) -> Reno {
            let rules = Rules { initial_ssthresh: InitialSsthresh::Segments(20.0), ..Rules::NS2_2004 };
            Reno::new(&reno::Config::default(), &rules, RecoveryMode::Sack)
        }
        fn continued(&self, path: &Path) -> Reno {
            let mut reno = self.afresh();
            reno.take_over(Window { cwnd: 7.0, ssthresh: path.rwnd }, Default::default());
            reno
        }
    }

    fn stage() -> Stage<WithFallback<ConstantWindow, Reno>> {
        Stage::new(ConstantWindow.into(), 64.0)
    }

    #[test]
    fn the_control_stays_with_a_peer_that_may_answer() {
        let mut s = stage();
        s.path.probes = ProbeSupport::Unknown;
        s.start(None);
        s.new_acks(3);
        s.probe(1);
        assert_eq!((s.cwnd(), s.cc.policy().probes), (7.0, true));
    }

    #[test]
    fn the_fallback_starts_afresh_with_a_peer_known_not_to_answer() {
        let mut s = stage();
        s.path.probes = ProbeSupport::No;
        s.start(Some(Duration::from_millis(550)));
        assert_eq!((s.cwnd(), s.ssthresh(), s.cc.policy().probes), (2.0, 20.0, false));
        s.new_acks(1);
        s.idle();
        assert_eq!(s.cwnd(), 2.0, "one fallback for the whole connection");
    }

    #[test]
    fn the_fallback_continues_from_the_current_window_once_the_peer_proves_unable() {
        let mut s = stage();
        s.path.probes = ProbeSupport::Unknown;
        s.start(None);
        let act = s.unsupported();
        assert!(act.stop_probes && act.wake_at == Some(Instant::MAX) && act.hold == Some(false));
        s.new_acks(1);
        assert_eq!((s.cwnd(), s.ssthresh()), (8.0, 64.0));
        assert_eq!(s.unsupported(), crate::Actions::default(), "the same event again");
        assert_eq!((s.cwnd(), s.variable("seven")), (8.0, 7.0));
    }
}

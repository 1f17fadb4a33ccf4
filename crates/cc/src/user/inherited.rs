//! What a control in another language inherits: SACK with the growth and the halving of Reno. The control may replace the rules of
//! growth and of reduction; the binding to its language calls those, and the functions here do everything else.

use crate::action::RecoveryMode;
use crate::event::{Ack, Cx, Path, Signal};
use crate::parts::frame::Frame;
use crate::parts::growth;

/// The rule by which an acknowledgement lets the window grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Growth below ssthresh.
    SlowStart,
    /// Growth in congestion avoidance.
    Increase,
}

impl Rule {
    /// The name of the method that replaces the rule.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SlowStart => "slow_start",
            Self::Increase => "increase",
        }
    }
}

/// `on_ack`, first half: inflation during fast recovery. Returns the rule by which the window grows, if the window may grow.
pub fn acked(frame: &mut Frame, cx: &Cx<'_>, ack: &Ack) -> Option<Rule> {
    let slow = frame.slow_start();
    frame.acked(cx, ack).then_some(if slow { Rule::SlowStart } else { Rule::Increase })
}

/// Segments that Reno's growth adds to cwnd when `acked` segments are acknowledged.
#[must_use]
pub fn growth_of(frame: &Frame, path: &Path, acked: f64) -> f64 {
    growth::grown(&frame.rules, path, frame.cwnd, frame.ssthresh, acked) - frame.cwnd
}

/// `on_ack`, second half: the control's own rule adds `by` segments to `cwnd`, the window before the acknowledgement.
pub fn grow_by(frame: &mut Frame, cx: &Cx<'_>, rule: Rule, cwnd: f64, by: f64) {
    let to = (cwnd + by).max(1.0);
    if by >= 0.0 {
        return frame.grow_to(cx, to);
    }
    frame.reset(to);
    // In congestion avoidance the threshold falls, too: below it, slow start would add back what the rule took.
    if rule == Rule::Increase {
        frame.ssthresh = frame.ssthresh.min(to);
    }
}

/// The window that a reduction leaves: a fraction of the window if it is below 1, else a number of segments.
#[must_use]
pub fn reduced(frame: &Frame, path: &Path, reduction: f64) -> f64 {
    if reduction < 1.0 { growth::kept(&frame.rules, path, frame.deflated(), reduction) } else { reduction }
}

/// `on_congestion`: the window falls to `to` segments, with Tahoe's recovery to one.
pub fn congested(frame: &mut Frame, recovery: RecoveryMode, signal: Signal, to: f64) {
    let cwnd = if recovery == RecoveryMode::Tahoe { 1.0 } else { to };
    frame.reduce(signal, to, cwnd);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::AckKind;
    use crate::rules::Rules;
    use crate::testing::{Stage, ack, path};
    use crate::{CongestionControl, Window};

    #[test]
    fn without_rules_of_its_own_it_is_sack() {
        // The same events for the built-in control and for the inherited rules.
        let rules = Rules::RFC;
        let config = crate::Config::by_name("sack").expect("a listed name");
        let mut built_in = Stage::new(config.build(&rules), 64.0);
        let mut frame = Frame::new(&rules, RecoveryMode::Sack);
        built_in.start(None);
        let start = crate::Start::Established { rtt: None, syn_lost: false, cached: None };
        built_in.call(|_, cx| frame.start(cx, &start));
        let grow = |frame: &mut Frame, s: &mut Stage<crate::Algorithm>, n: u32| {
            for _ in 0..n {
                let ack = ack(AckKind::New, 1.0);
                s.call(|cc, cx| {
                    cc.on_ack(cx, &ack);
                    let rule = acked(frame, cx, &ack).expect("it may grow");
                    let (cwnd, by) = (frame.cwnd, growth_of(frame, cx.path, ack.acked));
                    grow_by(frame, cx, rule, cwnd, by);
                });
                assert_eq!(frame.window(), s.cc.window());
            }
        };
        grow(&mut frame, &mut built_in, 30);
        built_in.path.set_in_flight(frame.cwnd);
        built_in.call(|cc, cx| {
            cc.on_congestion(cx, Signal::Loss);
            let to = reduced(&frame, cx.path, 0.5);
            congested(&mut frame, RecoveryMode::Sack, Signal::Loss, to);
        });
        assert_eq!(frame.window(), built_in.cc.window());
        grow(&mut frame, &mut built_in, 30);
    }

    #[test]
    fn what_a_rule_takes_slow_start_does_not_add_back() {
        let (path, mut rng, mut act) =
            (path(64.0), skyhaul_base::Rng::stream(1, ""), crate::Actions::default());
        let cx = Cx { now: skyhaul_base::Instant::ZERO, path: &path, rng: &mut rng, act: &mut act };
        let mut frame = Frame::new(&Rules::RFC, RecoveryMode::Sack);
        (frame.cwnd, frame.ssthresh) = (20.0, 10.0);
        grow_by(&mut frame, &cx, Rule::Increase, 20.0, -5.0);
        assert_eq!(frame.window(), Window { cwnd: 15.0, ssthresh: 10.0 });
        grow_by(&mut frame, &cx, Rule::Increase, 15.0, -8.0);
        assert_eq!(frame.window(), Window { cwnd: 7.0, ssthresh: 7.0 });
        grow_by(&mut frame, &cx, Rule::SlowStart, 7.0, -90.0);
        assert_eq!(frame.window(), Window { cwnd: 1.0, ssthresh: 7.0 });
        assert_eq!(reduced(&frame, &path, 12.0), 12.0);
        congested(&mut frame, RecoveryMode::Tahoe, Signal::Loss, 12.0);
        assert_eq!(frame.window(), Window { cwnd: 1.0, ssthresh: 12.0 });
    }
}

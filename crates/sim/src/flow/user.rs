//! Users' own congestion controls: their provider, and one instance per connection.

use crate::error::{BuildError, caught};
use skyhaul_cc::user::Failed;
use skyhaul_cc::{
    Ack, Algorithm, Config, CongestionControl, Controls, Cx, Policy, SharedRules, Signal, Window,
};
use skyhaul_scenario::resolved::{FlowGroup, Resolved};
use std::panic::resume_unwind;

/// Refuses a scenario with a user's control that `controls` does not have, or with options that the control
/// refuses.
///
/// # Errors
/// Names the group of flows. A control that panics when it is asked is refused with the message of the panic.
pub fn check_controls(scenario: &Resolved, controls: &Controls) -> Result<(), BuildError> {
    for group in &scenario.flows {
        if let Config::User(own) = &group.cc {
            let refuse = |why: skyhaul_cc::user::Error| BuildError::Control {
                flow: group.name.clone(),
                message: why.to_string(),
            };
            let asked = caught(|| controls.check(own));
            asked.unwrap_or_else(|failure| Err(failure.message.into())).map_err(refuse)?;
        }
    }
    Ok(())
}

/// The controls of the two ends of a connection of a flow.
///
/// Built-in ones are created twice. A user's own has one instance, at the sender: the other end sends no data and
/// only agrees to the requirements of the policy.
pub(crate) fn controls_of(
    group: &FlowGroup,
    rules: &SharedRules,
    index: u32,
    controls: &Controls,
) -> (Algorithm, Algorithm) {
    let Config::User(own) = &group.cc else { return (group.cc.build(rules), group.cc.build(rules)) };
    let flow = format!("{}[{index}]", group.name);
    let fail = |message| resume_unwind(Box::new(Failed { message, detail: None, source: None }));
    match controls.build(own, rules, &flow) {
        Ok(control) => {
            let policy = control.policy();
            // For a built-in control the same check comes before the run. That of a user's control is known only now.
            if let Err(why) = group.check_policy(&policy) {
                fail(why);
            }
            (control.into(), Algorithm::custom(Peer { policy }))
        }
        // `check_controls` has accepted the options, so only a failing constructor gets here.
        Err(why) => fail(format!("flow {flow}: cannot make the control \"{}\": {why}", own.control)),
    }
}

/// The control of an end that sends no data.
#[derive(Debug)]
struct Peer {
    policy: Policy,
}

impl CongestionControl for Peer {
    fn window(&self) -> Window {
        Window { cwnd: 1.0, ssthresh: f64::INFINITY }
    }
    fn policy(&self) -> Policy {
        self.policy
    }
    fn on_ack(&mut self, _: &mut Cx<'_>, _: &Ack) {}
    fn on_congestion(&mut self, _: &mut Cx<'_>, _: Signal) {}
    fn on_timeout(&mut self, _: &mut Cx<'_>, _: u32) {}
}

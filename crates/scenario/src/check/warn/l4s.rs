//! Warnings about scalable controls and the queues for them (L4S, RFC 9330).

use super::{Carrier, carriers, path_of, push, suffix};
use crate::check::display::short;
use crate::check::{Check, Warning};
use crate::resolved::{Resolved, Transport};
use skyhaul_tcp::config::Ecn;

/// Scalable controls that get no marks, or cannot count them.
pub(super) fn controls(scenario: &Resolved, check: &Check, out: &mut Vec<Warning>) {
    for (group, flow) in scenario.flows.iter().zip(&check.flows) {
        let scalable = group.cc.policy(&group.endpoint.rules).is_some_and(|policy| policy.scalable);
        if !scalable || group.transport != Transport::Tcp || group.rate_leg().is_some() {
            continue;
        }
        if group.endpoint.ecn != Ecn::Accurate {
            let message = format!(
                "{} needs to know each mark (RFC 9331 §4.2); without accurate ECN it halves its window like Reno and its \
                 packets do not wait with scalable ones: write ecn = \"accurate\", or leave the key out",
                flow.cc
            );
            push(out, "l4s-feedback", format!("{}.endpoint.ecn", path_of(scenario, group)), message);
            continue;
        }
        let Some(bottleneck) = &flow.bottleneck else { continue };
        let Some(link) = scenario.links.iter().find(|link| link.name == bottleneck.link) else { continue };
        let direction = group.data_direction(link);
        if !direction.queue.discipline.marks() {
            let message = format!(
                "this queue does not mark, and {} of flows.{} keeps a queue short only where marks tell it to: it fills this one \
                 until packets are lost, and halves its window like Reno; write kind = \"dual-pi2\"",
                flow.cc, flow.name
            );
            push(out, "l4s-unmarked", format!("links.{}{}.queue", link.name, suffix(group)), message);
        }
    }
}

/// Controllers of two queues that are tuned for shorter paths.
pub(super) fn targets(scenario: &Resolved, check: &Check, out: &mut Vec<Warning>) {
    for Carrier { key, direction, groups, .. } in carriers(scenario, check) {
        let Some((name, target, longest)) = direction.queue.discipline.tuned_for() else { continue };
        let rtt = groups.iter().map(|(_, c)| c.base_rtt_s).fold(0.0, f64::max);
        // What follows from a path's propagation delay does not count the transmission times in its RTT.
        if rtt <= 1.1 * longest.as_secs_f64() {
            continue;
        }
        let message = format!(
            "{} ms is a target for RTTs of up to {} ms (RFC 9332, Appendix A.1), and the longest is {} ms: the queue signals \
             faster than senders react, and the link is idle after each reduction; leave out {name}, update, alpha and beta, \
             which then follow from that RTT",
            short(1000.0 * target.as_secs_f64()),
            short(1000.0 * longest.as_secs_f64()),
            short(1000.0 * rtt)
        );
        push(out, "target-short", format!("{key}.queue.{name}"), message);
    }
}

//! Links: the forward direction as written, the reverse direction with its differences.

use super::direction::{self, Setting};
use super::{Result, refuse, repair};
use crate::amount::Size;
use crate::model::{DirectionSpec, LinkSpec, OrTrace, Short};
use crate::resolved::{Direction, Link, Orbit};
use crate::{orbit, trace};
use skyhaul_base::Duration;
use skyhaul_path::Delay;
use skyhaul_path::fec::Shape;
use std::sync::Arc;

/// Delays of both directions, and the satellites that determine them.
pub(super) type Delays = (Delay, Delay, Option<Arc<Orbit>>);

/// Delays of both directions.
pub(super) fn delays(name: &str, spec: &LinkSpec, run: Duration) -> Result<Delays> {
    let key = format!("links.{name}.delay");
    if let Some(orbit) = &spec.orbit {
        let own = |reverse: &str| {
            let message = "the delay follows from the orbit: leave this out, or write orbit.processing for a delay that comes \
                           on top, or a link of its own for the ground";
            refuse(format!("links.{name}{reverse}.delay"), message)
        };
        if spec.delay.is_some() {
            return own("");
        }
        if spec.reverse.as_ref().is_some_and(|r| r.delay.is_some()) {
            return own(".reverse");
        }
        let (orbit, delay) = orbit::resolve(&format!("links.{name}.orbit"), orbit, run)?;
        return Ok((Delay::fixed(delay), Delay::fixed(delay), Some(Arc::new(orbit))));
    }
    let Some(forward) = &spec.delay else {
        return refuse(
            key,
            "missing: write the propagation delay, such as delay = \"275 ms\", or the satellites in a table orbit",
        );
    };
    let forward = delay(&key, forward, run)?;
    let reverse = match spec.reverse.as_ref().and_then(|r| r.delay.as_ref()) {
        Some(own) => delay(&format!("links.{name}.reverse.delay"), own, run)?,
        None => forward.clone(),
    };
    Ok((forward, reverse, None))
}

fn delay(key: &str, spec: &OrTrace<Short<Delay>>, run: Duration) -> Result<Delay> {
    match spec {
        OrTrace::Own(Short(own)) => match own.validate() {
            Ok(()) => Ok(own.clone()),
            Err(e) => refuse(key, e),
        },
        OrTrace::Trace(spec) => trace::resolve_delay(key, spec, run).map(|t| Delay::Trace(Arc::new(t))),
    }
}

/// Resolves a link. `rtt` is the largest base RTT and `flow_packet` the largest packet of the flows on it; both are
/// zero if there are none.
pub(super) fn resolve(
    name: &str,
    spec: &LinkSpec,
    delays: &Delays,
    run: Duration,
    rtt: Duration,
    flow_packet: u32,
) -> Result<Link> {
    let key = format!("links.{name}");
    let packet = match spec.packet {
        Some(Size(0)) => return refuse(format!("{key}.packet"), "a packet needs at least 1 byte"),
        Some(Size(n)) => match u32::try_from(n) {
            Ok(n) if n <= super::endpoint::MAX_PACKET => Some(n),
            _ => {
                return refuse(
                    format!("{key}.packet"),
                    format!("\"{n} B\" is more than the largest packet (65535 B)"),
                );
            }
        },
        None => None,
    };
    let setting = Setting {
        packet,
        flow_packet,
        rtt,
        propagation: delays.0.base() + delays.1.base(),
        orbit: delays.2.clone(),
        run,
    };
    let whole = spec.forward();
    let mut forward = direction::read(&|k| format!("{key}.{k}"), &whole, &delays.0, &setting)?;
    let own = spec.reverse.clone().unwrap_or_default().or(&whole);
    // A problem with an inherited value was found in the forward direction, so this one is the direction's own.
    let mut reverse = direction::read(&|k| format!("{key}.reverse.{k}"), &own, &delays.1, &setting)?;
    // Answers take the other direction.
    let packet = packet.unwrap_or(flow_packet);
    let arq = |suffix: &str, spec: &DirectionSpec, own: &Direction, other: &Direction| {
        repair::repeats(&format!("{key}{suffix}.arq"), spec.arq.as_ref(), own, other, packet)
    };
    forward.arq = arq("", &whole, &forward, &reverse)?;
    reverse.arq = arq(".reverse", &own, &reverse, &forward)?;
    if delays.2.as_ref().is_some_and(|o| o.both_carry()) {
        for (suffix, direction) in [("", &forward), (".reverse", &reverse)] {
            let blocks = direction.fec.as_ref().is_some_and(|fec| fec.code().shape != Shape::NONE);
            for (k, there) in [("fec", blocks), ("arq", direction.arq.is_some())] {
                if there {
                    let message = "a packet sent over two satellites is repaired by its other copy: leave this out, or \
                                   write orbit.diversity = \"best\"";
                    return refuse(format!("{key}{suffix}.{k}"), message);
                }
            }
        }
    }
    Ok(Link { name: name.into(), forward, reverse })
}

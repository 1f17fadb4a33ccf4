//! Links: the forward direction as written, the reverse direction with its differences.

use super::{Result, refuse, repair};
use crate::amount::{Decimal, QueueLimit, RateSpec, Size};
use crate::error::Problem;
use crate::model::{DirectionSpec, FadeSpec, LinkSpec, OrTrace, QueueSpec, RateOrKind, Short};
use crate::resolved::{Direction, Link, Orbit};
use crate::{orbit, trace};
use skyhaul_base::{Duration, Rate};
use skyhaul_path::fec::Shape;
use skyhaul_path::{Delay, Limit, QueueConfig, Refusal, error, fade, rate};
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
    let Some(rate) = &spec.rate else {
        return refuse(
            format!("{key}.rate"),
            "missing: write a rate with a unit, such as rate = \"10.4 Mbit/s\", or \"unlimited\"",
        );
    };
    let own = spec.reverse.clone().unwrap_or_default();
    let both = DirectionSpec {
        rate: Some(rate.clone()),
        delay: spec.delay.clone(),
        allow_reorder: spec.allow_reorder,
        queue: spec.queue,
        error: spec.error.clone(),
        ack_errors: spec.ack_errors,
        up: spec.up,
        drop_in_flight: spec.drop_in_flight,
        fade: spec.fade.clone(),
        fec: spec.fec.clone(),
        arq: spec.arq.clone(),
        ack_size: spec.ack_size,
        reconstruct_acks: spec.reconstruct_acks,
    };
    let make = |at: &dyn Fn(&str) -> String, spec: &DirectionSpec, delay: &Delay| -> Result<Direction> {
        let rate = match spec.rate.as_ref().unwrap_or(rate) {
            OrTrace::Own(RateOrKind::Rate(rate)) => transmitter(&at("rate"), *rate, packet)?,
            OrTrace::Own(RateOrKind::Kind(kind)) => match kind.validate() {
                Ok(()) => kind.clone().into(),
                Err(e) => return refuse(format!("{}.{}", at("rate"), e.key()), e),
            },
            OrTrace::Trace(spec) => trace::resolve_rate(&at("rate"), spec, run)?,
        };
        let fade = match &spec.fade {
            None => None,
            Some(spec) => fade(&at("fade"), spec, &rate, delays.0.base() + delays.1.base(), run)?,
        };
        Ok(Direction {
            rate: rate.clone(),
            delay: delay.clone(),
            orbit: delays.2.clone(),
            allow_reorder: spec.allow_reorder.unwrap_or(false),
            queue: queue(
                &at("queue"),
                spec.queue.unwrap_or_default().0,
                rate.mean(),
                rtt,
                packet.unwrap_or(flow_packet),
            )?,
            error: error(&at("error"), spec.error.as_ref().map_or(&error::Config::NONE, |e| &e.0))?,
            ack_errors: spec.ack_errors.unwrap_or(true),
            up: spec.up.unwrap_or(true),
            drop_in_flight: spec.drop_in_flight.unwrap_or(delays.2.as_ref().is_some_and(|o| o.cuts())),
            fade,
            fec: repair::code(&at("fec"), spec.fec.as_ref())?,
            arq: None,
            ack_size: bytes(&at("ack-size"), spec.ack_size)?,
            reconstruct_acks: bytes(&at("reconstruct-acks"), spec.reconstruct_acks)?,
        })
    };
    let make = |at: &dyn Fn(&str) -> String, spec: &DirectionSpec, delay: &Delay| -> Result<Direction> {
        let made = make(at, spec, delay)?;
        if made.reconstruct_acks.is_some() && made.queue.discipline.compacts_acks() {
            let why = "the queue removes acknowledgements that are regenerated behind the link, which excludes this: leave this out, or write another queue";
            return refuse(at("reconstruct-acks"), why);
        }
        Ok(made)
    };
    let mut forward = make(&|k| format!("{key}.{k}"), &both, &delays.0)?;
    let merged = DirectionSpec {
        rate: own.rate.or_else(|| both.rate.clone()),
        delay: own.delay.or_else(|| both.delay.clone()),
        allow_reorder: own.allow_reorder.or(both.allow_reorder),
        queue: own.queue.or(both.queue),
        error: own.error.clone().or_else(|| both.error.clone()),
        ack_errors: own.ack_errors.or(both.ack_errors),
        up: own.up.or(both.up),
        drop_in_flight: own.drop_in_flight.or(both.drop_in_flight),
        fade: own.fade.clone().or_else(|| both.fade.clone()),
        fec: own.fec.or_else(|| both.fec.clone()),
        arq: own.arq.or_else(|| both.arq.clone()),
        ack_size: own.ack_size.or(both.ack_size),
        reconstruct_acks: own.reconstruct_acks.or(both.reconstruct_acks),
    };
    // A problem with an inherited value was found in the forward direction, so this one is the direction's own.
    let mut reverse = make(&|k| format!("{key}.reverse.{k}"), &merged, &delays.1)?;
    // Answers take the other direction.
    let packet = packet.unwrap_or(flow_packet);
    let answered = |way: &str, spec: &DirectionSpec, own: &Direction, other: &Direction| {
        repair::repeats(&format!("{key}{way}.arq"), spec.arq.as_ref(), own, other, packet)
    };
    forward.arq = answered("", &both, &forward, &reverse)?;
    reverse.arq = answered(".reverse", &merged, &reverse, &forward)?;
    if delays.2.as_ref().is_some_and(|o| o.both_carry()) {
        for (way, direction) in [("", &forward), (".reverse", &reverse)] {
            let blocks = direction.fec.as_ref().is_some_and(|fec| fec.code().shape != Shape::NONE);
            for (k, there) in [("fec", blocks), ("arq", direction.arq.is_some())] {
                if there {
                    let message = "a packet sent over two satellites is repaired by its other copy: leave this out, or \
                                   write orbit.diversity = \"best\"";
                    return refuse(format!("{key}{way}.{k}"), message);
                }
            }
        }
    }
    Ok(Link { name: name.into(), forward, reverse })
}

/// A size above zero.
fn bytes(key: &str, size: Option<Size>) -> Result<Option<u32>> {
    match size {
        None => Ok(None),
        Some(Size(0)) => refuse(key, "0 B is not a size: leave the key out for none"),
        Some(Size(n)) => match u32::try_from(n) {
            Ok(n) => Ok(Some(n)),
            Err(_) => refuse(key, format!("\"{n} B\" is too large")),
        },
    }
}

fn transmitter(key: &str, spec: RateSpec, packet: Option<u32>) -> Result<rate::Config> {
    let bits = match (spec, packet) {
        (RateSpec::Unlimited, _) => return Ok(rate::Config::Unlimited),
        (RateSpec::Bits(rate), _) => Some(rate.bits_per_sec()),
        (RateSpec::Packets(n), Some(packet)) => n.times(u64::from(packet) * 8),
        (RateSpec::Packets(_), None) => {
            let link = key.strip_suffix(".rate").unwrap_or(key);
            let link = link.strip_suffix(".reverse").unwrap_or(link);
            return refuse(
                key,
                format!(
                    "\"{spec}\" depends on the packet size: add packet = \"1000 B\" to {link}, or write the rate \
                     in bit/s"
                ),
            );
        }
    };
    match bits {
        Some(0) => refuse(key, format!("\"{spec}\" is less than 1 bit/s")),
        Some(bits) => Ok(Rate::from_bits_per_sec(bits).into()),
        None => refuse(key, format!("\"{spec}\" is too large")),
    }
}

/// The fade, with values derived from the link filled in: its symbol rate from the link's rate, its reaction time
/// from the RTT.
fn fade(
    key: &str,
    spec: &FadeSpec,
    rate: &rate::Config,
    rtt: Duration,
    run: Duration,
) -> Result<Option<Box<fade::Config>>> {
    let mut fade = match spec {
        FadeSpec::None => return Ok(None),
        FadeSpec::Model(fade) => fade.clone(),
        FadeSpec::Series(spec) => Box::new(fade::Config::Series(trace::resolve_fade(key, spec, run)?)),
    };
    fade.validate().map_err(|e| Problem::new(format!("{key}.{}", e.key()), e))?;
    let Some(carrier) = fade.carrier_mut() else { return Ok(Some(fade)) };
    carrier.reaction.get_or_insert(rtt);
    if carrier.is_fixed() && carrier.symbol_rate.is_none() {
        // The rate of the link fits the only ModCod.
        return Ok(Some(fade));
    }
    let at = format!("{key}.carrier.symbol-rate");
    let rate::Config::Constant(clear) = rate else {
        let what =
            if carrier.is_fixed() { "leave it out" } else { "write modcod = \"QPSK 1/2\", or another" };
        return refuse(
            if carrier.is_fixed() { at } else { format!("{key}.carrier.modcod") },
            format!(
                "a carrier cannot set the rate of a link whose rate is unlimited, on demand or from a file: {what}"
            ),
        );
    };
    let efficiency = carrier.clear_sky().efficiency;
    let symbols = *carrier.symbol_rate.get_or_insert(clear.bits_per_sec() as f64 / efficiency);
    let made = symbols * efficiency;
    // Both are rounded in files; a larger difference is a mistake.
    if (made / clear.bits_per_sec() as f64 - 1.0).abs() > 0.01 {
        return refuse(
            at,
            format!(
                "{symbols} symbols per second with {efficiency} bits each under a clear sky give {made:.0} bit/s, but the link's rate \
                 is {} bit/s: leave symbol-rate out, or write the rate that it gives",
                clear.bits_per_sec()
            ),
        );
    }
    Ok(Some(fade))
}

/// The bandwidth-delay product in packets.
pub(super) fn bdp_packets(n: Decimal, rate: Rate, rtt: Duration, packet: u32) -> Option<u64> {
    let bit_nanos = u128::from(rate.bits_per_sec()) * u128::from(rtt.as_nanos());
    n.times_ratio(bit_nanos, 8_000_000_000 * u128::from(packet))
}

fn queue(key: &str, spec: QueueSpec, rate: Option<Rate>, rtt: Duration, packet: u32) -> Result<QueueConfig> {
    let at = |k: &str| format!("{key}.{k}");
    let limit = match (spec.limit.unwrap_or(QueueLimit::Bdp(Decimal::whole(1))), rate) {
        (QueueLimit::Unlimited, _) => Limit::Unlimited,
        (QueueLimit::Bytes(n), _) => Limit::Bytes(n),
        (QueueLimit::Packets(n), _) => match u32::try_from(n) {
            Ok(n) => Limit::Packets(n),
            Err(_) => return refuse(at("limit"), format!("{n} packets are too many: write \"unlimited\"")),
        },
        // Nothing ever waits for an infinitely fast transmitter; and a link that no flow crosses has no BDP.
        (QueueLimit::Bdp(_), None) => Limit::Unlimited,
        (QueueLimit::Bdp(_), Some(_)) if packet == 0 => Limit::Packets(1),
        (QueueLimit::Bdp(n), Some(rate)) => match bdp_packets(n, rate, rtt, packet).map(u32::try_from) {
            Some(Ok(packets)) => Limit::Packets(packets.max(1)),
            _ => return refuse(at("limit"), format!("{n} BDP are too many packets: write \"unlimited\"")),
        },
    };
    let queue = QueueConfig {
        discipline: spec.discipline,
        limit,
        count_in_service: spec.count_in_service.unwrap_or(false),
        ns2_limit: spec.ns2_limit.unwrap_or(false),
    };
    queue.validate(packet).map_err(|e| Problem::new(at(e.key()), e))?;
    Ok(queue)
}

fn error(key: &str, spec: &error::Config) -> Result<error::Config> {
    spec.clone().canonical().map_err(|e| Problem::new(format!("{key}.{}", e.key()), e))
}

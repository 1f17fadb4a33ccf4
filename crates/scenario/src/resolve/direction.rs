//! The keys of one direction of a link: how each is read, and how it is written.

use super::{Result, bdp_packets, refuse, repair};
use crate::amount::{Count, Decimal, Probability, QueueLimit, RateSpec, Size, Time};
use crate::error::Problem;
use crate::model::{
    ArqSpec, DirectionSpec, FadeSpec, FecSpec, FeedbackSpec, OrTrace, QueueSpec, RateOrKind, RepeatsSpec,
    Short, Written,
};
use crate::resolved::{Direction, Orbit};
use crate::trace;
use skyhaul_base::{Duration, Rate};
use skyhaul_path::{Delay, Limit, QueueConfig, Refusal, arq, error, fade, rate};
use std::sync::Arc;

/// What the keys of a direction depend on.
pub(super) struct Setting {
    /// Size of the packets, if the link gives it.
    pub(super) packet: Option<u32>,
    /// The largest packet of the flows on the link; zero without flows.
    pub(super) flow_packet: u32,
    /// The largest base RTT of the flows on the link; zero without flows.
    pub(super) rtt: Duration,
    /// Propagation over the link and back.
    pub(super) propagation: Duration,
    /// The satellites.
    pub(super) orbit: Option<Arc<Orbit>>,
    /// Duration of the run.
    pub(super) run: Duration,
}

/// Reads a direction, except for its ARQ, which depends on the other direction, too. `at` gives the path of a key.
pub(super) fn read(
    at: &dyn Fn(&str) -> String,
    spec: &DirectionSpec,
    delay: &Delay,
    setting: &Setting,
) -> Result<Direction> {
    let Setting { packet, flow_packet, rtt, propagation, orbit, run } = setting;
    let rate = rate(&at("rate"), spec.rate.as_ref(), *packet, *run)?;
    let usual = Direction::new(rate, delay.clone());
    let read = Direction {
        fade: fade(&at("fade"), spec.fade.as_ref(), &usual.rate, *propagation, *run)?,
        allow_reorder: spec.allow_reorder.unwrap_or(usual.allow_reorder),
        queue: queue(
            &at("queue"),
            spec.queue.unwrap_or_default().0,
            usual.rate.mean(),
            *rtt,
            packet.unwrap_or(*flow_packet),
        )?,
        error: error(&at("error"), spec.error.as_ref())?,
        duplicate: spec.duplicate.map_or(usual.duplicate, |p| p.0),
        ack_errors: spec.ack_errors.unwrap_or(usual.ack_errors),
        up: spec.up.unwrap_or(usual.up),
        drop_in_flight: spec.drop_in_flight.unwrap_or(orbit.as_ref().is_some_and(|o| o.drops_in_flight())),
        fec: repair::code(&at("fec"), spec.fec.as_ref())?,
        ack_size: bytes(&at("ack-size"), spec.ack_size)?,
        reconstruct_acks: bytes(&at("reconstruct-acks"), spec.reconstruct_acks)?,
        orbit: orbit.clone(),
        rate: usual.rate,
        delay: usual.delay,
        arq: None,
    };
    if read.reconstruct_acks.is_some() && read.queue.discipline.compacts_acks() {
        let why = "the queue removes acknowledgements that are regenerated behind the link, which excludes this: leave this out, or write another queue";
        return refuse(at("reconstruct-acks"), why);
    }
    Ok(read)
}

/// Writes a direction of a link with this forward direction. Newer keys are written only if a value differs from the
/// default, so that they do not change the hash of existing scenarios; the reverse direction then writes the default,
/// too, since it would otherwise inherit the other value.
pub(crate) fn write(d: &Direction, forward: &Direction) -> DirectionSpec {
    let differs = |differs: fn(&Direction) -> bool| differs(d) || differs(forward);
    DirectionSpec {
        rate: Some(rate_spec(&d.rate)),
        delay: d.orbit.is_none().then(|| delay_spec(&d.delay)),
        allow_reorder: Some(d.allow_reorder),
        queue: Some(Short(queue_spec(&d.queue))),
        error: Some(Short(d.error.clone())),
        duplicate: differs(|d| d.duplicate > 0.0).then_some(Probability(d.duplicate)),
        ack_errors: Some(d.ack_errors),
        ack_size: d.ack_size.map(|n| Size(n.into())),
        reconstruct_acks: d.reconstruct_acks.map(|n| Size(n.into())),
        up: differs(|d| !d.up).then_some(d.up),
        drop_in_flight: differs(|d| d.drop_in_flight || d.orbit.is_some()).then_some(d.drop_in_flight),
        fade: differs(|d| d.fade.is_some())
            .then(|| d.fade.as_ref().map_or(FadeSpec::None, |fade| trace::fade_spec(fade))),
        fec: differs(|d| d.fec.is_some()).then(|| Short(FecSpec(d.fec.clone()))),
        arq: differs(|d| d.arq.is_some()).then(|| Short(ArqSpec(d.arq.as_ref().map(arq_spec)))),
    }
}

/// The rate of the transmitter.
fn rate(
    key: &str,
    spec: Option<&OrTrace<RateOrKind>>,
    packet: Option<u32>,
    run: Duration,
) -> Result<rate::Config> {
    match spec {
        None => {
            refuse(key, "missing: write a rate with a unit, such as rate = \"10.4 Mbit/s\", or \"unlimited\"")
        }
        Some(OrTrace::Own(RateOrKind::Rate(rate))) => constant(key, *rate, packet),
        Some(OrTrace::Own(RateOrKind::Kind(kind))) => match kind.validate() {
            Ok(()) => Ok(kind.clone().into()),
            Err(e) => refuse(format!("{key}.{}", e.key()), e),
        },
        Some(OrTrace::Trace(spec)) => trace::resolve_rate(key, spec, run),
    }
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

fn constant(key: &str, spec: RateSpec, packet: Option<u32>) -> Result<rate::Config> {
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
    spec: Option<&FadeSpec>,
    rate: &rate::Config,
    rtt: Duration,
    run: Duration,
) -> Result<Option<Box<fade::Config>>> {
    let Some(spec) = spec else { return Ok(None) };
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
        discipline: spec.discipline.for_path(rtt, &|key| spec.written.has(spec.discipline.kind(), key)),
        limit,
        count_in_service: spec.count_in_service.unwrap_or(false),
        ns2_limit: spec.ns2_limit.unwrap_or(false),
    };
    queue.validate(packet).map_err(|e| Problem::new(at(e.key()), e))?;
    Ok(queue)
}

fn error(key: &str, spec: Option<&Short<error::Config>>) -> Result<error::Config> {
    let Some(Short(spec)) = spec else { return Ok(error::Config::NONE) };
    spec.clone().canonical().map_err(|e| Problem::new(format!("{key}.{}", e.key()), e))
}

fn arq_spec(arq: &arq::Config) -> RepeatsSpec {
    let feedback = match arq.feedback {
        arq::Feedback::Ideal => FeedbackSpec::Ideal,
        arq::Feedback::After(time) => FeedbackSpec::After { time: Time(time) },
    };
    RepeatsSpec {
        window: Some(QueueLimit::Packets(arq.window.into())),
        retries: Some(Count(arq.retries.into())),
        in_order: Some(arq.in_order),
        guard: Some(Time(arq.guard)),
        feedback: Some(Short(feedback)),
    }
}

/// A rate as written in a file.
pub(crate) fn rate_spec(rate: &rate::Config) -> OrTrace<RateOrKind> {
    let own = |rate| OrTrace::Own(RateOrKind::Rate(rate));
    if let Some(kind) = rate.kind() {
        return OrTrace::Own(RateOrKind::Kind(kind));
    }
    match rate {
        rate::Config::Unlimited => own(RateSpec::Unlimited),
        rate::Config::Constant(rate) => own(RateSpec::Bits(*rate)),
        varying => OrTrace::Trace(trace::rate_spec(varying)),
    }
}

/// A delay as written in a file.
pub(crate) fn delay_spec(d: &Delay) -> OrTrace<Short<Delay>> {
    match d {
        Delay::Trace(trace) => OrTrace::Trace(trace::delay_spec(trace)),
        own => OrTrace::Own(Short(own.clone())),
    }
}

/// The capacity of a queue as written in a file.
pub(crate) fn limit_spec(limit: &Limit) -> QueueLimit {
    match *limit {
        Limit::Bytes(n) => QueueLimit::Bytes(n),
        Limit::Packets(n) => QueueLimit::Packets(n.into()),
        Limit::Unlimited => QueueLimit::Unlimited,
    }
}

fn queue_spec(q: &QueueConfig) -> QueueSpec {
    QueueSpec {
        discipline: q.discipline,
        written: Written::ALL,
        limit: Some(limit_spec(&q.limit)),
        count_in_service: Some(q.count_in_service),
        ns2_limit: Some(q.ns2_limit),
    }
}

//! The repair in one direction of a link.

use super::{Result, bdp_packets, refuse};
use crate::amount::{Count, Decimal, QueueLimit, Size, Time};
use crate::error::Problem;
use crate::model::{ArqSpec, FecSpec, FeedbackSpec, RepeatsSpec, Short};
use crate::resolved::Direction;
use skyhaul_base::{Duration, Rate};
use skyhaul_path::delay::LONGEST;
use skyhaul_path::{Refusal, arq, fec};

/// The window by default.
const WINDOW: &str = "1.5";

/// The code.
pub(super) fn code(key: &str, spec: Option<&Short<FecSpec>>) -> Result<Option<fec::Config>> {
    let Some(Short(FecSpec(Some(own)))) = spec else { return Ok(None) };
    own.clone().canonical().map(Some).map_err(|e| Problem::new(format!("{key}.{}", e.key()), e))
}

/// The ARQ of a direction whose acknowledgements take the `other`. `packet` is the size of its packets, 0 if there
/// are none.
pub(super) fn repeats(
    key: &str,
    spec: Option<&Short<ArqSpec>>,
    own: &Direction,
    other: &Direction,
    packet: u32,
) -> Result<Option<arq::Config>> {
    let Some(Short(ArqSpec(Some(spec)))) = spec else { return Ok(None) };
    let at = |k: &str| format!("{key}.{k}");
    let RepeatsSpec { window, retries, in_order, guard, feedback } = spec;
    let guard = guard.map_or(arq::Config::GUARD, |Time(guard)| guard);
    let feedback = feedback.map_or(FeedbackSpec::Ideal, |f| f.0);
    for (k, time) in [("guard", guard), ("feedback", fixed(feedback).unwrap_or_default())] {
        if time > LONGEST {
            return refuse(at(k), "longer than an hour: write a shorter time");
        }
    }
    let retries = retries.map_or(u64::from(arq::Config::RETRIES), |Count(n)| n);
    let Ok(retries) = u32::try_from(retries) else {
        return refuse(at("retries"), format!("{retries} are too many: write a smaller number, such as 3"));
    };
    let mut config = arq::Config {
        window: 1,
        retries,
        in_order: in_order.unwrap_or(true),
        guard,
        feedback: answers(feedback, own, other),
    };
    let rtt = config.period(own.delay.base(), Duration::ZERO).saturating_sub(guard);
    config.window = self::window(&at("window"), *window, own.rate.mean(), rtt, packet)?;
    config.validate().map_err(|e| Problem::new(at(e.key()), e))?;
    Ok(Some(config))
}

fn fixed(feedback: FeedbackSpec) -> Option<Duration> {
    if let FeedbackSpec::After { time: Time(time) } = feedback { Some(time) } else { None }
}

fn answers(spec: FeedbackSpec, own: &Direction, other: &Direction) -> arq::Feedback {
    let back = other.delay.base();
    match spec {
        // As long as both directions are alike they stay so while a satellite moves.
        FeedbackSpec::Ideal if own.delay == other.delay => arq::Feedback::Ideal,
        FeedbackSpec::Ideal => arq::Feedback::After(back),
        FeedbackSpec::After { time: Time(time) } => arq::Feedback::After(time),
        FeedbackSpec::Sized { size: Size(bytes) } => {
            let sending = other.rate.mean().map_or(0.0, |rate| bytes as f64 / rate.bytes_per_sec());
            arq::Feedback::After(back + Duration::from_secs_f64(sending))
        }
    }
}

fn window(
    key: &str,
    spec: Option<QueueLimit>,
    rate: Option<Rate>,
    rtt: Duration,
    packet: u32,
) -> Result<u32> {
    let default = QueueLimit::Bdp(Decimal::parse(WINDOW).unwrap_or(Decimal::whole(1)));
    let packets = match (spec.unwrap_or(default), rate) {
        (QueueLimit::Packets(n), _) => Some(n),
        (QueueLimit::Bdp(_), None) => Some(u32::MAX.into()),
        (QueueLimit::Bdp(_), _) if packet == 0 => Some(1),
        // At least one: a link without delay has no product, but sends all the same.
        (QueueLimit::Bdp(n), Some(rate)) => bdp_packets(n, rate, rtt, packet).map(|n| n.max(1)),
        (QueueLimit::Bytes(_) | QueueLimit::Unlimited, _) => {
            return refuse(key, "a window counts packets: write \"100 packets\" or \"1.5 BDP\"");
        }
    };
    match packets.map(u32::try_from) {
        Some(Ok(n)) => Ok(n),
        _ => refuse(key, "too many packets: write a smaller window, such as \"1.5 BDP\""),
    }
}

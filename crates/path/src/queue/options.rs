//! Common parts of active queue management in files: keys, and errors.

use super::model::Key;
use crate::param::{ParamError, Refusal};
use skyhaul_base::Duration;

/// An optional key.
const fn key(name: &'static str, elsewhere: &'static str) -> Key {
    Key { name, elsewhere, missing: None }
}

const MANAGED: &str = "only the kinds \"red\", \"codel\", \"fq-codel\" and \"pie\" have this key";
const RANDOM: &str = "only the kinds \"red\" and \"wred\" have this key";
const TIMED: &str = "only the kinds \"codel\", \"dual-pi2\", \"fq-codel\" and \"pie\" have this key";
const CONTROLLED: &str = "only the kinds \"codel\" and \"fq-codel\" have this key";
const FLOWS: &str = "only the kind \"fq-codel\" has this key";
const FLOW_COUNT: &str = "only the kinds \"cake\" and \"fq-codel\" have this key";
const SHAPED: &str = "only the kind \"cake\" has this key";
const PROPORTIONAL: &str = "only the kind \"pie\" has this key";
const PI: &str = "only the kinds \"dual-pi2\" and \"pie\" have this key";
const DUAL: &str = "only the kind \"dual-pi2\" has this key";
const BY_CLASS: &str = "only the kind \"wred\" has this key";
const BANDS: &str = "only the kind \"two-band\" has this key";

pub(super) const ALPHA: Key = key("alpha", PI);
pub(super) const BETA: Key = key("beta", PI);
pub(super) const BURST: Key = key("burst", PROPORTIONAL);
pub(super) const CLASSIC_SHARE: Key = key("classic-share", DUAL);
pub(super) const CLASS_AWARE: Key = key("class-aware", MANAGED);
pub(super) const COUPLING: Key = key("coupling", DUAL);
pub(super) const ECN: Key =
    key("ecn", "only the kinds \"red\", \"wred\", \"codel\", \"fq-codel\" and \"pie\" have this key");
pub(super) const ECN_THRESHOLD: Key = key("ecn-threshold", PROPORTIONAL);
pub(super) const FLOW_QUEUES: Key = key("flows", FLOW_COUNT);
pub(super) const FRAMING: Key = key("framing", SHAPED);
pub(super) const GENTLE: Key = key("gentle", RANDOM);
pub(super) const INTERVAL: Key = key("interval", CONTROLLED);
pub(super) const ISOLATION: Key = key("isolation", SHAPED);
pub(super) const LOW_MAX_PROBABILITY: Key = key("low-max-probability", BY_CLASS);
pub(super) const LOW_MAX_THRESHOLD: Key = key("low-max-threshold", BY_CLASS);
pub(super) const LOW_MIN_THRESHOLD: Key = key("low-min-threshold", BY_CLASS);
pub(super) const LOW_RATE: Key = key("low-rate", BANDS);
pub(super) const LOW_ROOM: Key = key("low-room", BANDS);
pub(super) const MAX_PROBABILITY: Key = key("max-probability", RANDOM);
pub(super) const MAX_THRESHOLD: Key = key("max-threshold", RANDOM);
pub(super) const MIN_DELAY: Key = key("min-delay", DUAL);
pub(super) const MIN_THRESHOLD: Key = key("min-threshold", RANDOM);
pub(super) const MPU: Key = key("mpu", SHAPED);
pub(super) const OVERHEAD: Key = key("overhead", SHAPED);
pub(super) const PACKET_SIZE: Key =
    key("packet-size", "only the kinds \"red\", \"wred\" and \"pie\" have this key");
pub(super) const QUANTUM: Key = key("quantum", FLOWS);
pub(super) const RANGE: Key = key("range", DUAL);
pub(super) const RATE: Key = key("rate", SHAPED);
pub(super) const RTT: Key = key("rtt", SHAPED);
pub(super) const TARGET: Key = key("target", TIMED);
pub(super) const TINS: Key = key("tins", SHAPED);
pub(super) const UPDATE: Key = key("update", PI);
pub(super) const WEIGHT: Key = key("weight", RANDOM);

/// Why the configuration of active queue management is invalid.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Invalid {
    /// A number lies outside its range.
    #[error(transparent)]
    Param(#[from] ParamError),
    /// The lower threshold is not below the upper one.
    #[error("{min} packets is not below `{upper}`, {max}: write less")]
    Thresholds {
        /// Key of the lower one.
        lower: &'static str,
        /// Key of the upper one.
        upper: &'static str,
        /// The lower one.
        min: f64,
        /// The upper one.
        max: f64,
    },
    /// A threshold of this many packets is never reached.
    #[error("{min} packets is more than the queue holds, so it never acts: write less, or raise `limit`")]
    NeverReached {
        /// Its key.
        key: &'static str,
        /// Its value.
        min: f64,
    },
    /// A value that must be positive is zero.
    #[error("must be above 0: write {example}")]
    Zero {
        /// Its key.
        key: &'static str,
        /// An example of what to write.
        example: &'static str,
    },
    /// A controller that is updated so often computes nothing else: a second would be millions of updates.
    #[error("is below {} us: write a time such as \"15 ms\"", LEAST_UPDATE.as_nanos() / 1000)]
    TooOften,
    /// A number of queues that is not made of whole sets.
    #[error("{queues} is not a multiple of {ways}: write 1024")]
    Ways {
        /// The number.
        queues: u64,
        /// Queues of a set.
        ways: u64,
    },
    /// The control law of CoDel needs a target below the interval.
    #[error("the target must lie below the interval: write some 5 to 10 % of it (RFC 8289 §3.2)")]
    TargetAboveInterval,
}

impl Refusal for Invalid {
    fn key(&self) -> &'static str {
        match self {
            Self::Param(e) => e.key(),
            Self::Thresholds { lower: key, .. } | Self::NeverReached { key, .. } | Self::Zero { key, .. } => {
                key
            }
            Self::TooOften => UPDATE.name,
            Self::Ways { .. } => FLOW_QUEUES.name,
            Self::TargetAboveInterval => TARGET.name,
        }
    }
}

/// The RTT that the interval of RFC 8289 is for. The times of RFC 8033, which names none, are taken to be for the same
/// (*our choice*).
pub(super) const USUAL_RTT: Duration = Duration::from_millis(100);

/// The RTT that parameters are chosen for on a path with this base RTT: rounded up to 10 ms, and never less than
/// [`USUAL_RTT`].
pub(super) fn round_trip(rtt: Duration) -> Duration {
    let step = Duration::from_millis(10);
    let steps = rtt.as_nanos().div_ceil(step.as_nanos());
    USUAL_RTT.max(step * steps)
}

/// Refuses a time of zero.
pub(super) fn some_time(key: &'static str, time: Duration, example: &'static str) -> Result<(), Invalid> {
    if time.is_zero() { Err(Invalid::Zero { key, example }) } else { Ok(()) }
}

/// Least time between two updates of a controller. Each costs a step of computation, also while nothing arrives.
const LEAST_UPDATE: Duration = Duration::from_micros(100);

/// Refuses a time between updates that is too short.
pub(super) fn update(time: Duration) -> Result<(), Invalid> {
    some_time(UPDATE.name, time, "a time such as \"15 ms\"")?;
    if time < LEAST_UPDATE { Err(Invalid::TooOften) } else { Ok(()) }
}

/// Refuses a size of zero.
pub(super) fn some_bytes(key: &'static str, bytes: u64, example: &'static str) -> Result<(), Invalid> {
    if bytes == 0 { Err(Invalid::Zero { key, example }) } else { Ok(()) }
}

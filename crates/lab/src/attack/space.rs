//! The bounds of a search, and the cases within them.

use crate::attack::goal::Goal;
use crate::attack::point::Point;
use crate::error::{AttackError, LabError};
use serde::de::DeserializeOwned;
use skyhaul_base::{Duration, math};
use skyhaul_scenario::amount::{Count, Probability, QueueLimit, RateSpec, Time};
use skyhaul_study::files::read_text;
use std::path::PathBuf;
use toml::{Table, Value};

/// The built-in bounds, as a file.
const DEFAULT: &str = include_str!("bounds.toml");
/// The name of the built-in bounds in messages.
const BUILT_IN: &str = "the built-in bounds";
/// The name in messages of bounds that come as a text.
const GIVEN: &str = "bounds";

/// Where the bounds of a search come from. The built-in bounds hold for keys that a source does not have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BoundsSource {
    /// The built-in bounds.
    #[default]
    BuiltIn,
    /// A file.
    File(PathBuf),
    /// The text of such a file.
    Text(String),
}

/// How the values of a key are spread over its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    /// Equal ratios: for what spans orders of magnitude.
    Log,
    /// The cube of equal steps: for what spans orders of magnitude and may be zero.
    Cubic,
    /// Equal steps.
    Linear,
}

/// A range in base units; equal ends fix the key.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Range {
    low: f64,
    high: f64,
    scale: Scale,
}

impl Range {
    /// The value at a place from 0 to 1.
    fn at(&self, place: f64) -> f64 {
        let u = place.clamp(0.0, 1.0);
        let between = |a: f64, b: f64| a + u * (b - a);
        let value = match self.scale {
            Scale::Log => math::exp(between(math::ln(self.low), math::ln(self.high))),
            Scale::Cubic => {
                let root = between(math::cbrt(self.low), math::cbrt(self.high));
                root * root * root
            }
            Scale::Linear => between(self.low, self.high),
        };
        rounded(value).clamp(self.low, self.high)
    }

    fn is_fixed(&self) -> bool {
        self.low == self.high
    }
}

/// `x` with three significant digits.
fn rounded(x: f64) -> f64 {
    format!("{x:.2e}").parse().unwrap_or(x)
}

/// The bounds of a search.
#[derive(Clone, Debug)]
pub(super) struct Space {
    /// How long each run lasts.
    pub(super) duration: Duration,
    /// In the order of [`RANGES`].
    ranges: [Range; RANGES.len()],
    /// The controls that neighbours may have.
    neighbours: Vec<String>,
    /// The keys that vary, in the order of the coordinates.
    pub(super) varied: Vec<&'static str>,
}

/// What a key needs in order to have an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    Nothing,
    Neighbours,
}

/// The keys with a range.
const RANGES: [(&str, Scale, Needs); 8] = [
    ("rate", Scale::Log, Needs::Nothing),
    ("rtt", Scale::Log, Needs::Nothing),
    ("buffer", Scale::Log, Needs::Nothing),
    ("loss", Scale::Cubic, Needs::Nothing),
    ("burst", Scale::Log, Needs::Nothing),
    ("jitter", Scale::Cubic, Needs::Nothing),
    ("start", Scale::Linear, Needs::Neighbours),
    ("count", Scale::Linear, Needs::Neighbours),
];
/// The index of `start` in [`RANGES`].
const START: usize = 6;
const NEIGHBOURS: &str = "neighbours";
const DURATION: &str = "duration";

impl Space {
    /// Reads the given bounds. The built-in bounds hold for keys that `bounds` does not have.
    pub(super) fn read(bounds: &BoundsSource, goal: Goal) -> Result<Self, LabError> {
        Ok(match bounds {
            BoundsSource::BuiltIn => Self::parse(BUILT_IN, "", goal)?,
            BoundsSource::File(path) => {
                let text = read_text(path).map_err(LabError::read(path))?;
                Self::parse(&path.display().to_string(), &text, goal)?
            }
            BoundsSource::Text(text) => Self::parse(GIVEN, text, goal)?,
        })
    }

    /// As [`Self::read`], for bounds in `text`; `file` is their name in messages.
    pub(super) fn parse(file: &str, text: &str, goal: Goal) -> Result<Self, AttackError> {
        let refuse =
            |key: &str, message: String| AttackError::Bounds { file: file.into(), key: key.into(), message };
        let own: Table = text.parse().map_err(|e: toml::de::Error| {
            refuse("", format!("not TOML: {}", e.message().lines().next().unwrap_or_default()))
        })?;
        let mut all: Table = DEFAULT.parse().unwrap_or_else(|_| unreachable!("the built-in bounds are TOML"));
        for (key, value) in own {
            if !all.contains_key(&key) {
                let known: Vec<&str> = all.keys().map(String::as_str).collect();
                return Err(refuse(&key, format!("there is no such key; accepted: {}", known.join(", "))));
            }
            all.insert(key, value);
        }
        let duration: Time = one(&all[DURATION]).map_err(|why| refuse(DURATION, why))?;
        if duration.0.is_zero() {
            return Err(refuse(
                DURATION,
                "a run of no length measures nothing: write a time such as \"60 s\"".into(),
            ));
        }
        let mut ranges = [Range { low: 0.0, high: 0.0, scale: Scale::Linear }; RANGES.len()];
        for (slot, (key, scale, _)) in ranges.iter_mut().zip(RANGES) {
            let (low, high) = ends(key, &all[key]).map_err(|why| refuse(key, why))?;
            if low > high {
                return Err(refuse(
                    key,
                    "the first value is the larger one: write the smaller one first".into(),
                ));
            }
            *slot = Range { low, high, scale };
        }
        let run = duration.0.as_secs_f64();
        // A candidate alone starts at the beginning, whatever the bounds say.
        if goal.has_neighbours() && ranges[START].high * 1e-9 >= run {
            return Err(refuse(
                "start",
                format!("the run of {duration} may be over before the candidate starts: write earlier times"),
            ));
        }
        let neighbours: Vec<String> = all[NEIGHBOURS]
            .clone()
            .try_into()
            .map_err(|_| refuse(NEIGHBOURS, "write a list of controls, such as [\"newreno\"]".into()))?;
        if neighbours.is_empty() {
            return Err(refuse(
                NEIGHBOURS,
                "the list is empty: write a list of controls, such as [\"newreno\"]".into(),
            ));
        }
        let beside = goal.has_neighbours();
        let matters =
            |(_, (_, _, needs)): &(&Range, (&str, Scale, Needs))| beside || *needs == Needs::Nothing;
        let used: Vec<_> = ranges.iter().zip(RANGES).filter(matters).collect();
        let mut varied: Vec<&'static str> =
            used.iter().filter(|(r, _)| !r.is_fixed()).map(|(_, (key, _, _))| *key).collect();
        if beside && neighbours.len() > 1 {
            varied.push(NEIGHBOURS);
        }
        if varied.is_empty() {
            let mut keys: Vec<&str> = used.iter().map(|(_, (key, _, _))| *key).collect();
            keys.extend(beside.then_some(NEIGHBOURS));
            return Err(AttackError::NoRoom { file: file.into(), goal: goal.name(), keys: keys.join(", ") });
        }
        Ok(Self { duration: duration.0, ranges, neighbours, varied })
    }

    /// The case at a place: a coordinate from 0 to 1 for each key that varies.
    pub(super) fn at(&self, place: &[f64]) -> Point {
        let of = |key: &str| self.varied.iter().position(|v| *v == key).map_or(0.0, |i| place[i]);
        let [rate, rtt, buffer, loss, burst, jitter, start, count] =
            std::array::from_fn(|i| self.ranges[i].at(of(RANGES[i].0)));
        let nth = (of(NEIGHBOURS).clamp(0.0, 1.0) * self.neighbours.len() as f64) as usize;
        Point {
            rate: rate as u64,
            // Each direction has half of the RTT as its delay, so the RTT is even.
            rtt_ns: (rtt as u64).next_multiple_of(2),
            buffer,
            loss,
            burst,
            jitter_ns: jitter as u64,
            start_ns: start as u64,
            count: count.round() as u64,
            neighbours: self.neighbours[nth.min(self.neighbours.len() - 1)].clone(),
        }
    }

    /// The case in the middle of the bounds.
    pub(super) fn middle(&self) -> Point {
        self.at(&vec![0.5; self.varied.len()])
    }

    /// The same case with `key` in the middle of its bounds. For the key `neighbours`, one case with each of the other neighbours.
    pub(super) fn moved(&self, point: &Point, key: &str) -> Vec<Point> {
        let middle = self.middle();
        let with = |change: &dyn Fn(&mut Point)| {
            let mut other = point.clone();
            change(&mut other);
            other
        };
        let all = match key {
            "rate" => vec![with(&|p| p.rate = middle.rate)],
            "rtt" => vec![with(&|p| p.rtt_ns = middle.rtt_ns)],
            "buffer" => vec![with(&|p| p.buffer = middle.buffer)],
            "loss" => vec![with(&|p| p.loss = middle.loss)],
            "burst" => vec![with(&|p| p.burst = middle.burst)],
            "jitter" => vec![with(&|p| p.jitter_ns = middle.jitter_ns)],
            "start" => vec![with(&|p| p.start_ns = middle.start_ns)],
            "count" => vec![with(&|p| p.count = middle.count)],
            _ => self.neighbours.iter().map(|n| with(&|p| p.neighbours.clone_from(n))).collect(),
        };
        all.into_iter().filter(|other| other != point).collect()
    }

    /// A text that differs if the bounds differ: a search continues only a journal with the same text.
    pub(super) fn identity(&self) -> String {
        format!("{:?} {:?} {:?}", self.duration, self.ranges.map(|r| (r.low, r.high)), self.neighbours)
    }
}

/// A value read as a `T`, or the reason why it is none.
fn one<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    T::deserialize(value.clone()).map_err(|e| e.message().lines().next().unwrap_or_default().to_owned())
}

/// The ends of a range, in base units: bit/s, ns, BDP, or a number.
fn ends(key: &str, value: &Value) -> Result<(f64, f64), String> {
    let end = |v: &Value| match key {
        "rate" => match one::<RateSpec>(v)? {
            RateSpec::Bits(rate) => Ok(rate.bits_per_sec() as f64),
            _ => Err("write a rate in bit/s, such as \"10 Mbit/s\"".to_owned()),
        },
        "rtt" => match one::<Time>(v)?.0.as_nanos() {
            0 => Err("an RTT is longer than zero: write a time such as \"10 ms\"".to_owned()),
            ns => Ok(ns as f64),
        },
        "jitter" | "start" => Ok(one::<Time>(v)?.0.as_nanos() as f64),
        "buffer" => match one::<QueueLimit>(v)? {
            QueueLimit::Bdp(n) if !n.is_zero() => Ok(n.to_f64()),
            _ => Err("write a buffer in bandwidth-delay products, such as \"0.5 BDP\"".to_owned()),
        },
        "loss" => match one::<Probability>(v)?.0 {
            // Bursts of one packet allow no higher loss: at least one packet arrives between two of them.
            p if p <= 0.5 => Ok(p),
            _ => Err("write a share of packets from 0 to 0.5".to_owned()),
        },
        "burst" => match v.as_float().or_else(|| v.as_integer().map(|n| n as f64)) {
            Some(n) if n >= 1.0 && n.is_finite() => Ok(n),
            _ => Err("write a mean number of packets, 1 or more".to_owned()),
        },
        _ => match one::<Count>(v)?.0 {
            // At most 1000: *our choice*.
            n @ 1..=1000 => Ok(n as f64),
            _ => Err("write a number of neighbours from 1 to 1000".to_owned()),
        },
    };
    match value {
        Value::Array(list) => match list.as_slice() {
            [low, high] => Ok((end(low)?, end(high)?)),
            _ => Err("write one value, or a list of two: the smallest and the largest".to_owned()),
        },
        fixed => end(fixed).map(|v| (v, v)),
    }
}

//! The measurements of a cell, before any metric: named numbers in columns.
//!
//! The cache stores these, so a new metric over old runs costs nothing.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything measured in one run.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Observed {
    /// `run.*`: quantities of the whole run.
    pub run: BTreeMap<String, Number>,
    /// `flow.*`: one entry per flow.
    pub flows: Flows,
    /// `link.<name>.*`: link → quantity (such as `forward.dropped_error`) → value.
    pub links: BTreeMap<String, BTreeMap<String, Number>>,
    /// `series.*`: sampled curves of flows, then of links; by series, then in the order of the flows or links.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Sampled>,
}

/// Flows in columns.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Flows {
    /// Group of each flow.
    pub group: Vec<String>,
    /// Quantity → one value per flow.
    pub columns: BTreeMap<String, Vec<Number>>,
}

/// A sampled curve of a flow, or of one direction of a link.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Sampled {
    /// Name, such as `cwnd`.
    pub name: String,
    /// Group of the flow, or link and direction, such as `sat.forward`.
    pub group: String,
    /// Index of the flow among all flows, or of the direction among those of all links.
    pub flow: u32,
    /// Times, s; ascending.
    pub time: Vec<Number>,
    /// Values.
    pub value: Vec<Number>,
}

/// A real number in JSON: a value that is not finite is written as `null` and read as NaN.
#[derive(Clone, Copy, Debug, Default)]
pub struct Number(pub f64);

impl From<f64> for Number {
    fn from(x: f64) -> Self {
        Self(x)
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Serialize for Number {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        // Whole numbers without ".0": counters are most of a file.
        if self.0.is_finite()
            && self.0.abs() < 9e15
            && self.0 == self.0.trunc()
            && self.0.to_bits() != 1 << 63
        {
            return s.serialize_i64(self.0 as i64);
        }
        if self.0.is_finite() { s.serialize_f64(self.0) } else { s.serialize_none() }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Option::<f64>::deserialize(d).map(|x| Self(x.unwrap_or(f64::NAN)))
    }
}

impl Sampled {
    /// The value at `t`: that of the last sample not after it.
    #[must_use]
    pub fn at(&self, t: f64) -> f64 {
        let after = self.time.partition_point(|x| x.0 <= t);
        after.checked_sub(1).map_or(f64::NAN, |i| self.value[i].0)
    }

    /// Time of the first sample of at least `level`; NaN if there is none.
    #[must_use]
    pub fn reach(&self, level: f64) -> f64 {
        let found = self.value.iter().position(|v| v.0 >= level);
        found.map_or(f64::NAN, |i| self.time[i].0)
    }

    /// Times and values of the samples in [from, to].
    pub fn within(&self, from: f64, to: f64) -> impl Iterator<Item = (f64, f64)> + '_ {
        let points = self.time.iter().zip(&self.value).map(|(t, v)| (t.0, v.0));
        points.filter(move |(t, _)| *t >= from && *t <= to)
    }
}

impl Observed {
    /// The sampled curves called `name`, of one group or of all.
    pub fn curves<'a>(&'a self, name: &'a str, group: Option<&'a str>) -> impl Iterator<Item = &'a Sampled> {
        self.series.iter().filter(move |s| s.name == name && group.is_none_or(|g| s.group == g))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive_the_file_bit_for_bit() {
        for x in [0.0, -0.0, 1.0, 0.1 + 0.2, 1e300, 5e-324, -17.0, 9_007_199_254_740_993.0, f64::INFINITY] {
            let text = serde_json::to_string(&Number(x)).expect("a number");
            let back: Number = serde_json::from_str(&text).expect("the same");
            if x.is_finite() {
                assert_eq!(back, Number(x), "{text}");
            } else {
                assert!(back.0.is_nan());
            }
        }
    }

    #[test]
    fn curves_hold_their_last_sample() {
        let n = |v: &[f64]| v.iter().copied().map(Number).collect::<Vec<_>>();
        let c = Sampled {
            name: "cwnd".into(),
            group: "a".into(),
            flow: 0,
            time: n(&[1.0, 2.0, 3.0]),
            value: n(&[5.0, 7.0, 6.0]),
        };
        assert!(c.at(0.5).is_nan());
        assert_eq!((c.at(1.0), c.at(2.9), c.at(9.0)), (5.0, 7.0, 6.0));
        assert_eq!(c.reach(6.0), 2.0);
        assert!(c.reach(8.0).is_nan());
        assert_eq!(c.within(2.0, 3.0).count(), 2);
    }
}

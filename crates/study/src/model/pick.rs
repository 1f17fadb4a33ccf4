//! Selection of combinations of axis values.

use crate::model::raw::label_of;
use schemars::JsonSchema;
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;

/// One value of an axis, or several: by label, or by value if it is a number, a string or a boolean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisSelection(pub Vec<String>);

impl<'de> Deserialize<'de> for AxisSelection {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let scalar = |v: &toml::Value| match v {
            toml::Value::Table(_) | toml::Value::Array(_) => {
                Err(D::Error::custom("expected a label or value of the axis, or a list of these"))
            }
            v => Ok(label_of(v)),
        };
        match toml::Value::deserialize(d)? {
            toml::Value::Array(all) => all.iter().map(scalar).collect::<Result<_, _>>().map(Self),
            one => scalar(&one).map(|s| Self(vec![s])),
        }
    }
}

impl Serialize for AxisSelection {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match &self.0[..] {
            [one] => s.serialize_str(one),
            many => many.serialize(s),
        }
    }
}

/// Axis → values. Empty: everything.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Selector(
    #[schemars(with = "BTreeMap<String, serde_json::Value>")] pub BTreeMap<String, AxisSelection>,
);

impl Selector {
    /// True if it selects everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// One side of a comparison: values of axes, and optionally another metric under the key `metric`.
#[derive(Clone, Debug, Default, JsonSchema, PartialEq, Eq)]
#[schemars(transparent)]
pub struct Side {
    /// The values of axes at which the metric is taken.
    pub at: Selector,
    /// The metric, if not that of the check.
    #[schemars(skip)]
    pub metric: Option<String>,
}

impl<'de> Deserialize<'de> for Side {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let mut at = Selector::deserialize(d)?;
        let metric = match at.0.remove("metric").map(|named| named.0) {
            None => None,
            Some(named) => match <[String; 1]>::try_from(named) {
                Ok([one]) => Some(one),
                Err(_) => return Err(D::Error::custom("expected one metric")),
            },
        };
        Ok(Self { at, metric })
    }
}

impl Serialize for Side {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut all = self.at.clone();
        if let Some(metric) = &self.metric {
            all.0.insert("metric".to_owned(), AxisSelection(vec![metric.clone()]));
        }
        all.serialize(s)
    }
}

/// A string or a list of strings.
#[derive(Clone, Debug, Default, JsonSchema, PartialEq, Eq)]
pub struct OneOrMany(#[schemars(with = "serde_json::Value")] pub Vec<String>);

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let wrong = || D::Error::custom("expected a string or a list of strings");
        match toml::Value::deserialize(d)? {
            toml::Value::String(s) => Ok(Self(vec![s])),
            toml::Value::Array(all) => {
                let strings = all.into_iter().map(|v| v.as_str().map(str::to_owned).ok_or_else(wrong));
                strings.collect::<Result<_, _>>().map(Self)
            }
            _ => Err(wrong()),
        }
    }
}

impl Serialize for OneOrMany {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match &self.0[..] {
            [one] => s.serialize_str(one),
            many => many.serialize(s),
        }
    }
}

/// Label or value of an axis: a string, a number or a boolean.
#[derive(Clone, Debug, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Label(#[schemars(with = "serde_json::Value")] pub String);

impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        match &AxisSelection::deserialize(d)?.0[..] {
            [one] => Ok(Self(one.clone())),
            _ => Err(D::Error::custom("expected one label or value of the axis")),
        }
    }
}

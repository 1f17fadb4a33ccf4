//! What varies.

use crate::format;
use crate::model::OneOrMany;
use crate::model::raw::{Raw, label_of};
use schemars::JsonSchema;
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;

/// Path in the scenario → value, as with `--set`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Settings(#[schemars(with = "BTreeMap<String, serde_json::Value>")] pub BTreeMap<String, Raw>);

impl Settings {
    /// True without settings.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// An axis: something that varies.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// Name in claims and figures.
    pub name: String,
    /// Title of tables and figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Unit of the values, for titles.
    #[serde(default)]
    pub unit: String,
    /// Key of the scenario that a plain value sets; several keys get the same value. Without it, each value has its
    /// own settings.
    #[serde(default)]
    pub path: OneOrMany,
    /// The values in order: plain values for `path`, or tables with `set`, `value`, `label`, `x`, `let`.
    pub values: Vec<AxisValue>,
    /// Names of the values in tables; by default the values themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
}

/// One value of an axis.
#[derive(Clone, Debug, Default, JsonSchema, PartialEq)]
#[schemars(with = "serde_json::Value")]
pub struct AxisValue {
    /// The value for the paths of the axis.
    pub value: Option<Raw>,
    /// Its own settings.
    pub set: Settings,
    /// Its name.
    pub label: Option<String>,
    /// Its position on a numeric axis; by default the value, if it is a number.
    pub x: Option<f64>,
    /// Constants for expressions, as `let.<name>`.
    pub constants: BTreeMap<String, f64>,
}

/// The long form of a value.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Long {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<Raw>,
    #[serde(default, skip_serializing_if = "Settings::is_empty")]
    set: Settings,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    x: Option<f64>,
    #[serde(default, rename = "let", skip_serializing_if = "BTreeMap::is_empty")]
    constants: BTreeMap<String, f64>,
}

impl<'de> Deserialize<'de> for AxisValue {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let raw = Raw::deserialize(d)?;
        // A table is a value of the scenario (such as `{ name = "peach" }`) unless it has a key of ours.
        let long = raw.as_table().is_some_and(|t| t.contains_key("set") || t.contains_key("value"));
        if !long {
            return Ok(Self { value: Some(raw), ..Self::default() });
        }
        let long: Long = raw
            .try_into()
            .map_err(|e: toml::de::Error| D::Error::custom(format!("value of an axis: {}", e.message())))?;
        Ok(Self { value: long.value, set: long.set, label: long.label, x: long.x, constants: long.constants })
    }
}

impl Serialize for AxisValue {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        if let (Some(value), true) = (&self.value, self.set.is_empty() && self.constants.is_empty()) {
            if self.label.is_none() && self.x.is_none() {
                return value.serialize(s);
            }
        }
        let (value, set, label) = (self.value.clone(), self.set.clone(), self.label.clone());
        Long { value, set, label, x: self.x, constants: self.constants.clone() }.serialize(s)
    }
}

impl AxisValue {
    /// Position on a numeric axis.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        self.x.or_else(|| match self.value.as_ref()? {
            Raw::Integer(i) => Some(*i as f64),
            Raw::Float(f) => Some(*f),
            _ => None,
        })
    }
}

impl Axis {
    /// Label of value `i`.
    #[must_use]
    pub fn label(&self, i: usize) -> String {
        let value = &self.values[i];
        if let Some(label) = value.label.as_ref().or_else(|| self.labels.get(i)) {
            return label.clone();
        }
        match &value.value {
            Some(Raw::Float(f)) if f.abs() < 1.0 && *f != 0.0 && self.has_small() => format!("{f:e}"),
            Some(v) => label_of(v),
            None => format!("{}", i + 1),
        }
    }

    /// Whether a value is so small that it is written as a power of ten; then its neighbours are too.
    fn has_small(&self) -> bool {
        let small = |v: &AxisValue| matches!(v.value, Some(Raw::Float(f)) if f != 0.0 && f.abs() < 1e-3);
        self.values.iter().any(small)
    }

    /// Index of the value that `pick` names.
    #[must_use]
    pub fn index_of(&self, pick: &str) -> Option<usize> {
        let all = 0..self.values.len();
        all.clone().find(|i| self.label(*i) == pick).or_else(|| {
            all.into_iter().find(|i| {
                let v = &self.values[*i];
                let same = v.value.as_ref().is_some_and(|raw| label_of(raw) == pick);
                same || pick.parse().ok().is_some_and(|p: f64| v.number() == Some(p))
            })
        })
    }

    /// Its title, or its name if it has none.
    #[must_use]
    pub fn title_or_name(&self) -> &str {
        self.title.as_ref().unwrap_or(&self.name)
    }

    /// Title with unit.
    #[must_use]
    pub fn heading(&self) -> String {
        format::heading(self.title_or_name(), &self.unit)
    }
}

/// The headings of axes. An axis whose heading an earlier axis has already gets its name behind its title.
#[must_use]
pub fn headings(axes: &[Axis]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for axis in axes {
        let mut heading = axis.heading();
        if all.contains(&heading) {
            heading = format::heading(&format!("{} [{}]", axis.title_or_name(), axis.name), &axis.unit);
        }
        all.push(heading);
    }
    all
}

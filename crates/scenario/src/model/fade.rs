//! Fades of links, and rates that depend on the offered traffic: tables identified by their keys.

use super::trace::{EndSpec, is_trace};
use crate::amount::RateSpec;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize, Serializer};
use skyhaul_path::fade::{self, carrier};
use skyhaul_path::rate;
use std::borrow::Cow;
use toml::Value;

/// Rain, shadowing or a file of attenuations; "none" if only the other direction fades.
#[derive(Clone, Debug, PartialEq)]
pub enum FadeSpec {
    /// None.
    None,
    /// A model.
    Model(Box<fade::Config>),
    /// From a file.
    Series(Box<SeriesSpec>),
}

/// A file of attenuations over time; its path is relative to the scenario file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "FadeSeriesSpec")]
pub struct SeriesSpec {
    /// A CSV file with the header `time_s,attenuation_dB` and one line per time; each value holds until the next.
    pub trace: String,
    /// The content itself, instead of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What happens after the last line; "hold" by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<EndSpec>,
    /// The carrier that fades.
    pub carrier: carrier::Config,
}

impl<'de> Deserialize<'de> for FadeSpec {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        // Only the keys show which it is.
        let value = Value::deserialize(d)?;
        let wrong = |e: toml::de::Error| D::Error::custom(e.message());
        match &value {
            Value::String(text) if text == "none" => Ok(Self::None),
            Value::Table(table) if is_trace(table) => {
                SeriesSpec::deserialize(value).map(|s| Self::Series(Box::new(s))).map_err(wrong)
            }
            Value::Table(_) => {
                fade::Config::deserialize(value).map(|f| Self::Model(Box::new(f))).map_err(wrong)
            }
            _ => Err(D::Error::custom(
                "write \"none\", or a table such as { kind = \"rain\", carrier = { es-n0 = \"12 dB\" } }",
            )),
        }
    }
}

impl Serialize for FadeSpec {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => s.serialize_str("none"),
            Self::Model(fade) => fade.serialize(s),
            Self::Series(series) => series.serialize(s),
        }
    }
}

impl JsonSchema for FadeSpec {
    fn schema_name() -> Cow<'static, str> {
        "FadeOrTrace".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let model = generator.subschema_for::<fade::Config>();
        let series = generator.subschema_for::<SeriesSpec>();
        json_schema!({ "anyOf": [{ "const": "none" }, model, series] })
    }
}

/// A rate, or a table for a rate that depends on the offered traffic.
#[derive(Clone, Debug, PartialEq)]
pub enum RateOrKind {
    /// A rate.
    Rate(RateSpec),
    /// A table.
    Kind(rate::Kind),
}

impl<'de> Deserialize<'de> for RateOrKind {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(d)?;
        let wrong = |e: toml::de::Error| D::Error::custom(e.message());
        match &value {
            Value::Table(_) => rate::Kind::deserialize(value).map(Self::Kind).map_err(wrong),
            _ => RateSpec::deserialize(value).map(Self::Rate).map_err(wrong),
        }
    }
}

impl Serialize for RateOrKind {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Rate(rate) => rate.serialize(s),
            Self::Kind(kind) => kind.serialize(s),
        }
    }
}

impl JsonSchema for RateOrKind {
    fn schema_name() -> Cow<'static, str> {
        "RateOrKind".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let rate = generator.subschema_for::<RateSpec>();
        let kind = generator.subschema_for::<rate::Kind>();
        json_schema!({ "anyOf": [rate, kind] })
    }
}

//! Values written as a text or as a table. They are always serialised as a table.

use core::marker::PhantomData;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use skyhaul_base::Rate;
use skyhaul_base::amount::{AmountError, Count, RateSpec, Size, Time, text_or_table};
use skyhaul_base::dist::{InvalidDistribution, Sizes, Times};
use std::borrow::Cow;

/// The meaning of a text.
pub(crate) trait Text: Sized {
    /// The expected forms, for messages: "a time such as …, or a table".
    const EXPECTING: &'static str;
    fn from_text(text: &str) -> Result<Self, AmountError>;
    /// The error for a bare number.
    fn bare(n: &str) -> String;
    /// Schema of the text.
    fn text_schema(generator: &mut SchemaGenerator) -> Schema;
}

/// Reads a text or a table.
pub(crate) fn deserialize<'de, T: Text + Deserialize<'de>, D: Deserializer<'de>>(
    d: D,
) -> Result<T, D::Error> {
    text_or_table(d, T::EXPECTING, T::from_text, T::bare)
}

/// Reads an optional text or table.
pub(crate) fn optional<'de, T: Text + Deserialize<'de>, D: Deserializer<'de>>(
    d: D,
) -> Result<Option<T>, D::Error> {
    deserialize(d).map(Some)
}

/// In the schema: a text or a table.
pub(crate) struct OrText<T>(PhantomData<T>);

impl<T: Text + JsonSchema> JsonSchema for OrText<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}OrText", T::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let text = T::text_schema(generator);
        let table = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [text, table] })
    }
}

macro_rules! optional_amounts {
    ($($(#[doc = $doc:literal])* $name:ident $amount:ident)*) => { $(
        $(#[doc = $doc])*
        pub(crate) mod $name {
            use super::*;

            pub(crate) fn serialize<S: Serializer>(value: &Option<u64>, s: S) -> Result<S::Ok, S::Error> {
                value.map($amount).serialize(s)
            }
            pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
                $amount::deserialize(d).map(|q| Some(q.0))
            }
        }
    )* };
}

optional_amounts! {
    /// An optional number, written as [`Count`].
    count Count
    /// An optional number of bytes, written as [`Size`].
    size Size
}

/// Rates in bit/s, written as a list of [`RateSpec`].
pub(crate) mod rates {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(list: &[u64], s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(list.iter().map(|bits| RateSpec::Bits(Rate::from_bits_per_sec(*bits))))
    }
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<u64>, D::Error> {
        let list = Vec::<RateSpec>::deserialize(d)?;
        let bits = |rate: &RateSpec| match rate {
            RateSpec::Bits(rate) => Ok(rate.bits_per_sec()),
            _ => Err(D::Error::custom("write rates in bit/s, such as \"80 kbit/s\"")),
        };
        list.iter().map(bits).collect()
    }
}

impl Text for Times {
    const EXPECTING: &'static str = "a time such as \"1 s\", or a table such as { exponential = \"1 s\" } or \
        { pareto = { mean = \"1 s\", shape = 1.5 } }";
    fn from_text(text: &str) -> Result<Self, AmountError> {
        text.parse::<Time>().map(|t| Self::Constant(t.0))
    }
    fn bare(n: &str) -> String {
        format!("{n} has no unit: write a time with a unit, such as \"{n} s\"")
    }
    fn text_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<Time>()
    }
}

impl Text for Sizes {
    const EXPECTING: &'static str = "a size such as \"30 kB\", or a table such as { exponential = \"30 kB\" }, \
        { list = [\"10 kB\", \"1 MB\"] }, { lognormal = { median = \"10 kB\", sigma = 1.5 } } or \
        { pareto = { min = \"4 kB\", max = \"10 MB\", shape = 1.2 } }";
    fn from_text(text: &str) -> Result<Self, AmountError> {
        text.parse::<Size>().map(|s| Self::Constant(s.0))
    }
    fn bare(n: &str) -> String {
        format!("{n} has no unit: write a size with a unit, such as \"{n} kB\"")
    }
    fn text_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<Size>()
    }
}

/// The key below `key` to which the error of a distribution refers.
pub(crate) fn within(key: &str, e: &InvalidDistribution) -> String {
    match e.key() {
        "" => key.into(),
        inner => format!("{key}.{inner}"),
    }
}

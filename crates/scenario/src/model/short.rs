//! Short forms: a text that stands for a table.

use super::endpoint::DelayedAckSpec;
use super::{EndpointSpec, OsSpec, QueueSpec, StartSpec};
use crate::error::ValueError;
use crate::quantity::{QueueLimit, Span, Time};
use core::fmt;
use core::marker::PhantomData;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use skyhaul_base::Duration;
use skyhaul_path::{Delay, error};
use std::borrow::Cow;
use toml::{Table, Value};

/// A table that may also be written as a text. It is always written out as a table.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Short<T>(pub T);

/// What stands for what.
trait ShortForm: Sized {
    /// What may be written, for messages: "a time such as …, or a table".
    const EXPECTING: &'static str;
    fn from_text(text: &str) -> Result<Self, ValueError>;
    /// How a bare number is refused.
    fn bare(n: &str) -> String {
        format!("{n} is not accepted here: write {}", Self::EXPECTING)
    }
    /// Schema of the text.
    fn text_schema(generator: &mut SchemaGenerator) -> Schema;
}

impl<'de, T: ShortForm + Deserialize<'de>> Deserialize<'de> for Short<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Reader<T>(PhantomData<T>);
        impl<'de, T: ShortForm + Deserialize<'de>> Visitor<'de> for Reader<T> {
            type Value = T;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(T::EXPECTING)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
                T::from_text(text).map_err(E::custom)
            }
            fn visit_i64<E: de::Error>(self, n: i64) -> Result<T, E> {
                Err(E::custom(T::bare(&n.to_string())))
            }
            fn visit_f64<E: de::Error>(self, x: f64) -> Result<T, E> {
                Err(E::custom(T::bare(&x.to_string())))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map))
            }
        }
        d.deserialize_any(Reader(PhantomData)).map(Self)
    }
}

impl<T: Serialize> Serialize for Short<T> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(s)
    }
}

impl<T: ShortForm + JsonSchema> JsonSchema for Short<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}OrText", T::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let text = T::text_schema(generator);
        let table = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [text, table] })
    }
}

/// Congestion control: the registry's configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct CcSpec(pub skyhaul_cc::Config);

impl ShortForm for CcSpec {
    const EXPECTING: &'static str = "a name such as \"peach\", or a table such as { name = \"peach\" }";
    fn from_text(text: &str) -> Result<Self, ValueError> {
        skyhaul_cc::Config::by_name(text).map(Self).ok_or_else(|| {
            let names = skyhaul_cc::NAMES.iter().copied();
            ValueError::unknown(text, "a congestion control", names, "; your own: \"user:NAME\"")
        })
    }
    fn text_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "enum": skyhaul_cc::NAMES },
            { "description": "A user's own, provided by the program that runs the scenario.",
              "type": "string", "pattern": "^user:[A-Za-z0-9_-]+$" },
        ] })
    }
}

impl ShortForm for EndpointSpec {
    const EXPECTING: &'static str =
        "a preset such as \"ns2-2001\", or a table such as { preset = \"ns2-2001\" }";
    fn from_text(text: &str) -> Result<Self, ValueError> {
        Ok(Self { preset: Some(text.into()), ..Self::default() })
    }
    fn text_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": skyhaul_tcp::config::PRESETS })
    }
}

impl ShortForm for OsSpec {
    const EXPECTING: &'static str =
        "a name such as \"linux-2.4\", or a table such as { name = \"linux-2.4\", buffers = \"max\" }";
    fn from_text(text: &str) -> Result<Self, ValueError> {
        Ok(Self::named(text))
    }
    fn text_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": super::os::names().collect::<Vec<_>>() })
    }
}

impl ShortForm for Delay {
    const EXPECTING: &'static str = "a time with a unit, such as \"275 ms\"";
    fn from_text(text: &str) -> Result<Self, ValueError> {
        Ok(Self::fixed(text.parse::<Time>()?.0))
    }
    fn bare(n: &str) -> String {
        format!("{n} has no unit: write a time with a unit, such as \"{n} ms\"")
    }
    fn text_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<Time>()
    }
}

impl ShortForm for QueueSpec {
    const EXPECTING: &'static str = "a limit such as \"50 packets\", or a table such as \
        { kind = \"strict-pushout\", limit = \"50 packets\" }";
    fn from_text(text: &str) -> Result<Self, ValueError> {
        Ok(text.parse().map(|limit| Self { limit: Some(limit), ..Self::default() })?)
    }
    fn bare(n: &str) -> String {
        format!("{n} has no unit: write \"{n} packets\", \"{n} B\" or \"{n} BDP\"")
    }
    fn text_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<QueueLimit>()
    }
}

impl ShortForm for error::Config {
    const EXPECTING: &'static str = "\"none\", or a table such as { kind = \"per\", p = 1e-3 }";
    fn from_text(text: &str) -> Result<Self, ValueError> {
        match text {
            "none" => Ok(Self::NONE),
            _ => Err(ValueError::NotAccepted { text: text.into(), expected: Self::EXPECTING }),
        }
    }
    fn bare(n: &str) -> String {
        format!(
            "{n} does not say of what: write {{ kind = \"per\", p = {n} }} for lost packets, or \
             {{ kind = \"ber\", ber = {n} }} for wrong bits"
        )
    }
    fn text_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "const": "none" })
    }
}

impl ShortForm for skyhaul_apps::Config {
    const EXPECTING: &'static str = "\"bulk\", or a table such as { kind = \"pages\", segments = 50 }";
    fn from_text(text: &str) -> Result<Self, ValueError> {
        match text {
            "bulk" => Ok(Self::BULK),
            _ => Err(ValueError::NotAccepted { text: text.into(), expected: Self::EXPECTING }),
        }
    }
    fn text_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "const": "bulk" })
    }
}

impl ShortForm for StartSpec {
    const EXPECTING: &'static str =
        "a time such as \"0 s\", or a table such as { uniform = [\"0 s\", \"1 RTT\"] }";
    fn from_text(text: &str) -> Result<Self, ValueError> {
        Ok(text.parse().map(Self::At)?)
    }
    fn bare(n: &str) -> String {
        format!("{n} has no unit: write a time with a unit, such as \"{n} s\"")
    }
    fn text_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<Span>()
    }
}

impl ShortForm for DelayedAckSpec {
    const EXPECTING: &'static str = "\"off\", or a table such as { every = 2, delay = \"200 ms\" }";
    fn from_text(text: &str) -> Result<Self, ValueError> {
        match text {
            "off" => Ok(Self { every: 1, delay: Time(Duration::ZERO) }),
            _ => Err(ValueError::NotAccepted { text: text.into(), expected: Self::EXPECTING }),
        }
    }
    fn text_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "const": "off" })
    }
}

/// The table that the text `value` of key `key` stands for, so that a file or an override can go inside.
pub(crate) fn expand(key: &str, value: &str) -> Option<Table> {
    let pairs: &[(&str, &str)] = match key {
        "os" => &[("name", value)],
        "cc" => match value.strip_prefix("user:") {
            Some(control) => &[("name", "user"), ("control", control)],
            None => &[("name", value)],
        },
        "endpoint" => &[("preset", value)],
        "queue" => &[("limit", value)],
        "delay" => &[("kind", "fixed"), ("base", value)],
        "error" | "app" => &[("kind", value)],
        "start" => &[("at", value)],
        "delayed-ack" if value == "off" => {
            let zero = Value::String("0 s".into());
            return Some([("every".into(), Value::Integer(1)), ("delay".into(), zero)].into_iter().collect());
        }
        _ => return None,
    };
    Some(pairs.iter().map(|&(k, v)| (k.into(), Value::String(v.into()))).collect())
}

/// The table that stands where key `key` is not given.
pub(crate) fn expand_default(key: &str) -> Table {
    match key {
        "cc" => expand(key, DEFAULT_CC),
        "endpoint" => expand(key, DEFAULT_ENDPOINT),
        _ => None,
    }
    .unwrap_or_default()
}

/// Congestion control where none is named.
const DEFAULT_CC: &str = "sack";

/// Congestion control where none is given.
pub(crate) fn default_cc() -> skyhaul_cc::Config {
    skyhaul_cc::Config::by_name(DEFAULT_CC).expect("the default is a registered name")
}

/// Endpoint where none is named.
pub(crate) const DEFAULT_ENDPOINT: &str = "modern";

/// The keys within table `key` that say what the other keys mean: if one changes, the table is replaced.
pub(crate) fn tags(key: &str) -> &'static [&'static str] {
    match key {
        "cc" => &["name", "control"],
        "endpoint" => &["preset"],
        "delay" | "error" | "app" => &["kind"],
        _ => &[],
    }
}

//! Rates and delays that follow a file.

use super::names::holds_names;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeOwned, Deserializer, Error};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value as Json;
use skyhaul_path::delay::Interpolation;
use skyhaul_path::rate;
use std::borrow::Cow;
use toml::{Table, Value};

/// A value, or a table with `trace` or `mahimahi` to follow a file.
#[derive(Clone, Debug, PartialEq)]
pub enum OrTrace<T> {
    /// Without a trace.
    Own(T),
    /// From a trace.
    Trace(TraceSpec),
}

/// A file of values over time; its path is relative to the scenario file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceSpec {
    /// The keys of [`rate::NAMES`] that are present, with their files. Exactly one is valid.
    pub files: Vec<(&'static str, String)>,
    /// The content itself, instead of a file.
    pub text: Option<String>,
    /// Interpolation between two lines of a delay trace; "hold" by default. Rates always hold until the next line.
    pub interpolation: Option<Interpolation>,
    /// What happens after the last line of a trace; "hold" by default.
    pub end: Option<EndSpec>,
}

/// The keys of a [`TraceSpec`] other than those that name files.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct TraceOptions {
    /// The content itself, instead of a file.
    text: Option<String>,
    /// Interpolation between two lines of a delay trace; "hold" by default. Rates always hold until the next line.
    interpolation: Option<Interpolation>,
    /// What happens after the last line of a trace; "hold" by default. A Mahimahi trace always repeats.
    end: Option<EndSpec>,
}

impl<'de> Deserialize<'de> for TraceSpec {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let wrong = |e: toml::de::Error| D::Error::custom(e.message());
        let mut table = Table::deserialize(d)?;
        let mut files = Vec::new();
        for &key in rate::NAMES {
            if let Some(file) = table.remove(key) {
                files.push((key, String::deserialize(file).map_err(wrong)?));
            }
        }
        let TraceOptions { text, interpolation, end } =
            TraceOptions::deserialize(Value::Table(table)).map_err(wrong)?;
        Ok(Self { files, text, interpolation, end })
    }
}

impl Serialize for TraceSpec {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        for (key, file) in &self.files {
            map.serialize_entry(key, file)?;
        }
        if let Some(text) = &self.text {
            map.serialize_entry("text", text)?;
        }
        if let Some(interpolation) = &self.interpolation {
            map.serialize_entry("interpolation", interpolation)?;
        }
        if let Some(end) = &self.end {
            map.serialize_entry("end", end)?;
        }
        map.end()
    }
}

impl JsonSchema for TraceSpec {
    fn schema_name() -> Cow<'static, str> {
        "TraceSpec".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = TraceOptions::json_schema(generator);
        schema.insert(
            "description".into(),
            "A file of values over time. Its name is a path relative to the file that names it.".into(),
        );
        if let Some(Json::Object(properties)) = schema.get_mut("properties") {
            for &key in rate::NAMES {
                let file = json_schema!({ "description": rate::file(key), "type": ["string", "null"] });
                properties.insert(key.into(), file.to_value());
            }
        }
        schema
    }
}

/// What happens after the last line of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EndSpec {
    /// The run is refused if it is longer than the trace.
    Error,
    /// The last value holds.
    Hold,
    /// The trace repeats; the time of the last line is the period.
    Loop,
}

/// The key that names a file with orbital elements.
const ELEMENTS: &str = "file";

/// Whether this key may name a file whose content stands beside it, as `text`, once it is read.
pub(crate) fn names_file(key: &str) -> bool {
    key == ELEMENTS || rate::NAMES.contains(&key)
}

/// Whether the table follows a trace.
pub(crate) fn is_trace(table: &Table) -> bool {
    rate::NAMES.iter().any(|key| table.contains_key(*key))
}

/// Whether the table names a file to be replaced by its content: values over time, or orbital elements.
fn names_a_file(table: &Table) -> bool {
    let kind = table.get("kind").and_then(Value::as_str);
    is_trace(table) || table.contains_key(ELEMENTS) && matches!(kind, Some("omm" | "tle"))
}

/// Calls `read` for the path of every trace or element file below `table` that has not been read, and inserts its
/// content. `read` also gets the path of the key, and returns the name for messages and the content.
pub(crate) fn fill<E>(
    table: &mut Table,
    at: &str,
    read: &mut impl FnMut(&str, &str) -> Result<(String, String), E>,
) -> Result<(), E> {
    for (key, value) in table.iter_mut() {
        let here = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
        match value {
            Value::Table(inner) if names_a_file(inner) && !holds_names(&here) => {
                let keys = rate::NAMES.iter().chain(&[ELEMENTS]);
                let file = keys.into_iter().find_map(|k| Some((*k, inner.get(*k)?.as_str()?.to_owned())));
                if let (Some((kind, path)), false) = (file, inner.contains_key("text")) {
                    let (name, text) = read(&format!("{here}.{kind}"), &path)?;
                    inner.insert(kind.into(), Value::String(name));
                    inner.insert("text".into(), Value::String(text));
                }
            }
            Value::Table(inner) => fill(inner, &here, read)?,
            Value::Array(list) => {
                for (i, item) in list.iter_mut().enumerate() {
                    if let Value::Table(inner) = item {
                        let key = format!("{here}[{i}]");
                        // An element that names a file is found as the value of a key, which is its place in the list.
                        let mut alone =
                            Table::from_iter([(key.clone(), Value::Table(core::mem::take(inner)))]);
                        let outcome = fill(&mut alone, "", read);
                        if let Some(Value::Table(filled)) = alone.remove(&key) {
                            *inner = filled;
                        }
                        outcome?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for OrTrace<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        // Only the keys show which it is.
        let value = Value::deserialize(d)?;
        let wrong = |e: toml::de::Error| D::Error::custom(e.message());
        match &value {
            Value::Table(table) if is_trace(table) => {
                TraceSpec::deserialize(value).map(Self::Trace).map_err(wrong)
            }
            _ => T::deserialize(value).map(Self::Own).map_err(wrong),
        }
    }
}

impl<T: Serialize> Serialize for OrTrace<T> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Own(own) => own.serialize(s),
            Self::Trace(spec) => spec.serialize(s),
        }
    }
}

impl<T: JsonSchema> JsonSchema for OrTrace<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}OrTrace", T::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let own = generator.subschema_for::<T>();
        let trace = generator.subschema_for::<TraceSpec>();
        json_schema!({ "anyOf": [own, trace] })
    }
}

//! The table of a queue: its capacity, and the keys of its discipline.

use super::short::ShortForm;
use crate::amount::QueueLimit;
use crate::error::ValueError;
use core::fmt;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use skyhaul_path::Discipline;
use skyhaul_path::queue::Kind;
use std::borrow::Cow;
use toml::{Table, Value};

/// A queue. Short form: its limit, for drop-tail.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueueSpec {
    /// The discipline: `kind` and the keys of that kind; "drop-tail" by default.
    pub discipline: Discipline,
    /// Which keys of the discipline the file writes; the values of others may follow from the path.
    pub written: Written,
    /// Capacity; one BDP by default.
    pub limit: Option<QueueLimit>,
    /// The packet in transmission counts towards the limit; false by default.
    pub count_in_service: Option<bool>,
    /// A capacity of limit - 1, as in ns-2; false by default.
    pub ns2_limit: Option<bool>,
}

/// A set of keys of a discipline, by their places in its list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written(u32);

impl Written {
    /// Every key.
    pub const ALL: Self = Self(u32::MAX);

    fn of(kind: Kind, own: &Table) -> Self {
        let bits = kind.keys().iter().enumerate().filter(|(_, key)| own.contains_key(key.name));
        Self(bits.fold(0, |all, (i, _)| all | 1 << i))
    }
    /// Whether the file writes this key of the kind.
    #[must_use]
    pub fn has(self, kind: Kind, name: &str) -> bool {
        kind.keys().iter().position(|key| key.name == name).is_some_and(|i| self.0 >> i & 1 == 1)
    }
}

/// The key that names the discipline.
const KIND: &str = "kind";
/// The keys that every discipline has.
const COMMON: [&str; 4] = [KIND, "limit", "count-in-service", "ns2-limit"];

/// The keys that only some disciplines have, each once.
fn options() -> Vec<&'static str> {
    let mut names: Vec<_> = Vec::new();
    for key in Kind::ALL.iter().flat_map(|kind| kind.keys()) {
        if !names.contains(&key.name) {
            names.push(key.name);
        }
    }
    names
}

impl<'de> Deserialize<'de> for QueueSpec {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = QueueSpec;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("struct QueueSpec")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<QueueSpec, A::Error> {
                let mut spec = QueueSpec::default();
                let (mut kind, mut own) = (spec.discipline.kind(), Table::new());
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        KIND => kind = map.next_value()?,
                        "limit" => spec.limit = Some(map.next_value()?),
                        "count-in-service" => spec.count_in_service = Some(map.next_value()?),
                        "ns2-limit" => spec.ns2_limit = Some(map.next_value()?),
                        name if options().contains(&name) => {
                            own.insert(key, map.next_value()?);
                        }
                        name => return Err(unknown(name)),
                    }
                }
                spec.written = Written::of(kind, &own);
                spec.discipline = discipline(kind, own)?;
                Ok(spec)
            }
        }
        d.deserialize_struct("QueueSpec", &COMMON, Reader)
    }
}

/// The discipline of this kind, read from its own keys.
///
/// # Errors
/// If a key belongs to other disciplines only, is missing, or has an invalid value.
fn discipline<E: de::Error>(kind: Kind, own: Table) -> Result<Discipline, E> {
    for (name, _) in &own {
        if !kind.keys().iter().any(|key| key.name == name) {
            let keys = Kind::ALL.iter().flat_map(|kind| kind.keys());
            let why = keys.filter(|key| key.name == name).map(|key| key.elsewhere).next().unwrap_or_default();
            return Err(E::custom(format_args!("unknown field `{name}`: {why}")));
        }
    }
    for key in kind.keys() {
        if let (Some(why), false) = (key.missing, own.contains_key(key.name)) {
            return Err(E::custom(format_args!("missing field `{}`: {why}", key.name)));
        }
    }
    kind.read(Value::Table(own)).map_err(|e| E::custom(e.message()))
}

/// The error about an unknown key, worded as derived deserialisers do.
fn unknown<E: de::Error>(name: &str) -> E {
    let known: Vec<_> = COMMON.into_iter().chain(options()).map(|key| format!("`{key}`")).collect();
    E::custom(format_args!("unknown field `{name}`, expected one of {}", known.join(", ")))
}

impl Serialize for QueueSpec {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let own = match Value::try_from(self.discipline) {
            Ok(Value::Table(own)) => own,
            _ => return Err(serde::ser::Error::custom("a discipline is a table")),
        };
        let mut map = s.serialize_map(None)?;
        map.serialize_entry(KIND, self.discipline.kind().name())?;
        if let Some(limit) = &self.limit {
            map.serialize_entry("limit", limit)?;
        }
        if let Some(count) = &self.count_in_service {
            map.serialize_entry("count-in-service", count)?;
        }
        if let Some(ns2) = &self.ns2_limit {
            map.serialize_entry("ns2-limit", ns2)?;
        }
        // The order is that in which the discipline lists its keys, because hashes are over this text.
        let kind = self.discipline.kind();
        for key in kind.keys().iter().filter(|key| self.written.has(kind, key.name)) {
            if let Some(value) = own.get(key.name) {
                map.serialize_entry(key.name, value)?;
            }
        }
        map.end()
    }
}

impl JsonSchema for QueueSpec {
    fn schema_name() -> Cow<'static, str> {
        "QueueSpec".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let described = |mut schema: Schema, text: &str| {
            schema.insert("description".into(), text.into());
            schema
        };
        let about = "Which packets the queue admits, and which it serves next; \"drop-tail\" by default.";
        let mut kind = described(generator.subschema_for::<Kind>(), about);
        kind.insert("default".into(), Discipline::default().kind().name().into());
        let limit = generator.subschema_for::<QueueLimit>();
        let mut properties = json_schema!({
            KIND: kind,
            "limit": described(limit, "Capacity; one BDP by default."),
            "count-in-service": {
                "description": "The packet in transmission counts towards the limit; false by default.",
                "type": "boolean",
            },
            "ns2-limit": {
                "description": "A capacity of limit - 1, as in ns-2; false by default.",
                "type": "boolean",
            },
        });
        // The keys of each discipline, without defaults: a default would belong to other disciplines as well, and those
        // refuse the key.
        let disciplines = Discipline::json_schema(generator);
        for discipline in disciplines.get("oneOf").and_then(|d| d.as_array()).into_iter().flatten() {
            let own = discipline.get("properties").and_then(|p| p.as_object()).into_iter().flatten();
            for (key, schema) in own.filter(|(key, _)| *key != KIND) {
                let mut schema = schema.clone();
                schema.as_object_mut().map(|schema| schema.remove("default"));
                properties.insert(key.clone(), schema);
            }
        }
        json_schema!({
            "type": "object",
            "description": "A queue. Short form: its limit, for drop-tail.",
            "properties": properties,
            "additionalProperties": false,
        })
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

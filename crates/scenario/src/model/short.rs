//! Short forms: a text that stands for a table.

use crate::error::ValueError;
use core::fmt;
use core::marker::PhantomData;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;

/// A table that may also be written as a text. It is always written out as a table.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Short<T>(pub T);

/// What stands for what.
pub(super) trait ShortForm: Sized {
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

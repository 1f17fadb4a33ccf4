//! Short forms: a string that stands for a table.

use crate::error::ValueError;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use skyhaul_base::amount::text_or_table;
use std::borrow::Cow;

/// A table that may also be given as a string. It is written as its content is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Short<T>(pub T);

/// The conversion of a short form.
pub(super) trait ShortForm: Sized {
    /// The accepted forms, for messages: "a time such as …, or a table".
    const EXPECTING: &'static str;
    fn from_text(text: &str) -> Result<Self, ValueError>;
    /// The message that refuses a bare number.
    fn bare(n: &str) -> String {
        format!("{n} is not accepted here: write {}", Self::EXPECTING)
    }
    /// Schema of the string.
    fn text_schema(generator: &mut SchemaGenerator) -> Schema;
}

impl<'de, T: ShortForm + Deserialize<'de>> Deserialize<'de> for Short<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        text_or_table(d, T::EXPECTING, T::from_text, T::bare).map(Self)
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

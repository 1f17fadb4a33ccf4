//! Options of a user's control: a table whose keys only the control knows.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

/// Options by name.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Options(pub BTreeMap<String, OptionValue>);

/// The value of an option.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(untagged))]
pub enum OptionValue {
    /// True or false.
    Flag(bool),
    /// A whole number.
    Integer(i64),
    /// A number.
    Real(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<OptionValue>),
    /// A table.
    Table(BTreeMap<String, OptionValue>),
}

/// An option whose value cannot be written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("options: nan and inf are no options: write a finite number, or leave the option out")]
pub struct NoCanonicalForm;

/// Options that a control does not take; displays as one sentence that names the option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ReadError(String);

#[cfg(feature = "schema")]
impl schemars::JsonSchema for OptionValue {
    fn schema_name() -> alloc::borrow::Cow<'static, str> {
        "OptionValue".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "Whatever the control understands.",
            "type": ["boolean", "number", "string", "array", "object"],
        })
    }
}

impl Options {
    /// True without options.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Refuses values that have no canonical form.
    pub(crate) fn validate(&self) -> Result<(), NoCanonicalForm> {
        self.0.values().try_for_each(OptionValue::validate)
    }

    /// Reads the options into a type of the control's own.
    ///
    /// # Errors
    /// Names the option.
    #[cfg(feature = "serde")]
    pub fn read<T: serde::de::DeserializeOwned>(&self) -> Result<T, ReadError> {
        use alloc::string::ToString;
        T::deserialize(read::Value::Table(&self.0)).map_err(|e| ReadError(e.to_string()))
    }
}

impl OptionValue {
    fn validate(&self) -> Result<(), NoCanonicalForm> {
        match self {
            Self::Real(x) if !x.is_finite() => Err(NoCanonicalForm),
            Self::List(all) => all.iter().try_for_each(Self::validate),
            Self::Table(all) => all.values().try_for_each(Self::validate),
            _ => Ok(()),
        }
    }
}

/// Options as a source of serde.
#[cfg(feature = "serde")]
mod read {
    use super::OptionValue;
    use alloc::collections::{BTreeMap, btree_map};
    use alloc::format;
    use alloc::string::String;
    use serde::Deserializer;
    use serde::de::value::{Error, MapAccessDeserializer, SeqDeserializer, StrDeserializer};
    use serde::de::{DeserializeSeed, Error as _, IntoDeserializer, MapAccess, Visitor};

    #[derive(Clone, Copy)]
    pub(super) enum Value<'a> {
        One(&'a OptionValue),
        Table(&'a BTreeMap<String, OptionValue>),
    }

    impl<'de> IntoDeserializer<'de, Error> for Value<'_> {
        type Deserializer = Self;
        fn into_deserializer(self) -> Self {
            self
        }
    }

    impl<'de> Deserializer<'de> for Value<'_> {
        type Error = Error;

        fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            match self {
                Self::One(OptionValue::Flag(b)) => visitor.visit_bool(*b),
                Self::One(OptionValue::Integer(i)) => visitor.visit_i64(*i),
                Self::One(OptionValue::Real(x)) => visitor.visit_f64(*x),
                Self::One(OptionValue::Text(s)) => visitor.visit_str(s),
                Self::One(OptionValue::List(all)) => {
                    visitor.visit_seq(SeqDeserializer::new(all.iter().map(Value::One)))
                }
                Self::One(OptionValue::Table(all)) | Self::Table(all) => {
                    visitor.visit_map(Entries { rest: all.iter(), at: None })
                }
            }
        }

        fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            // An option that is present has a value: options have no null.
            visitor.visit_some(self)
        }

        fn deserialize_newtype_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            visitor: V,
        ) -> Result<V::Value, Error> {
            visitor.visit_newtype_struct(self)
        }

        fn deserialize_enum<V: Visitor<'de>>(
            self,
            name: &'static str,
            variants: &'static [&'static str],
            visitor: V,
        ) -> Result<V::Value, Error> {
            match self {
                Self::One(OptionValue::Text(s)) => {
                    let text: StrDeserializer<'_, Error> = s.as_str().into_deserializer();
                    text.deserialize_enum(name, variants, visitor)
                }
                // A variant with data, such as `{ segments = 2.0 }`.
                Self::One(OptionValue::Table(all)) | Self::Table(all) if all.len() == 1 => {
                    let entry = MapAccessDeserializer::new(Entries { rest: all.iter(), at: None });
                    entry.deserialize_enum(name, variants, visitor)
                }
                _ => Err(Error::custom(format!("write one of {}", variants.join(", ")))),
            }
        }

        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq
            tuple tuple_struct map struct identifier ignored_any
        }
    }

    struct Entries<'a> {
        rest: btree_map::Iter<'a, String, OptionValue>,
        at: Option<(&'a String, &'a OptionValue)>,
    }

    impl<'de> MapAccess<'de> for Entries<'_> {
        type Error = Error;

        fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
            self.at = self.rest.next();
            let Some((key, _)) = self.at else { return Ok(None) };
            seed.deserialize(IntoDeserializer::<Error>::into_deserializer(key.as_str())).map(Some)
        }

        fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
            let Some((key, value)) = self.at.take() else { return Err(Error::custom("a key comes first")) };
            seed.deserialize(Value::One(value)).map_err(|e| Error::custom(format!("{key}: {e}")))
        }
    }
}

#[cfg(all(test, feature = "serde"))]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use serde::Deserialize;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "kebab-case")]
    enum Mode {
        SlowStart,
        Paced,
        Window(f64),
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
    struct Own {
        gain: f64,
        count: u32,
        on: bool,
        mode: Mode,
        cap: Option<f64>,
        steps: Vec<f64>,
    }
    impl Default for Own {
        fn default() -> Self {
            Self { gain: 1.0, count: 2, on: false, mode: Mode::SlowStart, cap: None, steps: Vec::new() }
        }
    }

    fn options(json: &str) -> Options {
        serde_json::from_str(json).expect(json)
    }

    #[test]
    fn tables_become_types() {
        let own: Own =
            options(r#"{"gain": 2, "count": 3, "on": true, "mode": "paced", "cap": 8.5, "steps": [1, 2.5]}"#)
                .read()
                .expect("all known");
        let steps = alloc::vec![1.0, 2.5];
        assert_eq!(own, Own { gain: 2.0, count: 3, on: true, mode: Mode::Paced, cap: Some(8.5), steps });
        assert_eq!(Options::default().read::<Own>(), Ok(Own::default()));
        let own: Own = options(r#"{"mode": {"window": 2.5}}"#).read().expect("a variant with data");
        assert_eq!(own, Own { mode: Mode::Window(2.5), ..Own::default() });
    }

    #[test]
    fn errors_name_the_option() {
        for (json, words) in [
            (r#"{"gain": "much"}"#, "gain: invalid type"),
            (r#"{"count": -1}"#, "count: invalid value"),
            (r#"{"gian": 1}"#, "unknown field `gian`"),
            (r#"{"mode": "fast"}"#, "mode: unknown variant `fast`"),
            (r#"{"mode": 3}"#, "mode: write one of slow-start, paced, window"),
            (r#"{"mode": {"window": 1, "paced": 2}}"#, "mode: write one of slow-start, paced, window"),
            (r#"{"mode": {"window": "wide"}}"#, "mode: window: invalid type"),
        ] {
            let why = options(json).read::<Own>().expect_err(json).to_string();
            assert!(why.contains(words), "{why}");
        }
    }
}

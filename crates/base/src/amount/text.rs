//! Values that may be written as a string or as a table, and tables of a kind without keys.

use alloc::string::{String, ToString};
use core::fmt;
use core::marker::PhantomData;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};

/// Reads a string, with `from_text`, or a table. A number is refused with the message of `bare`, anything else as not
/// `expected`.
///
/// # Errors
/// If it is neither, or its content is refused.
pub fn text_or_table<'de, T, E, D>(
    d: D,
    expected: &'static str,
    from_text: fn(&str) -> Result<T, E>,
    bare: fn(&str) -> String,
) -> Result<T, D::Error>
where
    T: Deserialize<'de>,
    E: fmt::Display,
    D: Deserializer<'de>,
{
    d.deserialize_any(Reader { expected, from_text, bare, table: PhantomData })
}

/// Reads the rest of a table with only one key, that of the kind. Serde's derive would ignore other keys.
///
/// # Errors
/// If there is another key.
pub fn no_other_keys<'de, D: Deserializer<'de>>(d: D) -> Result<(), D::Error> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Rest {}
    Rest::deserialize(d).map(|Rest {}| ())
}

struct Reader<T, E> {
    expected: &'static str,
    from_text: fn(&str) -> Result<T, E>,
    bare: fn(&str) -> String,
    table: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>, E: fmt::Display> Visitor<'de> for Reader<T, E> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }
    fn visit_str<R: de::Error>(self, text: &str) -> Result<T, R> {
        (self.from_text)(text).map_err(R::custom)
    }
    fn visit_i64<R: de::Error>(self, n: i64) -> Result<T, R> {
        Err(R::custom((self.bare)(&n.to_string())))
    }
    fn visit_u64<R: de::Error>(self, n: u64) -> Result<T, R> {
        Err(R::custom((self.bare)(&n.to_string())))
    }
    fn visit_f64<R: de::Error>(self, x: f64) -> Result<T, R> {
        Err(R::custom((self.bare)(&x.to_string())))
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

//! Values that JSON may lack: it has `null` for numbers that are not finite, and some entries are left out.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A number; NaN for `null`.
pub(crate) fn number<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}
/// The two ends of an interval; NaN for `null`.
pub(crate) fn interval<'de, D: Deserializer<'de>>(from: D) -> Result<[f64; 2], D::Error> {
    Ok(<[Option<f64>; 2]>::deserialize(from)?.map(|end| end.unwrap_or(f64::NAN)))
}

/// The object with one more entry.
pub(crate) fn with(mut object: Value, key: &str, value: impl Into<Value>) -> Value {
    if let Some(map) = object.as_object_mut() {
        map.insert(key.into(), value.into());
    }
    object
}
/// The object with one more entry if there is a value for it.
pub(crate) fn with_any(object: Value, key: &str, value: Option<impl Into<Value>>) -> Value {
    match value {
        Some(value) => with(object, key, value),
        None => object,
    }
}

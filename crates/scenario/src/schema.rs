//! The JSON Schema of scenario files, from the types that parse them.

use crate::model::Scenario;
use serde_json::Value;

/// The schema of a scenario file, draft 2020-12.
///
/// A file that extends another may leave out keys of the other; therefore only the keys that give the kind of a table
/// are required.
///
/// # Panics
/// Never: a schema is made of values that JSON can express.
#[must_use]
pub fn scenario_schema() -> Value {
    let mut schema = schemars::schema_for!(Scenario);
    schema.insert("title".into(), "Skyhaul scenario".into());
    let mut schema = serde_json::to_value(schema).expect("a schema is JSON");
    drop_null(&mut schema);
    schema
}

/// Removes null from the schema: TOML has no such value, so optional keys are left out instead.
fn drop_null(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::Array(types)) = map.get_mut("type") {
                types.retain(|t| t != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    map.insert("type".into(), only);
                }
            }
            if let Some(Value::Array(choices)) = map.get_mut("anyOf") {
                choices.retain(|c| c.get("type").is_none_or(|t| t != "null"));
                if let [Value::Object(only)] = choices.as_slice() {
                    let only = only.clone();
                    map.remove("anyOf");
                    map.extend(only);
                }
            }
            if let Some(Value::Array(values)) = map.get_mut("enum") {
                values.retain(|v| !v.is_null());
            }
            map.values_mut().for_each(drop_null);
        }
        Value::Array(list) => list.iter_mut().for_each(drop_null),
        _ => {}
    }
}

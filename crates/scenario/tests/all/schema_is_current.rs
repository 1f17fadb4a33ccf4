//! The schema in the repository is the one that the types give. `UPDATE=1 cargo test` writes it.

use std::fs;

#[test]
fn schema_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/scenario.json");
    let schema = skyhaul_scenario::scenario_schema();
    if std::env::var_os("UPDATE").is_some() {
        fs::write(path, serde_json::to_string_pretty(&schema).unwrap() + "\n").unwrap();
    }
    // Compared as values: the order of keys depends on features that other crates may switch on.
    let stored = fs::read_to_string(path).unwrap_or_default();
    let stored: serde_json::Value = serde_json::from_str(&stored).unwrap_or_default();
    assert!(
        stored == schema,
        "schema/scenario.json is stale: run UPDATE=1 cargo test -p skyhaul-scenario --test all schema, and then \
         python3 tools/scenario_format.py"
    );
}

#[test]
fn every_key_is_described() {
    fn walk(at: &str, value: &serde_json::Value) {
        if let Some(properties) = value.get("properties").and_then(|p| p.as_object()) {
            for (key, property) in properties {
                // A tag, or the one key of a variant that is itself described.
                let obvious = property.get("const").is_some()
                    || properties.len() == 1 && value.get("description").is_some();
                assert!(obvious || property.get("description").is_some(), "{at}/{key} has no description");
            }
        }
        match value {
            serde_json::Value::Object(map) => map.iter().for_each(|(k, v)| walk(&format!("{at}/{k}"), v)),
            serde_json::Value::Array(list) => list.iter().for_each(|v| walk(at, v)),
            _ => {}
        }
    }
    walk("", &skyhaul_scenario::scenario_schema());
}

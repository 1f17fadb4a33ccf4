//! The JSON Schema of study files.

use crate::model::Study;

/// The schema, as it stands in `schema/study.json`.
///
/// # Panics
/// Never: a schema is JSON.
#[must_use]
pub fn study_schema() -> String {
    let mut schema = schemars::schema_for!(Study).to_value();
    schema["title"] = serde_json::json!("Skyhaul study");
    serde_json::to_string_pretty(&schema).expect("a schema is JSON") + "\n"
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_file_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/study.json");
        let got = super::study_schema();
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(path, &got).expect("writable");
        }
        let file = std::fs::read_to_string(path).unwrap_or_default();
        assert_eq!(file, got, "schema/study.json is stale: run this test with UPDATE=1");
    }
}

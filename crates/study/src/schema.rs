//! The JSON Schemas of study files and of `paper.toml`.

use crate::model::{Paper, Study};

/// The schema of studies, as in `schema/study.json`.
///
/// # Panics
/// Never: a schema is JSON.
#[must_use]
pub fn study_schema() -> String {
    written(schemars::schema_for!(Study), "Skyhaul study")
}

/// The schema of `paper.toml`, as in `schema/paper.json`.
///
/// # Panics
/// Never: a schema is JSON.
#[must_use]
pub fn paper_schema() -> String {
    written(schemars::schema_for!(Paper), "Skyhaul paper")
}

fn written(schema: schemars::Schema, title: &str) -> String {
    let mut schema = schema.to_value();
    schema["title"] = serde_json::json!(title);
    serde_json::to_string_pretty(&schema).expect("a schema is JSON") + "\n"
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_files_are_up_to_date() {
        for (name, got) in [("study", super::study_schema()), ("paper", super::paper_schema())] {
            let path = format!("{}/../../schema/{name}.json", env!("CARGO_MANIFEST_DIR"));
            if std::env::var_os("UPDATE").is_some() {
                std::fs::write(&path, &got).expect("writable");
            }
            let file = std::fs::read_to_string(&path).unwrap_or_default();
            assert_eq!(file, got, "schema/{name}.json is stale: run this test with UPDATE=1");
        }
    }
}

//! Data of figures in columns, which keeps a page with many figures small.

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The specification with its rows in columns, as `assets/figures.js` reads them: numbers unchanged, strings as
/// indices into a list, or a single index if all rows are equal.
pub(super) fn pack(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let Some(rows) = spec["data"]["values"].as_array() else { return spec };
    let names: BTreeSet<&String> = rows.iter().filter_map(Value::as_object).flat_map(Map::keys).collect();
    let mut columns = Map::new();
    for name in names {
        let of = |row: &Value| row.get(name).cloned().unwrap_or(Value::Null);
        let values: Vec<Value> = rows.iter().map(of).collect();
        let column = if values.iter().any(Value::is_string) { texts(&values) } else { json!(values) };
        columns.insert(name.clone(), column);
    }
    let rows = rows.len();
    spec["data"] = json!({ "rows": rows, "columns": columns });
    spec
}

fn texts(values: &[Value]) -> Value {
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let mut texts: Vec<&Value> = Vec::new();
    let mut at = Vec::with_capacity(values.len());
    for value in values {
        let i = *known.entry(value.to_string()).or_insert_with(|| {
            texts.push(value);
            texts.len() - 1
        });
        at.push(i);
    }
    if texts.len() == 1 {
        at.truncate(1);
    }
    json!({ "texts": texts, "at": at })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `figures.js` does.
    fn unpack(data: &Value) -> Vec<Value> {
        let columns = data["columns"].as_object().expect("columns");
        let cell = |column: &Value, i: usize| match column["at"].as_array() {
            Some(at) if at.len() == 1 => column["texts"][at[0].as_u64().expect("an index") as usize].clone(),
            Some(at) => column["texts"][at[i].as_u64().expect("an index") as usize].clone(),
            None => column[i].clone(),
        };
        let row = |i| -> Value {
            let all = columns.iter().map(|(name, c)| (name.clone(), cell(c, i)));
            all.filter(|(_, v)| !v.is_null()).collect::<Map<_, _>>().into()
        };
        (0..data["rows"].as_u64().expect("a count") as usize).map(row).collect()
    }

    #[test]
    fn columns_are_the_same_rows() {
        let rows = json!([
            { "x": 1.5, "series": "a", "reading": "r" },
            { "x": 2.0, "series": "b", "reading": "r", "part": "zero", "low": 0.1 },
            { "x": 3.0, "series": "a", "reading": "r" },
        ]);
        let spec = json!({ "mark": "line", "data": { "values": rows } });
        let packed = pack(&spec);
        assert_eq!(packed["mark"], "line");
        assert_eq!(json!(unpack(&packed["data"])), rows);
        assert_eq!(packed["data"]["columns"]["reading"]["at"], json!([0]));
        let without = json!({ "data": { "url": "x" } });
        assert_eq!(pack(&without), without);
    }
}

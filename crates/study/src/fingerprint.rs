//! Fingerprints: what the key of a cell says of the code that computes it.
//!
//! A fingerprint is the hash of the events of a reference run over a lossy satellite link. One fingerprint stands for the
//! code that all cells share; its flows have a control that only the test knows, so that no built-in control is part of it.
//! Each control, application, transport and model of a link has a fingerprint of its own: that of the reference run with
//! this part in place of the usual one. The hashes are recorded in `fingerprints.txt`, and a test compares them with the
//! runs. The key of a cell contains the fingerprints of the parts that the cell uses: a new or changed part leaves the cells of
//! other parts valid.

use serde_json::Value;
use skyhaul_scenario::Resolved;
use std::collections::BTreeSet;

/// A line for each part: its name and its hash.
const RECORDED: &str = include_str!("fingerprints.txt");

/// The name of the code that all cells share.
const SHARED: &str = "shared";

/// The fingerprint of the code that all cells share.
#[must_use]
pub fn shared() -> &'static str {
    find(RECORDED, SHARED).unwrap_or_default()
}

fn find<'a>(recorded: &'a str, part: &str) -> Option<&'a str> {
    recorded
        .lines()
        .filter_map(|line| line.rsplit_once(' '))
        .find(|(name, _)| *name == part)
        .map(|(_, hash)| hash)
}

/// The parts of a scenario that have a fingerprint, each with it: `queue codel 0a1b2c3d`, a line each.
pub(crate) fn of(scenario: &Resolved) -> String {
    of_parts(&parts(scenario), RECORDED)
}

fn of_parts(parts: &BTreeSet<String>, recorded: &str) -> String {
    let line = |part: &String| find(recorded, part).map(|hash| format!("{part} {hash}\n"));
    parts.iter().filter_map(line).collect()
}

/// Everything in the canonical form of a scenario that may have a fingerprint. A part is a key with its kind, such as `app
/// bulk` or `queue codel`, a key with a text, such as `loss-detection rack`, or a table without a kind, alone and with each key
/// in it, such as `arq` and `rate trace`.
fn parts(scenario: &Resolved) -> BTreeSet<String> {
    let model =
        serde_json::to_value(scenario.to_model()).expect("a resolved scenario can be written as JSON");
    let mut parts = BTreeSet::new();
    for table in ["links", "flows", "gateways"] {
        for entity in model.get(table).and_then(Value::as_object).into_iter().flat_map(|all| all.values()) {
            collect(entity, &mut parts);
        }
    }
    if model.get("repair").and_then(Value::as_object).is_some_and(|all| !all.is_empty()) {
        parts.insert("repair".into());
    }
    for event in model.get("event").and_then(Value::as_array).into_iter().flatten() {
        collect(event, &mut parts);
    }
    parts
}

/// Adds the parts among the keys of a table.
fn collect(table: &Value, parts: &mut BTreeSet<String>) {
    for (key, value) in table.as_object().into_iter().flatten() {
        let list = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        for value in list {
            match value {
                // A text with several lines is the content of a file, and no name.
                Value::String(text) if !text.contains('\n') => drop(parts.insert(format!("{key} {text}"))),
                Value::Object(inner) => {
                    let tag = if key == "cc" { "name" } else { "kind" };
                    match inner.get(tag).and_then(Value::as_str) {
                        Some(kind) => drop(parts.insert(format!("{key} {kind}"))),
                        None => {
                            parts.insert(key.clone());
                            parts.extend(inner.keys().map(|within| format!("{key} {within}")));
                        }
                    }
                    // The options of a control are part of the control, and those of a user's control may have any names.
                    if key != "cc" {
                        collect(value, parts);
                    }
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;

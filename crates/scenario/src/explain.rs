//! Turns messages of the deserialiser into messages that a user can act on.

use crate::error::did_you_mean;
use toml::{Table, Value};

/// A failure: path of the value and message.
type Failure = (String, String);

/// Finds the key that causes a failure. The deserialiser buffers tables whose meaning depends on a tag (`kind`,
/// `name`) and reports only the table as a whole; the culprit is the key without which the table fails differently,
/// or not at all.
pub(crate) fn locate(
    table: &Table,
    path: String,
    message: String,
    check: &dyn Fn(&Table) -> Option<Failure>,
) -> Failure {
    if message.starts_with("unknown field") || message.starts_with("missing field") {
        return (path, message);
    }
    let reported = path.clone();
    narrow(table, path, (reported, message), check)
}

/// The deepest key from `path` on without which the table does not fail in this way.
fn narrow(
    table: &Table,
    path: String,
    failure: Failure,
    check: &dyn Fn(&Table) -> Option<Failure>,
) -> Failure {
    let Some(Value::Table(inner)) = descend(&mut table.clone(), &path).map(|v| v.clone()) else {
        return (path, failure.1);
    };
    for key in inner.keys().filter(|k| !matches!(k.as_str(), "kind" | "name" | "preset")) {
        let mut without = table.clone();
        if let Some(Value::Table(t)) = descend(&mut without, &path) {
            t.remove(key);
        }
        if check(&without).as_ref() != Some(&failure) {
            let deeper = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            return narrow(table, deeper, failure, check);
        }
    }
    (path, failure.1)
}

fn descend<'a>(table: &'a mut Table, path: &str) -> Option<&'a mut Value> {
    let mut keys = path.split('.');
    let mut value = table.get_mut(keys.next()?)?;
    for key in keys {
        value = value.as_table_mut()?.get_mut(key)?;
    }
    Some(value)
}

/// Key and message for the user.
pub(crate) fn rewrite(path: &str, message: &str) -> Failure {
    let path = path.trim_matches('.').trim_end_matches(".?");
    let key_in = |key: &str| match path {
        "" | "?" => key.to_owned(),
        _ if path.ends_with(&format!(".{key}")) || path == key => path.to_owned(),
        _ => format!("{path}.{key}"),
    };
    let message = message.trim_end_matches('.');
    if let Some(rest) = message.strip_prefix("unknown field `") {
        let (name, rest) = rest.split_once('`').unwrap_or((rest, ""));
        if let Some(why) = rest.strip_prefix(": ") {
            return (key_in(name), why.into());
        }
        let known = quoted(rest);
        if known.is_empty() {
            return (key_in(name), "unknown key: this table takes no other keys".into());
        }
        let hint = did_you_mean(name, known.iter().copied());
        return (key_in(name), format!("unknown key{hint} (known: {})", known.join(", ")));
    }
    if let Some(rest) = message.strip_prefix("missing field `") {
        let (name, rest) = rest.split_once('`').unwrap_or((rest, ""));
        let why = rest.strip_prefix(": ").unwrap_or("this table needs it");
        return (key_in(name), format!("missing: {why}"));
    }
    if let Some(rest) = message.strip_prefix("unknown variant `") {
        let (name, rest) = rest.split_once('`').unwrap_or((rest, ""));
        let known = quoted(rest);
        let hint = did_you_mean(name, known.iter().copied());
        return (path.to_owned(), format!("\"{name}\" is unknown{hint} (known: {})", known.join(", ")));
    }
    for prefix in ["invalid type: ", "invalid value: "] {
        if let Some((found, expected)) =
            message.strip_prefix(prefix).and_then(|m| m.split_once(", expected "))
        {
            let found = found_text(found);
            return (
                path.to_owned(),
                format!("{found} is not accepted here: write {}", expected_text(expected)),
            );
        }
    }
    (path.to_owned(), message.to_owned())
}

/// The parts between backquotes.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

fn found_text(found: &str) -> String {
    match found {
        "map" => "a table".into(),
        "sequence" => "a list".into(),
        _ => match found.split_once(' ') {
            Some(("string", text)) => text.into(),
            Some((_, rest)) if rest.contains('`') => rest.rsplit('`').nth(1).unwrap_or(rest).into(),
            _ => found.into(),
        },
    }
}

fn expected_text(expected: &str) -> String {
    match expected {
        "u8" => format!("a whole number from 0 to {}", u8::MAX),
        "u16" => format!("a whole number from 0 to {}", u16::MAX),
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "u64" | "usize" => "a whole number ≥ 0".into(),
        "f64" => "a number".into(),
        "a boolean" => "true or false".into(),
        "a string" | "string" => "a string in quotes".into(),
        "a sequence" => "a list in brackets".into(),
        "a map" => "a table".into(),
        _ if expected.starts_with("struct ") || expected.starts_with("internally tagged") => "a table".into(),
        _ if expected.starts_with("an array of length 2") => "a list of two".into(),
        _ => expected.into(),
    }
}

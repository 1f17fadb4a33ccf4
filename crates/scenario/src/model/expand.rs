//! Short forms and defaults as tables, and the keys of a table that define the meaning of the others.

use super::cc::DEFAULT_CC;
use super::endpoint::DEFAULT_ENDPOINT;
use toml::{Table, Value};

/// The table that the string `value` of `key` stands for, so that a file or an override can change keys inside.
pub(crate) fn expand(key: &str, value: &str) -> Option<Table> {
    let pairs: &[(&str, &str)] = match key {
        "os" => &[("name", value)],
        "cc" => match value.strip_prefix("user:") {
            Some(control) => &[("name", "user"), ("control", control)],
            None => &[("name", value)],
        },
        "endpoint" => &[("preset", value)],
        "queue" => &[("limit", value)],
        "delay" => &[("kind", "fixed"), ("base", value)],
        "app" | "error" | "handover" | "header-compression" | "loss-classifier" | "transport" => {
            &[("kind", value)]
        }
        "start" => &[("at", value)],
        "delayed-ack" if value == "off" => {
            let zero = Value::String("0 s".into());
            return Some([("every".into(), Value::Integer(1)), ("delay".into(), zero)].into_iter().collect());
        }
        _ => return None,
    };
    Some(pairs.iter().map(|&(k, v)| (k.into(), Value::String(v.into()))).collect())
}

/// The default table of `key`.
pub(crate) fn expand_default(key: &str) -> Table {
    match key {
        "cc" => expand(key, DEFAULT_CC),
        "endpoint" => expand(key, DEFAULT_ENDPOINT),
        _ => None,
    }
    .unwrap_or_default()
}

/// The keys in table `key` that define the meaning of the others: if one of them changes, the table is replaced.
pub(crate) fn tags(key: &str) -> &'static [&'static str] {
    match key {
        "cc" => &["name", "control"],
        "endpoint" => &["preset"],
        "app" | "code" | "constellation" | "delay" | "error" | "fade" | "fec" | "feedback" | "handover"
        | "header-compression" | "loss-classifier" | "rate" | "transport" => &["kind"],
        _ => &[],
    }
}

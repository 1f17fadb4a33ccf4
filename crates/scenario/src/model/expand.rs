//! Short forms and defaults as tables, the keys of a table that define the meaning of the others, and the tables whose
//! keys are names.

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

/// Whether the keys of the table at this path are names that the user chose: no rule for a key of the format applies to
/// them, even if a link is called `delay`.
pub(crate) fn holds_names(path: &str) -> bool {
    let keys: Vec<&str> = path.split('.').collect();
    let keys = match keys.as_slice() {
        [event, "set", set @ ..] if event.starts_with("event[") => set,
        keys => keys,
    };
    match keys {
        ["links" | "flows" | "gateways"] | ["flows", _, "chain", "legs"] => true,
        // The options of a user's own control, and what is inside of them.
        ["flows", _, "cc", "options", ..] | ["flows", _, "chain", "legs", _, "cc", "options", ..] => true,
        _ => false,
    }
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

#[cfg(test)]
mod tests {
    use super::holds_names;

    #[test]
    fn names_are_the_keys_of_these_tables_only() {
        for path in [
            "links",
            "flows",
            "gateways",
            "flows.a.chain.legs",
            "flows.a.cc.options",
            "flows.a.cc.options.deep",
            "flows.a.chain.legs.g.cc.options",
            "event[3].set.links",
        ] {
            assert!(holds_names(path), "{path}");
        }
        for path in
            ["", "links.links", "flows.chain", "flows.a.chain.legs.g", "flows.a.cc", "event", "event[3].set"]
        {
            assert!(!holds_names(path), "{path}");
        }
    }
}

//! A value as written in a file.

/// A TOML value as written; its meaning belongs to the scenario.
pub type Raw = toml::Value;

/// The default label of a value.
pub(super) fn label_of(value: &Raw) -> String {
    match value {
        Raw::String(s) => s.clone(),
        Raw::Float(f) if *f != 0.0 && (f.abs() < 1e-3 || f.abs() >= 1e6) => format!("{f:e}"),
        Raw::Float(f) => format!("{f}"),
        Raw::Table(t) => {
            let name = t.get("name").or_else(|| t.get("kind")).map(label_of);
            let rest = t.iter().filter(|(k, _)| *k != "name" && *k != "kind");
            let rest: Vec<_> = rest.map(|(k, v)| format!("{k} {}", label_of(v))).collect();
            match (name, rest.is_empty()) {
                (Some(name), true) => name,
                (Some(name), false) => format!("{name} ({})", rest.join(", ")),
                (None, _) => rest.join(", "),
            }
        }
        Raw::Array(all) => all.iter().map(label_of).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

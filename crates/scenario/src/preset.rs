//! Built-in scenarios.

/// Names and texts of the presets, by name.
const PRESETS: &[(&str, &str)] = &[
    ("geo-bent-pipe-dama", include_str!("../../../presets/geo-bent-pipe-dama.toml")),
    ("geo-hts-ka", include_str!("../../../presets/geo-hts-ka.toml")),
    ("geo-today", include_str!("../../../presets/geo-today.toml")),
    ("geo-today-access", include_str!("../../../presets/geo-today-access.toml")),
    ("in-flight-geo", include_str!("../../../presets/in-flight-geo.toml")),
    ("l4s-dual-queue", include_str!("../../../presets/l4s-dual-queue.toml")),
    ("leo-1200-polar", include_str!("../../../presets/leo-1200-polar.toml")),
    ("leo-780-polar", include_str!("../../../presets/leo-780-polar.toml")),
    ("leo-walker-550", include_str!("../../../presets/leo-walker-550.toml")),
    ("luglio", include_str!("../../../presets/luglio.toml")),
    ("maritime-vsat", include_str!("../../../presets/maritime-vsat.toml")),
    ("meo-8062", include_str!("../../../presets/meo-8062.toml")),
    ("neglia", include_str!("../../../presets/neglia.toml")),
    ("neglia-access", include_str!("../../../presets/neglia-access.toml")),
    ("papadimitriou", include_str!("../../../presets/papadimitriou.toml")),
    ("papadimitriou-access", include_str!("../../../presets/papadimitriou-access.toml")),
    ("peach-geo", include_str!("../../../presets/peach-geo.toml")),
    ("peach-geo-access", include_str!("../../../presets/peach-geo-access.toml")),
    ("peach-hetero", include_str!("../../../presets/peach-hetero.toml")),
    ("peach-hetero-access", include_str!("../../../presets/peach-hetero-access.toml")),
    ("peach-leo", include_str!("../../../presets/peach-leo.toml")),
    ("peach-meo", include_str!("../../../presets/peach-meo.toml")),
    ("satcom-fading", include_str!("../../../presets/satcom-fading.toml")),
    ("satcom-interop", include_str!("../../../presets/satcom-interop.toml")),
    ("satcom-large", include_str!("../../../presets/satcom-large.toml")),
    ("satcom-large-jitter", include_str!("../../../presets/satcom-large-jitter.toml")),
    ("satcom-large-loss", include_str!("../../../presets/satcom-large-loss.toml")),
    ("satcom-medium", include_str!("../../../presets/satcom-medium.toml")),
    ("satcom-small", include_str!("../../../presets/satcom-small.toml")),
    ("satcom-small-up", include_str!("../../../presets/satcom-small-up.toml")),
    ("satcom-wifi", include_str!("../../../presets/satcom-wifi.toml")),
];

/// Prefix of the name of a preset where a file is expected.
pub const PREFIX: &str = "preset:";

/// Names of all presets.
pub fn names() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|p| p.0)
}

/// Text of the preset called `name`.
#[must_use]
pub fn text(name: &str) -> Option<&'static str> {
    PRESETS.iter().find(|p| p.0 == name).map(|p| p.1)
}

/// The title of the preset called `name`.
#[must_use]
pub fn title(name: &str) -> Option<String> {
    let table: toml::Table = text(name)?.parse().ok()?;
    Some(table.get("title")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_stand_by_name_and_say_what_they_are() {
        assert!(PRESETS.is_sorted_by_key(|p| p.0));
        for name in names() {
            let title = title(name).unwrap_or_default();
            assert!(!title.is_empty() && title.len() <= 80, "{name}: {title}");
        }
        assert_eq!(title("nothing"), None);
    }
}

//! Scenarios that come with the program.

/// Names and texts of the presets, by name.
const PRESETS: &[(&str, &str)] = &[
    ("geo-today", include_str!("../../../presets/geo-today.toml")),
    ("leo-1200-polar", include_str!("../../../presets/leo-1200-polar.toml")),
    ("leo-780-polar", include_str!("../../../presets/leo-780-polar.toml")),
    ("leo-walker-550", include_str!("../../../presets/leo-walker-550.toml")),
    ("luglio", include_str!("../../../presets/luglio.toml")),
    ("meo-8062", include_str!("../../../presets/meo-8062.toml")),
    ("neglia", include_str!("../../../presets/neglia.toml")),
    ("papadimitriou", include_str!("../../../presets/papadimitriou.toml")),
    ("peach-geo", include_str!("../../../presets/peach-geo.toml")),
    ("peach-hetero", include_str!("../../../presets/peach-hetero.toml")),
    ("peach-leo", include_str!("../../../presets/peach-leo.toml")),
    ("peach-meo", include_str!("../../../presets/peach-meo.toml")),
];

/// What stands before the name of a preset where a file is expected.
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

//! Scenarios that come with the program.

/// Names and texts of the presets, by name.
const PRESETS: &[(&str, &str)] = &[
    ("geo-bent-pipe-dama", include_str!("../../../presets/geo-bent-pipe-dama.toml")),
    ("geo-hts-ka", include_str!("../../../presets/geo-hts-ka.toml")),
    ("geo-today", include_str!("../../../presets/geo-today.toml")),
    ("in-flight-geo", include_str!("../../../presets/in-flight-geo.toml")),
    ("luglio", include_str!("../../../presets/luglio.toml")),
    ("maritime-vsat", include_str!("../../../presets/maritime-vsat.toml")),
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

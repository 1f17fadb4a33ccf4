//! The body of the one target that needs a crate above the test harness; the others live in `skyhaul-testkit`.

use skyhaul_scenario::{check, resolve_text};

/// A scenario file, followed after a line `---` by overrides, one per line. It resolves or is refused in one
/// line; what resolves can be checked, and its canonical text resolves to the same.
///
/// # Panics
/// If not.
pub fn scenario_toml(data: &[u8]) {
    let Ok(input) = core::str::from_utf8(data) else { return };
    let (text, sets) = input.split_once("\n---\n").unwrap_or((input, ""));
    let sets: Vec<&str> = sets.lines().collect();
    let load = |path: &str| Err(format!("{path} is out of reach"));
    match resolve_text("fuzz.toml", text, &sets, &load) {
        Ok(resolved) => {
            let _ = check(&resolved);
            let canonical = resolved.to_toml();
            let again = match resolve_text("canonical.toml", &canonical, &[], &load) {
                Ok(again) => again,
                Err(e) => panic!("the canonical text is refused: {e}\n{canonical}"),
            };
            assert_eq!(again.hash(), resolved.hash(), "{canonical}");
        }
        Err(e) => {
            let message = e.to_string();
            assert!(!message.is_empty() && !message.contains('\n'), "{message:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::scenario_toml;

    /// The corpus, and every seed with one byte changed, cut short, or doubled in places.
    #[test]
    fn scenario_toml_survives() {
        let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/scenario_toml");
        let mut seeds: Vec<_> = std::fs::read_dir(corpus)
            .expect("a corpus")
            .map(|f| std::fs::read(f.expect("an entry").path()).expect("readable"))
            .collect();
        seeds.sort();
        assert!(!seeds.is_empty());
        let mut state = 1u64;
        let mut random = move |n: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % n.max(1)
        };
        for seed in &seeds {
            scenario_toml(seed);
            for _ in 0..1000 {
                let mut data = seed.clone();
                for _ in 0..=random(4) {
                    let at = random(data.len());
                    match random(4) {
                        0 => data.truncate(at.max(1)),
                        1 => data[at] = b"=.[]{}\"'#\n 0-9eskMG"[random(19)],
                        2 => drop(data.remove(at)),
                        _ => data.insert(at, b"=.[]{}\"'#\n 0-9eskMG"[random(19)]),
                    }
                    if data.is_empty() {
                        data.push(b'#');
                    }
                }
                scenario_toml(&data);
            }
        }
    }
}

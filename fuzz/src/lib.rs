//! The bodies of the targets that need a crate above the test harness; the others live in `skyhaul-testkit`.

use skyhaul_base::Instant;
use skyhaul_path::delay::{DelayTrace, Interpolation};
use skyhaul_path::rate::{self, End, Saturated};
use skyhaul_scenario::{check, no_files, resolve_text};

/// A scenario file, followed after a line `---` by overrides, one per line. It resolves or is refused in one
/// line; what resolves can be checked, and its canonical text resolves to the same.
///
/// # Panics
/// If not.
pub fn scenario_toml(data: &[u8]) {
    let Ok(input) = core::str::from_utf8(data) else { return };
    let (text, sets) = input.split_once("\n---\n").unwrap_or((input, ""));
    let sets: Vec<&str> = sets.lines().collect();
    match resolve_text("fuzz.toml", text, &sets, &no_files) {
        Ok(resolved) => {
            let _ = check(&resolved);
            let canonical = resolved.to_toml();
            let again = match resolve_text("canonical.toml", &canonical, &[], &no_files) {
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

/// A file of values over time, after a byte that says how it is read. It is refused in one line, or it can be used: packets
/// leave in order, and delays lie between the smallest and the longest.
///
/// # Panics
/// If not.
pub fn trace_files(data: &[u8]) {
    let Some((mode, text)) = data.split_first() else { return };
    let Ok(text) = core::str::from_utf8(text) else { return };
    let end = if mode & 4 == 0 { End::Hold } else { End::Loop };
    let interpolation = if mode & 8 == 0 { Interpolation::Hold } else { Interpolation::Linear };
    let read = match mode & 3 {
        0 => rate::read("mahimahi", text, end).map(|rate| leaves(&rate)),
        1 => rate::read("trace", text, end).map(|rate| leaves(&rate)),
        _ => DelayTrace::read(text, interpolation, end).map(|t| {
            let most = t.points().map(|p| p.1).max().expect("a point");
            for nanos in [0, 1, 999_999_999, 60_000_000_000, t.last().as_nanos(), u64::MAX] {
                let delay = t.at(Instant::from_nanos(nanos));
                assert!(t.least() <= delay && delay <= most, "{delay:?} at {nanos} ns");
            }
        }),
    };
    if let Err(e) = read {
        assert!(!e.message.is_empty() && !e.message.contains('\n'), "{e:?}");
        assert!(e.line <= text.lines().count(), "{e:?}");
    }
}

fn leaves(rate: &rate::Config) {
    let (mut transmitter, mut last) = (Saturated::new(rate), Instant::ZERO);
    for _ in 0..100 {
        let end = transmitter.next(last);
        assert!(end >= last, "{end:?} before {last:?}");
        last = end;
    }
    assert!(rate.bits_until(last).is_some_and(|bits| bits >= 0.0));
    assert!(rate.mean().is_some_and(|mean| mean.bits_per_sec() > 0));
}

#[cfg(test)]
mod tests {
    use super::{scenario_toml, trace_files};

    /// The corpus, and every seed with bytes changed, cut short, or doubled in places.
    fn survives(corpus: &str, alphabet: &[u8], target: fn(&[u8])) {
        let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(corpus);
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
            target(seed);
            for _ in 0..1000 {
                let mut data = seed.clone();
                for _ in 0..=random(4) {
                    let at = random(data.len());
                    match random(4) {
                        0 => data.truncate(at.max(1)),
                        1 => data[at] = alphabet[random(alphabet.len())],
                        2 => drop(data.remove(at)),
                        _ => data.insert(at, alphabet[random(alphabet.len())]),
                    }
                    if data.is_empty() {
                        data.push(b'#');
                    }
                }
                target(&data);
            }
        }
    }

    #[test]
    fn scenario_toml_survives() {
        survives("scenario_toml", b"=.[]{}\"'#\n 0-9eskMG", scenario_toml);
    }

    #[test]
    fn trace_files_survive() {
        survives("trace_files", b"0123456789.,-+e_#\n \0\x01\x05\x0a\x0e", trace_files);
    }
}

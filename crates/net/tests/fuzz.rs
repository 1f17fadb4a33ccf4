//! The fuzz targets of this crate without a fuzzer: the corpora, and mutations of them.
#![cfg(target_os = "linux")]

use skyhaul_base::Rng;
use skyhaul_net::fuzz::{host_packets, http_requests};
use skyhaul_testkit::fuzz::repair;
use std::path::Path;

/// Inputs; `SKYHAUL_CASES` overrides.
fn cases() -> u64 {
    std::env::var("SKYHAUL_CASES").ok().and_then(|s| s.parse().ok()).unwrap_or(5_000)
}

#[test]
fn hosts_survive_whatever_comes() {
    replay("host_packets", |data| host_packets(data, repair));
}

#[test]
fn requests_end_where_they_end_however_they_come() {
    replay("http_requests", http_requests);
}

/// Runs a target with its corpus and with mutations of it.
fn replay(name: &str, target: impl Fn(&[u8]) + std::panic::RefUnwindSafe) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut files: Vec<_> =
        std::fs::read_dir(&corpus).expect("there").map(|f| f.expect("an entry").path()).collect();
    files.sort();
    let seeds: Vec<Vec<u8>> = files.iter().map(|f| std::fs::read(f).expect("readable")).collect();
    assert!(seeds.len() >= 4);
    let run = |data: &[u8]| {
        let result = std::panic::catch_unwind(|| target(data));
        assert!(result.is_ok(), "{data:?}");
    };
    seeds.iter().for_each(|s| run(s));
    let mut rng = Rng::stream(3, name);
    for _ in 0..cases() {
        let mut data = seeds[rng.below(seeds.len() as u64) as usize].clone();
        for _ in 0..=rng.below(8) {
            let at = rng.below(data.len().max(1) as u64) as usize;
            match rng.below(8) {
                0 => data.truncate(at),
                1 => data.insert(at.min(data.len()), rng.next_u64() as u8),
                _ => data.iter_mut().skip(at).take(1).for_each(|b| *b = rng.next_u64() as u8),
            }
        }
        run(&data);
    }
}

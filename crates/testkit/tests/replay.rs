//! The fuzz targets without a fuzzer: the corpus, then pseudo-random bytes.

mod link_ops;

use link_ops::link_ops;
use skyhaul_base::Rng;
use skyhaul_testkit::fuzz::{
    queue_ops, rack_ops, repair_frames, repair_headers, scoreboard_ops, tcp_ops, wire_packet,
};
use std::path::Path;

/// Inputs per target; `SKYHAUL_CASES` overrides.
fn cases() -> u64 {
    std::env::var("SKYHAUL_CASES").ok().and_then(|s| s.parse().ok()).unwrap_or(20_000)
}

/// Runs `target`, naming the input if it panics.
fn run(target: fn(&[u8]), name: &str, data: &[u8]) {
    let result = std::panic::catch_unwind(|| target(data));
    assert!(result.is_ok(), "{name}: {data:?}");
}

/// The files of a corpus, each with its path.
fn corpus(name: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|f| f.expect("a directory entry").path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no seeds in {}", folder.display());
    files.iter().map(|f| (f.display().to_string(), std::fs::read(f).expect("readable"))).collect()
}

fn replay(target: fn(&[u8]), name: &str) {
    for (file, data) in corpus(name) {
        run(target, &file, &data);
    }
    let mut rng = Rng::stream(1, name);
    for n in 0..cases() {
        let len = rng.below(if n % 8 == 0 { 1500 } else { 200 });
        let data: Vec<u8> = (0..len).map(|_| rng.next_u64() as u8).collect();
        run(target, name, &data);
    }
}

/// Runs `target` on the corpus with up to eight bytes changed, cut off or added.
fn mutate(target: fn(&[u8]), name: &str, count: u64) {
    let seeds = corpus(name);
    let mut rng = Rng::stream(2, name);
    for _ in 0..count {
        let mut data = seeds[rng.below(seeds.len() as u64) as usize].1.clone();
        for _ in 0..=rng.below(8) {
            let at = rng.below(data.len().max(1) as u64) as usize;
            match rng.below(8) {
                0 => data.truncate(at),
                1 => data.insert(at.min(data.len()), rng.next_u64() as u8),
                _ => data.iter_mut().skip(at).take(1).for_each(|b| *b = rng.next_u64() as u8),
            }
        }
        run(target, name, &data);
    }
}

#[test]
fn tcp_ops_survives() {
    replay(tcp_ops, "tcp_ops");
}

#[test]
fn scoreboard_ops_survives() {
    replay(scoreboard_ops, "scoreboard_ops");
}

#[test]
fn link_ops_survives() {
    replay(link_ops, "link_ops");
}

#[test]
fn queue_ops_survives() {
    replay(queue_ops, "queue_ops");
}

#[test]
fn rack_ops_survives() {
    replay(rack_ops, "rack_ops");
}

#[test]
fn repair_frames_survives() {
    replay(repair_frames, "repair_frames");
    mutate(repair_frames, "repair_frames", 5 * cases());
}

#[test]
fn repair_headers_survives() {
    for (file, data) in corpus("repair_headers") {
        run(repair_headers, &file, &data);
    }
    // An input takes as long as ten of other targets.
    mutate(repair_headers, "repair_headers", cases() / 5);
}

#[test]
fn wire_packet_survives() {
    replay(wire_packet, "wire_packet");
    // A million packets that are nearly right.
    mutate(wire_packet, "wire_packet", 50 * cases());
}

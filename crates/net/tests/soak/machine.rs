//! The machine that the scenes run on: its description, its time of day, and the memory of its processes.

use serde_json::{Value, json};
use std::fs;

/// Resident memory of this process, bytes.
pub fn resident() -> f64 {
    resident_of(std::process::id())
}

/// Resident memory of a process, bytes; 0 if there is no such process.
pub fn resident_of(pid: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let kib = status.lines().find_map(|l| l.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
    kib.and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0) * 1024.0
}

/// Seconds since 1970.
pub fn unix_seconds() -> u64 {
    skyhaul_net::Clock::wall_nanos() / 1_000_000_000
}

/// Processor, cores and kernel.
pub fn describe() -> Value {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|l| l.strip_prefix("model name"))
        .map(|l| l.trim_start_matches([':', '\t', ' ']));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    json!({ "processor": model.unwrap_or("unknown"), "cores": cores, "kernel": kernel.trim() })
}

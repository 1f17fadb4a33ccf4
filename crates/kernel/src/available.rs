//! What the kernel offers in the current network namespace.

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// Names of all controls that the kernel offers now.
pub(crate) fn names() -> Vec<String> {
    let text = std::fs::read_to_string(AVAILABLE).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

/// Whether the kernel offers a control of this name now.
#[must_use]
pub fn is_available(name: &str) -> bool {
    names().iter().any(|n| n == name)
}

/// The default control of the current network namespace; empty if that cannot be read.
#[must_use]
pub fn default_control() -> String {
    std::fs::read_to_string(DEFAULT).unwrap_or_default().trim().to_owned()
}

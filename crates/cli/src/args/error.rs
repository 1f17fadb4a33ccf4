//! Errors of command-line arguments.

/// Why an argument was refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum ArgumentError {
    #[cfg(target_os = "linux")]
    #[error("write a time above zero with its unit, such as 60s or 500ms")]
    PositiveTime,
    #[error("write an address with its prefix length, such as 10.84.0.1/24")]
    Network,
    #[error("the network needs two addresses: write a prefix length from /1 to /30 (IPv4) or /126 (IPv6)")]
    RoomForTwo,
}

//! What arguments have to be.

/// What an argument has to be.
#[derive(Debug, thiserror::Error)]
pub(super) enum ArgumentError {
    #[cfg(target_os = "linux")]
    #[error("write a number with ms, s or min, such as 60s")]
    Time,
    #[cfg(target_os = "linux")]
    #[error("write a positive number with ms, s or min, such as 60s")]
    PositiveTime,
    #[error("write address and length of its network, such as 10.84.0.1/24")]
    Network,
    #[error("write a network with room for two: /1 to /30 (IPv4) or /126 (IPv6)")]
    RoomForTwo,
}

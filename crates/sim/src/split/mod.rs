//! Split paths: chains of connections with gateways between them.

pub(crate) mod chain;
pub(crate) mod handover;
pub(crate) mod headers;
pub(crate) mod leg;
pub(crate) mod rate_leg;
pub(crate) mod relay;
pub(crate) mod spoof;
pub(crate) mod spoofing;
pub(crate) mod tunnel;

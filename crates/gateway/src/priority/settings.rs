//! `[priority-test]` of the configuration file.

use serde::Deserialize;
use skyhaul_base::Duration;
use skyhaul_base::amount::Time;
use std::net::IpAddr;

/// Whether and how a path is tested before low-priority packets are sent on it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// Whether it is tested; `None`: if the congestion control sends low-priority packets.
    pub test: Option<bool>,
    /// Addresses of other gateways on the link; those that connections find need not be listed.
    pub peers: Vec<IpAddr>,
    /// UDP port of the test, the same at both ends.
    pub port: u16,
    /// Interval between tests of a path. A result is valid for twice as long.
    pub interval: Time,
    /// Maximum number of packets of a test.
    pub packets: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            test: None,
            peers: Vec::new(),
            port: 21_320,
            interval: Time(Duration::from_secs(600)),
            packets: 1500,
        }
    }
}

/// Fewest packets that can decide, and most that a test may have.
const PACKETS: [u32; 2] = [200, 20_000];
/// Shortest interval.
const SHORTEST: Duration = Duration::from_secs(10);

impl Settings {
    /// The first key that is wrong, and what to write.
    pub(crate) fn wrong(&self) -> Option<(&'static str, String)> {
        let [least, most] = PACKETS;
        [
            ("priority-test.port", self.port == 0, "write a port of 1 to 65535".to_owned()),
            ("priority-test.interval", self.interval.0 < SHORTEST, "write at least \"10 s\"".into()),
            (
                "priority-test.packets",
                !(least..=most).contains(&self.packets),
                format!("write {least} to {most}: fewer decide nothing, more burden the link"),
            ),
        ]
        .into_iter()
        .find_map(|(key, wrong, message)| wrong.then_some((key, message)))
    }
}

//! `[evidence]` of the configuration file.

use serde::Deserialize;
use std::net::IpAddr;

/// What is measured, and which connections are split meanwhile.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// Whether connections are measured, and split.
    pub mode: Mode,
    /// Share of new connections in the first arm, 0 to 1, both excluded.
    pub fraction: f64,
    /// What the arm of a connection depends on.
    pub by: AssignmentUnit,
    /// Seed of the hash that assigns arms.
    pub seed: u32,
    /// Whose prefixes are reported.
    pub group: Group,
    /// Length of these prefixes for IPv4 addresses, bits.
    pub prefix_v4: u8,
    /// Length of these prefixes for IPv6 addresses, bits.
    pub prefix_v6: u8,
    /// Maximum number of connections observed at a time.
    pub connections: usize,
    /// Maximum number of prefixes reported.
    pub prefixes: usize,
    /// The second arm, if it is split as well: with other transport settings.
    pub other: Option<SecondArm>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mode: Mode::Off,
            fraction: 0.5,
            by: AssignmentUnit::Connection,
            seed: 0,
            group: Group::Server,
            prefix_v4: 24,
            prefix_v6: 48,
            connections: 20_000,
            prefixes: 256,
            other: None,
        }
    }
}

/// Whether connections are measured, and split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Split, not measured.
    #[default]
    Off,
    /// Measured, not split.
    Shadow,
    /// Measured in two arms.
    Ab,
}

impl Mode {
    /// The name in files and on a terminal.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Shadow => "shadow",
            Self::Ab => "ab",
        }
    }
}

/// What the arm of a connection depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AssignmentUnit {
    /// Its addresses and ports.
    #[default]
    Connection,
    /// The client's address.
    Client,
}

/// Whose prefixes are reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// The server's.
    #[default]
    Server,
    /// The client's.
    Client,
}

/// Transport settings of the second arm; what is left out is as in `[satellite]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SecondArm {
    pub(crate) cc: Option<toml::Value>,
    pub(crate) endpoint: Option<toml::Value>,
    pub(crate) rwnd: Option<toml::Value>,
    pub(crate) sndbuf: Option<toml::Value>,
}

/// Hashes that assign arms are numbers below this one.
pub(crate) const SHARES: u32 = 1000;
/// Maximum number of connections in the table: about 300 bytes each.
const MOST_CONNECTIONS: usize = 1_000_000;
/// Maximum number of prefixes: about 1.6 kB each, 10 kB if arms are assigned by client.
const MOST_PREFIXES: usize = 65_536;

impl Settings {
    /// Whether connections are measured.
    #[must_use]
    pub fn measures(&self) -> bool {
        self.mode != Mode::Off
    }
    /// Whether the second arm is forwarded unsplit.
    #[must_use]
    pub fn leaves_unsplit(&self) -> bool {
        self.mode == Mode::Ab && self.other.is_none()
    }
    /// The first key that is wrong, and what to write.
    pub(crate) fn wrong(&self) -> Option<(&'static str, String)> {
        let within = |of: usize, most: usize| (of == 0 || of > most).then(|| format!("write 1 to {most}"));
        let longer = |bits: u8, most: u8| (bits > most).then(|| format!("write 0 to {most}, in bits"));
        let share = self.threshold();
        let fraction = (self.fraction.is_nan() || share == 0 || share >= SHARES)
            .then(|| "write a share between 0.001 and 0.999, such as 0.5".to_owned());
        let other = (self.other.is_some() && self.mode != Mode::Ab)
            .then(|| "a second arm needs mode = \"ab\"".to_owned());
        [
            ("evidence.fraction", fraction),
            ("evidence.prefix-v4", longer(self.prefix_v4, 32)),
            ("evidence.prefix-v6", longer(self.prefix_v6, 128)),
            ("evidence.connections", within(self.connections, MOST_CONNECTIONS)),
            ("evidence.prefixes", within(self.prefixes, MOST_PREFIXES)),
            ("evidence.other", other),
        ]
        .into_iter()
        .find_map(|(key, wrong)| wrong.map(|message| (key, message)))
    }
    /// Hashes below this number are in the first arm.
    pub(crate) fn threshold(&self) -> u32 {
        (self.fraction * f64::from(SHARES)).round().clamp(0.0, f64::from(u32::MAX)) as u32
    }
    /// The prefix of an address.
    pub(crate) fn prefix(&self, address: IpAddr) -> crate::network::Network {
        let bits = if address.is_ipv4() { self.prefix_v4 } else { self.prefix_v6 };
        crate::network::Network::around(address, bits)
    }
}

//! What the file of a gateway says, key by key.

use super::Network;
use crate::classes::{ClassConfig, LEAST_RATE, SubscriberConfig};
use crate::evidence::settings as evidence;
use crate::forward::{Forward, Publish};
use crate::log::LogConfig;
use crate::prefixes::MetricsConfig;
use crate::priority::settings as priority;
use crate::profile::LinkProfile;
use crate::repair;
use serde::Deserialize;
use skyhaul_base::amount::{RateSpec, Size, Time};
use skyhaul_base::{Duration, Rate};

/// What the file of a gateway says.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct File {
    /// Name of the gateway, from which the names of its nftables table and its interfaces are formed.
    #[serde(default = "name")]
    pub name: String,
    /// The terrestrial side, whose connections are routed through the gateway; `None` if it only forwards ports.
    pub terrestrial: Option<Terrestrial>,
    /// The satellite side.
    pub satellite: Satellite,
    /// Ports of this machine, and the servers behind the link to which their connections go.
    #[serde(default)]
    pub forward: Vec<Forward>,
    /// Ports of the satellite interface, and the servers to which their connections go.
    #[serde(default)]
    pub publish: Vec<Publish>,
    /// Classes of connections, which share the link by their weights.
    #[serde(default)]
    pub class: Vec<ClassConfig>,
    /// Rates of subscribers.
    #[serde(default)]
    pub subscriber: Vec<SubscriberConfig>,
    /// Which connections are split.
    #[serde(default = "split")]
    pub split: Split,
    /// Resource limits and timeouts.
    #[serde(default)]
    pub limits: Limits,
    /// Where the lines about connections and events go.
    #[serde(default)]
    pub log: LogConfig,
    /// Which metrics there are, and where they are served.
    #[serde(default)]
    pub metrics: MetricsConfig,
    /// What happens to new connections after the gateway was killed.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// Which measurements of connections are made.
    #[serde(default)]
    pub evidence: evidence::Settings,
    /// Whether the path is tested before low-priority packets are sent.
    #[serde(default)]
    pub priority_test: priority::Settings,
    /// Whether datagrams are repaired between this gateway and another one.
    pub repair: Option<repair::Settings>,
}

/// The terrestrial side.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Terrestrial {
    /// The interface towards the hosts; after reading, it is in `interfaces`.
    #[serde(default)]
    pub(super) interface: Option<String>,
    /// Interfaces towards the hosts.
    #[serde(default)]
    pub interfaces: Vec<String>,
    /// Networks of the hosts: only connections from or to them are split.
    #[serde(default = "everything")]
    pub networks: Vec<Network>,
    /// What servers on this side see of a client behind the link.
    #[serde(default)]
    pub preserve: Preserve,
}

/// The satellite side.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Satellite {
    /// Interface towards the link.
    pub interface: String,
    /// Networks behind the link.
    #[serde(default = "everything")]
    pub networks: Vec<Network>,
    /// The kind of the link, which sets the TCP keys below that the file leaves out.
    #[serde(default)]
    pub profile: Option<LinkProfile>,
    /// RTT of the link, which only a profile uses; `None`: that of the profile.
    #[serde(default)]
    pub rtt: Option<Time>,
    /// Pacing rate of IP packets towards the link, so that the queue is in the gateway and not in the modem; `None`: no pacing.
    #[serde(default, deserialize_with = "pacing_rate")]
    pub rate: Option<Rate>,
    /// Whether connections to a known gateway (one that an earlier connection has found at the other end of the link) start with a part of
    /// the congestion window of earlier connections, if there is a `rate`.
    #[serde(default = "yes")]
    pub resume: bool,
    /// How long the SYN to a known gateway waits for the first bytes of the client, so that it can carry them; zero: SYNs carry
    /// no data, and data in SYNs of other gateways is not taken.
    #[serde(default = "early_data")]
    pub early_data: Time,
    /// MTU of the link, bytes.
    #[serde(default = "ethernet")]
    pub mtu: u16,
    // The values of the next five keys are read as in a scenario file, by the method `Satellite::endpoint`.
    #[serde(default)]
    pub(super) cc: Option<toml::Value>,
    #[serde(default)]
    pub(super) fallback_cc: Option<toml::Value>,
    #[serde(default)]
    pub(super) endpoint: Option<toml::Value>,
    #[serde(default)]
    pub(super) rwnd: Option<toml::Value>,
    #[serde(default)]
    pub(super) sndbuf: Option<toml::Value>,
    #[serde(default)]
    pub(super) probe_mark: Marking,
}

/// Which connections are split; everything else is forwarded.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Split {
    /// Only connections to these ports; empty: to all.
    #[serde(default)]
    pub ports: Vec<u16>,
    /// Connections to these ports are not split.
    #[serde(default = "not_split")]
    pub exclude_ports: Vec<u16>,
    /// Connections from or to these networks are not split.
    #[serde(default)]
    pub exclude: Vec<Network>,
}

/// Resource limits and timeouts of a gateway.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Limits {
    /// Maximum number of split connections; further ones are forwarded.
    pub flows: usize,
    /// Relay buffer per connection and direction, bytes.
    pub buffer: Size,
    /// Memory limit of all connections over the link together, bytes.
    pub memory: Size,
    /// Idle timeout of a connection without waiting data (RFC 5382 §5).
    pub idle: Time,
    /// Timeout of a connection with waiting data and no progress.
    pub stuck: Time,
    /// Time that connections have to finish when the gateway stops.
    pub drain: Time,
    /// Number of threads, each with a queue of the TUN device.
    pub threads: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            flows: 20_000,
            buffer: Size(256 << 10),
            memory: Size(1 << 30),
            // RFC 5382 §5: two hours and four minutes.
            idle: Time(Duration::from_secs(7440)),
            stuck: Time(Duration::from_secs(300)),
            drain: Time(Duration::from_secs(10)),
            threads: 1,
        }
    }
}

/// What servers on the terrestrial side see of a client behind the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preserve {
    /// The client's address and port; another port if that one is in use.
    #[default]
    Full,
    /// The client's address, with any port.
    Address,
    /// Neither: the connection comes from the gateway's address.
    None,
}

/// What happens to new connections after the gateway was killed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    /// They are forwarded.
    #[default]
    Bypass,
    /// They are dropped until the gateway runs again or its rules are removed.
    Block,
}

/// How probes are marked; [`skyhaul_wire::Profile`] has the formats.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Marking {
    #[default]
    Option,
    Compact,
    Paper,
    Off,
}

fn name() -> String {
    "gateway".into()
}
fn split() -> Split {
    Split { exclude_ports: not_split(), ..Split::default() }
}
/// The port of BGP, whose segments may be authenticated (RFC 5925) with keys that a relay does not have.
fn not_split() -> Vec<u16> {
    vec![179]
}
fn everything() -> Vec<Network> {
    ["0.0.0.0/0", "::/0"].iter().filter_map(|n| n.parse().ok()).collect()
}
fn yes() -> bool {
    true
}
/// Longer than the RTT of a local network, and too short to be noticed where the server speaks first.
fn early_data() -> Time {
    Time(Duration::from_millis(5))
}
fn ethernet() -> u16 {
    1500
}
/// A rate of at least [`LEAST_RATE`]; `None` if the rate is unlimited.
fn pacing_rate<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Option<Rate>, D::Error> {
    match RateSpec::deserialize(d)? {
        RateSpec::Bits(rate) if rate.bits_per_sec() >= LEAST_RATE => Ok(Some(rate)),
        RateSpec::Unlimited => Ok(None),
        _ => Err(serde::de::Error::custom(
            "write a rate of at least 8 kbit/s, such as \"10 Mbit/s\", or \"unlimited\"",
        )),
    }
}

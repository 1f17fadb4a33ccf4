//! `[repair]` of the configuration file.

use crate::classes::Ports;
use crate::network::Network;
use serde::{Deserialize, Deserializer};
use skyhaul_base::amount::{RateSpec, Time};
use skyhaul_base::{Duration, Rate};
use skyhaul_path::queue::fq_codel;
use skyhaul_path::{Limit, QueueConfig, Refusal};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::{fmt, str::FromStr};

/// The UDP port of both gateways, unless the file names another.
const PORT: u16 = 21_321;
/// Minimum length of the pre-shared key, bytes.
pub(crate) const SHORTEST_KEY: usize = 32;
/// Maximum number of networks and ports in `pass`.
const MOST_PASSING: usize = 256;
/// Longest time of any key.
const LONGEST: Duration = Duration::from_secs(60);
/// Headers of the outer protocols and the tag of the AEAD, for IPv6.
const OUTER_V6: u32 = skyhaul_repair::Config::OUTER + 20;

/// Whether and how datagrams are repaired between this gateway and another one.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Settings {
    /// Address of the other gateway at the link, and its UDP port if that is not `port`; or that it calls from any.
    pub peer: Peer,
    /// UDP port of this gateway.
    #[serde(default = "port")]
    pub port: u16,
    /// The pre-shared key of both gateways, at least 32 bytes.
    #[serde(default)]
    pub key: Option<KeyText>,
    /// The file that holds the key.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// Rate of repaired datagrams towards the link, outer headers included; `None`: they share `satellite.rate` with split connections.
    #[serde(default, deserialize_with = "rate")]
    pub rate: Option<Rate>,
    /// The gateway's queue in front of the link.
    #[serde(default)]
    pub queue: Queueing,
    /// Length of this queue: the time in which it drains at the rate.
    #[serde(default = "limit")]
    pub limit: Time,
    /// Repair by an erasure code.
    #[serde(default = "yes")]
    pub fec: bool,
    /// Maximum number of repeats of a datagram that the code does not recover; 0 for none.
    #[serde(default = "retries")]
    pub retries: u32,
    /// Maximum time that a datagram waits for earlier ones; zero to deliver in order of arrival.
    #[serde(default = "resequence")]
    pub resequence: Time,
    /// Maximum share of the rate for repair symbols and repeats together.
    #[serde(default = "share")]
    pub share: f64,
    /// Maximum number of datagrams in a block of the code.
    #[serde(default = "block")]
    pub block: u16,
    /// Maximum time from the first datagram of a block to its repair symbols.
    #[serde(default = "fill_time")]
    pub fill_time: Time,
    /// Accepted probability that a block has more losses than the code recovers.
    #[serde(default = "residual")]
    pub residual: f64,
    /// Repair symbols have low priority: they leave when nothing else waits, with DSCP LE.
    #[serde(default)]
    pub low_priority: bool,
    /// Minimum time between two reports to the other gateway.
    #[serde(default = "report")]
    pub report: Time,
    /// Headers of datagrams are compressed on their way to the other gateway.
    #[serde(default = "yes")]
    pub compress: bool,
    /// Small datagrams that wait leave together.
    #[serde(default = "yes")]
    pub bundle: bool,
    /// What is forwarded without repair.
    #[serde(default)]
    pub pass: Pass,
}

/// Flows that are forwarded without repair.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Pass {
    /// From or to these networks.
    pub networks: Vec<Network>,
    /// From or to these ports.
    pub ports: Vec<Ports>,
}

/// The discipline of the gateway's queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Queueing {
    /// Flows take turns, each with a controlled delay (RFC 8290).
    #[default]
    FqCodel,
    /// One queue that drops what does not fit.
    DropTail,
}

/// Where the other gateway is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Peer {
    /// At this address, with its port if the file names one.
    At(IpAddr, Option<u16>),
    /// At the address from which it calls, of IPv4.
    Any,
    /// As [`Self::Any`], of IPv6.
    AnyV6,
}

impl Peer {
    /// Whether packets to it are of IPv6.
    #[must_use]
    pub fn is_v6(self) -> bool {
        match self {
            Self::At(address, _) => address.is_ipv6(),
            Self::Any => false,
            Self::AnyV6 => true,
        }
    }
}

impl FromStr for Peer {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "any" => return Ok(Self::Any),
            "any-ipv6" => return Ok(Self::AnyV6),
            _ => {}
        }
        let alone = text.parse().map(|address: IpAddr| (address, None));
        let both = |at: SocketAddr| (at.ip(), Some(at.port()));
        let (address, port) = alone.or_else(|_| text.parse().map(both)).map_err(|_| {
            format!(
                "{text:?} is no address of a gateway: write \"203.0.113.9\", \"203.0.113.9:4000\" or \"[fd00::1]:4000\", or \"any\" or \
                 \"any-ipv6\" if its file names this gateway and its address may change"
            )
        })?;
        if address.is_unspecified() || address.is_multicast() || port == Some(0) {
            Err(format!("{text:?} is nobody's address: write that of the other gateway"))
        } else {
            Ok(Self::At(address, port))
        }
    }
}
impl TryFrom<String> for Peer {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// A key as text, which is shown nowhere.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct KeyText(pub(crate) String);

impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyText(..)")
    }
}

impl Settings {
    /// The address and port of the other gateway, if the file names them.
    #[must_use]
    pub fn peer_at(&self) -> Option<SocketAddr> {
        match self.peer {
            Peer::At(address, port) => Some(SocketAddr::new(address, port.unwrap_or(self.port))),
            Peer::Any | Peer::AnyV6 => None,
        }
    }

    /// The first key that is wrong, and what to write. `shared` is the rate of the link, if the file has one; `mtu` that of the link.
    pub(crate) fn wrong(&self, shared: Option<Rate>, mtu: u16) -> Option<(String, String)> {
        let of = |key: &str, message: &str| Some((format!("repair.{key}"), message.to_owned()));
        let make = "make one with `head -c 32 /dev/urandom | base64`";
        match (&self.key, &self.key_file) {
            (None, None) => {
                return of(
                    "key-file",
                    &format!("missing: write the file that holds the key of both gateways; {make}"),
                );
            }
            (Some(_), Some(_)) => {
                return of("key-file", "the key is also in repair.key: leave one of them out");
            }
            (Some(KeyText(key)), None) if key.trim().len() < SHORTEST_KEY => {
                return of(
                    "key",
                    &format!(
                        "too short: write at least {SHORTEST_KEY} bytes, the same on both gateways; {make}"
                    ),
                );
            }
            (None, Some(path)) if !path.is_absolute() => {
                return of("key-file", "write a path from the root, such as \"/etc/skyhaul/repair.key\"");
            }
            _ => {}
        }
        if self.port == 0 {
            return of("port", "write a port of 1 to 65535");
        }
        let Some(rate) = self.rate.or(shared) else {
            return of(
                "rate",
                "missing: write the rate of the link, or satellite.rate to share it with split connections",
            );
        };
        let times = [
            ("limit", self.limit),
            ("resequence", self.resequence),
            ("fill-time", self.fill_time),
            ("report", self.report),
        ];
        if let Some((key, _)) = times.iter().find(|(_, t)| t.0 > LONGEST) {
            return of(key, "longer than a minute: write a shorter time");
        }
        if self.limit.0.is_zero() {
            return of("limit", "no packet could wait: write a time such as \"600 ms\"");
        }
        if self.pass.networks.len() + self.pass.ports.len() > MOST_PASSING {
            let message = format!("more than {MOST_PASSING} networks and ports: write fewer, larger ones");
            return of("pass", &message);
        }
        let e = self.config(rate, mtu.into()).validate().err()?;
        Some((format!("repair.{}", if e.key() == "mtu" { "peer" } else { e.key() }), e.to_string()))
    }

    /// The configuration of the state machine.
    pub(crate) fn config(&self, rate: Rate, mtu: u32) -> skyhaul_repair::Config {
        let waits = (rate.bytes_per_sec() * self.limit.0.as_secs_f64()) as u64;
        // Room for two packets at any rate.
        let limit = Limit::Bytes(waits.max(2 * u64::from(mtu)));
        let queue = QueueConfig { limit, ..QueueConfig::default() };
        let queue = match self.queue {
            Queueing::DropTail => queue,
            // Times for the RTT of the longest paths (RFC 8289 §4.3), with a longer target: CoDel at its usual ones leaves a GEO link idle.
            Queueing::FqCodel => queue.with(fq_codel::Config {
                interval: Duration::from_millis(600),
                target: Duration::from_millis(60),
                ..fq_codel::Config::default()
            }),
        };
        skyhaul_repair::Config {
            fec: self.fec,
            retries: self.retries,
            resequence: self.resequence.0,
            share: self.share,
            block: self.block,
            fill_time: self.fill_time.0,
            residual: self.residual,
            outer: if self.peer.is_v6() { OUTER_V6 } else { skyhaul_repair::Config::OUTER },
            mtu: Some(mtu),
            low_priority: self.low_priority,
            report: self.report.0,
            compress: self.compress,
            bundle: self.bundle,
            ..skyhaul_repair::Config::new(rate, queue)
        }
    }
}

/// The defaults of the state machine; the rate is not used.
fn usual() -> skyhaul_repair::Config {
    skyhaul_repair::Config::new(Rate::from_bits_per_sec(1), QueueConfig::default())
}
fn port() -> u16 {
    PORT
}
fn limit() -> Time {
    Time(Duration::from_millis(600))
}
fn yes() -> bool {
    true
}
fn retries() -> u32 {
    usual().retries
}
fn resequence() -> Time {
    Time(usual().resequence)
}
fn share() -> f64 {
    usual().share
}
fn block() -> u16 {
    usual().block
}
fn fill_time() -> Time {
    Time(usual().fill_time)
}
fn residual() -> f64 {
    usual().residual
}
fn report() -> Time {
    Time(usual().report)
}
/// A rate of at least 8 kbit/s; "auto" for none of its own.
fn rate<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Rate>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Rate(RateSpec),
        Text(String),
        Other(serde::de::IgnoredAny),
    }
    match Written::deserialize(d)? {
        Written::Rate(RateSpec::Bits(rate)) if rate.bits_per_sec() >= 8000 => Ok(Some(rate)),
        Written::Text(text) if text == "auto" => Ok(None),
        _ => Err(serde::de::Error::custom(
            "write a rate of at least 8 kbit/s, such as \"10 Mbit/s\", or \"auto\" to share satellite.rate",
        )),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    fn read(repair: &str) -> Result<Config, String> {
        let file = "[terrestrial]\ninterface = \"a\"\n[satellite]\ninterface = \"b\"\nrate = \"10 Mbit/s\"\n[repair]\npeer = \"192.0.2.1\"\n";
        Config::parse("g.toml", &format!("{file}{repair}")).map_err(|e| e.to_string())
    }
    const KEY: &str = "key = \"0123456789abcdef0123456789abcdef\"\n";

    #[test]
    fn bad_values_are_refused_with_the_remedy() {
        for (text, key, remedy) in [
            ("", "repair.key-file", "missing: write the file"),
            ("key = \"short\"", "repair.key", "too short: write at least 32 bytes"),
            ("key-file = \"k\"", "repair.key-file", "write a path from the root"),
            ("port = 0", "repair.port", "write a port of 1 to 65535"),
            ("share = 0.9", "repair.share", "write a number from 0.001 to 0.5"),
            ("block = 0", "repair.block", "write 1 to 1024"),
            ("residual = 2.0", "repair.residual", "write a probability"),
            ("retries = 99", "repair.retries", "write at most 16"),
            ("fill-time = \"0 s\"", "repair.fill-time", "write a time above 0"),
            ("limit = \"0 s\"", "repair.limit", "write a time such as"),
            ("resequence = \"2 min\"", "repair.resequence", "write a shorter time"),
            ("rate = \"5\"", "repair.rate", "write a rate of at least 8 kbit/s"),
            ("queue = \"red\"", "repair.queue", "fq-codel"),
            ("pass = { ports = [0] }", "repair.pass.ports", ""),
        ] {
            let key_too = if text.is_empty() || text.starts_with("key") { "" } else { KEY };
            let e = read(&format!("{key_too}{text}")).expect_err(text);
            assert!(
                e.starts_with(&format!("g.toml: {key}")) && e.contains(remedy) && e.lines().count() == 1,
                "{e}"
            );
        }
        let e = read(&format!("{KEY}[repair.pass]\nnetworks = [\"x\"]")).expect_err("no network");
        assert!(e.contains("repair.pass.networks[0]"), "{e}");
    }

    #[test]
    fn the_peer_needs_an_address_and_nobody_sees_the_key() {
        let c = read(KEY).expect("is good");
        let s = c.repair.as_ref().expect("there");
        assert_eq!(s.peer_at().map(|a| a.to_string()).as_deref(), Some("192.0.2.1:21321"));
        assert!(!format!("{c:?}").contains("0123456789"), "{c:?}");
        for (text, v6) in [("any", false), ("any-ipv6", true)] {
            let peer: super::Peer = text.parse().expect(text);
            assert_eq!((peer.is_v6(), matches!(peer, super::Peer::At(..))), (v6, false));
        }
        for bad in ["sat", "all", "0.0.0.0", "192.0.2.1:0", "224.0.0.1"] {
            let file = "[terrestrial]\ninterface = \"a\"\n[satellite]\ninterface = \"b\"\n[repair]\n";
            let e =
                Config::parse("g.toml", &format!("{file}{KEY}peer = \"{bad}\"")).expect_err(bad).to_string();
            assert!(e.starts_with("g.toml: repair.peer: ") && e.contains("write "), "{e}");
        }
    }

    #[test]
    fn without_any_rate_it_is_refused() {
        let file = format!(
            "[terrestrial]\ninterface = \"a\"\n[satellite]\ninterface = \"b\"\n[repair]\npeer = \"192.0.2.1\"\n{KEY}"
        );
        let e = Config::parse("g.toml", &file).expect_err("no rate").to_string();
        assert!(e.starts_with("g.toml: repair.rate: missing: write the rate of the link"), "{e}");
    }
}

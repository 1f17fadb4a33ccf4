//! The configuration file of a gateway.

use crate::error::GatewayError;
use crate::evidence::settings as evidence;
use crate::forward::{self, Forward, Publish};
use crate::log::LogConfig;
pub use crate::network::Network;
use crate::priority::settings as priority;
use crate::profile::{LinkProfile, LinkSettings, RTTS};
use serde::Deserialize;
use skyhaul_base::amount::{RateSpec, Size, Time};
use skyhaul_base::{Duration, Rate};
use skyhaul_cc::CongestionControl;
use skyhaul_net::host::{Endpoint, Keys};
use skyhaul_scenario::ScenarioError;
use skyhaul_tcp::config::Keepalive;
use skyhaul_wire::Profile;
use std::ops::{Deref, DerefMut};
use std::path::Path;

/// The configuration of a gateway: what its file says, which it dereferences to, and what follows from that.
#[derive(Clone, Debug)]
pub struct Config {
    file: File,
    /// TCP settings of connections over the link.
    pub endpoint: Endpoint,
    /// The same with the congestion control for paths on which low priority has not been found to work.
    pub fallback: Endpoint,
    /// TCP settings of the second arm of an A/B test, if it is split.
    pub other: Option<Endpoint>,
}

impl Deref for Config {
    type Target = File;
    fn deref(&self) -> &File {
        &self.file
    }
}

impl DerefMut for Config {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.file
    }
}

/// What the file of a gateway says.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct File {
    /// Its name, from which those of its table and its interface are formed.
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
    /// Which connections are split.
    #[serde(default = "split")]
    pub split: Split,
    /// Resource limits and timeouts.
    #[serde(default)]
    pub limits: Limits,
    /// Where lines about connections and events go.
    #[serde(default)]
    pub log: LogConfig,
    /// What happens to new connections after the gateway was killed.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// What is measured of connections.
    #[serde(default)]
    pub evidence: evidence::Settings,
    /// Whether the path is tested before low-priority packets are sent.
    #[serde(default)]
    pub priority_test: priority::Settings,
}

/// The terrestrial side.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Terrestrial {
    /// Interface towards the hosts.
    pub interface: String,
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
    /// The kind of the link, which sets what the file leaves out of the keys below.
    #[serde(default)]
    pub profile: Option<LinkProfile>,
    /// RTT of the link, for the profile.
    #[serde(default)]
    pub rtt: Option<Time>,
    /// Pacing rate of IP packets, so that the queue is in the gateway; `None`: no pacing.
    #[serde(default, deserialize_with = "finite_rate")]
    pub rate: Option<Rate>,
    /// Connections to a known gateway start with a part of the congestion window of earlier ones; needs `rate`.
    #[serde(default = "yes")]
    pub resume: bool,
    /// How long the SYN to a known gateway waits for the first bytes of the client, so that it can carry them; zero: SYNs carry
    /// no data, and that of other gateways is not taken.
    #[serde(default = "soon")]
    pub early_data: Time,
    /// MTU of the link, bytes.
    #[serde(default = "ethernet")]
    pub mtu: u16,
    #[serde(default)]
    cc: Option<toml::Value>,
    #[serde(default)]
    fallback_cc: Option<toml::Value>,
    #[serde(default)]
    endpoint: Option<toml::Value>,
    #[serde(default)]
    rwnd: Option<toml::Value>,
    #[serde(default)]
    sndbuf: Option<toml::Value>,
    /// How probes are marked.
    #[serde(default)]
    probe_mark: Marking,
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
    /// Number of threads, each with a queue of the device.
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
    /// Its address and port; another port if that one is in use.
    #[default]
    Full,
    /// Its address.
    Address,
    /// Nothing: the address is that of the gateway.
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

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Marking {
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
/// BGP authenticates its segments (RFC 5925), which a relay cannot reproduce.
fn not_split() -> Vec<u16> {
    vec![179]
}
fn everything() -> Vec<Network> {
    ["0.0.0.0/0", "::/0"].iter().filter_map(|n| n.parse().ok()).collect()
}
fn yes() -> bool {
    true
}
/// Longer than the RTT of a local network, and too short to be felt where the server speaks first.
fn soon() -> Time {
    Time(Duration::from_millis(5))
}
fn ethernet() -> u16 {
    1500
}
fn finite_rate<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Option<Rate>, D::Error> {
    match RateSpec::deserialize(d)? {
        RateSpec::Bits(rate) if rate.bits_per_sec() >= 8000 => Ok(Some(rate)),
        RateSpec::Unlimited => Ok(None),
        _ => Err(serde::de::Error::custom(
            "write a rate of at least 8 kbit/s, such as \"10 Mbit/s\", or \"unlimited\"",
        )),
    }
}

/// Maximum number of threads.
const MOST_THREADS: usize = 64;
/// Maximum wait for the first bytes of a client.
const LONGEST_WAIT: Duration = Duration::from_millis(100);
/// Maximum size of a configuration file, bytes.
const LONGEST: u64 = 1 << 20;
/// Maximum length of an interface name, bytes (IFNAMSIZ of the kernel, without the final zero).
const LONGEST_INTERFACE: usize = 15;
/// Maximum length of a gateway's name, bytes: with the prefix `sky-` it must fit into an interface name.
const LONGEST_NAME: usize = 11;

impl Config {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// If it cannot be read or is invalid. The message names the file, the key and the accepted form.
    pub fn read(path: &Path) -> Result<Self, GatewayError> {
        let file = path.display().to_string();
        let fail = |message: String| GatewayError::Config { file: file.clone(), key: String::new(), message };
        let length = std::fs::metadata(path).map_err(|e| fail(format!("cannot read it: {e}")))?;
        if !length.is_file() || length.len() > LONGEST {
            return Err(fail("it is no configuration: a file of at most 1 MiB is expected".into()));
        }
        let text = std::fs::read_to_string(path).map_err(|e| fail(format!("cannot read it: {e}")))?;
        Self::parse(&file, &text)
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// If it is invalid. The message names `file`, the key and the accepted form.
    pub fn parse(file: &str, text: &str) -> Result<Self, GatewayError> {
        let fail = |key: &str, message: String| GatewayError::Config {
            file: file.into(),
            key: if key.is_empty() || key == "." { String::new() } else { format!("{key}: ") },
            message,
        };
        let value = toml::Deserializer::parse(text).map_err(|e| fail("", one_line(&e.to_string())))?;
        let f: File = serde_path_to_error::deserialize(value)
            .map_err(|e| fail(&e.path().to_string(), one_line(e.inner().message())))?;
        let known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if f.name.is_empty() || f.name.len() > LONGEST_NAME || !f.name.chars().all(known) {
            return Err(fail("name", format!("write 1 to {LONGEST_NAME} small letters, digits and dashes")));
        }
        let hosts = f.terrestrial.as_ref();
        if hosts.is_none() && f.forward.is_empty() && f.publish.is_empty() {
            let message = "nothing to do: write [terrestrial] with the interface of the hosts, or [[forward]] with listen and to";
            return Err(fail("terrestrial", message.into()));
        }
        if let Some((key, message)) = forward::contradiction(&f.forward, &f.publish) {
            return Err(fail(&key, message));
        }
        let interfaces = hosts.map(|t| ("terrestrial.interface", &t.interface));
        for (key, interface) in
            interfaces.into_iter().chain([("satellite.interface", &f.satellite.interface)])
        {
            // The kernel's rule (dev_valid_name), and no quotes, which would end the name in an nftables rule.
            let odd =
                |c: char| c.is_whitespace() || c.is_control() || matches!(c, '/' | ':' | '"' | '\\' | ';');
            if interface.is_empty() || interface.len() > LONGEST_INTERFACE || interface.chars().any(odd) {
                return Err(fail(
                    key,
                    "this is no name of an interface; `ip link` lists those that exist".into(),
                ));
            }
        }
        if hosts.is_some_and(|t| t.interface == f.satellite.interface) {
            return Err(fail(
                "satellite.interface",
                "it is that of the hosts: a gateway stands between two".into(),
            ));
        }
        for (key, networks) in [
            ("terrestrial.networks", hosts.map_or(&[][..], |t| &t.networks)),
            ("satellite.networks", &f.satellite.networks[..]),
            ("split.exclude", &f.split.exclude),
        ] {
            if let Some((a, b)) = overlapping(networks) {
                return Err(fail(key, format!("{a} contains {b}: leave one of them out")));
            }
        }
        if f.satellite.early_data.0 > LONGEST_WAIT {
            let write = "write at most \"100 ms\", or \"0 s\" for none: servers that speak first would wait";
            return Err(fail("satellite.early-data", write.into()));
        }
        if f.satellite.mtu < 576 {
            return Err(fail("satellite.mtu", "write at least 576, in bytes (IPv6 needs 1280)".into()));
        }
        if let Some((key, message)) = f.satellite.contradicts_profile() {
            return Err(fail(key, message));
        }
        for (key, zero) in
            [("limits.flows", f.limits.flows == 0), ("limits.buffer", f.limits.buffer.0 < 4096)]
        {
            if zero {
                return Err(fail(key, "it leaves room for nothing: write more".into()));
            }
        }
        if !(1..=MOST_THREADS).contains(&f.limits.threads) {
            return Err(fail("limits.threads", format!("write a number from 1 to {MOST_THREADS}")));
        }
        if f.limits.threads > 1 && f.satellite.rate.is_some() {
            let message = "one thread paces a link: leave out this key or satellite.rate";
            return Err(fail("limits.threads", message.into()));
        }
        if let Some((key, message)) = f.evidence.wrong().or_else(|| f.priority_test.wrong()) {
            return Err(fail(key, message));
        }
        if hosts.is_none() && f.evidence.measures() {
            let message = "connections are observed at the interface of the hosts: write [terrestrial]";
            return Err(fail("evidence.mode", message.into()));
        }
        let kept = hosts.is_some_and(|t| t.preserve == Preserve::Full);
        if f.evidence.mode == evidence::Mode::Ab && !kept {
            let message =
                "it must be \"full\" with [evidence] mode = \"ab\": addresses and ports determine the arm";
            return Err(fail("terrestrial.preserve", message.into()));
        }
        let endpoint = f.satellite.endpoint("satellite", f.limits.stuck.0, &fail)?;
        let other = f.evidence.other.as_ref().map(|o| f.satellite.with(o));
        let other = other.map(|s| s.endpoint("evidence.other", f.limits.stuck.0, &fail)).transpose()?;
        let needed = low_priority(&endpoint) || other.as_ref().is_some_and(low_priority);
        let fallback = if needed || f.satellite.fallback_cc.is_some() {
            let renamed =
                |key: &str, message| fail(&key.replacen("satellite.cc", "satellite.fallback-cc", 1), message);
            let fallback = f.satellite.fallback().endpoint("satellite", f.limits.stuck.0, &renamed)?;
            if low_priority(&fallback) {
                let write =
                    "it sends probes or low-priority data itself: write one that does not, such as \"cubic\"";
                return Err(fail("satellite.fallback-cc", write.into()));
            }
            fallback
        } else {
            endpoint.clone()
        };
        Ok(Self { file: f, endpoint, fallback, other })
    }

    /// Whether connections may send low-priority packets, so that the path is to be tested for it.
    #[must_use]
    pub fn tests_priority(&self) -> bool {
        let sends = || [Some(&self.endpoint), self.other.as_ref()].into_iter().flatten().any(low_priority);
        let splits = self.intercepted().is_some() || self.forwards_ports();
        splits && self.priority_test.test.unwrap_or_else(sends)
    }

    /// The hosts whose connections are intercepted; in shadow mode there are none.
    #[must_use]
    pub fn intercepted(&self) -> Option<&Terrestrial> {
        self.terrestrial.as_ref().filter(|_| self.evidence.mode != evidence::Mode::Shadow)
    }

    /// Whether connections of IPv6 are to be split.
    #[must_use]
    pub fn speaks_of_ipv6(&self) -> bool {
        let sides = self.intercepted().map(|t| [&t.networks, &self.satellite.networks]);
        sides.is_some_and(|sides| sides.iter().all(|s| s.iter().any(|n| n.address.is_ipv6())))
    }

    /// Whether it forwards ports.
    #[must_use]
    pub fn forwards_ports(&self) -> bool {
        !self.forward.is_empty() || !self.publish.is_empty()
    }

    /// The first key that differs in `new` and cannot change while the gateway runs. All other keys can; those that concern
    /// connections apply to connections opened afterwards.
    #[must_use]
    pub fn needs_restart(&self, new: &Self) -> Option<&'static str> {
        let interface = |c: &Self| c.terrestrial.as_ref().map(|t| t.interface.clone());
        let (s, l) = (&self.satellite, &self.limits);
        [
            ("name", self.name != new.name),
            ("on-failure", self.on_failure != new.on_failure),
            ("terrestrial.interface", interface(self) != interface(new)),
            ("forward", self.forward != new.forward),
            ("publish", self.publish != new.publish),
            ("satellite.interface", s.interface != new.satellite.interface),
            ("satellite.rate", s.rate != new.satellite.rate),
            ("satellite.early-data", s.early_data.0 != new.satellite.early_data.0),
            ("satellite.mtu", s.mtu != new.satellite.mtu),
            ("evidence", self.evidence != new.evidence),
            ("priority-test", self.priority_test != new.priority_test),
            ("satellite.cc", self.tests_priority() != new.tests_priority()),
            ("limits.flows", l.flows != new.limits.flows),
            ("limits.memory", l.memory.0 != new.limits.memory.0),
            ("limits.threads", l.threads != new.limits.threads),
        ]
        .into_iter()
        .find_map(|(key, differs)| differs.then_some(key))
    }

    /// The name of the gateway's TUN interface.
    #[must_use]
    pub fn interface(&self) -> String {
        format!("sky-{}", self.name)
    }
}

/// Timeout of the nftables set of connections over the link, seconds.
pub(crate) const MEMORY: u32 = 120;
/// Maximum idle time before a keepalive. It is half of [`MEMORY`], since the answer to one keepalive may be lost.
const LONGEST_SILENCE: Duration = Duration::from_secs(MEMORY as u64 / 2);

/// Keepalives of connections over the link. They detect that the peer is gone, since its reset is sent once and may be lost.
/// They last for `stuck`, so that an outage that [`Limits::stuck`] allows does not end a connection.
fn keepalive(stuck: Duration) -> Keepalive {
    let interval = Duration::from_secs(10);
    let probes = (stuck.as_secs_f64() / interval.as_secs_f64()).ceil();
    Keepalive { idle: LONGEST_SILENCE, interval, probes: (probes as u32).max(3) }
}

impl Satellite {
    /// The settings of its profile, which keys of the file override.
    #[must_use]
    pub fn link_settings(&self) -> Option<LinkSettings> {
        let rtt = self.rtt.as_ref().map(|t| t.0);
        self.profile.zip(self.rate).map(|(profile, rate)| profile.settings(rate, rtt, self.mtu))
    }
    /// Whether the file names a congestion control, in place of that of the profile.
    #[must_use]
    pub const fn has_own_control(&self) -> bool {
        self.cc.is_some()
    }
    /// The first key that contradicts the profile, and what to write.
    pub(crate) fn contradicts_profile(&self) -> Option<(&'static str, String)> {
        let rtt = self.rtt.as_ref().map(|t| t.0);
        match (self.profile, rtt) {
            (None, Some(_)) => {
                let message = "only a profile needs it: write profile = \"geo\", or leave it out";
                Some(("satellite.rtt", message.into()))
            }
            (Some(profile), _) if self.rate.is_none() => {
                let message = format!(
                    "profile = {:?} needs the rate of the link: write rate = \"10 Mbit/s\"",
                    profile.name()
                );
                Some(("satellite.rate", message))
            }
            (Some(_), Some(rtt)) if rtt < RTTS[0] || rtt > RTTS[1] => {
                Some(("satellite.rtt", "write a round-trip time from \"1 ms\" to \"10 s\"".into()))
            }
            _ => None,
        }
    }
    /// Whether the file sets a key of the endpoint.
    fn sets(&self, key: &str) -> bool {
        let table = self.endpoint.as_ref().and_then(toml::Value::as_table);
        table.is_some_and(|t| t.contains_key(key))
    }
    /// Whether connections search for the MTU of paths on which it is not known: the file does not say otherwise.
    pub(crate) fn searches_mtu(&self) -> bool {
        !self.sets("mtu-search")
    }
    /// The same with the congestion control for paths on which low priority has not been found to work.
    fn fallback(&self) -> Self {
        let cc = self.fallback_cc.clone().unwrap_or_else(|| toml::Value::String("cubic".into()));
        Self { cc: Some(cc), ..self.clone() }
    }
    /// The same with the settings of the second arm of an A/B test.
    fn with(&self, other: &evidence::SecondArm) -> Self {
        let or = |theirs: &Option<toml::Value>, ours: &Option<toml::Value>| {
            theirs.as_ref().or(ours.as_ref()).cloned()
        };
        Self {
            cc: or(&other.cc, &self.cc),
            endpoint: or(&other.endpoint, &self.endpoint),
            rwnd: or(&other.rwnd, &self.rwnd),
            sndbuf: or(&other.sndbuf, &self.sndbuf),
            ..self.clone()
        }
    }
    /// The congestion control and the endpoint, read as in a scenario file; `of` is the table of the keys.
    fn endpoint(
        &self,
        of: &str,
        stuck: Duration,
        fail: &dyn Fn(&str, String) -> GatewayError,
    ) -> Result<Endpoint, GatewayError> {
        let mut endpoint = self.plain_endpoint(of, fail)?;
        // The offer to measure rates and the gateway's number do not both fit into a SYN. The offer is made only if the congestion
        // control needs it.
        endpoint.tcp.receiver_rate &= endpoint.cc.build(&endpoint.tcp.rules).policy().receiver_rate;
        // Without pacing, the kernel merges segments on their way, and one acknowledgement is for all of them. A limit of two
        // segments would then stop slow start.
        if self.rate.is_none() && !self.sets("abc-limit") {
            endpoint.tcp.rules.abc_limit = f64::INFINITY;
        }
        if !self.sets("keepalive-idle") {
            endpoint.tcp.keepalive = keepalive(stuck);
        }
        if let Some(link) = self.link_settings().filter(|_| !self.sets("rto-max")) {
            let tcp = &mut endpoint.tcp;
            tcp.rto.max = link.rto_max;
            if !self.sets("max-retransmissions") {
                // An outage that `stuck` allows does not end a connection.
                let more = (stuck.as_secs_f64() / tcp.rto.max.as_secs_f64()).ceil();
                tcp.max_retransmissions += more as u32;
            }
        }
        if endpoint.tcp.keepalive.idle.is_zero() || endpoint.tcp.keepalive.idle > LONGEST_SILENCE {
            let write = "write at most \"60 s\", and not 0: the kernel forgets connections that are silent for two minutes";
            return Err(fail(&format!("{of}.endpoint.keepalive-idle"), write.into()));
        }
        Ok(endpoint)
    }
    fn plain_endpoint(
        &self,
        of: &str,
        fail: &dyn Fn(&str, String) -> GatewayError,
    ) -> Result<Endpoint, GatewayError> {
        let wrong = |e: ScenarioError| fail(&format!("{of}.{}", e.key), e.message);
        let link = self.link_settings();
        let cc = self.cc.clone().unwrap_or_else(|| {
            link.map_or_else(|| toml::Value::String("cubic".into()), |link| constant_window(link.window))
        });
        let mut keys = Keys::new(cc).map_err(wrong)?;
        if let Some(link) = link {
            for buffer in ["rwnd", "sndbuf"] {
                keys.set(buffer, toml::Value::String(format!("{} B", link.buffer))).map_err(wrong)?;
            }
            // The path is known, so nothing has to be found out.
            for tuning in ["endpoint.receive-autotuning", "endpoint.send-autotuning"] {
                keys.set(tuning, toml::Value::Boolean(false)).map_err(wrong)?;
            }
        }
        for (key, value) in [("rwnd", &self.rwnd), ("sndbuf", &self.sndbuf)] {
            if let Some(value) = value {
                keys.set(key, value.clone()).map_err(wrong)?;
            }
        }
        if let Some(value) = &self.endpoint {
            let Some(table) = value.as_table() else {
                return Err(fail(
                    &format!("{of}.endpoint"),
                    "write a table of keys, such as { mss = \"1400 B\" }".into(),
                ));
            };
            for (key, value) in table {
                keys.set(&format!("endpoint.{key}"), value.clone()).map_err(wrong)?;
            }
        }
        let profile = match self.probe_mark {
            Marking::Option => Profile::Option,
            Marking::Compact => Profile::Compact,
            Marking::Paper => Profile::Paper,
            Marking::Off => Profile::Off,
        };
        keys.endpoint(profile).map_err(wrong)
    }
}

/// A control with this window, segments, which losses do not change.
fn constant_window(window: f64) -> toml::Value {
    let keys = [("name", toml::Value::String("scps-like".into())), ("window", toml::Value::Float(window))];
    toml::Value::Table(keys.map(|(key, value)| (key.to_owned(), value)).into_iter().collect())
}

/// Whether a congestion control sends packets that are meant to give way to others, and does not find out by itself whether they do.
pub(crate) fn low_priority(endpoint: &Endpoint) -> bool {
    let policy = endpoint.cc.policy(&endpoint.tcp.rules);
    policy.is_some_and(|p| (p.probes || p.low_priority_data) && !p.judges_priority)
}

/// Two networks of which one contains the other.
fn overlapping(networks: &[Network]) -> Option<(Network, Network)> {
    networks.iter().enumerate().find_map(|(i, a)| {
        let within =
            |b: &&Network| a.prefix <= b.prefix && skyhaul_net::tun::within(a.address, b.address, a.prefix);
        networks.iter().enumerate().filter(|(k, _)| *k != i).map(|(_, b)| b).find(within).map(|b| (*a, *b))
    })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = "[terrestrial]\ninterface = \"lan0\"\n[satellite]\ninterface = \"sat0\"\n";

    #[test]
    fn a_file_of_four_lines_is_enough() {
        let c = Config::parse("g.toml", LEAST).unwrap();
        assert_eq!((c.name.as_str(), c.interface().as_str()), ("gateway", "sky-gateway"));
        assert_eq!(
            (c.limits.flows, &c.split.exclude_ports[..], c.satellite.rate),
            (20_000, &[179][..], None)
        );
        assert_eq!(c.terrestrial.as_ref().unwrap().networks.len(), 2);
    }

    #[test]
    fn keepalives_outlast_the_outage_that_is_allowed() {
        let of = |more: &str| {
            let c = Config::parse("g.toml", &format!("{LEAST}{more}")).unwrap();
            c.endpoint.tcp.keepalive
        };
        let k = of("[limits]\nstuck = \"95 s\"\n");
        assert_eq!((k.idle.as_secs_f64(), k.interval.as_secs_f64(), k.probes), (60.0, 10.0, 10));
        assert_eq!(of("endpoint = { keepalive-idle = \"7 s\" }\n").idle, Duration::from_secs(7));
        for idle in ["0 s", "61 s"] {
            let text = format!("{LEAST}endpoint = {{ keepalive-idle = \"{idle}\" }}\n");
            let e = Config::parse("g.toml", &text).unwrap_err().to_string();
            assert!(
                e.starts_with("g.toml: satellite.endpoint.keepalive-idle: write at most \"60 s\""),
                "{e}"
            );
        }
    }

    #[test]
    fn ports_are_forwarded_without_hosts() {
        let parse =
            |more: &str| Config::parse("g.toml", &format!("[satellite]\ninterface = \"sat0\"\n{more}"));
        let forward = "[[forward]]\nlisten = \"[::1]:80\"\nto = \"203.0.113.7:80\"\n";
        let c = parse(forward).unwrap();
        assert!(c.forwards_ports() && c.terrestrial.is_none());
        for (more, expected) in [
            ("", "g.toml: terrestrial: nothing to do: write [terrestrial]"),
            (&forward.repeat(2), "g.toml: forward[1].listen: [::1]:80 is listed twice"),
            (
                &forward.replace("203.0.113.7:80", "example.org:80"),
                "is not an IPv4 address with a port: write",
            ),
            (
                &forward.replace("203.0.113.7:80", "203.0.113.7:0"),
                "is not an IPv4 address with a port: write",
            ),
            (&forward.replace("[::1]:80", "80"), "is not an address with a port: write"),
            ("[[publish]]\nport = 0\nto = \"127.0.0.1:80\"\n", "publish[0].port: write a port of 1 to 65535"),
        ] {
            let e = parse(more).unwrap_err().to_string();
            assert!(e.contains(expected) && !e.contains('\n'), "{e}");
        }
    }

    #[test]
    fn every_refusal_names_file_and_key() {
        for (text, expected) in [
            ("x = 1", "g.toml: "),
            ("name = \"GW\"", "g.toml: name: write 1 to 11 small letters"),
            (
                "[split]\nexclude = [\"10.0.0.0/33\"]",
                "g.toml: split.exclude[0]: \"10.0.0.0/33\" is no network: write",
            ),
            ("[split]\nexclude = [\"10.1.0.0/8\"]", "has bits beyond its prefix: write \"10.0.0.0/8\""),
            (
                "[split]\nexclude = [\"10.0.0.0/8\", \"10.1.0.0/16\"]",
                "split.exclude: 10.0.0.0/8 contains 10.1.0.0/16",
            ),
            ("[limits]\nbuffer = 5", "g.toml: limits.buffer: "),
            ("[limits]\nflows = 0", "g.toml: limits.flows: "),
            ("[limits]\nthreads = 0", "g.toml: limits.threads: write a number from 1 to 64"),
            ("on-failure = \"pray\"", "g.toml: on-failure: unknown variant"),
            (
                "[log]\nflows = \"flows.jsonl\"",
                "g.toml: log.flows: \"flows.jsonl\" is no place for lines: write",
            ),
            ("[log]\nlevel = \"loud\"", "g.toml: log.level: unknown variant"),
        ] {
            let text =
                if text.starts_with('[') { format!("{LEAST}{text}") } else { format!("{text}\n{LEAST}") };
            let e = Config::parse("g.toml", &text).unwrap_err().to_string();
            assert!(e.contains(expected) && !e.contains('\n'), "{e}");
        }
        for (change, expected) in [
            ("cc = \"renoo\"", "satellite.cc"),
            ("rate = \"0 bit/s\"", "satellite.rate: "),
            ("rwnd = 5", "satellite.rwnd: "),
            ("endpoint = { nonsense = 1 }", "satellite.endpoint.nonsense"),
            ("mtu = 5", "satellite.mtu: write at least 576"),
        ] {
            let e = Config::parse("g.toml", &format!("{LEAST}{change}\n")).unwrap_err().to_string();
            assert!(e.contains(expected) && !e.contains('\n'), "{change}: {e}");
        }
        for (text, expected) in [
            ("[evidence]\nmode = \"on\"", "evidence.mode: unknown variant"),
            (
                "[evidence]\nmode = \"ab\"\nfraction = 1.0",
                "evidence.fraction: write a share between 0.001 and 0.999",
            ),
            ("[evidence]\nmode = \"ab\"\nfraction = nan", "evidence.fraction: write a share"),
            ("[evidence]\nprefix-v4 = 33", "evidence.prefix-v4: write 0 to 32"),
            ("[evidence]\nprefix-v6 = 129", "evidence.prefix-v6: write 0 to 128"),
            ("[evidence]\nconnections = 0", "evidence.connections: write 1 to 1000000"),
            ("[evidence]\nprefixes = 100000", "evidence.prefixes: write 1 to 65536"),
            ("[evidence.other]\ncc = \"bbr\"", "evidence.other: a second arm needs mode = \"ab\""),
            ("[evidence]\nmode = \"ab\"\n[evidence.other]\ncc = \"bbbr\"", "evidence.other.cc: "),
            (
                "[evidence]\nmode = \"ab\"\n[evidence.other]\nrate = \"1 Mbit/s\"",
                "evidence.other.rate: unknown field",
            ),
            ("[priority-test]\nport = 0", "priority-test.port: write a port of 1 to 65535"),
            ("[priority-test]\ninterval = \"1 s\"", "priority-test.interval: write at least \"10 s\""),
            ("[priority-test]\npackets = 3", "priority-test.packets: write 200 to 20000"),
            ("[priority-test]\npeers = [\"a.b\"]", "priority-test.peers[0]: invalid IP address syntax"),
        ] {
            let e = Config::parse("g.toml", &format!("{LEAST}{text}\n")).unwrap_err().to_string();
            assert!(e.starts_with(&format!("g.toml: {expected}")) && !e.contains('\n'), "{text}: {e}");
        }
        for (change, expected) in [
            ("fallback-cc = \"renoo\"\n", "satellite.fallback-cc"),
            ("fallback-cc = \"peach\"\n", "satellite.fallback-cc: it sends probes"),
            ("rate = \"9 Mbit/s\"\n[limits]\nthreads = 2\n", "limits.threads: one thread paces"),
        ] {
            let e = Config::parse("g.toml", &format!("{LEAST}{change}")).unwrap_err().to_string();
            assert!(e.contains(expected) && !e.contains('\n'), "{change}: {e}");
        }
        let address = LEAST.replace("[satellite]", "preserve = \"address\"\n[satellite]");
        let e = Config::parse("g.toml", &format!("{address}[evidence]\nmode = \"ab\"\n"))
            .unwrap_err()
            .to_string();
        assert!(e.starts_with("g.toml: terrestrial.preserve: it must be \"full\""), "{e}");
        let same = LEAST.replace("sat0", "lan0");
        assert!(Config::parse("g.toml", &same).unwrap_err().to_string().contains("between two"));
    }
}

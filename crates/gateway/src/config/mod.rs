//! The configuration of a gateway: what its file says, and the settings that follow from that.

mod file;
mod include;
mod link;

use crate::classes;
use crate::error::GatewayError;
use crate::evidence::settings as evidence;
use crate::forward;
pub use crate::network::Network;
pub use crate::prefixes::MetricsConfig;
use crate::slot::Slot;
pub use file::{File, Limits, OnFailure, Preserve, Satellite, Split, Terrestrial};
pub use include::{Sources, Variable};
pub(crate) use link::MEMORY;
use skyhaul_base::Duration;
use skyhaul_net::host::Endpoint;
use std::ops::{Deref, DerefMut};
use std::path::Path;

/// The configuration of a gateway: what its file says, to which it dereferences, and the settings that follow from that.
#[derive(Clone, Debug)]
pub struct Config {
    file: File,
    /// The files of the configuration, and its variables.
    pub sources: Sources,
    /// TCP settings of connections over the link.
    pub endpoint: Endpoint,
    /// [`Self::endpoint`] with the congestion control for paths on which low priority has not been found to work.
    pub fallback: Endpoint,
    /// TCP settings of the second arm of an A/B test, if that arm is split (`[evidence.other]`).
    pub other: Option<Endpoint>,
    /// Its slot among the gateways of its network namespace, which is taken when it starts.
    pub slot: Slot,
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

/// Maximum of `limits.flows`. The kernel does not allow a process so many descriptors unless its administrator says so.
const MOST_FLOWS: usize = 10_000_000;
/// Maximum size of anything in memory, bytes: 2 GiB less one byte in a program for a 32-bit processor.
const ADDRESSABLE: u64 = isize::MAX as u64;
/// Maximum number of threads.
const MOST_THREADS: usize = 64;
/// Maximum of `satellite.early-data`, the time for which a SYN waits for the first bytes of a client.
const LONGEST_WAIT: Duration = Duration::from_millis(100);
/// Maximum size of a configuration file, bytes.
const LONGEST: u64 = 1 << 20;
/// Maximum length of an interface name, bytes (IFNAMSIZ of the kernel, without the final zero).
const LONGEST_INTERFACE: usize = 15;
/// Maximum number of interfaces towards hosts.
const MOST_INTERFACES: usize = 32;
/// Maximum length of a gateway's name, bytes: with the prefix `sky-` it must fit into an interface name.
const LONGEST_NAME: usize = 11;

impl Config {
    /// Reads a configuration file, and the files that it includes.
    ///
    /// # Errors
    /// If a file cannot be read or is invalid. The message names the file, the key and the accepted form.
    pub fn read(path: &Path) -> Result<Self, GatewayError> {
        let file = path.display().to_string();
        let fail = |message: String| GatewayError::Config { file: file.clone(), key: String::new(), message };
        Self::assemble(&file, &text_of(path).map_err(fail)?, &|path| {
            let text = text_of(path)?;
            let identity = std::fs::canonicalize(path).map_err(|e| format!("cannot read it: {e}"))?;
            Ok((identity, text))
        })
    }

    /// Reads the text of a file, which includes no others.
    ///
    /// # Errors
    /// If the text is invalid. The message names `file`, the key and the accepted form.
    pub fn parse(file: &str, text: &str) -> Result<Self, GatewayError> {
        Self::assemble(file, text, &|_| Err("a text alone includes no file".into()))
    }

    fn assemble(file: &str, text: &str, read: include::Reader<'_>) -> Result<Self, GatewayError> {
        let (keys, sources) = include::assemble(file, text, read)?;
        let fail = |key: &str, message: String| sources.refuse(key, message);
        let mut f: File = serde_path_to_error::deserialize(toml::Value::Table(keys))
            .map_err(|e| fail(&e.path().to_string(), one_line(e.inner().message())))?;
        let named = f.terrestrial.as_mut().map_or(Ok(Vec::new()), Terrestrial::name_interfaces);
        let named = named.map_err(|(key, message)| fail(key, message))?;
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
        let link = &f.satellite.interface;
        for (key, interface) in
            named.iter().map(|(key, name)| (key.as_str(), name)).chain([("satellite.interface", link)])
        {
            // What the kernel refuses (dev_valid_name), and characters that in an nftables rule would end the name or stand for any name.
            let odd = |c: char| {
                c.is_whitespace() || c.is_control() || matches!(c, '/' | ':' | '"' | '\\' | ';' | '*')
            };
            if interface.is_empty() || interface.len() > LONGEST_INTERFACE || interface.chars().any(odd) {
                return Err(fail(
                    key,
                    "this is no name of an interface; `ip link` lists those that exist".into(),
                ));
            }
        }
        for (n, (key, interface)) in named.iter().enumerate() {
            if interface == link {
                return Err(fail(
                    "satellite.interface",
                    format!("it is also {key}: write the interface towards the link"),
                ));
            }
            if named.iter().take(n).any(|(_, other)| other == interface) {
                return Err(fail(key, format!("{interface} is listed twice: leave one of them out")));
            }
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
        if !(1..=MOST_FLOWS).contains(&f.limits.flows) {
            return Err(fail("limits.flows", format!("write a number from 1 to {MOST_FLOWS}")));
        }
        if f.limits.buffer.0 < 4096 {
            return Err(fail("limits.buffer", "write at least 4096, in bytes".into()));
        }
        for (key, size) in [("limits.buffer", f.limits.buffer), ("limits.memory", f.limits.memory)] {
            if size.0 > ADDRESSABLE {
                let message =
                    format!("more than this program can address: write at most \"{ADDRESSABLE} B\"");
                return Err(fail(key, message));
            }
        }
        if !(1..=MOST_THREADS).contains(&f.limits.threads) {
            return Err(fail("limits.threads", format!("write a number from 1 to {MOST_THREADS}")));
        }
        if f.limits.threads > 1 && f.satellite.rate.is_some() {
            let message = "one thread paces a link: leave out this key or satellite.rate";
            return Err(fail("limits.threads", message.into()));
        }
        if let Some((key, message)) = f
            .evidence
            .wrong()
            .or_else(|| f.priority_test.wrong())
            .or_else(|| f.metrics.wrong())
            .or_else(|| f.log.wrong())
        {
            return Err(fail(key, message));
        }
        let repaired = f.repair.as_ref();
        if let Some((key, message)) = repaired.and_then(|r| r.wrong(f.satellite.rate, f.satellite.mtu)) {
            return Err(fail(&key, message));
        }
        if let Some((a, b)) = repaired.and_then(|r| overlapping(&r.pass.networks)) {
            return Err(fail("repair.pass.networks", format!("{a} contains {b}: leave one of them out")));
        }
        if let Some((key, message)) = classes::wrong(&f.class, &f.subscriber, f.satellite.rate.is_some()) {
            return Err(fail(&key, message));
        }
        if hosts.is_none() && f.evidence.measures() {
            let message = "connections are observed at the interface of the hosts: write [terrestrial]";
            return Err(fail("evidence.mode", message.into()));
        }
        let between = |t: &Terrestrial| {
            let meet = |a: &Network| f.satellite.networks.iter().any(|b| a.covers(b) || b.covers(a));
            t.interfaces.len() > 1 && t.networks.iter().any(meet)
        };
        if f.evidence.measures() && hosts.is_some_and(between) {
            let message = "connections between two interfaces of hosts would count: write terrestrial.networks and satellite.networks that do \
                           not overlap";
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
        Ok(Self { file: f, sources, endpoint, fallback, other, slot: Slot::default() })
    }

    /// Whether the path is tested for low priority: as the file says, or else because connections may send low-priority packets.
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

    /// Whether connections of IPv6 are to be split: both sides have an IPv6 network.
    #[must_use]
    pub fn splits_ipv6(&self) -> bool {
        let sides = self.intercepted().map(|t| [&t.networks, &self.satellite.networks]);
        sides.is_some_and(|sides| sides.iter().all(|s| s.iter().any(|n| n.address.is_ipv6())))
    }

    /// Whether the gateway forwards or publishes ports.
    #[must_use]
    pub fn forwards_ports(&self) -> bool {
        !self.forward.is_empty() || !self.publish.is_empty()
    }

    /// The first key that differs in `new` and cannot change while the gateway runs. All other keys can; those that concern
    /// connections apply to connections opened afterwards.
    #[must_use]
    pub fn needs_restart(&self, new: &Self) -> Option<&'static str> {
        let (s, l) = (&self.satellite, &self.limits);
        [
            ("name", self.name != new.name),
            ("on-failure", self.on_failure != new.on_failure),
            ("terrestrial.interfaces", self.host_interfaces() != new.host_interfaces()),
            ("forward", self.forward != new.forward),
            ("publish", self.publish != new.publish),
            ("class", self.class != new.class),
            ("subscriber", self.subscriber != new.subscriber),
            ("satellite.interface", s.interface != new.satellite.interface),
            ("satellite.rate", s.rate != new.satellite.rate),
            ("satellite.early-data", s.early_data.0 != new.satellite.early_data.0),
            ("satellite.mtu", s.mtu != new.satellite.mtu),
            ("satellite.endpoint.mtu-search", s.searches_mtu() != new.satellite.searches_mtu()),
            ("evidence", self.evidence != new.evidence),
            ("metrics", self.metrics != new.metrics),
            ("priority-test", self.priority_test != new.priority_test),
            ("repair", self.repair != new.repair),
            ("satellite.cc", self.tests_priority() != new.tests_priority()),
            ("limits.flows", l.flows != new.limits.flows),
            ("limits.memory", l.memory.0 != new.limits.memory.0),
            ("limits.threads", l.threads != new.limits.threads),
        ]
        .into_iter()
        .find_map(|(key, differs)| differs.then_some(key))
    }

    /// The interfaces towards the hosts; none if the gateway only forwards ports.
    #[must_use]
    pub fn host_interfaces(&self) -> &[String] {
        self.terrestrial.as_ref().map_or(&[], |t| &t.interfaces)
    }
    /// The interfaces of both sides.
    pub fn interfaces(&self) -> impl Iterator<Item = &String> {
        self.host_interfaces().iter().chain([&self.satellite.interface])
    }

    /// The name of the interface into which packets that are to be repaired are routed.
    pub(crate) fn repair_interface(&self) -> String {
        format!("skr-{}", self.name)
    }

    /// The interfaces at which packets from the link arrive, as a set of nftables.
    pub(crate) fn link_interfaces(&self) -> String {
        let link = &self.satellite.interface;
        match &self.repair {
            Some(_) => format!("{{ \"{link}\", \"{}\" }}", self.repair_interface()),
            None => format!("\"{link}\""),
        }
    }

    /// How connections share the link.
    #[must_use]
    pub fn schedule(&self) -> skyhaul_net::host::Schedule {
        classes::schedule(&self.class, &self.subscriber)
    }

    /// The name of the gateway's TUN interface.
    #[must_use]
    pub fn interface(&self) -> String {
        format!("sky-{}", self.name)
    }
}

impl Terrestrial {
    /// Moves the interface of the key `interface` to the list. Returns all interfaces with their keys, or a key that is wrong, and what to
    /// write.
    fn name_interfaces(&mut self) -> Result<Vec<(String, String)>, (&'static str, String)> {
        let one = self.interface.take();
        match (one, self.interfaces.len()) {
            (Some(one), 0) => {
                self.interfaces = vec![one.clone()];
                Ok(vec![("terrestrial.interface".into(), one)])
            }
            (Some(_), _) => Err((
                "terrestrial.interface",
                "terrestrial.interfaces has them all: leave one of the two keys out".into(),
            )),
            (None, 0) => Err((
                "terrestrial.interfaces",
                "write the interfaces of the hosts: interface = \"lan0\", or interfaces = [\"lan0\", \"lan1\"]"
                    .into(),
            )),
            (None, n) if n > MOST_INTERFACES => {
                Err(("terrestrial.interfaces", format!("write at most {MOST_INTERFACES}")))
            }
            (None, _) => {
                let key = |n: usize| format!("terrestrial.interfaces[{n}]");
                Ok(self.interfaces.iter().enumerate().map(|(n, name)| (key(n), name.clone())).collect())
            }
        }
    }
}

/// Whether a congestion control sends low-priority packets, and does not find out by itself whether queues of the path let others pass.
pub(crate) fn low_priority(endpoint: &Endpoint) -> bool {
    let policy = endpoint.cc.policy(&endpoint.tcp.rules);
    policy.is_some_and(|p| (p.probes || p.low_priority_data) && !p.judges_priority)
}

/// The same for data alone, which has low priority whether or not the other end agrees on probes.
pub(crate) fn low_priority_data(endpoint: &Endpoint) -> bool {
    let policy = endpoint.cc.policy(&endpoint.tcp.rules);
    policy.is_some_and(|p| p.low_priority_data && !p.judges_priority)
}

/// Two networks of the list of which the first contains the second.
fn overlapping(networks: &[Network]) -> Option<(Network, Network)> {
    networks.iter().enumerate().find_map(|(i, a)| {
        let mut others = networks.iter().enumerate().filter(|(k, _)| *k != i).map(|(_, b)| b);
        others.find(|b| a.covers(b)).map(|b| (*a, *b))
    })
}

/// The text of a file, or why there is none.
fn text_of(path: &Path) -> Result<String, String> {
    let length = std::fs::metadata(path).map_err(|e| format!("cannot read it: {e}"))?;
    if !length.is_file() || length.len() > LONGEST {
        return Err("it is no configuration: a file of at most 1 MiB is expected".into());
    }
    std::fs::read_to_string(path).map_err(|e| format!("cannot read it: {e}"))
}

/// The text with spaces for line breaks.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;

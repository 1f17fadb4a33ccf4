//! The settings of a stack on a TUN interface, read from the command line.

use crate::args::{Marking, Priority, StackArgs};
use crate::interrupt;
use crate::output::note;
use crate::stop::Stop;
use skyhaul_base::Duration;
use skyhaul_lab::capture;
use skyhaul_net::driver::Driver;
use skyhaul_net::host::{Endpoint, Host, HostConfig, Keys, Secret};
use skyhaul_net::tun::{self, Tun, TunConfig};
use skyhaul_scenario::ScenarioError;
use skyhaul_study::io_words;
use skyhaul_wire::{Plan, Profile};
use std::fs::File;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use toml::Value;

/// The default port: that of iperf3.
const PORT: u16 = 5201;
/// Least MTU that IPv6 requires of every link (RFC 8200 §5), bytes.
const LEAST_MTU_V6: u16 = 1280;
/// Least memory limit, bytes: enough for a few connections.
const LEAST_MEMORY: u64 = 1_000_000;
/// Keys of a scenario that have no effect here, and what determines their values.
const ELSEWHERE: [(&str, &str); 4] = [
    ("endpoint.mss", "follows from --mtu and the path"),
    ("endpoint.header", "follows from the packets' headers"),
    ("endpoint.probes", "is set with --profile"),
    ("endpoint.probe-ids", "is set with --profile"),
];

/// The requested settings.
pub(super) struct Stack {
    pub(super) endpoint: Endpoint,
    /// Interval between rows of output.
    pub(super) every: Duration,
    pub(super) host: HostConfig,
    pub(super) marking: Marking,
    tun: TunConfig,
    pcap: Option<PathBuf>,
    /// Overwrite the file of `pcap` even if this program did not write it.
    force: bool,
}

impl Stack {
    pub(super) fn read(args: &StackArgs) -> Result<Self, Stop> {
        check_addresses(args)?;
        let profile = match args.profile {
            Marking::Option => Profile::Option,
            Marking::Compact => Profile::Compact,
            Marking::Paper => Profile::Paper,
            Marking::Off => Profile::Off,
        };
        let mut host = HostConfig::new(args.address.clone(), Secret::draw().map_err(Stop::bad)?);
        host.mtu = args.mtu.into();
        host.memory = args.memory.0;
        if host.memory < LEAST_MEMORY {
            return Err(Stop::bad("--memory: write at least 1MB"));
        }
        host.plan = match args.priority {
            Priority::LowerEffort => Plan::LowerEffort,
            Priority::Scavenger => Plan::Scavenger,
            Priority::Precedence => Plan::Precedence,
        };
        if args.interval.0.is_zero() {
            return Err(Stop::bad("--interval: write a time above zero, such as 1s"));
        }
        Ok(Self {
            endpoint: endpoint(&args.cc, &args.set, profile)?,
            every: args.interval.0,
            host,
            marking: args.profile,
            tun: TunConfig {
                name: args.tun.clone(),
                addresses: args.kernel_address.clone(),
                mtu: args.mtu,
                offload: args.gso,
            },
            pcap: args.pcap.clone(),
            force: args.force,
        })
    }

    /// Creates the interface, starts a capture if one is requested, and puts the stack on the interface. From here on the
    /// program handles Ctrl-C.
    pub(super) fn open(&self) -> Result<Driver, Stop> {
        for (address, length) in &self.tun.addresses {
            if let Some((name, theirs)) = tun::overlap(*address, *length).map_err(Stop::bad)? {
                return Err(Stop::bad(format!(
                    "--kernel-address: the network of {address}/{length} is in use already, {name} has {theirs}: choose \
                     another one, and --address in it"
                )));
            }
        }
        let tun = Tun::open(&self.tun).map_err(Stop::bad)?;
        if let Some(why) = tun.warning() {
            note(&format!("warning: {why}\n"));
        }
        let mut driver = Driver::new(tun, Host::new(self.host.clone())).map_err(Stop::bad)?;
        if let Some(path) = &self.pcap {
            capture::check_path(path, self.force).map_err(Stop::bad)?;
            let failed = |e: std::io::Error| Stop::write(path, &e);
            driver.capture(File::create(path).map_err(failed)?).map_err(failed)?;
        }
        let waker = driver.waker();
        interrupt::listen_and(move || waker.wake());
        Ok(driver)
    }

    /// Ends the capture.
    pub(super) fn close(&self, driver: &mut Driver) -> Result<(), Stop> {
        match (&self.pcap, driver.finish_capture()) {
            (Some(path), Err(e)) => Err(Stop::write(path, &e)),
            _ => Ok(()),
        }
    }

    /// The local and the remote address for destination `to`; the local port is chosen later.
    pub(super) fn ends(&self, to: &str) -> Result<(SocketAddr, SocketAddr), Stop> {
        let found = resolve(to)?;
        for remote in &found {
            if let Some(ours) = self.host.addresses.iter().find(|a| a.is_ipv4() == remote.is_ipv4()) {
                if self.host.addresses.contains(&remote.ip()) {
                    let side = self.tun.addresses.iter().find(|(a, _)| a.is_ipv4() == remote.is_ipv4());
                    let side = side.map_or_else(String::new, |(a, _)| format!("; the kernel's side is {a}"));
                    return Err(Stop::bad(format!("{to}: this is the stack's own address{side}")));
                }
                return Ok((SocketAddr::new(*ours, 0), *remote));
            }
        }
        let (has, example) = if found.first().is_some_and(SocketAddr::is_ipv6) {
            (
                "an IPv6 address, and the stack has none",
                "--kernel-address fd00:5359::1/64 --address fd00:5359::2",
            )
        } else {
            ("an IPv4 address, and the stack has none", "--kernel-address 10.84.0.1/24 --address 10.84.0.2")
        };
        Err(Stop::bad(format!("{to}: it has {has}: add {example}")))
    }
}

/// The addresses of a destination: an address or name, with an optional port.
fn resolve(to: &str) -> Result<Vec<SocketAddr>, Stop> {
    let without_brackets = to.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(to);
    if let Ok(ip) = without_brackets.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(ip, PORT)]);
    }
    let (host, port) = match to.rsplit_once(':') {
        Some((host, port)) => match port.parse::<u16>() {
            Ok(port) if port > 0 => (host.trim_start_matches('[').trim_end_matches(']'), port),
            _ => {
                return Err(Stop::bad(format!(
                    "{to}: {port:?} is not a port: write a number from 1 to 65535"
                )));
            }
        },
        None => (to, PORT),
    };
    match (host, port).to_socket_addrs() {
        Ok(found) => Ok(found.collect()),
        Err(e) => Err(Stop::bad(format!("{to}: cannot resolve {host:?}: {}", io_words(&e)))),
    }
}

/// Checks the addresses of the stack: one per family, each in a network of the kernel's side.
fn check_addresses(args: &StackArgs) -> Result<(), Stop> {
    let count = |v6: bool, ips: &mut dyn Iterator<Item = IpAddr>| ips.filter(|a| a.is_ipv6() == v6).count();
    for v6 in [false, true] {
        let kernel = count(v6, &mut args.kernel_address.iter().map(|a| a.0));
        let ours = count(v6, &mut args.address.iter().copied());
        if kernel > 1 || ours > 1 {
            let family = if v6 { "IPv6" } else { "IPv4" };
            let option = if kernel > 1 { "--kernel-address" } else { "--address" };
            return Err(Stop::bad(format!("{option}: give one {family} address, not several")));
        }
    }
    for ours in &args.address {
        let Some((kernel, length)) =
            args.kernel_address.iter().find(|(kernel, length)| tun::within(*kernel, *ours, *length))
        else {
            let known: Vec<_> = args.kernel_address.iter().map(|(a, n)| format!("{a}/{n}")).collect();
            return Err(Stop::bad(format!(
                "--address {ours}: it is not in the network of --kernel-address ({}): choose one that is",
                known.join(", ")
            )));
        };
        if kernel == ours {
            return Err(Stop::bad(format!(
                "--address {ours}: the kernel's side has this address (/{length}): choose another one"
            )));
        }
        if ours.is_ipv6() && args.mtu < LEAST_MTU_V6 {
            return Err(Stop::bad(format!("--mtu {}: IPv6 needs at least {LEAST_MTU_V6}", args.mtu)));
        }
    }
    Ok(())
}

/// Sets the keys of keepalives that no `--set` gives, such that a silent peer is given up after `idle`: the first keepalive
/// comes after a quarter of `idle`, and twelve intervals fill the rest. An outage shorter than `idle` ends no connection.
/// With `endpoint.keepalive-idle` set, the other keys keep their usual values.
pub(super) fn default_keepalive(endpoint: &mut Endpoint, idle: Duration, sets: &[String]) {
    let is_set = |key: &str| {
        let assigns = |set: &String| set.split('=').next().is_some_and(|k| k.trim() == key);
        sets.iter().any(assigns)
    };
    if is_set("endpoint.keepalive-idle") {
        return;
    }
    let keepalive = &mut endpoint.tcp.keepalive;
    keepalive.idle = idle / 4;
    if !is_set("endpoint.keepalive-interval") {
        keepalive.interval = idle / 16;
    }
    if !is_set("endpoint.keepalive-probes") {
        keepalive.probes = 12;
    }
}

/// Control and endpoint, read as in a scenario file.
fn endpoint(cc: &str, sets: &[String], profile: Profile) -> Result<Endpoint, Stop> {
    let explained = |e: ScenarioError| {
        let changed = sets.iter().any(|s| s.split('=').next().is_some_and(|k| e.key.starts_with(k.trim())));
        match e.key.as_str() {
            "cc" | "cc.name" if !changed => Stop::bad(format!("--cc: {}", e.message)),
            key => Stop::bad(format!("--set {key}: {}", e.message)),
        }
    };
    let mut keys = Keys::new(Value::String(cc.into())).map_err(explained)?;
    for set in sets {
        let key = set.split('=').next().unwrap_or("").trim();
        let first = key.split('.').next().unwrap_or("");
        if !matches!(first, "cc" | "endpoint" | "rwnd" | "sndbuf") {
            return Err(Stop::bad(format!(
                "--set {key}: write cc.KEY=VALUE, endpoint.KEY=VALUE, rwnd=SIZE or sndbuf=SIZE"
            )));
        }
        if let Some((_, why)) = ELSEWHERE.iter().find(|(k, _)| *k == key) {
            return Err(Stop::bad(format!("--set {key}: it {why}")));
        }
        keys.assign(set).map_err(explained)?;
    }
    keys.endpoint(profile).map_err(explained)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_keepalives_that_are_set_are_kept() {
        let of = |set: &str| {
            let sets = [set.to_owned()];
            let mut endpoint = endpoint("newreno", &sets, Profile::Off).unwrap_or_else(|_| panic!("{set}"));
            default_keepalive(&mut endpoint, Duration::from_secs(160), &sets);
            let keepalive = endpoint.tcp.keepalive;
            (keepalive.idle.as_secs_f64(), keepalive.interval.as_secs_f64(), keepalive.probes)
        };
        assert_eq!(of("endpoint.time-wait=1 s"), (40.0, 10.0, 12));
        assert_eq!(of("endpoint.keepalive-interval=2 s"), (40.0, 2.0, 12));
        assert_eq!(of("endpoint.keepalive-probes=3"), (40.0, 10.0, 3));
        assert_eq!(of("endpoint.keepalive-idle=1 s"), (1.0, 75.0, 9));
    }
}

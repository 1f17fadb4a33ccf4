//! A probe connection over the link. If no answer comes, counters show how far its packets got.

use super::counter_table::{CounterTable, interfaces};
use super::{Finding, finding};
use crate::config::{Config, Network, OnFailure, Split};
use crate::error::GatewayError;
use crate::log::LogConfig;
use crate::probe::{Outcome, Probed, Target};
use crate::run::{Environment, RunObserver};
use crate::status::Status;
use crate::system::Lock;
use crate::{control, forward};
use skyhaul_net::routing;
use skyhaul_net::wait::Waker;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// Time for an ordinary connection of this machine to the server.
const PATIENCE: Duration = Duration::from_secs(5);

/// Opens a connection over the link to `to`, as a host at `from` would (`None`: at the address of a neighbour on the terrestrial side). If no
/// gateway of this name runs, one that intercepts no connections is started for the probe.
#[must_use]
pub fn prove(config: &Config, environment: &Environment, from: Option<IpAddr>, to: SocketAddr) -> Finding {
    let what = format!("connection to {to}");
    let from = match from.or_else(|| neighbour(config, to)) {
        Some(from) => SocketAddr::new(from, 0),
        None => {
            let message = "no host is known on the terrestrial side: name the address of one with --from";
            return finding(what, false, message);
        }
    };
    let target = Target { from, to };
    let table = match CounterTable::begin(&["left", "came"], &["left_by", "came_by"], &rules(config, target))
    {
        Ok(table) => table,
        Err(e) => return finding(what, false, e.to_string()),
    };
    let asked = if Lock::is_taken(&environment.folder, &config.name) {
        control::ask(&environment.folder, &config.name, &target.command())
    } else {
        alone(config, environment, target)
    };
    let reply = match asked {
        Ok(reply) => reply,
        Err(e) => return finding(what, false, e.to_string()),
    };
    match serde_json::from_str::<Probed>(&reply) {
        Ok(probed) => explain(what, config, target, probed, &table.counts(), || reaches(to)),
        Err(_) => finding(what, false, reply.trim()),
    }
}

/// Counters of the probe's SYN where it leaves and of answers to it where they arrive.
fn rules(config: &Config, target: Target) -> Vec<(&'static str, String)> {
    let sat = &config.satellite.interface;
    let tun = config.interface();
    let ip = if target.to.is_ipv6() { "ip6" } else { "ip" };
    let (server, port) = (target.to.ip(), target.to.port());
    // If the gateway only forwards ports, the address of its host is translated on the way, so that the rules cannot name it.
    let host = |key: &str| {
        if config.terrestrial.is_some() { format!("{ip} {key} {}", target.from.ip()) } else { String::new() }
    };
    let syn = format!("{ip} daddr {server} tcp dport {port} {} tcp flags & (syn|ack) == syn", host("saddr"));
    let answer = format!("{ip} saddr {server} tcp sport {port} {}", host("daddr"));
    vec![
        ("leave", format!("oifname \"{sat}\" {syn} counter name left")),
        ("leave", format!("oifname != \"{sat}\" {syn} update @left_by {{ oifname }}")),
        ("arrive", format!("iifname \"{sat}\" {answer} counter name came")),
        ("arrive", format!("iifname != {{ \"{sat}\", \"{tun}\" }} {answer} update @came_by {{ iifname }}")),
    ]
}

/// Whether this machine itself reaches the server, which answers or resets the connection.
fn reaches(to: SocketAddr) -> bool {
    match TcpStream::connect_timeout(&to, PATIENCE) {
        Ok(_) => true,
        Err(e) => e.kind() == std::io::ErrorKind::ConnectionRefused,
    }
}

fn explain(
    what: String,
    config: &Config,
    Target { from, to }: Target,
    probed: Probed,
    counts: &BTreeMap<String, u64>,
    reaches: impl FnOnce() -> bool,
) -> Finding {
    let (sat, tun, from) = (&config.satellite.interface, config.interface(), from.ip());
    let n = |name: &str| counts.get(name).copied().unwrap_or(0);
    let (left_by, came_by) = (interfaces(counts, "left_by"), interfaces(counts, "came_by"));
    let took = format!("{:.3} s", probed.took);
    let message = match probed.outcome {
        Outcome::Connected => {
            let whom = if probed.gateway { "another gateway answered for it" } else { "it answered" };
            return finding(what, true, format!("{whom} over the link after {took}: the path works"));
        }
        Outcome::Refused => {
            let message = format!(
                "a reset came back after {took}: nothing listens at port {}, but the path works",
                to.port()
            );
            return finding(what, true, message);
        }
        Outcome::Unreachable => format!("a router on the way says that {to} cannot be reached (ICMP)"),
        Outcome::Silence if n("left") == 0 && !left_by.is_empty() => {
            format!("the SYN leaves through {left_by} instead of {sat}: correct the route to {}", to.ip())
        }
        Outcome::Silence if n("left") == 0 => format!(
            "the SYN does not leave this machine: a chain drops forwarded packets of {tun}, or there is no route to {}",
            to.ip()
        ),
        Outcome::Silence if n("came") > 0 => format!(
            "answers arrive at {sat} but do not reach {tun}: the source check (rp_filter) or a chain drops them on the way"
        ),
        Outcome::Silence if !came_by.is_empty() => format!(
            "answers arrive at {came_by} instead of {sat}: the way back is not the way there. Route {from} back over the link, or \
             exclude such networks in [split]"
        ),
        Outcome::Silence if reaches() => format!(
            "no answer to {from} comes to this machine, but the machine itself reaches {to}: the way back to {from} leads past \
             it, or a router beyond the link does not know {from}"
        ),
        Outcome::Silence => format!(
            "the SYN left through {sat}, and nothing came back: the link, {to}, or the way back is down"
        ),
    };
    finding(what, false, message)
}

/// A host on the terrestrial side; if the gateway only forwards ports, the address of its own host.
fn neighbour(config: &Config, to: SocketAddr) -> Option<IpAddr> {
    let Some(terrestrial) = &config.terrestrial else { return Some(config.slot.host_address().into()) };
    terrestrial.interfaces.iter().find_map(|interface| {
        let index = nix::net::if_::if_nametoindex(interface.as_str()).ok()?;
        host(&routing::neighbours(index, to.is_ipv6()).ok()?, &terrestrial.networks)
    })
}

/// The first of these neighbours that is in one of the networks and not link-local.
fn host(neighbours: &[IpAddr], networks: &[Network]) -> Option<IpAddr> {
    let meant = |a: &IpAddr| networks.iter().any(|n| n.contains(*a));
    let local = |a: &IpAddr| match a {
        IpAddr::V4(a) => a.is_link_local(),
        IpAddr::V6(a) => a.is_unicast_link_local(),
    };
    neighbours.iter().copied().find(|a| meant(a) && !local(a))
}

/// Stops a gateway once `over` is set.
struct StopRequest<'a> {
    ready: Sender<Waker>,
    over: &'a AtomicBool,
}

impl RunObserver for StopRequest<'_> {
    fn ready(&mut self, waker: Waker) {
        let _ = self.ready.send(waker);
    }
    fn turn(&mut self, _: &dyn Fn(bool) -> Status) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

/// Runs a gateway for one probe, and returns the reply to it. The gateway splits no connection.
fn alone(config: &Config, environment: &Environment, target: Target) -> Result<String, GatewayError> {
    let mut config = config.clone();
    if let Some(t) = &mut config.terrestrial {
        t.networks = Vec::new();
    }
    // A gateway for one probe keeps no rules when it fails and writes no log, and opens no forwarded port.
    (config.on_failure, config.split, config.log) =
        (OnFailure::Bypass, Split::default(), LogConfig::default());
    if let (None, Some(first)) = (&config.terrestrial, config.forward.first().copied()) {
        let unused = SocketAddr::new(std::net::Ipv4Addr::LOCALHOST.into(), 0);
        config.forward = vec![forward::Forward { listen: unused, ..first }];
        config.publish = Vec::new();
    }
    let over = AtomicBool::new(false);
    let (ready, started) = channel();
    std::thread::scope(|s| {
        let gateway = s.spawn(|| crate::run(&config, environment, &mut StopRequest { ready, over: &over }));
        // A gateway that fails to start drops the sender.
        let Ok(waker) = started.recv() else {
            return match gateway.join() {
                Ok(Err(e)) => Err(e),
                _ => Err(GatewayError::NotRunning(config.name.clone())),
            };
        };
        let reply = control::ask(&environment.folder, &config.name, &target.command());
        over.store(true, Ordering::Relaxed);
        waker.wake();
        let _ = gateway.join();
        reply
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding_of(outcome: Outcome, counted: &[(&str, u64)], reaches: bool) -> (bool, String) {
        let text = "[terrestrial]\ninterface = \"lan0\"\n[satellite]\ninterface = \"sat0\"\n";
        let config = Config::parse("g.toml", text).unwrap();
        let target = Target { from: ([10, 1, 0, 2], 0).into(), to: ([203, 0, 113, 7], 80).into() };
        let probed = Probed { outcome, took: 0.55, gateway: false, port: 50_000 };
        let counts = counted.iter().map(|(k, n)| ((*k).to_owned(), *n)).collect();
        let f = explain("connection".into(), &config, target, probed, &counts, || reaches);
        (f.is_ok(), f.message)
    }

    #[test]
    fn each_way_to_fail_has_its_reason() {
        use Outcome::{Connected, Refused, Silence, Unreachable};
        for (outcome, counts, reaches, ok, part) in [
            (Connected, &[][..], false, true, "it answered over the link after 0.550 s"),
            (Refused, &[], false, true, "nothing listens at port 80, but the path works"),
            (Unreachable, &[], false, false, "a router on the way"),
            (Silence, &[("left_by eth0", 4)], false, false, "leaves through eth0 (4) instead of sat0"),
            (Silence, &[], false, false, "a chain drops forwarded packets of sky-gateway"),
            (Silence, &[("left", 4), ("came", 4)], false, false, "answers arrive at sat0 but do not reach"),
            (
                Silence,
                &[("left", 4), ("came_by eth0", 4)],
                true,
                false,
                "at eth0 (4) instead of sat0: the way back",
            ),
            (Silence, &[("left", 4)], true, false, "the machine itself reaches 203.0.113.7:80"),
            (Silence, &[("left", 4)], false, false, "nothing came back"),
        ] {
            let (is_ok, message) = finding_of(outcome, counts, reaches);
            assert!(is_ok == ok && message.contains(part), "{outcome:?} {counts:?}: {message}");
        }
    }

    #[test]
    fn a_neighbour_is_a_host_of_the_file() {
        let all = ["10.9.0.2", "10.1.0.8", "fe80::1", "fd01::2"].map(|a| a.parse().unwrap());
        let found = |network: &str| host(&all, &[network.parse().unwrap()]).map(|a| a.to_string());
        assert_eq!(found("10.1.0.0/24").as_deref(), Some("10.1.0.8"));
        // An address of the link alone has no way back over another one.
        assert_eq!(found("::/0").as_deref(), Some("fd01::2"));
        assert_eq!(found("192.0.2.0/24"), None);
    }
}

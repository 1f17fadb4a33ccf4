//! Checks of the system for anything that would keep a gateway from working, with remedies.
//!
//! ```text
//! routes         whether packets take the way through the two interfaces, and pass the source check
//! firewall       chains of other programs that drop packets by default
//! evaded         rules of other programs for forwarded packets, which split connections do not meet
//! counter_table  counts of SYNs and their answers where they arrive
//! prove          a probe connection over the link
//! repair         the repair of datagrams: key, address, and what a running gateway says of it
//! ```

mod counter_table;
mod evaded;
mod firewall;
mod prove;
mod repair;
mod routes;

pub use counter_table::watch;
pub use evaded::evaded;
pub use prove::prove;

use crate::config::Config;
use crate::proof::{ProofState, ProofStatus};
use crate::status::Status;
use crate::system::{self, Lock};
use crate::watch::RulesStatus;
use crate::{control, descriptors, evidence, rules, saved_settings};
use serde::ser::{Serialize, SerializeMap, Serializer};
use skyhaul_net::{ipv6, routing};
use std::path::Path;
use std::process::Command;

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Passed.
    Good,
    /// Passed, but what was found may be the reason if something does not work.
    Doubtful,
    /// What was found keeps the gateway from working.
    Bad,
}

/// The result of one check. In JSON, the outcome is the two truth values `ok` and `doubt`; `doubt` is left out if it is false.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was checked.
    pub what: String,
    /// The outcome.
    pub outcome: Outcome,
    /// What was found, and the remedy.
    pub message: String,
}

impl Finding {
    /// Whether nothing keeps the gateway from working.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.outcome != Outcome::Bad
    }
}

impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("what", &self.what)?;
        map.serialize_entry("ok", &self.is_ok())?;
        if self.outcome == Outcome::Doubtful {
            map.serialize_entry("doubt", &true)?;
        }
        map.serialize_entry("says", &self.message)?;
        map.end()
    }
}

/// A check that passed if `ok`, and found something bad otherwise.
fn finding(what: impl Into<String>, ok: bool, message: impl Into<String>) -> Finding {
    let outcome = if ok { Outcome::Good } else { Outcome::Bad };
    Finding { what: what.into(), outcome, message: message.into() }
}

/// A check that passed with [`Outcome::Doubtful`].
fn doubt(what: impl Into<String>, message: impl Into<String>) -> Finding {
    Finding { what: what.into(), outcome: Outcome::Doubtful, message: message.into() }
}

fn sysctl(key: &str) -> Option<String> {
    std::fs::read_to_string(format!("/proc/sys/{key}")).ok().map(|v| v.trim().to_owned())
}

/// Checks everything that a gateway with this configuration needs, and the gateway of this name, if `folder` has a lock that shows that it
/// runs. The only changes are a temporary nftables table and the soft limit of open descriptors.
#[must_use]
pub fn examine(config: &Config, folder: &Path) -> Vec<Finding> {
    let mut all = vec![nft(), tun()];
    all.extend(rule_kinds(config));
    let terrestrial = config.terrestrial.as_ref();
    let hosts = config.host_interfaces().iter().map(|name| ("terrestrial", name));
    let interfaces: Vec<_> = hosts.chain([("satellite", &config.satellite.interface)]).collect();
    for (side, name) in &interfaces {
        let what = format!("{side}.interface {name}");
        let index = nix::net::if_::if_nametoindex(name.as_str());
        all.push(match index {
            Err(_) => finding(what, false, "there is none of this name; `ip link` lists those that exist"),
            Ok(_) => {
                // The folder /sys may be that of another namespace.
                let set_up = routing::link(name).is_ok_and(|link| link.up);
                let up = set_up && operstate(name).is_none_or(|s| s != "down");
                finding(
                    what,
                    up,
                    if up { "is there".to_owned() } else { format!("is down: ip link set {name} up") },
                )
            }
        });
    }
    for (what, key) in
        [("IPv4 forwarding", "net/ipv4/ip_forward"), ("IPv6 forwarding", "net/ipv6/conf/all/forwarding")]
    {
        let v6 = what.starts_with("IPv6");
        // That IPv6 is off is a finding of its own, below.
        if v6 && !ipv6::is_on() {
            continue;
        }
        // A gateway that only forwards ports enables forwarding itself, per interface.
        let mut networks =
            terrestrial.iter().flat_map(|t| t.networks.iter().chain(&config.satellite.networks));
        if !networks.any(|n| n.address.is_ipv6() == v6) {
            continue;
        }
        match sysctl(key).as_deref() {
            Some("1") => all.push(finding(what, true, "is on")),
            Some(_) => {
                all.push(finding(what, false, format!("is off: sysctl -w {}=1", key.replace('/', "."))))
            }
            None => {}
        }
    }
    if let Some(why) = ipv6::why_off().filter(|_| config.splits_ipv6()) {
        let message = format!("is off ({why}): only connections of IPv4 are split; {}", ipv6::REMEDY);
        all.push(doubt("IPv6", message));
    }
    all.push(open_files(config));
    for (_, name) in &interfaces {
        let own = sysctl(&format!("net/ipv4/conf/{name}/rp_filter")).unwrap_or_default();
        let strict = sysctl("net/ipv4/conf/all/rp_filter").unwrap_or_default().max(own) == "1";
        let what = format!("rp_filter of {name}");
        all.push(if strict {
            doubt(
                what,
                "is strict: packets are dropped whose sender is reached through another interface; where routes are not the same both ways, sysctl -w net.ipv4.conf.all.rp_filter=2",
            )
        } else {
            finding(what, true, "is off or loose")
        });
    }
    all.extend(routes::examine(config));
    all.extend(firewall::examine(config));
    all.extend(evaded(config));
    all.extend(observation(config));
    all.extend(priority(config));
    let status = Lock::is_taken(folder, &config.name).then(|| {
        let status = control::ask(folder, &config.name, "status").unwrap_or_default();
        serde_json::from_str::<Status>(&status).ok()
    });
    all.extend(beside(config, folder, status.is_some()));
    all.push(rules_of(config, status.as_ref().map(Option::as_ref)));
    all.extend(metrics_of(config, status.as_ref().map(Option::as_ref)));
    let status = status.flatten();
    all.extend(repair::examine(config, status.as_ref()));
    all.extend(status.and_then(|s| s.proof).map(|p| proof_of(&p)));
    all
}

/// Other gateways of this network namespace, which have interfaces of their own. `runs`: a gateway of this name runs, too.
fn beside(config: &Config, folder: &Path, runs: bool) -> Vec<Finding> {
    let others = saved_settings::others(folder, &config.name).into_iter();
    let others = others.filter(|(name, _)| Lock::is_taken(folder, name));
    let mut all: Vec<_> = others
        .map(|(name, of)| {
            let hosts = if of.hosts.is_empty() { String::new() } else { of.hosts.join(", ") + " and " };
            finding(format!("gateway {name}"), true, format!("runs beside this one, with {hosts}{}", of.link))
        })
        .collect();
    if !runs && let Err(e) = system::may_run(config, folder) {
        all.push(finding("beside other gateways", false, e.to_string()));
    }
    all
}

/// Whether the limits of this process allow for as many connections as the file says.
fn open_files(config: &Config) -> Finding {
    let what = "descriptors";
    match descriptors::room(config, descriptors::raise()) {
        Ok((flows, None)) => finding(what, true, format!("suffice for limits.flows = {flows}")),
        Ok((_, Some(line))) => doubt(what, line),
        Err(e) => finding(what, false, e.to_string()),
    }
}

/// Whether the running gateway knows that connections of hosts reach it.
fn proof_of(proof: &ProofStatus) -> Finding {
    let what = "the gateway that runs";
    let cause = proof.cause.clone().unwrap_or_default();
    let lasts = proof.lasts.unwrap_or_default();
    match proof.state {
        ProofState::Unproven => doubt(what, "does not know yet whether connections of hosts reach it"),
        ProofState::Works => finding(what, true, "is reached by connections of hosts"),
        ProofState::Doubtful => {
            finding(what, false, format!("may not be reached by connections of hosts: {cause}"))
        }
        ProofState::Withdrawn => {
            finding(what, false, format!("forwards new connections unsplit for {lasts:.0} s: {cause}"))
        }
    }
}

/// The table of the gateway: whether it is there, and whether it should be. `status`: `None` if no gateway of this name runs, and
/// `Some(None)` if it does not answer.
fn rules_of(config: &Config, status: Option<Option<&Status>>) -> Finding {
    let table = rules::table(config);
    let what = format!("table {table}");
    let there = crate::nft::listing(&table).is_ok_and(|listing| listing.is_some());
    let Some(status) = status else {
        let name = &config.name;
        return if there {
            doubt(what, format!("was left behind by a gateway that was killed: skyhaul gateway clean {name}"))
        } else {
            finding(what, true, "is free")
        };
    };
    let rules = status.map(|s| s.rules.clone());
    let who = |r: &RulesStatus| r.changed_by.clone().unwrap_or_else(|| "somebody".into());
    match rules {
        Some(r) if !r.in_place => finding(
            what,
            false,
            format!(
                "a gateway of this name runs, and {} has removed or changed its rules for {:.0} s: new connections are not split; it \
                 cannot restore them: {}",
                who(&r),
                r.lost_for.unwrap_or_default(),
                r.message.unwrap_or_default()
            ),
        ),
        _ if !there => finding(
            what,
            false,
            "a gateway of this name runs, and its table is gone from this network namespace: it restores it within seconds",
        ),
        Some(r) if r.restored > 0 => doubt(
            what,
            format!(
                "is in use: a gateway of this name runs; it has restored its rules {} times, the last time {:.0} s ago, after {} had \
                 removed or changed them",
                r.restored,
                r.last_restored.unwrap_or_default(),
                who(&r)
            ),
        ),
        _ => finding(what, true, "is in use: a gateway of this name runs"),
    }
}

/// Whether metrics are served where the file says, or can be; `None` if the file does not ask for them. `status` as for [`rules_of`].
fn metrics_of(config: &Config, status: Option<Option<&Status>>) -> Option<Finding> {
    let listen = config.metrics.listen?;
    let what = format!("metrics.listen {listen}");
    Some(match status {
        Some(status) => match status.and_then(|s| s.metrics) {
            Some(at) => finding(what, true, format!("the gateway that runs serves http://{at}/metrics")),
            None => doubt(
                what,
                "the gateway that runs serves none: it was started before the file asked for them",
            ),
        },
        None => match std::net::TcpListener::bind(listen) {
            Ok(_) => finding(what, true, "is free"),
            Err(e) => {
                finding(what, false, format!("cannot listen there: {e}; choose another address or port"))
            }
        },
    })
}

/// Whether connections can be observed, if they are to be.
fn observation(config: &Config) -> Option<Finding> {
    let hosts = config.terrestrial.as_ref().filter(|_| config.evidence.measures())?;
    let what = format!("observing {}", hosts.interfaces.join(", "));
    Some(match evidence::try_to_observe(&hosts.interfaces) {
        Ok(()) => finding(what, true, "works"),
        Err(e) => finding(what, false, e.to_string()),
    })
}

/// Whether the path is tested for low priority, if the congestion control or the file asks for the test; `None` if neither does.
fn priority(config: &Config) -> Option<Finding> {
    let low = crate::config::low_priority(&config.endpoint);
    let (name, port) = (config.endpoint.cc.name(), config.priority_test.port);
    let fallback = config.fallback.cc.name();
    let what = "low priority on the link";
    match (config.tests_priority(), low) {
        (true, true) => Some(finding(
            what,
            true,
            format!(
                "is tested by UDP port {port} before {name} is used, which needs it; until then {fallback} is. A firewall must let \
                 the port pass at both ends"
            ),
        )),
        (true, false) => {
            Some(finding(what, true, format!("is tested by UDP port {port}; {name} does not need it")))
        }
        (false, true) => Some(finding(what, true, format!("is not tested, although {name} relies on it"))),
        (false, false) => None,
    }
}

fn operstate(name: &str) -> Option<String> {
    std::fs::read_to_string(format!("/sys/class/net/{name}/operstate")).ok().map(|s| s.trim().to_owned())
}

fn nft() -> Finding {
    match Command::new("nft").arg("--version").output() {
        Ok(done) if done.status.success() => {
            finding("nft", true, String::from_utf8_lossy(&done.stdout).trim().to_owned())
        }
        _ => finding(
            "nft",
            false,
            "is missing: apt-get install nftables, or your system's package of this name",
        ),
    }
}

fn tun() -> Finding {
    if Path::new("/dev/net/tun").exists() {
        finding("/dev/net/tun", true, "is there")
    } else {
        finding("/dev/net/tun", false, "is missing: modprobe tun, or give the container the device")
    }
}

/// Whether the kernel supports each kind of rule, which is tried in a dormant table that is deleted at once.
fn rule_kinds(config: &Config) -> Vec<Finding> {
    let table = format!("skyhaul_try_{}", std::process::id());
    let mut kinds = vec![("fib (module nft_fib_inet)", "filter", "fib daddr type local accept")];
    if config.intercepted().is_some() {
        kinds.push((
            "tproxy (module nft_tproxy)",
            "filter",
            "meta l4proto tcp tproxy ip to 127.0.0.1:9 accept",
        ));
        kinds.push(("socket (module nft_socket)", "filter", "socket transparent 1 accept"));
        kinds.push(("ct zone (module nft_ct, conntrack with zones)", "filter", "ct zone set 1 accept"));
    }
    let condition = evidence::arm::condition(&config.evidence, "ip") + " accept";
    if config.evidence.leaves_unsplit() {
        kinds.push(("jhash (module nft_hash)", "filter", condition.as_str()));
    }
    if config.forwards_ports() {
        kinds.push(("nat (module nft_nat)", "nat", "tcp dport 9 dnat ip to 192.0.0.5"));
    }
    let tried = kinds.into_iter().map(|(what, kind, rule)| {
        let text = format!(
            "create table inet {table} {{ flags dormant; }}\nadd chain inet {table} c {{ type {kind} hook prerouting priority \
             mangle; }}\nadd rule inet {table} c {rule}\ndelete table inet {table}\n"
        );
        match crate::nft::nft(&text) {
            Ok(()) => finding(what, true, "the kernel knows it"),
            Err(e) => finding(what, false, e.to_string()),
        }
    });
    tried.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_others_removed_are_told_in_one_line() {
        let text = "[terrestrial]\ninterface = \"lan0\"\n[satellite]\ninterface = \"sat0\"\n";
        let config = Config::parse("g.toml", text).unwrap();
        let status: Status = serde_json::from_value(serde_json::json!({
            "name": "gateway", "pid": 1, "uptime": 60.0, "admits": false, "turned-away": 0, "flows": 0, "peers": 0, "memory": 0,
            "paths-narrowed": 0, "queues-full": 0, "counts": crate::status::Counts::default(), "list": [],
            "rules": { "in-place": false, "restored": 0, "changed-by": "nft (process 7)", "lost-for": 3.0, "message": "no nft" },
        }))
        .unwrap();
        let found = rules_of(&config, Some(Some(&status)));
        assert_eq!(found.outcome, Outcome::Bad);
        assert_eq!(
            found.message,
            "a gateway of this name runs, and nft (process 7) has removed or changed its rules for 3 s: new connections are not split; \
             it cannot restore them: no nft"
        );
    }
}

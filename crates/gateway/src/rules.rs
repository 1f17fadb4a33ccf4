//! The gateway's nftables table and its two routing rules.
//!
//! Only a SYN starts a split connection, so connections older than the gateway pass unchanged. Later packets are recognised by
//! the kernel's transparent sockets on the terrestrial side, and by a set of connections on the satellite side. When the
//! process ends, its sockets and the route to its interface disappear, and the same packets are forwarded.

use crate::config::{Config, MEMORY, Network, OnFailure};
use crate::evidence::arm;
use skyhaul_base::Rate;
use std::fmt::Write;
use std::net::SocketAddr;

/// The mark of packets for the transparent kernel sockets. The upper half is "SH" in ASCII. Packets for the gateway's own host, the TCP
/// endpoint in user space that carries connections over the link, have a mark for each gateway ([`crate::slot`]).
pub const NEAR_MARK: u32 = 0x5348_0001;
/// Mark of packets that the transparent kernel sockets send. No routing rule of the gateway matches it, and rules of others that look at
/// the lower 16 bits of marks see none.
pub(crate) const SOCKET_MARK: u32 = 0x5348_0000;
/// Mark of packets that are to be repaired, and the routing table of packets with this mark.
pub(crate) const REPAIR_MARK: u32 = 0x5348_0003;
pub(crate) const REPAIR_TABLE: u32 = 21_322;
/// Counter of packets that are to be repaired, whether or not they are at present.
pub(crate) const TO_REPAIR: &str = "to_repair";
/// Counter of packets of [`TO_REPAIR`] that the kernel would forward whatever they are: none that is too long, or too old.
pub(crate) const REPAIR_TRIED: &str = "repair_tried";
/// Counter of packets to the interface of the repair that firewalls have let pass.
pub(crate) const REPAIR_REACHED: &str = "repair_reached";
/// Counters of packets from that interface: those that the kernel would forward, and those that firewalls have let pass.
pub(crate) const REPAIR_GIVEN: &str = "repair_given";
pub(crate) const REPAIR_LEFT: &str = "repair_left";
/// Zone in which the kernel tracks connections between hosts and the transparent kernel sockets. Both legs of a connection have the
/// same addresses and ports; in one zone, the numbers of one leg would be invalid for the other (`ct state invalid`), and a
/// translation of addresses that was decided for one would hold for the other. The number is 0x5348, as in [`NEAR_MARK`].
const ZONE: u16 = 21_320;
/// Routing table of packets with [`NEAR_MARK`].
pub const NEAR_TABLE: u32 = 21_320;
/// Priority of the routing rules: before those of operators (`from`, `iif`) and of VRFs (1000), which would lead marked packets elsewhere.
/// Nobody else's packets have these marks.
pub const PRIORITY: u32 = 1;
/// Counter of SYNs of hosts that were intercepted.
pub(crate) const HOSTS_TAKEN: &str = "hosts_taken";
/// Counter of the SYNs of [`HOSTS_TAKEN`] that firewalls have let pass.
pub(crate) const HOSTS_REACHED: &str = "hosts_reached";
/// Counter of SYNs of the gateway's host for which there is a route.
pub(crate) const LINK_SENT: &str = "link_sent";
/// Counter of the SYNs of [`LINK_SENT`] that leave by the satellite interface.
pub(crate) const LINK_LEFT: &str = "link_left";
/// Counter of the SYNs of [`LINK_SENT`] that leave by another interface.
pub(crate) const LINK_ASTRAY: &str = "link_astray";
/// Counter of packets from the link for the gateway's host.
pub(crate) const LINK_TAKEN: &str = "link_taken";
/// Counter of the packets of [`LINK_TAKEN`] that firewalls have let pass.
pub(crate) const LINK_REACHED: &str = "link_reached";
const COUNTERS: [&str; 7] =
    [HOSTS_TAKEN, HOSTS_REACHED, LINK_SENT, LINK_LEFT, LINK_ASTRAY, LINK_TAKEN, LINK_REACHED];
/// Priority of the chains that count, behind those of firewalls.
const LAST: i32 = 1000;
/// The condition for the first packet of a connection.
const SYN: &str = "tcp flags & (fin|syn|rst|ack) == syn";
/// Maximum number of elements of the set of connections over the link. A FIN or RST removes no element: the gateway's host may reject such a
/// segment as invalid, and one direction may continue without the other. Elements expire after [`MEMORY`].
const REMEMBERED: u32 = 1_048_576;
/// Maximum number of elements that one command adds.
const ELEMENTS: usize = 512;

/// Beginning of the names of all tables of gateways, and of the temporary tables of the doctor.
pub(crate) const PREFIX: &str = "skyhaul_";

/// Ports of the listeners for intercepted connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// That of IPv4; 0 without a listener.
    pub v4: u16,
    /// That of IPv6; 0 without a listener, as where IPv6 is off.
    pub v6: u16,
}

impl Ports {
    /// Whether this is the address and port of a listener.
    pub(crate) fn are_of(self, at: SocketAddr) -> bool {
        at.ip().is_loopback() && at.port() == if at.is_ipv6() { self.v6 } else { self.v4 }
    }
}

/// The ends of a connection over the link: that of the gateway's host, and the other one.
pub type Ends = (SocketAddr, SocketAddr);

/// The name of the table.
#[must_use]
pub fn table(config: &Config) -> String {
    table_of(&config.name)
}
/// The name of the table of the gateway of this name.
pub(crate) fn table_of(name: &str) -> String {
    format!("{PREFIX}{}", name.replace('-', "_"))
}

/// The marks of packets for the transparent kernel sockets, and for the gateway's own host.
fn marks(config: &Config) -> (u32, u32) {
    (NEAR_MARK, config.slot.far_mark())
}

/// The name of the interface at which the gateway's own connection arrives.
pub(crate) fn own_interface(config: &Config) -> String {
    format!("skt-{}", config.name)
}

/// Interfaces, as a rule compares with them: a name, or a set of names.
pub(crate) fn names(interfaces: &[impl AsRef<str>]) -> String {
    let quoted: Vec<_> = interfaces.iter().map(|name| format!("\"{}\"", name.as_ref())).collect();
    match &quoted[..] {
        [one] => one.clone(),
        several => format!("{{ {} }}", several.join(", ")),
    }
}
/// The same with one more interface.
fn names_with(interfaces: &[String], own: &str) -> String {
    let all: Vec<&str> = interfaces.iter().map(String::as_str).chain([own]).collect();
    names(&all)
}

/// The networks of one family as a set of nftables; `None` without any.
fn set(networks: &[Network], v6: bool) -> Option<String> {
    let of: Vec<_> = networks.iter().filter(|n| n.address.is_ipv6() == v6).map(ToString::to_string).collect();
    (!of.is_empty()).then(|| format!("{{ {} }}", of.join(", ")))
}

/// The conditions on a SYN from the hosts `from` to those in `to` under which its connection is split; `None` if there is no network of
/// this family on one of the sides.
pub(crate) fn conditions(config: &Config, from: &[Network], to: &[Network], v6: bool) -> Option<String> {
    let ip = if v6 { "ip6" } else { "ip" };
    let mut text = format!("{ip} saddr {} {ip} daddr {}", set(from, v6)?, set(to, v6)?);
    if let Some(not) = set(&config.split.exclude, v6) {
        let _ = write!(text, " {ip} saddr != {not} {ip} daddr != {not}");
    }
    let ports = |p: &[u16]| format!("{{ {} }}", p.iter().map(u16::to_string).collect::<Vec<_>>().join(", "));
    if !config.split.ports.is_empty() {
        let _ = write!(text, " tcp dport {}", ports(&config.split.ports));
    }
    if !config.split.exclude_ports.is_empty() {
        let _ = write!(text, " tcp dport != {}", ports(&config.split.exclude_ports));
    }
    if config.evidence.leaves_unsplit() {
        let _ = write!(text, " {}", arm::condition(&config.evidence, ip));
    }
    Some(text)
}

/// The rules that intercept new connections, in the chains that [`closed`] empties.
#[must_use]
pub fn admission(config: &Config, ports: Ports) -> String {
    let (near, far) = marks(config);
    let table = table(config);
    let mut text = String::new();
    let Some(terrestrial) = config.intercepted() else { return text };
    let (hosts, behind) = (&terrestrial.networks, &config.satellite.networks);
    for v6 in [false, true] {
        let (ip, family, port) = if v6 { ("ip6", 6, ports.v6) } else { ("ip", 4, ports.v4) };
        let address = if v6 { "[::1]" } else { "127.0.0.1" };
        if port == 0 {
            continue;
        }
        // Packets that leave by another interface are forwarded: their answers arrive there, too, and the gateway would wait for ever.
        let leaves = |interfaces: &str| format!("fib daddr oifname {interfaces}");
        let to_link = leaves(&names(&[&config.satellite.interface]));
        let to_hosts = leaves(&names(&terrestrial.interfaces));
        if let Some(c) = conditions(config, hosts, behind, v6) {
            let c = format!("{c} {to_link}");
            let _ = writeln!(text, "add rule inet {table} zone_of_hosts {c} ct zone set {ZONE}");
            let _ = writeln!(
                text,
                "add rule inet {table} from_hosts {c} counter name {HOSTS_TAKEN} tproxy {ip} to {address}:{port} meta mark set {near:#x} accept"
            );
            if config.on_failure == OnFailure::Block {
                let _ = writeln!(text, "add rule inet {table} from_hosts {c} drop");
            }
        }
        if let Some(c) = conditions(config, behind, hosts, v6) {
            let _ = writeln!(
                text,
                "add rule inet {table} from_link {c} {to_hosts} update @ends{family} {{ {ip} saddr . tcp sport . {ip} daddr . tcp dport \
                 }} meta mark set {far:#x} accept"
            );
        }
    }
    text
}

/// The commands that stop the interception of new connections; existing ones stay.
#[must_use]
pub fn closed(config: &Config) -> String {
    if config.intercepted().is_none() {
        return String::new();
    }
    closed_table(&table(config))
}
/// The commands of [`closed`] for a gateway that intercepts connections, by the name of its table.
pub(crate) fn closed_table(table: &str) -> String {
    ["from_hosts", "from_link", "zone_of_hosts"]
        .map(|chain| format!("flush chain inet {table} {chain}\n"))
        .concat()
}

/// The commands that enter connections over the link into the sets of the table again.
#[must_use]
pub fn remembered(config: &Config, ends: &[Ends]) -> String {
    let table = table(config);
    let mut text = String::new();
    if config.intercepted().is_none() {
        return text;
    }
    for (v6, family) in [(false, 4), (true, 6)] {
        let of: Vec<_> = ends.iter().filter(|(_, there)| there.is_ipv6() == v6).collect();
        for some in of.chunks(ELEMENTS) {
            let element = |(here, there): &&Ends| {
                format!("{} . {} . {} . {}", there.ip(), there.port(), here.ip(), here.port())
            };
            let elements = some.iter().map(element).collect::<Vec<_>>().join(", ");
            let _ = writeln!(text, "add element inet {table} ends{family} {{ {elements} }}");
        }
    }
    text
}

/// The commands for the whole table, in one transaction, which fails if a table of this name exists. `enabled`: the gateway had to enable
/// forwarding for forwarded ports.
#[must_use]
pub fn all(config: &Config, ports: Ports, enabled: bool) -> String {
    let t = table(config);
    let mut text = format!("create table inet {t}\n");
    if let Some(terrestrial) = config.intercepted() {
        text += &interception(config, &t, &terrestrial.interfaces, ports);
    }
    text + &translation(config, &t, enabled) + &marking(config, &t) + &admission(config, ports)
}

/// The chain that marks packets to be repaired: those that are to leave by the satellite interface, and that neither the gateway nor anybody
/// else has marked. The gateway's thread decides by a route whether the mark has an effect. The chain comes after translations of addresses.
fn marking(config: &Config, t: &str) -> String {
    let Some(settings) = &config.repair else { return String::new() };
    let (link, tun) = (&config.satellite.interface, config.repair_interface());
    let ours = [link, &config.interface(), &own_interface(config), &tun];
    let ours = ours.map(|name| format!("\"{name}\"")).join(", ");
    let mut text = String::new();
    for counter in [TO_REPAIR, REPAIR_TRIED, REPAIR_REACHED, REPAIR_GIVEN, REPAIR_LEFT] {
        let _ = writeln!(text, "add counter inet {t} {counter}");
    }
    let _ = writeln!(
        text,
        "add chain inet {t} repaired {{ type filter hook prerouting priority dstnat + 20; policy accept; }}\n\
         add chain inet {t} passed_repair {{ type filter hook forward priority {LAST}; policy accept; }}\n\
         add rule inet {t} passed_repair oifname \"{tun}\" counter name {REPAIR_REACHED}\n\
         add rule inet {t} passed_repair iifname \"{tun}\" counter name {REPAIR_LEFT}"
    );
    let mut rule = |words: &str| {
        let _ = writeln!(text, "add rule inet {t} repaired {words}");
    };
    let young = ["ip ttl > 1", "ip6 hoplimit > 1"];
    for young in young {
        rule(&format!("iifname \"{tun}\" {young} fib daddr type unicast counter name {REPAIR_GIVEN}"));
    }
    rule(&format!("iifname {{ {ours} }} accept"));
    rule("meta mark != 0 accept");
    // Low priority gives way: repair would take more capacity for it (RFC 8622).
    rule("ip dscp 1 accept");
    rule("ip6 dscp 1 accept");
    for (ip, v6) in [("ip", false), ("ip6", true)] {
        if let Some(networks) = set(&settings.pass.networks, v6) {
            rule(&format!("{ip} saddr {networks} accept"));
            rule(&format!("{ip} daddr {networks} accept"));
        }
    }
    if !settings.pass.ports.is_empty() {
        let ports: Vec<_> = settings.pass.ports.iter().map(ToString::to_string).collect();
        let ports = ports.join(", ");
        rule(&format!("meta l4proto {{ tcp, udp }} th sport {{ {ports} }} accept"));
        rule(&format!("meta l4proto {{ tcp, udp }} th dport {{ {ports} }} accept"));
    }
    rule(&format!(
        "fib daddr type unicast fib daddr oifname \"{link}\" counter name {TO_REPAIR} meta mark set {REPAIR_MARK:#x}"
    ));
    // Longer ones may be answered with an ICMP message.
    let rate = settings.rate.or(config.satellite.rate).unwrap_or(Rate::from_bits_per_sec(8000));
    let short = settings.config(rate, config.satellite.mtu.into()).largest_datagram().min(1000);
    for young in young {
        rule(&format!(
            "meta mark {REPAIR_MARK:#x} meta length <= {short} {young} counter name {REPAIR_TRIED}"
        ));
    }
    text
}

/// The command that stops the marking of packets that are to be repaired, by the name of the table of a gateway that repairs.
pub(crate) fn unmarked_table(table: &str) -> String {
    format!("flush chain inet {table} repaired\n")
}

/// Chains that lead packets of split connections to the kernel sockets and to the gateway's host; [`admission`] fills `from_hosts`,
/// `from_link` and `zone_of_hosts`.
fn interception(config: &Config, t: &str, lans: &[String], ports: Ports) -> String {
    let hosts = &names(lans);
    let (near, far) = marks(config);
    let (link, tun) = (&config.satellite.interface, config.interface());
    let links = config.link_interfaces();
    let mut text = String::new();
    for (family, kind) in [(4, "ipv4_addr"), (6, "ipv6_addr")] {
        let _ = writeln!(
            text,
            "add set inet {t} ends{family} {{ type {kind} . inet_service . {kind} . inet_service; flags dynamic,timeout; \
             size {REMEMBERED}; timeout {MEMORY}s; }}"
        );
    }
    for chain in ["from_hosts", "from_link", "zone_of_hosts"] {
        let _ = writeln!(text, "add chain inet {t} {chain}");
    }
    for counter in COUNTERS {
        let _ = writeln!(text, "add counter inet {t} {counter}");
    }
    let own = own_interface(config);
    let _ = writeln!(
        text,
        "add chain inet {t} zone_in {{ type filter hook prerouting priority raw; policy accept; }}\n\
         add chain inet {t} zone_out {{ type filter hook output priority raw; policy accept; }}"
    );
    text += &zones(t, lans, &own);
    let _ = writeln!(
        text,
        "add chain inet {t} arrive {{ type filter hook prerouting priority mangle; policy accept; }}"
    );
    let rule = |text: &mut String, words: &str| {
        let _ = writeln!(text, "add rule inet {t} arrive {words}");
    };
    // Packets of the gateway's host are forwarded. SYNs enter their connection into the set, and other packets keep it there.
    for (ip, family) in [("ip", 4), ("ip6", 6)] {
        let answers = format!("{ip} daddr . tcp dport . {ip} saddr . tcp sport");
        for which in [SYN.into(), format!("{answers} @ends{family}")] {
            rule(&mut text, &format!("iifname \"{tun}\" {which} update @ends{family} {{ {answers} }}"));
        }
    }
    rule(&mut text, &format!("iifname \"{tun}\" {SYN} fib daddr type unicast counter name {LINK_SENT}"));
    rule(&mut text, &format!("iifname \"{tun}\" accept"));
    // ICMP messages about such a connection are included, since path MTU discovery needs them.
    rule(
        &mut text,
        &format!(
            "iifname {} meta l4proto {{ tcp, icmp, icmpv6 }} socket transparent 1 meta mark set {near:#x} accept",
            names_with(lans, &own)
        ),
    );
    rule(&mut text, "fib daddr type { local, broadcast, multicast, anycast } accept");
    // ICMP errors about packets of TCP: the gateway's host takes those about its connections, and gives back the others. The quoted packet
    // follows the 8 bytes of the ICMP header. Its protocol is in the tenth byte of an IPv4 header, or in the seventh of an IPv6 header.
    for about in [
        "icmp type { destination-unreachable, time-exceeded, parameter-problem } @th,136,8 6",
        "icmpv6 type { destination-unreachable, packet-too-big, time-exceeded, parameter-problem } @th,112,8 6",
    ] {
        rule(&mut text, &format!("iifname {links} {about} meta mark set {far:#x} accept"));
    }
    if config.tests_priority() {
        // The greeting of another gateway may be addressed to a host, since the address of this gateway is not known yet. Probes are addressed
        // to the gateway.
        let port = config.priority_test.port;
        for (ip, family, address) in [("ip", "ipv4", "127.0.0.1"), ("ip6", "ipv6", "[::1]")] {
            rule(
                &mut text,
                &format!(
                    "iifname {links} meta nfproto {family} udp sport {port} udp dport {port} tproxy {ip} to {address}:{port} \
                     meta mark set {near:#x} accept"
                ),
            );
        }
    }
    // The gateway's own connection is intercepted like that of a host, even while connections of hosts are not.
    let (client, server) = (config.slot.client(), config.slot.server());
    rule(
        &mut text,
        &format!(
            "iifname \"{own}\" ip saddr {client} ip daddr {server} {SYN} tproxy ip to 127.0.0.1:{} meta mark set {near:#x} accept",
            ports.v4
        ),
    );
    rule(&mut text, &format!("iifname {hosts} {SYN} jump from_hosts"));
    rule(&mut text, &format!("iifname {links} {SYN} jump from_link"));
    text + &answers(config, t, &links) + &passed(config, t, (hosts, link, &tun))
}

/// The chains behind those of firewalls, which count the packets that have passed firewalls.
fn passed(config: &Config, t: &str, (hosts, link, tun): (&str, &str, &str)) -> String {
    let (near, far) = marks(config);
    format!(
        "add chain inet {t} passed_input {{ type filter hook input priority {LAST}; policy accept; }}\n\
         add chain inet {t} passed_forward {{ type filter hook forward priority {LAST}; policy accept; }}\n\
         add rule inet {t} passed_input iifname {hosts} meta mark {near:#x} {SYN} fib daddr oifname \"{link}\" counter name {HOSTS_REACHED}\n\
         add rule inet {t} passed_forward iifname \"{tun}\" oifname \"{link}\" {SYN} counter name {LINK_LEFT}\n\
         add rule inet {t} passed_forward iifname \"{tun}\" oifname != \"{link}\" {SYN} counter name {LINK_ASTRAY}\n\
         add rule inet {t} passed_forward oifname \"{tun}\" meta mark {far:#x} counter name {LINK_REACHED}\n"
    )
}

/// The rules that track connections between hosts and the kernel's sockets in a zone of their own.
fn zones(t: &str, lans: &[String], own: &str) -> String {
    let (hosts, all) = (names(lans), names_with(lans, own));
    format!(
        "add rule inet {t} zone_in iifname {all} meta l4proto {{ tcp, icmp, icmpv6 }} socket transparent 1 ct zone set {ZONE} \
         accept\n\
         add rule inet {t} zone_in iifname {hosts} {SYN} fib daddr type {{ local, broadcast, multicast, anycast }} accept\n\
         add rule inet {t} zone_in iifname {hosts} {SYN} jump zone_of_hosts\n\
         add rule inet {t} zone_in iifname \"{own}\" {SYN} ct zone set {ZONE}\n\
         add rule inet {t} zone_out meta mark {SOCKET_MARK:#x} ct zone set {ZONE}\n"
    )
}

/// The commands that remove the gateway's rules for connection tracking. Unless rules of others need it, the kernel then tracks nothing.
#[must_use]
pub(crate) fn untracked(config: &Config) -> String {
    if config.intercepted().is_none() {
        return String::new();
    }
    let t = table(config);
    ["zone_in", "zone_out", "zone_of_hosts"].map(|chain| format!("flush chain inet {t} {chain}\n")).concat()
}
/// The commands that restore the rules for connection tracking, except those that [`admission`] adds.
#[must_use]
pub(crate) fn tracked(config: &Config) -> String {
    let Some(terrestrial) = config.intercepted() else { return String::new() };
    untracked(config) + &zones(&table(config), &terrestrial.interfaces, &own_interface(config))
}

/// The chain that leads packets of connections over the link to the gateway's host. It comes after translations of addresses: where the
/// addresses of hosts are hidden behind that of this machine, answers are addressed to hosts only after the translation.
fn answers(config: &Config, t: &str, links: &str) -> String {
    let (_, far) = marks(config);
    let mut text = format!(
        "add chain inet {t} answers {{ type filter hook prerouting priority dstnat + 10; policy accept; }}\n"
    );
    for (ip, family) in [("ip", 4), ("ip6", 6)] {
        let ends = format!("{ip} saddr . tcp sport . {ip} daddr . tcp dport");
        let _ = writeln!(
            text,
            "add rule inet {t} answers iifname {links} {ends} @ends{family} update @ends{family} {{ {ends} }} counter name \
             {LINK_TAKEN} meta mark set {far:#x} accept"
        );
    }
    text
}

/// Rules for forwarded ports, which translate the address of the gateway's host. If the gateway had to enable forwarding (`enabled`),
/// nothing else that arrives from the link is forwarded.
fn translation(config: &Config, table: &str, enabled: bool) -> String {
    if !config.forwards_ports() {
        return String::new();
    }
    let (link, tun) = (&config.satellite.interface, config.interface());
    let own = config.slot.host_address();
    let mut text = format!(
        "add chain inet {table} to_us {{ type nat hook prerouting priority dstnat; policy accept; }}\n\
         add chain inet {table} from_us {{ type nat hook postrouting priority srcnat; policy accept; }}\n\
         add rule inet {table} from_us iifname \"{tun}\" oifname \"{link}\" ip saddr {own} masquerade\n"
    );
    if let Some(ports) = published(config) {
        let _ = writeln!(
            text,
            "add rule inet {table} to_us iifname \"{link}\" fib daddr type local tcp dport {ports} dnat ip to {own}"
        );
    }
    // Others cannot reach the address of the gateway's host directly.
    let _ = writeln!(
        text,
        "add chain inet {table} through {{ type filter hook forward priority filter; policy accept; }}\n\
         add rule inet {table} through oifname \"{tun}\" ip daddr {own} ct state new ct status & dnat == 0 drop"
    );
    if enabled {
        let _ = writeln!(text, "add rule inet {table} through iifname \"{link}\" oifname != \"{tun}\" drop");
    }
    text
}

/// The published ports as a set of nftables; `None` without any.
fn published(config: &Config) -> Option<String> {
    let ports: Vec<_> = config.publish.iter().map(|p| p.port.to_string()).collect();
    (!ports.is_empty()).then(|| format!("{{ {} }}", ports.join(", ")))
}

/// The routing rules and routes as `ip` commands, for people to read.
#[must_use]
pub fn routing(config: &Config) -> String {
    let mut text = String::new();
    if config.repair.is_some() {
        let (mark, table, out) = (REPAIR_MARK, REPAIR_TABLE, config.repair_interface());
        for ip in ["ip", "ip -6"] {
            let _ = writeln!(
                text,
                "{ip} rule add priority {PRIORITY} fwmark {mark:#x} lookup {table}\n{ip} route add default dev {out} table {table}"
            );
        }
    }
    if config.intercepted().is_none() {
        return text;
    }
    for ip in ["ip", "ip -6"] {
        let any = if ip == "ip" { "0.0.0.0/0" } else { "::/0" };
        let (near, far) = marks(config);
        for (route, mark, table) in [
            (format!("local {any} dev lo"), near, NEAR_TABLE),
            (format!("{any} dev {}", config.interface()), far, config.slot.far_table()),
        ] {
            let _ = writeln!(
                text,
                "{ip} rule add priority {PRIORITY} fwmark {mark:#x} lookup {table}\n{ip} route add {route} table {table}"
            );
        }
        if config.on_failure == OnFailure::Block {
            let _ = writeln!(
                text,
                "{ip} route add blackhole {any} metric 65536 table {}",
                config.slot.far_table()
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(more: &str) -> Config {
        let text = format!("[terrestrial]\ninterface = \"lan0\"\n[satellite]\ninterface = \"sat0\"\n{more}");
        Config::parse("g.toml", &text).unwrap()
    }

    #[test]
    fn only_a_syn_between_the_named_networks_is_taken() {
        let c =
            config("networks = [\"192.0.2.0/24\"]\n[split]\nports = [80, 443]\nexclude = [\"192.0.2.9/32\"]");
        let text = admission(&c, Ports { v4: 5000, v6: 5001 });
        assert!(!text.contains("ip6"), "no network of IPv6 is behind the link: {text}");
        let first = text.lines().find(|l| l.contains("from_hosts")).unwrap();
        for part in [
            "ip saddr { 0.0.0.0/0 } ip daddr { 192.0.2.0/24 }",
            "ip daddr != { 192.0.2.9/32 }",
            "tcp dport { 80, 443 }",
            "tcp dport != { 179 }",
            "fib daddr oifname \"sat0\"",
            "tproxy ip to 127.0.0.1:5000",
        ] {
            assert!(first.contains(part), "{first}");
        }
        assert!(!text.contains("drop"));
        let mut block = c;
        block.on_failure = OnFailure::Block;
        assert!(admission(&block, Ports { v4: 1, v6: 2 }).contains("drop"));
    }

    #[test]
    fn rules_name_all_interfaces_of_hosts() {
        let text = "[terrestrial]\ninterfaces = [\"eth0.100\", \"eth0.101\"]\n[satellite]\ninterface = \"eth1.200\"\n";
        let mut c = Config::parse("g.toml", text).unwrap();
        let all_of = |c: &Config| all(c, Ports { v4: 5000, v6: 5001 }, false);
        let text = all_of(&c);
        let lans = "{ \"eth0.100\", \"eth0.101\" }";
        for rule in [
            format!("arrive iifname {lans} tcp flags & (fin|syn|rst|ack) == syn jump from_hosts"),
            "arrive iifname { \"eth0.100\", \"eth0.101\", \"skt-gateway\" } meta l4proto".into(),
            format!("zone_in iifname {lans} tcp flags & (fin|syn|rst|ack) == syn jump zone_of_hosts"),
            format!("passed_input iifname {lans} meta mark 0x53480001"),
        ] {
            assert!(text.contains(&rule), "{rule} in {text}");
        }
        let to_hosts = format!("fib daddr oifname {lans} update @ends");
        assert_eq!(text.matches(&to_hosts).count(), 2, "both families: {text}");
        // A gateway of another slot has a mark, a table and a client of its own, and shares those of the kernel's sockets.
        c.slot = crate::slot::Slot::all().nth(1).unwrap();
        let other = all_of(&c) + &routing(&c);
        assert!(
            !other.contains("0x53480002 ") && other.contains("meta mark set 0x53480012 accept"),
            "{other}"
        );
        assert!(other.contains("ip saddr 192.0.0.245 ip daddr 192.0.0.246"), "{other}");
        assert!(
            other.contains("fwmark 0x53480012 lookup 21331")
                && other.contains("fwmark 0x53480001 lookup 21320")
        );
    }

    #[test]
    fn a_shadow_intercepts_nothing() {
        let c = config("[evidence]\nmode = \"shadow\"\n");
        let text = all(&c, Ports { v4: 5000, v6: 5001 }, false) + &closed(&c) + &routing(&c);
        assert_eq!(text, "create table inet skyhaul_gateway\n");
        let half = config("[evidence]\nmode = \"ab\"\nfraction = 0.25\nseed = 7\n");
        let text = admission(&half, Ports { v4: 5000, v6: 5001 });
        let condition = "jhash ip saddr . ip daddr . tcp sport . tcp dport mod 1000 seed 0x7 < 250";
        assert!(text.lines().next().unwrap().contains(condition), "{text}");
        assert_eq!(text.matches("jhash").count(), 6, "both ways and the zone, both families");
        let other = config("[evidence]\nmode = \"ab\"\n[evidence.other]\ncc = \"bbr\"\n");
        assert!(!admission(&other, Ports { v4: 5000, v6: 5001 }).contains("jhash"), "both arms are split");
    }

    #[test]
    fn listeners_are_known_by_address_and_port() {
        let at = |text: &str| Ports { v4: 5000, v6: 5001 }.are_of(text.parse().unwrap());
        assert!(at("127.0.0.1:5000") && at("[::1]:5001"));
        for other in ["127.0.0.1:5001", "[::1]:5000", "192.0.2.1:5000", "[2001:db8::1]:5001"] {
            assert!(!at(other), "{other}");
        }
    }

    #[test]
    fn what_is_marked_for_repair_is_not_ours_and_leaves_by_the_link() {
        let with = "rate = \"1 Mbit/s\"\n[repair]\npeer = \"192.0.2.1\"\nkey = \"0123456789abcdef0123456789abcdef\"\n";
        let c = config(&format!("{with}pass = {{ ports = [53, \"60-70\"], networks = [\"10.0.0.0/8\"] }}\n"));
        let text = all(&c, Ports { v4: 5000, v6: 5001 }, false);
        let lines: Vec<&str> =
            text.lines().filter(|l| l.contains("inet skyhaul_gateway repaired ")).collect();
        let at = |part: &str| {
            lines.iter().position(|l| l.contains(part)).unwrap_or_else(|| panic!("{part} in {text}"))
        };
        let marks = at("fib daddr oifname \"sat0\" counter name to_repair meta mark set 0x53480003");
        for first in [
            "iifname { \"sat0\", \"sky-gateway\", \"skt-gateway\", \"skr-gateway\" } accept",
            "meta mark != 0 accept",
            "ip dscp 1 accept",
            "ip saddr { 10.0.0.0/8 } accept",
            "th dport { 53, 60-70 } accept",
        ] {
            assert!(at(first) < marks, "{first}");
        }
        // Packets that come through the other gateway are packets from the link.
        assert!(text.contains("answers iifname { \"sat0\", \"skr-gateway\" } ip saddr"), "{text}");
        assert!(routing(&c).contains("fwmark 0x53480003 lookup 21322"));
        assert!(!all(&config(""), Ports { v4: 1, v6: 2 }, false).contains("repair"));
    }

    #[test]
    fn the_table_is_ours_alone() {
        let text = all(&config(""), Ports { v4: 5000, v6: 5001 }, false);
        assert!(text.starts_with("create table inet skyhaul_gateway\n"));
        assert!(text.lines().all(|l| l.contains("inet skyhaul_gateway")), "{text}");
        let new = text.lines().filter(|l| l.contains("jump"));
        assert!(
            new.clone().count() == 3
                && new.clone().all(|l| l.contains("tcp flags & (fin|syn|rst|ack) == syn"))
        );
    }
}

//! Whether packets take the way through the gateway's two interfaces, in both directions, and pass the source check.

use super::{Finding, finding};
use crate::config::{Config, Network, Terrestrial};
use crate::network::own_addresses;
use skyhaul_net::routing::{Route, route_to};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Checks the routes of the kernel, with an address of each side as an example.
pub(super) fn examine(config: &Config) -> Vec<Finding> {
    let Some(terrestrial) = &config.terrestrial else { return link_alone(config) };
    let own = own_addresses().unwrap_or_default();
    let mut all: Vec<Finding> = Vec::new();
    for lan in &terrestrial.interfaces {
        for f in through(config, terrestrial, lan, &own) {
            // What concerns the link alone is the same for all interfaces of hosts.
            if !all.contains(&f) {
                all.push(f);
            }
        }
    }
    all
}

/// Checks the routes between an interface of hosts and the link.
fn through(config: &Config, terrestrial: &Terrestrial, lan: &str, own: &[IpAddr]) -> Vec<Finding> {
    let index = |name: &str| nix::net::if_::if_nametoindex(name).ok();
    let sat = config.satellite.interface.as_str();
    // A missing interface is a finding of its own.
    let (Some(lan_index), Some(sat_index)) = (index(lan), index(sat)) else { return Vec::new() };
    let mut all = Vec::new();
    for v6 in [false, true] {
        if v6 && !skyhaul_net::ipv6::is_on() {
            continue;
        }
        let host = match &terrestrial.interfaces[..] {
            [_] => sample(&terrestrial.networks, lan, v6, own),
            _ => sample_at(&terrestrial.networks, lan, v6, own),
        };
        let server = sample(&config.satellite.networks, sat, v6, own);
        let (host, server) = match (host, server) {
            (Sample::At(host), Sample::At(server)) => (host, server),
            (Sample::None, _) | (_, Sample::None) => continue,
            (a, b) => {
                let family = if v6 { "IPv6" } else { "IPv4" };
                // "All networks" of the file include those of IPv6, even where IPv6 is not in use.
                for name in [(a, lan), (b, sat)]
                    .into_iter()
                    .filter(|(s, _)| *s == Sample::NoRoute && !v6)
                    .map(|(_, n)| n)
                {
                    all.push(finding(
                        format!("routes over {name}"),
                        false,
                        format!(
                            "no {family} route to a network of the file leads over {name}, so nothing is sent there: ip route add NETWORK \
                             dev {name}"
                        ),
                    ));
                }
                continue;
            }
        };
        for (what, to, from, out) in [
            (format!("way from {host} to {server}"), server, (host, (lan, lan_index)), (sat, sat_index)),
            (format!("way back to {host}"), host, (server, (sat, sat_index)), (lan, lan_index)),
        ] {
            all.push(judge(what, route_to(to, Some((from.0, from.1.1))), to, (from.0, from.1.0), out));
        }
    }
    all
}

/// The routes to the servers of forwarded ports, which must lead over the link, for a gateway without a terrestrial interface.
fn link_alone(config: &Config) -> Vec<Finding> {
    let sat = &config.satellite.interface;
    let Ok(index) = nix::net::if_::if_nametoindex(sat.as_str()) else { return Vec::new() };
    let mut all = Vec::new();
    for f in &config.forward {
        let to = IpAddr::V4(*f.to.ip());
        all.push(match route_to(to, None) {
            Ok(Route::Out(out)) if out == index => {
                finding(format!("way to {to}"), true, format!("leads over {sat}"))
            }
            other => elsewhere(format!("way to {to}"), other, to, sat),
        });
    }
    all
}

/// What the route means that the kernel has `found` for packets to `to`, which arrive from `from` at the interface `arrives` and must leave
/// through the interface `out`.
fn judge(
    what: String,
    found: Result<Route, skyhaul_net::NetError>,
    to: IpAddr,
    (from, arrives): (IpAddr, &str),
    (out, index): (&str, u32),
) -> Finding {
    match found {
        Ok(Route::Out(i)) if i == index => finding(what, true, format!("leads from {arrives} to {out}")),
        Ok(Route::Martian) => finding(
            what,
            false,
            format!(
                "packets from {from} that arrive at {arrives} are dropped by the source check, since the way back to it leads \
                 elsewhere: correct the route to {from}, or sysctl -w {} and the same for all",
                loose(arrives)
            ),
        ),
        other => elsewhere(what, other, to, out),
    }
}

/// The setting of the loose source check of an interface. In a name with dots, as that of a VLAN, sysctl(8) takes dots for slashes.
fn loose(interface: &str) -> String {
    if interface.contains('.') {
        format!("net/ipv4/conf/{interface}/rp_filter=2")
    } else {
        format!("net.ipv4.conf.{interface}.rp_filter=2")
    }
}

/// The finding about a route that does not lead through the interface `out`.
fn elsewhere(what: String, found: Result<Route, skyhaul_net::NetError>, to: IpAddr, out: &str) -> Finding {
    let message = match found {
        Ok(Route::Out(i)) => {
            let name = nix::net::if_::if_indextoname(i).map(|n| n.to_string_lossy().into_owned());
            let name = name.unwrap_or_else(|_| format!("interface {i}"));
            format!(
                "leads over {name} instead of {out}: correct the route to {to}, or the interface in the file"
            )
        }
        Ok(Route::Here) => format!("{to} is an address of this machine: its connections are never split"),
        Ok(Route::None | Route::Martian) => {
            format!("there is no route to {to}, or forwarding is off: ip route add NETWORK dev {out}")
        }
        Err(e) => e.to_string(),
    };
    finding(what, false, message)
}

/// An address as an example of the networks of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sample {
    At(IpAddr),
    /// The file means all networks, but no route leads over the interface.
    NoRoute,
    /// The file names no network of this family.
    None,
}

/// An example from the networks of this family: from the first one, or, if that stands for all networks, from the routes over the interface.
fn sample(networks: &[Network], interface: &str, v6: bool, own: &[IpAddr]) -> Sample {
    let mut of = networks.iter().filter(|n| n.address.is_ipv6() == v6);
    let Some(first) = of.next() else { return Sample::None };
    if first.prefix > 0 {
        return Sample::At(example(first, own));
    }
    // The most specific route: one for everything says nothing about who is there.
    let found = routes(interface, v6).into_iter().max_by_key(|n| n.prefix);
    found.map_or(Sample::NoRoute, |n| Sample::At(example(&n, own)))
}

/// An example from the networks of this family to which routes over one of several interfaces lead.
fn sample_at(networks: &[Network], interface: &str, v6: bool, own: &[IpAddr]) -> Sample {
    let of: Vec<_> = networks.iter().filter(|n| n.address.is_ipv6() == v6).collect();
    if of.is_empty() {
        return Sample::None;
    }
    let all = routes(interface, v6);
    let common = all.iter().flat_map(|route| of.iter().filter_map(move |n| overlap(**n, *route)));
    common.max_by_key(|n| n.prefix).map_or(Sample::NoRoute, |n| Sample::At(example(&n, own)))
}

/// The smaller one of two networks of which one contains the other.
fn overlap(a: Network, b: Network) -> Option<Network> {
    if a.covers(&b) {
        Some(b)
    } else if b.covers(&a) {
        Some(a)
    } else {
        None
    }
}

/// The networks to which routes over an interface lead.
fn routes(interface: &str, v6: bool) -> Vec<Network> {
    let file = if v6 { "ipv6_route" } else { "route" };
    let text = std::fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default();
    let route = |l| if v6 { route_v6(l, interface) } else { route_v4(l, interface) };
    text.lines().filter_map(route).collect()
}

/// An address of a network that is none of this machine, as far as there is one.
fn example(n: &Network, own: &[IpAddr]) -> IpAddr {
    // The first addresses of all are special (RFC 6890): an address for documentation instead (RFC 5737, RFC 3849).
    if n.prefix == 0 {
        return match n.address {
            IpAddr::V4(_) => Ipv4Addr::new(192, 0, 2, 1).into(),
            IpAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
        };
    }
    let bits = if n.address.is_ipv4() { 32 } else { 128 };
    // In networks of four and more addresses, the first one names the network, and the last one of IPv4 is for broadcasts.
    let offsets: &[u8] = match bits - n.prefix {
        0 => &[0],
        1 => &[0, 1],
        2 => &[2, 1],
        _ => &[3, 2, 1],
    };
    let at = |offset: &u8| -> IpAddr {
        match n.address {
            IpAddr::V4(a) => Ipv4Addr::from_bits(a.to_bits() + u32::from(*offset)).into(),
            IpAddr::V6(a) => Ipv6Addr::from_bits(a.to_bits() + u128::from(*offset)).into(),
        }
    };
    offsets.iter().map(at).find(|a| !own.contains(a)).unwrap_or(n.address)
}

/// A line of /proc/net/route: interface, destination, gateway, flags, ..., mask; numbers in the byte order of the machine.
fn route_v4(line: &str, interface: &str) -> Option<Network> {
    let fields: Vec<_> = line.split_whitespace().collect();
    let number = |at: usize| u32::from_str_radix(fields.get(at)?, 16).ok().map(u32::from_be);
    // RTF_UP is set, RTF_REJECT is not.
    let flags = u32::from_str_radix(fields.get(3)?, 16).ok()?;
    if *fields.first()? != interface || flags & 1 == 0 || flags & 0x200 != 0 {
        return None;
    }
    Some(Network { address: Ipv4Addr::from_bits(number(1)?).into(), prefix: number(7)?.count_ones() as u8 })
}

/// A line of /proc/net/ipv6_route: destination, prefix, ..., flags, interface.
fn route_v6(line: &str, interface: &str) -> Option<Network> {
    let fields: Vec<_> = line.split_whitespace().collect();
    let flags = u32::from_str_radix(fields.get(8)?, 16).ok()?;
    let address = u128::from_str_radix(fields.first()?, 16).ok()?;
    let address = Ipv6Addr::from_bits(address);
    // RTF_UP is set; RTF_REJECT, RTF_LOCAL and RTF_ANYCAST are not. The address is not one that every interface has.
    let everywhere = address.is_unicast_link_local() || address.is_multicast();
    if *fields.get(9)? != interface || flags & 1 == 0 || flags & 0x8010_0200 != 0 || everywhere {
        return None;
    }
    let prefix = u8::from_str_radix(fields.get(1)?, 16).ok()?;
    Some(Network { address: address.into(), prefix })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let line = "sat0\t00000A0A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0";
        let n = route_v4(line, "sat0").unwrap();
        assert_eq!(n.to_string(), "10.10.0.0/24");
        assert_eq!(example(&n, &[]).to_string(), "10.10.0.3");
        assert_eq!(route_v4(line, "lan0"), None);
        assert_eq!(route_v4("Iface\tDestination\tGateway", "sat0"), None);
        let line = "fd020000000000000000000000000000 40 00000000000000000000000000000000 00 \
                    00000000000000000000000000000000 00000400 00000001 00000000 00000001     sat0";
        assert_eq!(route_v6(line, "sat0").unwrap().to_string(), "fd02::/64");
        assert_eq!(route_v6(&line.replace("fd02", "fe80"), "sat0"), None);
    }

    #[test]
    fn of_several_interfaces_each_has_its_own_networks() {
        let net = |text: &str| text.parse::<Network>().unwrap();
        let small = Some(net("10.1.0.0/24"));
        assert_eq!(overlap(net("10.0.0.0/8"), net("10.1.0.0/24")), small);
        assert_eq!(overlap(net("10.1.0.0/24"), net("0.0.0.0/0")), small);
        assert_eq!(overlap(net("10.1.0.0/24"), net("10.2.0.0/24")), None);
        assert_eq!(loose("eth0.100"), "net/ipv4/conf/eth0.100/rp_filter=2");
        assert_eq!(loose("lan0"), "net.ipv4.conf.lan0.rp_filter=2");
    }

    #[test]
    fn an_example_is_a_host_other_than_this_machine() {
        for (network, own, expected) in [
            ("192.0.2.9", "192.0.2.9", "192.0.2.9"),
            ("192.0.2.8/31", "192.0.2.8", "192.0.2.9"),
            ("192.0.2.8/30", "192.0.2.9", "192.0.2.10"),
            ("192.0.2.8/30", "192.0.2.10", "192.0.2.9"),
            ("192.0.2.0/24", "192.0.2.3", "192.0.2.2"),
            ("fd02::/64", "fd02::1", "fd02::3"),
            ("0.0.0.0/0", "192.0.2.3", "192.0.2.1"),
        ] {
            let found = example(&network.parse().unwrap(), &[own.parse().unwrap()]);
            assert_eq!(found.to_string(), expected, "{network}");
        }
    }
}

//! Policy routing in the calling thread's namespace: packets with a mark use a separate table (ip-rule(8)).

use super::netlink::{self, ask, question};
use crate::error::NetError;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NetlinkPayload};
use netlink_packet_route::link::{InfoKind, LinkAttribute, LinkFlags, LinkInfo, LinkMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, protocols::NETLINK_ROUTE};
use nix::errno::Errno;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

/// A rule that packets with a mark use a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkRule {
    /// The full mark, without a mask.
    pub mark: u32,
    /// The number of the table.
    pub table: u32,
    /// Priority of the rule; lower values come first.
    pub priority: u32,
}

/// The single route of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultRoute {
    /// To this machine, whatever the address.
    Here,
    /// Out of the interface with this index.
    Out(u32),
    /// Nowhere: packets are dropped silently if the table has no other route.
    Nowhere,
}

/// The metric of a route that applies only if there is no other.
const LAST: u32 = 65_536;

fn family(v6: bool) -> AddressFamily {
    if v6 { AddressFamily::Inet6 } else { AddressFamily::Inet }
}

fn rule(v6: bool, r: MarkRule) -> RuleMessage {
    let mut m = RuleMessage::default();
    m.header.family = family(v6);
    m.header.action = RuleAction::ToTable;
    m.attributes.push(RuleAttribute::Priority(r.priority));
    m.attributes.push(RuleAttribute::FwMark(r.mark));
    m.attributes.push(RuleAttribute::FwMask(u32::MAX));
    m.attributes.push(RuleAttribute::Table(r.table));
    m
}

/// False if the kernel answers that what was to be added exists.
fn added(asked: Result<(), NetError>) -> Result<bool, NetError> {
    match asked {
        Ok(()) => Ok(true),
        Err(NetError::Os { source, .. }) if source.raw_os_error() == Some(Errno::EEXIST as i32) => Ok(false),
        Err(e) => Err(e),
    }
}

/// Adds a rule; false if it existed.
///
/// # Errors
/// If the kernel refuses it.
pub fn add_rule(v6: bool, r: MarkRule) -> Result<bool, NetError> {
    added(ask("add a routing rule", RouteNetlinkMessage::NewRule(rule(v6, r)), NLM_F_CREATE | NLM_F_EXCL))
}

/// Adds the route of a table; false if the table had a default route of the same metric.
///
/// # Errors
/// If the kernel refuses it.
pub fn add_route(v6: bool, table: u32, default: DefaultRoute) -> Result<bool, NetError> {
    let m = RouteNetlinkMessage::NewRoute(route(v6, table, default));
    added(ask(&format!("add a route to table {table}"), m, NLM_F_CREATE | NLM_F_EXCL))
}

/// Removes a rule; it is no error if there is none.
pub fn remove_rule(v6: bool, r: MarkRule) {
    let _ = ask("remove a routing rule", RouteNetlinkMessage::DelRule(rule(v6, r)), 0);
}

fn route(v6: bool, table: u32, default: DefaultRoute) -> RouteMessage {
    let mut m = RouteMessage::default();
    m.header.address_family = family(v6);
    m.header.table = RouteHeader::RT_TABLE_UNSPEC;
    m.header.protocol = RouteProtocol::Static;
    (m.header.scope, m.header.kind) = match default {
        DefaultRoute::Here => (RouteScope::Host, RouteType::Local),
        DefaultRoute::Out(_) => (RouteScope::Link, RouteType::Unicast),
        DefaultRoute::Nowhere => (RouteScope::Universe, RouteType::BlackHole),
    };
    m.attributes.push(RouteAttribute::Table(table));
    m.attributes.push(match default {
        // Loopback is the first interface of every namespace.
        DefaultRoute::Here => RouteAttribute::Oif(1),
        DefaultRoute::Out(index) => RouteAttribute::Oif(index),
        DefaultRoute::Nowhere => RouteAttribute::Priority(LAST),
    });
    m
}

/// Sets the route of a table for all packets. [`DefaultRoute::Out`] replaces no other route, the others do.
///
/// # Errors
/// If the kernel refuses it, or, for [`DefaultRoute::Out`], if the table has a default route of the same metric.
pub fn set_route(v6: bool, table: u32, default: DefaultRoute) -> Result<(), NetError> {
    let m = RouteNetlinkMessage::NewRoute(route(v6, table, default));
    let how = if matches!(default, DefaultRoute::Out(_)) { NLM_F_EXCL } else { NLM_F_REPLACE };
    ask(&format!("add a route to table {table}"), m, NLM_F_CREATE | how)
}

/// Removes the route of a table; it is no error if there is none.
pub fn remove_route(v6: bool, table: u32, default: DefaultRoute) {
    let m = RouteNetlinkMessage::DelRoute(route(v6, table, default));
    let _ = ask("remove a route", m, 0);
}

/// The addresses of neighbours whose link-layer addresses the kernel knows, on the interface with this index in the calling
/// thread's namespace.
///
/// # Errors
/// If the kernel does not answer.
pub fn neighbours(interface: u32, v6: bool) -> Result<Vec<IpAddr>, NetError> {
    netlink::neighbours(interface, v6)
}

/// The state of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// It has been set up (IFF_UP).
    pub up: bool,
    /// The VRF to which it belongs.
    pub vrf: Option<String>,
}

/// The state of an interface of the calling thread's namespace.
///
/// # Errors
/// If there is none of this name, or the kernel does not answer.
pub fn link(interface: &str) -> Result<Link, NetError> {
    let none = || NetError::NoInterface(interface.to_owned());
    let ask = |index| {
        let mut m = LinkMessage::default();
        m.header.index = index;
        let what = "ask the kernel for an interface";
        match question(what, RouteNetlinkMessage::GetLink(m), 0)? {
            NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(m)) => Ok(m),
            NetlinkPayload::Error(e) => Err(NetError::os(what, e.to_io())),
            _ => Err(none()),
        }
    };
    let own = ask(nix::net::if_::if_nametoindex(interface).map_err(|_| none())?)?;
    let up = own.header.flags.contains(LinkFlags::Up);
    let controller = own.attributes.iter().find_map(|a| match a {
        LinkAttribute::Controller(index) => Some(*index),
        _ => None,
    });
    let Some(controller) = controller else { return Ok(Link { up, vrf: None }) };
    let controller = ask(controller)?.attributes;
    let is_vrf = controller.iter().any(|a| match a {
        LinkAttribute::LinkInfo(all) => all.contains(&LinkInfo::Kind(InfoKind::Vrf)),
        _ => false,
    });
    let vrf = controller.iter().filter(|_| is_vrf).find_map(|a| match a {
        LinkAttribute::IfName(name) => Some(name.clone()),
        _ => None,
    });
    Ok(Link { up, vrf })
}

/// The groups of notices of links, addresses, routes and routing rules: RTNLGRP_LINK, _IPV4_IFADDR, _IPV4_ROUTE, _IPV4_RULE, _IPV6_IFADDR,
/// _IPV6_ROUTE and _IPV6_RULE (linux/rtnetlink.h).
const GROUPS: [u32; 7] = [1, 5, 7, 8, 9, 11, 19];

/// Notices of changes to links, addresses, routes and routing rules (rtnetlink(7)).
#[derive(Debug)]
pub struct Changes(Socket);

impl Changes {
    /// Notices of changes in the calling thread's namespace, from now on.
    ///
    /// # Errors
    /// If the kernel refuses the socket.
    pub fn new() -> Result<Self, NetError> {
        let socket = netlink::notices(NETLINK_ROUTE, &GROUPS);
        socket.map(Self).map_err(|e| NetError::os("follow changes to routes and interfaces", e))
    }

    /// Whether something has changed since the last call. If the kernel has dropped notices, a change is assumed.
    pub fn take(&mut self) -> bool {
        let mut any = false;
        let dropped = netlink::drain(&self.0, |_| any = true);
        any || dropped
    }
}

impl AsFd for Changes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// What the kernel does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// It leaves through the interface with this index.
    Out(u32),
    /// It is for this machine.
    Here,
    /// There is no route for it, or one that leads nowhere.
    None,
    /// The source check refuses it (rp_filter, RFC 3704): the route to its sender leads through another interface.
    Martian,
}

/// What the kernel does with a packet to this address, in the calling thread's namespace. With `arrived`, the packet comes
/// from another machine, with this source address, through the interface with this index; otherwise this machine sends it.
///
/// # Errors
/// If the kernel does not answer.
pub fn route_to(to: IpAddr, arrived: Option<(IpAddr, u32)>) -> Result<Route, NetError> {
    let address = |a: IpAddr| match a {
        IpAddr::V4(a) => RouteAddress::Inet(a),
        IpAddr::V6(a) => RouteAddress::Inet6(a),
    };
    let bits = if to.is_ipv4() { 32 } else { 128 };
    let mut m = RouteMessage::default();
    m.header.address_family = family(to.is_ipv6());
    m.header.destination_prefix_length = bits;
    m.attributes.push(RouteAttribute::Destination(address(to)));
    if let Some((from, interface)) = arrived {
        m.header.source_prefix_length = bits;
        m.attributes.push(RouteAttribute::Source(address(from)));
        m.attributes.push(RouteAttribute::Iif(interface));
    }
    let what = "ask the kernel for a route";
    match question(what, RouteNetlinkMessage::GetRoute(m), 0)? {
        NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewRoute(r)) => Ok(match r.header.kind {
            RouteType::Local | RouteType::Broadcast | RouteType::Anycast | RouteType::Multicast => {
                Route::Here
            }
            RouteType::Unicast => {
                let out = r
                    .attributes
                    .iter()
                    .find_map(|a| if let RouteAttribute::Oif(i) = a { Some(*i) } else { None });
                out.map_or(Route::None, Route::Out)
            }
            _ => Route::None,
        }),
        NetlinkPayload::Error(e) => match e.to_io().raw_os_error().map(Errno::from_raw) {
            Some(Errno::EXDEV) => Ok(Route::Martian),
            // fib_validate_source refuses what cannot be a source at all.
            Some(Errno::EINVAL) if arrived.is_some() => Ok(Route::Martian),
            Some(Errno::ENETUNREACH | Errno::EHOSTUNREACH | Errno::EACCES | Errno::EINVAL) => Ok(Route::None),
            _ => Err(NetError::os(what, e.to_io())),
        },
        _ => Ok(Route::None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Namespace;
    use skyhaul_testkit::need::granted;
    use std::net::Ipv4Addr;

    #[test]
    fn only_a_vrf_is_reported_as_one() {
        let Some(ns) = granted(Namespace::new()) else { return };
        let ip = |line: &str| {
            std::process::Command::new("ip").args(line.split(' ')).status().is_ok_and(|s| s.success())
        };
        let inside = || {
            assert_eq!(link("lo").expect("is there"), Link { up: true, vrf: None });
            link("none").expect_err("is not there");
            for (kind, vrf) in [("bridge", None), ("vrf table 7", Some("up0".to_owned()))] {
                // Not every kernel has them.
                if ip(&format!("link add up0 type {kind}")) && ip("link add low0 type veth peer name low1") {
                    assert!(ip("link set low0 master up0"));
                    assert_eq!(link("low0").expect("is there"), Link { up: false, vrf });
                    assert!(ip("link del low0") && ip("link del up0"));
                }
            }
        };
        ns.within(inside).expect("enters");
    }

    #[test]
    fn every_kind_of_change_is_reported() {
        let Some(ns) = granted(Namespace::new()) else { return };
        let inside = || {
            let mut changes = Changes::new().expect("may");
            assert!(!changes.take());
            let rule = MarkRule { mark: 7, table: 77, priority: 777 };
            let told = |what: &str, changes: &mut Changes| assert!(changes.take(), "{what}");
            for v6 in [false, true] {
                add_rule(v6, rule).expect("may");
                told("a rule", &mut changes);
                set_route(v6, 77, DefaultRoute::Here).expect("may");
                told("a route", &mut changes);
                remove_route(v6, 77, DefaultRoute::Here);
                told("its removal", &mut changes);
                remove_rule(v6, rule);
                told("that of the rule", &mut changes);
            }
            netlink::add_address(1, Ipv4Addr::new(192, 0, 2, 1).into(), 32).expect("may");
            told("an address", &mut changes);
            netlink::set_queue(1, 77).expect("may");
            told("a link", &mut changes);
            // A question is no change.
            route_to(Ipv4Addr::new(192, 0, 2, 9).into(), None).expect("is answered");
            assert!(!changes.take());
        };
        ns.within(inside).expect("enters");
    }
}

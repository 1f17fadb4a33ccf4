//! Policy routing in the calling thread's namespace: packets with a mark use a separate table (ip-rule(8)).

use super::netlink::{self, ask, question};
use crate::error::NetError;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NetlinkPayload};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use nix::errno::Errno;
use std::net::IpAddr;

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

/// Whether something was added that was missing; what existed stays.
fn added(asked: Result<(), NetError>) -> Result<bool, NetError> {
    match asked {
        Ok(()) => Ok(true),
        Err(NetError::Os { source, .. }) if source.raw_os_error() == Some(Errno::EEXIST as i32) => Ok(false),
        Err(e) => Err(e),
    }
}

/// Adds a rule; false: it existed.
///
/// # Errors
/// If the kernel refuses it.
pub fn add_rule(v6: bool, r: MarkRule) -> Result<bool, NetError> {
    added(ask("add a routing rule", RouteNetlinkMessage::NewRule(rule(v6, r)), NLM_F_CREATE | NLM_F_EXCL))
}

/// Adds the route of a table; false: it existed.
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

/// Sets the route of a table for all packets. If the table has another route out of an interface, this fails.
///
/// # Errors
/// If the kernel refuses it.
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

/// The addresses of machines that the kernel has reached through the interface with this index, in the calling thread's namespace.
///
/// # Errors
/// If the kernel does not answer.
pub fn neighbours(interface: u32, v6: bool) -> Result<Vec<IpAddr>, NetError> {
    netlink::neighbours(interface, v6)
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

/// What the kernel does with a packet to this address, in the calling thread's namespace. `arrived`: the packet comes from
/// another machine, with this source address, through the interface with this index; otherwise it is one of our own.
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

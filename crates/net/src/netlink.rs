//! The two things that are said to the kernel by rtnetlink: an interface goes up, and a route is added.

use crate::error::NetError;
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::link::{LinkFlags, LinkMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::io;
use std::net::IpAddr;

/// Sends a request and waits for what the kernel makes of it.
fn ask(what: &str, request: RouteNetlinkMessage, flags: u16) -> Result<(), NetError> {
    let fail = |e: io::Error| NetError::os(what, e);
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::from(request));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    let mut socket = Socket::new(NETLINK_ROUTE).map_err(fail)?;
    socket.bind_auto().map_err(fail)?;
    socket.connect(&SocketAddr::new(0, 0)).map_err(fail)?;
    socket.send(&bytes, 0).map_err(fail)?;
    let (answer, _) = socket.recv_from_full().map_err(fail)?;
    let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer)
        .map_err(|e| fail(io::Error::other(e.to_string())))?;
    match answer.payload {
        NetlinkPayload::Error(e) if e.code.is_some() => Err(fail(e.to_io())),
        _ => Ok(()),
    }
}

/// Takes an interface of the calling thread's namespace up.
pub(crate) fn link_up(index: u32) -> Result<(), NetError> {
    let mut m = LinkMessage::default();
    m.header.index = index;
    m.header.flags = LinkFlags::Up;
    m.header.change_mask = LinkFlags::Up;
    ask("take an interface up", RouteNetlinkMessage::SetLink(m), 0)
}

/// Adds a route in the calling thread's namespace.
pub(crate) fn add_route(
    (network, prefix): (IpAddr, u8),
    interface: u32,
    via: Option<IpAddr>,
) -> Result<(), NetError> {
    let address = |a: IpAddr| match a {
        IpAddr::V4(a) => RouteAddress::Inet(a),
        IpAddr::V6(a) => RouteAddress::Inet6(a),
    };
    let mut m = RouteMessage::default();
    m.header.address_family = if network.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    m.header.destination_prefix_length = prefix;
    m.header.table = RouteHeader::RT_TABLE_MAIN;
    m.header.protocol = RouteProtocol::Static;
    m.header.scope = if via.is_some() { RouteScope::Universe } else { RouteScope::Link };
    m.header.kind = RouteType::Unicast;
    if prefix > 0 {
        m.attributes.push(RouteAttribute::Destination(address(network)));
    }
    if let Some(via) = via {
        m.attributes.push(RouteAttribute::Gateway(address(via)));
    }
    m.attributes.push(RouteAttribute::Oif(interface));
    let what = format!("add a route to {network}/{prefix}");
    ask(&what, RouteNetlinkMessage::NewRoute(m), NLM_F_CREATE | NLM_F_REPLACE)
}

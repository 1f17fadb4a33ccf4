//! Requests to the kernel over netlink: bring an interface up, set its queue length, add an address or a route, list
//! connections and neighbours.

use crate::error::NetError;
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkDeserializable,
    NetlinkHeader, NetlinkMessage, NetlinkPayload, NetlinkSerializable,
};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE, protocols::NETLINK_SOCK_DIAG};
use nix::errno::Errno;
use std::io;
use std::net::IpAddr;

/// Sends a request and waits until the kernel has carried it out.
pub(super) fn ask(what: &str, request: RouteNetlinkMessage, flags: u16) -> Result<(), NetError> {
    let v6 = match &request {
        RouteNetlinkMessage::NewRoute(m) => m.header.address_family == AddressFamily::Inet6,
        RouteNetlinkMessage::NewRule(m) => m.header.family == AddressFamily::Inet6,
        RouteNetlinkMessage::NewAddress(m) => m.header.family == AddressFamily::Inet6,
        _ => false,
    };
    match question(what, request, NLM_F_ACK | flags)? {
        NetlinkPayload::Error(e) if e.code.is_some() => Err(NetError::of_family(v6, what, e.to_io())),
        _ => Ok(()),
    }
}

/// Sends a request and returns the kernel's answer.
pub(super) fn question(
    what: &str,
    request: RouteNetlinkMessage,
    flags: u16,
) -> Result<NetlinkPayload<RouteNetlinkMessage>, NetError> {
    let fail = |e: io::Error| NetError::os(what, e);
    let socket = kernel(NETLINK_ROUTE).map_err(fail)?;
    send(&socket, request, flags).map_err(fail)?;
    let answer = receive(&socket).map_err(fail)?;
    let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer)
        .map_err(|e| fail(io::Error::other(e.to_string())))?;
    Ok(answer.payload)
}

/// A socket for questions to the kernel, in the calling thread's namespace.
pub(super) fn kernel(protocol: isize) -> io::Result<Socket> {
    let mut socket = Socket::new(protocol)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    Ok(socket)
}

/// Sends a request with these flags besides NLM_F_REQUEST.
pub(super) fn send<M: NetlinkSerializable>(socket: &Socket, request: M, flags: u16) -> io::Result<()> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | flags;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(request));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    socket.send(&bytes, 0).map(drop)
}

/// The next datagram from the kernel. Waits again after a signal: an unread answer would be taken for the answer to the next
/// question.
pub(super) fn receive(socket: &Socket) -> io::Result<Vec<u8>> {
    loop {
        match socket.recv_from_full() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            received => return received.map(|(datagram, _)| datagram),
        }
    }
}

/// A socket that gets the kernel's notices of these groups in the calling thread's namespace, from now on.
pub(super) fn notices(protocol: isize, groups: &[u32]) -> io::Result<Socket> {
    let mut socket = Socket::new(protocol)?;
    socket.bind(&SocketAddr::new(0, 0))?;
    groups.iter().try_for_each(|group| socket.add_membership(*group))?;
    socket.set_non_blocking(true)?;
    Ok(socket)
}

/// Calls `each` with every datagram that has arrived. True if the kernel has dropped some, since they did not fit.
pub(super) fn drain(socket: &Socket, mut each: impl FnMut(&[u8])) -> bool {
    let mut dropped = false;
    loop {
        match socket.recv_from_full() {
            Ok((datagram, _)) => each(&datagram),
            Err(e) if e.raw_os_error() == Some(Errno::ENOBUFS as i32) => dropped = true,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return dropped,
        }
    }
}

/// Brings up an interface in the calling thread's namespace.
pub(crate) fn link_up(index: u32) -> Result<(), NetError> {
    let mut m = LinkMessage::default();
    m.header.index = index;
    m.header.flags = LinkFlags::Up;
    m.header.change_mask = LinkFlags::Up;
    ask("bring an interface up", RouteNetlinkMessage::SetLink(m), 0)
}

/// Sets the queue length in packets of an interface in the calling thread's namespace.
pub(crate) fn set_queue(index: u32, packets: u32) -> Result<(), NetError> {
    let mut m = LinkMessage::default();
    m.header.index = index;
    m.attributes.push(LinkAttribute::TxQueueLen(packets));
    ask("set the queue length of an interface", RouteNetlinkMessage::SetLink(m), 0)
}

/// Gives an interface in the calling thread's namespace an address.
pub(crate) fn add_address(index: u32, address: IpAddr, prefix: u8) -> Result<(), NetError> {
    let mut m = AddressMessage::default();
    m.header.family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    m.header.prefix_len = prefix;
    m.header.index = index;
    m.attributes.extend([AddressAttribute::Local(address), AddressAttribute::Address(address)]);
    let what = format!("give an interface the address {address}");
    ask(&what, RouteNetlinkMessage::NewAddress(m), NLM_F_CREATE | NLM_F_EXCL)
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

/// The kernel's data on one of its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KernelFlow {
    /// Local and remote port.
    pub(crate) ports: (u16, u16),
    /// Congestion window, segments.
    pub(crate) cwnd: u32,
    /// Sequence numbers acknowledged (`tcpi_bytes_acked`): payload, the SYN of an end that has opened the connection, and a
    /// FIN.
    pub(crate) acked: u64,
    /// Segments retransmitted.
    pub(crate) retransmitted: u64,
}

/// The IPv4 connections of the calling thread's namespace (sock_diag).
pub(crate) fn kernel_flows() -> Result<Vec<KernelFlow>, NetError> {
    use netlink_packet_sock_diag::SockDiagMessage;
    use netlink_packet_sock_diag::constants::{AF_INET, IPPROTO_TCP};
    use netlink_packet_sock_diag::inet::nlas::Nla;
    use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, SocketId, StateFlags};
    let request = InetRequest {
        family: AF_INET,
        protocol: IPPROTO_TCP,
        extensions: ExtensionFlags::INFO,
        states: StateFlags::all(),
        socket_id: SocketId::new_v4(),
    };
    let mut found = Vec::new();
    let what = "ask the kernel for its connections";
    dump(what, NETLINK_SOCK_DIAG, SockDiagMessage::InetRequest(request), |m| {
        let SockDiagMessage::InetResponse(r) = m else { return };
        let info = r.nlas.iter().find_map(|n| if let Nla::TcpInfo(i) = n { Some(i) } else { None });
        if let Some(i) = info {
            found.push(KernelFlow {
                ports: (r.header.socket_id.source_port, r.header.socket_id.destination_port),
                cwnd: i.snd_cwnd,
                acked: i.bytes_acked,
                retransmitted: i.total_retrans.into(),
            });
        }
    })?;
    Ok(found)
}

/// The addresses of neighbours on an interface of the calling thread's namespace whose link-layer addresses the kernel knows
/// (ip-neighbour(8)).
pub(super) fn neighbours(interface: u32, v6: bool) -> Result<Vec<IpAddr>, NetError> {
    let mut m = NeighbourMessage::default();
    m.header.family = if v6 { AddressFamily::Inet6 } else { AddressFamily::Inet };
    let mut found = Vec::new();
    let what = "ask the kernel for its neighbours";
    dump(what, NETLINK_ROUTE, RouteNetlinkMessage::GetNeighbour(m), |m| {
        use NeighbourState::{Delay, Permanent, Probe, Reachable, Stale};
        let RouteNetlinkMessage::NewNeighbour(n) = m else { return };
        if n.header.ifindex != interface
            || !matches!(n.header.state, Reachable | Stale | Delay | Probe | Permanent)
        {
            return;
        }
        found.extend(n.attributes.iter().find_map(|a| match a {
            NeighbourAttribute::Destination(NeighbourAddress::Inet(a)) => Some(IpAddr::V4(*a)),
            NeighbourAttribute::Destination(NeighbourAddress::Inet6(a)) => Some(IpAddr::V6(*a)),
            _ => None,
        }));
    })?;
    Ok(found)
}

/// Sends a request for a list and passes its entries to `take`.
fn dump<M: NetlinkSerializable + NetlinkDeserializable>(
    what: &str,
    protocol: isize,
    request: M,
    mut take: impl FnMut(M),
) -> Result<(), NetError> {
    let fail = |e: io::Error| NetError::os(what, e);
    let socket = kernel(protocol).map_err(fail)?;
    send(&socket, request, NLM_F_DUMP).map_err(fail)?;
    loop {
        let answer = receive(&socket).map_err(fail)?;
        let mut rest = &answer[..];
        while !rest.is_empty() {
            let m =
                NetlinkMessage::<M>::deserialize(rest).map_err(|e| fail(io::Error::other(e.to_string())))?;
            let len = m.header.length as usize;
            match m.payload {
                NetlinkPayload::Done(_) => return Ok(()),
                NetlinkPayload::Error(e) => return Err(fail(e.to_io())),
                NetlinkPayload::InnerMessage(m) => take(m),
                _ => {}
            }
            if len == 0 {
                return Ok(());
            }
            // Messages are aligned to four bytes.
            rest = rest.get(len.div_ceil(4) * 4..).unwrap_or_default();
        }
    }
}

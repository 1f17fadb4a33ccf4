//! What the kernel knows of one of its own TCP connections (sock_diag(7)).

use super::netlink;
use crate::error::NetError;
use netlink_packet_core::{NetlinkMessage, NetlinkPayload};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP, TCP_LISTEN};
use netlink_packet_sock_diag::inet::nlas::Nla;
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, SocketId, StateFlags};
use netlink_sys::{Socket, protocols::NETLINK_SOCK_DIAG};
use skyhaul_base::Duration;
use std::net::SocketAddr;

/// The state of a TCP connection of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelConn {
    /// Smoothed RTT.
    pub srtt: Duration,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Segments retransmitted.
    pub retransmitted: u32,
}

/// Asks the kernel for its TCP connections, over one netlink socket: from one thread at a time, since another thread could receive
/// the answer.
#[derive(Debug)]
pub struct Connections(Socket);

impl Connections {
    /// Opens the socket in the network namespace of the calling thread, and asks there, whatever thread uses it later.
    ///
    /// # Errors
    /// If the kernel has no sock_diag.
    pub fn new() -> Result<Self, NetError> {
        let socket = netlink::kernel(NETLINK_SOCK_DIAG);
        socket.map(Self).map_err(|e| NetError::os("ask the kernel for its connections", e))
    }

    /// The connection with these ends; `None` if there is none any more, it is in TIME-WAIT, or the kernel does not answer.
    #[must_use]
    pub fn find(&self, local: SocketAddr, remote: SocketAddr) -> Option<KernelConn> {
        let request = InetRequest {
            family: if local.is_ipv4() { AF_INET } else { AF_INET6 },
            protocol: IPPROTO_TCP,
            extensions: ExtensionFlags::INFO,
            states: StateFlags::all(),
            socket_id: SocketId {
                source_port: local.port(),
                destination_port: remote.port(),
                source_address: local.ip(),
                destination_address: remote.ip(),
                interface_id: 0,
                // INET_DIAG_NOCOOKIE
                cookie: [0xff; 8],
            },
        };
        netlink::send(&self.0, SockDiagMessage::InetRequest(request), 0).ok()?;
        let answer = netlink::receive(&self.0).ok()?;
        let answer = NetlinkMessage::<SockDiagMessage>::deserialize(&answer).ok()?;
        let NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(r)) = answer.payload else {
            return None;
        };
        // Without such a connection, the kernel answers with the listener at the local end, if there is one.
        if r.header.state == TCP_LISTEN {
            return None;
        }
        r.nlas.iter().find_map(|n| match n {
            Nla::TcpInfo(i) => Some(KernelConn {
                srtt: Duration::from_micros(i.rtt.into()),
                cwnd: i.snd_cwnd,
                retransmitted: i.total_retrans,
            }),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn the_kernel_tells_of_one_connection() {
        for at in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(at) else { continue };
            let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("connects");
            let (local, remote) =
                (client.local_addr().expect("an address"), client.peer_addr().expect("an address"));
            let all = Connections::new().expect("sock_diag");
            let found = all.find(local, remote).expect("is there");
            assert!(found.cwnd > 0 && found.retransmitted == 0, "{found:?}");
            let other = SocketAddr::new(remote.ip(), 1);
            assert_eq!(all.find(local, other), None);
            assert_eq!(all.find(remote, other), None, "the listener is no connection");
        }
    }
}

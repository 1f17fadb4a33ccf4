//! The MTU that the kernel has for a route.

use nix::sys::socket::{getsockopt, sockopt};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};

/// The MTU of the route to an address, bytes: that of the route, of the interface, or of the path if the kernel has learnt of
/// a smaller one. `None`: there is no route, or the address is IPv6, where only the link's MTU and reports from the path count.
pub(crate) fn mtu(to: IpAddr) -> Option<u32> {
    if to.is_ipv6() {
        return None;
    }
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // Connecting a UDP socket looks up the route and sends nothing; any port will do.
    socket.connect((to, 9)).ok()?;
    getsockopt(&socket, sockopt::IpMtu).ok().and_then(|mtu| u32::try_from(mtu).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_knows_the_mtu_of_a_route() {
        assert!(mtu([127, 0, 0, 1].into()).is_some_and(|mtu| mtu >= 1500));
        assert_eq!(mtu("::1".parse().unwrap()), None);
    }
}

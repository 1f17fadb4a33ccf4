//! Both ends of a connection as a key.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The local and the remote end in 37 bytes. Tables of connections that cost a peer just one packet must be small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ends([u8; 37]);

/// Bytes of the two ends over IPv4 and over IPv6, after the version number.
const V4: usize = 12;
const V6: usize = 36;

fn v6(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V4(a) => a.to_ipv6_mapped(),
        IpAddr::V6(a) => a,
    }
}

impl Ends {
    pub(super) fn new(local: SocketAddr, remote: SocketAddr) -> Self {
        let mut bytes = [0; 37];
        bytes[0] = if local.is_ipv4() { 4 } else { 6 };
        let ports = [local, remote].map(|end| end.port().to_be_bytes());
        match (local.ip(), remote.ip()) {
            (IpAddr::V4(local), IpAddr::V4(remote)) => {
                bytes[1..5].copy_from_slice(&local.octets());
                bytes[5..7].copy_from_slice(&ports[0]);
                bytes[7..11].copy_from_slice(&remote.octets());
                bytes[11..13].copy_from_slice(&ports[1]);
            }
            (local, remote) => {
                bytes[1..17].copy_from_slice(&v6(local).octets());
                bytes[17..19].copy_from_slice(&ports[0]);
                bytes[19..35].copy_from_slice(&v6(remote).octets());
                bytes[35..37].copy_from_slice(&ports[1]);
            }
        }
        Self(bytes)
    }
    /// The significant bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        if self.0[0] == 4 { &self.0[..=V4] } else { &self.0[..=V6] }
    }
    /// Local address and port.
    pub(super) fn local(&self) -> SocketAddr {
        self.end(false)
    }
    /// Remote address and port.
    pub(super) fn remote(&self) -> SocketAddr {
        self.end(true)
    }
    fn end(&self, remote: bool) -> SocketAddr {
        let [version, all @ ..] = &self.0;
        let port = |end: &[u8]| u16::from_be_bytes(end.first_chunk().copied().unwrap_or_default());
        if *version == 4 {
            let end = if remote { &all[6..] } else { &all[..] };
            let (ip, rest) = end.split_first_chunk::<4>().unwrap_or((&[0; 4], &[]));
            SocketAddr::new(IpAddr::from(*ip), port(rest))
        } else {
            let end = if remote { &all[18..] } else { &all[..] };
            let (ip, rest) = end.split_first_chunk::<16>().unwrap_or((&[0; 16], &[]));
            SocketAddr::new(IpAddr::from(*ip), port(rest))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out() {
        for (a, b) in [("10.0.0.1:80", "192.0.2.7:65535"), ("[fd00::1]:80", "[2001:db8::7]:1")] {
            let (a, b) = (a.parse().unwrap(), b.parse().unwrap());
            let ends = Ends::new(a, b);
            assert_eq!((ends.local(), ends.remote()), (a, b));
            assert_ne!(ends, Ends::new(b, a));
        }
    }
}

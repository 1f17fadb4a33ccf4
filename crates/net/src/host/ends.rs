//! Both ends of a connection as a key.

use std::net::{IpAddr, SocketAddr};

/// The local and the remote end in 37 bytes. Tables of connections that cost a peer just one packet must be small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ends([u8; 37]);

/// Bytes of the two ends over IPv4 and over IPv6, after the version number.
const V4: usize = 12;
const V6: usize = 36;

impl Ends {
    pub(super) fn new(local: SocketAddr, remote: SocketAddr) -> Self {
        let (mut bytes, mut n) = ([0; 37], 1);
        bytes[0] = if local.is_ipv4() { 4 } else { 6 };
        for end in [local, remote] {
            let mut add = |part: &[u8]| {
                bytes[n..n + part.len()].copy_from_slice(part);
                n += part.len();
            };
            match end.ip() {
                IpAddr::V4(a) => add(&a.octets()),
                IpAddr::V6(a) => add(&a.octets()),
            }
            add(&end.port().to_be_bytes());
        }
        Self(bytes)
    }
    /// The significant bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0[..=if self.0[0] == 4 { V4 } else { V6 }]
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
        let all = &self.bytes()[1..];
        let (local, other) = all.split_at(all.len() / 2);
        let (address, port) = if remote { other } else { local }.split_at(all.len() / 2 - 2);
        let port = u16::from_be_bytes([port[0], port[1]]);
        let ip = match <[u8; 4]>::try_from(address) {
            Ok(v4) => IpAddr::from(v4),
            Err(_) => {
                let mut v6 = [0; 16];
                v6.copy_from_slice(address);
                IpAddr::from(v6)
            }
        };
        SocketAddr::new(ip, port)
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

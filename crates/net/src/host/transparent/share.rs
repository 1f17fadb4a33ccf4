//! Several hosts on one device, one per thread: which connections belong to which.
//!
//! A keyed hash of the ends decides, so that every host knows where a packet belongs, whatever queue of the device it arrives at
//! ([`super::exchange`]).

use crate::host::HostConfig;
use crate::host::glance::{TcpEnds, about};
use std::net::SocketAddr;

impl HostConfig {
    /// The number of the host that has the connection with these ends.
    #[must_use]
    pub fn owner(&self, local: SocketAddr, remote: SocketAddr) -> usize {
        match self.share.of {
            0 | 1 => 0,
            of => (self.secret.of(b"share", &[local, remote]) % of as u64) as usize,
        }
    }
    /// Whether a connection with these ends is one of this host.
    #[must_use]
    pub fn is_ours(&self, local: SocketAddr, remote: SocketAddr) -> bool {
        self.owner(local, remote) == self.share.number
    }
    /// The number of the host that an arriving packet is for. Any host takes what belongs to no connection.
    pub(in crate::host) fn addressee(&self, packet: &[u8]) -> usize {
        ends(packet).map_or(self.share.number, |(local, remote)| self.owner(local, remote))
    }
}

/// Our end and the other one of the connection that an arriving packet belongs to, or that the packet quoted in an ICMP message
/// belongs to: that one is ours.
fn ends(packet: &[u8]) -> Option<(SocketAddr, SocketAddr)> {
    match about(packet)? {
        TcpEnds::Itself(remote, local) | TcpEnds::Quoted(local, remote) => Some((local, remote)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::glance::{ICMP, TCP, v4};
    use crate::host::{Secret, Share};

    #[test]
    fn every_host_names_the_same_owner_and_each_has_its_part() {
        let secret = Secret::fixed([5; 16]);
        let all: Vec<HostConfig> = (0..4)
            .map(|number| HostConfig { share: Share { number, of: 4 }, ..HostConfig::new(vec![], secret) })
            .collect();
        let (us, them) = ([10, 0, 0, 1], [192, 0, 2, 7]);
        let mut parts = [0; 4];
        for port in 1000..5000_u16 {
            let (local, remote) = (SocketAddr::from((us, port)), SocketAddr::from((them, 80)));
            let owner = all[0].owner(local, remote);
            parts[owner] += 1;
            let ports = [port.to_be_bytes(), 80_u16.to_be_bytes()];
            let sent = v4(TCP, us, them, &ports.concat());
            let mut message = vec![3, 4, 0, 0, 0, 0, 0, 0];
            message.extend(&sent);
            let arrived = v4(TCP, them, us, &[ports[1], ports[0]].concat());
            for host in &all {
                assert_eq!(host.addressee(&arrived), owner);
                assert_eq!(
                    host.addressee(&v4(ICMP, [192, 0, 2, 1], us, &message)),
                    owner,
                    "about a packet of ours"
                );
                assert_eq!(host.is_ours(local, remote), host.share.number == owner);
                assert_eq!(host.addressee(&arrived[..21]), host.share.number, "nobody else knows more");
            }
        }
        assert!(parts.iter().all(|n| (900..1100).contains(n)), "{parts:?}");
        let alone = HostConfig::new(vec![], secret);
        assert!(alone.is_ours(([1, 2, 3, 4], 5).into(), ([6, 7, 8, 9], 10).into()));
    }
}

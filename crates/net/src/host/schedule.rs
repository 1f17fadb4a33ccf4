//! How connections share a limited outlet: classes with weights, and rates of subscribers.

use crate::tun::{network, within};
use skyhaul_base::Rate;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

/// A class of connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Ports of servers; empty: all.
    pub ports: Vec<RangeInclusive<u16>>,
    /// DSCPs of packets; empty: all.
    pub dscp: Vec<u8>,
    /// Weight of the class: classes that have something to send share the outlet in proportion to their weights.
    pub weight: u32,
}

/// Rates of subscribers. A subscriber is a network of which all hosts together have the rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscribers {
    /// The networks in which the subscribers are: addresses and lengths of prefixes.
    pub networks: Vec<(IpAddr, u8)>,
    /// Lengths of the prefixes of a subscriber, of IPv4 and of IPv6, bits; a subscriber is never larger than its entry in `networks`.
    pub prefixes: [u8; 2],
    /// The rate of each subscriber, IP headers included.
    pub rate: Rate,
}

/// How connections share a limited outlet. By default there are no classes and no rates, and clients take turns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// A connection is in the first of these classes that fits, or else in an additional class of weight 1.
    pub classes: Vec<Class>,
    /// The rate of a connection is that of the first entry with the client's address, or else of the first with the server's address.
    pub subscribers: Vec<Subscribers>,
}

/// The place of a connection in a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The number of its class.
    pub(super) class: u16,
    /// The client of the connection, or its subscriber if a rate limits the connection: parties of a class take turns.
    pub(super) party: IpAddr,
    /// The number of the [`Subscribers`] whose rate limits it.
    pub(super) limit: Option<u16>,
}

/// The class and the subscriber of a connection, for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The number of its class; the number of classes if none fits.
    pub class: usize,
    /// The network of the subscriber whose rate limits it: address and length of the prefix.
    pub subscriber: Option<(IpAddr, u8)>,
}

impl Class {
    fn fits(&self, port: u16, dscp: u8) -> bool {
        (self.ports.is_empty() || self.ports.iter().any(|p| p.contains(&port)))
            && (self.dscp.is_empty() || self.dscp.contains(&dscp))
    }
    /// Whether every connection that fits into another class fits into this one.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let ports = self.ports.is_empty()
            || (!other.ports.is_empty()
                && other
                    .ports
                    .iter()
                    .all(|p| p.clone().all(|port| self.ports.iter().any(|q| q.contains(&port)))));
        let dscp = self.dscp.is_empty()
            || (!other.dscp.is_empty() && other.dscp.iter().all(|d| self.dscp.contains(d)));
        ports && dscp
    }
}

impl Subscribers {
    /// The network of the subscriber that has this address, and the length of its prefix; `None` if no subscriber has the address.
    fn of(&self, address: IpAddr) -> Option<(IpAddr, u8)> {
        let [v4, v6] = self.prefixes;
        let length = if address.is_ipv4() { v4 } else { v6 };
        let (_, least) = self.networks.iter().find(|(net, prefix)| within(*net, address, *prefix))?;
        let length = length.max(*least);
        Some((network(address, length), length))
    }
}

impl Schedule {
    /// The place of a connection with this DSCP.
    pub(super) fn place(&self, client: SocketAddr, server: SocketAddr, dscp: u8) -> Place {
        let limited = self.limit(client, server);
        let party = limited.map_or(client.ip(), |(_, (party, _))| party);
        Place { class: self.class(server, dscp) as u16, party, limit: limited.map(|(n, _)| n) }
    }
    /// The class and the subscriber of a connection with this DSCP.
    #[must_use]
    pub fn membership(&self, client: SocketAddr, server: SocketAddr, dscp: u8) -> Membership {
        let subscriber = self.limit(client, server).map(|(_, network)| network);
        Membership { class: self.class(server, dscp), subscriber }
    }
    fn class(&self, server: SocketAddr, dscp: u8) -> usize {
        self.classes.iter().position(|c| c.fits(server.port(), dscp)).unwrap_or(self.classes.len())
    }
    /// The number of the [`Subscribers`] whose rate limits a connection, and the network of the subscriber.
    fn limit(&self, client: SocketAddr, server: SocketAddr) -> Option<(u16, (IpAddr, u8))> {
        [client, server].into_iter().find_map(|end| {
            let mut all = self.subscribers.iter().enumerate();
            all.find_map(|(n, s)| s.of(end.ip()).map(|network| (n as u16, network)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(ports: &[RangeInclusive<u16>], dscp: &[u8]) -> Class {
        Class { ports: ports.to_vec(), dscp: dscp.to_vec(), weight: 1 }
    }

    #[test]
    fn the_first_class_that_fits_is_taken() {
        let schedule = Schedule {
            classes: vec![
                class(&[22..=22, 5000..=5010], &[]),
                class(&[], &[46, 40]),
                class(&[80..=80], &[8]),
            ],
            ..Schedule::default()
        };
        let of = |port: u16, dscp: u8| {
            let at = |port| SocketAddr::new([10, 1, 0, 2].into(), port);
            schedule.place(at(40_000), at(port), dscp).class
        };
        assert_eq!([of(22, 46), of(5010, 0), of(80, 46), of(80, 8), of(80, 0)], [0, 0, 1, 2, 3]);
    }

    #[test]
    fn a_class_that_covers_another_leaves_it_nothing() {
        let (all, ssh, ef) = (class(&[], &[]), class(&[22..=22], &[]), class(&[], &[46]));
        let (low, both) = (class(&[1..=1000], &[]), class(&[22..=23, 80..=80], &[46]));
        assert!(
            all.covers(&ssh) && all.covers(&all) && low.covers(&ssh) && ef.covers(&both) && low.covers(&both)
        );
        assert!(!ssh.covers(&low) && !ssh.covers(&all) && !ef.covers(&ssh) && !both.covers(&ef));
    }

    #[test]
    fn subscribers_are_found_at_either_end() {
        let subscribers = |net: &str, prefix, prefixes| Subscribers {
            networks: vec![(net.parse().unwrap(), prefix)],
            prefixes,
            rate: Rate::from_bits_per_sec(1_000_000),
        };
        let schedule = Schedule {
            classes: Vec::new(),
            subscribers: vec![subscribers("10.1.0.0", 24, [32, 64]), subscribers("fd00::", 8, [24, 56])],
        };
        let of = |client: &str, server: &str| {
            let end = |text: &str| SocketAddr::new(text.parse().unwrap(), 1);
            let place = schedule.place(end(client), end(server), 0);
            (place.party.to_string(), place.limit)
        };
        assert_eq!(of("10.1.0.7", "192.0.2.1"), ("10.1.0.7".into(), Some(0)));
        assert_eq!(of("192.0.2.1", "10.1.0.7"), ("10.1.0.7".into(), Some(0)));
        assert_eq!(of("10.1.1.7", "192.0.2.1"), ("10.1.1.7".into(), None));
        let one =
            Schedule { subscribers: vec![subscribers("fd00::1", 128, [32, 64])], ..Schedule::default() };
        let end = SocketAddr::new("fd00::1".parse().unwrap(), 1);
        assert_eq!(one.place(end, end, 0).party, end.ip(), "no larger than the network");
        assert_eq!(of("fd01:2:3:456::1", "fd09::1"), ("fd01:2:3:400::".into(), Some(1)));
        let end = |text: &str| SocketAddr::new(text.parse().unwrap(), 1);
        let member = schedule.membership(end("192.0.2.1"), end("fd01:2:3:456::1"), 0);
        assert_eq!(member.subscriber, Some(("fd01:2:3:400::".parse().unwrap(), 56)));
        assert_eq!(schedule.membership(end("192.0.2.1"), end("192.0.2.2"), 0).subscriber, None);
    }
}

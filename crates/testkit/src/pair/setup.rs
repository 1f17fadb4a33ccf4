//! What a pair is made of.

use super::end::{Act, End, PayloadStore};
use super::side::Side;
use super::{Pair, link_of};
use skyhaul_base::{Duration, Instant, Rng};
use skyhaul_cc::{Algorithm, Config as Control, CongestionControl};
use skyhaul_path::{Chain, Delay, Hop, Link, LinkConfig, Routes, Streams};
use skyhaul_tcp::config::ProbeNegotiation;
use skyhaul_tcp::{Config, Connection, Established, Seq};

/// How the connection comes into being.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// SYN, SYN-ACK, ACK over the links.
    Modelled,
    /// Both ends begin established; the handshake would have measured this RTT.
    Skipped(Option<Duration>),
    /// Both ends open actively at the same time.
    Simultaneous,
}

/// The name of an endpoint's random streams, and of those of the link that leaves it.
fn name(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Server => "server",
    }
}

/// Data in the client's SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarlyData {
    /// Bytes that the client writes before the SYN leaves.
    pub written: u64,
    /// Most of them that the SYN carries.
    pub most: u32,
    /// Whether the server takes them.
    pub taken: bool,
}

/// What a pair is made of; arrays are `[client, server]`.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Endpoints.
    pub config: [Config; 2],
    /// Congestion controls.
    pub cc: [Control; 2],
    /// The link that leaves each side.
    pub links: [LinkConfig; 2],
    /// Initial sequence numbers.
    pub iss: [Seq; 2],
    /// The handshake.
    pub handshake: Handshake,
    /// Data in the client's SYN.
    pub early: Option<EarlyData>,
    /// Seed of everything random.
    pub seed: u64,
}

impl Setup {
    /// Two equal endpoints, `one_way` apart by links without rate; initial sequence numbers just below the wrap.
    #[must_use]
    pub fn new(config: Config, cc: &Control, one_way: Duration) -> Self {
        let link = LinkConfig { delay: Delay::fixed(one_way), ..LinkConfig::default() };
        Self {
            config: [config; 2],
            cc: [cc.clone(), cc.clone()],
            links: [link.clone(), link],
            iss: [Seq(0u32.wrapping_sub(5000)), Seq(0u32.wrapping_sub(3000))],
            handshake: Handshake::Modelled,
            early: None,
            seed: 1,
        }
    }

    /// Changes both endpoints.
    #[must_use]
    pub fn both(mut self, change: impl Fn(&mut Config)) -> Self {
        self.config.iter_mut().for_each(change);
        self
    }

    /// The pair, at time zero.
    #[must_use]
    pub fn build<S: PayloadStore>(&self) -> Pair<S> {
        self.build_with(|_, algorithm| algorithm)
    }

    /// The pair; `wrap` may put something around the congestion controls.
    #[must_use]
    pub fn build_with<S: PayloadStore>(&self, mut wrap: impl FnMut(Side, Algorithm) -> Algorithm) -> Pair<S> {
        let now = Instant::ZERO;
        let algorithms: Vec<Algorithm> = Side::BOTH
            .iter()
            .map(|&s| wrap(s, self.cc[s.index()].build(&self.config[s.index()].rules)))
            .collect();
        let wants_sack: Vec<bool> = Side::BOTH
            .iter()
            .map(|&s| {
                let own = algorithms[s.index()].policy().recovery.uses_pipe();
                self.config[s.index()].sack.unwrap_or(own)
            })
            .collect();
        let negotiates = self.config.iter().all(|c| c.probes == ProbeNegotiation::Negotiate);
        let mut routes = Routes::default();
        let mut ends = Side::BOTH.iter().zip(algorithms).map(|(&side, cc)| {
            let (me, peer) = (side.index(), side.other().index());
            let config = &self.config[me];
            let rng = Rng::stream(self.seed, name(side));
            let conn = match (self.handshake, side) {
                (Handshake::Skipped(rtt), _) => {
                    let e = Established {
                        iss: self.iss[me],
                        peer_iss: self.iss[peer],
                        peer: &self.config[peer],
                        sack: wants_sack[0] && wants_sack[1],
                        rtt,
                        probes: negotiates,
                    };
                    Connection::established(now, config, cc, rng, &e)
                }
                (Handshake::Modelled, Side::Server) => Connection::listen(config, cc, self.iss[me], rng),
                _ => Connection::connect(now, config, cc, self.iss[me], rng),
            };
            let route = routes.add(vec![link_of(side) as u32]).expect("room for two");
            End::new(conn, config.header, route)
        });
        let ends = [ends.next(), ends.next()].map(|e| e.expect("two ends"));
        let links = Side::BOTH.map(Side::other).map(|side| {
            let link = Link::new(&self.links[side.index()], Streams::named(self.seed, name(side)));
            Hop::new(link)
        });
        let chain = Chain::new(links.into(), routes);
        let mut pair = Pair { ends, chain, now, log: Vec::new(), logging: true };
        // Whatever is due at time zero (a SYN) leaves with the first step.
        let first = self.early.map_or(0, |e| e.written);
        if let Some(e) = self.early {
            pair.end_mut(Side::Client).conn.offer_early(e.most);
            if e.taken {
                pair.end_mut(Side::Server).conn.take_early(true);
            }
        }
        for (side, first) in Side::BOTH.into_iter().zip([first, 0]) {
            pair.at(now, side, Act::Write(first));
        }
        pair
    }
}

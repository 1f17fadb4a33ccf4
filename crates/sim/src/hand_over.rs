//! Gateways that hand their connections over to others, to which the receiver has moved (I-TCP: Bakre and Badrinath 1995).
//!
//! The connection is that of before: state and buffered data move, and it goes on where it was. While they are on the way the
//! gateway's ends neither hear nor say anything. What still comes to the old gateway is tunnelled, then and later:
//! senders do not learn of the new one. What was on its way to the receiver arrives.

use crate::agent::Agent;
use crate::build::Links;
use crate::chain::Chain;
use crate::error::BuildError;
use crate::headers::put;
use crate::leg::Leg;
use crate::parcel::Parcel;
use crate::sim::{Sim, dispatch};
use crate::tap::Tap;
use skyhaul_base::{Duration, Instant};
use skyhaul_path::PacketView;
use skyhaul_scenario::resolved::{ChainKind, HandOver, Misfortune, Resolved};
use std::collections::VecDeque;

/// The ways of a chain behind a gateway that takes it over.
#[derive(Clone, Debug)]
pub(crate) struct Ahead {
    /// The routes of the leg that begins there, and where that of acknowledgements ends.
    own: (u16, u16),
    ends: u16,
    /// Those past all gateways.
    past: (u16, u16),
    /// From the gateway that had it before; the next entry is its end.
    tunnel: u16,
}

/// What comes to a gateway from the one that had its connections before.
#[derive(Debug)]
pub(crate) struct Tunnel {
    way: u16,
    /// Where acknowledgements of the next leg come without a tunnel.
    direct: u16,
    /// The connection is on its way until then, and what has arrived before it.
    until: Instant,
    waiting: VecDeque<Parcel>,
}

impl Chain {
    /// Some gateway has handed it over.
    #[inline]
    pub(crate) fn has_handed_over(&self) -> bool {
        self.told.handed_over
    }
}

/// For each event of gateways that is a hand-over, the way from the old one to the new one.
pub(crate) fn tunnels(scenario: &Resolved, links: &mut Links) -> Result<Vec<Option<u16>>, BuildError> {
    let tunnel = |what: &Misfortune| match what {
        Misfortune::HandOver(how) => links.tunnel(how.backhaul).ok_or(BuildError::TooLarge).map(Some),
        Misfortune::Crash | Misfortune::Reroute => Ok(None),
    };
    scenario.mishaps.iter().map(|m| &m.what).map(tunnel).collect()
}

/// The ways of a group's chains after each hand-over that concerns them, in order.
pub(crate) fn ahead(
    scenario: &Resolved,
    group: usize,
    tunnels: &[Option<u16>],
    links: &mut Links,
) -> Result<VecDeque<Ahead>, BuildError> {
    let head = &scenario.flows[group];
    let mut found = VecDeque::new();
    // Who answers in the receiver's name has no connection to hand over.
    let Some(chain) = head.chain().filter(|c| c.kind != ChainKind::Spoof) else { return Ok(found) };
    let mut gateways = chain.gateways.clone();
    let legs = core::iter::once(group).chain(chain.legs.iter().copied());
    let mut paths: Vec<&[usize]> = legs.map(|l| scenario.flows[l].path.as_slice()).collect();
    for (mishap, &tunnel) in scenario.mishaps.iter().zip(tunnels) {
        let (Misfortune::HandOver(how), Some(tunnel)) = (&mishap.what, tunnel) else { continue };
        let Some(k) = gateways.iter().position(|&g| g == mishap.gateway) else { continue };
        gateways[k] = how.to;
        if let Some(path) = &how.path {
            paths[k + 1] = path;
        }
        let takes = scenario.gateways[how.to].delay;
        let own = links.routes_from(Duration::ZERO, takes, paths[k + 1]).ok_or(BuildError::TooLarge)?;
        let past = links.routes(head, &paths.concat()).ok_or(BuildError::TooLarge)?;
        // As many entries as links, and the table holds its end as well.
        let ends = own.1 + paths[k + 1].len() as u16;
        found.push_back(Ahead { own, ends, past, tunnel });
    }
    Ok(found)
}

impl<R: Tap> Sim<R> {
    /// A gateway hands over all of its split connections, one after the other.
    #[cold]
    pub(crate) fn hand_over(&mut self, gateway: usize, how: &HandOver) {
        let now = self.now;
        let mut before = Duration::ZERO;
        for c in 0..self.chains.len() as u32 {
            let chain = &mut self.chains[c as usize];
            let Some(k) = chain.gateways.iter().position(|&g| g == gateway) else { continue };
            let Some(ahead) = chain.ahead.pop_front().filter(|_| !chain.rerouted) else { continue };
            chain.gateways[k] = how.to;
            chain.buffers[k] = self.run.gateways[how.to].buffer.unwrap_or(chain.buffers[k]);
            chain.past = ahead.past;
            chain.told.handed_over = true;
            if chain.counted {
                self.taken[gateway] -= 1;
                self.taken[how.to] += 1;
            }
            let ends = [chain.legs[k], chain.legs[k + 1]];
            let flow = &mut self.flows[ends[1] as usize];
            (flow.forward, flow.reverse) = ahead.own;
            if let Some(path) = &how.path {
                let group = self.records[ends[1] as usize].group;
                self.run.groups[group].path.clone_from(path);
            }
            let old = chain.tunnels[k].take();
            let busy = old.as_ref().map_or(now, |t| t.until.max(now));
            let waiting = old.map_or_else(VecDeque::new, |t| t.waiting);
            let mut tunnel = Tunnel { way: ahead.tunnel, direct: ahead.ends, until: busy, waiting };
            if k < chain.opened && k + 1 < chain.in_use && !chain.cut[k] {
                let held = self.held_by(c, k);
                before = before + Duration::from_secs_f64(held as f64 / how.backhaul.bytes_per_sec());
                tunnel.until = busy + how.signalling + before;
                let told = &mut self.chains[c as usize].told;
                told.moved += held;
                told.silent = told.silent + (tunnel.until - busy);
                self.set_away(c, k, true);
                self.moves.push((tunnel.until, c, k));
            }
            self.chains[c as usize].tunnels[k] = Some(Box::new(tunnel));
            ends.into_iter().for_each(|end| self.arm(end));
        }
        self.moves.sort_by(|a, b| b.cmp(a));
    }

    /// Bytes that a gateway has of a connection, and has to have until the next leg has acknowledged them.
    fn held_by(&self, c: u32, gateway: usize) -> u64 {
        let chain = &self.chains[c as usize];
        let of = |number: usize, held: fn(&Leg) -> u64| match &self.flows[chain.legs[number] as usize].agent {
            Agent::Leg(leg) => held(leg),
            _ => 0,
        };
        let waits = chain.relays.get(gateway).map_or(0, skyhaul_relay::Relay::held);
        let sent = if gateway + 1 < chain.opened { of(gateway + 1, Leg::unacked) } else { 0 };
        of(gateway, Leg::readable) + waits + sent
    }

    /// A gateway's ends of a connection are on the way, or there.
    fn set_away(&mut self, c: u32, gateway: usize, away: bool) {
        let chain = &self.chains[c as usize];
        if let Agent::Leg(leg) = &mut self.flows[chain.legs[gateway] as usize].agent {
            leg.away.receiver = away;
        }
        if let Agent::Leg(leg) = &mut self.flows[chain.legs[gateway + 1] as usize].agent {
            leg.away.sender = away;
        }
    }

    /// A connection has reached its new gateway, where what was tunnelled waits for it.
    #[cold]
    pub(crate) fn take_over(&mut self) {
        let Some((_, c, gateway)) = self.moves.pop() else { return };
        let Some(tunnel) = &mut self.chains[c as usize].tunnels[gateway] else { return };
        // It is on its way to yet another one.
        if tunnel.until > self.now {
            return;
        }
        let waiting = core::mem::take(&mut tunnel.waiting);
        self.set_away(c, gateway, false);
        waiting.into_iter().for_each(|parcel| self.arrive(parcel));
        let legs = self.chains[c as usize].legs.clone();
        // Timers that were due on the way are due now.
        legs.iter().for_each(|&leg| self.arm(leg));
        self.carry(legs[gateway]);
    }

    /// A parcel has arrived where a gateway was that has handed its connections over: it follows them. False if it goes to
    /// another end, or has come to the new gateway after the connection.
    #[cold]
    pub(crate) fn follow(&mut self, parcel: Parcel) -> bool {
        let Agent::Leg(leg) = &self.flows[parcel.flow() as usize].agent else { return false };
        let number = usize::from(leg.number);
        let chain = &mut self.chains[leg.chain as usize];
        let gateway = if parcel.backward() { number.checked_sub(1) } else { Some(number) };
        let Some(gateway) = gateway.filter(|k| k + 1 < chain.in_use && !chain.rerouted) else { return false };
        let Some(tunnel) = &mut chain.tunnels[gateway] else { return false };
        let there = parcel.hop() == tunnel.way + 1 || parcel.backward() && parcel.hop() == tunnel.direct;
        if !there {
            let mut parcel = parcel;
            parcel.set_hop(tunnel.way);
            self.net.forward(self.now, parcel);
        } else if tunnel.until > self.now {
            tunnel.waiting.push_back(parcel);
        } else {
            return false;
        }
        true
    }

    /// As [`Self::leg_flush`], for the ends of a leg that are not on their way to another gateway.
    #[cold]
    pub(crate) fn flush_what_is_there(&mut self, c: u32, number: usize) {
        let now = self.now;
        let index = self.chains[c as usize].legs[number];
        let Self { flows, net, .. } = self;
        let flow = &mut flows[index as usize];
        let (forward, back, header) = (flow.way(index, false), flow.way(index, true), flow.header);
        let Agent::Leg(leg) = &mut flow.agent else { return };
        let away = leg.away;
        if let Some(rated) = &mut leg.rated {
            while !away.sender {
                let data = rated.poll_data(now, forward, &mut net.witness.bodies, R::PACKETS);
                let Some(parcel) = data else { break };
                dispatch(net, now, parcel);
            }
            while !away.receiver {
                let report = rated.poll_report(back, &mut net.witness.bodies, R::PACKETS);
                let Some(parcel) = report else { break };
                dispatch(net, now, parcel);
            }
        } else {
            let ends = [(away.sender, forward, true), (away.receiver, back, false)];
            for (_, way, backward) in ends.into_iter().filter(|e| !e.0) {
                while let Some(out) = &leg.ends.end(backward).poll_transmit(now) {
                    put(net, now, way, header, out, &mut leg.headers);
                }
            }
        }
        self.arm(index);
    }
}

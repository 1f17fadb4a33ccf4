//! Handover of a gateway's connections to another gateway, to which the receiver has moved (I-TCP: Bakre and Badrinath
//! 1995).
//!
//! The connection continues: its state and buffered data move to the new gateway. During the move, the gateway's ends
//! neither receive nor send. Packets that still arrive at the old gateway are tunnelled, during the move and
//! afterwards, since senders do not learn of the new gateway. Packets already on their way to the receiver arrive.

use crate::flow::agent::Agent;
use crate::observe::tap::Tap;
use crate::packet::parcel::Parcel;
use crate::sim::Sim;
use crate::split::leg::Leg;
use crate::split::tunnel::Tunnel;
use skyhaul_base::Duration;
use skyhaul_path::PacketView;
use skyhaul_scenario::resolved::GatewayHandover;
use std::collections::VecDeque;

impl<R: Tap> Sim<R> {
    /// A gateway hands over all of its split connections, one after the other.
    #[cold]
    pub(crate) fn handover(&mut self, gateway: usize, how: &GatewayHandover) {
        let now = self.now;
        // The backhaul carries the data of one connection after the other.
        let mut transfers = Duration::ZERO;
        for c in 0..self.chains.len() as u32 {
            let chain = &mut self.chains[c as usize];
            let Some(k) = chain.gateways.iter().position(|&g| g == gateway) else { continue };
            let Some(ahead) = chain.ahead.pop_front().filter(|_| !chain.rerouted) else { continue };
            chain.gateways[k] = how.to;
            chain.buffers[k] = self.run.gateways[how.to].buffer.unwrap_or(chain.buffers[k]);
            chain.bypass = ahead.bypass;
            chain.measures.handed_over = true;
            if chain.counted {
                self.split_connections[gateway] -= 1;
                self.split_connections[how.to] += 1;
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
            let mut tunnel = Tunnel { entry: ahead.tunnel, direct: ahead.acks_end, until: busy, waiting };
            if k < chain.opened && k + 1 < chain.in_use && !chain.severed[k] {
                let held = self.held_by(c, k);
                transfers = transfers + Duration::from_secs_f64(held as f64 / how.backhaul.bytes_per_sec());
                tunnel.until = busy + how.signalling + transfers;
                let measures = &mut self.chains[c as usize].measures;
                measures.moved += held;
                measures.silent = measures.silent + (tunnel.until - busy);
                self.set_moving(c, k, true);
                self.moves.push((tunnel.until, c, k));
            }
            self.chains[c as usize].tunnels[k] = Some(Box::new(tunnel));
            ends.into_iter().for_each(|end| self.arm(end));
        }
        self.moves.sort_by(|a, b| b.cmp(a));
    }

    /// Bytes of a connection that a gateway must keep until the next leg has acknowledged them.
    fn held_by(&self, c: u32, gateway: usize) -> u64 {
        let chain = &self.chains[c as usize];
        let of = |number: usize, held: fn(&Leg) -> u64| {
            self.flows[chain.legs[number] as usize].agent.leg().map_or(0, held)
        };
        let waits = chain.relays.get(gateway).map_or(0, skyhaul_relay::Relay::held);
        let sent = if gateway + 1 < chain.opened { of(gateway + 1, Leg::unacked) } else { 0 };
        of(gateway, Leg::readable) + waits + sent
    }

    /// Sets whether a gateway's ends of a connection are moving.
    fn set_moving(&mut self, c: u32, gateway: usize, moving: bool) {
        let chain = &self.chains[c as usize];
        if let Some(leg) = self.flows[chain.legs[gateway] as usize].agent.leg_mut() {
            leg.moving.receiver = moving;
        }
        if let Some(leg) = self.flows[chain.legs[gateway + 1] as usize].agent.leg_mut() {
            leg.moving.sender = moving;
        }
    }

    /// A connection has reached its new gateway, where tunnelled packets wait for it.
    #[cold]
    pub(crate) fn take_over(&mut self) {
        let Some((_, c, gateway)) = self.moves.pop() else { return };
        let Some(tunnel) = &mut self.chains[c as usize].tunnels[gateway] else { return };
        // The connection is already moving on to a further gateway.
        if tunnel.until > self.now {
            return;
        }
        let waiting = core::mem::take(&mut tunnel.waiting);
        self.set_moving(c, gateway, false);
        waiting.into_iter().for_each(|parcel| self.arrive(parcel));
        let legs = self.chains[c as usize].legs.clone();
        // Timers that expired during the move are due now.
        legs.iter().for_each(|&leg| self.arm(leg));
        self.carry(legs[gateway]);
    }

    /// A parcel has arrived at a gateway that has handed its connections over: the parcel follows them through the
    /// tunnel, or waits for them at its end. False if the parcel is for another end, or has reached the new gateway
    /// after the connection.
    #[cold]
    pub(crate) fn follow(&mut self, parcel: Parcel) -> bool {
        let Agent::Leg(leg) = &self.flows[parcel.flow() as usize].agent else { return false };
        let number = usize::from(leg.number);
        let chain = &mut self.chains[leg.chain as usize];
        let gateway = if parcel.backward() { number.checked_sub(1) } else { Some(number) };
        let Some(gateway) = gateway.filter(|k| k + 1 < chain.in_use && !chain.rerouted) else { return false };
        let Some(tunnel) = &mut chain.tunnels[gateway] else { return false };
        let at_new_gateway =
            parcel.hop() == tunnel.entry + 1 || parcel.backward() && parcel.hop() == tunnel.direct;
        if !at_new_gateway {
            let mut parcel = parcel;
            parcel.set_hop(tunnel.entry);
            self.net.forward(self.now, parcel);
        } else if tunnel.until > self.now {
            tunnel.waiting.push_back(parcel);
        } else {
            return false;
        }
        true
    }
}

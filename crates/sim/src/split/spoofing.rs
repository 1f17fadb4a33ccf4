//! Chains with a spoofing gateway: one connection, whose ends belong to the first and the second leg, with
//! [`Spoof`] between them.

use crate::flow::agent::Agent;
use crate::observe::tap::Tap;
use crate::packet::parcel::Label;
use crate::sim::Sim;
use crate::split::leg::{Carrier, Leg};
use crate::split::spoof::Spoof;
use skyhaul_base::Rng;
use skyhaul_tcp::{Connection, Flags, Segment, Seq};
use std::sync::Arc;

impl<R: Tap> Sim<R> {
    /// Whether the connection of a chain passes a spoofing gateway.
    #[inline]
    pub(crate) fn spoofs(&self, c: u32) -> bool {
        let chain = &self.chains[c as usize];
        chain.spoofs && chain.in_use > 1
    }

    /// Installs the spoofing gateway. The second leg has no sender of its own.
    pub(crate) fn install_spoof(&mut self, c: u32) {
        let chain = &self.chains[c as usize];
        let (index, capacity) = (chain.legs[1] as usize, chain.buffers[0]);
        let record = &self.records[index];
        let group = &self.run.groups[record.group];
        let (control, _) = crate::flow::user::controls_of(
            group,
            &self.run.rules[record.group],
            record.index,
            &self.run.controls,
        );
        let config = Arc::clone(&self.run.endpoints[record.group]);
        let rto = config.rto;
        let Agent::Leg(leg) = &mut self.flows[index].agent else { return };
        if let Carrier::Tcp { ends, spoof } = &mut leg.carrier {
            ends.sender = Connection::listen(config, control, Seq(0), Rng::stream(0, "nobody"));
            *spoof = Some(Box::new(Spoof::new(capacity, rto)));
        }
    }

    fn spoof(&mut self, c: u32) -> Option<&mut Spoof> {
        let index = self.chains[c as usize].legs[1];
        match &mut self.flows[index as usize].agent.leg_mut()?.carrier {
            Carrier::Tcp { spoof, .. } => spoof.as_deref_mut(),
            Carrier::Rated(_) => None,
        }
    }

    /// The gateway loses its stored data, and packets pass unchanged.
    pub(crate) fn forget_spoof(&mut self, c: u32) {
        if let Some(spoof) = self.spoof(c) {
            spoof.forget();
        }
    }

    /// A segment has reached the gateway, from the receiver or from the sender.
    pub(crate) fn spoof_arrival(&mut self, c: u32, from_receiver: bool, segment: &Segment) {
        let now = self.now;
        if let Some(spoof) = self.spoof(c) {
            if from_receiver {
                spoof.inbound(now, segment);
            } else {
                spoof.outbound(now, segment);
            }
        }
        self.carry(self.chains[c as usize].legs[0]);
    }

    /// Sends what both ends and the gateway have to send.
    pub(crate) fn spoof_flush(&mut self, c: u32) {
        let now = self.now;
        let Self { flows, net, chains, .. } = self;
        let chain = &mut chains[c as usize];
        let [near, far] = [chain.legs[0], chain.legs[1]];
        let label = |flow: u32, backward: bool| flows[flow as usize].label(flow, backward);
        let (to_gateway, to_sender) = (label(near, false), label(near, true));
        let (to_receiver, back_to_gateway) = (label(far, false), label(far, true));
        // Labels of packets that bypass the gateway: such packets belong to the leg at whose end they arrive.
        let (bypass, bypass_back) =
            (Label { hop: chain.bypass.0, ..to_receiver }, Label { hop: chain.bypass.1, ..to_sender });
        if let Some(ends) = flows[near as usize].agent.leg_mut().and_then(Leg::tcp_mut) {
            let label = if chain.rerouted { bypass } else { to_gateway };
            net.send_all(now, label, &mut ends.sender);
        }
        let far_leg = flows[far as usize].agent.leg_mut().map(|leg| &mut leg.carrier);
        if let Some(Carrier::Tcp { ends, spoof }) = far_leg {
            while let Some(out) = &ends.receiver.poll_transmit(now) {
                let bypasses = chain.asym > 0.0
                    && out.len == 0
                    && !out.flags.has(Flags::SYN)
                    && chain.rng.unit() < chain.asym;
                let label = if chain.rerouted || bypasses { bypass_back } else { back_to_gateway };
                net.send(now, label, out);
            }
            if let Some(spoof) = spoof {
                while let Some(out) = &spoof.to_receiver.pop_front() {
                    net.send(now, to_receiver, out);
                }
                while let Some(out) = &spoof.to_sender.pop_front() {
                    net.send(now, to_sender, out);
                }
            }
        }
        self.arm(near);
        self.arm(far);
    }
}

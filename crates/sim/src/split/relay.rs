//! Running chains of connections: legs open, relays forward data, gateways crash.

use crate::flow::agent::Agent;
use crate::flow::ends::Ends;
use crate::flow::user;
use crate::flow::{Reported, stream};
use crate::observe::events;
use crate::observe::oracle::Oracle;
use crate::observe::tap::Tap;
use crate::packet::network::Network;
use crate::packet::parcel::{Label, Parcel};
use crate::sim::Sim;
use crate::split::chain::Chain;
use crate::split::headers::Headers;
use crate::split::leg::{Carrier, Leg, MovingEnds, ReceivingEnd};
use crate::split::rate_leg::RateLeg;
use skyhaul_base::Instant;
use skyhaul_path::PacketView;
use skyhaul_relay::xtp::HEADER as XTP_HEADER;
use skyhaul_scenario::resolved::Overload;
use skyhaul_tcp::config::LossClassifier;
use skyhaul_tcp::{Segment, Seq, State};

impl<R: Tap> Sim<R> {
    /// Opens the chain of a flow for a transfer with this many bytes to send at once. A full gateway forwards the
    /// connection unsplit, or refuses it.
    pub(crate) fn open_chain(&mut self, c: u32, transfer: u64, bytes: u64) {
        let now = self.now;
        let chain = &mut self.chains[c as usize];
        chain.begin(now, transfer);
        let full = chain.gateways.iter().find(|&&g| {
            self.run.gateways[g].connections.is_some_and(|most| self.split_connections[g] >= most)
        });
        let unsplittable = chain.encrypted || chain.rerouted;
        let refused = match full.map(|&g| self.run.gateways[g].overload) {
            _ if unsplittable => {
                chain.measures.bypassed += u64::from(!chain.gateways.is_empty());
                chain.in_use = 1;
                false
            }
            None => {
                chain.counted = !chain.gateways.is_empty();
                chain.gateways.iter().for_each(|&g| self.split_connections[g] += 1);
                false
            }
            Some(Overload::Bypass) => {
                chain.measures.bypassed += 1;
                chain.in_use = 1;
                false
            }
            Some(Overload::Refuse) => {
                chain.measures.refused += 1;
                true
            }
        };
        let (head, unsplit, bypass, own) = (chain.legs[0], chain.in_use == 1, chain.bypass, chain.own);
        let flow = &mut self.flows[head as usize];
        (flow.forward, flow.reverse) = if unsplit { bypass } else { own };
        self.open_leg(c, 0);
        if self.spoofs(c) {
            self.open_leg(c, 1);
            self.install_spoof(c);
        }
        if let Some(ends) = self.flows[head as usize].agent.leg_mut().and_then(Leg::tcp_mut) {
            if refused {
                ends.receiver.abort(now);
            }
            ends.sender.offer(now, bytes);
        }
        if self.flows[head as usize].finite {
            self.end_stream(head);
        }
    }

    /// Opens a leg.
    fn open_leg(&mut self, c: u32, number: usize) {
        let now = self.now;
        let chain = &mut self.chains[c as usize];
        chain.opened = chain.opened.max(number + 1);
        let (index, last, transfer) = (chain.legs[number], number + 1 == chain.in_use, chain.transfer);
        let record = &mut self.records[index as usize];
        let group = &self.run.groups[record.group];
        let flow = &mut self.flows[index as usize];
        let place = record.index;
        let stream = |end: &str| stream(self.run.seed, group, place, end, transfer);
        let rules = &self.run.rules[record.group];
        let config = &self.run.endpoints[record.group];
        record.started.get_or_insert(now);
        record.reported = Reported::default();
        let carrier = if let Some(rate) = group.rate_leg() {
            flow.header = XTP_HEADER;
            let leg = RateLeg::new(rate, config.mss, config.send_buffer, config.receive_buffer);
            Carrier::Rated(Box::new(leg))
        } else {
            let controls = user::controls_of(group, rules, record.index, &self.run.controls);
            let oracle = Oracle::of(config.loss_classifier, || stream("loss-classifier"));
            self.net.witness.truth.follow(index, config.loss_classifier != LossClassifier::None);
            let ends = Ends::of_leg(now, config, controls, stream("cc"), stream("peer"), last);
            let mut ends = ends.closing(group.close && last);
            if let Some(state) = record.path_state() {
                ends.sender.recall(state);
            }
            if oracle.is_some() {
                record.history().oracle = oracle;
            }
            Carrier::Tcp { ends: Box::new(ends), spoof: None }
        };
        let compresses = group.header_compression().filter(|_| !chain.spoofs);
        let headers = compresses.map(|rule| Box::new(Headers::new(rule, flow.header)));
        let moving = MovingEnds::default();
        let leg = Leg { carrier, headers, moving, chain: c, number: number as u8 };
        flow.agent = Agent::Leg(Box::new(leg));
    }

    /// A segment of a leg has reached one of its ends.
    pub(crate) fn leg_arrival(&mut self, parcel: Parcel, segment: &Segment) {
        let (now, index, backward) = (self.now, parcel.flow(), parcel.backward());
        let Agent::Leg(leg) = &mut self.flows[index as usize].agent else { return };
        if leg.headers.as_mut().is_some_and(|h| !h.reads(parcel)) {
            return;
        }
        let (c, to_gateway) = (leg.chain, backward == (leg.number > 0));
        if to_gateway && self.spoofs(c) {
            self.spoof_arrival(c, backward, segment);
            return;
        }
        let Some(ends) = self.flows[index as usize].agent.leg_mut().and_then(Leg::tcp_mut) else { return };
        if ends.end(backward).handle(now, segment, &[]).is_err() {
            self.records[index as usize].rejected += 1;
        }
        ends.answer_end(now);
        if backward {
            self.acknowledged(index);
        }
        self.carry(index);
    }

    /// After an event on a leg, moves everything that can move along its chain.
    pub(crate) fn carry(&mut self, index: u32) {
        let Agent::Leg(leg) = &self.flows[index as usize].agent else { return };
        let c = leg.chain;
        if self.spoofs(c) {
            self.spoof_flush(c);
            self.update_measures(c);
            return;
        }
        for gateway in 0..self.chains[c as usize].in_use - 1 {
            self.pass_on(c, gateway);
        }
        for number in 0..self.chains[c as usize].opened {
            self.leg_flush(c, number);
        }
        self.update_measures(c);
    }

    /// Opens the leg behind a gateway, and forwards what can be forwarded.
    fn pass_on(&mut self, c: u32, gateway: usize) {
        let chain = &self.chains[c as usize];
        let (from, to) = (chain.legs[gateway] as usize, chain.legs[gateway + 1] as usize);
        let (opened, early, severed) = (chain.opened, chain.early, chain.severed[gateway]);
        if gateway >= opened || severed {
            return;
        }
        if gateway + 1 == opened {
            let Agent::Leg(leg) = &self.flows[from].agent else { return };
            let ready = match leg.receiving_end() {
                ReceivingEnd::Idle => false,
                ReceivingEnd::Requested => early,
                ReceivingEnd::Established => true,
            };
            if leg.moving.receiver || !ready {
                return;
            }
            self.open_leg(c, gateway + 1);
        }
        let now = self.now;
        // The flow of a leg has a lower or a higher number than that of the next leg.
        let (low, high) = self.flows.split_at_mut(from.max(to));
        let (a, b) = if from < to { (&mut low[from], &mut high[0]) } else { (&mut high[0], &mut low[to]) };
        let (Agent::Leg(a), Agent::Leg(b)) = (&mut a.agent, &mut b.agent) else { return };
        if a.moving.receiver {
            return;
        }
        a.pass_on(now, &mut self.chains[c as usize].relays[gateway], b);
    }

    /// The cumulative acknowledgement of the leg behind a gateway; `None` before it is established.
    fn confirmed(&self, c: u32, gateway: usize) -> Option<Seq> {
        let next = *self.chains[c as usize].legs.get(gateway + 1)?;
        match &self.flows[next as usize].agent {
            // The initial sequence number is 0: the first byte has 1, and a FIN takes one number after the last byte.
            Agent::Leg(leg) if leg.established() => {
                Some(Seq((1 + leg.acked() + u64::from(leg.end_acked())) as u32))
            }
            _ => None,
        }
    }

    /// Sends what the ends of a leg, except those that are moving, have to send, and sets the timer of the leg.
    fn leg_flush(&mut self, c: u32, number: usize) {
        let now = self.now;
        let index = self.chains[c as usize].legs[number];
        let Some(moving) = self.flows[index as usize].agent.leg().map(|leg| leg.moving) else { return };
        let (chain, stays) = (&self.chains[c as usize], moving == MovingEnds::default());
        let holds = stays && chain.late_acks && number + 1 < chain.in_use;
        let confirmed = if holds { self.confirmed(c, number) } else { None };
        let Self { flows, net, chains, records, .. } = self;
        let flow = &mut flows[index as usize];
        let (forward, back) = (flow.label(index, false), flow.label(index, true));
        let Agent::Leg(leg) = &mut flow.agent else { return };
        let Leg { carrier, headers, .. } = &mut **leg;
        match carrier {
            Carrier::Rated(rated) => {
                if !moving.sender {
                    while let Some(data) = &rated.poll_data(now) {
                        net.send(now, forward, data);
                    }
                }
                if !moving.receiver {
                    while let Some(report) = &rated.poll_report() {
                        net.send(now, back, report);
                    }
                }
            }
            Carrier::Tcp { ends, .. } => {
                if !moving.sender {
                    while let Some(out) = ends.sender.poll_transmit(now) {
                        put(net, now, forward, &out, headers);
                    }
                }
                let held = &mut chains[c as usize].held;
                while holds && held[number].front().is_some_and(|s| Chain::may_pass(s, confirmed)) {
                    let Some(out) = held[number].pop_front() else { break };
                    put(net, now, back, &out, headers);
                }
                if !moving.receiver {
                    while let Some(out) = ends.receiver.poll_transmit(now) {
                        if holds && !Chain::may_pass(&out, confirmed) {
                            held[number].push_back(out);
                        } else {
                            put(net, now, back, &out, headers);
                        }
                    }
                }
            }
        }
        if R::ENABLED && stays {
            if let Some(sender) = flow.agent.sender() {
                events::sender(now, index, sender, &mut records[index as usize].reported, net);
            }
        }
        self.arm(index);
    }

    /// Bytes acknowledged to the sender, acknowledged by the receiver, and received, over the connections of the
    /// current transfer.
    fn reached(&self, c: u32) -> (u64, u64, u64) {
        let chain = &self.chains[c as usize];
        let leg = |number: usize| self.flows[chain.legs[number] as usize].agent.leg();
        let last = leg(chain.in_use - 1);
        let arrived = last.and_then(Leg::tcp).map_or(0, |ends| ends.receiver.receiver().payload_received());
        // Through a spoofing gateway there is one connection, and no leg counts what its receiver has acknowledged: that
        // is what it has received.
        let by_receiver = if self.spoofs(c) { arrived } else { last.map_or(0, |l| l.acked()) };
        (leg(0).map_or(0, |l| l.acked()), by_receiver, arrived)
    }

    /// Updates the results of a chain, and checks whether it has ended.
    fn update_measures(&mut self, c: u32) {
        let now = self.now;
        let (to_sender, by_receiver, arrived) = self.reached(c);
        let chain = &mut self.chains[c as usize];
        let measures = &mut chain.measures;
        if chain.severed.iter().all(|severed| !severed) {
            measures.custody = measures.custody.max(to_sender.saturating_sub(by_receiver));
        }
        let head = chain.legs[0];
        if !chain.end_acked_to_sender
            && matches!(&self.flows[head as usize].agent, Agent::Leg(l) if l.end_acked())
        {
            chain.end_acked_to_sender = true;
            measures.custody_at_close = measures.custody_at_close.max(to_sender.saturating_sub(by_receiver));
        }
        if measures.first_byte.is_none() && arrived > 0 {
            measures.first_byte = Some(now - chain.began);
        }
        if measures.setup.is_none() && chain.opened == chain.in_use {
            let counts = if chain.spoofs { 1 } else { chain.in_use };
            let up = |&i: &u32| matches!(&self.flows[i as usize].agent, Agent::Leg(l) if l.established());
            if chain.legs[..counts].iter().all(up) {
                chain.measures.setup = Some(now - chain.began);
            }
        }
        if chain.dead {
            return;
        }
        let Some(ends) = self.flows[head as usize].agent.leg().and_then(Leg::tcp) else { return };
        if ends.sender.state() == State::Closed {
            self.note_lost(c);
        } else if self.flows[head as usize].finite && self.is_over(c) {
            self.done(head);
        }
    }

    /// Whether a chain's receiver has acknowledged everything, and the sender has the receiver's end of stream if there is
    /// to be one.
    pub(crate) fn is_over(&self, c: u32) -> bool {
        let head = self.chains[c as usize].legs[0] as usize;
        let Some(ends) = self.flows[head].agent.leg().and_then(Leg::tcp) else { return true };
        let closes = self.run.groups[self.records[head].group].close;
        self.unacked_along(c) == 0 && (!closes || ends.sender.peer_finished())
    }

    /// Bytes of a chain's sender not acknowledged by its receiver.
    pub(crate) fn unacked_along(&self, c: u32) -> u64 {
        let chain = &self.chains[c as usize];
        let Some(ends) = self.flows[chain.legs[0] as usize].agent.leg().and_then(Leg::tcp) else { return 0 };
        let (to_sender, by_receiver, _) = self.reached(c);
        ends.sender.unacked() + to_sender.saturating_sub(by_receiver)
    }

    /// The sender has noticed that its connection is lost.
    #[cold]
    fn note_lost(&mut self, c: u32) {
        let chain = &mut self.chains[c as usize];
        chain.dead = true;
        let head = chain.legs[0];
        self.free_places(c);
        self.records[head as usize].dead = true;
        if R::ENABLED {
            let event = skyhaul_trace::Event::GaveUp { flow: head };
            self.net.witness.recorder.record(self.now, &event);
        }
        self.note_finished(head);
    }

    /// Frees the chain's places at its gateways.
    fn free_places(&mut self, c: u32) {
        let chain = &mut self.chains[c as usize];
        if core::mem::take(&mut chain.counted) {
            chain.gateways.iter().for_each(|&g| self.split_connections[g] -= 1);
        }
    }

    /// Takes all legs of a chain but the first out of service, and keeps their counts.
    pub(crate) fn retire_chain(&mut self, c: u32) {
        let (_, by_receiver, arrived) = self.reached(c);
        self.free_places(c);
        let chain = &mut self.chains[c as usize];
        chain.delivered += arrived;
        chain.acked += by_receiver;
        let legs = chain.legs[1..].to_vec();
        for leg in legs {
            self.retire(leg);
            self.set_timer(leg, Instant::MAX);
        }
    }

    /// Payload received by a chain's receiver.
    pub(crate) fn delivered(&self, c: u32) -> u64 {
        self.chains[c as usize].delivered + self.reached(c).2
    }
    /// Payload acknowledged by a chain's receiver.
    pub(crate) fn acknowledged_by_receiver(&self, c: u32) -> u64 {
        self.chains[c as usize].acked + self.reached(c).1
    }
    /// Payload acknowledged to a chain's sender and not by its receiver.
    pub(crate) fn custody(&self, c: u32) -> u64 {
        let (to_sender, by_receiver, _) = self.reached(c);
        to_sender.saturating_sub(by_receiver)
    }

    /// A gateway crashes and restarts at once, without knowledge of its connections.
    #[cold]
    pub(crate) fn crash(&mut self, gateway: usize) {
        for c in 0..self.chains.len() as u32 {
            let chain = &self.chains[c as usize];
            // Before the first connection, and between two, the gateway has nothing to lose.
            let split = chain.in_use > 1 && self.flows[chain.legs[0] as usize].agent.leg().is_some();
            let Some(k) = chain.gateways.iter().position(|&g| g == gateway).filter(|_| split) else {
                continue;
            };
            if self.spoofs(c) {
                self.forget_spoof(c);
                self.chains[c as usize].measures.state_losses += 1;
                continue;
            }
            let (legs, last) = ([chain.legs[k], chain.legs[k + 1]], k + 2 == chain.in_use);
            if last {
                // The sender of the last leg is about to be dropped, with its counts.
                let (_, by_receiver, _) = self.reached(c);
                self.chains[c as usize].acked += by_receiver;
            }
            self.forget(legs[0], false);
            self.forget(legs[1], true);
            let chain = &mut self.chains[c as usize];
            chain.severed[k] = true;
            chain.held[k].clear();
            chain.measures.state_losses += 1;
        }
    }

    /// The route of a gateway's connections changes: packets bypass it and all other gateways. The hosts that now
    /// get them do not know the connection and reset it.
    #[cold]
    pub(crate) fn reroute(&mut self, gateway: usize) {
        for c in 0..self.chains.len() as u32 {
            let chain = &mut self.chains[c as usize];
            let concerned = chain.gateways.contains(&gateway) && !chain.rerouted;
            if !concerned {
                continue;
            }
            chain.rerouted = true;
            if chain.in_use == 1 || chain.opened == 0 {
                continue;
            }
            chain.measures.state_losses += 1;
            let (bypass, legs) = (chain.bypass, chain.legs[..chain.opened].to_vec());
            if self.spoofs(c) {
                self.forget_spoof(c);
                continue;
            }
            let (_, by_receiver, _) = self.reached(c);
            let chain = &mut self.chains[c as usize];
            chain.acked += by_receiver;
            chain.severed.iter_mut().for_each(|severed| *severed = true);
            chain.held.iter_mut().for_each(|held| held.clear());
            let last = legs.len() - 1;
            for (n, &index) in legs.iter().enumerate() {
                if n == 0 || n == last {
                    let flow = &mut self.flows[index as usize];
                    (flow.forward, flow.reverse) = bypass;
                }
                // Data at the receiver of the last leg and at the sender of the first is kept.
                if n < last {
                    self.forget(index, false);
                }
                if n > 0 {
                    self.forget(index, true);
                }
            }
        }
    }

    /// A gateway's end of a leg loses its state.
    fn forget(&mut self, index: u32, sender: bool) {
        let Self { flows, records, run, .. } = self;
        let record = &mut records[index as usize];
        let flow = &mut flows[index as usize];
        if !matches!(flow.agent, Agent::Leg(_)) {
            return;
        }
        let group = &run.groups[record.group];
        if sender {
            // The counts of the sender until now are kept.
            record.history().past = record.totals(flow, group.endpoint.mss);
        }
        let (control, _) = user::controls_of(group, &run.rules[record.group], record.index, &run.controls);
        if let Agent::Leg(leg) = &mut flow.agent {
            leg.forget(sender, &run.endpoints[record.group], control);
        }
        self.arm(index);
    }
}

/// Sends a segment of a leg, which may compress its headers.
fn put<R: Tap>(
    net: &mut Network<R>,
    now: Instant,
    label: Label,
    segment: &Segment,
    headers: &mut Option<Box<Headers>>,
) {
    let parcel = net.pack(label, segment);
    let parcel = match headers {
        Some(headers) => headers.shorten(parcel, segment),
        None => parcel,
    };
    net.depart(now, parcel);
}

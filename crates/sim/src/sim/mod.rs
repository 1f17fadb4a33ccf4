//! The engine: takes events, moves parcels, calls endpoints.

pub(crate) mod budget;
pub(crate) mod build;
pub(crate) mod change;
pub(crate) mod finish;
pub(crate) mod held;

use crate::flow::agent::{Agent, Agents};
use crate::flow::watch;
use crate::flow::{Flow, Record};
use crate::observe::events;
use crate::observe::sampler::Sampler;
use crate::observe::tap::{Place, Tap};
use crate::packet::network::Network;
use crate::packet::parcel::{Packet, Parcel};
use crate::packet::send::send_from;
use crate::repaired::segment::RepairedSegment;
use crate::sim::budget::Budget;
use crate::split::chain::Chain;
use crate::split::leg::Carrier;
use skyhaul_base::{Duration, Instant};
use skyhaul_cc::{Controls, SharedRules};
use skyhaul_path::chain::Tournament;
use skyhaul_path::{Agenda, PacketView};
use skyhaul_scenario::resolved::{FlowGroup, Gateway, GatewayEvent, GatewayEventKind};
use skyhaul_tcp::{Config, Segment};
use skyhaul_trace::Event;
use std::sync::Arc;

/// Status after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The run has reached its end, or holds more memory than it may.
    Finished,
    /// There are more events.
    Running,
}

/// The parts of the scenario needed during the run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) groups: Vec<FlowGroup>,
    /// The endpoint configuration of each group, shared by its flows.
    pub(crate) endpoints: Vec<Arc<Config>>,
    /// The window rules of each group, shared by the controls of its flows.
    pub(crate) rules: Vec<SharedRules>,
    /// Some sender classifies its losses.
    pub(crate) classified: bool,
    pub(crate) link_names: Vec<String>,
    pub(crate) gateways: Vec<Gateway>,
    /// Future events at gateways, in reverse order.
    pub(crate) gateway_events: Vec<GatewayEvent>,
    pub(crate) agents: Agents,
    pub(crate) controls: Controls,
    pub(crate) seed: u64,
    pub(crate) duration: Duration,
}

/// A world in progress.
#[derive(Debug)]
pub struct Sim<R> {
    pub(crate) now: Instant,
    pub(crate) events: u64,
    pub(crate) budget: Budget,
    pub(crate) net: Network<R>,
    /// One timer per flow, and two of the world after those of the scenario's flows: the sampler and the changes.
    /// At equal times, they come after the events of links.
    pub(crate) timers: Tournament,
    /// The scenario's flows, two dummies (whose timers are those of the world), and connections of flows whose
    /// transfers come and go.
    pub(crate) flows: Vec<Flow>,
    pub(crate) records: Vec<Record>,
    /// Number of flows in the scenario.
    pub(crate) named_flows: u32,
    /// Closed connections, for reuse.
    pub(crate) idle: Vec<u32>,
    pub(crate) sampler: Sampler,
    pub(crate) agenda: Agenda,
    /// Chains of connections.
    pub(crate) chains: Vec<Chain>,
    /// Segments that gateways repair.
    pub(crate) segments: Vec<RepairedSegment>,
    /// Connections that move between gateways: arrival time, chain, and index of the gateway in it, latest first.
    pub(crate) moves: Vec<(Instant, u32, usize)>,
    /// Number of split connections at each gateway.
    pub(crate) split_connections: Vec<u64>,
    pub(crate) run: Run,
}

impl<R: Tap> Sim<R> {
    /// The simulated time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }
    /// When the run ends.
    #[must_use]
    pub fn end(&self) -> Instant {
        Instant::ZERO + self.run.duration
    }
    /// The recorder.
    #[must_use]
    pub fn recorder(&self) -> &R {
        &self.net.witness.recorder
    }

    /// Number of packets in the network: queued or in flight on any link.
    #[must_use]
    pub fn in_network(&self) -> usize {
        self.net.chain.hops().iter().map(|h| h.link().in_flight() + h.link().queue_len() as usize).sum()
    }
    /// Number of split connections at all gateways together.
    #[must_use]
    pub fn connections_at_gateways(&self) -> u64 {
        self.split_connections.iter().sum()
    }
    /// Number of packets in the network that do not fit into a handle, and have a stored body.
    #[must_use]
    pub fn stored_bodies(&self) -> usize {
        self.net.witness.bodies.len()
    }

    /// Handles all events up to and including `t`, but none after the end of the run, and none once the run holds more
    /// memory than it may: see [`RunResult::ended`](crate::RunResult::ended).
    pub fn run_until(&mut self, t: Instant) -> Status {
        let until = t.min(self.end());
        // A run of length zero has no events, even at its single instant.
        if !self.run.duration.is_zero() {
            // "Never" is not reached even by a run without end.
            let until = until.min(Instant::from_nanos(u64::MAX - 1));
            loop {
                let (links, timers) = (self.net.chain.next(), self.timers.next());
                let at = links.min(timers);
                if at > until {
                    break;
                }
                // `is_full` settles the links, which changes nothing between two instants.
                if self.events >= self.budget.next && at > self.now && self.is_full() {
                    return Status::Finished;
                }
                debug_assert!(at >= self.now, "time never runs backwards");
                self.now = at;
                self.events += 1;
                if links <= timers {
                    if let Some(parcel) = self.net.handle(at) {
                        let at_gate = !self.segments.is_empty() && self.enters(parcel);
                        if !at_gate && !self.arrive_plain(parcel) {
                            self.arrive(parcel);
                        }
                    }
                } else {
                    self.expire();
                }
            }
        }
        self.now = self.now.max(until);
        self.net.settle(self.now);
        if self.now >= self.end() { Status::Finished } else { Status::Running }
    }

    /// The earliest timer is due.
    fn expire(&mut self) {
        let slot = self.timers.winner();
        match slot.wrapping_sub(self.named_flows) {
            // The sampler.
            0 => {
                let named = self.named_flows as usize;
                let custody: Vec<u64> = (0..self.chains.len() as u32).map(|c| self.custody(c)).collect();
                let (flows, records) = (&self.flows[..named], &mut self.records[..named]);
                let (groups, net) = (&self.run.groups, &mut self.net);
                let next = self.sampler.sample(self.now, flows, records, groups, net, &custody);
                self.timers.set(slot, next);
            }
            // Changes of links, and events at gateways.
            1 => {
                let mut down = Vec::new();
                let next = change::make(self.now, &mut self.agenda, &mut self.net, &mut down);
                // A link has two directed links.
                down.into_iter().for_each(|hop| self.tell_of_outage(hop as usize / 2));
                if !self.segments.is_empty() {
                    self.tell_gateways();
                }
                let next = next.min(self.make_gateway_events());
                self.timers.set(slot, next);
            }
            _ => self.wake(slot),
        }
    }

    /// A link has gone down: informs the senders whose path crosses it and that probe after an outage.
    #[cold]
    fn tell_of_outage(&mut self, link: usize) {
        let now = self.now;
        for index in 0..self.flows.len() as u32 {
            // A flow without a connection has no sender to inform. The two dummies have none either; in a run without flows their
            // records name a group that does not exist.
            if matches!(self.flows[index as usize].agent, Agent::Silent) {
                continue;
            }
            let group = &self.run.groups[self.records[index as usize].group];
            if group.endpoint.outage_probe.is_none() || !group.path.contains(&link) {
                continue;
            }
            match &mut self.flows[index as usize].agent {
                Agent::OneWay(ends) => ends.source.sender_mut().outage(now),
                Agent::Connections(ends) => ends.sender.outage(now),
                Agent::Leg(leg) => {
                    if let Some(ends) = leg.tcp_mut() {
                        ends.sender.outage(now);
                    }
                }
                Agent::Silent
                | Agent::FixedWindow(_)
                | Agent::Datagrams(_)
                | Agent::Rated(_)
                | Agent::Segment(_) => continue,
            }
            self.arm(index);
        }
    }

    /// Carries out the gateway events that are due, and completes the handovers that are; returns the time of the next.
    fn make_gateway_events(&mut self) -> Instant {
        loop {
            let moved = self.moves.last().map_or(Instant::MAX, |m| m.0);
            if moved <= self.now {
                self.take_over();
                continue;
            }
            let next = self.run.gateway_events.last().map_or(Instant::MAX, |m| Instant::ZERO + m.at);
            if next > self.now {
                return next.min(moved);
            }
            if let Some(gateway_event) = self.run.gateway_events.pop() {
                match &gateway_event.kind {
                    GatewayEventKind::Crash => self.crash(gateway_event.gateway),
                    GatewayEventKind::Reroute => self.reroute(gateway_event.gateway),
                    GatewayEventKind::Handover(how) => self.handover(gateway_event.gateway, how),
                }
            }
        }
    }

    /// A parcel has reached its endpoint.
    #[inline(never)]
    pub(crate) fn arrive(&mut self, parcel: Parcel) {
        let now = self.now;
        let index = parcel.flow();
        if self.run.classified {
            self.inform(index);
        }
        let Self { flows, chains, .. } = self;
        let flow = &flows[index as usize];
        if parcel.generation() != flow.generation {
            self.discard(parcel);
            return;
        }
        let handed_over = match &flow.agent {
            Agent::Silent => {
                self.discard(parcel);
                return;
            }
            Agent::Segment(segment) => {
                let segment = *segment;
                self.frame_arrives(segment, parcel);
                return;
            }
            Agent::Leg(leg) => chains[leg.chain as usize].has_handed_over(),
            _ => false,
        };
        if handed_over && self.follow(parcel) {
            return;
        }
        let Self { flows, net, timers, records, .. } = self;
        let flow = &mut flows[index as usize];
        let parcel = match &flow.agent {
            Agent::Leg(leg) => leg.headers.as_ref().map_or(parcel, |h| h.lengthen(parcel)),
            _ => parcel,
        };
        let backward = parcel.backward();
        if R::ENABLED {
            events::arrival(now, parcel, net);
        }
        if R::PACKETS {
            net.witness.show(now, parcel, Place::Arrived);
        }
        if let Some(delays) = &mut net.witness.delays {
            let owner = records[index as usize].transfer.as_ref().map_or(index, |t| t.owner);
            delays.arrived(now, parcel, owner);
        }
        let label = flow.label(index, !backward);
        let header = flow.header;
        let head = parcel.head(header);
        let extras = parcel.take_extras(&mut net.witness.bodies);
        if backward {
            flow.last_ack = now;
        }
        let before = flow.watched.then(|| watch::before(flow, &head, backward)).flatten();
        let refused = match &mut flow.agent {
            Agent::Silent | Agent::Segment(_) => return,
            Agent::OneWay(ends) if backward => ends.source.handle(now, &head, extras.as_ref()).is_err(),
            Agent::OneWay(ends) => ends.sink.handle(now, &head, extras.as_ref()).is_err(),
            Agent::Connections(ends) => {
                let segment = Segment::join(&head, &extras.unwrap_or_default());
                let refused = ends.end(backward).handle(now, &segment, &[]).is_err();
                if !backward {
                    ends.answer_end(now);
                }
                refused
            }
            Agent::Leg(leg) if leg.tcp().is_some() => {
                self.leg_arrival(parcel, &Segment::join(&head, &extras.unwrap_or_default()));
                return;
            }
            Agent::Leg(_) | Agent::Datagrams(_) | Agent::Rated(_) => {
                self.arrive_other(index, parcel.unpack(header));
                return;
            }
            Agent::FixedWindow(w) => {
                if backward {
                    w.acked();
                    net.send_all(now, label, w);
                } else {
                    net.send(now, label, &(&w.answer(&head), None));
                }
                return;
            }
        };
        if refused {
            records[index as usize].rejected += 1;
        }
        // What arrived is recorded before what it causes.
        if let Some(before) = before {
            watch::after(now, index, before, flow, &mut records[index as usize], net);
        }
        let next = send_from(net, now, index, flow, backward);
        if next < flow.armed {
            flow.armed = next;
            timers.set_earlier(index, next);
        }
        // Nothing changes at the sender when data arrives.
        if backward {
            self.acknowledged(index);
        }
    }

    /// A packet other than a segment has reached its endpoint.
    fn arrive_other(&mut self, index: u32, packet: Option<Packet>) {
        let Some(packet) = &packet else { return };
        let flow = &mut self.flows[index as usize];
        match (&mut flow.agent, packet) {
            (Agent::Datagrams(ends), Packet::Datagram(datagram)) => {
                ends.receive(self.now, datagram);
                if flow.watched {
                    watch::datagram(self.now, datagram, &mut self.records[index as usize]);
                }
            }
            (Agent::Rated(_), _) => self.rated_arrival(index, packet),
            (Agent::Leg(leg), _) => {
                if let Carrier::Rated(rated) = &mut leg.carrier {
                    rated.handle(self.now, packet);
                    self.carry(index);
                }
            }
            _ => {}
        }
    }

    /// A sender has handled an acknowledgement: takes its congestion report, and checks whether everything is
    /// acknowledged.
    #[inline(never)]
    pub(crate) fn acknowledged(&mut self, index: u32) {
        if self.run.classified {
            self.take_verdicts(index);
        }
        let flow = &mut self.flows[index as usize];
        let (congestion_report, over) = match &mut flow.agent {
            Agent::OneWay(ends) => {
                (ends.source.sender_mut().take_congestion_report(), ends.source.sender().unacked() == 0)
            }
            Agent::Connections(ends) => (ends.sender.take_congestion_report(), ends.over()),
            // Only the whole chain knows whether everything has arrived.
            Agent::Leg(leg) => (leg.tcp_mut().and_then(|ends| ends.sender.take_congestion_report()), false),
            Agent::Silent
            | Agent::FixedWindow(_)
            | Agent::Datagrams(_)
            | Agent::Rated(_)
            | Agent::Segment(_) => return,
        };
        if let Some(congestion_report) = congestion_report {
            self.account_for(index, &congestion_report);
        }
        let flow = &mut self.flows[index as usize];
        if R::ENABLED {
            if let Some(sender) = flow.agent.sender() {
                let reported = &mut self.records[index as usize].reported;
                events::sender(self.now, index, sender, reported, &mut self.net);
            }
        }
        if flow.finite && over {
            self.done(index);
        }
    }

    /// Discards a parcel of a closed connection.
    #[cold]
    fn discard(&mut self, parcel: Parcel) {
        let index = parcel.flow() as usize;
        let record = &self.records[index];
        // A late packet of a connection that was used again counts for the flow of its transfer.
        let earlier = record.transfer.is_some() && parcel.generation() != self.flows[index].generation;
        let before = record.history.as_ref().filter(|_| earlier).and_then(|h| h.last_owner);
        self.records[before.map_or(index, |owner| owner as usize)].discarded += 1;
        if R::ENABLED {
            let event = Event::Discarded { flow: parcel.flow(), packet: parcel.packet() };
            self.net.witness.recorder.record(self.now, &event);
        }
        if R::PACKETS {
            self.net.witness.show(self.now, parcel, Place::Arrived);
        }
        parcel.discard(&mut self.net.witness.bodies);
    }

    /// The timer of a flow: it starts, stops, or one of its ends needs a call. It may fire too early, since
    /// postponed timers are not moved; it is then set again.
    #[inline(never)]
    pub(crate) fn wake(&mut self, index: u32) {
        let now = self.now;
        if let Agent::Segment(segment) = self.flows[index as usize].agent {
            self.segment_wakes(segment);
            return;
        }
        let record = &mut self.records[index as usize];
        if record.started.is_none() && record.stop <= now {
            // Stopped before it started: there is nothing to do.
            self.finish_flow(index);
            return;
        }
        if record.started.is_none() {
            record.started = Some(now);
            if R::ENABLED {
                self.net.witness.recorder.record(now, &Event::FlowStarted { flow: index });
            }
            self.start(index);
        } else if record.stop <= now {
            record.stop = Instant::MAX;
            self.stop(index);
        }
        let due = self.records[index as usize].app.as_ref().is_some_and(|app| app.next() <= now);
        if due {
            self.produce(index);
        }
        self.expire_ends(index);
        self.flush(index);
        self.arm(index);
    }

    /// Handles the expired deadlines of both ends of a flow.
    fn expire_ends(&mut self, index: u32) {
        let now = self.now;
        if self.run.classified {
            self.inform(index);
        }
        let flow = &mut self.flows[index as usize];
        let congestion_report = match &mut flow.agent {
            Agent::Silent | Agent::FixedWindow(_) | Agent::Datagrams(_) | Agent::Segment(_) => return,
            Agent::Rated(rated) => {
                rated.sender.handle_timeout(now);
                rated.receiver.handle_timeout(now);
                return;
            }
            Agent::OneWay(ends) => {
                let (source, sink) = (ends.source.next_timeout() <= now, ends.sink.next_timeout() <= now);
                if !(source | sink | self.run.classified | ends.source.sender().has_congestion_report()) {
                    // It was the application's timer, or a postponed one.
                    return;
                }
                if source {
                    ends.source.handle_timeout(now);
                }
                if sink {
                    ends.sink.handle_timeout(now);
                }
                ends.source.sender_mut().take_congestion_report()
            }
            Agent::Connections(ends) => ends.expire(now),
            Agent::Leg(leg) => leg.expire(now),
        };
        if self.run.classified {
            self.take_verdicts(index);
        }
        if let Some(congestion_report) = congestion_report {
            self.account_for(index, &congestion_report);
        }
        let flow = &mut self.flows[index as usize];
        if flow.watched {
            watch::check_gave_up(now, index, flow, &mut self.records[index as usize], &mut self.net);
        }
    }

    /// Sends what both ends of a flow have to send.
    pub(crate) fn flush(&mut self, index: u32) {
        let now = self.now;
        let flow = &mut self.flows[index as usize];
        let label = flow.label(index, false);
        let net = &mut self.net;
        match &mut flow.agent {
            Agent::Silent | Agent::Datagrams(_) | Agent::Segment(_) => return,
            Agent::Rated(_) => {
                self.rated_flush(index);
                return;
            }
            Agent::Leg(_) => {
                self.carry(index);
                return;
            }
            Agent::OneWay(_) | Agent::Connections(_) => {
                send_from(net, now, index, flow, true);
                send_from(net, now, index, flow, false);
            }
            Agent::FixedWindow(w) => net.send_all(now, label, w),
        }
        if R::ENABLED {
            if let Some(sender) = flow.agent.sender() {
                events::sender(now, index, sender, &mut self.records[index as usize].reported, net);
            }
        }
    }

    /// Sets the timer of a flow to its next deadline.
    pub(crate) fn arm(&mut self, index: u32) {
        let record = &self.records[index as usize];
        let flow = &mut self.flows[index as usize];
        let more = match &record.app {
            Some(app) => app.next(),
            None => Instant::MAX,
        };
        let at = match &flow.agent {
            // No connection, and nothing that the application waits for.
            // A segment sets its timer itself.
            Agent::Segment(_) => return,
            Agent::Silent if more == Instant::MAX => Instant::MAX,
            Agent::Silent | Agent::Datagrams(_) => more.min(record.stop),
            Agent::OneWay(ends) => ends.next_timeout().min(record.stop).min(more),
            Agent::Connections(ends) => ends.next_timeout().min(record.stop).min(more),
            Agent::Leg(leg) => leg.next_timeout().min(record.stop).min(more),
            Agent::Rated(rated) => rated.next_timeout().min(record.stop).min(more),
            Agent::FixedWindow(_) => record.stop,
        };
        // Overdue deadlines are due now.
        self.set_timer(index, at.max(self.now));
    }

    /// Sets the timer of a flow.
    pub(crate) fn set_timer(&mut self, index: u32, at: Instant) {
        self.flows[index as usize].armed = at;
        self.timers.set(index, at);
    }
}

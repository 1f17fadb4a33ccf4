//! The engine: takes events, moves parcels, calls endpoints.

use crate::agent::{Agent, Agents, FixedWindow, OneWay};
use crate::chain::Chain;
use crate::change;
use crate::datagram::Rated;
use crate::ends::Ends;
use crate::flow::{Flow, Record};
use crate::network::Network;
use crate::observe;
use crate::oracle::Oracle;
use crate::parcel::{Label, Parcel};
use crate::sampler::Sampler;
use crate::tap::{Place, Tap};
use crate::timers::Timers;
use crate::user;
use crate::watch;
use skyhaul_apps::{Outcome, Start, Stop, Streams};
use skyhaul_base::{Duration, Instant, Rng};
use skyhaul_cc::{Controls, SharedRules};
use skyhaul_path::{Agenda, Apart, PacketView};
use skyhaul_scenario::resolved::{FlowGroup, Gateway, Misfortune, Mishap, Transport};
use skyhaul_tcp::config::LossClassifier;
use skyhaul_tcp::{Config, Extras, Flags, Head, Segment};
use skyhaul_trace::Event;
use std::sync::Arc;

/// Status after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The end of the run has been reached.
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
    pub(crate) mishaps: Vec<Mishap>,
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
    pub(crate) net: Network<R>,
    /// One timer per flow, and two of the world after those of the scenario's flows: the sampler and the changes.
    /// At equal times, they come after the events of links.
    pub(crate) timers: Timers,
    /// The scenario's flows, two dummies (whose timers are those of the world), and connections of flows whose
    /// transfers come and go.
    pub(crate) flows: Vec<Flow>,
    pub(crate) records: Vec<Record>,
    /// Some application has been asked for its writes only when they were needed.
    pub(crate) postpones: bool,
    /// Number of flows in the scenario.
    pub(crate) named_flows: u32,
    /// Closed connections, for reuse.
    pub(crate) idle: Vec<u32>,
    pub(crate) sampler: Sampler,
    pub(crate) agenda: Agenda,
    /// Chains of connections.
    pub(crate) chains: Vec<Chain>,
    /// Connections that move between gateways: arrival time, chain, and index of the gateway in it, latest first.
    pub(crate) moves: Vec<(Instant, u32, usize)>,
    /// Number of sender connections at each gateway.
    pub(crate) taken: Vec<u64>,
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
    /// Number of sender connections at all gateways together.
    #[must_use]
    pub fn connections_at_gateways(&self) -> u64 {
        self.taken.iter().sum()
    }
    /// How many of them have a stored body.
    #[must_use]
    pub fn stored_bodies(&self) -> usize {
        self.net.witness.bodies.len()
    }

    /// Handles all events up to and including `t`, but none after the end of the run.
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
                debug_assert!(at >= self.now, "time never runs backwards");
                self.now = at;
                self.events += 1;
                if links <= timers {
                    if let Some(parcel) = self.net.handle(at) {
                        if !self.arrive_plain(parcel) {
                            self.arrive(Apart(parcel));
                        }
                    }
                } else {
                    self.expire();
                }
            }
        }
        self.now = self.now.max(until);
        self.catch_up_all();
        self.net.settle(self.now);
        if self.now >= self.end() { Status::Finished } else { Status::Running }
    }

    /// The earliest timer is due.
    fn expire(&mut self) {
        let Some(due) = self.timers.peek() else { return };
        match due.slot.wrapping_sub(self.named_flows) {
            0 => {
                let named = self.named_flows as usize;
                let custody: Vec<u64> = (0..self.chains.len() as u32).map(|c| self.custody(c)).collect();
                let (flows, records) = (&self.flows[..named], &mut self.records[..named]);
                let (groups, net) = (&self.run.groups, &mut self.net);
                let next = self.sampler.sample(self.now, flows, records, groups, net, &custody);
                self.timers.set(due.slot, next);
            }
            1 => {
                let mut down = Vec::new();
                let next = change::make(self.now, &mut self.agenda, &mut self.net, &mut down);
                down.into_iter().for_each(|hop| self.tell_of_outage(hop as usize / 2));
                let next = next.min(self.suffer());
                self.timers.set(due.slot, next);
            }
            _ => self.wake(due.slot),
        }
    }

    /// A link has gone down: informs senders whose path crosses it, if they want to know.
    #[cold]
    fn tell_of_outage(&mut self, link: usize) {
        let now = self.now;
        for index in 0..self.flows.len() as u32 {
            self.catch_up(index, now);
            let group = &self.run.groups[self.records[index as usize].group];
            if group.endpoint.outage_probe.is_none() || !group.path.contains(&link) {
                continue;
            }
            match &mut self.flows[index as usize].agent {
                Agent::OneWay(ends) => ends.source.sender_mut().outage(now),
                Agent::Connections(ends) => ends.sender.outage(now),
                Agent::Leg(leg) => leg.ends.sender.outage(now),
                Agent::Silent | Agent::FixedWindow(_) | Agent::Datagrams(_) | Agent::Rated(_) => continue,
            }
            self.arm(index);
        }
    }

    /// Carries out the gateway events that are due; returns the time of the next.
    fn suffer(&mut self) -> Instant {
        loop {
            let moved = self.moves.last().map_or(Instant::MAX, |m| m.0);
            if moved <= self.now {
                self.take_over();
                continue;
            }
            let next = self.run.mishaps.last().map_or(Instant::MAX, |m| Instant::ZERO + m.at);
            if next > self.now {
                return next.min(moved);
            }
            if let Some(mishap) = self.run.mishaps.pop() {
                match &mishap.what {
                    Misfortune::Crash => self.crash(mishap.gateway),
                    Misfortune::Reroute => self.reroute(mishap.gateway),
                    Misfortune::HandOver(how) => self.hand_over(mishap.gateway, how),
                }
            }
        }
    }

    /// A parcel has reached its endpoint.
    #[inline(never)]
    pub(crate) fn arrive(&mut self, Apart(parcel): Apart<Parcel>) {
        let now = self.now;
        let index = parcel.flow();
        if self.run.classified {
            self.inform(index);
        }
        self.catch_up(index, now);
        let Self { flows, chains, .. } = self;
        let flow = &flows[index as usize];
        if parcel.generation() != flow.generation {
            self.discard(parcel);
            return;
        }
        let moved = match &flow.agent {
            Agent::Silent => {
                self.discard(parcel);
                return;
            }
            Agent::Leg(leg) => chains[leg.chain as usize].has_handed_over(),
            _ => false,
        };
        if moved && self.follow(parcel) {
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
            observe::arrival(now, parcel, net);
        }
        if R::PACKETS {
            net.witness.show(now, parcel, Place::Arrived);
        }
        let way = flow.way(index, !backward);
        let header = flow.header;
        let head = parcel.head(header);
        let extras = parcel.take_extras(&mut net.witness.bodies);
        if backward {
            flow.last_ack = now;
        }
        let before = flow.watched.then(|| watch::before(flow, &head, backward)).flatten();
        let (refused, next) = match &mut flow.agent {
            Agent::Silent => return,
            Agent::OneWay(ends) if backward => {
                let source = &mut ends.source;
                let refused = source.handle(now, &head, extras.as_ref()).is_err();
                let mut beside = None;
                while let Some(head) = source.poll(now, &mut beside) {
                    send(net, now, way, header, &head, beside.take());
                }
                (refused, source.next_timeout())
            }
            Agent::OneWay(ends) => {
                let sink = &mut ends.sink;
                let refused = sink.handle(now, &head, extras.as_ref()).is_err();
                let mut beside = None;
                while let Some(head) = sink.poll(now, &mut beside) {
                    send(net, now, way, header, &head, beside.take());
                }
                (refused, sink.next_timeout())
            }
            Agent::Connections(ends) => {
                let end = ends.end(backward);
                let segment = Segment::join(&head, &extras.unwrap_or_default());
                let refused = end.handle(now, &segment, &[]).is_err();
                if !backward {
                    ends.answer_end(now);
                }
                let end = ends.end(backward);
                while let Some(out) = &end.poll_transmit(now) {
                    send_whole(net, now, way, header, out);
                }
                (refused, end.next_timeout())
            }
            Agent::Leg(leg) => {
                if let Some(rated) = &mut leg.rated {
                    rated.handle(now, parcel);
                    self.carry(index);
                } else {
                    self.leg_arrival(parcel, &Segment::join(&head, &extras.unwrap_or_default()));
                }
                return;
            }
            Agent::Datagrams(d) => {
                let datagram = parcel.as_datagram(header);
                d.receive(now, &datagram);
                if flow.watched {
                    watch::datagram(now, &datagram, &mut records[index as usize]);
                }
                return;
            }
            Agent::Rated(_) => {
                self.rated_arrival(parcel);
                return;
            }
            Agent::FixedWindow(w) => {
                if backward {
                    w.acked();
                    while let Some(out) = w.poll_transmit() {
                        send(net, now, way, header, &out, None);
                    }
                } else {
                    send(net, now, way, header, &w.answer(&head), None);
                }
                return;
            }
        };
        if next < flow.armed {
            flow.armed = next;
            timers.set_earlier(index, next);
        }
        if refused {
            records[index as usize].rejected += 1;
        }
        if let Some(before) = before {
            watch::after(now, index, before, flow, &mut records[index as usize], net);
        }
        let ended = flow.waits && !flow.is_supplied();
        if backward {
            self.acknowledged(index);
        }
        if ended {
            self.stop_waiting(index);
        }
    }

    /// A sender has handled an acknowledgement: takes its judgement, and checks whether everything is acknowledged.
    #[inline(never)]
    pub(crate) fn acknowledged(&mut self, index: u32) {
        if self.run.classified {
            self.take_verdicts(index);
        }
        let flow = &mut self.flows[index as usize];
        let (judgement, over) = match &mut flow.agent {
            Agent::OneWay(ends) => {
                (ends.source.sender_mut().take_judgement(), ends.source.sender().unacked() == 0)
            }
            Agent::Connections(ends) => (ends.sender.take_judgement(), ends.over()),
            // Only the whole chain knows whether everything has arrived.
            Agent::Leg(leg) => (leg.ends.sender.take_judgement(), false),
            Agent::Silent | Agent::FixedWindow(_) | Agent::Datagrams(_) | Agent::Rated(_) => return,
        };
        if let Some(judgement) = judgement {
            self.account_for(index, &judgement);
        }
        let flow = &mut self.flows[index as usize];
        if R::ENABLED {
            if let Some(sender) = flow.agent.sender() {
                let seen = &mut self.records[index as usize].seen;
                observe::sender(self.now, index, sender, seen, &mut self.net);
            }
        }
        if flow.finite && over {
            self.done(index);
        }
    }

    /// Discards a parcel of a closed connection.
    #[cold]
    fn discard(&mut self, parcel: Parcel) {
        self.records[parcel.flow() as usize].discarded += 1;
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
    pub(crate) fn wake(&mut self, index: u32) {
        let now = self.now;
        if self.wake_plain(index) {
            return;
        }
        self.catch_up(index, now);
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

    /// Starts a flow: its application and, unless it uses connections, its transport.
    fn start(&mut self, index: u32) {
        let record = &mut self.records[index as usize];
        let group = &self.run.groups[record.group];
        let flow = &mut self.flows[index as usize];
        if let Agents::FixedWindow(window) = self.run.agents {
            flow.agent = Agent::FixedWindow(FixedWindow::new(window, group.endpoint.mss));
            return;
        }
        let streams = Streams::of(self.run.seed, format!("flows.{}[{}]", group.name, record.index));
        let over = group.transport.for_apps(group.endpoint.mss);
        let app = group.app.build(&Start { now: self.now, over, streams: &streams });
        flow.finite = app.is_finite();
        flow.watched = app.watches();
        record.app = Some(app);
        if group.transport == Transport::Udp {
            flow.agent = Agent::Datagrams(Box::default());
        } else if let Some(rate) = group.transport.rate() {
            flow.agent = Agent::Rated(Box::new(Rated::new(self.now, &rate)));
            self.net.witness.truth.follow(index, rate.asks_an_oracle());
        }
    }

    /// Handles the expired deadlines of both ends of a flow.
    fn expire_ends(&mut self, index: u32) {
        let now = self.now;
        if self.run.classified {
            self.inform(index);
        }
        let flow = &mut self.flows[index as usize];
        let judgement = match &mut flow.agent {
            Agent::Silent | Agent::FixedWindow(_) | Agent::Datagrams(_) => return,
            Agent::Rated(rated) => {
                rated.sender.handle_timeout(now);
                rated.receiver.handle_timeout(now);
                return;
            }
            Agent::OneWay(ends) => {
                let (source, sink) = (ends.source.next_timeout() <= now, ends.sink.next_timeout() <= now);
                if !(source | sink | self.run.classified | ends.source.sender().has_judgement()) {
                    // It was the application's timer, or a postponed one.
                    return;
                }
                if source {
                    ends.source.handle_timeout(now);
                }
                if sink {
                    ends.sink.handle_timeout(now);
                }
                ends.source.sender_mut().take_judgement()
            }
            Agent::Connections(ends) => ends.expire(now),
            Agent::Leg(leg) => leg.expire(now),
        };
        if self.run.classified {
            self.take_verdicts(index);
        }
        if let Some(judgement) = judgement {
            self.account_for(index, &judgement);
        }
        let flow = &mut self.flows[index as usize];
        if flow.watched {
            watch::expired(now, index, flow, &mut self.records[index as usize], &mut self.net);
        }
    }

    /// Sends what both ends of a flow have to send.
    pub(crate) fn flush(&mut self, index: u32) {
        let now = self.now;
        let flow = &mut self.flows[index as usize];
        let (forward, back, header) = (flow.way(index, false), flow.way(index, true), flow.header);
        let net = &mut self.net;
        match &mut flow.agent {
            Agent::Silent | Agent::Datagrams(_) => return,
            Agent::Rated(_) => {
                self.rated_flush(index);
                return;
            }
            Agent::Leg(_) => {
                self.carry(index);
                return;
            }
            Agent::OneWay(ends) => {
                let mut beside = None;
                while let Some(head) = ends.source.poll(now, &mut beside) {
                    send(net, now, forward, header, &head, beside.take());
                }
                while let Some(head) = ends.sink.poll(now, &mut beside) {
                    send(net, now, back, header, &head, beside.take());
                }
            }
            Agent::Connections(ends) => {
                for (backward, way) in [(true, forward), (false, back)] {
                    while let Some(out) = &ends.end(backward).poll_transmit(now) {
                        send_whole(net, now, way, header, out);
                    }
                }
            }
            Agent::FixedWindow(w) => {
                while let Some(out) = w.poll_transmit() {
                    send(net, now, forward, header, &out, None);
                }
            }
        }
        if R::ENABLED {
            if let Some(sender) = flow.agent.sender() {
                observe::sender(now, index, sender, &mut self.records[index as usize].seen, net);
            }
        }
    }

    /// Sets the timer of a flow to its next deadline.
    pub(crate) fn arm(&mut self, index: u32) {
        let record = &self.records[index as usize];
        let flow = &mut self.flows[index as usize];
        flow.waits &= flow.is_supplied();
        let more = match &record.app {
            Some(app) if !flow.waits => app.next(),
            _ => Instant::MAX,
        };
        let at = match &flow.agent {
            // Finished, between two pages, or a flow whose transfers have their own connections.
            Agent::Silent if more == Instant::MAX => Instant::MAX,
            Agent::Silent | Agent::Datagrams(_) => more.min(record.stop),
            Agent::OneWay(ends) => {
                ends.source.next_timeout().min(ends.sink.next_timeout()).min(record.stop).min(more)
            }
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

    /// Opens the first or next connection of a flow, for the transfer with this number, with this many bytes to
    /// send at once.
    pub(crate) fn open(&mut self, index: u32, transfer: u64, bytes: u64) {
        let now = self.now;
        let record = &mut self.records[index as usize];
        let group = &self.run.groups[record.group];
        let flow = &mut self.flows[index as usize];
        record.page_began = now;
        if let Some(chain) = flow.chain() {
            self.open_chain(chain, transfer, bytes);
            return;
        }
        let stream = |end: &str| {
            let which = if transfer == 0 { String::new() } else { format!(".{transfer}") };
            Rng::stream(self.run.seed, &format!("flows.{}[{}].{end}{which}", group.name, record.index))
        };
        let controls =
            user::controls_of(group, &self.run.rules[record.group], record.index, &self.run.controls);
        let config = &self.run.endpoints[record.group];
        let oracle = Oracle::of(config.loss_classifier, || stream("loss-classifier"));
        self.net.witness.truth.follow(index, config.loss_classifier != LossClassifier::None);
        flow.agent = if group.handshake {
            let mut ends = Ends::open(now, config, controls, stream("cc"), stream("peer"), group.close);
            if let Some(state) = record.path_state() {
                ends.sender.recall(state);
            }
            ends.sender.offer(now, bytes);
            Agent::Connections(Box::new(ends))
        } else {
            let mut ends = OneWay::open(now, group, config, controls.0, stream("cc"));
            if let Some(state) = record.path_state() {
                ends.source.sender_mut().recall(state);
            }
            ends.source.offer(now, bytes);
            Agent::OneWay(ends)
        };
        if oracle.is_some() {
            record.history().oracle = oracle;
        }
        record.seen = crate::flow::Seen::default();
        if flow.finite {
            self.end_stream(index);
        }
    }

    /// Stops the application.
    fn stop(&mut self, index: u32) {
        let Some(app) = &mut self.records[index as usize].app else {
            self.finish_flow(index);
            return;
        };
        let stop = app.stop();
        let flow = &mut self.flows[index as usize];
        let over = match &mut flow.agent {
            // Packets in flight still count.
            Agent::Datagrams(_) => {
                self.note_finished(index);
                return;
            }
            // Queued packets are still sent.
            Agent::Rated(rated) => {
                rated.sender.finish();
                return;
            }
            Agent::OneWay(ends) => {
                let sender = ends.source.sender_mut();
                if stop == Stop::TakeBack {
                    sender.truncate();
                }
                sender.unacked() == 0
            }
            Agent::Connections(ends) => {
                if stop == Stop::TakeBack {
                    ends.sender.truncate();
                }
                ends.over()
            }
            Agent::Leg(leg) => {
                if stop == Stop::TakeBack {
                    leg.ends.sender.truncate();
                }
                let chain = leg.chain;
                flow.finite = true;
                if self.is_over(chain) {
                    self.finish_flow(index);
                } else {
                    self.end_stream(index);
                }
                return;
            }
            // Between two transfers; or transfers have their own connections, and those in progress continue.
            Agent::Silent | Agent::FixedWindow(_) => true,
        };
        flow.finite = true;
        if over {
            self.finish_flow(index);
        } else {
            self.end_stream(index);
        }
    }

    /// Everything written has been acknowledged.
    #[cold]
    pub(crate) fn done(&mut self, index: u32) {
        let now = self.now;
        let record = &mut self.records[index as usize];
        if record.transfer.is_some() {
            self.transferred(index);
            return;
        }
        let outcome = record.app.as_mut().map_or(Outcome::Over, |app| app.acknowledged(now));
        if outcome != Outcome::Over {
            let took = now - record.page_began;
            let page = record.pages.len() as u32;
            record.pages.push(took);
            if R::ENABLED {
                self.net.witness.recorder.record(now, &Event::PageDone { flow: index, page, took });
            }
        }
        if outcome != Outcome::Next {
            self.finish_flow(index);
            return;
        }
        self.retire(index);
        self.produce(index);
        self.flush(index);
        self.arm(index);
    }

    /// Ends a flow.
    fn finish_flow(&mut self, index: u32) {
        self.retire(index);
        self.note_finished(index);
    }

    /// A flow has nothing more to do.
    pub(crate) fn note_finished(&mut self, index: u32) {
        self.records[index as usize].finished = Some(self.now);
        if R::ENABLED {
            self.net.witness.recorder.record(self.now, &Event::FlowFinished { flow: index });
        }
        self.set_timer(index, Instant::MAX);
    }

    /// Takes the current connection out of service and keeps its counts.
    pub(crate) fn retire(&mut self, index: u32) {
        if let Agent::Leg(leg) = &self.flows[index as usize].agent {
            if leg.number == 0 {
                self.retire_chain(leg.chain);
            }
        }
        let record = &mut self.records[index as usize];
        let flow = &mut self.flows[index as usize];
        record.history().past = record.totals(flow, self.run.groups[record.group].endpoint.mss);
        if let Some(sender) = flow.agent.sender() {
            record.history().path_state = sender.learnt();
        }
        (flow.agent, flow.waits) = (Agent::Silent, false);
        flow.generation = flow.generation.wrapping_add(1);
        self.net.witness.truth.forget(index);
    }
}

/// Sends a segment.
#[inline(never)]
pub(crate) fn send<R: Tap>(
    net: &mut Network<R>,
    now: Instant,
    label: Label,
    header: u32,
    head: &Head,
    beside: Option<Extras>,
) {
    let parcel = Parcel::pack(head, beside, header, label, &mut net.witness.bodies, R::PACKETS);
    dispatch(net, now, parcel);
}

/// Sends a segment of a full connection.
pub(crate) fn send_whole<R: Tap>(
    net: &mut Network<R>,
    now: Instant,
    label: Label,
    header: u32,
    segment: &Segment,
) {
    let (head, extras) = segment.split();
    let rare = !extras.is_none() || head.flags.has(Flags::SYN);
    send(net, now, label, header, &head, rare.then_some(extras));
}

/// Sends a parcel.
#[inline(always)]
pub(crate) fn dispatch<R: Tap>(net: &mut Network<R>, now: Instant, parcel: Parcel) {
    if R::ENABLED {
        observe::departure(now, parcel, net);
    }
    if R::PACKETS {
        net.witness.show(now, parcel, Place::Sent);
    }
    net.forward(now, parcel);
}

//! The life of a flow: it starts, opens connections, stops, and ends.

use crate::flow::agent::{Agent, Agents, FixedWindow, OneWay};
use crate::flow::datagram::Rated;
use crate::flow::ends::Ends;
use crate::flow::user;
use crate::flow::{Reported, stream};
use crate::observe::oracle::Oracle;
use crate::observe::tap::Tap;
use crate::sim::Sim;
use skyhaul_apps::{Outcome, Start, Stop, Streams};
use skyhaul_base::Instant;
use skyhaul_scenario::resolved::Transport;
use skyhaul_tcp::config::LossClassifier;
use skyhaul_trace::Event;

impl<R: Tap> Sim<R> {
    /// Starts a flow: its application and, for datagrams, its transport. Connections are opened when the application
    /// demands them.
    pub(crate) fn start(&mut self, index: u32) {
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
        flow.watched = app.watch().is_some();
        record.app = Some(app);
        if group.transport == Transport::Udp {
            flow.agent = Agent::Datagrams(Box::default());
        } else if let Some(rate) = group.transport.rate() {
            flow.agent = Agent::Rated(Box::new(Rated::new(self.now, &rate)));
            self.net.witness.truth.follow(index, rate.asks_an_oracle());
        }
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
        let number = record.index;
        let stream = |end: &str| stream(self.run.seed, group, number, end, transfer);
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
        record.reported = Reported::default();
        if flow.finite {
            self.end_stream(index);
        }
    }

    /// Stops the application.
    pub(crate) fn stop(&mut self, index: u32) {
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
                if let (Stop::TakeBack, Some(ends)) = (stop, leg.tcp_mut()) {
                    ends.sender.truncate();
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
            // No connection is open; or transfers have connections of their own, and those in progress continue.
            Agent::Silent | Agent::FixedWindow(_) | Agent::Segment(_) => true,
        };
        flow.finite = true;
        if over {
            self.finish_flow(index);
        } else {
            self.end_stream(index);
        }
    }

    /// Everything written has been acknowledged: a page or a transfer is complete.
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
            let done = record.page_at(now, &self.run.groups[record.group]);
            let (page, took) = (record.pages.len() as u32, done.took);
            record.pages.push(done);
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
    pub(crate) fn finish_flow(&mut self, index: u32) {
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
        flow.agent = Agent::Silent;
        flow.generation = flow.generation.wrapping_add(1);
        self.net.witness.truth.forget(index);
    }
}

//! Demands of applications: continuous data, and transfers over separate connections.

use crate::flow::agent::Agent;
use crate::flow::watch;
use crate::flow::{Flow, Record, Reported, Totals, Transfer};
use crate::observe::tap::{Opened, Tap};
use crate::observe::truth::{ReductionAccount, Verdicts};
use crate::packet::parcel::Packet;
use crate::result::Page;
use crate::sim::Sim;
use skyhaul_apps::Demand;
use skyhaul_base::Instant;
use skyhaul_trace::{Event, LossCause};

/// Totals of a flow, or of one of its transfers.
#[derive(Debug)]
pub(crate) struct Sums {
    pub(crate) totals: Totals,
    pub(crate) cuts: ReductionAccount,
    pub(crate) verdicts: Verdicts,
    pub(crate) lost: [u64; LossCause::COUNT],
    pub(crate) discarded: u64,
    pub(crate) rejected: u64,
    pub(crate) last_ack: Option<Instant>,
}

impl Sums {
    /// Adds the totals of another.
    pub(crate) fn add(&mut self, other: &Self) {
        self.totals.merge(&other.totals);
        self.cuts.add(&other.cuts);
        self.verdicts.add(&other.verdicts);
        self.lost.iter_mut().zip(other.lost).for_each(|(count, more)| *count += more);
        self.discarded += other.discarded;
        self.rejected += other.rejected;
        self.last_ack = self.last_ack.max(other.last_ack);
    }
}

impl<R: Tap> Sim<R> {
    /// Carries out the demands of a flow's application since the last call.
    pub(crate) fn produce(&mut self, index: u32) {
        let now = self.now;
        watch::feedback(&self.flows[index as usize], &mut self.records[index as usize]);
        loop {
            let Some(app) = &mut self.records[index as usize].app else { return };
            let arrived = app.next().min(now);
            let Some(demand) = app.poll(now) else {
                // The application may have ended, such as a video after its last frame.
                let flow = &mut self.flows[index as usize];
                flow.finite |= app.is_finite();
                if flow.finite {
                    self.end_stream(index);
                }
                return;
            };
            let flow = &mut self.flows[index as usize];
            match (demand, &mut flow.agent) {
                // Endless data, at the allowed rate.
                (Demand::Open { .. }, Agent::Rated(rated)) => rated.sender.greedy(),
                (Demand::Datagram(packet), Agent::Rated(rated)) => {
                    rated.sender.offer(now, packet);
                }
                (Demand::Open { transfer, bytes }, _) if app.opens_many() => {
                    self.begin(Transfer { owner: index, number: transfer, bytes, arrived });
                }
                (Demand::Open { transfer, bytes }, _) => self.open(index, transfer, bytes),
                (Demand::Write(n), Agent::OneWay(ends)) => ends.source.offer(now, n),
                (Demand::Write(n), Agent::Connections(ends)) => ends.sender.offer(now, n),
                (Demand::Write(n), Agent::Leg(leg)) => {
                    if let Some(ends) = leg.tcp_mut() {
                        ends.sender.offer(now, n);
                    }
                }
                (Demand::Datagram(packet), Agent::Datagrams(d)) => {
                    let datagram = d.send(now, packet - flow.header);
                    self.net.send(now, flow.label(index, false), &Packet::Datagram(datagram));
                }
                (Demand::Frame(frame), _) => {
                    if R::ENABLED {
                        let event = watch::frame(index, &frame);
                        self.net.witness.recorder.record(now, &event);
                    }
                }
                // No connection is open that could send it.
                (Demand::Write(_) | Demand::Datagram(_), _) => {}
            }
        }
    }

    /// Opens a connection for a transfer: a closed one is reused, with a new generation number for its segments.
    fn begin(&mut self, transfer: Transfer) {
        let owner = &self.records[transfer.owner as usize];
        let (group, number, path_state) = (owner.group, owner.index, owner.path_state());
        let index = match self.idle.pop() {
            Some(index) => {
                if let Some(owner) = self.records[index as usize].history().last_owner {
                    self.move_counts(index, owner);
                    let generation = self.flows[index as usize].generation;
                    self.net.witness.truth.reuse(index, generation, owner);
                }
                index
            }
            None => {
                let Flow { forward, reverse, header, dscp, .. } = self.flows[transfer.owner as usize];
                let index = self.flows.len() as u32;
                self.flows.push(Flow::new(forward, reverse, true, (header, dscp)));
                self.records.push(Record::new(group, number, Instant::ZERO, Instant::MAX));
                self.timers.grow(self.flows.len());
                self.net.witness.truth.grow();
                index
            }
        };
        let record = &mut self.records[index as usize];
        record.index = number;
        record.group = group;
        record.started = Some(self.now);
        record.transfer = Some(Box::new(transfer));
        record.history().path_state = path_state;
        let Flow { forward, reverse, header, .. } = self.flows[transfer.owner as usize];
        let flow = &mut self.flows[index as usize];
        (flow.forward, flow.reverse, flow.header) = (forward, reverse, header);
        if R::ENABLED || R::PACKETS {
            let generation = self.flows[index as usize].generation;
            self.net.witness.recorder.transfer(&Opened {
                flow: index,
                generation,
                owner: transfer.owner,
                number: transfer.number,
            });
        }
        if R::ENABLED {
            self.net.witness.recorder.record(self.now, &Event::FlowStarted { flow: index });
        }
        self.open(index, transfer.number, transfer.bytes);
        self.records[index as usize].page_began = transfer.arrived;
        self.flush(index);
        self.arm(index);
    }

    /// Nothing more will be written to a connection: a FIN follows the last byte, if connections of the group close.
    pub(crate) fn end_stream(&mut self, index: u32) {
        if !self.run.groups[self.records[index as usize].group].close {
            return;
        }
        match &mut self.flows[index as usize].agent {
            Agent::Connections(ends) => ends.sender.shutdown(self.now),
            Agent::Leg(leg) => {
                if let Some(ends) = leg.tcp_mut() {
                    ends.sender.shutdown(self.now);
                }
            }
            Agent::Silent
            | Agent::OneWay(_)
            | Agent::FixedWindow(_)
            | Agent::Datagrams(_)
            | Agent::Rated(_)
            | Agent::Segment(_) => {}
        }
    }

    /// A transfer is fully acknowledged: its flow takes over its counts, and the connection is free.
    #[cold]
    pub(crate) fn transferred(&mut self, index: u32) {
        let now = self.now;
        self.retire(index);
        self.set_timer(index, Instant::MAX);
        let record = &mut self.records[index as usize];
        let done = record.page_at(now, &self.run.groups[record.group]);
        let Some(owner) = record.transfer.take().map(|t| t.owner) else { return };
        let history = core::mem::take(record.history());
        record.history().last_owner = Some(owner);
        record.reported = Reported::default();
        let last_ack = core::mem::replace(&mut self.flows[index as usize].last_ack, Instant::MAX);
        let flow = &mut self.records[owner as usize];
        let page = flow.pages.len() as u32;
        flow.pages.push(done);
        let past = flow.history();
        past.past.merge(&history.past);
        past.cuts.add(&history.cuts);
        past.verdicts.add(&history.verdicts);
        past.path_state = history.path_state;
        self.flows[owner as usize].last_ack = last_ack;
        self.move_counts(index, owner);
        if R::ENABLED {
            self.net.witness.recorder.record(now, &Event::PageDone { flow: owner, page, took: done.took });
            self.net.witness.recorder.record(now, &Event::FlowFinished { flow: index });
        }
        self.idle.push(index);
        let Some(app) = &mut self.records[owner as usize].app else { return };
        app.acknowledged(now);
        if app.next() <= now {
            // A transfer has waited for a free connection.
            self.produce(owner);
        }
        self.arm(owner);
    }

    /// The flow of a transfer takes over the counts of packets of its connection.
    fn move_counts(&mut self, connection: u32, owner: u32) {
        let record = &mut self.records[connection as usize];
        let (discarded, rejected) =
            (core::mem::take(&mut record.discarded), core::mem::take(&mut record.rejected));
        let owning = &mut self.records[owner as usize];
        owning.discarded += discarded;
        owning.rejected += rejected;
        self.net.witness.truth.move_counts(connection, owner);
    }

    /// Totals of a flow, or of the connection of a transfer.
    pub(crate) fn sums(&self, index: u32) -> Sums {
        let (flow, record) = (&self.flows[index as usize], &self.records[index as usize]);
        Sums {
            totals: record.totals(flow, self.run.groups[record.group].endpoint.mss),
            cuts: record.cuts(),
            verdicts: record.verdicts(),
            lost: self.net.witness.truth.lost_of(index),
            discarded: record.discarded,
            rejected: record.rejected,
            last_ack: flow.last_ack(),
        }
    }

    /// What connections of transfers have counted that their flows have not taken over: the flow of each, its transfer if that is
    /// incomplete, and its totals.
    pub(crate) fn of_transfers(&self) -> Vec<(u32, Option<Page>, Sums)> {
        // After the scenario's flows come the two dummies of `Sim::flows`.
        let first = self.named_flows as usize + 2;
        let connections = self.records.iter().zip(0..).skip(first);
        let found = connections.filter_map(|(record, index)| {
            let open = record.transfer.as_deref();
            let owner =
                open.map(|transfer| transfer.owner).or_else(|| record.history.as_ref()?.last_owner)?;
            let page = open.map(|_| record.page_at(self.now, &self.run.groups[record.group]));
            Some((owner, page, self.sums(index)))
        });
        found.collect()
    }
}

//! What a run holds in memory, and whether that is more than its [budget](crate::sim::budget).

use crate::flow::agent::Agent;
use crate::observe::tap::Tap;
use crate::repaired::segment::RepairedSegment;
use crate::result::Ended;
use crate::sim::Sim;
use crate::sim::budget::EVENTS_BETWEEN_COUNTS;
use skyhaul_apps::Watch;
use skyhaul_scenario::memory::{FLOW, PACKET, PAGE, of_rows};

impl<R: Tap> Sim<R> {
    /// Counts what is held. True if it is more than the run may use: then the run has ended.
    #[cold]
    #[inline(never)]
    pub(crate) fn is_full(&mut self) -> bool {
        if self.budget.ended.is_some() {
            return true;
        }
        // The time of a count grows with the number of flows, so counts are rarer where there are many.
        self.budget.next = self.events + EVENTS_BETWEEN_COUNTS.max(self.flows.len() as u64);
        self.net.settle(self.now);
        let (held, limit) = (self.held(), self.budget.limit);
        if held <= limit {
            return false;
        }
        self.budget.ended = Some(Ended { at: self.now, memory: held, limit });
        self.budget.next = 0;
        true
    }

    /// Memory that grows during a run, bytes, by estimated sizes.
    fn held(&self) -> u64 {
        let records = |agent: &Agent| match agent {
            Agent::OneWay(ends) => ends.source.sender().held().1 + ends.sink.receiver().held().2,
            Agent::Connections(ends) => ends.sender.held().records + ends.receiver.held().records,
            Agent::Leg(leg) => {
                leg.tcp().map_or(0, |ends| ends.sender.held().records + ends.receiver.held().records)
            }
            Agent::Silent
            | Agent::FixedWindow(_)
            | Agent::Datagrams(_)
            | Agent::Rated(_)
            | Agent::Segment(_) => 0,
        };
        let flows = FLOW * self.flows.len() as u64;
        let records: usize = self.flows.iter().map(|f| records(&f.agent)).sum();
        let pages: usize = self.records.iter().map(|r| r.pages.len()).sum();
        let series = self.sampler.series();
        let rows = [&series.flows, &series.links].map(|s| of_rows(s.time.len() as f64, s.names.len()));
        let telemetry = of_rows(series.telemetry.time.len() as f64, 2);
        let sampled = (rows[0] + rows[1] + telemetry) as u64;
        let packets = PACKET * self.in_network() as u64;
        let films = self.records.iter().filter_map(|r| r.app.as_ref()?.watch());
        let films: u64 = films.map(Watch::held).sum();
        let delays = self.net.witness.delays.as_ref().map_or(0, |d| d.held()) as u64;
        let recorded = self.recorder().held() as u64 + delays;
        let segments: usize = self.segments.iter().map(RepairedSegment::held).sum();
        flows + (records + segments) as u64 + PAGE * pages as u64 + sampled + packets + films + recorded
    }
}

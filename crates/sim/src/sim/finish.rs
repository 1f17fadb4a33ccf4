//! The end of a run: results, or the reason why there are none.

use crate::error::{Failure, caught};
use crate::flow::agent::Agent;
use crate::flow::datagram::Rated;
use crate::flow::transfer::Sums;
use crate::flow::{Flow, Record};
use crate::observe::sampler::ratio;
use crate::observe::tap::Tap;
use crate::packet::network::cause;
use crate::packet::parcel::{Parcel, kind};
use crate::result::{ChainResult, ClassResult, FlowResult, LinkResult, Page, RateResult, RunResult};
use crate::sim::{Sim, Status};
use skyhaul_apps::App;
use skyhaul_base::{Duration, Instant};
use skyhaul_path::stats::Counters;
use skyhaul_path::{DropReason, Hop};
use skyhaul_trace::Class;

impl<R: Tap> Sim<R> {
    /// Runs to the end and returns the results.
    #[must_use]
    pub fn finish(mut self) -> RunResult {
        self.run_until(Instant::MAX);
        self.result()
    }

    /// As [`Self::run_until`]; a control that panics, or fails on purpose (see
    /// [`Failed`](skyhaul_cc::user::Failed)), ends the run with an error. The world can then only be dropped.
    ///
    /// # Errors
    /// The cause and time of the failure.
    pub fn try_run_until(&mut self, t: Instant) -> Result<Status, Failure> {
        caught(|| self.run_until(t)).map_err(|failure| Failure { at: self.now, ..failure })
    }

    /// As [`Self::finish`], with the errors of [`Self::try_run_until`].
    ///
    /// # Errors
    /// The cause and time of the failure.
    pub fn try_finish(mut self) -> Result<RunResult, Failure> {
        self.try_run_until(Instant::MAX)?;
        Ok(self.result())
    }

    /// The results so far.
    #[must_use]
    pub fn result(&self) -> RunResult {
        let duration = self.now - Instant::ZERO;
        let links = self.net.chain.hops().iter().zip(0..2 * self.run.link_names.len());
        RunResult {
            duration,
            flows: self.flow_results(duration),
            links: links.map(|(hop, i)| self.link_result(hop, i, duration)).collect(),
            series: self.sampler.series().clone(),
            events: self.events,
            digest: self.net.witness.recorder.digest(),
            ended: self.budget.ended,
        }
    }

    fn flow_results(&self, duration: Duration) -> Vec<FlowResult> {
        let mut parts: Vec<_> = (0..self.named_flows).map(|index| self.sums(index)).collect();
        let mut transfers = vec![Vec::new(); parts.len()];
        for (owner, transfer, part) in self.of_transfers() {
            parts[owner as usize].add(&part);
            transfers[owner as usize].extend(transfer);
        }
        // The result of a chain is what its receiver has acknowledged.
        let mut to_senders = vec![0; parts.len()];
        for (c, chain) in self.chains.iter().enumerate() {
            let part = &mut parts[chain.legs[0] as usize];
            to_senders[chain.legs[0] as usize] = part.totals.bytes_acked;
            part.totals.bytes_acked = self.acknowledged_by_receiver(c as u32);
        }
        let named = self.flows.iter().zip(&self.records).zip(parts).zip(to_senders).zip(transfers);
        let measured = self.net.witness.delays.as_ref();
        let mut delays = (0..).map(|i| measured?.of(i));
        let result = |((((flow, record), part), to_sender), transfers)| {
            let chain = self.chain_result(flow, to_sender);
            let mut result = FlowResult { chain, ..self.flow_result(flow, record, part, duration) };
            result.packet_delays = delays.next().flatten().map(Box::new);
            result.unfinished.extend(transfers);
            result
        };
        named.map(result).collect()
    }

    /// Results of a flow's chain, which has acknowledged `to_sender` bytes to the sender.
    fn chain_result(&self, flow: &Flow, to_sender: u64) -> Option<Box<ChainResult>> {
        let c = flow.chain()?;
        let chain = &self.chains[c as usize];
        let lost_data = chain.dead || chain.measures.state_losses > 0;
        Some(Box::new(ChainResult {
            custody: chain.measures.custody,
            custody_at_close: chain.measures.custody_at_close,
            setup: chain.measures.setup,
            first_byte: chain.measures.first_byte,
            lost: if lost_data { to_sender.saturating_sub(self.delivered(c)) } else { 0 },
            bypassed: chain.measures.bypassed,
            refused: chain.measures.refused,
            moved: chain.measures.moved,
            silent: chain.measures.silent,
        }))
    }

    /// The page in progress, or that was when its flow was stopped.
    fn page_in_progress(&self, record: &Record) -> Vec<Page> {
        let loading = record.app.as_ref().is_some_and(App::is_loading);
        let until = record.finished.unwrap_or(self.now);
        loading.then(|| record.page_at(until, &self.run.groups[record.group])).into_iter().collect()
    }

    fn flow_result(
        &self,
        flow: &Flow,
        record: &Record,
        Sums { totals: t, cuts, verdicts, lost, discarded, rejected, last_ack }: Sums,
        duration: Duration,
    ) -> FlowResult {
        let group = &self.run.groups[record.group];
        let viewed = record.app.as_ref().and_then(App::watch).map(|w| w.viewed(self.now));
        let (sum, samples) = record.srtt;
        let last_srtt = flow.srtt().map(Duration::as_secs_f64);
        FlowResult {
            group: group.name.clone(),
            index: record.index,
            started: record.started,
            finished: record.finished,
            last_ack,
            leg: group.is_leg(),
            chain: None,
            bytes_acked: t.bytes_acked,
            segments_acked: t.bytes_acked as f64 / f64::from(group.endpoint.mss),
            goodput: if duration.is_zero() {
                0.0
            } else {
                t.bytes_acked as f64 * 8.0 / duration.as_secs_f64()
            },
            segments_sent: t.segments_sent,
            retransmissions: t.retransmissions,
            timeout_retransmissions: t.timeout_retransmissions,
            timeouts: t.timeouts,
            recoveries: t.recoveries,
            cuts: cuts.all,
            timeout_cuts: cuts.timeouts,
            cuts_undone: t.undone,
            verdicts,
            probes_sent: t.probes_sent,
            probes_answered: t.probes_answered,
            acks: t.acks,
            duplicate_acks: t.duplicate_acks,
            discarded,
            rejected,
            unread: t.unread,
            pages: record.pages.clone(),
            unfinished: self.page_in_progress(record),
            transfers: record.app.as_ref().map_or(0, App::transfers),
            lost,
            datagrams: match (&viewed, &flow.agent) {
                (Some(viewed), _) => Some(viewed.measured),
                (None, Agent::Datagrams(d)) => Some(d.result()),
                (None, Agent::Rated(rated)) => Some(rated.result()),
                (None, _) => None,
            },
            video: viewed.map(Box::new),
            rate: flow.agent.rated().map(rate_result),
            packet_delays: None,
            bursts: t.bursts,
            bwe: record.history.as_ref().and_then(|h| h.bwe.spread()),
            mean_srtt: if samples > 0 { Some(sum / samples as f64) } else { last_srtt },
        }
    }

    fn link_result(&self, hop: &Hop<Parcel>, index: usize, duration: Duration) -> LinkResult {
        let (link, counters) = (hop.link(), hop.counters());
        let total = counters.total();
        let rated = link.rate().is_some();
        LinkResult {
            name: self.run.link_names[index / 2].clone(),
            forward: index % 2 == 0,
            classes: Class::ALL.map(|class| class_result(&counters, class)),
            offered_bytes: total.offered_bytes,
            delivered_bytes: total.delivered_bytes,
            utilization: if rated { ratio(link.busy_time(self.now), duration) } else { 0.0 },
            mean_queue: if duration.is_zero() {
                0.0
            } else {
                link.queue_integral(self.now) as f64 / duration.as_nanos() as f64
            },
            max_queue: counters.max_queue,
            repair: counters.repair,
            reconstructed: hop.made(),
            gateways: self.segments.iter().find_map(|s| s.counters(index)).map(Box::new),
        }
    }
}

/// Results of a rate-controlled flow.
fn rate_result(rated: &Rated) -> RateResult {
    let (state, counters, statistics) =
        (rated.sender.state(), rated.sender.counters(), rated.receiver.statistics());
    RateResult {
        allowed: state.rate * 8.0,
        reports: statistics.reports,
        refused: counters.refused,
        expiries: counters.expiries,
        loss_events: statistics.loss_events,
        loss_event_rate: statistics.loss_event_rate,
    }
}

/// A link's counters of a class, high and low priority together.
fn class_result(counters: &Counters, class: Class) -> ClassResult {
    let mut result = ClassResult::default();
    for low in [false, true] {
        let counts = &counters.kinds[usize::from(kind(class, low))];
        result.offered += counts.offered;
        result.delivered += counts.delivered;
        result.marked += counts.marked;
        result.duplicated += counts.duplicated;
        for why in DropReason::ALL {
            result.dropped[cause(why) as usize] += counts.dropped(why);
        }
    }
    result
}

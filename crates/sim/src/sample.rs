//! Samples at regular times, and the result at the end.

use crate::agent::Agent;
use crate::flow::{Flow, Record, Totals};
use crate::network::{Network, cause};
use crate::parcel::{Parcel, kind};
use crate::quantity::{Subject, sampled};
use crate::result::{ClassResult, FlowResult, LinkResult, RunResult, SampledSeries, Telemetry};
use crate::sim::Sim;
use crate::tap::Tap;
use crate::truth::Account;
use skyhaul_apps::App;
use skyhaul_base::{Duration, Instant};
use skyhaul_cc::CongestionControl;
use skyhaul_path::stats::Counters;
use skyhaul_path::{DropReason, Link};
use skyhaul_scenario::resolved::{self, FlowGroup, Series as Kind};
use skyhaul_trace::{Class, Event, LossCause, Series};

/// Takes rows at regular times.
#[derive(Debug)]
pub(crate) struct Sampler {
    interval: Duration,
    /// Directed links that the scenario names; others are not reported.
    links: usize,
    flow_kinds: Vec<Kind>,
    link_kinds: Vec<Kind>,
    /// Busy time of each link at the last sample.
    busy: Vec<Duration>,
    last: Instant,
    series: SampledSeries,
    row: Vec<f64>,
}

impl Sampler {
    pub(crate) fn new(record: &resolved::Record, links: usize) -> Self {
        let of_links = |k: &Kind| sampled(*k).of == Subject::Link;
        let sampled = record.sample.is_some();
        let chosen = record.series.iter().copied().filter(|_| sampled);
        let (link_kinds, flow_kinds): (Vec<Kind>, Vec<Kind>) = chosen.partition(of_links);
        let names =
            |kinds: &[Kind]| kinds.iter().filter(|k| **k != Kind::Telemetry).map(|k| k.name()).collect();
        Self {
            interval: record.sample.unwrap_or(Duration::MAX),
            links,
            series: SampledSeries {
                flows: Series::new(names(&flow_kinds)),
                links: Series::new(names(&link_kinds)),
                telemetry: Telemetry::default(),
            },
            flow_kinds,
            link_kinds,
            busy: vec![Duration::ZERO; links],
            last: Instant::ZERO,
            row: Vec::new(),
        }
    }

    /// Takes one row for each flow and link; returns when the next is due.
    pub(crate) fn sample<R: Tap>(
        &mut self,
        now: Instant,
        flows: &[Flow],
        records: &mut [Record],
        groups: &[FlowGroup],
        net: &mut Network<R>,
    ) -> Instant {
        for (i, (flow, record)) in flows.iter().zip(records).enumerate() {
            self.sample_flow(now, i as u32, flow, record, &groups[record.group]);
        }
        self.sample_links(now, net);
        self.last = now;
        now + self.interval
    }

    fn sample_flow(&mut self, now: Instant, index: u32, flow: &Flow, record: &mut Record, group: &FlowGroup) {
        let state = flow.snapshot();
        if let Some(srtt) = state.and_then(|s| s.srtt) {
            record.srtt.0 += srtt.as_secs_f64();
            record.srtt.1 += 1;
        }
        let mss = f64::from(group.endpoint.mss);
        if !self.series.flows.names.is_empty() {
            self.row.clear();
            for kind in &self.flow_kinds {
                // What a flow without connection has no value for is NaN, shown as a gap in figures.
                let value = match kind {
                    Kind::Acked => record.totals(flow, group.endpoint.mss).bytes_acked as f64 / mss,
                    Kind::Cwnd => state.map_or(f64::NAN, |s| s.cwnd),
                    Kind::InFlight => state.map_or(0.0, |s| s.in_flight as f64 / mss),
                    Kind::Pipe => state.map_or(0.0, |s| s.pipe as f64 / mss),
                    Kind::Retransmissions => record.totals(flow, group.endpoint.mss).retransmissions as f64,
                    Kind::Rto => state.map_or(f64::NAN, |s| s.rto.as_secs_f64()),
                    Kind::Srtt => state.and_then(|s| s.srtt).map_or(f64::NAN, Duration::as_secs_f64),
                    Kind::Ssthresh => state.map_or(f64::NAN, |s| s.ssthresh),
                    Kind::Delay
                    | Kind::Telemetry
                    | Kind::Queue
                    | Kind::Rate
                    | Kind::Up
                    | Kind::Utilization => continue,
                };
                self.row.push(value);
            }
            self.series.flows.push(now, index, &self.row);
        }
        if let (true, Some(sender)) = (self.flow_kinds.contains(&Kind::Telemetry), flow.agent.sender()) {
            let t = &mut self.series.telemetry;
            sender.control().telemetry(&mut |name, value| {
                t.time.push(now);
                t.flow.push(index);
                t.name.push(name);
                t.value.push(value);
            });
        }
    }

    fn sample_links<R: Tap>(&mut self, now: Instant, net: &mut Network<R>) {
        net.settle(now);
        let Network { chain, witness } = net;
        let recorder = &mut witness.recorder;
        for (i, (hop, before)) in chain.hops().iter().zip(&mut self.busy).enumerate().take(self.links) {
            let (link, index) = (hop.link(), i as u32);
            if R::ENABLED {
                recorder.record(now, &Event::Queue { link: index, packets: link.queue_len() });
            }
            if self.link_kinds.is_empty() {
                continue;
            }
            self.row.clear();
            for kind in &self.link_kinds {
                self.row.push(match kind {
                    Kind::Delay => link.delay().base_at(now).as_secs_f64(),
                    Kind::Queue => f64::from(link.queue_len()),
                    // A transmitter without a rate has no value: a gap in figures.
                    Kind::Rate if link.is_up() => link.rate_over(self.last, now).unwrap_or(f64::NAN),
                    Kind::Rate => 0.0,
                    Kind::Up => f64::from(u8::from(link.is_up())),
                    Kind::Utilization => {
                        let busy = link.busy_time(now);
                        let span = now - self.last;
                        ratio(busy - core::mem::replace(before, busy), span)
                    }
                    _ => continue,
                });
            }
            self.series.links.push(now, index, &self.row);
        }
    }
}

/// `part / whole`, 0 for an empty whole.
fn ratio(part: Duration, whole: Duration) -> f64 {
    if whole.is_zero() { 0.0 } else { part.as_secs_f64() / whole.as_secs_f64() }
}

impl<R: Tap> Sim<R> {
    /// Runs to the end and returns what was measured.
    #[must_use]
    pub fn finish(mut self) -> RunResult {
        self.run_until(Instant::MAX);
        self.result()
    }

    /// What has been measured so far.
    #[must_use]
    pub fn result(&self) -> RunResult {
        let duration = self.now - Instant::ZERO;
        let links = self.net.chain.hops().iter().zip(0..2 * self.run.link_names.len());
        RunResult {
            duration,
            flows: self.flow_results(duration),
            links: links.map(|(hop, i)| self.link_result(hop.link(), i, duration)).collect(),
            series: self.sampler.series.clone(),
            events: self.events,
            digest: self.net.witness.recorder.digest(),
        }
    }

    fn flow_results(&self, duration: Duration) -> Vec<FlowResult> {
        let named = self.flows.iter().zip(&self.records).take(self.named_flows as usize);
        let mut parts: Vec<_> = named
            .enumerate()
            .map(|(i, (flow, record))| {
                let mss = self.run.groups[record.group].endpoint.mss;
                (record.totals(flow, mss), record.cuts(), self.net.witness.truth.lost_of(i as u32))
            })
            .collect();
        for (owner, totals, cuts, lost) in self.incomplete() {
            let part = &mut parts[owner as usize];
            part.0.merge(&totals);
            part.1.add(&cuts);
            part.2.iter_mut().zip(lost).for_each(|(count, more)| *count += more);
        }
        let named = self.flows.iter().zip(&self.records).zip(parts);
        named.map(|((flow, record), part)| self.flow_result(flow, record, part, duration)).collect()
    }

    fn flow_result(
        &self,
        flow: &Flow,
        record: &Record,
        (t, cuts, lost): (Totals, Account, [u64; LossCause::COUNT]),
        duration: Duration,
    ) -> FlowResult {
        let group = &self.run.groups[record.group];
        let (sum, samples) = record.srtt;
        let last_srtt = flow.snapshot().and_then(|s| s.srtt).map(Duration::as_secs_f64);
        FlowResult {
            group: group.name.clone(),
            index: record.index,
            started: record.started,
            finished: record.finished,
            last_ack: flow.last_ack,
            bytes_acked: t.bytes_acked,
            segments_acked: t.bytes_acked as f64 / f64::from(group.endpoint.mss),
            goodput: if duration.is_zero() {
                0.0
            } else {
                t.bytes_acked as f64 * 8.0 / duration.as_secs_f64()
            },
            segments_sent: t.segments_sent,
            retransmissions: t.retransmissions,
            timeouts: t.timeouts,
            recoveries: t.recoveries,
            cuts: cuts.all,
            timeout_cuts: cuts.timeouts,
            cuts_undone: t.undone,
            probes_sent: t.probes_sent,
            probes_answered: t.probes_answered,
            acks: t.acks,
            duplicate_acks: t.duplicate_acks,
            discarded: record.discarded,
            rejected: record.rejected,
            pages: record.pages.clone(),
            transfers: record.app.as_ref().map_or(0, App::transfers),
            lost,
            datagrams: match &flow.agent {
                Agent::Datagrams(d) => Some(d.result()),
                _ => None,
            },
            mean_srtt: if samples > 0 { Some(sum / samples as f64) } else { last_srtt },
        }
    }

    fn link_result(&self, link: &Link<Parcel>, index: usize, duration: Duration) -> LinkResult {
        let total = link.counters().total();
        let rated = link.rate().is_some();
        LinkResult {
            name: self.run.link_names[index / 2].clone(),
            forward: index % 2 == 0,
            classes: Class::ALL.map(|class| class_result(link.counters(), class)),
            offered_bytes: total.offered_bytes,
            delivered_bytes: total.delivered_bytes,
            utilization: if rated { ratio(link.busy_time(self.now), duration) } else { 0.0 },
            mean_queue: if duration.is_zero() {
                0.0
            } else {
                link.queue_integral(self.now) as f64 / duration.as_nanos() as f64
            },
            max_queue: link.counters().max_queue,
        }
    }
}

/// What a link has counted of a class, of high and of low priority.
fn class_result(counters: &Counters, class: Class) -> ClassResult {
    let mut result = ClassResult::default();
    for low in [false, true] {
        let counts = &counters.kinds[usize::from(kind(class, low))];
        result.offered += counts.offered;
        result.delivered += counts.delivered;
        for why in DropReason::ALL {
            result.dropped[cause(why) as usize] += counts.dropped(why);
        }
    }
    result
}

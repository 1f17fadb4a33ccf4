//! Measurements at regular times.

use crate::flow::{Flow, Record};
use crate::observe::tap::Tap;
use crate::packet::network::Network;
use crate::quantity::{Subject, sampled};
use crate::result::{SampledSeries, Telemetry};
use skyhaul_apps::App;
use skyhaul_base::{Duration, Instant};
use skyhaul_cc::CongestionControl;
use skyhaul_scenario::Gauges;
use skyhaul_scenario::resolved::{FlowGroup, Resolved, Series as Kind};
use skyhaul_trace::{Event, Series};

/// Takes rows at regular times.
#[derive(Debug)]
pub(crate) struct Sampler {
    interval: Duration,
    /// Number of directed links of the scenario. Those of access delays and tunnels come after them, and are not
    /// sampled.
    links: usize,
    flow_kinds: Vec<Kind>,
    link_kinds: Vec<Kind>,
    /// What changes each link by itself, if a series asks for it.
    gauges: Vec<Gauges>,
    /// Busy time of each link at the last sample.
    busy: Vec<Duration>,
    last: Instant,
    series: SampledSeries,
    row: Vec<f64>,
}

impl Sampler {
    pub(crate) fn new(scenario: &Resolved, seed: u64) -> Self {
        let (record, links) = (&scenario.record, 2 * scenario.links.len());
        let of_links = |k: &Kind| sampled(*k).of == Subject::Link;
        let sampled = record.sample.is_some();
        let chosen = record.series.iter().copied().filter(|_| sampled);
        let (link_kinds, flow_kinds): (Vec<Kind>, Vec<Kind>) = chosen.partition(of_links);
        let gauged = [Kind::Attenuation, Kind::Elevation, Kind::EsN0, Kind::ModCod, Kind::Satellite];
        let has_gauges = link_kinds.iter().any(|k| gauged.contains(k));
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
            gauges: if has_gauges { scenario.gauges(seed) } else { Vec::new() },
            busy: vec![Duration::ZERO; links],
            last: Instant::ZERO,
            row: Vec::new(),
        }
    }

    /// The rows so far.
    pub(crate) fn series(&self) -> &SampledSeries {
        &self.series
    }

    /// Takes one row for each flow and link; returns when the next is due.
    pub(crate) fn sample<R: Tap>(
        &mut self,
        now: Instant,
        flows: &[Flow],
        records: &mut [Record],
        groups: &[FlowGroup],
        net: &mut Network<R>,
        custody: &[u64],
    ) -> Instant {
        for (i, (flow, record)) in flows.iter().zip(records).enumerate() {
            self.sample_flow(now, i as u32, flow, record, &groups[record.group], custody);
        }
        self.sample_links(now, net);
        self.last = now;
        now + self.interval
    }

    fn sample_flow(
        &mut self,
        now: Instant,
        index: u32,
        flow: &Flow,
        record: &mut Record,
        group: &FlowGroup,
        custody: &[u64],
    ) {
        let state = flow.snapshot();
        let rate = flow.agent.rated().map(|r| r.sender.state());
        let srtt = flow.srtt().map(Duration::as_secs_f64);
        if let Some(srtt) = srtt {
            record.srtt.0 += srtt;
            record.srtt.1 += 1;
        }
        let bwe = flow.bandwidth_estimate();
        if let Some(bwe) = bwe {
            record.history().bwe.add(bwe);
        }
        let mss = f64::from(group.endpoint.mss);
        let watch = record.app.as_ref().and_then(App::watch);
        if !self.series.flows.names.is_empty() {
            self.row.clear();
            for kind in &self.flow_kinds {
                // NaN, a gap in figures, where a flow has no value, such as without a connection.
                let value = match kind {
                    Kind::Acked => record.totals(flow, group.endpoint.mss).bytes_acked as f64 / mss,
                    Kind::AllowedRate => rate.map_or(f64::NAN, |s| s.rate * 8.0),
                    Kind::LossEventRate => rate.and_then(|s| s.loss).unwrap_or(f64::NAN),
                    Kind::Buffered => watch.and_then(|w| w.buffered(now)).unwrap_or(f64::NAN),
                    Kind::Custody => flow.chain().map_or(f64::NAN, |c| custody[c as usize] as f64),
                    Kind::Bwe => bwe.unwrap_or(f64::NAN),
                    Kind::Cwnd => state.map_or(f64::NAN, |s| s.cwnd),
                    Kind::InFlight => state.map_or(0.0, |s| s.in_flight as f64 / mss),
                    Kind::Pipe => state.map_or(0.0, |s| s.pipe as f64 / mss),
                    Kind::Retransmissions => record.totals(flow, group.endpoint.mss).retransmissions as f64,
                    Kind::Rto => state.map_or(f64::NAN, |s| s.rto.as_secs_f64()),
                    Kind::Srtt => srtt.unwrap_or(f64::NAN),
                    Kind::Ssthresh => state.map_or(f64::NAN, |s| s.ssthresh),
                    Kind::Stalled => watch.and_then(|w| w.stalled(now)).unwrap_or(f64::NAN),
                    Kind::Attenuation
                    | Kind::Delay
                    | Kind::Elevation
                    | Kind::EsN0
                    | Kind::Marked
                    | Kind::ModCod
                    | Kind::Telemetry
                    | Kind::Queue
                    | Kind::Rate
                    | Kind::Satellite
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
        let Network { chain, witness, .. } = net;
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
            let gauges = self.gauges.get_mut(i);
            let (fade, orbit) = gauges.map_or((None, None), |g| {
                (g.fade.as_mut().map(|f| f.at(now)), g.orbit.as_mut().and_then(|o| o.at(now)))
            });
            let carrier = fade.and_then(|f| f.carrier);
            for kind in &self.link_kinds {
                // NaN, a gap in figures, where a link has no such value.
                self.row.push(match kind {
                    Kind::Attenuation => fade.map_or(f64::NAN, |f| f.attenuation),
                    Kind::Elevation => orbit.map_or(f64::NAN, |o| o.elevation),
                    Kind::EsN0 => carrier.map_or(f64::NAN, |c| c.es_n0),
                    Kind::ModCod => carrier.map_or(f64::NAN, |c| c.efficiency),
                    Kind::Satellite => orbit.map_or(f64::NAN, |o| f64::from(o.satellite)),
                    Kind::Delay => link.delay().base_at(now).as_secs_f64(),
                    Kind::Marked => link.counters().kinds.iter().map(|k| k.marked).sum::<u64>() as f64,
                    Kind::Queue => f64::from(link.queue_len()),
                    // A transmitter may have no rate.
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
pub(crate) fn ratio(part: Duration, whole: Duration) -> f64 {
    if whole.is_zero() { 0.0 } else { part.as_secs_f64() / whole.as_secs_f64() }
}

//! Results of one run, in any world.

use crate::command::simulate::progress::Runs;
use crate::stop::Stop;
use skyhaul_base::Duration;
use skyhaul_cc::Controls;
use skyhaul_lab::cases::Case;
use skyhaul_lab::run::whole;
use skyhaul_net::world::{FlowOutcome, Outcome, Sample};
use skyhaul_scenario::resolved::{Record, Series, Transport};
use skyhaul_sim::FlowResult;
use skyhaul_sim::Viewed;

/// A sample of one flow.
pub(super) struct Point {
    /// Time in the run, s.
    pub(super) at: f64,
    pub(super) flow: u32,
    /// Segments; `None` for a flow without a connection, or with several.
    pub(super) cwnd: Option<f64>,
    /// Payload acknowledged, bytes.
    pub(super) acked: f64,
}

/// Results of one run.
pub(super) struct RunMeasures {
    /// Goodput of all flows, bit/s.
    pub(super) goodput: f64,
    pub(super) retransmissions: u64,
    /// `None` if the kernel's TCP sends: it does not count them.
    pub(super) timeouts: Option<u64>,
    /// Probes sent, and answered.
    pub(super) probes: (u64, u64),
    /// In the order of their names.
    pub(super) groups: Vec<Group>,
    /// Reasons not to trust the emulation; none in the simulator.
    pub(super) doubts: Vec<String>,
    pub(super) samples: Vec<Point>,
}

/// Results of the flows of one group.
#[derive(Default)]
pub(super) struct Group {
    pub(super) name: String,
    /// Bit/s.
    pub(super) goodput: f64,
    pub(super) retransmissions: u64,
    pub(super) timeouts: Option<u64>,
    pub(super) probes: (u64, u64),
    /// Times of pages, or of transfers that arrived at random, seconds.
    pub(super) pages: Vec<f64>,
    /// Transfers that arrived at random, complete or not.
    pub(super) transfers: u64,
    pub(super) datagrams: Option<Datagrams>,
    /// One entry per rate-controlled flow.
    pub(super) rates: Vec<Rate>,
    /// One entry per video flow.
    pub(super) films: Vec<Viewed>,
}

/// Results of a flow of rate-controlled datagrams.
#[derive(Clone, Copy)]
pub(super) struct Rate {
    /// The last loss event rate measured by the receiver; SSVP has none.
    pub(super) loss: Option<f64>,
    /// Reports that the receiver sent.
    pub(super) reports: u64,
}

/// Results of datagrams.
#[derive(Clone, Copy, Default)]
pub(super) struct Datagrams {
    pub(super) sent: u64,
    pub(super) delivered: u64,
    /// Datagrams known to be lost because later ones arrived.
    pub(super) missing: u64,
    /// Sum of the delays of all delivered datagrams, s.
    delay: f64,
    /// Sum of the jitter at the end of each flow that measured one, s, and the number of these flows.
    jitter: (f64, u32),
}

impl Datagrams {
    /// The results of one flow; mean delay and jitter in seconds.
    fn of(sent: u64, (delivered, missing): (u64, u64), delay: Option<f64>, jitter: Option<f64>) -> Self {
        Self {
            sent,
            delivered,
            missing,
            delay: delay.unwrap_or(0.0) * delivered as f64,
            jitter: (jitter.unwrap_or(0.0), jitter.is_some().into()),
        }
    }
    /// Mean delay, s; NaN if nothing was delivered.
    pub(super) fn delay(&self) -> f64 {
        self.delay / self.delivered as f64
    }
    /// Mean jitter of the flows, s; NaN if no flow measured one.
    pub(super) fn jitter(&self) -> f64 {
        self.jitter.0 / f64::from(self.jitter.1)
    }
}

impl Group {
    /// Mean time of a page, s; NaN without pages.
    pub(super) fn page(&self) -> f64 {
        self.pages.iter().sum::<f64>() / self.pages.len() as f64
    }

    /// Adds the results of another flow of the group.
    fn add(&mut self, flow: Self) {
        self.goodput += flow.goodput;
        self.retransmissions += flow.retransmissions;
        self.timeouts = self.timeouts.zip(flow.timeouts).map(|(a, b)| a + b);
        self.probes = (self.probes.0 + flow.probes.0, self.probes.1 + flow.probes.1);
        self.pages.extend(flow.pages);
        self.transfers += flow.transfers;
        self.rates.extend(flow.rates);
        self.films.extend(flow.films);
        if let (Some(d), Some(more)) = (&mut self.datagrams, flow.datagrams) {
            d.sent += more.sent;
            d.delivered += more.delivered;
            d.missing += more.missing;
            d.delay += more.delay;
            d.jitter = (d.jitter.0 + more.jitter.0, d.jitter.1 + more.jitter.1);
        }
    }
    /// Joins flows, which come in the order of their groups, to groups.
    fn join(flows: impl Iterator<Item = Self>) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for flow in flows {
            match groups.last_mut().filter(|g| g.name == flow.name) {
                Some(group) => group.add(flow),
                None => groups.push(flow),
            }
        }
        groups
    }
}

fn seconds(times: &[Duration]) -> Vec<f64> {
    times.iter().map(|t| t.as_secs_f64()).collect()
}

/// The results of a run from those of its groups.
fn of_groups(groups: Vec<Group>, doubts: Vec<String>, samples: Vec<Point>) -> RunMeasures {
    RunMeasures {
        goodput: groups.iter().map(|g| g.goodput).sum(),
        retransmissions: groups.iter().map(|g| g.retransmissions).sum(),
        timeouts: groups.iter().map(|g| g.timeouts).sum(),
        probes: groups.iter().fold((0, 0), |(s, a), g| (s + g.probes.0, a + g.probes.1)),
        groups,
        doubts,
        samples,
    }
}

/// Runs a case in the simulator.
pub(super) fn simulate(case: &Case, seed: u64) -> Result<RunMeasures, Stop> {
    let mut scenario = case.scenario.clone();
    let sample = scenario.record.sample.unwrap_or(Duration::from_millis(100));
    scenario.record =
        Record { sample: Some(sample), series: vec![Series::Acked, Series::Cwnd], ..Record::default() };
    let case = Case { scenario, seed, choice: case.choice.clone() };
    let r = whole(&case, &Controls::default(), &Runs::of(std::slice::from_ref(&case)))?;
    // The segment size of each flow, if it is TCP.
    let segments: Vec<Option<f64>> = case
        .scenario
        .flows
        .iter()
        .flat_map(|g| {
            let segment = (g.transport == Transport::Tcp).then_some(f64::from(g.endpoint.mss));
            std::iter::repeat_n(segment, g.count as usize)
        })
        .collect();
    let series = &r.series.flows;
    let column =
        |name: &str| series.names.iter().position(|n| *n == name).and_then(|i| series.columns.get(i));
    let mut samples = Vec::new();
    if let (Some(acked), Some(cwnd)) = (column("acked"), column("cwnd")) {
        for (i, at) in series.time.iter().enumerate() {
            let flow = series.entity[i];
            let Some(segment) = segments.get(flow as usize).copied().flatten() else { continue };
            let cwnd = Some(cwnd[i]).filter(|w| w.is_finite());
            samples.push(Point { at: at.as_secs_f64(), flow, cwnd, acked: acked[i] * segment });
        }
    }
    // The packets of a film are those of the application, whatever the transport.
    let sent = |f: &FlowResult| f.video.as_ref().map_or(f.segments_sent, |v| v.packets);
    let group = |f: &FlowResult| Group {
        name: f.group.clone(),
        goodput: f.goodput,
        retransmissions: f.retransmissions,
        timeouts: Some(f.timeouts),
        probes: (f.probes_sent, f.probes_answered),
        pages: f.pages.iter().map(|p| p.took.as_secs_f64()).collect(),
        transfers: f.transfers,
        datagrams: f
            .datagrams
            .map(|m| Datagrams::of(sent(f), (m.delivered, m.missing), m.delay_mean, m.jitter)),
        rates: f.rate.iter().map(|r| Rate { loss: r.loss_event_rate, reports: r.reports }).collect(),
        films: f.video.as_deref().cloned().into_iter().collect(),
    };
    Ok(of_groups(Group::join(r.flows.iter().map(group)), Vec::new(), samples))
}

/// Results of a run in real time.
pub(super) fn measured(o: &Outcome) -> RunMeasures {
    let point =
        |s: &Sample| Point { at: s.at.as_secs_f64(), flow: s.flow, cwnd: s.cwnd, acked: s.acked as f64 };
    let sent = |f: &FlowOutcome| f.video.as_ref().map_or(f.sent.unwrap_or(0), |v| v.packets);
    let group = |f: &FlowOutcome| Group {
        name: f.group.clone(),
        goodput: f.goodput,
        retransmissions: f.retransmissions,
        timeouts: f.timeouts,
        probes: f.probes,
        pages: seconds(&f.pages),
        transfers: f.transfers,
        datagrams: f
            .datagrams
            .map(|m| Datagrams::of(sent(f), (m.delivered, m.missing), m.delay_mean, m.jitter)),
        rates: f.rate.iter().map(|r| Rate { loss: r.loss_event_rate, reports: r.reports.0 }).collect(),
        films: f.video.as_deref().cloned().into_iter().collect(),
    };
    let groups = Group::join(o.flows.iter().map(group));
    of_groups(groups, o.emulation.doubts(), o.samples.iter().map(point).collect())
}

//! The simulator behind [`CellRunner`].

use crate::model::Raw;
use crate::observed::{Number, Observed, Sampled};
use crate::runner::{CellRunner, Failure, Problem, Resolution, Setting, Vocabulary};
use crate::stats;
use skyhaul_base::{Duration, Rate};
use skyhaul_cc::{Config, Controls};
use skyhaul_scenario::model::QueueSpec;
use skyhaul_scenario::resolved::{App, Direction, Limit, Series, Start, Transport, What};

use skyhaul_scenario::{Document, Resolved, ScenarioError};
use skyhaul_sim::{BuildError, FlowResult, RunError, RunResult, check_controls};
use skyhaul_trace::{Class, Digest, LossCause, Null};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Runs cells in the event engine.
#[derive(Clone, Debug)]
pub struct Simulator {
    engine: String,
    controls: Controls,
}

/// Every algorithm over a lossy satellite link for a while: what this run does is the engine's fingerprint.
const FINGERPRINT: &str = r#"
schema = 1
duration = "25 s"
[links.sat]
packet = "1000 B"
rate = "300 packets/s"
delay = "125 ms"
queue = { kind = "strict-pushout", limit = "25 packets" }
error = { kind = "per", p = 5e-3 }
"#;

impl Simulator {
    /// The simulator of engine `version`.
    ///
    /// The version in keys also carries a fingerprint: the hash of all events of a short reference run of every
    /// algorithm. An engine that was changed without a new version, or a machine that calculates differently,
    /// does not meet results of another one in a cache or on a cluster.
    ///
    /// # Panics
    /// If the engine cannot run its reference, which the tests exclude.
    #[must_use]
    pub fn new(version: &str) -> Self {
        let mut text = FINGERPRINT.to_owned();
        for name in skyhaul_cc::NAMES {
            let _ =
                writeln!(text, "[flows.{name}]\npath = [\"sat\"]\ncc = \"{name}\"\nrwnd = \"64 segments\"");
        }
        let none = |_: &str| Err("the reference stands alone".to_owned());
        let scenario = Document::parse("reference", &text, &none).and_then(|d| d.resolve());
        let scenario = scenario.expect("the reference is a scenario");
        let result =
            skyhaul_sim::run(&scenario, 1, Digest::default()).expect("the reference can be simulated");
        let digest = result.digest.unwrap_or_default();
        Self { engine: format!("{version}-{:08x}", digest >> 32), controls: Controls::default() }
    }

    /// The same simulator with users' own controls. Results of scenarios that use one are cached under its
    /// [fingerprint](skyhaul_cc::user::Factory::fingerprint) as well.
    #[must_use]
    pub fn with_controls(&self, controls: Controls) -> Self {
        Self { engine: self.engine.clone(), controls }
    }
}

impl CellRunner for Simulator {
    type Scenario = Resolved;

    fn engine(&self) -> String {
        self.engine.clone()
    }

    fn vocabulary(&self) -> Vocabulary {
        Vocabulary { flow: FLOW.to_vec(), link: LINK.to_vec(), run: RUN.to_vec() }
    }

    fn resolve(&self, base: &Raw, dir: &Path, settings: &[Setting]) -> Result<Resolution<Resolved>, Problem> {
        let load = |path: &str| std::fs::read_to_string(path).map_err(|e| e.to_string());
        let mut document = match base {
            Raw::String(name) if name.starts_with("preset:") => Document::open(name, &load),
            Raw::String(name) => Document::open(&dir.join(name).to_string_lossy(), &load),
            Raw::Table(table) => {
                let text = toml::to_string(table).map_err(|e| problem_of(e.to_string()))?;
                // Its name only serves to find the folder of what it extends.
                Document::parse(&dir.join(INLINE).to_string_lossy(), &text, &load)
            }
            _ => {
                let accepted = ["\"preset:<name>\"", "a path", "a table"].map(str::to_owned).to_vec();
                let message = "the scenario is a name or a table".to_owned();
                return Err(Problem { message, accepted, path: None });
            }
        }
        .map_err(problem)?;
        for s in settings {
            document.set_value(&s.path, s.value.clone()).map_err(problem)?;
        }
        // As everything that a study names, files of values are beside it.
        let beside = |path: &str| load(&dir.join(path).to_string_lossy());
        document.read_traces(&beside).map_err(problem)?;
        let mut scenario = document.resolve().map_err(problem)?;
        check_controls(&scenario, &self.controls).map_err(|e| match e {
            BuildError::Control { flow, message } => {
                Problem { path: Some(format!("flows.{flow}.cc")), message, accepted: Vec::new() }
            }
            other => problem_of(other.to_string()),
        })?;
        let words = words(&scenario);
        // Title and seed make no difference to what a cell measures.
        scenario.title.clear();
        scenario.seed = 0;
        let sampled = |s: &&Series| scenario.record.sample.is_some() && !matches!(s, Series::Telemetry);
        Ok(Resolution {
            text: scenario.to_toml(),
            words,
            links: scenario.links.iter().map(|l| l.name.clone()).collect(),
            groups: scenario.flows.iter().map(|f| f.name.clone()).collect(),
            series: scenario.record.series.iter().filter(sampled).map(|s| s.name().to_owned()).collect(),
            scenario,
        })
    }

    fn reread(&self, text: &str) -> Result<Resolved, Problem> {
        let none = |_: &str| Err("a resolved scenario stands alone".to_owned());
        Document::parse("scenario", text, &none).and_then(|d| d.resolve()).map_err(problem)
    }

    fn version(&self, scenario: &Resolved) -> Result<String, String> {
        let mut all = BTreeMap::new();
        for group in &scenario.flows {
            if let Config::User(own) = &group.cc {
                let name = own.control.as_str();
                let version = self.controls.fingerprint(name).ok_or_else(|| {
                    format!("nothing tells one version of the control \"{name}\" from another")
                })?;
                all.insert(name, version);
            }
        }
        Ok(all.iter().fold(String::new(), |text, (name, version)| format!("{text}{name}\0{version}\0")))
    }

    fn run(&self, scenario: &Resolved, seed: u64) -> Result<Observed, Failure> {
        match skyhaul_sim::run_with(scenario, seed, Null, &self.controls) {
            Ok(result) => Ok(observe(&result)),
            Err(RunError::Build(e)) => Err(e.to_string().into()),
            Err(RunError::Failed(e)) => Err(Failure { message: e.to_string(), detail: e.detail }),
        }
    }
}

/// File name of a scenario that stands in the study itself.
const INLINE: &str = "(scenario)";

fn problem(e: ScenarioError) -> Problem {
    if e.file == "--set" || e.file.ends_with(INLINE) {
        return Problem { path: Some(e.key), message: e.message, accepted: Vec::new() };
    }
    problem_of(e.to_string())
}

fn problem_of(message: String) -> Problem {
    Problem { path: None, message, accepted: Vec::new() }
}

/// `flow.*`
const FLOW: [(&str, &str); 44] = [
    ("unique_segments", "distinct data segments acknowledged"),
    ("bytes_acked", "payload acknowledged, each byte once (B)"),
    ("goodput", "payload acknowledged per time (bit/s)"),
    ("goodput_segments", "distinct segments acknowledged per time (segments/s)"),
    ("segments_sent", "data segments sent, retransmissions included"),
    ("retransmissions", "data segments sent again"),
    ("timeouts", "expiries of the retransmission timer"),
    ("recoveries", "losses found by acknowledgements, without a timeout"),
    ("cuts", "cuts of the window on signs of congestion"),
    ("cuts_error", "of these, after a packet was lost to errors of the channel"),
    ("cuts_congestion", "of these, after a packet was lost to a full queue or marked"),
    ("cuts_outage", "of these, after a packet was lost when a link went down"),
    ("cuts_spurious", "of these, after no loss"),
    ("timeout_cuts_error", "cuts by timeout after a packet was lost to errors of the channel"),
    ("timeout_cuts_congestion", "cuts by timeout after a packet was lost to a full queue"),
    ("timeout_cuts_outage", "cuts by timeout after a packet was lost when a link went down"),
    ("timeout_cuts_spurious", "cuts by timeout after no loss"),
    ("cuts_undone", "cuts that the sender found to be spurious and undid"),
    ("probes_sent", "dummy or NIL segments sent"),
    ("probes_answered", "of these, answered"),
    ("acks", "acknowledgements processed by the sender"),
    ("duplicate_acks", "of these, duplicates"),
    ("mean_srtt", "mean smoothed RTT (s)"),
    ("started", "when it started (s)"),
    ("finished", "when it was done (s)"),
    ("pages", "pages completed"),
    ("page_time_mean", "mean time of a page (s)"),
    ("page_time_p50", "median time of a page (s)"),
    ("page_time_p95", "95th percentile of the time of a page (s)"),
    ("page_time_p99", "99th percentile of the time of a page (s)"),
    ("page_time_sum", "time of all completed pages together (s)"),
    ("transfers", "transfers that arrived at random, complete or not; their times are those of pages"),
    ("lost", "data packets lost"),
    ("lost_error", "of these, to errors of the channel"),
    ("lost_full", "of these, to a full queue"),
    ("lost_pushed_out", "of these, evicted from a queue"),
    ("lost_link_down", "of these, in flight when a link went down"),
    ("delivered", "datagrams delivered"),
    ("delay_mean", "mean one-way delay of datagrams (s)"),
    ("delay_p50", "median of the one-way delay of datagrams (s)"),
    ("delay_p95", "95th percentile of the one-way delay of datagrams (s)"),
    ("delay_p99", "99th percentile of the one-way delay of datagrams (s)"),
    ("delay_max", "longest one-way delay of a datagram (s)"),
    ("jitter", "interarrival jitter of datagrams, RFC 3550 (s)"),
];

/// `run.*`
const RUN: [(&str, &str); 3] =
    [("duration", "simulated time (s)"), ("events", "events of the engine"), ("flows", "number of flows")];

/// The quantities of one direction of a link.
macro_rules! directions {
    ($(($name:literal, $doc:literal)),* $(,)?) => {
        [
            $((concat!("forward.", $name), $doc),)*
            $((concat!("reverse.", $name), $doc),)*
        ]
    };
}

/// `link.<name>.*`
const LINK: [(&str, &str); 38] = directions![
    ("offered", "packets offered"),
    ("delivered", "packets delivered"),
    ("dropped_error", "packets lost to errors of the channel"),
    ("dropped_full", "packets refused by a full queue"),
    ("dropped_pushed_out", "packets evicted by data"),
    ("dropped_link_down", "packets in flight when the link went down"),
    ("data_offered", "data packets offered"),
    ("data_delivered", "data packets delivered"),
    ("data_dropped_error", "data packets lost to errors"),
    ("data_dropped_full", "data packets refused by a full queue"),
    ("probe_offered", "probes offered"),
    ("probe_delivered", "probes delivered"),
    ("probe_dropped_error", "probes lost to errors"),
    ("probe_dropped_full", "probes refused by a full queue"),
    ("probe_dropped_pushed_out", "probes evicted by data"),
    ("utilization", "share of time the transmitter was busy"),
    ("mean_queue", "mean number of packets waiting"),
    ("max_queue", "most packets that ever waited"),
    ("delivered_bytes", "bytes delivered, headers included"),
];

fn observe(result: &RunResult) -> Observed {
    let n = |name: &str, x: f64| (name.to_owned(), Number(x));
    let mut o = Observed {
        run: BTreeMap::from([
            n("duration", result.duration.as_secs_f64()),
            n("events", result.events as f64),
            n("flows", result.flows.len() as f64),
        ]),
        ..Observed::default()
    };
    o.flows.group = result.flows.iter().map(|f| f.group.clone()).collect();
    let rows: Vec<_> = result.flows.iter().map(|f| of_flow(f, result)).collect();
    for (i, (name, _)) in FLOW.iter().enumerate() {
        o.flows.columns.insert((*name).to_owned(), rows.iter().map(|r| Number(r[i])).collect());
    }
    for link in &result.links {
        let quantities = o.links.entry(link.name.clone()).or_default();
        let direction = if link.forward { "forward" } else { "reverse" };
        for (name, _) in LINK.iter().filter(|(name, _)| name.starts_with(direction)) {
            quantities.insert((*name).to_owned(), Number(of_link(link, &name[direction.len() + 1..])));
        }
    }
    let flow = |i: u32| result.flows[i as usize].group.clone();
    let link = |i: u32| {
        let l = &result.links[i as usize];
        format!("{}.{}", l.name, if l.forward { "forward" } else { "reverse" })
    };
    o.series = curves(&result.series.flows, result.flows.len(), flow);
    o.series.extend(curves(&result.series.links, result.links.len(), link));
    o
}

/// In the order of [`FLOW`].
fn of_flow(f: &FlowResult, result: &RunResult) -> [f64; FLOW.len()] {
    let pages: Vec<f64> = f.pages.iter().map(|p| p.as_secs_f64()).collect();
    let time = |t: Option<skyhaul_base::Instant>| t.map_or(f64::NAN, |t| t.as_secs_f64());
    let lost = |cause: LossCause| f.lost[cause as usize] as f64;
    let d = f.datagrams.unwrap_or_default();
    let measured = |x: Option<f64>| x.unwrap_or(f64::NAN);
    [
        f.segments_acked,
        f.bytes_acked as f64,
        f.goodput,
        f.segments_per_second(result.duration),
        f.segments_sent as f64,
        f.retransmissions as f64,
        f.timeouts as f64,
        f.recoveries as f64,
        f.cuts.total() as f64,
        f.cuts.error as f64,
        f.cuts.congestion as f64,
        f.cuts.outage as f64,
        f.cuts.spurious as f64,
        f.timeout_cuts.error as f64,
        f.timeout_cuts.congestion as f64,
        f.timeout_cuts.outage as f64,
        f.timeout_cuts.spurious as f64,
        f.cuts_undone as f64,
        f.probes_sent as f64,
        f.probes_answered as f64,
        f.acks as f64,
        f.duplicate_acks as f64,
        f.mean_srtt.unwrap_or(f64::NAN),
        time(f.started),
        time(f.finished),
        pages.len() as f64,
        stats::mean(&pages),
        stats::quantile(&pages, 0.5),
        stats::quantile(&pages, 0.95),
        stats::quantile(&pages, 0.99),
        pages.iter().sum(),
        f.transfers as f64,
        f.lost.iter().sum::<u64>() as f64,
        lost(LossCause::Error),
        lost(LossCause::Full),
        lost(LossCause::PushedOut),
        lost(LossCause::LinkDown),
        d.delivered as f64,
        measured(d.delay_mean),
        measured(d.delay_p50),
        measured(d.delay_p95),
        measured(d.delay_p99),
        measured(d.delay_max),
        measured(d.jitter),
    ]
}

fn of_link(l: &skyhaul_sim::LinkResult, name: &str) -> f64 {
    let all = |f: fn(&skyhaul_sim::ClassResult) -> u64| l.classes.iter().map(f).sum::<u64>() as f64;
    let lost = |class: Class, cause: LossCause| l.class(class).dropped[cause as usize] as f64;
    match name {
        "offered" => all(|c| c.offered),
        "delivered" => all(|c| c.delivered),
        "dropped_error" => l.dropped(LossCause::Error) as f64,
        "dropped_full" => l.dropped(LossCause::Full) as f64,
        "dropped_pushed_out" => l.dropped(LossCause::PushedOut) as f64,
        "dropped_link_down" => l.dropped(LossCause::LinkDown) as f64,
        "data_offered" => l.class(Class::Data).offered as f64,
        "data_delivered" => l.class(Class::Data).delivered as f64,
        "data_dropped_error" => lost(Class::Data, LossCause::Error),
        "data_dropped_full" => lost(Class::Data, LossCause::Full),
        "probe_offered" => l.class(Class::Probe).offered as f64,
        "probe_delivered" => l.class(Class::Probe).delivered as f64,
        "probe_dropped_error" => lost(Class::Probe, LossCause::Error),
        "probe_dropped_full" => lost(Class::Probe, LossCause::Full),
        "probe_dropped_pushed_out" => lost(Class::Probe, LossCause::PushedOut),
        "utilization" => l.utilization,
        "mean_queue" => l.mean_queue,
        "max_queue" => f64::from(l.max_queue),
        "delivered_bytes" => l.delivered_bytes as f64,
        other => unreachable!("`{other}` is in the list of quantities but has no value"),
    }
}

fn curves(series: &skyhaul_trace::Series, entities: usize, group: impl Fn(u32) -> String) -> Vec<Sampled> {
    let mut all = Vec::new();
    for name in &series.names {
        for entity in 0..entities as u32 {
            let points = series.of(entity, name).filter(|(_, v)| v.is_finite());
            let (time, value) = points.map(|(t, v)| (Number(t), Number(v))).unzip();
            all.push(Sampled { name: (*name).to_string(), group: group(entity), flow: entity, time, value });
        }
    }
    all
}

fn application(app: &App) -> String {
    let number = crate::format::number;
    #[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
    let mbit = |r: &Rate| number(r.bits_per_sec() as f64 / 1e6);
    match app {
        App::Bulk => "always with data to send".to_owned(),
        App::Pages { segments, idle, .. } => {
            let pause = match idle {
                None => String::new(),
                Some(times) => format!(", {} s apart in the mean", number(times.mean())),
            };
            format!("pages of {segments} segments, one after the other{pause}")
        }
        App::Arrivals { per_second, size } => {
            let (often, size) = (number(*per_second), number(size.mean() / 1e3));
            format!("{often} transfers per second at random times, {size} kB in the mean")
        }
        App::Stream { rate, pauses: None, .. } => format!("a constant {} Mbit/s", mbit(rate)),
        App::Stream { rate, pauses: Some((on, off)), .. } => format!(
            "{} Mbit/s while on, {} s on and {} s off in the mean",
            mbit(rate),
            number(on.mean()),
            number(off.mean())
        ),
    }
}

/// The scenario in words, for the report.
fn words(s: &Resolved) -> Vec<(String, String)> {
    let number = crate::format::number;
    let ms = |d: Duration| format!("{} ms", number(1e3 * d.as_secs_f64()));
    let rate = |r: Option<Rate>| match r {
        Some(r) => format!("{} Mbit/s", number(r.bits_per_sec() as f64 / 1e6)),
        None => "unlimited rate".to_owned(),
    };
    let mut words = vec![("Duration".to_owned(), format!("{} s", number(s.duration.as_secs_f64())))];
    let model = s.to_model();
    for l in &s.links {
        let spec = &model.links[&l.name];
        let of = |d: &Direction, written: Option<&QueueSpec>| {
            let (delay, queue, error) =
                (ms(d.delay.base()), queue(d.queue.discipline.words(), written), d.error.words(&number));
            let queue = d.rate.map_or_else(String::new, |_| format!(", {queue}"));
            let trace = if d.varying.is_some() { " in the mean (a trace)" } else { "" };
            format!("{}{trace}, {delay}{queue}, {error}", rate(d.rate))
        };
        words.push((format!("Link {}", l.name), of(&l.forward, spec.queue.as_ref().map(|q| &q.0))));
        let back = spec.reverse.as_ref().and_then(|r| r.queue.as_ref());
        words.push((format!("Link {}, back", l.name), of(&l.reverse, back.map(|q| &q.0))));
    }
    for g in &s.flows {
        let app = application(&g.app);
        let start = match g.start {
            Start::At(t) => format!("start at {} s", number(t.as_secs_f64())),
            Start::Uniform { from, to } => {
                let (from, to) = (number(from.as_secs_f64()), number(to.as_secs_f64()));
                format!("start at random between {from} and {to} s")
            }
        };
        let window = match g.endpoint.receive_buffer {
            _ if g.transport == Transport::Udp => "no window".to_owned(),
            u64::MAX => "unlimited window".to_owned(),
            bytes => format!("window {} segments", bytes / u64::from(g.endpoint.mss.max(1))),
        };
        let path: Vec<&str> = g.path.iter().map(|&i| s.links[i].name.as_str()).collect();
        let (n, name, over) = (g.count, g.label(), path.join(", "));
        let rtt = ms(s.propagation_rtt(g));
        let text = format!("{n} × {name} over {over}, RTT {rtt} without queues, {window}, {app}, {start}");
        words.push((format!("Flows {}", g.name), text));
    }
    for e in &s.events {
        let way = if e.forward { "" } else { ", back" };
        let becomes = match &e.what {
            What::Rate(r) => rate(*r),
            What::Varying(v) => format!("a trace, {} in the mean", rate(Some(v.mean()))),
            What::Delay(d) => ms(d.base()),
            What::Error(e) => e.words(&number),
            What::Limit(limit) => match limit {
                Limit::Packets(n) => format!("queue of {n} packets"),
                Limit::Bytes(n) => format!("queue of {n} B"),
                Limit::Unlimited => "queue of any length".to_owned(),
            },
            What::Up(true) => "up".to_owned(),
            What::Up(false) => "down".to_owned(),
        };
        let at = number(e.at.as_secs_f64());
        words.push((format!("At {at} s"), format!("link {}{way}: {becomes}", s.links[e.link].name)));
    }
    words
}

fn queue(kind: &str, written: Option<&QueueSpec>) -> String {
    let limit =
        written.and_then(|w| w.limit.as_ref()).map_or_else(|| "any length".to_owned(), |l| l.to_string());
    format!("queue of {limit} ({kind})")
}

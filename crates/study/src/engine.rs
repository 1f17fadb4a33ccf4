//! The simulator behind [`CellRunner`].

use crate::files::load;
use crate::fingerprint;
use crate::model::Raw;
use crate::observed::{Number, Observed, Sampled};
use crate::runner::{CellRunner, Failure, Problem, Resolution, Setting, Unversioned, Vocabulary};
use skyhaul_base::{Duration, Rate};
use skyhaul_cc::{Config, Controls};
use skyhaul_scenario::check::{FadeCheck, queue_options};
use skyhaul_scenario::model::QueueSpec;
use skyhaul_scenario::resolved::{Change, Direction, Limit, Series, Start};
use skyhaul_scenario::{Document, Resolved, ScenarioError, no_files};
use skyhaul_sim::quantity::{FLOW, LINK, RUN};
use skyhaul_sim::result::direction;
use skyhaul_sim::{BuildError, RunError, RunResult, check_controls};
use skyhaul_trace::Null;
use std::collections::BTreeMap;
use std::path::Path;

/// Runs cells in the event engine.
#[derive(Clone, Debug)]
pub struct Simulator {
    engine: String,
    controls: Controls,
}

impl Simulator {
    /// The simulator of engine `version`. Its name in keys also carries the [`fingerprint`] of the code
    /// that all cells share: it keeps apart the results of engines that were changed without a new version.
    #[must_use]
    pub fn new(version: &str) -> Self {
        Self { engine: format!("{version}-{}", fingerprint::shared()), controls: Controls::default() }
    }

    /// The same simulator with user-defined controls. Results of scenarios that use one are cached under its
    /// [fingerprint](skyhaul_cc::user::Factory::fingerprint) as well.
    #[must_use]
    pub fn with_controls(&self, controls: Controls) -> Self {
        Self { engine: self.engine.clone(), controls }
    }
}

impl CellRunner for Simulator {
    fn engine(&self) -> String {
        self.engine.clone()
    }

    fn vocabulary(&self) -> Vocabulary {
        let directions = [true, false].map(direction);
        Vocabulary {
            flow: FLOW.iter().map(|q| q.name.to_owned()).collect(),
            link: directions
                .iter()
                .flat_map(|direction| LINK.iter().map(move |q| format!("{direction}.{}", q.name)))
                .collect(),
            run: RUN.iter().map(|q| q.name.to_owned()).collect(),
        }
    }

    fn resolve(&self, base: &Raw, dir: &Path, settings: &[Setting]) -> Result<Resolution, Problem> {
        let mut document = match base {
            Raw::String(name) if name.starts_with("preset:") => Document::open(name, &load),
            Raw::String(name) => Document::open(&dir.join(name).to_string_lossy(), &load),
            Raw::Table(table) => {
                let text = toml::to_string(table).map_err(|e| problem_of(e.to_string()))?;
                // The file of the name does not exist: only its folder counts, where relative paths of `extends` start.
                Document::parse(&dir.join(INLINE).to_string_lossy(), &text, &load)
            }
            _ => {
                let accepted = ["\"preset:<name>\"", "a path", "a table"].map(str::to_owned).to_vec();
                let message = "the scenario must be a name or a table".to_owned();
                return Err(Problem { message, accepted, path: None });
            }
        }
        .map_err(problem)?;
        for s in settings {
            document.set_value(&s.path, s.value.clone()).map_err(problem)?;
        }
        // Relative paths of files of values start at the folder of the study, as all paths in it.
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
        // Only a run shows which variables a control has as telemetry.
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
        Document::parse("scenario", text, &no_files).and_then(|d| d.resolve()).map_err(problem)
    }

    fn version(&self, scenario: &Resolved) -> Result<String, Unversioned> {
        let mut version = fingerprint::of(scenario);
        let mut own = BTreeMap::new();
        for group in &scenario.flows {
            if let Config::User(config) = &group.cc {
                let name = config.control.as_str();
                let fingerprint = self.controls.fingerprint(name).ok_or_else(|| Unversioned {
                    why: format!("the control \"{name}\" has no version, so its cells cannot be cached"),
                })?;
                own.insert(name, fingerprint);
            }
        }
        for (name, fingerprint) in own {
            version += &format!("user:{name}\0{fingerprint}\0");
        }
        Ok(version)
    }

    fn run(&self, scenario: &Resolved, seed: u64) -> Result<Observed, Failure> {
        match skyhaul_sim::run_with(scenario, seed, Null, &self.controls) {
            Ok(RunResult { ended: Some(why), .. }) => Err(why.to_string().into()),
            Ok(result) => Ok(observe(&result)),
            Err(RunError::Build(e)) => Err(e.to_string().into()),
            Err(RunError::Failed(e)) => Err(Failure { message: e.to_string(), detail: e.detail }),
        }
    }
}

/// File name that stands for a scenario written as a table in the study.
const INLINE: &str = "(scenario)";

fn problem(e: ScenarioError) -> Problem {
    // The study itself is wrong at this key; an error in any other file is quoted with its place.
    if e.file == "--set" || e.file.ends_with(INLINE) {
        return Problem { path: Some(e.key), message: e.message, accepted: Vec::new() };
    }
    problem_of(e.to_string())
}

fn problem_of(message: String) -> Problem {
    Problem { path: None, message, accepted: Vec::new() }
}

fn observe(result: &RunResult) -> Observed {
    let duration = result.duration;
    let mut o = Observed::default();
    for q in RUN {
        o.run.insert(q.name.to_owned(), Number(q.value(result, duration).real()));
    }
    o.flows.group = result.flows.iter().map(|f| f.group.clone()).collect();
    for q in FLOW {
        let column = result.flows.iter().map(|f| Number(q.value(f, duration).real()));
        o.flows.columns.insert(q.name.to_owned(), column.collect());
    }
    for link in &result.links {
        let quantities = o.links.entry(link.name.clone()).or_default();
        for q in LINK {
            let name = format!("{}.{}", direction(link.forward), q.name);
            quantities.insert(name, Number(q.value(link, duration).real()));
        }
    }
    let flow = |i: u32| result.flows[i as usize].group.clone();
    let link = |i: u32| {
        let l = &result.links[i as usize];
        format!("{}.{}", l.name, direction(l.forward))
    };
    o.series = curves(&result.series.flows, result.flows.len(), flow);
    o.series.extend(curves(&result.series.links, result.links.len(), link));
    o
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

/// Description of the scenario, for the report: item and text.
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
        if let Some(orbit) = &spec.orbit {
            let name = |name: &str, latitude: f64, longitude: f64| {
                let coordinates = || format!("{} deg, {} deg", number(latitude), number(longitude));
                if name.is_empty() { coordinates() } else { name.to_owned() }
            };
            let (from, to) = (&orbit.from, &orbit.to);
            let from = name(&from.name, from.latitude, from.longitude);
            let to = name(&to.name, to.latitude, to.longitude);
            let satellites = constellation(&serde_json::to_value(&orbit.constellation).unwrap_or_default());
            let text = format!("{from} to {to} over {satellites}");
            words.push((format!("Link {}, orbit", l.name), text));
        }
        let of = |d: &Direction, written: Option<&QueueSpec>| {
            let (delay, queue, error) =
                (ms(d.delay.base()), queue(d.queue.discipline.words(), written), d.error.words(&number));
            let options = queue_options(&d.queue).into_iter().map(|(key, value)| format!("{key} {value}"));
            let options: Vec<_> = options.collect();
            let queue = if options.is_empty() { queue } else { format!("{queue}: {}", options.join(", ")) };
            let queue = d.rate.mean().map_or_else(String::new, |_| format!(", {queue}"));
            let fade = FadeCheck::of(d).map_or_else(String::new, |f| format!(", fade: {f}"));
            let trace = if d.rate.varies() { " in the mean (a trace)" } else { "" };
            format!("{}{trace}, {delay}{queue}, {error}{fade}", rate(d.rate.mean()))
        };
        words.push((format!("Link {}", l.name), of(&l.forward, spec.queue.as_ref().map(|q| &q.0))));
        let back = spec.reverse.as_ref().and_then(|r| r.queue.as_ref());
        words.push((format!("Link {}, back", l.name), of(&l.reverse, back.map(|q| &q.0))));
    }
    for g in &s.flows {
        let app = g.app.words(&crate::format::number);
        let start = match g.start {
            Start::At(t) => format!("start at {} s", number(t.as_secs_f64())),
            Start::Uniform { from, to } => {
                let (from, to) = (number(from.as_secs_f64()), number(to.as_secs_f64()));
                format!("start at random between {from} and {to} s")
            }
        };
        let window = match g.endpoint.receive_buffer {
            _ if g.transport.sends_datagrams() => "no window".to_owned(),
            u64::MAX => "unlimited window".to_owned(),
            bytes => format!("window {} segments", bytes / u64::from(g.endpoint.mss.max(1))),
        };
        let path: Vec<&str> = g.path.iter().map(|&i| s.links[i].name.as_str()).collect();
        let back = if g.sends_forward() { "" } else { " in reverse" };
        let (n, name, over) = (g.count, g.label(), format!("{}{back}", path.join(", ")));
        let rtt = ms(s.propagation_rtt(g));
        let text = format!("{n} × {name} over {over}, RTT {rtt} without queues, {window}, {app}, {start}");
        words.push((format!("Flows {}", g.name), text));
    }
    for e in &s.events {
        let back = if e.forward { "" } else { ", back" };
        let becomes = match &e.change {
            Change::Rate(r) if r.varies() => format!("a trace, {} in the mean", rate(r.mean())),
            Change::Rate(r) => rate(r.mean()),
            Change::Delay(d) => ms(d.base()),
            Change::Error(e) => e.words(&number),
            Change::Limit(limit) => match limit {
                Limit::Packets(n) => format!("queue of {n} packets"),
                Limit::Bytes(n) => format!("queue of {n} B"),
                Limit::Unlimited => "queue of unlimited length".to_owned(),
            },
            Change::Up(true) => "up".to_owned(),
            Change::Up(false) => "down".to_owned(),
            // Changes by satellites and fades are no events of a file.
            Change::Fade(_) | Change::Visible(_) | Change::Path(..) | Change::Handover(_) => continue,
        };
        let at = number(e.at.as_secs_f64());
        words.push((format!("At {at} s"), format!("link {}{back}: {becomes}", s.links[e.link].name)));
    }
    words
}

/// Longest text of a constellation that the description of a scenario shows, bytes: orbital elements are longer.
const SHOWN_TEXT: usize = 40;

/// A constellation as a file writes it, without long texts.
fn constellation(value: &serde_json::Value) -> String {
    use serde_json::Value;
    match value {
        Value::String(name) => name.clone(),
        Value::Array(shells) => shells.iter().map(constellation).collect::<Vec<_>>().join(" and "),
        Value::Object(table) => {
            let one = |(key, value): (&String, &Value)| {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                (text.len() <= SHOWN_TEXT).then(|| if key == "kind" { text } else { format!("{key} {text}") })
            };
            table.iter().filter_map(one).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

fn queue(kind: &str, written: Option<&QueueSpec>) -> String {
    let limit =
        written.and_then(|w| w.limit.as_ref()).map_or_else(|| "any length".to_owned(), |l| l.to_string());
    format!("queue of {limit} ({kind})")
}

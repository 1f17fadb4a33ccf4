//! Event logs in the qlog format (draft-ietf-quic-qlog-main-schema-14), one JSON-SEQ file (RFC 7464) per flow.
//!
//! A run does not record single packets. Runs are deterministic, so the recorded scenario is run again with an event
//! recorder, and the result is checked against the recorded one; smoothed RTT and data in flight come from the
//! recorded series. TCP events use Skyhaul's own schema, described in docs/exports.md.

use super::recorded::{Recorded, RecordedFlow, runs};
use crate::capture::choose;
use crate::engine::simulator;
use crate::error::{ExportError, LabError};
use crate::results::MANIFEST;
use crate::run::{RunObserver, recorded};
use serde_json::{Map, Value, json};
use skyhaul_base::Instant;
use skyhaul_cc::Controls;
use skyhaul_scenario::resolved::Transport;
use skyhaul_sim::{Opened, Tap};
use skyhaul_study::runner::CellRunner;
use skyhaul_trace::qlog::{Log as QlogFile, LogMetadata};
use skyhaul_trace::{Class, Event, Packet, Recorder};
use std::collections::BTreeMap;
use std::fs;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// Series required for metrics events.
const NEEDED: [&str; 2] = ["in-flight", "srtt"];
/// Largest number of files of one run: each is open while the scenario runs.
const MOST_FILES: usize = 256;

/// Writes `GROUP[INDEX].sqlog` for every chosen flow of every run under `out`; returns the files.
///
/// # Errors
/// If a run has not recorded the required series or cannot be run again by this program, or a file cannot be read or
/// written.
pub fn qlog(
    results: &Path,
    out: &Path,
    flows: &[String],
    watch: &dyn RunObserver,
) -> Result<Vec<PathBuf>, LabError> {
    qlog_with(results, out, flows, &Controls::default(), watch)
}

/// As [`qlog`], of runs with user-defined controls.
///
/// # Errors
/// As [`qlog`], and if a control fails.
pub fn qlog_with(
    results: &Path,
    out: &Path,
    flows: &[String],
    controls: &Controls,
    watch: &dyn RunObserver,
) -> Result<Vec<PathBuf>, LabError> {
    let mut written = Vec::new();
    for run in runs(results)? {
        let folder = out.join(run.folder.strip_prefix(results).unwrap_or(Path::new("")));
        run.need(&NEEDED)?;
        let chosen = choose("--flow", flows, run.scenario())?;
        same_engine(&run)?;
        fs::create_dir_all(&folder).map_err(LabError::write(&folder))?;
        let is_chosen = |flow: &RecordedFlow<'_>| {
            chosen.iter().any(|(name, i)| *name == flow.group.name && i.is_none_or(|i| i == flow.number))
        };
        let flows = run.flows();
        let files = flows.iter().filter(|f| is_chosen(f)).count();
        if files > MOST_FILES {
            let folder = run.folder.clone();
            return Err(ExportError::TooManyFlows { folder, files, most: MOST_FILES }.into());
        }
        let trace = |f| is_chosen(f).then(|| Trace::create(&run, f, &folder)).transpose();
        let links = run.scenario().links.iter();
        let mut log = Log {
            flows: flows.iter().map(trace).collect::<Result<_, _>>()?,
            links: links
                .flat_map(|l| ["forward", "reverse"].map(|direction| format!("links.{}.{direction}", l.name)))
                .collect(),
            ..Log::default()
        };
        let result = recorded(&run.case, &mut log, controls, watch)?;
        if Some(result.events) != run.summary["events"].as_u64() {
            return Err(other_engine(&run).into());
        }
        for trace in log.flows.into_iter().flatten() {
            written.push(trace.finish()?);
        }
    }
    Ok(written)
}

/// Checks the engine: only the one that made a run can reproduce it.
fn same_engine(run: &Recorded) -> Result<(), ExportError> {
    let here = simulator().engine();
    if run.manifest["engine"] == json!(here) { Ok(()) } else { Err(other_engine(run)) }
}

fn other_engine(run: &Recorded) -> ExportError {
    let engine = run.manifest["engine"].as_str().unwrap_or("unknown").to_owned();
    ExportError::OtherEngine { manifest: run.folder.join(MANIFEST), engine, here: simulator().engine() }
}

/// The time of a sample of the series, and the fields of its `metrics_updated` event.
type Sample = (Instant, Map<String, Value>);

/// The file of a flow.
#[derive(Debug)]
struct Trace {
    path: PathBuf,
    file: QlogFile<BufWriter<fs::File>>,
    /// Payload bytes of a segment: events and series count segments.
    mss: f64,
    /// Pending samples, the earliest last.
    samples: Vec<Sample>,
}

/// Writes the events of a run: a file per flow, and the flows to which the connections of transfers belong.
#[derive(Debug, Default)]
struct Log {
    flows: Vec<Option<Trace>>,
    links: Vec<String>,
    /// The transfer that a connection number above those of the flows stands for at present: its flow, and its number within
    /// the flow.
    transfers: BTreeMap<u32, (u32, u64)>,
}

impl Trace {
    fn create(run: &Recorded, flow: &RecordedFlow<'_>, folder: &Path) -> Result<Self, LabError> {
        let path = folder.join(format!("{}[{}].sqlog", flow.group.name, flow.number));
        let (object, transport) = (&flow.object, flow.group.transport);
        let mss = f64::from(flow.group.endpoint.mss);
        let file = fs::File::create(&path).map_err(LabError::write(&path))?;
        let mut samples: Vec<Sample> = Vec::new();
        if transport == Transport::Tcp {
            let (srtt, in_flight) = (run.curve(object, "srtt"), run.curve(object, "in-flight"));
            for ((time, rtt), (_, flight)) in srtt.iter().zip(in_flight) {
                let mut fields = Map::new();
                if let Some(rtt) = rtt {
                    fields.insert("smoothed_rtt".into(), json!(rtt * 1e3));
                }
                if let Some(segments) = flight {
                    fields.insert("bytes_in_flight".into(), json!((segments * mss).round() as u64));
                }
                samples.push((Instant::from_secs_f64(*time), fields));
            }
            samples.reverse();
        }
        let metadata = LogMetadata {
            title: &run.scenario().title,
            description: &format!("simulated by skyhaul {}", crate::VERSION),
            object,
            protocol: if transport == Transport::Tcp { "TCP" } else { "UDP" },
            // The simulator sees both ends and the path between; `packet_sent` and `packet_received` are the data sender's.
            vantage: "network",
            flow: Some("client"),
            began: None,
        };
        let file = QlogFile::new(BufWriter::new(file), &metadata);
        Ok(Self { path, file, mss, samples })
    }

    /// Writes the samples of earlier or equal time, then an event; `transfer` is the number of the transfer within the flow.
    fn event(&mut self, now: Instant, transfer: Option<u64>, name: &str, data: &Value) {
        self.write_samples(now);
        self.file.event(now, transfer, name, data);
    }

    /// Writes the pending samples up to and including `until`.
    fn write_samples(&mut self, until: Instant) {
        while self.samples.last().is_some_and(|(at, _)| *at <= until) {
            let Some((at, fields)) = self.samples.pop() else { return };
            if !fields.is_empty() {
                self.file.event(at, None, "metrics_updated", &Value::Object(fields));
            }
        }
    }

    fn finish(mut self) -> Result<PathBuf, LabError> {
        self.write_samples(Instant::MAX);
        match self.file.finish() {
            Ok(_) => Ok(self.path),
            Err(e) => Err(LabError::write(&self.path)(e)),
        }
    }
}

fn packet(p: &Packet) -> Map<String, Value> {
    let mut header = json!({ "packet_type": p.class.name() });
    match p.class {
        Class::Ack => header["ack"] = json!(p.ack),
        Class::Data | Class::Probe => header["seq"] = json!(p.seq),
    }
    if p.low_priority {
        header["low_priority"] = json!(true);
    }
    let mut data = Map::new();
    data.insert("header".into(), header);
    data.insert("raw".into(), json!({ "length": p.size }));
    data
}

impl Recorder for Log {
    fn record(&mut self, now: Instant, event: &Event) {
        let (name, flow, data) = match event {
            Event::Sent { flow, packet: p } if p.class != Class::Ack => ("packet_sent", flow, packet(p)),
            Event::Delivered { flow, packet: p } if p.class == Class::Ack => {
                ("packet_received", flow, packet(p))
            }
            Event::Dropped { flow, link, cause, packet: p } => {
                let mut data = packet(p);
                data.insert("trigger".into(), json!(cause.name()));
                let link = self.links.get(*link as usize).map_or("access", String::as_str);
                data.insert("link".into(), json!(link));
                ("packet_lost", flow, data)
            }
            Event::Marked { flow, link, packet: p } => {
                let mut data = packet(p);
                let link = self.links.get(*link as usize).map_or("access", String::as_str);
                data.insert("link".into(), json!(link));
                ("packet_marked", flow, data)
            }
            Event::Duplicated { flow, link, packet: p } => {
                let mut data = packet(p);
                let link = self.links.get(*link as usize).map_or("access", String::as_str);
                data.insert("link".into(), json!(link));
                ("packet_duplicated", flow, data)
            }
            Event::Window { flow, cwnd, ssthresh } => {
                let mut data = Map::new();
                let mss = self.of(*flow).map_or(0.0, |(trace, _)| trace.mss);
                data.insert("congestion_window".into(), json!((cwnd * mss).round() as u64));
                if ssthresh.is_finite() {
                    data.insert("ssthresh".into(), json!((ssthresh * mss).round() as u64));
                }
                ("metrics_updated", flow, data)
            }
            Event::RecoveryEntered { flow } => ("congestion_state_updated", flow, state("recovery")),
            Event::RecoveryLeft { flow } => ("congestion_state_updated", flow, state("open")),
            Event::Timeout { flow } => {
                let mut data = Map::new();
                data.insert("timer_type".into(), json!("rto"));
                data.insert("event_type".into(), json!("expired"));
                ("loss_timer_updated", flow, data)
            }
            Event::FlowStarted { flow } => ("connection_started", flow, Map::new()),
            Event::FlowFinished { flow } => ("connection_closed", flow, Map::new()),
            Event::GaveUp { flow } => ("connection_closed", flow, trigger("retransmissions")),
            Event::Frame { flow, frame: f } => {
                let mut data = Map::new();
                data.insert("number".into(), json!(f.number));
                data.insert("type".into(), json!(["I", "P", "B"].get(usize::from(f.kind))));
                data.insert("fate".into(), json!(["sent", "skipped", "gap"].get(usize::from(f.status))));
                data.insert("length".into(), json!(f.bytes));
                data.insert("target_rate".into(), json!(f.target.round() as u64));
                ("frame_produced", flow, data)
            }
            Event::InOrder { flow, bytes } => {
                let mut data = Map::new();
                data.insert("bytes".into(), json!(bytes));
                ("data_in_order", flow, data)
            }
            // Events that the others imply, and those that concern no single flow.
            Event::AckArrived { .. }
            | Event::Delivered { .. }
            | Event::Discarded { .. }
            | Event::Handover { .. }
            | Event::LinkChanged { .. }
            | Event::PageDone { .. }
            | Event::ProbeAnswered { .. }
            | Event::ProbeSent { .. }
            | Event::Queue { .. }
            | Event::Sent { .. } => return,
        };
        if let Some((trace, transfer)) = self.of(*flow) {
            trace.event(now, transfer, name, &Value::Object(data));
        }
    }
}

fn trigger(why: &str) -> Map<String, Value> {
    let mut data = Map::new();
    data.insert("trigger".into(), json!(why));
    data
}

fn state(new: &str) -> Map<String, Value> {
    let mut data = Map::new();
    data.insert("new".into(), json!(new));
    data
}

impl Tap for Log {
    fn transfer(&mut self, opened: &Opened) {
        self.transfers.insert(opened.flow, (opened.owner, opened.number));
    }
}

impl Log {
    /// The file of a flow or of a transfer's connection, and the number of the transfer.
    fn of(&mut self, flow: u32) -> Option<(&mut Trace, Option<u64>)> {
        let (flow, number) = match self.transfers.get(&flow) {
            Some((owner, number)) => (*owner, Some(*number)),
            None => (flow, None),
        };
        Some((self.flows.get_mut(flow as usize)?.as_mut()?, number))
    }
}

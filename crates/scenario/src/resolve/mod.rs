//! From the file to the resolved scenario: defaults, references, derived values, and every check that is not a matter
//! of judgement (for those see [`crate::check`]).

pub(crate) mod chain;
pub(crate) mod direction;
mod endpoint;
mod link;
mod repair;
pub(crate) mod segment;

use crate::amount::{Count, Decimal, Span};
use crate::error::{Problem, suggestion};
use crate::memory;
use crate::model::{FlowSpec, Scenario, Short, StartSpec};
use crate::resolved::{ChainRole, FlowGroup, Link, Record, Resolved, Series, Start, Transport};
use crate::workload;
use chain::Written;
use skyhaul_base::{Duration, Rate};
use skyhaul_path::delay::{LONGEST, TooLong};

type Result<T> = core::result::Result<T, Problem>;

/// Longest allowed run.
const MAX_DURATION: Duration = Duration::from_secs(366 * 86_400);
/// Largest number of flows in a scenario.
const MAX_FLOWS: u64 = 1_000_000;

fn refuse<T>(key: impl Into<String>, message: impl core::fmt::Display) -> Result<T> {
    Err(Problem::new(key, message))
}

/// The bandwidth-delay product in packets.
fn bdp_packets(n: Decimal, rate: Rate, rtt: Duration, packet: u32) -> Option<u64> {
    let bit_nanos = u128::from(rate.bits_per_sec()) * u128::from(rtt.as_nanos());
    n.times_ratio(bit_nanos, 8_000_000_000 * u128::from(packet))
}

/// Fills in defaults and checks everything.
pub(crate) fn resolve(model: &Scenario) -> Result<Resolved> {
    if model.schema.is_some_and(|v| v != 1) {
        return refuse("schema", "this program reads version 1 of the format: write schema = 1");
    }
    let Some(duration) = model.duration else {
        return refuse("duration", "missing: write how long the run lasts, such as duration = \"550 s\"");
    };
    if duration.0 > MAX_DURATION {
        return refuse("duration", format!("\"{duration}\" is longer than a year"));
    }
    let seed = model.seed.unwrap_or(1);
    if i64::try_from(seed).is_err() {
        return refuse("seed", "write a whole number from 0 to 9223372036854775807");
    }
    if model.links.is_empty() {
        return refuse("links", "there is no link: add a table such as [links.sat] with rate and delay");
    }
    if model.flows.is_empty() {
        return refuse("flows", "there is no flow: add a table such as [flows.bulk]");
    }
    for (table, name) in
        model.links.keys().map(|n| ("links", n)).chain(model.flows.keys().map(|n| ("flows", n)))
    {
        check_name(table, name)?;
    }

    let gateways = chain::gateways(model)?;
    let mut written = Vec::with_capacity(model.flows.len());
    for (name, spec) in &model.flows {
        written.extend(chain::written(model, &gateways, name, spec)?);
    }
    written.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some([a, b]) = written.windows(2).find(|w| w[0].name == w[1].name) {
        let (group, leg) = if a.is_leg() { (b, a) } else { (a, b) };
        let why = format!(
            "{} has the same name in the results, \"{}\": rename this, or a gateway",
            leg.key, leg.name
        );
        return refuse(group.key.clone(), why);
    }
    let flows: Vec<Flow<'_>> = written.iter().map(|w| Flow::new(model, w)).collect::<Result<_>>()?;
    let delays = model
        .links
        .iter()
        .map(|(name, spec)| link::delays(name, spec, duration.0))
        .collect::<Result<Vec<_>>>()?;
    let rtts: Vec<Duration> = flows
        .iter()
        .map(|f| {
            let links = f.path.iter().map(|&i| delays[i].0.base() + delays[i].1.base());
            links.fold(f.extra_delay + f.extra_delay, |sum, rtt| sum + rtt)
        })
        .collect();
    let links: Vec<Link> = model
        .links
        .iter()
        .enumerate()
        .map(|(index, (name, spec))| {
            let crossing = flows.iter().zip(&rtts).filter(|(f, _)| f.path.contains(&index));
            let (mut rtt, mut packet) = (Duration::ZERO, 0);
            for (flow, &flow_rtt) in crossing {
                rtt = rtt.max(flow_rtt);
                packet = packet.max(flow.endpoint.mss + flow.endpoint.header);
            }
            link::resolve(name, spec, &delays[index], duration.0, rtt, packet)
        })
        .collect::<Result<_>>()?;

    let mut flows: Vec<FlowGroup> = flows
        .into_iter()
        .zip(rtts)
        .map(|(flow, rtt)| {
            // A chain starts as the same flow without gateways would.
            let whole = match &flow.written.role {
                Some(ChainRole::Head(chain)) => {
                    let links = chain.path.iter().map(|&i| delays[i].0.base() + delays[i].1.base());
                    links.fold(flow.extra_delay + flow.extra_delay, |sum, rtt| sum + rtt)
                }
                _ => rtt,
            };
            let key = flow.written.key.clone();
            let group = flow.finish(whole)?;
            chain::check_headers(&key, &group)?;
            Ok(group)
        })
        .collect::<Result<_>>()?;
    chain::join(&mut flows, &gateways, &links);
    if flows.iter().map(|f| u64::from(f.count)).sum::<u64>() > MAX_FLOWS {
        return refuse("flows", format!("more than {MAX_FLOWS} flows in all"));
    }
    let repair = segment::repair(model, &links, &flows)?;
    let title = model.title.clone().unwrap_or_default();
    Ok(Resolved {
        title,
        duration: duration.0,
        seed,
        memory: model.max_memory.map_or(memory::USUAL_LIMIT, |s| s.0),
        links,
        flows,
        gateways,
        repair,
        record: record(model)?,
        events: Vec::new(),
        gateway_events: Vec::new(),
    })
}

/// Checks a name, which becomes part of paths, stream names and file names.
fn check_name(table: &str, name: &str) -> Result<()> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(allowed) {
        let key = format!("{table}.{name}");
        return refuse(
            key,
            format!("the name \"{name}\" has other characters than letters, digits, - and _"),
        );
    }
    Ok(())
}

fn record(model: &Scenario) -> Result<Record> {
    let Some(spec) = &model.record else { return Ok(Record::default()) };
    if spec.sample.is_some_and(|s| s.0.is_zero()) {
        return refuse(
            "record.sample",
            "the interval between samples is zero: write a time such as \"100 ms\"",
        );
    }
    let mut series = match (&spec.series, spec.sample) {
        (Some(series), None) if !series.is_empty() => {
            return refuse(
                "record.sample",
                "missing: write how often to sample, such as sample = \"100 ms\"",
            );
        }
        (Some(series), _) => series.clone(),
        (None, None) => Vec::new(),
        (None, Some(_)) => vec![Series::Acked, Series::Cwnd, Series::Queue, Series::Srtt],
    };
    series.sort_unstable();
    if let Some(twice) = series.windows(2).find(|w| w[0] == w[1]) {
        return refuse("record.series", format!("\"{}\" is listed twice", twice[0].name()));
    }
    Ok(Record {
        sample: spec.sample.map(|s| s.0),
        series,
        packet_delay: spec.packet_delay.unwrap_or_default(),
    })
}

/// A partly resolved flow group: everything that does not depend on the RTT.
struct Flow<'a> {
    key: String,
    written: &'a Written<'a>,
    spec: &'a FlowSpec,
    count: u32,
    path: Vec<usize>,
    extra_delay: Duration,
    transport: Transport,
    endpoint: skyhaul_tcp::Config,
    cc: skyhaul_cc::Config,
}

impl<'a> Flow<'a> {
    fn new(model: &Scenario, written: &'a Written<'a>) -> Result<Self> {
        let (key, spec) = (written.key.clone(), &*written.spec);
        let count = spec.count.unwrap_or(Count(1)).0;
        let count = match u32::try_from(count) {
            Ok(0) => return refuse(format!("{key}.count"), "0 flows do nothing: write at least 1"),
            Ok(n) if u64::from(n) <= MAX_FLOWS => n,
            _ => return refuse(format!("{key}.count"), format!("{count} is more than {MAX_FLOWS} flows")),
        };
        let extra_delay = spec.extra_delay.map_or(Duration::ZERO, |d| d.0);
        if extra_delay > LONGEST {
            return refuse(format!("{key}.extra-delay"), TooLong);
        }
        let transport = spec.transport.map_or(Transport::default(), |t| t.0);
        if transport.sends_datagrams() {
            let path = path(model, &key, spec)?;
            let (endpoint, cc) = datagrams(&key, spec, &transport)?;
            return Ok(Self { key, written, spec, count, path, extra_delay, transport, endpoint, cc });
        }
        let cc = match &spec.cc {
            Some(Short(cc)) => cc.0.clone(),
            None => crate::model::default_cc(),
        };
        if let Err(why) = cc.validate() {
            return refuse(format!("{key}.cc"), why);
        }
        let endpoint = endpoint::resolve(&key, spec, &cc)?;
        let path = path(model, &key, spec)?;
        Ok(Self { key, written, spec, count, path, extra_delay, transport, endpoint, cc })
    }

    fn finish(self, rtt: Duration) -> Result<FlowGroup> {
        let Self { key, written, spec, count, path, extra_delay, transport, endpoint, cc } = self;
        let handshake = spec.handshake.unwrap_or(transport == Transport::Tcp);
        let close = spec.close.unwrap_or(false);
        if close && !handshake {
            return refuse(
                format!("{key}.close"),
                "only connections that open with a handshake close with FINs: leave out handshake = false, or this",
            );
        }
        let known_rtt = match (handshake, spec.known_rtt) {
            (true, Some(_)) => {
                return refuse(
                    format!("{key}.known-rtt"),
                    "the handshake measures the RTT: also write handshake = false, or leave this out",
                );
            }
            (true, None) => None,
            (false, _) if transport.sends_datagrams() => None,
            (false, given) => {
                let known = given.map_or(rtt, |t| t.0);
                if known.is_zero() {
                    return refuse(
                        format!("{key}.known-rtt"),
                        "the known RTT is zero: write a time such as \"10 ms\"",
                    );
                }
                Some(known)
            }
        };
        let app = spec.app.as_ref().map(|a| &a.0);
        let packet = app.and_then(skyhaul_apps::Config::packet);
        let app = workload::resolve(&format!("{key}.app"), app, transport, endpoint.mss)?;
        let transport = transport.resolve(packet, app.offered());
        let transport =
            transport.map_err(|e| Problem::new(format!("{key}.transport.{}", e.key()), e.to_string()))?;
        let start = start(&key, spec, count, rtt)?;
        let stop = spec.stop.map(|t| t.0);
        Ok(FlowGroup {
            name: written.name.clone(),
            count,
            path,
            direction: spec.direction.unwrap_or_default(),
            extra_delay,
            dscp: spec.dscp.unwrap_or_default().0,
            transport,
            cc,
            endpoint,
            app,
            start,
            stop,
            handshake,
            close,
            known_rtt,
            role: written.role.clone().map(Box::new),
        })
    }
}

/// The endpoint of a datagram flow, of which only the sizes matter.
fn datagrams(
    key: &str,
    spec: &FlowSpec,
    transport: &Transport,
) -> Result<(skyhaul_tcp::Config, skyhaul_cc::Config)> {
    let given = [
        ("cc", spec.cc.is_some()),
        ("endpoint", spec.endpoint.is_some()),
        ("rwnd", spec.rwnd.is_some()),
        ("sndbuf", spec.sndbuf.is_some()),
        ("handshake", spec.handshake.is_some()),
        ("close", spec.close.is_some()),
        ("known-rtt", spec.known_rtt.is_some()),
    ];
    if let Some((name, _)) = given.iter().find(|(_, given)| *given) {
        return refuse(
            format!("{key}.{name}"),
            "only TCP uses it: leave it out, or write transport = \"tcp\"",
        );
    }
    // A size that is refused is found when the workload is resolved.
    let app = spec.app.as_ref().and_then(|a| a.0.packet());
    let packet = transport.rate().and_then(|r| r.packet()).max(app).unwrap_or(skyhaul_apps::USUAL_PACKET);
    let packet = u32::try_from(packet).unwrap_or(u32::MAX);
    let endpoint = skyhaul_tcp::Config {
        mss: packet.saturating_sub(workload::UDP_HEADER).max(1),
        header: workload::UDP_HEADER,
        receive_buffer: u64::MAX,
        send_buffer: u64::MAX,
        ..skyhaul_tcp::Config::modern()
    };
    Ok((endpoint, crate::model::default_cc()))
}

fn path(model: &Scenario, key: &str, spec: &FlowSpec) -> Result<Vec<usize>> {
    let names: Vec<&str> = model.links.keys().map(String::as_str).collect();
    let known = || names.join(", ");
    let key = format!("{key}.path");
    let Some(path) = &spec.path else {
        if names.len() == 1 {
            return Ok(vec![0]);
        }
        return refuse(key, format!("missing: name the links of the path, in order (known: {})", known()));
    };
    if path.is_empty() {
        return refuse(key, format!("empty: name at least one link (known: {})", known()));
    }
    let mut indices = Vec::with_capacity(path.len());
    for name in path {
        let Some(index) = names.iter().position(|n| n == name) else {
            let hint = suggestion(name, names.iter().copied());
            return refuse(key, format!("there is no link \"{name}\"{hint}"));
        };
        if indices.contains(&index) {
            return refuse(key, format!("\"{name}\" is on the path twice"));
        }
        indices.push(index);
    }
    Ok(indices)
}

fn start(key: &str, spec: &FlowSpec, count: u32, rtt: Duration) -> Result<Start> {
    let time = |span: Span| match span {
        Span::Time(d) => Some(d),
        Span::Rtts(n) => n.times(rtt.as_nanos()).map(Duration::from_nanos),
    };
    let late = || Problem::new(format!("{key}.start"), "later than any run can last");
    match spec.start.map(|s| s.0) {
        // Flows that start together stay in step and lose together; spread them unless the scenario says otherwise.
        None if count > 1 => Ok(Start::Uniform { from: Duration::ZERO, to: rtt }),
        None => Ok(Start::At(Duration::ZERO)),
        Some(StartSpec::At(at)) => Ok(Start::At(time(at).ok_or_else(late)?)),
        Some(StartSpec::Uniform([from, to])) => {
            let (from, to) = (time(from).ok_or_else(late)?, time(to).ok_or_else(late)?);
            if from > to {
                return refuse(format!("{key}.start"), "uniform takes the earlier time first");
            }
            Ok(Start::Uniform { from, to })
        }
    }
}

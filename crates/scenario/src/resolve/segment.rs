//! Segments that two gateways repair.

use super::{Result, refuse};
use crate::amount::{Count, Size, Time};
use crate::error::{Problem, suggestion};
use crate::model::{RepairSpec, Scenario};
use crate::resolved::{Direction, FlowGroup, GatewayEvent, GatewayEventKind, Link, Repair};
use skyhaul_base::{Duration, Rate};
use skyhaul_path::{Limit, Refusal};
use skyhaul_repair::Config;

/// Longest time that a key accepts.
const LONGEST: Duration = Duration::from_secs(60);

pub(super) fn repair(model: &Scenario, links: &[Link], flows: &[FlowGroup]) -> Result<Vec<Repair>> {
    let mut found: Vec<Repair> = Vec::with_capacity(model.repair.len());
    for (name, spec) in &model.repair {
        super::check_name("repair", name)?;
        let at = |k: &str| format!("repair.{name}.{k}");
        let between = between(&at("links"), spec, links)?;
        if let Some(other) = found.iter().find(|r| r.links.iter().any(|l| between.contains(l))) {
            let why =
                format!("repair.{} has one of these links, too: a link has one pair of gateways", other.name);
            return refuse(at("links"), why);
        }
        check_paths(&at("links"), &between, links, flows)?;
        let mut pass = spec.pass.clone();
        pass.sort_unstable();
        pass.dedup();
        for flow in &pass {
            if !model.flows.contains_key(flow) {
                let hint = suggestion(flow, model.flows.keys().map(String::as_str));
                return refuse(at("pass"), format!("there is no flow \"{flow}\"{hint}"));
            }
        }
        let forward: Vec<&Direction> = between.iter().map(|&l| &links[l].forward).collect();
        let reverse: Vec<&Direction> = between.iter().rev().map(|&l| &links[l].reverse).collect();
        let (forward, reverse) = (config(&at, spec, &forward)?, config(&at, spec, &reverse)?);
        let repair = Repair { name: name.clone(), links: between, pass, forward, reverse };
        for group in flows.iter().filter(|g| g.path.contains(&repair.links[0]) && repair.repairs(g)) {
            let packet = group.endpoint.mss + group.endpoint.header;
            let largest = forward.largest_datagram();
            if packet > largest {
                let why = format!(
                    "packets of {packet} bytes of flows.{} do not fit with the headers, at most {largest} bytes do: write a \
                     larger mtu, a smaller mss or packet there, or name the flow in `pass`",
                    group.name
                );
                return refuse(at("mtu"), why);
            }
        }
        found.push(repair);
    }
    Ok(found)
}

/// Refuses handovers beside repair: they move connections between routes, and the gateways of a segment do not follow.
pub(crate) fn check_events(repair: &[Repair], events: &[GatewayEvent]) -> Result<()> {
    let moves = |e: &GatewayEvent| matches!(e.kind, GatewayEventKind::Handover(_));
    match repair.first().filter(|_| events.iter().any(moves)) {
        Some(first) => {
            let why = "with a handover between gateways no segment is repaired: leave out this table, or the handover";
            refuse(format!("repair.{}", first.name), why)
        }
        None => Ok(()),
    }
}

/// The links between the two gateways, by their indices.
fn between(key: &str, spec: &RepairSpec, links: &[Link]) -> Result<Vec<usize>> {
    let known = || links.iter().map(|l| l.name.as_str());
    if spec.links.is_empty() {
        let known: Vec<&str> = known().collect();
        let why = format!(
            "missing: name the links between the two gateways, in order (known: {})",
            known.join(", ")
        );
        return refuse(key, why);
    }
    let mut between = Vec::with_capacity(spec.links.len());
    for name in &spec.links {
        let Some(link) = known().position(|l| l == name) else {
            return refuse(key, format!("there is no link \"{name}\"{}", suggestion(name, known())));
        };
        if between.contains(&link) {
            return refuse(key, format!("\"{name}\" is named twice"));
        }
        between.push(link);
    }
    Ok(between)
}

/// Refuses paths that cross only a part of the segment.
fn check_paths(key: &str, between: &[usize], links: &[Link], flows: &[FlowGroup]) -> Result<()> {
    for group in flows {
        let crosses = group.path.iter().filter(|l| between.contains(l)).count();
        let whole = group.path.windows(between.len()).any(|w| w == between);
        if crosses > 0 && !(whole && crosses == between.len()) {
            let names: Vec<&str> = between.iter().map(|&l| links[l].name.as_str()).collect();
            let why = format!(
                "the path of flows.{} enters or leaves between the two gateways: let it cross {} in this order, or none of them",
                group.name,
                names.join(", ")
            );
            return refuse(key, why);
        }
    }
    Ok(())
}

/// The configuration of the gateway that sends over these directions of links, the first of which is next to it.
fn config(at: &dyn Fn(&str) -> String, spec: &RepairSpec, directions: &[&Direction]) -> Result<Config> {
    let rates = directions.iter().map(|d| d.rate.mean());
    let Some(rate) = rates.flatten().min_by_key(|rate: &Rate| rate.bits_per_sec()) else {
        let why = "no link between the gateways has a rate, so that they cannot know when congestion begins: give one to a link";
        return refuse(at("links"), why);
    };
    let mut queue = directions[0].queue;
    if queue.discipline.shapes() {
        let why = "the gateway takes the rate from the links, so that the queue of the first one cannot have its own: leave out its `rate`";
        return refuse(at("links"), why);
    }
    if queue.discipline.share_of_acks() < 1.0 || queue.discipline.compacts_acks() {
        let why = "the gateway does not read the acknowledgements that the queue of the first link would thin: write another kind of queue \
                   there";
        return refuse(at("links"), why);
    }
    // Each packet goes through the gateway's queue, even to an idle link: without room all would be dropped.
    if queue.limit == Limit::Packets(0) {
        queue.limit = Limit::Packets(1);
    }
    let usual = Config::new(rate, queue);
    let time = |k: &str, given: Option<Time>, usual: Duration| match given {
        Some(Time(time)) if time > LONGEST => refuse(at(k), "longer than a minute: write a shorter time"),
        Some(Time(time)) => Ok(time),
        None => Ok(usual),
    };
    let small = |k: &str, given: Option<Count>, usual: u16| {
        let n = given.map_or(u64::from(usual), |Count(n)| n);
        u16::try_from(n).or_else(|_| refuse(at(k), format!("{n} is too many: write a smaller number")))
    };
    let bytes = |k: &str, given: Option<Size>| match given.map(|Size(n)| u32::try_from(n)) {
        None => Ok(None),
        Some(Ok(n)) if n <= 65_535 => Ok(Some(n)),
        Some(_) => {
            refuse(at(k), "more than 65535 bytes: write a size that a packet can have, such as \"1500 B\"")
        }
    };
    let config = Config {
        fec: spec.fec.unwrap_or(usual.fec),
        retries: small("retries", spec.retries, usual.retries as u16)?.into(),
        resequence: time("resequence", spec.resequence, usual.resequence)?,
        share: spec.share.unwrap_or(usual.share),
        block: small("block", spec.block, usual.block)?,
        fill_time: time("fill-time", spec.fill_time, usual.fill_time)?,
        residual: spec.residual.unwrap_or(usual.residual),
        outer: bytes("outer", spec.outer)?.unwrap_or(usual.outer),
        mtu: bytes("mtu", spec.mtu)?,
        low_priority: spec.low_priority.unwrap_or(usual.low_priority),
        report: time("report", spec.report, usual.report)?,
        elided: bytes("compress", spec.compress)?.unwrap_or(usual.elided),
        ..usual
    };
    config.validate().map_err(|e| Problem::new(at(e.key()), e))?;
    Ok(config)
}

/// The table of a segment in a file.
pub(crate) fn spec_of(repair: &Repair, links: &[Link]) -> RepairSpec {
    let c = &repair.forward;
    RepairSpec {
        links: repair.links.iter().map(|&l| links[l].name.clone()).collect(),
        pass: repair.pass.clone(),
        fec: Some(c.fec),
        retries: Some(Count(c.retries.into())),
        resequence: Some(Time(c.resequence)),
        share: Some(c.share),
        block: Some(Count(c.block.into())),
        fill_time: Some(Time(c.fill_time)),
        residual: Some(c.residual),
        outer: Some(Size(c.outer.into())),
        mtu: c.mtu.map(|n| Size(n.into())),
        low_priority: Some(c.low_priority),
        report: Some(Time(c.report)),
        // Left out where there is none, so that files without it mean the same as before.
        compress: (c.elided > 0).then(|| Size(c.elided.into())),
    }
}

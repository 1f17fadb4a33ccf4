//! Chains of connections: a group that is split at gateways becomes one group per leg. The first keeps the name and
//! the application; the others are named after the gateway at which they begin.

use super::{Result, refuse};
use crate::chain::ChainKind;
use crate::error::{Problem, suggestion};
use crate::model::{ChainSpec, FlowSpec, LegSpec, Scenario, Short};
use crate::resolved::{
    Chain, ChainRole, Compression, Direction, FlowDirection, FlowGroup, Gateway, LegTransport, Link,
};
use skyhaul_base::Duration;
use std::borrow::Cow;

/// Default forwarding delay of a gateway.
const FORWARDING_DELAY: Duration = Duration::from_micros(100);
/// Least size of a default buffer, bytes.
const LEAST_BUFFER: u64 = 64 * 1024;

/// A group to be resolved: one of a file, or a leg of one.
pub(super) struct Written<'a> {
    /// The path of its keys.
    pub(super) key: String,
    pub(super) name: String,
    pub(super) spec: Cow<'a, FlowSpec>,
    pub(super) role: Option<ChainRole>,
}

impl Written<'_> {
    pub(super) fn is_leg(&self) -> bool {
        matches!(self.role, Some(ChainRole::Leg { .. }))
    }
}

pub(super) fn gateways(model: &Scenario) -> Result<Vec<Gateway>> {
    let links: Vec<&str> = model.links.keys().map(String::as_str).collect();
    let mut gateways = Vec::with_capacity(model.gateways.len());
    for (name, spec) in &model.gateways {
        super::check_name("gateways", name)?;
        let at = |k: &str| format!("gateways.{name}.{k}");
        let Some(behind) = &spec.behind else {
            let why = format!(
                "missing: name the link that precedes the gateway, seen from the sender (known: {})",
                links.join(", ")
            );
            return refuse(at("behind"), why);
        };
        let Some(link) = links.iter().position(|l| l == behind) else {
            let hint = suggestion(behind, links.iter().copied());
            return refuse(at("behind"), format!("there is no link \"{behind}\"{hint}"));
        };
        if spec.buffer.is_some_and(|b| b.0 == 0) {
            return refuse(
                at("buffer"),
                "a gateway without a buffer forwards nothing: write, say, \"256 KiB\"",
            );
        }
        if spec.connections.is_some_and(|c| c.0 == 0) {
            let why = "a gateway that accepts no connection is useless: write at least 1, or leave it out of the chain";
            return refuse(at("connections"), why);
        }
        gateways.push(Gateway {
            name: name.clone(),
            behind: link,
            buffer: spec.buffer.map(|b| b.0),
            delay: spec.delay.map_or(FORWARDING_DELAY, |d| d.0),
            connections: spec.connections.map(|c| c.0),
            overload: spec.overload.unwrap_or_default(),
        });
    }
    Ok(gateways)
}

/// The groups that a group of the file expands to.
pub(super) fn written<'a>(
    model: &'a Scenario,
    gateways: &[Gateway],
    name: &'a str,
    spec: &'a FlowSpec,
) -> Result<Vec<Written<'a>>> {
    let key = format!("flows.{name}");
    let Some(chain) = &spec.chain else {
        return Ok(vec![Written { key, name: name.into(), spec: Cow::Borrowed(spec), role: None }]);
    };
    let at = |k: &str| format!("{key}.chain.{k}");
    let kind = chain.kind.unwrap_or_default();
    check_group(&key, spec)?;
    let path = super::path(model, &key, spec)?;
    let (used, cuts) = stations(&at("gateways"), chain, kind, gateways, &path, model)?;
    if let Some(leg) = chain.legs.keys().find(|leg| !chain.gateways.contains(leg)) {
        let hint = suggestion(leg, chain.gateways.iter().map(String::as_str));
        let why = format!("no leg starts at \"{leg}\": write the name of a gateway of this chain{hint}");
        return refuse(at(&format!("legs.{leg}")), why);
    }
    let asym = chain.asym.unwrap_or(0.0);
    if !(0.0..=1.0).contains(&asym) {
        return refuse(at("asym"), format!("{asym} is no probability: write 0 to 1"));
    }
    let names: Vec<&str> = model.links.keys().map(String::as_str).collect();
    let piece = |from: usize, to: usize| -> Vec<String> {
        path[from..to].iter().map(|&i| names[i].to_owned()).collect()
    };
    let ends = || cuts.iter().copied().chain([path.len()]);
    let head = Chain {
        kind,
        path: path.clone(),
        gateways: used.clone(),
        legs: Vec::new(),
        buffers: Vec::new(),
        open: chain.open.unwrap_or_default(),
        ack_mode: chain.ack_mode.unwrap_or_default(),
        asym,
        encrypted: chain.encrypted.unwrap_or(false),
    };
    let first = ends().next().unwrap_or(path.len());
    let mut groups = vec![Written {
        key: key.clone(),
        name: name.into(),
        spec: Cow::Owned(FlowSpec { path: Some(piece(0, first)), chain: None, ..spec.clone() }),
        role: Some(ChainRole::Head(head)),
    }];
    for ((&gateway, &from), to) in used.iter().zip(&cuts).zip(ends().skip(1)) {
        let begins = &gateways[gateway];
        let own = chain.legs.get(&begins.name).cloned().unwrap_or_default();
        let headers = own.header_compression.map(|h| h.0.explicit());
        let key = at(&format!("legs.{}", begins.name));
        let transport = transport(&key, &own, to == path.len())?;
        groups.push(Written {
            key,
            name: leg_name(name, &begins.name),
            spec: Cow::Owned(leg(spec, own, piece(from, to))),
            role: Some(ChainRole::Leg { delay: begins.delay, transport, headers }),
        });
    }
    Ok(groups)
}

/// The name in results of the leg that begins at a gateway.
pub(crate) fn leg_name(flow: &str, gateway: &str) -> String {
    format!("{flow}-{gateway}")
}

/// The transport of the leg at `key`, which may be the last.
fn transport(key: &str, own: &LegSpec, last: bool) -> Result<LegTransport> {
    let at = |k: &str| format!("{key}.{k}");
    let transport = own.transport.map_or(LegTransport::Tcp, |t| t.0);
    let LegTransport::XtpLike(config) = transport else { return Ok(transport) };
    if last {
        let why = "the receiver knows only \"tcp\", and the last leg ends there: write \"tcp\", or kind = \"split3\" with a second gateway";
        return refuse(at("transport"), why);
    }
    if let Some((name, _)) =
        [("cc", own.cc.is_some()), ("endpoint", own.endpoint.is_some())].iter().find(|(_, given)| *given)
    {
        return refuse(
            at(name),
            "\"xtp-like\" has no congestion control, only a rate: leave this out, or write transport = \"tcp\"",
        );
    }
    if own.header_compression.is_some() {
        return refuse(
            at("header-compression"),
            "the headers of \"xtp-like\" are its own: leave this out, or write transport = \"tcp\"",
        );
    }
    config.check().map_err(|e| Problem::new(at(&format!("transport.{}", e.key())), e.to_string()))?;
    Ok(transport)
}

/// Checks that a group can be split at all.
fn check_group(key: &str, spec: &FlowSpec) -> Result<()> {
    if let Some(t) = spec.transport.filter(|t| t.0.sends_datagrams()) {
        let why = format!("carries unacknowledged datagrams: write \"tcp\" instead of \"{}\"", t.0.name());
        return refuse(format!("{key}.transport"), why);
    }
    if spec.direction == Some(FlowDirection::Reverse) {
        let why = "gateways stand behind links as seen from the start of the path: write path and gateways from the sender on, or leave out the chain";
        return refuse(format!("{key}.direction"), why);
    }
    if spec.handshake == Some(false) {
        let why = "the legs of a chain open one after the other: leave this out, or leave out the chain";
        return refuse(format!("{key}.handshake"), why);
    }
    if let Some(app) = spec.app.as_ref().map(|a| &a.0).filter(|a| a.is_watched() || a.opens().is_some()) {
        let why = format!(
            "\"{}\" cannot use a chain of connections: write \"bulk\", \"pages\", \"cbr\" or \"on-off\"",
            app.name()
        );
        return refuse(format!("{key}.app"), why);
    }
    Ok(())
}

/// The gateways that a chain uses, and the number of links of the path before each.
fn stations(
    key: &str,
    chain: &ChainSpec,
    kind: ChainKind,
    gateways: &[Gateway],
    path: &[usize],
    model: &Scenario,
) -> Result<(Vec<usize>, Vec<usize>)> {
    let (needed, given) = (kind.gateways(), chain.gateways.len());
    let (mut all, mut cuts) = (Vec::new(), Vec::new());
    for name in &chain.gateways {
        let Some(index) = gateways.iter().position(|g| g.name == *name) else {
            return refuse(key, no_gateway(name, gateways));
        };
        let link = gateways[index].behind;
        let link_name = model.links.keys().nth(link).map_or("", String::as_str);
        let cut = match path.iter().position(|&l| l == link) {
            Some(i) if i + 1 < path.len() => i + 1,
            Some(_) => {
                let why = format!(
                    "\"{name}\" stands behind \"{link_name}\", the last link, where no leg can start: write a gateway that \
                     stands behind an earlier link"
                );
                return refuse(key, why);
            }
            None => {
                let why = format!(
                    "\"{name}\" stands behind \"{link_name}\", which is not on the path: add the link \
                     to the path, or write another gateway"
                );
                return refuse(key, why);
            }
        };
        if cuts.last().is_some_and(|&before| before >= cut) {
            let why = format!(
                "\"{name}\" does not stand behind the previous gateway: list the gateways in the order of the path"
            );
            return refuse(key, why);
        }
        all.push(index);
        cuts.push(cut);
    }
    if given < needed {
        let why = format!(
            "\"{}\" needs {needed}, but there is {given}: name them in the order of the path",
            kind.name()
        );
        return refuse(key, why);
    }
    all.truncate(needed);
    cuts.truncate(needed);
    Ok((all, cuts))
}

/// The message about a gateway that does not exist.
pub(crate) fn no_gateway(name: &str, gateways: &[Gateway]) -> String {
    let hint = suggestion(name, gateways.iter().map(|g| g.name.as_str()));
    let add = if hint.is_empty() { ": add a table such as [gateways.near]" } else { "" };
    format!("there is no gateway \"{name}\"{hint}{add}")
}

/// The group of a leg that begins at a gateway.
fn leg(flow: &FlowSpec, own: LegSpec, path: Vec<String>) -> FlowSpec {
    FlowSpec {
        count: flow.count,
        path: Some(path),
        dscp: flow.dscp,
        cc: own.cc.or_else(|| flow.cc.clone()),
        endpoint: own.endpoint.or_else(|| flow.endpoint.clone()),
        rwnd: own.rwnd.or(flow.rwnd),
        sndbuf: own.sndbuf.or(flow.sndbuf),
        close: flow.close,
        ..FlowSpec::default()
    }
}

/// Checks that a leg's compressed headers are shorter than its headers, and that they can be compressed.
pub(super) fn check_headers(key: &str, group: &FlowGroup) -> Result<()> {
    let Some(rule) = group.header_compression() else { return Ok(()) };
    let at = |k: &str| format!("{key}.header-compression{k}");
    let own = group.endpoint.header;
    for (k, size) in [(".data", rule.sizes()[0]), (".acks", rule.sizes()[1])] {
        if size == 0 || size >= own {
            let why = format!(
                "{size} B is no compressed header: write at least 1 B and less than the {own} B of a whole one"
            );
            return refuse(at(k), why);
        }
    }
    if matches!(rule, Compression::Vj(_)) && group.endpoint.timestamps {
        let why = "RFC 1144 compresses no header whose timestamps change: write endpoint = { timestamps = false, rtt-source = \"every-ack\" } for the leg, or \"scps\"";
        return refuse(at(""), why);
    }
    Ok(())
}

/// Fills in the values that depend on all groups: the legs of a chain, and the buffers of its gateways.
pub(super) fn join(flows: &mut [FlowGroup], gateways: &[Gateway], links: &[Link]) {
    for head in 0..flows.len() {
        let Some(chain) = flows[head].chain() else { continue };
        let name = flows[head].name.clone();
        let names = chain.gateways.iter().map(|&g| leg_name(&name, &gateways[g].name));
        let legs: Vec<usize> = names.filter_map(|n| flows.iter().position(|f| f.name == n)).collect();
        let all: Vec<usize> = core::iter::once(head).chain(legs.iter().copied()).collect();
        let buffers = chain.gateways.iter().zip(all.windows(2)).map(|(&g, beside)| {
            gateways[g].buffer.unwrap_or_else(|| {
                let slower = beside.iter().filter_map(|&f| product(&flows[f], links)).min_by_key(|p| p.0);
                slower.map_or(LEAST_BUFFER, |(_, bytes)| (2 * bytes).max(LEAST_BUFFER))
            })
        });
        let buffers = buffers.collect();
        if let Some(ChainRole::Head(chain)) = flows[head].role.as_deref_mut() {
            (chain.legs, chain.buffers) = (legs, buffers);
        }
    }
}

/// The slowest rate on a leg, bit/s, and the leg's BDP, bytes.
fn product(f: &FlowGroup, links: &[Link]) -> Option<(u64, u64)> {
    let delay = |d: &Direction| d.delay.base();
    let rtt = f.path.iter().fold(f.extra_delay + f.extra_delay, |sum, &i| {
        sum + delay(&links[i].forward) + delay(&links[i].reverse)
    });
    let rate = f.path.iter().filter_map(|&i| links[i].forward.rate.mean()).min()?;
    Some((rate.bits_per_sec(), (rate.bytes_per_sec() * rtt.as_secs_f64()) as u64))
}

/// The leg as written in files.
pub(crate) fn spec_of(group: &FlowGroup, flow: &FlowSpec) -> LegSpec {
    let rated = group.rate_leg();
    LegSpec {
        transport: rated.map(|c| Short(LegTransport::XtpLike(*c))),
        cc: flow.cc.clone().filter(|_| rated.is_none()),
        header_compression: group.header_compression().copied().map(Short),
        endpoint: flow.endpoint.clone().filter(|_| rated.is_none()),
        rwnd: flow.rwnd,
        sndbuf: flow.sndbuf,
    }
}

//! Events: changes during a run.

use crate::amount::RateSpec;
use crate::error::{Problem, suggestion};
use crate::model::{EventSpec, GatewayHandoverSpec, Scenario, is_trace};
use crate::resolve::chain::no_gateway;
use crate::resolved::{
    Direction, Event, FlowGroup, GatewayEvent, GatewayEventKind, GatewayHandover, Link, Resolved,
};
use skyhaul_base::{Duration, Rate};
use skyhaul_path::Change;
use toml::{Table, Value};

/// The keys that may change, for messages.
const KNOWN: &str =
    "links.NAME.rate, .delay, .error, .queue.limit and .up, and the same of links.NAME.reverse";

/// Default signalling time of a handover between gateways.
const SIGNALLING: Duration = Duration::from_millis(50);
/// Default rate between two gateways.
const BACKHAUL: Rate = Rate::from_bits_per_sec(100_000_000);

/// The changes of all events of `model`, which resolves to `start`, in order of time. `change` resolves the scenario with
/// the values of an event and of all events before it.
pub(crate) fn resolve(
    model: &Scenario,
    start: &Resolved,
    mut change: impl FnMut(&str, &[(String, Value)]) -> Result<Vec<Link>, Problem>,
) -> Result<Vec<Event>, Problem> {
    let events = &model.event;
    let mut order: Vec<usize> = (0..events.len()).collect();
    // A stable sort: at the same time the order of the file holds.
    order.sort_by_key(|&i| events[i].at.0);
    let mut before = start.links.clone();
    // Links whose reverse direction has a queue of its own, which does not follow that of the forward direction.
    let mut own_queue: Vec<bool> =
        model.links.values().map(|l| l.reverse.as_ref().is_some_and(|r| r.queue.is_some())).collect();
    let mut changes = Vec::new();
    for index in order {
        let event = &events[index];
        let of_gateway = event.crash.is_some() || event.reroute.is_some() || event.handover.is_some();
        if of_gateway && event.set.is_empty() {
            continue;
        }
        let key = format!("event[{index}]");
        let refuse = |at: String, message: String| Err(Problem::new(at, message));
        let mut leaves = Vec::new();
        flatten("", &event.set, &mut leaves);
        if leaves.is_empty() {
            return refuse(format!("{key}.set"), format!("empty: name a key to change ({KNOWN})"));
        }
        for (path, _) in &leaves {
            if !may_change(path) {
                let message = format!("cannot change during a run (what can: {KNOWN})");
                return refuse(format!("{key}.set.{path}"), message);
            }
        }
        let mut after = change(&key, &leaves)?;
        for (i, (old, new)) in before.iter().zip(&mut after).enumerate() {
            let link = &start.links[i].name;
            let sets = |key: String| leaves.iter().any(|(path, _)| *path == key);
            let forward_limit = sets(format!("links.{link}.queue.limit"));
            let reverse_limit = sets(format!("links.{link}.reverse.queue.limit"));
            own_queue[i] |= reverse_limit;
            let reverse_limit = reverse_limit || forward_limit && !own_queue[i];
            for (forward, old, new, limit_set) in [
                (true, &old.forward, &mut new.forward, forward_limit),
                (false, &old.reverse, &mut new.reverse, reverse_limit),
            ] {
                // A queue given in BDP keeps its size when the rate or the delay changes.
                if !limit_set {
                    new.queue = old.queue;
                }
                let replaced = new.fec.as_ref().is_some_and(|fec| fec.code().residual.is_some());
                if old.error != new.error && replaced {
                    let message = "the code's residual losses take the place of the link's errors, which therefore \
                                   cannot change: leave out `residual`";
                    return refuse(format!("{key}.set"), message.to_owned());
                }
                if old.rate != new.rate && old.fade.as_ref().is_some_and(|f| f.sets_rate()) {
                    let message =
                        format!("the carrier of links.{link}.fade sets the rate: leave out the rate");
                    return refuse(format!("{key}.set"), message);
                }
                differences(old, new, &mut |change| {
                    changes.push(Event { at: event.at.0, link: i, forward, change });
                });
            }
        }
        before = after;
    }
    Ok(changes)
}

/// Events of gateways, in order of time.
pub(crate) fn gateway_events(events: &[EventSpec], start: &Resolved) -> Result<Vec<GatewayEvent>, Problem> {
    let mut found = Vec::new();
    for (index, event) in events.iter().enumerate() {
        let key = |k: &str| format!("event[{index}].{k}");
        let named = [
            ("crash", &event.crash, GatewayEventKind::Crash),
            ("reroute", &event.reroute, GatewayEventKind::Reroute),
        ];
        for (k, name, kind) in named {
            let Some(name) = name else { continue };
            found.push(GatewayEvent { at: event.at.0, gateway: gateway(start, key(k), name)?, kind });
        }
        if let Some(spec) = &event.handover {
            let (gateway, what) = handover(start, spec, &|k| key(&format!("handover.{k}")))?;
            found.push(GatewayEvent { at: event.at.0, gateway, kind: GatewayEventKind::Handover(what) });
        }
    }
    found.sort_by_key(|m| m.at);
    Ok(found)
}

/// The gateway of this name.
fn gateway(start: &Resolved, key: String, name: &str) -> Result<usize, Problem> {
    let unknown = || Problem::new(key, no_gateway(name, &start.gateways));
    start.gateways.iter().position(|g| g.name == name).ok_or_else(unknown)
}

/// A handover, and the gateway that hands over.
fn handover(
    start: &Resolved,
    spec: &GatewayHandoverSpec,
    key: &dyn Fn(&str) -> String,
) -> Result<(usize, GatewayHandover), Problem> {
    let named = |k: &str, name: &Option<String>| match name {
        Some(name) => gateway(start, key(k), name),
        None => Err(Problem::new(key(k), "missing: write the name of a gateway")),
    };
    let (from, to) = (named("from", &spec.from)?, named("to", &spec.to)?);
    let splits = |f: &&FlowGroup| f.chain().is_some_and(|c| c.gateways.contains(&to));
    if from == to {
        return Err(Problem::new(key("to"), "hands over to itself: write the name of another gateway"));
    }
    if let Some(f) = start.flows.iter().find(splits) {
        let message =
            format!("already splits flows.{}: write the name of a gateway that is in no chain", f.name);
        return Err(Problem::new(key("to"), message));
    }
    let link = |name: &String| {
        start.links.iter().position(|l| l.name == *name).ok_or_else(|| {
            let hint = suggestion(name, start.links.iter().map(|l| l.name.as_str()));
            Problem::new(key("path"), format!("there is no link \"{name}\"{hint}"))
        })
    };
    let path = spec.path.as_ref().map(|p| p.iter().map(link).collect::<Result<Vec<_>, _>>()).transpose()?;
    if path.as_ref().is_some_and(Vec::is_empty) {
        let message =
            "empty: name the links from the new gateway on, or leave it out for the links of the old leg";
        return Err(Problem::new(key("path"), message));
    }
    let backhaul = match spec.backhaul {
        None => BACKHAUL,
        Some(RateSpec::Bits(rate)) if rate.bits_per_sec() > 0 => rate,
        Some(_) => {
            let message = "neither unlimited nor in packets: write a rate such as \"100 Mbit/s\"";
            return Err(Problem::new(key("backhaul"), message));
        }
    };
    let signalling = spec.signalling.map_or(SIGNALLING, |t| t.0);
    Ok((from, GatewayHandover { to, path, signalling, backhaul }))
}

/// The values of a table by their paths, whether keys have dots or tables are nested. A table with `kind`, or with a trace, is
/// one value if it belongs to a key of a link.
fn flatten(prefix: &str, table: &Table, out: &mut Vec<(String, Value)>) {
    for (key, value) in table {
        let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        // `links` and `links.NAME` are never such a value, even if a link has the name `kind`.
        let of_link = path.split('.').count() > 2;
        match value {
            Value::Table(inner) if !(of_link && (inner.contains_key("kind") || is_trace(inner))) => {
                flatten(&path, inner, out)
            }
            _ => out.push((path, value.clone())),
        }
    }
}

fn may_change(path: &str) -> bool {
    let mut keys = path.split('.');
    if keys.next() != Some("links") || keys.next().is_none() {
        return false;
    }
    let mut next = keys.next();
    if next == Some("reverse") {
        next = keys.next();
    }
    match next {
        Some("rate" | "delay" | "error" | "up") => true,
        Some("queue") => keys.next() == Some("limit"),
        _ => false,
    }
}

fn differences(old: &Direction, new: &Direction, found: &mut impl FnMut(Change)) {
    if old.rate != new.rate {
        found(Change::Rate(new.rate.clone()));
    }
    if old.delay != new.delay {
        found(Change::Delay(new.delay.clone()));
    }
    if old.error != new.error {
        found(Change::Error(new.error.clone()));
    }
    if old.queue.limit != new.queue.limit {
        found(Change::Limit(new.queue.limit));
    }
    if old.up != new.up {
        found(Change::Up(new.up));
    }
}

//! Events: changes during a run.

use crate::error::{Problem, did_you_mean};
use crate::model::{EventSpec, is_trace};
use crate::resolved::{Direction, Event, Link, Misfortune, Mishap, Resolved};
use skyhaul_path::Change;
use toml::{Table, Value};

/// The keys that may change, for messages.
const KNOWN: &str =
    "links.NAME.rate, .delay, .error, .queue.limit and .up, and the same of links.NAME.reverse";

/// The changes of all events, in order of time. `change` resolves the scenario with the values of an event and of all
/// events before it.
pub(crate) fn resolve(
    events: &[EventSpec],
    start: &Resolved,
    mut change: impl FnMut(&str, &[(String, Value)]) -> Result<Vec<Link>, Problem>,
) -> Result<Vec<Event>, Problem> {
    let mut order: Vec<usize> = (0..events.len()).collect();
    // A stable sort: at the same time the order of the file holds.
    order.sort_by_key(|&i| events[i].at.0);
    let mut before = start.links.clone();
    let mut changes = Vec::new();
    for index in order {
        let event = &events[index];
        if (event.crash.is_some() || event.reroute.is_some()) && event.set.is_empty() {
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
            for (forward, old, new) in
                [(true, &old.forward, &mut new.forward), (false, &old.reverse, &mut new.reverse)]
            {
                // A buffer in BDP was bought for the path as it was; another rate does not change it.
                let named = leaves.iter().any(|(path, _)| path.contains(".queue"));
                if !named {
                    new.queue = old.queue;
                }
                let replaced = new.fec.as_ref().is_some_and(|fec| fec.code().residual.is_some());
                if old.error != new.error && replaced {
                    let message = "the code's residual losses take the place of the link's errors, which therefore \
                                   cannot change: leave out `residual`";
                    return refuse(format!("{key}.set"), message.to_owned());
                }
                if old.rate != new.rate && old.fade.as_ref().is_some_and(|f| f.sets_rate()) {
                    let link = &start.links[i].name;
                    let message = format!("the carrier of links.{link}.fade sets the rate: leave this out");
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
pub(crate) fn mishaps(events: &[EventSpec], start: &Resolved) -> Result<Vec<Mishap>, Problem> {
    let mut found = Vec::new();
    for (index, event) in events.iter().enumerate() {
        let named =
            [("crash", &event.crash, Misfortune::Crash), ("reroute", &event.reroute, Misfortune::Reroute)];
        for (key, name, what) in named {
            let Some(name) = name else { continue };
            let Some(gateway) = start.gateways.iter().position(|g| g.name == *name) else {
                let names: Vec<&str> = start.gateways.iter().map(|g| g.name.as_str()).collect();
                let hint = did_you_mean(name, names.iter().copied());
                let known = if names.is_empty() { "none".into() } else { names.join(", ") };
                let message = format!(
                    "there is no gateway \"{name}\"{hint} (known: {known}): write one of these names"
                );
                return Err(Problem::new(format!("event[{index}].{key}"), message));
            };
            found.push(Mishap { at: event.at.0, gateway, what });
        }
    }
    found.sort_by_key(|m| m.at);
    Ok(found)
}

/// The values of a table by their paths, dots and nested tables alike; a table with `kind`
/// or with a trace is a value.
fn flatten(prefix: &str, table: &Table, out: &mut Vec<(String, Value)>) {
    for (key, value) in table {
        let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            Value::Table(inner) if !inner.contains_key("kind") && !is_trace(inner) => {
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

//! Rules of other programs for forwarded connections. Split connections evade them: the connection of a host ends at this machine, so that
//! its packets pass hook input instead of hook forward, and another connection begins here.

use super::{Finding, doubt};
use crate::absent::with;
use crate::config::{Config, Network};
use crate::nft;
use crate::rules::{self, NEAR_MARK};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Maximum number of rules that are listed.
const MOST: usize = 20;

/// A finding for each rule that split connections evade, with what to write instead; none if `nft` cannot be asked.
#[must_use]
pub fn evaded(config: &Config) -> Vec<Finding> {
    if config.intercepted().is_none() {
        return Vec::new();
    }
    let text = Command::new("nft").args(["-a", "-nn", "list", "ruleset"]).output();
    let (Some(listed), Ok(text)) = (nft::ruleset(), text) else { return Vec::new() };
    evaded_of(config, &listed, &texts(&String::from_utf8_lossy(&text.stdout)))
}

/// What identifies a rule: the family and the name of its table, and its handle.
type Key = (String, String, u64);

/// The text of each rule in what `nft -a list ruleset` prints.
fn texts(listing: &str) -> BTreeMap<Key, String> {
    let mut table = (String::new(), String::new());
    let mut all = BTreeMap::new();
    for line in listing.lines().map(str::trim) {
        let Some((text, handle)) = line.rsplit_once(" # handle ") else { continue };
        let mut words = text.split(' ');
        if let (Some("table"), Some(family), Some(name)) = (words.next(), words.next(), words.next()) {
            table = (family.into(), name.into());
        } else if let Ok(handle) = handle.parse() {
            all.insert((table.0.clone(), table.1.clone(), handle), text.to_owned());
        }
    }
    all
}

fn word<'a>(of: &'a Value, key: &str) -> &'a str {
    of[key].as_str().unwrap_or_default()
}
fn key(rule: &Value) -> Key {
    (word(rule, "family").into(), word(rule, "table").into(), rule["handle"].as_u64().unwrap_or_default())
}

/// A direction of connections: the interface at which their SYNs arrive, and the interface through which their SYNs would leave.
pub(super) type Direction<'a> = (&'a str, &'a str);

fn evaded_of(config: &Config, listed: &Value, texts: &BTreeMap<Key, String>) -> Vec<Finding> {
    let objects = listed["nftables"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of_gateway = |o: &Value| word(o, "table").starts_with(rules::PREFIX);
    let (lans, link) = (config.host_interfaces(), config.satellite.interface.as_str());
    let all = without_maps(objects);
    let mut found = Vec::new();
    // A rule that connections of both directions may meet is listed once.
    let mut known = BTreeSet::new();
    let chains = objects.iter().map(|o| &o["chain"]);
    let forward =
        chains.filter(|c| word(c, "hook") == "forward" && word(c, "type") == "filter" && !of_gateway(c));
    for chain in forward.filter(|c| ["ip", "ip6", "inet"].contains(&word(c, "family"))) {
        let ways = lans.iter().flat_map(|lan| [(lan.as_str(), link), (link, lan.as_str())]);
        let met: Vec<_> = ways.map(|way| (way, reached(&all, chain, way))).collect();
        for ((from, _), rules) in &met {
            for rule in rules.iter().filter(|r| ends(r, &["drop", "reject"])) {
                if known.insert(std::ptr::from_ref::<Value>(rule))
                    && let Some(text) = texts.get(&key(rule))
                {
                    found.extend(finding(config, rule, text, from));
                }
            }
        }
        let accepts = |rules: &[&Value]| rules.iter().any(|r| ends(r, &["accept"]) && is_general(r));
        let closed = met.iter().filter(|((_, to), rules)| *to == link && !accepts(rules));
        let closed: Vec<_> = closed.map(|((from, _), _)| *from).collect();
        if word(chain, "policy") == "drop" && !closed.is_empty() {
            let hosts = closed.join(", ");
            found.push(doubt(
                format!("chain {} {} {}", word(chain, "family"), word(chain, "table"), word(chain, "name")),
                format!(
                    "drops what its rules do not accept, but connections from {hosts} to {link} are split whatever it says: write in \
                     [split] and networks = of both sides what it accepts"
                ),
            ));
        }
    }
    let more = found.len().saturating_sub(MOST);
    found.truncate(MOST);
    if more > 0 {
        found.push(doubt("rules for forwarded packets", format!("{more} more are evaded in the same way")));
    }
    found
}

/// The rules of a ruleset. A rule with a verdict map (`vmap`) is replaced by one rule for all keys with the same verdict, or, if its keys
/// are concatenations of fields, by one for each key.
fn without_maps(objects: &[Value]) -> Vec<Value> {
    let mut all = Vec::new();
    for rule in objects.iter().filter_map(|o| o.get("rule")) {
        let Some(map) = expressions(rule).find_map(|e| e.get("vmap")) else {
            all.push(rule.clone());
            continue;
        };
        let mut groups: Vec<(Vec<&Value>, &Value)> = Vec::new();
        for element in elements(objects, rule, &map["data"]) {
            let (key, verdict) = (element[0].pointer("/elem/val").unwrap_or(&element[0]), &element[1]);
            match groups.iter_mut().find(|(_, v)| *v == verdict && map["key"].get("concat").is_none()) {
                Some((keys, _)) => keys.push(key),
                None => groups.push((vec![key], verdict)),
            }
        }
        for (keys, verdict) in groups {
            let others = expressions(rule).filter(|e| e.get("vmap").is_none()).cloned();
            let parts = others.chain(conditions(&map["key"], &keys)).chain([verdict.clone()]);
            all.push(with(rule.clone(), "expr", parts.collect::<Vec<_>>()));
        }
    }
    all
}

/// The elements of a verdict map, pairs of a key and a verdict. `data` is the map itself, or `@` and its name.
fn elements<'a>(objects: &'a [Value], rule: &Value, data: &'a Value) -> &'a [Value] {
    let named = data.as_str().and_then(|text| {
        let (name, same) = (text.strip_prefix('@')?, |m: &Value, key| m[key] == rule[key]);
        let mut maps = objects.iter().map(|o| &o["map"]);
        maps.find(|m| word(m, "name") == name && same(m, "family") && same(m, "table"))
    });
    let all = named.map_or(&data["set"], |map| &map["elem"]);
    all.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The conditions that a field, or a concatenation of fields, has one of these values. The value `*` stands for all others: no condition.
fn conditions(field: &Value, values: &[&Value]) -> Vec<Value> {
    let is = |field: &Value, value: &Value| json!({ "match": { "op": "==", "left": field, "right": value } });
    match (field["concat"].as_array(), values) {
        (_, values) if values.iter().any(|v| **v == "*") => Vec::new(),
        (Some(fields), [value]) => {
            let values = value["concat"].as_array().into_iter().flatten();
            fields.iter().zip(values).map(|(field, value)| is(field, value)).collect()
        }
        _ => vec![is(field, &json!({ "set": values }))],
    }
}

/// The rules that the SYN of a connection may meet: rules of a chain, and of the chains to which these jump.
fn reached<'a>(all: &'a [Value], chain: &'a Value, (from, to): Direction<'_>) -> Vec<&'a Value> {
    let syns = Packets { from: Some(from), to, are_tcp: true };
    let mut names = vec![word(chain, "name")];
    let mut visited = BTreeSet::new();
    let mut reached = Vec::new();
    // The limit bounds the time that a ruleset of any size takes.
    while let Some(name) = names.pop().filter(|_| reached.len() < 10_000) {
        if !visited.insert(name) {
            continue;
        }
        let same = |r: &Value, key| r[key] == chain[key];
        let of = |r: &&Value| same(r, "family") && same(r, "table") && word(r, "chain") == name;
        for rule in all.iter().filter(of).filter(|r| applies(r, syns)) {
            reached.push(rule);
            let targets = expressions(rule).filter_map(|e| e.get("jump").or_else(|| e.get("goto")));
            names.extend(targets.map(|t| word(t, "target")));
        }
    }
    reached
}

pub(super) fn expressions(rule: &Value) -> impl Iterator<Item = &Value> {
    rule["expr"].as_array().into_iter().flatten()
}
/// Whether a rule ends with one of these verdicts.
fn ends(rule: &Value, verdicts: &[&str]) -> bool {
    expressions(rule).any(|e| verdicts.iter().any(|v| e.get(v).is_some()))
}

/// The values to which a condition compares: one, or the elements of a set.
fn values(right: &Value) -> Vec<&Value> {
    right["set"]
        .as_array()
        .or_else(|| right.as_array())
        .map_or_else(|| vec![right], |set| set.iter().collect())
}

/// Packets that may meet rules.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packets<'a> {
    /// The interface at which they arrive; `None`: any.
    pub(super) from: Option<&'a str>,
    /// The interface by which they leave.
    pub(super) to: &'a str,
    /// All of them are of TCP.
    pub(super) are_tcp: bool,
}

/// Whether the first of these packets may meet all conditions of a rule.
pub(super) fn applies(rule: &Value, packets: Packets<'_>) -> bool {
    expressions(rule).filter_map(|e| e.get("match")).all(|m| {
        let (left, values) = (&m["left"], values(&m["right"]));
        // The elements of a set with a name are not looked up: the SYN may meet the condition.
        let named = values.iter().any(|v| v.as_str().is_some_and(|text| text.starts_with('@')));
        let meets = |equal: bool| named || equal != (word(m, "op") == "!=");
        let is = |name: &str| {
            values.iter().filter_map(|v| v.as_str()).any(|pattern| match pattern.strip_suffix('*') {
                Some(beginning) => name.starts_with(beginning),
                None => name == pattern,
            })
        };
        match (word(&left["meta"], "key"), word(&left["payload"], "protocol"), word(&left["ct"], "key")) {
            ("iifname" | "iif", ..) => packets.from.is_none_or(|from| meets(is(from))),
            ("oifname" | "oif", ..) => meets(is(packets.to)),
            ("l4proto", ..) => !packets.are_tcp || meets(values.iter().any(|v| **v == "tcp" || **v == 6)),
            (_, "udp" | "udplite" | "icmp" | "icmpv6" | "sctp" | "dccp", _) => !packets.are_tcp,
            (.., "state") => meets(is("new")),
            _ => true,
        }
    })
}

/// Whether a rule has conditions on nothing but interfaces and the state of the connection.
fn is_general(rule: &Value) -> bool {
    expressions(rule).filter_map(|e| e.get("match")).all(|m| {
        let left = &m["left"];
        ["iifname", "iif", "oifname", "oif"].contains(&word(&left["meta"], "key"))
            || word(&left["ct"], "key") == "state"
    })
}

/// The values of which a rule requires one in a field; `None` if the rule has no condition (`==`) on that field.
fn asked<'a>(rule: &'a Value, protocols: &[&str], field: &str) -> Option<Vec<&'a Value>> {
    let matches = expressions(rule).filter_map(|e| e.get("match")).filter(|m| word(m, "op") == "==");
    let mut of = matches.filter(|m| {
        let Some(payload) = m.get("left").and_then(|left| left.get("payload")) else { return false };
        protocols.contains(&word(payload, "protocol")) && word(payload, "field") == field
    });
    of.next().map(|m| values(&m["right"]))
}

/// What to write in place of a rule for connections that arrive at the interface `from`; `None`: the file already leaves the connections
/// of the rule unsplit.
fn finding(config: &Config, rule: &Value, text: &str, from: &str) -> Option<Finding> {
    let split = &config.split;
    let ports = asked(rule, &["tcp", "th"], "dport").and_then(|ports| {
        ports.into_iter().map(|p| p.as_u64().and_then(|p| u16::try_from(p).ok())).collect::<Option<Vec<_>>>()
    });
    let unsplit =
        |p: &u16| split.exclude_ports.contains(p) || (!split.ports.is_empty() && !split.ports.contains(p));
    if ports.as_ref().is_some_and(|ports| ports.iter().all(unsplit)) {
        return None;
    }
    let write = if let Some(ports) = ports {
        let all: BTreeSet<_> = split.exclude_ports.iter().copied().chain(ports).collect();
        let all: Vec<_> = all.iter().map(u16::to_string).collect();
        format!("write exclude-ports = [{}] in [split]", all.join(", "))
    } else if let Some(networks) = networks(rule) {
        if networks.iter().all(|n| split.exclude.iter().any(|e| e.covers(n))) {
            return None;
        }
        // A configuration refuses a network within another one.
        let all: BTreeSet<_> = split.exclude.iter().copied().chain(networks).collect();
        let outer = all.iter().filter(|&n| !all.iter().any(|o| o != n && o.covers(n)));
        let all: Vec<_> = outer.map(|n| format!("\"{n}\"")).collect();
        format!("write exclude = [{}] in [split]", all.join(", "))
    } else {
        String::new()
    };
    // At hook input, packets of hosts have the gateway's mark. Those from the link are forwarded to the gateway's interface.
    let near = NEAR_MARK;
    let from_hosts = config.host_interfaces().iter().any(|name| name == from);
    let (hook, instead) = if from_hosts {
        ("input", format!("meta mark {near:#x}"))
    } else {
        ("forward", format!("oifname \"{}\"", config.interface()))
    };
    let other = if text.contains(" vmap ") || text.contains(" . ") {
        // A map has verdicts of other keys, too, and a concatenation has other fields: the text cannot be rewritten here.
        format!("such a rule at hook {hook}, with {instead}")
    } else if let Some(out) = outgoing(text) {
        format!("a rule at hook {hook}: {}", text.replacen(out, &instead, 1))
    } else {
        format!("a rule at hook {hook}: {instead} {text}")
    };
    let or = if write.is_empty() { "write" } else { ", or" };
    Some(doubt(
        format!("rule of {} {} {}", word(rule, "family"), word(rule, "table"), word(rule, "chain")),
        format!("connections that are split evade it ({text}): {write}{or} {other}"),
    ))
}

/// The condition of a rule on the interface through which packets leave, such as `oifname { "sat0", "sat1" }`.
fn outgoing(text: &str) -> Option<&str> {
    let from = text.find("oifname ").or_else(|| text.find("oif "))?;
    let condition = text.get(from..)?;
    let (_, compared) = condition.split_once(' ')?;
    // A lookup in the routing table (`fib … oif missing`) compares with no name.
    let operand = Some(compared.trim_start_matches("!= ")).filter(|o| o.starts_with(['"', '{', '@']))?;
    let length = if operand.starts_with('{') { operand.find('}')? + 1 } else { operand.find(' ')? };
    condition.get(..condition.len() - operand.len() + length)
}

/// The networks that a rule names; `None` if it names none, or something else as well.
fn networks(rule: &Value) -> Option<Vec<Network>> {
    let network = |v: &Value| match (v.as_str(), &v["prefix"]) {
        (Some(address), _) => address.parse().ok(),
        (None, prefix) => format!("{}/{}", prefix["addr"].as_str()?, prefix["len"].as_u64()?).parse().ok(),
    };
    let asked = ["daddr", "saddr"].into_iter().find_map(|field| asked(rule, &["ip", "ip6"], field))?;
    asked.into_iter().map(network).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn config(more: &str) -> Config {
        let text = format!("[terrestrial]\ninterface = \"lan0\"\n[satellite]\ninterface = \"sat0\"\n{more}");
        Config::parse("g.toml", &text).unwrap()
    }
    fn meta(key: &str, right: Value) -> Value {
        json!({ "match": { "op": "==", "left": { "meta": { "key": key } }, "right": right } })
    }
    fn payload(protocol: &str, field: &str, right: Value) -> Value {
        json!({ "match": { "op": "==", "left": { "payload": { "protocol": protocol, "field": field } }, "right": right } })
    }
    fn chain(name: &str, policy: &str) -> Value {
        json!({ "chain": { "family": "inet", "table": "filter", "name": name, "type": "filter", "hook": "forward", "policy": policy } })
    }
    fn rule(chain: &str, handle: u64, expr: &[Value]) -> Value {
        json!({ "rule": { "family": "inet", "table": "filter", "chain": chain, "handle": handle, "expr": expr } })
    }
    fn says(config: &Config, objects: Vec<Value>, texts: &[(u64, &str)]) -> Vec<String> {
        let texts =
            texts.iter().map(|(h, t)| (("inet".into(), "filter".into(), *h), (*t).to_owned())).collect();
        let found = evaded_of(config, &json!({ "nftables": objects }), &texts);
        found.into_iter().map(|f| f.message).collect()
    }

    #[test]
    fn protocols_are_compared_either_way() {
        let rule = |op: &str, right: &str| {
            let left = json!({ "meta": { "key": "l4proto" } });
            json!({ "expr": [{ "match": { "op": op, "left": left, "right": right } }] })
        };
        let syns = Packets { from: Some("lan0"), to: "sat0", are_tcp: true };
        for (op, protocol, meets) in
            [("==", "tcp", true), ("==", "udp", false), ("!=", "tcp", false), ("!=", "udp", true)]
        {
            assert_eq!(applies(&rule(op, protocol), syns), meets, "{op} {protocol}");
            assert!(applies(&rule(op, protocol), Packets { are_tcp: false, ..syns }), "{op} {protocol}");
        }
    }

    #[test]
    fn rules_that_split_connections_evade_are_listed_with_what_to_write() {
        let reject = || json!({ "reject": { "type": "tcp reset" } });
        let web = || {
            vec![
                chain("forward", "accept"),
                rule("forward", 9, &[json!({ "jump": { "target": "sub" } })]),
                rule(
                    "sub",
                    1,
                    &[
                        meta("iifname", json!("lan0")),
                        meta("oifname", json!("sat0")),
                        payload("tcp", "dport", json!({ "set": [443, 8443] })),
                        reject(),
                    ],
                ),
            ]
        };
        let text = [(1, "iifname \"lan0\" oifname \"sat0\" tcp dport { 443, 8443 } reject with tcp reset")];
        let listed = says(&config(""), web(), &text);
        assert_eq!(listed.len(), 1, "{listed:?}");
        for part in [
            "write exclude-ports = [179, 443, 8443] in [split]",
            "at hook input: iifname \"lan0\" meta mark 0x53480001 tcp dport { 443, 8443 } reject with tcp reset",
        ] {
            assert!(listed[0].contains(part), "{}", listed[0]);
        }
        let none: Vec<String> = Vec::new();
        for forwards in ["exclude-ports = [443, 8443]", "ports = [80]"] {
            assert_eq!(says(&config(&format!("[split]\n{forwards}\n")), web(), &text), none, "{forwards}");
        }

        let from_link =
            [meta("iifname", json!("sat*")), payload("ip", "saddr", json!("@bad")), json!({ "drop": null })];
        let listed = says(
            &config(""),
            vec![chain("forward", "accept"), rule("forward", 1, &from_link)],
            &[(1, "iifname \"sat*\" ip saddr @bad drop")],
        );
        assert!(
            listed[0]
                .contains("at hook forward: oifname \"sky-gateway\" iifname \"sat*\" ip saddr @bad drop"),
            "{listed:?}"
        );
    }

    #[test]
    fn a_condition_on_the_outgoing_interface_is_replaced_as_a_whole() {
        for (text, expected) in [
            ("oifname \"sat0\" drop", Some("oifname \"sat0\"")),
            ("iifname \"lan0\" oifname { \"sat0\", \"sat1\" } drop", Some("oifname { \"sat0\", \"sat1\" }")),
            ("oif != \"eth0\" tcp dport != 22 drop", Some("oif != \"eth0\"")),
            ("iifname \"lan0\" drop", None),
            ("fib saddr oif missing drop", None),
        ] {
            assert_eq!(outgoing(text), expected, "{text}");
        }
        let to_link = [meta("oifname", json!({ "set": ["sat0", "sat1"] })), json!({ "drop": null })];
        let objects = vec![chain("forward", "accept"), rule("forward", 1, &to_link)];
        let listed = says(&config(""), objects, &[(1, "oifname { \"sat0\", \"sat1\" } drop")]);
        assert!(listed[0].ends_with("write a rule at hook input: meta mark 0x53480001 drop"), "{listed:?}");
    }

    #[test]
    fn networks_of_rules_join_those_that_the_file_excludes() {
        let objects = || {
            let one = payload("ip", "daddr", json!("192.0.2.9"));
            let net = payload("ip", "daddr", json!({ "prefix": { "addr": "198.51.100.0", "len": 24 } }));
            let drop = || json!({ "drop": null });
            vec![
                chain("forward", "accept"),
                rule("forward", 1, &[one, drop()]),
                rule("forward", 2, &[net, drop()]),
            ]
        };
        let text = [(1, "ip daddr 192.0.2.9 drop"), (2, "ip daddr 198.51.100.0/24 drop")];
        // An address is the network of that address alone.
        let listed = says(&config("[split]\nexclude = [\"192.0.2.9\"]\n"), objects(), &text);
        assert_eq!(listed.len(), 1, "{listed:?}");
        let write = "write exclude = [\"192.0.2.9/32\", \"198.51.100.0/24\"] in [split]";
        assert!(listed[0].contains(write), "{listed:?}");
        for all in ["192.0.2.9\", \"198.51.100.0/24", "192.0.2.0/24\", \"198.51.0.0/16"] {
            let config = config(&format!("[split]\nexclude = [\"{all}\"]\n"));
            assert_eq!(says(&config, objects(), &text), [""; 0], "{all}");
        }
    }

    #[test]
    fn what_split_connections_do_not_evade_is_not_listed() {
        let drop = || json!({ "drop": null });
        let state =
            json!({ "match": { "op": "in", "left": { "ct": { "key": "state" } }, "right": "invalid" } });
        let rules = [
            vec![state, drop()],
            vec![meta("iifname", json!("docker0")), drop()],
            vec![meta("oifname", json!({ "set": ["eth1", "eth2"] })), drop()],
            vec![meta("l4proto", json!("udp")), drop()],
            vec![payload("udp", "dport", json!(53)), drop()],
            vec![meta("iifname", json!("lan0")), json!({ "accept": null })],
        ];
        let mut objects = vec![chain("forward", "drop")];
        objects.extend(rules.iter().enumerate().map(|(n, expr)| rule("forward", n as u64, expr)));
        let texts: Vec<_> = (0..rules.len() as u64).map(|n| (n, "text")).collect();
        assert_eq!(says(&config(""), objects.clone(), &texts), [""; 0]);
        // Without the last rule, the chain drops all connections by default.
        objects.pop();
        let listed = says(&config(""), objects, &texts);
        assert!(
            listed.len() == 1 && listed[0].starts_with("drops what its rules do not accept"),
            "{listed:?}"
        );
    }

    #[test]
    fn verdict_maps_lead_to_rules_and_drop() {
        let vmap = |key: Value, data: Value| json!({ "vmap": { "key": key, "data": data } });
        let (iif, oif) = (json!({ "meta": { "key": "iifname" } }), json!({ "meta": { "key": "oifname" } }));
        let port = json!({ "payload": { "protocol": "tcp", "field": "dport" } });
        let jump = |to: &str| json!({ "jump": { "target": to } });
        let drop = || json!({ "drop": null });
        let of_interface = json!({ "set": [["eth9", jump("other")], ["lan0", jump("sub")]] });
        let ways = json!({ "set": [[{ "concat": ["lan0", "sat0"] }, jump("named")], [{ "concat": ["eth9", "x"] }, drop()]] });
        let elem = json!([[25, drop()], [{ "elem": { "val": 26, "timeout": 9 } }, drop()], [80, { "accept": null }]]);
        let objects = vec![
            json!({ "map": { "family": "inet", "table": "filter", "name": "verdicts", "map": "verdict", "elem": elem } }),
            chain("forward", "accept"),
            rule("forward", 1, &[vmap(iif.clone(), of_interface)]),
            rule("forward", 2, &[vmap(json!({ "concat": [iif, oif] }), ways)]),
            rule("sub", 3, &[payload("tcp", "dport", json!(443)), drop()]),
            rule("named", 4, &[vmap(port, json!("@verdicts"))]),
            rule("other", 5, &[drop()]),
        ];
        let texts: Vec<_> =
            (1..=5).map(|n| (n, if n == 4 { "tcp dport vmap @verdicts" } else { "text" })).collect();
        let listed = says(&config(""), objects, &texts);
        assert_eq!(
            listed,
            [
                "connections that are split evade it (tcp dport vmap @verdicts): write exclude-ports = [25, 26, 179] in [split], or such \
                 a rule at hook input, with meta mark 0x53480001",
                "connections that are split evade it (text): write exclude-ports = [179, 443] in [split], or a rule at hook input: meta \
                 mark 0x53480001 text",
            ]
        );
    }

    #[test]
    fn sets_with_a_name_may_have_the_interfaces() {
        for op in ["==", "!="] {
            let left = json!({ "meta": { "key": "iifname" } });
            let among = json!({ "match": { "op": op, "left": left, "right": "@lans" } });
            let objects =
                vec![chain("forward", "accept"), rule("forward", 1, &[among, json!({ "drop": null })])];
            assert_eq!(says(&config(""), objects, &[(1, "text")]).len(), 1, "{op}");
        }
    }

    #[test]
    fn rules_behind_a_jump_of_other_interfaces_are_not_listed() {
        let objects = vec![
            chain("forward", "accept"),
            rule("forward", 1, &[meta("iifname", json!("eth9")), json!({ "jump": { "target": "sub" } })]),
            rule("sub", 2, &[json!({ "drop": null })]),
        ];
        assert_eq!(says(&config(""), objects, &[(1, "text"), (2, "text")]), [""; 0]);
    }

    #[test]
    fn rules_are_known_by_their_handles() {
        let text = "table inet filter { # handle 1\n\tchain forward { # handle 2\n\t\ttype filter hook forward priority 0; policy \
                    accept;\n\t\tct state 0x1 drop # handle 8\n\t}\n}\ntable ip nat { # handle 3\n\tmasquerade # handle 8\n}\n";
        let texts = texts(text);
        let of = |family: &str, table: &str| texts.get(&(family.into(), table.into(), 8)).map(String::as_str);
        assert_eq!([of("inet", "filter"), of("ip", "nat")], [Some("ct state 0x1 drop"), Some("masquerade")]);
    }
}

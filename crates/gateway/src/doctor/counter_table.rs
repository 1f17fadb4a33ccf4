//! Counts of SYNs and their answers where they arrive, in an nftables table that is removed afterwards, and what the counts mean.

use super::{Finding, doubt, finding};
use crate::config::Config;
use crate::error::GatewayError;
use crate::nft;
use crate::rules::{self, names};
use serde_json::Value;
use skyhaul_base::Duration;
use std::collections::BTreeMap;
use std::fmt::Write;

const SYN: &str = "tcp flags & (fin|syn|rst|ack) == syn";
const ANSWER: &str = "tcp flags & (fin|syn|rst|ack) == syn|ack";

/// A table of nftables with counters. It is removed when this is dropped.
#[derive(Debug)]
pub(super) struct CounterTable {
    table: String,
}

impl CounterTable {
    /// Installs the table. `rules` are pairs of a chain and a rule: chain `arrive` has every packet that arrives, chain `leave` every packet
    /// that leaves. `sets` are the names of sets that count packets by interface.
    pub(super) fn begin(
        counters: &[&str],
        sets: &[&str],
        rules: &[(&str, String)],
    ) -> Result<Self, GatewayError> {
        let table = format!("skyhaul_look_{}", std::process::id());
        let mut text = format!("create table inet {table}\n");
        for name in counters {
            let _ = writeln!(text, "add counter inet {table} {name}");
        }
        for name in sets {
            let _ = writeln!(
                text,
                "add set inet {table} {name} {{ type ifname; flags dynamic; size 64; counter; }}"
            );
        }
        let _ = writeln!(
            text,
            "add chain inet {table} arrive {{ type filter hook prerouting priority -310; }}\n\
             add chain inet {table} leave {{ type filter hook postrouting priority 310; }}"
        );
        for (chain, rule) in rules {
            let _ = writeln!(text, "add rule inet {table} {chain} {rule}");
        }
        nft::nft(&text)?;
        Ok(Self { table })
    }
    /// The counts: by counter, and by set and interface (`SET INTERFACE`).
    pub(super) fn counts(&self) -> BTreeMap<String, u64> {
        counts(&nft::json(&["list", "table", "inet", &self.table]).unwrap_or_default())
    }
}

impl Drop for CounterTable {
    fn drop(&mut self) {
        let _ = nft::nft(&format!("delete table inet {}\n", self.table));
    }
}

fn counts(listed: &Value) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    let text = |v: &Value, at: &str| v.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
    let number = |v: &Value, at: &str| v.pointer(at).and_then(Value::as_u64).unwrap_or(0);
    let items = |v: &Value, at: &str| v.pointer(at).and_then(Value::as_array).cloned().unwrap_or_default();
    for object in items(listed, "/nftables") {
        if let Some(counter) = object.get("counter") {
            all.insert(text(counter, "/name"), number(counter, "/packets"));
        }
        if let Some(set) = object.get("set") {
            for e in items(set, "/elem") {
                let key = format!("{} {}", text(set, "/name"), text(&e, "/elem/val"));
                all.insert(key, number(&e, "/elem/counter/packets"));
            }
        }
    }
    all
}

/// The interfaces of a set with their counts, such as "eth2 (3)"; empty if there are none.
pub(super) fn interfaces(counts: &BTreeMap<String, u64>, set: &str) -> String {
    let of = counts.iter().filter_map(|(k, n)| Some((k.strip_prefix(set)?.strip_prefix(' ')?, n)));
    of.map(|(name, n)| format!("{name} ({n})")).collect::<Vec<_>>().join(", ")
}

/// Counts, during this time, the SYNs that arrive and the answers of servers behind the link, and explains the counts.
#[must_use]
pub fn watch(config: &Config, time: Duration) -> Vec<Finding> {
    let Some(terrestrial) = &config.terrestrial else {
        return vec![finding("SYNs", true, "connections to forwarded ports need none: nothing was counted")];
    };
    let (lans, sat) = (names(&terrestrial.interfaces), names(&[&config.satellite.interface]));
    let tun = config.interface();
    let ours: Vec<&str> = config.interfaces().chain([&tun]).map(String::as_str).chain(["lo"]).collect();
    let ours = names(&ours);
    let mut rules = vec![
        ("arrive", format!("iifname {lans} {SYN} counter name at_hosts")),
        ("arrive", format!("iifname {sat} {SYN} counter name at_link")),
        ("arrive", format!("iifname {lans} {SYN} fib daddr type local counter name hosts_local")),
        ("arrive", format!("iifname {sat} {SYN} fib daddr type local counter name link_local")),
        ("arrive", format!("iifname != {ours} {SYN} update @other {{ iifname }}")),
        ("arrive", format!("iifname {sat} {ANSWER} counter name answers")),
        ("arrive", format!("iifname != {ours} {ANSWER} update @astray {{ iifname }}")),
    ];
    for v6 in [false, true] {
        let (hosts, behind) = (&terrestrial.networks, &config.satellite.networks);
        for (interface, from, to, counter) in
            [(&lans, hosts, behind, "hosts_meant"), (&sat, behind, hosts, "link_meant")]
        {
            if let Some(c) = rules::conditions(config, from, to, v6) {
                rules.push((
                    "arrive",
                    format!("iifname {interface} {SYN} fib daddr type unicast {c} counter name {counter}"),
                ));
            }
        }
    }
    let counters =
        ["at_hosts", "at_link", "hosts_local", "link_local", "answers", "hosts_meant", "link_meant"];
    let table = match CounterTable::begin(&counters, &["other", "astray"], &rules) {
        Ok(table) => table,
        Err(e) => return vec![finding("SYNs", false, e.to_string())],
    };
    std::thread::sleep(std::time::Duration::from_nanos(time.as_nanos()));
    let (lan, sat) = (terrestrial.interfaces.join(", "), &config.satellite.interface);
    explain(config, &lan, sat, &table.counts())
}

fn explain(config: &Config, lan: &str, sat: &str, counts: &BTreeMap<String, u64>) -> Vec<Finding> {
    let n = |name: &str| counts.get(name).copied().unwrap_or(0);
    let other = interfaces(counts, "other");
    let mut all = Vec::new();
    for (what, here, came, meant, local) in [
        (format!("SYNs at {lan}"), lan, n("at_hosts"), n("hosts_meant"), n("hosts_local")),
        (format!("SYNs at {sat}"), sat, n("at_link"), n("link_meant"), n("link_local")),
    ] {
        let some_meant = n("hosts_meant") + n("link_meant") > 0;
        all.push(if meant > 0 {
            finding(what, true, format!("{came} arrived, {meant} of them between the networks and ports of the file"))
        } else if came > 0 {
            finding(
                what,
                false,
                format!(
                    "{came} arrived, but none is between the networks and ports of the file ({local} were for this machine \
                     itself): look at networks and [split]"
                ),
            )
        } else if some_meant {
            doubt(what, "none arrived")
        } else if other.is_empty() {
            let message = if here == lan {
                "none arrived: the hosts send nothing through this machine. Give them one of its addresses as their router, and connect"
            } else {
                "none arrived, and none is expected unless hosts behind the link connect to this side"
            };
            if here == lan { finding(what, false, message) } else { doubt(what, message) }
        } else if here == lan {
            finding(what, false, format!("none arrived, but others did at {other}: are the interfaces of [terrestrial] the right ones?"))
        } else {
            doubt(what, format!("none arrived, but others did at {other}"))
        });
    }
    let astray = interfaces(counts, "astray");
    if !astray.is_empty() {
        all.push(doubt(
            "answers",
            format!(
                "{} arrived at {sat}, others at {astray}: where the way back does not lead over {sat} through this machine, \
                 connections cannot be split: exclude such networks in [split] of the gateway {}",
                n("answers"),
                config.name
            ),
        ));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn config() -> Config {
        Config::parse("g.toml", "[terrestrial]\ninterface = \"lan0\"\n[satellite]\ninterface = \"sat0\"\n")
            .unwrap()
    }
    fn findings(counted: &[(&str, u64)]) -> Vec<(bool, String)> {
        let counts = counted.iter().map(|(k, n)| ((*k).to_owned(), *n)).collect();
        explain(&config(), "lan0", "sat0", &counts).into_iter().map(|f| (f.is_ok(), f.message)).collect()
    }

    #[test]
    fn nfts_list_is_read() {
        let listed = json!({ "nftables": [
            { "counter": { "name": "at_hosts", "packets": 3, "bytes": 180 } },
            { "set": { "name": "other", "elem": [
                { "elem": { "val": "eth2", "counter": { "packets": 2, "bytes": 120 } } },
            ] } },
        ] });
        let counts = counts(&listed);
        assert_eq!(counts["at_hosts"], 3);
        assert_eq!(interfaces(&counts, "other"), "eth2 (2)");
        assert_eq!(interfaces(&counts, "astray"), "");
    }

    #[test]
    fn each_reason_for_missing_syns_is_named() {
        let nothing = findings(&[]);
        assert!(!nothing[0].0 && nothing[0].1.contains("as their router") && nothing[1].0, "{nothing:?}");
        let elsewhere = findings(&[("other eth2", 5)]);
        assert!(
            !elsewhere[0].0 && elsewhere[0].1.contains("at eth2 (5): are the interfaces of [terrestrial]"),
            "{elsewhere:?}"
        );
        let not_meant = findings(&[("at_hosts", 4), ("hosts_local", 3)]);
        assert!(
            !not_meant[0].0 && not_meant[0].1.contains("(3 were for this machine itself)"),
            "{not_meant:?}"
        );
        let at_link = findings(&[("at_link", 4), ("link_local", 2)]);
        assert!(at_link[1].1.contains("(2 were for this machine itself)"), "{at_link:?}");
        let good = findings(&[("at_hosts", 4), ("hosts_meant", 4), ("answers", 2)]);
        assert!(good.iter().all(|(ok, _)| *ok) && good.len() == 2, "{good:?}");
        let astray = findings(&[("at_hosts", 4), ("hosts_meant", 4), ("astray eth3", 2)]);
        assert!(astray[2].1.contains("0 arrived at sat0, others at eth3 (2)"), "{astray:?}");
    }
}

//! The kernel's table of connections (conntrack): whether it is full, and whether anybody but gateways needs it.

use crate::nft;
use crate::rules::PREFIX;
use serde_json::Value;
use std::fs;

/// The number of entries in the table of the calling thread's namespace, and the maximum.
const COUNT: &str = "/proc/sys/net/netfilter/nf_conntrack_count";
const MOST: &str = "/proc/sys/net/netfilter/nf_conntrack_max";

/// How many connections the table has, and how many it can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fill {
    pub(super) count: u64,
    pub(super) most: u64,
}

impl Fill {
    /// Says that a full table is why packets are dropped, and what to do.
    pub(super) fn remedy(self) -> String {
        let Self { count, most } = self;
        format!(
            "the kernel's table of connections is full ({count} of {most}): sysctl -w net.netfilter.nf_conntrack_max={}",
            most.saturating_mul(4)
        )
    }
}

fn number(file: &str) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// The fill of the table if the table is full. A table of which one per cent is free counts as full, since expired entries are removed
/// all the time.
pub(super) fn full() -> Option<Fill> {
    let fill = Fill { count: number(COUNT)?, most: number(MOST).filter(|most| *most > 0)? };
    (fill.count >= fill.most - fill.most / 100).then_some(fill)
}

/// Whether the kernel forwards IPv4 packets.
pub(super) fn forwards() -> bool {
    fs::read_to_string("/proc/sys/net/ipv4/ip_forward").is_ok_and(|v| v.trim() != "0")
}

/// Whether rules of other programs need the table; true where that cannot be found out.
pub(super) fn others_need_it() -> bool {
    // nft does not list the rules of iptables-legacy: where that has tables, its rules may track connections.
    let older = ["ip_tables_names", "ip6_tables_names"]
        .map(|name| fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default());
    if older.iter().any(|names| !names.trim().is_empty()) {
        return true;
    }
    nft::ruleset().is_none_or(|listed| need_it(&listed))
}

/// Whether a ruleset has chains that translate addresses, or expressions that read or set the state of connections. Tables of gateways do
/// not count.
fn need_it(listed: &Value) -> bool {
    let objects = listed["nftables"].as_array().into_iter().flatten();
    objects.flat_map(|o| o.as_object().into_iter().flatten()).any(|(kind, of)| {
        let table = of["table"].as_str().unwrap_or_default();
        if table.starts_with(PREFIX) {
            return false;
        }
        match kind.as_str() {
            "chain" => of["type"] == "nat",
            // A match or target of iptables ("xt"), which nft cannot decode, may read the state.
            "rule" => mentions(&of["expr"], &["ct", "notrack", "flow", "synproxy", "xt"]),
            "ct helper" | "ct timeout" | "ct expectation" | "flowtable" | "synproxy" => true,
            _ => false,
        }
    })
}

/// Whether a key at any depth of a value begins with one of these words.
fn mentions(value: &Value, words: &[&str]) -> bool {
    match value {
        Value::Array(all) => all.iter().any(|v| mentions(v, words)),
        Value::Object(all) => {
            all.iter().any(|(key, v)| words.iter().any(|w| key.starts_with(w)) || mentions(v, words))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rules_that_ask_for_states_of_connections_need_the_table() {
        let rule = |table: &str, expr: Value| json!({ "nftables": [{ "metainfo": {} }, { "rule": { "table": table, "expr": expr } }] });
        let state = json!([{ "match": { "op": "in", "left": { "ct": { "key": "state" } }, "right": "invalid" } }, { "drop": null }]);
        assert!(need_it(&rule("filter", state.clone())));
        assert!(!need_it(&rule("skyhaul_near", state)));
        assert!(need_it(&rule("filter", json!([{ "xt": { "type": "match", "name": "conntrack" } }]))));
        let port = json!([{ "match": { "op": "==", "left": { "payload": { "protocol": "tcp", "field": "dport" } }, "right": 22 } }]);
        assert!(!need_it(&rule("filter", port)));
        let chain = |kind: &str| json!({ "nftables": [{ "chain": { "table": "nat", "name": "out", "type": kind } }] });
        assert!(need_it(&chain("nat")) && !need_it(&chain("filter")));
    }
}

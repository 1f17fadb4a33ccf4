//! Chains of nftables that drop packets: by default, or after a check of sources.

use serde_json::Value;

fn name(of: &Value, key: &str) -> String {
    of.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The chains of a ruleset that drop packets if the route to their source leads over another interface (`fib saddr … oif`), as firewalld
/// does for IPv6.
pub(crate) fn checking_sources(listed: &Value) -> Vec<String> {
    let rules = listed["nftables"].as_array().into_iter().flatten().map(|o| &o["rule"]);
    let checks = |r: &&Value| {
        let expressions = r["expr"].as_array().map(Vec::as_slice).unwrap_or_default();
        let looks_up = |e: &Value| {
            let Some(fib) = e.pointer("/match/left/fib") else { return false };
            let flags = fib["flags"].as_array().map(Vec::as_slice).unwrap_or_default();
            fib["result"] == "oif" && flags.iter().any(|f| f == "saddr")
        };
        expressions.iter().any(looks_up) && expressions.iter().any(|e| e.get("drop").is_some())
    };
    let mut chains: Vec<_> = rules
        .filter(checks)
        .map(|r| format!("{} {} {}", name(r, "family"), name(r, "table"), name(r, "chain")))
        .collect();
    chains.dedup();
    chains
}

/// The base chains of a ruleset at a hook ("input", "forward") that drop or reject what their rules do not accept, by their policy or by
/// their last rule: family, table and name of each.
pub(crate) fn dropping(listed: &Value, hook: &str) -> Vec<String> {
    let all = listed["nftables"].as_array().map(Vec::as_slice).unwrap_or_default();
    let last_drops = |c: &Value| {
        let its =
            |r: &&Value| ["family", "table"].iter().all(|key| r[key] == c[key]) && r["chain"] == c["name"];
        all.iter().map(|o| &o["rule"]).rfind(its).is_some_and(|r| drops_all(&r["expr"]))
    };
    let chains = all.iter().map(|o| &o["chain"]).filter(|c| c["hook"] == hook);
    let dropping = chains.filter(|c| c["policy"] == "drop" || last_drops(c));
    dropping.map(|c| format!("{} {} {}", name(c, "family"), name(c, "table"), name(c, "name"))).collect()
}

/// Whether a rule without a condition drops or rejects.
fn drops_all(expressions: &Value) -> bool {
    let all = expressions.as_array().map(Vec::as_slice).unwrap_or_default();
    let is = |e: &Value, words: &[&str]| words.iter().any(|w| e.get(w).is_some());
    all.last().is_some_and(|e| is(e, &["drop", "reject"]))
        && all.iter().all(|e| is(e, &["drop", "reject", "counter", "log"]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn chains_that_drop_by_default_are_named() {
        let chain = |table: &str, hook: &str, policy: &str| json!({ "chain": { "family": "ip", "table": table, "name": "FORWARD", "hook": hook, "policy": policy } });
        let listed = json!({ "nftables": [
            { "metainfo": {} },
            chain("filter", "forward", "drop"),
            chain("open", "forward", "accept"),
            chain("other", "input", "drop"),
            chain("firewalld", "forward", "accept"),
            { "rule": { "family": "ip", "table": "firewalld", "chain": "FORWARD", "expr": [{ "match": {} }, { "accept": null }] } },
            { "rule": { "family": "ip", "table": "firewalld", "chain": "FORWARD", "expr": [{ "counter": {} }, { "reject": {} }] } },
            chain("once", "forward", "accept"),
            { "rule": { "family": "ip", "table": "once", "chain": "FORWARD", "expr": [{ "match": {} }, { "drop": null }] } },
            chain("limited", "forward", "accept"),
            { "rule": { "family": "ip", "table": "limited", "chain": "FORWARD", "expr": [{ "limit": {} }, { "drop": null }] } },
        ] });
        assert_eq!(dropping(&listed, "forward"), ["ip filter FORWARD", "ip firewalld FORWARD"]);
        assert_eq!(dropping(&listed, "input"), ["ip other FORWARD"]);
        assert_eq!(checking_sources(&listed), [""; 0]);
        let fib = json!({ "match": { "op": "==", "left": { "fib": { "result": "oif", "flags": ["saddr", "mark", "iif"] } }, "right": false } });
        let rule = json!({ "rule": { "family": "inet", "table": "firewalld", "chain": "filter_PREROUTING", "expr": [fib, { "drop": null }] } });
        let listed = json!({ "nftables": [rule] });
        assert_eq!(checking_sources(&listed), ["inet firewalld filter_PREROUTING"]);
    }
}

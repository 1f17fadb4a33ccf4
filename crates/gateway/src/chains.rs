//! Chains of other programs that drop packets by default.

use serde_json::Value;
use std::process::Command;

/// The base chains at a hook ("input", "forward") that drop or reject what their rules do not accept, by their policy or by their last
/// rule, as nft names them; `None` if nft cannot be asked.
pub(crate) fn dropping(hook: &str) -> Option<Vec<String>> {
    let listed = Command::new("nft").args(["-j", "list", "ruleset"]).output().ok()?.stdout;
    Some(dropping_of(&serde_json::from_slice(&listed).ok()?, hook))
}

fn dropping_of(listed: &Value, hook: &str) -> Vec<String> {
    let all = listed["nftables"].as_array().map(Vec::as_slice).unwrap_or_default();
    let name = |c: &Value, key| c.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let ends = |c: &Value| {
        let its =
            |r: &&Value| ["family", "table"].iter().all(|key| r[key] == c[key]) && r["chain"] == c["name"];
        all.iter().map(|o| &o["rule"]).filter(its).next_back().is_some_and(|r| drops_all(&r["expr"]))
    };
    let chains = all.iter().map(|o| &o["chain"]).filter(|c| c["hook"] == hook);
    let dropping = chains.filter(|c| c["policy"] == "drop" || ends(c));
    dropping.map(|c| format!("{} {} {}", name(c, "family"), name(c, "table"), name(c, "name"))).collect()
}

/// Whether a rule without a condition drops or rejects.
fn drops_all(expressions: &Value) -> bool {
    let all = expressions.as_array().map(Vec::as_slice).unwrap_or_default();
    let is = |e: &Value, words: &[&str]| words.iter().any(|w| e.get(w).is_some());
    all.last().is_some_and(|e| is(e, &["drop", "reject"]))
        && all.iter().all(|e| is(e, &["drop", "reject", "counter", "log", "limit"]))
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
        ] });
        assert_eq!(dropping_of(&listed, "forward"), ["ip filter FORWARD", "ip firewalld FORWARD"]);
        assert_eq!(dropping_of(&listed, "input"), ["ip other FORWARD"]);
    }
}

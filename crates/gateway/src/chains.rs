//! Chains of other programs that drop packets by default.

use serde_json::Value;
use std::process::Command;

/// The base chains at a hook ("input", "forward") whose policy is to drop, as nft names them; `None` if nft cannot be asked.
pub(crate) fn dropping(hook: &str) -> Option<Vec<String>> {
    let listed = Command::new("nft").args(["-j", "list", "chains"]).output().ok()?.stdout;
    Some(dropping_of(&serde_json::from_slice(&listed).ok()?, hook))
}

fn dropping_of(listed: &Value, hook: &str) -> Vec<String> {
    let chains = listed["nftables"].as_array().into_iter().flatten().map(|o| &o["chain"]);
    let dropping = chains.filter(|c| c["hook"] == hook && c["policy"] == "drop");
    let name = |c: &Value, key| c.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    dropping.map(|c| format!("{} {} {}", name(c, "family"), name(c, "table"), name(c, "name"))).collect()
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
        ] });
        assert_eq!(dropping_of(&listed, "forward"), ["ip filter FORWARD"]);
        assert_eq!(dropping_of(&listed, "input"), ["ip other FORWARD"]);
    }
}

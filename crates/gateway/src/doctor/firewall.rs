//! Chains of other programs that drop forwarded packets: the packets of split connections are forwarded between the
//! interfaces and the device `sky-NAME`.

use super::{Finding, doubt, finding};
use crate::config::Config;
use serde_json::Value;
use std::process::Command;

pub(super) fn examine(config: &Config) -> Vec<Finding> {
    let listed = Command::new("nft").args(["-j", "list", "chains"]).output();
    // If nft or the privileges are missing, another finding says so.
    let Ok(listed) = listed.map(|output| output.stdout) else { return Vec::new() };
    let Ok(listed) = serde_json::from_slice(&listed) else { return Vec::new() };
    let mut all: Vec<_> =
        dropping_chains(&listed).into_iter().map(|chain| chain_finding(config, &chain)).collect();
    // Tables of the older iptables are not listed by nft.
    let old = std::fs::read_to_string("/proc/thread-self/net/ip_tables_names").unwrap_or_default();
    if old.lines().any(|name| name == "filter") {
        all.push(doubt(
            "iptables-legacy",
            "has a table filter, which is not looked into: iptables-legacy -L FORWARD shows whether it drops forwarded packets",
        ));
    }
    if all.is_empty() {
        all.push(finding("firewall", true, "no chain drops forwarded packets by default"));
    }
    all
}

fn chain_finding(config: &Config, chain: &str) -> Finding {
    let tun = config.interface();
    doubt(
        format!("chain {chain}"),
        format!(
            "drops forwarded packets by default, as Docker sets it up: unless its rules accept them, let those of {tun} pass \
             (nft insert rule {chain} iifname {tun} accept; nft insert rule {chain} oifname {tun} accept)"
        ),
    )
}

/// The base chains for forwarded packets whose policy is to drop, as nft names them.
fn dropping_chains(listed: &Value) -> Vec<String> {
    let chains = listed["nftables"].as_array().into_iter().flatten().map(|o| &o["chain"]);
    let dropping = chains.filter(|c| c["hook"] == "forward" && c["policy"] == "drop");
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
        assert_eq!(dropping_chains(&listed), ["ip filter FORWARD"]);
    }
}

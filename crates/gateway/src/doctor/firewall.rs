//! Chains of other programs that drop packets by default. Packets of split connections meet two kinds of chains: those over the link are
//! forwarded between the satellite interface and the device `sky-NAME`, and those of hosts are for this machine.

use super::{Finding, doubt, finding};
use crate::config::Config;
use crate::rules::MARKS;
use crate::{chains, nft};

pub(super) fn examine(config: &Config) -> Vec<Finding> {
    // If nft or the privileges are missing, another finding says so.
    let Some(listed) = nft::ruleset() else { return Vec::new() };
    let forward = chains::dropping(&listed, "forward");
    let mut all: Vec<_> = forward.iter().map(|chain| chain_finding(config, chain)).collect();
    if config.intercepted().is_some() {
        let input = chains::dropping(&listed, "input");
        all.extend(input.iter().map(|chain| input_finding(chain)));
    }
    // Tables of the older iptables are not listed by nft.
    let old = std::fs::read_to_string("/proc/thread-self/net/ip_tables_names").unwrap_or_default();
    if old.lines().any(|name| name == "filter") {
        all.push(doubt(
            "iptables-legacy",
            "has a table filter, which is not looked into: iptables-legacy -L FORWARD shows whether it drops forwarded packets",
        ));
    }
    if all.is_empty() {
        all.push(finding(
            "firewall",
            true,
            "no chain drops forwarded packets by default, or those for this machine",
        ));
    }
    all
}

fn input_finding(chain: &str) -> Finding {
    let mark = MARKS[0];
    doubt(
        format!("chain {chain}"),
        format!(
            "drops packets for this machine by default, and connections of hosts end here: unless its rules accept them, let those pass \
             that the gateway has marked (nft insert rule {chain} meta mark {mark:#x} accept)"
        ),
    )
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

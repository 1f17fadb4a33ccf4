//! Chains of other programs that drop packets by default. Packets of split connections meet two kinds of chains. Packets over the link are
//! forwarded between the satellite interface and the device `sky-NAME`. Packets of hosts are for this machine.

use super::{Finding, doubt, finding};
use crate::config::Config;
use crate::rules::NEAR_MARK;
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
    let tables = |list: &str| std::fs::read_to_string(format!("/proc/thread-self/net/{list}"));
    all.extend(older_tables(|list| tables(list).unwrap_or_default()));
    if all.is_empty() {
        // Without intercepted connections the chains for this machine were not examined.
        let message = if config.intercepted().is_some() {
            "no chain drops forwarded packets by default, or packets for this machine"
        } else {
            "no chain drops forwarded packets by default"
        };
        all.push(finding("firewall", true, message));
    }
    all
}

/// Findings about tables of the older iptables, which nft does not list. `tables` reads one of the kernel's lists of them.
fn older_tables(tables: impl Fn(&str) -> String) -> Vec<Finding> {
    let families = [("ip_tables_names", "iptables-legacy"), ("ip6_tables_names", "ip6tables-legacy")];
    let filtering =
        families.into_iter().filter(|(list, _)| tables(list).lines().any(|name| name == "filter"));
    let found = filtering.map(|(_, program)| {
        doubt(
            program,
            format!(
                "has a table filter, which is not looked into: {program} -L FORWARD shows whether it drops forwarded packets"
            ),
        )
    });
    found.collect()
}

fn input_finding(chain: &str) -> Finding {
    // Packets of hosts have the mark for the transparent kernel sockets.
    let near = NEAR_MARK;
    doubt(
        format!("chain {chain}"),
        format!(
            "drops packets for this machine by default, and connections of hosts end here: unless its rules accept them, let those pass \
             that the gateway has marked (nft insert rule {chain} meta mark {near:#x} accept)"
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_tables_of_both_families_are_found() {
        let programs = |ip: &str, ip6: &str| -> Vec<String> {
            let found = older_tables(|list| if list == "ip6_tables_names" { ip6.into() } else { ip.into() });
            found.into_iter().map(|f| f.what).collect()
        };
        assert!(programs("nat\n", "").is_empty());
        assert_eq!(programs("nat\nfilter\n", ""), ["iptables-legacy"]);
        assert_eq!(programs("", "filter\n"), ["ip6tables-legacy"]);
        assert_eq!(programs("filter\n", "filter\n"), ["iptables-legacy", "ip6tables-legacy"]);
    }
}

//! Chains of other programs that drop packets by default. Packets of split connections meet three kinds of chains. Packets over the link are
//! forwarded between the satellite interface and the device `sky-NAME`. Packets of hosts are for this machine, and those to hosts come from it.
//! Repaired datagrams are forwarded between the interfaces of hosts and `skr-NAME`.

use super::{Finding, doubt, finding};
use crate::config::Config;
use crate::rules::{NEAR_MARK, SOCKET_MARK};
use crate::{chains, nft};

pub(super) fn examine(config: &Config) -> Vec<Finding> {
    // If nft or the privileges are missing, another finding says so.
    let Some(listed) = nft::ruleset() else { return Vec::new() };
    let forward = chains::dropping(&listed, "forward");
    let mut all: Vec<_> = forward.iter().map(|chain| chain_finding(config, chain)).collect();
    if config.intercepted().is_some() {
        let input = chains::dropping(&listed, "input");
        all.extend(input.iter().map(|chain| input_finding(chain)));
        let output = chains::dropping(&listed, "output");
        all.extend(output.iter().map(|chain| output_finding(chain)));
    }
    let tables = |list: &str| std::fs::read_to_string(format!("/proc/thread-self/net/{list}"));
    all.extend(older_tables(config.intercepted().is_some(), |list| tables(list).unwrap_or_default()));
    if all.is_empty() {
        // Without intercepted connections the chains for this machine were not examined.
        let message = if config.intercepted().is_some() {
            "no chain drops forwarded packets by default, or packets for this machine or from it"
        } else {
            "no chain drops forwarded packets by default"
        };
        all.push(finding("firewall", true, message));
    }
    all
}

/// Findings about tables of the older iptables, which nft does not list. `intercepts`: connections of hosts end at this machine. `tables`
/// reads one of the kernel's lists of them.
fn older_tables(intercepts: bool, tables: impl Fn(&str) -> String) -> Vec<Finding> {
    let families = [("ip_tables_names", "iptables-legacy"), ("ip6_tables_names", "ip6tables-legacy")];
    let filtering =
        families.into_iter().filter(|(list, _)| tables(list).lines().any(|name| name == "filter"));
    let found = filtering.map(|(_, program)| {
        let mut message = format!(
            "has a table filter, which is not looked into: {program} -L FORWARD shows whether it drops forwarded packets"
        );
        if intercepts {
            message += &format!(
                ", and {program} -L INPUT and -L OUTPUT whether it drops those of connections of hosts, which end here"
            );
        }
        doubt(program, message)
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

fn output_finding(chain: &str) -> Finding {
    // Packets of the kernel's sockets to hosts have a mark, too.
    doubt(
        format!("chain {chain}"),
        format!(
            "drops packets from this machine by default, and connections to hosts begin here: unless its rules accept them, let those pass \
             that the gateway has marked (nft insert rule {chain} meta mark {SOCKET_MARK:#x} accept)"
        ),
    )
}

fn chain_finding(config: &Config, chain: &str) -> Finding {
    let repair = config.repair.as_ref().map(|_| config.repair_interface());
    let tuns: Vec<_> = std::iter::once(config.interface()).chain(repair).collect();
    let rules = tuns.iter().flat_map(|tun| {
        ["iifname", "oifname"].map(|word| format!("nft insert rule {chain} {word} {tun} accept"))
    });
    doubt(
        format!("chain {chain}"),
        format!(
            "drops forwarded packets by default, as Docker sets it up: unless its rules accept them, let those of {} pass ({})",
            tuns.join(" and "),
            rules.collect::<Vec<_>>().join("; ")
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_has_to_let_the_interfaces_of_the_gateway_pass() {
        let file = "name = \"a\"\n[terrestrial]\ninterface = \"lan0\"\n[satellite]\ninterface = \"sat0\"\nrate = \"1 Mbit/s\"\n";
        let repair = "[repair]\npeer = \"192.0.2.1\"\nkey = \"0123456789abcdef0123456789abcdef\"\n";
        let says = |text: &str| {
            let config = Config::parse("g.toml", text).expect("is good");
            chain_finding(&config, "ip filter FORWARD").message
        };
        let split = says(file);
        assert!(
            split.ends_with(
                "let those of sky-a pass (nft insert rule ip filter FORWARD iifname sky-a accept; \
                 nft insert rule ip filter FORWARD oifname sky-a accept)"
            ),
            "{split}"
        );
        let both = says(&format!("{file}{repair}"));
        assert!(
            both.contains("of sky-a and skr-a pass") && both.ends_with("oifname skr-a accept)"),
            "{both}"
        );
        assert!(output_finding("ip filter OUTPUT").message.contains("OUTPUT meta mark 0x53480000 accept"));
    }

    #[test]
    fn older_tables_of_both_families_are_found() {
        let programs = |ip: &str, ip6: &str| -> Vec<String> {
            let tables = |list: &str| String::from(if list == "ip6_tables_names" { ip6 } else { ip });
            let found = older_tables(true, tables);
            assert!(found.iter().all(|f| f.message.contains(&format!("{} -L INPUT and -L OUTPUT", f.what))));
            let alone = older_tables(false, tables);
            assert!(alone.iter().all(|f| f.message.contains("-L FORWARD") && !f.message.contains("INPUT")));
            found.into_iter().map(|f| f.what).collect()
        };
        assert!(programs("nat\n", "").is_empty());
        assert_eq!(programs("nat\nfilter\n", ""), ["iptables-legacy"]);
        assert_eq!(programs("", "filter\n"), ["ip6tables-legacy"]);
        assert_eq!(programs("filter\n", "filter\n"), ["iptables-legacy", "ip6tables-legacy"]);
    }
}

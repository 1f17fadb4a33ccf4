//! Checks of the repair of datagrams.

use super::{Finding, doubt, evaded, finding};
use crate::config::Config;
use crate::repair::{DUMMY, Settings, key_of};
use crate::status::Status;
use crate::{nft, rules};
use serde_json::Value;
use skyhaul_net::routing::{self, Route};
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;

/// The key, the route to the other gateway, and the gateway that runs, if `status` is that of one; nothing if the file repairs nothing.
pub(super) fn examine(config: &Config, status: Option<&Status>) -> Vec<Finding> {
    let Some(settings) = &config.repair else { return Vec::new() };
    let mut all = vec![key(settings)];
    all.extend(settings.peer_at().map(|peer| route(config, peer.ip())));
    all.extend(nft::ruleset().and_then(|listed| hidden(config, &listed)));
    all.extend(config.repair.as_ref().and_then(|_| status?.repair.as_ref()).map(|r| {
        let what = "repair of datagrams";
        match &r.cause {
            None => finding(what, true, format!("works with {}, for {:.0} s", r.peer, r.lasts)),
            Some(why) => finding(what, false, format!("not for {:.0} s: {why}", r.lasts)),
        }
    }));
    all
}

fn key(settings: &Settings) -> Finding {
    let what = match &settings.key_file {
        Some(path) => format!("repair.key-file {}", path.display()),
        None => "repair.key".into(),
    };
    if let Err(why) = key_of(settings) {
        return finding(what, false, why);
    }
    let mode =
        settings.key_file.as_ref().and_then(|p| std::fs::metadata(p).ok()).map(|m| m.permissions().mode());
    match mode {
        Some(mode) if mode & 0o077 != 0 => doubt(what, "others may read it: chmod 600"),
        _ => finding(what, true, "is long enough"),
    }
}

/// Whether rules of other programs hide addresses at the link: repaired datagrams leave by another interface.
fn hidden(config: &Config, listed: &Value) -> Option<Finding> {
    let (link, tun) = (config.satellite.interface.as_str(), config.repair_interface());
    // Without interfaces of hosts in the file, as with forwarded ports alone, datagrams from any interface are repaired.
    let hosts = config.host_interfaces().iter().map(|name| Some(name.as_str()));
    let hosts: Vec<_> = if config.host_interfaces().is_empty() { vec![None] } else { hosts.collect() };
    let own = rules::table(config);
    let all = listed["nftables"].as_array().map(Vec::as_slice).unwrap_or_default();
    let theirs = |at: &str, words: &[&str]| {
        let found = all.iter().map(|o| &o["rule"]).find(|rule| {
            rule["table"] != own.as_str()
                && evaded::expressions(rule).any(|e| words.iter().any(|w| e.get(w).is_some()))
                && hosts
                    .iter()
                    .any(|&from| evaded::applies(rule, evaded::Packets { from, to: at, are_tcp: false }))
        })?;
        let name = |key: &str| found[key].as_str().unwrap_or_default();
        Some(format!("{} {} {}", name("family"), name("table"), name("chain")))
    };
    if let Some(chain) = theirs(&tun, &["masquerade"]) {
        let message = format!(
            "gives repaired datagrams at {tun} the address {}, to which no answer finds its way: except them from masquerade, and write snat \
             to an address of {link} in its place",
            DUMMY.0
        );
        return Some(doubt(format!("chain {chain}"), message));
    }
    let chain = theirs(link, &["masquerade", "snat"])?;
    if theirs(&tun, &["snat"]).is_some() {
        return None;
    }
    let message = format!(
        "hides addresses at {link}, and not those of repaired datagrams, which leave by {tun}: hide them there, too (nft insert rule {chain} \
         oifname {tun} snat to ADDRESS), or leave out [repair]"
    );
    Some(doubt(format!("chain {chain}"), message))
}

/// Whether packets to the other gateway leave by the satellite interface.
fn route(config: &Config, peer: IpAddr) -> Finding {
    let link = &config.satellite.interface;
    let what = format!("repair.peer {peer}");
    let index = nix::net::if_::if_nametoindex(link.as_str()).ok();
    match (routing::route_to(peer, None), index) {
        (Ok(Route::Out(out)), Some(index)) if out == index => {
            finding(what, true, format!("is reached by {link}"))
        }
        (Ok(Route::Here), _) => {
            finding(what, false, "is an address of this machine: write that of the other gateway")
        }
        (Ok(_), Some(_)) => finding(
            what,
            false,
            format!(
                "is not reached by {link}: write the address of the other gateway at the link, or add a route"
            ),
        ),
        // Without the interface there is a finding about that; without an answer there is nothing to say.
        _ => doubt(what, "the route to it is not known"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn hidden_addresses_are_named_with_the_remedy() {
        let file = "name = \"a\"\n[terrestrial]\ninterface = \"lan0\"\n[satellite]\ninterface = \"sat0\"\nrate = \"1 Mbit/s\"\n[repair]\n\
                    peer = \"192.0.2.1\"\nkey = \"0123456789abcdef0123456789abcdef\"\n";
        let config = Config::parse("g.toml", file).expect("is good");
        let rule = |table: &str, out: Option<&str>, verdict: Value| {
            let left = json!({ "meta": { "key": "oifname" } });
            let condition = out.map(|name| json!({ "match": { "op": "==", "left": left, "right": name } }));
            let expr: Vec<Value> = condition.into_iter().chain([verdict]).collect();
            json!({ "rule": { "family": "ip", "table": table, "chain": "post", "expr": expr } })
        };
        let says = |rules: &[Value]| hidden(&config, &json!({ "nftables": rules })).map(|f| f.message);
        let (masquerade, snat) = (json!({ "masquerade": null }), json!({ "snat": { "addr": "192.0.2.7" } }));
        let at_link = rule("nat", Some("sat0"), masquerade.clone());
        assert_eq!(says(&[rule("nat", Some("eth9"), masquerade.clone())]), None);
        assert_eq!(says(&[rule(&rules::table(&config), Some("sat0"), masquerade.clone())]), None, "our own");
        let only_there = says(std::slice::from_ref(&at_link)).expect("a finding");
        assert!(only_there.contains("which leave by skr-a: hide them there, too"), "{only_there}");
        assert_eq!(says(&[at_link, rule("nat", Some("skr-a"), snat)]), None);
        for out in [Some("skr-a"), Some("sk*"), None] {
            let there = says(&[rule("nat", out, masquerade.clone())]).expect("a finding");
            assert!(there.contains("the address 192.0.0.8") && there.contains("write snat"), "{there}");
        }
    }

    #[test]
    fn hidden_addresses_are_found_whichever_packets_they_are_for() {
        let ends = "[satellite]\ninterface = \"sat0\"\nrate = \"1 Mbit/s\"\n[repair]\npeer = \"192.0.2.1\"\n\
                    key = \"0123456789abcdef0123456789abcdef\"\n";
        let read =
            |hosts: &str| Config::parse("g.toml", &format!("name = \"a\"\n{hosts}{ends}")).expect("is good");
        let hosts = read("[terrestrial]\ninterface = \"lan0\"\n");
        let none = read("[[forward]]\nlisten = \"127.0.0.1:8080\"\nto = \"203.0.113.7:80\"\n");
        assert!(none.host_interfaces().is_empty());
        let is = |left: Value, right: Value| json!({ "match": { "op": "==", "left": left, "right": right } });
        let rule = |condition: Value| {
            let out = is(json!({ "meta": { "key": "oifname" } }), "sat0".into());
            let expr = [condition, out, json!({ "masquerade": null })];
            json!({ "nftables": [{ "rule": { "family": "ip", "table": "nat", "chain": "post", "expr": expr } }] })
        };
        let from = |name: &str| rule(is(json!({ "meta": { "key": "iifname" } }), name.into()));
        // Without interfaces of hosts, packets may come from any.
        for (config, name, found) in
            [(&hosts, "lan0", true), (&hosts, "lan1", false), (&none, "lan0", true), (&none, "lan1", true)]
        {
            assert_eq!(hidden(config, &from(name)).is_some(), found, "{name}");
        }
        // Datagrams need not be of TCP.
        let of = |name: &str| rule(is(json!({ "meta": { "key": "l4proto" } }), name.into()));
        let port = json!({ "payload": { "protocol": "udp", "field": "dport" } });
        for listed in [of("udp"), of("tcp"), rule(is(port, 53.into()))] {
            assert!(hidden(&hosts, &listed).is_some(), "{listed}");
        }
    }
}

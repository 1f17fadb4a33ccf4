//! The counters of the rules.

use crate::nft;
use crate::rules::{HOSTS_REACHED, HOSTS_TAKEN, LINK_ASTRAY, LINK_LEFT, LINK_REACHED, LINK_SENT, LINK_TAKEN};
use serde_json::Value;

/// Packets counted before and behind the chains of firewalls at one hook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Passage {
    pub(super) before: u64,
    pub(super) behind: u64,
}

/// All counters at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    /// SYNs of hosts to the kernel's sockets.
    pub(super) hosts: Passage,
    /// SYNs of the gateway's host to the link.
    pub(super) out: Passage,
    /// Those of them that leave by another interface.
    pub(super) astray: u64,
    /// Packets from the link to the gateway's host.
    pub(super) back: Passage,
}

/// Reads them; `None`: the table is not there, or nft cannot be asked.
pub(super) fn read(table: &str) -> Option<Counters> {
    of(&nft::json(&["-t", "list", "counters", "table", "inet", table])?)
}

fn of(listed: &Value) -> Option<Counters> {
    let all: Vec<&Value> = listed["nftables"].as_array()?.iter().map(|o| &o["counter"]).collect();
    let count = |name: &str| all.iter().find(|c| c["name"] == name)?["packets"].as_u64();
    let passage = |before, behind| Some(Passage { before: count(before)?, behind: count(behind)? });
    Some(Counters {
        hosts: passage(HOSTS_TAKEN, HOSTS_REACHED)?,
        out: passage(LINK_SENT, LINK_LEFT)?,
        astray: count(LINK_ASTRAY)?,
        back: passage(LINK_TAKEN, LINK_REACHED)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn all_counters_are_needed() {
        let one = |name: &str, n: u64| json!({ "counter": { "name": name, "packets": n, "bytes": 9 } });
        let mut all = vec![json!({ "metainfo": {} })];
        for (name, n) in [
            (HOSTS_TAKEN, 1),
            (HOSTS_REACHED, 2),
            (LINK_SENT, 3),
            (LINK_LEFT, 4),
            (LINK_ASTRAY, 7),
            (LINK_TAKEN, 5),
        ] {
            all.push(one(name, n));
        }
        assert_eq!(of(&json!({ "nftables": all })), None);
        all.push(one(LINK_REACHED, 6));
        let found = of(&json!({ "nftables": all })).expect("all");
        let passage = |before, behind| Passage { before, behind };
        assert_eq!((found.hosts, found.out, found.back), (passage(1, 2), passage(3, 4), passage(5, 6)));
        assert_eq!(found.astray, 7);
    }
}

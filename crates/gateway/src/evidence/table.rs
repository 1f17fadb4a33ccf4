//! All observed connections. Memory is bounded: beyond the limits, further connections are not observed, and those of further prefixes
//! count only towards the group of all connections.

use super::arm::Arm;
use super::connection::{Ends, Observed};
use super::header::{ACK, Head, SYN};
use super::report::Evidence;
use super::settings::{AssignmentUnit, Group, Mode, Settings};
use super::tally::{Tally, names};
use crate::config::Config;
use crate::network::Network;
use skyhaul_base::hash::Fnv;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

/// Silence after which a connection is given up, nanoseconds.
const SILENCE: u64 = 300_000_000_000;
/// Silence after which a connection whose SYN has no answer is given up, nanoseconds.
const UNANSWERED: u64 = 60_000_000_000;
/// Maximum number of connections that the gateway has announced and whose SYN has not been seen yet.
const EARLY: usize = 1024;
/// Maximum number of prefixes in a report.
const LISTED: usize = 50;
/// Interval of sweeps, nanoseconds.
const SWEEP: u64 = 5_000_000_000;

/// Which connections would be split.
#[derive(Clone, Debug)]
struct SplitRules {
    hosts: Vec<Network>,
    behind: Vec<Network>,
    ports: Vec<u16>,
    exclude_ports: Vec<u16>,
    exclude: Vec<Network>,
}

impl SplitRules {
    fn new(config: &Config) -> Self {
        Self {
            hosts: config.terrestrial.as_ref().map(|t| t.networks.clone()).unwrap_or_default(),
            behind: config.satellite.networks.clone(),
            ports: config.split.ports.clone(),
            exclude_ports: config.split.exclude_ports.clone(),
            exclude: config.split.exclude.clone(),
        }
    }
    /// The conditions of the rules ([`crate::rules::admission`]).
    fn takes(&self, from_hosts: bool, client: SocketAddr, server: SocketAddr) -> bool {
        let within = |networks: &[Network], a: IpAddr| networks.iter().any(|n| n.contains(a));
        let (from, to) = if from_hosts { (&self.hosts, &self.behind) } else { (&self.behind, &self.hosts) };
        within(from, client.ip())
            && within(to, server.ip())
            && ![client.ip(), server.ip()].iter().any(|a| within(&self.exclude, *a))
            && (self.ports.is_empty() || self.ports.contains(&server.port()))
            && !self.exclude_ports.contains(&server.port())
    }
}

/// All observed connections, and the results of those that are over.
#[derive(Debug)]
pub(crate) struct Table {
    settings: Settings,
    wanted: SplitRules,
    open: BTreeMap<Ends, Observed>,
    /// Connections that the gateway splits and whose SYN has not been seen yet.
    early: BTreeSet<Ends>,
    all: Tally,
    /// Results by prefix.
    groups: BTreeMap<Network, Tally>,
    /// Connections beyond the limit of open ones.
    unobserved: u64,
    /// Connections of prefixes beyond the limit of prefixes.
    unlisted: u64,
    /// Packets that the kernel could not deliver.
    pub(crate) missed: u64,
    swept: u64,
}

impl Table {
    pub(crate) fn new(config: &Config) -> Self {
        let settings = config.evidence.clone();
        let all = Tally::new(settings.by == AssignmentUnit::Client);
        Self {
            settings,
            wanted: SplitRules::new(config),
            open: BTreeMap::new(),
            early: BTreeSet::new(),
            all,
            groups: BTreeMap::new(),
            unobserved: 0,
            unlisted: 0,
            missed: 0,
            swept: 0,
        }
    }
    /// Switches to another configuration, for connections opened from now on.
    pub(crate) fn reconfigure(&mut self, config: &Config) {
        self.wanted = SplitRules::new(config);
    }

    /// Takes a segment that was seen at `now`, nanoseconds; `from_hosts`: it comes from the hosts' side.
    pub(crate) fn take(&mut self, now: u64, from_hosts: bool, head: &Head) {
        if head.has(SYN) && !head.has(ACK) {
            self.open(now, from_hosts, head);
        } else {
            let forth = (head.from, head.to);
            let from_client = self.open.contains_key(&forth);
            let ends = if from_client { forth } else { (head.to, head.from) };
            if let Some(c) = self.open.get_mut(&ends)
                && c.take(now, from_client, head)
            {
                self.close(ends);
            }
        }
        if now >= self.swept.saturating_add(SWEEP) || now < self.swept {
            self.sweep(now);
        }
    }

    fn open(&mut self, now: u64, from_hosts: bool, syn: &Head) {
        let ends = (syn.from, syn.to);
        match self.open.get(&ends) {
            Some(c) if c.began_with(syn) => return,
            // The ports are used again, and the end of the earlier connection was not seen.
            Some(_) => self.close(ends),
            None => {}
        }
        if !self.wanted.takes(from_hosts, ends.0, ends.1) {
            return;
        }
        if self.open.len() >= self.settings.connections {
            self.unobserved += 1;
            return;
        }
        let arm = match self.settings.mode {
            Mode::Ab => Arm::of(&self.settings, ends.0, ends.1),
            _ => Arm::First,
        };
        let mut new = Observed::new(now, arm, from_hosts, syn);
        new.split = self.early.remove(&ends);
        self.open.insert(ends, new);
    }

    /// The gateway reports that it splits this connection.
    pub(crate) fn split(&mut self, ends: Ends) {
        match self.open.get_mut(&ends) {
            Some(c) => c.split = true,
            None => {
                if self.early.len() >= EARLY {
                    self.early.clear();
                }
                self.early.insert(ends);
            }
        }
    }

    fn close(&mut self, ends: Ends) {
        let Some(c) = self.open.remove(&ends) else { return };
        let s = &self.settings;
        let expected = s.mode == Mode::Ab && (c.arm == Arm::First || s.other.is_some());
        let m = c.result();
        let answered = m.setup.is_some();
        let crossed = answered && c.split != expected;
        let group = client_group(ends.0.ip());
        self.all.add(c.arm, crossed, group, &m);
        let of = if s.group == Group::Server { ends.1 } else { ends.0 };
        let prefix = s.prefix(of.ip());
        if !self.groups.contains_key(&prefix) && self.groups.len() >= s.prefixes {
            self.unlisted += 1;
            return;
        }
        let grouped = s.by == AssignmentUnit::Client;
        self.groups.entry(prefix).or_insert_with(|| Tally::new(grouped)).add(c.arm, crossed, group, &m);
    }

    fn sweep(&mut self, now: u64) {
        self.swept = now;
        let over = |c: &Observed| {
            let most = if c.result().setup.is_some() { SILENCE } else { UNANSWERED };
            now > c.seen.saturating_add(most)
        };
        let old: Vec<Ends> = self.open.iter().filter(|(_, c)| over(c)).map(|(ends, _)| *ends).collect();
        old.into_iter().for_each(|ends| self.close(ends));
    }

    /// The state; if `prefixes`, with those prefixes that have most connections.
    pub(crate) fn report(&self, prefixes: bool) -> Evidence {
        let mut groups = vec![self.all.report("all".into(), &self.settings)];
        if prefixes {
            let mut by_size: Vec<_> = self.groups.iter().collect();
            by_size.sort_by_key(|(prefix, t)| (std::cmp::Reverse(t.connections()), **prefix));
            let listed = by_size.into_iter().take(LISTED);
            groups.extend(listed.map(|(prefix, t)| t.report(prefix.to_string(), &self.settings)));
        }
        let arms = names(&self.settings).map(Cow::from);
        Evidence {
            mode: self.settings.mode,
            arms: if self.settings.mode == Mode::Ab { arms.to_vec() } else { arms[..1].to_vec() },
            fraction: self.settings.fraction,
            open: self.open.len(),
            unobserved: self.unobserved,
            unlisted: self.unlisted,
            missed: self.missed,
            prefixes: self.groups.len(),
            groups,
        }
    }
}

/// The group of a client in [`super::moments::Grouped`], which its address alone determines.
fn client_group(address: IpAddr) -> usize {
    let mut hash = Fnv::default();
    match address {
        IpAddr::V4(a) => hash.write(&a.octets()),
        IpAddr::V6(a) => hash.write(&a.octets()),
    }
    let h = hash.finish();
    (h ^ h >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::super::header::{FIN, RST};
    use super::*;

    fn table(more: &str) -> Table {
        let text = format!("[terrestrial]\ninterface = \"lan0\"\n[satellite]\ninterface = \"sat0\"\n{more}");
        Table::new(&Config::parse("g.toml", &text).unwrap())
    }
    fn client(n: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], n))
    }
    fn server(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }
    fn head(from: SocketAddr, to: SocketAddr, flags: u8, seq: u32, payload: u32) -> Head {
        Head { from, to, seq, flags, payload }
    }

    #[test]
    fn only_what_would_be_split_is_observed_up_to_the_limit() {
        let mut t = table(
            "[split]\nports = [80]\nexclude = [\"192.0.2.9\"]\n[evidence]\nmode = \"shadow\"\nconnections = 3\n",
        );
        let mut syn = |from, to| t.take(1, true, &head(from, to, SYN, 1, 0));
        syn(client(1), server(443));
        syn(client(1), SocketAddr::from(([192, 0, 2, 9], 80)));
        (0..5).for_each(|n| syn(client(n), server(80)));
        syn(client(0), server(80));
        let r = t.report(true);
        assert_eq!((r.open, r.unobserved), (3, 2));
        // A reset ends one; segments of unknown connections open none.
        t.take(2, false, &head(server(80), client(0), RST | ACK, 1, 0));
        t.take(2, true, &head(client(9), server(80), ACK, 1, 10));
        assert_eq!(t.report(true).open, 2);
        // All others are given up in the end.
        t.take(UNANSWERED + 2, true, &head(client(9), server(80), ACK, 1, 10));
        let r = t.report(true);
        assert_eq!(
            (r.open, r.groups[0].arms[0].ended.unanswered, r.groups[0].arms[0].ended.reset),
            (0, 2, 1)
        );
        assert_eq!((r.groups.len(), r.groups[1].of.as_str()), (2, "192.0.2.0/24"));
    }

    #[test]
    fn prefixes_beyond_the_limit_count_for_the_whole() {
        let mut t = table("[evidence]\nmode = \"shadow\"\nprefixes = 2\n");
        for n in 0..5 {
            let to = SocketAddr::from(([192, 0, n, 1], 80));
            t.take(1, true, &head(client(1), to, SYN, 1, 0));
            t.take(2, false, &head(to, client(1), RST, 1, 0));
        }
        let r = t.report(true);
        assert_eq!((r.groups.len(), r.prefixes, r.unlisted), (3, 2, 3));
        assert_eq!(r.groups[0].arms[0].ended.reset, 5);
    }

    #[test]
    fn connections_that_were_not_treated_as_their_arm_says_are_counted() {
        let mut t = table("[evidence]\nmode = \"ab\"\n");
        for n in 1..400 {
            let (c, s) = (client(n), server(80));
            let first = Arm::of(&t.settings, c, s) == Arm::First;
            // Half of the announcements come first. Every tenth connection is treated the other way.
            let split = first != (n % 10 == 0);
            if split && n % 2 == 0 {
                t.split((c, s));
            }
            t.take(1, true, &head(c, s, SYN, 1, 0));
            if split && n % 2 == 1 {
                t.split((c, s));
            }
            t.take(2, false, &head(s, c, SYN | ACK, 1, 0));
            t.take(3, false, &head(s, c, FIN | ACK, 2, 0));
            t.take(4, true, &head(c, s, FIN | ACK, 2, 0));
        }
        let r = t.report(false);
        assert_eq!(r.groups[0].arms.iter().map(|a| a.ended.crossed).sum::<u64>(), 39);
        assert_eq!(r.groups[0].arms.iter().map(|a| a.ended.finished).sum::<u64>(), 399);
        assert!(t.early.is_empty() && t.open.is_empty());
    }
}

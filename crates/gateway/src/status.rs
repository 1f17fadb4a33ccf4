//! State and counters of a gateway, for people and programs.

use crate::classes::ClassStatus;
use crate::evidence::Evidence;
use crate::flow::Initiator;
use crate::metrics::Page;
use crate::prefixes::{self, PrefixStatus};
use crate::priority::PriorityStatus;
use crate::proof::{ProofState, ProofStatus};
use crate::repair::RepairStatus;
use crate::watch::RulesStatus;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Counts {
    /// Connections opened by hosts on the terrestrial side.
    pub from_hosts: u64,
    /// Connections opened from behind the link.
    pub from_link: u64,
    /// Connections that ended in order.
    pub finished: u64,
    /// Connections that were reset.
    pub aborted: u64,
    /// Connections that ended before they were established: the server refused or did not answer, or the gateway had no room.
    pub refused: u64,
    /// Connections ended by `limits.stuck` or `limits.idle`, the longest times without progress.
    pub stuck: u64,
    /// Times that `limits.flows` was reached and new connections were forwarded.
    pub overloads: u64,
    /// Connections over the link that started with the window of earlier ones.
    pub resumed: u64,
    /// Connections over the link whose SYN carried data.
    pub early_sent: u64,
    /// Connections over the link whose SYN carried data that the other gateway accepted.
    pub early_taken: u64,
    /// Connections from behind the link whose SYN carried data that was taken.
    pub early_received: u64,
    /// Connections over the link with `satellite.fallback-cc`, because low priority is not known to work on their path.
    pub fallback: u64,
    /// Panics that were contained: each is a defect of the gateway, and has ended a connection or half-open ones.
    pub defects: u64,
    /// Bytes passed on to the link.
    pub bytes_to_link: u64,
    /// Bytes passed on to hosts.
    pub bytes_to_hosts: u64,
    /// Bytes in relay buffers that were discarded when a connection was reset.
    pub bytes_lost: u64,
}

/// The state of one connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FlowStatus {
    /// Its number since the gateway's start, from 1.
    pub number: u64,
    /// The side that opened it.
    pub from: Initiator,
    /// Address and port of the client.
    pub client: SocketAddr,
    /// Address and port of the server.
    pub server: SocketAddr,
    /// Age, seconds.
    pub age: f64,
    /// Bytes passed on to the link.
    pub to_link: u64,
    /// Bytes passed on to hosts.
    pub to_hosts: u64,
    /// Bytes in the relay buffers.
    pub waiting: u64,
    /// Congestion window of the leg over the link, segments; 0 before it is open.
    pub cwnd: f64,
    /// Smoothed RTT of that leg, seconds; 0 before the first sample.
    pub srtt: f64,
    /// Segments with data sent over the link, including retransmissions.
    pub segments: u64,
    /// Segments retransmitted over the link.
    pub retransmitted: u64,
    /// Expirations of that leg's retransmission timer.
    pub timeouts: u64,
    /// Recoveries by duplicate or selective acknowledgements.
    pub recoveries: u64,
}

/// The state of a gateway.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Status {
    /// Its name.
    pub name: String,
    /// Version of the program.
    #[serde(default)]
    pub version: String,
    /// Process ID.
    pub pid: u32,
    /// The interfaces towards hosts; none if it only forwards ports.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// The interface towards the link.
    #[serde(default)]
    pub link: String,
    /// Time since its start, seconds.
    pub uptime: f64,
    /// Whether new connections are split; otherwise they are forwarded.
    pub admits: bool,
    /// Where its metrics are served, if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<SocketAddr>,
    /// The rules of nftables that lead packets to the gateway.
    pub rules: RulesStatus,
    /// Whether connections of hosts are known to reach the gateway, if any are intercepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<ProofStatus>,
    /// Connections refused because the process had no descriptor left.
    pub turned_away: u64,
    /// Number of open connections.
    pub flows: usize,
    /// Number of known gateways at the other end.
    pub peers: usize,
    /// Memory held by connections over the link, bytes.
    pub memory: u64,
    /// Times that a router reported a smaller MTU of the path over the link.
    pub paths_narrowed: u64,
    /// Packets dropped because the thread that has their connection did not take them in time.
    pub queues_full: u64,
    /// Lines of the logs that were dropped, because they could not be written in time or at all.
    #[serde(default)]
    pub lines_lost: u64,
    /// Low-priority probes dropped because too many waited until nothing else was to be sent at `satellite.rate`.
    #[serde(default)]
    pub probes_dropped: u64,
    /// The classes of connections, if the file has any; they share a link with a rate, which has one thread.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<ClassStatus>,
    /// Number of subscribers that have something to send, and wait because of their rate.
    #[serde(default)]
    pub held_subscribers: usize,
    /// Counters since the start.
    pub counts: Counts,
    /// The networks behind the link, by address.
    #[serde(default)]
    pub prefixes: Vec<PrefixStatus>,
    /// Up to 1000 connections, if requested.
    pub list: Vec<FlowStatus>,
    /// What was observed of connections, if they are observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// The path priority test, if the congestion control needs one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<PriorityStatus>,
    /// The repair of datagrams, if the file asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<RepairStatus>,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        let Self {
            from_hosts,
            from_link,
            finished,
            aborted,
            refused,
            stuck,
            overloads,
            resumed,
            early_sent,
            early_taken,
            early_received,
            fallback,
            defects,
            bytes_to_link,
            bytes_to_hosts,
            bytes_lost,
        } = self;
        for (sum, more) in [
            (from_hosts, other.from_hosts),
            (from_link, other.from_link),
            (finished, other.finished),
            (aborted, other.aborted),
            (refused, other.refused),
            (stuck, other.stuck),
            (overloads, other.overloads),
            (resumed, other.resumed),
            (early_sent, other.early_sent),
            (early_taken, other.early_taken),
            (early_received, other.early_received),
            (fallback, other.fallback),
            (defects, other.defects),
            (bytes_to_link, other.bytes_to_link),
            (bytes_to_hosts, other.bytes_to_hosts),
            (bytes_lost, other.bytes_lost),
        ] {
            *sum += more;
        }
    }
}

impl Status {
    /// Whether new connections are split, and are known to reach the gateway.
    #[must_use]
    pub fn works(&self) -> bool {
        self.admits && self.proof.as_ref().is_none_or(|p| p.state == ProofState::Works)
    }
    /// Adds the connections of another thread of the same gateway; fields that all threads share stay as they are. At most `most`
    /// connections are listed.
    pub(crate) fn add(&mut self, other: Self, most: usize) {
        self.flows += other.flows;
        self.memory += other.memory;
        self.paths_narrowed += other.paths_narrowed;
        self.probes_dropped += other.probes_dropped;
        self.counts += other.counts;
        prefixes::merge(&mut self.prefixes, other.prefixes);
        self.list.extend(other.list);
        self.list.sort_by_key(|f| f.number);
        self.list.truncate(most);
    }
    /// The counters as a page for Prometheus.
    #[must_use]
    pub fn metrics(&self) -> String {
        let mut page = Page::default();
        let gateway = ("gateway", self.name.as_str());
        let mut add = |name: &str, kind: &str, help: &str, value: f64| {
            page.family(&format!("gateway_{name}"), kind, help).sample(&[gateway], value);
        };
        let c = &self.counts;
        add("uptime_seconds", "gauge", "Time since the start", self.uptime);
        add("flows", "gauge", "Connections now", self.flows as f64);
        add(
            "admits",
            "gauge",
            "1 if new connections are split, 0 if they are forwarded",
            f64::from(u8::from(self.admits)),
        );
        add(
            "rules_in_place",
            "gauge",
            "1 if the rules of nftables are as the gateway has made them",
            f64::from(u8::from(self.rules.in_place)),
        );
        if let Some(proof) = &self.proof {
            add(
                "proven",
                "gauge",
                "1 if connections of hosts are known to reach the gateway",
                f64::from(u8::from(proof.state == ProofState::Works)),
            );
            add(
                "withdrawals_total",
                "counter",
                "Times that connections were forwarded unsplit because their packets did not pass",
                proof.withdrawals as f64,
            );
        }
        add(
            "held_subscribers",
            "gauge",
            "Subscribers that have something to send and wait because of their rate",
            self.held_subscribers as f64,
        );
        add("peers", "gauge", "Other gateways that are known", self.peers as f64);
        add("memory_bytes", "gauge", "Bytes held by connections over the link", self.memory as f64);
        for (name, help, value) in [
            ("paths_narrowed_total", "Reports of a smaller path MTU over the link", self.paths_narrowed),
            (
                "rules_restored_total",
                "Times that others had removed or changed the rules",
                self.rules.restored,
            ),
            ("turned_away_total", "Connections refused for want of descriptors", self.turned_away),
            ("queues_full_total", "Packets dropped between threads", self.queues_full),
            (
                "log_lines_lost_total",
                "Lines of the logs dropped because they could not be written",
                self.lines_lost,
            ),
            (
                "probes_dropped_total",
                "Low-priority probes dropped because too many waited",
                self.probes_dropped,
            ),
            ("from_hosts_total", "Connections opened by hosts", c.from_hosts),
            ("from_link_total", "Connections opened from behind the link", c.from_link),
            ("finished_total", "Connections that ended in order", c.finished),
            ("aborted_total", "Connections that were reset", c.aborted),
            (
                "refused_total",
                "Connections that ended before they were established: the server refused or did not answer, or the gateway had no room",
                c.refused,
            ),
            ("stuck_total", "Connections on which nothing moved for too long", c.stuck),
            ("overloads_total", "Times that limits.flows was reached", c.overloads),
            ("resumed_total", "Connections that began with a window learnt by earlier ones", c.resumed),
            ("early_sent_total", "Connections over the link whose SYN carried data", c.early_sent),
            (
                "early_taken_total",
                "Connections over the link whose SYN carried data that the other gateway accepted",
                c.early_taken,
            ),
            (
                "early_received_total",
                "Connections from the link whose SYN carried data that this gateway accepted",
                c.early_received,
            ),
            (
                "fallback_total",
                "Connections with the fallback control, on paths that are not trusted",
                c.fallback,
            ),
            ("defects_total", "Panics that were contained: defects of the gateway", c.defects),
            ("to_link_bytes_total", "Bytes passed on to the link", c.bytes_to_link),
            ("to_hosts_bytes_total", "Bytes passed on to hosts", c.bytes_to_hosts),
            ("lost_bytes_total", "Bytes in relay buffers that were discarded by a reset", c.bytes_lost),
        ] {
            add(name, "counter", help, value as f64);
        }
        page.family("gateway_info", "gauge", "The version of the program").sample(
            &[gateway, ("version", &self.version), ("hosts", &self.hosts.join(",")), ("link", &self.link)],
            1,
        );
        if !self.classes.is_empty() {
            let mut family = page.family(
                "gateway_class_sent_bytes_total",
                "counter",
                "Bytes of packets over the link by class",
            );
            for c in &self.classes {
                family.sample(&[gateway, ("class", &c.name)], c.sent);
            }
        }
        prefixes::metrics(&self.prefixes, &self.name, &mut page);
        if let Some(evidence) = &self.evidence {
            evidence.metrics(&self.name, &mut page);
        }
        if let Some(priority) = &self.priority {
            priority.metrics(&self.name, &mut page);
        }
        if let Some(repair) = &self.repair {
            repair.metrics(&self.name, &mut page);
        }
        page.text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::evidence::{self, Comparison, Verdict};
    use crate::priority::{self, Finding, PathStatus};
    use std::collections::BTreeSet;

    const DASHBOARD: &str = include_str!("../../../packaging/grafana/skyhaul-gateway.json");
    /// Metrics without a panel.
    const WITHOUT: [&str; 0] = [];

    /// The metrics of a gateway that does everything that has metrics.
    fn page() -> String {
        let file =
            "[terrestrial]\ninterface = \"a\"\n[satellite]\ninterface = \"b\"\n[evidence]\nmode = \"ab\"\n";
        let mut evidence = evidence::observe_bytes(&[], &Config::parse("g.toml", file).expect("is good"));
        evidence.groups[0].comparisons.push(Comparison {
            of: "goodput".into(),
            class: "all".into(),
            n: [20, 20],
            ratio: 1.0,
            pointwise: [0.9, 1.1],
            lasting: [0.8, 1.2],
            verdict: Verdict::Undecided,
        });
        let verdict = priority::Verdict::Honoured;
        let last = Finding { verdict, why: None, counts: priority::Counts::default() };
        let prefix = PrefixStatus {
            prefix: "192.0.2.0/24".into(),
            flows: 0,
            connections: 0,
            srtt: 0.0,
            to_link: 0,
            to_hosts: 0,
            goodput_to_link: 0.0,
            goodput_to_hosts: 0.0,
            segments: 0,
            retransmitted: 0,
            loss: 0.0,
            timeouts: 0,
        };
        let path = PathStatus { gateway: 1, verdict, trusted: true, age: 1.0, last };
        Status {
            name: "near".into(),
            version: "1".into(),
            pid: 1,
            hosts: vec!["eth0.100".into(), "eth0.101".into()],
            link: "eth1.200".into(),
            uptime: 0.0,
            admits: true,
            metrics: None,
            rules: RulesStatus::default(),
            proof: Some(ProofStatus::default()),
            turned_away: 0,
            flows: 0,
            peers: 0,
            memory: 0,
            paths_narrowed: 0,
            queues_full: 0,
            lines_lost: 0,
            probes_dropped: 0,
            classes: vec![ClassStatus { name: "ssh".into(), weight: 1, sent: 1 }],
            held_subscribers: 0,
            counts: Counts::default(),
            prefixes: vec![prefix],
            list: Vec::new(),
            evidence: Some(evidence),
            priority: Some(PriorityStatus { fallback: "cubic".into(), paths: vec![path] }),
            repair: Some(RepairStatus::default()),
        }
        .metrics()
    }

    #[test]
    fn every_metric_has_a_panel_and_every_panel_a_metric() {
        let page = page();
        let served: BTreeSet<_> =
            page.lines().filter(|l| !l.starts_with('#')).filter_map(|l| l.split('{').next()).collect();
        let described: BTreeSet<_> =
            page.lines().filter_map(|l| l.strip_prefix("# TYPE ")?.split(' ').next()).collect();
        assert_eq!(served, described, "each has a value and a type");
        let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).expect("JSON");
        let panels = dashboard["panels"].as_array().expect("panels");
        let expressions = panels.iter().filter_map(|p| p["targets"].as_array()).flatten();
        let expressions: Vec<&str> =
            expressions.map(|t| t["expr"].as_str().expect("an expression")).collect();
        let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let all = expressions.join(" ");
        let asked: BTreeSet<_> = all.split(|c| !part(c)).filter(|w| w.starts_with("skyhaul_")).collect();
        let shown: BTreeSet<_> = asked.iter().copied().chain(WITHOUT).collect();
        assert_eq!(shown, served);
        // Labels that a panel asks for are there, and every panel has a place of its own.
        for e in &expressions {
            for label in e.match_indices("=\"").map(|(at, _)| &e[at..]) {
                let value = label.trim_start_matches("=\"").split('"').next().expect("a value");
                assert!(
                    page.contains(&format!("=\"{value}\""))
                        || ["transfer time", "time to first byte"].contains(&value),
                    "{value} in {e}"
                );
            }
        }
        let mut ids = BTreeSet::new();
        assert!(panels.iter().all(|p| ids.insert(p["id"].as_u64())), "each has an identity of its own");
    }
}

//! Totals of connections over the link for each network behind the link: an operator sees which networks are slow or lossy.

use crate::metrics::Page;
use crate::network::Network;
use serde::{Deserialize, Deserializer, Serialize};
use skyhaul_base::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

/// The greatest value of `metrics.prefixes`.
const MOST: usize = 4096;
/// The name under which networks beyond `metrics.prefixes` are counted together.
const OTHERS: &str = "others";
/// Number of sweeps, one a second, over which goodput is measured.
const SPAN: usize = 10;

/// The section `[metrics]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct MetricsConfig {
    /// Where the page for Prometheus is served; `None`: nowhere, unless the command line says so.
    #[serde(deserialize_with = "listen")]
    pub listen: Option<SocketAddr>,
    /// Length of the prefixes of IPv4 networks behind the link, bits.
    pub prefix_v4: u8,
    /// Length of the prefixes of IPv6 networks behind the link, bits.
    pub prefix_v6: u8,
    /// Maximum number of networks that are told apart; connections with others are counted together.
    pub prefixes: usize,
}

impl Default for MetricsConfig {
    fn default() -> Self {
        Self { listen: None, prefix_v4: 24, prefix_v6: 48, prefixes: 256 }
    }
}

fn listen<'de, D: Deserializer<'de>>(d: D) -> Result<Option<SocketAddr>, D::Error> {
    let text = String::deserialize(d)?;
    text.parse().map(Some).map_err(|_| {
        let write = "write \"127.0.0.1:9101\" or \"[::1]:9101\"; port 0 picks a free one";
        serde::de::Error::custom(format!("{text:?} is not an address with a port: {write}"))
    })
}

impl MetricsConfig {
    /// The first key that is wrong, and what to write.
    pub(crate) fn wrong(&self) -> Option<(&'static str, String)> {
        if self.prefix_v4 > 32 {
            return Some(("metrics.prefix-v4", "write 0 to 32, in bits".into()));
        }
        if self.prefix_v6 > 128 {
            return Some(("metrics.prefix-v6", "write 0 to 128, in bits".into()));
        }
        let within = (1..=MOST).contains(&self.prefixes);
        (!within).then(|| ("metrics.prefixes", format!("write 1 to {MOST}")))
    }
    fn network(&self, address: IpAddr) -> Network {
        Network::around(address, if address.is_ipv6() { self.prefix_v6 } else { self.prefix_v4 })
    }
}

/// The totals of one connection so far, or of several: bytes, segments, and timeouts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sample {
    pub(crate) to_link: u64,
    pub(crate) to_hosts: u64,
    pub(crate) segments: u64,
    pub(crate) retransmitted: u64,
    pub(crate) timeouts: u64,
    /// Smoothed RTT over the link; of several connections that of the last one.
    pub(crate) srtt: Option<Duration>,
}

/// A network behind the link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PrefixStatus {
    /// The network, with a prefix as `[metrics]` says; "others": all beyond `metrics.prefixes`.
    pub prefix: String,
    /// Open connections.
    pub flows: usize,
    /// Connections since the start, the open ones included.
    pub connections: u64,
    /// Mean of the smoothed RTTs of open connections over the link, or the smoothed RTT of the last connection if none is open; seconds,
    /// 0 before the first measurement.
    pub srtt: f64,
    /// Bytes passed on to the link.
    pub to_link: u64,
    /// Bytes passed on to hosts.
    pub to_hosts: u64,
    /// Goodput to the link over the last ten seconds, bit/s.
    pub goodput_to_link: f64,
    /// Goodput to hosts over the last ten seconds, bit/s.
    pub goodput_to_hosts: f64,
    /// Segments with data sent over the link, including retransmissions.
    pub segments: u64,
    /// Segments retransmitted over the link.
    pub retransmitted: u64,
    /// Share of the segments that was retransmitted: an estimate of the loss, since some retransmissions are needless.
    pub loss: f64,
    /// Expirations of retransmission timers.
    pub timeouts: u64,
}

/// The counts of one network.
#[derive(Clone, Debug, Default)]
struct Entry {
    flows: usize,
    connections: u64,
    /// Totals of the connections that have ended.
    ended: Sample,
    /// The last sweeps: time, and bytes to the link and to hosts, of all connections since the start.
    marks: VecDeque<(Instant, [u64; 2])>,
    /// Totals of the open connections at the last sweep.
    open: Sample,
    /// Sum of the smoothed RTTs of open connections, and the number of open connections that have one.
    srtts: (Duration, u32),
}

/// All networks behind the link.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prefixes {
    config: MetricsConfig,
    known: BTreeMap<Network, Entry>,
    others: Entry,
}

impl Sample {
    fn add(&mut self, other: Self) {
        self.to_link += other.to_link;
        self.to_hosts += other.to_hosts;
        self.segments += other.segments;
        self.retransmitted += other.retransmitted;
        self.timeouts += other.timeouts;
        self.srtt = other.srtt.or(self.srtt);
    }
}

impl Prefixes {
    pub(crate) fn new(config: &MetricsConfig) -> Self {
        Self { config: config.clone(), ..Self::default() }
    }
    fn entry(&mut self, address: IpAddr) -> &mut Entry {
        let network = self.config.network(address);
        if self.known.len() >= self.config.prefixes && !self.known.contains_key(&network) {
            return &mut self.others;
        }
        self.known.entry(network).or_default()
    }
    fn each(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.known.values_mut().chain([&mut self.others])
    }
    /// A connection with this address behind the link begins.
    pub(crate) fn begins(&mut self, behind: IpAddr) {
        let entry = self.entry(behind);
        entry.flows += 1;
        entry.connections += 1;
    }
    /// A connection with this address behind the link ends, with these totals.
    pub(crate) fn ends(&mut self, behind: IpAddr, sample: Sample) {
        let entry = self.entry(behind);
        entry.flows = entry.flows.saturating_sub(1);
        entry.ended.add(sample);
    }
    /// Notes the totals of all open connections, once a second.
    pub(crate) fn sweep(&mut self, now: Instant, open: impl Iterator<Item = (IpAddr, Sample)>) {
        self.count_open(open);
        for e in self.each() {
            e.marks.push_back((now, e.bytes()));
            if e.marks.len() > SPAN + 1 {
                e.marks.pop_front();
            }
        }
    }
    fn count_open(&mut self, open: impl Iterator<Item = (IpAddr, Sample)>) {
        self.each().for_each(|e| (e.open, e.srtts) = Default::default());
        for (behind, sample) in open {
            let entry = self.entry(behind);
            entry.open.add(sample);
            if let Some(srtt) = sample.srtt {
                entry.srtts = (entry.srtts.0 + srtt, entry.srtts.1 + 1);
            }
        }
    }
    /// The state of all networks, given the totals of open connections.
    pub(crate) fn status(
        &self,
        now: Instant,
        open: impl Iterator<Item = (IpAddr, Sample)>,
    ) -> Vec<PrefixStatus> {
        let mut all = self.clone();
        all.count_open(open);
        let known = all.known.iter().map(|(network, e)| e.status(now, network.to_string()));
        let others = (all.others.connections > 0).then(|| all.others.status(now, OTHERS.into()));
        known.chain(others).collect()
    }
}

impl Entry {
    fn bytes(&self) -> [u64; 2] {
        [self.ended.to_link + self.open.to_link, self.ended.to_hosts + self.open.to_hosts]
    }
    fn status(&self, now: Instant, prefix: String) -> PrefixStatus {
        let mut all = self.ended;
        all.add(self.open);
        let (at, before) = self.marks.front().copied().unwrap_or((now, [0; 2]));
        let seconds = (now - at).as_secs_f64();
        let rate = |bytes: u64, before: u64| {
            if seconds > 0.0 { bytes.saturating_sub(before) as f64 * 8.0 / seconds } else { 0.0 }
        };
        let ([to_link, to_hosts], [link_before, hosts_before]) = (self.bytes(), before);
        let srtt = match self.srtts {
            (_, 0) => all.srtt.map_or(0.0, Duration::as_secs_f64),
            (sum, n) => sum.as_secs_f64() / f64::from(n),
        };
        PrefixStatus {
            prefix,
            flows: self.flows,
            connections: self.connections,
            srtt,
            to_link: all.to_link,
            to_hosts: all.to_hosts,
            goodput_to_link: rate(to_link, link_before),
            goodput_to_hosts: rate(to_hosts, hosts_before),
            segments: all.segments,
            retransmitted: all.retransmitted,
            loss: share(all.retransmitted, all.segments),
            timeouts: all.timeouts,
        }
    }
}

fn share(of: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { of as f64 / all as f64 }
}

/// Adds the state of the networks in another thread.
pub(crate) fn merge(into: &mut Vec<PrefixStatus>, other: Vec<PrefixStatus>) {
    for o in other {
        let Some(p) = into.iter_mut().find(|p| p.prefix == o.prefix) else {
            into.push(o);
            continue;
        };
        // The weight is the number of open connections. The last RTT of a network without open connections counts as one connection.
        let weight = |x: &PrefixStatus| if x.srtt > 0.0 { x.flows.max(1) as f64 } else { 0.0 };
        let (a, b) = (weight(p), weight(&o));
        if a + b > 0.0 {
            p.srtt = (p.srtt * a + o.srtt * b) / (a + b);
        }
        p.flows += o.flows;
        p.connections += o.connections;
        p.to_link += o.to_link;
        p.to_hosts += o.to_hosts;
        p.goodput_to_link += o.goodput_to_link;
        p.goodput_to_hosts += o.goodput_to_hosts;
        p.segments += o.segments;
        p.retransmitted += o.retransmitted;
        p.loss = share(p.retransmitted, p.segments);
        p.timeouts += o.timeouts;
    }
}

/// Adds the metrics of all networks to the page for Prometheus.
pub(crate) fn metrics(all: &[PrefixStatus], gateway: &str, page: &mut Page) {
    type Value = fn(&PrefixStatus) -> f64;
    let quantities: [(&str, &str, &str, Value); 10] = [
        ("flows", "gauge", "Connections now", |p| p.flows as f64),
        ("connections_total", "counter", "Connections since the start", |p| p.connections as f64),
        ("rtt_seconds", "gauge", "Mean smoothed RTT over the link", |p| p.srtt),
        ("loss_ratio", "gauge", "Share of the segments over the link that was retransmitted", |p| p.loss),
        ("segments_total", "counter", "Segments sent over the link", |p| p.segments as f64),
        ("retransmitted_total", "counter", "Segments retransmitted over the link", |p| {
            p.retransmitted as f64
        }),
        ("timeouts_total", "counter", "Expirations of retransmission timers", |p| p.timeouts as f64),
        ("to_link_bytes_total", "counter", "Bytes passed on to the link", |p| p.to_link as f64),
        ("to_hosts_bytes_total", "counter", "Bytes passed on to hosts", |p| p.to_hosts as f64),
        ("goodput_bits_per_second", "gauge", "Goodput in both directions over the last ten seconds", |p| {
            p.goodput_to_link + p.goodput_to_hosts
        }),
    ];
    if all.is_empty() {
        return;
    }
    for (name, kind, help, value) in quantities {
        let (name, help) = (format!("gateway_prefix_{name}"), format!("By network behind the link: {help}"));
        let mut family = page.family(&name, kind, &help);
        for p in all {
            family.sample(&[("gateway", gateway), ("prefix", &p.prefix)], value(p));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }
    fn sample(to_link: u64, segments: u64, retransmitted: u64, ms: u64) -> Sample {
        let srtt = Some(Duration::from_millis(ms));
        Sample { to_link, to_hosts: 2 * to_link, segments, retransmitted, timeouts: 1, srtt }
    }

    #[test]
    fn open_and_ended_connections_count_for_their_network() {
        let mut all = Prefixes::default();
        let (a, b, c): (IpAddr, IpAddr, IpAddr) =
            ([192, 0, 2, 1].into(), [192, 0, 2, 200].into(), "2001:db8::1".parse().expect("an address"));
        [a, b, c].into_iter().for_each(|x| all.begins(x));
        all.ends(a, sample(1000, 90, 1, 100));
        all.sweep(at(1), [(b, sample(0, 0, 0, 300))].into_iter());
        let status =
            all.status(at(11), [(b, sample(500_000, 10, 4, 500)), (c, Sample::default())].into_iter());
        assert_eq!(
            status.iter().map(|p| p.prefix.as_str()).collect::<Vec<_>>(),
            ["192.0.2.0/24", "2001:db8::/48"]
        );
        let p = &status[0];
        assert_eq!((p.flows, p.connections, p.to_link, p.to_hosts), (1, 2, 501_000, 1_002_000));
        assert_eq!((p.segments, p.retransmitted, p.timeouts, p.loss), (100, 5, 2, 0.05));
        assert_eq!((p.srtt, p.goodput_to_link, p.goodput_to_hosts), (0.5, 400_000.0, 800_000.0));
        assert_eq!((status[1].srtt, status[1].loss), (0.0, 0.0));
        // The last one's RTT stays known.
        all.ends(b, sample(500_000, 10, 4, 500));
        assert_eq!(all.status(at(12), std::iter::empty())[0].srtt, 0.5);
    }

    #[test]
    fn too_many_networks_are_counted_together() {
        let mut all = Prefixes::default();
        let most = MetricsConfig::default().prefixes;
        for n in 0..most as u32 + 3 {
            all.begins(std::net::Ipv4Addr::from_bits(n << 8).into());
        }
        let status = all.status(at(0), std::iter::empty());
        assert_eq!(status.len(), most + 1);
        assert_eq!((status[most].prefix.as_str(), status[most].connections), (OTHERS, 3));
    }

    #[test]
    fn a_file_chooses_how_networks_are_told_apart() {
        let config = MetricsConfig { prefix_v4: 16, prefix_v6: 0, prefixes: 2, ..MetricsConfig::default() };
        let mut all = Prefixes::new(&config);
        for text in ["192.0.2.1", "192.0.3.1", "2001:db8::1", "fd00::1", "198.51.100.1"] {
            all.begins(text.parse().expect("an address"));
        }
        let status = all.status(at(0), std::iter::empty());
        let counted: Vec<_> = status.iter().map(|p| (p.prefix.as_str(), p.connections)).collect();
        assert_eq!(counted, [("192.0.0.0/16", 2), ("::/0", 2), (OTHERS, 1)]);
    }

    #[test]
    fn threads_add_up() {
        let mut all = Prefixes::default();
        let a: IpAddr = [192, 0, 2, 1].into();
        all.begins(a);
        let one = |ms| all.status(at(0), [(a, sample(1000, 10, 1, ms))].into_iter());
        let mut sum = one(100);
        merge(&mut sum, one(300));
        let [p] = &sum[..] else { panic!("{sum:?}") };
        assert_eq!((p.flows, p.segments, p.retransmitted, p.loss), (2, 20, 2, 0.1));
        assert!((p.srtt - 0.2).abs() < 1e-9, "{p:?}");
    }
}

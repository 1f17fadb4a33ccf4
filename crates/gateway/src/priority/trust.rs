//! Which gateways are reached by paths that honour low priority.

use super::judge::Verdict;
use super::tester::Finding;
use crate::metrics::Page;
use serde::{Deserialize, Serialize};
use skyhaul_base::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of gateways whose results are kept, and of gateways that wait to be tested.
const MOST: usize = 256;

/// What is known of the path to one gateway.
#[derive(Clone, Debug)]
struct Record {
    /// The last test.
    finding: Finding,
    /// When it ended.
    tested: Instant,
    /// The verdict that holds: a test without a result leaves an earlier one as it is.
    verdict: Verdict,
    /// When the verdict expires.
    until: Instant,
}

#[derive(Debug, Default)]
struct TrustState {
    records: BTreeMap<NonZeroU32, Record>,
    /// Gateways that wait to be tested, each with a host behind it.
    met: VecDeque<(NonZeroU32, IpAddr)>,
    /// Congestion control on paths that are not trusted.
    fallback: String,
    /// Lines for the log.
    news: VecDeque<String>,
}

impl TrustState {
    fn line(&self, gateway: NonZeroU32, verdict: Verdict, finding: &Finding) -> String {
        let c = &finding.counts;
        let fallback = &self.fallback;
        match verdict {
            Verdict::Honoured => format!(
                "the path to gateway {gateway:08x} honours low priority: low-priority probes came second in {} of {} pairs, and \
                 were the lost ones of {} of {}",
                c.low_second, c.pairs, c.low_lost, c.broken
            ),
            Verdict::Ignored => format!(
                "the path to gateway {gateway:08x} ignores low priority: low-priority probes came second in {} of {} pairs; \
                 connections use {fallback}",
                c.low_second, c.pairs
            ),
            Verdict::Unknown => format!(
                "the path to gateway {gateway:08x} could not be tested for low priority: {}; connections use {fallback}",
                finding.why.as_deref().unwrap_or("no reason is known")
            ),
        }
    }
}

/// The results of all tests, shared by the testing thread and the gateway.
#[derive(Clone, Debug)]
pub(crate) struct Trust {
    inner: Arc<Mutex<TrustState>>,
    /// For how long a result is valid.
    valid: Duration,
}

/// Test results for the path to one gateway.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PathStatus {
    /// The number that the gateway states in handshakes.
    pub gateway: u32,
    /// The result that holds now.
    pub verdict: Verdict,
    /// Whether low-priority packets are sent; otherwise the fallback control runs.
    pub trusted: bool,
    /// Time since the last test, seconds.
    pub age: f64,
    /// The last test.
    pub last: Finding,
}

/// The state of the path priority test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PriorityStatus {
    /// Congestion control on paths that are not trusted.
    pub fallback: String,
    /// The paths that were tested.
    pub paths: Vec<PathStatus>,
}

impl PriorityStatus {
    /// Whether each path is trusted, on the page for Prometheus.
    pub(crate) fn metrics(&self, name: &str, page: &mut Page) {
        let help = "1 if low-priority packets are sent to this gateway, 0 if the fallback control runs";
        let mut trusted = page.family("gateway_path_trusted", "gauge", help);
        for p in &self.paths {
            let peer = format!("{:08x}", p.gateway);
            trusted.sample(&[("gateway", name), ("peer", &peer)], u8::from(p.trusted));
        }
    }
}

impl Trust {
    pub(crate) fn new(valid: Duration, fallback: String) -> Self {
        Self { inner: Arc::new(Mutex::new(TrustState { fallback, ..TrustState::default() })), valid }
    }
    /// Switches to another control on paths that are not trusted.
    pub(crate) fn reconfigure(&self, fallback: &str) {
        self.inner().fallback = fallback.into();
    }
    fn inner(&self) -> MutexGuard<'_, TrustState> {
        // Each call leaves the state consistent, so that a lock poisoned by a panic can be used.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether low-priority packets may be sent on the path to a gateway.
    pub(crate) fn allows(&self, now: Instant, gateway: NonZeroU32) -> bool {
        let inner = self.inner();
        inner.records.get(&gateway).is_some_and(|r| r.verdict == Verdict::Honoured && now < r.until)
    }
    /// A connection has found a gateway in front of a host: it is to be tested, unless a valid result is known.
    pub(crate) fn meet(&self, now: Instant, gateway: NonZeroU32, host: IpAddr) {
        let mut inner = self.inner();
        let known = |r: &Record| r.verdict != Verdict::Unknown && now < r.until;
        if !inner.records.get(&gateway).is_some_and(known)
            && inner.met.len() < MOST
            && !inner.met.contains(&(gateway, host))
        {
            inner.met.push_back((gateway, host));
        }
    }
    /// The next gateway that a connection has found.
    pub(crate) fn next_met(&self) -> Option<(NonZeroU32, IpAddr)> {
        self.inner().met.pop_front()
    }
    /// A test has ended.
    pub(crate) fn found(&self, now: Instant, gateway: NonZeroU32, finding: Finding) {
        let mut inner = self.inner();
        if inner.records.len() >= MOST && !inner.records.contains_key(&gateway) {
            inner.records.retain(|_, r| now < r.until);
        }
        if inner.records.len() >= MOST && !inner.records.contains_key(&gateway) {
            return;
        }
        let before = inner.records.get(&gateway).map(|r| (r.verdict, r.until));
        let (verdict, until) = match (finding.verdict, before.filter(|(_, until)| now < *until)) {
            // Without a result, an earlier one holds until it expires.
            (Verdict::Unknown, Some(valid)) => valid,
            (verdict, _) => (verdict, now + self.valid),
        };
        if before.is_none_or(|(before, _)| before != verdict) && inner.news.len() < MOST {
            let line = inner.line(gateway, verdict, &finding);
            inner.news.push_back(line);
        }
        inner.records.insert(gateway, Record { finding, tested: now, until, verdict });
    }
    /// The next line for the log.
    pub(crate) fn next_line(&self) -> Option<String> {
        self.inner().news.pop_front()
    }
    /// The state of all paths.
    pub(crate) fn status(&self, now: Instant) -> PriorityStatus {
        let inner = self.inner();
        let path = |(gateway, r): (&NonZeroU32, &Record)| PathStatus {
            gateway: gateway.get(),
            verdict: if now < r.until { r.verdict } else { Verdict::Unknown },
            trusted: r.verdict == Verdict::Honoured && now < r.until,
            age: now.since(r.tested).as_secs_f64(),
            last: r.finding.clone(),
        };
        PriorityStatus { fallback: inner.fallback.clone(), paths: inner.records.iter().map(path).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::judge::Counts;
    use super::*;

    #[test]
    fn a_result_holds_until_it_expires_or_another_comes() {
        let trust = Trust::new(Duration::from_secs(100), "cubic".into());
        let g = NonZeroU32::new(0xbeef).unwrap();
        let t = |n| Instant::ZERO + Duration::from_secs(n);
        let finding = |verdict| Finding { verdict, why: None, counts: Counts::default() };
        assert!(!trust.allows(t(0), g), "not tested");
        trust.meet(t(1), g, [192, 0, 2, 1].into());
        trust.meet(t(1), g, [192, 0, 2, 1].into());
        assert!(trust.next_met().is_some() && trust.next_met().is_none());
        trust.found(t(0), g, finding(Verdict::Honoured));
        trust.meet(t(1), g, [192, 0, 2, 1].into());
        assert!(trust.next_met().is_none(), "known");
        trust.found(t(60), g, finding(Verdict::Unknown));
        assert!(trust.allows(t(99), g) && !trust.allows(t(100), g));
        assert!(trust.next_line().is_some_and(|l| l.contains("gateway 0000beef honours low priority")));
        assert_eq!(trust.next_line(), None);
        trust.found(t(70), g, finding(Verdict::Ignored));
        assert!(!trust.allows(t(71), g));
        assert!(trust.next_line().is_some_and(|l| l.ends_with("connections use cubic")));
        let s = trust.status(t(80));
        assert_eq!((s.paths[0].verdict, s.paths[0].trusted, s.paths[0].age), (Verdict::Ignored, false, 10.0));
        // Made-up gateway numbers do not fill the memory.
        for n in 1..1000 {
            trust.found(t(80), NonZeroU32::new(n).unwrap(), finding(Verdict::Ignored));
        }
        assert_eq!(trust.status(t(80)).paths.len(), MOST);
    }
}

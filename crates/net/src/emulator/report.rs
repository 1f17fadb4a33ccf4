//! What an emulation did, and whether its results may be trusted.

use super::accuracy::{Accuracy, MAX_LATE_SHARE, MAX_P99, MAX_RATE_ERROR};
use skyhaul_base::{Duration, Rate};
use skyhaul_path::Counters;

/// What one link has counted.
#[derive(Clone, Debug)]
pub struct LinkCount {
    /// Its name and direction: `sat.forward`.
    pub name: String,
    /// Packets by class and cause of loss.
    pub counters: Counters,
    /// Packets waiting now.
    pub queue: u32,
}

/// How one direction fared.
#[derive(Clone, Debug)]
pub struct LaneReport {
    /// `forward` or `reverse`.
    pub name: &'static str,
    /// Its links in the order in which packets meet them.
    pub links: Vec<LinkCount>,
    /// The slowest link's rate at the end.
    pub rate: Option<Rate>,
    /// Packets released at the end of the last link.
    pub releases: u64,
    /// How late releases were: median.
    pub p50: Duration,
    /// 99th percentile.
    pub p99: Duration,
    /// The worst.
    pub max: Duration,
    /// Releases more than a millisecond late ([`super::LATE`]).
    pub late: u64,
    /// Relative error of the rate, measured where packets followed each other without a gap; `None` if they hardly did.
    pub rate_error: Option<f64>,
    /// What was no IP packet, or of link scope: it does not enter the first link.
    pub not_carried: u64,
    /// Packets that the outgoing interface refused.
    pub refused: u64,
    /// Packets that the kernel dropped before they could be read, since the interface's queue was full.
    pub tun_drops: u64,
    /// Processor time.
    pub cpu: Duration,
    /// The thread ran with real-time priority.
    pub realtime: bool,
}

impl LaneReport {
    pub(super) fn measure(&mut self, a: &Accuracy) {
        self.releases = a.releases();
        (self.p50, self.p99, self.max) = (a.quantile(0.5), a.quantile(0.99), a.max());
        self.late = a.late();
        self.rate_error = a.rate_error();
    }

    /// Why the direction is not to be trusted; empty if it is.
    #[must_use]
    pub fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        let mut doubt = |text: String| doubts.push(format!("{}: {text}", self.name));
        if self.p99 > MAX_P99 {
            doubt(format!("1 % of the packets left at least {} late (limit {})", ms(self.p99), ms(MAX_P99)));
        }
        let share = self.late as f64 / self.releases.max(1) as f64;
        if share > MAX_LATE_SHARE {
            doubt(format!(
                "{:.2} % of the packets left more than 1 ms late (limit {} %)",
                share * 100.0,
                MAX_LATE_SHARE * 100.0
            ));
        }
        if let Some(e) = self.rate_error.filter(|e| e.abs() > MAX_RATE_ERROR) {
            doubt(format!("the rate was {:+.2} % off (limit {} %)", e * 100.0, MAX_RATE_ERROR * 100.0));
        }
        if self.tun_drops > 0 {
            doubt(format!("the kernel dropped {} packets before they could be read", self.tun_drops));
        }
        if self.refused > 0 {
            doubt(format!("the interface at the end refused {} packets", self.refused));
        }
        doubts
    }
}

/// What an emulation did.
#[derive(Clone, Debug)]
pub struct Report {
    /// How long it ran.
    pub duration: Duration,
    /// Data's direction, then the other.
    pub lanes: [LaneReport; 2],
}

impl Report {
    /// Why the run is not to be trusted; empty if it is.
    #[must_use]
    pub fn doubts(&self) -> Vec<String> {
        let mut doubts: Vec<String> = self.lanes.iter().flat_map(LaneReport::doubts).collect();
        let entered = |l: &LaneReport| l.links.first().map_or(0, |first| first.counters.total().offered);
        if self.lanes.iter().all(|l| entered(l) == 0) {
            doubts
                .push("no packet entered the links in either direction, so nothing was measured".to_owned());
        }
        doubts
    }
}

fn ms(d: Duration) -> String {
    format!("{:.3} ms", d.as_secs_f64() * 1e3)
}

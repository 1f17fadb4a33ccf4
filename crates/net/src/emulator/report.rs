//! The report of an emulation, and whether its results are trustworthy.

use super::accuracy::{Accuracy, MAX_LATE_SHARE, MAX_P99, MAX_RATE_ERROR};
use skyhaul_base::{Duration, Rate};
use skyhaul_path::Counters;

/// Counters of one link.
#[derive(Clone, Debug)]
pub struct LinkCount {
    /// Its name and direction: `sat.forward`.
    pub name: String,
    /// Packets by class and cause of loss.
    pub counters: Counters,
    /// Packets in the queue now.
    pub queue: u32,
}

/// Report on one direction.
#[derive(Clone, Debug)]
pub struct LaneReport {
    /// `forward` or `reverse`.
    pub name: &'static str,
    /// Its links, in the order in which the routes of the flow groups first use them.
    pub links: Vec<LinkCount>,
    /// Rate of the slowest link at the time of the report.
    pub rate: Option<Rate>,
    /// Packets released at the end of the last link.
    pub releases: u64,
    /// Median lateness of releases.
    pub p50: Duration,
    /// 99th percentile of lateness.
    pub p99: Duration,
    /// Maximum lateness.
    pub max: Duration,
    /// Releases more than a millisecond late ([`super::LATE`]).
    pub late: u64,
    /// Relative error of the rate, measured over back-to-back packets; `None` with too few of them.
    pub rate_error: Option<f64>,
    /// Packets that do not enter the first link: not IP, or of link scope.
    pub not_carried: u64,
    /// Packets refused by the outgoing interface.
    pub refused: u64,
    /// Packets that the kernel dropped before they could be read, because the interface's queue was full; counted only at the
    /// end of the emulation, and 0 before.
    pub tun_drops: u64,
    /// CPU time of the thread.
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

    /// Reasons to distrust this direction; empty if there are none.
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
            doubt(format!("the kernel dropped {} before skyhaul could read them", packets(self.tun_drops)));
        }
        if self.refused > 0 {
            doubt(format!("the interface at the end refused {}", packets(self.refused)));
        }
        doubts
    }
}

/// Report on an emulation.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its duration.
    pub duration: Duration,
    /// The data direction, then the other.
    pub lanes: [LaneReport; 2],
}

impl Report {
    /// Reasons to distrust the run; empty if there are none.
    #[must_use]
    pub fn doubts(&self) -> Vec<String> {
        let mut doubts: Vec<String> = self.lanes.iter().flat_map(LaneReport::doubts).collect();
        // Routes may begin at different links, or have none.
        let idle =
            |l: &LaneReport| l.releases == 0 && l.links.iter().all(|link| link.counters.total().offered == 0);
        if self.lanes.iter().all(idle) {
            doubts
                .push("no packet entered the links in either direction, so nothing was measured".to_owned());
        }
        doubts
    }
}

/// "1 packet", "2 packets".
#[must_use]
pub fn packets(n: u64) -> String {
    format!("{n} {}", if n == 1 { "packet" } else { "packets" })
}

fn ms(d: Duration) -> String {
    format!("{:.3} ms", d.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(offered: &[u64]) -> LaneReport {
        let link = |&offered: &u64| {
            let mut counters = Counters::default();
            counters.kinds[0].offered = offered;
            LinkCount { name: "link".into(), counters, queue: 0 }
        };
        LaneReport {
            name: "forward",
            links: offered.iter().map(link).collect(),
            rate: None,
            releases: 0,
            p50: Duration::ZERO,
            p99: Duration::ZERO,
            max: Duration::ZERO,
            late: 0,
            rate_error: None,
            not_carried: 0,
            refused: 0,
            tun_drops: 0,
            cpu: Duration::ZERO,
            realtime: false,
        }
    }

    #[test]
    fn a_run_without_packets_is_doubted_whatever_link_a_route_begins_at() {
        let doubts = |forward: LaneReport| {
            Report { duration: Duration::ZERO, lanes: [forward, lane(&[0, 0])] }.doubts().len()
        };
        assert_eq!([doubts(lane(&[0, 0])), doubts(lane(&[])), doubts(lane(&[0, 7]))], [1, 1, 0]);
        assert_eq!(doubts(LaneReport { releases: 7, ..lane(&[]) }), 0, "a route without links");
    }

    #[test]
    fn one_packet_is_not_one_packets() {
        let lane = LaneReport { refused: 1, tun_drops: 2, ..lane(&[]) };
        assert_eq!(
            lane.doubts(),
            [
                "forward: the kernel dropped 2 packets before skyhaul could read them",
                "forward: the interface at the end refused 1 packet"
            ]
        );
    }
}

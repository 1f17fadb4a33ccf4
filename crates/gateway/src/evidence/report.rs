//! What `skyhaul gateway evidence` shows, and the metrics of it.

use super::settings::Mode;
use super::tally::Group;
use crate::metrics::Page;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The state of all measurements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Evidence {
    /// Whether connections are split.
    pub mode: Mode,
    /// Names of the arms.
    pub arms: Vec<Cow<'static, str>>,
    /// Share of the first arm.
    pub fraction: f64,
    /// Connections that are observed now.
    pub open: usize,
    /// Connections that were not observed because the table was full.
    pub unobserved: u64,
    /// Connections whose prefix is not listed because there are too many.
    pub unlisted: u64,
    /// Packets that came too fast to be observed.
    pub missed: u64,
    /// Number of prefixes.
    pub prefixes: usize,
    /// All connections together, then the prefixes with most connections.
    pub groups: Vec<Group>,
}

impl Evidence {
    /// Metrics of all connections together, on the page for Prometheus.
    pub(crate) fn metrics(&self, gateway: &str, page: &mut Page) {
        let Some(all) = self.groups.first() else { return };
        let gateway = ("gateway", gateway);
        let help = "Observed connections that are over, by arm and end";
        let mut over = page.family("gateway_evidence_connections_total", "counter", help);
        for a in &all.arms {
            let e = &a.ended;
            for (end, n) in [
                ("finished", e.finished),
                ("reset", e.reset),
                ("silent", e.silent),
                ("unanswered", e.unanswered),
            ] {
                over.sample(&[gateway, ("arm", &a.arm), ("end", end)], n);
            }
        }
        let help = "Packets that came too fast to be observed";
        page.family("gateway_evidence_missed_packets_total", "counter", help).sample(&[gateway], self.missed);
        if all.comparisons.is_empty() {
            return;
        }
        let help = "How many times as good the first arm is, with a 95 % interval that is valid at any time";
        let mut ratio = page.family("gateway_evidence_ratio", "gauge", help);
        for c in &all.comparisons {
            for (bound, value) in [("estimate", c.ratio), ("low", c.lasting[0]), ("high", c.lasting[1])] {
                ratio.sample(&[gateway, ("of", &c.of), ("class", &c.class), ("bound", bound)], value);
            }
        }
    }
}

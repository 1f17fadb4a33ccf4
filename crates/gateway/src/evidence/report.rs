//! What `skyhaul gateway evidence` shows, and the metrics of it.

use super::settings::Mode;
use super::tally::Group;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt::Write;

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
    /// Metrics of all connections together, in Prometheus' text format.
    pub(crate) fn metrics(&self, gateway: &str, page: &mut String) {
        let Some(all) = self.groups.first() else { return };
        let head = |page: &mut String, name: &str, kind: &str, help: &str| {
            let _ = writeln!(
                page,
                "# HELP skyhaul_gateway_evidence_{name} {help}\n# TYPE skyhaul_gateway_evidence_{name} {kind}"
            );
        };
        head(page, "connections_total", "counter", "Observed connections that are over, by arm and end.");
        for a in &all.arms {
            let e = &a.ended;
            for (end, n) in [
                ("finished", e.finished),
                ("reset", e.reset),
                ("silent", e.silent),
                ("unanswered", e.unanswered),
            ] {
                let arm = &a.arm;
                let _ = writeln!(
                    page,
                    "skyhaul_gateway_evidence_connections_total{{gateway=\"{gateway}\",arm=\"{arm}\",end=\"{end}\"}} {n}"
                );
            }
        }
        head(page, "missed_packets_total", "counter", "Packets that came too fast to be observed.");
        let _ = writeln!(
            page,
            "skyhaul_gateway_evidence_missed_packets_total{{gateway=\"{gateway}\"}} {}",
            self.missed
        );
        if all.comparisons.is_empty() {
            return;
        }
        head(
            page,
            "ratio",
            "gauge",
            "How many times as good the first arm is, with a 95 % interval that is valid at any time.",
        );
        for c in &all.comparisons {
            for (bound, value) in [("estimate", c.ratio), ("low", c.lasting[0]), ("high", c.lasting[1])] {
                let (of, class) = (&c.of, &c.class);
                let _ = writeln!(
                    page,
                    "skyhaul_gateway_evidence_ratio{{gateway=\"{gateway}\",of=\"{of}\",class=\"{class}\",bound=\"{bound}\"}} {value}"
                );
            }
        }
    }
}

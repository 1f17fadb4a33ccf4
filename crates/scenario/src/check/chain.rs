//! Chains of connections through gateways.

use crate::chain::{AckMode, Open};
use crate::resolved::{Chain, Resolved};
use core::fmt;
use serde::Serialize;

/// How the connections of a group are split at gateways; the other numbers of the group are those of its first leg.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChainCheck {
    /// Kind, as in files.
    pub kind: &'static str,
    /// RTT of all legs together, without queueing and transmission times.
    pub rtt_s: f64,
    /// Links of the first leg.
    pub first: Vec<String>,
    /// The gateways in order.
    pub gateways: Vec<StationCheck>,
    /// Gateways open a leg as soon as the SYN of the previous leg arrives.
    pub opens_early: bool,
    /// Gateways acknowledge only data that the next leg has acknowledged.
    pub acknowledges_late: bool,
}

/// A gateway, and the leg that begins there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StationCheck {
    /// Name.
    pub gateway: String,
    /// The gateway's buffer per connection and direction.
    pub buffer_bytes: u64,
    /// The name of the leg that begins there, in results.
    pub leg: String,
    /// Links of that leg.
    pub path: Vec<String>,
}

impl ChainCheck {
    pub(super) fn new(scenario: &Resolved, chain: &Chain) -> Self {
        let names = |path: &[usize]| -> Vec<String> {
            path.iter().map(|&i| scenario.links[i].name.clone()).collect()
        };
        let links = chain.path.iter().map(|&i| &scenario.links[i]);
        let rtt = links.fold(0.0, |sum, l| {
            sum + l.forward.delay.base().as_secs_f64() + l.reverse.delay.base().as_secs_f64()
        });
        let later_links: usize = chain.legs.iter().map(|&l| scenario.flows[l].path.len()).sum();
        let stations = chain.gateways.iter().zip(&chain.legs).zip(&chain.buffers);
        Self {
            kind: chain.kind.name(),
            rtt_s: rtt,
            first: names(&chain.path[..chain.path.len() - later_links]),
            gateways: stations
                .map(|((&g, &leg), &buffer)| StationCheck {
                    gateway: scenario.gateways[g].name.clone(),
                    buffer_bytes: buffer,
                    leg: scenario.flows[leg].name.clone(),
                    path: names(&scenario.flows[leg].path),
                })
                .collect(),
            opens_early: chain.open == Open::Early,
            acknowledges_late: chain.ack_mode == AckMode::Late,
        }
    }
}

impl fmt::Display for ChainCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.first.join(" + "))?;
        for g in &self.gateways {
            write!(f, " | {} ({} B) | {}", g.gateway, g.buffer_bytes, g.path.join(" + "))?;
        }
        if !self.gateways.is_empty() {
            let open = if self.opens_early { "early" } else { "sequential" };
            let acks = if self.acknowledges_late { "late" } else { "early" };
            write!(f, "; {open} open, {acks} acknowledgements")?;
        }
        write!(f, "; RTT of the path {}", super::display::seconds(self.rtt_s))
    }
}

//! Chains of connections through gateways.

use crate::chain::{AckMode, Open};
use crate::resolved::{Chain, Resolved};
use core::fmt;
use serde::Serialize;

/// How the connections of a group are cut at gateways; the group's other numbers are those of its first leg.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChainCheck {
    /// Kind, as files have it.
    pub kind: &'static str,
    /// RTT of all legs together, without queues and transmitters.
    pub rtt_s: f64,
    /// Links of the first leg.
    pub first: Vec<String>,
    /// The gateways in order.
    pub gateways: Vec<StationCheck>,
    /// Legs are opened as soon as they are asked for.
    pub opens_early: bool,
    /// Gateways acknowledge only what the next leg has acknowledged.
    pub acknowledges_late: bool,
}

/// A gateway, and the leg that begins there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StationCheck {
    /// Name.
    pub gateway: String,
    /// What it holds for a connection in each direction.
    pub buffer_bytes: u64,
    /// What results call the leg that begins there.
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
        let later: usize = chain.legs.iter().map(|&l| scenario.flows[l].path.len()).sum();
        let stations = chain.gateways.iter().zip(&chain.legs).zip(&chain.buffers);
        Self {
            kind: chain.kind.name(),
            rtt_s: rtt,
            first: names(&chain.path[..chain.path.len() - later]),
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

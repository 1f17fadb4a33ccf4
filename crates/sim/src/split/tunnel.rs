//! Tunnels between gateways that hand connections over, and the routes of the connections afterwards.

use crate::error::BuildError;
use crate::packet::links::Links;
use crate::packet::parcel::Parcel;
use skyhaul_base::{Duration, Instant};
use skyhaul_scenario::resolved::{ChainKind, GatewayEventKind, Resolved};
use std::collections::VecDeque;

/// The routes of a chain from a gateway that takes it over.
#[derive(Clone, Debug)]
pub(crate) struct Ahead {
    /// Routes of the leg that begins there: data, acknowledgements.
    pub(crate) own: (u16, u16),
    /// The entry of the route table at which the route of acknowledgements ends.
    pub(crate) acks_end: u16,
    /// Routes that bypass all gateways.
    pub(crate) bypass: (u16, u16),
    /// The entry of the route table with which the tunnel from the previous gateway begins; the next entry is its end.
    pub(crate) tunnel: u16,
}

/// The tunnel to a gateway from its predecessor.
#[derive(Debug)]
pub(crate) struct Tunnel {
    /// The entry of the route table with which it begins.
    pub(crate) entry: u16,
    /// The entry at which acknowledgements of the next leg arrive without the tunnel.
    pub(crate) direct: u16,
    /// When the connection arrives at the new gateway.
    pub(crate) until: Instant,
    /// Parcels that arrived at the new gateway before the connection.
    pub(crate) waiting: VecDeque<Parcel>,
}

/// For each handover, the route from the old gateway to the new one.
pub(crate) fn tunnels(scenario: &Resolved, links: &mut Links) -> Result<Vec<Option<u16>>, BuildError> {
    let tunnel = |kind: &GatewayEventKind| match kind {
        GatewayEventKind::Handover(how) => links.tunnel(how.backhaul).ok_or(BuildError::TooLarge).map(Some),
        GatewayEventKind::Crash | GatewayEventKind::Reroute => Ok(None),
    };
    scenario.gateway_events.iter().map(|m| &m.kind).map(tunnel).collect()
}

/// The routes of a group's chains after each handover that concerns them, in order.
pub(crate) fn ahead(
    scenario: &Resolved,
    group: usize,
    tunnels: &[Option<u16>],
    links: &mut Links,
) -> Result<VecDeque<Ahead>, BuildError> {
    let head = &scenario.flows[group];
    let mut found = VecDeque::new();
    // A spoofing gateway has no connection to hand over.
    let Some(chain) = head.chain().filter(|c| c.kind != ChainKind::Spoof) else { return Ok(found) };
    let mut gateways = chain.gateways.clone();
    let legs = core::iter::once(group).chain(chain.legs.iter().copied());
    let mut paths: Vec<&[usize]> = legs.map(|l| scenario.flows[l].path.as_slice()).collect();
    for (gateway_event, &tunnel) in scenario.gateway_events.iter().zip(tunnels) {
        let (GatewayEventKind::Handover(how), Some(tunnel)) = (&gateway_event.kind, tunnel) else { continue };
        let Some(k) = gateways.iter().position(|&g| g == gateway_event.gateway) else { continue };
        gateways[k] = how.to;
        if let Some(path) = &how.path {
            paths[k + 1] = path;
        }
        let forwarding_delay = scenario.gateways[how.to].delay;
        let own =
            links.routes_from(Duration::ZERO, forwarding_delay, paths[k + 1]).ok_or(BuildError::TooLarge)?;
        let bypass = links.routes(head, &paths.concat()).ok_or(BuildError::TooLarge)?;
        // As many entries as links, plus the end.
        let acks_end = own.1 + paths[k + 1].len() as u16;
        found.push_back(Ahead { own, acks_end, bypass, tunnel });
    }
    Ok(found)
}

//! The directed links of a world, and the routes over them.

use crate::packet::parcel::Parcel;
use skyhaul_base::{Duration, Rate};
use skyhaul_path::link::Streams;
use skyhaul_path::{Delay, Hop, Link, LinkConfig, Routes, rate};
use skyhaul_scenario::resolved::{ChainRole, FlowGroup, Resolved};
use std::collections::BTreeMap;

/// The directed links of a world: those of the scenario, forward at `2i` and reverse at `2i + 1`, then a pair for
/// each access delay, and one for each tunnel.
pub(crate) struct Links {
    pub(crate) hops: Vec<Hop<Parcel>>,
    pub(crate) routes: Routes,
    /// First link of the pair with this delay.
    access: BTreeMap<Duration, u32>,
    seed: u64,
}

impl Links {
    pub(crate) fn new(scenario: &Resolved, seed: u64) -> Self {
        let hops = scenario.links.iter().enumerate().flat_map(|(i, l)| {
            [("forward", &l.forward), ("reverse", &l.reverse)].map(|(way, d)| {
                let name = format!("{}.{way}", l.name);
                let streams = Streams::named(seed, &format!("links.{name}"));
                let forward = way == "forward";
                let changes = scenario.events.iter().any(|c| c.link == i && c.forward == forward);
                let stays = d.up && !changes && !d.moves();
                let build = if stays { Link::unchanging } else { Link::new };
                d.hop(build(&d.link_config(), streams), seed, &name)
            })
        });
        Self { hops: hops.collect(), routes: Routes::default(), access: BTreeMap::new(), seed }
    }

    /// The routes of a group's data and acknowledgements. In whichever direction data travels, the access delay is at
    /// the start of the path.
    ///
    /// The access delay is a pair of links without rate, shared by all flows with the same delay: a constant delay
    /// keeps the order, so one link serves them all.
    pub(crate) fn routes(&mut self, group: &FlowGroup, path: &[usize]) -> Option<(u16, u16)> {
        let forwarding_delay = match group.role.as_deref() {
            Some(ChainRole::Leg { delay, .. }) => *delay,
            _ => Duration::ZERO,
        };
        let (along, against) = self.routes_from(group.extra_delay, forwarding_delay, path)?;
        Some(if group.sends_forward() { (along, against) } else { (against, along) })
    }

    /// The routes along and against a path that begins with an access delay, at a gateway with this forwarding delay.
    pub(crate) fn routes_from(
        &mut self,
        extra_delay: Duration,
        forwarding_delay: Duration,
        path: &[usize],
    ) -> Option<(u16, u16)> {
        let mut forward: Vec<u32> = path.iter().map(|&i| 2 * i as u32).collect();
        let mut reverse: Vec<u32> = path.iter().rev().map(|&i| 2 * i as u32 + 1).collect();
        if !extra_delay.is_zero() || path.is_empty() {
            let access = self.access(extra_delay);
            forward.insert(0, access);
            reverse.push(access + 1);
        }
        // A gateway's forwarding delay applies to data, not to the acknowledgements of the next leg.
        if !forwarding_delay.is_zero() {
            forward.insert(0, self.access(forwarding_delay));
        }
        Some((self.routes.add(forward)?, self.routes.add(reverse)?))
    }

    /// The route of a tunnel: over a new link of this rate without delay.
    pub(crate) fn tunnel(&mut self, rate: Rate) -> Option<u16> {
        let link = self.hops.len() as u32;
        let config = LinkConfig { rate: rate::Config::Constant(rate), ..LinkConfig::default() };
        // The link draws nothing.
        let streams = Streams::named(self.seed, "tunnel");
        self.hops.push(Hop::new(Link::unchanging(&config, streams)));
        self.routes.add(vec![link])
    }

    /// The first of a pair of links without rate that have this delay.
    fn access(&mut self, delay: Duration) -> u32 {
        let next = self.hops.len() as u32;
        let access = *self.access.entry(delay).or_insert(next);
        if access == next {
            let config = LinkConfig { delay: Delay::fixed(delay), ..LinkConfig::default() };
            for _ in 0..2 {
                // The link draws nothing.
                let streams = Streams::named(self.seed, "access");
                self.hops.push(Hop::new(Link::unchanging(&config, streams)));
            }
        }
        access
    }
}

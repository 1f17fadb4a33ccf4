//! The directed links of a world, and the routes over them.

use crate::packet::parcel::Parcel;
use skyhaul_base::{Duration, Rate};
use skyhaul_path::link::Streams;
use skyhaul_path::{Delay, Hop, Link, LinkConfig, Routes, rate};
use skyhaul_scenario::resolved::{ChainRole, FlowGroup, Repair, Resolved};
use std::collections::BTreeMap;

/// The directed links of a world: those of the scenario, forward at `2i` and reverse at `2i + 1`, then a pair for
/// each access delay, and one for each tunnel.
pub(crate) struct Links {
    pub(crate) hops: Vec<Hop<Parcel>>,
    pub(crate) routes: Routes,
    /// First link of the pair with this delay.
    access: BTreeMap<Duration, u32>,
    /// Segments that gateways repair, and the gates before them, by the entry of the route table at which a route ends.
    segments: Vec<Repair>,
    pub(crate) gates: BTreeMap<u16, Gate>,
    /// The routes that end at gates.
    to_gates: BTreeMap<(Vec<u32>, Gate), u16>,
    seed: u64,
}

/// A gateway before a segment that is repaired, for the packets of some routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Gate {
    /// Which segment.
    pub(crate) segment: u32,
    /// The gateway sends into the forward direction of the links.
    pub(crate) forward: bool,
    /// The packets are repaired.
    pub(crate) repaired: bool,
    /// The entry with which their route goes on behind the segment.
    pub(crate) onward: u16,
    /// The entry with which it goes on over the links of the segment themselves.
    pub(crate) through: u16,
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
        Self {
            hops: hops.collect(),
            routes: Routes::default(),
            access: BTreeMap::new(),
            segments: scenario.repair.clone(),
            gates: BTreeMap::new(),
            to_gates: BTreeMap::new(),
            seed,
        }
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
        let (forward, reverse) = self.directed(group.extra_delay, forwarding_delay, path);
        let (along, against) =
            (self.gated(&forward, 0, true, group)?, self.gated(&reverse, 0, false, group)?);
        Some(if group.sends_forward() { (along, against) } else { (against, along) })
    }

    /// The routes along and against a path that begins with an access delay, at a gateway with this forwarding delay.
    pub(crate) fn routes_from(
        &mut self,
        extra_delay: Duration,
        forwarding_delay: Duration,
        path: &[usize],
    ) -> Option<(u16, u16)> {
        let (forward, reverse) = self.directed(extra_delay, forwarding_delay, path);
        Some((self.routes.add(forward)?, self.routes.add(reverse)?))
    }

    /// The directed links of these routes.
    fn directed(
        &mut self,
        extra_delay: Duration,
        forwarding_delay: Duration,
        path: &[usize],
    ) -> (Vec<u32>, Vec<u32>) {
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
        (forward, reverse)
    }

    /// The routes of the frames of all segments, forward and reverse.
    pub(crate) fn segment_routes(&mut self) -> Option<Vec<(u16, u16)>> {
        let routes = self.segments.iter().map(|s| {
            let forward = s.links.iter().map(|&l| 2 * l as u32).collect();
            let reverse = s.links.iter().rev().map(|&l| 2 * l as u32 + 1).collect();
            Some((self.routes.add(forward)?, self.routes.add(reverse)?))
        });
        routes.collect()
    }

    /// The route of a group over directed links, which ends at the gate before the first segment that gateways repair, apart
    /// from the first `behind` links: the packet has passed the gate before them.
    fn gated(&mut self, links: &[u32], behind: usize, forward: bool, group: &FlowGroup) -> Option<u16> {
        let begins = |s: &Repair| {
            let link = if forward { s.links.first() } else { s.links.last() };
            let link = 2 * u32::try_from(*link?).ok()? + u32::from(!forward);
            links.iter().position(|l| *l == link).filter(|at| *at >= behind)
        };
        let nearest = self.segments.iter().enumerate().filter_map(|(i, s)| Some((begins(s)?, i))).min();
        let Some((at, i)) = nearest else { return self.routes.add(links.to_vec()) };
        let (length, repaired) = (self.segments[i].links.len(), self.segments[i].repairs(group));
        // No route is empty: a packet needs an event to arrive at a gate, or behind it.
        let nothing = [self.access(Duration::ZERO) + u32::from(!forward)];
        let (before, rest) = (&links[..at], &links[at + length..]);
        let before = if before.is_empty() { &nothing[..] } else { before };
        let rest = if rest.is_empty() { &nothing[..] } else { rest };
        let onward = self.gated(rest, 0, forward, group)?;
        let through = self.gated(&links[at..], length, forward, group)?;
        let gate = Gate { segment: i as u32, forward, repaired, onward, through };
        if let Some(&start) = self.to_gates.get(&(before.to_vec(), gate)) {
            return Some(start);
        }
        let start = self.routes.add_apart(before)?;
        self.gates.insert(start + before.len() as u16, gate);
        self.to_gates.insert((before.to_vec(), gate), start);
        Some(start)
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

//! One direction through the emulated links, one after the other. The code reads no clock and owns no device.

use super::crossing::{Crossing, GroupLookup};
use super::packet::Buf;
use crate::error::NetError;
use skyhaul_base::{Duration, Instant, Rate};
use skyhaul_path::{
    Agenda, Chain, Change, Counters, Delay, DropReason, Hop, Link, LinkConfig, Observer, Routes, Streams,
};
use skyhaul_scenario::resolved::{FlowGroup, Resolved};

/// Name of a link of the chain.
#[derive(Debug)]
struct Label {
    name: String,
    origin: LinkOrigin,
}

/// The part of the scenario that a link of the chain stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkOrigin {
    /// The link with this index in the scenario.
    Link(usize),
    /// The access link of flow groups, with this delay.
    Access(Duration),
}

/// One direction of a path.
#[derive(Debug)]
pub(super) struct PathDirection {
    /// The links, in the order of the routes.
    chain: Chain<Buf>,
    labels: Vec<Label>,
    /// Start of each group's route.
    routes: Vec<u16>,
    groups: GroupLookup,
    agenda: Agenda,
    /// Time of the last event or of the last packet that entered.
    now: Instant,
}

/// A packet that passed all links, or that was lost.
pub(super) enum PacketOutcome<'a> {
    /// The packet has passed all links at this time.
    Through(Instant),
    /// The link of this name lost the packet.
    Lost(&'a str, DropReason),
}

/// Reports packets lost by links, with the names of the links.
struct Losses<'a, F> {
    labels: &'a [Label],
    out: &'a mut F,
}

impl<F: FnMut(Buf, PacketOutcome<'_>)> Observer<Buf> for Losses<'_, F> {
    fn entered(&mut self, _now: Instant, _link: u32, _packet: &Buf) {}
    fn left(&mut self, _now: Instant, _link: u32, _packet: &Buf) {}
    fn lost(&mut self, _now: Instant, link: u32, packet: Buf, why: DropReason) {
        let name = self.labels.get(link as usize).map_or("", |l| l.name.as_str());
        (self.out)(packet, PacketOutcome::Lost(name, why));
    }
    fn copy(&mut self, packet: &Buf, number: u32) -> Option<Buf> {
        packet.with_number(number)
    }
    fn duplicate(&mut self, _now: Instant, _link: u32, packet: &Buf) -> Option<Buf> {
        Some(packet.duplicate())
    }
}

/// Links shared by routes, in the order in which they are first used.
struct Links<'a> {
    scenario: &'a Resolved,
    forward: bool,
    seed: u64,
    hops: Vec<Hop<Buf>>,
    labels: Vec<Label>,
}

impl Links<'_> {
    /// A link of the scenario.
    #[expect(clippy::indexing_slicing, reason = "a resolved scenario names links that it has")]
    fn link(&mut self, index: usize) -> u32 {
        if let Some(at) = self.labels.iter().position(|l| l.origin == LinkOrigin::Link(index)) {
            return at as u32;
        }
        let l = &self.scenario.links[index];
        let (d, direction) = if self.forward { (&l.forward, "forward") } else { (&l.reverse, "reverse") };
        let name = format!("{}.{direction}", l.name);
        // The link does not compute departures in advance (`Link::foreseeing`): queue lengths and counters are read here
        // without the call of `Link::serve` that this would need first.
        let link = Link::new(&d.link_config(), Streams::named(self.seed, &format!("links.{name}")));
        self.add(d.hop(link, self.seed, &name), name, LinkOrigin::Link(index))
    }
    /// The access delay of a group, if it has one; groups with the same delay share the link.
    fn access(&mut self, group: &FlowGroup) -> Option<u32> {
        let delay = group.extra_delay;
        if delay.is_zero() {
            return None;
        }
        if let Some(at) = self.labels.iter().position(|l| l.origin == LinkOrigin::Access(delay)) {
            return Some(at as u32);
        }
        let config = LinkConfig { delay: Delay::fixed(delay), ..LinkConfig::default() };
        let link = Link::new(&config, Streams::named(self.seed, "access"));
        let name =
            if self.scenario.flows.len() > 1 { format!("access.{}", group.name) } else { "access".into() };
        Some(self.add(Hop::new(link), name, LinkOrigin::Access(delay)))
    }
    fn add(&mut self, hop: Hop<Buf>, name: String, origin: LinkOrigin) -> u32 {
        self.hops.push(hop);
        self.labels.push(Label { name, origin });
        (self.hops.len() - 1) as u32
    }
}

impl PathDirection {
    /// The links of flow groups in one direction, with the random streams of the simulator: with the same seed the
    /// same packets are lost.
    ///
    /// # Errors
    /// If there are too many different routes.
    pub(super) fn new(
        scenario: &Resolved,
        crossing: Crossing<'_>,
        forward: bool,
        seed: u64,
    ) -> Result<Self, NetError> {
        let mut links = Links { scenario, forward, seed, hops: Vec::new(), labels: Vec::new() };
        let mut table = Routes::default();
        let mut routes = Vec::new();
        for group in crossing.groups() {
            let mut route: Vec<u32> = Vec::new();
            // The access delay belongs to the sender: data meets it first, acknowledgements last.
            if forward {
                route.extend(links.access(group));
                route.extend(group.path.iter().map(|&l| links.link(l)));
            } else {
                route.extend(group.path.iter().rev().map(|&l| links.link(l)));
                route.extend(links.access(group));
            }
            routes.push(table.add(route).ok_or(NetError::TooManyWays)?);
        }
        let crossed = |link: usize| crossing.groups().iter().any(|g| g.path.contains(&link));
        let (agenda, first) = scenario.agenda(seed, |link, direction| direction == forward && crossed(link));
        let Links { hops, labels, .. } = links;
        let (chain, groups) = (Chain::new(hops, table), crossing.groups_of(forward));
        let mut direction = Self { chain, labels, routes, groups, agenda, now: Instant::ZERO };
        for (link, change) in first {
            direction.change(link, &change, &mut |_, _| {});
        }
        Ok(direction)
    }

    /// Time of the next event; [`Instant::MAX`] means never.
    pub(super) fn next(&self) -> Instant {
        self.chain.next().min(self.agenda.next())
    }
    /// A packet enters the first link. All events due before must have been processed ([`Self::advance`]).
    pub(super) fn enter(&mut self, at: Instant, mut p: Buf, out: &mut impl FnMut(Buf, PacketOutcome<'_>)) {
        self.now = self.now.max(at);
        if self.labels.is_empty() {
            out(p, PacketOutcome::Through(self.now));
            return;
        }
        // There is a route for each group.
        let Some(route) = self.routes.get(self.groups.of(&p.class)) else { return };
        p.set_out(*route);
        self.chain.enter(self.now, p, &mut Losses { labels: &self.labels, out });
    }

    /// Processes all events due by `now`, each at its own time: the lateness of the caller changes nothing.
    pub(super) fn advance(&mut self, now: Instant, out: &mut impl FnMut(Buf, PacketOutcome<'_>)) {
        loop {
            let next = self.next();
            if next > now || next == Instant::MAX {
                return;
            }
            // The next event of a link that has to catch up may lie slightly in the past.
            self.now = self.now.max(next);
            // Changes come last among simultaneous events.
            if self.chain.next() <= self.now {
                let through = self.chain.step(self.now, &mut Losses { labels: &self.labels, out });
                if let Some(p) = through {
                    out(p, PacketOutcome::Through(self.now));
                }
            } else if let Some((link, change)) = self.agenda.take(self.now) {
                self.change(link, &change, out);
            }
        }
    }

    /// Changes a directed link; its number is that of an [`Agenda`] of the scenario.
    fn change(&mut self, link: u32, change: &Change, out: &mut impl FnMut(Buf, PacketOutcome<'_>)) {
        let of_scenario = LinkOrigin::Link(link as usize / 2);
        let Some(hop) = self.labels.iter().position(|l| l.origin == of_scenario) else { return };
        let now = self.now;
        let mut losses = Losses { labels: &self.labels, out };
        self.chain.change(now, hop as u32, &mut losses, |link, lost| {
            link.serve(now, &mut |p, why| lost(p, why));
            change.apply(now, link, &mut |p, why| lost(p, why));
        });
    }

    /// Rate of the slowest link now.
    pub(super) fn bottleneck(&self) -> Option<Rate> {
        self.chain.hops().iter().filter_map(|h| h.link().rate()).min_by_key(|r| r.bits_per_sec())
    }
    /// The links' names and counters.
    pub(super) fn counters(&self) -> impl Iterator<Item = (&str, Counters, u32)> {
        let hops = self.chain.hops().iter();
        self.labels.iter().zip(hops).map(|(l, hop)| (l.name.as_str(), hop.counters(), hop.link().queue_len()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::Class;
    use super::*;
    use skyhaul_wire::Plan;

    const GEO: &str = r#"
duration = "100 s"
seed = 3
[links.sat]
rate = "10 Mbit/s"
delay = "250 ms"
queue = "20 packets"
error = { kind = "per", p = 0.1 }
[flows.bulk]
path = ["sat"]
extra-delay = "10 ms"
[[event]]
at = "10 s"
set = { links.sat.delay = "100 ms" }
[[event]]
at = "20 s"
set = { links.sat.up = false }
"#;

    fn direction(forward: bool) -> PathDirection {
        let scenario = skyhaul_scenario::Document::parse("geo.toml", GEO, &skyhaul_scenario::no_files)
            .unwrap()
            .resolve()
            .unwrap();
        PathDirection::new(&scenario, Crossing::All(&scenario.flows[0]), forward, scenario.seed).unwrap()
    }
    fn packet() -> Buf {
        Buf::new(
            vec![0; 1500],
            1000,
            Class { dscp: 0, ecn: 0, flow: 1, pure_ack: false, link_scope: false, ports: None },
            Plan::LowerEffort,
        )
    }
    fn ms(n: u64) -> Instant {
        Instant::from_nanos(n * 1_000_000)
    }

    /// Packets every 10 ms for 30 s.
    fn run(forward: bool) -> (Vec<u64>, Vec<(String, DropReason)>) {
        let mut w = direction(forward);
        let (mut through, mut lost) = (Vec::new(), Vec::new());
        let mut out = |_: Buf, outcome: PacketOutcome<'_>| match outcome {
            PacketOutcome::Through(at) => through.push(at.as_nanos()),
            PacketOutcome::Lost(name, why) => lost.push((name.to_owned(), why)),
        };
        for t in (0..30_000).step_by(10) {
            w.advance(ms(t), &mut out);
            w.enter(ms(t), packet(), &mut out);
        }
        w.advance(ms(40_000), &mut out);
        (through, lost)
    }

    #[test]
    fn times_are_those_of_the_links_and_losses_those_of_the_simulator() {
        let (through, lost) = run(true);
        // 0.8 ms of serialisation, 250 ms, 10 ms of access.
        assert_eq!(through[0] % 10_000_000, 800_000);
        let first = through[0] / 10_000_000;
        assert!((26..30).contains(&first), "{first}");
        // The delay falls to 100 ms at 10 s; at 20 s the link goes down, and its queue of 20 fills.
        let errors = lost.iter().filter(|(_, why)| *why == DropReason::Error).count();
        assert!((150..260).contains(&errors), "a tenth of 2000: {errors}");
        let full = lost.iter().filter(|(_, why)| *why == DropReason::Full).count();
        assert_eq!(full + errors + through.len() + 20, 3000);
        assert!(lost.iter().all(|(name, _)| name == "sat.forward"));
        assert_ne!(run(false).1.len(), lost.len(), "the other direction draws from its own stream");
    }

    #[test]
    fn a_driver_that_sleeps_changes_nothing() {
        let mut w = direction(true);
        let mut times = Vec::new();
        for t in 0..5 {
            w.enter(ms(t), packet(), &mut |_, _| {});
        }
        // One second late: what left is due when it was due.
        w.advance(ms(1500), &mut |_, outcome| {
            if let PacketOutcome::Through(at) = outcome {
                times.push(at.as_nanos() / 1000);
            }
        });
        assert!(times.windows(2).all(|t| t[1] - t[0] >= 800));
        assert_eq!(times[0] % 1000, 800);
        assert_eq!(w.next(), Instant::ZERO + Duration::from_secs(10), "the next change");
    }

    #[test]
    fn groups_of_flows_take_their_own_ways_and_share_links() {
        let text = r#"
duration = "1 s"
[links.far]
rate = "unlimited"
delay = "100 ms"
[links.sat]
rate = "8 Mbit/s"
delay = "250 ms"
[flows.a]
path = ["sat"]
[flows.b]
path = ["far", "sat"]
extra-delay = "10 ms"
"#;
        let s = skyhaul_scenario::Document::parse("two.toml", text, &skyhaul_scenario::no_files).unwrap();
        let s = s.resolve().unwrap();
        let crossing = Crossing::ByPort { groups: &s.flows, first: 80 };
        for (forward, ports) in [(true, [(9, 80), (9, 81)]), (false, [(80, 9), (81, 9)])] {
            let mut w = PathDirection::new(&s, crossing, forward, 1).unwrap();
            let mut times = Vec::new();
            for ports in ports {
                let class = Class {
                    ports: Some(ports),
                    dscp: 0,
                    ecn: 0,
                    flow: 1,
                    pure_ack: false,
                    link_scope: false,
                };
                w.enter(ms(0), Buf::new(vec![0; 1500], 1000, class, Plan::LowerEffort), &mut |_, _| {});
            }
            w.advance(ms(1000), &mut |p, outcome| {
                if let PacketOutcome::Through(at) = outcome {
                    times.push((p.class.ports.unwrap(), at.as_nanos() / 1_000_000));
                }
            });
            // 1 ms of serialisation on the shared link, where one has to wait for the other on the way back.
            let second = if forward { 361 } else { 362 };
            assert_eq!(times, [(ports[0], 251), (ports[1], second)], "{forward}");
            assert_eq!(w.counters().count(), 3);
        }
    }
}

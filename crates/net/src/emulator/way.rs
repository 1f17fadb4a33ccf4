//! One direction through the emulated links, one after the other. It reads no clock and owns no device.

use super::packet::Buf;
use skyhaul_base::{Instant, Rate};
use skyhaul_path::{Counters, Delay, DropReason, Link, LinkConfig, Streams};
use skyhaul_scenario::resolved::{Event, FlowGroup, Resolved};

/// A link on the way.
#[derive(Debug)]
struct Hop {
    name: String,
    link: Link<Buf>,
    /// Its channel spares pure acknowledgements.
    spares_acks: bool,
    /// Number of the link in the scenario; `None` for the access delay.
    index: Option<usize>,
}

/// One direction of a path.
#[derive(Debug)]
pub(super) struct Way {
    hops: Vec<Hop>,
    changes: Vec<Event>,
    done: usize,
    /// No earlier than the last thing that happened.
    now: Instant,
}

/// A packet that has come through, or that was lost.
pub(super) enum Fate<'a> {
    /// It is due at this time.
    Through(Instant),
    /// A link lost it.
    Lost(&'a str, DropReason),
}

impl Way {
    /// The links of a flow group in one direction, with the random streams that the simulator would use: on the same
    /// seed the same packets are lost.
    pub(super) fn new(scenario: &Resolved, group: &FlowGroup, forward: bool, seed: u64) -> Self {
        let hop = |&index: &usize| {
            let l = &scenario.links[index];
            let (d, way) = if forward { (&l.forward, "forward") } else { (&l.reverse, "reverse") };
            let streams = Streams::named(seed, &format!("links.{}.{way}", l.name));
            let mut link = Link::new(&d.link_config(), streams);
            if !d.up {
                link.set_up(Instant::ZERO, false, &mut |_, _| {});
            }
            Hop { name: format!("{}.{way}", l.name), link, spares_acks: !d.ack_errors, index: Some(index) }
        };
        let mut hops: Vec<Hop> = if forward {
            group.path.iter().map(hop).collect()
        } else {
            group.path.iter().rev().map(hop).collect()
        };
        if !group.extra_delay.is_zero() {
            let config = LinkConfig { delay: Delay::fixed(group.extra_delay), ..LinkConfig::default() };
            let access = Hop {
                name: "access".into(),
                link: Link::new(&config, Streams::named(seed, "access")),
                spares_acks: false,
                index: None,
            };
            // Data meets it first, acknowledgements last: it is the sender's.
            if forward { hops.insert(0, access) } else { hops.push(access) }
        }
        let mine = |c: &&Event| c.forward == forward && group.path.contains(&c.link);
        let changes = scenario.events.iter().filter(mine).cloned().collect();
        Self { hops, changes, done: 0, now: Instant::ZERO }
    }

    /// When something happens next; [`Instant::MAX`] for never.
    pub(super) fn next(&self) -> Instant {
        let change = self.changes.get(self.done).map_or(Instant::MAX, |c| Instant::ZERO + c.at);
        let link = |h: &Hop| {
            let service = h.link.next_service().unwrap_or(Instant::MAX);
            service.min(h.link.next_delivery().unwrap_or(Instant::MAX))
        };
        self.hops.iter().map(link).min().unwrap_or(Instant::MAX).min(change)
    }
    /// A packet enters the first link. Everything due before must have been done ([`Self::advance`]).
    pub(super) fn enter(&mut self, at: Instant, p: Buf, out: &mut impl FnMut(Buf, Fate<'_>)) {
        self.now = self.now.max(at);
        self.offer(0, self.now, p, out);
    }

    fn offer(&mut self, hop: usize, now: Instant, mut p: Buf, out: &mut impl FnMut(Buf, Fate<'_>)) {
        let Some(h) = self.hops.get_mut(hop) else {
            out(p, Fate::Through(now));
            return;
        };
        p.spared = h.spares_acks && p.class.pure_ack;
        let name = &h.name;
        h.link.offer(now, p, &mut |p, why| out(p, Fate::Lost(name, why)));
    }

    /// Does everything that is due by `now`, each thing at its own time: how late we are changes nothing.
    pub(super) fn advance(&mut self, now: Instant, out: &mut impl FnMut(Buf, Fate<'_>)) {
        loop {
            let at = self.next();
            if at > now {
                return;
            }
            // A link that catches up may name a time a little back.
            let at = at.max(self.now);
            self.now = at;
            for i in 0..self.hops.len() {
                let h = &mut self.hops[i];
                if h.link.next_service().is_some_and(|t| t <= at) {
                    let name = &h.name;
                    h.link.serve(at, &mut |p, why| out(p, Fate::Lost(name, why)));
                }
                while let Some(t) = self.hops[i].link.next_delivery().filter(|t| *t <= at) {
                    if let Some(p) = self.hops[i].link.deliver(at) {
                        self.offer(i + 1, t.max(self.now), p, out);
                    }
                }
            }
            while let Some(c) = self.changes.get(self.done).filter(|c| Instant::ZERO + c.at <= at) {
                let hop = self.hops.iter_mut().find(|h| h.index == Some(c.link));
                if let Some(Hop { name, link, .. }) = hop {
                    link.serve(at, &mut |p, why| out(p, Fate::Lost(name, why)));
                    c.change.apply(at, link, &mut |p, why| out(p, Fate::Lost(name, why)));
                }
                self.done += 1;
            }
        }
    }

    /// The slowest link now.
    pub(super) fn bottleneck(&self) -> Option<Rate> {
        self.hops.iter().filter_map(|h| h.link.rate()).min_by_key(|r| r.bits_per_sec())
    }
    /// Links by name, and what they have counted.
    pub(super) fn counters(&self) -> impl Iterator<Item = (&str, &Counters, u32)> {
        self.hops.iter().map(|h| (h.name.as_str(), h.link.counters(), h.link.queue_len()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::Class;
    use super::*;
    use skyhaul_base::Duration;
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

    fn way(forward: bool) -> Way {
        let scenario = skyhaul_scenario::Document::parse("geo.toml", GEO, &|_| unreachable!())
            .unwrap()
            .resolve()
            .unwrap();
        Way::new(&scenario, &scenario.flows[0], forward, scenario.seed)
    }
    fn packet() -> Buf {
        Buf::new(
            vec![0; 1500],
            1000,
            Class { dscp: 0, flow: 1, pure_ack: false, link_scope: false },
            Plan::LowerEffort,
        )
    }
    fn ms(n: u64) -> Instant {
        Instant::from_nanos(n * 1_000_000)
    }

    /// Packets every 10 ms for 30 s.
    fn run(forward: bool) -> (Vec<u64>, Vec<(String, DropReason)>) {
        let mut w = way(forward);
        let (mut through, mut lost) = (Vec::new(), Vec::new());
        let mut out = |_: Buf, fate: Fate<'_>| match fate {
            Fate::Through(at) => through.push(at.as_nanos()),
            Fate::Lost(name, why) => lost.push((name.to_owned(), why)),
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
        let mut w = way(true);
        let mut times = Vec::new();
        for t in 0..5 {
            w.enter(ms(t), packet(), &mut |_, _| {});
        }
        // One second late: what left is due when it was due.
        w.advance(ms(1500), &mut |_, fate| {
            if let Fate::Through(at) = fate {
                times.push(at.as_nanos() / 1000);
            }
        });
        assert!(times.windows(2).all(|t| t[1] - t[0] >= 800));
        assert_eq!(times[0] % 1000, 800);
        assert_eq!(w.next(), Instant::ZERO + Duration::from_secs(10), "the next change");
    }
}

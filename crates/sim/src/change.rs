//! What changes during a run.

use crate::network::Network;
use crate::tap::Tap;
use skyhaul_base::{Instant, Rate};
use skyhaul_path::{Change, DropReason, Limit};
use skyhaul_scenario::resolved::{self, Resolved};
use skyhaul_trace::{Event, LinkChange};

/// Size of the packets that the recorded share of losses is about, in bytes.
const NOTED_SIZE: u32 = 1000;

/// The changes that are still to come.
#[derive(Debug)]
pub(crate) struct Changes {
    all: Vec<resolved::Event>,
    done: usize,
}

impl Changes {
    pub(crate) fn new(changes: &[resolved::Event]) -> Self {
        Self { all: changes.to_vec(), done: 0 }
    }

    /// When the next is due; `Instant::MAX` if there is none.
    pub(crate) fn next(&self) -> Instant {
        self.all.get(self.done).map_or(Instant::MAX, |c| Instant::ZERO + c.at)
    }

    /// Makes those that are due; returns when the next is.
    #[cold]
    pub(crate) fn make<R: Tap>(&mut self, now: Instant, net: &mut Network<R>) -> Instant {
        while self.next() <= now {
            let resolved::Event { link, forward, change, .. } = &self.all[self.done];
            // Forward directions are even, reverse ones odd.
            let hop = (2 * link + usize::from(!forward)) as u32;
            if R::ENABLED {
                net.note(now, hop, change);
            }
            net.change(now, hop, change);
            self.done += 1;
        }
        self.next()
    }
}

/// Directions that are down from the start.
pub(crate) fn take_down<R: Tap>(scenario: &Resolved, net: &mut Network<R>) {
    let ways = scenario.links.iter().flat_map(|l| [&l.forward, &l.reverse]);
    for (hop, _) in (0..).zip(ways).filter(|(_, d)| !d.up) {
        net.change(Instant::ZERO, hop, &Change::Up(false));
    }
}

impl<R: Tap> Network<R> {
    /// Changes a directed link, and arms its events anew.
    fn change(&mut self, now: Instant, index: u32, change: &Change) {
        self.with_link(now, index, |link, lost| {
            change.apply(now, link, &mut |p, why: DropReason| lost(p, why));
        });
    }

    /// Records a change.
    fn note(&mut self, now: Instant, link: u32, change: &Change) {
        let (what, value) = match change {
            Change::Rate(rate) => (LinkChange::Rate, rate.mean().map_or(u64::MAX, Rate::bits_per_sec)),
            Change::Delay(delay) => (LinkChange::Delay, delay.base_at(now).as_nanos()),
            Change::Error(error) => (LinkChange::Error, error.mean_loss(NOTED_SIZE).to_bits()),
            Change::Limit(Limit::Bytes(n)) => (LinkChange::LimitBytes, *n),
            Change::Limit(Limit::Packets(n)) => (LinkChange::LimitPackets, (*n).into()),
            Change::Limit(Limit::Unlimited) => (LinkChange::LimitPackets, u64::MAX),
            Change::Up(up) => (LinkChange::Up, (*up).into()),
        };
        self.witness.recorder.record(now, &Event::LinkChanged { link, what, value });
    }
}

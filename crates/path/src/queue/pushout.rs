//! Two-class discard priority: data pushes probes out of a full queue.
//!
//! Required by [Peach §III]: at a congested router low-priority packets are discarded first, so that probes cost
//! data as little as possible. Linux `sch_skbprio` admits and serves like `StrictPushout`
//! with the victim "youngest". Both disciplines have
//! one deque per class, so that a victim is found without a search.
//!
//! A high-priority arrival at a full queue evicts low-priority packets until it fits, unless it cannot fit. With
//! [`Strict`] all high-priority packets leave before low-priority ones, without interrupting a transmission.
//! [`Fifo`] is the literal minimum of "discards the probes first".

use super::limit::{Limit, Load};
use super::model::{Key, Model, Order};
use super::moment::Moment;
use crate::packet::{DropReason, PacketView};
use alloc::collections::VecDeque;
use core::convert::Infallible;

/// The key of both disciplines.
const VICTIM: Key = Key {
    name: "victim",
    elsewhere: "only the kinds \"strict-pushout\" and \"fifo-pushout\" have the key victim",
    missing: None,
};

/// Which low-priority packet is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "VictimSpec"))]
pub enum Victim {
    /// Nearest the head.
    Oldest,
    /// Nearest the tail.
    #[default]
    Youngest,
}

skyhaul_base::options! {
    /// Drops low priority first and serves it last.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Strict {
        /// Which low-priority packet a push-out queue drops; "youngest" by default.
        victim: Victim = Victim::default(),
    }
}

skyhaul_base::options! {
    /// Drops low priority first, and serves in order of arrival.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Fifo {
        /// Which low-priority packet a push-out queue drops; "youngest" by default.
        victim: Victim = Victim::default(),
    }
}

impl Model for Strict {
    const KEYS: &'static [Key] = &[VICTIM];
    const HIGH_FIRST: bool = true;
    type Order<P> = StrictPushout<P>;
    type Invalid = Infallible;

    fn validate(&self, _: Limit) -> Result<(), Infallible> {
        Ok(())
    }
    fn build<P>(&self) -> StrictPushout<P> {
        StrictPushout::new(self.victim)
    }
    fn words(&self) -> &'static str {
        "probes dropped first and served last"
    }
}

impl Model for Fifo {
    const KEYS: &'static [Key] = &[VICTIM];
    type Order<P> = FifoPushout<P>;
    type Invalid = Infallible;

    fn validate(&self, _: Limit) -> Result<(), Infallible> {
        Ok(())
    }
    fn build<P>(&self) -> FifoPushout<P> {
        FifoPushout::new(self.victim)
    }
    fn words(&self) -> &'static str {
        "probes dropped first, served in order"
    }
}

/// Discard priority and service priority.
#[derive(Clone, Debug)]
pub struct StrictPushout<P> {
    high: VecDeque<P>,
    low: VecDeque<P>,
    low_bytes: u64,
    victim: Victim,
}

/// Discard priority only: served in the order of arrival.
#[derive(Clone, Debug)]
pub struct FifoPushout<P> {
    /// The arrival number of each packet merges the two deques back into one queue.
    classes: StrictPushout<Stamped<P>>,
    arrivals: u64,
}

#[derive(Clone, Debug, Default)]
struct Stamped<P> {
    arrival: u64,
    packet: P,
}

impl<P: PacketView> PacketView for Stamped<P> {
    fn size(&self) -> u32 {
        self.packet.size()
    }
    fn low_priority(&self) -> bool {
        self.packet.low_priority()
    }
    fn flow(&self) -> u32 {
        self.packet.flow()
    }
}

impl<P> StrictPushout<P> {
    fn new(victim: Victim) -> Self {
        Self { high: VecDeque::new(), low: VecDeque::new(), low_bytes: 0, victim }
    }
}

impl<P: PacketView> StrictPushout<P> {
    fn dequeue_low(&mut self) -> Option<P> {
        let p = self.low.pop_front()?;
        self.low_bytes -= u64::from(p.size());
        Some(p)
    }
}

impl<P: PacketView> Order<P> for StrictPushout<P> {
    fn enqueue(
        &mut self,
        _: &mut Moment<'_>,
        p: P,
        held: &mut Load,
        limit: Load,
        _: u32,
        lost: &mut impl FnMut(P, DropReason),
    ) -> bool {
        let size = p.size();
        let fits = held.admits(size, limit);
        if !fits && (p.low_priority() || !self.make_room(size, held, limit, lost)) {
            lost(p, DropReason::Full);
            return false;
        }
        held.add(size);
        if p.low_priority() {
            self.low_bytes += u64::from(size);
            self.low.push_back(p);
        } else {
            self.high.push_back(p);
        }
        true
    }
    fn make_room(
        &mut self,
        size: u32,
        held: &mut Load,
        limit: Load,
        lost: &mut impl FnMut(P, DropReason),
    ) -> bool {
        // Evicts nothing unless the arrival fits among the high-priority packets, wherever those are stored.
        let high = Load { packets: held.packets - self.low.len() as u32, bytes: held.bytes - self.low_bytes };
        if !high.admits(size, limit) {
            return false;
        }
        while !held.admits(size, limit) {
            let victim = match self.victim {
                Victim::Oldest => self.low.pop_front(),
                Victim::Youngest => self.low.pop_back(),
            };
            let victim = victim.expect("a full queue that high priority does not fill holds low priority");
            self.low_bytes -= u64::from(victim.size());
            held.remove(victim.size());
            lost(victim, DropReason::PushedOut);
        }
        true
    }
    fn dequeue(&mut self, _: &mut Moment<'_>, _: &mut Load, _: &mut impl FnMut(P, DropReason)) -> Option<P> {
        self.high.pop_front().or_else(|| self.dequeue_low())
    }
}

impl<P> FifoPushout<P> {
    fn new(victim: Victim) -> Self {
        Self { classes: StrictPushout::new(victim), arrivals: 0 }
    }
}

impl<P: PacketView> Order<P> for FifoPushout<P> {
    fn enqueue(
        &mut self,
        at: &mut Moment<'_>,
        packet: P,
        held: &mut Load,
        limit: Load,
        counted: u32,
        lost: &mut impl FnMut(P, DropReason),
    ) -> bool {
        let arrival = self.arrivals;
        self.arrivals += 1;
        let lost = &mut |s: Stamped<P>, why| lost(s.packet, why);
        self.classes.enqueue(at, Stamped { arrival, packet }, held, limit, counted, lost)
    }
    fn dequeue(&mut self, _: &mut Moment<'_>, _: &mut Load, _: &mut impl FnMut(P, DropReason)) -> Option<P> {
        let low_first = match (self.classes.high.front(), self.classes.low.front()) {
            (Some(h), Some(l)) => l.arrival < h.arrival,
            (None, _) => true,
            (Some(_), None) => false,
        };
        let next = if low_first { self.classes.dequeue_low() } else { self.classes.high.pop_front() };
        next.map(|s| s.packet)
    }
}

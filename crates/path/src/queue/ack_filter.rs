//! ACK filtering (RFC 3449 §5.2.1): since acknowledgements are cumulative, a pure acknowledgement that arrives at
//! the queue replaces waiting ones of its connection that it makes redundant.
//!
//! A pure acknowledgement is redundant if it has a lower number, the same ECE and CWR flags, and a timestamp that
//! is not later. Never replaced are:
//! - duplicates, which fast retransmit counts (RFC 5681 §3.2): an acknowledgement with the same number as the
//!   previous one, and that one;
//! - those with SACK blocks or another option that the link does not read. CAKE in Linux removes one whose blocks
//!   are all covered by a later one; here blocks are not compared, and it is kept.
//!
//! The redundancy rule and the two strengths are those of CAKE. "aggressive" keeps the newest of several redundant
//! acknowledgements; "conservative" keeps two.

use super::acks::{Flows, Lines, Waiting};
use super::limit::{Limit, Load};
use super::model::{Key, Model, Order};
use super::moment::Moment;
use crate::packet::{Acknowledgement, DropReason, PacketView};
use alloc::boxed::Box;
use core::convert::Infallible;

/// How many of several redundant acknowledgements remain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Filter {
    /// Two.
    #[default]
    Conservative,
    /// One.
    Aggressive,
}

/// Where the newest acknowledgement is queued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "AckPlace"))]
pub enum Place {
    /// At the place of the first one that it replaces, so that it arrives earlier; never before a packet of its flow that
    /// stays.
    Head,
    /// At the tail, like all arrivals.
    #[default]
    Tail,
}

skyhaul_base::options! {
    /// Removes the waiting pure acknowledgements that a new one of the same connection makes redundant.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Config {
        /// Number of acknowledgements per connection that a filter keeps: "conservative" two, "aggressive" one;
        /// "conservative" by default.
        filter: Filter = Filter::default(),
        /// Where a filter queues an acknowledgement that replaces others: "tail", or "head" for the place of the first of
        /// them; "tail" by default.
        place: Place = Place::default(),
        /// Also serve pure acknowledgements before data; false by default.
        acks_first: bool = false,
    }
}

const ELSEWHERE: &str = "only the kind \"ack-filter\" has this key";

/// The key of the disciplines that thin acknowledgements.
pub(super) const ACKS_FIRST: Key = Key {
    name: "acks-first",
    elsewhere: "only the kinds \"ack-filter\" and \"ack-decimation\" have this key; kind = \"acks-first\" gives acknowledgements priority",
    missing: None,
};

impl Model for Config {
    const KEYS: &'static [Key] = &[
        Key { name: "filter", elsewhere: ELSEWHERE, missing: None },
        Key { name: "place", elsewhere: ELSEWHERE, missing: None },
        ACKS_FIRST,
    ];
    const SEES_ALL: bool = true;
    type Order<P> = Box<AckFilter<P>>;
    type Invalid = Infallible;

    fn validate(&self, _: Limit) -> Result<(), Infallible> {
        Ok(())
    }
    fn build<P>(&self) -> Box<AckFilter<P>> {
        Box::new(AckFilter { lines: Lines::new(self.acks_first), flows: Flows::default(), config: *self })
    }
    fn words(&self) -> &'static str {
        match self.filter {
            Filter::Conservative => "redundant acknowledgements filtered, two kept",
            Filter::Aggressive => "redundant acknowledgements filtered, one kept",
        }
    }
    fn share_of_acks(&self) -> f64 {
        // No minimum: only as many are forwarded as the link carries, even if that is none.
        0.0
    }
}

/// The waiting packets, and the last acknowledgement of each flow.
#[derive(Clone, Debug)]
pub struct AckFilter<P> {
    lines: Lines<P>,
    flows: Flows,
    config: Config,
}

/// The acknowledgements made redundant by another.
#[derive(Clone, Copy, Debug, Default)]
struct Redundant {
    packets: u32,
    bytes: u64,
    /// Index of the newest, and its size.
    newest: (usize, u32),
    /// Indices of the first two behind the last packet of the flow that stays. An acknowledgement that moves to one of these
    /// places overtakes no packet that stays.
    behind: (Option<usize>, Option<usize>),
}

/// Whether `new` makes `old` redundant.
fn covers(new: &Acknowledgement, old: &Acknowledgement) -> bool {
    let later = match (old.stamp, new.stamp) {
        (Some(old), Some(new)) => new.wrapping_sub(old) as i32 >= 0,
        (Some(_), None) => false,
        (None, _) => true,
    };
    !old.tells_more && old.ecn == new.ecn && new.is_beyond(old) && later
}

impl<P> AckFilter<P> {
    /// A filter that keeps one of several redundant acknowledgements, at the tail.
    pub(super) fn aggressive() -> Self {
        let config = Config { filter: Filter::Aggressive, ..Config::default() };
        Self { lines: Lines::new(config.acks_first), flows: Flows::default(), config }
    }
}

impl<P: PacketView> AckFilter<P> {
    /// True if `ack` makes `w` redundant.
    fn is_redundant(w: &Waiting<P>, flow: u32, ack: &Acknowledgement) -> bool {
        !w.stays && w.ack_of(flow, ack.connection).is_some_and(|old| covers(ack, old))
    }

    /// The waiting acknowledgements that `ack` makes redundant, to be removed if it is admitted.
    fn redundant(&self, flow: u32, ack: &Acknowledgement) -> Redundant {
        let mut r = Redundant::default();
        for (i, w) in self.lines.acks.iter().enumerate().filter(|(_, w)| w.packet.flow() == flow) {
            if !Self::is_redundant(w, flow, ack) {
                r.behind = (None, None);
                continue;
            }
            let size = w.packet.size();
            r.packets += 1;
            r.bytes += u64::from(size);
            r.newest = (i, size);
            match r.behind {
                (None, _) => r.behind.0 = Some(i),
                (_, None) => r.behind.1 = Some(i),
                _ => {}
            }
        }
        if self.config.filter == Filter::Conservative && r.packets > 0 {
            r.packets -= 1;
            r.bytes -= u64::from(r.newest.1);
        }
        r
    }

    /// Removes all redundant ones except that at `keep`.
    fn remove(
        &mut self,
        flow: u32,
        ack: &Acknowledgement,
        keep: Option<usize>,
        lost: &mut impl FnMut(P, DropReason),
    ) {
        let mut at = 0;
        self.lines.acks.retain_mut(|w| {
            let stays = Some(at) == keep || !Self::is_redundant(w, flow, ack);
            at += 1;
            if !stays {
                lost(core::mem::take(&mut w.packet), DropReason::Filtered);
            }
            stays
        });
    }

    /// Admits an acknowledgement in place of others.
    fn replace(
        &mut self,
        p: Waiting<P>,
        ack: &Acknowledgement,
        r: &Redundant,
        lost: &mut impl FnMut(P, DropReason),
    ) {
        let flow = p.packet.flow();
        let kept = (self.config.filter == Filter::Conservative).then_some(r.newest.0);
        // Those that remain move up to the first places of those removed.
        let (keep, place) = match (self.config.place, kept, r.behind) {
            (Place::Head, None, (first, _)) => (None, first),
            (Place::Head, Some(newest), (Some(first), Some(second))) => {
                self.lines.acks.swap(first, newest);
                (Some(first), Some(second))
            }
            _ => (kept, None),
        };
        let place = place.and_then(|at| self.lines.acks.get_mut(at));
        let p = match place {
            // It does not make itself redundant, so it stays.
            Some(w) => {
                lost(core::mem::replace(w, p).packet, DropReason::Filtered);
                None
            }
            None => Some(p),
        };
        self.remove(flow, ack, keep, lost);
        self.lines.acks.extend(p);
    }
}

impl<P: PacketView> Order<P> for AckFilter<P> {
    fn enqueue(
        &mut self,
        _: &mut Moment<'_>,
        p: P,
        held: &mut Load,
        limit: Load,
        _: u32,
        lost: &mut impl FnMut(P, DropReason),
    ) -> bool {
        let mut p = Waiting::new(p);
        let Some(ack) = p.ack else { return self.lines.push(p, held, limit, lost) };
        let (flow, size) = (p.packet.flow(), p.packet.size());
        let position = self.flows.note(flow, &ack);
        (p.order, p.stays) = (position.order, position.duplicate);
        if p.stays {
            self.lines.keep_base(flow, ack.connection, position.order);
        }
        let r = self.redundant(flow, &ack);
        // Nothing is removed unless the new one is admitted.
        let mut rest = *held;
        rest.packets -= r.packets;
        rest.bytes -= r.bytes;
        if r.packets == 0 || !rest.admits(size, limit) {
            return self.lines.push(p, held, limit, lost);
        }
        *held = rest;
        held.add(size);
        self.replace(p, &ack, &r, lost);
        true
    }
    fn pass(&mut self, _: &mut Moment<'_>, p: P, _: Load, _: &mut impl FnMut(P, DropReason)) -> Option<P> {
        if let Some(ack) = p.ack() {
            self.flows.note(p.flow(), &ack);
        }
        Some(p)
    }
    fn dequeue(&mut self, _: &mut Moment<'_>, _: &mut Load, _: &mut impl FnMut(P, DropReason)) -> Option<P> {
        self.lines.pop()
    }
}

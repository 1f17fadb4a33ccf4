//! The network between the endpoints: a chain of links, with a run's counters and records of them.

use crate::observe::delay::Delays;
use crate::observe::tap::{Place, Sighting, Tap};
use crate::observe::truth::Truth;
use crate::packet::links::Gate;
use crate::packet::parcel::{Bodies, Parcel};
use skyhaul_base::Instant;
use skyhaul_path::{Chain, DropReason, Hop, Link, Observer, PacketView, Routed, Routes};
use skyhaul_trace::{Event, LossCause};
use std::collections::BTreeMap;

/// Everything between the endpoints.
#[derive(Debug)]
pub(crate) struct Network<R> {
    pub(crate) chain: Chain<Parcel>,
    pub(crate) witness: Witness<R>,
    /// The gates, by the entry of the route table at which a route ends there.
    pub(crate) gates: BTreeMap<u16, Gate>,
}

/// Observers of packets in the network: records, and knowledge of losses.
#[derive(Debug)]
pub(crate) struct Witness<R> {
    pub(crate) bodies: Bodies,
    pub(crate) truth: Truth,
    pub(crate) recorder: R,
    /// Delays of data packets, if the scenario measures them.
    pub(crate) delays: Option<Box<Delays>>,
    /// Packets that arrived at a link already ECN-marked, counted by kind: the link did not set these marks. Only
    /// for a recorder.
    marked: BTreeMap<PacketOnLink, u32>,
    /// The flows of frames between gateways, which recorders do not see.
    frames: core::ops::Range<u32>,
}

/// A directed link, and what distinguishes a packet there from most others: flow, direction, sequence number,
/// acknowledgement number.
type PacketOnLink = (u32, u32, bool, u32, u32);

fn on_link(link: u32, parcel: Parcel) -> PacketOnLink {
    let p = parcel.packet();
    (link, parcel.flow(), parcel.backward(), p.seq, p.ack)
}

impl<R: Tap> Network<R> {
    pub(crate) fn new(
        hops: Vec<Hop<Parcel>>,
        (routes, gates): (Routes, BTreeMap<u16, Gate>),
        frames: core::ops::Range<u32>,
        truth: Truth,
        recorder: R,
        delays: Option<Delays>,
    ) -> Self {
        let delays = delays.map(Box::new);
        let witness =
            Witness { bodies: Bodies::default(), truth, recorder, delays, marked: BTreeMap::new(), frames };
        Self { chain: Chain::new(hops, routes), witness, gates }
    }

    /// Passes a parcel to the first link of its route.
    #[inline(always)]
    pub(crate) fn forward(&mut self, now: Instant, parcel: Parcel) {
        self.chain.enter(now, parcel, &mut self.witness);
    }

    /// Handles the earliest event of a link. Returns a parcel that has reached its endpoint.
    #[inline]
    pub(crate) fn handle(&mut self, now: Instant) -> Option<Parcel> {
        self.chain.step(now, &mut self.witness)
    }

    /// Applies an operation to a directed link, and accounts for the packets lost by it.
    pub(crate) fn with_link(
        &mut self,
        now: Instant,
        index: u32,
        act: impl FnOnce(&mut Link<Parcel>, &mut dyn FnMut(Parcel, DropReason)),
    ) {
        self.chain.change(now, index, &mut self.witness, act);
    }

    /// Advances all links to `now`.
    pub(crate) fn settle(&mut self, now: Instant) {
        self.chain.settle(now, &mut self.witness);
    }
}

/// The cause of a loss, as used in records.
pub(crate) fn cause(why: DropReason) -> LossCause {
    match why {
        DropReason::Error => LossCause::Error,
        DropReason::Full => LossCause::Full,
        DropReason::LinkDown => LossCause::LinkDown,
        DropReason::PushedOut => LossCause::PushedOut,
        DropReason::Aqm => LossCause::Aqm,
        DropReason::ArqGaveUp => LossCause::ArqGaveUp,
        DropReason::Filtered => LossCause::Filtered,
    }
}

impl<R: Tap> Witness<R> {
    /// Whether it is a frame between gateways.
    #[inline]
    fn is_frame(&self, parcel: &Parcel) -> bool {
        self.frames.contains(&parcel.flow())
    }
    /// A marked packet arrives at a link.
    #[cold]
    fn note_marked(&mut self, link: u32, parcel: Parcel) {
        *self.marked.entry(on_link(link, parcel)).or_default() += 1;
    }
    /// A marked packet leaves a link. True if it was marked on arrival.
    #[cold]
    fn was_marked(&mut self, link: u32, parcel: Parcel) -> bool {
        let Some(n) = self.marked.get_mut(&on_link(link, parcel)) else { return false };
        *n -= 1;
        if *n == 0 {
            self.marked.remove(&on_link(link, parcel));
        }
        true
    }

    /// Shows the recorder a parcel. With such a recorder every parcel has a body.
    pub(crate) fn show(&mut self, now: Instant, parcel: Parcel, place: Place) {
        let segment = &parcel.segment(&self.bodies);
        let sighting = Sighting {
            flow: parcel.flow(),
            generation: parcel.generation(),
            backward: parcel.backward(),
            key: parcel.key(),
            place,
            segment,
        };
        self.recorder.packet(now, &sighting);
    }
}

impl<R: Tap> Observer<Parcel> for Witness<R> {
    #[inline(always)]
    fn entered(&mut self, now: Instant, link: u32, parcel: &Parcel) {
        if (R::ENABLED || R::PACKETS) && self.is_frame(parcel) {
            return;
        }
        if R::ENABLED && parcel.is_marked() {
            self.note_marked(link, *parcel);
        }
        if R::PACKETS {
            self.show(now, *parcel, Place::Entered { link });
        }
    }

    #[inline(always)]
    fn left(&mut self, now: Instant, link: u32, parcel: &Parcel) {
        if (R::ENABLED || R::PACKETS) && self.is_frame(parcel) {
            return;
        }
        if R::ENABLED && parcel.is_marked() && !self.was_marked(link, *parcel) {
            let flow = parcel.flow();
            self.recorder.record(now, &Event::Marked { flow, link, packet: parcel.packet() });
        }
        if R::PACKETS {
            self.show(now, *parcel, Place::Left { link });
        }
    }

    fn lost(&mut self, now: Instant, link: u32, parcel: Parcel, why: DropReason) {
        if self.is_frame(&parcel) {
            return;
        }
        let cause = cause(why);
        if R::ENABLED {
            if parcel.is_marked() {
                self.was_marked(link, parcel);
            }
            let flow = parcel.flow();
            self.recorder.record(now, &Event::Dropped { flow, link, cause, packet: parcel.packet() });
        }
        if R::PACKETS {
            self.show(now, parcel, Place::Lost { link, cause });
        }
        self.truth.lost(parcel, cause);
        parcel.discard(&mut self.bodies);
    }

    fn copy(&mut self, parcel: &Parcel, number: u32) -> Option<Parcel> {
        Some(parcel.with_number(number, &mut self.bodies))
    }

    fn duplicate(&mut self, now: Instant, link: u32, parcel: &Parcel) -> Option<Parcel> {
        let copy = parcel.with_number(parcel.packet().ack, &mut self.bodies);
        if R::ENABLED {
            // Both leave the link, and at most one of them records the mark.
            if parcel.is_marked() {
                self.note_marked(link, copy);
            }
            self.recorder.record(now, &Event::Duplicated { flow: copy.flow(), link, packet: copy.packet() });
        }
        if R::PACKETS {
            self.show(now, copy, Place::Copied { of: parcel.key() });
        }
        Some(copy)
    }
}

impl Routed for Parcel {
    #[inline]
    fn hop(&self) -> u16 {
        Self::hop(*self)
    }
    #[inline]
    fn advance(&mut self) {
        Self::advance(self);
    }
    fn compress(&mut self, size: u32) {
        Self::compress(self, size);
    }
    #[inline]
    fn decompress(&mut self) {
        Self::decompress(self);
    }
}

//! Links, routes, and what is between the end points.

use crate::parcel::{Bodies, Parcel};
use crate::tap::{self, Place, Tap};
use crate::tournament::Tournament;
use crate::truth::Truth;
use skyhaul_base::Instant;
use skyhaul_path::{DropReason, Link, PacketView};
use skyhaul_trace::{Class, Event, LossCause};

/// Entry of the route table that stands for the end point.
const END: u32 = u32::MAX;

/// A directed link with what the run counts on it.
#[derive(Debug)]
pub(crate) struct Hop {
    pub(crate) link: Link<Parcel>,
    /// Losses of the channel spare pure acknowledgements.
    spare_acks: bool,
    pub(crate) offered: [u64; Class::COUNT],
    pub(crate) delivered: [u64; Class::COUNT],
    pub(crate) dropped: [[u64; LossCause::COUNT]; Class::COUNT],
}

/// Everything between the end points, and the events of the links.
///
/// Slots: first the services of all links, then their deliveries. A departure thus makes room for an arrival at
/// the same time.
#[derive(Debug)]
pub(crate) struct Network<R> {
    pub(crate) pending: Tournament,
    pub(crate) hops: Vec<Hop>,
    /// All routes, one after the other, each a list of links that ends with [`END`].
    routes: Vec<u32>,
    pub(crate) bodies: Bodies,
    pub(crate) truth: Truth,
    pub(crate) recorder: R,
}

impl Hop {
    pub(crate) fn new(link: Link<Parcel>, spare_acks: bool) -> Self {
        let none = [0; Class::COUNT];
        Self {
            link,
            spare_acks,
            offered: none,
            delivered: none,
            dropped: [[0; LossCause::COUNT]; Class::COUNT],
        }
    }
}

/// The routes of a world: each distinct one once.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    table: Vec<u32>,
    known: std::collections::BTreeMap<Vec<u32>, u16>,
}

impl Routes {
    /// Where the route over `links` begins in the table; `None` if the table is full.
    pub(crate) fn add(&mut self, links: Vec<u32>) -> Option<u16> {
        if let Some(at) = self.known.get(&links) {
            return Some(*at);
        }
        let at = u16::try_from(self.table.len()).ok()?;
        u16::try_from(self.table.len() + links.len()).ok()?;
        self.table.extend(&links);
        self.table.push(END);
        self.known.insert(links, at);
        Some(at)
    }
}

impl<R: Tap> Network<R> {
    pub(crate) fn new(hops: Vec<Hop>, routes: Routes, truth: Truth, recorder: R) -> Self {
        Self {
            pending: Tournament::new(2 * hops.len()),
            hops,
            routes: routes.table,
            bodies: Bodies::default(),
            truth,
            recorder,
        }
    }

    /// Gives a parcel to the next link on its route.
    #[inline(always)]
    pub(crate) fn forward(&mut self, now: Instant, mut parcel: Parcel) {
        let index = self.routes[usize::from(parcel.hop())];
        parcel.advance();
        let links = self.hops.len() as u32;
        if R::PACKETS {
            tap::show(now, parcel, Place::Entered { link: index }, self);
        }
        let Self { pending, hops, bodies, truth, recorder, .. } = self;
        let Hop { link, spare_acks, offered, dropped, .. } = &mut hops[index as usize];
        let class = parcel.class();
        offered[class as usize] += 1;
        if *spare_acks {
            parcel.set_spared(class == Class::Ack);
        }
        link.offer(now, parcel, &mut |p, why| lose(now, index, p, why, dropped, bodies, truth, recorder));
        // A packet that found the link idle is on its way, another waits for service.
        if let Some(at) = link.next_delivery() {
            pending.set_earlier(links + index, at);
        }
        if let Some(at) = link.next_service() {
            pending.set_earlier(index, at);
        }
    }

    /// Handles the earliest event of a link. A parcel that has reached its end point is returned.
    #[inline]
    pub(crate) fn handle(&mut self, now: Instant) -> Option<Parcel> {
        let slot = self.pending.winner();
        let links = self.hops.len() as u32;
        if slot < links {
            self.serve(now, slot)
        } else {
            return self.deliver(now, slot - links);
        }
        None
    }

    #[inline]
    fn serve(&mut self, now: Instant, index: u32) {
        let links = self.hops.len() as u32;
        let Self { pending, hops, bodies, truth, recorder, .. } = self;
        let Hop { link, dropped, .. } = &mut hops[index as usize];
        link.serve(now, &mut |p, why| lose(now, index, p, why, dropped, bodies, truth, recorder));
        pending.set(index, link.next_service().unwrap_or(Instant::MAX));
        if let Some(at) = link.next_delivery() {
            pending.set_earlier(links + index, at);
        }
    }

    #[inline]
    fn deliver(&mut self, now: Instant, index: u32) -> Option<Parcel> {
        let links = self.hops.len() as u32;
        let hop = &mut self.hops[index as usize];
        let parcel = hop.link.deliver(now);
        self.pending.set(links + index, hop.link.next_delivery().unwrap_or(Instant::MAX));
        let parcel = parcel?;
        hop.delivered[parcel.class() as usize] += 1;
        if R::PACKETS {
            tap::show(now, parcel, Place::Left { link: index }, self);
        }
        if self.routes[usize::from(parcel.hop())] == END {
            return Some(parcel);
        }
        self.forward(now, parcel);
        None
    }
}

impl<R: Tap> Network<R> {
    /// Does something with a directed link and arms its events anew. What it loses is accounted for.
    pub(crate) fn with_link(
        &mut self,
        now: Instant,
        index: u32,
        act: impl FnOnce(&mut Link<Parcel>, &mut dyn FnMut(Parcel, DropReason)),
    ) {
        let links = self.hops.len() as u32;
        let Self { pending, hops, bodies, truth, recorder, .. } = self;
        let Hop { link, dropped, .. } = &mut hops[index as usize];
        act(link, &mut |p, why| lose(now, index, p, why, dropped, bodies, truth, recorder));
        pending.set(index, link.next_service().unwrap_or(Instant::MAX));
        pending.set(links + index, link.next_delivery().unwrap_or(Instant::MAX));
    }
}

/// Accounts for a lost parcel.
#[expect(clippy::too_many_arguments, reason = "fields of a network one of whose links is borrowed")]
fn lose<R: Tap>(
    now: Instant,
    link: u32,
    parcel: Parcel,
    why: DropReason,
    dropped: &mut [[u64; LossCause::COUNT]; Class::COUNT],
    bodies: &mut Bodies,
    truth: &mut Truth,
    recorder: &mut R,
) {
    let cause = match why {
        DropReason::Error => LossCause::Error,
        DropReason::Full => LossCause::Full,
        DropReason::LinkDown => LossCause::LinkDown,
        DropReason::PushedOut => LossCause::PushedOut,
    };
    dropped[parcel.class() as usize][cause as usize] += 1;
    if R::ENABLED {
        let flow = parcel.flow();
        recorder.record(now, &Event::Dropped { flow, link, cause, packet: parcel.packet() });
    }
    if R::PACKETS {
        let place = Place::Lost { link, cause };
        recorder.packet(now, &tap::sighting(parcel, place, &parcel.segment(bodies)));
    }
    truth.lost(parcel, cause);
    parcel.discard(bodies);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_routes_share_an_entry() {
        let mut r = Routes::default();
        assert_eq!(r.add(vec![0, 2]), Some(0));
        assert_eq!(r.add(vec![1]), Some(3));
        assert_eq!(r.add(vec![0, 2]), Some(0));
        assert_eq!(r.table, [0, 2, END, 1, END]);
    }
}

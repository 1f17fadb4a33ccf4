//! Links in sequence, which carry packets from one endpoint to the other, in the simulator, in the emulator and in
//! tests of endpoints.
//!
//! A chain has directed links and routes over them. A packet knows its route and its position on it ([`Routed`]).
//! The driver of the chain gives it packets and the time, and gets back the packets that have come through. Events
//! on the way go to an [`Observer`].

mod compaction;
mod duplication;
mod reconstruction;
mod tournament;

use crate::link::{Link, Offered};
use crate::packet::{DropReason, PacketView};
use crate::stats::Counters;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use compaction::Notes;
use duplication::Duplication;
pub use reconstruction::Reconstruction;
use skyhaul_base::units::Serializer;
use skyhaul_base::{Duration, Instant, Rng};
pub use tournament::Tournament;

/// Entry of the route table that means the endpoint.
const END: u32 = u32::MAX;

/// A packet with a route.
pub trait Routed: PacketView {
    /// The entry of the route table for its next hop.
    fn hop(&self) -> u16;
    /// Moves on to the next entry of the route table.
    fn advance(&mut self);
    /// The next link compresses headers: a pure TCP acknowledgement has `size` bytes there, unless it is smaller
    /// anyway.
    fn compress(&mut self, _size: u32) {}
    /// Restores its own size.
    fn decompress(&mut self) {}
}

/// An observer of packets. Links are identified by index.
pub trait Observer<P> {
    /// A packet is offered to a link.
    fn entered(&mut self, now: Instant, link: u32, packet: &P);
    /// A link has delivered a packet.
    fn left(&mut self, now: Instant, link: u32, packet: &P);
    /// A link has lost a packet.
    fn lost(&mut self, now: Instant, link: u32, packet: P, why: DropReason);
    /// The same acknowledgement with another number, for links that reconstruct; `None` if that is impossible.
    fn copy(&mut self, _packet: &P, _number: u32) -> Option<P> {
        None
    }
    /// The same packet once more, for links that duplicate; `None` if that is impossible.
    fn duplicate(&mut self, _now: Instant, _link: u32, _packet: &P) -> Option<P> {
        None
    }
}

/// A directed link of a chain.
#[derive(Clone, Debug)]
pub struct Hop<P> {
    link: Link<P>,
    /// What the hop does besides its link; `None` for most links, which thus need a single check.
    extras: Option<Box<Extras<P>>>,
}

/// What a hop does besides its link: treatment of pure TCP acknowledgements, and duplication of packets.
#[derive(Clone, Debug)]
struct Extras<P> {
    /// Their size on the link, bytes; `None` for their own size.
    size: Option<u32>,
    /// Creates acknowledgements at the far side.
    reconstruction: Option<Reconstruction<P>>,
    /// Information about acknowledgements removed by the queue, if it provides that.
    notes: Option<Notes>,
    /// Delivers some packets twice.
    duplication: Option<Duplication<P>>,
}

impl<P> Default for Extras<P> {
    fn default() -> Self {
        Self { size: None, reconstruction: None, notes: None, duplication: None }
    }
}

impl<P> Hop<P> {
    /// A link that treats acknowledgements like all other packets.
    #[must_use]
    pub fn new(link: Link<P>) -> Self {
        Self { link, extras: None }
    }
    /// Number of acknowledgements created at the far side.
    #[must_use]
    pub fn made(&self) -> u64
    where
        P: PacketView,
    {
        self.extras.as_ref().and_then(|a| a.reconstruction.as_ref()).map_or(0, Reconstruction::made)
    }
    /// The link, for inspection.
    #[must_use]
    pub fn link(&self) -> &Link<P> {
        &self.link
    }
    /// The counters of the link, with the copies that it has delivered.
    #[must_use]
    pub fn counters(&self) -> Counters
    where
        P: PacketView,
    {
        let mut counters = self.link.counters();
        if let Some(duplication) = self.extras.as_ref().and_then(|a| a.duplication.as_ref()) {
            for (kind, made) in counters.kinds.iter_mut().zip(duplication.made()) {
                kind.duplicated = *made;
            }
        }
        counters
    }
}

impl<P: PacketView> Hop<P> {
    /// The same link with header compression: a pure TCP acknowledgement has `size` bytes on it (RFC 3449 §5.1).
    #[must_use]
    pub fn compressing(mut self, size: u32) -> Self {
        self.extras.get_or_insert_default().size = Some(size);
        self
    }
    /// The same link with ACK reconstruction at its far side: acknowledgements for every `threshold` bytes.
    #[must_use]
    pub fn reconstructing(mut self, threshold: u32) -> Self {
        self.extras.get_or_insert_default().reconstruction = Some(Reconstruction::new(threshold));
        self
    }
    /// The same link with expansion at its far side: it recreates acknowledgements that a compacting queue has
    /// removed ([`compacts_acks`](crate::queue::Discipline::compacts_acks); RFC 3449 §5.3.2).
    #[must_use]
    pub fn expanding(mut self) -> Self {
        let extras = self.extras.get_or_insert_default();
        (extras.reconstruction, extras.notes) = (Some(Reconstruction::as_told()), Some(Notes::default()));
        self
    }
    /// The same link, which delivers each packet twice with probability `p`, in direct succession. A packet draws
    /// once from `rng`.
    #[must_use]
    pub fn duplicating(mut self, p: f64, rng: Rng) -> Self {
        self.extras.get_or_insert_default().duplication = Some(Duplication::new(p, rng));
        self
    }
    /// When [`Self::deliver`] is due.
    #[inline]
    fn next_delivery(&self) -> Instant {
        let next = self.link.next_delivery().unwrap_or(Instant::MAX);
        match &self.extras {
            None => next,
            Some(extras) => next.min(extras.next()),
        }
    }
    /// The next packet that has arrived by `now`.
    #[inline]
    fn deliver(&mut self, now: Instant, index: u32, observer: &mut impl Observer<P>) -> Option<P>
    where
        P: Routed,
    {
        match &mut self.extras {
            None => self.link.deliver(now),
            Some(extras) => extras.deliver_any(&mut self.link, now, index, observer),
        }
    }
}

impl<P: PacketView> Extras<P> {
    /// When an acknowledgement created at the far side, or a copy, is due.
    fn next(&self) -> Instant {
        let copy = self.duplication.as_ref().map_or(Instant::MAX, Duplication::next);
        copy.min(self.reconstruction.as_ref().map_or(Instant::MAX, Reconstruction::next))
    }
    /// A packet is about to be offered to the link.
    #[cold]
    fn enter(&mut self, now: Instant, packet: &mut P)
    where
        P: Routed,
    {
        if let Some(notes) = &mut self.notes {
            notes.offered(now, packet);
        }
        if let Some(size) = self.size {
            packet.compress(size);
        }
    }
    /// The next packet that has arrived by `now`, that was created, or that is a copy of the last one.
    #[cold]
    fn deliver_any(
        &mut self,
        link: &mut Link<P>,
        now: Instant,
        index: u32,
        observer: &mut impl Observer<P>,
    ) -> Option<P>
    where
        P: Routed,
    {
        if let Some(copy) = self.duplication.as_mut().and_then(Duplication::take) {
            return Some(copy);
        }
        let packet = self.deliver(link, now, |p, number| observer.copy(p, number))?;
        if let Some(duplication) = &mut self.duplication {
            if duplication.draws() {
                if let Some(copy) = observer.duplicate(now, index, &packet) {
                    duplication.hold(now, copy);
                }
            }
        }
        Some(packet)
    }
    /// The next packet that has arrived by `now`, or that was created.
    fn deliver(
        &mut self,
        link: &mut Link<P>,
        now: Instant,
        copy: impl FnMut(&P, u32) -> Option<P>,
    ) -> Option<P>
    where
        P: Routed,
    {
        let Some(r) = &mut self.reconstruction else {
            let mut p = link.deliver(now)?;
            p.decompress();
            return Some(p);
        };
        // Held packets leave before arrivals at the same time.
        if r.next() <= now {
            return r.release(now);
        }
        let mut p = link.deliver(now)?;
        p.decompress();
        let carried = self.notes.as_mut().and_then(|n| n.arrived(&p));
        r.arrive(now, p, carried, copy);
        r.release(now)
    }
}

/// The routes of a chain, without duplicates.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    table: Vec<u32>,
    known: BTreeMap<Vec<u32>, u16>,
}

impl Routes {
    /// Start of the route over `links` in the table; `None` if the table is full.
    pub fn add(&mut self, links: Vec<u32>) -> Option<u16> {
        if let Some(at) = self.known.get(&links) {
            return Some(*at);
        }
        let at = self.add_apart(&links)?;
        self.known.insert(links, at);
        Some(at)
    }
    /// Start of a new route over `links`, although there may be one; `None` if the table is full.
    pub fn add_apart(&mut self, links: &[u32]) -> Option<u16> {
        let at = u16::try_from(self.table.len()).ok()?;
        u16::try_from(self.table.len() + links.len()).ok()?;
        self.table.extend(links);
        self.table.push(END);
        Some(at)
    }
}

/// Links, and the packets on them.
///
/// Simultaneous events have a fixed order: first starts of transmissions, then deliveries, each in the order of the
/// links. A departure thus makes room for an arrival at the same time.
#[derive(Clone, Debug)]
pub struct Chain<P> {
    hops: Vec<Hop<P>>,
    /// All routes, one after the other, each a list of links that ends with [`END`].
    routes: Vec<u32>,
    /// When each link next starts a transmission, by index.
    services: Tournament,
    /// When each link next delivers a packet, by index.
    deliveries: Tournament,
}

impl<P: Routed> Chain<P> {
    /// Links without packets.
    #[must_use]
    pub fn new(hops: Vec<Hop<P>>, routes: Routes) -> Self {
        let slots = hops.len();
        Self {
            hops,
            routes: routes.table,
            services: Tournament::new(slots),
            deliveries: Tournament::new(slots),
        }
    }

    /// The links.
    #[must_use]
    pub fn hops(&self) -> &[Hop<P>] {
        &self.hops
    }

    /// Time of the next event; [`Instant::MAX`] means never.
    #[inline]
    #[must_use]
    pub fn next(&self) -> Instant {
        self.services.next().min(self.deliveries.next())
    }

    /// The least delay of a packet from the next link of its route to the end of the route, if all links stay as they are
    /// now: propagation without jitter, and transmission at the rates of the links. A rate that follows a trace has no
    /// transmission time here.
    #[must_use]
    pub fn least_delay(&self, now: Instant, packet: &P) -> Duration {
        let route = self.routes.get(usize::from(packet.hop())..).unwrap_or_default();
        let links =
            route.iter().take_while(|index| **index != END).filter_map(|i| self.hops.get(*i as usize));
        let at = links.fold(now, |at, Hop { link, .. }| {
            let rate = link.rate_over(now, now).and_then(|_| link.rate());
            let sent = rate.map_or(at, |rate| Serializer::new(rate).send(at, packet.size()));
            sent + link.delay().base_at(sent)
        });
        at - now
    }

    /// The entry of the route table at which the route of a packet ends.
    #[must_use]
    pub fn end_of_route(&self, packet: &P) -> u16 {
        let rest = self.routes.get(usize::from(packet.hop())..).unwrap_or_default();
        packet.hop() + rest.iter().take_while(|index| **index != END).count() as u16
    }

    /// Passes a packet to the next link of its route.
    #[inline(always)]
    pub fn enter(&mut self, now: Instant, mut packet: P, observer: &mut impl Observer<P>) {
        let index = self.routes[usize::from(packet.hop())];
        packet.advance();
        let Some(Hop { link, extras }) = self.hops.get_mut(index as usize) else { return };
        observer.entered(now, index, &packet);
        if let Some(extras) = extras {
            extras.enter(now, &mut packet);
        }
        let offered =
            link.offer(now, packet, &mut move |p, why| lose((now, index), extras, p, why, observer));
        if offered != Offered::Behind {
            self.arm(index);
        }
    }

    /// Updates the events of a link after it has taken a packet: they can only become earlier. The packet is in flight, or waits
    /// for its transmission.
    fn arm(&mut self, index: u32) {
        let Some(Hop { link, .. }) = self.hops.get(index as usize) else { return };
        if let Some(at) = link.next_delivery() {
            self.deliveries.set_earlier(index, at);
        }
        if let Some(at) = link.next_service() {
            self.services.set_earlier(index, at);
        }
    }

    /// Handles the earliest event, which is due at `now`. Returns a packet that has reached the end of its route.
    #[inline]
    pub fn step(&mut self, now: Instant, observer: &mut impl Observer<P>) -> Option<P> {
        if self.services.next() <= self.deliveries.next() {
            self.serve(now, self.services.winner(), observer);
            return None;
        }
        let index = self.deliveries.winner();
        let hop = self.hops.get_mut(index as usize)?;
        let packet = hop.deliver(now, index, observer);
        self.deliveries.set(index, hop.next_delivery());
        let packet = packet?;
        observer.left(now, index, &packet);
        if self.routes[usize::from(packet.hop())] == END {
            return Some(packet);
        }
        self.enter(now, packet, observer);
        None
    }

    #[inline]
    fn serve(&mut self, now: Instant, index: u32, observer: &mut impl Observer<P>) {
        let Some(Hop { link, extras, .. }) = self.hops.get_mut(index as usize) else { return };
        link.serve(now, &mut |p, why| lose((now, index), extras, p, why, observer));
        self.rearm(index);
    }

    /// Applies an operation to a link and updates its events.
    pub fn change(
        &mut self,
        now: Instant,
        index: u32,
        observer: &mut impl Observer<P>,
        act: impl FnOnce(&mut Link<P>, &mut dyn FnMut(P, DropReason)),
    ) {
        let Some(Hop { link, extras, .. }) = self.hops.get_mut(index as usize) else { return };
        act(link, &mut |p, why| lose((now, index), extras, p, why, observer));
        self.rearm(index);
    }

    /// Updates the events of a link after an arbitrary change.
    #[inline]
    fn rearm(&mut self, index: u32) {
        let Some(hop) = self.hops.get(index as usize) else { return };
        self.services.set(index, hop.link.next_service().unwrap_or(Instant::MAX));
        self.deliveries.set(index, hop.next_delivery());
    }

    /// Advances all links to `now`, before their queues are inspected. Events that are due earlier than needed stay, so that
    /// an inspection does not change their number.
    pub fn settle(&mut self, now: Instant, observer: &mut impl Observer<P>) {
        for (index, Hop { link, extras, .. }) in (0..).zip(&mut self.hops) {
            link.serve(now, &mut |p, why| lose((now, index), extras, p, why, observer));
        }
        (0..self.hops.len() as u32).for_each(|index| self.arm(index));
    }
}

/// A link has lost a packet.
#[cold]
fn lose<P: Routed>(
    (now, link): (Instant, u32),
    extras: &mut Option<Box<Extras<P>>>,
    mut packet: P,
    why: DropReason,
    observer: &mut impl Observer<P>,
) {
    if let Some(notes) = extras.as_mut().and_then(|a| a.notes.as_mut()) {
        notes.lost(&packet, why);
    }
    packet.decompress();
    observer.lost(now, link, packet, why);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::per;
    use crate::link::{LinkConfig, Streams};
    use alloc::vec;
    use skyhaul_base::Duration;

    /// An acknowledgement on its way.
    #[derive(Clone, Copy, Debug, Default)]
    struct Ack {
        hop: u16,
    }
    impl PacketView for Ack {
        fn size(&self) -> u32 {
            40
        }
        fn low_priority(&self) -> bool {
            false
        }
        fn flow(&self) -> u32 {
            0
        }
        fn is_pure_ack(&self) -> bool {
            true
        }
    }
    impl Routed for Ack {
        fn hop(&self) -> u16 {
            self.hop
        }
        fn advance(&mut self) {
            self.hop += 1;
        }
    }

    /// The links that packets entered, left, and were lost by.
    #[derive(Default)]
    struct Log {
        entered: Vec<u32>,
        left: Vec<u32>,
        lost: Vec<u32>,
    }
    impl Observer<Ack> for Log {
        fn duplicate(&mut self, _: Instant, _: u32, packet: &Ack) -> Option<Ack> {
            Some(*packet)
        }
        fn entered(&mut self, _: Instant, link: u32, _: &Ack) {
            self.entered.push(link);
        }
        fn left(&mut self, _: Instant, link: u32, _: &Ack) {
            self.left.push(link);
        }
        fn lost(&mut self, _: Instant, link: u32, _: Ack, why: DropReason) {
            assert_eq!(why, DropReason::Error);
            self.lost.push(link);
        }
    }

    #[test]
    fn only_a_link_that_spares_acknowledgements_spares_them() {
        // Both links lose every packet that they do not spare.
        for (spares, expected) in [([true, true], (2, 0)), ([true, false], (1, 1)), ([false, true], (0, 1))] {
            let hop = |spares_acks| {
                let config = LinkConfig {
                    delay: crate::Delay::fixed(Duration::from_millis(1)),
                    error: per::Config { p: 1.0 }.into(),
                    spares_acks,
                    ..LinkConfig::default()
                };
                Hop::new(Link::new(&config, Streams::named(1, "links.a")))
            };
            let mut routes = Routes::default();
            let start = routes.add(vec![0, 1]).expect("room");
            let mut chain = Chain::new(spares.map(hop).into(), routes);
            let mut seen = Log::default();
            chain.enter(Instant::ZERO, Ack { hop: start }, &mut seen);
            let mut arrived = 0;
            while chain.next() < Instant::MAX {
                arrived += usize::from(chain.step(chain.next(), &mut seen).is_some());
            }
            assert_eq!((seen.left.len(), seen.lost.len()), expected, "{spares:?}");
            assert_eq!(arrived, usize::from(seen.lost.is_empty()));
        }
    }

    /// What a chain of one link with this probability of a copy delivers of 2000 acknowledgements, one per millisecond.
    fn duplicated(p: f64) -> (Vec<u16>, Counters) {
        let config =
            LinkConfig { delay: crate::Delay::fixed(Duration::from_millis(5)), ..LinkConfig::default() };
        let link = Link::new(&config, Streams::named(1, "links.a"));
        let hop = Hop::new(link).duplicating(p, Rng::stream(1, "links.a.duplicate"));
        let mut routes = Routes::default();
        let starts: Vec<u16> = vec![routes.add(vec![0]).expect("room")];
        let mut chain = Chain::new(vec![hop], routes);
        let (mut seen, mut came) = (Log::default(), Vec::new());
        for ms in 0..2000 {
            let now = Instant::ZERO + Duration::from_millis(ms);
            chain.enter(now, Ack { hop: starts[0] }, &mut seen);
            while chain.next() <= now + Duration::from_micros(999) {
                let at = chain.next();
                came.extend(chain.step(at, &mut seen).map(|_| at.as_nanos() as u16));
            }
        }
        while chain.next() < Instant::MAX {
            came.extend(chain.step(chain.next(), &mut seen).map(|p| p.hop));
        }
        assert_eq!(seen.left.len(), came.len());
        (came, chain.hops()[0].counters())
    }

    #[test]
    fn a_link_that_duplicates_delivers_copies_in_addition() {
        for (p, least, most) in [(0.0, 0, 0), (1.0, 2000, 2000), (0.1, 130, 270)] {
            let (came, counters) = duplicated(p);
            let all = counters.total();
            assert_eq!((all.offered, all.delivered), (2000, 2000), "{p}");
            assert_eq!(came.len() as u64, all.delivered + all.duplicated, "{p}");
            // Five standard deviations around the mean.
            assert!((least..=most).contains(&all.duplicated), "{p}: {}", all.duplicated);
            assert_eq!(came, duplicated(p).0, "the stream decides");
        }
    }

    #[test]
    fn like_routes_share_an_entry() {
        let mut r = Routes::default();
        assert_eq!(r.add(vec![0, 2]), Some(0));
        assert_eq!(r.add(vec![1]), Some(3));
        assert_eq!(r.add(vec![0, 2]), Some(0));
        assert_eq!(r.table, [0, 2, END, 1, END]);
    }
}

//! Links with repair: blocks with parity, and ARQ above them.
//!
//! ```text
//! queue ─▶ window of ARQ ─▶ block ─▶ transmitter ~~~▶ block ─▶ order ─▶ deliver
//!              ▲   again                                │
//!              └──────────────── answers ◀──────────────┘
//! ```
//! ARQ sees the losses left by the code. Parity is no packet, but takes transmission time and a draw of the error model. The
//! copy over a second path takes a draw and no transmission time: it has a transmitter of its own ([`copies`]). A packet
//! keeps its key from its first transmission until its fate is known.
//!
//! Arrivals and answers are the link's own events, which [`super::Link::serve`] handles at their times, so a late
//! driver changes nothing. The order of simultaneous events is: arrivals, skips at the receiver, answers, overdue
//! packets, closed blocks, transmissions.

mod blocks;
mod copies;
mod event;
mod order;

use super::{General, LinkConfig, Offered};
use crate::arq;
use crate::delay::Delay;
use crate::fec::{Code, Shape};
use crate::packet::{DropReason, PacketView};
use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec::Vec;
use blocks::{Blocks, Settled};
use copies::TwoPaths;
use event::{Event, What};
use order::{Order, Slot};
use skyhaul_base::slab::Slab;
use skyhaul_base::{Duration, Instant, math};

/// The repair state of a link.
#[derive(Clone, Debug)]
pub(super) struct Layers<P> {
    /// Fraction of transmitted bits that belong to packets.
    bits: f64,
    /// Bytes of packets and parity so far, before and after the code of the modem.
    coded: (u64, u64),
    blocks: Blocks,
    /// The paths of packets that are sent over two.
    two_paths: Option<TwoPaths>,
    fill_time: Duration,
    arq: Option<arq::Config>,
    /// Packets whose fate ARQ does not know.
    outstanding: u32,
    /// Packets sent and neither delivered nor lost, by key.
    unsettled: Slab<Unsettled<P>>,
    /// Packets to be retransmitted.
    to_resend: VecDeque<u32>,
    /// The order of delivery, if the receiver keeps it.
    order: Option<Order>,
    events: BinaryHeap<Event>,
    /// Number of events created so far.
    created: u64,
    /// All events up to this time have been handled.
    clock: Instant,
    settled: Vec<Settled>,
}

/// A packet whose fate is unknown.
#[derive(Clone, Debug, Default)]
struct Unsettled<P> {
    packet: P,
    /// Its position in the order of first transmissions.
    position: u64,
    /// How often it was sent.
    sent: u32,
    /// Why its last transmission was lost, if it was.
    why: Option<DropReason>,
}

/// Parity as error models see it.
#[derive(Default)]
struct Parity(u32);

impl PacketView for Parity {
    fn size(&self) -> u32 {
        self.0
    }
    fn low_priority(&self) -> bool {
        false
    }
    fn flow(&self) -> u32 {
        0
    }
}

impl<P> Layers<P> {
    /// Number of packets sent whose fate is unknown.
    pub(super) fn in_flight(&self) -> usize {
        self.unsettled.len()
    }
}

impl<P: PacketView> Layers<P> {
    /// The repair state for this configuration; `None` without repair.
    pub(super) fn new(config: &LinkConfig) -> Option<Self> {
        if config.fec.is_none() && config.arq.is_none() && !config.two_paths {
            return None;
        }
        let mut code = config.fec.as_ref().map_or(Code::NONE, crate::fec::Config::code);
        if config.two_paths {
            code.shape = Shape { parity: 1, in_order: !config.allow_reorder, ..Shape::NONE };
        }
        let in_order = config.arq.map_or(code.shape.in_order, |arq| arq.in_order);
        Some(Self {
            bits: code.bits,
            coded: (0, 0),
            blocks: Blocks::new(&code.shape),
            two_paths: config.two_paths.then(|| TwoPaths::new(config.allow_reorder)),
            fill_time: code.shape.fill_time,
            arq: config.arq,
            outstanding: 0,
            unsettled: Slab::default(),
            to_resend: VecDeque::new(),
            order: in_order.then(Order::default),
            events: BinaryHeap::new(),
            created: 0,
            clock: Instant::ZERO,
            settled: Vec::new(),
        })
    }

    /// Time of the next event.
    pub(super) fn next(&self, link: &General<P>) -> Instant {
        self.next_event().min(self.next_start(link))
    }

    fn next_event(&self) -> Instant {
        self.events.peek().map_or(Instant::MAX, |e| e.at)
    }

    /// Start of the next transmission.
    fn next_start(&self, link: &General<P>) -> Instant {
        let sends = self.blocks.has_parity()
            || !self.to_resend.is_empty()
            || !link.queue.is_empty() && self.has_window();
        if sends && link.ready_at < Instant::MAX { link.ready_at.max(self.clock) } else { Instant::MAX }
    }

    fn has_window(&self) -> bool {
        self.arq.is_none_or(|arq| self.outstanding < arq.window)
    }

    /// Whether a packet that arrives now is sent at once.
    fn is_idle(&self, link: &General<P>, now: Instant) -> bool {
        let waits = self.blocks.has_parity() || !self.to_resend.is_empty() || !link.queue.is_empty();
        link.ready_at <= now && !waits && self.has_window()
    }

    /// Handles everything that is due by `now`.
    fn advance(&mut self, link: &mut General<P>, now: Instant, lost: &mut impl FnMut(P, DropReason)) {
        loop {
            let (event, start) = (self.next_event(), self.next_start(link));
            let next = event.min(start);
            if next > now || next == Instant::MAX {
                break;
            }
            let before = self.clock;
            self.clock = next;
            match self.events.peek() {
                Some(_) if event <= start => {
                    let due = self.events.pop();
                    due.into_iter().for_each(|e| self.handle(link, e.what, lost));
                }
                _ => self.start(link, start, start > before, lost),
            }
        }
        self.clock = self.clock.max(now);
    }

    /// Starts the next transmission: parity first, then retransmissions, then packets in the queue.
    fn start(
        &mut self,
        link: &mut General<P>,
        start: Instant,
        waited: bool,
        lost: &mut impl FnMut(P, DropReason),
    ) {
        if let Some((block, size)) = self.blocks.next_parity() {
            link.counters.repair.parity += 1;
            let (arrival, survived) = self.transmit(link, start, &Parity(size), waited);
            self.schedule(arrival, What::Arrive { block, packet: None, survived, path: 0 });
        } else if let Some(key) = self.to_resend.pop_front() {
            link.counters.repair.retransmissions += 1;
            self.send(link, start, key, waited);
        } else {
            link.integrate(start);
            if let Some(p) = link.take(start, lost) {
                self.first(link, start, p, true);
            }
        }
    }

    /// Sends a packet for the first time.
    fn first(&mut self, link: &mut General<P>, start: Instant, packet: P, waited: bool) {
        self.outstanding += u32::from(self.arq.is_some());
        let position = self.order.as_mut().map_or(0, Order::enter);
        let key = self.unsettled.insert(Unsettled { packet, position, sent: 0, why: None });
        self.send(link, start, key, waited);
    }

    /// Sends a packet as part of the block being filled.
    fn send(&mut self, link: &mut General<P>, start: Instant, key: u32, waited: bool) {
        let mut unsettled = core::mem::take(self.unsettled.get_mut(key));
        unsettled.sent += 1;
        let size = unsettled.packet.size();
        let (arrival, survived) = self.transmit(link, start, &unsettled.packet, waited);
        if self.two_paths.is_some() {
            return self.send_twice(link, (key, unsettled), survived);
        }
        unsettled.why = (!survived).then_some(DropReason::Error);
        *self.unsettled.get_mut(key) = unsettled;
        let (block, begun) = self.blocks.add(size);
        if let Some(group) = begun {
            self.schedule(start + self.fill_time, What::Filled(group));
        }
        self.schedule(arrival, What::Arrive { block, packet: Some(key), survived, path: 0 });
    }

    /// Sends the packet in transmission over both paths, as far as they are usable; `survived` says whether the channel spares the
    /// first copy to arrive.
    fn send_twice(
        &mut self,
        link: &mut General<P>,
        (key, mut unsettled): (u32, Unsettled<P>),
        survived: bool,
    ) {
        let end = link.free_at;
        let [first, second] = self.two_paths.as_mut().map_or([None; 2], |paths| paths.leave(end));
        // Both copies draw, used or not: otherwise losses would depend on which satellite is visible.
        let spared = !link.is_lost(&unsettled.packet);
        unsettled.why = match first {
            None => Some(DropReason::LinkDown),
            Some(_) => (!survived).then_some(DropReason::Error),
        };
        let size = unsettled.packet.size();
        *self.unsettled.get_mut(key) = unsettled;
        let (block, _) = self.blocks.add(size);
        // The parity of this block is the copy, which is sent below.
        self.blocks.next_parity();
        let (at, path) = first.unwrap_or((end, 0));
        self.schedule(
            at,
            What::Arrive { block, packet: Some(key), survived: survived && first.is_some(), path },
        );
        let copy = second.is_some();
        link.counters.repair.transmissions += u64::from(copy);
        link.counters.repair.parity += u64::from(copy);
        let (at, path) = second.unwrap_or((at, path));
        self.schedule(at, What::Arrive { block, packet: None, survived: spared && copy, path });
    }

    /// Occupies the transmitter. Returns the arrival time, and whether the transmission survives.
    fn transmit(
        &mut self,
        link: &mut General<P>,
        start: Instant,
        p: &impl PacketView,
        waited: bool,
    ) -> (Instant, bool) {
        let arrival = link.depart(start, self.coded(link.on_wire(p.size())), waited);
        link.size_in_service = p.size();
        link.counters.repair.transmissions += 1;
        (arrival, !link.is_lost(p))
    }

    /// Bytes that the modem sends for `size` bytes: whole bytes, with fractions carried over.
    fn coded(&mut self, size: u32) -> u32 {
        let (plain, coded) = &mut self.coded;
        *plain += u64::from(size);
        let until = math::floor(*plain as f64 / self.bits) as u64;
        let more = until - *coded;
        *coded = until;
        u32::try_from(more).unwrap_or(u32::MAX)
    }

    fn schedule(&mut self, at: Instant, what: What) {
        self.events.push(Event { at, created: self.created, what });
        self.created += 1;
    }

    fn handle(&mut self, link: &mut General<P>, what: What, lost: &mut impl FnMut(P, DropReason)) {
        match what {
            What::Arrive { block, packet, survived, .. } => {
                let repairs = link.counters.repair.repairs;
                let mut settled = core::mem::take(&mut self.settled);
                self.blocks.arrive(block, packet, survived, &mut settled);
                for s in settled.drain(..) {
                    match s {
                        Settled::Arrived(key) => self.arrived(link, key),
                        Settled::Repaired(key) => {
                            link.counters.repair.repairs += 1;
                            self.arrived(link, key);
                        }
                        Settled::Lost(key) => self.missed(link, key, lost),
                    }
                }
                self.settled = settled;
                if self.two_paths.is_some() && packet.is_none() && survived {
                    let needed = link.counters.repair.repairs > repairs;
                    link.counters.repair.duplicates += u64::from(!needed);
                }
            }
            What::Skip(position) => self.resolve(link, position, Slot::Skipped),
            What::Answered => self.outstanding -= 1,
            What::Overdue(key) => self.overdue(link, key, lost),
            What::Filled(group) => self.blocks.close(group),
        }
    }

    /// The receiver has a packet.
    fn arrived(&mut self, link: &mut General<P>, key: u32) {
        if let Some(arq) = self.arq {
            self.schedule(self.clock + answer(link, arq, self.clock), What::Answered);
        }
        if self.order.is_some() {
            self.resolve(link, self.unsettled.get(key).position, Slot::Arrived(key));
        } else {
            self.deliver(link, key);
        }
    }

    fn deliver(&mut self, link: &mut General<P>, key: u32) {
        let p = self.release(key);
        link.lane.push(self.clock, p);
    }

    /// The fate of a packet is known.
    fn release(&mut self, key: u32) -> P {
        let unsettled = core::mem::take(self.unsettled.get_mut(key));
        self.unsettled.free(key);
        unsettled.packet
    }

    /// The receiver knows the fate of a packet, and delivers packets that no longer wait for it.
    fn resolve(&mut self, link: &mut General<P>, position: u64, slot: Slot) {
        let Some(order) = &mut self.order else { return };
        order.resolve(position, slot);
        while let Some(key) = self.order.as_mut().and_then(Order::next) {
            self.deliver(link, key);
        }
    }

    /// The code cannot repair a packet.
    fn missed(&mut self, link: &mut General<P>, key: u32, lost: &mut impl FnMut(P, DropReason)) {
        if let Some(arq) = self.arq {
            let known = self.clock + answer(link, arq, self.clock) + arq.guard;
            self.schedule(known, What::Overdue(key));
            return;
        }
        let Unsettled { position, why, .. } = *self.unsettled.get(key);
        self.lose(link, key, why.unwrap_or(DropReason::Error), lost);
        self.resolve(link, position, Slot::Skipped);
    }

    fn lose(
        &mut self,
        link: &mut General<P>,
        key: u32,
        why: DropReason,
        lost: &mut impl FnMut(P, DropReason),
    ) {
        let p = self.release(key);
        link.counters.drop(&p, why);
        lost(p, why);
    }

    /// The sender knows that a packet has not arrived.
    fn overdue(&mut self, link: &mut General<P>, key: u32, lost: &mut impl FnMut(P, DropReason)) {
        let Some(arq) = self.arq else { return };
        let Unsettled { position, sent, .. } = *self.unsettled.get(key);
        if sent <= arq.retries {
            self.to_resend.push_back(key);
            return;
        }
        self.outstanding -= 1;
        link.counters.repair.give_ups += 1;
        self.lose(link, key, DropReason::ArqGaveUp, lost);
        if self.order.is_some() {
            // Informing the receiver takes no transmission time, but overtakes nothing.
            let informed = self.clock + link.delay.base_at(self.clock);
            let informed = if link.allow_reorder { informed } else { informed.max(link.last_arrival) };
            self.schedule(informed, What::Skip(position));
        }
    }

    /// Sets the delay of a path, or makes it unusable; packets in flight there are then lost if `cuts`.
    pub(super) fn set_path(&mut self, now: Instant, path: u8, delay: Option<Delay>, cuts: bool) {
        let Some(paths) = &mut self.two_paths else { return };
        if paths.set(path, delay) && cuts {
            paths.cut(path, now);
            self.cut(now, Some(path));
        }
    }

    /// Packets in flight, or those on this path, are lost, but may be repaired.
    pub(super) fn cut(&mut self, now: Instant, only: Option<u8>) {
        let mut events = core::mem::take(&mut self.events).into_vec();
        for e in &mut events {
            if let (What::Arrive { packet, survived, path, .. }, true) = (&mut e.what, e.at > now) {
                if only.is_some_and(|only| only != *path) {
                    continue;
                }
                // What the channel has lost already was not lost by the cut.
                if let (true, Some(key)) = (core::mem::replace(survived, false), packet) {
                    self.unsettled.get_mut(*key).why = Some(DropReason::LinkDown);
                }
            }
        }
        self.events = events.into();
    }
}

/// Delay of an answer that leaves the receiver now.
fn answer<P>(link: &General<P>, arq: arq::Config, now: Instant) -> Duration {
    match arq.feedback {
        arq::Feedback::Ideal => link.delay.base_at(now),
        arq::Feedback::After(time) => time,
    }
}

impl<P: PacketView> General<P> {
    /// [`Self::offer`] with repair.
    #[cold]
    pub(super) fn offer_repairing(
        &mut self,
        now: Instant,
        p: P,
        lost: &mut impl FnMut(P, DropReason),
    ) -> Offered {
        self.repairing(|link, layers| {
            layers.advance(link, now, lost);
            link.counters.offer(&p);
            if !layers.is_idle(link, now) {
                return link.wait(now, p, lost);
            }
            let passed = if link.queue.is_open() { Some(p) } else { link.let_pass(now, p, lost) };
            let Some(p) = passed else { return Offered::Dropped };
            layers.first(link, now, p, false);
            Offered::Sent
        })
        .unwrap_or(Offered::Dropped)
    }

    /// [`Self::serve`] with repair.
    #[cold]
    pub(super) fn serve_repairing(&mut self, now: Instant, lost: &mut impl FnMut(P, DropReason)) {
        self.repairing(|link, layers| layers.advance(link, now, lost));
    }

    /// Applies an operation to the link and its repair state.
    fn repairing<T>(&mut self, act: impl FnOnce(&mut Self, &mut Layers<P>) -> T) -> Option<T> {
        let mut layers = self.layers.take()?;
        let done = act(self, &mut layers);
        self.layers = Some(layers);
        Some(done)
    }
}

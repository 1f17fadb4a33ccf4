//! A link of any kind.

mod fade;
mod layers;

use super::{LinkConfig, Offered, Streams};
use crate::delay::Delay;
use crate::error::ErrorModel;
use crate::lane::Lane;
use crate::packet::{DropReason, PacketView};
use crate::param::Refusal as _;
use crate::queue::{Limit, Moment, Queue};
use crate::rate::{self, Transmitter};
use crate::stats::Counters;
use alloc::boxed::Box;
pub use fade::FADE_BYTES;
use fade::{Fade, Losing};
use layers::Layers;
use skyhaul_base::{Duration, Instant};

/// A link of any kind.
///
/// **Lazy service.** A packet that finds the link idle passes the transmitter at once: its departure and arrival
/// times are computed and it is put in flight, without an event for its departure. Only a packet that finds the
/// link busy waits in the queue, and only then is there a service event. An uncongested hop costs one event, a
/// congested one two.
///
/// **Repair.** A link with a code or ARQ has events of its own, arrivals and answers; for the driver they are
/// services. A packet that the code or a retransmission may still deliver is in flight, even if its link has gone
/// down.
#[derive(Clone, Debug)]
pub struct General<P> {
    /// Earliest start of the next transmission; `Instant::MAX` while the link is down.
    ready_at: Instant,
    /// End of the current transmission.
    free_at: Instant,
    transmitter: Transmitter,
    /// Size of the packet in transmission, without headers of fragments or bytes of a code, bytes.
    size_in_service: u32,
    up: bool,
    /// Its satellite is visible.
    visible: bool,
    drop_inflight: bool,
    allow_reorder: bool,
    queue: Queue<P>,
    /// Repairs lost packets.
    layers: Option<Box<Layers<P>>>,
    lane: Lane<P>,
    delay: Delay,
    /// The delay of all packets, if it is constant.
    constant_delay: Option<Duration>,
    /// Arrival time of the last packet that left, lost or not.
    last_arrival: Instant,
    error: ErrorModel,
    /// Longest packet sent in one piece, bytes.
    longest_whole: u32,
    losing: Losing,
    spares_acks: bool,
    fade: Fade,
    streams: Streams,
    counters: Counters,
    busy: Duration,
    /// Time integral of the queue length up to `area_at`, in packet nanoseconds.
    area: u64,
    area_at: Instant,
}

impl<P: PacketView> General<P> {
    pub(super) fn new(config: &LinkConfig, streams: Streams) -> Self {
        if let Err(e) = config.validate() {
            panic!("{}: {e}", e.key());
        }
        let error = config.losses().build();
        let mut queue = Queue::new(&config.queue);
        queue.set_rate(config.rate.mean());
        Self {
            ready_at: Instant::ZERO,
            free_at: Instant::ZERO,
            transmitter: config.rate.build(),
            size_in_service: 0,
            up: true,
            visible: true,
            drop_inflight: config.drop_inflight,
            allow_reorder: config.allow_reorder,
            queue,
            layers: Layers::new(config).map(Box::new),
            lane: Lane::new(config.allow_reorder),
            constant_delay: config.delay.constant(),
            delay: config.delay.clone(),
            last_arrival: Instant::ZERO,
            losing: Losing::of(&error, &Fade::NONE),
            spares_acks: config.spares_acks,
            longest_whole: error.longest_whole(),
            error,
            fade: Fade::NONE,
            streams,
            counters: Counters::default(),
            busy: Duration::ZERO,
            area: 0,
            area_at: Instant::ZERO,
        }
    }

    pub(super) fn offer(&mut self, now: Instant, p: P, lost: &mut impl FnMut(P, DropReason)) -> Offered {
        if self.layers.is_some() {
            return self.offer_repairing(now, p, lost);
        }
        // A departure that a late driver has not served yet makes room for this arrival.
        let late = !self.queue.is_empty() && self.ready_at <= now;
        if late {
            self.serve(now, lost);
        }
        self.counters.offer(&p);
        if self.ready_at <= now {
            let sent = if self.queue.is_open() {
                self.transmit(now, p, false, lost)
            } else {
                self.pass(now, p, lost)
            };
            return if late && sent.is_taken() { Offered::Sent } else { sent };
        }
        let waiting = !self.queue.is_empty();
        let offered = self.wait(now, p, lost);
        // A packet that pushes another out may become the first, or the only one.
        if waiting && !late && offered == Offered::Queued { Offered::Behind } else { offered }
    }

    pub(super) fn next_service(&self) -> Option<Instant> {
        if let Some(layers) = &self.layers {
            return Some(layers.next(self)).filter(|next| *next < Instant::MAX);
        }
        if self.queue.is_empty() || self.ready_at == Instant::MAX { None } else { Some(self.ready_at) }
    }

    pub(super) fn serve(&mut self, now: Instant, lost: &mut impl FnMut(P, DropReason)) {
        if self.layers.is_some() {
            return self.serve_repairing(now, lost);
        }
        while !self.queue.is_empty() && self.ready_at <= now {
            let start = self.ready_at;
            self.integrate(start);
            if let Some(p) = self.take(start, lost) {
                self.transmit(start, p, true, lost);
            }
        }
    }

    pub(super) fn next_delivery(&self) -> Option<Instant> {
        self.lane.next()
    }

    pub(super) fn deliver(&mut self, now: Instant) -> Option<P> {
        let p = self.lane.pop(now)?;
        self.counters.deliver(&p);
        Some(p)
    }

    pub(super) fn set_rate(&mut self, rate: &rate::Config) {
        self.transmitter.change(rate);
        self.queue.set_rate(rate.mean());
    }

    pub(super) fn set_error(&mut self, error: ErrorModel) {
        self.losing = Losing::of(&error, &self.fade);
        self.longest_whole = error.longest_whole();
        self.error = error;
    }

    pub(super) fn set_fade(&mut self, loss: f64) {
        self.fade = Fade::new(loss);
        self.losing = Losing::of(&self.error, &self.fade);
    }

    pub(super) fn set_delay(&mut self, delay: Delay) {
        self.constant_delay = delay.constant();
        self.delay = delay;
    }

    pub(super) fn set_limit(&mut self, limit: Limit) {
        self.queue.set_limit(limit);
    }

    pub(super) fn set_up(&mut self, now: Instant, up: bool, lost: &mut impl FnMut(P, DropReason)) {
        self.switch(now, up, self.visible, lost);
    }

    pub(super) fn set_visible(&mut self, now: Instant, visible: bool, lost: &mut impl FnMut(P, DropReason)) {
        self.switch(now, self.up, visible, lost);
    }

    pub(super) fn set_path(
        &mut self,
        now: Instant,
        path: u8,
        delay: Option<Delay>,
        lost: &mut impl FnMut(P, DropReason),
    ) {
        self.serve(now, lost);
        let cuts = self.drop_inflight;
        if let Some(layers) = &mut self.layers {
            layers.set_path(now, path, delay, cuts);
        }
    }

    fn switch(&mut self, now: Instant, up: bool, visible: bool, lost: &mut impl FnMut(P, DropReason)) {
        self.serve(now, lost);
        let was = self.is_up();
        (self.up, self.visible) = (up, visible);
        let is = self.is_up();
        if is == was {
            return;
        }
        if is {
            self.ready_at = self.free_at.max(now).max(self.queue.not_before());
            return;
        }
        self.ready_at = Instant::MAX;
        if self.drop_inflight {
            if let Some(layers) = &mut self.layers {
                layers.cut(now, None);
            }
            let counters = &mut self.counters;
            self.lane.cut(now, |p| {
                counters.drop(&p, DropReason::LinkDown);
                lost(p, DropReason::LinkDown);
            });
            // Packets on the next path need not wait for arrivals that never happen.
            self.last_arrival = self.last_arrival.min(now);
        }
    }

    /// Queues a packet that found the link busy or down.
    fn wait(&mut self, now: Instant, p: P, lost: &mut impl FnMut(P, DropReason)) -> Offered {
        self.integrate(now);
        let in_service = (now < self.free_at).then_some(self.size_in_service);
        let counters = &mut self.counters;
        let mut at = Moment::new(now, &mut self.streams.queue);
        let queued = self.queue.enqueue(&mut at, p, in_service, &mut |p, why| {
            counters.drop(&p, why);
            lost(p, why);
        });
        counters.mark(at.marked_and_kept(queued));
        counters.queued(&self.queue);
        if queued { Offered::Queued } else { Offered::Dropped }
    }

    /// Takes the next packet from the queue.
    fn take(&mut self, now: Instant, lost: &mut impl FnMut(P, DropReason)) -> Option<P> {
        let counters = &mut self.counters;
        let mut at = Moment::new(now, &mut self.streams.queue);
        let next = self.queue.dequeue(&mut at, &mut |p, why| {
            counters.drop(&p, why);
            lost(p, why);
        });
        counters.mark(at.marked);
        next
    }

    /// Sends a packet that found the link idle, if the queue admits it.
    fn pass(&mut self, now: Instant, p: P, lost: &mut impl FnMut(P, DropReason)) -> Offered {
        match self.let_pass(now, p, lost) {
            Some(p) => self.transmit(now, p, false, lost),
            None => Offered::Dropped,
        }
    }

    /// Shows the queue a packet that found the link idle; returns it if the queue admits it.
    fn let_pass(&mut self, now: Instant, p: P, lost: &mut impl FnMut(P, DropReason)) -> Option<P> {
        let counters = &mut self.counters;
        let mut at = Moment::new(now, &mut self.streams.queue);
        let passed = self.queue.pass(&mut at, p, &mut |p, why| {
            counters.drop(&p, why);
            lost(p, why);
        });
        counters.mark(at.marked);
        passed
    }

    /// Sends a packet at `start`, when the transmitter is free; `waited`: it was queued before.
    fn transmit(
        &mut self,
        start: Instant,
        p: P,
        waited: bool,
        lost: &mut impl FnMut(P, DropReason),
    ) -> Offered {
        let arrival = self.depart(start, self.on_wire(p.size()), waited);
        self.size_in_service = p.size();
        if self.is_lost(&p) {
            self.counters.drop(&p, DropReason::Error);
            lost(p, DropReason::Error);
            Offered::Behind
        } else {
            Offered::sent(self.lane.push(arrival, p))
        }
    }

    /// Bytes that a packet of `size` bytes takes on the link.
    #[inline]
    fn on_wire(&self, size: u32) -> u32 {
        if size <= self.longest_whole { size } else { self.error.on_wire(size) }
    }

    /// Whether the channel loses a packet.
    fn is_lost(&mut self, p: &impl PacketView) -> bool {
        match self.losing {
            Losing::Nothing => false,
            _ if self.spares_acks && p.is_pure_ack() => false,
            Losing::Own => self.error.loses(p, &mut self.streams.error),
            Losing::Faded => self.is_lost_fading(p),
        }
    }

    /// Whether the channel loses a packet during a fade. Both models always draw.
    #[cold]
    fn is_lost_fading(&mut self, p: &impl PacketView) -> bool {
        let own = self.error.loses(p, &mut self.streams.error);
        self.fade.loses(p.size(), &mut self.streams.fade) || own
    }

    /// The transmitter sends `size` bytes from `start`; returns the arrival time.
    fn depart(&mut self, start: Instant, size: u32, waited: bool) -> Instant {
        let end = self.transmitter.send(start, size, waited);
        self.busy = self.busy + (end - start);
        self.ready_at = end.max(self.queue.not_before());
        self.free_at = end;
        // The delay is drawn, and the order of arrivals kept, for lost packets, too: with another error model, the
        // others would arrive at the same times.
        let arrival = end
            + match self.constant_delay {
                Some(delay) => delay,
                None => self.delay.sample(end, &mut self.streams.delay),
            };
        if self.allow_reorder {
            return arrival;
        }
        self.last_arrival = arrival.max(self.last_arrival);
        self.last_arrival
    }

    /// Accounts for the time up to `now` at the current queue length.
    #[inline]
    fn integrate(&mut self, now: Instant) {
        self.area = self.queue_integral(now);
        self.area_at = now;
    }
}

impl<P: Default> General<P> {
    pub(super) fn is_up(&self) -> bool {
        self.up && self.visible
    }
    pub(super) fn free_at(&self) -> Instant {
        self.free_at
    }
    pub(super) fn transmitter(&self) -> &Transmitter {
        &self.transmitter
    }
    pub(super) fn delay(&self) -> &Delay {
        &self.delay
    }
    pub(super) fn queue(&self) -> &Queue<P> {
        &self.queue
    }
    pub(super) fn in_flight(&self) -> usize {
        self.lane.len() + self.layers.as_ref().map_or(0, |layers| layers.in_flight())
    }
    pub(super) fn peek(&self, n: usize) -> Option<&P> {
        self.lane.peek(n)
    }
    pub(super) fn counters(&self) -> Counters {
        self.counters
    }
    pub(super) fn busy(&self) -> Duration {
        self.busy
    }
    pub(super) fn queue_integral(&self, now: Instant) -> u64 {
        let span = now.since(self.area_at).as_nanos();
        self.area.saturating_add(span.saturating_mul(self.queue.len().into()))
    }
}

//! A directed link: queue, transmitter, propagation, errors.

mod config;
mod fade;
mod foreseen;
mod layers;

use crate::delay::Delay;
use crate::error::ErrorModel;
use crate::lane::Lane;
use crate::packet::{DropReason, PacketView};
use crate::param::Refusal as _;
use crate::queue::{Limit, Moment, Queue};
use crate::rate::{self, Transmitter};
use crate::stats::Counters;
use alloc::boxed::Box;
pub use config::{InvalidRepair, LinkConfig, Streams};
pub use fade::FADE_BYTES;
use fade::{Fade, Losing};
use foreseen::Foreseen;
use layers::Layers;
use skyhaul_base::{Duration, Instant, Rate};

/// The fate of an offered packet, which also tells which event may have to be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// Refused.
    Dropped,
    /// The packet waits: [`Link::next_service`] may have changed.
    Queued,
    /// Its transmission has started, or its start is known: [`Link::next_delivery`] may have changed.
    Sent,
    /// The packet waits or is in flight, but no event changes: others are ahead of it, or the channel has lost it.
    Behind,
}

impl Offered {
    /// A packet in flight; `first` if it is the next to arrive.
    #[inline]
    fn sent(first: bool) -> Self {
        if first { Self::Sent } else { Self::Behind }
    }
    /// Whether the packet was not refused.
    #[must_use]
    pub fn is_taken(self) -> bool {
        self != Self::Dropped
    }
}

/// Additional features of a link. Each packet checks this several times, so the result is a separate byte.
#[derive(Clone, Debug)]
#[repr(u8)]
enum Mode<P> {
    /// Nothing.
    Plain,
    /// Departures are known in advance.
    Foreseen(Foreseen<P>),
    /// Lost packets are repaired.
    Repairing(Box<Layers<P>>),
}

/// A directed link.
///
/// **Lazy service.** A packet that finds the link idle passes the transmitter at once: its departure and arrival
/// times are computed and it is put in flight, without an event for its departure. Only a packet that finds the
/// link busy waits in the queue, and only then is there a service event. An uncongested hop costs one event, a
/// congested one two.
///
/// **Departures known in advance.** If nothing can overtake a packet and the link never changes
/// ([`Self::foreseeing`]), the departure of a packet is known when it arrives: for all packets in a FIFO, for those
/// of high priority with strict priority. It is put in flight at once, and the queue is a list of times. A
/// congested hop then costs one event, too. All results are the same, provided that [`Self::serve`] is called when
/// it is due and before any query about the queue.
///
/// **Repair.** A link with a code or ARQ has events of its own, arrivals and answers; for the driver they are
/// services. A packet that the code or a retransmission may still deliver is in flight, even if its link has gone
/// down.
///
/// **Simultaneous events.** A departure at *t* makes room for an arrival at *t*. Drivers should call
/// [`Self::serve`] before [`Self::offer`] at the same time; a link that is offered a packet first catches up by
/// itself.
///
/// **Late drivers.** A real-time driver calls a little late. Service still starts at its due time, so lateness does
/// not reduce the rate. Call [`Self::serve`] first at each wake-up.
///
/// Times given to a link must not decrease.
#[derive(Clone, Debug)]
pub struct Link<P> {
    /// Earliest start of the next transmission; `Instant::MAX` while the link is down.
    ready_at: Instant,
    /// End of the current transmission.
    free_at: Instant,
    transmitter: Transmitter,
    size_in_service: u32,
    up: bool,
    /// Its satellite is visible.
    visible: bool,
    drop_inflight: bool,
    allow_reorder: bool,
    queue: Queue<P>,
    mode: Mode<P>,
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

impl<P: PacketView> Link<P> {
    /// An idle link that is up.
    ///
    /// # Panics
    /// If the rate is zero: a link that never sends must be configured as down. If
    /// [`crate::error::Config::validate`] refuses the losses, or [`LinkConfig::validate`] the repair.
    #[must_use]
    pub fn new(config: &LinkConfig, streams: Streams) -> Self {
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
            mode: Layers::new(config).map_or(Mode::Plain, |l| Mode::Repairing(Box::new(l))),
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

    /// Offers a packet to the link. Packets lost by it go to `lost`.
    #[inline]
    pub fn offer(&mut self, now: Instant, p: P, lost: &mut impl FnMut(P, DropReason)) -> Offered {
        match self.mode {
            Mode::Plain => {}
            Mode::Foreseen(_) => return self.offer_foreseen(now, p, lost),
            Mode::Repairing(_) => return self.offer_repairing(now, p, lost),
        }
        // Only with a late driver is there anything to do: a departure due by now makes room for this arrival.
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

    /// When [`Self::serve`] is due; `None` while nothing waits or the link is down.
    #[inline]
    #[must_use]
    pub fn next_service(&self) -> Option<Instant> {
        match &self.mode {
            Mode::Plain => {}
            Mode::Foreseen(f) => {
                let doomed = f.doomed.front().map_or(Instant::MAX, |d| d.0);
                let next = if self.low_waits() { doomed.min(self.ready_at) } else { doomed };
                return (next < Instant::MAX).then_some(next);
            }
            Mode::Repairing(layers) => {
                let next = layers.next(self);
                return (next < Instant::MAX).then_some(next);
            }
        }
        if self.queue.is_empty() || self.ready_at == Instant::MAX { None } else { Some(self.ready_at) }
    }

    /// Starts every transmission that is due by `now`.
    #[inline]
    pub fn serve(&mut self, now: Instant, lost: &mut impl FnMut(P, DropReason)) {
        match self.mode {
            Mode::Plain => {}
            Mode::Foreseen(_) => return self.serve_foreseen(now, lost),
            Mode::Repairing(_) => return self.serve_repairing(now, lost),
        }
        while !self.queue.is_empty() && self.ready_at <= now {
            let start = self.ready_at;
            self.integrate(start);
            if let Some(p) = self.take(start, lost) {
                self.transmit(start, p, true, lost);
            }
        }
    }

    /// When [`Self::deliver`] is due; `None` while nothing is in flight.
    #[inline]
    #[must_use]
    pub fn next_delivery(&self) -> Option<Instant> {
        self.lane.next()
    }

    /// The next packet that has arrived by `now`.
    #[inline]
    pub fn deliver(&mut self, now: Instant) -> Option<P> {
        let p = self.lane.pop(now)?;
        self.counters.deliver(&p);
        Some(p)
    }

    /// Changes the rate for later transmissions; the current one keeps its end.
    ///
    /// # Panics
    /// If the rate is zero: a link that never sends must be configured as down. If departures are computed in
    /// advance.
    pub fn set_rate(&mut self, rate: &rate::Config) {
        self.changes();
        self.transmitter.change(rate);
        self.queue.set_rate(rate.mean());
    }

    /// Changes the error model for later transmissions; the random stream continues.
    pub fn set_error(&mut self, error: ErrorModel) {
        self.changes();
        self.losing = Losing::of(&error, &self.fade);
        self.longest_whole = error.longest_whole();
        self.error = error;
    }

    /// Sets the additional losses by rain or shadowing for later transmissions: the loss probability of packets of
    /// [`FADE_BYTES`] bytes, between 0 and 1. It has its own random stream.
    pub fn set_fade(&mut self, loss: f64) {
        self.changes();
        self.fade = Fade::new(loss);
        self.losing = Losing::of(&self.error, &self.fade);
    }

    /// Changes the delay of later transmissions; the random stream continues. Without `allow_reorder` a shorter
    /// delay does not let packets overtake.
    pub fn set_delay(&mut self, delay: Delay) {
        self.changes();
        self.constant_delay = delay.constant();
        self.delay = delay;
    }

    /// Changes the capacity of the queue; see [`Queue::set_limit`].
    pub fn set_limit(&mut self, limit: Limit) {
        self.changes();
        self.queue.set_limit(limit);
    }

    /// Takes the link down or brings it up. While it is down the queue keeps filling and its head waits. The
    /// transmitter finishes the current packet, but that packet counts as in flight; all packets in flight are lost
    /// if the link is configured so.
    pub fn set_up(&mut self, now: Instant, up: bool, lost: &mut impl FnMut(P, DropReason)) {
        self.switch(now, up, self.visible, lost);
    }

    /// Sets whether its satellite is visible: the link is up while it is both up and visible, see [`Self::set_up`].
    pub fn set_visible(&mut self, now: Instant, visible: bool, lost: &mut impl FnMut(P, DropReason)) {
        self.switch(now, self.up, visible, lost);
    }

    /// Sets the delay of one of the two paths of a link that has them ([`LinkConfig::two_paths`]), 0 or 1. `None`
    /// makes it unusable, and a link configured so loses the copies in flight there. No effect on other links.
    pub fn set_path(
        &mut self,
        now: Instant,
        path: u8,
        delay: Option<Delay>,
        lost: &mut impl FnMut(P, DropReason),
    ) {
        self.changes();
        self.serve(now, lost);
        let cuts = self.drop_inflight;
        if let Mode::Repairing(layers) = &mut self.mode {
            layers.set_path(now, path, delay, cuts);
        }
    }

    fn switch(&mut self, now: Instant, up: bool, visible: bool, lost: &mut impl FnMut(P, DropReason)) {
        self.changes();
        self.serve(now, lost);
        let was = self.is_up();
        (self.up, self.visible) = (up, visible);
        let is = self.is_up();
        if is == was {
            return;
        }
        if is {
            self.ready_at = self.free_at.max(now);
            return;
        }
        self.ready_at = Instant::MAX;
        if self.drop_inflight {
            if let Mode::Repairing(layers) = &mut self.mode {
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

    /// The link changes: departures must not have been computed in advance.
    fn changes(&self) {
        assert!(!matches!(self.mode, Mode::Foreseen(_)), "a link that foresees departures does not change");
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
        counters.max_queue = counters.max_queue.max(self.queue.len());
        counters.max_queue_bytes = counters.max_queue_bytes.max(self.queue.bytes());
        if queued { Offered::Queued } else { Offered::Dropped }
    }

    /// Takes the next packet from the queue.
    #[inline]
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
    #[inline(never)]
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
    #[inline]
    fn transmit(
        &mut self,
        start: Instant,
        p: P,
        waited: bool,
        lost: &mut impl FnMut(P, DropReason),
    ) -> Offered {
        let arrival = self.depart(start, self.on_wire(p.size()), waited);
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
    #[inline]
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
    #[inline]
    fn depart(&mut self, start: Instant, size: u32, waited: bool) -> Instant {
        let end = self.transmitter.send(start, size, waited);
        self.busy = self.busy + (end - start);
        self.ready_at = end;
        self.free_at = end;
        self.size_in_service = size;
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

impl<P: Default> Link<P> {
    /// Whether the link is up and its satellite visible.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.up && self.visible
    }
    /// Whether a packet is being transmitted.
    #[must_use]
    pub fn is_busy(&self, now: Instant) -> bool {
        now < self.free_at
    }
    /// The rate of the transmitter, or the mean of a time-varying one; `None` if it is infinitely fast.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        self.transmitter.rate()
    }
    /// The rate in bit/s: the current one, or the mean of a time-varying one between two times. `None` if the
    /// transmitter is infinitely fast, or if a time-varying rate has no time between the two.
    #[must_use]
    pub fn rate_over(&self, from: Instant, to: Instant) -> Option<f64> {
        self.transmitter.rate_over(from, to)
    }
    /// The delay of transmissions that start now.
    #[must_use]
    pub fn delay(&self) -> &Delay {
        &self.delay
    }
    /// Number of packets in the queue, without the one in transmission.
    #[must_use]
    pub fn queue_len(&self) -> u32 {
        self.queue.len()
    }
    /// Number of bytes in the queue.
    #[must_use]
    pub fn queue_bytes(&self) -> u64 {
        self.queue.bytes()
    }
    /// Number of packets in flight, including the one in transmission.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        match &self.mode {
            Mode::Plain => self.lane.len(),
            Mode::Foreseen(f) => self.lane.len() - (f.waiting.len() - f.doomed.len()),
            Mode::Repairing(layers) => self.lane.len() + layers.in_flight(),
        }
    }
    /// The `n`-th of the packets in flight, in the order of arrival from 0; `None` beyond the last one, and on
    /// links that may reorder or that repair.
    #[inline]
    #[must_use]
    pub fn peek(&self, n: usize) -> Option<&P> {
        self.lane.peek(n)
    }
    /// The counters of the link. Offered = delivered + lost + waiting + in flight, at any time.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
    /// Busy time of the transmitter until `now`. Over an interval this gives the utilisation.
    #[must_use]
    pub fn busy_time(&self, now: Instant) -> Duration {
        // The packet in transmission was counted as a whole when it started.
        self.busy - (self.free_at - now)
    }
    /// Time integral of the queue length until `now`, in packet nanoseconds; divided by an interval it gives the
    /// mean queue length. Saturates after 1.8e10 packet seconds.
    #[must_use]
    pub fn queue_integral(&self, now: Instant) -> u64 {
        let span = now.since(self.area_at).as_nanos();
        self.area.saturating_add(span.saturating_mul(self.queue.len().into()))
    }
}

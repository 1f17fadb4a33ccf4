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

/// What became of an offered packet, and with it which event may have to be armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// Refused.
    Dropped,
    /// It waits: [`Link::next_service`] may have changed.
    Queued,
    /// Its transmission has begun, or will: [`Link::next_delivery`] may have changed.
    Sent,
    /// It waits or is on its way, but nothing has changed: others are ahead of it, or the channel has lost it.
    Behind,
}

impl Offered {
    /// It is on its way; `first` if it is the next to arrive.
    #[inline]
    fn sent(first: bool) -> Self {
        if first { Self::Sent } else { Self::Behind }
    }
    /// True unless the packet was refused.
    #[must_use]
    pub fn is_taken(self) -> bool {
        self != Self::Dropped
    }
}

/// What a link does besides. Each packet asks several times, so that the answer is a byte of its own.
#[derive(Clone, Debug)]
#[repr(u8)]
enum Mode<P> {
    /// Nothing.
    Plain,
    /// It foresees departures.
    Foreseen(Foreseen<P>),
    /// It repairs what the channel has lost.
    Repairing(Box<Layers<P>>),
}

/// A directed link.
///
/// **Lazy service.** A packet that finds the link idle passes the transmitter at once: its departure and
/// arrival times are computed and it is put in flight, with no event for its departure. Only a packet that
/// finds the link busy waits in the queue, and only then is there a service event. An uncongested hop costs
/// one event and a congested one two.
///
/// **Foreseen departures.** Where nothing that comes later overtakes a packet and nothing about the link will change
/// ([`Self::foreseeing`]), its departure is known when it arrives: in a FIFO that of each, with strict priority that of
/// each packet of high priority. It is put in flight at once, and the queue is a list of times. A congested hop then
/// costs one event, too. What the link tells is the same, provided that [`Self::serve`] is called when it is due and before anything about the queue is asked for.
///
/// **Repair.** A link with a code or with repeats on request has events of its own, arrivals and answers; they are services
/// to whoever drives it. A packet that the code or a repeat may still bring is in flight, also where its link has gone
/// down.
///
/// **Simultaneous events.** A departure at *t* makes room for an arrival at *t*. Drivers should call
/// [`Self::serve`] before [`Self::offer`] at the same time; a link that is offered a packet first catches up by
/// itself.
///
/// **Late drivers.** A real-time driver calls a little late. Service then starts at the time at which it was
/// due, so lateness does not reduce the rate. Call [`Self::serve`] before anything else at each wake-up.
///
/// Times given to a link must not decrease.
#[derive(Clone, Debug)]
pub struct Link<P> {
    /// When the next transmission may begin; `Instant::MAX` while the link is down.
    ready_at: Instant,
    /// When the last bit of the packet in service leaves.
    free_at: Instant,
    transmitter: Transmitter,
    size_in_service: u32,
    up: bool,
    /// Its satellite is in sight.
    visible: bool,
    drop_inflight: bool,
    allow_reorder: bool,
    queue: Queue<P>,
    mode: Mode<P>,
    lane: Lane<P>,
    delay: Delay,
    /// The delay of all packets, if it is always the same.
    constant_delay: Option<Duration>,
    /// Arrival time of the last packet that left, lost or not.
    last_arrival: Instant,
    error: ErrorModel,
    /// The longest packet that goes in one piece, bytes.
    longest_whole: u32,
    losing: Losing,
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
    /// If the rate is zero: a link that never sends is one that is down. If [`crate::error::Config::validate`] refuses the losses,
    /// or [`LinkConfig::validate`] the repair.
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

    /// Gives the link a packet. Every packet lost by it goes to `lost`.
    #[inline(always)]
    pub fn offer(&mut self, now: Instant, p: P, lost: &mut impl FnMut(P, DropReason)) -> Offered {
        match self.mode {
            Mode::Plain => {}
            Mode::Foreseen(_) => return self.offer_foreseen(now, p, lost),
            Mode::Repairing(_) => return self.offer_repairing(now, p, lost),
        }
        // Only a late driver leaves anything to do: a departure due by now makes room for this arrival.
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
        // Who pushes another out may be the first, or the only one.
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
    #[inline(always)]
    pub fn deliver(&mut self, now: Instant) -> Option<P> {
        let p = self.lane.pop(now)?;
        self.counters.deliver(&p);
        Some(p)
    }

    /// Changes the rate for transmissions that begin from now on; the present one keeps its end.
    ///
    /// # Panics
    /// If the rate is zero: a link that never sends is one that is down. If it foresees departures.
    pub fn set_rate(&mut self, rate: &rate::Config) {
        self.changes();
        self.transmitter.change(rate);
        self.queue.set_rate(rate.mean());
    }

    /// Changes the error model for transmissions that begin from now on; the random stream runs on.
    pub fn set_error(&mut self, error: ErrorModel) {
        self.changes();
        self.losing = Losing::of(&error, &self.fade);
        self.longest_whole = error.longest_whole();
        self.error = error;
    }

    /// Sets what rain or shadowing loses besides, of transmissions that begin from now on: the share of packets of
    /// [`FADE_BYTES`] bytes, between 0 and 1. Its random stream is its own.
    pub fn set_fade(&mut self, loss: f64) {
        self.changes();
        self.fade = Fade::new(loss);
        self.losing = Losing::of(&self.error, &self.fade);
    }

    /// Changes the delay of transmissions that begin from now on; the random stream runs on. Without
    /// `allow_reorder` a shorter delay does not let packets overtake.
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
    /// transmitter finishes the packet it has begun, but that packet counts as in flight; all in flight is
    /// lost if the link was configured so.
    pub fn set_up(&mut self, now: Instant, up: bool, lost: &mut impl FnMut(P, DropReason)) {
        self.switch(now, up, self.visible, lost);
    }

    /// Its satellite is in sight or not: the link is up while it is both up and in sight, see [`Self::set_up`].
    pub fn set_visible(&mut self, now: Instant, visible: bool, lost: &mut impl FnMut(P, DropReason)) {
        self.switch(now, self.up, visible, lost);
    }

    /// One of the two ways of a link that has them ([`LinkConfig::two_ways`]), 0 or 1, has another delay; with `None` it
    /// cannot be used any more, and a link configured so loses the copies in flight there. Nothing happens on other links.
    pub fn set_way(
        &mut self,
        now: Instant,
        way: u8,
        delay: Option<Delay>,
        lost: &mut impl FnMut(P, DropReason),
    ) {
        self.changes();
        self.serve(now, lost);
        let cuts = self.drop_inflight;
        if let Mode::Repairing(layers) = &mut self.mode {
            layers.set_way(now, way, delay, cuts);
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

    /// Something changes: departures must not have been foreseen.
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

    /// Takes the packet that is served next from the queue.
    #[inline(always)]
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

    /// Sends a packet that found the link idle, if the queue lets it go.
    #[inline(never)]
    fn pass(&mut self, now: Instant, p: P, lost: &mut impl FnMut(P, DropReason)) -> Offered {
        match self.let_pass(now, p, lost) {
            Some(p) => self.transmit(now, p, false, lost),
            None => Offered::Dropped,
        }
    }

    /// Shows the queue a packet that found the link idle; returns it if the queue lets it go.
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

    /// Sends a packet at `start`, when the transmitter is free; `waited` if it was there before.
    #[inline(always)]
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

    /// What a packet of `size` bytes takes on the link, bytes.
    #[inline(always)]
    fn on_wire(&self, size: u32) -> u32 {
        if size <= self.longest_whole { size } else { self.error.on_wire(size) }
    }

    /// The channel loses a packet.
    #[inline(always)]
    fn is_lost(&mut self, p: &impl PacketView) -> bool {
        match self.losing {
            Losing::Nothing => false,
            Losing::Own => !p.spared() && self.error.loses(p, &mut self.streams.error),
            Losing::Faded => !p.spared() && self.is_lost_fading(p),
        }
    }

    /// The channel loses a packet in rain. Both draw, whatever comes of it.
    #[cold]
    #[inline(never)]
    fn is_lost_fading(&mut self, p: &impl PacketView) -> bool {
        let own = self.error.loses(p, &mut self.streams.error);
        self.fade.loses(p.size(), &mut self.streams.fade) || own
    }

    /// The transmitter sends `size` bytes from `start` on; returns when they arrive.
    #[inline(always)]
    fn depart(&mut self, start: Instant, size: u32, waited: bool) -> Instant {
        let end = self.transmitter.send(start, size, waited);
        self.busy = self.busy + (end - start);
        self.ready_at = end;
        self.free_at = end;
        self.size_in_service = size;
        // The delay is drawn, and the order of arrivals kept, for lost packets too: with another error model
        // the others would arrive at the same times.
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

    /// Accounts for the time up to `now` at the present queue length.
    #[inline]
    fn integrate(&mut self, now: Instant) {
        self.area = self.queue_integral(now);
        self.area_at = now;
    }
}

impl<P: Default> Link<P> {
    /// True if the link is up and its satellite is in sight.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.up && self.visible
    }
    /// True if a packet is being transmitted.
    #[must_use]
    pub fn is_busy(&self, now: Instant) -> bool {
        now < self.free_at
    }
    /// The rate of the transmitter, on average where it changes by itself; `None` if it is infinitely fast.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        self.transmitter.rate()
    }
    /// The rate in bit/s: the present one, or where it changes by itself its mean between two times. `None` if the
    /// transmitter is infinitely fast, or if a rate that changes by itself has no time between the two.
    #[must_use]
    pub fn rate_over(&self, from: Instant, to: Instant) -> Option<f64> {
        self.transmitter.rate_over(from, to)
    }
    /// The delay of transmissions that begin now.
    #[must_use]
    pub fn delay(&self) -> &Delay {
        &self.delay
    }
    /// How many packets wait; the one being transmitted does not.
    #[must_use]
    pub fn queue_len(&self) -> u32 {
        self.queue.len()
    }
    /// How many bytes wait.
    #[must_use]
    pub fn queue_bytes(&self) -> u64 {
        self.queue.bytes()
    }
    /// How many packets are in flight, the one being transmitted included.
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
    /// What the link has counted. Offered = delivered + lost + waiting + in flight, at any time.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
    /// How long the transmitter has been busy until `now`. Over an interval this gives its utilisation.
    #[must_use]
    pub fn busy_time(&self, now: Instant) -> Duration {
        // The packet in service was accounted for as a whole when it began.
        self.busy - (self.free_at - now)
    }
    /// Time integral of the queue length until `now`, in packet nanoseconds; divided by an interval it gives
    /// the mean queue. Saturates after 1.8e10 packet seconds.
    #[must_use]
    pub fn queue_integral(&self, now: Instant) -> u64 {
        let span = now.since(self.area_at).as_nanos();
        self.area.saturating_add(span.saturating_mul(self.queue.len().into()))
    }
}

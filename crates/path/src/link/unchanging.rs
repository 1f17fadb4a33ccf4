//! A link that never changes, has one rate, and delivers in order.
//!
//! The departure of a packet is known when it arrives: in a FIFO that of every packet, with strict priority that of
//! every packet of high priority. The packet is put in flight at once, and the queue is a list of the times at which
//! transmissions start. Only packets that the channel loses, and those of low priority, need an event for the start of
//! their transmission.

use super::{LinkConfig, Offered, Streams};
use crate::delay::Delay;
use crate::error::ErrorModel;
use crate::packet::{DropReason, KINDS, PacketView};
use crate::queue::{Moment, Queue};
use crate::rate::{self, Transmitter};
use crate::stats::Counters;
use alloc::collections::VecDeque;
use skyhaul_base::units::Serializer;
use skyhaul_base::{Duration, Instant};

/// A link that never changes.
#[derive(Clone, Debug)]
pub struct Fixed<P> {
    /// `None` if it is infinitely fast.
    transmitter: Option<Serializer>,
    /// End of the last transmission that has started or whose start is known.
    free_at: Instant,
    delay: Delay,
    /// The delay of all packets, if it is constant.
    constant_delay: Option<Duration>,
    /// Arrival time of the last packet, lost or not: a shorter delay does not let packets overtake.
    last_arrival: Instant,
    /// The capacity, and packets of low priority that wait if high priority is served first.
    queue: Queue<P>,
    /// Packets of low priority wait for those of high priority.
    low_waits: bool,
    /// Of each waiting packet whose departure is known: the start of its transmission, and its size.
    waiting: VecDeque<(Instant, u32)>,
    /// Packets that the channel will lose, with the start of their transmission: the loss must not be visible earlier.
    doomed: VecDeque<(P, Instant)>,
    /// Packets in flight with their arrival times, including those whose transmission will start later.
    lane: VecDeque<(P, Instant)>,
    error: ErrorModel,
    lossless: bool,
    spares_acks: bool,
    streams: Streams,
    /// Without deliveries, which follow: every packet that was offered and is not among the `undelivered` has arrived or is in `lane`.
    counters: Counters,
    /// Packets and bytes, by kind, that were refused or lost, will be lost, or wait with low priority.
    undelivered: [(u64, u64); KINDS],
    busy: Duration,
    /// Waits of the packets whose departure is known, in nanoseconds, also those that are not over.
    waits: u64,
    /// Time integral of [`Self::low_len`] up to `low_at`, in packet nanoseconds.
    low: u64,
    low_at: Instant,
}

impl<P: PacketView> Fixed<P> {
    /// Whether a link with this configuration can be one.
    pub(super) fn suits(config: &LinkConfig) -> bool {
        let kind = config.queue.discipline.kind();
        let one_rate = matches!(config.rate, rate::Config::Unlimited | rate::Config::Constant(_));
        let repairs = config.fec.is_some() || config.arq.is_some() || config.two_paths;
        let known = (kind.is_blind() || kind.serves_high_first()) && !config.queue.count_in_service;
        let whole = config.error.build().longest_whole() == u32::MAX;
        one_rate && !config.allow_reorder && known && whole && !repairs
    }

    /// An idle link that [suits](Self::suits).
    pub(super) fn new(config: &LinkConfig, streams: Streams) -> Self {
        let error = config.error.build();
        Self {
            transmitter: config.rate.mean().map(Serializer::new),
            free_at: Instant::ZERO,
            constant_delay: config.delay.constant(),
            last_arrival: Instant::ZERO,
            delay: config.delay.clone(),
            queue: Queue::new(&config.queue),
            low_waits: !config.queue.discipline.kind().is_blind(),
            waiting: VecDeque::new(),
            doomed: VecDeque::new(),
            lane: VecDeque::new(),
            lossless: error.is_lossless(),
            error,
            spares_acks: config.spares_acks,
            streams,
            counters: Counters::default(),
            undelivered: [(0, 0); KINDS],
            busy: Duration::ZERO,
            waits: 0,
            low: 0,
            low_at: Instant::ZERO,
        }
    }

    #[inline(always)]
    pub(super) fn offer(&mut self, now: Instant, p: P, lost: &mut impl FnMut(P, DropReason)) -> Offered {
        self.begin(now);
        // Transmissions that a late driver has not served yet come first.
        let late = self.free_at <= now && self.low_len() > 0;
        if late {
            self.serve_low(now, lost);
        }
        self.counters.offer(&p);
        let (start, size) = (self.free_at.max(now), p.size());
        if start > now {
            if self.low_waits && p.low_priority() {
                return self.wait(now, p, lost);
            }
            if self.low_waits {
                self.integrate_low(now);
            }
            let counters = &mut self.counters;
            let fits = self.queue.admit(size, &mut |p, why| {
                counters.drop(&p, why);
                lost(p, why);
            });
            if !fits {
                counters.drop(&p, DropReason::Full);
                self.count_undelivered(&p);
                lost(p, DropReason::Full);
                return Offered::Dropped;
            }
            counters.queued(&self.queue);
            self.waits += start.since(now).as_nanos();
            self.waiting.push_back((start, size));
        }
        let arrival = self.depart(start, size);
        if !self.loses(&p) {
            let first = self.lane.is_empty();
            self.lane.push_back((p, arrival));
            return Offered::sent(first || late);
        }
        self.count_undelivered(&p);
        if start > now {
            self.doomed.push_back((p, start));
            Offered::Queued
        } else {
            self.counters.drop(&p, DropReason::Error);
            lost(p, DropReason::Error);
            Offered::sent(late)
        }
    }

    /// The next loss that becomes visible, or the next transmission of low priority.
    #[inline]
    pub(super) fn next_service(&self) -> Option<Instant> {
        let lost = self.doomed.front().map(|d| d.1);
        if self.low_len() == 0 {
            return lost;
        }
        Some(lost.map_or(self.free_at, |lost| lost.min(self.free_at)))
    }

    pub(super) fn serve(&mut self, now: Instant, lost: &mut impl FnMut(P, DropReason)) {
        self.begin(now);
        while self.doomed.front().is_some_and(|d| d.1 <= now) {
            let Some((p, _)) = self.doomed.pop_front() else { break };
            self.counters.drop(&p, DropReason::Error);
            lost(p, DropReason::Error);
        }
        self.serve_low(now, lost);
    }

    #[inline]
    pub(super) fn next_delivery(&self) -> Option<Instant> {
        self.lane.front().map(|f| f.1)
    }

    #[inline]
    pub(super) fn deliver(&mut self, now: Instant) -> Option<P> {
        if self.next_delivery()? > now {
            return None;
        }
        self.lane.pop_front().map(|(p, _)| p)
    }

    /// Removes transmissions that have started by `now` from the queue.
    #[inline]
    fn begin(&mut self, now: Instant) {
        while let Some(&(start, size)) = self.waiting.front() {
            if start > now {
                break;
            }
            self.queue.leave(size);
            self.waiting.pop_front();
        }
    }

    /// Counts a packet that does not go in flight, or not yet.
    fn count_undelivered(&mut self, p: &P) {
        let (packets, bytes) = &mut self.undelivered[usize::from(p.kind()) % KINDS];
        (*packets, *bytes) = (*packets + 1, *bytes + u64::from(p.size()));
    }

    /// Queues a packet of low priority that found the link busy.
    fn wait(&mut self, now: Instant, p: P, lost: &mut impl FnMut(P, DropReason)) -> Offered {
        self.integrate_low(now);
        self.count_undelivered(&p);
        let counters = &mut self.counters;
        let mut at = Moment::new(now, &mut self.streams.queue);
        let queued = self.queue.enqueue(&mut at, p, None, &mut |p, why| {
            counters.drop(&p, why);
            lost(p, why);
        });
        counters.queued(&self.queue);
        if queued { Offered::Queued } else { Offered::Dropped }
    }

    /// Low-priority packets are sent when the transmitter is free, after all of high priority.
    fn serve_low(&mut self, now: Instant, lost: &mut impl FnMut(P, DropReason)) {
        while self.free_at <= now && self.low_len() > 0 {
            let start = self.free_at;
            self.integrate_low(start);
            let mut at = Moment::new(start, &mut self.streams.queue);
            let Some(p) = self.queue.dequeue(&mut at, &mut |_, _| {}) else { return };
            let arrival = self.depart(start, p.size());
            if self.loses(&p) {
                self.counters.drop(&p, DropReason::Error);
                lost(p, DropReason::Error);
            } else {
                let (packets, bytes) = &mut self.undelivered[usize::from(p.kind()) % KINDS];
                (*packets, *bytes) = (*packets - 1, *bytes - u64::from(p.size()));
                self.lane.push_back((p, arrival));
            }
        }
    }

    /// The transmitter sends `size` bytes from `start`; returns the arrival time.
    #[inline]
    fn depart(&mut self, start: Instant, size: u32) -> Instant {
        self.free_at = match &mut self.transmitter {
            Some(transmitter) => transmitter.send(start, size),
            None => start,
        };
        self.busy = self.busy + (self.free_at - start);
        // The delay is drawn, and the order of arrivals kept, for lost packets, too: with another error model, the
        // others would arrive at the same times.
        let delay = match self.constant_delay {
            Some(delay) => delay,
            None => self.delay.sample(self.free_at, &mut self.streams.delay),
        };
        self.last_arrival = self.last_arrival.max(self.free_at + delay);
        self.last_arrival
    }

    /// Whether the channel loses a packet.
    #[inline]
    fn loses(&mut self, p: &P) -> bool {
        let spared = self.lossless || (self.spares_acks && p.is_pure_ack());
        !spared && self.error.loses(p, &mut self.streams.error)
    }

    pub(super) fn counters(&self) -> Counters {
        let mut counters = self.counters;
        for (kind, (packets, bytes)) in counters.kinds.iter_mut().zip(self.undelivered) {
            kind.delivered = kind.offered - packets;
            kind.delivered_bytes = kind.offered_bytes - bytes;
        }
        self.lane.iter().for_each(|(p, _)| counters.undeliver(p));
        counters
    }
}

impl<P> Fixed<P> {
    /// Number of packets that wait and whose departure is not known.
    #[inline]
    fn low_len(&self) -> usize {
        if self.low_waits { self.queue.len() as usize - self.waiting.len() } else { 0 }
    }
    /// Time integral of [`Self::low_len`] until `now`.
    fn low_integral(&self, now: Instant) -> u64 {
        let span = now.since(self.low_at).as_nanos();
        self.low.saturating_add(span.saturating_mul(self.low_len() as u64))
    }
    /// Accounts for the time up to `now`: [`Self::low_len`] is about to change.
    fn integrate_low(&mut self, now: Instant) {
        self.low = self.low_integral(now);
        self.low_at = now;
    }
    pub(super) fn queue_integral(&self, now: Instant) -> u64 {
        let rest: u64 = self.waiting.iter().map(|w| w.0.since(now).as_nanos()).sum();
        (self.waits - rest).saturating_add(self.low_integral(now))
    }
    pub(super) fn free_at(&self) -> Instant {
        self.free_at
    }
    pub(super) fn transmitter(&self) -> Transmitter {
        self.transmitter.clone().map_or(Transmitter::Unlimited, Transmitter::Constant)
    }
    pub(super) fn delay(&self) -> &Delay {
        &self.delay
    }
    pub(super) fn queue(&self) -> &Queue<P> {
        &self.queue
    }
    pub(super) fn in_flight(&self) -> usize {
        self.lane.len() + self.doomed.len() - self.waiting.len()
    }
    pub(super) fn peek(&self, n: usize) -> Option<&P> {
        self.lane.get(n).map(|(p, _)| p)
    }
    pub(super) fn busy(&self) -> Duration {
        self.busy
    }
}

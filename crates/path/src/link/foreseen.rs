//! Departures known in advance: the departure time of a waiting packet is known when it arrives.

use super::{Link, Mode, Offered};
use crate::packet::{DropReason, PacketView};
use crate::queue::QueueConfig;
use skyhaul_base::Instant;
use skyhaul_base::ring::Ring;

/// Departures that were computed when the packets arrived.
#[derive(Clone, Debug)]
pub(super) struct Foreseen<P> {
    /// Only those of high priority; low-priority packets wait in the queue for service.
    pub(super) only_high: bool,
    /// Start of the next of these transmissions.
    pub(super) next: Instant,
    /// Start of each waiting packet's transmission, and its size.
    pub(super) waiting: Ring<(Instant, u32)>,
    /// Packets that the channel will lose, with the start of their transmission: the loss must not be visible
    /// earlier.
    pub(super) doomed: Ring<(Instant, P)>,
}

impl<P: Default> Foreseen<P> {
    /// The first transmission that has started by `now`.
    #[inline]
    fn begin(&mut self, now: Instant) -> Option<(Instant, u32)> {
        if self.next > now {
            return None;
        }
        let first = self.waiting.pop_front();
        self.next = self.waiting.front().map_or(Instant::MAX, |w| w.0);
        first
    }
    /// A packet's transmission will start at `start`.
    #[inline]
    fn wait(&mut self, start: Instant, size: u32) {
        self.next = self.next.min(start);
        self.waiting.push_back((start, size));
    }
    /// The first packet lost by `now`.
    fn fail(&mut self, now: Instant) -> Option<P> {
        if self.doomed.front()?.0 > now {
            return None;
        }
        self.doomed.pop_front().map(|d| d.1)
    }
}

impl<P: PacketView> Link<P> {
    /// The same idle link, with departures computed in advance if its queue allows that and nothing repairs losses:
    /// for links that never change.
    #[must_use]
    pub fn foreseeing(mut self, queue: &QueueConfig) -> Self {
        let kind = queue.discipline.kind();
        let plain = matches!(self.mode, Mode::Plain);
        if plain && (kind.is_blind() || kind.serves_high_first()) && !queue.count_in_service {
            let only_high = !kind.is_blind();
            let none = Foreseen { only_high, next: Instant::MAX, waiting: Ring::new(), doomed: Ring::new() };
            self.mode = Mode::Foreseen(none);
        }
        self
    }

    #[inline]
    fn foreseen(&self) -> Option<&Foreseen<P>> {
        if let Mode::Foreseen(f) = &self.mode { Some(f) } else { None }
    }
    #[inline]
    fn foreseen_mut(&mut self) -> Option<&mut Foreseen<P>> {
        if let Mode::Foreseen(f) = &mut self.mode { Some(f) } else { None }
    }

    /// [`Self::offer`] with departures known in advance.
    #[inline]
    pub(super) fn offer_foreseen(
        &mut self,
        now: Instant,
        p: P,
        lost: &mut impl FnMut(P, DropReason),
    ) -> Offered {
        self.begin_foreseen(now);
        let only_high = self.foreseen().is_some_and(|f| f.only_high);
        // Only with a late driver is there anything to do.
        let late = only_high && self.ready_at <= now && self.low_waits();
        if late {
            self.serve_low(now, lost);
        }
        self.counters.offer(&p);
        if self.ready_at <= now {
            let sent = self.transmit(now, p, false, lost);
            return if late { Offered::Sent } else { sent };
        }
        if only_high && p.low_priority() {
            return self.wait(now, p, lost);
        }
        self.integrate(now);
        let size = p.size();
        let counters = &mut self.counters;
        let fits = self.queue.admit(size, &mut |p, why| {
            counters.drop(&p, why);
            lost(p, why);
        });
        if !fits {
            self.counters.drop(&p, DropReason::Full);
            lost(p, DropReason::Full);
            return Offered::Dropped;
        }
        self.counters.max_queue = self.counters.max_queue.max(self.queue.len());
        self.counters.max_queue_bytes = self.counters.max_queue_bytes.max(self.queue.bytes());
        let start = self.ready_at;
        let arrival = self.depart(start, self.on_wire(size), true);
        let doomed = self.is_lost(&p);
        let Mode::Foreseen(f) = &mut self.mode else { return Offered::Dropped };
        f.wait(start, size);
        if doomed {
            f.doomed.push_back((start, p));
            return Offered::Queued;
        }
        Offered::sent(self.lane.push(arrival, p))
    }

    /// Removes transmissions that have started by `now` from the queue.
    #[inline]
    fn begin_foreseen(&mut self, now: Instant) {
        if self.foreseen().is_some_and(|f| f.next <= now) {
            self.begin_due(now);
        }
    }

    fn begin_due(&mut self, now: Instant) {
        while let Some((start, size)) = self.foreseen_mut().and_then(|f| f.begin(now)) {
            self.integrate(start);
            self.queue.leave(size);
        }
    }

    /// [`Self::serve`] with departures known in advance.
    pub(super) fn serve_foreseen(&mut self, now: Instant, lost: &mut impl FnMut(P, DropReason)) {
        self.begin_foreseen(now);
        while let Some(p) = self.foreseen_mut().and_then(|f| f.fail(now)) {
            self.counters.drop(&p, DropReason::Error);
            lost(p, DropReason::Error);
        }
        self.serve_low(now, lost);
    }

    /// Whether a packet waits whose departure is not known in advance.
    #[inline]
    pub(super) fn low_waits(&self) -> bool {
        self.foreseen().is_some_and(|f| f.only_high && self.queue.len() as usize > f.waiting.len())
    }

    /// Low-priority packets are sent when the transmitter is free, after all of high priority.
    fn serve_low(&mut self, now: Instant, lost: &mut impl FnMut(P, DropReason)) {
        while self.ready_at <= now && self.low_waits() {
            let start = self.ready_at;
            self.integrate(start);
            if let Some(p) = self.take(start, lost) {
                self.transmit(start, p, true, lost);
            }
        }
    }
}

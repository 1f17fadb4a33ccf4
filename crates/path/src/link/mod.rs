//! A directed link: queue, transmitter, propagation, errors.

mod config;
mod general;
mod unchanging;

use crate::delay::Delay;
use crate::error::ErrorModel;
use crate::packet::{DropReason, PacketView};
use crate::queue::Limit;
use crate::rate;
use crate::stats::Counters;
use alloc::boxed::Box;
pub use config::{InvalidRepair, LinkConfig, Streams};
pub use general::FADE_BYTES;
use general::General;
use skyhaul_base::{Duration, Instant, Rate};
use unchanging::Fixed;

/// The fate of an offered packet. It also says which event of the link may have changed.
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

/// A directed link. Its type is chosen once, when it is built.
///
/// **Simultaneous events.** A departure at *t* makes room for an arrival at *t*. Drivers should call
/// [`Self::serve`] before [`Self::offer`] at the same time; a link that is offered a packet first catches up by
/// itself.
///
/// **Late drivers.** A real-time driver calls a little late. Service still starts at its due time, so lateness does
/// not reduce the rate. Call [`Self::serve`] first at each wake-up.
///
/// Times given to a link must not decrease. The queue is that of the last call: call [`Self::serve`] before inspecting it.
#[derive(Clone, Debug)]
pub enum Link<P> {
    /// Never changes, and delivers in order: every departure is known in advance.
    Fixed(Box<Fixed<P>>),
    /// Any other.
    General(Box<General<P>>),
}

/// Evaluates an expression for either type of link.
macro_rules! either {
    ($link:expr, $l:ident => $value:expr) => {
        match $link {
            Link::Fixed($l) => $value,
            Link::General($l) => $value,
        }
    };
}

impl<P: PacketView> Link<P> {
    /// An idle link that is up, and that may change.
    ///
    /// # Panics
    /// If the rate is zero: a link that never sends must be configured as down. If
    /// [`crate::error::Config::validate`] refuses the losses, or [`LinkConfig::validate`] the repair.
    #[must_use]
    pub fn new(config: &LinkConfig, streams: Streams) -> Self {
        Self::General(Box::new(General::new(config, streams)))
    }

    /// An idle link that never changes. All results are those of [`Self::new`].
    ///
    /// # Panics
    /// As [`Self::new`].
    #[must_use]
    pub fn unchanging(config: &LinkConfig, streams: Streams) -> Self {
        if Fixed::<P>::suits(config) {
            Self::Fixed(Box::new(Fixed::new(config, streams)))
        } else {
            Self::new(config, streams)
        }
    }

    /// Offers a packet to the link. Packets lost by it go to `lost`.
    #[inline(always)]
    pub fn offer(&mut self, now: Instant, p: P, lost: &mut impl FnMut(P, DropReason)) -> Offered {
        either!(self, l => l.offer(now, p, lost))
    }
    /// When [`Self::serve`] is due; `None` while nothing waits for it or the link is down.
    #[inline]
    #[must_use]
    pub fn next_service(&self) -> Option<Instant> {
        either!(self, l => l.next_service())
    }
    /// Starts every transmission that is due by `now`.
    #[inline]
    pub fn serve(&mut self, now: Instant, lost: &mut impl FnMut(P, DropReason)) {
        either!(self, l => l.serve(now, lost));
    }
    /// When [`Self::deliver`] is due; `None` while nothing is in flight.
    #[inline]
    #[must_use]
    pub fn next_delivery(&self) -> Option<Instant> {
        either!(self, l => l.next_delivery())
    }
    /// The next packet that has arrived by `now`.
    #[inline(always)]
    pub fn deliver(&mut self, now: Instant) -> Option<P> {
        either!(self, l => l.deliver(now))
    }

    /// The link, to change it.
    fn changing(&mut self) -> &mut General<P> {
        match self {
            Self::General(general) => general,
            Self::Fixed(_) => panic!("an unchanging link does not change"),
        }
    }

    /// Changes the rate for later transmissions; the current one keeps its end.
    ///
    /// # Panics
    /// If the rate is zero: a link that never sends must be configured as down. As every change, if the link is
    /// [unchanging](Self::unchanging).
    pub fn set_rate(&mut self, rate: &rate::Config) {
        self.changing().set_rate(rate);
    }
    /// Changes the error model for later transmissions; the random stream continues.
    pub fn set_error(&mut self, error: ErrorModel) {
        self.changing().set_error(error);
    }
    /// Sets the additional losses by rain or shadowing for later transmissions: the loss probability of packets of
    /// [`FADE_BYTES`] bytes, between 0 and 1. It has its own random stream.
    pub fn set_fade(&mut self, loss: f64) {
        self.changing().set_fade(loss);
    }
    /// Changes the delay of later transmissions; the random stream continues. Without `allow_reorder` a shorter
    /// delay does not let packets overtake.
    pub fn set_delay(&mut self, delay: Delay) {
        self.changing().set_delay(delay);
    }
    /// Changes the capacity of the queue; see [`Queue::set_limit`](crate::Queue::set_limit).
    pub fn set_limit(&mut self, limit: Limit) {
        self.changing().set_limit(limit);
    }
    /// Takes the link down or brings it up. While it is down the queue keeps filling and its head waits. The
    /// transmitter finishes the current packet, but that packet counts as in flight; all packets in flight are lost
    /// if the link is configured so.
    pub fn set_up(&mut self, now: Instant, up: bool, lost: &mut impl FnMut(P, DropReason)) {
        self.changing().set_up(now, up, lost);
    }
    /// Sets whether its satellite is visible: the link is up while it is both up and visible, see [`Self::set_up`].
    pub fn set_visible(&mut self, now: Instant, visible: bool, lost: &mut impl FnMut(P, DropReason)) {
        self.changing().set_visible(now, visible, lost);
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
        self.changing().set_path(now, path, delay, lost);
    }

    /// Whether it is up and its satellite visible.
    #[must_use]
    pub fn is_up(&self) -> bool {
        match self {
            Self::Fixed(_) => true,
            Self::General(general) => general.is_up(),
        }
    }
    /// Whether a packet is being transmitted.
    #[must_use]
    pub fn is_busy(&self, now: Instant) -> bool {
        now < either!(self, l => l.free_at())
    }
    /// The rate of the transmitter, or the mean of a time-varying one; `None` if it is infinitely fast.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        either!(self, l => l.transmitter().rate())
    }
    /// The rate in bit/s: the current one, or the mean of a time-varying one between two times. `None` if the
    /// transmitter is infinitely fast, or if a time-varying rate has no time between the two.
    #[must_use]
    pub fn rate_over(&self, from: Instant, to: Instant) -> Option<f64> {
        either!(self, l => l.transmitter().rate_over(from, to))
    }
    /// The delay of transmissions that start now.
    #[must_use]
    pub fn delay(&self) -> &Delay {
        either!(self, l => l.delay())
    }
    /// Number of packets in the queue, without the one in transmission.
    #[must_use]
    pub fn queue_len(&self) -> u32 {
        either!(self, l => l.queue().len())
    }
    /// Number of bytes in the queue.
    #[must_use]
    pub fn queue_bytes(&self) -> u64 {
        either!(self, l => l.queue().bytes())
    }
    /// Number of packets in flight, including the one in transmission.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        either!(self, l => l.in_flight())
    }
    /// The `n`-th of the packets in flight, in the order of arrival from 0; `None` beyond the last one, and on
    /// links that may reorder or that repair.
    #[inline]
    #[must_use]
    pub fn peek(&self, n: usize) -> Option<&P> {
        either!(self, l => l.peek(n))
    }
    /// The counters of the link. Offered = delivered + lost + waiting + in flight, at any time.
    #[must_use]
    pub fn counters(&self) -> Counters {
        either!(self, l => l.counters())
    }
    /// Busy time of the transmitter until `now`. Over an interval this gives the utilization.
    #[must_use]
    pub fn busy_time(&self, now: Instant) -> Duration {
        // The packet in transmission was counted as a whole when it started.
        either!(self, l => l.busy() - (l.free_at() - now))
    }
    /// Time integral of the queue length until `now`, in packet nanoseconds; divided by an interval it gives the
    /// mean queue length. Saturates after 1.8e10 packet seconds.
    #[must_use]
    pub fn queue_integral(&self, now: Instant) -> u64 {
        either!(self, l => l.queue_integral(now))
    }
}

//! One gateway's side of a segment.

use crate::code::{Arrived, Code};
use crate::config::Config;
use crate::count::Counters;
use crate::frame::{Delivery, Frame, Kind, Output, TooBig, Treatment};
use crate::loss::Estimate;
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::wire::Expected;
use core::ops::Range;
use skyhaul_base::{Duration, Instant, Rate, Rng};
use skyhaul_path::DropReason;
use std::collections::VecDeque;

/// One gateway's side of a segment, for both directions.
///
/// After every call the driver takes frames until there are none, then deliveries, and calls again at
/// [`Self::next_timeout`]. Times do not decrease from one call to the next.
#[derive(Debug)]
pub struct End<C: Code> {
    sender: Sender<C>,
    receiver: Receiver<C>,
    counters: Counters,
    /// Datagrams of this side, restored.
    out: VecDeque<Delivery<C::Received>>,
}

impl<C: Code> End<C> {
    /// An end that has sent and received nothing. The random stream is that of its queue.
    ///
    /// # Panics
    /// If the rate is zero.
    #[must_use]
    pub fn new(config: &Config, code: C, rng: Rng) -> Self {
        Self {
            sender: Sender::new(config, code, rng),
            receiver: Receiver::new(config),
            counters: Counters::default(),
            out: VecDeque::new(),
        }
    }

    /// A datagram for the other side. What the queue drops goes to `lost`.
    ///
    /// # Errors
    /// If the datagram does not fit into a frame: the gateway has to tell its sender.
    pub fn offer(
        &mut self,
        now: Instant,
        datagram: C::Sent,
        how: Treatment,
        lost: &mut impl FnMut(C::Sent, DropReason),
    ) -> Result<(), TooBig> {
        self.sender.offer(now, datagram, how, &mut self.counters, lost)
    }

    /// A frame of the other end, authenticated; `marked` if a node in the segment has marked it as congested. False if
    /// the frame is refused: it has arrived before, or contradicts what is known.
    pub fn receive(&mut self, now: Instant, frame: Frame<C::Received, C::Symbol>, marked: bool) -> bool {
        if !self.receiver.arrived(now, frame.number) {
            self.counters.refused += 1;
            return false;
        }
        let (code, counters) = (self.sender.code_mut(), &mut self.counters);
        let refused = counters.refused;
        match frame.kind {
            Kind::Source { seq, floor, datagram } => {
                self.receiver.source(now, (seq, floor), datagram, marked, code, counters);
            }
            Kind::Repair { first, k, parity, index, symbol } => {
                self.receiver.symbol(now, (first, k), (parity, index), symbol, code, counters);
            }
            Kind::Report(report) => {
                if !self.sender.reported(now, &report) {
                    self.counters.refused += 1;
                }
            }
        }
        self.counters.refused == refused
    }

    /// The next frame or passing datagram to send now. What the queue drops goes to `lost`.
    pub fn poll_frame(
        &mut self,
        now: Instant,
        lost: &mut impl FnMut(C::Sent, DropReason),
    ) -> Option<Output<C::Sent, C::Symbol>> {
        let Self { sender, receiver, counters, .. } = self;
        sender.poll(now, || receiver.take_report(now), counters, lost)
    }

    /// The next datagram for this side. Several may have the number of one, if they left together.
    pub fn poll_delivery(&mut self, now: Instant) -> Option<Delivery<C::Received>> {
        let Self { sender, receiver, counters, out } = self;
        while out.is_empty() {
            let Delivery { seq, datagram, marked, late } = receiver.poll_delivery()?;
            let mut each = |datagram| {
                counters.separated += u64::from(!out.is_empty());
                out.push_back(Delivery { seq, datagram, marked, late });
            };
            match sender.code_mut().arrive(seq, datagram, &mut each) {
                Arrived::Whole => {}
                Arrived::Installed => receiver.installed(now, seq),
                Arrived::Unreadable => counters.unreadable += 1,
            }
        }
        out.pop_front()
    }
    /// Numbers of the next datagrams of the other side that will not be delivered any more.
    pub fn poll_lost(&mut self) -> Option<Range<u64>> {
        self.receiver.poll_lost()
    }

    /// When [`Self::handle_timeout`] is due, and frames may be ready; [`Instant::MAX`] for never.
    #[must_use]
    pub fn next_timeout(&mut self, now: Instant) -> Instant {
        let report_at = self.receiver.report_at();
        self.sender.next_timeout(now, report_at).min(self.receiver.next_timeout())
    }
    /// Does what is due by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.sender.handle_timeout(now);
        self.receiver.handle_timeout(now, &mut self.counters);
    }

    /// The rate of the segment has changed, as a modem may tell (RFC 8175 §13.15).
    ///
    /// # Panics
    /// If the rate is zero.
    pub fn set_rate(&mut self, now: Instant, rate: Rate) {
        self.sender.set_rate(now, rate);
    }

    /// The largest packet in the segment has changed, outer headers included. What is on its way into a frame keeps its size.
    pub fn set_mtu(&mut self, mtu: Option<u32>) {
        self.sender.set_mtu(mtu);
    }

    /// The numbers to which those in the next frames of the other end are near ([`crate::wire`]).
    #[must_use]
    pub fn expected(&self) -> Expected {
        Expected {
            number: self.receiver.next_number(),
            seq: self.receiver.next_seq(),
            own_number: self.sender.next_number(),
            own_seq: self.sender.next_seq(),
        }
    }
    /// What this end has counted.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
    /// The estimate of the losses of the direction into which this end sends.
    #[must_use]
    pub fn estimate(&self) -> &Estimate {
        self.sender.estimate()
    }
    /// The smoothed round-trip time of the segment.
    #[must_use]
    pub fn srtt(&self) -> Option<Duration> {
        self.sender.srtt()
    }
    /// Datagrams and bytes in the queue of this end.
    #[must_use]
    pub fn queued(&self) -> (u32, u64) {
        self.sender.queued()
    }
}

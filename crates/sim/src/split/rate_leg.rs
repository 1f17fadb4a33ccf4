//! A rate-controlled leg between two gateways, on the simulator's links.
//!
//! Data travels whole in a parcel. The ranges beyond gaps in a report do not fit into one: they stay with the leg,
//! which has both ends, and are found by the report's number.

use crate::packet::parcel::Packet;
use skyhaul_base::Instant;
use skyhaul_relay::xtp::{Config, Receiver, Report, Sender};
use skyhaul_relay::{Count, End, Fifo};
use std::collections::VecDeque;

/// Maximum number of reports in flight; of more, the oldest count as lost.
const MOST_REPORTS: usize = 4096;

/// Both ends of a rate-controlled leg.
#[derive(Debug)]
pub(crate) struct RateLeg {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    /// The receiving gateway has lost its state: it ignores data.
    pub(crate) receiver_lost_state: bool,
    /// Reports in flight, with their numbers.
    reports: VecDeque<(u32, Report)>,
    next_report: u32,
}

impl RateLeg {
    /// A leg whose sender has packets of `payload` bytes and a buffer of `send` bytes, and whose receiver has a
    /// buffer of `receive`.
    pub(crate) fn new(config: &Config, payload: u32, send: u64, receive: u64) -> Self {
        Self {
            sender: Sender::new(config, payload, send, receive),
            receiver: Receiver::new(config, receive),
            receiver_lost_state: false,
            reports: VecDeque::new(),
            next_report: 0,
        }
    }

    /// A packet has reached one of the ends.
    pub(crate) fn handle(&mut self, now: Instant, packet: &Packet) {
        let number = match packet {
            Packet::LegReport { number, .. } => *number,
            Packet::LegData(data) if !self.receiver_lost_state => return self.receiver.handle(data),
            _ => return,
        };
        // Reports with lower numbers are lost, or have been overtaken.
        while self.reports.front().is_some_and(|(n, _)| *n < number) {
            self.reports.pop_front();
        }
        if let Some((_, report)) = self.reports.front().filter(|(n, _)| *n == number) {
            self.sender.handle(now, report);
            self.reports.pop_front();
        }
    }

    /// The data to send now.
    pub(crate) fn poll_data(&mut self, now: Instant) -> Option<Packet> {
        self.sender.poll(now).map(Packet::LegData)
    }
    /// The report to send now.
    pub(crate) fn poll_report(&mut self) -> Option<Packet> {
        let report = self.receiver.poll()?;
        self.next_report = self.next_report.wrapping_add(1);
        if self.reports.len() >= MOST_REPORTS {
            self.reports.pop_front();
        }
        let (number, rseq, len) = (self.next_report, report.rseq, report.size());
        self.reports.push_back((number, report));
        Some(Packet::LegReport { number, rseq, len })
    }
}

/// The gateway's receiving end, in the form that a relay uses.
pub(crate) struct Inlet<'a>(pub(crate) &'a mut Receiver, pub(crate) Instant);

impl End<Count> for Inlet<'_> {
    fn ended(&self) -> bool {
        self.0.ended()
    }
    fn failed(&self) -> bool {
        self.0.failed()
    }
    fn read(&mut self, into: &mut Count, most: u64) -> u64 {
        let n = self.0.read(most);
        into.0 += n;
        n
    }
    fn write(&mut self, _: &mut Count) -> u64 {
        0
    }
    fn finish(&mut self) {
        self.0.finish(self.1);
    }
    fn abort(&mut self) {
        self.0.abort();
    }
}

/// The gateway's sending end, in the form that a relay uses.
pub(crate) struct Outlet<'a>(pub(crate) &'a mut Sender);

impl End<Count> for Outlet<'_> {
    fn ended(&self) -> bool {
        self.0.peer_finished()
    }
    fn failed(&self) -> bool {
        self.0.gave_up()
    }
    fn read(&mut self, _: &mut Count, _: u64) -> u64 {
        0
    }
    fn write(&mut self, from: &mut Count) -> u64 {
        let n = self.0.write(from.len());
        from.0 -= n;
        n
    }
    fn finish(&mut self) {
        self.0.finish();
    }
    fn abort(&mut self) {
        self.0.abort();
    }
}

//! A rate-controlled leg between two gateways, on the simulator's links.
//!
//! Data travels whole in a parcel. The ranges beyond gaps in a report do not fit into one: they stay with the leg,
//! which has both ends, and are found by the report's number.

use crate::packet::parcel::{Bodies, Label, Parcel};
use skyhaul_base::Instant;
use skyhaul_relay::xtp::{Close, Config, Data, HEADER, Receiver, Report, Sender};
use skyhaul_relay::{Count, End, Fifo};
use skyhaul_tcp::{Flags, Head, Seq};
use std::collections::VecDeque;

/// Maximum reports in flight; older ones have been lost.
const MOST_REPORTS: usize = 4096;

/// Both ends of a rate-controlled leg.
#[derive(Debug)]
pub(crate) struct RateLeg {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    /// The receiving gateway has lost its state.
    pub(crate) deaf: bool,
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
            deaf: false,
            reports: VecDeque::new(),
            next_report: 0,
        }
    }

    /// When one of the ends needs a call.
    pub(crate) fn next_timeout(&self) -> Instant {
        self.sender.next_timeout().min(self.receiver.next_timeout())
    }

    /// A packet has reached one of the ends.
    pub(crate) fn handle(&mut self, now: Instant, parcel: Parcel) {
        let head = parcel.head(HEADER);
        let place = (u64::from(head.ack.0) << 32) | u64::from(head.seq.0);
        if !parcel.backward() && self.deaf {
            return;
        }
        if !parcel.backward() {
            let (seq, len) = (place, parcel.len(HEADER));
            self.receiver.handle(&Data { seq, len, sync: head.window, close: close_of(head.flags) });
            return;
        }
        // Older ones are lost or outdated.
        while self.reports.front().is_some_and(|(n, _)| *n < head.window) {
            self.reports.pop_front();
        }
        if let Some((_, report)) = self.reports.front().filter(|(n, _)| *n == head.window) {
            self.sender.handle(now, report);
            self.reports.pop_front();
        }
    }

    /// The data packet to send now.
    pub(crate) fn poll_data(
        &mut self,
        now: Instant,
        label: Label,
        bodies: &mut Bodies,
        keep: bool,
    ) -> Option<Parcel> {
        let d = self.sender.poll(now)?;
        let head = head(d.seq, d.len, d.sync, flags_of(d.close));
        Some(Parcel::pack(&head, None, HEADER, label, bodies, keep))
    }
    /// The report to send now.
    pub(crate) fn poll_report(&mut self, label: Label, bodies: &mut Bodies, keep: bool) -> Option<Parcel> {
        let report = self.receiver.poll()?;
        self.next_report = self.next_report.wrapping_add(1);
        let head = head(report.rseq, 0, self.next_report, Flags::NONE);
        let parcel = Parcel::pack(&head, None, HEADER + report.size(), label, bodies, keep);
        if self.reports.len() >= MOST_REPORTS {
            self.reports.pop_front();
        }
        self.reports.push_back((self.next_report, report));
        Some(parcel)
    }
}

/// Encodes a 64-bit position and a number in the head of a segment.
fn head(place: u64, len: u32, number: u32, flags: Flags) -> Head {
    Head::new(Seq(place as u32), Seq((place >> 32) as u32), len, number, flags)
}

/// The closing state of a packet, in the TCP flags of a parcel.
fn flags_of(close: Close) -> Flags {
    let says = [(close.wclose, Flags::FIN), (close.rclose, Flags::ECE), (close.end, Flags::RST)];
    says.into_iter().filter(|s| s.0).fold(Flags::NONE, |flags, (_, flag)| flags.with(flag))
}
fn close_of(flags: Flags) -> Close {
    Close { wclose: flags.has(Flags::FIN), rclose: flags.has(Flags::ECE), end: flags.has(Flags::RST) }
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

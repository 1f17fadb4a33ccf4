//! The fast path for ordinary segments of one-way flows: data in order, and the acknowledgements for it; and for the
//! writes of their applications.
//!
//! Nearly all segments are ordinary. A few bits identify them, the ends process them without unnecessary checks
//! (header prediction), and the segments they release are sent from here. Everything else takes the slow path,
//! [`Sim::arrive`] or [`Sim::wake`], without prior changes.

use crate::agent::Agent;
use crate::emit::{dispatch, send_acks, send_data, send_written};
use crate::flow::Record;
use crate::observe;
use crate::parcel::Parcel;
use crate::sim::Sim;
use crate::tap::Tap;
use crate::watch;
use skyhaul_apps::{App, Written};
use skyhaul_base::{Duration, Instant};
use skyhaul_path::PacketView;
use skyhaul_tcp::{Counted, Source};

impl<R: Tap> Sim<R> {
    /// Handles a parcel that has reached its endpoint. False if it is not ordinary.
    #[inline(always)]
    pub(crate) fn arrive_plain(&mut self, parcel: Parcel) -> bool {
        if R::PACKETS {
            // Observers of packets need whole segments.
            return false;
        }
        if parcel.is_plain_data() {
            return self.plain_data(parcel);
        }
        parcel.is_plain_ack() && self.plain_ack(parcel)
    }

    /// Payload has reached a receiver.
    #[inline(always)]
    fn plain_data(&mut self, parcel: Parcel) -> bool {
        let (now, index) = (self.now, parcel.flow());
        let Self { flows, net, timers, records, .. } = self;
        let Some(flow) = flows.get_mut(index as usize) else { return false };
        let (way, header) = (flow.way(index, true), flow.header);
        let Agent::OneWay(ends) = &mut flow.agent else { return false };
        let (seq, _, _) = parcel.numbers();
        let sink = &mut ends.sink;
        let current = parcel.generation() == flow.generation;
        if !current || !sink.take_plain(now, seq, parcel.len(header), parcel.ts()) {
            return false;
        }
        if R::ENABLED {
            observe::arrival(now, parcel, net);
        }
        if flow.watched {
            // Data in order comes before a FIN, and its first byte has offset 1.
            let there = sink.receiver().next_expected() - 1;
            let segment = (there - u64::from(parcel.len(header)), there);
            watch::stream(now, index, segment, &mut records[index as usize], net);
        }
        if let Some(head) = sink.poll_plain(now) {
            dispatch(net, now, Parcel::plain(&head, header, way));
        }
        send_acks(net, now, way, header, sink);
        let next = sink.next_timeout();
        if next < flow.armed {
            flow.armed = next;
            timers.set_earlier(index, next);
        }
        true
    }

    /// An acknowledgement has reached a sender.
    #[inline(always)]
    fn plain_ack(&mut self, parcel: Parcel) -> bool {
        let (now, index) = (self.now, parcel.flow());
        let Self { flows, net, timers, records, .. } = self;
        let Some(flow) = flows.get_mut(index as usize) else { return false };
        let (way, header) = (flow.way(index, false), flow.header);
        let Agent::OneWay(ends) = &mut flow.agent else { return false };
        let (_, ack, window) = parcel.numbers();
        if parcel.generation() != flow.generation {
            return false;
        }
        let source = &mut ends.source;
        // It may release more than waits.
        if flow.waits && !source.sender().is_well_supplied() {
            if let Some(record) = records.get_mut(index as usize) {
                write_postponed(source, &mut flow.finite, record, now);
            }
        }
        if !source.take_plain(now, ack, window, parcel.ts()) {
            return false;
        }
        flow.last_ack = now;
        if R::ENABLED {
            observe::arrival(now, parcel, net);
        }
        send_data(net, now, way, header, source);
        let next = source.next_timeout();
        if next < flow.armed {
            flow.armed = next;
            timers.set_earlier(index, next);
        }
        let concerned = flow.finite || source.sender().has_judgement() || R::ENABLED;
        let ended = flow.waits && !source.sender().stays_supplied();
        if concerned || ended {
            self.after_plain_ack(index, concerned, ended);
        }
        true
    }
    /// An ordinary acknowledgement was handled: it `concerned` others than its sender, or that no longer has enough data
    /// (`ended`).
    #[inline(never)]
    fn after_plain_ack(&mut self, index: u32, concerned: bool, ended: bool) {
        if concerned {
            self.acknowledged(index);
        }
        if ended {
            self.stop_waiting(index);
        }
    }

    /// [`Self::catch_up`] before an acknowledgement that is not ordinary and announces this window, unless that makes no
    /// difference to it.
    pub(crate) fn catch_up_for_ack(&mut self, index: u32, window: u32, until: Instant) {
        let flow = self.flows.get(index as usize);
        if flow.is_some_and(|flow| flow.waits && !flow.is_amply_supplied(window)) {
            self.catch_up(index, until);
        }
    }

    /// Has the application of a flow write what it would have written before `until`, if that was postponed.
    pub(crate) fn catch_up(&mut self, index: u32, until: Instant) {
        let Self { flows, records, .. } = self;
        let (Some(flow), Some(record)) = (flows.get_mut(index as usize), records.get_mut(index as usize))
        else {
            return;
        };
        if let (Agent::OneWay(ends), true) = (&mut flow.agent, flow.waits) {
            write_postponed(&mut ends.source, &mut flow.finite, record, until);
        }
    }

    /// Has the applications of all flows write what they have postponed, up to and including now.
    pub(crate) fn catch_up_all(&mut self) {
        if !self.postpones {
            return;
        }
        let after = self.now + Duration::from_nanos(1);
        (0..self.flows.len() as u32).for_each(|index| self.catch_up(index, after));
    }

    /// The next write of a flow's application is no longer postponed.
    #[inline(never)]
    pub(crate) fn stop_waiting(&mut self, index: u32) {
        let (Some(flow), Some(record)) =
            (self.flows.get_mut(index as usize), self.records.get(index as usize))
        else {
            return;
        };
        if !core::mem::take(&mut flow.waits) {
            // It has finished.
            return;
        }
        let next = record.app.as_ref().map_or(Instant::MAX, App::next).max(self.now);
        if next < flow.armed {
            flow.armed = next;
            self.timers.set_earlier(index, next);
        }
    }

    /// Whether [`Self::wake_plain`] is for a flow.
    #[inline]
    pub(crate) fn may_wake_plain(&self, index: u32) -> bool {
        if R::ENABLED || R::PACKETS || self.run.classified {
            // Observers want to know of frames, and of what the sender does.
            return false;
        }
        self.flows.get(index as usize).is_some_and(|flow| matches!(flow.agent, Agent::OneWay(_)))
    }

    /// The timer of a flow, which is the earliest timer: its deadline was postponed, and its application has enough waiting.
    /// False if it is not so.
    #[inline]
    pub(crate) fn keeps_waiting(&mut self, index: u32) -> bool {
        self.flows.get(index as usize).is_some_and(|flow| flow.waits) && self.wait_on(index)
    }
    #[inline(never)]
    fn wait_on(&mut self, index: u32) -> bool {
        let (Some(flow), Some(record)) =
            (self.flows.get_mut(index as usize), self.records.get(index as usize))
        else {
            return false;
        };
        let Agent::OneWay(ends) = &flow.agent else { return false };
        let next = ends.next_timeout().min(record.stop);
        // Nothing is due: writing now would be right as well, and is better where the next acknowledgement needs it.
        if next <= self.now || ends.source.sender().has_judgement() || !flow.is_amply_supplied(0) {
            return false;
        }
        flow.armed = next;
        self.timers.set(index, next);
        true
    }

    /// The timer of a flow, which is the earliest timer: only its application is due, if anything is, and it only
    /// writes. False if it is not so.
    #[inline(never)]
    pub(crate) fn wake_plain(&mut self, index: u32) -> bool {
        let now = self.now;
        let Self { flows, net, timers, records, postpones, .. } = self;
        let (Some(flow), Some(record)) = (flows.get_mut(index as usize), records.get_mut(index as usize))
        else {
            return false;
        };
        let (way, header) = (flow.way(index, false), flow.header);
        let (Agent::OneWay(ends), Some(app)) = (&mut flow.agent, &mut record.app) else { return false };
        if ends.next_timeout().min(record.stop) <= now || ends.source.sender().has_judgement() {
            return false;
        }
        let Some(Written { bytes, next, finite }) = app.write(now) else { return false };
        // A video may have ended.
        flow.finite |= finite;
        let source = &mut ends.source;
        if bytes > 0 {
            source.offer(now, bytes);
        }
        send_written(net, now, way, header, source);
        // More data would only wait: it is asked for when something depends on it.
        flow.waits = source.sender().is_supplied();
        *postpones |= flow.waits;
        let write = if flow.waits { Instant::MAX } else { next };
        let next = ends.next_timeout().min(record.stop).min(write);
        // Overdue deadlines are due now.
        flow.armed = next.max(now);
        if flow.waits {
            timers.set(index, flow.armed);
        } else {
            timers.repeat(flow.armed);
        }
        true
    }
}

/// The application of a flow that waits writes what it would have written before `until`.
#[inline(never)]
fn write_postponed(source: &mut Source<Counted>, finite: &mut bool, record: &mut Record, until: Instant) {
    let Some(app) = &mut record.app else { return };
    if app.next() >= until {
        return;
    }
    if let Some(written) = app.write(Instant::from_nanos(until.as_nanos() - 1)) {
        *finite |= written.finite;
        source.offer_late(written.bytes);
    }
}

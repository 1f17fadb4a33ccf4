//! The fast path for ordinary segments of one-way flows: data in order, and the acknowledgements for it.
//!
//! Nearly all segments are ordinary. The ends process them without unnecessary checks (header prediction). Everything
//! else takes the slow path, [`Sim::arrive`], without prior changes.

use crate::flow::agent::Agent;
use crate::flow::watch;
use crate::observe::events;
use crate::observe::tap::Tap;
use crate::packet::parcel::Parcel;
use crate::sim::Sim;
use skyhaul_path::PacketView;
use skyhaul_tcp::Head;

impl<R: Tap> Sim<R> {
    /// Handles a parcel that has reached its endpoint. False if it is not ordinary.
    #[inline]
    pub(crate) fn arrive_plain(&mut self, parcel: &Parcel) -> bool {
        if R::PACKETS {
            // Observers of packets need whole segments.
            return false;
        }
        match parcel.plain() {
            Some(head) if head.len > 0 => !parcel.backward() && self.plain_data(parcel, head),
            Some(head) => parcel.backward() && self.plain_ack(parcel, head),
            None => false,
        }
    }

    /// Payload has reached a receiver.
    #[inline]
    fn plain_data(&mut self, parcel: &Parcel, head: &Head) -> bool {
        let (now, index) = (self.now, parcel.flow());
        let Self { flows, net, timers, records, .. } = self;
        let Some(flow) = flows.get_mut(index as usize) else { return false };
        let label = flow.label(index, true);
        let Agent::OneWay(ends) = &mut flow.agent else { return false };
        let sink = &mut ends.sink;
        let current = parcel.generation() == flow.generation;
        if !current || !sink.take_plain(now, head.seq, head.len, head.ts()) {
            return false;
        }
        if R::ENABLED {
            events::arrival(now, parcel, net);
        }
        if flow.watched {
            // Data in order comes before a FIN, and its first byte has offset 1.
            let there = sink.receiver().next_expected() - 1;
            let segment = (there - u64::from(head.len), there);
            watch::stream(now, index, segment, &mut records[index as usize], net);
        }
        net.send_segments(now, label, |now, extras| sink.poll(now, extras));
        let next = sink.next_timeout();
        if next < flow.armed {
            flow.armed = next;
            timers.set_earlier(index, next);
        }
        true
    }

    /// An acknowledgement has reached a sender.
    #[inline]
    fn plain_ack(&mut self, parcel: &Parcel, head: &Head) -> bool {
        let (now, index) = (self.now, parcel.flow());
        let Self { flows, net, timers, .. } = self;
        let Some(flow) = flows.get_mut(index as usize) else { return false };
        let label = flow.label(index, false);
        let Agent::OneWay(ends) = &mut flow.agent else { return false };
        let source = &mut ends.source;
        let current = parcel.generation() == flow.generation;
        if !current || !source.take_plain(now, head.ack, head.window, head.ts()) {
            return false;
        }
        flow.last_ack = now;
        if R::ENABLED {
            events::arrival(now, parcel, net);
        }
        net.send_segments(now, label, |now, extras| source.poll(now, extras));
        let next = source.next_timeout();
        if next < flow.armed {
            flow.armed = next;
            timers.set_earlier(index, next);
        }
        // Others than the sender are concerned.
        if flow.finite || source.sender().has_judgement() || R::ENABLED {
            self.acknowledged(index);
        }
        true
    }
}

//! The fast path for ordinary segments of one-way flows: data in order, and the acknowledgements for it.
//!
//! Nearly all segments are ordinary. A few bits identify them, the ends process them without unnecessary checks
//! (header prediction), and the segments they release are sent from here. Everything else takes the slow path,
//! [`Sim::arrive`], without prior changes.

use crate::flow::agent::Agent;
use crate::flow::watch;
use crate::observe::events;
use crate::observe::tap::Tap;
use crate::packet::parcel::Parcel;
use crate::sim::Sim;
use skyhaul_path::PacketView;

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
        let label = flow.label(index, true);
        let Agent::OneWay(ends) = &mut flow.agent else { return false };
        let (seq, _, _) = parcel.numbers();
        let sink = &mut ends.sink;
        let current = parcel.generation() == flow.generation;
        if !current || !sink.take_plain(now, seq, parcel.len(label.header), parcel.ts()) {
            return false;
        }
        if R::ENABLED {
            events::arrival(now, parcel, net);
        }
        if flow.watched {
            // Data in order comes before a FIN, and its first byte has offset 1.
            let there = sink.receiver().next_expected() - 1;
            let segment = (there - u64::from(parcel.len(label.header)), there);
            watch::stream(now, index, segment, &mut records[index as usize], net);
        }
        net.send_all(now, label, sink);
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
        let Self { flows, net, timers, .. } = self;
        let Some(flow) = flows.get_mut(index as usize) else { return false };
        let label = flow.label(index, false);
        let Agent::OneWay(ends) = &mut flow.agent else { return false };
        let (_, ack, window) = parcel.numbers();
        if parcel.generation() != flow.generation {
            return false;
        }
        let source = &mut ends.source;
        if !source.take_plain(now, ack, window, parcel.ts()) {
            return false;
        }
        flow.last_ack = now;
        if R::ENABLED {
            events::arrival(now, parcel, net);
        }
        net.send_all(now, label, source);
        let next = source.next_timeout();
        if next < flow.armed {
            flow.armed = next;
            timers.set_earlier(index, next);
        }
        // Others than the sender are concerned.
        if flow.finite || source.sender().has_congestion_report() || R::ENABLED {
            self.acknowledged(index);
        }
        true
    }
}

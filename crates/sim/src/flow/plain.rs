//! The fast path for ordinary segments: data in order, and the acknowledgements for it.
//!
//! Nearly all segments are ordinary. A few bits identify them, the ends process them without unnecessary checks
//! (header prediction), and the segments they release are sent from here. Everything else takes the slow path,
//! [`Sim::arrive`], without prior changes.

use crate::flow::agent::Agent;
use crate::flow::{Flow, watch};
use crate::observe::events;
use crate::observe::tap::Tap;
use crate::packet::parcel::Parcel;
use crate::packet::send::send_from;
use crate::sim::Sim;
use skyhaul_path::PacketView;
use skyhaul_tcp::Sender;

impl<R: Tap> Sim<R> {
    /// Handles a parcel that has reached its endpoint. False if it is not ordinary.
    #[inline(always)]
    pub(crate) fn arrive_plain(&mut self, parcel: Parcel) -> bool {
        // Observers of packets need whole segments.
        if R::PACKETS || !(parcel.is_plain_data() || parcel.is_plain_ack()) {
            return false;
        }
        let (now, index, backward) = (self.now, parcel.flow(), parcel.backward());
        let Self { flows, net, timers, records, .. } = self;
        let Some(flow) = flows.get_mut(index as usize) else { return false };
        if parcel.generation() != flow.generation {
            return false;
        }
        let (seq, ack, window) = parcel.numbers();
        // Only legs compress headers along a whole path, and legs take the slow path: these parcels have whole headers.
        let (header, ts) = (flow.header, parcel.ts());
        let taken = match &mut flow.agent {
            Agent::OneWay(ends) if backward => ends.source.take_plain(now, ack, window, ts),
            Agent::OneWay(ends) => ends.sink.take_plain(now, seq, parcel.len(header), ts),
            Agent::Connections(ends) => ends.end(backward).take_plain(now, &parcel.head(header)),
            _ => false,
        };
        if !taken {
            return false;
        }
        if R::ENABLED {
            events::arrival(now, parcel, net);
        }
        if flow.watched && !backward {
            watch::next_segment(now, index, parcel.len(header), flow, &mut records[index as usize], net);
        }
        if backward {
            flow.last_ack = now;
        }
        let next = send_from(net, now, index, flow, backward);
        if next < flow.armed {
            flow.armed = next;
            timers.set_earlier(index, next);
        }
        // Whether anything but the sender has to learn of the acknowledgement.
        let concerns = |flow: &Flow| {
            flow.finite || R::ENABLED || flow.agent.sender().is_some_and(Sender::has_congestion_report)
        };
        if backward && concerns(flow) {
            self.acknowledged(index);
        }
        true
    }
}

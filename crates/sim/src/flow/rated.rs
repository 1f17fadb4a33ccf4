//! Rate-controlled datagrams: arrivals at their ends, and transmissions.

use crate::flow::agent::Agent;
use crate::flow::watch;
use crate::observe::oracle::is_error;
use crate::observe::tap::Tap;
use crate::packet::parcel::Parcel;
use crate::packet::send::dispatch;
use crate::sim::Sim;
use skyhaul_base::Instant;
use skyhaul_path::PacketView;

impl<R: Tap> Sim<R> {
    /// A parcel has reached one of the ends.
    pub(crate) fn rated_arrival(&mut self, parcel: Parcel) {
        let (now, index) = (self.now, parcel.flow());
        let Self { flows, net, records, .. } = self;
        let flow = &mut flows[index as usize];
        let Agent::Rated(rated) = &mut flow.agent else { return };
        if !parcel.backward() {
            if rated.informed {
                for (number, _, cause) in net.witness.truth.news(index, flow.generation, flow.header) {
                    if is_error(cause) {
                        rated.receiver.excuse(number.into());
                    }
                }
            }
            let datagram = rated.receive(now, (&parcel.as_data(), parcel.is_marked()), flow.header);
            if flow.watched {
                watch::datagram(now, &datagram, &mut records[index as usize]);
            }
        } else if let Some(report) = parcel.as_report(rated.tfrc) {
            rated.sender.handle_report(now, &report);
        }
        let next = self.rated_flush(index);
        let flow = &mut self.flows[index as usize];
        if next < flow.armed {
            flow.armed = next;
            self.timers.set_earlier(index, next);
        }
    }

    /// Sends what both ends have to send by now; returns when one of them next needs a call.
    pub(crate) fn rated_flush(&mut self, index: u32) -> Instant {
        let Self { flows, net, now, records, .. } = self;
        let flow = &mut flows[index as usize];
        let (forward, back, header) = (flow.label(index, false), flow.label(index, true), flow.header);
        let Agent::Rated(rated) = &mut flow.agent else { return Instant::MAX };
        while let Some(data) = rated.poll(*now) {
            let data = (&data, rated.ecn);
            let parcel = Parcel::data(data, header, forward, &mut net.witness.bodies, R::PACKETS);
            dispatch(net, *now, parcel);
        }
        while let Some(report) = rated.receiver.poll() {
            let parcel = Parcel::report(&report, header, back, &mut net.witness.bodies, R::PACKETS);
            dispatch(net, *now, parcel);
        }
        let (over, next) = (rated.sender.is_over(), rated.next_timeout());
        if over && records[index as usize].finished.is_none() {
            self.note_finished(index);
        }
        next
    }
}

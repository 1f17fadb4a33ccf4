//! Rate-controlled datagrams: arrivals at their ends, and transmissions.

use crate::flow::agent::Agent;
use crate::flow::watch;
use crate::observe::oracle::is_error;
use crate::observe::tap::Tap;
use crate::packet::parcel::Packet;
use crate::sim::Sim;
use skyhaul_base::Instant;
use skyhaul_rate::Report;
use skyhaul_tcp::Codepoint;

impl<R: Tap> Sim<R> {
    /// A packet has reached one of the ends.
    pub(crate) fn rated_arrival(&mut self, index: u32, packet: &Packet) {
        let Self { flows, net, records, now, .. } = self;
        let now = *now;
        let flow = &mut flows[index as usize];
        let Agent::Rated(rated) = &mut flow.agent else { return };
        if let Packet::Rated { data, ecn } = packet {
            if rated.informed {
                for (number, _, cause) in net.witness.truth.news(index, flow.generation, flow.header) {
                    if is_error(cause) {
                        rated.receiver.excuse(number.into());
                    }
                }
            }
            let datagram = rated.receive(now, (data, *ecn == Codepoint::Marked), flow.header);
            if flow.watched {
                watch::datagram(now, &datagram, &mut records[index as usize]);
            }
        } else if let Packet::Report(words) = packet {
            if let Some(report) = Report::from_words(*words, rated.tfrc) {
                rated.sender.handle_report(now, &report);
            }
        }
        let next = self.rated_flush(index);
        let flow = &mut self.flows[index as usize];
        if next < flow.armed {
            flow.armed = next;
            self.timers.set_earlier(index, next);
        }
    }

    /// Sends what both ends have to send by now; returns the earliest deadline of the two.
    pub(crate) fn rated_flush(&mut self, index: u32) -> Instant {
        let Self { flows, net, now, records, .. } = self;
        let flow = &mut flows[index as usize];
        let (forward, back) = (flow.label(index, false), flow.label(index, true));
        let Agent::Rated(rated) = &mut flow.agent else { return Instant::MAX };
        let ecn = if rated.ecn { Codepoint::Capable } else { Codepoint::NotCapable };
        while let Some(data) = rated.poll(*now) {
            net.send(*now, forward, &Packet::Rated { data, ecn });
        }
        while let Some(report) = rated.receiver.poll() {
            net.send(*now, back, &Packet::Report(report.words()));
        }
        let (over, next) = (rated.sender.is_over(), rated.next_timeout());
        if over && records[index as usize].finished.is_none() {
            self.note_finished(index);
        }
        next
    }
}

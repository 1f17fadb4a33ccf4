//! What the ends of a flow have to send becomes parcels, and enters the network.

use crate::flow::Flow;
use crate::flow::agent::Agent;
use crate::observe::events;
use crate::observe::tap::{Place, Tap};
use crate::packet::network::Network;
use crate::packet::parcel::{Label, Outgoing, Packet, Parcel};
use skyhaul_base::Instant;
use skyhaul_tcp::{Extras, Head};

impl<R: Tap> Network<R> {
    /// Sends packets until there is none.
    #[inline]
    pub(crate) fn send_all(
        &mut self,
        now: Instant,
        label: Label,
        mut next: impl FnMut() -> Option<Outgoing>,
    ) {
        while let Some(outgoing) = next() {
            self.send(now, label, outgoing);
        }
    }

    /// Sends the segments of an end without a handshake, whose `poll` stores the rare parts of a segment aside.
    #[inline]
    pub(crate) fn send_segments(
        &mut self,
        now: Instant,
        label: Label,
        mut poll: impl FnMut(Instant, &mut Option<Extras>) -> Option<Head>,
    ) {
        self.send_all(now, label, || {
            let mut extras = None;
            let head = poll(now, &mut extras)?;
            Some(Outgoing { packet: Packet::Segment(head), extras })
        });
    }

    /// Sends a packet.
    #[inline]
    pub(crate) fn send(&mut self, now: Instant, label: Label, outgoing: Outgoing) {
        let parcel = self.pack(label, outgoing);
        self.depart(now, parcel);
    }

    /// The parcel of a packet that is about to depart.
    #[inline]
    pub(crate) fn pack(&mut self, label: Label, outgoing: Outgoing) -> Parcel {
        Parcel::new(outgoing, label, &mut self.witness.bodies, R::PACKETS)
    }

    /// A parcel leaves its end.
    #[inline]
    pub(crate) fn depart(&mut self, now: Instant, parcel: Parcel) {
        if R::ENABLED {
            events::departure(now, &parcel, self);
        }
        if R::PACKETS {
            self.witness.show(now, &parcel, Place::Sent);
        }
        self.forward(now, parcel);
    }

    /// Sends what the end of a TCP flow has to send that gets the segments of this direction; returns its next deadline.
    pub(crate) fn send_from(&mut self, now: Instant, index: u32, flow: &mut Flow, backward: bool) -> Instant {
        let label = flow.label(index, !backward);
        match &mut flow.agent {
            Agent::OneWay(ends) if backward => {
                self.send_segments(now, label, |now, extras| ends.source.poll(now, extras));
                ends.source.next_timeout()
            }
            Agent::OneWay(ends) => {
                self.send_segments(now, label, |now, extras| ends.sink.poll(now, extras));
                ends.sink.next_timeout()
            }
            Agent::Connections(ends) => {
                let end = ends.end(backward);
                self.send_all(now, label, || end.poll_transmit(now).as_ref().map(Outgoing::from));
                end.next_timeout()
            }
            Agent::Leg(_) | Agent::Silent | Agent::FixedWindow(_) | Agent::Datagrams(_) | Agent::Rated(_) => {
                Instant::MAX
            }
        }
    }
}

//! What the ends of a flow have to send becomes parcels, and enters the network.

use crate::flow::Flow;
use crate::flow::agent::{Agent, FixedWindow};
use crate::observe::events;
use crate::observe::tap::{Place, Tap};
use crate::packet::network::Network;
use crate::packet::parcel::{Content, Label, Parcel};
use skyhaul_base::Instant;
use skyhaul_tcp::{Connection, Counted, Extras, Head, Sink, Source};

impl<R: Tap> Network<R> {
    /// Sends a segment or another packet.
    pub(crate) fn send(&mut self, now: Instant, label: Label, content: &impl Content) {
        let parcel = self.pack(label, content);
        self.depart(now, parcel);
    }

    /// The parcel of a segment or another packet.
    #[inline(always)]
    pub(crate) fn pack(&mut self, label: Label, content: &impl Content) -> Parcel {
        let timed = !label.backward && self.witness.delays.is_some();
        content.pack(label, &mut self.witness.bodies, R::PACKETS || timed)
    }

    /// A parcel leaves its end.
    #[inline(always)]
    pub(crate) fn depart(&mut self, now: Instant, parcel: Parcel) {
        if R::ENABLED {
            events::departure(now, parcel, self);
        }
        if R::PACKETS {
            self.witness.show(now, parcel, Place::Sent);
        }
        if parcel.has_body() {
            self.time(now, parcel);
        }
        self.forward(now, parcel);
    }

    /// Notes when a packet with a body leaves its end, if delays are measured: all packets towards receivers then have one.
    #[cold]
    fn time(&mut self, now: Instant, parcel: Parcel) {
        if let (Some(delays), false) = (&mut self.witness.delays, parcel.backward()) {
            let (mut at, mut least) = (parcel, self.chain.least_delay(now, &parcel));
            // The route goes on behind gates.
            while let Some(gate) = self.gates.get(&self.chain.end_of_route(&at)) {
                at.set_hop(gate.through);
                least = least + self.chain.least_delay(now + least, &at);
            }
            delays.left(now, parcel, least);
        }
    }

    /// Sends everything that an end has to send.
    #[inline(always)]
    pub(crate) fn send_all(&mut self, now: Instant, label: Label, end: &mut impl Sends) {
        while let Some((head, extras)) = end.next(now) {
            let parcel = self.pack(label, &(&head, extras.as_deref()));
            self.depart(now, parcel);
        }
    }
}

/// One end of a flow.
pub(crate) trait Sends {
    /// The next segment to send, with its extras, if it has any; `None` if there is none before the next event.
    fn next(&mut self, now: Instant) -> Option<(Head, Option<Box<Extras>>)>;
}

impl Sends for Source<Counted> {
    #[inline(always)]
    fn next(&mut self, now: Instant) -> Option<(Head, Option<Box<Extras>>)> {
        self.poll(now)
    }
}
impl Sends for Sink<Counted> {
    #[inline(always)]
    fn next(&mut self, now: Instant) -> Option<(Head, Option<Box<Extras>>)> {
        self.poll(now)
    }
}
impl Sends for Connection<Counted> {
    #[inline(always)]
    fn next(&mut self, now: Instant) -> Option<(Head, Option<Box<Extras>>)> {
        self.poll_head(now)
    }
}
impl Sends for FixedWindow {
    #[inline(always)]
    fn next(&mut self, _: Instant) -> Option<(Head, Option<Box<Extras>>)> {
        Some((self.poll_transmit()?, None))
    }
}

/// Sends what one end of a TCP flow has to send, and returns its next deadline: the end that `backward` segments are
/// addressed to is the data sender, the other one the receiver.
pub(crate) fn send_from<R: Tap>(
    net: &mut Network<R>,
    now: Instant,
    index: u32,
    flow: &mut Flow,
    backward: bool,
) -> Instant {
    let label = flow.label(index, !backward);
    match &mut flow.agent {
        Agent::OneWay(ends) if backward => {
            net.send_all(now, label, &mut ends.source);
            ends.source.next_timeout()
        }
        Agent::OneWay(ends) => {
            net.send_all(now, label, &mut ends.sink);
            ends.sink.next_timeout()
        }
        Agent::Connections(ends) => {
            let end = ends.end(backward);
            net.send_all(now, label, end);
            end.next_timeout()
        }
        Agent::Leg(_)
        | Agent::Silent
        | Agent::FixedWindow(_)
        | Agent::Datagrams(_)
        | Agent::Rated(_)
        | Agent::Segment(_) => Instant::MAX,
    }
}

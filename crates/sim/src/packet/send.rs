//! What the ends of a flow have to send becomes parcels, and enters the network.

use crate::flow::Flow;
use crate::flow::agent::Agent;
use crate::observe::events;
use crate::observe::tap::{Place, Tap};
use crate::packet::network::Network;
use crate::packet::parcel::{Label, Packet, Parcel};
use skyhaul_base::Instant;
use skyhaul_tcp::{Counted, Extras, Head, Segment, Sink, Source};

/// Sends what a source has to send after an acknowledgement; ordinary segments first, without what else a segment may
/// carry. Not for taps that want packets whole.
#[inline(always)]
pub(crate) fn send_data<R: Tap>(
    net: &mut Network<R>,
    now: Instant,
    label: Label,
    header: u32,
    source: &mut Source<Counted>,
) {
    if !source.ends_at_once(now) {
        while let Some(head) = source.poll_plain(now) {
            dispatch(net, now, Parcel::plain(&head, header, label));
        }
    }
    send_any(net, now, label, header, source);
}

/// Sends what a source has to send, each segment with all that it carries.
#[inline(always)]
pub(crate) fn send_any<R: Tap>(
    net: &mut Network<R>,
    now: Instant,
    label: Label,
    header: u32,
    source: &mut Source<Counted>,
) {
    let mut beside = None;
    while !source.is_at_rest() {
        let Some(head) = source.poll(now, &mut beside) else { break };
        send(net, now, label, header, &head, beside.take());
    }
}

/// Sends what a sink has to send. Its loop is that of [`send_any`]: one for both, which takes a closure, costs 2 % more instructions per
/// segment.
#[inline(always)]
pub(crate) fn send_acks<R: Tap>(
    net: &mut Network<R>,
    now: Instant,
    label: Label,
    header: u32,
    sink: &mut Sink<Counted>,
) {
    let mut beside = None;
    while !sink.is_at_rest() {
        let Some(head) = sink.poll(now, &mut beside) else { break };
        send(net, now, label, header, &head, beside.take());
    }
}

/// Sends a segment.
#[inline(never)]
pub(crate) fn send<R: Tap>(
    net: &mut Network<R>,
    now: Instant,
    label: Label,
    header: u32,
    head: &Head,
    beside: Option<Extras>,
) {
    let parcel = Parcel::pack(head, beside, header, label, &mut net.witness.bodies, R::PACKETS);
    dispatch(net, now, parcel);
}

/// Sends what the end of a TCP flow has to send that gets the segments of this direction; returns its next deadline.
pub(crate) fn send_from<R: Tap>(
    net: &mut Network<R>,
    now: Instant,
    index: u32,
    flow: &mut Flow,
    backward: bool,
) -> Instant {
    let (label, header) = (flow.label(index, !backward), flow.header);
    match &mut flow.agent {
        Agent::OneWay(ends) if backward => {
            send_any(net, now, label, header, &mut ends.source);
            ends.source.next_timeout()
        }
        Agent::OneWay(ends) => {
            send_acks(net, now, label, header, &mut ends.sink);
            ends.sink.next_timeout()
        }
        Agent::Connections(ends) => {
            let end = ends.end(backward);
            while let Some(out) = &end.poll_transmit(now) {
                send_whole(net, now, label, header, out);
            }
            end.next_timeout()
        }
        Agent::Leg(_) | Agent::Silent | Agent::FixedWindow(_) | Agent::Datagrams(_) | Agent::Rated(_) => {
            Instant::MAX
        }
    }
}

/// The parcel of a segment of a full connection.
pub(crate) fn pack_whole<R: Tap>(
    net: &mut Network<R>,
    label: Label,
    header: u32,
    segment: &Segment,
) -> Parcel {
    Parcel::whole(segment, header, label, &mut net.witness.bodies, R::PACKETS)
}

/// Sends a segment of a full connection.
pub(crate) fn send_whole<R: Tap>(
    net: &mut Network<R>,
    now: Instant,
    label: Label,
    header: u32,
    segment: &Segment,
) {
    let parcel = pack_whole(net, label, header, segment);
    dispatch(net, now, parcel);
}

/// Sends a packet that is not a segment.
pub(crate) fn send_packet<R: Tap>(
    net: &mut Network<R>,
    now: Instant,
    label: Label,
    header: u32,
    packet: &Packet,
) {
    let parcel = packet.pack(header, label, &mut net.witness.bodies, R::PACKETS);
    dispatch(net, now, parcel);
}

/// Sends a parcel.
#[inline(always)]
pub(crate) fn dispatch<R: Tap>(net: &mut Network<R>, now: Instant, parcel: Parcel) {
    if R::ENABLED {
        events::departure(now, parcel, net);
    }
    if R::PACKETS {
        net.witness.show(now, parcel, Place::Sent);
    }
    net.forward(now, parcel);
}

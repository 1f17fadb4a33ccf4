//! Applications that are informed of the fate of their data: the simulator sees both ends.

use crate::flow::agent::Agent;
use crate::flow::{Flow, Record};
use crate::observe::tap::Tap;
use crate::packet::network::Network;
use skyhaul_apps::{App, Arrival, Datagram, Feedback, Frame, FrameStatus, Watch};
use skyhaul_base::Instant;
use skyhaul_tcp::{Counted, Head, Receiver, Seq, State};
use skyhaul_trace::Event;

/// State before an end handles a segment: payload received in order, and the segment's first and end offset if it
/// has payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiverState {
    in_order: u64,
    segment: Option<(u64, u64)>,
}

fn receiver(flow: &Flow) -> Option<&Receiver<Counted>> {
    match &flow.agent {
        Agent::OneWay(ends) => Some(ends.sink.receiver()),
        Agent::Connections(ends) => Some(ends.receiver.receiver()),
        // Flows with a watched stream do not pass gateways.
        Agent::Leg(_)
        | Agent::Silent
        | Agent::FixedWindow(_)
        | Agent::Datagrams(_)
        | Agent::Rated(_)
        | Agent::Segment(_) => None,
    }
}

/// To be called before a segment is handled. `None` if the flow has no stream, and if the application learns nothing from this
/// segment.
pub(crate) fn before(flow: &Flow, head: &Head, backward: bool) -> Option<ReceiverState> {
    if backward && matches!(flow.agent, Agent::OneWay(_)) {
        // Nothing arrives at the receiver, and the sender gives up only when a timer expires.
        return None;
    }
    let receiver = receiver(flow)?;
    let next = receiver.next_expected();
    // The SYN takes sequence number 0, so the first byte of data has 1. A probe carries no data of the stream.
    let plain = !backward && head.len > 0 && !head.mark().is_probe();
    let from = head.seq.unwrap(next, Seq(next as u32)).filter(|_| plain).and_then(|seq| seq.checked_sub(1));
    Some(ReceiverState {
        in_order: receiver.payload_received(),
        segment: from.map(|from| (from, from + u64::from(head.len))),
    })
}

/// A segment was handled.
pub(crate) fn after<R: Tap>(
    now: Instant,
    index: u32,
    before: ReceiverState,
    flow: &Flow,
    record: &mut Record,
    net: &mut Network<R>,
) {
    let Some(received) = receiver(flow).map(Receiver::payload_received) else { return };
    if let Some(segment) = before.segment {
        arrived(now, record, segment);
    }
    if received > before.in_order {
        in_order(now, index, received, record, net);
    }
    // The sender of a one-way flow gives up only when a timer expires.
    if !matches!(flow.agent, Agent::OneWay(_)) {
        check_gave_up(now, index, flow, record, net);
    }
}

/// A segment of `len` bytes was handled that was the next one in order.
pub(crate) fn next_segment<R: Tap>(
    now: Instant,
    index: u32,
    len: u32,
    flow: &Flow,
    record: &mut Record,
    net: &mut Network<R>,
) {
    let Some(received) = receiver(flow).map(Receiver::payload_received) else { return };
    arrived(now, record, (received - u64::from(len), received));
    in_order(now, index, received, record, net);
}

/// A segment arrived, in order or not.
fn arrived(now: Instant, record: &mut Record, (from, to): (u64, u64)) {
    tell(record, |app| app.arrived(now, &Arrival::Segment { from, to }));
}

/// The next bytes in order arrived.
fn in_order<R: Tap>(now: Instant, index: u32, bytes: u64, record: &mut Record, net: &mut Network<R>) {
    tell(record, |app| app.arrived(now, &Arrival::InOrder { bytes }));
    if R::ENABLED {
        net.witness.recorder.record(now, &Event::InOrder { flow: index, bytes });
    }
}

/// A datagram arrived.
pub(crate) fn datagram(now: Instant, datagram: &Datagram, record: &mut Record) {
    tell(record, |app| app.arrived(now, &Arrival::Datagram(*datagram)));
}

/// Informs the application and the recorder once if the sender has given up.
pub(crate) fn check_gave_up<R: Tap>(
    now: Instant,
    index: u32,
    flow: &Flow,
    record: &mut Record,
    net: &mut Network<R>,
) {
    let dead = match &flow.agent {
        Agent::OneWay(ends) => ends.source.sender().gave_up(),
        Agent::Connections(ends) => ends.sender.state() == State::Closed,
        Agent::Leg(_)
        | Agent::Silent
        | Agent::FixedWindow(_)
        | Agent::Datagrams(_)
        | Agent::Rated(_)
        | Agent::Segment(_) => false,
    };
    if dead && record.finished.is_none() && !record.dead {
        record.dead = true;
        tell(record, |app| app.died(now));
        if R::ENABLED {
            net.witness.recorder.record(now, &Event::GaveUp { flow: index });
        }
    }
}

/// Calls the application of a flow, if it is informed of arrivals.
fn tell(record: &mut Record, what: impl FnOnce(&mut dyn Watch)) {
    if let Some(app) = record.app.as_mut().and_then(App::watch_mut) {
        what(app);
    }
}

/// Reports the state of its transport to an application that listens.
pub(crate) fn feedback(flow: &Flow, record: &mut Record) {
    let Some(app) = record.app.as_mut().and_then(App::watch_mut).filter(|app| app.listens()) else { return };
    let feedback = match (flow.agent.sender(), flow.agent.rated()) {
        (Some(sender), _) => Feedback {
            unacknowledged: sender.unacked(),
            allowed: sender.allowed(),
            round_trip: sender.srtt(),
        },
        // Datagrams are not acknowledged.
        (None, Some(rated)) => Feedback {
            unacknowledged: 0,
            allowed: rated.sender.allowed(),
            round_trip: rated.sender.state().rtt,
        },
        (None, None) => return,
    };
    app.feedback(&feedback);
}

/// The event of a frame.
pub(crate) fn frame(flow: u32, frame: &Frame) -> Event {
    let status = match frame.status {
        FrameStatus::Sent => 0,
        FrameStatus::Skipped => 1,
        FrameStatus::Gap => 2,
    };
    let Frame { number, kind, bytes, target, .. } = *frame;
    Event::Frame { flow, frame: skyhaul_trace::Frame { number, kind: kind as u8, status, bytes, target } }
}

//! Events for the recorder, derived from passing packets and changed state.

use crate::flow::Reported;
use crate::observe::tap::Tap;
use crate::packet::network::Network;
use crate::packet::parcel::Parcel;
use skyhaul_base::Instant;
use skyhaul_cc::Phase;
use skyhaul_path::PacketView;
use skyhaul_tcp::{Counted, Sender};
use skyhaul_trace::{Class, Event};

/// A parcel leaves its endpoint.
pub(crate) fn departure<R: Tap>(now: Instant, parcel: Parcel, net: &mut Network<R>) {
    let (flow, packet) = (parcel.flow(), parcel.packet());
    net.witness.recorder.record(now, &Event::Sent { flow, packet });
    if packet.class == Class::Probe {
        net.witness.recorder.record(now, &Event::ProbeSent { flow });
    }
}

/// A parcel reaches its endpoint.
pub(crate) fn arrival<R: Tap>(now: Instant, parcel: Parcel, net: &mut Network<R>) {
    let (flow, packet) = (parcel.flow(), parcel.packet());
    net.witness.recorder.record(now, &Event::Delivered { flow, packet });
    if parcel.backward() {
        net.witness.recorder.record(now, &Event::AckArrived { flow, ack: packet.ack });
    }
}

/// A sender was called: reports what has changed since the last time.
pub(crate) fn sender<R: Tap>(
    now: Instant,
    flow: u32,
    sender: &Sender<Counted>,
    reported: &mut Reported,
    net: &mut Network<R>,
) {
    let (state, counters) = (sender.snapshot(), sender.counters());
    let new = Reported {
        cwnd: state.cwnd,
        ssthresh: state.ssthresh,
        timeouts: counters.timeouts,
        recovering: state.phase == Phase::Recovery,
        answered: counters.probes_answered,
    };
    let old = core::mem::replace(reported, new);
    if new == old {
        return;
    }
    let mut record = |event| net.witness.recorder.record(now, &event);
    (old.answered..new.answered).for_each(|_| record(Event::ProbeAnswered { flow }));
    (old.timeouts..new.timeouts).for_each(|_| record(Event::Timeout { flow }));
    match (old.recovering, new.recovering) {
        (false, true) => record(Event::RecoveryEntered { flow }),
        (true, false) => record(Event::RecoveryLeft { flow }),
        _ => {}
    }
    if (old.cwnd, old.ssthresh) != (new.cwnd, new.ssthresh) {
        record(Event::Window { flow, cwnd: new.cwnd, ssthresh: new.ssthresh });
    }
}

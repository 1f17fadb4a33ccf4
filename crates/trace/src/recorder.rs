//! Recorders of events.

use crate::event::Event;
use alloc::vec::Vec;
use skyhaul_base::Instant;
use skyhaul_base::hash::Fnv;

/// A recorder, chosen at compile time.
pub trait Recorder {
    /// False if nothing is ever recorded: drivers then skip work that only serves recording.
    const ENABLED: bool = true;

    /// Records an event. Times never decrease.
    fn record(&mut self, now: Instant, event: &Event);

    /// A hash of all events so far, if this recorder computes one.
    fn digest(&self) -> Option<u64> {
        None
    }
    /// Memory that grows with the number of events, bytes.
    fn held(&self) -> usize {
        0
    }
}

/// Records nothing, at no cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Null;

impl Recorder for Null {
    const ENABLED: bool = false;

    #[inline(always)]
    fn record(&mut self, _now: Instant, _event: &Event) {}
}

/// Condenses a run to one number: two runs with the same digest had the same events at the same times in the
/// same order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Digest(Fnv);

impl Recorder for Digest {
    fn record(&mut self, now: Instant, event: &Event) {
        self.0.write_u64(now.as_nanos());
        event.words(|w| self.0.write_u64(w));
    }
    fn digest(&self) -> Option<u64> {
        Some(self.0.finish())
    }
}

/// Keeps every event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// The events in order.
    pub events: Vec<(Instant, Event)>,
}

impl Recorder for Memory {
    fn record(&mut self, now: Instant, event: &Event) {
        self.events.push((now, *event));
    }
    fn held(&self) -> usize {
        self.events.capacity() * size_of::<(Instant, Event)>()
    }
}

/// Both recorders; the digest is that of the first that has one.
impl<A: Recorder, B: Recorder> Recorder for (A, B) {
    const ENABLED: bool = A::ENABLED || B::ENABLED;

    fn record(&mut self, now: Instant, event: &Event) {
        self.0.record(now, event);
        self.1.record(now, event);
    }
    fn digest(&self) -> Option<u64> {
        self.0.digest().or_else(|| self.1.digest())
    }
    fn held(&self) -> usize {
        self.0.held() + self.1.held()
    }
}

/// A borrowed recorder, so that the caller can look at it afterwards.
impl<R: Recorder> Recorder for &mut R {
    const ENABLED: bool = R::ENABLED;

    fn record(&mut self, now: Instant, event: &Event) {
        (**self).record(now, event);
    }
    fn digest(&self) -> Option<u64> {
        (**self).digest()
    }
    fn held(&self) -> usize {
        (**self).held()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Class, Frame, LinkChange, LossCause, Packet};
    use skyhaul_base::Duration;

    /// An event of each kind.
    fn all() -> Vec<Event> {
        let packet = Packet { class: Class::Data, seq: 1, ack: 2, size: 1000, low_priority: false };
        let frame = Frame { number: 1, kind: 0, status: 0, bytes: 1000, target: 1e6 };
        let (flow, link) = (1, 1);
        alloc::vec![
            Event::AckArrived { flow, ack: 2 },
            Event::Delivered { flow, packet },
            Event::Discarded { flow, packet },
            Event::Dropped { flow, link, cause: LossCause::Error, packet },
            Event::Duplicated { flow, link, packet },
            Event::FlowFinished { flow },
            Event::FlowStarted { flow },
            Event::Frame { flow, frame },
            Event::GaveUp { flow },
            Event::Handover {
                link,
                from: None,
                to: Some(1),
                before: Duration::ZERO,
                after: Duration::from_secs(1)
            },
            Event::InOrder { flow, bytes: 5 },
            Event::LinkChanged { link, what: LinkChange::Rate, value: 5 },
            Event::LinkChanged { link, what: LinkChange::Delay, value: 5 },
            Event::Marked { flow, link, packet },
            Event::PageDone { flow, page: 0, took: Duration::from_secs(1) },
            Event::ProbeAnswered { flow },
            Event::ProbeSent { flow },
            Event::Queue { link, packets: 3 },
            Event::RecoveryEntered { flow },
            Event::RecoveryLeft { flow },
            Event::Sent { flow, packet },
            Event::Timeout { flow },
            Event::Window { flow, cwnd: 2.0, ssthresh: f64::INFINITY },
        ]
    }

    fn digest(events: &[(Instant, Event)]) -> u64 {
        let mut d = Digest::default();
        events.iter().for_each(|(t, e)| d.record(*t, e));
        d.digest().expect("a digest")
    }

    #[test]
    fn a_digest_depends_on_kind_time_order_and_fields() {
        let t = Instant::from_nanos;
        let singles: Vec<u64> = all().iter().map(|e| digest(&[(t(5), *e)])).collect();
        for (i, a) in singles.iter().enumerate() {
            assert!(singles[i + 1..].iter().all(|b| a != b), "event {i}");
        }
        let (a, b) = (Event::FlowStarted { flow: 1 }, Event::FlowStarted { flow: 2 });
        assert_ne!(digest(&[(t(1), a), (t(1), b)]), digest(&[(t(1), b), (t(1), a)]));
        assert_ne!(digest(&[(t(1), a)]), digest(&[(t(2), a)]));
        let packet = Packet { class: Class::Data, seq: 1, ack: 2, size: 1000, low_priority: false };
        let of = |packet| digest(&[(t(1), Event::Sent { flow: 0, packet })]);
        for other in [
            Packet { class: Class::Probe, ..packet },
            Packet { seq: 3, ..packet },
            Packet { ack: 3, ..packet },
            Packet { size: 1001, ..packet },
            Packet { low_priority: true, ..packet },
        ] {
            assert_ne!(of(packet), of(other));
        }
    }

    #[test]
    fn pairs_and_references_forward() {
        let mut both = (Memory::default(), Digest::default());
        let mut alone = Digest::default();
        for (i, e) in all().iter().enumerate() {
            let by_reference = &mut both;
            by_reference.record(Instant::from_nanos(i as u64), e);
            alone.record(Instant::from_nanos(i as u64), e);
        }
        assert_eq!((both.0.events.len(), both.digest()), (all().len(), alone.digest()));
        const {
            assert!(
                <(Null, Memory)>::ENABLED && !<(Null, Null)>::ENABLED && !<&mut Null as Recorder>::ENABLED
            )
        };
    }
}

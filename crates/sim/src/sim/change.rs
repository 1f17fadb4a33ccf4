//! Changes of links during a run.

use crate::observe::tap::Tap;
use crate::packet::network::Network;
use skyhaul_base::{Instant, Rate};
use skyhaul_path::{Agenda, Change, DropReason, Handover, Limit};
use skyhaul_scenario::resolved::Resolved;
use skyhaul_trace::{Event, LinkChange};

/// Packet size, bytes, for which events of changed error models record the mean loss rate.
const NOTED_SIZE: u32 = 1000;

/// Makes the changes that are due; returns the time of the next. Directed links that go down are added to `down`.
#[cold]
pub(crate) fn make<R: Tap>(
    now: Instant,
    agenda: &mut Agenda,
    net: &mut Network<R>,
    down: &mut Vec<u32>,
) -> Instant {
    while let Some((hop, change)) = agenda.take(now) {
        if matches!(change, Change::Up(false) | Change::Visible(false)) {
            down.push(hop);
        }
        if R::ENABLED {
            net.note(now, hop, &change);
        }
        net.change(now, hop, &change);
    }
    agenda.next()
}

/// Sets the initial state of directed links: down, or as given by their time-varying models.
pub(crate) fn begin<R: Tap>(scenario: &Resolved, seed: u64, net: &mut Network<R>) -> Agenda {
    let (agenda, first) = scenario.agenda(seed, |_, _| true);
    for (hop, change) in first {
        net.change(Instant::ZERO, hop, &change);
    }
    agenda
}

impl<R: Tap> Network<R> {
    /// Changes a directed link, and updates its events.
    fn change(&mut self, now: Instant, index: u32, change: &Change) {
        self.with_link(now, index, |link, lost| {
            change.apply(now, link, &mut |p, why: DropReason| lost(p, why));
        });
    }

    /// Records a change.
    fn note(&mut self, now: Instant, link: u32, change: &Change) {
        let (what, value) = match change {
            Change::Handover(Handover { from, to, before, after }) => {
                let (from, to, before, after) = (*from, *to, *before, *after);
                self.witness.recorder.record(now, &Event::Handover { link, from, to, before, after });
                return;
            }
            // A change of the delay of the link, which is that of the shorter path, has its own event.
            Change::Path(..) => return,
            Change::Fade(loss) => (LinkChange::Fade, loss.to_bits()),
            Change::Visible(visible) => (LinkChange::Visible, (*visible).into()),
            Change::Rate(rate) => (LinkChange::Rate, rate.mean().map_or(u64::MAX, Rate::bits_per_sec)),
            Change::Delay(delay) => (LinkChange::Delay, delay.base_at(now).as_nanos()),
            Change::Error(error) => (LinkChange::Error, error.mean_loss(NOTED_SIZE).to_bits()),
            Change::Limit(Limit::Bytes(n)) => (LinkChange::LimitBytes, *n),
            Change::Limit(Limit::Packets(n)) => (LinkChange::LimitPackets, (*n).into()),
            Change::Limit(Limit::Unlimited) => (LinkChange::LimitPackets, u64::MAX),
            Change::Up(up) => (LinkChange::Up, (*up).into()),
        };
        self.witness.recorder.record(now, &Event::LinkChanged { link, what, value });
    }
}

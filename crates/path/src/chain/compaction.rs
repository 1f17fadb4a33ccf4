//! The information that a compacted acknowledgement carries over a link (RFC 3449 §5.3.2): how many
//! acknowledgements before it were removed, and their spacing.
//!
//! Both ends of the link are in one place here, so nothing is written into packets. The near end notes offered and
//! removed acknowledgements, and the far end looks up what the arriving packet would carry.

use crate::packet::{DropReason, PacketView};
use alloc::collections::{BTreeMap, VecDeque};
use skyhaul_base::{Duration, Instant};

/// Maximum flows remembered. One more, and all are forgotten: acknowledgements removed before are not restored.
const MOST_FLOWS: usize = 65_536;

/// What an acknowledgement carries about those removed before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Carried {
    /// Their number; at least 1.
    pub(super) removed: u32,
    /// Their mean spacing, including the interval to the acknowledgement that carries this.
    pub(super) spacing: Duration,
}

/// An acknowledgement that was offered to the link and has not arrived.
#[derive(Clone, Copy, Debug)]
struct Offered {
    connection: u16,
    number: u32,
    at: Instant,
    removed: bool,
}

/// The acknowledgements of each flow on the link, in the order in which they were offered.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes(BTreeMap<u32, VecDeque<Offered>>);

impl Notes {
    /// A packet is offered to the link.
    pub(super) fn offered(&mut self, now: Instant, p: &impl PacketView) {
        let Some(ack) = p.ack() else { return };
        if self.0.len() == MOST_FLOWS && !self.0.contains_key(&p.flow()) {
            self.0.clear();
        }
        let new = Offered { connection: ack.connection, number: ack.number, at: now, removed: false };
        self.0.entry(p.flow()).or_default().push_back(new);
    }

    /// The link has lost a packet, and with it what it would carry, unless it was removed in favour of another that
    /// carries this on.
    pub(super) fn lost(&mut self, p: &impl PacketView, why: DropReason) {
        let Some(ack) = p.ack() else { return };
        let Some(line) = self.0.get_mut(&p.flow()) else { return };
        // Duplicates have the same number: the last one was refused on arrival, or the first one was removed or lost.
        let this = |o: &Offered| !o.removed && o.connection == ack.connection && o.number == ack.number;
        let at =
            if why == DropReason::Full { line.iter().rposition(this) } else { line.iter().position(this) };
        let Some(at) = at else { return };
        match why {
            DropReason::Filtered => {
                if let Some(o) = line.get_mut(at) {
                    o.removed = true;
                }
            }
            DropReason::Full => {
                line.remove(at);
            }
            _ => {
                line.drain(..=at);
            }
        }
    }

    /// A packet has arrived: returns what it carries.
    pub(super) fn arrived(&mut self, p: &impl PacketView) -> Option<Carried> {
        let ack = p.ack()?;
        let line = self.0.get_mut(&p.flow())?;
        let this = |o: &Offered| !o.removed && o.connection == ack.connection && o.number == ack.number;
        let at = line.iter().position(this)?;
        let (mut removed, mut first, mut last) = (0u32, Instant::MAX, Instant::ZERO);
        for o in line.drain(..=at) {
            // Information about an earlier connection is dropped.
            if o.removed && o.connection == ack.connection {
                removed += 1;
                first = first.min(o.at);
            }
            last = o.at;
        }
        (removed > 0).then(|| Carried { removed, spacing: last.since(first) / u64::from(removed) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Acknowledgement;

    #[derive(Clone, Copy, Debug, Default)]
    struct Ack(u32);
    impl PacketView for Ack {
        fn size(&self) -> u32 {
            40
        }
        fn low_priority(&self) -> bool {
            false
        }
        fn flow(&self) -> u32 {
            7
        }
        fn ack(&self) -> Option<Acknowledgement> {
            Some(Acknowledgement { connection: 0, number: self.0, ecn: 0, stamp: None, tells_more: false })
        }
    }
    fn ms(t: u64) -> Instant {
        Instant::from_nanos(t * 1_000_000)
    }
    /// Acknowledgements 1, 2, ... offered 10 ms apart.
    fn offered(n: u32) -> Notes {
        let mut notes = Notes::default();
        (1..=n).for_each(|i| notes.offered(ms(10 * u64::from(i)), &Ack(i)));
        notes
    }

    #[test]
    fn what_was_removed_is_told_once_and_by_the_next_that_arrives() {
        let mut notes = offered(5);
        assert_eq!(notes.arrived(&Ack(1)), None);
        let _ = [2, 3, 4].map(|n| notes.lost(&Ack(n), DropReason::Filtered));
        // Three, the first of which came 30 ms before the one that carries this.
        let carried = Carried { removed: 3, spacing: Duration::from_millis(10) };
        assert_eq!(notes.arrived(&Ack(5)), Some(carried));
        assert_eq!(notes.arrived(&Ack(5)), None);
        assert!(notes.0.values().all(VecDeque::is_empty));
    }

    #[test]
    fn what_is_corrupted_takes_along_what_it_carries_and_what_is_refused_does_not() {
        let mut notes = offered(4);
        let _ = [1, 2].map(|n| notes.lost(&Ack(n), DropReason::Filtered));
        notes.lost(&Ack(3), DropReason::Error);
        assert_eq!(notes.arrived(&Ack(4)), None);
        let mut notes = offered(4);
        let _ = [1, 2].map(|n| notes.lost(&Ack(n), DropReason::Filtered));
        notes.lost(&Ack(4), DropReason::Full);
        assert_eq!(notes.arrived(&Ack(3)).map(|c| c.removed), Some(2));
    }
}

//! ACK reconstruction (RFC 3449 §5.3.1) at the far side of a link that thins or loses acknowledgements.
//!
//! If the acknowledgement number of a connection jumps by more than a threshold, intermediate acknowledgements are
//! created in steps of the threshold, evenly spread over the smoothed time between two arrivals. The sender then
//! sees neither a burst nor the slow window growth due to few acknowledgements. An arriving acknowledgement is held
//! back for that time at most: the next arrival of its flow releases everything held.
//!
//! A jump that ends a series of duplicates is not due to thinning: a retransmission has filled a hole. Intermediate
//! numbers would indicate holes that do not exist (RFC 6582 §3.2), so the acknowledgement passes unchanged. So does
//! one with SACK blocks or another option that the link does not read, and one whose ECE or CWR flag differs from
//! the previous one.
//!
//! If the near side reports how many acknowledgements it removed, and their spacing (RFC 3449 §5.3.2), as many are
//! created with that spacing; fewer if there are more than the jump has bytes, or more than [`MOST_STEPS`] allows.

use super::compaction::Carried;
use crate::packet::{Acknowledgement, PacketView};
use alloc::collections::{BTreeMap, VecDeque};
use skyhaul_base::{Duration, Instant};

/// Maximum flows remembered; one more, and all are forgotten.
const MOST_FLOWS: usize = 65_536;
/// Maximum steps of a jump, the last of which is the acknowledgement that arrived: a longer jump has larger steps.
const MOST_STEPS: u32 = 64;
/// A new interval has the weight 1 over this in the smoothed one, like a sample in SRTT (RFC 6298 §2; *our
/// choice*).
const SMOOTHING: u64 = 8;

/// The far side of a link.
#[derive(Clone, Debug)]
pub struct Reconstruction<P> {
    threshold: u32,
    flows: BTreeMap<u32, Flow>,
    /// Held packets, in the order of departure.
    held: VecDeque<(Instant, P)>,
    made: u64,
}

/// State of a flow.
#[derive(Clone, Copy, Debug)]
struct Flow {
    last: Acknowledgement,
    at: Instant,
    /// Smoothed time between two advancing acknowledgements; `None` before there were two.
    interval: Option<Duration>,
    /// The last one was a duplicate or had options: a hole is open.
    hole: bool,
    /// Number of its packets held.
    held: u32,
}

impl<P: PacketView> Reconstruction<P> {
    /// Acknowledgements for every `threshold` bytes, at least 1.
    #[must_use]
    pub fn new(threshold: u32) -> Self {
        Self { threshold: threshold.max(1), flows: BTreeMap::new(), held: VecDeque::new(), made: 0 }
    }

    /// Only the acknowledgements that the near side reports as removed.
    #[must_use]
    pub fn as_told() -> Self {
        // No jump exceeds this threshold.
        Self::new(u32::MAX)
    }

    /// Number of acknowledgements created.
    #[must_use]
    pub fn made(&self) -> u64 {
        self.made
    }

    /// When the next held packet leaves; [`Instant::MAX`] if there is none.
    #[must_use]
    pub fn next(&self) -> Instant {
        self.held.front().map_or(Instant::MAX, |h| h.0)
    }

    /// The next packet that leaves by `now`.
    pub fn release(&mut self, now: Instant) -> Option<P> {
        if self.next() > now {
            return None;
        }
        let (_, p) = self.held.pop_front()?;
        if let Some(flow) = self.flows.get_mut(&p.flow()) {
            flow.held = flow.held.saturating_sub(1);
        }
        Some(p)
    }

    /// A packet arrives from the link, with what it carries about others. It leaves through [`Self::release`], now
    /// or later; `copy` creates a copy with another number, if possible.
    pub(super) fn arrive(
        &mut self,
        now: Instant,
        p: P,
        carried: Option<Carried>,
        mut copy: impl FnMut(&P, u32) -> Option<P>,
    ) {
        let id = p.flow();
        if self.flows.get(&id).is_some_and(|f| f.held > 0) {
            self.hurry(now, id);
        }
        let mut due = now;
        if let Some(ack) = p.ack() {
            let Some((from, interval)) = self.note(now, id, &ack) else { return self.hold(now, p) };
            let jump = ack.number.wrapping_sub(from);
            let (wanted, spacing) = match carried {
                Some(c) => (jump.div_ceil(c.removed.saturating_add(1)), Some(c.spacing)),
                None => (self.threshold, None),
            };
            let step = wanted.max(jump.div_ceil(MOST_STEPS)).max(1);
            let steps = jump.div_ceil(step);
            for i in 1..steps {
                if let Some(made) = copy(&p, from.wrapping_add(i * step)) {
                    self.made += 1;
                    self.hold(due, made);
                }
                let over = spacing.map_or(interval, |s| s * u64::from(steps));
                due = now + over * u64::from(i) / u64::from(steps);
            }
        }
        self.hold(due, p);
    }

    /// Processes an acknowledgement: returns the number from which to fill up, and the time over which to spread
    /// the created ones, if any are allowed.
    fn note(&mut self, now: Instant, id: u32, ack: &Acknowledgement) -> Option<(u32, Duration)> {
        let Some(flow) = self.flows.get_mut(&id).filter(|f| f.last.connection == ack.connection) else {
            if self.flows.len() == MOST_FLOWS {
                self.flows.clear();
            }
            let held = self.flows.get(&id).map_or(0, |f| f.held);
            let new = Flow { last: *ack, at: now, interval: None, hole: ack.tells_more, held };
            self.flows.insert(id, new);
            return None;
        };
        if !ack.is_beyond(&flow.last) {
            flow.hole = true;
            return None;
        }
        let sample = now.since(flow.at);
        let smoothed = flow.interval.map_or(sample, |old| (old * (SMOOTHING - 1) + sample) / SMOOTHING);
        let thinned = !flow.hole && !ack.tells_more && flow.last.ecn == ack.ecn;
        let from = flow.last.number;
        (flow.last, flow.at, flow.interval, flow.hole) = (*ack, now, Some(smoothed), ack.tells_more);
        thinned.then_some((from, smoothed))
    }

    /// Inserts a packet after all that leave no later.
    fn hold(&mut self, due: Instant, p: P) {
        if let Some(flow) = self.flows.get_mut(&p.flow()) {
            flow.held += 1;
        }
        let at = self.held.partition_point(|h| h.0 <= due);
        self.held.insert(at, (due, p));
    }

    /// Releases all held packets of a flow now, in order.
    fn hurry(&mut self, now: Instant, id: u32) {
        let mut front = self.held.partition_point(|h| h.0 <= now);
        let mut at = front;
        while let Some((_, p)) = self.held.get(at) {
            if p.flow() == id {
                if let Some((_, p)) = self.held.remove(at) {
                    self.held.insert(front, (now, p));
                    front += 1;
                }
            }
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    struct Pkt {
        flow: u32,
        ack: Option<(u32, bool)>,
    }
    impl PacketView for Pkt {
        fn size(&self) -> u32 {
            40
        }
        fn low_priority(&self) -> bool {
            false
        }
        fn flow(&self) -> u32 {
            self.flow
        }
        fn ack(&self) -> Option<Acknowledgement> {
            let (number, tells_more) = self.ack?;
            Some(Acknowledgement { connection: 0, number, ecn: 0, stamp: None, tells_more })
        }
    }

    fn ms(t: u64) -> Instant {
        Instant::from_nanos(t * 1_000_000)
    }

    /// Arrivals (ms, flow, number; 0 for data) in, departures (ms, flow, number) out.
    fn run(threshold: u32, arrivals: &[(u64, u32, u32)]) -> Vec<(u64, u32, u32)> {
        let mut r = Reconstruction::new(threshold);
        let mut out = Vec::new();
        let drain = |r: &mut Reconstruction<Pkt>, until: Instant, out: &mut Vec<_>| {
            while r.next() <= until && r.next() < Instant::MAX {
                let at = r.next();
                let p = r.release(at).expect("due");
                out.push((at.as_nanos() / 1_000_000, p.flow, p.ack.map_or(0, |a| a.0)));
            }
        };
        for &(t, flow, number) in arrivals {
            drain(&mut r, ms(t), &mut out);
            let p = Pkt { flow, ack: (number > 0).then_some((number, false)) };
            r.arrive(ms(t), p, None, |p, number| Some(Pkt { ack: Some((number, false)), ..*p }));
        }
        drain(&mut r, Instant::MAX, &mut out);
        assert_eq!(out.len() as u64, arrivals.len() as u64 + r.made());
        assert!(r.flows.values().all(|f| f.held == 0));
        out
    }

    #[test]
    fn a_jump_is_climbed_in_steps_over_the_time_between_two() {
        // Every 8 ms one for 8000 bytes: 4 steps of 2000, 2 ms apart.
        let out = run(2000, &[(0, 1, 1000), (8, 1, 9000), (16, 1, 17_000)]);
        let expected = [1000, 3000, 5000, 7000, 9000, 11_000, 13_000, 15_000, 17_000];
        let times = [0, 8, 10, 12, 14, 16, 18, 20, 22];
        let expected: Vec<_> = times.iter().zip(expected).map(|(t, n)| (*t, 1, n)).collect();
        assert_eq!(out, expected);
        // The last step is what is left; a jump of the threshold is none.
        assert_eq!(
            run(2000, &[(0, 1, 1), (9, 1, 5002)]),
            [(0, 1, 1), (9, 1, 2001), (12, 1, 4001), (15, 1, 5002)]
        );
        assert_eq!(run(2000, &[(0, 1, 1), (9, 1, 2001)]), [(0, 1, 1), (9, 1, 2001)]);
    }

    #[test]
    fn what_comes_next_of_a_flow_releases_what_is_held() {
        let out = run(2000, &[(0, 1, 1), (8, 1, 8001), (10, 2, 7), (11, 1, 0), (11, 1, 8001)]);
        let expected = [
            (0, 1, 1),
            (8, 1, 2001),
            (10, 1, 4001),
            (10, 2, 7),
            (11, 1, 6001),
            (11, 1, 8001),
            (11, 1, 0),
            (11, 1, 8001),
        ];
        assert_eq!(out, expected);
    }

    #[test]
    fn the_end_of_a_recovery_is_no_jump() {
        let out = run(2000, &[(0, 1, 1), (8, 1, 1), (9, 1, 1), (20, 1, 50_001), (21, 1, 54_001)]);
        // The next one climbs again: samples of 20 and 1 ms.
        let after: Vec<_> = out.iter().map(|o| o.2).collect();
        assert_eq!(after, [1, 1, 1, 50_001, 52_001, 54_001]);
        let mut r = Reconstruction::new(2000);
        let mut arrive = |t, number, more| {
            let p = Pkt { flow: 1, ack: Some((number, more)) };
            r.arrive(ms(t), p, None, |p, number| Some(Pkt { ack: Some((number, false)), ..*p }));
        };
        arrive(0, 1, false);
        arrive(5, 9001, true);
        arrive(6, 18_001, false);
        assert_eq!(r.made(), 0);
    }

    #[test]
    fn what_the_near_side_tells_of_is_made_as_it_was() {
        let mut r: Reconstruction<Pkt> = Reconstruction::as_told();
        let carried = Carried { removed: 3, spacing: Duration::from_millis(5) };
        let mut out = Vec::new();
        for (t, number, carried) in [(0, 1000, None), (40, 9000, Some(carried)), (80, 19_000, None)] {
            let p = Pkt { flow: 1, ack: Some((number, false)) };
            while r.next() <= ms(t) && r.next() < Instant::MAX {
                let at = r.next();
                out.push((at.as_nanos() / 1_000_000, r.release(at).and_then(|p| p.ack).map(|a| a.0)));
            }
            r.arrive(ms(t), p, carried, |p, number| Some(Pkt { ack: Some((number, false)), ..*p }));
        }
        // Three between 1000 and 9000, each 5 ms after the one before; a jump of which nothing is told is none.
        let expected = [(0, 1000), (40, 3000), (45, 5000), (50, 7000), (55, 9000)];
        assert_eq!(out, expected.map(|(t, n)| (t, Some(n))));
        assert_eq!((r.made(), r.held.len()), (3, 1));
    }

    #[test]
    fn numbers_wrap_and_long_jumps_take_longer_steps() {
        let out = run(2000, &[(0, 1, u32::MAX - 999), (8, 1, 5000)]);
        let numbers: Vec<_> = out.iter().map(|o| o.2).collect();
        assert_eq!(numbers, [u32::MAX - 999, 1000, 3000, 5000]);
        assert_eq!(run(1, &[(0, 1, 1), (8, 1, 1_000_001)]).len(), 65);
    }
}

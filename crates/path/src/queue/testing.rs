//! A queue that tests drive by the clock.

use super::*;
use alloc::vec::Vec;
use skyhaul_base::{Instant, Rng};

/// A packet that can be marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pkt {
    pub(super) id: u32,
    pub(super) size: u32,
    pub(super) flow: u32,
    pub(super) low: bool,
    pub(super) ect: bool,
    pub(super) ce: bool,
}

impl PacketView for Pkt {
    fn size(&self) -> u32 {
        self.size
    }
    fn low_priority(&self) -> bool {
        self.low
    }
    fn flow(&self) -> u32 {
        self.flow
    }
    fn is_ect(&self) -> bool {
        self.ect
    }
    fn mark_ce(&mut self) {
        assert!(self.ect, "only what allows it is marked");
        self.ce = true;
    }
}

/// 1000 bytes of high priority that cannot be marked.
pub(super) fn data(id: u32) -> Pkt {
    Pkt { id, size: 1000, ..Pkt::default() }
}

/// The same of low priority.
pub(super) fn probe(id: u32) -> Pkt {
    Pkt { low: true, ..data(id) }
}

/// The time in milliseconds.
pub(super) fn ms(t: u64) -> Instant {
    Instant::from_nanos(t * 1_000_000)
}

/// A queue with its random stream, and what it lost and marked.
pub(super) struct Bench {
    queue: Queue<Pkt>,
    rng: Rng,
    pub(super) lost: Vec<(u32, DropReason)>,
    pub(super) marks: u32,
}

impl Bench {
    pub(super) fn new(config: QueueConfig) -> Self {
        config.validate(1000).expect("a configuration that makes sense");
        let mut queue = Queue::new(&config);
        // 1000 bytes per millisecond.
        queue.set_rate(Some(Rate::from_bits_per_sec(8_000_000)));
        Self { queue, rng: Rng::stream(7, "queue"), lost: Vec::new(), marks: 0 }
    }
    /// An unlimited queue.
    pub(super) fn of(discipline: impl Into<Discipline>) -> Self {
        Self::new(QueueConfig::default().with(discipline))
    }
    pub(super) fn arrive(&mut self, now: Instant, p: Pkt) -> bool {
        let mut at = Moment::new(now, &mut self.rng);
        let lost = &mut self.lost;
        let admitted = self.queue.enqueue(&mut at, p, Some(1000), &mut |p: Pkt, why| lost.push((p.id, why)));
        self.marks += u32::from(at.marked.is_some());
        admitted
    }
    pub(super) fn leave(&mut self, now: Instant) -> Option<Pkt> {
        let mut at = Moment::new(now, &mut self.rng);
        let lost = &mut self.lost;
        let p = self.queue.dequeue(&mut at, &mut |p: Pkt, why| lost.push((p.id, why)));
        self.marks += u32::from(at.marked.is_some());
        p
    }
    /// A packet that finds the transmitter idle.
    pub(super) fn pass(&mut self, now: Instant, p: Pkt) -> Option<Pkt> {
        let mut at = Moment::new(now, &mut self.rng);
        let lost = &mut self.lost;
        let p = self.queue.pass(&mut at, p, &mut |p: Pkt, why| lost.push((p.id, why)));
        self.marks += u32::from(at.marked.is_some());
        p
    }
    pub(super) fn len(&self) -> u32 {
        self.queue.len()
    }
}

//! A queue that tests drive by the clock.

use super::*;
pub(super) use crate::testing::Pkt;
use alloc::vec::Vec;
use skyhaul_base::{Instant, Rng};

/// 1000 bytes of high priority that cannot be marked.
pub(super) fn data(id: u32) -> Pkt {
    Pkt { id, size: 1000, ..Pkt::default() }
}

/// 1000 bytes of low priority that cannot be marked.
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

//! FQ-CoDel: each flow has its own queue with CoDel, and queues take turns [RFC 8290].
//!
//! The scheduler is deficit round robin with two lists: a new flow goes before those that have been sending, once.
//! Flows are mapped by a hash of their number; flows with the same hash share a queue. Up to 610 consecutive numbers
//! have queues of their own among the usual 1024.

use super::codel::{Control, Law};
use super::limit::{Limit, Load};
use super::model::{Key, Model, Order};
use super::moment::Moment;
use super::options::{self, Invalid};
use super::waiting::Waiting;
use crate::packet::{DropReason, PacketView};
use crate::param::within;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use skyhaul_base::Duration;

skyhaul_base::options! {
    /// Each flow has its own queue, which marks or drops packets while its queueing delay stays too long.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Config {
        /// Target queueing delay; by default 5 % of `interval`, with the kinds "pie" and "dual-pi2" 15 ms for each 100 ms of the
        /// longest base RTT of the flows on the link, at least 15 ms.
        target: Duration as Time = Law::RFC.target,
        /// Interval for which the delay must exceed the target; the longest base RTT of the flows on the link by default,
        /// rounded up to 10 ms, at least 100 ms.
        interval: Duration as Time = Law::RFC.interval,
        /// Quantum: bytes that a flow may send per turn; 1514 B by default.
        quantum: u64 as Size = 1514,
        /// Number of queues that the flows share; 1024 by default.
        flows: u64 as Count = 1024,
        /// Mark ECN-capable packets instead of dropping them; true by default.
        ecn: bool = Law::RFC.ecn,
        /// Mark or drop low priority instead of high priority; false by default.
        class_aware: bool = false,
    }
}

impl Model for Config {
    const KEYS: &'static [Key] = &[
        options::TARGET,
        options::INTERVAL,
        options::QUANTUM,
        options::FLOW_QUEUES,
        options::ECN,
        options::CLASS_AWARE,
    ];
    const SEES_ALL: bool = true;
    type Order<P> = Box<FqCodel<P>>;
    type Invalid = Invalid;

    fn validate(&self, _: Limit) -> Result<(), Invalid> {
        self.law().validate()?;
        options::some_bytes(options::QUANTUM.name, self.quantum, "a size such as \"1514 B\"")?;
        within(options::FLOW_QUEUES.name, self.flows as f64, 1.0, 65_536.0)?;
        Ok(())
    }
    fn build<P>(&self) -> Box<FqCodel<P>> {
        let flow = |_| Flow {
            waiting: Waiting::new(self.class_aware),
            control: Control::default(),
            credits: 0,
            active: false,
        };
        Box::new(FqCodel {
            flows: (0..self.flows.clamp(1, 65_536)).map(flow).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            quantum: i64::try_from(self.quantum).unwrap_or(i64::MAX).max(1),
            law: self.law(),
            largest: 0,
        })
    }
    fn marks(&self) -> bool {
        self.ecn
    }
    fn words(&self) -> &'static str {
        "a queue per flow, with controlled delay (FQ-CoDel)"
    }
    fn ignores_priority(&self) -> bool {
        !self.class_aware
    }
    fn round_trip(&self) -> Option<(&'static str, Duration)> {
        Some((options::INTERVAL.name, self.interval))
    }
    fn for_path(self, rtt: Duration, written: &dyn Fn(&str) -> bool) -> Self {
        let Law { target, interval, .. } = self.law().for_path(rtt, written);
        Self { target, interval, ..self }
    }
}

impl Config {
    fn law(&self) -> Law {
        Law { target: self.target, interval: self.interval, ecn: self.ecn }
    }
}

/// Maximum packets dropped at once when the queue overflows [RFC 8290 §4.1].
const BATCH: usize = 64;

/// The queue of a flow among so many: a multiplicative hash (Knuth) spreads consecutive numbers evenly.
pub(super) fn queue_of(flow: u32, queues: usize) -> usize {
    let hash = flow.wrapping_mul(0x9e37_79b1);
    ((u64::from(hash) * queues as u64) >> 32) as usize
}

/// The queue of a flow, or of several with the same hash.
#[derive(Clone, Debug)]
struct Flow<P> {
    waiting: Waiting<P>,
    control: Control,
    /// Bytes that the flow may still send in this turn.
    credits: i64,
    /// The flow is in one of the lists.
    active: bool,
}

/// The queues of the flows, and their order.
#[derive(Clone, Debug)]
pub struct FqCodel<P> {
    flows: Vec<Flow<P>>,
    /// New flows, in the order of their turns.
    new: VecDeque<usize>,
    /// Flows that have been sending, in the order of their turns.
    old: VecDeque<usize>,
    quantum: i64,
    law: Law,
    /// Size of the largest packet so far.
    largest: u32,
}

impl<P: PacketView> FqCodel<P> {
    fn push(&mut self, at: &Moment<'_>, p: P) -> usize {
        let index = queue_of(p.flow(), self.flows.len());
        self.largest = self.largest.max(p.size());
        let flow = &mut self.flows[index];
        flow.waiting.push(at.now, p);
        if !flow.active {
            flow.active = true;
            flow.credits = self.quantum;
            self.new.push_back(index);
        }
        index
    }

    /// Drops half the packets of the flow with the most bytes, from the head, [`BATCH`] at most. If classes are
    /// distinguished and low-priority packets wait, half the low-priority packets of the flow with the most of
    /// these.
    fn overflow(&mut self, held: &mut Load, lost: &mut impl FnMut(P, DropReason)) {
        let active = || self.new.iter().chain(&self.old).copied();
        let low = active().map(|i| self.flows[i].waiting.low_bytes()).max().unwrap_or(0) > 0;
        let load = |waiting: &Waiting<P>| {
            if low { (waiting.low_bytes(), waiting.low_len()) } else { (waiting.bytes(), waiting.len()) }
        };
        // The first of several: `max_by_key` would take the last. Where no packet has a size, one that waits is still found.
        let fattest = active().rev().max_by_key(|i| load(&self.flows[*i].waiting));
        let Some(fattest) = fattest else { return };
        let waiting = &mut self.flows[fattest].waiting;
        let (_, count) = load(waiting);
        for _ in 0..count.div_ceil(2).min(BATCH) {
            let Some(victim) = (if low { waiting.pop_low() } else { waiting.pop() }) else { return };
            held.remove(victim.packet.size());
            lost(victim.packet, DropReason::Full);
        }
    }

    fn pop(
        &mut self,
        at: &mut Moment<'_>,
        held: &mut Load,
        lost: &mut impl FnMut(P, DropReason),
    ) -> Option<P> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let flow = &mut self.flows[index];
            if flow.credits <= 0 {
                flow.credits += self.quantum;
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let next = flow.control.dequeue(
                &self.law,
                &mut flow.waiting,
                self.largest,
                (&mut *at, &mut *held),
                lost,
            );
            if let Some(p) = next {
                flow.credits -= i64::from(p.size());
                return Some(p);
            }
            // A new flow goes round once more, so that it is not new again with each packet [RFC 8290 §4.2].
            list.pop_front();
            if is_new {
                self.old.push_back(index);
            } else {
                flow.active = false;
            }
        }
    }
}

impl<P: PacketView> Order<P> for FqCodel<P> {
    fn enqueue(
        &mut self,
        at: &mut Moment<'_>,
        p: P,
        held: &mut Load,
        limit: Load,
        _: u32,
        lost: &mut impl FnMut(P, DropReason),
    ) -> bool {
        // Packets beyond a reduced limit stay, but no more are added.
        let most = Load { packets: limit.packets.max(held.packets), bytes: limit.bytes.max(held.bytes) };
        held.add(p.size());
        let index = self.push(at, p);
        let youngest = self.flows[index].waiting.youngest();
        while held.packets > most.packets || held.bytes > most.bytes {
            self.overflow(held, lost);
        }
        self.flows[index].waiting.youngest() == youngest
    }
    fn dequeue(
        &mut self,
        at: &mut Moment<'_>,
        held: &mut Load,
        lost: &mut impl FnMut(P, DropReason),
    ) -> Option<P> {
        self.pop(at, held, lost)
    }
    fn pass(
        &mut self,
        at: &mut Moment<'_>,
        p: P,
        _: Load,
        lost: &mut impl FnMut(P, DropReason),
    ) -> Option<P> {
        // It takes its turn nevertheless: a flow is new only once.
        let mut held = Load::EMPTY;
        self.push(at, p);
        self.pop(at, &mut held, lost)
    }
}

#[cfg(test)]
mod tests {
    use super::super::QueueConfig;
    use super::super::testing::{Bench, Pkt, data, ms, probe};
    use super::*;

    /// A packet of 1000 bytes.
    fn of(flow: u32, id: u32) -> Pkt {
        Pkt { flow, ..data(id) }
    }
    fn served(q: &mut Bench, n: usize) -> Vec<(u32, u32)> {
        (0..n).map_while(|_| q.leave(ms(1))).map(|p| (p.flow, p.id)).collect()
    }
    fn quantum(quantum: u64) -> Config {
        Config { quantum, ..Config::default() }
    }

    #[test]
    fn flows_take_turns_and_new_ones_go_first() {
        // RFC 8290 §4.2 by hand, with a quantum of one packet: flow 1 is new and sends 0; without credits it becomes old.
        let mut q = Bench::of(quantum(1000));
        (0..4).for_each(|id| assert!(q.arrive(ms(0), of(1, id))));
        assert_eq!(served(&mut q, 2), [(1, 0), (1, 1)]);
        // Flow 2 is new: it goes first. Then it has no credits left and goes behind flow 1, but that has none either and
        // goes behind flow 2; from then on they take turns.
        (10..13).for_each(|id| assert!(q.arrive(ms(0), of(2, id))));
        assert_eq!(served(&mut q, 9), [(2, 10), (2, 11), (1, 2), (2, 12), (1, 3)]);
        assert_eq!(q.len(), 0);
    }

    #[test]
    fn a_flow_that_has_just_been_new_is_not_new_again() {
        let mut q = Bench::of(quantum(1514));
        (0..10).for_each(|id| assert!(q.arrive(ms(0), of(1, id))));
        assert_eq!(served(&mut q, 2), [(1, 0), (1, 1)]);
        assert!(q.arrive(ms(0), of(2, 20)));
        assert_eq!(served(&mut q, 1), [(2, 20)]);
        // Flow 2 is empty and has credits left. The next departure finds it empty and moves it to the old flows, so that
        // its next packet has to wait for its turn.
        assert_eq!(served(&mut q, 1), [(1, 2)]);
        assert!(q.arrive(ms(0), of(2, 21)));
        assert_eq!(served(&mut q, 3)[0].0, 1);
    }

    #[test]
    fn a_thin_flow_does_not_wait_for_a_fat_one() {
        // The link sends a packet per millisecond; the fat flow offers two, the thin one a packet in 10 ms.
        let mut q = Bench::new(QueueConfig::packets(1000).with(Config::default()));
        let (mut thin_waits, mut thin, mut fat) = (0, 0, 0);
        let mut since = alloc::collections::BTreeMap::new();
        for t in 0..10_000u32 {
            q.arrive(ms(t.into()), of(1, 2 * t));
            q.arrive(ms(t.into()), of(1, 2 * t + 1));
            if t % 10 == 0 {
                assert!(q.arrive(ms(t.into()), of(2, t)));
                since.insert(t, t);
            }
            match q.leave(ms(t.into())) {
                Some(p) if p.flow == 2 => {
                    thin += 1;
                    thin_waits = thin_waits.max(t - since[&p.id]);
                }
                Some(_) => fat += 1,
                None => {}
            }
        }
        assert_eq!((thin, thin + fat), (1000, 10_000));
        assert!(thin_waits <= 2, "{thin_waits}");
        assert!(!q.lost.is_empty() && q.lost.iter().all(|(id, _)| *id < 20_000));
    }

    #[test]
    fn bytes_are_shared_evenly_whatever_the_sizes() {
        let mut q = Bench::of(Config::default());
        for id in 0..3000 {
            assert!(q.arrive(ms(0), Pkt { size: 1500, ..of(1, id) }));
            assert!(q.arrive(ms(0), Pkt { size: 100, ..of(2, id) }));
        }
        let (mut bytes, mut sent) = ([0u32; 2], 0);
        while sent < 400_000 {
            let p = q.leave(ms(1)).unwrap();
            bytes[p.flow as usize - 1] += p.size;
            sent += p.size;
        }
        assert!(bytes[0].abs_diff(bytes[1]) <= 2 * (1514 + 1500), "{bytes:?}");
    }

    #[test]
    fn an_overflow_drops_half_the_fattest_flow_from_its_head() {
        let mut q = Bench::new(QueueConfig::packets(21).with(Config::default()));
        (0..15).for_each(|id| assert!(q.arrive(ms(0), of(1, id))));
        (20..26).for_each(|id| assert!(q.arrive(ms(0), of(2, id))));
        assert!(q.arrive(ms(0), of(2, 26)));
        let lost: Vec<_> = q.lost.iter().map(|l| l.0).collect();
        assert_eq!(lost, (0..8).collect::<Vec<_>>());
        assert_eq!(q.len(), 14);
        // Never more than 64.
        let mut q = Bench::new(QueueConfig::packets(500).with(Config::default()));
        (0..=500).for_each(|id| assert!(q.arrive(ms(0), of(1, id))));
        assert_eq!((q.lost.len(), q.len()), (64, 437));
        // Who fills a queue without room loses what it sends.
        let mut q = Bench::new(QueueConfig::packets(0).with(Config::default()));
        assert!(!q.arrive(ms(0), of(1, 0)));
        assert_eq!((q.lost.len(), q.len()), (1, 0));
    }

    #[test]
    fn an_overflow_hits_low_priority_first_by_class() {
        let config = Config { class_aware: true, ..Config::default() };
        let mut q = Bench::new(QueueConfig::packets(20).with(config));
        (0..16).for_each(|id| assert!(q.arrive(ms(0), of(1, id))));
        (16..20).for_each(|id| assert!(q.arrive(ms(0), Pkt { flow: 2, ..probe(id) })));
        assert!(q.arrive(ms(0), of(1, 20)));
        let lost: Vec<_> = q.lost.iter().map(|l| l.0).collect();
        assert_eq!(lost, [16, 17]);
    }

    #[test]
    fn each_flow_has_its_own_control() {
        // Flow 1 builds a queue that CoDel cuts; the packets of flow 2 never wait for long.
        let config = Config {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            ..Config::default()
        };
        let mut q = Bench::of(config);
        let mut lost_of_two = 0;
        for t in 0..2000u32 {
            q.arrive(ms(t.into()), of(1, t));
            if t % 4 == 0 {
                q.arrive(ms(t.into()), of(2, 1_000_000 + t));
            }
            q.leave(ms(t.into()));
            lost_of_two += q.lost.drain(..).filter(|l| l.0 >= 1_000_000).count();
        }
        assert_eq!(lost_of_two, 0);
        assert!(q.len() < 500, "{}", q.len());
    }

    #[test]
    fn consecutive_flows_have_queues_of_their_own() {
        for first in [0, 1, 12_345, u32::MAX - 1000] {
            let mut all: Vec<_> = (first..first + 610).map(|flow| queue_of(flow, 1024)).collect();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), 610);
        }
    }

    #[test]
    fn a_packet_that_passes_takes_its_turn() {
        let mut q = Bench::of(quantum(1514));
        assert_eq!(q.pass(ms(0), of(1, 0)), Some(of(1, 0)));
        assert_eq!(q.pass(ms(5), of(2, 1)), Some(of(2, 1)));
        assert_eq!((q.len(), q.lost.len()), (0, 0));
    }
}

//! The disciplines that look at acknowledgements against their definition, written down naively, under random operations;
//! invariants of all of them; and the example of RFC 3449 on a link.

use proptest::prelude::*;
use skyhaul_base::{Duration, Instant, Rate, Rng};
use skyhaul_path::queue::ack_filter::{self, Filter, Place};
use skyhaul_path::queue::{Moment, ack_decimation, acks_first};
use skyhaul_path::testing::Pkt;
use skyhaul_path::{
    Acknowledgement, Discipline, DropReason, Limit, Link, LinkConfig, Queue, QueueConfig, Streams,
};
use std::collections::BTreeMap;

/// The connection that a packet acknowledges.
fn connection(p: &Pkt) -> Option<(u32, u16)> {
    p.ack.map(|a| (p.flow, a.connection))
}

/// A queue whose disciplines use neither time nor random numbers.
struct Real {
    queue: Queue<Pkt>,
    rng: Rng,
}

impl Real {
    fn new(config: &QueueConfig) -> Self {
        Self { queue: Queue::new(config), rng: Rng::stream(1, "queue") }
    }
    fn enqueue(&mut self, p: Pkt, lost: &mut impl FnMut(Pkt, DropReason)) -> bool {
        self.queue.enqueue(&mut Moment::new(Instant::ZERO, &mut self.rng), p, None, lost)
    }
    fn dequeue(&mut self) -> Option<Pkt> {
        let none = &mut |_, _| unreachable!("these disciplines lose nothing when they serve");
        self.queue.dequeue(&mut Moment::new(Instant::ZERO, &mut self.rng), none)
    }
}

fn ack(number: u32) -> Acknowledgement {
    Acknowledgement { connection: 0, number, ecn: 0, stamp: None, tells_more: false }
}

/// One list in the order of arrival; every decision by a scan of all that ever came.
struct Naive {
    config: QueueConfig,
    list: Vec<Pkt>,
    /// All acknowledgements so far, admitted or not.
    history: Vec<Pkt>,
}

impl Naive {
    fn fits(&self, list: &[Pkt]) -> bool {
        match self.config.limit {
            Limit::Unlimited => true,
            Limit::Packets(n) => list.len() as u64 <= u64::from(n),
            Limit::Bytes(n) => list.iter().map(|p| u64::from(p.size)).sum::<u64>() <= n,
        }
    }

    /// The acknowledgements of the connection of `p`, in the order of arrival.
    fn connection(&self, p: &Pkt) -> Vec<Pkt> {
        // A flow has one connection after the other. If a packet of an earlier one arrives, that one begins anew.
        let of = |q: &&Pkt| q.flow == p.flow;
        let own: Vec<Pkt> = self.history.iter().filter(of).copied().collect();
        let from = own.iter().rposition(|q| connection(q) != connection(p)).map_or(0, |i| i + 1);
        match own.iter().position(|q| q.id == p.id) {
            Some(at) if at < from => {
                let last = own[..=at].iter().rposition(|q| connection(q) != connection(p));
                own[last.map_or(0, |i| i + 1)..]
                    .iter()
                    .take_while(|q| connection(q) == connection(p))
                    .copied()
                    .collect()
            }
            _ => own[from..].to_vec(),
        }
    }

    /// Whether a neighbour in the connection has the same number: `p` is a duplicate, or the first of several.
    fn is_duplicate_or_base(&self, p: &Pkt) -> bool {
        let own = self.connection(p);
        let at = own.iter().position(|q| q.id == p.id).unwrap();
        let same = |q: Option<&Pkt>| q.is_some_and(|q| q.ack.unwrap().number == p.ack.unwrap().number);
        same(own.get(at.wrapping_sub(1))) || same(own.get(at + 1))
    }

    /// Whether `new` makes `old` redundant.
    fn redundant(&self, old: &Pkt, new: &Pkt) -> bool {
        let (Some(a), Some(b)) = (old.ack, new.ack) else { return false };
        connection(old) == connection(new)
            && !a.tells_more
            && a.ecn == b.ecn
            && a.stamp.is_none_or(|a| b.stamp.is_some_and(|b| (b.wrapping_sub(a) as i32) >= 0))
            && (b.number.wrapping_sub(a.number) as i32) > 0
            && !self.is_duplicate_or_base(old)
    }

    /// The list if `p` is admitted.
    fn with(&self, p: Pkt) -> Vec<Pkt> {
        let mut list = self.list.clone();
        match self.config.discipline {
            Discipline::AckFilter(c) => {
                let mut leave: Vec<u32> =
                    list.iter().filter(|q| self.redundant(q, &p)).map(|q| q.id).collect();
                let all = leave.clone();
                if c.filter == Filter::Conservative {
                    leave.pop();
                }
                if c.place == Place::Head && !leave.is_empty() {
                    // Behind the last packet of the flow that is not redundant; data counts only if it shares the queue.
                    let other = |q: &Pkt| {
                        q.flow == p.flow && !all.contains(&q.id) && (q.ack.is_some() || !c.acks_first)
                    };
                    let from = list.iter().rposition(other).map_or(0, |i| i + 1);
                    let places: Vec<usize> =
                        (from..list.len()).filter(|&i| all.contains(&list[i].id)).collect();
                    let mut stay: Vec<Pkt> =
                        places.iter().map(|&i| list[i]).filter(|q| !leave.contains(&q.id)).collect();
                    stay.push(p);
                    if stay.len() <= places.len() {
                        let mut new = list.clone();
                        for (&at, q) in places.iter().zip(&stay) {
                            new[at] = *q;
                        }
                        let gone = &places[stay.len()..];
                        let mut i = 0;
                        new.retain(|q| {
                            i += 1;
                            !gone.contains(&(i - 1)) && !(leave.contains(&q.id))
                        });
                        return new;
                    }
                }
                list.retain(|q| !leave.contains(&q.id));
            }
            Discipline::AckDecimation(c) => {
                let last =
                    list.iter().rposition(|q| connection(q).is_some() && connection(q) == connection(&p));
                if let Some(at) = last {
                    let old = list[at];
                    let own = self.connection(&old);
                    let number = own.iter().position(|q| q.id == old.id).unwrap() as u64 + 1;
                    let kept = c.keep_duplicates && self.is_duplicate_or_base(&old);
                    if number % c.keep_every != 0 && !kept {
                        list.remove(at);
                    }
                }
            }
            _ => {}
        }
        list.push(p);
        list
    }

    fn enqueue(&mut self, p: Pkt, lost: &mut BTreeMap<u32, DropReason>) {
        if p.ack.is_some() {
            self.history.push(p);
        }
        let new = self.with(p);
        if self.fits(&new) {
            for q in self.list.iter().filter(|q| new.iter().all(|n| n.id != q.id)) {
                lost.insert(q.id, DropReason::Filtered);
            }
            self.list = new;
        } else {
            lost.insert(p.id, DropReason::Full);
        }
    }

    fn dequeue(&mut self) -> Option<Pkt> {
        let acks_first = match self.config.discipline {
            Discipline::AckFilter(c) => c.acks_first,
            Discipline::AckDecimation(c) => c.acks_first,
            _ => true,
        };
        let first = self.list.iter().position(|p| acks_first && p.ack.is_some()).unwrap_or(0);
        (!self.list.is_empty()).then(|| self.list.remove(first))
    }
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Enqueue { flow: u32, size: u32, ack: Option<Acknowledgement> },
    Dequeue,
}

/// Numbers around the wrap, mostly growing with the position in the list of operations.
fn acknowledgement() -> impl Strategy<Value = Acknowledgement> {
    let ecn = prop_oneof![5 => Just(0u8), 1 => Just(0x40u8)];
    let stamp = proptest::option::weighted(0.5, 0..4u32);
    let connection = prop_oneof![9 => Just(0u16), 1 => Just(1u16)];
    (0..6u32, ecn, stamp, proptest::bool::weighted(0.1), connection).prop_map(
        |(step, ecn, stamp, tells_more, connection)| Acknowledgement {
            connection,
            number: u32::MAX - 20 + step,
            ecn,
            stamp,
            tells_more,
        },
    )
}

fn op() -> impl Strategy<Value = Op> {
    let packet = prop_oneof![
        4 => acknowledgement().prop_map(|a| (40 + 12 * u32::from(a.stamp.is_some()), Some(a))),
        1 => (100..1500u32).prop_map(|size| (size, None)),
    ];
    prop_oneof![
        3 => (0..2u32, packet).prop_map(|(flow, (size, ack))| Op::Enqueue { flow, size, ack }),
        1 => Just(Op::Dequeue),
    ]
}

/// Later operations acknowledge more: the step of each, times two, on top of the place of the operation.
fn ops() -> impl Strategy<Value = Vec<Op>> {
    proptest::collection::vec(op(), 1..120).prop_map(|mut ops| {
        for (i, op) in (0..).zip(&mut ops) {
            if let Op::Enqueue { ack: Some(a), .. } = op {
                a.number = a.number.wrapping_add(i / 3 * 2);
                a.stamp = a.stamp.map(|s| s.wrapping_add(u32::MAX - 3).wrapping_add(i / 5));
            }
        }
        ops
    })
}

fn discipline() -> impl Strategy<Value = Discipline> {
    let filter = prop_oneof![Just(Filter::Conservative), Just(Filter::Aggressive)];
    let place = prop_oneof![Just(Place::Head), Just(Place::Tail)];
    prop_oneof![
        4 => (filter, place, any::<bool>())
            .prop_map(|(filter, place, acks_first)| ack_filter::Config { filter, place, acks_first }.into()),
        2 => (2..5u64, any::<bool>(), any::<bool>()).prop_map(|(keep_every, keep_duplicates, acks_first)| {
            ack_decimation::Config { keep_every, keep_duplicates, acks_first }.into()
        }),
        1 => Just(acks_first::Config {}.into()),
    ]
}

fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        (1..12u32).prop_map(Limit::Packets),
        (100..4000u64).prop_map(Limit::Bytes),
        Just(Limit::Unlimited)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn disciplines_equal_their_definition(discipline in discipline(), limit in limit(), ops in ops()) {
        let config = QueueConfig { discipline, limit, ..QueueConfig::default() };
        let mut real = Real::new(&config);
        let mut naive = Naive { config, list: Vec::new(), history: Vec::new() };
        let (mut offered, mut delivered, mut all_lost) = (0, 0, 0);
        for (id, op) in (0..).zip(ops) {
            match op {
                Op::Enqueue { flow, size, ack } => {
                    let p = Pkt { id, flow, size, ack, ..Pkt::default() };
                    let (mut lost, mut expected) = (BTreeMap::new(), BTreeMap::new());
                    let admitted = real.enqueue(p, &mut |p, why| {
                        assert!(lost.insert(p.id, why).is_none(), "lost twice");
                    });
                    naive.enqueue(p, &mut expected);
                    prop_assert_eq!(&lost, &expected);
                    prop_assert_eq!(admitted, lost.get(&id) != Some(&DropReason::Full));
                    // A refused packet removes no other.
                    prop_assert!(admitted || lost.len() == 1);
                    offered += 1;
                    all_lost += lost.len();
                }
                Op::Dequeue => {
                    let p = real.dequeue();
                    prop_assert_eq!(p, naive.dequeue());
                    delivered += usize::from(p.is_some());
                }
            }
            prop_assert_eq!(offered, delivered + all_lost + real.queue.len() as usize);
            prop_assert_eq!(real.queue.len() as usize, naive.list.len());
            prop_assert_eq!(real.queue.bytes(), naive.list.iter().map(|p| u64::from(p.size)).sum::<u64>());
        }
    }

    /// In a queue with room all data leaves, acknowledgements leave in the order of arrival, and the last one of each flow is among
    /// them. A filter also keeps all duplicates, and all acknowledgements with more information.
    #[test]
    fn a_thinned_flow_loses_only_redundant_acknowledgements(discipline in discipline(), ops in ops()) {
        let mut real = Real::new(&QueueConfig { discipline, ..QueueConfig::default() });
        let (mut offered, mut left) = (Vec::new(), Vec::new());
        for (id, op) in (0..).zip(ops) {
            match op {
                Op::Enqueue { flow, size, ack } => {
                    let p = Pkt { id, flow, size, ack, ..Pkt::default() };
                    offered.push(p);
                    real.enqueue(p, &mut |p, why| {
                        assert!(why == DropReason::Filtered && p.ack.is_some(), "{p:?} {why:?}");
                    });
                }
                Op::Dequeue => left.extend(real.dequeue()),
            }
        }
        left.extend(core::iter::from_fn(|| real.dequeue()));
        for flow in 0..2 {
            let of = |list: &[Pkt], acks: bool| -> Vec<Pkt> {
                list.iter().filter(|p| p.flow == flow && p.ack.is_some() == acks).copied().collect()
            };
            prop_assert_eq!(of(&left, false), of(&offered, false));
            let (offered, left) = (of(&offered, true), of(&left, true));
            prop_assert!(left.is_sorted_by_key(|p| p.id), "{left:?}");
            prop_assert_eq!(left.last(), offered.last());
            if matches!(discipline, Discipline::AckFilter(_)) {
                for pair in offered.windows(2) {
                    let (a, b) = (pair[0].ack.unwrap(), pair[1].ack.unwrap());
                    let duplicate = (a.connection, a.number) == (b.connection, b.number);
                    // Of two, the first may have been replaced before its duplicate arrived.
                    prop_assert!(!duplicate || left.contains(&pair[1]), "{:?}", pair[1]);
                }
                prop_assert!(offered.iter().all(|p| !p.ack.unwrap().tells_more || left.contains(p)));
            }
        }
    }
}

/// Offers acknowledgements of one flow to a queue; the numbers that leave it.
fn through(discipline: impl Into<Discipline>, acks: &[Acknowledgement]) -> Vec<u32> {
    let mut q = Real::new(&QueueConfig { discipline: discipline.into(), ..QueueConfig::default() });
    for (id, a) in (0..).zip(acks) {
        q.enqueue(Pkt { id, flow: 1, size: 40, ack: Some(*a), ..Pkt::default() }, &mut |_, _| {});
    }
    core::iter::from_fn(|| q.dequeue().map(|p| p.ack.unwrap().number)).collect()
}

const AGGRESSIVE: ack_filter::Config =
    ack_filter::Config { filter: Filter::Aggressive, place: Place::Tail, acks_first: false };

#[test]
fn a_filter_leaves_one_or_two() {
    let five = [1, 2, 3, 4, 5].map(ack);
    assert_eq!(through(AGGRESSIVE, &five), [5]);
    assert_eq!(through(ack_filter::Config::default(), &five), [4, 5]);
    let second = ack_decimation::Config::default();
    assert_eq!(through(second, &five), [2, 4, 5]);
    assert_eq!(through(ack_decimation::Config { keep_every: 4, ..second }, &five), [4, 5]);
}

#[test]
fn duplicates_and_acknowledgements_with_more_information_stay() {
    // A hole at 3, three duplicates, and a jump when it is filled.
    let hole = [1, 2, 3, 3, 3, 3, 9].map(ack);
    assert_eq!(through(AGGRESSIVE, &hole), [3, 3, 3, 3, 9]);
    let second = ack_decimation::Config::default();
    assert_eq!(through(second, &hole), [2, 3, 3, 9]);
    assert_eq!(
        through(ack_decimation::Config { keep_duplicates: true, ..second }, &hole),
        [2, 3, 3, 3, 3, 9]
    );
    // Acknowledgements with SACK blocks stay, ECN marks stay, and an older timestamp is not newer.
    let more = Acknowledgement { tells_more: true, ..ack(2) };
    assert_eq!(through(AGGRESSIVE, &[ack(1), more, ack(3)]), [2, 3]);
    let marked = Acknowledgement { ecn: 0x40, ..ack(2) };
    assert_eq!(through(AGGRESSIVE, &[ack(1), marked, ack(3)]), [2, 3]);
    let stamped = |number, stamp| Acknowledgement { stamp: Some(stamp), ..ack(number) };
    assert_eq!(through(AGGRESSIVE, &[stamped(1, 7), stamped(2, 6), stamped(3, 6)]), [1, 3]);
    // Numbers wrap.
    assert_eq!(through(AGGRESSIVE, &[ack(u32::MAX), ack(5)]), [5]);
    assert_eq!(through(AGGRESSIVE, &[ack(5), ack(u32::MAX)]), [5, u32::MAX]);
}

#[test]
fn at_the_head_it_takes_the_place_of_the_first_that_it_replaces() {
    let head = ack_filter::Config { place: Place::Head, ..AGGRESSIVE };
    let order = |discipline: ack_filter::Config| -> Vec<u32> {
        let mut q = Real::new(&QueueConfig { discipline: discipline.into(), ..QueueConfig::default() });
        for (id, flow) in (0..).zip([1, 1, 2, 1]) {
            q.enqueue(Pkt { id, flow, size: 40, ack: Some(ack(id)), ..Pkt::default() }, &mut |_, _| {});
        }
        core::iter::from_fn(|| q.dequeue().map(|p| p.id)).collect()
    };
    assert_eq!(order(AGGRESSIVE), [2, 3]);
    assert_eq!(order(head), [3, 2]);
    assert_eq!(order(ack_filter::Config { filter: Filter::Conservative, ..head }), [1, 3, 2]);
}

/// RFC 3449 §2: data at 10 Mbit/s in packets of 1000 bytes, 40-byte acknowledgements at 50 kbit/s: k = 8, "there is one
/// ACK for every 8 data packets" that the return link can carry.
#[test]
fn the_return_link_of_the_rfc_carries_one_acknowledgement_of_eight() {
    let data = Duration::from_micros(800);
    let run = |discipline: Discipline| {
        let queue = QueueConfig::packets(50).with(discipline);
        let config =
            LinkConfig { rate: Rate::from_bits_per_sec(50_000).into(), queue, ..LinkConfig::default() };
        let mut link = Link::new(&config, Streams::named(1, "links.return"));
        let (mut now, mut numbers, mut longest) = (Instant::ZERO, Vec::new(), Duration::ZERO);
        for id in 0..8000 {
            link.serve(now, &mut |_: Pkt, _| {});
            while let Some(p) = link.deliver(now) {
                let number = p.ack.unwrap().number;
                longest = longest.max(now.since(Instant::ZERO + data * u64::from(number)));
                numbers.push(number);
            }
            link.offer(
                now,
                Pkt { id, flow: 1, size: 40, ack: Some(ack(id)), ..Pkt::default() },
                &mut |_, _| {},
            );
            now += data;
        }
        let total = link.counters().total();
        let waiting = u64::from(link.queue_len()) + link.in_flight() as u64;
        assert_eq!(total.offered, total.delivered + total.lost() + waiting);
        (numbers, longest, total.dropped(DropReason::Full), total.dropped(DropReason::Filtered))
    };
    let (numbers, longest, full, _) = run(Discipline::DROP_TAIL);
    // One acknowledgement takes 6.4 ms, 51 of them 326 ms.
    assert!(longest > Duration::from_millis(320) && full > 8000 * 7 / 8 - 60, "{longest:?} {full}");
    assert!((995..=1000).contains(&numbers.len()), "{}", numbers.len());
    let (numbers, longest, full, filtered) = run(AGGRESSIVE.into());
    assert_eq!(full, 0);
    assert!(filtered >= 8000 * 7 / 8 - 2, "{filtered}");
    assert!((995..=1000).contains(&numbers.len()));
    // Each covers the eight data packets that arrive during its transmission.
    assert!(numbers.windows(2).skip(1).all(|w| w[1] - w[0] == 8), "{:?}", &numbers[..20]);
    assert!(longest <= Duration::from_micros(6400 + 800 + 6400), "{longest:?}");
    let (numbers, longest, full, _) = run(ack_filter::Config::default().into());
    assert_eq!(full, 0);
    assert!(
        (995..=1000).contains(&numbers.len()) && longest <= Duration::from_micros(3 * 6400),
        "{longest:?}"
    );
    // The link carries one in eight: one in two is too much.
    let (_, longest, full, _) = run(ack_decimation::Config::default().into());
    assert!(full > 0 && longest > Duration::from_millis(300));
    let (_, longest, full, _) = run(ack_decimation::Config { keep_every: 9, ..Default::default() }.into());
    assert!(full == 0 && longest < Duration::from_millis(30), "{longest:?}");
}

#[test]
fn acknowledgements_overtake_data_but_interrupt_none() {
    let config = QueueConfig { discipline: acks_first::Config {}.into(), ..QueueConfig::packets(3) };
    let mut q = Real::new(&config);
    let mut lost = Vec::new();
    for (id, acks) in [(0, false), (1, false), (2, true), (3, true)] {
        let p = Pkt {
            id,
            flow: 1,
            size: if acks { 40 } else { 1000 },
            ack: acks.then_some(ack(1)),
            ..Pkt::default()
        };
        q.enqueue(p, &mut |p, why| lost.push((p.id, why)));
    }
    assert_eq!(lost, [(3, DropReason::Full)]);
    let served: Vec<_> = core::iter::from_fn(|| q.dequeue().map(|p| p.id)).collect();
    assert_eq!(served, [2, 0, 1]);
}

/// The first acknowledgement found the link idle and is remembered: the next one with its number is a duplicate and stays.
#[test]
fn an_acknowledgement_that_did_not_wait_is_remembered() {
    let queue = QueueConfig::packets(50).with(AGGRESSIVE);
    let config = LinkConfig { rate: Rate::from_bits_per_sec(50_000).into(), queue, ..LinkConfig::default() };
    let mut link = Link::new(&config, Streams::named(1, "links.return"));
    for (id, number) in (0..).zip([7, 7, 8, 9]) {
        link.offer(
            Instant::ZERO,
            Pkt { id, flow: 1, size: 40, ack: Some(ack(number)), ..Pkt::default() },
            &mut |_, _| {},
        );
    }
    assert_eq!((link.queue_len(), link.counters().total().dropped(DropReason::Filtered)), (2, 1));
}

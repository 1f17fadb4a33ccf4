//! Every discipline against its definition, written down naively, under random operations; and the
//! invariants I1 to I5 of two-class discard priority.

use crate::common;

use common::{Pkt, arrivals, drive};
use proptest::prelude::*;
use skyhaul_base::{Instant, Rng};
use skyhaul_path::queue::{Moment, pushout, threshold};
use skyhaul_path::{Discipline, DropReason, Limit, LinkConfig, Queue, QueueConfig, Victim};

/// One list in the order of arrival; every decision by a scan.
struct Naive {
    config: QueueConfig,
    list: Vec<Pkt>,
}

impl Naive {
    fn fits(&self, waiting: impl Iterator<Item = u32>, size: u32, in_service: Option<u32>) -> bool {
        let served = in_service.filter(|_| self.config.count_in_service);
        let all: Vec<u64> = waiting.chain(served).chain([size]).map(u64::from).collect();
        let less = u64::from(self.config.ns2_limit);
        match self.config.limit {
            Limit::Unlimited => true,
            Limit::Packets(n) => all.len() as u64 + less <= u64::from(n),
            Limit::Bytes(n) => all.iter().sum::<u64>() + less <= n,
        }
    }
    fn fits_beside_all(&self, size: u32, in_service: Option<u32>) -> bool {
        self.fits(self.list.iter().map(|p| p.size), size, in_service)
    }
    fn fits_beside_high(&self, size: u32, in_service: Option<u32>) -> bool {
        self.fits(self.list.iter().filter(|p| !p.low).map(|p| p.size), size, in_service)
    }
    fn enqueue(&mut self, p: Pkt, in_service: Option<u32>, lost: &mut Vec<(Pkt, DropReason)>) {
        if let Discipline::Threshold(threshold::Config { low_below }) = self.config.discipline {
            let busy = usize::from(self.config.count_in_service && in_service.is_some());
            if p.low && self.list.len() + busy >= low_below as usize {
                return lost.push((p, DropReason::Full));
            }
        }
        if self.fits_beside_all(p.size, in_service) {
            return self.list.push(p);
        }
        let victim = match self.config.discipline {
            Discipline::StrictPushout(pushout::Strict { victim })
            | Discipline::FifoPushout(pushout::Fifo { victim })
                if !p.low =>
            {
                victim
            }
            _ => return lost.push((p, DropReason::Full)),
        };
        if !self.fits_beside_high(p.size, in_service) {
            return lost.push((p, DropReason::Full));
        }
        while !self.fits_beside_all(p.size, in_service) {
            let mut low = self.list.iter();
            let i = match victim {
                Victim::Oldest => low.position(|p| p.low),
                Victim::Youngest => low.rposition(|p| p.low),
            };
            lost.push((self.list.remove(i.unwrap()), DropReason::PushedOut));
        }
        self.list.push(p);
    }
    fn dequeue(&mut self) -> Option<Pkt> {
        let strict = matches!(self.config.discipline, Discipline::StrictPushout(_));
        let first = self.list.iter().position(|p| !strict || !p.low).unwrap_or(0);
        (!self.list.is_empty()).then(|| self.list.remove(first))
    }
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Enqueue { size: u32, low: bool, in_service: Option<u32> },
    Dequeue,
}

fn op() -> impl Strategy<Value = Op> {
    let size = prop_oneof![Just(40u32), Just(500), Just(1000), 1..1500u32];
    prop_oneof![
        3 => (size.clone(), any::<bool>(), proptest::option::of(size))
            .prop_map(|(size, low, in_service)| Op::Enqueue { size, low, in_service }),
        2 => Just(Op::Dequeue),
    ]
}

fn discipline() -> impl Strategy<Value = Discipline> {
    let victim = || prop_oneof![Just(Victim::Oldest), Just(Victim::Youngest)];
    prop_oneof![
        Just(Discipline::DROP_TAIL),
        victim().prop_map(|victim| pushout::Strict { victim }.into()),
        victim().prop_map(|victim| pushout::Fifo { victim }.into()),
        (0..5u64).prop_map(|low_below| threshold::Config { low_below }.into()),
    ]
}

fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        (0..8u32).prop_map(Limit::Packets),
        (0..6000u64).prop_map(Limit::Bytes),
        Just(Limit::Unlimited)
    ]
}

fn config() -> impl Strategy<Value = QueueConfig> {
    (discipline(), limit(), any::<bool>(), any::<bool>()).prop_map(
        |(discipline, limit, count_in_service, ns2_limit)| QueueConfig {
            discipline,
            limit,
            count_in_service,
            ns2_limit,
        },
    )
}

/// (gap, size, low) with many coincidences: gaps of 0 and of whole transmission times.
fn traffic(low: impl Strategy<Value = bool>) -> impl Strategy<Value = Vec<(u64, u32, bool)>> {
    let gap = prop_oneof![4 => Just(0u64), 2 => Just(1_000_000), 1 => Just(500_000), 2 => 0..2_500_000u64];
    let size = prop_oneof![3 => Just(1000u32), 1 => Just(500), 1 => 1..1500u32];
    proptest::collection::vec((gap, size, low), 1..120)
}

fn link(queue: QueueConfig) -> LinkConfig {
    LinkConfig { rate: common::MICROSECOND_PER_BYTE.into(), queue, ..LinkConfig::default() }
}

proptest! {
    #[test]
    fn disciplines_equal_their_definition(config in config(), ops in proptest::collection::vec(op(), 1..200)) {
        let mut real = Queue::new(&config);
        let mut naive = Naive { config, list: Vec::new() };
        let mut rng = Rng::stream(1, "queue");
        let mut at = Moment::new(Instant::ZERO, &mut rng);
        for (id, op) in ops.into_iter().enumerate() {
            match op {
                Op::Enqueue { size, low, in_service } => {
                    let p = Pkt { id: id as u32, size, low, ..Pkt::default() };
                    let full = !naive.fits_beside_all(size, in_service);
                    let hopeless = !naive.fits_beside_high(size, in_service);
                    let (mut lost, mut expected) = (Vec::new(), Vec::new());
                    let admitted = real.enqueue(&mut at, p, in_service, &mut |p, why| lost.push((p, why)));
                    naive.enqueue(p, in_service, &mut expected);
                    prop_assert_eq!(&lost, &expected);
                    prop_assert_eq!(admitted, !lost.contains(&(p, DropReason::Full)));
                    for (v, why) in lost {
                        // I3: a packet is pushed out only of a full queue, and only low by high priority.
                        prop_assert!(why == DropReason::Full || (full && v.low && !low));
                        // I2: push-out refuses data only if no eviction could admit it.
                        let pushout = matches!(
                            config.discipline,
                            Discipline::StrictPushout(_) | Discipline::FifoPushout(_)
                        );
                        prop_assert!(v.low || !pushout || hopeless);
                    }
                    // I4: an admission never leaves more than the limit.
                    let rest = naive.list.iter().take(naive.list.len().saturating_sub(1)).map(|p| p.size);
                    prop_assert!(!admitted || naive.fits(rest, size, in_service));
                }
                Op::Dequeue => {
                    let none = &mut |_, _| unreachable!("a plain queue loses nothing then");
                    prop_assert_eq!(real.dequeue(&mut at, none), naive.dequeue());
                },
            }
            prop_assert_eq!(real.len() as usize, naive.list.len());
            prop_assert_eq!(real.bytes(), naive.list.iter().map(|p| u64::from(p.size)).sum::<u64>());
        }
    }

    /// I1: under strict push-out, as long as no data is refused, each data packet arrives at most one probe
    /// transmission later than in the same run without probes.
    #[test]
    fn probes_delay_data_by_at_most_one_transmission(
        list in traffic(any::<bool>()),
        limit in 8..60u32,
        oldest in any::<bool>(),
    ) {
        let victim = if oldest { Victim::Oldest } else { Victim::Youngest };
        let config = link(QueueConfig::packets(limit).with(pushout::Strict { victim }));
        let all = arrivals(&list);
        let data: Vec<_> = all.iter().copied().filter(|a| !a.p.low).collect();
        let (with, without) = (drive(&config, &all), drive(&config, &data));
        let arrival = |fates: &[Option<common::Fate>], id: u32| match fates[id as usize] {
            Some(common::Fate::Delivered(t)) => Some(t),
            _ => None,
        };
        let with: Vec<_> = data.iter().map(|a| arrival(&with, a.p.id)).collect();
        prop_assume!(with.iter().all(Option::is_some));
        let longest = all.iter().filter(|a| a.p.low).map(|a| a.p.size).max().unwrap_or(0);
        let probe = skyhaul_base::Duration::from_micros(longest.into());
        for (a, with) in data.iter().zip(with) {
            let (with, without) = (with.unwrap(), arrival(&without, a.p.id).expect("fewer packets, no loss"));
            prop_assert!(without <= with && with <= without + probe, "{:?}: {with:?} {without:?}", a.p);
        }
    }

    /// I5: with data alone all variants that share one limit are drop-tail, packet for packet.
    #[test]
    fn without_probes_all_disciplines_are_drop_tail(
        list in traffic(Just(false)),
        discipline in discipline(),
        limit in limit(),
        count_in_service in any::<bool>(),
    ) {
        let config = QueueConfig { discipline, limit, count_in_service, ns2_limit: false };
        let all = arrivals(&list);
        prop_assert_eq!(drive(&link(config), &all), drive(&link(config.with(Discipline::DROP_TAIL)), &all));
    }
}

#[test]
fn the_reference_buffer_holds_fifty_packets() {
    // [Peach §V-A]: K = 50. Sixty simultaneous arrivals at an idle link: one is in service, 50 wait.
    let burst: Vec<_> = (0..60).map(|_| (0, 1000, false)).collect();
    let lost = |queue| {
        let fates = drive(&link(queue), &arrivals(&burst));
        fates.iter().filter(|f| matches!(f, Some(common::Fate::Lost(DropReason::Full)))).count()
    };
    let fifty = QueueConfig::packets(50);
    assert_eq!(lost(fifty), 9);
    assert_eq!(lost(QueueConfig { count_in_service: true, ..fifty }), 10);
    assert_eq!(lost(QueueConfig { ns2_limit: true, ..fifty }), 10);
    assert_eq!(lost(QueueConfig { limit: Limit::Bytes(50_000), ..fifty }), 9);
}

#[test]
fn a_departure_makes_room_for_an_arrival_at_the_same_time() {
    // The link serves 1000 bytes per millisecond; one waits and one arrives exactly at the departure.
    let list = [(0, 1000, false), (0, 1000, false), (1_000_000, 1000, false)];
    let fates = drive(&link(QueueConfig::packets(1)), &arrivals(&list));
    let at = |ms: u64| Some(common::Fate::Delivered(Instant::from_nanos(ms * 1_000_000)));
    assert_eq!(fates, [at(1), at(2), at(3)]);
}

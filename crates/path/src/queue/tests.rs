//! Hand-computed cases; the disciplines against a naive oracle are in the integration tests.

use super::*;
use alloc::vec::Vec;
use skyhaul_base::{Instant, Rng};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pkt {
    name: char,
    size: u32,
}

/// Capital letters are of high priority.
impl PacketView for Pkt {
    fn size(&self) -> u32 {
        self.size
    }
    fn low_priority(&self) -> bool {
        self.name.is_lowercase()
    }
    fn flow(&self) -> u32 {
        0
    }
}

type Losses = Vec<(char, DropReason)>;

/// Offers packets of one size; returns who was lost and then everyone in the order of service.
fn run_sized(config: QueueConfig, arrivals: &[(char, u32)], in_service: Option<u32>) -> (Losses, Vec<char>) {
    let mut q = Queue::new(&config);
    let mut losses = Losses::new();
    let mut rng = Rng::stream(1, "queue");
    let mut at = Moment::new(Instant::ZERO, &mut rng);
    for &(name, size) in arrivals {
        let before = losses.len();
        let admitted =
            q.enqueue(&mut at, Pkt { name, size }, in_service, &mut |p, why| losses.push((p.name, why)));
        assert_eq!(admitted, !losses[before..].contains(&(name, DropReason::Full)));
    }
    let served =
        core::iter::from_fn(|| q.dequeue(&mut at, &mut |_, _| unreachable!()).map(|p| p.name)).collect();
    assert!(q.is_empty() && q.bytes() == 0);
    (losses, served)
}

fn run(config: QueueConfig, arrivals: &str) -> (Losses, Vec<char>) {
    run_sized(config, &arrivals.chars().map(|c| (c, 1000)).collect::<Vec<_>>(), None)
}

const FULL: DropReason = DropReason::Full;
const OUT: DropReason = DropReason::PushedOut;

#[test]
fn drop_tail_ignores_classes() {
    let (lost, served) = run(QueueConfig::packets(3).with(plain::Config {}), "aAbBC");
    assert_eq!(lost, [('B', FULL), ('C', FULL)]);
    assert_eq!(served, ['a', 'A', 'b']);
}

#[test]
fn strict_pushout_evicts_the_youngest_and_serves_data_first() {
    let (lost, served) = run(QueueConfig::packets(4).with(pushout::Strict::default()), "abAcdBCD");
    // d finds a b A c; B pushes out c, C pushes out b, D pushes out a.
    assert_eq!(lost, [('d', FULL), ('c', OUT), ('b', OUT), ('a', OUT)]);
    assert_eq!(served, ['A', 'B', 'C', 'D']);
    let (lost, served) = run(QueueConfig::packets(4).with(pushout::Strict::default()), "abAcB");
    assert_eq!((lost, served), (alloc::vec![('c', OUT)], alloc::vec!['A', 'B', 'a', 'b']));
}

#[test]
fn strict_pushout_may_evict_the_oldest() {
    let oldest = pushout::Strict { victim: Victim::Oldest };
    let (lost, served) = run(QueueConfig::packets(4).with(oldest), "abAcB");
    assert_eq!((lost, served), (alloc::vec![('a', OUT)], alloc::vec!['A', 'B', 'b', 'c']));
}

#[test]
fn fifo_pushout_keeps_the_order_of_arrival() {
    let (lost, served) = run(QueueConfig::packets(4).with(pushout::Fifo::default()), "abAcB");
    assert_eq!((lost, served), (alloc::vec![('c', OUT)], alloc::vec!['a', 'b', 'A', 'B']));
    let oldest = pushout::Fifo { victim: Victim::Oldest };
    let (lost, served) = run(QueueConfig::packets(4).with(oldest), "abAcB");
    assert_eq!((lost, served), (alloc::vec![('a', OUT)], alloc::vec!['b', 'A', 'c', 'B']));
}

#[test]
fn data_fills_the_queue_and_is_then_refused_itself() {
    for d in [Discipline::from(pushout::Strict::default()), pushout::Fifo::default().into()] {
        let (lost, served) = run(QueueConfig::packets(2).with(d), "aABCd");
        assert_eq!(lost, [('a', OUT), ('C', FULL), ('d', FULL)]);
        assert_eq!(served, ['A', 'B']);
    }
}

#[test]
fn gtnets_refuses_a_probe_when_more_than_one_packet_is_queued() {
    let (lost, served) = run(QueueConfig::packets(4).with(gtnets::Config {}), "abcABCd");
    assert_eq!(lost, [('c', FULL), ('C', FULL), ('d', FULL)]);
    assert_eq!(served, ['a', 'b', 'A', 'B']);
}

#[test]
fn a_byte_limit_refuses_only_what_does_not_fit() {
    let config = QueueConfig { limit: Limit::Bytes(2500), ..QueueConfig::default() };
    let (lost, served) =
        run_sized(config, &[('A', 1000), ('B', 1000), ('C', 1000), ('D', 500), ('E', 1)], None);
    assert_eq!((lost, served), (alloc::vec![('C', FULL), ('E', FULL)], alloc::vec!['A', 'B', 'D']));
}

#[test]
fn pushout_in_bytes_evicts_as_much_as_needed_and_nothing_in_vain() {
    let config = QueueConfig { limit: Limit::Bytes(2000), ..QueueConfig::default() };
    let arrivals = [('a', 400), ('b', 400), ('A', 1000), ('B', 1001), ('C', 700), ('D', 300), ('c', 1)];
    // A fits beside a and b (1800). B would not fit beside A alone. C needs 700: b and a must go (1700).
    // D fits exactly (2000).
    let (lost, served) = run_sized(config.with(pushout::Strict::default()), &arrivals, None);
    assert_eq!(lost, [('B', FULL), ('b', OUT), ('a', OUT), ('c', FULL)]);
    assert_eq!(served, ['A', 'C', 'D']);
}

#[test]
fn the_packet_in_service_counts_if_asked() {
    let plain = QueueConfig::packets(2);
    let counted = QueueConfig { count_in_service: true, ..plain };
    let three = [('A', 1000), ('B', 1000), ('C', 1000)];
    assert_eq!(run_sized(plain, &three, Some(1000)).1, ['A', 'B']);
    assert_eq!(run_sized(counted, &three, Some(1000)).1, ['A']);
    assert_eq!(run_sized(counted, &three, None).1, ['A', 'B']);
    // In bytes it occupies its size, and cannot be pushed out.
    let bytes = QueueConfig { limit: Limit::Bytes(2500), ..counted }.with(pushout::Strict::default());
    let (lost, served) = run_sized(bytes, &[('a', 1000), ('A', 1500), ('B', 1)], Some(1000));
    assert_eq!((lost, served), (alloc::vec![('a', OUT), ('B', FULL)], alloc::vec!['A']));
    // The probe limit of the GTNetS router sees it too.
    let gtnets = counted.with(gtnets::Config {});
    assert_eq!(run_sized(gtnets, &[('a', 1), ('b', 1)], Some(1)).1, ['a']);
}

#[test]
fn the_ns2_limit_is_one_less() {
    let q = |limit, ns2_limit| QueueConfig { limit, ns2_limit, ..QueueConfig::default() };
    assert_eq!(run(q(Limit::Packets(3), true), "ABCD").1, ['A', 'B']);
    assert_eq!(run(q(Limit::Bytes(3000), true), "ABCD").1, ['A', 'B']);
    assert_eq!(run(q(Limit::Bytes(3000), false), "ABCD").1, ['A', 'B', 'C']);
    assert_eq!(run(q(Limit::Packets(0), true), "A").1, []);
}

#[test]
fn times_that_a_file_leaves_out_follow_from_the_path() {
    let (ms, nothing) = (Duration::from_millis, |_: &str| false);
    let law = |rtt, written: &dyn Fn(&str) -> bool| {
        let own = codel::Config { target: ms(7), interval: ms(90), ..codel::Config::default() };
        let Discipline::Codel(c) = Discipline::from(own).for_path(rtt, written) else { unreachable!() };
        let fair = fq_codel::Config { target: ms(7), interval: ms(90), ..fq_codel::Config::default() };
        let Discipline::FqCodel(f) = Discipline::from(fair).for_path(rtt, written) else { unreachable!() };
        assert_eq!((c.target, c.interval), (f.target, f.interval));
        (c.target, c.interval)
    };
    // The documents' times up to 100 ms, and the RTT, rounded up, beyond.
    assert_eq!(law(Duration::ZERO, &nothing), (ms(5), ms(100)));
    assert_eq!(law(ms(45), &nothing), (ms(5), ms(100)));
    assert_eq!(law(ms(551), &nothing), (ms(28), ms(560)));
    // What is written stays, and the target follows from a written interval.
    assert_eq!(law(ms(551), &|_| true), (ms(7), ms(90)));
    assert_eq!(law(ms(551), &|key| key == "target"), (ms(7), ms(560)));
    assert_eq!(law(ms(551), &|key| key == "interval"), (Duration::from_micros(4500), ms(90)));

    let pie = |rtt| match Discipline::from(pie::Config::default()).for_path(rtt, &|key| key == "burst") {
        Discipline::Pie(c) => (c.target, c.update, c.burst, c.alpha, c.beta),
        _ => unreachable!(),
    };
    assert_eq!(pie(ms(45)), (ms(15), ms(15), ms(150), 0.125, 1.25));
    assert_eq!(pie(ms(500)), (ms(75), ms(75), ms(150), 0.025, 0.25));
    // Thresholds follow from the capacity.
    let red = Discipline::from(red::Config { max_threshold: Some(40), ..red::Config::default() });
    assert_eq!(red.derived(Limit::Packets(90)), [("min-threshold", 15.0)]);
    let by_class = Discipline::from(wred::Config::default()).derived(Limit::Unlimited);
    let names = ["min-threshold", "max-threshold", "low-min-threshold", "low-max-threshold"];
    assert_eq!(by_class, names.into_iter().zip([5.0, 15.0, 2.5, 7.5]).collect::<Vec<_>>());
}

//! Links that repair, against naive models of block codes and of selective repeat; and the balance of their counters.

use crate::common;

use common::{Arrival, Fate, Fates, Pkt, arrivals, drive, events_until, rate, traffic};
use proptest::prelude::*;
use skyhaul_base::{Duration, Instant, Rate};
use skyhaul_path::delay::{fixed::Fixed, normal::Normal};
use skyhaul_path::error::{self, ErrorModel, ber, bursts, per};
use skyhaul_path::fec::{self, Code, Shape, block, code_rate, repeat};
use skyhaul_path::queue::{Moment, pushout, threshold};
use skyhaul_path::{
    Delay, Discipline, DropReason, Limit, Link, LinkConfig, Queue, QueueConfig, Streams, arq,
};

/// The transmitter and the channel.
struct Channel {
    rate: u128,
    delay: Duration,
    error: ErrorModel,
    rng: skyhaul_base::Rng,
    /// The present busy period: its start and the bits sent in it. Departures are exact in real time and rounded down to
    /// nanoseconds.
    start: Instant,
    bits: u128,
    free: Instant,
}

impl Channel {
    fn new(config: &LinkConfig) -> Self {
        let Delay::Fixed(Fixed { base: delay }) = config.delay else { panic!("a fixed delay") };
        Self {
            rate: u128::from(config.rate.mean().expect("a finite rate").bits_per_sec()),
            delay,
            error: config.error.build(),
            rng: Streams::named(5, "links.test").error,
            start: Instant::ZERO,
            bits: 0,
            free: Instant::ZERO,
        }
    }
    fn send(&mut self, at: Instant, p: &Pkt) -> (Instant, bool) {
        if at > self.free {
            (self.start, self.bits) = (at, 0);
        }
        self.bits += u128::from(p.size) * 8;
        self.free = self.start + Duration::from_nanos((self.bits * 1_000_000_000 / self.rate) as u64);
        (self.free + self.delay, self.error.loses(p, &mut self.rng))
    }
}

fn parity(size: u32) -> Pkt {
    Pkt { id: u32::MAX, size, low: false, ..Pkt::default() }
}

/// The definition of a block code: what is sent, one after the other, and then for each block when the k-th arrives.
fn naive_code(config: &LinkConfig, shape: Shape, arrivals: &[Arrival]) -> Vec<Option<Fate>> {
    let Shape { k, parity: m, depth, fill_time, in_order } = shape;
    let mut channel = Channel::new(config);
    // Of each block: what was sent of it, as (packet, arrival, lost).
    type Sent = (Option<usize>, Instant, bool);
    let mut blocks: Vec<Vec<Sent>> = Vec::new();
    let (mut group, mut begun, mut sizes): (usize, Instant, Vec<u32>) = (0, Instant::ZERO, Vec::new());
    let mut next = 0;
    while next < arrivals.len() || !sizes.is_empty() {
        let start = arrivals.get(next).map_or(Instant::MAX, |a| a.at.max(channel.free));
        let full = sizes.len() == k as usize * depth as usize;
        if full || !sizes.is_empty() && begun + fill_time <= start {
            let closed = if full { channel.free } else { begun + fill_time };
            for _ in 0..m {
                for b in 0..sizes.len().min(depth as usize) {
                    let largest = sizes.iter().skip(b).step_by(depth as usize).max().expect("not empty");
                    let (arrival, lost) = channel.send(closed.max(channel.free), &parity(*largest));
                    blocks[group + b].push((None, arrival, lost));
                }
            }
            group += sizes.len().min(depth as usize);
            sizes.clear();
            continue;
        }
        if sizes.is_empty() {
            begun = start;
        }
        let block = group + sizes.len() % depth as usize;
        blocks.resize(blocks.len().max(block + 1), Vec::new());
        let (arrival, lost) = channel.send(start, &arrivals[next].p);
        blocks[block].push((Some(next), arrival, lost));
        sizes.push(arrivals[next].p.size);
        next += 1;
    }
    let mut fates = vec![(Instant::ZERO, true); arrivals.len()];
    for block in blocks {
        let packets = block.iter().filter(|s| s.0.is_some()).count();
        let survived: Vec<Instant> = block.iter().filter(|s| !s.2).map(|s| s.1).collect();
        for (packet, arrival, lost) in &block {
            let Some(i) = *packet else { continue };
            fates[i] = match (lost, survived.get(packets - 1)) {
                (false, _) => (*arrival, true),
                (true, Some(repaired)) => (*repaired, true),
                (true, None) => (block.last().expect("a packet").1, false),
            };
        }
    }
    let mut last = Instant::ZERO;
    let fate = |(mut at, arrives): (Instant, bool)| {
        if in_order {
            last = last.max(at);
            at = last;
        }
        Some(if arrives { Fate::Delivered(at) } else { Fate::Lost(DropReason::Error) })
    };
    fates.into_iter().map(fate).collect()
}

/// What the naive sender and receiver know of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Waits,
    /// Sent this many times, and on its way.
    Sent(u32),
    /// The receiver has it from this time on.
    Arrived(Instant),
    /// The receiver knows from this time on that it will not arrive.
    GivenUp(Instant),
}

/// Something that the naive link has sent.
#[derive(Debug)]
struct Sent {
    block: usize,
    /// `None` for parity.
    packet: Option<usize>,
    arrival: Instant,
    survived: bool,
    /// It has arrived, or would have.
    arrived: bool,
    /// The receiver knows the fate of the packet.
    settled: bool,
}

/// The definition of selective repeat above a code, which scans everything at each step. A retransmitted packet is part of the
/// block that is being filled at that time.
fn naive_arq(config: &LinkConfig, shape: Shape, arq: arq::Config, arrivals: &[Arrival]) -> Vec<Option<Fate>> {
    let Shape { k, parity: m, depth, fill_time, .. } = shape;
    let (k, m, depth) = (k as usize, m as usize, depth as usize);
    let mut channel = Channel::new(config);
    let delay = channel.delay;
    let answer = match arq.feedback {
        arq::Feedback::Ideal => delay,
        arq::Feedback::After(time) => time,
    };
    let mut known = vec![State::Waits; arrivals.len()];
    let mut queue = Queue::new(&config.queue);
    let mut fates = vec![None; arrivals.len()];
    let mut unused = Streams::named(5, "links.test").queue;
    let mut at = Moment::new(Instant::ZERO, &mut unused);
    let mut sent: Vec<Sent> = Vec::new();
    // The sizes of the packets of each block.
    let mut blocks: Vec<Vec<u32>> = Vec::new();
    // How many blocks are closed, how many packets the open ones have, and when these are closed at the latest.
    let (mut closed, mut filled, mut full_by) = (0, 0, Instant::MAX);
    // Blocks whose parity is yet to be sent.
    let mut parity_due: Vec<usize> = Vec::new();
    // When the window opens by one packet, when a packet is overdue, and which packets are to be retransmitted.
    let mut opens: Vec<Instant> = Vec::new();
    let mut overdue: Vec<(Instant, usize)> = Vec::new();
    let mut to_resend: Vec<usize> = Vec::new();
    let (mut outstanding, mut size, mut next, mut now) = (0, 0, 0, Instant::ZERO);
    let mut order = Vec::new();
    loop {
        // The order of simultaneous events: an arrival, an answer, an overdue packet, closed blocks, a new packet.
        if let Some(s) = sent.iter_mut().find(|s| !s.arrived && s.arrival <= now) {
            s.arrived = true;
            let block = s.block;
            let of_block: Vec<usize> = (0..sent.len()).filter(|&s| sent[s].block == block).collect();
            let survived = of_block.iter().filter(|&&s| sent[s].arrived && sent[s].survived).count();
            let packets = blocks[block].len();
            let is_closed = block < closed;
            let over =
                is_closed && of_block.len() == packets + m && of_block.iter().all(|&s| sent[s].arrived);
            for s in of_block {
                let Sent { packet: Some(i), arrived: true, settled: false, .. } = sent[s] else { continue };
                if sent[s].survived || is_closed && survived >= packets {
                    known[i] = State::Arrived(now);
                    opens.push(now + answer);
                } else if over {
                    overdue.push((now + answer + arq.guard, i));
                } else {
                    continue;
                }
                sent[s].settled = true;
            }
            continue;
        }
        opens.sort_unstable();
        overdue.sort_by_key(|o| o.0);
        if opens.first().is_some_and(|t| *t <= now) {
            opens.remove(0);
            outstanding -= 1;
            continue;
        }
        if overdue.first().is_some_and(|o| o.0 <= now) {
            let (_, i) = overdue.remove(0);
            match known[i] {
                State::Sent(times) if times <= arq.retries => to_resend.push(i),
                _ => {
                    // The notice to the receiver takes no transmission time, but leaves after the packet in transmission.
                    known[i] = State::GivenUp(channel.free.max(now) + delay);
                    fates[i] = Some(Fate::Lost(DropReason::ArqGaveUp));
                    outstanding -= 1;
                }
            }
            continue;
        }
        if filled == k * depth || full_by <= now {
            (0..m).for_each(|_| parity_due.extend(closed..blocks.len()));
            (closed, filled, full_by) = (blocks.len(), 0, Instant::MAX);
            continue;
        }
        let free = channel.free <= now;
        if free && !parity_due.is_empty() {
            let block = parity_due.remove(0);
            size = *blocks[block].iter().max().expect("a packet");
            let (arrival, lost) = channel.send(now, &parity(size));
            sent.push(Sent { block, packet: None, arrival, survived: !lost, arrived: false, settled: true });
            continue;
        }
        let sends = if !free {
            None
        } else if !to_resend.is_empty() {
            Some(to_resend.remove(0))
        } else if outstanding < arq.window && !queue.is_empty() {
            queue.dequeue(&mut at, &mut |_, _| ()).map(|p: Pkt| p.id as usize)
        } else if let Some(a) = arrivals.get(next).filter(|a| a.at <= now && outstanding < arq.window) {
            next += 1;
            Some(a.p.id as usize)
        } else {
            None
        };
        if let Some(i) = sends {
            let times = match known[i] {
                State::Sent(times) => times + 1,
                _ => {
                    outstanding += 1;
                    order.push(i);
                    1
                }
            };
            known[i] = State::Sent(times);
            size = arrivals[i].p.size;
            let block = closed + filled % depth;
            blocks.resize(blocks.len().max(block + 1), Vec::new());
            blocks[block].push(size);
            if filled == 0 {
                full_by = now + fill_time;
            }
            filled += 1;
            let (arrival, lost) = channel.send(now, &arrivals[i].p);
            sent.push(Sent {
                block,
                packet: Some(i),
                arrival,
                survived: !lost,
                arrived: false,
                settled: false,
            });
            continue;
        }
        if let Some(a) = arrivals.get(next).filter(|a| a.at <= now) {
            next += 1;
            let in_service = (!free).then_some(size);
            queue.enqueue(&mut at, a.p, in_service, &mut |p, why| {
                fates[p.id as usize] = Some(Fate::Lost(why))
            });
            continue;
        }
        let waits = !to_resend.is_empty() || !queue.is_empty() || !parity_due.is_empty();
        let times = [
            sent.iter().filter(|s| !s.arrived).map(|s| s.arrival).min(),
            opens.first().copied(),
            overdue.first().map(|o| o.0),
            (full_by < Instant::MAX).then_some(full_by),
            arrivals.get(next).map(|a| a.at),
            (waits && !free).then_some(channel.free),
        ];
        match times.into_iter().flatten().min() {
            Some(t) => now = t,
            None => break,
        }
    }
    let mut last = Instant::ZERO;
    for i in order {
        let (State::Arrived(at) | State::GivenUp(at)) = known[i] else { panic!("{i} is open") };
        last = last.max(at);
        if let State::Arrived(at) = known[i] {
            fates[i] = Some(Fate::Delivered(if arq.in_order { last } else { at }));
        }
    }
    fates
}

fn error() -> impl Strategy<Value = error::Config> {
    prop_oneof![
        Just(error::Config::NONE),
        Just(per::Config { p: 0.2 }.into()),
        Just(per::Config { p: 0.6 }.into()),
        Just(ber::Config { ber: 1e-5, ..ber::Config::default() }.into()),
        Just(bursts::Config { loss: 0.2, burst: 3.0 }.into()),
    ]
}

/// Codes for packets.
fn parities() -> impl Strategy<Value = fec::Config> {
    let block = (1..8u64, 0..4u64, 1..4u64, 1..9u64, any::<bool>());
    let block = block.prop_map(|(k, m, interleave, ms, in_order)| {
        let fill_time = Duration::from_millis(ms);
        block::Config { n: k + m, k, interleave, fill_time, in_order }.into()
    });
    prop_oneof![4 => block, 1 => (1..4u64).prop_map(|times| repeat::Config { times }.into())]
}

/// All codes.
fn code() -> impl Strategy<Value = fec::Config> {
    let rate = prop_oneof![Just(0.5), Just(0.75), Just(1.0)];
    prop_oneof![
        5 => parities(),
        1 => rate.prop_map(|rate| code_rate::Config { rate, residual: None }.into()),
    ]
}

fn repeats() -> impl Strategy<Value = arq::Config> {
    let feedback = prop_oneof![
        Just(arq::Feedback::Ideal),
        (0..6u64).prop_map(|ms| arq::Feedback::After(Duration::from_millis(ms)))
    ];
    (1..12u32, 0..4u32, any::<bool>(), 0..3u64, feedback).prop_map(
        |(window, retries, in_order, ms, feedback)| arq::Config {
            window,
            retries,
            in_order,
            guard: Duration::from_millis(ms),
            feedback,
        },
    )
}

fn queue() -> impl Strategy<Value = QueueConfig> {
    let discipline = prop_oneof![
        Just(Discipline::DROP_TAIL),
        Just(pushout::Strict::default().into()),
        Just(pushout::Fifo::default().into()),
        Just(threshold::Config { low_below: 2 }.into()),
    ];
    let limit = prop_oneof![
        Just(Limit::Unlimited),
        (0..8u32).prop_map(Limit::Packets),
        (0..6000u64).prop_map(Limit::Bytes)
    ];
    (discipline, limit, any::<bool>()).prop_map(|(discipline, limit, count_in_service)| QueueConfig {
        discipline,
        limit,
        count_in_service,
        ..QueueConfig::default()
    })
}

/// A step of a driver that also changes the link, in any order and at any time.
#[derive(Clone, Debug)]
enum Step {
    Delay(u64),
    Fade(f64),
    Deliver,
    Error(error::Config),
    Limit(Limit),
    Offer { size: u32, low: bool },
    Rate(Option<Rate>),
    Serve,
    Up(bool),
    Visible(bool),
}

fn step() -> impl Strategy<Value = (u64, Step)> {
    let gap = prop_oneof![3 => Just(0u64), 1 => Just(500_000), 2 => 0..3_000_000u64];
    let step = prop_oneof![
        10 => (0..1500u32, any::<bool>()).prop_map(|(size, low)| Step::Offer { size, low }),
        4 => Just(Step::Serve),
        4 => Just(Step::Deliver),
        1 => any::<bool>().prop_map(Step::Up),
        1 => proptest::option::of(rate()).prop_map(Step::Rate),
        1 => error().prop_map(Step::Error),
        1 => (0..9u64).prop_map(Step::Delay),
        1 => (0..4u32).prop_map(|n| Step::Fade(f64::from(n) * 0.03)),
        1 => any::<bool>().prop_map(Step::Visible),
        1 => (0..9u32).prop_map(|n| Step::Limit(Limit::Packets(n))),
    ];
    (gap, step)
}

/// Brings the link up and runs it until every packet has arrived or was given up. Returns the number delivered.
fn settle(link: &mut Link<Pkt>, now: Instant, mut lost: impl FnMut(DropReason)) -> u64 {
    let mut delivered = 0;
    link.set_up(now, true, &mut |_, why| lost(why));
    link.set_visible(now, true, &mut |_, why| lost(why));
    loop {
        let service = link.next_service().unwrap_or(Instant::MAX);
        let delivery = link.next_delivery().unwrap_or(Instant::MAX);
        match service.min(delivery) {
            Instant::MAX => return delivered,
            at if service <= delivery => link.serve(at, &mut |_, why| lost(why)),
            at => delivered += u64::from(link.deliver(at).is_some()),
        }
    }
}

proptest! {
    #[test]
    fn a_code_equals_a_naive_one(
        list in traffic(), rate in rate(), error in error(), ms in 0..5u64, fec in parities(),
    ) {
        let delay = Delay::fixed(Duration::from_millis(ms));
        let shape = fec.code().shape;
        let config = LinkConfig { rate: rate.into(), delay, error, fec: Some(fec), ..LinkConfig::default() };
        let all = arrivals(&list);
        prop_assert_eq!(drive(&config, &all), naive_code(&config, shape, &all));
    }

    #[test]
    fn selective_repeat_above_a_code_equals_a_naive_one(
        list in traffic(), queue in queue(), rate in rate(), error in error(), ms in 0..5u64, arq in repeats(),
        fec in proptest::option::of(parities()),
    ) {
        let queue = QueueConfig { count_in_service: false, ..queue };
        let delay = Delay::fixed(Duration::from_millis(ms));
        let shape = fec.as_ref().map_or(Code::NONE, fec::Config::code).shape;
        let config =
            LinkConfig { rate: rate.into(), queue, delay, error, fec, arq: Some(arq), ..LinkConfig::default() };
        // No packet of no size: its transmission would begin and end at once.
        let list: Vec<_> = list.into_iter().map(|(gap, size, low)| (gap, size.max(1), low)).collect();
        let all = arrivals(&list);
        prop_assert_eq!(drive(&config, &all), naive_arq(&config, shape, arq, &all));
    }

    /// Without losses on the channel, ARQ or a code without parity changes no packet's fate.
    #[test]
    fn repair_without_losses_is_a_plain_link(
        list in traffic(), queue in queue(), rate in rate(), ms in 0..5u64, normal in any::<bool>(), arq in any::<bool>(),
        reorder in any::<bool>(),
    ) {
        let base = Duration::from_millis(ms);
        let delay = if normal { Normal { base, sigma: base }.into() } else { Delay::fixed(base) };
        let plain = LinkConfig { rate: rate.into(), queue, delay, allow_reorder: reorder, ..LinkConfig::default() };
        let wide = arq::Config { in_order: false, ..arq::Config::new(10_000) };
        let none = repeat::Config { times: 1 };
        let repairing = LinkConfig { arq: arq.then_some(wide), fec: (!arq).then_some(none.into()), ..plain.clone() };
        let all = arrivals(&list);
        prop_assert_eq!(drive(&plain, &all), drive(&repairing, &all));
    }

    /// A driver that calls late, and forgets services until the next arrival, changes no packet's fate.
    #[test]
    fn a_late_driver_changes_nothing(
        list in traffic(), queue in queue(), rate in rate(), error in error(), fec in proptest::option::of(code()),
        arq in proptest::option::of(repeats()), late in proptest::collection::vec(any::<bool>(), 120),
    ) {
        let delay = Delay::fixed(Duration::from_millis(3));
        let config = LinkConfig { rate: rate.into(), queue, error, delay, fec, arq, ..LinkConfig::default() };
        let all = arrivals(&list);
        let mut link = Link::new(&config, Streams::named(5, "links.test"));
        let mut fates = Fates::default();
        for (a, late) in all.iter().zip(late) {
            if !late {
                link.serve(a.at, &mut |p, why| fates.set(p, Fate::Lost(why)));
            }
            link.offer(a.at, a.p, &mut |p, why| fates.set(p, Fate::Lost(why)));
        }
        events_until(&mut link, Instant::MAX, &mut fates);
        prop_assert_eq!(drive(&config, &all), fates.0);
    }

    /// The counters balance, whatever happens to the link, and in the end every packet has a fate.
    #[test]
    fn offered_is_delivered_plus_lost_plus_waiting(
        steps in proptest::collection::vec(step(), 1..200), queue in queue(), rate in proptest::option::of(rate()),
        ms in 0..5u64, normal in any::<bool>(), reorder in any::<bool>(), drop_inflight in any::<bool>(),
        fec in proptest::option::of(code()), arq in proptest::option::of(repeats()), error in error(),
    ) {
        let base = Duration::from_millis(ms);
        let delay = if normal { Normal { base, sigma: base }.into() } else { Delay::fixed(base) };
        let repairs = fec.is_some() || arq.is_some();
        let config = LinkConfig {
            rate: rate.into(), queue, delay, allow_reorder: reorder, error, drop_inflight, two_paths: false, fec, arq, spares_acks: false,
        };
        let mut link = Link::<Pkt>::new(&config, Streams::named(5, "links.test"));
        let (mut now, mut lost, mut offered, mut delivered) = (Instant::ZERO, [0u64; DropReason::COUNT], 0, 0);
        let mut area = 0u128;
        for (gap, step) in steps {
            let until = now + Duration::from_nanos(gap);
            while let Some(due) = link.next_service().filter(|due| *due <= until) {
                area += u128::from(link.queue_len()) * u128::from((due - now).as_nanos());
                now = due;
                link.serve(now, &mut |_, why| lost[why as usize] += 1);
            }
            area += u128::from(link.queue_len()) * u128::from((until - now).as_nanos());
            now = until;
            let mut on_loss = |_: Pkt, why| lost[why as usize] += 1;
            match step {
                Step::Delay(ms) => link.set_delay(Delay::fixed(Duration::from_millis(ms))),
                Step::Fade(loss) => link.set_fade(loss),
                Step::Deliver => delivered += u64::from(link.deliver(now).is_some()),
                Step::Error(e) => link.set_error(e.build()),
                Step::Limit(limit) => link.set_limit(limit),
                Step::Offer { size, low } => {
                    let before = link.counters().total().lost();
                    let p = Pkt { id: offered, size, low, ..Pkt::default() };
                    offered += 1;
                    let taken = link.offer(now, p, &mut on_loss).is_taken();
                    prop_assert!(taken || link.counters().total().lost() == before + 1);
                }
                Step::Rate(r) => link.set_rate(&r.into()),
                Step::Serve => link.serve(now, &mut on_loss),
                Step::Up(up) => link.set_up(now, up, &mut on_loss),
                Step::Visible(visible) => link.set_visible(now, visible, &mut on_loss),
            }
            let total = link.counters().total();
            prop_assert_eq!((total.offered, total.delivered, total.drops), (offered.into(), delivered, lost));
            let inside = u64::from(link.queue_len()) + link.in_flight() as u64;
            prop_assert_eq!(total.offered, total.delivered + total.lost() + inside);
            prop_assert_eq!(u128::from(link.queue_integral(now)), area);
            prop_assert!(link.busy_time(now) <= now - Instant::ZERO);
        }
        delivered += settle(&mut link, now, |why| lost[why as usize] += 1);
        let (total, repair) = (link.counters().total(), link.counters().repair);
        prop_assert_eq!((link.queue_len(), link.in_flight()), (0, 0));
        prop_assert_eq!(total.offered, delivered + lost.iter().sum::<u64>());
        if repairs {
            // A transmission is a packet's first one, a retransmission, or parity; packets without a transmission were lost in the
            // queue.
            let unsent = total.dropped(DropReason::Full) + total.dropped(DropReason::PushedOut);
            let first = total.offered - unsent;
            prop_assert_eq!(repair.transmissions, first + repair.retransmissions + repair.parity);
            prop_assert_eq!(repair.give_ups, total.dropped(DropReason::ArqGaveUp));
        } else {
            prop_assert_eq!(repair, Default::default());
        }
        if arq.is_some() {
            prop_assert_eq!(total.dropped(DropReason::Error) + total.dropped(DropReason::LinkDown), 0);
        }
    }

    /// ARQ in order delivers no packet before one that was sent earlier.
    #[test]
    fn arq_in_order_delivers_in_the_order_of_first_transmissions(
        list in traffic(), rate in rate(), error in error(), fec in proptest::option::of(code()), arq in repeats(),
        normal in any::<bool>(), reorder in any::<bool>(),
    ) {
        let base = Duration::from_millis(2);
        let delay = if normal { Normal { base, sigma: base }.into() } else { Delay::fixed(base) };
        let arq = Some(arq::Config { in_order: true, ..arq });
        let config =
            LinkConfig { rate: rate.into(), error, delay, fec, arq, allow_reorder: reorder, ..LinkConfig::default() };
        let mut last = Instant::ZERO;
        for fate in drive(&config, &arrivals(&list)) {
            if let Some(Fate::Delivered(at)) = fate {
                prop_assert!(last <= at);
                last = at;
            }
        }
    }
}

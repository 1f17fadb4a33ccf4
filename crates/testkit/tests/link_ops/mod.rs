//! Links of every kind, driven in any order while anything changes: each packet has one fate, and the counters agree.
//! The fuzz target of the same name and the replay of its corpus share this file.

use skyhaul_base::{Duration, Instant, Rate};
use skyhaul_path::agenda::Due;
use skyhaul_path::delay::{Ramp, normal::Normal, uniform::Uniform};
use skyhaul_path::error::{self, ber, bursts, mtu, per};
use skyhaul_path::fec::{self, block, code_rate, repeat};
use skyhaul_path::queue::{
    ack_compaction, ack_decimation, ack_filter, acks_first, cake, codel, dual_pi2, fq_codel, gtnets, pie,
    plain, pushout, red, threshold, two_band, wred,
};
use skyhaul_path::rate::{self, End, dama};
use skyhaul_path::testing::Pkt;
use skyhaul_path::{
    Acknowledgement, Agenda, Change, Course, Delay, Discipline, DropReason, Handover, Limit, Link,
    LinkConfig, QueueConfig, Streams, Victim, arq,
};
use skyhaul_testkit::fuzz::ByteReader;
use std::collections::VecDeque;

fn micros(input: &mut ByteReader<'_>) -> Duration {
    Duration::from_micros(input.word().into())
}
fn share(input: &mut ByteReader<'_>) -> f64 {
    f64::from(input.byte()) / 255.0
}

/// Every kind of queue. The half of ACK compaction that is behind the link is not there: what the queue removes is lost.
fn discipline(input: &mut ByteReader<'_>) -> Discipline {
    let victim = if input.one_in(2) { Victim::Oldest } else { Victim::Youngest };
    // Switches of the queues that have any.
    let (one, other) = (input.one_in(2), input.one_in(2));
    match input.below(18) {
        0 => Discipline::DROP_TAIL,
        1 => plain::Config {}.into(),
        2 => gtnets::Config {}.into(),
        3 => acks_first::Config {}.into(),
        4 => pushout::Fifo { victim }.into(),
        5 => pushout::Strict { victim }.into(),
        6 => threshold::Config { low_below: input.below(5) as u64 }.into(),
        7 => two_band::Config { low_room: share(input), low_rate: 0.5 * share(input) }.into(),
        8 => ack_decimation::Config {
            keep_every: 2 + input.below(4) as u64,
            keep_duplicates: one,
            acks_first: other,
        }
        .into(),
        9 => {
            let place = if one { ack_filter::Place::Head } else { ack_filter::Place::Tail };
            let filter = if input.one_in(2) {
                ack_filter::Filter::Conservative
            } else {
                ack_filter::Filter::Aggressive
            };
            ack_filter::Config { filter, place, acks_first: other }.into()
        }
        10 => codel::Config { target: micros(input), interval: micros(input), ecn: one, class_aware: other }
            .into(),
        11 => fq_codel::Config {
            target: micros(input),
            interval: micros(input),
            quantum: 1 + u64::from(input.word()) % 3000,
            flows: 1 + input.below(4) as u64,
            ecn: one,
            class_aware: other,
        }
        .into(),
        12 => pie::Config {
            target: micros(input),
            update: micros(input),
            burst: micros(input),
            ecn: one,
            class_aware: other,
            ..pie::Config::default()
        }
        .into(),
        13 => red::Config {
            max_probability: share(input),
            weight: share(input),
            gentle: one,
            ecn: other,
            class_aware: input.one_in(2),
            ..red::Config::default()
        }
        .into(),
        14 => dual_pi2::Config {
            target: micros(input) + Duration::from_nanos(1),
            update: micros(input) + Duration::from_micros(10),
            min_delay: micros(input),
            range: if one { Duration::ZERO } else { micros(input) },
            coupling: 0.1 + 4.0 * share(input),
            classic_share: 0.001 + 0.9 * share(input),
            ..dual_pi2::Config::default()
        }
        .into(),
        15 => cake::Config {
            rtt: micros(input) + Duration::from_nanos(1),
            rate: one.then(|| Rate::from_bits_per_sec(100_000 + 1000 * u64::from(input.word()))),
            tins: match input.below(3) {
                0 => cake::Tins::Besteffort,
                1 => cake::Tins::Diffserv3,
                _ => cake::Tins::Diffserv4,
            },
            isolation: if other { cake::Isolation::Flows } else { cake::Isolation::Flowblind },
            flows: 8,
            overhead: input.byte().into(),
            mpu: input.byte().into(),
            framing: match input.below(3) {
                0 => cake::Framing::None,
                1 => cake::Framing::Atm,
                _ => cake::Framing::Ptm,
            },
        }
        .into(),
        16 => ack_compaction::Config {}.into(),
        _ => wred::Config {
            max_probability: share(input),
            weight: share(input),
            gentle: one,
            ecn: other,
            ..wred::Config::default()
        }
        .into(),
    }
}

fn limit(input: &mut ByteReader<'_>) -> Limit {
    match input.below(3) {
        0 => Limit::Packets(input.below(20) as u32),
        1 => Limit::Bytes(u64::from(input.word()) % 20_000),
        _ => Limit::Unlimited,
    }
}

fn speed(input: &mut ByteReader<'_>) -> rate::Config {
    let bits = Rate::from_bits_per_sec(100_000 + 1000 * u64::from(input.word()));
    match input.below(6) {
        0 => rate::Config::Unlimited,
        1 => rate::read("mahimahi", "1\n3\n3\n7\n", End::Loop).expect("a trace"),
        2 => rate::Kind::Dama(dama::Config {
            rate: bits,
            carrier_rate: None,
            frame: Duration::from_millis(1 + input.below(30) as u64),
            request: micros(input),
            hold: micros(input),
            contention_rate: None,
        })
        .into(),
        _ => bits.into(),
    }
}

fn losses(input: &mut ByteReader<'_>) -> error::Config {
    match input.below(6) {
        0 => per::Config { p: share(input) }.into(),
        1 => ber::Config { ber: 1e-4 * share(input), ..ber::Config::default() }.into(),
        2 => bursts::Config { loss: 0.5 * share(input), burst: 3.0 }.into(),
        3 => {
            let mtu = 68 + u64::from(input.word()) % 1500;
            mtu::Config { mtu, fragments: input.one_in(2), p: share(input) }.into()
        }
        _ => error::Config::NONE,
    }
}

fn delay(input: &mut ByteReader<'_>, now: Instant) -> Delay {
    let (base, more) = (micros(input), micros(input));
    match input.below(5) {
        0 => Normal { base, sigma: more }.into(),
        1 => Uniform { base, jitter: more }.into(),
        2 => Ramp::new((now, base), (now + micros(input), more)).into(),
        _ => Delay::fixed(base),
    }
}

fn code(input: &mut ByteReader<'_>) -> Option<fec::Config> {
    match input.below(5) {
        0 => {
            let k = 1 + input.below(8) as u64;
            let (n, interleave) = (k + input.below(4) as u64, 1 + input.below(3) as u64);
            let fill_time = micros(input).max(Duration::from_nanos(1));
            Some(block::Config { n, k, interleave, fill_time, in_order: input.one_in(2) }.into())
        }
        1 => Some(repeat::Config { times: 1 + input.below(3) as u64 }.into()),
        2 => Some(code_rate::Config { rate: 0.1 + 0.9 * share(input), residual: None }.into()),
        _ => None,
    }
}

fn repeats(input: &mut ByteReader<'_>) -> Option<arq::Config> {
    input.one_in(3).then(|| arq::Config {
        window: 1 + input.below(12) as u32,
        retries: input.below(4) as u32,
        in_order: input.one_in(2),
        guard: micros(input),
        feedback: if input.one_in(2) { arq::Feedback::Ideal } else { arq::Feedback::After(micros(input)) },
    })
}

/// A course such as that of satellites or weather: changes at times that the input chooses.
#[derive(Debug)]
struct Script(VecDeque<(Instant, Change)>);

impl Course for Script {
    fn next(&self) -> Instant {
        self.0.front().map_or(Instant::MAX, |c| c.0)
    }
    fn take(&mut self) -> Change {
        self.0.pop_front().expect("not called after the last").1
    }
}

fn script(input: &mut ByteReader<'_>) -> Script {
    let mut at = Instant::ZERO;
    let changes = (0..input.below(12)).map(|_| {
        if input.one_in(2) {
            at += micros(input);
        }
        (at, change(input, at))
    });
    Script(changes.collect())
}

fn change(input: &mut ByteReader<'_>, now: Instant) -> Change {
    match input.below(8) {
        0 => Change::Delay(delay(input, now)),
        1 => Change::Error(losses(input)),
        2 => Change::Limit(limit(input)),
        3 => Change::Rate(speed(input)),
        4 => Change::Up(input.one_in(2)),
        5 => Change::Fade(share(input)),
        6 => Change::Visible(input.one_in(2)),
        _ => Change::Handover(Handover {
            from: Some(1),
            to: input.one_in(2).then_some(2),
            before: Duration::ZERO,
            after: micros(input),
        }),
    }
}

/// A link under test, and what is known of its packets.
struct Bench {
    link: Link<Pkt>,
    /// Of each packet, whether its fate is known.
    known: Vec<bool>,
    delivered: u64,
    lost: [u64; DropReason::COUNT],
    marked: u64,
}

impl Bench {
    fn settle(known: &mut [bool], p: &Pkt) {
        let known = &mut known[p.id as usize];
        assert!(!*known, "packet {} has two fates", p.id);
        *known = true;
    }
    /// Does something that may lose packets.
    fn act<T>(&mut self, act: impl FnOnce(&mut Link<Pkt>, &mut dyn FnMut(Pkt, DropReason)) -> T) -> T {
        let Self { link, known, lost, .. } = self;
        act(link, &mut |p, why| {
            Self::settle(known, &p);
            lost[why as usize] += 1;
        })
    }
    fn serve(&mut self, now: Instant) {
        self.act(|link, lost| link.serve(now, &mut |p, why| lost(p, why)));
    }
    fn deliver(&mut self, now: Instant) -> bool {
        let Some(p) = self.link.deliver(now) else { return false };
        Self::settle(&mut self.known, &p);
        self.delivered += 1;
        self.marked += u64::from(p.ce);
        true
    }
    fn change(&mut self, now: Instant, change: &Change) {
        self.serve(now);
        self.act(|link, lost| change.apply(now, link, &mut |p, why| lost(p, why)));
    }
    fn offer(&mut self, now: Instant, p: Pkt) {
        self.known.push(false);
        self.act(|link, lost| link.offer(now, p, &mut |p, why| lost(p, why)));
    }
    fn audit(&self, now: Instant) {
        let total = self.link.counters().total();
        assert_eq!(
            (total.offered, total.delivered, total.drops),
            (self.known.len() as u64, self.delivered, self.lost)
        );
        let held = u64::from(self.link.queue_len()) + self.link.in_flight() as u64;
        assert_eq!(total.offered, total.delivered + total.lost() + held);
        assert!(self.marked <= total.marked, "{} of {}", self.marked, total.marked);
        assert!(self.link.busy_time(now) <= now - Instant::ZERO);
    }
    fn next(&self) -> Instant {
        let service = self.link.next_service().unwrap_or(Instant::MAX);
        service.min(self.link.next_delivery().unwrap_or(Instant::MAX))
    }
    /// Does what is due next.
    fn step(&mut self, now: Instant) {
        if self.link.next_service().is_some_and(|at| at <= now) {
            self.serve(now);
        } else {
            self.deliver(now);
        }
    }
}

fn packet(input: &mut ByteReader<'_>, id: u32) -> Pkt {
    let size = u32::from(input.word()) % 1501;
    let bits = input.byte();
    let ack = (bits & 8 != 0).then(|| Acknowledgement {
        connection: u16::from(bits >> 7),
        number: input.byte().into(),
        ecn: bits & 0x40,
        stamp: (bits & 16 != 0).then_some(id),
        tells_more: bits & 32 != 0,
    });
    let size = if ack.is_some() { size % 60 } else { size };
    Pkt {
        id,
        size,
        flow: u32::from(bits >> 6),
        low: bits & 1 != 0,
        ect: bits & 2 != 0,
        l4s: bits & 4 != 0,
        dscp: [0, 18, 46, 8][usize::from(bits >> 4 & 3)],
        ce: false,
        ack,
    }
}

/// Builds the link that `data` spells, and runs the operations that follow.
///
/// # Panics
/// If a packet has two fates or none, or the counters disagree.
pub(crate) fn link_ops(data: &[u8]) {
    let input = &mut ByteReader(data);
    let queue = QueueConfig {
        discipline: discipline(input),
        limit: limit(input),
        count_in_service: input.one_in(4),
        ns2_limit: input.one_in(4),
    };
    let config = LinkConfig {
        rate: speed(input),
        queue,
        delay: delay(input, Instant::ZERO),
        allow_reorder: input.one_in(3),
        error: losses(input),
        drop_inflight: input.one_in(2),
        spares_acks: false,
        two_paths: false,
        fec: code(input),
        arq: repeats(input),
    };
    let refused = config.validate().map_err(|e| e.to_string()).err();
    let refused = refused.or(queue.validate(1500).map_err(|e| e.to_string()).err());
    let refused = refused.or(config.error.validate().map_err(|e| e.to_string()).err());
    if let Some(why) = refused {
        assert!(!why.is_empty() && !why.contains('\n'), "{why:?}");
        return;
    }
    let moves = input.one_in(2);
    let (mut courses, mut events) = (Vec::new(), Vec::new());
    if moves {
        let change = change(input, Instant::ZERO);
        events.push(Due { at: Instant::ZERO + micros(input), link: 0, change });
        for _ in 0..2 {
            let course: Box<dyn Course> = Box::new(script(input));
            courses.push((0, course));
        }
    }
    let mut agenda = Agenda::new(events, courses);
    // Departures are known in advance only where nothing changes.
    let unchanging = !moves && input.one_in(2);
    let build = if unchanging { Link::unchanging } else { Link::new };
    let link = build(&config, Streams::named(1, "links.fuzz"));
    let mut bench = Bench { link, known: Vec::new(), delivered: 0, lost: Default::default(), marked: 0 };
    let mut now = Instant::ZERO;
    while !input.is_empty() {
        let until = if input.one_in(2) { now + micros(input) } else { now };
        // A late driver leaves out what is due, but not what changes.
        let late = input.one_in(4);
        loop {
            let due = if late { Instant::MAX } else { bench.next() };
            let at = due.min(agenda.next());
            if at > until || at == Instant::MAX {
                break;
            }
            now = now.max(at);
            if due <= agenda.next() {
                bench.step(now);
            } else if let Some((_, change)) = agenda.take(now) {
                bench.change(now, &change);
            }
        }
        now = until;
        match input.below(8) {
            0 => bench.serve(now),
            1 => drop(bench.deliver(now)),
            2 if moves => {
                let change = change(input, now);
                bench.change(now, &change);
            }
            _ => {
                let p = packet(input, bench.known.len() as u32);
                bench.offer(now, p);
            }
        }
        if unchanging {
            bench.serve(now);
        }
        bench.audit(now);
    }
    // Whatever is left arrives or is lost once the link is up and everything has changed.
    while let Some((_, change)) = agenda.take(Instant::from_nanos(u64::MAX - 1)) {
        bench.change(now, &change);
    }
    if moves {
        bench.change(now, &Change::Up(true));
        bench.change(now, &Change::Visible(true));
    }
    for steps in 0.. {
        let next = bench.next();
        if next == Instant::MAX {
            break;
        }
        assert!(steps < 100_000, "the link does not come to rest");
        now = now.max(next);
        bench.step(now);
    }
    // A link that knows its departures in advance counts them when it is served.
    bench.serve(now);
    bench.audit(now);
    assert!(bench.known.iter().all(|known| *known), "a packet has no fate");
    assert_eq!((bench.link.queue_len(), bench.link.queue_bytes(), bench.link.in_flight()), (0, 0, 0));
}

//! Active queue management against its definitions, written down naively, under random operations: one list in the order
//! of arrival, every decision by a scan, updates one by one. And invariants of every discipline behind a link.

use proptest::prelude::*;
use skyhaul_base::{Duration, Instant, Rate, Rng};
use skyhaul_path::queue::{
    Kind, Moment, cake, codel, dual_pi2, fq_codel, gtnets, pie, plain, pushout, red, threshold, two_band,
    wred,
};
use skyhaul_path::testing::Pkt;
use skyhaul_path::{Discipline, DropReason, Limit, Link, LinkConfig, Queue, QueueConfig, Streams};
use std::collections::VecDeque;

/// A waiting packet: since when it waits, and whether it was marked in place of another.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    p: Pkt,
    since: f64,
    hit: bool,
}

/// RFC 8289 §5 word by word, in seconds.
#[derive(Clone, Debug, Default)]
struct Codel {
    first_above: f64,
    drop_next: f64,
    count: u32,
    last_count: u32,
    dropping: bool,
}

/// RFC 8033, Appendix A.
#[derive(Clone, Debug, Default)]
struct Pie {
    p: f64,
    delay: f64,
    old: f64,
    burst: f64,
    updates: u32,
}

#[derive(Clone, Debug, Default)]
struct Red {
    average: f64,
    count: i32,
    empty_since: f64,
}

struct Naive {
    config: QueueConfig,
    rng: Rng,
    /// One list per flow for FQ-CoDel, otherwise only the first.
    lists: Vec<Vec<Waiting>>,
    codel: Vec<Codel>,
    credits: Vec<i64>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    pie: Pie,
    red: Red,
    largest: u32,
    lost: Vec<(u32, DropReason)>,
    marks: u32,
}

const FLOWS: usize = 5;
/// 1000 bytes per millisecond.
const RATE: Rate = Rate::from_bits_per_sec(8_000_000);

impl Naive {
    fn new(config: QueueConfig) -> Self {
        Self {
            config,
            rng: Rng::stream(3, "queue"),
            lists: vec![Vec::new(); FLOWS],
            codel: vec![Codel::default(); FLOWS],
            credits: vec![0; FLOWS],
            new: VecDeque::new(),
            old: VecDeque::new(),
            pie: Pie::default(),
            red: Red { count: -1, ..Red::default() },
            largest: 0,
            lost: Vec::new(),
            marks: 0,
        }
    }
    fn len(&self) -> usize {
        self.lists.iter().map(Vec::len).sum()
    }
    fn bytes(&self) -> u64 {
        self.lists.iter().flatten().map(|w| u64::from(w.p.size)).sum()
    }
    fn class_aware(&self) -> bool {
        match self.config.discipline {
            Discipline::Codel(c) => c.class_aware,
            Discipline::FqCodel(c) => c.class_aware,
            Discipline::Pie(c) => c.class_aware,
            Discipline::Red(c) => c.class_aware,
            _ => false,
        }
    }
    fn is_fair(&self) -> bool {
        matches!(self.config.discipline, Discipline::FqCodel(_))
    }
    fn lose(&mut self, p: Pkt, why: DropReason) {
        self.lost.push((p.id, why));
    }

    /// Signals congestion to `p`. Returns whether `p` was kept, and whether a packet was marked.
    fn signal(&mut self, list: usize, p: &mut Pkt, may_mark: bool) -> (bool, bool) {
        if self.class_aware() && !p.low {
            let fresh = self.lists[list].iter().position(|w| w.p.low && !w.hit);
            let any = self.lists[list].iter().position(|w| w.p.low);
            match (fresh, any) {
                (Some(i), _) if may_mark && self.lists[list][i].p.ect => {
                    let w = &mut self.lists[list][i];
                    (w.p.ce, w.hit) = (true, true);
                    self.marks += 1;
                    return (true, true);
                }
                (Some(i), _) => {
                    let victim = self.lists[list].remove(i).p;
                    self.lose(victim, DropReason::Aqm);
                    return (true, false);
                }
                (None, Some(i)) if !(may_mark && p.ect) => {
                    let victim = self.lists[list].remove(i).p;
                    self.lose(victim, DropReason::Aqm);
                    return (true, false);
                }
                _ => {}
            }
        }
        if may_mark && p.ect {
            p.ce = true;
            self.marks += 1;
            return (true, true);
        }
        self.lose(*p, DropReason::Aqm);
        (false, false)
    }

    fn fits(&self, size: u32, high_only: bool) -> bool {
        let counted = self.lists.iter().flatten().filter(|w| !high_only || !w.p.low);
        let (packets, bytes) = counted.fold((0, 0), |(n, b), w| (n + 1, b + u64::from(w.p.size)));
        match self.config.limit {
            Limit::Unlimited => true,
            Limit::Packets(n) => packets < n,
            Limit::Bytes(n) => bytes + u64::from(size) <= n,
        }
    }

    fn update_pie(&mut self, c: &pie::Config, now: f64) {
        let t = c.update.as_secs_f64();
        while f64::from(self.pie.updates + 1) * t <= now + 1e-12 {
            let s = &mut self.pie;
            s.updates += 1;
            let target = c.target.as_secs_f64();
            let mut p = c.alpha * (s.delay - target) + c.beta * (s.delay - s.old);
            let bounds =
                [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (0.1, 2.0)];
            p /= bounds.iter().find(|b| s.p < b.0).map_or(1.0, |b| b.1);
            if s.p >= 0.1 && p > 0.02 {
                p = 0.02;
            }
            s.p += p;
            if s.delay < target / 2.0 - 1e-12 && s.old < target / 2.0 - 1e-12 {
                s.p *= 0.98;
            }
            s.p = s.p.clamp(0.0, 1.0);
            s.burst = (s.burst - t).max(0.0);
            s.old = s.delay;
        }
    }

    /// A packet arrives, at a free transmitter (past the empty queue) or not. True if it was admitted.
    fn enqueue(&mut self, now: f64, mut p: Pkt, free: bool) -> Option<Pkt> {
        let list = if self.is_fair() { p.flow as usize } else { 0 };
        let (waiting, backlog) = (self.len(), self.bytes());
        match self.config.discipline {
            Discipline::Red(c) => {
                let chance = self.rng.unit();
                let r = &mut self.red;
                if waiting == 0 {
                    r.average *= (1.0 - c.weight).powf((now - r.empty_since) * 1000.0);
                    r.empty_since = now;
                } else {
                    r.average = (1.0 - c.weight) * r.average + c.weight * waiting as f64;
                }
                let room = match self.config.limit {
                    Limit::Unlimited => None,
                    Limit::Packets(n) => Some(f64::from(n)),
                    Limit::Bytes(n) => Some(n as f64 / 1000.0),
                };
                let min = c.min_threshold.map_or(room.map_or(5.0, |n| n / 6.0), |n| n as f64);
                let max = c.max_threshold.map_or(room.map_or(15.0, |n| n / 2.0), |n| n as f64);
                let (hit, mark) = if r.average < min {
                    r.count = -1;
                    (false, false)
                } else if r.average < max || c.gentle && r.average < 2.0 * max {
                    r.count += 1;
                    let pb = if r.average < max {
                        c.max_probability * (r.average - min) / (max - min)
                    } else {
                        c.max_probability + (1.0 - c.max_probability) * (r.average - max) / max
                    };
                    let left = 1.0 - f64::from(r.count) * pb;
                    (left <= 0.0 || chance < pb / left, r.average < max)
                } else {
                    (true, false)
                };
                if hit {
                    r.count = 0;
                    if !self.signal(0, &mut p, c.ecn && mark).0 {
                        return None;
                    }
                }
            }
            Discipline::Pie(c) => {
                self.update_pie(&c, now);
                let chance = self.rng.unit();
                let (s, target) = (&self.pie, c.target.as_secs_f64());
                let spared = s.old < target / 2.0 - 1e-12 && s.p < 0.2 || backlog <= 2 * c.packet_size;
                if s.burst < 1e-12 && !spared && chance < s.p {
                    let may_mark = c.ecn && s.p < c.ecn_threshold;
                    if !self.signal(0, &mut p, may_mark).0 {
                        return None;
                    }
                }
            }
            _ => {}
        }
        self.largest = self.largest.max(p.size);
        if self.is_fair() {
            return self.enqueue_fairly(now, p, list, free);
        }
        if !free {
            let mut fits = self.fits(p.size, false);
            if !fits && self.class_aware() && !p.low && self.fits(p.size, true) {
                while !self.fits(p.size, false) {
                    let i = self.lists[0].iter().rposition(|w| w.p.low).expect("one is in the way");
                    let victim = self.lists[0].remove(i).p;
                    self.lose(victim, DropReason::PushedOut);
                }
                fits = true;
            }
            if !fits {
                self.red.count = 0;
                self.lose(p, DropReason::Full);
                return None;
            }
            self.lists[0].push(Waiting { p, since: now, hit: false });
        }
        match self.config.discipline {
            Discipline::Pie(c) => {
                let half = c.target.as_secs_f64() / 2.0 - 1e-12;
                if free {
                    self.pie.delay = 0.0;
                }
                if self.pie.p == 0.0 && self.pie.delay < half && self.pie.old < half {
                    self.pie.burst = c.burst.as_secs_f64();
                }
            }
            Discipline::Codel(_) if free => {
                self.codel[0].first_above = 0.0;
                self.codel[0].dropping = false;
            }
            _ => {}
        }
        Some(p)
    }

    fn enqueue_fairly(&mut self, now: f64, p: Pkt, list: usize, free: bool) -> Option<Pkt> {
        let Discipline::FqCodel(c) = self.config.discipline else { unreachable!() };
        let fits = free || self.fits(p.size, false);
        self.lists[list].push(Waiting { p, since: now, hit: false });
        if !self.new.contains(&list) && !self.old.contains(&list) {
            self.new.push_back(list);
            self.credits[list] = c.quantum as i64;
        }
        let over = |q: &Self| match q.config.limit {
            Limit::Packets(n) => q.len() > n as usize,
            Limit::Bytes(n) => q.bytes() > n,
            Limit::Unlimited => false,
        };
        while !fits && over(self) {
            let low = c.class_aware && self.lists.iter().flatten().any(|w| w.p.low);
            let fat = |q: &Self, i: usize| -> u64 {
                q.lists[i].iter().filter(|w| !low || w.p.low).map(|w| u64::from(w.p.size)).sum()
            };
            let order: Vec<usize> = self.new.iter().chain(&self.old).copied().collect();
            let most = order.iter().map(|i| fat(self, *i)).max().unwrap();
            let fattest = order.into_iter().find(|i| fat(self, *i) == most).unwrap();
            let count = self.lists[fattest].iter().filter(|w| !low || w.p.low).count();
            for _ in 0..count.div_ceil(2).min(64) {
                let i = self.lists[fattest].iter().position(|w| !low || w.p.low).unwrap();
                let victim = self.lists[fattest].remove(i).p;
                self.lose(victim, DropReason::Full);
            }
        }
        if free {
            return self.dequeue(now);
        }
        self.lists[list].iter().any(|w| w.p.id == p.id).then_some(p)
    }

    /// RFC 8289: `dodequeue`.
    fn take(&mut self, list: usize, now: f64, law: (f64, f64)) -> Option<(Waiting, bool)> {
        if self.lists[list].is_empty() {
            self.codel[list].first_above = 0.0;
            return None;
        }
        let w = self.lists[list].remove(0);
        Some((w, self.is_ok_to_drop(list, now, w.since, law)))
    }
    fn is_ok_to_drop(&mut self, list: usize, now: f64, since: f64, (target, interval): (f64, f64)) -> bool {
        let bytes: u32 = self.lists[list].iter().map(|w| w.p.size).sum();
        let c = &mut self.codel[list];
        if now - since < target - 1e-12 || bytes <= self.largest {
            c.first_above = 0.0;
        } else if c.first_above == 0.0 {
            c.first_above = now + interval;
        } else if now >= c.first_above - 1e-12 {
            return true;
        }
        false
    }

    fn dequeue_codel(&mut self, list: usize, now: f64, law: (f64, f64), ecn: bool) -> Option<Pkt> {
        let Some((mut w, mut ok)) = self.take(list, now, law) else {
            self.codel[list].dropping = false;
            return None;
        };
        if self.codel[list].dropping && !ok {
            self.codel[list].dropping = false;
            return Some(w.p);
        }
        let entering = !self.codel[list].dropping && ok;
        // The control law works in whole nanoseconds.
        while entering || self.codel[list].dropping && now >= self.codel[list].drop_next - 1e-9 {
            let (kept, marked) = self.signal(list, &mut w.p, ecn);
            if kept && !marked {
                ok = self.is_ok_to_drop(list, now, w.since, law);
            } else if !kept {
                match self.take(list, now, law) {
                    Some(next) => (w, ok) = next,
                    None => {
                        self.codel[list].dropping = false;
                        return None;
                    }
                }
            }
            let c = &mut self.codel[list];
            if entering {
                let delta = c.count - c.last_count;
                c.dropping = true;
                c.count = if delta > 1 && now - c.drop_next < 16.0 * law.1 { delta } else { 1 };
                c.drop_next = now + law.1 / f64::from(c.count).sqrt();
                c.last_count = c.count;
                break;
            }
            c.count += 1;
            if ok {
                c.drop_next += law.1 / f64::from(c.count).sqrt();
            } else {
                c.dropping = false;
            }
            if marked {
                break;
            }
        }
        Some(w.p)
    }

    fn dequeue(&mut self, now: f64) -> Option<Pkt> {
        let law = |target: Duration, interval: Duration| (target.as_secs_f64(), interval.as_secs_f64());
        match self.config.discipline {
            Discipline::Codel(c) => self.dequeue_codel(0, now, law(c.target, c.interval), c.ecn),
            Discipline::FqCodel(c) => loop {
                let first = self.new.front().is_some();
                let list = *self.new.front().or(self.old.front())?;
                let leave = |q: &mut Self| if first { q.new.pop_front() } else { q.old.pop_front() };
                if self.credits[list] <= 0 {
                    self.credits[list] += c.quantum as i64;
                    leave(self);
                    self.old.push_back(list);
                } else if let Some(p) = self.dequeue_codel(list, now, law(c.target, c.interval), c.ecn) {
                    self.credits[list] -= i64::from(p.size);
                    return Some(p);
                } else {
                    leave(self);
                    if first {
                        self.old.push_back(list);
                    }
                }
            },
            Discipline::Pie(c) => {
                self.update_pie(&c, now);
                let w = (!self.lists[0].is_empty()).then(|| self.lists[0].remove(0))?;
                self.pie.delay =
                    if self.lists[0].is_empty() { 0.0 } else { ((now - w.since) * 1e9).round() / 1e9 };
                Some(w.p)
            }
            _ => {
                let w = (!self.lists[0].is_empty()).then(|| self.lists[0].remove(0))?;
                if self.lists[0].is_empty() {
                    self.red.empty_since = now;
                }
                Some(w.p)
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Op {
    /// Since the one before, in units of 100 µs.
    gap: u64,
    arrival: Option<(u32, u32, bool, bool)>,
}

fn op() -> impl Strategy<Value = Op> {
    let gap = prop_oneof![3 => Just(0u64), 4 => 0..30u64, 1 => 0..2000u64];
    let size = prop_oneof![3 => Just(1000u32), 1 => 40..1500u32];
    let arrival = (size, 0..FLOWS as u32, any::<bool>(), any::<bool>());
    (gap, prop_oneof![3 => arrival.prop_map(Some), 2 => Just(None)])
        .prop_map(|(gap, arrival)| Op { gap, arrival })
}

/// Short times, so that a few hundred operations reach every state.
fn discipline() -> impl Strategy<Value = Discipline> {
    let time = Duration::from_millis;
    let options = (any::<bool>(), any::<bool>());
    let law = prop_oneof![Just((time(2), time(20))), Just((time(5), time(100)))];
    let codel = (law.clone(), options).prop_map(|((target, interval), (ecn, class_aware))| {
        codel::Config { target, interval, ecn, class_aware }.into()
    });
    let fq = (law, options, 300..3000u64).prop_map(|((target, interval), (ecn, class_aware), quantum)| {
        fq_codel::Config { target, interval, ecn, class_aware, quantum, ..fq_codel::Config::default() }.into()
    });
    let pie = (options, 0..3u32, 0..2u64).prop_map(move |((ecn, class_aware), gain, burst)| {
        // A high gain, so that the probability moves.
        let gain = 10f64.powi(gain as i32);
        pie::Config {
            target: time(4),
            update: time(3),
            burst: time(30 * burst),
            alpha: 0.125 * gain,
            beta: 1.25 * gain,
            ecn,
            class_aware,
            ..pie::Config::default()
        }
        .into()
    });
    let red = (options, any::<bool>(), prop_oneof![Just(1.0), Just(0.25), Just(0.002)], any::<bool>())
        .prop_map(|((ecn, class_aware), gentle, weight, given)| {
            let (min_threshold, max_threshold) = if given { (Some(1), Some(4)) } else { (None, None) };
            let own = red::Config { ecn, class_aware, gentle, weight, ..red::Config::default() };
            red::Config { min_threshold, max_threshold, max_probability: 0.5, ..own }.into()
        });
    prop_oneof![codel, fq, pie, red]
}

fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        (1..40u32).prop_map(Limit::Packets),
        (1000..40_000u64).prop_map(Limit::Bytes),
        Just(Limit::Unlimited)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn disciplines_equal_their_definition(
        discipline in discipline(),
        limit in limit(),
        ops in proptest::collection::vec(op(), 1..400),
    ) {
        let config = QueueConfig { limit, ..QueueConfig::default() }.with(discipline);
        let mut real = Queue::new(&config);
        real.set_rate(Some(RATE));
        let mut naive = Naive::new(config);
        let mut rng = Rng::stream(3, "queue");
        let (mut nanos, mut lost, mut marks) = (0, Vec::new(), 0);
        for (id, op) in ops.into_iter().enumerate() {
            nanos += op.gap * 100_000;
            let (now, t) = (Instant::from_nanos(nanos), nanos as f64 / 1e9);
            let mut at = Moment::new(now, &mut rng);
            let on_loss = &mut |p: Pkt, why| lost.push((p.id, why));
            let (before, high_lost) = (naive.lists.clone(), naive.lost.len());
            match op.arrival {
                Some((size, flow, low, ect)) => {
                    let p = Pkt { id: id as u32, size, flow, low, ect, ..Pkt::default() };
                    // Every other arrival at an empty queue finds the transmitter idle.
                    if real.is_empty() && id % 2 == 0 {
                        prop_assert_eq!(real.pass(&mut at, p, on_loss), naive.enqueue(t, p, true));
                    } else {
                        let admitted = real.enqueue(&mut at, p, Some(1000), on_loss);
                        prop_assert_eq!(admitted, naive.enqueue(t, p, false).is_some());
                    }
                }
                None => prop_assert_eq!(real.dequeue(&mut at, on_loss), naive.dequeue(t)),
            }
            marks += u32::from(at.marked.is_some());
            prop_assert_eq!(&lost, &naive.lost);
            prop_assert_eq!(marks, naive.marks);
            prop_assert_eq!((real.len() as usize, real.bytes()), (naive.len(), naive.bytes()));
            // With classes nothing of high priority is dropped as long as low priority waits, with FQ-CoDel in its flow.
            if naive.class_aware() && lost.len() == high_lost + 1 && lost[high_lost].1 == DropReason::Aqm {
                let all: Vec<_> = before.iter().flatten().map(|w| w.p).collect();
                let victim = all.iter().find(|p| p.id == lost[high_lost].0);
                let low = |p: &Pkt| p.low && (!naive.is_fair() || Some(p.flow) == victim.map(|v| v.flow));
                let high = victim.map_or(op.arrival.is_some_and(|a| !a.2), |v| !v.low);
                prop_assert!(!high || !all.iter().any(low), "{:?}", lost[high_lost]);
            }
        }
    }
}

/// One configuration of each discipline; a new one has to be named here.
fn every_discipline() -> Vec<Discipline> {
    let (target, interval) = (Duration::from_millis(5), Duration::from_millis(100));
    let codel = codel::Config { target, interval, ..codel::Config::default() };
    let fq_codel = fq_codel::Config { target, interval, ..fq_codel::Config::default() };
    let all: Vec<Discipline> = Kind::ALL
        .iter()
        .filter_map(|kind| match kind {
            Kind::Cake => Some(cake::Config::default().into()),
            Kind::Codel => Some(codel.into()),
            Kind::FqCodel => Some(fq_codel.into()),
            Kind::DualPi2 => Some(dual_pi2::Config::default().into()),
            Kind::Pie => Some(pie::Config::default().into()),
            Kind::Red => Some(red::Config::default().into()),
            Kind::Wred => Some(wred::Config::default().into()),
            Kind::TwoBand => Some(two_band::Config { low_rate: 0.3, ..two_band::Config::default() }.into()),
            Kind::DropTail => Some(Discipline::DROP_TAIL),
            Kind::StrictPushout => Some(pushout::Strict::default().into()),
            Kind::FifoPushout => Some(pushout::Fifo::default().into()),
            Kind::Threshold => Some(threshold::Config { low_below: 10 }.into()),
            Kind::Gtnets => Some(gtnets::Config {}.into()),
            Kind::Plain => Some(plain::Config {}.into()),
            // They thin acknowledgements, and these packets are none: `ack_queues.rs` tests them.
            Kind::AckCompaction | Kind::AckDecimation | Kind::AckFilter | Kind::AcksFirst => None,
        })
        .collect();
    let aware = [
        codel::Config { class_aware: true, ..codel }.into(),
        fq_codel::Config { class_aware: true, ..fq_codel }.into(),
        pie::Config { class_aware: true, ..pie::Config::default() }.into(),
        red::Config { class_aware: true, ..red::Config::default() }.into(),
    ];
    all.into_iter().chain(aware).collect()
}

/// Counts of packets.
struct Balance {
    marked: u64,
    /// Dropped by the discipline.
    dropped: u64,
    /// Delivered with a mark.
    through: u64,
}

/// Offers 1.3 times what the link can carry, with jumps of the clock, and checks the balance at each step.
fn conserves(discipline: Discipline, ect: bool, limit: u32) -> Balance {
    let queue = QueueConfig::packets(limit).with(discipline);
    let config = LinkConfig { rate: RATE.into(), queue, ..LinkConfig::default() };
    let mut link = Link::new(&config, Streams::named(1, "links.test"));
    let mut arrivals = Rng::stream(1, "arrivals");
    let (mut t, mut delivered, mut ce) = (0, 0, 0);
    for id in 0..20_000u32 {
        t += if id % 5000 == 4999 { 300_000_000 } else { arrivals.below(2 * 770_000) };
        let now = Instant::from_nanos(t);
        let mut lost = 0;
        let on_loss = &mut |_: Pkt, _: DropReason| lost += 1;
        while let Some(due) = link.next_service().filter(|due| *due <= now) {
            link.serve(due, on_loss);
        }
        while let Some(p) = link.deliver(now) {
            delivered += 1;
            ce += u64::from(p.ce);
        }
        let low = arrivals.below(4) == 0;
        let p = Pkt { id, size: 1000, flow: id % 7, low, ect, ..Pkt::default() };
        link.offer(now, p, on_loss);
        let total = link.counters().total();
        let waiting = u64::from(link.queue_len()) + link.in_flight() as u64;
        assert_eq!(total.offered, total.delivered + total.lost() + waiting, "{discipline:?}");
        assert_eq!(link.queue_bytes(), u64::from(link.queue_len()) * 1000);
        assert!(link.queue_len() <= limit);
    }
    let end = Instant::from_nanos(t + 1_000_000_000);
    while let Some(due) = link.next_service() {
        link.serve(due, &mut |_, _| ());
    }
    while let Some(p) = link.deliver(end) {
        delivered += 1;
        ce += u64::from(p.ce);
    }
    let total = link.counters().total();
    assert_eq!((total.offered, total.delivered), (20_000, delivered), "{discipline:?}");
    assert_eq!(total.delivered + total.lost(), 20_000, "{discipline:?}");
    // Marked packets may have been lost later.
    assert!(ce <= total.marked, "{discipline:?}");
    Balance { marked: total.marked, dropped: total.dropped(DropReason::Aqm), through: ce }
}

#[test]
fn nothing_appears_and_nothing_vanishes() {
    let managed = |d: &Discipline| {
        use Kind::{Cake, Codel, DualPi2, FqCodel, Pie, Red, Wred};
        matches!(d.kind(), Cake | Codel | DualPi2 | FqCodel | Pie | Red | Wred)
    };
    for d in every_discipline() {
        let b = conserves(d, false, 200);
        assert_eq!((b.marked, b.dropped > 0), (0, managed(&d)), "{d:?}");
        assert_eq!(conserves(d, true, 200).marked > 0, managed(&d), "{d:?}");
    }
}

/// A queue so short that it is full while the average is still where RED marks: packets that are marked and then refused because
/// the queue is full must not count, or a receiver would echo fewer marks than the link reports.
#[test]
fn a_mark_counts_only_if_its_packet_is_admitted() {
    let thresholds =
        red::Config { min_threshold: Some(3), max_threshold: Some(30), ..red::Config::default() };
    let red: Discipline = red::Config { weight: 0.2, ..thresholds }.into();
    let b = conserves(red, true, 12);
    assert!(b.marked > 100 && b.dropped == 0, "{} marks", b.marked);
    assert_eq!(b.marked, b.through);
}

#[test]
fn the_streams_of_a_link_do_not_depend_on_its_queue() {
    // Losses and jitter are the same with a queue that draws as with one that does not.
    let arrivals = |queue: QueueConfig| {
        let delay = skyhaul_path::delay::uniform::Uniform {
            base: Duration::from_millis(5),
            jitter: Duration::from_millis(50),
        };
        let error = skyhaul_path::error::per::Config { p: 0.1 }.into();
        let config = LinkConfig {
            rate: RATE.into(),
            queue,
            delay: delay.into(),
            error,
            allow_reorder: true,
            ..LinkConfig::default()
        };
        let mut link = Link::new(&config, Streams::named(1, "links.test"));
        let mut delivered = Vec::new();
        for id in 0..2000u32 {
            // Slower than the link: nothing waits.
            let now = Instant::from_nanos(u64::from(id) * 2_000_000);
            link.offer(now, Pkt { id, size: 1000, ..Pkt::default() }, &mut |_, _| ());
            while let Some(t) = link.next_delivery().filter(|t| *t <= now) {
                delivered.push((t, link.deliver(t).map(|p| p.id)));
            }
        }
        delivered
    };
    let plain = arrivals(QueueConfig::packets(50));
    for d in every_discipline() {
        assert_eq!(arrivals(QueueConfig::packets(50).with(d)), plain, "{d:?}");
    }
}

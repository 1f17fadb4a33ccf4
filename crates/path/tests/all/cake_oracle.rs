//! CAKE against its description, written down naively: one list of all packets in the order of arrival, flows and tins found by scans,
//! times in plain nanoseconds.

use proptest::prelude::*;
use skyhaul_base::{Duration, Instant, Rate, Rng};
use skyhaul_path::queue::{Moment, cake};
use skyhaul_path::testing::Pkt;
use skyhaul_path::{DropReason, Queue, QueueConfig};

/// A queue of a flow in a tin. It exists from its first packet until its state has come to rest.
#[derive(Clone, Debug)]
struct Line {
    tin: usize,
    flow: u32,
    credit: i64,
    /// 0 for new, 1 for old, 2 for decaying ones.
    list: u8,
    /// Its turn within the list.
    turn: u64,
    count: u32,
    dropping: bool,
    next: u64,
    p: f64,
    p_at: u64,
}

struct Naive {
    c: cake::Config,
    limit: usize,
    link: u64,
    waiting: Vec<(u64, usize, Pkt)>,
    lines: Vec<Line>,
    turns: u64,
    clocks: [u64; 4],
    balance: [i64; 4],
    turn_of: usize,
    free: u64,
    rng: Rng,
    lost: Vec<(u32, DropReason)>,
    marks: u32,
}

/// The share of each tin: best effort, bulk, and the others in their rank.
fn parts(c: &cake::Config) -> Vec<u64> {
    match c.tins {
        cake::Tins::Besteffort => vec![1],
        cake::Tins::Diffserv3 => vec![1, 16, 4],
        cake::Tins::Diffserv4 => vec![1, 16, 2, 4],
    }
}

/// The tin of the codepoints that the test uses: CS0, LE, TOS4, CS1, AF21, CS5, EF.
fn tin(c: &cake::Config, dscp: u8) -> usize {
    let named = match dscp {
        1 | 8 => [0, 1, 1],
        4 => [0, 2, 2],
        18 => [0, 0, 2],
        40 => [0, 0, 3],
        46 => [0, 2, 3],
        _ => [0, 0, 0],
    };
    named[match c.tins {
        cake::Tins::Besteffort => 0,
        cake::Tins::Diffserv3 => 1,
        cake::Tins::Diffserv4 => 2,
    }]
}

impl Naive {
    fn rate_of(&self, tin: usize) -> u64 {
        self.c.rate.map_or(self.link, Rate::bits_per_sec) / parts(&self.c)[tin]
    }
    /// Target, interval, and the time of a full packet.
    fn times(&self, tin: usize) -> (u64, u64, u64) {
        let (rtt, full) = (self.c.rtt.as_nanos(), 1514 * 8_000_000_000 / self.rate_of(tin));
        let target = (rtt / 20).max(full * 3 / 2);
        (target, (rtt + target - rtt / 20).max(2 * target), full)
    }
    fn quantum(&self, tin: usize) -> i64 {
        if self.c.rate.is_none() { 1514 } else { (self.rate_of(tin) / 8 / 4096).clamp(300, 1514) as i64 }
    }
    fn framed(&self, size: u32) -> u64 {
        let n = (u64::from(size) + self.c.overhead).max(self.c.mpu);
        match self.c.framing {
            cake::Framing::None => n,
            cake::Framing::Atm => n.div_ceil(48) * 53,
            cake::Framing::Ptm => n + n.div_ceil(64),
        }
    }
    /// The time after `t` at which the `n`-th signal is due.
    fn spaced(&self, tin: usize, t: u64, n: u32) -> u64 {
        t + Duration::from_nanos(self.times(tin).1).mul_f64(1.0 / f64::from(n.max(1)).sqrt()).as_nanos()
    }
    fn line_of(&self, tin: usize, flow: u32) -> Option<usize> {
        self.lines.iter().position(|l| l.tin == tin && l.flow == flow)
    }
    fn is_of(w: &(u64, usize, Pkt), l: &Line) -> bool {
        (w.1, w.2.flow) == (l.tin, l.flow)
    }
    fn in_tin(&self, tin: usize) -> usize {
        self.waiting.iter().filter(|w| w.1 == tin).count()
    }

    fn enqueue(&mut self, now: u64, p: Pkt) {
        let tin = tin(&self.c, if p.low { 1 } else { p.dscp });
        if self.in_tin(tin) == 0 {
            self.clocks[tin] = self.clocks[tin].max(now);
        }
        self.turns += 1;
        let fresh = Line {
            tin,
            flow: p.flow,
            credit: 0,
            list: 2,
            turn: 0,
            count: 0,
            dropping: false,
            next: 0,
            p: 0.0,
            p_at: 0,
        };
        let at = self.line_of(tin, p.flow).unwrap_or_else(|| {
            self.lines.push(fresh);
            self.lines.len() - 1
        });
        if self.lines[at].list == 2 {
            let credit = self.quantum(tin);
            let line = &mut self.lines[at];
            (line.list, line.turn, line.credit) = (0, self.turns, credit);
        }
        self.waiting.push((now, tin, p));
    }

    /// Drops from the head of the queue with the most bytes, until the limit is kept.
    fn overflow(&mut self, now: u64, order: impl Fn(u32) -> usize) {
        while self.waiting.len() > self.limit {
            let bytes = |l: &Line| -> u64 {
                self.waiting.iter().filter(|w| Self::is_of(w, l)).map(|w| u64::from(w.2.size)).sum()
            };
            let rank = |l: &Line| (u64::MAX - bytes(l), l.tin, order(l.flow));
            let longest = (0..self.lines.len()).min_by_key(|i| rank(&self.lines[*i])).unwrap();
            let head = self.waiting.iter().position(|w| Self::is_of(w, &self.lines[longest])).unwrap();
            let (_, tin, p) = self.waiting.remove(head);
            let target = self.times(tin).0;
            let l = &mut self.lines[longest];
            if now - l.p_at > target {
                (l.p, l.p_at) = (l.p + 1.0 / 256.0, now);
            }
            (l.dropping, l.next, l.count) = (true, now, l.count.max(1));
            self.lost.push((p.id, DropReason::Full));
        }
    }

    fn choose(&mut self, now: u64) -> usize {
        let parts = parts(&self.c);
        let listed = |tin: usize| self.lines.iter().any(|l| l.tin == tin && l.list < 2);
        if self.c.rate.is_none() {
            loop {
                if self.balance[self.turn_of] >= 0 && listed(self.turn_of) {
                    return self.turn_of;
                }
                if self.balance[self.turn_of] <= 0 {
                    self.balance[self.turn_of] += 1024 / parts[self.turn_of] as i64;
                }
                self.turn_of = (self.turn_of + 1) % parts.len();
            }
        }
        let busy: Vec<_> = (0..parts.len()).filter(|t| listed(*t)).collect();
        // The one of highest rank that is due, or the earliest of them, the later one of two.
        let due = busy.iter().rev().find(|t| self.clocks[**t] <= now);
        *due.unwrap_or_else(|| busy.iter().rev().min_by_key(|t| self.clocks[**t]).unwrap())
    }

    fn dequeue(&mut self, now: u64) -> Option<Pkt> {
        let mut looks = true;
        while !self.waiting.is_empty() {
            let tin = self.choose(now);
            let ours = |l: &&Line| l.tin == tin && (l.list < 2 || looks);
            // A decaying one, then a new one, then an old one.
            let rank = |l: &Line| (if l.list == 2 { 0 } else { l.list + 1 }, l.turn);
            let first = self.lines.iter().filter(ours).min_by_key(|l| rank(l)).map(|l| l.flow).unwrap();
            let at = self.line_of(tin, first).unwrap();
            looks = false;
            if self.lines[at].credit <= 0 {
                self.turns += 1;
                let more = self.quantum(tin);
                let l = &mut self.lines[at];
                (l.credit, l.list, l.turn) = (l.credit + more, 1, self.turns);
                continue;
            }
            let Some(head) = self.waiting.iter().position(|w| Self::is_of(w, &self.lines[at])) else {
                self.rest(now, at);
                continue;
            };
            let (since, _, mut p) = self.waiting.remove(head);
            let last = !self.waiting.iter().any(|w| Self::is_of(w, &self.lines[at]));
            match self.signal(now, at, now - since, p.ect || p.l4s, last) {
                (true, _) => {
                    self.lost.push((p.id, DropReason::Aqm));
                    // The next packet of the same flow: its turn goes on.
                    continue;
                }
                (false, true) => {
                    p.ce = true;
                    self.marks += 1;
                }
                (false, false) => {}
            }
            let bytes = self.framed(p.size);
            self.lines[at].credit -= bytes as i64;
            self.balance[tin] -= bytes as i64;
            if let Some(rate) = self.c.rate {
                let step = bytes * 8_000_000_000 / self.rate_of(tin);
                let clock = &mut self.clocks[tin];
                *clock = if *clock < now { *clock + step } else { (now + step).max(*clock) };
                self.free = self.free.max(now) + bytes * 8_000_000_000 / rate.bits_per_sec();
            }
            return Some(p);
        }
        None
    }

    /// A queue is found empty.
    fn rest(&mut self, now: u64, at: usize) {
        let target = self.times(self.lines[at].tin).0;
        let l = &mut self.lines[at];
        if l.p > 0.0 && now - l.p_at > target {
            (l.p, l.p_at) = ((l.p - 1.0 / 4096.0).max(0.0), now);
        }
        l.dropping = false;
        if l.count > 0 && now >= l.next {
            l.count -= 1;
            let (tin, next, count) = (l.tin, l.next, l.count);
            self.lines[at].next = self.spaced(tin, next, count);
        }
        self.turns += 1;
        let l = &mut self.lines[at];
        if l.p > 0.0 || l.count > 0 || now < l.next {
            (l.list, l.turn) = (2, self.turns);
        } else {
            self.lines.remove(at);
        }
    }

    /// Whether a packet that has waited so long is dropped, and whether it is marked.
    fn signal(&mut self, now: u64, at: usize, waited: u64, ect: bool, last: bool) -> (bool, bool) {
        let mut l = self.lines[at].clone();
        let (target, interval, full) = self.times(l.tin);
        let draw = (self.rng.next_u64() >> 32) as f64 / 4_294_967_296.0;
        let due = l.count > 0 && now >= l.next;
        let mut behind = now > l.next;
        let long = waited > target && waited > 4 * full;
        if long && !l.dropping {
            l.next = self.spaced(l.tin, now, l.count);
        }
        if long {
            l.count = l.count.max(1);
        }
        l.dropping = long;
        if due && long {
            l.count += 1;
            l.next = self.spaced(l.tin, l.next, l.count);
            behind = now > l.next;
        } else if due {
            while l.count > 0 && now >= l.next {
                l.count -= 1;
                l.next = self.spaced(l.tin, l.next, l.count);
                behind = now > l.next;
            }
        }
        let signalled = due && long;
        let wanted = draw < l.p || signalled && !ect;
        if l.count == 0 {
            l.next = now + interval;
        } else if behind && !wanted {
            l.next = now;
        }
        self.lines[at] = l;
        let dropped = wanted && !last;
        (dropped, signalled && ect && !dropped)
    }
}

fn config() -> impl Strategy<Value = cake::Config> {
    let tins =
        prop_oneof![Just(cake::Tins::Besteffort), Just(cake::Tins::Diffserv3), Just(cake::Tins::Diffserv4)];
    let framing = prop_oneof![3 => Just(cake::Framing::None), 1 => Just(cake::Framing::Atm), 1 => Just(cake::Framing::Ptm)];
    let rate = proptest::option::of(prop_oneof![Just(4u64), Just(8), Just(40)]);
    (tins, framing, rate, prop_oneof![Just(20u64), Just(100)], 0..40u64, 0..200u64).prop_map(
        |(tins, framing, rate, rtt, overhead, mpu)| cake::Config {
            rtt: Duration::from_millis(rtt),
            rate: rate.map(|r| Rate::from_bits_per_sec(r * 1_000_000)),
            tins,
            overhead,
            mpu,
            framing,
            ..cake::Config::default()
        },
    )
}

/// 1000 bytes per millisecond.
const LINK: u64 = 8_000_000;
const DSCPS: [u8; 7] = [0, 1, 4, 8, 18, 40, 46];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn the_queue_equals_its_description(
        c in config(),
        limit in 1..60u32,
        // Time since the last operation in units of 100 us; an arrival with its size, flow, class and ECN, or a departure.
        ops in proptest::collection::vec((prop_oneof![4 => Just(0u64), 4 => 0..20u64, 1 => 0..2000u64],
            proptest::option::weighted(0.6, (prop_oneof![3 => Just(1000u32), 1 => 40..1500u32], 0..5u32, 0..7usize,
                0..3u8))), 1..600),
    ) {
        let mut real = Queue::new(&QueueConfig::packets(limit).with(c));
        real.set_rate(Some(Rate::from_bits_per_sec(LINK)));
        let mut naive = Naive {
            c, limit: limit as usize, link: LINK, waiting: Vec::new(), lines: Vec::new(), turns: 0, clocks: [0; 4],
            balance: [0; 4], turn_of: 0, free: 0, rng: Rng::stream(3, "queue"), lost: Vec::new(), marks: 0,
        };
        let (mut rng, mut nanos, mut lost, mut marks) = (Rng::stream(3, "queue"), 0, Vec::new(), 0);
        for (id, (gap, arrival)) in ops.into_iter().enumerate() {
            nanos += gap * 100_000;
            // Nothing leaves before the shaper allows it.
            let leaves = arrival.is_none() || real.is_empty() && id % 2 == 0;
            if leaves && real.not_before() > Instant::from_nanos(nanos) {
                nanos = real.not_before().as_nanos();
            }
            let mut at = Moment::new(Instant::from_nanos(nanos), &mut rng);
            let on_loss = &mut |p: Pkt, why| lost.push((p.id, why));
            match arrival {
                Some((size, flow, dscp, ecn)) => {
                    let (ect, l4s, dscp) = (ecn == 1, ecn == 2, DSCPS[dscp]);
                    let p = Pkt { id: id as u32, size, flow, dscp, low: dscp == 1, ect, l4s, ..Pkt::default() };
                    naive.enqueue(nanos, p);
                    if leaves {
                        prop_assert_eq!(real.pass(&mut at, p, on_loss), naive.dequeue(nanos));
                    } else {
                        let admitted = real.enqueue(&mut at, p, Some(1000), on_loss);
                        // Equally long queues of a tin: by their places in the hash.
                        naive.overflow(nanos, |flow| (flow.wrapping_mul(0x9e37_79b1) >> 22) as usize);
                        prop_assert_eq!(admitted, !naive.lost.contains(&(p.id, DropReason::Full)));
                    }
                }
                None => prop_assert_eq!(real.dequeue(&mut at, on_loss), naive.dequeue(nanos)),
            }
            marks += u32::from(at.marked.is_some());
            prop_assert_eq!(&lost, &naive.lost);
            prop_assert_eq!((real.len() as usize, marks), (naive.waiting.len(), naive.marks));
            // A shaper counts the parts of nanoseconds; there are none at these rates.
            prop_assert_eq!(real.not_before().as_nanos(), naive.free);
        }
        prop_assert_eq!(format!("{rng:?}"), format!("{:?}", naive.rng), "one draw per judged packet");
    }
}

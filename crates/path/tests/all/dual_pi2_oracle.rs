//! DualPI2 against the pseudocode of RFC 9332, Appendix A.2, written down naively: one list in the order of arrival, and each
//! update computed. Names are those of the pseudocode.

use proptest::prelude::*;
use skyhaul_base::{Duration, Instant, Rng};
use skyhaul_path::queue::{Moment, dual_pi2};
use skyhaul_path::testing::Pkt;
use skyhaul_path::{DropReason, Queue, QueueConfig};

struct Naive {
    c: dual_pi2::Config,
    limit: usize,
    /// When each packet came, in nanoseconds, and the packet.
    list: Vec<(u64, Pkt)>,
    p: f64,
    prevq: f64,
    /// Updates computed so far.
    updates: u64,
    recur_l: f64,
    recur_c: f64,
    credit: f64,
    lost: Vec<(u32, DropReason)>,
}

/// Whether a packet belongs in the L queue.
fn is_l(p: &Pkt) -> bool {
    p.l4s || p.ce
}

impl Naive {
    fn update(&mut self, now: u64) {
        let t = self.c.update.as_nanos();
        while (self.updates + 1) * t <= now {
            self.updates += 1;
            let at = self.updates * t;
            let delay = |l: bool| self.list.iter().find(|w| is_l(&w.1) == l).map_or(0, |w| at - w.0);
            let curq = delay(true).max(delay(false)) as f64 / 1e9;
            let step =
                self.c.alpha * (curq - self.c.target.as_secs_f64()) + self.c.beta * (curq - self.prevq);
            self.p = (self.p + step).clamp(0.0, 1.0);
            self.prevq = curq;
        }
    }
    fn recur(count: &mut f64, p: f64) -> bool {
        *count += p;
        if *count > 1.0 {
            *count -= 1.0;
            return true;
        }
        false
    }
    /// The packet as it is sent after it has waited for these nanoseconds; `None` if it is dropped.
    fn send(&mut self, waited: u64, mut p: Pkt) -> Option<Pkt> {
        let (p_c, p_cl) = (self.p * self.p, self.c.coupling * self.p);
        if is_l(&p) {
            if p_cl < 1.0 {
                let (least, range) = (self.c.min_delay.as_nanos(), self.c.range.as_nanos());
                let alone = !self.list.iter().any(|w| is_l(&w.1));
                let native = match waited {
                    _ if alone => 0.0,
                    w if w >= least + range => 1.0,
                    w if w <= least => 0.0,
                    w => ((w - least) as f64 / 1e9) / (range as f64 / 1e9),
                };
                let p_l = native.max(p_cl);
                if p_l >= 1.0 || Self::recur(&mut self.recur_l, p_l) {
                    p.ce = true;
                }
            } else if Self::recur(&mut self.recur_l, p_c) {
                self.lost.push((p.id, DropReason::Aqm));
                return None;
            } else {
                p.ce = true;
            }
        } else if Self::recur(&mut self.recur_c, p_c) {
            if !p.ect || p_cl >= 1.0 {
                self.lost.push((p.id, DropReason::Aqm));
                return None;
            }
            p.ce = true;
        }
        Some(p)
    }
    fn dequeue(&mut self, now: u64) -> Option<Pkt> {
        self.update(now);
        loop {
            let l = self.list.iter().position(|w| is_l(&w.1));
            let c = self.list.iter().position(|w| !is_l(&w.1));
            let share = self.c.classic_share;
            let next = match (l, c) {
                (Some(l), Some(c)) => {
                    let price = f64::from(self.list[c].1.size) * (1.0 - share);
                    if self.credit >= price {
                        self.credit -= price;
                        c
                    } else {
                        self.credit += f64::from(self.list[l].1.size) * share;
                        l
                    }
                }
                (l, c) => {
                    self.credit = 0.0;
                    l.or(c)?
                }
            };
            let (since, p) = self.list.remove(next);
            if let Some(p) = self.send(now - since, p) {
                return Some(p);
            }
        }
    }
}

fn config() -> impl Strategy<Value = dual_pi2::Config> {
    let gain = prop_oneof![Just(1.0), Just(10.0), Just(100.0)];
    let share = prop_oneof![Just(0.0625), Just(0.5)];
    (gain, share, prop_oneof![Just(2.0), Just(1.0)], 0..3u64).prop_map(
        |(gain, classic_share, coupling, range)| {
            let usual = dual_pi2::Config::default();
            let (target, update) = (Duration::from_millis(4), Duration::from_millis(3));
            let range = Duration::from_micros(400 * range);
            let (alpha, beta) = (usual.alpha * gain, usual.beta * gain);
            dual_pi2::Config { target, update, alpha, beta, coupling, range, classic_share, ..usual }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn the_queue_equals_the_pseudocode(
        c in config(),
        limit in 1..40u32,
        // Time since the last operation in units of 100 us; an arrival with its size and field of ECN, or a departure.
        ops in proptest::collection::vec((prop_oneof![3 => Just(0u64), 4 => 0..30u64, 1 => 0..2000u64],
            proptest::option::of((prop_oneof![3 => Just(1000u32), 1 => 40..1500u32], 0..4u8))), 1..400),
    ) {
        let mut real = Queue::new(&QueueConfig::packets(limit).with(c));
        let mut naive = Naive {
            c, limit: limit as usize, list: Vec::new(), p: 0.0, prevq: 0.0, updates: 0,
            recur_l: 0.0, recur_c: 0.0, credit: 0.0, lost: Vec::new(),
        };
        let (mut rng, mut nanos, mut lost) = (Rng::stream(3, "queue"), 0, Vec::new());
        let untouched = rng.clone();
        for (id, (gap, arrival)) in ops.into_iter().enumerate() {
            nanos += gap * 100_000;
            let mut at = Moment::new(Instant::from_nanos(nanos), &mut rng);
            let on_loss = &mut |p: Pkt, why| lost.push((p.id, why));
            match arrival {
                Some((size, ecn)) => {
                    let (ect, l4s, ce) = (ecn >= 2, ecn == 1, ecn == 3);
                    let p = Pkt { id: id as u32, size, ect, l4s, ce, ..Pkt::default() };
                    if real.is_empty() && id % 2 == 0 {
                        naive.update(nanos);
                        prop_assert_eq!(real.pass(&mut at, p, on_loss), naive.send(0, p));
                    } else {
                        naive.update(nanos);
                        let fits = naive.list.len() < naive.limit;
                        prop_assert_eq!(real.enqueue(&mut at, p, Some(1000), on_loss), fits);
                        if fits { naive.list.push((nanos, p)) } else { naive.lost.push((p.id, DropReason::Full)) }
                    }
                }
                None => prop_assert_eq!(real.dequeue(&mut at, on_loss), naive.dequeue(nanos)),
            }
            prop_assert_eq!(&lost, &naive.lost);
            prop_assert_eq!(real.len() as usize, naive.list.len());
        }
        prop_assert_eq!(format!("{rng:?}"), format!("{untouched:?}"), "nothing is drawn");
    }
}

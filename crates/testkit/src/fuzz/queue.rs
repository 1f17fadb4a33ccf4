//! Queues against their definition: one list in the order of arrival, every decision by a scan.

use super::ByteReader;
use skyhaul_base::{Instant, Rng};
use skyhaul_path::queue::{Moment, pushout, threshold};
use skyhaul_path::testing::Pkt;
use skyhaul_path::{Discipline, DropReason, Limit, Queue, QueueConfig, Victim};

struct Definition {
    config: QueueConfig,
    list: Vec<Pkt>,
}

impl Definition {
    /// True if a packet of `size` bytes fits beside the queued packets for which `count` is true, and beside the packet
    /// `in_service`, if that counts.
    fn fits(&self, size: u32, in_service: Option<u32>, count: impl Fn(&Pkt) -> bool) -> bool {
        let served = in_service.filter(|_| self.config.count_in_service);
        let others = self.list.iter().filter(|p| count(p)).map(|p| p.size);
        let all: Vec<u64> = others.chain(served).chain([size]).map(u64::from).collect();
        // A queue of ns-2 holds one packet or byte less than its limit.
        let less = u64::from(self.config.ns2_limit);
        match self.config.limit {
            Limit::Unlimited => true,
            Limit::Packets(n) => all.len() as u64 + less <= u64::from(n),
            Limit::Bytes(n) => all.iter().sum::<u64>() + less <= n,
        }
    }

    fn enqueue(&mut self, p: Pkt, in_service: Option<u32>) -> Vec<(Pkt, DropReason)> {
        let refused = vec![(p, DropReason::Full)];
        if let Discipline::Threshold(threshold::Config { low_below }) = self.config.discipline {
            let busy = usize::from(self.config.count_in_service && in_service.is_some());
            if p.low && self.list.len() + busy >= low_below as usize {
                return refused;
            }
        }
        let mut lost = Vec::new();
        if !self.fits(p.size, in_service, |_| true) {
            let victim = match self.config.discipline {
                Discipline::StrictPushout(pushout::Strict { victim })
                | Discipline::FifoPushout(pushout::Fifo { victim })
                    if !p.low =>
                {
                    victim
                }
                _ => return refused,
            };
            // Only packets of low priority are pushed out, and none of them in vain.
            if !self.fits(p.size, in_service, |q| !q.low) {
                return refused;
            }
            while !self.fits(p.size, in_service, |_| true) {
                let mut all = self.list.iter();
                let i = match victim {
                    Victim::Oldest => all.position(|q| q.low),
                    Victim::Youngest => all.rposition(|q| q.low),
                };
                let i = i.expect("without packets of low priority the new one fits");
                lost.push((self.list.remove(i), DropReason::PushedOut));
            }
        }
        self.list.push(p);
        lost
    }

    fn dequeue(&mut self) -> Option<Pkt> {
        let strict = matches!(self.config.discipline, Discipline::StrictPushout(_));
        let first = self.list.iter().position(|p| !strict || !p.low).unwrap_or(0);
        (!self.list.is_empty()).then(|| self.list.remove(first))
    }
}

/// Runs the operations that `data` encodes on a queue and on its definition.
///
/// # Panics
/// If the two differ.
pub fn queue_ops(data: &[u8]) {
    let mut input = ByteReader(data);
    let victim = if input.one_in(2) { Victim::Oldest } else { Victim::Youngest };
    let config = QueueConfig {
        discipline: match input.below(4) {
            0 => Discipline::DROP_TAIL,
            1 => pushout::Fifo { victim }.into(),
            2 => pushout::Strict { victim }.into(),
            _ => threshold::Config { low_below: input.below(5) as u64 }.into(),
        },
        limit: match input.below(3) {
            0 => Limit::Packets(input.below(9) as u32),
            1 => Limit::Bytes(u64::from(input.word()) % 6000),
            _ => Limit::Unlimited,
        },
        count_in_service: input.one_in(2),
        ns2_limit: input.one_in(2),
    };
    let mut real = Queue::new(&config);
    let mut definition = Definition { config, list: Vec::new() };
    let mut rng = Rng::stream(1, "queue");
    let mut at = Moment::new(Instant::ZERO, &mut rng);
    for id in 0.. {
        if input.is_empty() {
            break;
        }
        if input.below(5) < 2 {
            let served =
                real.dequeue(&mut at, &mut |_, _| unreachable!("these queues lose nothing when they serve"));
            assert_eq!(served, definition.dequeue(), "{config:?}");
        } else {
            let p = Pkt {
                id,
                flow: id,
                size: 1 + u32::from(input.word()) % 1500,
                low: input.one_in(2),
                ..Pkt::default()
            };
            let in_service = input.one_in(2).then(|| 1 + u32::from(input.word()) % 1500);
            let mut lost = Vec::new();
            let admitted = real.enqueue(&mut at, p, in_service, &mut |p, why| lost.push((p, why)));
            assert_eq!(lost, definition.enqueue(p, in_service), "{config:?}");
            assert_eq!(admitted, lost.iter().all(|l| l.0 != p));
        }
        assert_eq!(real.len() as usize, definition.list.len());
        assert_eq!(real.bytes(), definition.list.iter().map(|p| u64::from(p.size)).sum::<u64>());
    }
}

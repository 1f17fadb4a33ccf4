//! What one packet costs on one link, in nanoseconds.
//!
//! `cargo run --release -p skyhaul-path --example hop_cost`

use skyhaul_base::{Duration, Instant, Rate, Rng};
use skyhaul_path::delay::uniform::Uniform;
use skyhaul_path::error::{self, ber, per};
use skyhaul_path::queue::pushout;
use skyhaul_path::{Delay, DropReason, Link, LinkConfig, PacketView, QueueConfig, Streams, rate};
use std::hint::black_box;

/// 16 bytes, as a simulator would pass between links.
#[derive(Clone, Copy, Default)]
struct Parcel {
    id: u32,
    flow: u32,
    size: u32,
    low: bool,
}

impl PacketView for Parcel {
    fn size(&self) -> u32 {
        self.size
    }
    fn low_priority(&self) -> bool {
        self.low
    }
    fn flow(&self) -> u32 {
        self.flow
    }
}

/// Offers `n` packets at random gaps, with a mean of `load` times the rate of 1000 packets per second, and runs
/// all events in between.
fn run(config: &LinkConfig, load: f64, n: u32) -> (f64, u64) {
    let mut rng = Rng::stream(1, "arrivals");
    // Random service is part of the picture: regular timing flatters the branch predictor.
    let gaps: Vec<u64> = (0..4096).map(|_| (rng.unit() * 2e6 / load) as u64).collect();
    let sizes: Vec<u32> = (0..4096).map(|_| 500 + rng.below(1000) as u32).collect();
    let mut link = Link::new(config, Streams::named(1, "links.bench"));
    let mut lost = 0u64;
    let mut on_loss = |p: Parcel, _: DropReason| lost += u64::from(p.id & 1);
    let (mut now, mut delivered) = (0, 0u64);
    #[expect(clippy::disallowed_methods, reason = "measures the machine, not the model")]
    let clock = std::time::Instant::now();
    for id in 0..n {
        let i = id as usize % 4096;
        now += gaps[i];
        let t = Instant::from_nanos(now);
        while let Some(due) = link.next_service().filter(|due| *due <= t) {
            link.serve(due, &mut on_loss);
        }
        while let Some(p) = link.deliver(t) {
            delivered += u64::from(black_box(p).id & 1);
        }
        link.offer(t, Parcel { id, flow: id % 20, size: sizes[i], low: id % 4 == 0 }, &mut on_loss);
    }
    let nanos = clock.elapsed().as_nanos() as f64 / f64::from(n);
    (nanos, black_box(lost + delivered))
}

fn main() {
    let base = LinkConfig {
        rate: Rate::from_bits_per_sec(8_000_000).into(),
        queue: QueueConfig::packets(50),
        delay: Delay::fixed(Duration::from_millis(275)),
        ..LinkConfig::default()
    };
    let strict = QueueConfig::packets(50).with(pushout::Strict::default());
    let fifo = QueueConfig::packets(50).with(pushout::Fifo::default());
    let per: error::Config = per::Config { p: 1e-3 }.into();
    let ber = ber::Config { ber: 1e-7, ..ber::Config::default() }.into();
    let cases = [
        ("infinitely fast", LinkConfig { rate: rate::Config::Unlimited, ..base.clone() }, 1.0),
        ("uncongested (load 0.1)", base.clone(), 0.1),
        ("uncongested, packet errors", LinkConfig { error: per.clone(), ..base.clone() }, 0.1),
        ("uncongested, bit errors", LinkConfig { error: ber, ..base.clone() }, 0.1),
        ("half loaded", base.clone(), 0.5),
        ("saturated (load 1.2), drop-tail", base.clone(), 1.2),
        ("saturated, strict push-out", LinkConfig { queue: strict, ..base.clone() }, 1.2),
        ("saturated, FIFO push-out, errors", LinkConfig { queue: fifo, error: per, ..base.clone() }, 1.2),
        (
            "reordering jitter",
            LinkConfig {
                delay: Uniform { base: Duration::from_millis(275), jitter: Duration::from_millis(20) }.into(),
                allow_reorder: true,
                ..base
            },
            0.1,
        ),
    ];
    for (name, config, load) in cases {
        let best = (0..40).map(|_| run(&config, load, 100_000).0).fold(f64::INFINITY, f64::min);
        println!("{name:<36}{best:6.1} ns per packet");
    }
    println!("size of a link: {} bytes", size_of::<Link<Parcel>>());
}

//! A code that counts symbols and one that computes them agree, and the second recovers the bytes that were sent.

use crate::world::{Fate, Numbered, World, config};
use proptest::prelude::*;
use skyhaul_base::{Duration, Rng};
use skyhaul_repair::Config;
use skyhaul_repair::code::{Counted, Datagram, ReedSolomon};
use std::sync::Arc;

fn size(number: u32, seed: u64) -> u32 {
    1 + Rng::stream(seed, &format!("size {number}")).below(300) as u32
}

fn bytes(number: u32, seed: u64) -> Vec<u8> {
    let mut rng = Rng::stream(seed, &format!("bytes {number}"));
    (0..size(number, seed)).map(|_| rng.below(256) as u8).collect()
}

/// The fate of a frame by its direction and number alone, so that both worlds meet the same.
fn fate(seed: u64, loss: f64, reorder: f64) -> impl FnMut(usize, u64) -> Fate {
    move |side, number| {
        let mut rng = Rng::stream(seed, &format!("{side} {number}"));
        let unit = |rng: &mut Rng| rng.below(1 << 30) as f64 / f64::from(1 << 30);
        if unit(&mut rng) < loss {
            return vec![];
        }
        let late = unit(&mut rng) < reorder;
        vec![if late { rng.uniform(Duration::from_millis(20)) } else { Duration::ZERO }]
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn counted_and_computed_agree(
        seed in 0_u64..1 << 32,
        loss in 0.0..0.25_f64,
        reorder in prop_oneof![Just(0.0), 0.0..0.3_f64],
        retries in 0_u32..3,
        resequence in prop_oneof![Just(0_u64), 50_u64..500],
        block in 1_u16..60,
        low_priority in any::<bool>(),
    ) {
        let resequence = Duration::from_millis(resequence);
        let config = Config { retries, resequence, block, low_priority, share: 0.5, ..config() };
        let (n, gap, delay) = (600, Duration::from_micros(700), Duration::from_millis(30));
        let mut counted = World::<Counted<Numbered>>::new(&config, delay);
        let numbered = |number| Numbered { number, size: size(number, seed) };
        counted.stream(n, gap, numbered, &|_| (), &mut fate(seed, loss, reorder));
        let mut computed = World::<ReedSolomon>::new(&config, delay);
        let datagram = |number| Datagram { bytes: bytes(number, seed), ..Datagram::default() };
        let receive = |d: &Datagram| Arc::from(&*d.bytes);
        computed.stream(n, gap, datagram, &receive, &mut fate(seed, loss, reorder));
        for (a, b) in counted.arrivals.iter().zip(&computed.arrivals) {
            prop_assert_eq!((a.seq, a.at, a.late), (b.seq, b.at, b.late));
            prop_assert_eq!(&*b.datagram, &*bytes(b.seq as u32, seed));
        }
        prop_assert_eq!(counted.arrivals.len(), computed.arrivals.len());
        prop_assert_eq!(&counted.lost, &computed.lost);
        for end in 0..2 {
            prop_assert_eq!(counted.ends[end].counters(), computed.ends[end].counters());
        }
    }
}

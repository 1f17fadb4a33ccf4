//! A code that counts symbols and one that computes them agree, and the second recovers the bytes that were sent.

use crate::world::{Fate, Numbered, World, config};
use proptest::prelude::*;
use skyhaul_base::{Duration, Rate, Rng};
use skyhaul_repair::code::{Counted, Datagram, ReedSolomon};
use skyhaul_repair::{Config, End, ip};
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

/// A packet of IPv4 that is capable of ECN, with this number in it.
fn capable(number: u32) -> Vec<u8> {
    let mut p = vec![0x45, 2, 0, 100, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 1, 0, 2, 10, 2, 0, 2];
    let sum = ip::checksum(ip::sum(&p)).to_be_bytes();
    p[10..12].copy_from_slice(&sum);
    p.extend(number.to_be_bytes());
    p.resize(100, 7);
    p
}

/// Symbols are those of datagrams as they were sent, marks of the queue included.
#[test]
fn what_the_queue_marks_is_recovered_with_its_mark() {
    let mut world = World::<ReedSolomon>::new(&config(), Duration::from_millis(30));
    // Every third one.
    let is_marked = |number: u32| number % 3 == 0;
    let datagram = |number| Datagram {
        bytes: capable(number),
        capable: true,
        marked: is_marked(number),
        class: 2,
        ..Datagram::default()
    };
    let receive = |d: &Datagram| Arc::from(&*d.bytes);
    world.stream(3000, Duration::from_micros(900), datagram, &receive, &mut fate(3, 0.05, 0.0));
    let recovered = world.ends[1].counters().recovered;
    assert!(recovered > 80, "{recovered}");
    assert!(world.arrivals.len() > 2990);
    for arrival in &world.arrivals {
        let mut sent = capable(arrival.seq as u32);
        assert!(!is_marked(arrival.seq as u32) || ip::mark(&mut sent));
        assert_eq!(*arrival.datagram, *sent);
    }
}

/// Headers are compressed and small datagrams joined while frames are lost and overtake each other: all that arrives is as it was.
#[test]
fn compressed_datagrams_are_recovered_as_they_were() {
    let packet = |number: u32| {
        let mut p = capable(number);
        p[4..6].copy_from_slice(&(number as u16).to_be_bytes());
        p[10..12].copy_from_slice(&[0, 0]);
        let sum = ip::checksum(ip::sum(&p[..20])).to_be_bytes();
        p[10..12].copy_from_slice(&sum);
        p
    };
    for (bundle, resequence) in [(false, 800), (true, 800), (true, 0)] {
        let resequence = Duration::from_millis(resequence);
        // So slow that datagrams wait.
        let rate = Rate::from_bits_per_sec(900_000);
        let mtu = Some(1500);
        let config = Config { rate, mtu, compress: true, bundle, resequence, share: 0.4, ..config() };
        let end = |name| End::new(&config, ReedSolomon::with_headers(true), Rng::stream(1, name));
        let mut world = World::of([end("near"), end("far")], Duration::from_millis(30));
        let datagram = |number| Datagram { bytes: packet(number), ..Datagram::default() };
        let receive = |d: &Datagram| Arc::from(&*d.bytes);
        world.stream(6000, Duration::from_micros(900), datagram, &receive, &mut fate(7, 0.05, 0.05));
        let (near, far) = (world.ends[0].counters(), world.ends[1].counters());
        assert!(far.recovered > 3, "{near:?} {far:?}");
        assert!(near.carried_bytes < near.source_bytes * 9 / 10, "{near:?}");
        assert_eq!(bundle, near.joined > 1000, "{near:?}");
        let mut seen = [false; 6000];
        for arrival in &world.arrivals {
            let number = u32::from_be_bytes(arrival.datagram[20..24].try_into().expect("four bytes"));
            assert_eq!(*arrival.datagram, *packet(number));
            assert!(!std::mem::replace(&mut seen[number as usize], true), "{number} twice");
        }
        assert!(world.arrivals.len() > 5950, "{}: {far:?}", world.arrivals.len());
        assert!(resequence.is_zero() || far.unreadable == 0, "{far:?}");
    }
}

//! Any pattern of losses, reordering and duplicates: in order within the bound, none twice, none invented.

use crate::world::{Fate, Numbered, World, config};
use proptest::prelude::*;
use skyhaul_base::{Duration, Instant, Rng};
use skyhaul_repair::code::Counted;
use skyhaul_repair::{Config, Frame, Kind, Treatment};

type Counting = World<Counted<Numbered>>;

fn numbered(number: u32) -> Numbered {
    Numbered { number, size: 1500 }
}

/// A channel that loses in bursts (the model of Gilbert), reorders and duplicates.
fn channel(seed: u64, loss: f64, burst: f64, reorder: f64, twice: f64) -> impl FnMut(usize, u64) -> Fate {
    let mut rng = Rng::stream(seed, "channel");
    let mut bad = [false; 2];
    move |side, _| {
        let unit = |rng: &mut Rng| rng.below(1 << 30) as f64 / f64::from(1 << 30);
        let turn = if bad[side] { 1.0 / burst } else { loss / burst };
        if unit(&mut rng) < turn {
            bad[side] = !bad[side];
        }
        let mut fate = Vec::new();
        if !bad[side] {
            for _ in 0..1 + u32::from(unit(&mut rng) < twice) {
                let late = unit(&mut rng) < reorder;
                fate.push(if late { rng.uniform(Duration::from_millis(30)) } else { Duration::ZERO });
            }
        }
        fate
    }
}

fn drive(config: &Config, delay: Duration, n: u32, mut fate: impl FnMut(usize, u64) -> Fate) -> Counting {
    let mut world = Counting::new(config, delay);
    world.stream(n, Duration::from_micros(1300), numbered, &|_| (), &mut fate);
    world
}

fn check(world: &Counting, config: &Config, n: u32) {
    assert_eq!(world.sent.len(), n as usize, "everything is sent once");
    let mut seen = vec![false; n as usize];
    let mut next = 0;
    for arrival in &world.arrivals {
        let seq = arrival.seq as usize;
        assert!(seq < seen.len(), "{seq} was never sent");
        assert!(!core::mem::replace(&mut seen[seq], true), "{seq} came twice");
        // Only a datagram that was given up may be out of order.
        assert!(arrival.late || arrival.seq >= next, "{seq} is out of order");
        next = next.max(arrival.seq + 1);
        assert!(arrival.at >= world.sent[seq] + world.delay);
    }
    let counters = world.ends[1].counters();
    assert!(counters.longest_held <= config.resequence, "{:?}", counters.longest_held);
    assert_eq!(counters.delivered, world.arrivals.len() as u64);
    for seq in &world.lost {
        assert!(!seen[*seq as usize], "{seq} was delivered and reported as lost");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]
    #[test]
    fn in_order_within_the_bound_none_twice_none_invented(
        seed in 0_u64..1 << 32,
        loss in prop_oneof![Just(0.0), 0.0001..0.3_f64],
        burst in 1.0..30.0_f64,
        reorder in prop_oneof![Just(0.0), 0.0..0.5_f64],
        twice in prop_oneof![Just(0.0), 0.0..0.5_f64],
        (fec, low_priority) in (any::<bool>(), any::<bool>()),
        retries in 0_u32..4,
        resequence in prop_oneof![Just(0_u64), 1_u64..1500],
        delay in 1_u64..300,
        block in 1_u16..200,
    ) {
        let resequence = Duration::from_millis(resequence);
        let config = Config { fec, low_priority, retries, resequence, block, ..config() };
        let n = 1200;
        let world = drive(&config, Duration::from_millis(delay), n, channel(seed, loss, burst, reorder, twice));
        check(&world, &config, n);
    }
}

#[test]
fn without_losses_nothing_is_repaired_and_nothing_waits() {
    let world = drive(&config(), Duration::from_millis(275), 50_000, |_, _| vec![Duration::ZERO]);
    check(&world, &config(), 50_000);
    let (near, far) = (world.ends[0].counters(), world.ends[1].counters());
    assert_eq!((far.delivered, far.recovered, far.late, far.lost), (50_000, 0, 0, 0));
    assert_eq!((near.repeats, far.held), (0, Duration::ZERO));
    // Until the measurement has shown that there are no losses, some symbols are sent.
    let symbols = near.symbol_bytes as f64 / near.source_bytes as f64;
    assert!(symbols < 0.01, "{symbols}");
}

#[test]
fn repeats_alone_deliver_everything_in_order_a_round_trip_later() {
    let config = Config { fec: false, retries: 4, resequence: Duration::from_secs(4), ..config() };
    let world = drive(&config, Duration::from_millis(100), 5000, channel(3, 0.02, 1.0, 0.0, 0.0));
    check(&world, &config, 5000);
    let far = world.ends[1].counters();
    assert_eq!((far.delivered, far.late), (5000, 0));
    assert!(far.longest_held >= Duration::from_millis(190), "{:?}", far.longest_held);
    // A datagram that is lost three times takes three repeats, a round trip of 200 ms each.
    assert!(far.longest_held <= Duration::from_millis(800), "{:?}", far.longest_held);
}

#[test]
fn without_repeats_a_gap_that_cannot_be_repaired_holds_nothing_up() {
    let config = Config { fec: false, retries: 0, resequence: Duration::from_secs(4), ..config() };
    let world = drive(&config, Duration::from_millis(100), 5000, channel(3, 0.02, 1.0, 0.0, 0.0));
    check(&world, &config, 5000);
    let far = world.ends[1].counters();
    assert!(far.delivered < 5000 && far.longest_held.is_zero(), "{far:?}");
}

#[test]
fn the_last_datagrams_before_a_silence_are_repeated_too() {
    let config = Config { fec: false, ..config() };
    let mut world = Counting::new(&config, Duration::from_millis(100));
    // A first exchange, so that the round-trip time is known; then a burst of which the end is lost.
    world.stream(50, Duration::from_millis(2), numbered, &|_| (), &mut |_, _| vec![Duration::ZERO]);
    let from = world.ends[0].expected().own_number;
    let mut fate = |side: usize, number: u64| {
        if side == 0 && (from + 5..from + 10).contains(&number) { vec![] } else { vec![Duration::ZERO] }
    };
    for i in 50..60 {
        world.offer(numbered(i));
    }
    world.run(world.now + Duration::from_secs(5), &|_| (), &mut fate);
    check(&world, &config, 60);
    assert_eq!(world.arrivals.len(), 60);
}

#[test]
fn a_peer_that_is_silent_costs_little_and_no_memory() {
    let mut world = Counting::new(&config(), Duration::from_millis(100));
    world.stream(20_000, Duration::from_micros(1300), numbered, &|_| (), &mut |side, _| {
        if side == 0 { vec![] } else { vec![Duration::ZERO] }
    });
    let near = world.ends[0].counters();
    assert_eq!(near.sources, 20_000);
    assert!(near.repeats < 200, "{}", near.repeats);
    assert_eq!(world.ends[0].next_timeout(world.now), Instant::MAX, "it comes to rest");
}

#[test]
fn an_outage_beyond_repair_is_reported_as_lost() {
    let n = 80_000;
    // Far more than 65536 datagrams in a row: the receiver gives up on all of them at once.
    let world = drive(&config(), Duration::from_millis(100), n, |side, number| {
        if side == 0 && (1_000..75_000).contains(&number) { vec![] } else { vec![Duration::ZERO] }
    });
    check(&world, &config(), n);
    assert!(world.lost.len() > 1 << 16, "{}", world.lost.len());
    assert_eq!(world.lost.len() + world.arrivals.len(), n as usize);
    assert_eq!(world.ends[1].counters().lost, world.lost.len() as u64);
}

#[test]
fn symbols_alone_fill_no_memory() {
    let mut world = Counting::new(&config(), Duration::from_millis(1));
    let symbol = |number| {
        let kind = Kind::Repair { first: 60_000 * number, k: 1, parity: 1, index: 0, symbol: 100 };
        Frame { number, kind }
    };
    let taken = (0..100).filter(|&n| world.ends[1].receive(Instant::ZERO, symbol(n), false)).count();
    assert_eq!(taken, 2, "those of the first 65536 datagrams");
}

#[test]
fn repair_stays_within_its_share() {
    for share in [0.01, 0.05, 0.2] {
        let config = Config { share, ..config() };
        let world = drive(&config, Duration::from_millis(275), 20_000, channel(5, 0.15, 5.0, 0.0, 0.0));
        check(&world, &config, 20_000);
        let near = world.ends[0].counters();
        let seconds = 20_000.0 * 1.3e-3 + 25.0;
        let most = share * 10e6 / 8.0 * seconds;
        let used = (near.symbol_bytes + near.repeat_bytes) as f64;
        assert!(used <= most, "{share}: {used} of {most}");
        assert!(used > 0.2 * share * 10e6 / 8.0 * 26.0, "{share}: {used}");
    }
}

#[test]
fn what_does_not_fit_is_refused_with_the_size_that_does() {
    for fec in [false, true] {
        let config = Config { mtu: Some(1500), fec, ..config() };
        let largest = config.largest_datagram();
        let mut world = Counting::new(&config, Duration::from_millis(1));
        let mut offer = |size| {
            let how = Treatment::Repaired;
            world.ends[0].offer(Instant::ZERO, Numbered { number: 0, size }, how, &mut |_, _| {})
        };
        let refused = offer(largest + 1).expect_err("too big");
        assert_eq!((refused.size, refused.largest), (largest + 1, largest));
        assert_eq!(offer(refused.largest), Ok(()));
        let mut sizes = Vec::new();
        let now = Instant::from_secs_f64(1.0);
        for t in 0..1000 {
            let now = now + Duration::from_millis(t);
            while let Some(output) = world.ends[0].poll_frame(now, &mut |_, _| {}) {
                let skyhaul_repair::Output::Frame { size, .. } = output else { panic!("a frame") };
                sizes.push(size);
            }
        }
        assert_eq!(sizes.len(), 1 + usize::from(fec), "a datagram, and a symbol of its block");
        assert!(sizes.iter().all(|size| *size <= 1500), "{sizes:?}");
        assert_eq!(world.ends[0].counters().too_big, 1);
    }
}

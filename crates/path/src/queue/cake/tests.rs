use super::super::QueueConfig;
use super::super::testing::{Bench, Pkt, data, ms};
use super::*;
use skyhaul_base::Rng;

/// A packet of 1000 bytes.
fn of(flow: u32, id: u32) -> Pkt {
    Pkt { flow, ..data(id) }
}
fn served(q: &mut Bench, n: usize) -> Vec<(u32, u32)> {
    (0..n).map_while(|_| q.leave(ms(1))).map(|p| (p.flow, p.id)).collect()
}
fn mbit(n: u64) -> Rate {
    Rate::from_bits_per_sec(n * 1_000_000)
}
const MARKED: [u8; 4] = [0, 8, 18, 46];
/// DSCPs of best effort, bulk, video and voice.
fn in_tin(tin: usize, id: u32) -> Pkt {
    Pkt { dscp: MARKED[tin], flow: tin as u32, ..data(id) }
}

#[test]
fn flows_take_turns_and_new_ones_go_first() {
    // Quantum 1514 B, packets of 1000 B: the second is sent with what the first leaves.
    let mut q = Bench::of(Config::default());
    (0..8).for_each(|id| assert!(q.arrive(ms(0), of(1, id))));
    assert_eq!(served(&mut q, 2), [(1, 0), (1, 1)]);
    (10..13).for_each(|id| assert!(q.arrive(ms(0), of(2, id))));
    // Both have overdrawn by 486 B and are old, with 1028 B for two packets more and then 542 B for one.
    let expected = [(2, 10), (2, 11), (1, 2), (1, 3), (2, 12), (1, 4), (1, 5), (1, 6), (1, 7)];
    assert_eq!(served(&mut q, 9), expected);
    assert_eq!(q.len(), 0);
}

#[test]
fn a_flow_that_sends_less_than_its_quantum_stays_new() {
    let mut q = Bench::of(Config::default());
    (0..20).for_each(|id| assert!(q.arrive(ms(0), of(1, id))));
    assert_eq!(served(&mut q, 3), [(1, 0), (1, 1), (1, 2)]);
    // 1000 of 1514 bytes, and it is empty. FQ-CoDel would make its next packet wait for its turn.
    assert!(q.arrive(ms(0), of(2, 20)));
    assert_eq!(served(&mut q, 2), [(2, 20), (1, 3)]);
    assert!(q.arrive(ms(200), of(2, 21)));
    assert_eq!(q.leave(ms(200)).map(|p| p.id), Some(21));
}

#[test]
fn bytes_are_shared_evenly_whatever_the_sizes() {
    for overhead in [0, 50] {
        let mut q = Bench::of(Config { overhead, ..Config::default() });
        for id in 0..3000 {
            assert!(q.arrive(ms(0), Pkt { size: 1500, ..of(1, id) }));
            assert!(q.arrive(ms(0), Pkt { size: 100, ..of(2, id) }));
        }
        let (mut bytes, mut sent) = ([0u64; 2], 0);
        while sent < 300_000 {
            let p = q.leave(ms(1)).unwrap();
            bytes[p.flow as usize - 1] += u64::from(p.size) + overhead;
            sent += u64::from(p.size);
        }
        // The framing counts.
        assert!(bytes[0].abs_diff(bytes[1]) <= 2 * (1514 + 1600), "{bytes:?}");
    }
    // Without isolation the order is that of arrival.
    let mut q = Bench::of(Config { isolation: Isolation::Flowblind, ..Config::default() });
    (0..30).for_each(|id| assert!(q.arrive(ms(0), of(id % 3, id))));
    assert_eq!(served(&mut q, 30).iter().map(|p| p.1).collect::<Vec<_>>(), (0..30).collect::<Vec<_>>());
}

#[test]
fn eight_flows_of_a_set_have_queues_of_their_own() {
    let mut tin = Tin::<Pkt>::new(0, 8);
    let mut queues: Vec<_> = (0..8).map(|flow| tin.push(ms(0), of(flow, 0))).collect();
    queues.sort_unstable();
    assert_eq!(queues, (0..8).collect::<Vec<_>>());
    // The ninth shares the queue of its hash, which then is that of the ninth: the other finds its old one taken over.
    let direct = queue_of(100, 8);
    assert_eq!(tin.push(ms(0), of(100, 0)), direct);
    assert_eq!(tin.push(ms(0), of(100, 1)), direct);
    // With a thousand queues a hundred consecutive flows never share; with one way each this holds up to 610.
    let mut tin = Tin::<Pkt>::new(0, 1024);
    let mut queues: Vec<_> = (0..900).map(|flow| tin.push(ms(0), of(flow * 7919, 0))).collect();
    queues.sort_unstable();
    queues.dedup();
    // Plain hashing leaves some 1024 (1 - exp(-900/1024)) = 599 different queues to 900 random flows.
    assert!(queues.len() > 850, "{}", queues.len());
}

#[test]
fn codepoints_have_the_tins_of_the_manual() {
    let all = |tins: Tins, tin| (0..64).filter(|d| tins.of(*d) == tin).collect::<Vec<u8>>();
    assert_eq!(all(Tins::Besteffort, 0).len(), 64);
    assert_eq!(all(Tins::Diffserv3, 1), [1, 8]);
    assert_eq!(all(Tins::Diffserv3, 2), [4, 44, 46, 48, 56]);
    assert_eq!(all(Tins::Diffserv3, 0).len(), 57);
    assert_eq!(all(Tins::Diffserv4, 1), [1, 8]);
    assert_eq!(all(Tins::Diffserv4, 2), [4, 16, 18, 20, 22, 24, 26, 28, 30, 34, 36, 38]);
    assert_eq!(all(Tins::Diffserv4, 3), [32, 40, 44, 46, 48, 56]);
    // Low priority is LE, whatever the flow has.
    let low = Pkt { low: true, dscp: 46, ..data(0) };
    assert_eq!(Tins::Diffserv3.of(low.dscp()), BULK);
}

/// Packets of each tin among `n` of 1000 B that leave one per millisecond, of those that are offered without end in `offered`.
fn shares(config: Config, offered: &[usize], n: u64) -> [u32; 4] {
    let mut q = Bench::of(config);
    let mut shares = [0; 4];
    let mut id = 0;
    for t in 0..n {
        for &tin in offered {
            id += 1;
            assert!(q.arrive(ms(t), in_tin(tin, id)));
        }
        let p = q.leave(ms(t)).expect("enough wait");
        shares[p.flow as usize] += 1;
    }
    shares
}

#[test]
fn a_shaped_tin_has_its_threshold_and_best_effort_the_rest() {
    // The shaper sends a packet per millisecond. An interval without end keeps COBALT out of it.
    let rate = Some(mbit(8));
    let shaped =
        Config { rtt: Duration::from_secs(100_000), rate, tins: Tins::Diffserv4, ..Config::default() };
    let near = |share: u32, of: f64| (f64::from(share) - of * 16_000.0).abs() <= 3.0;
    let [be, bulk, video, voice] = shares(shaped, &[0, 1, 2, 3], 16_000);
    assert!(near(bulk, 1.0 / 16.0) && near(video, 0.5) && near(voice, 0.25), "{be} {bulk} {video} {voice}");
    assert!(near(be, 3.0 / 16.0), "{be} {bulk} {video} {voice}");
    let [be, bulk, ..] = shares(shaped, &[0, 1], 16_000);
    assert!(near(bulk, 1.0 / 16.0) && near(be, 15.0 / 16.0), "{be} {bulk}");
    // Alone, each has everything.
    for tin in 0..4 {
        assert_eq!(shares(shaped, &[tin], 1000)[tin], 1000);
    }
    // Three tins: the same DSCP of video is best effort.
    let three = Config { tins: Tins::Diffserv3, ..shaped };
    let [be, bulk, video, voice] = shares(three, &[0, 1, 2, 3], 16_000);
    assert!(near(bulk, 1.0 / 16.0) && near(voice, 0.25) && near(be + video, 11.0 / 16.0), "{bulk} {voice}");
    assert!(be.abs_diff(video) <= 2, "{be} {video}");
}

#[test]
fn voice_below_its_threshold_does_not_wait() {
    let config = Config { rate: Some(mbit(8)), tins: Tins::Diffserv4, ..Config::default() };
    let mut q = Bench::of(config);
    let mut id = 0;
    for t in 0..5000 {
        for tin in [0, 1, 2] {
            id += 1;
            q.arrive(ms(t), in_tin(tin, id));
        }
        // A fifth of the rate.
        if t % 5 == 0 {
            assert!(q.arrive(ms(t), Pkt { id: u32::MAX, ..in_tin(3, 0) }));
            assert_eq!(q.leave(ms(t)).map(|p| p.id), Some(u32::MAX), "{t}");
        } else {
            assert!(q.leave(ms(t)).is_some());
        }
    }
}

#[test]
fn without_a_shaper_tins_have_weights() {
    // 1024 : 64 : 512 : 256 bytes.
    let config = Config { rtt: Duration::from_secs(100_000), tins: Tins::Diffserv4, ..Config::default() };
    let all = shares(config, &[0, 1, 2, 3], 29_000);
    for (share, weight) in all.into_iter().zip([16.0, 1.0, 8.0, 4.0]) {
        assert!((f64::from(share) - weight * 1000.0).abs() <= 20.0, "{all:?}");
    }
}

#[test]
fn the_shaper_sends_at_its_rate_and_saves_nothing_up() {
    let build = |config: Config| *<Config as Model>::build::<Pkt>(&config);
    let shaped = Config { rate: Some(mbit(8)), ..Config::default() };
    let mut rng = Rng::stream(1, "queue");
    let mut pass = |q: &mut Cake<Pkt>, t| {
        let mut at = Moment::new(ms(t), &mut rng);
        assert!(q.pass(&mut at, data(0), Load::EMPTY, &mut |_, _| unreachable!()).is_some());
        q.not_before()
    };
    let mut q = build(shaped);
    assert_eq!(q.not_before(), Instant::ZERO);
    assert_eq!([pass(&mut q, 5), pass(&mut q, 6), pass(&mut q, 100)], [ms(6), ms(7), ms(101)]);
    // Framing: 1000 B and 22 B of PPPoA are 22 cells of ATM, or 1022 + 16 bytes of PTM.
    let framed = |overhead, mpu, framing| Config { overhead, mpu, framing, ..shaped }.framed(1000);
    assert_eq!(framed(22, 0, Framing::Atm), 22 * 53);
    assert_eq!(framed(22, 0, Framing::Ptm), 1022 + 16);
    assert_eq!([framed(22, 1100, Framing::None), framed(22, 0, Framing::None)], [1100, 1022]);
    let mut q = build(Config { overhead: 22, framing: Framing::Atm, ..shaped });
    assert_eq!(pass(&mut q, 10), ms(10) + Duration::from_micros(1166));
    // Without a rate there is no shaper.
    let mut q = build(Config::default());
    assert_eq!(pass(&mut q, 10), Instant::ZERO);
}

#[test]
fn the_target_is_never_less_than_one_and_a_half_packets() {
    let (ms, us) = (Duration::from_millis, Duration::from_micros);
    let law = |rtt, rate: Option<u64>| {
        let limits = Config { rtt, ..Config::default() }.limits(rate.map(Rate::from_bits_per_sec));
        (limits.law.target, limits.law.interval, limits.full_packet)
    };
    assert_eq!(law(ms(100), None), (ms(5), ms(100), ms(0)));
    assert_eq!(law(ms(560), Some(10_000_000)), (ms(28), ms(560), Duration::from_nanos(1_211_200)));
    // 12.112 ms per packet: the interval grows by as much as the target.
    assert_eq!(law(ms(100), Some(1_000_000)), (us(18_168), us(113_168), us(12_112)));
    // 189.25 ms per packet: the interval is twice the target.
    assert_eq!(law(ms(100), Some(64_000)), (us(283_875), us(567_750), us(189_250)));
    // Of each tin by its threshold; of the link where there is no shaper.
    let tuned = |rate: Option<u64>, link: u64| {
        let rate = rate.map(Rate::from_bits_per_sec);
        let mut q = *<Config as Model>::build::<Pkt>(&Config { rate, ..Config::default() });
        q.set_rate(Some(Rate::from_bits_per_sec(link)));
        q.tins.iter().map(|t| (t.limits.law.target, t.quantum)).collect::<Vec<_>>()
    };
    let bulk = us(18_168);
    assert_eq!(tuned(Some(16_000_000), 100_000_000), [(ms(5), 488), (bulk, 300), (ms(5), 300)]);
    assert_eq!(tuned(None, 16_000_000), [(ms(5), 1514), (bulk, 1514), (ms(5), 1514)]);
    assert_eq!(tuned(Some(1_000_000_000), 1_000_000_000)[0].1, 1514);
}

#[test]
fn an_overflow_drops_the_head_of_the_longest_queue() {
    let mut q = Bench::new(QueueConfig::packets(20).with(Config::default()));
    (0..14).for_each(|id| assert!(q.arrive(ms(0), of(1, id))));
    (20..26).for_each(|id| assert!(q.arrive(ms(0), Pkt { dscp: 46, ..of(2, id) })));
    assert!(q.arrive(ms(0), of(2, 26)) && q.arrive(ms(0), of(3, 30)));
    assert_eq!(q.lost, [(0, DropReason::Full), (1, DropReason::Full)]);
    assert_eq!(q.len(), 20);
    // Who fills a queue without room loses what it sends.
    let mut q = Bench::new(QueueConfig::packets(0).with(Config::default()));
    assert!(!q.arrive(ms(0), of(1, 0)));
    assert_eq!((q.lost.len(), q.len()), (1, 0));
}

#[test]
fn blue_stops_traffic_that_does_not_respond() {
    // Three packets per millisecond for one that leaves. CoDel's law alone would drop at most a few of them per interval.
    let mut q = Bench::new(QueueConfig::packets(100).with(Config::default()));
    let (mut full, mut aqm) = ([0; 2], [0; 2]);
    for t in 0..4000u32 {
        for k in 0..3 {
            q.arrive(ms(t.into()), of(1, 3 * t + k));
        }
        assert!(q.leave(ms(t.into())).is_some());
        for (_, why) in q.lost.drain(..) {
            let counts = if why == DropReason::Aqm { &mut aqm } else { &mut full };
            counts[usize::from(t >= 2000)] += 1;
        }
    }
    // Up by 1/256 with the first overflow that is more than 5 ms after the one before it: at 2/3, when the queue does not overflow any
    // more, after 171 times 6 ms. Until then 1 per millisecond overflows on average, less the 100 that wait and what CoDel drops.
    assert!(full[0] > 500 && full[0] < 1000 && aqm[0] > 1000, "{full:?} {aqm:?}");
    assert!(full[1] * 20 < aqm[1], "{full:?} {aqm:?}");
    // A flow beside it that stays below its share loses nothing.
    let mut lost = 0;
    for t in 4000..6000u32 {
        for k in 0..3 {
            q.arrive(ms(t.into()), of(1, 3 * t + k));
        }
        if t % 4 == 0 {
            q.arrive(ms(t.into()), of(2, 1_000_000 + t));
        }
        q.leave(ms(t.into()));
        lost += q.lost.drain(..).filter(|l| l.0 >= 1_000_000).count();
    }
    assert_eq!(lost, 0);
}

#[test]
fn what_makes_no_sense_is_refused_with_its_key() {
    use crate::param::Refusal as _;
    let refused = |config: Config| {
        let e = config.validate(Limit::Unlimited).unwrap_err();
        (e.key(), alloc::format!("{e}"))
    };
    let usual = Config::default();
    let of = |key, message: &str| (key, message.into());
    let zero = Duration::ZERO;
    assert_eq!(
        refused(Config { rtt: zero, ..usual }),
        of("rtt", "must be above 0: write a time such as \"100 ms\"")
    );
    assert_eq!(
        refused(Config { flows: 100, ..usual }),
        of("flows", "100 is not a multiple of 8: write 1024")
    );
    assert_eq!(refused(Config { flows: 0, ..usual }).0, "flows");
    assert_eq!(refused(Config { overhead: 70_000, ..usual }).0, "overhead");
    assert_eq!(refused(Config { mpu: 70_000, ..usual }).0, "mpu");
    assert_eq!(refused(Config { rate: Some(Rate::from_bits_per_sec(0)), ..usual }).0, "rate");
    assert!(usual.validate(Limit::Packets(1)).is_ok());
}

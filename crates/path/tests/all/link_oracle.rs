//! The lazily served link against a naive one that has an event for every departure, and invariants of
//! every link.

use crate::common;

use common::{Arrival, Fate, Fates, Pkt, arrivals, drive, events_until, rate, traffic};
use proptest::prelude::*;
use skyhaul_base::{Duration, Instant, Rate, Rng};
use skyhaul_path::delay::{fixed::Fixed, normal::Normal, uniform::Uniform};
use skyhaul_path::error::{self, Scope, ber, bursts, list, per};
use skyhaul_path::queue::{Kind, Moment, gtnets, plain, pushout};
use skyhaul_path::{
    Delay, Discipline, DropReason, Limit, Link, LinkConfig, Offered, Queue, QueueConfig, Streams,
};

/// The definition, written down event by event: a departure at *t* comes before an arrival at *t*.
fn naive(config: &LinkConfig, arrivals: &[Arrival]) -> Vec<Option<Fate>> {
    let rate = u128::from(config.rate.mean().expect("a finite rate").bits_per_sec());
    let Delay::Fixed(Fixed { base: delay }) = config.delay else { panic!("a fixed delay") };
    let mut queue = Queue::new(&config.queue);
    let mut error = config.error.build();
    let mut rng = Streams::named(5, "links.test").error;
    let mut unused = Rng::stream(1, "queue");
    let mut at = Moment::new(Instant::ZERO, &mut unused);
    let mut fates = Fates::default();
    // The present busy period: its start and the bits sent in it. Departures are exact in real time and
    // rounded down to nanoseconds.
    let (mut start, mut bits, mut free, mut size) = (Instant::ZERO, 0u128, Instant::ZERO, 0);
    let mut next = 0;
    while next < arrivals.len() || !queue.is_empty() {
        let arrival = arrivals.get(next).map_or(Instant::MAX, |a| a.at);
        let sent = if !queue.is_empty() && free <= arrival {
            queue.dequeue(&mut at, &mut |_, _| unreachable!("a plain queue loses nothing then"))
        } else {
            next += 1;
            let p = arrivals[next - 1].p;
            if arrival < free {
                queue.enqueue(&mut at, p, Some(size), &mut |p, why| fates.set(p, Fate::Lost(why)));
                None
            } else if config.queue.count_in_service
                && !Queue::new(&config.queue.with(Discipline::DROP_TAIL)).enqueue(
                    &mut at,
                    p,
                    None,
                    &mut |_, _| (),
                )
            {
                // The system as a whole is too small for this packet.
                fates.set(p, Fate::Lost(DropReason::Full));
                None
            } else {
                if arrival > free {
                    (start, bits) = (arrival, 0);
                }
                Some(p)
            }
        };
        if let Some(p) = sent {
            size = p.size;
            bits += u128::from(size) * 8;
            free = start + Duration::from_nanos((bits * 1_000_000_000 / rate) as u64);
            let lost = error.loses(&p, &mut rng);
            fates.set(p, if lost { Fate::Lost(DropReason::Error) } else { Fate::Delivered(free + delay) });
        }
    }
    fates.0
}

/// The disciplines under which a packet's departure is known when it arrives, or when no low priority waits.
fn known() -> [Discipline; 3] {
    [Discipline::DROP_TAIL, plain::Config {}.into(), pushout::Strict::default().into()]
}

fn queue() -> impl Strategy<Value = QueueConfig> {
    let discipline = prop_oneof![
        3 => proptest::sample::select(known().to_vec()),
        1 => Just(pushout::Fifo::default().into()),
        1 => Just(gtnets::Config {}.into()),
    ];
    let limit = prop_oneof![(0..8u32).prop_map(Limit::Packets), (0..6000u64).prop_map(Limit::Bytes)];
    (discipline, limit).prop_map(|(discipline, limit)| QueueConfig {
        discipline,
        limit,
        ..QueueConfig::default()
    })
}

fn error() -> impl Strategy<Value = error::Config> {
    prop_oneof![
        Just(error::Config::NONE),
        Just(per::Config { p: 0.2 }.into()),
        Just(ber::Config { ber: 1e-5, ..ber::Config::default() }.into()),
        Just(bursts::Config { loss: 0.2, burst: 3.0 }.into()),
        Just(list::Config { indices: vec![0, 3, 4], class: Scope::HighPriority }.into()),
    ]
}

fn delay() -> impl Strategy<Value = Delay> {
    let (base, jitter) = (Duration::from_millis(3), Duration::from_millis(4));
    prop_oneof![
        Just(Delay::fixed(base)),
        Just(Uniform { base, jitter }.into()),
        Just(Normal { base, sigma: jitter }.into()),
    ]
}

/// A step of a driver that also changes the link, in any order and at any time.
#[derive(Clone, Debug)]
enum Step {
    Deliver,
    Error(error::Config),
    Offer { size: u32, low: bool },
    Rate(Option<Rate>),
    Serve,
    Up(bool),
}

fn step() -> impl Strategy<Value = (u64, Step)> {
    let gap = prop_oneof![3 => Just(0u64), 1 => Just(500_000), 2 => 0..3_000_000u64];
    let step = prop_oneof![
        10 => (0..1500u32, any::<bool>()).prop_map(|(size, low)| Step::Offer { size, low }),
        4 => Just(Step::Serve),
        4 => Just(Step::Deliver),
        1 => any::<bool>().prop_map(Step::Up),
        1 => proptest::option::of(rate()).prop_map(Step::Rate),
        1 => error().prop_map(Step::Error),
    ];
    (gap, step)
}

/// An unchanging link does not call these disciplines, so the random tests below must compare each of them.
#[test]
fn each_discipline_of_an_unchanging_link_is_drawn() {
    for kind in Kind::ALL.iter().copied() {
        let claims = kind.is_blind() || kind.serves_high_first();
        let drawn = known().iter().any(|d| d.kind() == kind);
        assert_eq!(
            claims,
            drawn,
            "\"{}\": BLIND means one FIFO with tail drop, HIGH_FIRST the same for high priority. If that is so, add the \
             queue to `known` in {}; if not, take the constant away and write `ignores_priority`",
            kind.name(),
            file!(),
        );
    }
}

proptest! {
    #[test]
    fn lazy_service_equals_a_naive_link(
        list in traffic(), queue in queue(), rate in rate(), error in error(), ms in 0..5u64,
    ) {
        let delay = Delay::fixed(Duration::from_millis(ms));
        let config = LinkConfig { rate: rate.into(), queue, delay, error, ..LinkConfig::default() };
        let all = arrivals(&list);
        prop_assert_eq!(drive(&config, &all), naive(&config, &all));
    }

    /// A driver that calls late, and forgets services until the next arrival, changes no packet's fate.
    #[test]
    fn a_late_driver_changes_nothing(
        list in traffic(), queue in queue(), rate in rate(), error in error(), delay in delay(),
        late in proptest::collection::vec((any::<bool>(), any::<bool>()), 120), reorder in any::<bool>(),
    ) {
        let config = LinkConfig {
            rate: rate.into(), queue, delay, error, allow_reorder: reorder, ..LinkConfig::default()
        };
        let all = arrivals(&list);
        let mut link = Link::new(&config, Streams::named(5, "links.test"));
        let mut fates = Fates::default();
        for (a, (serve, deliver)) in all.iter().zip(late) {
            if serve {
                link.serve(a.at, &mut |p, why| fates.set(p, Fate::Lost(why)));
            }
            while let Some(due) = link.next_delivery().filter(|due| serve && deliver && *due <= a.at) {
                fates.set(link.deliver(a.at).unwrap(), Fate::Delivered(due));
            }
            link.offer(a.at, a.p, &mut |p, why| fates.set(p, Fate::Lost(why)));
        }
        events_until(&mut link, Instant::MAX, &mut fates);
        prop_assert_eq!(drive(&config, &all), fates.0);
    }

    /// An unchanging link gives the same fates as the general one, and has the same state at any time, even with a late driver.
    #[test]
    fn an_unchanging_link_equals_the_general_one(
        list in traffic(), late in proptest::collection::vec(any::<bool>(), 120), queue in queue(),
        rate in proptest::option::of(rate()), error in error(), delay in delay(), drop_inflight in any::<bool>(),
    ) {
        // Every field: a new one is drawn here, unless `Fixed::suits` refuses it.
        let config = LinkConfig {
            rate: rate.into(), queue, delay, allow_reorder: false, error, spares_acks: false, drop_inflight,
            two_paths: false, fec: None, arq: None,
        };
        let streams = || Streams::named(5, "links.test");
        let mut general = Link::new(&config, streams());
        let mut fixed = Link::unchanging(&config, streams());
        prop_assert_eq!(matches!(fixed, Link::Fixed(_)), known().contains(&queue.discipline));
        let (mut expected, mut fates) = (Fates::default(), Fates::default());
        for (a, late) in arrivals(&list).iter().zip(late) {
            events_until(&mut general, a.at, &mut expected);
            if !late {
                events_until(&mut fixed, a.at, &mut fates);
            }
            general.offer(a.at, a.p, &mut |p, why| expected.set(p, Fate::Lost(why)));
            fixed.offer(a.at, a.p, &mut |p, why| fates.set(p, Fate::Lost(why)));
            if late {
                continue;
            }
            let state = |l: &Link<Pkt>| {
                (l.queue_len(), l.queue_bytes(), l.in_flight(), l.queue_integral(a.at), l.busy_time(a.at), l.counters())
            };
            prop_assert_eq!(state(&general), state(&fixed));
        }
        events_until(&mut general, Instant::MAX, &mut expected);
        events_until(&mut fixed, Instant::MAX, &mut fates);
        prop_assert_eq!(expected, fates);
        prop_assert_eq!(general.counters(), fixed.counters());
    }

    /// The counters balance, whatever happens to the link.
    #[test]
    fn offered_is_delivered_plus_lost_plus_waiting(
        steps in proptest::collection::vec(step(), 1..200), queue in queue(), rate in proptest::option::of(rate()),
        delay in delay(), reorder in any::<bool>(), drop_inflight in any::<bool>(),
    ) {
        let config = LinkConfig {
            rate: rate.into(),
            queue,
            delay,
            allow_reorder: reorder,
            drop_inflight,
            ..LinkConfig::default()
        };
        let strict = queue.discipline == pushout::Strict::default().into();
        let mut link = Link::<Pkt>::new(&config, Streams::named(5, "links.test"));
        let (mut now, mut lost, mut last, mut offered) = (Instant::ZERO, [0u64; DropReason::COUNT], None, 0);
        let mut most = 0;
        let mut area = 0u128;
        for (gap, step) in steps {
            // A punctual driver, so that the queue length below is the true one.
            let until = now + Duration::from_nanos(gap);
            while let Some(due) = link.next_service().filter(|due| *due <= until) {
                area += u128::from(link.queue_len()) * u128::from((due - now).as_nanos());
                now = due;
                link.serve(now, &mut |_, why| lost[why as usize] += 1);
            }
            area += u128::from(link.queue_len()) * u128::from((until - now).as_nanos());
            now = until;
            let mut on_loss = |_: Pkt, why| lost[why as usize] += 1;
            match step {
                Step::Deliver => {
                    if let Some(p) = link.deliver(now) {
                        prop_assert!(reorder || strict || last < Some(p.id), "{last:?} before {p:?}");
                        last = Some(p.id);
                    }
                }
                Step::Error(e) => link.set_error(e.build()),
                Step::Offer { size, low } => {
                    let before = link.counters().total();
                    let p = Pkt { id: offered, size, low, ..Pkt::default() };
                    offered += 1;
                    let was_up = link.is_up();
                    match link.offer(now, p, &mut on_loss) {
                        Offered::Dropped => prop_assert_eq!(link.counters().total().lost(), before.lost() + 1),
                        Offered::Queued => prop_assert!(link.queue_len() > 0),
                        Offered::Sent => prop_assert!(was_up && link.queue_len() == 0),
                        Offered::Behind => prop_assert!(was_up || link.queue_len() > 0),
                    }
                    most = most.max(link.queue_len());
                }
                Step::Rate(r) => link.set_rate(&r.into()),
                Step::Serve => link.serve(now, &mut on_loss),
                Step::Up(up) => link.set_up(now, up, &mut on_loss),
            }
            let total = link.counters().total();
            prop_assert_eq!(total.offered, u64::from(offered));
            prop_assert_eq!(total.drops, lost);
            prop_assert_eq!(total.offered, total.delivered + total.lost() + u64::from(link.queue_len()) + link.in_flight() as u64);
            prop_assert_eq!(u128::from(link.queue_integral(now)), area);
            prop_assert_eq!(link.counters().max_queue, most);
            prop_assert!(link.busy_time(now) <= now - Instant::ZERO);
        }
    }

    /// A FIFO link delivers in the order of departures whatever the jitter; arrivals never come early.
    #[test]
    fn a_fifo_link_never_reorders(list in traffic(), delay in delay()) {
        let config = LinkConfig { rate: common::MICROSECOND_PER_BYTE.into(), delay, ..LinkConfig::default() };
        let fates = drive(&config, &arrivals(&list));
        prop_assert!(fates.windows(2).all(|w| w[0] <= w[1]), "{fates:?}");
        prop_assert!(fates.iter().all(|f| matches!(f, Some(Fate::Delivered(_)))));
    }

    /// With another error model the surviving packets arrive at the same times.
    #[test]
    fn errors_do_not_shift_jitter(list in traffic(), delay in delay(), error in error(), reorder in any::<bool>()) {
        let clean = LinkConfig {
            rate: common::MICROSECOND_PER_BYTE.into(), delay, allow_reorder: reorder, ..LinkConfig::default()
        };
        let noisy = LinkConfig { error, ..clean.clone() };
        let all = arrivals(&list);
        for (a, b) in drive(&noisy, &all).into_iter().zip(drive(&clean, &all)) {
            prop_assert!(a == b || a == Some(Fate::Lost(DropReason::Error)));
        }
    }
}

//! Forged timestamp echoes, by the peer or on the path: they change the retransmission timeout no further than genuine RTTs
//! could, and undo no reduction that a loss has caused.

use crate::common;

use common::{cases, rack};
use proptest::prelude::*;
use skyhaul_base::{Duration, Instant, Rng};
use skyhaul_cc::Config as Control;
use skyhaul_tcp::{Config, Connection, Counted, Established, Segment, Seq};
use std::collections::{BTreeMap, VecDeque};

/// Segments on their way, and when they arrive.
type DelayLine = VecDeque<(Instant, Segment)>;

/// How an echo is forged.
#[derive(Clone, Copy, Debug)]
enum Forgery {
    /// Any age up to this, milliseconds.
    Any(u32),
    /// Older than all that is acknowledged, by more than a tick.
    TooOld,
    /// As young as can be.
    Now,
}

#[derive(Clone, Debug)]
struct Story {
    config: Config,
    cc: &'static str,
    forgery: Forgery,
    /// Percentage of acknowledgements with a forged echo.
    lies: u64,
    /// Percentage of data segments lost.
    lost: u64,
    one_way: Duration,
    /// Maximum additional delay of each packet; packets stay in order.
    jitter: Duration,
    seed: u64,
}

fn story() -> impl Strategy<Value = Story> {
    let forgery = prop_oneof![
        (1..10_000u32).prop_map(Forgery::Any),
        Just(Forgery::Any(4_000_000)),
        Just(Forgery::TooOld),
        Just(Forgery::Now)
    ];
    let cc = prop_oneof![Just("prr"), Just("cubic"), Just("newreno"), Just("bbr")];
    let shape = (1..=100u64, 0..6u64, 1..300u64, 0..50u64, any::<u64>());
    (forgery, cc, any::<bool>(), shape).prop_map(
        |(forgery, cc, by_time, (lies, lost, one_way, jitter, seed))| {
            let config = Config { receive_buffer: 200_000, ..Config::modern() };
            let config = if by_time { rack(config) } else { config };
            let (one_way, jitter) = (Duration::from_millis(one_way), Duration::from_millis(jitter));
            Story { config, cc, forgery, lies, lost, one_way, jitter, seed }
        },
    )
}

fn end(s: &Story, ours: u32, theirs: u32) -> Connection<Counted> {
    let control = Control::by_name(s.cc).expect("known").build(&s.config.rules);
    let e = Established {
        iss: Seq(ours),
        peer_iss: Seq(theirs),
        peer: &s.config,
        sack: s.config.sack.unwrap_or(true),
        rtt: None,
        probes: false,
    };
    Connection::established(Instant::ZERO, s.config, control, Rng::stream(s.seed, "cc"), &e)
}

/// First transmissions and genuine RTTs.
struct Truth {
    /// Time of the first transmission of each segment, by the segment's end.
    first: BTreeMap<u64, Instant>,
    /// Minimum and maximum genuine RTT so far.
    least: Duration,
    most: Duration,
}

fn run(s: &Story) -> Result<(), TestCaseError> {
    let tick = s.config.timestamp_tick;
    let (mut a, mut b) = (end(s, 0, 1000), end(s, 1000, 0));
    b.discard_reads();
    a.offer(Instant::ZERO, 3_000_000);
    let mut rng = Rng::stream(s.seed, "path");
    let (mut there, mut back) = (DelayLine::new(), DelayLine::new());
    let mut truth = Truth { first: BTreeMap::new(), least: Duration::MAX, most: Duration::ZERO };
    let (mut now, mut una) = (Instant::ZERO, 1u64);
    for _ in 0..40_000 {
        let arrival = |q: &DelayLine, rng: &mut Rng| {
            let at = now + s.one_way + rng.uniform(s.jitter);
            q.back().map_or(at, |last| last.0.max(at))
        };
        while let Some(seg) = a.poll_transmit(now) {
            truth.first.entry(u64::from(seg.seq.0) + u64::from(seg.len)).or_insert(now);
            let at = arrival(&there, &mut rng);
            if rng.below(100) >= s.lost {
                there.push_back((at, seg));
            }
        }
        while let Some(seg) = b.poll_transmit(now) {
            let at = arrival(&back, &mut rng);
            back.push_back((at, seg));
        }
        let at = |q: &DelayLine| q.front().map_or(Instant::MAX, |p| p.0);
        now = at(&there).min(at(&back)).min(a.next_timeout()).min(b.next_timeout());
        if now == Instant::MAX {
            break;
        }
        if at(&there) == now {
            let (_, seg) = there.pop_front().expect("it is there");
            let _ = b.handle(now, &seg, &[]);
        } else if at(&back) == now {
            let (_, mut seg) = back.pop_front().expect("it is there");
            let ack = u64::from(seg.ack.0);
            let oldest = truth.first.range(una + 1..).next().map(|(_, t)| now - *t);
            if ack > una {
                // The ages of all segments that this acknowledgement covers are possible genuine RTTs.
                let ages = truth.first.range(una + 1..=ack).map(|(_, t)| now - *t);
                truth.most = ages.fold(truth.most, Duration::max);
                truth.least = truth.least.min(s.one_way * 2);
                una = ack;
            }
            if rng.below(100) < s.lies {
                let value = (now.as_nanos() / tick.as_nanos()) as u32 + 1;
                let past = match (s.forgery, oldest) {
                    (Forgery::Any(most), _) => rng.below(u64::from(most)) as u32,
                    (Forgery::TooOld, Some(oldest)) => {
                        (oldest.as_nanos() / tick.as_nanos()) as u32 + 3 + rng.below(100_000) as u32
                    }
                    _ => 0,
                };
                seg.ts = seg.ts.map(|(val, _)| (val, value.wrapping_sub(past).max(1)));
            }
            let _ = a.handle(now, &seg, &[]);
        } else if a.next_timeout() == now {
            a.handle_timeout(now);
        } else {
            b.handle_timeout(now);
        }
        let snapshot = a.snapshot();
        if let Some(srtt) = snapshot.srtt {
            let (least, most) = (truth.least, truth.most + tick);
            prop_assert!(
                srtt + tick >= least && srtt <= most,
                "{srtt:?} of {least:?} to {most:?} at {now:?}"
            );
            let margin = s.config.rto.margin;
            if snapshot.phase == skyhaul_cc::Phase::Open {
                prop_assert!(snapshot.rto + tick >= least + margin, "{:?}", snapshot.rto);
            }
            // The variation is no more than the range of the samples, and each expiry doubles.
            let backoff = 1u64 << a.counters().timeouts.min(30);
            prop_assert!(snapshot.rto <= (most + margin.max(most * 4)) * backoff, "{:?}", snapshot.rto);
        }
    }
    prop_assert_eq!(a.unacked(), 0, "{:?} at {:?}", a.snapshot(), now);
    // With `dsack_undo`, a DSACK may undo a reduction.
    let by_echo = !s.config.dsack_undo;
    if by_echo && matches!(s.forgery, Forgery::TooOld) && s.jitter.is_zero() && a.counters().timeouts == 0 {
        prop_assert_eq!(a.counters().undone, 0, "a forged echo undid a reduction");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(150), ..ProptestConfig::default() })]

    #[test]
    fn forged_echoes_move_the_timeout_no_further_than_true_ones_could(s in story()) {
        run(&s)?;
    }

    #[test]
    fn an_echo_of_what_was_not_sent_then_undoes_nothing(mut s in story()) {
        // Losses on a path without jitter, repaired by fast retransmissions.
        (s.forgery, s.jitter, s.lies) = (Forgery::TooOld, Duration::ZERO, 100);
        s.config.dsack_undo = false;
        s.lost = s.lost.max(1);
        run(&s)?;
    }
}

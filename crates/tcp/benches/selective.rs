//! The time that the sender takes for a selective acknowledgement with 16 MB in flight and scattered holes: the whole
//! endpoint, from the arriving segment to the last one that it releases, with RACK-TLP and PRR. And the time that the
//! receiver takes for a segment beyond thousands of gaps.
//!
//! A transfer over a long path loses segments of one window at random. The events at either end are recorded and replayed
//! to one end: criterion reports the mean time of an event, and a line before it the time of the dearest single events
//! (the least of its repetitions, so that other work of the machine does not count).

#![allow(missing_docs, reason = "the macro of criterion makes a public function")]
#![allow(clippy::disallowed_methods, reason = "a benchmark measures time")]

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use skyhaul_base::{Duration, Instant, Rng};
use skyhaul_cc::Config as Control;
use skyhaul_tcp::config::LossDetection;
use skyhaul_tcp::{Bytes, Config, Connection, Counted, Established, Segment, Seq, Store};
use std::collections::VecDeque;

const MSS: u32 = 1448;
const WINDOW: u64 = 16_000_000;
const ONE_WAY: Duration = Duration::from_millis(300);
/// Time between two segments: a window takes a round trip.
const SPACING: Duration = Duration::from_nanos(600_000_000 * MSS as u64 / WINDOW);
/// Number of segments sent before the window with losses, so that the congestion window is fully open.
const BEFORE: u64 = 40_000;
/// Repetitions of which the least time of each event is taken.
const REPETITIONS: usize = 15;

#[derive(Clone, Copy)]
enum Event {
    Arrives(Segment),
    Expires,
}

/// Recorded events at one end, with their times.
type Story = Vec<(Instant, Event)>;

fn end<S: Store>(cc: &str, ours: u32, theirs: u32) -> Connection<S> {
    let config = Config {
        loss_detection: LossDetection::Rack,
        tail_loss_probe: true,
        receive_buffer: WINDOW,
        send_buffer: WINDOW,
        sack: Some(true),
        ..Config::modern()
    };
    let cc = Control::by_name(cc).expect("a control").build(&config.rules);
    let established = Established {
        iss: Seq(ours),
        peer_iss: Seq(theirs),
        peer: &config,
        sack: true,
        rtt: Some(ONE_WAY * 2),
        probes: false,
    };
    Connection::established(Instant::ZERO, config, cc, Rng::stream(1, "bench"), &established)
}

/// The sending end, with more data than a run sends.
fn sender(cc: &str) -> Connection<Counted> {
    let mut c = end(cc, 5000, 9000);
    c.offer(Instant::ZERO, 1 << 40);
    c
}
fn receiver<S: Store>() -> Connection<S> {
    let mut c = end("sack", 9000, 5000);
    c.discard_reads();
    c
}

/// Runs both ends over the path; `percent` of the original segments of one window are lost. Returns the events at the
/// sender and at the receiver.
fn record(cc: &str, percent: u64) -> (Story, Story) {
    let (mut s, mut r) = (sender(cc), receiver::<Counted>());
    let (mut forward, mut back) = (VecDeque::new(), VecDeque::new());
    let mut rng = Rng::stream(7, "losses");
    let (mut now, mut free, mut sent, mut highest) = (Instant::ZERO, Instant::ZERO, 0, 0);
    let (mut to_sender, mut to_receiver) = (Vec::new(), Vec::new());
    loop {
        while let Some(seg) = s.poll_transmit(now) {
            free = free.max(now) + SPACING;
            let end = u64::from(seg.seq.add(seg.len).0);
            let retransmission = end <= highest;
            highest = highest.max(end);
            sent += 1;
            let in_window = (BEFORE..BEFORE + WINDOW / u64::from(MSS)).contains(&sent);
            if retransmission || !in_window || rng.below(100) >= percent {
                forward.push_back((free + ONE_WAY, seg));
            }
        }
        while let Some(seg) = r.poll_transmit(now) {
            back.push_back((now + ONE_WAY, seg));
        }
        if sent > BEFORE + 4 * WINDOW / u64::from(MSS) {
            return (to_sender, to_receiver);
        }
        let at = |q: &VecDeque<(Instant, Segment)>| q.front().map_or(Instant::MAX, |p| p.0);
        now = at(&forward).min(at(&back)).min(s.next_timeout()).min(r.next_timeout());
        if at(&forward) == now {
            let Some((_, seg)) = forward.pop_front() else { return (to_sender, to_receiver) };
            to_receiver.push((now, Event::Arrives(seg)));
            let _ = r.handle(now, &seg, &[]);
        } else if at(&back) == now {
            let Some((_, seg)) = back.pop_front() else { return (to_sender, to_receiver) };
            to_sender.push((now, Event::Arrives(seg)));
            let _ = s.handle(now, &seg, &[]);
        } else if s.next_timeout() == now {
            to_sender.push((now, Event::Expires));
            s.handle_timeout(now);
        } else {
            to_receiver.push((now, Event::Expires));
            r.handle_timeout(now);
        }
    }
}

/// Replays one event; returns the number of segments that the end then sends.
fn replay<S: Store>(c: &mut Connection<S>, &(now, event): &(Instant, Event), payload: &[u8]) -> u32 {
    match event {
        Event::Arrives(seg) => {
            let _ = c.handle(now, &seg, &payload[..seg.len as usize]);
        }
        Event::Expires => c.handle_timeout(now),
    }
    let mut out = 0;
    while c.poll_transmit(now).is_some() {
        out += 1;
    }
    out
}

/// A measurement: the events `from..to` of a story, at an end that `make` makes and that has replayed the events before
/// them; `counted` of these events are those whose time is of interest.
struct Case<'a, S: Store> {
    name: &'a str,
    make: &'a dyn Fn() -> Connection<S>,
    story: &'a [(Instant, Event)],
    from: usize,
    to: usize,
    counted: u64,
}

impl<S: Store> Case<'_, S> {
    /// An end that has replayed everything before the measured events.
    fn prepared(&self) -> Connection<S> {
        let payload = [0; MSS as usize];
        let mut c = (self.make)();
        while c.poll_transmit(Instant::ZERO).is_some() {}
        self.story[..self.from].iter().for_each(|e| {
            replay(&mut c, e, &payload);
        });
        c
    }

    fn measure(&self, c: &mut Criterion) {
        let payload = [0; MSS as usize];
        let part = &self.story[self.from..self.to];
        let mut dearest = vec![u128::MAX; part.len()];
        for _ in 0..REPETITIONS {
            let mut conn = self.prepared();
            for (event, least) in part.iter().zip(&mut dearest) {
                let before = std::time::Instant::now();
                replay(&mut conn, event, &payload);
                *least = (*least).min(before.elapsed().as_nanos());
            }
        }
        let mut dearest: Vec<_> = dearest.into_iter().zip(0..).collect();
        dearest.sort_unstable();
        let (total, n) = (dearest.iter().map(|d| d.0).sum::<u128>(), dearest.len());
        let most: Vec<_> = dearest.iter().rev().take(4).collect();
        println!(
            "{}: {} events, of them {} counted; {} ns each, the dearest (ns, which) {most:?}",
            self.name,
            n,
            self.counted,
            total / n as u128
        );
        let mut group = c.benchmark_group("selective");
        group.sample_size(10).throughput(Throughput::Elements(self.counted));
        group.bench_function(self.name, |b| {
            b.iter_batched(
                || self.prepared(),
                |mut conn| {
                    part.iter().for_each(|e| {
                        replay(&mut conn, e, &payload);
                    });
                    conn
                },
                BatchSize::PerIteration,
            );
        });
        group.finish();
    }
}

/// Whether the event is the arrival of a selective acknowledgement.
fn has_blocks(e: &(Instant, Event)) -> bool {
    matches!(e.1, Event::Arrives(seg) if !seg.sack.is_empty())
}

/// From the first selective acknowledgement to the last.
fn acknowledgements(c: &mut Criterion) {
    for (name, cc, percent) in [
        ("prr, 1 % lost", "prr", 1),
        ("prr, 5 % lost", "prr", 5),
        ("cubic, 2 % lost", "cubic", 2),
        ("prr, 50 % lost", "prr", 50),
    ] {
        let (story, _) = record(cc, percent);
        let from = story.iter().position(has_blocks).expect("a hole");
        let to = story.iter().rposition(has_blocks).expect("a hole") + 1;
        let counted = story[from..to].iter().filter(|e| has_blocks(e)).count() as u64;
        let make = || sender(cc);
        Case { name, make: &make, story: &story, from, to, counted }.measure(c);
    }
}

/// From the first gap until it is filled.
fn arrivals(c: &mut Criterion) {
    for (name, percent) in [("receiver, 5 % lost", 5), ("receiver, 50 % lost", 50)] {
        let (_, story) = record("prr", percent);
        let is_gap = |w: &[(Instant, Event)]| match (w[0].1, w[1].1) {
            (Event::Arrives(a), Event::Arrives(b)) => b.seq != a.seq.add(a.len),
            _ => false,
        };
        let from = story.windows(2).position(is_gap).expect("a gap");
        let to = from + (WINDOW / u64::from(MSS)) as usize;
        let to = to.min(story.len());
        let counted = (to - from) as u64;
        let make = receiver::<Bytes>;
        Case { name, make: &make, story: &story, from, to, counted }.measure(c);
    }
}

criterion_group!(benches, acknowledgements, arrivals);
criterion_main!(benches);

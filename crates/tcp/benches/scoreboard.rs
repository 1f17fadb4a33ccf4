//! The scoreboard under a 16 MB window full of holes: every other segment is selectively acknowledged, one
//! acknowledgement each, and every hole retransmitted.

#![allow(missing_docs, reason = "the macro of criterion makes a public function")]

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use skyhaul_base::Instant;
use skyhaul_tcp::{NextSeg, Scoreboard};

const MSS: u32 = 1448;
const WINDOW: u64 = 16_000_000 / MSS as u64;

fn at(n: u64) -> u64 {
    n * u64::from(MSS)
}

fn full_window() -> Scoreboard {
    let mut b = Scoreboard::new(0, 3, MSS);
    (0..WINDOW).for_each(|_| b.send(MSS));
    b.begin_episode(false);
    b
}

fn holes(c: &mut Criterion) {
    let mut group = c.benchmark_group("scoreboard");
    group.throughput(Throughput::Elements(WINDOW / 2));
    group.bench_function("every other segment of 16 MB", |b| {
        b.iter_batched(
            full_window,
            |mut board| {
                for n in (1..WINDOW).step_by(2) {
                    let before = n.saturating_sub(2).max(1);
                    board.apply(0, &[(at(n), at(n + 1)), (at(before), at(before + 1))]);
                    if let Some(NextSeg::Lost(i)) = board.next_seg(false) {
                        board.retransmit(i, Instant::ZERO);
                    }
                }
                board
            },
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

criterion_group!(benches, holes);
criterion_main!(benches);

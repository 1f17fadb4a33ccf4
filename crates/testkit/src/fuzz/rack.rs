//! Incremental loss detection by time against RFC 8985 to the letter.

use super::ByteReader;
use crate::naive_rack::NaiveRack;
use skyhaul_base::{Duration, Instant};
use skyhaul_tcp::{Config, Rack, RackReport, Scoreboard};

/// Runs the operations that `data` spells on the scoreboard with RACK and on its literal version.
///
/// # Panics
/// If they differ.
pub fn rack_ops(data: &[u8]) {
    const MSS: u32 = 1000;
    let mut input = ByteReader(data);
    let config = Config { dup_thresh: 1 + u32::from(input.byte() % 4), ..Config::modern() };
    let start = 1 + u64::from(input.byte());
    let mut board = Scoreboard::new(start, config.dup_thresh, MSS);
    let mut fast = Rack::new(&config);
    let mut slow = NaiveRack::new(start, config.dup_thresh, config.timestamp_tick);
    let mut now = Instant::ZERO + Duration::from_secs(1);
    let mut due = None;
    let mut recovering = false;
    while !input.is_empty() {
        let n = slow.segments.len();
        match input.byte() % 16 {
            0..=3 if n < 48 => {
                let span = if input.one_in(4) { 1 + u32::from(input.word()) % MSS } else { MSS };
                fast.send(&mut board, span, now);
                slow.send(span, now);
            }
            4..=6 => now += Duration::from_micros(u64::from(input.byte()) * 400),
            7..=10 if n > 0 => {
                let ack = match input.below(8) {
                    0 => slow.segments[input.below(n)].to,
                    1 => slow.segments[0].to,
                    2 => slow.una + u64::from(input.word()) % (slow.segments[0].to - slow.una),
                    _ => slow.una,
                };
                let mut blocks = Vec::new();
                for _ in 0..input.below(4) {
                    let i = input.below(n);
                    let j = (i + input.below(4)).min(n - 1);
                    blocks.push((slow.segments[i].from.max(ack), slow.segments[j].to));
                }
                blocks.retain(|b| b.0 < b.1);
                let exiting = recovering && input.one_in(4);
                recovering &= !exiting;
                let report = RackReport {
                    dsack: input.one_in(8),
                    echo: input.one_in(2).then(|| Duration::from_millis(input.byte().into())),
                    probe: input.one_in(16),
                    srtt: input.one_in(2).then(|| Duration::from_millis(u64::from(input.byte()) / 4)),
                    recovering,
                    exiting,
                };
                due = fast.apply(&mut board, now, ack, &blocks, &report);
                assert_eq!(due, slow.ack(now, ack, &blocks, &report), "the reordering timer");
            }
            11 if due.is_some() => {
                now = now.max(due.unwrap_or(now));
                due = fast.detect(&mut board, now, recovering);
                assert_eq!(due, slow.detect(now, recovering), "the reordering timer, again");
            }
            12..=13 => {
                let next = slow.next_lost();
                assert_eq!(fast.next_lost(&board), next);
                if let Some(i) = next {
                    recovering = true;
                    fast.resend(&mut board, i, now);
                    slow.resend(i, now);
                }
            }
            14 if n > 0 && !slow.segments[n - 1].sacked => {
                // A tail loss probe.
                fast.resend(&mut board, n - 1, now);
                slow.resend(n - 1, now);
            }
            15 if input.one_in(4) => {
                let (keep, all) = (input.one_in(2), input.one_in(4));
                fast.timeout(&mut board, now, keep, all);
                slow.timeout(now, keep, all);
                recovering = true;
            }
            _ => {}
        }
        compare(&board, &fast, &slow);
    }
}

fn compare(board: &Scoreboard, fast: &Rack, slow: &NaiveRack) {
    assert_eq!((board.una(), board.max(), board.len()), (slow.una, slow.nxt, slow.segments.len()));
    for (i, s) in slow.segments.iter().enumerate() {
        assert_eq!(board.is_lost(i), s.was_lost && !s.sacked, "segment {i} lost\n{board:?}\n{slow:?}");
    }
    assert_eq!(fast.segs_sacked() as usize, slow.segs_sacked());
    assert_eq!(fast.reordering_seen(), slow.reordering_seen);
    assert_eq!(fast.reo_wnd(), slow.reo_wnd);
    assert_eq!(board.pipe(), slow.pipe(), "pipe\n{board:?}\n{slow:?}");
}

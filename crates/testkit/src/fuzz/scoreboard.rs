//! The incremental scoreboard against RFC 6675 to the letter.

use super::ByteReader;
use crate::naive::NaiveScoreboard;
use skyhaul_base::Instant;
use skyhaul_tcp::{NextSeg, Scoreboard};

/// Runs the operations that `data` spells on the scoreboard and on its literal version.
///
/// # Panics
/// If they differ.
pub fn scoreboard_ops(data: &[u8]) {
    const MSS: u32 = 1000;
    let mut input = ByteReader(data);
    let dup_thresh = 1 + u32::from(input.byte() % 4);
    let start = u64::from(input.byte());
    let mut fast = Scoreboard::new(start, dup_thresh, MSS);
    let mut slow = NaiveScoreboard::new(start, dup_thresh, MSS);
    // After a timeout the sender goes back instead of asking NextSeg, until all of it is acknowledged.
    let mut going_back_until = start;
    let mut high_rxt = start;
    while !input.is_empty() {
        let n = slow.sent.len();
        match input.byte() % 16 {
            0..=4 if n < 48 => {
                let span = if input.one_in(4) { 1 + u32::from(input.word()) % MSS } else { MSS };
                fast.send(span);
                slow.send(span);
            }
            5 if n > 0 => {
                let ack = slow.sent[input.below(n)].to;
                fast.apply(ack, &[]);
                slow.apply(ack, &[]);
            }
            6 if n > 0 => {
                let s = slow.sent[input.below(n.min(3))];
                let ack = s.from + u64::from(input.word()) % (s.to - s.from);
                fast.apply(ack, &[]);
                slow.apply(ack, &[]);
            }
            7..=9 if n > 1 => {
                let mut blocks = Vec::new();
                for _ in 0..=input.below(3) {
                    let i = input.below(n);
                    let j = (i + input.below(4)).min(n - 1);
                    blocks.push((slow.sent[i].from, slow.sent[j].to));
                }
                let ack = if input.one_in(8) { slow.sent[0].to } else { slow.una };
                fast.apply(ack, &blocks);
                slow.apply(ack, &blocks);
            }
            11..=13 if slow.una >= going_back_until => {
                let new = input.one_in(4) && n < 48;
                let want = slow.next_seg(new);
                let got = fast.next_seg(new).or_else(|| fast.rescue());
                assert_eq!(got, want, "NextSeg with new data: {new}");
                match want {
                    Some(NextSeg::Lost(i) | NextSeg::Hole(i)) => {
                        fast.retransmit(i, Instant::ZERO);
                        slow.retransmit(i);
                    }
                    Some(NextSeg::New) => {
                        fast.send(MSS);
                        slow.send(MSS);
                    }
                    _ => {}
                }
            }
            14 if n > 0 && slow.una >= going_back_until && !slow.sent[0].sacked => {
                let keep = input.one_in(4);
                fast.begin_episode(keep);
                slow.begin_episode(keep);
                fast.mark_head_lost();
                slow.mark_head_lost();
                fast.retransmit(0, Instant::ZERO);
                slow.retransmit(0);
            }
            15 if input.one_in(4) => {
                let keep = input.one_in(2);
                fast.timeout(keep);
                slow.timeout(keep);
                going_back_until = slow.max;
                high_rxt = slow.una;
            }
            10 if slow.una < going_back_until => {
                // The next step of going back.
                let next = slow.sent.iter().position(|s| !s.sacked && s.to > high_rxt);
                if let Some(i) = next.filter(|&i| slow.sent[i].to <= going_back_until) {
                    high_rxt = slow.sent[i].to;
                    fast.retransmit(i, Instant::ZERO);
                    slow.retransmit(i);
                }
            }
            _ => {}
        }
        compare(&fast, &slow);
    }
}

fn compare(fast: &Scoreboard, slow: &NaiveScoreboard) {
    assert_eq!((fast.una(), fast.max(), fast.len()), (slow.una, slow.max, slow.sent.len()));
    for (i, s) in slow.sent.iter().enumerate() {
        let want = !s.sacked && slow.is_lost(i);
        assert_eq!(fast.is_lost(i), want, "segment {i} lost\n{fast:?}\n{slow:?}");
    }
    assert_eq!(fast.sacked(), slow.bytes(|_, s| s.sacked), "sacked");
    assert_eq!(fast.lost(), slow.bytes(|i, s| !s.sacked && slow.is_lost(i)), "lost");
    assert_eq!(fast.pipe(), slow.pipe(), "pipe\n{fast:?}\n{slow:?}");
    assert_eq!(fast.head_lost(), slow.sent.first().is_some_and(|s| !s.sacked && slow.is_lost(0)));
}

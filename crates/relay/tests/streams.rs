//! A relay between two streams that behave as badly as streams may: writes of any size, stalls, half-closes and aborts on
//! either side in any order. What the far end reads is a prefix of what the near end wrote, all of it once the end of
//! stream has passed, and never is more held than the buffer.

use proptest::prelude::*;
use sha2::{Digest, Sha256};
use skyhaul_relay::{Bytes, End, Fifo, Progress, Relay};
use std::collections::VecDeque;

/// The gateway's end of a connection whose peer the test plays.
#[derive(Default)]
struct Stream {
    /// What has arrived from the peer, and whether its end has.
    arrived: VecDeque<u8>,
    finished_by_peer: bool,
    /// What the gateway has written, room for more, and whether it has finished.
    sent: Vec<u8>,
    room: u64,
    finished: bool,
    failed: bool,
    /// The gateway has announced that the end follows (`write_last`).
    last: bool,
}

impl Stream {
    fn readable(&self) -> u64 {
        self.arrived.len() as u64
    }
    fn writable(&self) -> u64 {
        if self.finished || self.failed { 0 } else { self.room }
    }
}

impl End<Bytes> for Stream {
    fn ended(&self) -> bool {
        self.finished_by_peer && self.arrived.is_empty()
    }
    fn failed(&self) -> bool {
        self.failed
    }
    fn read(&mut self, into: &mut Bytes, most: u64) -> u64 {
        let n = self.arrived.len().min(most as usize);
        into.room(n).copy_from_slice(&self.arrived.drain(..n).collect::<Vec<_>>());
        into.append(n);
        n as u64
    }
    fn write(&mut self, from: &mut Bytes) -> u64 {
        assert!(!self.last, "more follows what was to be the last");
        let n = self.writable().min(from.len());
        self.sent.extend(&from.waiting()[..n as usize]);
        from.consume(n as usize);
        self.room -= n;
        n
    }
    fn write_last(&mut self, from: &mut Bytes) -> u64 {
        self.last = false;
        let n = self.write(from);
        self.last = true;
        n
    }
    fn finish(&mut self) {
        assert!(!self.finished, "an end of stream passes once");
        self.finished = true;
    }
    fn abort(&mut self) {
        self.failed = true;
    }
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Write { side: usize, bytes: usize },
    Room { side: usize, bytes: u64 },
    Finish { side: usize },
    Abort { side: usize },
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        12 => (0..2_usize, 1..3000_usize).prop_map(|(side, bytes)| Act::Write { side, bytes }),
        12 => (0..2_usize, 1..3000_u64).prop_map(|(side, bytes)| Act::Room { side, bytes }),
        2 => (0..2_usize).prop_map(|side| Act::Finish { side }),
        1 => (0..2_usize).prop_map(|side| Act::Abort { side }),
    ]
}

fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// The `i`-th byte that a side writes.
fn byte(side: usize, i: usize) -> u8 {
    ((i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8 ^ (side as u8) << 7
}

#[test]
fn the_end_is_announced_with_the_data_before_it() {
    let mut a = Stream { arrived: b"first".to_vec().into(), ..Stream::default() };
    let mut b = Stream { room: 100, ..Stream::default() };
    let mut relay: Relay<Bytes> = Relay::new(100);
    relay.pump(&mut a, &mut b);
    assert!(b.sent == b"first" && !b.last);
    a.arrived.extend(b"second");
    a.finished_by_peer = true;
    relay.pump(&mut a, &mut b);
    assert!(b.sent == b"firstsecond" && b.last && b.finished);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_arrives_is_a_prefix_and_all_of_it_before_an_end(
        acts in proptest::collection::vec(act(), 1..200),
        capacity in 1..5000_u64,
    ) {
        let mut ends = [Stream::default(), Stream::default()];
        let mut wrote = [Vec::new(), Vec::new()];
        let mut relay: Relay<Bytes> = Relay::new(capacity);
        for act in acts {
            match act {
                Act::Write { side, bytes } if !ends[side].finished_by_peer && !ends[side].failed => {
                    let from = wrote[side].len();
                    let new: Vec<u8> = (from..from + bytes).map(|i| byte(side, i)).collect();
                    ends[side].arrived.extend(&new);
                    wrote[side].extend(new);
                }
                Act::Room { side, bytes } => ends[side].room += bytes,
                Act::Finish { side } => ends[side].finished_by_peer = true,
                Act::Abort { side } => ends[side].failed = true,
                Act::Write { .. } => {}
            }
            let [a, b] = &mut ends;
            let moved = relay.pump(a, b);
            prop_assert!(relay.forward().waiting() <= capacity && relay.back().waiting() <= capacity);
            for (source, sink, way) in [(0, 1, relay.forward()), (1, 0, relay.back())] {
                let sent = &ends[sink].sent;
                prop_assert_eq!(digest(sent), digest(&wrote[source][..sent.len()]), "a prefix, byte for byte");
                if ends[sink].finished {
                    prop_assert!(ends[source].finished_by_peer);
                    prop_assert_eq!(sent.len(), wrote[source].len(), "all of it before the end");
                }
                // Nothing is left where there is room for it.
                let stuck = way.waiting() > 0 && ends[sink].writable() > 0;
                prop_assert!(!stuck || moved == Progress::Aborted);
            }
            // An end that has finished, and knows that the other has, has nothing left to abort.
            let done = |end: &Stream| end.finished && end.finished_by_peer && end.arrived.is_empty();
            if ends.iter().any(|end| end.failed && !done(end)) {
                prop_assert_eq!(moved, Progress::Aborted);
                prop_assert!(ends[0].failed && ends[1].failed, "an abort passes");
                prop_assert_eq!(relay.held(), 0);
            }
        }
        // With enough room, everything that was written comes out, unless a side aborted.
        if !ends[0].failed {
            for end in &mut ends {
                (end.room, end.finished_by_peer) = (u64::MAX, true);
            }
            let [a, b] = &mut ends;
            relay.pump(a, b);
            prop_assert!(relay.is_over());
            prop_assert_eq!(digest(&ends[1].sent), digest(&wrote[0]));
            prop_assert_eq!(digest(&ends[0].sent), digest(&wrote[1]));
        }
    }
}

#[test]
fn a_half_close_leaves_the_other_direction_open() {
    // RFC 9293 §3.6: the server ends its stream after a banner; the client still sends.
    let (mut a, mut b) =
        (Stream { room: 100, ..Stream::default() }, Stream { room: 100, ..Stream::default() });
    let mut relay: Relay<Bytes> = Relay::new(64);
    b.arrived.extend(b"220 ready");
    b.finished_by_peer = true;
    relay.pump(&mut a, &mut b);
    assert_eq!((a.sent.as_slice(), a.finished, b.finished), (b"220 ready".as_slice(), true, false));
    a.arrived.extend(b"HELO");
    assert_eq!(relay.pump(&mut a, &mut b), Progress::Some);
    assert_eq!((b.sent.as_slice(), relay.is_over()), (b"HELO".as_slice(), false));
    a.finished_by_peer = true;
    relay.pump(&mut a, &mut b);
    assert!(b.finished && relay.is_over());
}

#[test]
fn what_waits_when_a_side_gives_up_is_lost_and_counted() {
    let (mut a, mut b) = (Stream::default(), Stream::default());
    let mut relay: Relay<Bytes> = Relay::new(64);
    a.arrived.extend([7; 100]);
    relay.pump(&mut a, &mut b);
    assert_eq!((relay.forward().waiting(), a.readable()), (64, 36), "no more than it has room for");
    b.failed = true;
    assert_eq!(relay.pump(&mut a, &mut b), Progress::Aborted);
    assert_eq!((relay.lost(), relay.held(), a.failed), (64, 0, true));
}

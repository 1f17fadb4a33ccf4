//! A relay between two TCP connections: the closed window that back-pressure ends in, what becomes of a refusal, and that what
//! arrives is what was sent, whatever both ends do.

use proptest::prelude::*;
use sha2::{Digest, Sha256};
use skyhaul_base::{Duration, Instant, Rng};
use skyhaul_relay::{Bytes, End, Relay};
use skyhaul_tcp::{Bytes as Kept, Config, Connection, Segment, Seq, State};
use std::collections::VecDeque;
use std::sync::Arc;

type Conn = Connection<Kept>;

/// The gateway's end of a connection.
struct Side<'a>(&'a mut Conn, Instant);

impl End<Bytes> for Side<'_> {
    fn ended(&self) -> bool {
        self.0.peer_finished() && self.0.readable() == 0
    }
    fn failed(&self) -> bool {
        // What arrived before an orderly end is still read.
        self.0.state() == State::Closed && !(self.0.peer_finished() && self.0.readable() > 0)
    }
    fn read(&mut self, into: &mut Bytes, most: u64) -> u64 {
        let most = self.0.readable().min(most);
        let n = self.0.read(into.room(most as usize), most);
        into.append(n as usize);
        n
    }
    fn write(&mut self, from: &mut Bytes) -> u64 {
        let most = from.waiting().len().min(self.0.writable() as usize);
        let n = self.0.write(self.1, &from.waiting()[..most], most as u64);
        from.consume(n as usize);
        n
    }
    fn finish(&mut self) {
        self.0.shutdown(self.1);
    }
    fn abort(&mut self) {
        self.0.abort(self.1);
    }
}

const DELAY: Duration = Duration::from_millis(5);
const BUFFER: u64 = 20_000;

/// Sender, gateway and receiver (S = G = R): two connections, and the segments under way between their ends.
struct World {
    now: Instant,
    /// S, the gateway's end towards S, the gateway's end towards R, R.
    conns: [Conn; 4],
    /// Segments by arrival, with the end they travel to.
    wires: VecDeque<(Instant, usize, Segment, Vec<u8>)>,
    relay: Relay<Bytes>,
    /// The window that S last heard of.
    last_window: u32,
    /// The draws for losses, and how many of the segments are lost.
    losses: (Rng, f64),
}

impl World {
    fn new(listens: bool) -> Self {
        let config =
            Arc::new(Config { receive_buffer: BUFFER, receive_autotuning: false, ..Config::modern() });
        let cc = skyhaul_cc::Config::by_name("sack").expect("known");
        let rng = |n: &str| Rng::stream(1, n);
        let algorithm = || cc.build(&config.rules);
        let listen = |n| Conn::listen(Arc::clone(&config), algorithm(), Seq(7), rng(n));
        let connect = |n| Conn::connect(Instant::ZERO, Arc::clone(&config), algorithm(), Seq(9), rng(n));
        let mut far = listen("r");
        if !listens {
            far.abort(Instant::ZERO);
        }
        Self {
            now: Instant::ZERO,
            conns: [connect("s"), listen("a"), connect("b"), far],
            wires: VecDeque::new(),
            relay: Relay::new(BUFFER),
            last_window: u32::MAX,
            losses: (rng("loss"), 0.0),
        }
    }

    fn flush(&mut self) {
        let [_, a, b, _] = &mut self.conns;
        self.relay.pump(&mut Side(a, self.now), &mut Side(b, self.now));
        for (i, c) in self.conns.iter_mut().enumerate() {
            while let Some(segment) = c.poll_transmit(self.now) {
                let mut payload = vec![0; segment.len as usize];
                c.payload(&segment, &mut payload);
                if self.losses.1 > 0.0 && self.losses.0.unit() < self.losses.1 {
                    continue;
                }
                self.wires.push_back((self.now + DELAY, i ^ 1, segment, payload));
            }
        }
    }

    /// Runs until `end`, or until nothing happens any more.
    fn run(&mut self, end: Instant) {
        loop {
            self.flush();
            let timers = self.conns.iter().map(Conn::next_timeout).min().unwrap_or(Instant::MAX);
            let wire = self.wires.front().map_or(Instant::MAX, |w| w.0);
            let next = timers.min(wire);
            if next > end || next == Instant::MAX {
                self.now = self.now.max(end);
                return;
            }
            self.now = self.now.max(next);
            if wire <= timers {
                let Some((_, to, segment, payload)) = self.wires.pop_front() else { return };
                if to == 0 {
                    self.last_window = segment.window;
                }
                // A closed connection refuses segments.
                let _ = self.conns[to].handle(self.now, &segment, &payload);
            } else {
                for c in &mut self.conns {
                    if c.next_timeout() <= self.now {
                        c.handle_timeout(self.now);
                    }
                }
            }
        }
    }

    fn write(&mut self, data: &[u8]) -> u64 {
        self.conns[0].write(self.now, data, data.len() as u64)
    }
    fn read(&mut self, i: usize) -> Vec<u8> {
        let mut out = vec![0; self.conns[i].readable() as usize];
        let n = self.conns[i].read(&mut out, u64::MAX);
        out.truncate(n as usize);
        out
    }
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

#[test]
fn a_receiver_that_does_not_read_closes_the_window_of_the_sender() {
    let mut w = World::new(true);
    w.run(at(100));
    let data: Vec<u8> = (0..400_000_u32).map(|i| (i >> 3) as u8).collect();
    let mut written = 0;
    for ms in 1..400 {
        written += w.write(&data[written..]) as usize;
        w.run(at(100 + 5 * ms));
    }
    // R has taken one window; the relay, the send buffer towards R and the window towards S are full, and no more than
    // that has been taken from S.
    let taken = w.relay.forward().taken();
    let sent_on = w.relay.forward().given();
    assert_eq!(taken - sent_on, w.relay.forward().waiting());
    assert!(w.relay.forward().waiting() <= BUFFER);
    let accepted = taken + w.conns[1].readable();
    assert!(accepted - sent_on <= 2 * BUFFER, "{accepted} - {sent_on}");
    if written > 2 * BUFFER as usize + sent_on as usize {
        assert_eq!(w.last_window, 0, "a closed window, not a loss");
    }
    assert_eq!(w.conns[0].counters().retransmissions, 0);
    // And once R reads, all of it comes.
    let mut got = Vec::new();
    for ms in 0..4000 {
        written += w.write(&data[written..]) as usize;
        got.extend(w.read(3));
        w.run(at(2100 + 5 * ms));
    }
    got.extend(w.read(3));
    assert_eq!((got.len(), written), (data.len(), data.len()));
    assert!(got == data);
}

#[test]
fn a_server_that_refuses_is_seen_as_a_reset_and_no_bytes() {
    let mut w = World::new(false);
    w.run(at(1000));
    assert_eq!(w.conns[0].state(), State::Closed);
    assert!(std::iter::from_fn(|| w.conns[0].poll_event()).any(|e| e == skyhaul_tcp::Event::Reset));
    assert_eq!(w.conns[0].receiver().payload_received(), 0);
}

#[test]
fn a_banner_then_a_half_close_and_the_client_still_sends() {
    let mut w = World::new(true);
    w.run(at(200));
    w.conns[3].write(w.now, b"220 ready", 9);
    w.conns[3].shutdown(w.now);
    w.run(at(400));
    assert_eq!(w.read(0), b"220 ready");
    assert!(w.conns[0].peer_finished());
    assert_eq!(w.write(b"HELO"), 4);
    w.run(at(600));
    assert_eq!(w.read(3), b"HELO");
    w.conns[0].shutdown(w.now);
    w.run(at(800));
    assert!(w.relay.is_over() && w.relay.forward().waiting() == 0);
}

/// What one of the ends does, S or R, or that time passes.
#[derive(Clone, Copy, Debug)]
enum Act {
    Write { end: usize, bytes: usize },
    Read { end: usize, bytes: u64 },
    Finish { end: usize },
    Abort { end: usize },
    Wait { ms: u64 },
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        10 => (0..2_usize, 1..40_000_usize).prop_map(|(end, bytes)| Act::Write { end, bytes }),
        10 => (0..2_usize, 1..60_000_u64).prop_map(|(end, bytes)| Act::Read { end, bytes }),
        10 => (1..80_u64).prop_map(|ms| Act::Wait { ms }),
        1 => (0..2_usize).prop_map(|end| Act::Finish { end }),
        1 => (0..2_usize).prop_map(|end| Act::Abort { end }),
    ]
}

/// S and R, by what they write and read.
#[derive(Default)]
struct Talk {
    wrote: [Vec<u8>; 2],
    read: [Vec<u8>; 2],
    finished: [bool; 2],
}

impl Talk {
    /// Where an end is among the connections.
    const PLACE: [usize; 2] = [0, 3];

    fn write(&mut self, w: &mut World, end: usize, bytes: usize) {
        let from = self.wrote[end].len();
        let byte =
            |i: usize| ((i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8 ^ (end as u8) << 7;
        let new: Vec<u8> = (from..from + bytes).map(byte).collect();
        let n = w.conns[Self::PLACE[end]].write(w.now, &new, bytes as u64) as usize;
        self.wrote[end].extend(&new[..n]);
    }
    fn read(&mut self, w: &mut World, end: usize, bytes: u64) {
        let conn = &mut w.conns[Self::PLACE[end]];
        let mut out = vec![0; conn.readable().min(bytes) as usize];
        let most = out.len() as u64;
        let n = conn.read(&mut out, most);
        self.read[end].extend(&out[..n as usize]);
    }
    /// What holds at any time: order and integrity, an end only after everything before it, bounded memory.
    fn check(&self, w: &World) {
        for (source, sink) in [(0, 1), (1, 0)] {
            let (wrote, read) = (&self.wrote[source], &self.read[sink]);
            assert!(read.len() <= wrote.len());
            assert_eq!(
                Sha256::digest(read),
                Sha256::digest(&wrote[..read.len()]),
                "a prefix of what was written"
            );
            let conn = &w.conns[Self::PLACE[sink]];
            if conn.peer_finished() {
                assert!(self.finished[source], "nobody else ends a stream");
                assert_eq!(
                    read.len() as u64 + conn.readable(),
                    wrote.len() as u64,
                    "all of it before the end"
                );
            }
        }
        assert!(
            w.relay.held() <= 2 * BUFFER
                && w.conns[1].readable() <= BUFFER
                && w.conns[2].readable() <= BUFFER
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn whatever_both_ends_do_what_is_read_is_what_was_written(
        acts in proptest::collection::vec(act(), 1..60),
        lossy in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut w = World::new(true);
        let (mut talk, mut aborted) = (Talk::default(), false);
        w.run(at(100));
        // Losses begin once both legs are connected: an end that closes earlier sends nothing.
        w.losses = (Rng::stream(seed, "loss"), if lossy { 0.03 } else { 0.0 });
        for act in acts {
            match act {
                Act::Write { end, bytes } if !talk.finished[end] => talk.write(&mut w, end, bytes),
                Act::Read { end, bytes } => talk.read(&mut w, end, bytes),
                Act::Wait { ms } => w.run(w.now + Duration::from_millis(ms)),
                Act::Finish { end } => {
                    w.conns[Talk::PLACE[end]].shutdown(w.now);
                    talk.finished[end] = true;
                }
                Act::Abort { end } => {
                    w.conns[Talk::PLACE[end]].abort(w.now);
                    aborted = true;
                    break;
                }
                Act::Write { .. } => {}
            }
            talk.check(&w);
        }
        if aborted {
            // The other end knows within the delay of the path, unless the reset is lost.
            w.run(w.now + DELAY * 2 + Duration::from_millis(1));
            let closed = |i: usize| w.conns[i].state() == State::Closed;
            // If both ends of stream had passed already, there was nothing left to abort.
            let over = w.relay.forward().finished() && w.relay.back().finished();
            prop_assert!(lossy || over || closed(0) && closed(3), "{:?}", w.conns.each_ref().map(Conn::state));
            prop_assert!(lossy || w.relay.held() == 0);
            talk.check(&w);
            return Ok(());
        }
        for end in 0..2 {
            w.conns[Talk::PLACE[end]].shutdown(w.now);
            talk.finished[end] = true;
        }
        for _ in 0..4000 {
            talk.read(&mut w, 0, u64::MAX);
            talk.read(&mut w, 1, u64::MAX);
            talk.check(&w);
            if w.conns[0].peer_finished() && w.conns[3].peer_finished() {
                break;
            }
            w.run(w.now + Duration::from_millis(50));
        }
        talk.read(&mut w, 0, u64::MAX);
        talk.read(&mut w, 1, u64::MAX);
        prop_assert_eq!(Sha256::digest(&talk.read[1]), Sha256::digest(&talk.wrote[0]));
        prop_assert_eq!(Sha256::digest(&talk.read[0]), Sha256::digest(&talk.wrote[1]));
        prop_assert!(w.relay.is_over() && w.relay.held() == 0);
    }
}

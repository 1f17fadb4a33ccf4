//! A relay between two TCP connections: the closed window that back-pressure ends in, and what becomes of a refusal.

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
        self.0.state() == State::Closed
    }
    fn read(&mut self, into: &mut Bytes, most: u64) -> u64 {
        let mut out = vec![0; self.0.readable().min(most) as usize];
        let n = out.len() as u64;
        let n = self.0.read(&mut out, n);
        into.0.extend(&out[..n as usize]);
        n
    }
    fn write(&mut self, from: &mut Bytes) -> u64 {
        let data: Vec<u8> = from.0.iter().copied().take(self.0.writable() as usize).collect();
        let n = self.0.write(self.1, &data, data.len() as u64);
        from.0.drain(..n as usize);
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

/// S = G = R: two connections and what is on the way between their ends.
struct World {
    now: Instant,
    /// S, the gateway's end towards S, the gateway's end towards R, R.
    conns: [Conn; 4],
    /// Segments by arrival, with the end they travel to.
    wires: VecDeque<(Instant, usize, Segment, Vec<u8>)>,
    relay: Relay<Bytes>,
    /// The window that S last heard of.
    heard: u32,
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
            heard: u32::MAX,
        }
    }

    fn flush(&mut self) {
        let [_, a, b, _] = &mut self.conns;
        self.relay.pump(&mut Side(a, self.now), &mut Side(b, self.now));
        for (i, c) in self.conns.iter_mut().enumerate() {
            while let Some(segment) = c.poll_transmit(self.now) {
                let mut payload = vec![0; segment.len as usize];
                c.payload(&segment, &mut payload);
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
                    self.heard = segment.window;
                }
                // Refused segments are part of the game.
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
        assert_eq!(w.heard, 0, "a closed window, not a loss");
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

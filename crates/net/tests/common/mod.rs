//! Two hosts in virtual time, joined by paths that treat packets as a test wants.
#![allow(
    dead_code,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    reason = "each test uses a part"
)]

use sha2::{Digest, Sha256};
use skyhaul_base::{Duration, Instant, Rng};
use skyhaul_net::host::{ConnId, Endpoint, Host, HostConfig, Secret};
use skyhaul_net::offload::{Device, Exit};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

/// What happens to packets in one direction. Probabilities.
#[derive(Clone, Debug)]
pub struct Weather {
    pub delay: Duration,
    pub loss: f64,
    pub duplicate: f64,
    /// Delayed by up to as much again.
    pub reorder: f64,
    /// One byte changes.
    pub corrupt: f64,
}

impl Weather {
    pub fn calm(delay: Duration) -> Self {
        Self { delay, loss: 0.0, duplicate: 0.0, reorder: 0.0, corrupt: 0.0 }
    }
    pub fn stormy(delay: Duration) -> Self {
        Self { delay, loss: 0.01, duplicate: 0.01, reorder: 0.02, corrupt: 0.005 }
    }
}

/// What a box on the way does to a packet: returns false to drop it; what it adds to `back` goes to the sender.
pub type Mangler = Box<dyn FnMut(Instant, &mut Vec<u8>, &mut Vec<Vec<u8>>) -> bool>;

pub struct World {
    pub now: Instant,
    /// Client and server.
    pub hosts: [Host; 2],
    /// Where a side's packets leave by a device with super-packets.
    pub devices: [Option<Device>; 2],
    /// A test breaks something, so that panics are expected.
    pub may_break: bool,
    pub weather: [Weather; 2],
    /// Bytes per second that leave each side, if they are limited; others wait.
    pub rates: [Option<u64>; 2],
    /// When the last packet that has left each side is transmitted.
    through: [Instant; 2],
    /// For what leaves each side.
    pub boxes: [Option<Mangler>; 2],
    pub sent: [u64; 2],
    pub bytes: [u64; 2],
    flying: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    next: u64,
    rng: Rng,
}

pub fn addresses(v6: bool) -> [IpAddr; 2] {
    if v6 {
        ["fd00:5359::1".parse().unwrap(), "fd00:5359::2".parse().unwrap()]
    } else {
        [[10, 84, 0, 1].into(), [10, 84, 0, 2].into()]
    }
}

impl World {
    pub fn new(start: Instant, v6: bool, weather: Weather) -> Self {
        let host = |side: usize| {
            let mut c = HostConfig::new(vec![addresses(v6)[side]], Secret::fixed([side as u8 + 1; 16]));
            c.record = true;
            Host::new(c)
        };
        Self {
            now: start,
            hosts: [host(0), host(1)],
            devices: [None, None],
            may_break: false,
            weather: [weather.clone(), weather],
            rates: [None; 2],
            through: [Instant::ZERO; 2],
            boxes: [None, None],
            sent: [0; 2],
            bytes: [0; 2],
            flying: BTreeMap::new(),
            next: 0,
            rng: Rng::stream(7, "weather"),
        }
    }

    /// A side does something, and what it sends is put on its way.
    fn act(&mut self, side: usize, what: impl FnOnce(&mut Host, Instant, &mut Exit<'_>)) {
        let mut packets = Vec::new();
        let mut take = |p: &[u8]| packets.push(p.to_vec());
        let mut out = Exit::new(self.devices[side].as_mut(), &mut take);
        what(&mut self.hosts[side], self.now, &mut out);
        out.flush();
        // Hosts contain panics: nobody would see them.
        assert!(self.may_break || self.hosts[side].counts().defects == 0, "it panicked");
        self.send(side, packets);
    }
    /// Puts what one side sent on its way.
    pub fn send(&mut self, side: usize, packets: Vec<Vec<u8>>) {
        for mut p in packets {
            self.sent[side] += 1;
            self.bytes[side] += p.len() as u64;
            let mut back = Vec::new();
            let passes = self.boxes[side].as_mut().is_none_or(|m| m(self.now, &mut p, &mut back));
            for b in back {
                self.fly(side, Duration::from_micros(10), b);
            }
            if !passes {
                continue;
            }
            let mut w = self.weather[side].clone();
            if let Some(rate) = self.rates[side] {
                let takes = Duration::from_nanos(p.len() as u64 * 1_000_000_000 / rate);
                self.through[side] = self.through[side].max(self.now) + takes;
                w.delay = w.delay + (self.through[side] - self.now);
            }
            let draws: Vec<f64> = (0..5).map(|_| self.rng.unit()).collect();
            if draws[0] < w.loss {
                continue;
            }
            if draws[1] < w.corrupt {
                let at = (draws[4] * p.len() as f64) as usize;
                p[at] ^= 1 << (self.next % 8);
            }
            let late = if draws[2] < w.reorder { w.delay.mul_f64(draws[4]) } else { Duration::ZERO };
            if draws[3] < w.duplicate {
                self.fly(1 - side, w.delay.mul_f64(1.0 + draws[4]), p.clone());
            }
            self.fly(1 - side, w.delay + late, p);
        }
    }
    fn fly(&mut self, to: usize, after: Duration, packet: Vec<u8>) {
        self.next += 1;
        self.flying.insert((self.now + after, self.next), (to, packet));
    }
    /// Gives a side a packet that nobody sent.
    pub fn inject(&mut self, to: usize, packet: &[u8]) {
        self.act(to, |host, now, out| host.arrive(now, packet, out));
    }
    pub fn flush(&mut self) {
        for side in 0..2 {
            self.act(side, |host, now, out| host.flush(now, out));
        }
    }
    /// When something happens next.
    pub fn next_event(&mut self) -> Instant {
        let packet = self.flying.first_key_value().map_or(Instant::MAX, |((at, _), _)| *at);
        packet.min(self.hosts[0].next_timeout()).min(self.hosts[1].next_timeout())
    }
    /// Lets the next thing happen; false if nothing will.
    pub fn step(&mut self) -> bool {
        self.step_by(Instant::MAX)
    }
    /// As [`Self::step`], but no further than to the time `at`.
    pub fn step_by(&mut self, at: Instant) -> bool {
        let happens = self.tick_by(at);
        self.deliver();
        happens
    }
    /// The time passes until the next thing; nothing is delivered yet. False if nothing will happen.
    pub fn tick(&mut self) -> bool {
        self.tick_by(Instant::MAX)
    }
    fn tick_by(&mut self, at: Instant) -> bool {
        let at = self.next_event().min(at);
        if at == Instant::MAX {
            return false;
        }
        self.now = self.now.max(at);
        for side in 0..2 {
            self.act(side, |host, now, out| host.handle_timeout(now, out));
        }
        true
    }
    fn next_due(&mut self) -> Option<(usize, Vec<u8>)> {
        self.flying.first_entry().filter(|e| e.key().0 <= self.now).map(|e| e.remove())
    }
    /// Delivers what is due.
    pub fn deliver(&mut self) {
        while let Some((to, packet)) = self.next_due() {
            self.inject(to, &packet);
        }
    }
    /// Takes what is due, for each side in the order of arrival.
    pub fn due(&mut self) -> [Vec<Vec<u8>>; 2] {
        let mut due = [Vec::new(), Vec::new()];
        while let Some((to, packet)) = self.next_due() {
            due[to].push(packet);
        }
        due
    }
    pub fn open(&mut self, v6: bool, port: u16, endpoint: &Endpoint) -> ConnId {
        let [a, b] = addresses(v6);
        let id = self.hosts[0].connect(self.now, SocketAddr::new(a, 0), SocketAddr::new(b, port), endpoint);
        let id = id.expect("opens");
        self.flush();
        id
    }
}

/// Writes the bytes of a stream from the place `from` on. They depend on their place, so that lost, repeated or exchanged bytes show.
pub fn fill(from: u64, out: &mut [u8]) {
    for (at, b) in (from..).zip(out) {
        *b = (at ^ (at >> 8) ^ (at >> 16).wrapping_mul(31)) as u8;
    }
}

/// Sends a number of bytes and closes; reads until the end.
#[derive(Debug)]
pub struct Party {
    pub to_send: u64,
    pub sent: u64,
    /// The next bytes of the stream, which found no room yet.
    ready: Vec<u8>,
    pub received: u64,
    pub hash: Sha256,
    pub closed: bool,
    pub at_end: bool,
    /// Nothing is read before this time.
    pub reads_from: Instant,
    pub failure: Option<skyhaul_net::host::Failure>,
}

impl Party {
    pub fn new(to_send: u64) -> Self {
        Self {
            to_send,
            sent: 0,
            ready: Vec::new(),
            received: 0,
            hash: Sha256::new(),
            closed: false,
            at_end: false,
            reads_from: Instant::ZERO,
            failure: None,
        }
    }
    pub fn turn(&mut self, now: Instant, host: &mut Host, id: ConnId) {
        let mut buf = vec![0; 1 << 16];
        while self.sent < self.to_send && host.conn(id).is_some_and(|c| c.is_connected()) {
            // Bytes that found no room are kept: to make them anew each time would take most of the time of a slow transfer.
            let (n, had) = ((self.to_send - self.sent).min(buf.len() as u64) as usize, self.ready.len());
            self.ready.resize(n.max(had), 0);
            fill(self.sent + had as u64, &mut self.ready[had..]);
            let taken = host.write(now, id, &self.ready);
            self.ready.drain(..taken);
            self.sent += taken as u64;
            if taken == 0 {
                break;
            }
        }
        if self.sent == self.to_send && !self.closed && host.conn(id).is_some_and(|c| c.is_connected()) {
            host.shutdown(now, id);
            self.closed = true;
        }
        while now >= self.reads_from {
            let n = host.read(now, id, &mut buf);
            if n == 0 {
                break;
            }
            self.hash.update(&buf[..n]);
            self.received += n as u64;
        }
        let conn = host.conn(id);
        self.at_end |= conn.is_some_and(|c| c.at_end());
        self.failure = self.failure.or(conn.and_then(|c| c.failure()));
    }
    pub fn hash(&self) -> String {
        hex(&self.hash.clone().finalize())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The hash of the first `n` bytes of the stream.
pub fn hash_of(n: u64) -> String {
    let (mut h, mut at, mut buf) = (Sha256::new(), 0, vec![0; 1 << 16]);
    while at < n {
        let len = (n - at).min(buf.len() as u64) as usize;
        fill(at, &mut buf[..len]);
        h.update(&buf[..len]);
        at += len as u64;
    }
    hex(&h.finalize())
}

/// The first incoming connection among those that have changed.
pub fn accepted(host: &mut Host) -> Option<ConnId> {
    let mut seen = VecDeque::new();
    while let Some(id) = host.next_changed() {
        seen.push_back(id);
    }
    seen.into_iter().find(|id| host.conn(*id).is_some_and(|c| c.accepted_at().is_some()))
}

/// One connection to port 80: the client sends `up` bytes, the server `down`; runs until both ends are over, one fails, or
/// nothing happens any more. Returns client, server and their ids, for [`check`].
pub fn transfer(
    w: &mut World,
    v6: bool,
    endpoints: [&Endpoint; 2],
    up: u64,
    down: u64,
    mut at_each: impl FnMut(&mut World, ConnId, Option<ConnId>),
) -> ([Party; 2], [ConnId; 2]) {
    w.hosts[1].listen(80, endpoints[1].clone()).expect("listens");
    let id = w.open(v6, 80, endpoints[0]);
    let mut parties = [Party::new(up), Party::new(down)];
    let mut server = None;
    loop {
        if server.is_none() {
            server = accepted(&mut w.hosts[1]);
        }
        parties[0].turn(w.now, &mut w.hosts[0], id);
        if let Some(s) = server {
            parties[1].turn(w.now, &mut w.hosts[1], s);
        }
        w.flush();
        at_each(w, id, server);
        let done = parties.iter().all(|p| p.at_end && p.closed);
        let over = |side: usize, id: Option<ConnId>| {
            id.and_then(|id| w.hosts[side].conn(id)).is_some_and(|c| c.is_over())
        };
        if done && over(0, Some(id)) && over(1, server) || parties.iter().any(|p| p.failure.is_some()) {
            break;
        }
        if !w.step() {
            break;
        }
    }
    (parties, [id, server.expect("a server")])
}

/// Both streams arrived as they were sent, and the simulator's endpoint would have sent the same segments.
pub fn check(w: &World, parties: &[Party; 2], ids: [ConnId; 2]) {
    assert_eq!([parties[0].failure, parties[1].failure], [None; 2]);
    assert_eq!((parties[1].received, parties[0].received), (parties[0].to_send, parties[1].to_send));
    assert_eq!(parties[1].hash(), hash_of(parties[0].to_send));
    assert_eq!(parties[0].hash(), hash_of(parties[1].to_send));
    for (side, id) in ids.into_iter().enumerate() {
        let c = w.hosts[side].conn(id).expect("not released");
        assert!(c.ended_in_order());
        let journal = c.journal().expect("recorded");
        if let Err(d) = journal.replay() {
            panic!("side {side}, step {}: {:?} instead of {:?}", d.step, d.replayed, d.recorded);
        }
        assert_eq!(w.hosts[side].counts().unwritable, 0);
    }
}

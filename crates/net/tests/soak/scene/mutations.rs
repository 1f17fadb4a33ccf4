//! Two hosts with well-behaved applications, and between them a middlebox that mutates packets and repairs their checksums:
//! whatever arrives, a host stays within its bounds, and serves clients afterwards.

use super::{Outcome, Run};
use crate::bed::endpoint;
use crate::common::{Weather, World};
use crate::finding::Finding;
use crate::stop;
use skyhaul_base::{Duration, Instant, Rng};
use skyhaul_net::app::{App, Http, Serve};
use skyhaul_net::host::{ConnId, Host, HostConfig};
use skyhaul_net::offload::Device;
use skyhaul_testkit::fuzz::repair;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// Memory of each host, bytes.
const MEMORY: u64 = 16 << 20;
/// Connections at a time.
const CLIENTS: usize = 24;
/// Packets that the middlebox keeps, to send them again later.
const KEPT: usize = 256;
/// A connection without progress for this long is given up by its application.
const PATIENCE: Duration = Duration::from_secs(20);
const STEP: Duration = Duration::from_millis(2);

pub fn play(run: &Run) -> Outcome {
    let wanted: u64 = run.choose(10_000_000, 40_000);
    let went = catch_unwind(AssertUnwindSafe(|| fuzz(wanted)));
    let Ok(went) = went else {
        return Ok(vec![Finding::at_most("panics", 1.0, 0.0, "")]);
    };
    let h = |side: usize| &went.world.hosts[side];
    for side in 0..2 {
        // What should be gone is named.
        for (state, n) in h(side).census().states.into_iter().filter(|(_, n)| *n > 0) {
            println!("  half an hour later: {n} of the {} {state}", ["client's", "server's"][side]);
        }
    }
    let sum = |of: &dyn Fn(&Host) -> f64| of(h(0)) + of(h(1));
    let packets = went.arrived as f64;
    Ok(vec![
        Finding::at_most("panics", 0.0, 0.0, ""),
        Finding::at_least("packets received", packets, wanted as f64, ""),
        Finding::recorded("packets corrupted", went.mutilated as f64, ""),
        Finding::recorded("malformed packets refused", sum(&|h| h.counts().refusals.total() as f64), ""),
        Finding::recorded(
            "segments refused by connections",
            sum(&|h| h.counts().rejected.values().sum::<u64>() as f64),
            "",
        ),
        Finding::recorded(
            "connections started",
            sum(&|h| (h.census().lives.opened + h.census().lives.accepted) as f64),
            "",
        ),
        Finding::recorded("complete responses", went.whole as f64, ""),
        Finding::at_most("packets sent per packet received", went.sent as f64 / packets, 2.0, "times"),
        Finding::at_most("memory of a host, maximum", went.most as f64, MEMORY as f64, "bytes"),
        Finding::at_most("timers of a host, maximum", went.timers as f64, 100_000.0, ""),
        Finding::at_most(
            "segments that could not be encoded",
            sum(&|h| h.counts().unwritable as f64),
            0.0,
            "",
        ),
        Finding::at_least("clients served afterwards", went.after as f64, CLIENTS as f64, ""),
        Finding::at_most("connections half an hour later", sum(&|h| h.connections() as f64), 0.0, ""),
        Finding::at_most("memory half an hour later", sum(&|h| h.memory().held as f64), 65_536.0, "bytes"),
        Finding::at_most("timers half an hour later", sum(&|h| h.timers() as f64), 0.0, ""),
    ])
}

struct Observed {
    world: World,
    arrived: u64,
    sent: u64,
    mutilated: u64,
    whole: u64,
    after: usize,
    most: u64,
    timers: usize,
}

/// A client that fetches, as an application would.
struct Fetch {
    id: ConnId,
    since: Instant,
    asked: bool,
    wanted: u64,
    got: u64,
}

fn fuzz(wanted: u64) -> Observed {
    let mut w = World::new(
        Instant::ZERO + STEP,
        false,
        Weather { loss: 0.002, ..Weather::calm(Duration::from_millis(8)) },
    );
    for side in 0..2 {
        let config = w.hosts[side].config().clone();
        // As over a device with super-packets.
        w.devices[side] = Some(Device::default());
        w.hosts[side] = Host::new(HostConfig {
            record: false,
            memory: MEMORY,
            backlog: 256,
            most_waiting: 2048,
            ..config
        });
    }
    w.hosts[1].listen(80, endpoint()).expect("a free port");
    let (mutates, mutilated) = (Rc::new(Cell::new(true)), Rc::<Cell<u64>>::default());
    for side in 0..2 {
        let (mutates, mutilated) = (mutates.clone(), mutilated.clone());
        let mut mutator = Mutator::new(side as u64);
        w.boxes[side] = Some(Box::new(move |_, p, back| {
            if mutates.get() && mutator.mutate(p, back) {
                mutilated.set(mutilated.get() + 1);
            }
            true
        }));
    }
    let mut app = Serve::new(|_| Http::default(), Duration::from_secs(100_000), None);
    let (mut clients, mut rng) = (Vec::<Fetch>::new(), Rng::stream(5, "clients"));
    let arrived = |w: &World| w.hosts.iter().map(|h| h.counts().packets_in).sum::<u64>();
    let (mut whole, mut most, mut timers, mut after, mut room) = (0, 0, 0, 0, vec![0; 1 << 16]);
    while arrived(&w) < wanted && !stop::requested() {
        turn(&mut w, &mut app, &mut clients, &mut rng, &mut whole, &mut room);
        for h in &w.hosts {
            most = h.memory().held.max(most);
            timers = h.timers().max(timers);
        }
    }
    let (total, sent) = (arrived(&w), w.sent.iter().sum());
    // From now on packets pass unchanged, and new clients are served.
    mutates.set(false);
    for c in clients.drain(..) {
        w.hosts[0].abort(w.now, c.id);
        w.hosts[0].release(w.now, c.id);
    }
    let before = whole;
    for _ in 0..30_000 {
        turn(&mut w, &mut app, &mut clients, &mut rng, &mut whole, &mut room);
        after = (whole - before) as usize;
        if after >= CLIENTS {
            break;
        }
    }
    for c in clients.drain(..) {
        w.hosts[0].abort(w.now, c.id);
        w.hosts[0].release(w.now, c.id);
    }
    w.hosts[1].unlisten(80);
    app.stop(w.now, &mut w.hosts[1]);
    // A FIN that nobody acknowledges is repeated for a quarter of an hour.
    let end = w.now + Duration::from_secs(1800);
    while w.now < end {
        let _ = app.turn(w.now, &mut w.hosts[1]);
        w.flush();
        w.step_by(w.now + Duration::from_millis(50));
    }
    Observed { mutilated: mutilated.get(), world: w, arrived: total, sent, whole, after, most, timers }
}

/// A step of both applications and of time.
fn turn(
    w: &mut World,
    app: &mut impl App,
    clients: &mut Vec<Fetch>,
    rng: &mut Rng,
    whole: &mut u64,
    room: &mut [u8],
) {
    let now = w.now;
    if clients.len() < CLIENTS {
        let wanted = [10, 3000, 40_000, 400_000][rng.below(4) as usize];
        let ends = crate::common::addresses(false);
        let (from, to) = ((ends[0], 0).into(), (ends[1], 80).into());
        let mut e = endpoint();
        if rng.below(4) == 0 {
            // Segments that are shorter than their headers.
            e.tcp.mss = 1 + rng.below(100) as u32;
        }
        if let Ok(id) = w.hosts[0].connect(now, from, to, &e) {
            clients.push(Fetch { id, since: now, asked: false, wanted, got: 0 });
        }
    }
    while w.hosts[0].next_changed().is_some() {}
    clients.retain_mut(|c| {
        let host = &mut w.hosts[0];
        let connected = host.conn(c.id).is_some_and(|conn| conn.is_connected());
        if connected && !c.asked {
            let words = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", c.wanted);
            c.asked = host.write(now, c.id, words.as_bytes()) == words.len();
        }
        let n = host.read(now, c.id, room) as u64;
        if n > 0 {
            (c.got, c.since) = (c.got + n, now);
        }
        let over = host.conn(c.id).is_none_or(|conn| conn.is_over() || conn.at_end());
        let done = c.got >= c.wanted;
        *whole += u64::from(done);
        if done || over || now > c.since + PATIENCE {
            if !done {
                host.abort(now, c.id);
            }
            host.release(now, c.id);
            return false;
        }
        true
    });
    let _ = app.turn(now, &mut w.hosts[1]);
    w.flush();
    w.step_by(now + STEP);
}

/// The middlebox that mutates packets.
struct Mutator {
    rng: Rng,
    kept: Vec<Vec<u8>>,
}

const IP: usize = 20;

impl Mutator {
    fn new(side: u64) -> Self {
        Self { rng: Rng::stream(side, "mutations"), kept: Vec::new() }
    }
    /// Mutates some packets; true if it has. Packets in `back` go to the sender.
    fn mutate(&mut self, p: &mut Vec<u8>, back: &mut Vec<Vec<u8>>) -> bool {
        let rng = &mut self.rng;
        let at = rng.below(KEPT as u64) as usize;
        if self.kept.len() < KEPT {
            self.kept.push(p.clone());
        } else if rng.below(4) == 0 {
            self.kept[at].clone_from(p);
        }
        let what = rng.below(40);
        match what {
            // A field of the header is any other number, or a little off.
            0 => put(p, IP + 4, rng.next_u64() as u32),
            1 => put(p, IP + 8, rng.next_u64() as u32),
            2 | 3 => {
                let field = IP + 4 + 4 * (what as usize - 2);
                let old = p.get(field..field + 4).map_or(0, |b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]));
                put(p, field, old.wrapping_add(rng.below(200_000) as u32).wrapping_sub(100_000));
            }
            4 => set(p, IP + 13, rng.next_u64() as u8),
            5 => set(p, IP + 14, rng.next_u64() as u8),
            // Its options, its length, its payload.
            6 => (0..4).for_each(|_| {
                let at = IP + 20 + rng.below(40) as usize;
                set(p, at, rng.next_u64() as u8);
            }),
            7 => set(p, IP + 12, rng.next_u64() as u8),
            8 => p.truncate(IP + rng.below(p.len().max(IP + 1) as u64 - IP as u64) as usize),
            9 => {
                let at = rng.below(p.len().max(1) as u64) as usize;
                set(p, at, rng.next_u64() as u8);
            }
            // An old one in its place, or back to whoever sent it; with a mark or without.
            10 | 11 => p.clone_from(&self.kept[at % self.kept.len()]),
            12 => back.push(reflected(&self.kept[at % self.kept.len()])),
            13 => {
                let flags =
                    [0x02, 0x04, 0x14, 0x11, 0x01, 0x12, 0x29, 0xc2, 0x3f, 0x00][rng.below(10) as usize];
                set(p, IP + 13, flags);
            }
            _ => return false,
        }
        repair(p);
        true
    }
}

fn set(p: &mut [u8], at: usize, to: u8) {
    p.iter_mut().skip(at).take(1).for_each(|b| *b = to);
}
fn put(p: &mut [u8], at: usize, to: u32) {
    if let Some(room) = p.get_mut(at..at + 4) {
        room.copy_from_slice(&to.to_be_bytes());
    }
}
/// The same with its ends exchanged.
fn reflected(p: &[u8]) -> Vec<u8> {
    let mut p = p.to_vec();
    if p.len() >= IP + 4 {
        p[12..20].rotate_left(4);
        p[IP..IP + 4].rotate_left(2);
        repair(&mut p);
    }
    p
}

//! Clocks that jump, and machines that sleep, in virtual time: two hosts, each with a clock of its own.
//!
//! The driver reads the monotonic clock, which a change of the time of day does not touch. What may happen all the same is
//! that it stands still while a machine sleeps and others go on, that it jumps ahead with a virtual machine that was moved,
//! and, on hardware that errs, that it goes back a little.

use super::{Outcome, Run};
use crate::bed::endpoint;
use crate::common::{Party, addresses, hash_of};
use crate::finding::Finding;
use skyhaul_base::{Duration, Instant, Rng};
use skyhaul_net::host::{ConnId, Host, HostConfig, Secret};
use std::collections::VecDeque;
use std::net::SocketAddr;

const STEP: Duration = Duration::from_millis(1);
const DELAY: Duration = Duration::from_millis(20);
const BYTES: u64 = 3_000_000;
/// The step at which the first jump may come: the handshake is complete by then. A connection that is half open for a minute by its
/// host's clock is given up.
const SHAKEN: u64 = 70;
/// Steps after which a transfer that is not complete is given up.
const LONGEST: u64 = 1_000_000;

/// What happens to a clock, or to a machine.
#[derive(Clone, Copy, Debug)]
enum Jump {
    Forwards(Duration),
    Backwards(Duration),
    /// It sleeps, and its clock stands still or goes on. Packets to it are lost.
    Sleep(Duration, bool),
    Never,
}

struct Side {
    host: Host,
    /// What its clock shows.
    clock: Instant,
    /// How many more steps it sleeps, and whether its clock goes on meanwhile.
    asleep: u64,
    ticks: bool,
    arriving: VecDeque<(u64, Vec<u8>)>,
    party: Party,
    id: Option<ConnId>,
}

impl Side {
    fn new(n: usize) -> Self {
        let config = HostConfig::new(vec![addresses(false)[n]], Secret::fixed([n as u8 + 1; 16]));
        Self {
            host: Host::new(config),
            // Some hours after its start: there is room to go back.
            clock: Instant::ZERO + Duration::from_secs(36_000),
            asleep: 0,
            ticks: true,
            arriving: VecDeque::new(),
            party: Party::new(BYTES),
            id: None,
        }
    }
    fn jump(&mut self, jump: Jump) {
        match jump {
            Jump::Forwards(by) => self.clock += by,
            Jump::Backwards(by) => self.clock = self.clock - by,
            Jump::Sleep(time, ticks) => {
                (self.asleep, self.ticks) = (time.as_nanos() / STEP.as_nanos(), ticks)
            }
            Jump::Never => {}
        }
    }
    /// A step of time; returns what it says.
    fn step(&mut self, at: u64) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        if self.asleep > 0 {
            self.asleep -= 1;
            if self.ticks {
                self.clock += STEP;
            }
            while self.arriving.front().is_some_and(|(when, _)| *when <= at) {
                self.arriving.pop_front();
            }
            return out;
        }
        self.clock += STEP;
        let now = self.clock;
        let mut say = |p: &[u8]| out.push(p.to_vec());
        while self.arriving.front().is_some_and(|(when, _)| *when <= at) {
            if let Some((_, p)) = self.arriving.pop_front() {
                self.host.arrive(now, &p, &mut say);
            }
        }
        self.host.handle_timeout(now, &mut say);
        while let Some(id) = self.host.next_changed() {
            self.id.get_or_insert(id);
        }
        if let Some(id) = self.id {
            self.party.turn(now, &mut self.host, id);
        }
        self.host.flush(now, &mut say);
        out
    }
}

/// What became of one transfer in both directions.
struct Went {
    whole: bool,
    packets: u64,
    seconds: f64,
}

/// A transfer in both directions over 20 ms; a jump of one of the two, now and then.
fn transfer(jump: Jump, who: usize, seed: u64) -> Went {
    let mut sides = [Side::new(0), Side::new(1)];
    sides[1].host.listen(80, endpoint()).expect("a free port");
    let [a, b] = addresses(false);
    let (from, to) = (SocketAddr::new(a, 0), SocketAddr::new(b, 80));
    let now = sides[0].clock;
    sides[0].id = Some(sides[0].host.connect(now, from, to, &endpoint()).expect("opens"));
    let mut rng = Rng::stream(seed, "jumps");
    let (mut packets, mut at, mut next) = (0, 0, SHAKEN + rng.below(60));
    let mut left = 6;
    while at < LONGEST {
        at += 1;
        if at == next && left > 0 {
            sides[who].jump(jump);
            left -= 1;
            next = at + 40 + rng.below(400) + sides[who].asleep;
        }
        for side in 0..2 {
            let said = sides[side].step(at);
            packets += said.len() as u64;
            let arrives = at + DELAY.as_nanos() / STEP.as_nanos();
            sides[1 - side].arriving.extend(said.into_iter().map(|p| (arrives, p)));
        }
        let ended = |s: &Side| (s.party.at_end && s.party.closed) || s.party.failure.is_some();
        if sides.iter().all(ended) {
            break;
        }
    }
    let hash = hash_of(BYTES);
    let whole = sides.iter().all(|s| s.party.failure.is_none() && s.party.hash() == hash);
    Went { whole, packets, seconds: at as f64 * STEP.as_secs_f64() }
}

pub fn play(run: &Run) -> Outcome {
    let repetitions = run.choose(20, 1);
    let s = Duration::from_secs;
    let jumps = [
        ("no jump", Jump::Never),
        ("jump of 1 s forwards", Jump::Forwards(s(1))),
        ("jump of 1 hour forwards", Jump::Forwards(s(3600))),
        ("jump of 10 ms backwards", Jump::Backwards(Duration::from_millis(10))),
        ("jump of 10 s backwards", Jump::Backwards(s(10))),
        ("sleep of 5 s, the clock stops", Jump::Sleep(s(5), false)),
        ("sleep of 5 s, the clock continues", Jump::Sleep(s(5), true)),
        ("sleep of 60 s, the clock continues", Jump::Sleep(s(60), true)),
    ];
    let (mut findings, mut calm) = (Vec::new(), 1.0);
    for (name, jump) in jumps {
        let (mut whole, mut packets, mut longest, mut all) = (0, 0, 0.0_f64, 0);
        for i in 0..repetitions {
            for who in 0..2 {
                let went = transfer(jump, who, i);
                all += 1;
                whole += usize::from(went.whole);
                packets = packets.max(went.packets);
                longest = longest.max(went.seconds);
            }
        }
        if matches!(jump, Jump::Never) {
            calm = packets as f64;
        }
        findings.push(Finding::at_least(format!("{name}: complete transfers"), whole as f64, all as f64, ""));
        findings.push(Finding::recorded(format!("{name}: longest transfer"), longest, "s"));
        findings.push(Finding::at_most(
            format!("{name}: packets relative to no jump"),
            packets as f64 / calm,
            3.0,
            "times",
        ));
    }
    Ok(findings)
}

//! Puts a case to a target, line by line.

use super::case::Case;
use super::notation::PacketNotation;
use super::packet::{Damage, Packet};
use super::pattern;
use super::peer::Peer;
use super::step::{Act, InfoRange, Step};
use super::target::{Answer, Call, Target};
use skyhaul_base::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::net::SocketAddr;

/// Where a case failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// File, line and text.
    pub at: String,
    /// What happened instead.
    pub what: String,
    /// Everything that arrived and left.
    pub log: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n  {}", self.at, self.what)?;
        // The last lines are those before the failure.
        let from = self.log.len().saturating_sub(40);
        self.log[from..].iter().try_for_each(|l| writeln!(f, "    {l}"))
    }
}

/// Puts a case to a target.
///
/// # Errors
/// The first line that does not come true.
pub fn run(case: &Case, target: &mut impl Target) -> Result<(), Failure> {
    let mut r = Runner {
        last: target.now(),
        target,
        v6: case.conditions.v6,
        peers: BTreeMap::new(),
        current: String::new(),
        waiting: VecDeque::new(),
        log: Vec::new(),
    };
    r.meet("a");
    for step in &case.steps {
        if step.is_for(r.target.kind()) {
            if let Err(what) = r.step(step) {
                let at = format!("{}:{}: {}: {}", case.file, step.line, case.name, step.text);
                return Err(Failure { at, what, log: r.log });
            }
        }
    }
    Ok(())
}

struct Runner<'a, T: Target> {
    target: &'a mut T,
    v6: bool,
    peers: BTreeMap<String, Peer>,
    current: String,
    /// Packets that left and were not compared with a line yet.
    waiting: VecDeque<(Instant, Packet)>,
    /// When the last line came true.
    last: Instant,
    log: Vec<String>,
}

/// Pause before a target in real time that does not yet meet an expectation is checked again.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

impl<T: Target> Runner<'_, T> {
    /// The lines from here on are about the peer of this name, which is created at its first mention.
    fn meet(&mut self, name: &str) {
        let number = self.peers.len() as u16;
        let v6 = self.v6;
        self.peers.entry(name.to_owned()).or_insert_with(|| Peer::new(number, v6));
        name.clone_into(&mut self.current);
    }
    fn peer(&mut self) -> &mut Peer {
        self.peers.get_mut(&self.current).expect("every peer was met")
    }
    fn end(&mut self) -> SocketAddr {
        self.peer().at
    }

    fn note(&mut self, at: Instant, arrives: bool, packet: &Packet) {
        let port = if arrives { packet.src } else { packet.dst }.port();
        let peer = self.peers.values_mut().find(|p| p.at.port() == port);
        let text = match peer {
            Some(p) => {
                if !arrives {
                    p.learn(packet);
                }
                p.describe(packet, arrives)
            }
            None => format!("{packet:?}"),
        };
        self.log.push(format!("{:9.6} {} {text}", at.as_secs_f64(), if arrives { "<" } else { ">" }));
    }

    /// Lets time pass, and gathers what leaves.
    fn pass(&mut self, until: Instant) -> Result<(), String> {
        while let Some((at, packet)) = self.target.leaves(until)? {
            self.note(at, false, &packet);
            self.waiting.push_back((at, packet));
        }
        Ok(())
    }
    fn nothing_waits(&mut self) -> Result<(), String> {
        match self.waiting.pop_front() {
            None => Ok(()),
            Some((at, p)) => {
                let text = self.peer().describe(&p, false);
                Err(format!("{text} left at {:.3} s, unexpected", at.as_secs_f64()))
            }
        }
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        let due = step.after.map_or(self.last, |(from, _)| self.last + from);
        match &step.act {
            Act::Arrives(n, words) => {
                self.pass(due)?;
                self.nothing_waits()?;
                for _ in 0..*n {
                    self.arrives(words)?;
                }
                self.last = if self.target.kind().is_virtual() { due } else { self.target.now() };
            }
            Act::Leaves(n, words) => {
                let (from, to) = step.after.unwrap_or((Duration::ZERO, Duration::ZERO));
                let began = self.last;
                for _ in 0..*n {
                    self.leaves(began, from, to, words)?;
                }
            }
            Act::Silent => {
                self.pass(due)?;
                self.nothing_waits()?;
                self.last = due;
            }
            Act::Skip => {
                self.pass(due)?;
                self.waiting.clear();
                self.last = due;
            }
            Act::Left(low, high) => {
                self.pass(due)?;
                let n = self.waiting.len() as u32;
                self.waiting.clear();
                self.last = due;
                if !(*low..=*high).contains(&n) {
                    return Err(format!("{n} packets left"));
                }
            }
            Act::Peer(name) => self.meet(name),
            Act::Again => self.peer().begin_again(),
            Act::Call(call) => {
                self.wait_for(step, due)?;
                self.make_call(call)?;
                if !self.target.kind().is_virtual() {
                    self.last = self.target.now();
                }
            }
            Act::ExpectStatus(want) => {
                self.wait_for(step, due)?;
                let end = self.end();
                self.poll(|r| {
                    let got = r.target.socket_status(end)?;
                    if got == *want { Ok(()) } else { Err(format!("it sees {got:?}")) }
                })?;
            }
            Act::ExpectInfo(range) => {
                self.wait_for(step, due)?;
                let end = self.end();
                self.poll(|r| {
                    let tcp_info = r.target.tcp_info(end)?;
                    let fine = match range {
                        InfoRange::State(name) => tcp_info.state == name,
                        InfoRange::Cwnd(a, b) => (*a..=*b).contains(&tcp_info.cwnd),
                        InfoRange::Ssthresh(a, b) => (*a..=*b).contains(&tcp_info.ssthresh),
                        InfoRange::Mss(a, b) => (*a..=*b).contains(&tcp_info.mss),
                        InfoRange::Rto(a, b) => (*a..=*b).contains(&tcp_info.rto),
                    };
                    if fine { Ok(()) } else { Err(format!("it shows {tcp_info:?}")) }
                })?;
            }
        }
        Ok(())
    }

    fn wait_for(&mut self, step: &Step, due: Instant) -> Result<(), String> {
        if step.after.is_some() {
            self.pass(due)?;
            self.nothing_waits()?;
            self.last = due;
        }
        Ok(())
    }

    /// Repeats a check in real time, where an expectation may need a moment to be met.
    fn poll(&mut self, mut check: impl FnMut(&mut Self) -> Result<(), String>) -> Result<(), String> {
        let until = self.target.now() + self.target.kind().tolerance(Duration::ZERO);
        loop {
            match check(self) {
                Ok(()) => return Ok(()),
                Err(e) if self.target.kind().is_virtual() || self.target.now() >= until => return Err(e),
                Err(_) => {
                    let next = self.target.now() + POLL_INTERVAL;
                    self.pass(next)?;
                }
            }
        }
    }

    fn arrives(&mut self, words: &PacketNotation) -> Result<(), String> {
        let none = Damage::default();
        let (packet, damage) = match words {
            PacketNotation::Segment(s) => (self.peer().make(s)?, &s.modifiers.damage),
            PacketNotation::Icmp(m) => (self.peer().complain(m)?, &none),
            PacketNotation::Any => return Err("which segment arrives?".into()),
        };
        let now = self.target.now();
        self.note(now, true, &packet);
        self.target.arrives(&packet, damage)
    }

    fn leaves(
        &mut self,
        began: Instant,
        from: Duration,
        to: Duration,
        words: &PacketNotation,
    ) -> Result<(), String> {
        let kind = self.target.kind();
        let latest = began + to + kind.tolerance(to);
        let earliest = began.as_nanos() + from.as_nanos();
        let next = match self.waiting.pop_front() {
            Some(next) => Some(next),
            None => {
                let next = self.target.leaves(latest)?;
                if let Some((at, p)) = &next {
                    self.note(*at, false, p);
                }
                next
            }
        };
        let Some((at, packet)) = next else {
            return Err(format!("nothing left until {:.3} s", latest.as_secs_f64()));
        };
        let port = self.peer().at.port();
        match words {
            PacketNotation::Any => {}
            PacketNotation::Icmp(_) => return Err("ICMP messages are not expected".into()),
            PacketNotation::Segment(s) if packet.dst.port() == port => {
                self.peer().compare(s, &packet).map_err(|e| {
                    let got = self.peer().describe(&packet, false);
                    format!("{e}: it was {got}")
                })?;
            }
            PacketNotation::Segment(_) => return Err("it went to another peer".into()),
        }
        self.last = at;
        if at > latest || at.as_nanos() + kind.earlier().as_nanos() < earliest {
            let after = at.as_secs_f64() - began.as_secs_f64();
            return Err(format!("it left {after:.3} s after the line before"));
        }
        Ok(())
    }

    fn make_call(&mut self, call: &Call) -> Result<(), String> {
        let (end, written) = (self.end(), self.peer().written);
        let data = match call {
            Call::Write(n, _) => pattern::bytes(written as i64, *n as usize),
            _ => Vec::new(),
        };
        let answer = self.target.call(end, call, &data)?;
        match (call, answer) {
            (Call::Write(n, want), Answer::Wrote(got)) => {
                self.peer().written += got;
                let want = want.unwrap_or(*n);
                if got == want { Ok(()) } else { Err(format!("{got} bytes were taken")) }
            }
            (Call::Read(_, want), Answer::Read(data)) => {
                self.peer().was_read(&data)?;
                match want {
                    Some(n) if data.len() as u64 != *n => Err(format!("{} bytes were read", data.len())),
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}

//! The near end of tests: which path is tested when, and what is sent. It reads no clock and owns no socket.
//!
//! ```text
//! waiting ─▶ greeting ─▶ train ─▶ asking ─▶ train … ─▶ verdict ─▶ waiting
//! ```
//! One path is tested at a time, so that tests do not disturb each other.

use super::judge::{self, Counts, Probe, Verdict};
use super::message::{LONGEST, Message};
use super::settings::Settings;
use serde::{Deserialize, Serialize};
use skyhaul_base::{Duration, Instant, Rng};
use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;

/// Maximum number of paths.
const PATHS: usize = 64;
/// Time to the answer of a greeting, doubled with each attempt, and the number of attempts.
const PATIENCE: Duration = Duration::from_secs(1);
const GREETINGS: u32 = 5;
/// Time from the end of a train to the first question about it, in addition to twice the RTT, and between questions.
const SETTLED: Duration = Duration::from_millis(1500);
const QUESTIONS: u32 = 6;
/// Probes of the first train; doubled while they do not load the link.
const FIRST: usize = 48;
/// Wait after a test without result.
const AGAIN: Duration = Duration::from_secs(60);
/// Tests without an answer after which a path that connections found is forgotten.
const FAILURES: u32 = 3;

/// The result of a test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Finding {
    /// How the path treats low priority.
    pub verdict: Verdict,
    /// Why there is no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Cow<'static, str>>,
    /// What was counted.
    pub counts: Counts,
}

/// What is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outgoing {
    pub(crate) to: SocketAddr,
    /// With low priority.
    pub(crate) low: bool,
    pub(crate) message: Message,
}

#[derive(Debug)]
enum State {
    Waiting { until: Instant },
    Greeting { nonce: u64, tries: u32, next: Instant, began: Instant },
    Train { from: Instant },
    Asking { tries: u32, next: Instant },
}

#[derive(Debug)]
struct Path {
    /// Where it is greeted: a gateway, or a host behind it.
    greet: SocketAddr,
    /// The gateway that answered, or that a connection has named.
    gateway: Option<NonZeroU32>,
    /// The file names it.
    fixed: bool,
    failures: u32,
    state: State,
    at: SocketAddr,
    token: u64,
    rtt: Duration,
    number: u16,
    length: usize,
    train: Vec<Probe>,
    /// When each probe of the train left.
    sent: Vec<i64>,
    packets: u32,
    counts: Counts,
}

impl Path {
    fn new(now: Instant, greet: SocketAddr, gateway: Option<NonZeroU32>, fixed: bool) -> Self {
        Self {
            greet,
            gateway,
            fixed,
            failures: 0,
            state: State::Waiting { until: now },
            at: greet,
            token: 0,
            rtt: Duration::ZERO,
            number: 0,
            length: FIRST,
            train: Vec::new(),
            sent: Vec::new(),
            packets: 0,
            counts: Counts::default(),
        }
    }
    fn is_waiting(&self) -> bool {
        matches!(self.state, State::Waiting { .. })
    }
    fn due(&self) -> Instant {
        match self.state {
            State::Waiting { until } => until,
            State::Train { from } => from,
            State::Greeting { next, .. } | State::Asking { next, .. } => next,
        }
    }
}

/// The testing end of all tests.
#[derive(Debug)]
pub(crate) struct Tester {
    settings: Settings,
    /// DSCP of low priority.
    dscp: u8,
    rng: Rng,
    paths: Vec<Path>,
    found: Vec<(NonZeroU32, Finding)>,
}

#[expect(clippy::indexing_slicing, reason = "numbers of its own paths")]
impl Tester {
    pub(crate) fn new(now: Instant, settings: &Settings, dscp: u8, rng: Rng) -> Self {
        let at = |ip: &IpAddr| SocketAddr::new(*ip, settings.port);
        let paths = settings.peers.iter().map(|ip| Path::new(now, at(ip), None, true)).collect();
        Self { settings: settings.clone(), dscp, rng, paths, found: Vec::new() }
    }

    /// A connection has found a gateway in front of a host.
    pub(crate) fn meet(&mut self, now: Instant, gateway: NonZeroU32, host: IpAddr) {
        let known = self.paths.iter().any(|p| p.gateway == Some(gateway));
        // A path from the file may be that to this gateway; it says so when it is greeted.
        let unsure = self.paths.iter().any(|p| p.gateway.is_none() && p.failures == 0);
        if !known && !unsure && self.paths.len() < PATHS {
            self.paths.push(Path::new(now, SocketAddr::new(host, self.settings.port), Some(gateway), false));
        }
    }

    /// The result of a test that has ended.
    pub(crate) fn next_found(&mut self) -> Option<(NonZeroU32, Finding)> {
        (!self.found.is_empty()).then(|| self.found.remove(0))
    }
    /// When there may be something to send.
    pub(crate) fn next_timeout(&self) -> Instant {
        let busy = self.paths.iter().find(|p| !p.is_waiting());
        let next = busy.map(Path::due).or_else(|| self.paths.iter().map(Path::due).min());
        next.unwrap_or(Instant::MAX)
    }

    /// The next message to send now.
    pub(crate) fn next_outgoing(&mut self, now: Instant) -> Option<Outgoing> {
        loop {
            let n = self.paths.iter().position(|p| !p.is_waiting()).or_else(|| {
                let due = |p: &&Path| p.due() <= now;
                let first = self.paths.iter().filter(due).min_by_key(|p| p.due())?.greet;
                self.paths.iter().position(|p| p.greet == first)
            })?;
            if self.paths[n].due() > now {
                return None;
            }
            if let Some(out) = self.advance(now, n) {
                return Some(out);
            }
        }
    }

    fn advance(&mut self, now: Instant, n: usize) -> Option<Outgoing> {
        let p = &mut self.paths[n];
        match &mut p.state {
            State::Waiting { .. } => {
                (p.number, p.length, p.packets, p.counts) = (0, FIRST, 0, Counts::default());
                p.state = State::Greeting { nonce: self.rng.next_u64(), tries: 0, next: now, began: now };
                None
            }
            State::Greeting { nonce, tries, next, began } => {
                if *tries == GREETINGS {
                    self.give_up(now, n, "nobody answers at its port");
                    return None;
                }
                *next = now + PATIENCE * (1 << *tries);
                *tries += 1;
                *began = now;
                Some(Outgoing { to: p.greet, low: false, message: Message::Hello { nonce: *nonce } })
            }
            State::Train { .. } => {
                let index = p.sent.len();
                let Some(probe) = p.train.get(index) else {
                    p.state = State::Asking { tries: 0, next: now + p.rtt * 2 + SETTLED };
                    return None;
                };
                p.sent.push((now.as_nanos() / 1000) as i64);
                p.packets += 1;
                let message = Message::Probe { token: p.token, train: p.number, index: index as u8 };
                Some(Outgoing { to: p.at, low: probe.low, message })
            }
            State::Asking { tries, next } => {
                if *tries == QUESTIONS {
                    self.give_up(now, n, "the far gateway does not report what arrived");
                    return None;
                }
                *next = now + p.rtt * 2 + SETTLED;
                *tries += 1;
                let message = Message::Ask { token: p.token, train: p.number };
                Some(Outgoing { to: p.at, low: false, message })
            }
        }
    }

    /// Takes an answer.
    pub(crate) fn take(&mut self, now: Instant, from: SocketAddr, message: &Message) {
        let Some(n) = self.paths.iter().position(|p| !p.is_waiting()) else { return };
        let p = &mut self.paths[n];
        match (&p.state, message) {
            (State::Greeting { nonce, began, .. }, Message::Welcome { nonce: said, gateway, token })
                if said == nonce =>
            {
                (p.rtt, p.at, p.token) = (now.since(*began), from, *token);
                (p.gateway, p.failures) = (Some(*gateway), 0);
                let twin =
                    self.paths.iter().enumerate().any(|(k, other)| k < n && other.gateway == Some(*gateway));
                if twin {
                    // It is tested by another address already.
                    self.rest(now, n, self.settings.interval.0);
                } else {
                    self.begin_train(now, n);
                }
            }
            (State::Asking { .. }, Message::Report { token, train, arrivals })
                if *token == p.token && *train == p.number && from == p.at =>
            {
                let counts = judge::judge(&p.train, &p.sent, arrivals, self.dscp);
                p.counts.add(&counts);
                if counts.loaded == 0 {
                    p.length = (p.length * 2).min(LONGEST);
                }
                self.decide(now, n);
            }
            _ => {}
        }
    }

    fn begin_train(&mut self, now: Instant, n: usize) {
        let p = &mut self.paths[n];
        p.number = p.number.wrapping_add(1);
        p.train = judge::train(p.length, &mut self.rng);
        p.sent.clear();
        p.state = State::Train { from: now };
    }

    fn decide(&mut self, now: Instant, n: usize) {
        let p = &self.paths[n];
        let verdict = p.counts.verdict();
        if verdict == Verdict::Unknown && p.packets + p.length as u32 <= self.settings.packets {
            return self.begin_train(now, n);
        }
        let why = (verdict == Verdict::Unknown).then_some(match p.counts.loaded {
            0 => "its probes do not fill a queue: the link is faster than they are sent",
            _ => "its probes show no clear difference, and no clear equality",
        });
        let finding = Finding { verdict, why: why.map(Cow::from), counts: p.counts };
        self.found.extend(p.gateway.map(|g| (g, finding)));
        self.rest(now, n, self.settings.interval.0);
    }

    fn give_up(&mut self, now: Instant, n: usize, why: &'static str) {
        let p = &mut self.paths[n];
        p.failures += 1;
        let finding = Finding { verdict: Verdict::Unknown, why: Some(why.into()), counts: p.counts };
        self.found.extend(p.gateway.map(|g| (g, finding)));
        if p.failures >= FAILURES && !p.fixed {
            self.paths.remove(n);
        } else {
            if p.fixed {
                // It may have started anew, with another number.
                p.gateway = None;
            }
            self.rest(now, n, AGAIN.min(self.settings.interval.0));
        }
    }

    fn rest(&mut self, now: Instant, n: usize, wait: Duration) {
        self.paths[n].state = State::Waiting { until: now + wait };
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::Answerer;
    use super::*;
    use std::collections::VecDeque;

    const GATEWAY: NonZeroU32 = NonZeroU32::MIN;

    /// A path to an answerer: 10 µs per probe to send, 800 µs to carry one, in the order of arrival or low priority last.
    struct World {
        now: Instant,
        tester: Tester,
        answerer: Option<Answerer>,
        priority: bool,
        per_probe: Duration,
        probes: u32,
        found: Vec<Finding>,
    }

    fn ours() -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], 21_320))
    }
    fn theirs() -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 2], 21_320))
    }

    impl World {
        fn new(priority: bool, peers: Vec<IpAddr>) -> Self {
            let settings = Settings { peers, ..Settings::default() };
            Self {
                now: Instant::ZERO,
                tester: Tester::new(Instant::ZERO, &settings, 1, Rng::stream(5, "tester")),
                answerer: Some(Answerer::new(GATEWAY)),
                priority,
                per_probe: Duration::from_micros(800),
                probes: 0,
                found: Vec::new(),
            }
        }
        fn run(&mut self, seconds: u64) {
            let end = self.now + Duration::from_secs(seconds);
            while self.now < end {
                let mut train = VecDeque::new();
                let mut others = Vec::new();
                while let Some(out) = self.tester.next_outgoing(self.now) {
                    if matches!(out.message, Message::Probe { .. }) {
                        train.push_back(out)
                    } else {
                        others.push(out)
                    };
                    self.now += Duration::from_micros(10);
                }
                self.probes += train.len() as u32;
                if self.priority && !train.is_empty() {
                    train.make_contiguous()[1..].sort_by_key(|o| o.low);
                }
                let mut at = self.now + Duration::from_millis(300);
                for out in train.into_iter().chain(others) {
                    at += self.per_probe;
                    let Some(a) = &mut self.answerer else { continue };
                    if let Some(said) = a.take(at, ours(), u8::from(out.low), &out.message) {
                        self.tester.take(at + Duration::from_millis(300), theirs(), &said);
                        self.now = at;
                    }
                }
                while let Some((g, finding)) = self.tester.next_found() {
                    assert_eq!(g, GATEWAY);
                    self.found.push(finding);
                }
                self.now = self.now.max(self.tester.next_timeout()).min(end);
                if self.tester.next_timeout() == Instant::MAX {
                    self.now = end;
                }
            }
        }
    }

    #[test]
    fn a_gateway_that_a_connection_found_is_tested_again_and_again() {
        for (priority, verdict) in [(true, Verdict::Honoured), (false, Verdict::Ignored)] {
            let mut w = World::new(priority, Vec::new());
            w.tester.meet(w.now, GATEWAY, [198, 51, 100, 1].into());
            w.tester.meet(w.now, GATEWAY, [198, 51, 100, 2].into());
            w.run(100);
            assert_eq!(w.found.iter().map(|f| f.verdict).collect::<Vec<_>>(), [verdict], "{:?}", w.found);
            assert!(w.probes <= 500, "{}", w.probes);
            w.run(600);
            assert_eq!(w.found.len(), 2, "once per interval");
            // The link is another one now.
            w.priority = !priority;
            w.run(600);
            assert_ne!(w.found[2].verdict, verdict);
        }
    }

    #[test]
    fn a_fast_link_and_a_silent_gateway_give_no_result() {
        let mut w = World::new(true, vec![theirs().ip()]);
        w.per_probe = Duration::from_micros(10);
        w.run(300);
        assert_eq!(w.found.len(), 1);
        assert_eq!((w.found[0].verdict, w.found[0].counts.loaded), (Verdict::Unknown, 0));
        assert!(w.probes <= 1500, "{}", w.probes);
        // It goes away: its number is not asked for any more, and it is greeted until it is back.
        w.answerer = None;
        w.run(1200);
        assert_eq!(w.found.last().unwrap().why.as_deref(), Some("nobody answers at its port"));
        let known = w.found.len();
        w.answerer = Some(Answerer::new(GATEWAY));
        w.per_probe = Duration::from_micros(800);
        w.run(200);
        assert_eq!((w.found.len(), w.found[known].verdict), (known + 1, Verdict::Honoured));
    }

    #[test]
    fn what_nobody_asked_for_is_ignored() {
        let mut w = World::new(false, vec![theirs().ip()]);
        let lies = [
            Message::Welcome { nonce: 0, gateway: GATEWAY, token: 0 },
            Message::Report { token: 0, train: 1, arrivals: Vec::new() },
            Message::Hello { nonce: 0 },
        ];
        for _ in 0..3 {
            lies.iter().for_each(|m| w.tester.take(w.now, theirs(), m));
            w.tester.next_outgoing(w.now);
        }
        assert_eq!(w.tester.paths[0].gateway, None);
        assert!(w.tester.next_found().is_none());
    }
}

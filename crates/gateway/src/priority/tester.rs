//! The near end of path priority tests: which path is tested when, and what is sent. It reads no clock and owns no socket.
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
/// How long the first greeting waits for an answer; each further attempt waits twice as long.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// Number of greetings of a test.
const GREETING_TRIES: u32 = 5;
/// Time from the end of a train to the first question about it, in addition to twice the RTT, and between questions.
const SETTLED: Duration = Duration::from_millis(1500);
/// Number of questions about a train.
const QUESTION_TRIES: u32 = 6;
/// Probes of the first train; doubled while they do not load the link.
const FIRST_LENGTH: usize = 48;
/// Wait after a test without an answer, and the longest wait for the test of a gateway that is new at a known address.
const RETRY_WAIT: Duration = Duration::from_secs(60);
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
    Testing(Test),
}

/// A test with a gateway that has answered the greeting.
#[derive(Debug)]
struct Test {
    /// The address that answered: probes and questions go there.
    at: SocketAddr,
    /// Identifies the test to the far gateway.
    token: u64,
    rtt: Duration,
    /// Number of the train.
    number: u16,
    /// Probes of the next train.
    length: usize,
    train: Vec<Probe>,
    /// When each probe of the train left, microseconds.
    sent: Vec<i64>,
    /// Probes sent in this test.
    packets: u32,
    counts: Counts,
    step: Step,
}

#[derive(Debug)]
enum Step {
    Train { start: Instant },
    Asking { tries: u32, next: Instant },
}

#[derive(Debug)]
struct Path {
    /// The address to which greetings go: that of a gateway, or of a host behind it. No two paths have the same one.
    greet: SocketAddr,
    /// The gateway that answered, or that a connection has named.
    gateway: Option<NonZeroU32>,
    /// Whether the configuration file lists the path.
    from_file: bool,
    /// Tests without an answer since the last answer.
    failures: u32,
    state: State,
}

impl Path {
    fn new(now: Instant, greet: SocketAddr, gateway: Option<NonZeroU32>, from_file: bool) -> Self {
        Self { greet, gateway, from_file, failures: 0, state: State::Waiting { until: now } }
    }
    fn is_waiting(&self) -> bool {
        matches!(self.state, State::Waiting { .. })
    }
    fn due(&self) -> Instant {
        match self.state {
            State::Waiting { until } => until,
            State::Greeting { next, .. } => next,
            State::Testing(Test { step: Step::Train { start }, .. }) => start,
            State::Testing(Test { step: Step::Asking { next, .. }, .. }) => next,
        }
    }
}

impl Test {
    fn begin_train(&mut self, now: Instant, rng: &mut Rng) {
        self.number = self.number.wrapping_add(1);
        self.train = judge::train(self.length, rng);
        self.sent.clear();
        self.step = Step::Train { start: now };
    }
}

/// The near end of path priority tests.
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
        let mut paths: Vec<Path> = Vec::new();
        for ip in &settings.peers {
            let greet = SocketAddr::new(*ip, settings.port);
            if paths.iter().all(|p| p.greet != greet) {
                paths.push(Path::new(now, greet, None, true));
            }
        }
        Self { settings: settings.clone(), dscp, rng, paths, found: Vec::new() }
    }

    /// A connection has found a gateway in front of a host.
    pub(crate) fn meet(&mut self, now: Instant, gateway: NonZeroU32, host: IpAddr) {
        let known = self.paths.iter().any(|p| p.gateway == Some(gateway));
        // A peer of the file that has not answered yet may be this gateway: its answer will state the number.
        let unsure = self.paths.iter().any(|p| p.gateway.is_none() && p.failures == 0);
        if known || unsure {
            return;
        }
        let greet = SocketAddr::new(host, self.settings.port);
        match self.paths.iter_mut().find(|p| p.greet == greet) {
            // The gateway has restarted with another number, or another one has taken its place. The number may also alternate
            // between two gateways: then a test in every interval of RETRY_WAIT is enough.
            Some(Path { gateway: stated, failures, state: State::Waiting { until }, .. }) => {
                (*stated, *failures) = (Some(gateway), 0);
                *until = (*until).min(now + RETRY_WAIT);
            }
            // A path that is being tested gets the number with the answer to its greeting.
            Some(_) => {}
            None => {
                if self.paths.len() < PATHS {
                    self.paths.push(Path::new(now, greet, Some(gateway), false));
                }
            }
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
                let due = self.paths.iter().enumerate().filter(|(_, p)| p.due() <= now);
                due.min_by_key(|(_, p)| p.due()).map(|(n, _)| n)
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
                p.state = State::Greeting { nonce: self.rng.next_u64(), tries: 0, next: now, began: now };
                None
            }
            State::Greeting { nonce, tries, next, began } => {
                if *tries == GREETING_TRIES {
                    self.give_up(now, n, "nobody answers at its port");
                    return None;
                }
                if *tries > 0 {
                    // The answer names the greeting that it answers: otherwise the RTT would be ambiguous (Karn's algorithm).
                    *nonce = self.rng.next_u64();
                }
                *next = now + ANSWER_TIMEOUT * (1 << *tries);
                *tries += 1;
                *began = now;
                Some(Outgoing { to: p.greet, low: false, message: Message::Hello { nonce: *nonce } })
            }
            State::Testing(t) => match &mut t.step {
                Step::Train { .. } => {
                    let index = t.sent.len();
                    let Some(probe) = t.train.get(index) else {
                        t.step = Step::Asking { tries: 0, next: now + t.rtt * 2 + SETTLED };
                        return None;
                    };
                    t.sent.push((now.as_nanos() / 1000) as i64);
                    t.packets += 1;
                    let message = Message::Probe { token: t.token, train: t.number, index: index as u8 };
                    Some(Outgoing { to: t.at, low: probe.low, message })
                }
                Step::Asking { tries, next } => {
                    if *tries == QUESTION_TRIES {
                        self.give_up(now, n, "the far gateway does not report what arrived");
                        return None;
                    }
                    *next = now + t.rtt * 2 + SETTLED;
                    *tries += 1;
                    let message = Message::Ask { token: t.token, train: t.number };
                    Some(Outgoing { to: t.at, low: false, message })
                }
            },
        }
    }

    /// Takes an answer.
    pub(crate) fn take(&mut self, now: Instant, from: SocketAddr, message: &Message) {
        let Some(n) = self.paths.iter().position(|p| !p.is_waiting()) else { return };
        let p = &mut self.paths[n];
        match (&mut p.state, message) {
            (State::Greeting { nonce, began, .. }, Message::Welcome { nonce: stated, gateway, token })
                if *stated == *nonce =>
            {
                let mut test = Test {
                    at: from,
                    token: *token,
                    rtt: now.since(*began),
                    // A random start, so that numbers of an earlier test do not recur: its last train may still be in the log of the
                    // far gateway.
                    number: *nonce as u16,
                    length: FIRST_LENGTH,
                    train: Vec::new(),
                    sent: Vec::new(),
                    packets: 0,
                    counts: Counts::default(),
                    step: Step::Train { start: now },
                };
                (p.gateway, p.failures) = (Some(*gateway), 0);
                let twin =
                    self.paths.iter().enumerate().any(|(k, other)| k < n && other.gateway == Some(*gateway));
                if twin {
                    // Another path to this gateway is tested already.
                    self.rest(now, n, self.settings.interval.0);
                } else {
                    test.begin_train(now, &mut self.rng);
                    self.paths[n].state = State::Testing(test);
                }
            }
            (State::Testing(t), Message::Report { token, train, arrivals })
                if matches!(t.step, Step::Asking { .. })
                    && *token == t.token
                    && *train == t.number
                    && from == t.at =>
            {
                let counts = judge::judge(&t.train, &t.sent, arrivals, self.dscp);
                t.counts.add(&counts);
                if counts.loaded == 0 {
                    t.length = (t.length * 2).min(LONGEST);
                }
                self.decide(now, n);
            }
            _ => {}
        }
    }

    fn decide(&mut self, now: Instant, n: usize) {
        let p = &mut self.paths[n];
        let State::Testing(t) = &mut p.state else { return };
        let verdict = t.counts.verdict();
        if verdict == Verdict::Unknown && t.packets + t.length as u32 <= self.settings.packets {
            return t.begin_train(now, &mut self.rng);
        }
        let why = (verdict == Verdict::Unknown).then_some(match t.counts.loaded {
            0 => "its probes do not fill a queue: the link is faster than they are sent",
            _ => "its probes show no clear difference, and no clear equality",
        });
        let finding = Finding { verdict, why: why.map(Cow::from), counts: t.counts };
        self.found.extend(p.gateway.map(|g| (g, finding)));
        self.rest(now, n, self.settings.interval.0);
    }

    fn give_up(&mut self, now: Instant, n: usize, why: &'static str) {
        let p = &mut self.paths[n];
        p.failures += 1;
        let counts = if let State::Testing(t) = &p.state { t.counts } else { Counts::default() };
        let finding = Finding { verdict: Verdict::Unknown, why: Some(why.into()), counts };
        self.found.extend(p.gateway.map(|g| (g, finding)));
        if p.failures >= FAILURES && !p.from_file {
            self.paths.remove(n);
        } else {
            if p.from_file {
                // The gateway may have restarted, with another number.
                p.gateway = None;
            }
            self.rest(now, n, RETRY_WAIT.min(self.settings.interval.0));
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
        /// The number that the answerer states, and the answerer.
        gateway: NonZeroU32,
        answerer: Option<Answerer>,
        priority: bool,
        per_probe: Duration,
        /// Messages that the path loses.
        loses: fn(&Message) -> bool,
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
                gateway: GATEWAY,
                answerer: Some(Answerer::new(GATEWAY)),
                priority,
                per_probe: Duration::from_micros(800),
                loses: |_| false,
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
                assert!(self.tester.next_timeout() > self.now, "nothing is sent at the time of the timeout");
                self.probes += train.len() as u32;
                if self.priority && !train.is_empty() {
                    train.make_contiguous()[1..].sort_by_key(|o| o.low);
                }
                let mut at = self.now + Duration::from_millis(300);
                for out in train.into_iter().chain(others) {
                    at += self.per_probe;
                    let Some(a) = self.answerer.as_mut().filter(|_| !(self.loses)(&out.message)) else {
                        continue;
                    };
                    let answer = a.take(at, ours(), u8::from(out.low), &out.message);
                    if let Some(answer) = answer.filter(|answer| !(self.loses)(answer)) {
                        self.tester.take(at + Duration::from_millis(300), theirs(), &answer);
                        self.now = at;
                    }
                }
                while let Some((g, finding)) = self.tester.next_found() {
                    assert_eq!(g, self.gateway);
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
            // The path now treats low priority in the other way.
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
        // The gateway stops. Its number is forgotten, and greetings go to its address until it answers again.
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
    fn a_gateway_that_restarts_with_another_number_is_tested_at_the_same_address() {
        let mut w = World::new(true, Vec::new());
        let host = IpAddr::from([198, 51, 100, 1]);
        w.tester.meet(w.now, GATEWAY, host);
        w.run(100);
        w.gateway = NonZeroU32::new(2).unwrap();
        w.answerer = Some(Answerer::new(w.gateway));
        w.tester.meet(w.now, w.gateway, host);
        w.run(100);
        assert_eq!(w.found.iter().map(|f| f.verdict).collect::<Vec<_>>(), [Verdict::Honoured; 2]);
        assert_eq!(w.tester.paths.len(), 1);
        // The number alternates between two gateways: at most one test a minute.
        for n in 0..600 {
            let other = if n % 2 == 0 { GATEWAY } else { w.gateway };
            w.tester.meet(w.now, other, host);
            w.run(1);
        }
        assert!((3..=13).contains(&w.found.len()), "{}", w.found.len());
        assert_eq!(w.tester.paths.len(), 1);
    }

    #[test]
    fn an_address_that_the_file_lists_twice_is_one_path() {
        let mut w = World::new(true, vec![theirs().ip(); 2]);
        w.run(700);
        assert_eq!((w.tester.paths.len(), w.found.len()), (1, 2));
    }

    #[test]
    fn the_rtt_is_measured_from_the_greeting_that_was_answered() {
        // 700 ms each way: the answer to the first greeting arrives after the second greeting has left.
        let one_way = Duration::from_millis(700);
        let settings = Settings { peers: vec![theirs().ip()], ..Settings::default() };
        let mut tester = Tester::new(Instant::ZERO, &settings, 1, Rng::stream(5, "tester"));
        let mut answerer = Answerer::new(GATEWAY);
        let (mut now, mut answers) = (Instant::ZERO, VecDeque::new());
        while tester.paths[0].gateway.is_none() {
            while let Some(out) = tester.next_outgoing(now) {
                assert!(matches!(out.message, Message::Hello { .. }), "{out:?}");
                let answer = answerer.take(now + one_way, ours(), 0, &out.message).unwrap();
                answers.push_back((now + one_way * 2, answer));
            }
            let arrival = answers.front().map_or(Instant::MAX, |(at, _)| *at);
            now = arrival.min(tester.next_timeout());
            if arrival <= now {
                let (_, answer) = answers.pop_front().unwrap();
                tester.take(now, theirs(), &answer);
            }
        }
        let State::Testing(test) = &tester.paths[0].state else { panic!("{:?}", tester.paths) };
        assert_eq!(test.rtt, one_way * 2);
    }

    #[test]
    fn a_report_never_shows_the_train_of_an_earlier_test() {
        let mut w = World::new(true, vec![theirs().ip()]);
        w.loses = |m| matches!(m, Message::Report { .. });
        w.run(60);
        // The far gateway still has the first train, but all probes of the second test are lost.
        w.loses = |m| matches!(m, Message::Probe { .. });
        w.run(300);
        let counts = w.found.last().unwrap().counts;
        assert_eq!((w.found.len(), counts.pairs, counts.broken), (2, 0, 0), "{counts:?}");
        assert!(counts.trains > 0);
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

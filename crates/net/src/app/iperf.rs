//! The server's side of iperf3's protocol, so that any iperf3 client can measure with our receiver, and with our sender
//! (`iperf3 -c … -R`). TCP tests with one or more parallel streams in one direction; one test at a time, as iperf3 does.
//!
//! A control connection and the streams all begin with the test's cookie. The control connection carries states of one
//! byte each, and JSON behind a length of four bytes.

use super::account::Account;
use super::meter::Meter;
use crate::host::{App, Turn};
use crate::host::{ConnId, Host};
use serde_json::{Value, json};
use skyhaul_base::{Duration, Instant};
use std::collections::BTreeMap;

const COOKIE: usize = 37;
/// Longest JSON text that is taken.
const LONGEST_TEXT: usize = 1 << 16;

const TEST_START: u8 = 1;
const TEST_RUNNING: u8 = 2;
const TEST_END: u8 = 4;
const PARAM_EXCHANGE: u8 = 9;
const CREATE_STREAMS: u8 = 10;
const SERVER_TERMINATE: u8 = 11;
const EXCHANGE_RESULTS: u8 = 13;
const DISPLAY_RESULTS: u8 = 14;
const IPERF_DONE: u8 = 16;
/// -1 and -2 as bytes.
const ACCESS_DENIED: u8 = 255;
const SERVER_ERROR: u8 = 254;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Parameters,
    Streams,
    Running,
    Results,
    Done,
}

/// A test in progress.
#[derive(Debug)]
struct Test {
    cookie: Vec<u8>,
    control: ConnId,
    phase: Phase,
    parallel: usize,
    reverse: bool,
    streams: Vec<(ConnId, Meter)>,
    /// Of streams that were let go.
    accounts: Vec<Account>,
    input: Vec<u8>,
}

/// What became of a test.
#[derive(Clone, Debug)]
pub struct Tested {
    /// The client received, we sent.
    pub reverse: bool,
    /// One for each stream.
    pub meters: Vec<Meter>,
    /// What is known of each connection.
    pub accounts: Vec<Account>,
    /// Both sides have exchanged their results.
    pub in_order: bool,
}

/// Why a test is not served; the client itself is told no more than that a parameter was bad.
fn why_not(wanted: Option<&Value>) -> &'static str {
    let flag = |key: &str| wanted.is_some_and(|p| p[key].as_bool().unwrap_or(false));
    if flag("udp") {
        "it is of UDP (-u), and only TCP is served"
    } else if flag("bidirectional") {
        "it goes both ways at once (--bidir): run it once as it is and once with -R"
    } else if wanted.is_some_and(|p| p["parallel"].as_u64().unwrap_or(1) > 128) {
        "it has more than 128 streams"
    } else {
        "its parameters make no sense"
    }
}

/// An iperf3 server.
#[derive(Debug)]
pub struct Iperf {
    /// Name of our congestion control, for the client's report.
    control_name: String,
    every: Duration,
    test: Option<Test>,
    refused: Vec<&'static str>,
    /// Connections whose cookie has not come.
    new: BTreeMap<ConnId, Vec<u8>>,
    chunk: Vec<u8>,
    tested: Vec<Tested>,
    most: Option<u64>,
    count: u64,
    stopping: bool,
    next_tick: Instant,
}

impl Iperf {
    /// A server that names its congestion control so, and ends after `most` tests, or never.
    #[must_use]
    pub fn new(control_name: String, every: Duration, most: Option<u64>) -> Self {
        Self {
            control_name,
            every,
            test: None,
            refused: Vec::new(),
            new: BTreeMap::new(),
            chunk: (0..1 << 16).map(|i: u32| (i ^ (i >> 8)) as u8).collect(),
            tested: Vec::new(),
            most,
            count: 0,
            stopping: false,
            next_tick: Instant::MAX,
        }
    }
    /// Tests that ended since the last call.
    pub fn take_tested(&mut self) -> Vec<Tested> {
        std::mem::take(&mut self.tested)
    }
    /// Why tests were not served since the last call.
    pub fn take_refused(&mut self) -> Vec<&'static str> {
        std::mem::take(&mut self.refused)
    }
    /// The meters of the test in progress.
    pub fn open(&mut self) -> impl Iterator<Item = &mut Meter> {
        self.test.iter_mut().flat_map(|t| t.streams.iter_mut().map(|(_, m)| m))
    }

    fn say(now: Instant, host: &mut Host, to: ConnId, state: u8) {
        host.write(now, to, &[state]);
    }

    /// A connection has sent its cookie.
    fn greet(&mut self, now: Instant, host: &mut Host, id: ConnId, cookie: Vec<u8>) {
        match &mut self.test {
            None => {
                Self::say(now, host, id, PARAM_EXCHANGE);
                self.test = Some(Test {
                    cookie,
                    control: id,
                    phase: Phase::Parameters,
                    parallel: 1,
                    reverse: false,
                    streams: Vec::new(),
                    accounts: Vec::new(),
                    input: Vec::new(),
                });
            }
            Some(t) if t.cookie == cookie && t.phase == Phase::Streams && t.streams.len() < t.parallel => {
                let mut meter = Meter::new(!t.reverse, self.every);
                meter.begin(now);
                t.streams.push((id, meter));
                if t.streams.len() == t.parallel {
                    Self::say(now, host, t.control, TEST_START);
                    Self::say(now, host, t.control, TEST_RUNNING);
                    t.phase = Phase::Running;
                }
            }
            Some(_) => {
                // Busy with another test.
                Self::say(now, host, id, ACCESS_DENIED);
                host.release(now, id);
            }
        }
    }

    fn end(&mut self, now: Instant, host: &mut Host, in_order: bool) {
        let Some(mut t) = self.test.take() else { return };
        let let_go = !t.accounts.is_empty();
        for (id, meter) in &mut t.streams {
            if let Some(c) = host.conn(*id).filter(|_| !let_go) {
                meter.finish(now, c);
                t.accounts.push(Account::of(c));
            }
            host.discard(now, *id);
            host.release(now, *id);
        }
        host.discard(now, t.control);
        host.release(now, t.control);
        let mut accounts = t.accounts;
        for a in &mut accounts {
            a.in_order = in_order && a.failure.is_none();
        }
        if accounts.len() == t.parallel && accounts.len() == t.streams.len() {
            let meters = t.streams.into_iter().map(|(_, m)| m).collect();
            self.tested.push(Tested { reverse: t.reverse, meters, accounts, in_order });
        }
        self.count += 1;
    }

    /// Data of the streams.
    fn run(&mut self, now: Instant, host: &mut Host) {
        let Some(t) = self.test.as_mut().filter(|t| t.phase == Phase::Running) else { return };
        for (id, meter) in &mut t.streams {
            if t.reverse {
                while host.write(now, *id, &self.chunk) == self.chunk.len() {}
            }
            host.discard(now, *id);
            if let Some(c) = host.conn(*id) {
                meter.turn(now, c);
            }
        }
        self.next_tick = t.streams.iter().map(|(_, m)| m.next()).min().unwrap_or(Instant::MAX);
    }

    /// A JSON text behind its length, once it is complete. `Err` if it is none.
    fn text(input: &mut Vec<u8>) -> Option<Result<Value, ()>> {
        let len = u32::from_be_bytes(*input.first_chunk()?) as usize;
        if len > LONGEST_TEXT {
            return Some(Err(()));
        }
        let text = input.get(4..4 + len)?;
        let value = serde_json::from_slice(text).map_err(drop);
        input.drain(..4 + len);
        Some(value)
    }

    /// What the control connection says.
    fn control(&mut self, now: Instant, host: &mut Host) {
        let Some(t) = &mut self.test else { return };
        let mut buf = [0; 4096];
        loop {
            let n = host.read(now, t.control, &mut buf);
            t.input.extend_from_slice(&buf[..n]);
            if n < buf.len() {
                break;
            }
        }
        loop {
            let Some(t) = &mut self.test else { return };
            match t.phase {
                Phase::Parameters => {
                    let Some(p) = Self::text(&mut t.input) else { break };
                    let flag = |p: &Value, key: &str| p[key].as_bool().unwrap_or(false);
                    let number = |p: &Value, key: &str| p[key].as_u64().unwrap_or(1);
                    match p {
                        Ok(p)
                            if flag(&p, "tcp")
                                && !flag(&p, "bidirectional")
                                && number(&p, "parallel") <= 128 =>
                        {
                            t.parallel = number(&p, "parallel").max(1) as usize;
                            t.reverse = flag(&p, "reverse");
                            t.phase = Phase::Streams;
                            Self::say(now, host, t.control, CREATE_STREAMS);
                        }
                        // UDP, both directions at once, too many streams, or nonsense: two numbers follow the state,
                        // iperf3's own for "bad parameter" and the system's.
                        other => {
                            self.refused.push(why_not(other.as_ref().ok()));
                            let control = t.control;
                            host.write(now, control, &[SERVER_ERROR, 0, 0, 0, 116, 0, 0, 0, 0]);
                            self.end(now, host, false);
                        }
                    }
                }
                Phase::Running => match t.input.first() {
                    Some(&TEST_END) => {
                        t.input.remove(0);
                        for (id, meter) in &mut t.streams {
                            host.discard(now, *id);
                            host.take_back(now, *id);
                            if let Some(c) = host.conn(*id) {
                                meter.finish(now, c);
                                t.accounts.push(Account::of(c));
                            }
                            // A client that receives still waits for the rest of its block: only a FIN ends that.
                            host.release(now, *id);
                        }
                        t.phase = Phase::Results;
                        Self::say(now, host, t.control, EXCHANGE_RESULTS);
                    }
                    Some(_) => self.end(now, host, false),
                    None => break,
                },
                Phase::Results => {
                    let Some(theirs) = Self::text(&mut t.input) else { break };
                    if theirs.is_err() {
                        self.end(now, host, false);
                        return;
                    }
                    let text = results(t, &self.control_name).to_string();
                    host.write(now, t.control, &(text.len() as u32).to_be_bytes());
                    host.write(now, t.control, text.as_bytes());
                    Self::say(now, host, t.control, DISPLAY_RESULTS);
                    t.phase = Phase::Done;
                }
                Phase::Done => match t.input.first() {
                    Some(&IPERF_DONE) => self.end(now, host, true),
                    Some(_) => self.end(now, host, false),
                    None => break,
                },
                // The client terminates, or talks nonsense.
                Phase::Streams if !t.input.is_empty() => self.end(now, host, false),
                Phase::Streams => break,
            }
        }
        let Some(t) = &self.test else { return };
        let gone = host.conn(t.control).is_none_or(|c| c.is_over() || c.at_end());
        if gone {
            let in_order = t.phase == Phase::Done;
            self.end(now, host, in_order);
        }
    }
}

/// Our results, as iperf3 writes them.
fn results(t: &Test, control_name: &str) -> Value {
    let streams: Vec<Value> = t
        .streams
        .iter()
        .enumerate()
        .map(|(i, (_, meter))| {
            let sum = meter.sum();
            json!({
                // iperf3 numbers its streams 1, 3, 4, 5 and so on.
                "id": if i == 0 { 1 } else { i + 2 },
                "bytes": sum.bytes,
                "retransmits": if t.reverse { sum.retransmissions as i64 } else { -1 },
                "jitter": 0,
                "errors": 0,
                "omitted_errors": 0,
                "packets": 0,
                "omitted_packets": 0,
                "start_time": 0,
                "end_time": sum.to.as_secs_f64(),
            })
        })
        .collect();
    json!({
        "cpu_util_total": 0.0,
        "cpu_util_user": 0.0,
        "cpu_util_system": 0.0,
        "sender_has_retransmits": if t.reverse { 1 } else { -1 },
        "congestion_used": control_name,
        "streams": streams,
    })
}

impl App for Iperf {
    fn turn(&mut self, now: Instant, host: &mut Host) -> Turn {
        while let Some(id) = host.next_changed() {
            let Some(c) = host.conn(id) else { continue };
            let over = c.is_over();
            let test = self.test.as_ref();
            let known = test.is_some_and(|t| t.control == id || t.streams.iter().any(|(s, _)| *s == id));
            if !known {
                let mut cookie = self.new.remove(&id).unwrap_or_default();
                let mut buf = [0; COOKIE];
                let n = host.read(now, id, &mut buf[..COOKIE - cookie.len()]);
                cookie.extend_from_slice(&buf[..n]);
                if cookie.len() == COOKIE {
                    self.greet(now, host, id, cookie);
                } else if over {
                    host.release(now, id);
                } else {
                    self.new.insert(id, cookie);
                }
            }
        }
        self.run(now, host);
        self.control(now, host);
        let full = self.most.is_some_and(|most| self.count >= most);
        if (full || self.stopping) && self.test.is_none() { Turn::Done } else { Turn::Waiting }
    }

    fn next_timeout(&self) -> Instant {
        if self.test.as_ref().is_some_and(|t| t.phase == Phase::Running) {
            self.next_tick
        } else {
            Instant::MAX
        }
    }

    fn stop(&mut self, now: Instant, host: &mut Host) {
        self.stopping = true;
        if let Some(t) = &self.test {
            Self::say(now, host, t.control, SERVER_TERMINATE);
        }
        self.end(now, host, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_served_is_said_in_words() {
        let why = |text: &str| why_not(serde_json::from_str(text).ok().as_ref());
        assert!(why(r#"{"udp":true}"#).contains("-u"));
        assert!(why(r#"{"tcp":true,"bidirectional":true}"#).contains("--bidir"));
        assert!(why(r#"{"tcp":true,"parallel":500}"#).contains("128"));
        assert!(why("nonsense").contains("no sense"));
    }
}

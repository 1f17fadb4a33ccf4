//! The server side of iperf3's protocol. Any iperf3 client can measure with our receiver and with our sender
//! (`iperf3 -c … -R`, `--bidir`), over TCP and UDP (`-u`), with one or more parallel streams. Like iperf3, it runs
//! one test at a time.
//!
//! The control connection and the streams all start with the test's cookie. The control connection carries one-byte
//! states, and JSON texts with a length prefix of four bytes. A UDP stream starts with a datagram of four bytes and
//! its reply.

mod datagrams;
mod parameters;
mod results;
mod test;

pub use datagrams::Datagrams;

use super::account::Account;
use super::meter::Meter;
use crate::host::{App, AppStatus};
use crate::host::{Arrived, ConnId, Host};
use datagrams::welcome;
use parameters::TestParameters;
use serde_json::Value;
use skyhaul_base::{Duration, Instant};
use std::collections::BTreeMap;
use test::{Phase, Stream, Test};

/// Length of a test's cookie, bytes.
const COOKIE: usize = 37;
/// Maximum length of a JSON text, bytes.
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

/// The code of iperf3's error IERECVPARAMS.
const BAD_PARAMETERS: u8 = 114;

/// How long a connection may take to send its cookie.
const COOKIE_TIMEOUT: Duration = Duration::from_secs(30);
/// Header bytes of a datagram over IPv6.
const HEADERS: u32 = 48;

/// A connection of a test.
#[derive(Clone, Debug)]
pub struct TestedConnection {
    /// We sent, and the client received.
    pub sends: bool,
    /// Its measurements.
    pub meter: Meter,
    /// Its summary.
    pub account: Account,
}

/// The result of a test.
#[derive(Clone, Debug, Default)]
pub struct Tested {
    /// Its connections. In a test in both directions, those on which the client sent come first.
    pub connections: Vec<TestedConnection>,
    /// Its streams of datagrams.
    pub datagrams: Vec<Datagrams>,
    /// Both sides have exchanged their results.
    pub in_order: bool,
}

/// An iperf3 server.
#[derive(Debug)]
pub struct Iperf {
    /// Name of our congestion control, for the client's report.
    control_name: String,
    every: Duration,
    test: Option<Test>,
    refused: Vec<String>,
    /// Connections whose cookie has not arrived, and since when they have been open.
    new: BTreeMap<ConnId, (Vec<u8>, Instant)>,
    tested: Vec<Tested>,
    most: Option<u64>,
    /// Tests that have ended, refused ones included.
    count: u64,
    stopping: bool,
    /// When the test next needs a call.
    next: Instant,
}

impl Iperf {
    /// A server that reports this name of its congestion control, and measures in intervals of length `every`, which must
    /// not be zero. It ends after `most` tests, refused ones included, or never.
    #[must_use]
    pub fn new(control_name: String, every: Duration, most: Option<u64>) -> Self {
        Self {
            control_name,
            every,
            test: None,
            refused: Vec::new(),
            new: BTreeMap::new(),
            tested: Vec::new(),
            most,
            count: 0,
            stopping: false,
            next: Instant::MAX,
        }
    }
    /// Tests that ended since the last call.
    pub fn take_tested(&mut self) -> Vec<Tested> {
        std::mem::take(&mut self.tested)
    }
    /// Why tests were refused since the last call.
    pub fn take_refused(&mut self) -> Vec<String> {
        std::mem::take(&mut self.refused)
    }
    /// The meters of the connections of the test in progress.
    pub fn open(&mut self) -> impl Iterator<Item = &mut Meter> {
        self.test.iter_mut().flat_map(|t| t.streams.iter_mut().filter_map(Stream::meter))
    }

    fn say(now: Instant, host: &mut Host, to: ConnId, state: u8) {
        host.write(now, to, &[state]);
    }

    /// Handles a connection whose cookie is complete: it begins a test, is a stream of the present one, or is refused.
    fn greet(&mut self, now: Instant, host: &mut Host, id: ConnId, cookie: Vec<u8>) {
        match &mut self.test {
            None => {
                Self::say(now, host, id, PARAM_EXCHANGE);
                self.test = Some(Test::new(now, cookie, id));
            }
            Some(t)
                if t.cookie == cookie
                    && t.phase == Phase::Streams
                    && !t.parameters.udp
                    && t.streams.len() < t.parameters.streams() =>
            {
                let sends = t.parameters.sends(t.streams.len());
                let mut meter = Meter::new(!sends, self.every);
                // The cookie does not count as data.
                if let Some(c) = host.conn(id) {
                    meter.begin_from(now, c);
                }
                t.streams.push(Stream::Tcp { id, sends, meter, account: None });
                self.complete(now, host);
            }
            Some(_) => {
                // Busy with another test.
                Self::say(now, host, id, ACCESS_DENIED);
                host.release(now, id);
            }
        }
    }

    /// Starts the test once every stream is connected.
    fn complete(&mut self, now: Instant, host: &mut Host) {
        let Some(t) = self.test.as_mut().filter(|t| t.streams.len() == t.parameters.streams()) else {
            return;
        };
        Self::say(now, host, t.control, TEST_START);
        Self::say(now, host, t.control, TEST_RUNNING);
        t.begin(now);
        self.next = now;
    }

    /// Handles an arriving datagram.
    fn datagram(&mut self, now: Instant, host: &mut Host, d: &Arrived) {
        let Some(t) = self.test.as_mut().filter(|t| t.parameters.udp) else { return };
        let theirs = |s: &&mut Stream| matches!(s, Stream::Udp(known) if known.remote == d.from);
        if let Some(Stream::Udp(known)) = t.streams.iter_mut().find(theirs) {
            if t.phase == Phase::Running && !known.sends && d.payload.len() > 4 {
                known.arrived(d, t.parameters.wide);
            } else if t.phase == Phase::Streams {
                // The client repeats its hello if our reply was lost.
                let _ = host.send_to(d.to, d.from, &welcome(&d.payload));
            }
            return;
        }
        let client = host.conn(t.control).map(|c| c.remote().ip());
        if t.phase == Phase::Streams && client == Some(d.from.ip()) {
            let sends = t.parameters.sends(t.streams.len());
            t.streams.push(Stream::Udp(Datagrams::new(now, d.to, d.from, sends)));
            let _ = host.send_to(d.to, d.from, &welcome(&d.payload));
            self.complete(now, host);
        }
    }

    /// Ends the test and records its result if every stream was there.
    fn end(&mut self, now: Instant, host: &mut Host, in_order: bool) {
        let Some(mut t) = self.test.take() else { return };
        if t.phase == Phase::Running || t.phase == Phase::Streams {
            t.let_go(now, host);
        }
        host.discard(now, t.control);
        host.release(now, t.control);
        let whole = t.streams.len() == t.parameters.streams();
        let mut tested = Tested { in_order, ..Tested::default() };
        for s in t.streams {
            match s {
                Stream::Tcp { sends, meter, account: Some(mut account), .. } => {
                    account.in_order = in_order && account.failure.is_none();
                    tested.connections.push(TestedConnection { sends, meter, account });
                }
                Stream::Tcp { .. } => {}
                Stream::Udp(d) => tested.datagrams.push(d),
            }
        }
        if whole && tested.connections.len() + tested.datagrams.len() == t.parameters.streams() {
            self.tested.push(tested);
        }
        self.count += 1;
    }

    /// Drops clients that have been silent for too long.
    fn lose_patience(&mut self, now: Instant, host: &mut Host) {
        self.new.retain(|id, (_, since)| {
            let patient = now < *since + COOKIE_TIMEOUT;
            if !patient {
                host.abort(now, *id);
                host.release(now, *id);
            }
            patient
        });
        if let Some(t) = self.test.as_ref().filter(|t| now >= t.patience()) {
            t.give_up(now, host);
            self.end(now, host, false);
        }
    }

    /// Takes a JSON text with its length prefix; `None` until it is complete. `Err` if it is too long or not valid JSON.
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

    /// Handles the bytes of the control connection.
    fn control(&mut self, now: Instant, host: &mut Host) {
        let Some(t) = &mut self.test else { return };
        let mut buf = [0; 4096];
        loop {
            let n = host.read(now, t.control, &mut buf);
            if n > 0 {
                t.note_message(now);
            }
            t.input.extend(buf.iter().take(n));
            if n < buf.len() {
                break;
            }
        }
        loop {
            let Some(t) = &mut self.test else { return };
            match t.phase {
                Phase::Parameters => {
                    let Some(p) = Self::text(&mut t.input) else { break };
                    let longest = host.config().mtu.saturating_sub(HEADERS) as usize;
                    match TestParameters::read(&p.unwrap_or(Value::Null), longest) {
                        Ok(parameters) => {
                            t.parameters = parameters;
                            t.phase = Phase::Streams;
                            Self::say(now, host, t.control, CREATE_STREAMS);
                        }
                        // Two numbers follow the state: iperf3's IERECVPARAMS (its client says "unable to receive
                        // parameters from client"), and no errno.
                        Err(why) => {
                            self.refused.push(why);
                            let control = t.control;
                            host.write(now, control, &[SERVER_ERROR, 0, 0, 0, BAD_PARAMETERS, 0, 0, 0, 0]);
                            self.end(now, host, false);
                        }
                    }
                }
                Phase::Running => match t.input.first() {
                    Some(&TEST_END) => {
                        t.input.remove(0);
                        t.let_go(now, host);
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
                    let text = results::of(t, &self.control_name).to_string();
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
                // The client terminates, or violates the protocol.
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

impl App for Iperf {
    fn turn(&mut self, now: Instant, host: &mut Host) -> AppStatus {
        while let Some(id) = host.next_changed() {
            let Some(c) = host.conn(id) else { continue };
            let over = c.is_over();
            let known = self.test.as_ref().is_some_and(|t| t.control == id || t.has(id));
            if !known {
                let (mut cookie, since) = self.new.remove(&id).unwrap_or((Vec::new(), now));
                let mut buf = [0; COOKIE];
                let room = buf.get_mut(cookie.len()..).unwrap_or_default();
                let n = host.read(now, id, room);
                cookie.extend(room.iter().take(n));
                if cookie.len() == COOKIE {
                    self.greet(now, host, id, cookie);
                } else if over {
                    host.release(now, id);
                } else {
                    self.new.insert(id, (cookie, since));
                }
            }
        }
        while let Some(d) = host.receive() {
            self.datagram(now, host, &d);
        }
        if let Some(t) = self.test.as_mut().filter(|t| t.phase == Phase::Running) {
            self.next = t.run(now, host);
        }
        self.control(now, host);
        self.lose_patience(now, host);
        let full = self.most.is_some_and(|most| self.count >= most);
        if (full || self.stopping) && self.test.is_none() { AppStatus::Done } else { AppStatus::Waiting }
    }

    fn next_timeout(&self) -> Instant {
        let running = self.test.as_ref().filter(|t| t.phase == Phase::Running).map(|_| self.next);
        let silent = self.test.as_ref().map(Test::patience);
        let new = self.new.values().map(|(_, since)| *since + COOKIE_TIMEOUT).min();
        [running, silent, new].into_iter().flatten().min().unwrap_or(Instant::MAX)
    }

    fn stop(&mut self, now: Instant, host: &mut Host) {
        self.stopping = true;
        if let Some(t) = &self.test {
            Self::say(now, host, t.control, SERVER_TERMINATE);
        }
        self.end(now, host, false);
    }
}

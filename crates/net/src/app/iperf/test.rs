//! A test in progress.

use super::datagrams::Datagrams;
use super::parameters::{Direction, TestParameters};
use crate::app::account::Account;
use crate::app::meter::Meter;
use crate::app::transport::PATTERN;
use crate::host::{ConnId, Host};
use skyhaul_base::{Duration, Instant};

/// How long the server waits for the client's next message or connection.
const SILENCE: Duration = Duration::from_secs(30);
/// How long a data transfer may stall.
const STANDSTILL: Duration = Duration::from_secs(120);
/// How long the server sends beyond the time that the client asked for: the client's TEST_END takes time to arrive, above
/// all where it waits in a queue behind the data of the test.
const GRACE: Duration = Duration::from_secs(10);

/// The phase of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Parameters,
    Streams,
    Running,
    Results,
    Done,
}

/// The carrier of a stream.
#[derive(Debug)]
pub(super) enum Stream {
    Tcp {
        id: ConnId,
        sends: bool,
        meter: Meter,
        /// Set once the connection is released.
        account: Option<Account>,
    },
    Udp(Datagrams),
}

impl Stream {
    /// The meter of a connection.
    pub(super) fn meter(&mut self) -> Option<&mut Meter> {
        match self {
            Self::Tcp { meter, .. } => Some(meter),
            Self::Udp(_) => None,
        }
    }
}

/// The parameters before the client has sent any.
const NOTHING: TestParameters = TestParameters {
    udp: false,
    direction: Direction::In,
    parallel: 1,
    length: 0,
    rate: 0,
    wide: false,
    time: Duration::ZERO,
    amount: 0,
};

/// A test in progress.
#[derive(Debug)]
pub(super) struct Test {
    pub(super) cookie: Vec<u8>,
    pub(super) control: ConnId,
    pub(super) phase: Phase,
    pub(super) parameters: TestParameters,
    pub(super) streams: Vec<Stream>,
    /// Bytes of the control connection that are not processed yet.
    pub(super) input: Vec<u8>,
    /// When a message of the client last arrived, or data last moved. Datagrams that we send show nothing of the client.
    moved: Instant,
    /// Bytes moved by then.
    amount: u64,
    began: Instant,
    /// When the server stops sending.
    stops: Instant,
}

impl Test {
    pub(super) fn new(now: Instant, cookie: Vec<u8>, control: ConnId) -> Self {
        Self {
            cookie,
            control,
            phase: Phase::Parameters,
            parameters: NOTHING,
            streams: Vec::new(),
            input: Vec::new(),
            moved: now,
            amount: 0,
            began: now,
            stops: Instant::MAX,
        }
    }
    /// Notes a message of the client.
    pub(super) fn note_message(&mut self, now: Instant) {
        self.moved = now;
    }
    /// All streams are connected: data may flow.
    pub(super) fn begin(&mut self, now: Instant) {
        self.phase = Phase::Running;
        (self.moved, self.began) = (now, now);
        if !self.parameters.time.is_zero() {
            self.stops = now + self.parameters.time + GRACE;
        }
        for s in &mut self.streams {
            if let Stream::Udp(d) = s {
                d.begin(now);
            }
        }
    }
    /// Whether this is a connection of the test, other than its control connection.
    pub(super) fn has(&self, id: ConnId) -> bool {
        self.streams.iter().any(|s| matches!(s, Stream::Tcp { id: other, .. } if *other == id))
    }

    /// Moves data; returns when it next needs a call.
    pub(super) fn run(&mut self, now: Instant, host: &mut Host) -> Instant {
        let (mut next, mut amount, mut sent) = (Instant::MAX, 0, 0);
        let sending = now < self.stops;
        for s in &mut self.streams {
            match s {
                Stream::Tcp { id, sends, meter, .. } => {
                    if *sends && sending {
                        while host.write(now, *id, &PATTERN) == PATTERN.len() {}
                    }
                    host.discard(now, *id);
                    if let Some(c) = host.conn(*id) {
                        meter.turn(now, c);
                        amount += c.bytes_read() + c.counters().bytes_acked;
                    }
                    next = next.min(meter.next());
                }
                Stream::Udp(d) => {
                    if d.sends && sending {
                        next = next.min(d.send(now, host, &self.parameters));
                    }
                    *(if d.sends { &mut sent } else { &mut amount }) += d.bytes;
                }
            }
        }
        if amount != self.amount {
            (self.amount, self.moved) = (amount, now);
        }
        // Losses delay the client's count, so it gets as long again before the server stops sending.
        if self.parameters.amount > 0 && self.stops == Instant::MAX && amount + sent >= self.parameters.amount
        {
            self.stops = now + (now - self.began) + GRACE;
        }
        next
    }
    /// When the client is given up if it stays silent. A client that only receives datagrams says nothing: the keepalives
    /// of its control connection show whether it is there.
    pub(super) fn patience(&self) -> Instant {
        match self.phase {
            Phase::Running if self.parameters.udp && self.parameters.direction == Direction::Out => {
                self.stops + SILENCE
            }
            Phase::Running => (self.moved + STANDSTILL).min(self.stops + SILENCE),
            _ => self.moved + SILENCE,
        }
    }
    /// Gives up a client that has vanished: resets its control connection and its streams.
    pub(super) fn give_up(&self, now: Instant, host: &mut Host) {
        host.abort(now, self.control);
        for s in &self.streams {
            if let Stream::Tcp { id, .. } = s {
                host.abort(now, *id);
            }
        }
    }

    /// Ends the data phase of the test and releases its streams.
    pub(super) fn let_go(&mut self, now: Instant, host: &mut Host) {
        for s in &mut self.streams {
            match s {
                Stream::Tcp { id, meter, account, .. } => {
                    host.discard(now, *id);
                    host.take_back(now, *id);
                    if let Some(c) = host.conn(*id).filter(|_| account.is_none()) {
                        meter.finish(now, c);
                        *account = Some(Account::of(c));
                    }
                    // A receiving client waits for the rest of its block: only a FIN ends that.
                    host.release(now, *id);
                }
                Stream::Udp(d) => d.end(now),
            }
        }
    }
}

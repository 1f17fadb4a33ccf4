//! Sends as fast as it may: for a time, or so many bytes, over one connection or several.

use super::account::Account;
use super::meter::Meter;
use crate::host::{App, Turn};
use crate::host::{ConnId, Endpoint, Failure, Host, HostError};
use skyhaul_base::{Duration, Instant};
use skyhaul_tcp::State;
use std::net::SocketAddr;

/// When a sender is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// After this time; what was written and not sent by then is taken back.
    Time(Duration),
    /// When so many bytes are acknowledged, over all connections.
    Bytes(u64),
}

/// How long a sender waits for the end of its connections.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long it waits, when its own FIN was acknowledged, for that of the peer: whoever goes earlier leaves the peer
/// alone with a FIN that nobody acknowledges.
const LINGER: Duration = Duration::from_secs(1);
/// Bytes written at a time.
const CHUNK: usize = 1 << 16;

#[derive(Debug)]
struct Stream {
    id: ConnId,
    meter: Meter,
    /// Bytes still to be written; `None` without limit.
    left: Option<u64>,
    closing: bool,
    /// When it no longer waits for the peer's FIN.
    linger: Instant,
    over: bool,
    account: Option<Account>,
}

/// A bulk sender.
#[derive(Debug)]
pub struct Bulk {
    streams: Vec<Stream>,
    limit: Limit,
    chunk: Vec<u8>,
    deadline: Instant,
    /// When everything was written or the time was over.
    patience: Instant,
}

impl Bulk {
    /// Opens `streams` connections from `local` to `remote`; a row of figures `every` so often.
    ///
    /// # Errors
    /// If one cannot be opened.
    pub fn open(
        now: Instant,
        host: &mut Host,
        (local, remote): (SocketAddr, SocketAddr),
        endpoint: &Endpoint,
        limit: Limit,
        streams: u32,
        every: Duration,
    ) -> Result<Self, HostError> {
        let n = u64::from(streams.max(1));
        let streams = (0..n)
            .map(|i| {
                let id = host.connect(now, local, remote, endpoint)?;
                let left = match limit {
                    Limit::Time(_) => None,
                    Limit::Bytes(b) => Some(b / n + u64::from(i < b % n)),
                };
                let meter = Meter::new(false, every);
                Ok(Stream {
                    id,
                    meter,
                    left,
                    closing: false,
                    linger: Instant::MAX,
                    over: false,
                    account: None,
                })
            })
            .collect::<Result<_, HostError>>()?;
        let chunk = (0..CHUNK).map(|i| (i ^ (i >> 8)) as u8).collect();
        Ok(Self { streams, limit, chunk, deadline: Instant::MAX, patience: Instant::MAX })
    }

    /// The connections, in the order in which they were opened.
    pub fn streams(&self) -> impl Iterator<Item = (ConnId, &Meter, Option<Failure>)> {
        self.streams.iter().map(|s| (s.id, &s.meter, s.account.as_ref().and_then(|a| a.failure)))
    }
    /// What became of the connections; `None` for those that are not over.
    pub fn accounts(&self) -> impl Iterator<Item = (&Meter, Option<&Account>)> {
        self.streams.iter().map(|s| (&s.meter, s.account.as_ref()))
    }
    /// The meters, for whoever tells what is new.
    pub fn meters_mut(&mut self) -> impl Iterator<Item = &mut Meter> {
        self.streams.iter_mut().map(|s| &mut s.meter)
    }
    /// The first failure of a connection.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        self.streams.iter().find_map(|s| s.account.as_ref()?.failure)
    }

    fn close(&mut self, now: Instant, host: &mut Host) {
        for s in &mut self.streams {
            if !s.closing {
                s.closing = true;
                if let Some(c) = host.conn(s.id) {
                    s.meter.finish(now, c);
                }
                if host.conn(s.id).is_some_and(|c| !c.is_connected()) {
                    // Nobody there to say farewell to.
                    host.abort(now, s.id);
                } else {
                    host.take_back(now, s.id);
                    host.shutdown(now, s.id);
                }
            }
        }
        self.patience = self.patience.min(now + PATIENCE);
    }
}

impl App for Bulk {
    fn turn(&mut self, now: Instant, host: &mut Host) -> Turn {
        while host.next_changed().is_some() {}
        if now >= self.deadline {
            self.close(now, host);
        }
        for s in &mut self.streams {
            let Some(c) = host.conn(s.id).filter(|_| !s.over) else { continue };
            if c.is_connected() && s.meter.began().is_none() {
                s.meter.begin(now);
                if let Limit::Time(t) = self.limit {
                    self.deadline = self.deadline.min(now + t);
                }
            }
            if !s.closing {
                s.meter.turn(now, c);
            }
            // The other end may talk, as a server that closes does; nobody listens.
            host.discard(now, s.id);
            while !s.closing && s.meter.began().is_some() && s.left != Some(0) {
                // What is sent is the same bytes over and over, whatever room there is for them at a time.
                let from = host.conn(s.id).map_or(0, |c| (c.bytes_written() % CHUNK as u64) as usize);
                let most = s.left.map_or(CHUNK, |left| left.min(CHUNK as u64) as usize).min(CHUNK - from);
                let n = host.write(now, s.id, &self.chunk[from..from + most]);
                s.left = s.left.map(|left| left - n as u64);
                if n < most {
                    break;
                }
            }
            let Some(c) = host.conn(s.id) else { continue };
            if s.left == Some(0) && !s.closing && c.tcp().unacked() == 0 {
                s.closing = true;
                s.meter.finish(now, c);
                host.shutdown(now, s.id);
                self.patience = self.patience.min(now + PATIENCE);
            }
            let Some(c) = host.conn(s.id) else { continue };
            if c.tcp().state() == State::FinWait2 && s.linger == Instant::MAX {
                s.linger = now + LINGER;
            }
            if c.is_over() || c.tcp().state() == State::TimeWait || s.linger <= now {
                if !s.closing {
                    s.meter.finish(now, c);
                }
                (s.over, s.account) = (true, Some(Account::of(c)));
                host.release(now, s.id);
            }
        }
        if now >= self.patience {
            for s in self.streams.iter_mut().filter(|s| !s.over) {
                (s.over, s.account) = (true, host.conn(s.id).map(Account::of));
                host.abort(now, s.id);
                host.release(now, s.id);
            }
        }
        if self.streams.iter().all(|s| s.over) { Turn::Done } else { Turn::Waiting }
    }

    fn next_timeout(&self) -> Instant {
        let open = self.streams.iter().filter(|s| !s.closing && !s.over);
        let meters = open.map(|s| s.meter.next()).min().unwrap_or(Instant::MAX);
        let deadline = if self.streams.iter().all(|s| s.closing) { Instant::MAX } else { self.deadline };
        let linger = self.streams.iter().filter(|s| !s.over).map(|s| s.linger).min().unwrap_or(Instant::MAX);
        meters.min(deadline).min(self.patience).min(linger)
    }

    fn stop(&mut self, now: Instant, host: &mut Host) {
        self.close(now, host);
        self.deadline = now;
    }
}

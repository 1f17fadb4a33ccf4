//! Sends as fast as possible, for a time or a number of bytes, over one or several connections.

use super::account::Account;
use super::meter::Meter;
use super::session::Session;
use super::transport::HostTransport;
use crate::host::{App, AppStatus};
use crate::host::{Endpoint, Failure, Host, HostError};
use skyhaul_apps as apps;
use skyhaul_base::{Duration, Instant};
use std::net::SocketAddr;
use std::sync::Arc;

/// How long connections may take to close once the time is over or the user stops the run: Docker kills a program ten
/// seconds after it has asked it to stop.
const GRACE: Duration = Duration::from_secs(5);

/// When a sender stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// After this time since the first connection was established; data written but not yet sent is then taken back.
    Time(Duration),
    /// When this many bytes have been acknowledged, over all connections.
    Bytes(u64),
}

/// A bulk workload over one connection, and its measurements.
#[derive(Debug)]
struct Stream {
    session: Session,
    transport: HostTransport,
    meter: Meter,
    account: Option<Account>,
}

/// A bulk sender.
#[derive(Debug)]
pub struct Bulk {
    streams: Vec<Stream>,
    limit: Limit,
    deadline: Instant,
}

impl Stream {
    fn open(
        now: Instant,
        host: &mut Host,
        app: apps::Bulk,
        mut transport: HostTransport,
        every: Duration,
    ) -> Result<Self, HostError> {
        let mut session = Session::new(apps::App::Bulk(app), (now, Instant::MAX), 0);
        session.turn(now, &mut transport.carrier(host))?;
        Ok(Self { session, transport, meter: Meter::new(false, every), account: None })
    }

    /// Closes the connections because the time is over or the user stopped the run.
    fn close(&mut self, now: Instant, host: &mut Host) {
        if let Some(c) = self.transport.id(0).and_then(|id| host.conn(id)) {
            self.meter.finish(now, c);
        }
        self.session.stop(now, &mut self.transport.carrier(host));
        self.transport.hurry(now, host, GRACE);
    }

    fn turn(&mut self, now: Instant, host: &mut Host) {
        // The only connection was opened with the stream, so no other error is possible.
        let _ = self.session.turn(now, &mut self.transport.carrier(host));
        let conn = self.transport.id(0).and_then(|id| host.conn(id));
        if let Some(c) = conn.filter(|c| self.session.finished().is_some() || c.is_over()) {
            self.meter.finish(now, c);
        }
        self.transport.tend(now, host);
        if let Some((_, account)) = self.transport.take_summaries().pop() {
            self.account = Some(account);
        }
    }
}

impl Bulk {
    /// Opens `streams` connections from `local` to `remote`, measured in intervals of `every`.
    ///
    /// # Errors
    /// If a connection cannot be opened.
    pub fn open(
        now: Instant,
        host: &mut Host,
        ends: (SocketAddr, SocketAddr),
        endpoint: &Endpoint,
        limit: Limit,
        streams: u32,
        every: Duration,
    ) -> Result<Self, HostError> {
        let n = u64::from(streams.max(1));
        let endpoint = Arc::new(endpoint.clone());
        let open = |i| {
            let app = match limit {
                Limit::Time(_) => apps::Bulk::endless(now),
                Limit::Bytes(b) => apps::Bulk::sized(now, b / n + u64::from(i < b % n)),
            };
            Stream::open(now, host, app, HostTransport::connections(ends, endpoint.clone()), every)
        };
        let streams = (0..n).map(open).collect::<Result<_, HostError>>()?;
        Ok(Self { streams, limit, deadline: Instant::MAX })
    }

    /// Summaries of the connections; `None` for those still open.
    pub fn accounts(&self) -> impl Iterator<Item = (&Meter, Option<&Account>)> {
        self.streams.iter().map(|s| (&s.meter, s.account.as_ref()))
    }
    fn close(&mut self, now: Instant, host: &mut Host) {
        // Only once: afterwards the sender waits for its connections to close.
        (self.limit, self.deadline) = (Limit::Bytes(0), Instant::MAX);
        for s in self.streams.iter_mut().filter(|s| s.account.is_none()) {
            s.close(now, host);
        }
    }
    /// The failure of the first connection that failed.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        self.streams.iter().find_map(|s| s.account.as_ref()?.failure)
    }
}

impl App for Bulk {
    fn turn(&mut self, now: Instant, host: &mut Host) -> AppStatus {
        while host.next_changed().is_some() {}
        if now >= self.deadline {
            self.close(now, host);
        }
        for s in self.streams.iter_mut().filter(|s| s.account.is_none()) {
            if let Some(c) = s.transport.id(0).and_then(|id| host.conn(id)) {
                if c.is_connected() && s.meter.began().is_none() {
                    s.meter.begin(now);
                    if let Limit::Time(t) = self.limit {
                        self.deadline = self.deadline.min(now + t);
                    }
                }
                s.meter.turn(now, c);
            }
            s.turn(now, host);
        }
        if self.streams.iter().all(|s| s.account.is_some()) { AppStatus::Done } else { AppStatus::Waiting }
    }

    fn next_timeout(&self) -> Instant {
        let open = self.streams.iter().filter(|s| s.account.is_none());
        open.map(|s| s.meter.next().min(s.transport.next())).min().unwrap_or(Instant::MAX).min(self.deadline)
    }

    fn stop(&mut self, now: Instant, host: &mut Host) {
        self.close(now, host);
    }
}

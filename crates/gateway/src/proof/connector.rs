//! Connections of the gateway to itself, one after the other. Their client has an interface of its own, as a host would have.

use super::ANSWER;
use crate::slot::Slot;
use skyhaul_base::{Duration, Instant};
use skyhaul_net::app::{App, AppStatus};
use skyhaul_net::host::{ConnId, Endpoint, Host};
use std::net::SocketAddr;

/// Time between the end of one and the beginning of the next.
const EVERY: Duration = Duration::from_secs(2);
/// Time for an answer, in which a lost SYN is repeated once (RFC 6298 §2.1).
const PATIENCE: Duration = Duration::from_millis(1500);
/// Longest time between two turns, so that the thread ends soon after it is told to.
const LOOK: Duration = Duration::from_millis(200);
/// The port of the server: discard (RFC 863).
const PORT: u16 = 9;

/// Opens the connections.
#[derive(Debug)]
pub(super) struct Connector {
    endpoint: Endpoint,
    slot: Slot,
    open: Option<(ConnId, Instant)>,
    due: Instant,
    now: Instant,
    stopped: bool,
    result: Option<Result<(), &'static str>>,
}

impl Connector {
    pub(super) fn new(endpoint: Endpoint, slot: Slot) -> Self {
        Self {
            endpoint,
            slot,
            open: None,
            due: Instant::ZERO,
            now: Instant::ZERO,
            stopped: false,
            result: None,
        }
    }
    /// How the last connection has ended; each result is returned once.
    pub(super) fn result(&mut self) -> Option<Result<(), &'static str>> {
        self.result.take()
    }
    /// Begins another connection at once: the result of the open one would be out of date.
    pub(super) fn hurry(&mut self, now: Instant, host: &mut Host) {
        if let Some((id, _)) = self.open.take() {
            host.abort(now, id);
            host.release(now, id);
        }
        self.due = now;
    }

    /// How the open connection has ended, if it has.
    fn outcome(
        &self,
        now: Instant,
        host: &mut Host,
        (id, began): (ConnId, Instant),
    ) -> Option<Result<(), &'static str>> {
        let mut room = [0; ANSWER.len()];
        let read = host.read(now, id, &mut room);
        if room.get(..read) == Some(ANSWER) {
            return Some(Ok(()));
        }
        let conn = host.conn(id);
        if conn.is_none_or(|c| c.failure().is_some() || c.is_over()) {
            return Some(Err("is reset"));
        }
        (now >= began + PATIENCE).then_some(Err(match conn.is_some_and(|c| c.is_connected()) {
            true => "is accepted, but the gateway does not answer",
            false => "gets no answer",
        }))
    }
}

impl App for Connector {
    fn turn(&mut self, now: Instant, host: &mut Host) -> AppStatus {
        self.now = now;
        while host.next_changed().is_some() {}
        if let Some(open) = self.open
            && let Some(outcome) = self.outcome(now, host, open)
        {
            host.abort(now, open.0);
            host.release(now, open.0);
            // A failure is checked at once by another connection.
            self.due = if outcome.is_ok() { now + EVERY } else { now + LOOK };
            (self.open, self.result) = (None, Some(outcome));
        }
        if self.open.is_none() && now >= self.due {
            let (client, server) = (self.slot.client(), self.slot.server());
            let (from, to) = (SocketAddr::new(client.into(), 0), SocketAddr::new(server.into(), PORT));
            match host.connect(now, from, to, &self.endpoint) {
                Ok(id) => self.open = Some((id, now)),
                Err(_) => self.due = now + EVERY,
            }
        }
        if self.stopped { AppStatus::Done } else { AppStatus::Waiting }
    }
    fn next_timeout(&self) -> Instant {
        self.now + LOOK
    }
    fn stop(&mut self, now: Instant, host: &mut Host) {
        host.abort_all(now);
        self.stopped = true;
    }
}

//! Accepts connections and runs a protocol on each.

use super::account::Account;
use super::meter::Meter;
use super::standstill::Standstill;
use crate::host::{App, AppStatus};
use crate::host::{Conn, ConnId, Host};
use skyhaul_base::{Duration, Instant};
use skyhaul_tcp::State;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How long a server that has closed discards what still comes, so that a peer that is sending reads the last response
/// before it is reset (RFC 9112 §9.6).
const LINGER: Duration = Duration::from_secs(2);
/// Bytes that must move within the server's time limit after it has closed: a client that acknowledges one byte a minute
/// would otherwise hold a connection for ever.
const LEAST: u64 = 1024;
/// How long a stopping server waits for a peer that acknowledges nothing more; two round trips if that is longer.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long a stopping server waits for a peer that goes on acknowledging: Docker kills a program ten seconds after it
/// has asked it to stop, and [`super::Drain`] takes five of them.
const MOST: Duration = Duration::from_secs(4);

/// The next step of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// Wait for the connection, or until this time.
    Until(Instant),
    /// Close the connection in order: everything has been sent.
    Close,
    /// Reset the connection: the conversation cannot continue.
    Abort,
}

/// One side of a protocol over one connection.
pub trait ConnectionHandler {
    /// Reads, processes and writes.
    fn turn(&mut self, now: Instant, host: &mut Host, id: ConnId) -> NextStep;
}

/// A connection that a server has served.
#[derive(Clone, Debug)]
pub struct ServedConnection {
    /// Its identifier; the connection itself may be gone.
    pub id: ConnId,
    /// Its summary.
    pub account: Account,
    /// Measurements of received data, or of sent data ([`Serve::sending`]).
    pub meter: Meter,
}

#[derive(Debug)]
struct Served<T> {
    handler: T,
    meter: Meter,
    /// We have closed or reset the connection; the handler is not called any more.
    closing: bool,
    /// Until when to wait for the peer's FIN.
    linger: Instant,
    /// Whether any data moves or, on a closing connection, at least [`LEAST`] bytes per time limit.
    still: Option<Standstill>,
    /// In a server that stops: the bytes acknowledged at the last check, and the time of the next check.
    stop_check: (u64, Instant),
    /// When the handler or the close next needs a call.
    wake: Instant,
    /// The time of its next call in [`Serve::due`]; [`Instant::MAX`] if it is not there.
    due: Instant,
}

impl<T> Served<T> {
    /// When to check again whether data moves; `Err`, with how the connection ends, if it has stood still for too long.
    fn stands_still(
        &mut self,
        now: Instant,
        host: &Host,
        id: ConnId,
        idle: Duration,
    ) -> Result<Instant, NextStep> {
        let Some(c) = host.conn(id).filter(|_| !idle.is_zero()) else { return Ok(Instant::MAX) };
        let still = self.still.get_or_insert_with(|| Standstill::new(now, c, 1));
        match still.is_over(now, c, idle) {
            false => Ok(still.next(now, idle)),
            true if c.tcp().unacked() > 0 => Err(NextStep::Abort),
            true => Err(NextStep::Close),
        }
    }
    /// From now on waits for the end.
    fn close(&mut self, now: Instant, host: &Host, id: ConnId) {
        self.closing = true;
        self.still = host.conn(id).map(|c| Standstill::new(now, c, LEAST));
    }
    /// Whether a closing connection stands still: too few bytes of our data are acknowledged. Plans the next check, and the
    /// end of the wait for the peer's FIN.
    fn hangs(&mut self, now: Instant, host: &Host, id: ConnId, idle: Duration) -> bool {
        let Some(c) = host.conn(id).filter(|c| !c.is_over()) else { return false };
        if c.tcp().state() == State::FinWait2 {
            // Released after this time; then the endpoint's `fin_timeout` begins.
            self.linger = self.linger.min(now + LINGER);
            self.wake = self.linger;
            return false;
        }
        // A peer that reads slowly cannot be distinguished from one that keeps its window closed (RFC 9293 §3.8.6.2.2) or that
        // an outage cuts off: without a limit, all of them may take any time.
        let Some(still) = self.still.as_mut().filter(|_| !idle.is_zero()) else { return false };
        let over = still.is_over(now, c, idle);
        self.wake = still.next(now, idle);
        over
    }
    /// Whether a stopping server, which waits until `most` at the latest, waits no more for this connection.
    fn is_dropped(&mut self, now: Instant, host: &Host, id: ConnId, most: Instant) -> bool {
        let Some(c) = host.conn(id) else { return true };
        let (acked, at) = self.stop_check;
        let moves = c.counters().bytes_acked > acked && c.tcp().unacked() > 0;
        if now >= at && (!moves || now >= most) {
            return true;
        }
        if now >= at {
            self.plan_stop_check(now, c, most);
        }
        false
    }
    fn plan_stop_check(&mut self, now: Instant, c: &Conn, most: Instant) {
        let round_trips = c.snapshot().srtt.map_or(Duration::ZERO, |rtt| rtt * 2);
        self.stop_check = (c.counters().bytes_acked, (now + PATIENCE.max(round_trips)).min(most));
    }
}

/// A server; `greet` creates the protocol handler for a connection to a port.
pub struct Serve<T, G> {
    greet: G,
    every: Duration,
    /// How long a connection may stand still; zero means without limit.
    idle: Duration,
    /// Meters count received data; otherwise sent data.
    receiving: bool,
    served: BTreeMap<ConnId, Served<T>>,
    /// Calls by time, so that the server need not scan all connections.
    due: BTreeSet<(Instant, ConnId)>,
    /// Connections whose meters have unreported intervals.
    fresh: BTreeSet<ConnId>,
    ended: Vec<ServedConnection>,
    /// Number of connections after which it stops.
    most: Option<u64>,
    taken: u64,
    stopping: bool,
    /// Until when peers may acknowledge what a stopping server has sent.
    ends: Instant,
}

impl<T, G> std::fmt::Debug for Serve<T, G> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Serve")
            .field("open", &self.served.len())
            .field("taken", &self.taken)
            .finish_non_exhaustive()
    }
}

impl<T: ConnectionHandler, G: FnMut(u16) -> T> Serve<T, G> {
    /// Serves the connections that the host's listeners accept: `most` in total, or without limit. Meters have intervals of
    /// length `every`, which must not be zero.
    #[must_use]
    pub fn new(greet: G, every: Duration, most: Option<u64>) -> Self {
        let (served, ended) = (BTreeMap::new(), Vec::new());
        Self {
            greet,
            every,
            idle: Duration::ZERO,
            receiving: true,
            served,
            due: BTreeSet::new(),
            fresh: BTreeSet::new(),
            ended,
            most,
            taken: 0,
            stopping: false,
            ends: Instant::MAX,
        }
    }
    /// Ends connections on which no data has moved for this long: in order if nothing is left to send, otherwise with
    /// a RST. Zero, the default, means never.
    #[must_use]
    pub fn idle(mut self, idle: Duration) -> Self {
        self.idle = idle;
        self
    }
    /// Makes the meters count sent data, for servers that mostly send.
    #[must_use]
    pub fn sending(mut self) -> Self {
        self.receiving = false;
        self
    }
    /// Connections that ended since the last call.
    pub fn take_ended(&mut self) -> Vec<ServedConnection> {
        std::mem::take(&mut self.ended)
    }
    /// Reports open connections that have unreported intervals, with their meters.
    pub fn tell_fresh(&mut self, mut tell: impl FnMut(ConnId, &mut Meter)) {
        while let Some(id) = self.fresh.pop_first() {
            if let Some(s) = self.served.get_mut(&id) {
                tell(id, &mut s.meter);
            }
        }
    }

    /// Attends to a connection, and notes when it next needs a call.
    fn call(&mut self, now: Instant, host: &mut Host, id: ConnId) {
        // A panic of one handler ends its connection alone.
        if catch_unwind(AssertUnwindSafe(|| self.attend(now, host, id))).is_err() {
            host.note_defect();
            host.abort(now, id);
            if let Some(s) = self.served.get_mut(&id) {
                (s.closing, s.wake) = (true, now);
            }
        }
        self.plan(id);
    }
    fn plan(&mut self, id: ConnId) {
        let Some(s) = self.served.get_mut(&id) else { return };
        let due = s.wake.min(s.meter.next());
        if due != s.due {
            self.due.remove(&(s.due, id));
            if due < Instant::MAX {
                self.due.insert((due, id));
            }
            s.due = due;
        }
        if s.meter.has_news() {
            self.fresh.insert(id);
        }
    }

    /// Calls the handler of a connection, or follows its close, and takes it from the list when it is over.
    fn attend(&mut self, now: Instant, host: &mut Host, id: ConnId) {
        let Some(s) = self.served.get_mut(&id) else { return };
        if let Some(c) = host.conn(id) {
            s.meter.turn(now, c);
        }
        s.wake = Instant::MAX;
        if !s.closing {
            let next = match s.stands_still(now, host, id, self.idle) {
                Ok(check) => match s.handler.turn(now, host, id) {
                    NextStep::Until(at) => NextStep::Until(at.min(check)),
                    end => end,
                },
                Err(end) => end,
            };
            match next {
                NextStep::Until(at) => s.wake = at,
                NextStep::Close => {
                    host.shutdown(now, id);
                    s.close(now, host, id);
                }
                NextStep::Abort => {
                    s.closing = true;
                    host.abort(now, id);
                }
            }
        }
        if s.closing {
            host.discard(now, id);
            // A peer may go on sending, vanish, or keep its window closed. The RST leaves in this turn; the connection is
            // released in the next one.
            let dropped = self.stopping && s.is_dropped(now, host, id, self.ends);
            if dropped || s.hangs(now, host, id, self.idle) {
                if host.conn(id).is_some_and(|c| !c.is_over()) {
                    s.wake = now + Duration::from_millis(1);
                    host.abort(now, id);
                    return;
                }
            } else if self.stopping {
                s.wake = s.wake.min(s.stop_check.1);
            }
        }
        let Some(c) = host.conn(id) else { return };
        // After our FIN in reply to theirs, only acknowledgements are left.
        let over = c.is_over() || (s.closing && c.tcp().unacked() == 0 && (c.at_end() || now >= s.linger));
        if over {
            s.meter.finish(now, c);
            self.ended.push(ServedConnection {
                id,
                account: Account {
                    in_order: c.failure().is_none() && (c.ended_in_order() || c.at_end()),
                    ..Account::of(c)
                },
                meter: s.meter.clone(),
            });
            self.due.remove(&(s.due, id));
            self.fresh.remove(&id);
            self.served.remove(&id);
            host.release(now, id);
        }
    }
}

impl<T: ConnectionHandler, G: FnMut(u16) -> T> App for Serve<T, G> {
    fn turn(&mut self, now: Instant, host: &mut Host) -> AppStatus {
        while let Some(id) = host.next_changed() {
            if let (Some(c), false) = (host.conn(id), self.served.contains_key(&id)) {
                let port = c.accepted_at().unwrap_or(0);
                self.taken += 1;
                let mut meter = Meter::new(self.receiving, self.every).dozing();
                meter.begin(now);
                let handler = (self.greet)(port);
                let (wake, due) = (Instant::MAX, Instant::MAX);
                let (closing, linger, stop_check) = (false, Instant::MAX, (0, Instant::MAX));
                let still = None;
                self.served
                    .insert(id, Served { handler, meter, closing, linger, still, stop_check, wake, due });
            }
            self.call(now, host, id);
        }
        // Each handler once: one that wants to be called immediately is called in the next turn.
        let due: Vec<ConnId> = self.due.range(..=(now, ConnId::LAST)).map(|(_, id)| *id).collect();
        for id in due {
            self.call(now, host, id);
        }
        let full = self.most.is_some_and(|most| self.taken >= most);
        if (full || self.stopping) && self.served.is_empty() { AppStatus::Done } else { AppStatus::Waiting }
    }

    fn next_timeout(&self) -> Instant {
        self.due.first().map_or(Instant::MAX, |(at, _)| *at)
    }

    fn stop(&mut self, now: Instant, host: &mut Host) {
        self.stopping = true;
        self.ends = now + MOST;
        for (id, s) in &mut self.served {
            s.closing = true;
            host.take_back(now, *id);
            host.shutdown(now, *id);
            if let Some(c) = host.conn(*id) {
                s.plan_stop_check(now, c, self.ends);
            }
            s.wake = s.stop_check.1;
        }
        let all: Vec<ConnId> = self.served.keys().copied().collect();
        all.into_iter().for_each(|id| self.plan(id));
    }
}

/// Discards all data, and closes when the peer does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sink;

impl ConnectionHandler for Sink {
    fn turn(&mut self, now: Instant, host: &mut Host, id: ConnId) -> NextStep {
        host.sink(now, id);
        if host.conn(id).is_some_and(|c| c.at_end()) {
            NextStep::Close
        } else {
            NextStep::Until(Instant::MAX)
        }
    }
}

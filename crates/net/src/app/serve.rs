//! Accepts connections and runs a protocol on each.

use super::account::Account;
use super::meter::Meter;
use crate::host::{App, Turn};
use crate::host::{ConnId, Failure, Host};
use skyhaul_base::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How long a stopping server waits for its peers to acknowledge the FIN.
const PATIENCE: Duration = Duration::from_secs(1);

/// The next step of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Talk {
    /// Wait for the connection, or until this time.
    Until(Instant),
    /// Close the connection in order: everything has been sent.
    Close,
    /// Reset the connection: the conversation cannot continue.
    Abort,
}

/// One side of a protocol over one connection.
pub trait Talker {
    /// Reads, processes and writes.
    fn turn(&mut self, now: Instant, host: &mut Host, id: ConnId) -> Talk;
}

/// A connection that a server has served.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its identifier; the connection itself may be gone.
    pub id: ConnId,
    /// Its summary.
    pub account: Account,
    /// The client's address.
    pub remote: SocketAddr,
    /// Local port of the connection.
    pub port: u16,
    /// Measurements of received data.
    pub meter: Meter,
    /// Bytes sent and acknowledged.
    pub sent: u64,
    /// Counters of the local sender.
    pub counters: skyhaul_tcp::Counters,
    /// Why it failed, if it did not close in order.
    pub failure: Option<Failure>,
}

#[derive(Debug)]
struct Served<T> {
    talker: T,
    meter: Meter,
    closing: bool,
    wake: Instant,
    /// Its next call, as entered in the list of calls.
    due: Instant,
}

/// A server; `greet` creates the protocol handler for a connection to a port.
pub struct Serve<T, G> {
    greet: G,
    every: Duration,
    /// Meters count received data; otherwise sent data.
    receiving: bool,
    served: BTreeMap<ConnId, Served<T>>,
    /// Calls by time, so that the server need not scan all connections.
    due: BTreeSet<(Instant, ConnId)>,
    /// Connections whose meters have unreported intervals.
    fresh: BTreeSet<ConnId>,
    ended: Vec<Ended>,
    /// Number of connections after which it stops.
    most: Option<u64>,
    taken: u64,
    stopping: bool,
    /// Until when peers may acknowledge the FIN of a stopping server.
    patience: Instant,
}

impl<T, G> std::fmt::Debug for Serve<T, G> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Serve")
            .field("open", &self.served.len())
            .field("taken", &self.taken)
            .finish_non_exhaustive()
    }
}

impl<T: Talker, G: FnMut(u16) -> T> Serve<T, G> {
    /// Serves the connections that the host's listeners accept: `most` in total, or without limit.
    #[must_use]
    pub fn new(greet: G, every: Duration, most: Option<u64>) -> Self {
        let (served, ended) = (BTreeMap::new(), Vec::new());
        Self {
            greet,
            every,
            receiving: true,
            served,
            due: BTreeSet::new(),
            fresh: BTreeSet::new(),
            ended,
            most,
            taken: 0,
            stopping: false,
            patience: Instant::MAX,
        }
    }
    /// Makes the meters count sent data, for servers that mostly send.
    #[must_use]
    pub fn sending(mut self) -> Self {
        self.receiving = false;
        self
    }
    /// Connections that ended since the last call.
    pub fn take_ended(&mut self) -> Vec<Ended> {
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

    /// Calls the handler of a connection, and notes when it next wants to be called.
    fn one(&mut self, now: Instant, host: &mut Host, id: ConnId) {
        // A panic of one handler ends its connection alone.
        if catch_unwind(AssertUnwindSafe(|| self.talk(now, host, id))).is_err() {
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

    fn talk(&mut self, now: Instant, host: &mut Host, id: ConnId) {
        let Some(s) = self.served.get_mut(&id) else { return };
        if let Some(c) = host.conn(id) {
            s.meter.turn(now, c);
        }
        s.wake = Instant::MAX;
        if !s.closing {
            match s.talker.turn(now, host, id) {
                Talk::Until(at) => s.wake = at,
                Talk::Close => {
                    s.closing = true;
                    host.shutdown(now, id);
                }
                Talk::Abort => {
                    s.closing = true;
                    host.abort(now, id);
                }
            }
        } else {
            host.discard(now, id);
            if self.stopping && now >= self.patience {
                // It keeps sending to a reader that has gone. The RST leaves in this turn; the connection is
                // released in the next one.
                if host.conn(id).is_some_and(|c| !c.is_over()) {
                    s.wake = now + Duration::from_millis(1);
                    host.abort(now, id);
                    return;
                }
            } else {
                s.wake = self.patience;
            }
        }
        let Some(c) = host.conn(id) else { return };
        // After our FIN in reply to theirs, only acknowledgements are left.
        let over = c.is_over() || (s.closing && c.tcp().unacked() == 0 && c.at_end());
        if over {
            s.meter.finish(now, c);
            self.ended.push(Ended {
                id,
                account: Account {
                    in_order: c.failure().is_none() && (c.ended_in_order() || c.at_end()),
                    ..Account::of(c)
                },
                remote: c.remote(),
                port: c.local().port(),
                meter: s.meter.clone(),
                sent: c.counters().bytes_acked,
                counters: c.counters(),
                failure: c.failure(),
            });
            self.due.remove(&(s.due, id));
            self.fresh.remove(&id);
            self.served.remove(&id);
            host.release(now, id);
        }
    }
}

impl<T: Talker, G: FnMut(u16) -> T> App for Serve<T, G> {
    fn turn(&mut self, now: Instant, host: &mut Host) -> Turn {
        while let Some(id) = host.next_changed() {
            if let (Some(c), false) = (host.conn(id), self.served.contains_key(&id)) {
                let port = c.accepted_at().unwrap_or(0);
                self.taken += 1;
                let mut meter = Meter::new(self.receiving, self.every).dozing();
                meter.begin(now);
                let talker = (self.greet)(port);
                let (wake, due) = (Instant::MAX, Instant::MAX);
                self.served.insert(id, Served { talker, meter, closing: false, wake, due });
            }
            self.one(now, host, id);
        }
        // Each handler once: one that wants to be called immediately is called in the next turn.
        let due: Vec<ConnId> = self.due.range(..=(now, ConnId::LAST)).map(|(_, id)| *id).collect();
        for id in due {
            self.one(now, host, id);
        }
        let full = self.most.is_some_and(|most| self.taken >= most);
        if (full || self.stopping) && self.served.is_empty() { Turn::Done } else { Turn::Waiting }
    }

    fn next_timeout(&self) -> Instant {
        self.due.first().map_or(Instant::MAX, |(at, _)| *at)
    }

    fn stop(&mut self, now: Instant, host: &mut Host) {
        self.stopping = true;
        self.patience = now + PATIENCE;
        for (id, s) in &mut self.served {
            s.closing = true;
            s.wake = self.patience;
            host.take_back(now, *id);
            host.shutdown(now, *id);
        }
        let all: Vec<ConnId> = self.served.keys().copied().collect();
        all.into_iter().for_each(|id| self.plan(id));
    }
}

/// Discards all data, and closes when the peer does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sink;

impl Talker for Sink {
    fn turn(&mut self, now: Instant, host: &mut Host, id: ConnId) -> Talk {
        host.sink(now, id);
        if host.conn(id).is_some_and(|c| c.at_end()) { Talk::Close } else { Talk::Until(Instant::MAX) }
    }
}

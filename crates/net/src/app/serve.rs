//! Takes connections and talks to each in its own way.

use super::account::Account;
use super::meter::Meter;
use crate::host::{App, Turn};
use crate::host::{ConnId, Failure, Host};
use skyhaul_base::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// How long a server that is to end waits for its peers to take notice of the FIN.
const PATIENCE: Duration = Duration::from_secs(1);

/// What a conversation does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Talk {
    /// It waits for the connection, or until then.
    Until(Instant),
    /// It has said everything: the connection is closed in order.
    Close,
    /// It cannot go on: the connection is reset.
    Abort,
}

/// One side of a conversation over one connection.
pub trait Talker {
    /// Reads, writes, thinks.
    fn turn(&mut self, now: Instant, host: &mut Host, id: ConnId) -> Talk;
}

/// A connection that a server has served.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Which connection it was; it may be gone.
    pub id: ConnId,
    /// What is known of it.
    pub account: Account,
    /// Who it was.
    pub remote: SocketAddr,
    /// Port at which it was served.
    pub port: u16,
    /// What came in.
    pub meter: Meter,
    /// Bytes acknowledged of what went out.
    pub sent: u64,
    /// What the sender here did.
    pub counters: skyhaul_tcp::Counters,
    /// Why it ended, if not in order.
    pub failure: Option<Failure>,
}

#[derive(Debug)]
struct Served<T> {
    talker: T,
    meter: Meter,
    closing: bool,
    wake: Instant,
    /// When it is called, as the list of calls has it.
    due: Instant,
}

/// A server: `greet` says how to talk on a connection to a port.
pub struct Serve<T, G> {
    greet: G,
    every: Duration,
    /// Meters count what comes in; otherwise what goes out.
    receiving: bool,
    served: BTreeMap<ConnId, Served<T>>,
    /// Who wants to be called when: nobody looks through all connections for it.
    due: BTreeSet<(Instant, ConnId)>,
    /// Connections whose meters have intervals that were not told.
    fresh: BTreeSet<ConnId>,
    ended: Vec<Ended>,
    /// Ends after so many connections.
    most: Option<u64>,
    taken: u64,
    stopping: bool,
    /// Until when peers may answer the FIN of a server that is to end.
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
    /// Serves what the host's listeners take, `most` connections in all, or without limit.
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
    /// Its meters count what goes out: for servers that mostly send.
    #[must_use]
    pub fn sending(mut self) -> Self {
        self.receiving = false;
        self
    }
    /// Connections that ended since the last call.
    pub fn take_ended(&mut self) -> Vec<Ended> {
        std::mem::take(&mut self.ended)
    }
    /// Tells of connections that are open and have intervals that were not told, with their meters.
    pub fn tell_fresh(&mut self, mut tell: impl FnMut(ConnId, &mut Meter)) {
        while let Some(id) = self.fresh.pop_first() {
            if let Some(s) = self.served.get_mut(&id) {
                tell(id, &mut s.meter);
            }
        }
    }

    /// Calls the talker of a connection, and takes note of when it wants to be called again.
    fn one(&mut self, now: Instant, host: &mut Host, id: ConnId) {
        self.talk(now, host, id);
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
                // It goes on sending to a reader that has gone. The RST leaves with this turn; the connection is let go
                // with the next one.
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
        // After our FIN in answer to theirs nothing is left but acknowledgements.
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
        // Each once: whoever wants to be called at once is called with the next turn.
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

/// Reads and forgets, and closes when the other end does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sink;

impl Talker for Sink {
    fn turn(&mut self, now: Instant, host: &mut Host, id: ConnId) -> Talk {
        host.sink(now, id);
        if host.conn(id).is_some_and(|c| c.at_end()) { Talk::Close } else { Talk::Until(Instant::MAX) }
    }
}

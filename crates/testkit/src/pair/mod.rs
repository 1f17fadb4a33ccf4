//! Two endpoints joined by two links, in virtual time.
//!
//! Simultaneous events are handled in a fixed order: departures from links, arrivals (first those at the
//! client), late packets, the applications, timers.

mod end;
mod fault;
mod log;
mod packet;
mod setup;
mod side;

pub use end::{Act, End, PayloadStore, content};
pub use fault::{Departure, Faults, Verdict};
pub use log::{Entry, SegmentEvent};
pub use packet::{Packet, is_pure_ack};
pub use setup::{EarlyData, Handshake, Setup};
pub use side::Side;

use skyhaul_base::Instant;
use skyhaul_path::{Chain, DropReason, Link, Observer, PacketView};
use skyhaul_tcp::{Connection, State, Store};

/// Index of the link that leads away from `side`. The server's link is the first, so that of simultaneous arrivals the one at
/// the client is handled first.
fn link_of(side: Side) -> usize {
    side.other().index()
}

/// Logs the segments that the links lose.
struct Losses<'a> {
    log: &'a mut Vec<Entry>,
    logging: bool,
}

impl Observer<Packet> for Losses<'_> {
    fn entered(&mut self, _: Instant, _: u32, _: &Packet) {}
    fn left(&mut self, _: Instant, _: u32, _: &Packet) {}
    fn lost(&mut self, now: Instant, _: u32, p: Packet, why: DropReason) {
        if self.logging {
            self.log.push(Entry {
                at: now,
                side: p.from,
                event: SegmentEvent::Dropped(why),
                segment: p.segment,
            });
        }
    }
}

/// Two endpoints and the links between them.
pub struct Pair<S: Store> {
    ends: [End<S>; 2],
    chain: Chain<Packet>,
    now: Instant,
    /// Everything that happened.
    pub log: Vec<Entry>,
    /// Whether events are logged; off for long runs.
    pub logging: bool,
}

impl<S: PayloadStore> Pair<S> {
    /// The present.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }
    /// An endpoint.
    #[must_use]
    pub fn end(&self, side: Side) -> &End<S> {
        &self.ends[side.index()]
    }
    /// An endpoint, to be manipulated.
    pub fn end_mut(&mut self, side: Side) -> &mut End<S> {
        &mut self.ends[side.index()]
    }
    /// The link that leads away from one side, to look at.
    #[must_use]
    pub fn link(&self, side: Side) -> &Link<Packet> {
        self.chain.hops()[link_of(side)].link()
    }
    /// The connection of one side.
    #[must_use]
    pub fn conn(&self, side: Side) -> &Connection<S> {
        &self.ends[side.index()].conn
    }
    /// From now on `faults` decides what happens to each segment that `side` sends.
    pub fn faults(&mut self, side: Side, faults: impl FnMut(&Departure<'_>) -> Verdict + 'static) {
        self.ends[side.index()].faults = Some(Box::new(faults));
    }
    /// The application of `side` will do `act` at the time `at`.
    pub fn at(&mut self, at: Instant, side: Side, act: Act) {
        let agenda = &mut self.ends[side.index()].agenda;
        let place = agenda.partition_point(|(t, _)| *t <= at);
        agenda.insert(place, (at, act));
    }
    /// The application of `side` writes `n` bytes now and, if `close`, closes.
    pub fn send(&mut self, side: Side, n: u64, close: bool) {
        self.at(self.now, side, Act::Write(n));
        if close {
            self.at(self.now, side, Act::Shutdown);
        }
    }
    /// The application of `side` reads only when told to.
    pub fn reads_by_hand(&mut self, side: Side) {
        self.ends[side.index()].eager = false;
    }

    /// The time of the next event.
    #[must_use]
    pub fn next_event(&self) -> Option<Instant> {
        let mut next = self.chain.next();
        for e in &self.ends {
            next = next
                .min(e.late.iter().map(|l| l.0).min().unwrap_or(Instant::MAX))
                .min(e.agenda.first().map_or(Instant::MAX, |a| a.0))
                .min(e.conn.next_timeout());
        }
        (next < Instant::MAX).then(|| next.max(self.now))
    }

    /// Handles one event; false if there is none.
    pub fn step(&mut self) -> bool {
        let Some(now) = self.next_event() else { return false };
        self.now = now;
        while self.chain.next() <= now {
            let mut losses = Losses { log: &mut self.log, logging: self.logging };
            if let Some(p) = self.chain.step(now, &mut losses) {
                self.arrive(p.from.other(), &p);
                return true;
            }
        }
        for side in Side::BOTH {
            let late = &mut self.ends[side.index()].late;
            if let Some(i) = late.iter().position(|l| l.0 <= now) {
                let (_, p) = late.remove(i);
                self.offer(p);
                return true;
            }
        }
        for side in Side::BOTH {
            let e = &mut self.ends[side.index()];
            if e.agenda.first().is_some_and(|a| a.0 <= now) {
                let (_, act) = e.agenda.remove(0);
                self.act(side, act);
                return true;
            }
        }
        for side in Side::BOTH {
            let c = &mut self.ends[side.index()].conn;
            if c.next_timeout() <= now {
                c.handle_timeout(now);
                assert!(
                    c.next_timeout() > now || c.next_timeout() == Instant::MAX || self.pump(side) > 0,
                    "the timer of {side:?} is still due after its timeout was handled"
                );
                self.pump(side);
                return true;
            }
        }
        true
    }

    /// Handles everything up to and including `until`.
    pub fn run_until(&mut self, until: Instant) {
        while self.next_event().is_some_and(|t| t <= until) {
            self.step();
        }
        self.now = self.now.max(until);
    }

    /// Runs until nothing can happen any more, at most until `limit`. False if events after `limit` remain.
    pub fn run_to_end(&mut self, limit: Instant) -> bool {
        self.run_with(limit, |_| {})
    }

    /// As [`Self::run_to_end`]; `check` is called after each event.
    pub fn run_with(&mut self, limit: Instant, mut check: impl FnMut(&Self)) -> bool {
        let mut at_once = 0u32;
        let mut last = self.now;
        while let Some(t) = self.next_event() {
            if t > limit {
                return false;
            }
            self.step();
            check(self);
            at_once = if self.now == last { at_once + 1 } else { 0 };
            last = self.now;
            assert!(at_once < 20_000, "{at_once} events in a row at {:?}: time does not advance", self.now);
        }
        true
    }

    /// True if both sides are closed in order (TIME-WAIT included) and each application read all that its peer
    /// wrote, unaltered.
    #[must_use]
    pub fn finished(&self) -> bool {
        Side::BOTH.iter().all(|&s| {
            let (me, peer) = (self.end(s), self.end(s.other()));
            matches!(me.conn.state(), State::Closed | State::TimeWait)
                && me.received == peer.written
                && peer.to_write == 0
                && me.corrupt.is_none()
        })
    }

    fn act(&mut self, side: Side, act: Act) {
        let now = self.now;
        let e = &mut self.ends[side.index()];
        match act {
            Act::Write(n) => e.to_write = e.to_write.saturating_add(n),
            Act::Read(n) => e.read(n, side),
            Act::ReadEagerly => e.eager = true,
            Act::Shutdown => e.shutdown = true,
            Act::Abort => e.conn.abort(now),
        }
        self.pump(side);
    }

    fn arrive(&mut self, side: Side, p: &Packet) {
        let now = self.now;
        let result = self.ends[side.index()].conn.handle(now, &p.segment, &p.payload);
        if self.logging {
            let event = match result {
                Ok(()) => SegmentEvent::Arrived,
                Err(why) => SegmentEvent::Refused(why),
            };
            self.log.push(Entry { at: now, side, event, segment: p.segment });
        }
        self.pump(side);
    }

    /// The application's turn, then everything the endpoint has to send. Returns how many segments left.
    pub fn pump(&mut self, side: Side) -> u32 {
        let now = self.now;
        let mut departed = 0;
        loop {
            let e = &mut self.ends[side.index()];
            e.application(now, side);
            let Some(segment) = e.conn.poll_transmit(now) else { break };
            departed += 1;
            assert!(departed < 100_000, "an endpoint that never stops sending at {now:?}: {segment:?}");
            let mut payload = vec![0; if S::BYTES { segment.len as usize } else { 0 }];
            if S::BYTES {
                e.conn.payload(&segment, &mut payload);
            }
            let mut p = Packet::new(side, segment, payload, e.header, e.hop);
            let departure = Departure {
                now,
                index: e.sent,
                data_index: e.data_sent,
                probe_index: e.probes_sent,
                segment: &segment,
            };
            let verdict = e.faults.as_mut().map_or(Verdict::Deliver, |f| f(&departure));
            e.sent += 1;
            e.data_sent += u64::from(departure.is_data());
            e.probes_sent += u64::from(segment.mark.is_probe());
            if self.logging {
                self.log.push(Entry { at: now, side, event: SegmentEvent::Sent, segment });
            }
            match verdict {
                Verdict::Deliver => self.offer(p),
                Verdict::Mark => {
                    p.mark_ce();
                    self.offer(p);
                }
                Verdict::Lose => {
                    if self.logging {
                        self.log.push(Entry { at: now, side, event: SegmentEvent::Lost, segment });
                    }
                }
                Verdict::Copies(n) => {
                    for _ in 0..n {
                        self.offer(p.clone());
                    }
                    self.offer(p);
                }
                Verdict::Late(by) => self.ends[side.index()].late.push((now + by, p)),
            }
        }
        let e = &mut self.ends[side.index()];
        while let Some(event) = e.conn.poll_event() {
            e.events.push(event);
        }
        departed
    }

    fn offer(&mut self, p: Packet) {
        let now = self.now;
        let mut losses = Losses { log: &mut self.log, logging: self.logging };
        self.chain.enter(now, p, &mut losses);
    }

    /// The ordinary data segments that `side` sent, with their times.
    pub fn data_sent(&self, side: Side) -> impl Iterator<Item = &Entry> {
        self.log.iter().filter(move |e| {
            e.side == side && e.event == SegmentEvent::Sent && e.segment.len > 0 && !e.segment.mark.is_probe()
        })
    }
    /// The probes that `side` sent.
    pub fn probes_sent(&self, side: Side) -> impl Iterator<Item = &Entry> {
        self.log
            .iter()
            .filter(move |e| e.side == side && e.event == SegmentEvent::Sent && e.segment.mark.is_probe())
    }
    /// What arrived at `side` and was accepted.
    pub fn arrived(&self, side: Side) -> impl Iterator<Item = &Entry> {
        self.log.iter().filter(move |e| e.side == side && e.event == SegmentEvent::Arrived)
    }
    /// Everything that `side` sent.
    pub fn sent(&self, side: Side) -> impl Iterator<Item = &Entry> {
        self.log.iter().filter(move |e| e.side == side && e.event == SegmentEvent::Sent)
    }
}

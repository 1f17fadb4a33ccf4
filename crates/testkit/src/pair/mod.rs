//! Two endpoints joined by two links, in virtual time.
//!
//! Simultaneous events are handled in a fixed order: departures from links, arrivals (first those at the
//! client), late packets, the applications, timers.

mod setup;

pub use setup::{Handshake, Setup};

use skyhaul_base::{Duration, Instant};
use skyhaul_path::{DropReason, Link, PacketView};
use skyhaul_tcp::{Bytes, Connection, Counted, Event, Flags, Rejected, Segment, State, Store};

/// One of the two endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one that opens actively.
    Client,
    /// The other one.
    Server,
}

impl Side {
    /// Both, the client first.
    pub const BOTH: [Self; 2] = [Self::Client, Self::Server];

    /// The peer.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
    fn index(self) -> usize {
        self as usize
    }
}

/// A payload store that says whether it keeps the bytes, in which case the harness supplies and checks them.
pub trait Keeps: Store {
    /// True if the bytes are kept.
    const BYTES: bool;
}
impl Keeps for Counted {
    const BYTES: bool = false;
}
impl Keeps for Bytes {
    const BYTES: bool = true;
}

/// A segment on its way.
#[derive(Clone, Debug, Default)]
pub struct Packet {
    /// What it means.
    pub segment: Segment,
    /// Its payload, where payload is kept.
    pub payload: Vec<u8>,
    header: u32,
}

impl PacketView for Packet {
    fn size(&self) -> u32 {
        self.segment.len + self.header
    }
    fn low_priority(&self) -> bool {
        self.segment.low_priority
    }
    fn flow(&self) -> u32 {
        0
    }
}

/// A segment that an endpoint is about to give to its link.
#[derive(Clone, Copy, Debug)]
pub struct Departure<'a> {
    /// When.
    pub now: Instant,
    /// Segments that left this side before it.
    pub index: u64,
    /// Ordinary data segments (retransmissions included, probes not) that left this side before it.
    pub data_index: u64,
    /// Probes that left this side before it.
    pub probe_index: u64,
    /// The segment.
    pub segment: &'a Segment,
}

impl Departure<'_> {
    /// It carries payload and is no probe.
    #[must_use]
    pub fn is_data(&self) -> bool {
        self.segment.len > 0 && !self.segment.mark.is_probe()
    }
}

/// What the test decides about a departure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// To the link.
    Deliver,
    /// Nowhere.
    Lose,
    /// To the link, and so many copies after it.
    Copies(u32),
    /// To the link after a pause: others may overtake it.
    Late(Duration),
}

/// Decides the fate of each departure.
pub type Faults = Box<dyn FnMut(&Departure<'_>) -> Fate>;

/// What happened to a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Its endpoint sent it.
    Sent,
    /// It reached an endpoint.
    Arrived,
    /// The fault function lost it.
    Lost,
    /// The link lost it.
    Dropped(DropReason),
    /// It reached an endpoint, which refused it.
    Refused(Rejected),
}

/// A line of the log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// When.
    pub at: Instant,
    /// The endpoint that sent it or received it; for losses, the one that sent it.
    pub side: Side,
    /// What.
    pub what: What,
    /// The segment.
    pub segment: Segment,
}

/// What an application does at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Writes this many bytes, as the buffer allows.
    Write(u64),
    /// Reads at most this many bytes (of an application that does not read at once).
    Read(u64),
    /// From now on reads everything at once.
    ReadEagerly,
    /// Closes its direction after the last byte is written.
    Shutdown,
    /// Aborts.
    Abort,
}

/// An endpoint, its application and its outgoing link.
pub struct End<S: Store> {
    /// The endpoint.
    pub conn: Connection<S>,
    /// The link that leads away from it.
    pub link: Link<Packet>,
    /// News so far.
    pub events: Vec<Event>,
    /// Bytes read by the application.
    pub received: u64,
    /// The first byte that differed from what the peer wrote.
    pub corrupt: Option<u64>,
    faults: Option<Faults>,
    late: Vec<(Instant, Packet)>,
    agenda: Vec<(Instant, Act)>,
    to_write: u64,
    written: u64,
    shutdown: bool,
    eager: bool,
    header: u32,
    sent: u64,
    data_sent: u64,
    probes_sent: u64,
}

/// Two endpoints and the links between them.
pub struct Pair<S: Store> {
    ends: [End<S>; 2],
    now: Instant,
    /// Everything that happened.
    pub log: Vec<Entry>,
    /// Off: nothing is logged (long runs).
    pub logging: bool,
}

/// The byte at `offset` of the stream that `side` writes.
#[must_use]
pub fn content(side: Side, offset: u64) -> u8 {
    let x = (offset + 1 + side as u64 * 77).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x >> 56) as u8 ^ (offset >> 8) as u8
}

impl<S: Keeps> Pair<S> {
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
    /// The connection of one side.
    #[must_use]
    pub fn conn(&self, side: Side) -> &Connection<S> {
        &self.ends[side.index()].conn
    }
    /// Decides about everything that `side` sends from now on.
    pub fn faults(&mut self, side: Side, faults: impl FnMut(&Departure<'_>) -> Fate + 'static) {
        self.ends[side.index()].faults = Some(Box::new(faults));
    }
    /// The application of `side` will do this at `at`.
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
        let mut next = Instant::MAX;
        for e in &self.ends {
            next = next
                .min(e.link.next_service().unwrap_or(Instant::MAX))
                .min(e.link.next_delivery().unwrap_or(Instant::MAX))
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
        for side in Side::BOTH {
            let e = &mut self.ends[side.index()];
            let log = &mut self.log;
            let logging = self.logging;
            e.link.serve(now, &mut |p: Packet, why| {
                if logging {
                    log.push(Entry { at: now, side, what: What::Dropped(why), segment: p.segment });
                }
            });
        }
        for side in Side::BOTH {
            if let Some(p) = self.ends[side.other().index()].link.deliver(now) {
                self.arrive(side, &p);
                return true;
            }
        }
        for side in Side::BOTH {
            let late = &mut self.ends[side.index()].late;
            if let Some(i) = late.iter().position(|l| l.0 <= now) {
                let (_, p) = late.remove(i);
                self.offer(side, p);
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
                    "a timeout that stays due"
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

    /// Runs until nothing can happen any more, at most until `limit`. Returns true if it got that far.
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
            assert!(at_once < 20_000, "nothing but events at {:?}", self.now);
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
            let what = match result {
                Ok(()) => What::Arrived,
                Err(why) => What::Refused(why),
            };
            self.log.push(Entry { at: now, side, what, segment: p.segment });
        }
        self.pump(side);
    }

    /// The application's turn, then everything the endpoint has to send. Returns how many segments left.
    pub fn pump(&mut self, side: Side) -> u32 {
        let now = self.now;
        let mut left = 0;
        loop {
            let e = &mut self.ends[side.index()];
            e.application(now, side);
            let Some(segment) = e.conn.poll_transmit(now) else { break };
            left += 1;
            assert!(left < 100_000, "an endpoint that never stops sending at {now:?}: {segment:?}");
            let mut payload = vec![0; if S::BYTES { segment.len as usize } else { 0 }];
            if S::BYTES {
                e.conn.payload(&segment, &mut payload);
            }
            let p = Packet { segment, payload, header: e.header };
            let departure = Departure {
                now,
                index: e.sent,
                data_index: e.data_sent,
                probe_index: e.probes_sent,
                segment: &segment,
            };
            let fate = e.faults.as_mut().map_or(Fate::Deliver, |f| f(&departure));
            e.sent += 1;
            e.data_sent += u64::from(departure.is_data());
            e.probes_sent += u64::from(segment.mark.is_probe());
            if self.logging {
                self.log.push(Entry { at: now, side, what: What::Sent, segment });
            }
            match fate {
                Fate::Deliver => self.offer(side, p),
                Fate::Lose => {
                    if self.logging {
                        self.log.push(Entry { at: now, side, what: What::Lost, segment });
                    }
                }
                Fate::Copies(n) => {
                    for _ in 0..n {
                        self.offer(side, p.clone());
                    }
                    self.offer(side, p);
                }
                Fate::Late(by) => self.ends[side.index()].late.push((now + by, p)),
            }
        }
        let e = &mut self.ends[side.index()];
        while let Some(event) = e.conn.poll_event() {
            e.events.push(event);
        }
        left
    }

    fn offer(&mut self, side: Side, p: Packet) {
        let now = self.now;
        let (log, logging) = (&mut self.log, self.logging);
        self.ends[side.index()].link.offer(now, p, &mut |p: Packet, why| {
            if logging {
                log.push(Entry { at: now, side, what: What::Dropped(why), segment: p.segment });
            }
        });
    }

    /// The ordinary data segments that `side` sent, with their times.
    pub fn data_sent(&self, side: Side) -> impl Iterator<Item = &Entry> {
        self.log.iter().filter(move |e| {
            e.side == side && e.what == What::Sent && e.segment.len > 0 && !e.segment.mark.is_probe()
        })
    }
    /// The probes that `side` sent.
    pub fn probes_sent(&self, side: Side) -> impl Iterator<Item = &Entry> {
        self.log.iter().filter(move |e| e.side == side && e.what == What::Sent && e.segment.mark.is_probe())
    }
    /// What arrived at `side` and was accepted.
    pub fn arrived(&self, side: Side) -> impl Iterator<Item = &Entry> {
        self.log.iter().filter(move |e| e.side == side && e.what == What::Arrived)
    }
    /// Everything that `side` sent.
    pub fn sent(&self, side: Side) -> impl Iterator<Item = &Entry> {
        self.log.iter().filter(move |e| e.side == side && e.what == What::Sent)
    }
}

impl<S: Keeps> End<S> {
    fn application(&mut self, now: Instant, side: Side) {
        if self.eager {
            self.read(u64::MAX, side);
        }
        // A listener has nobody to write to, and closing it would end the matter.
        if matches!(self.conn.state(), State::Closed | State::Listen) {
            return;
        }
        while self.to_write > 0 {
            let most = if S::BYTES { 65_536 } else { u64::MAX };
            let n = self.to_write.min(self.conn.writable()).min(most);
            let bytes: Vec<u8> = if S::BYTES {
                (self.written..self.written + n).map(|i| content(side, i)).collect()
            } else {
                Vec::new()
            };
            let taken = self.conn.write(now, &bytes, n);
            self.written += taken;
            self.to_write -= taken;
            if taken == 0 {
                return;
            }
        }
        if core::mem::take(&mut self.shutdown) {
            self.conn.shutdown(now);
        }
    }

    fn read(&mut self, most: u64, side: Side) {
        let mut left = most;
        while left > 0 {
            let n = self.conn.readable().min(left).min(65_536);
            if n == 0 {
                return;
            }
            let mut out = vec![0; if S::BYTES { n as usize } else { 0 }];
            let got = self.conn.read(&mut out, n);
            for (i, &b) in out.iter().enumerate() {
                let at = self.received + i as u64;
                if b != content(side.other(), at) {
                    self.corrupt.get_or_insert(at);
                }
            }
            self.received += got;
            left -= got;
        }
    }

    /// Bytes the application has written so far.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }
}

/// True if the segment is a pure acknowledgement: no payload, SYN, FIN or RST, and no answer to a probe.
#[must_use]
pub fn is_pure_ack(s: &Segment) -> bool {
    s.len == 0 && s.flags == Flags::ACK && !s.mark.is_answer()
}

//! Runs a workload on a real host.
//!
//! ```text
//! skyhaul_apps::App ── what it demands ──▶ Session ── opens, writes, ends, sends ──▶ Carrier
//!                   ◀── everything acknowledged ──         ◀── room, acknowledgements ──
//! ```
//! The workloads are those of the simulator, which drives them in the same way. A session reads no clock and owns
//! no socket. Its carrier is either connections of our own host ([`HostTransport`](super::HostTransport)) or kernel sockets.

use skyhaul_apps::{App, Arrival, Datagram, Demand, Feedback, Numbered, Outcome, Stop, Viewed};
use skyhaul_base::{Duration, Instant};

/// Carries the data of a session. Transfers are identified by number.
pub trait Carrier {
    /// Why something cannot be opened or sent.
    type Error;

    /// Opens the connection of a transfer.
    ///
    /// # Errors
    /// If the connection cannot be opened; a connection that fails later is handled by its owner.
    fn open(&mut self, now: Instant, transfer: u64) -> Result<(), Self::Error>;
    /// Writes up to `most` bytes, as far as there is room; returns how many.
    fn write(&mut self, now: Instant, transfer: u64, most: u64) -> u64;
    /// Takes back data that was written but not sent yet, where that is possible.
    fn take_back(&mut self, now: Instant, transfer: u64);
    /// Ends the data of a transfer: everything has been written.
    fn finish(&mut self, now: Instant, transfer: u64);
    /// Whether the peer has acknowledged everything written. Only called after [`Self::finish`].
    fn is_acknowledged(&mut self, now: Instant, transfer: u64) -> bool;
    /// State of a transfer's connection: bytes in flight and the rate that it allows, where known. Only called for
    /// applications that watch the transport.
    fn feedback(&mut self, _now: Instant, _transfer: u64) -> Feedback {
        Feedback::default()
    }
    /// The transfer is complete; the session does not use its connection any more.
    fn release(&mut self, now: Instant, transfer: u64);
    /// Sends a datagram.
    ///
    /// # Errors
    /// If the datagram cannot be sent.
    fn datagram(&mut self, now: Instant, datagram: &Datagram) -> Result<(), Self::Error>;
}

/// A transfer with an open connection.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    number: u64,
    /// Bytes not written yet.
    left: u64,
    began: Instant,
    finished: bool,
}

/// A running workload.
#[derive(Debug)]
pub struct Session {
    app: App,
    /// Headers of each datagram, bytes.
    header: u32,
    begins: Instant,
    stops: Instant,
    open: Vec<Transfer>,
    numbered: Numbered,
    started: Option<Instant>,
    finished: Option<Instant>,
    pages: Vec<Duration>,
}

impl Session {
    /// A workload that starts at `begins`, the time given to its constructor, and is stopped at `stops`;
    /// [`Instant::MAX`] means never. Each of its datagrams has `header` bytes of headers.
    #[must_use]
    pub fn new(app: App, (begins, stops): (Instant, Instant), header: u32) -> Self {
        Self {
            app,
            header,
            begins,
            stops,
            open: Vec::new(),
            numbered: Numbered::default(),
            started: None,
            finished: None,
            pages: Vec::new(),
        }
    }

    /// When it started.
    #[must_use]
    pub fn started(&self) -> Option<Instant> {
        self.started
    }
    /// When it finished its work; after a stop, the work that the stop left. Transfers that arrived at random may continue
    /// after this time.
    #[must_use]
    pub fn finished(&self) -> Option<Instant> {
        self.finished
    }
    /// Duration of each page or randomly arriving transfer, until its last acknowledgement.
    #[must_use]
    pub fn pages(&self) -> &[Duration] {
        &self.pages
    }
    /// Transfers that have arrived at random, complete or not.
    #[must_use]
    pub fn transfers(&self) -> u64 {
        self.app.transfers()
    }
    /// Datagrams sent.
    #[must_use]
    pub fn datagrams(&self) -> u64 {
        self.numbered.sent()
    }
    /// Whether its transfers use a connection each, possibly several at a time.
    #[must_use]
    pub fn opens_many(&self) -> bool {
        self.app.opens_many()
    }
    /// Replays to its viewer what arrived at the other end, in order of time, and returns the viewer's measurements
    /// until `end`. `None` if the workload has no viewer.
    pub fn watch(&mut self, came: impl Iterator<Item = (Instant, Arrival)>, end: Instant) -> Option<Viewed> {
        let watch = self.app.watch_mut()?;
        for (at, arrival) in came.take_while(|(at, _)| *at <= end) {
            watch.arrived(at, &arrival);
        }
        // Only the simulator reports segments that arrive out of order.
        Some(Viewed { delayed_wire: None, ..watch.viewed(end) })
    }
    /// Latest time at which [`Self::turn`] must be called, whatever the carrier does; [`Instant::MAX`] means never.
    #[must_use]
    pub fn next(&self) -> Instant {
        match (self.started, self.finished) {
            (None, None) => self.begins,
            (_, Some(_)) => Instant::MAX,
            (Some(_), None) => self.app.next().min(self.stops),
        }
    }

    /// Carries out the workload's demands up to now, and reports acknowledgements to it.
    ///
    /// # Errors
    /// Those of the carrier.
    pub fn turn<C: Carrier>(&mut self, now: Instant, carrier: &mut C) -> Result<(), C::Error> {
        if self.started.is_none() {
            if self.finished.is_some() || self.begins > now {
                return Ok(());
            }
            if self.stops <= self.begins {
                // Stopped before it started: there is nothing to end.
                self.finished = Some(now);
                return Ok(());
            }
            self.started = Some(now);
        }
        loop {
            if self.stops <= now {
                // However late this call is, demands due before the stop still count.
                let before = Instant::from_nanos(self.stops.as_nanos().saturating_sub(1));
                self.demand(now, before, carrier)?;
                self.stop(now, carrier);
            }
            self.demand(now, now, carrier)?;
            self.write(now, carrier);
            if !self.complete(now, carrier) {
                return Ok(());
            }
        }
    }

    /// Stops the workload, whatever its stop time.
    pub fn stop<C: Carrier>(&mut self, now: Instant, carrier: &mut C) {
        self.stops = Instant::MAX;
        if self.finished.is_some() {
            return;
        }
        match self.app.stop() {
            Stop::Over => self.finished = Some(now),
            Stop::Drain => {}
            Stop::TakeBack => {
                for t in &mut self.open {
                    t.left = 0;
                    carrier.take_back(now, t.number);
                }
            }
        }
        if self.open.is_empty() {
            self.finished = Some(now);
        }
        self.write(now, carrier);
    }

    /// Carries out the workload's demands up to `until`.
    fn demand<C: Carrier>(&mut self, now: Instant, until: Instant, carrier: &mut C) -> Result<(), C::Error> {
        if let Some(watch) = self.app.watch_mut().filter(|w| w.listens()) {
            // Datagrams belong to no transfer.
            let (number, left) = self.open.last().map_or((0, 0), |t| (t.number, t.left));
            let mut feedback = carrier.feedback(now, number);
            feedback.unacknowledged += left;
            watch.feedback(&feedback);
        }
        loop {
            // A transfer that waited for a connection began when it arrived.
            let began = if self.app.opens_many() { self.app.next().min(now) } else { now };
            let Some(demand) = self.app.poll(until) else { break };
            match demand {
                Demand::Open { transfer, bytes } => {
                    carrier.open(now, transfer)?;
                    self.open.push(Transfer { number: transfer, left: bytes, began, finished: false });
                }
                Demand::Write(bytes) => {
                    if let Some(t) = self.open.last_mut() {
                        t.left += bytes;
                    }
                }
                Demand::Frame(_) => {}
                Demand::Datagram(packet) => {
                    let datagram = self.numbered.next(now, packet - self.header);
                    carrier.datagram(now, &datagram)?;
                }
            }
        }
        Ok(())
    }

    fn write<C: Carrier>(&mut self, now: Instant, carrier: &mut C) {
        let ends = self.app.opens_many() || self.app.is_finite();
        for t in self.open.iter_mut().filter(|t| !t.finished) {
            if t.left > 0 {
                t.left -= carrier.write(now, t.number, t.left);
            }
            if t.left == 0 && ends {
                t.finished = true;
                carrier.finish(now, t.number);
            }
        }
    }

    /// Looks for fully acknowledged transfers; true if there was one.
    fn complete<C: Carrier>(&mut self, now: Instant, carrier: &mut C) -> bool {
        let Self { open, app, pages, finished, .. } = self;
        let before = open.len();
        open.retain(|t| {
            if !t.finished || !carrier.is_acknowledged(now, t.number) {
                return true;
            }
            carrier.release(now, t.number);
            let outcome = app.acknowledged(now);
            if outcome != Outcome::Over {
                pages.push(now - t.began);
            }
            if outcome != Outcome::Next {
                *finished = Some(now);
            }
            false
        });
        open.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_apps::{Bulk, Config, Start, Streams, Transport, arrivals, cbr, pages};
    use skyhaul_base::Rate;
    use skyhaul_base::amount::RateSpec;
    use skyhaul_base::dist::{Sizes, Times};
    use std::collections::BTreeMap;

    /// Takes `room` bytes per transfer at a time, and acknowledges when the test says so.
    #[derive(Default)]
    struct Script {
        room: u64,
        open: BTreeMap<u64, (u64, bool)>,
        acknowledges: bool,
        taken_back: u64,
        released: Vec<u64>,
        sent: Vec<Datagram>,
    }
    impl Carrier for Script {
        type Error = &'static str;
        fn open(&mut self, _: Instant, transfer: u64) -> Result<(), &'static str> {
            if self.open.insert(transfer, (0, false)).is_some() { Err("twice") } else { Ok(()) }
        }
        fn write(&mut self, _: Instant, transfer: u64, most: u64) -> u64 {
            let n = most.min(self.room);
            self.open.get_mut(&transfer).unwrap().0 += n;
            n
        }
        fn take_back(&mut self, _: Instant, _: u64) {
            self.taken_back += 1;
        }
        fn finish(&mut self, _: Instant, transfer: u64) {
            self.open.get_mut(&transfer).unwrap().1 = true;
        }
        fn is_acknowledged(&mut self, _: Instant, transfer: u64) -> bool {
            assert!(self.open[&transfer].1, "asked before the end");
            self.acknowledges
        }
        fn release(&mut self, _: Instant, transfer: u64) {
            self.released.push(transfer);
        }
        fn datagram(&mut self, _: Instant, datagram: &Datagram) -> Result<(), &'static str> {
            self.sent.push(*datagram);
            Ok(())
        }
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }
    fn session(config: impl Into<Config>, over: Transport, begins: u64, stops: Instant) -> Session {
        let streams = Streams::of(1, "flows.a[0]");
        let app =
            config.into().resolve(over).unwrap().build(&Start { now: at(begins), over, streams: &streams });
        Session::new(app, (at(begins), stops), 28)
    }
    const STREAM: Transport = Transport::Stream { segment: 100 };

    #[test]
    fn pages_are_written_as_room_permits_and_follow_each_other() {
        let idle = Some(Times::Constant(Duration::from_millis(50)));
        let mut s = session(pages::Config { segments: 3, count: Some(2), idle }, STREAM, 10, Instant::MAX);
        let mut c = Script { room: 120, ..Script::default() };
        assert_eq!(s.next(), at(10));
        s.turn(at(5), &mut c).unwrap();
        assert!(c.open.is_empty());
        for (ms, written) in [(10, 120), (11, 240), (12, 300)] {
            s.turn(at(ms), &mut c).unwrap();
            assert_eq!(c.open[&0], (written, written == 300));
        }
        c.acknowledges = true;
        s.turn(at(30), &mut c).unwrap();
        assert_eq!((s.pages(), s.next(), s.finished()), (&[Duration::from_millis(20)][..], at(80), None));
        c.room = 1000;
        s.turn(at(80), &mut c).unwrap();
        assert_eq!((s.pages().len(), c.released.as_slice(), s.finished()), (2, &[0, 1][..], Some(at(80))));
        assert_eq!((s.next(), s.started()), (Instant::MAX, Some(at(10))));
    }

    #[test]
    fn a_stop_takes_back_bulk_data_and_lets_transfers_go_on() {
        let mut s = Session::new(App::Bulk(Bulk::endless(at(0))), (at(0), at(20)), 0);
        let mut c = Script { room: 500, ..Script::default() };
        s.turn(at(0), &mut c).unwrap();
        assert_eq!((c.open[&0], s.next()), ((500, false), at(20)));
        s.turn(at(20), &mut c).unwrap();
        assert_eq!((c.taken_back, c.open[&0]), (1, (500, true)));
        c.acknowledges = true;
        s.turn(at(25), &mut c).unwrap();
        assert_eq!((s.finished(), s.pages().len()), (Some(at(25)), 0), "cut short: no page");

        let config = arrivals::Config { rate: 1000.0, size: Sizes::Constant(700), connections: None };
        let (mut s, mut c) = (session(config, STREAM, 0, at(20)), Script { room: 500, ..Script::default() });
        for ms in 0..=20 {
            s.turn(at(ms), &mut c).unwrap();
        }
        let n = s.transfers();
        assert!(n > 5 && s.finished() == Some(at(20)), "{n} transfers");
        c.acknowledges = true;
        s.turn(at(22), &mut c).unwrap();
        s.turn(at(23), &mut c).unwrap();
        assert_eq!((s.pages().len() as u64, s.transfers()), (n, n), "those that had begun are completed");
        // Before it started.
        let mut s = Session::new(App::Bulk(Bulk::endless(at(9))), (at(9), at(3)), 0);
        s.turn(at(9), &mut Script::default()).unwrap();
        assert_eq!((s.started(), s.finished()), (None, Some(at(9))));
    }

    #[test]
    fn a_rate_is_written_to_one_connection_or_sent_in_datagrams() {
        let config =
            cbr::Config { rate: RateSpec::Bits(Rate::from_bits_per_sec(800_000)), packet: Some(100) };
        let (mut s, mut c) = (session(config, STREAM, 0, at(10)), Script { room: 1000, ..Script::default() });
        for ms in 0..10 {
            s.turn(at(ms), &mut c).unwrap();
        }
        assert_eq!(c.open[&0], (1000, false), "100 bytes a millisecond");
        s.turn(at(10), &mut c).unwrap();
        assert_eq!(c.open[&0], (1000, true), "what was written is sent");

        let over = Transport::Datagrams { header: 28, yields: false };
        let (mut s, mut c) = (session(config, over, 0, at(10)), Script::default());
        s.turn(at(0), &mut c).unwrap();
        // A late call: the datagrams that were due are sent now, with the time of now.
        s.turn(at(9), &mut c).unwrap();
        let ninth = Datagram { number: 9, sent_at: at(9), len: 72 };
        assert_eq!((s.datagrams(), c.sent.last()), (10, Some(&ninth)));
        s.turn(at(11), &mut c).unwrap();
        assert_eq!((s.finished(), s.datagrams(), s.next()), (Some(at(11)), 10, Instant::MAX));
        // What was due before the stop is sent; what was due at the stop is not.
        let (mut s, mut c) = (session(config, over, 0, at(10)), Script::default());
        s.turn(at(12), &mut c).unwrap();
        assert_eq!((s.finished(), s.datagrams()), (Some(at(12)), 10));
    }

    #[test]
    fn a_film_is_written_frame_by_frame_and_stands_still_where_nothing_goes() {
        use skyhaul_apps::video::{self, OverflowPolicy};
        let film = |full, buffer| video::Config { full, buffer, phase: false, ..video::Config::default() };
        let frames = |full, buffer| {
            let mut s = session(film(full, buffer), STREAM, 0, Instant::MAX);
            let mut c = Script { room: 100, ..Script::default() };
            (0..100).for_each(|n| s.turn(at(40 * n), &mut c).unwrap());
            (c.open[&0].0, s.open[0].left)
        };
        // 100 bytes at a time of 1300 per frame: the rest waits, without end or up to what the buffer holds.
        let (written, waits) = frames(OverflowPolicy::Queue, None);
        assert!(written == 10_000 && waits > 60_000, "{written} {waits}");
        let (written, waits) = frames(OverflowPolicy::Block, Some(5000));
        assert!(written > 9000 && waits < 15_000, "{written} {waits}");
    }
}

//! A path in virtual time for the tests of the conformance list: flows over one link with a rate, a delay and a queue.
//! Reports return with the same delay, and never wait.

use skyhaul_base::{Duration, Instant};
use skyhaul_rate::{Config, Data, Receiver, Report, Sender};
use std::collections::BTreeMap;

/// What crosses the path.
enum Packet {
    Data(Data),
    Report(Report),
}

/// The link, and what it loses.
pub(crate) struct Link {
    /// Bytes per second.
    pub(crate) rate: f64,
    /// Each way.
    pub(crate) delay: Duration,
    /// Packets that may wait for the link.
    pub(crate) queue: usize,
    /// Whether the n-th packet of the link is lost on it, from 0.
    pub(crate) loses: Box<dyn FnMut(u64) -> bool>,
    /// From this time on every report is lost.
    pub(crate) reports_lost_from: Instant,
}

impl Link {
    /// A link of `bits` bit/s with a delay of `delay_ms` ms each way, which loses nothing.
    pub(crate) fn new(bits: f64, delay_ms: u64) -> Self {
        let delay = Duration::from_millis(delay_ms);
        Self {
            rate: bits / 8.0,
            delay,
            queue: 50,
            loses: Box::new(|_| false),
            reports_lost_from: Instant::MAX,
        }
    }
}

/// A flow over the link.
pub(crate) struct Flow {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    /// When packets arrived at the receiver, and their sizes.
    pub(crate) arrived: Vec<(Instant, u32)>,
    /// When packets left.
    pub(crate) sent: Vec<Instant>,
    begins: Instant,
    /// The time between datagrams, and their size; `None` for a flow that always has something to send.
    pub(crate) app: Option<(Duration, u32)>,
    /// When the application offers the next datagram.
    due: Instant,
}

impl Flow {
    /// Bytes that arrived from `from` on, per second, until `to`.
    pub(crate) fn rate(&self, from: Instant, to: Instant) -> f64 {
        let bytes: u64 =
            self.arrived.iter().filter(|(t, _)| (from..to).contains(t)).map(|(_, s)| u64::from(*s)).sum();
        bytes as f64 / (to - from).as_secs_f64()
    }
}

/// Flows over one link, in virtual time.
pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) flows: Vec<Flow>,
    link: Link,
    /// Number of packets that the link has accepted, and the end of the last one's transmission.
    accepted: u64,
    free: Instant,
    /// Ends of the transmissions of packets that are on the link or wait for it.
    leaving: Vec<Instant>,
    in_flight: BTreeMap<(Instant, u64), (usize, Packet)>,
    serial: u64,
    /// Packets that found no room.
    pub(crate) dropped: u64,
}

impl World {
    pub(crate) fn new(link: Link) -> Self {
        Self {
            now: Instant::ZERO,
            flows: Vec::new(),
            link,
            accepted: 0,
            free: Instant::ZERO,
            leaving: Vec::new(),
            in_flight: BTreeMap::new(),
            serial: 0,
            dropped: 0,
        }
    }
    /// Adds a flow that begins at `begins`.
    pub(crate) fn flow(&mut self, config: Config, begins: Instant, app: Option<(Duration, u32)>) {
        let offered = app.map(|(gap, size)| f64::from(size) * 8.0 / gap.as_secs_f64());
        // Headers of 28 bytes: IPv4 and UDP.
        let config = config.resolve(app.map(|(_, size)| size.into()), offered, 28).expect("a configuration");
        let mut sender = Sender::new(begins, &config);
        if app.is_none() {
            sender.greedy();
        }
        let receiver = Receiver::new(&config);
        let (arrived, sent) = (Vec::new(), Vec::new());
        self.flows.push(Flow { sender, receiver, arrived, sent, begins, app, due: begins });
    }

    /// Runs until `t`.
    pub(crate) fn run(&mut self, t: Instant) {
        loop {
            let timers = self.flows.iter().map(|f| {
                let app = if f.app.is_some() { f.due } else { Instant::MAX };
                f.sender.next_timeout().max(f.begins).min(f.receiver.next_timeout()).min(app)
            });
            let next = timers.min().unwrap_or(Instant::MAX);
            let arrival = self.in_flight.keys().next().map_or(Instant::MAX, |(at, _)| *at);
            if next.min(arrival) > t {
                self.now = t;
                return;
            }
            self.now = self.now.max(next.min(arrival));
            if arrival <= next {
                let (_, (flow, packet)) = self.in_flight.pop_first().unwrap();
                self.arrive(flow, packet);
            }
            for i in 0..self.flows.len() {
                self.act(i);
            }
        }
    }

    fn arrive(&mut self, i: usize, packet: Packet) {
        let (now, flow) = (self.now, &mut self.flows[i]);
        match packet {
            Packet::Data(data) => {
                flow.arrived.push((now, data.size));
                flow.receiver.handle(now, &data, false);
            }
            Packet::Report(report) => flow.sender.handle_report(now, &report),
        }
    }

    fn act(&mut self, i: usize) {
        let now = self.now;
        let flow = &mut self.flows[i];
        if flow.begins > now {
            return;
        }
        while let Some((gap, size)) = flow.app.filter(|_| flow.due <= now) {
            flow.sender.offer(now, size);
            flow.due += gap;
        }
        flow.sender.handle_timeout(now);
        flow.receiver.handle_timeout(now);
        while let Some(data) = self.flows[i].sender.poll(now) {
            self.flows[i].sent.push(now);
            self.cross(i, data);
        }
        while let Some(report) = self.flows[i].receiver.poll() {
            if now < self.link.reports_lost_from {
                let at = now + self.link.delay;
                // In its encoding, with whole microseconds.
                let report = Report::read(&report.to_bytes()).expect("a report");
                self.put(at, i, Packet::Report(report));
            }
        }
    }

    fn cross(&mut self, i: usize, data: Data) {
        let now = self.now;
        self.leaving.retain(|t| *t > now);
        // The packet in transmission does not count as waiting.
        if self.leaving.len() > self.link.queue {
            self.dropped += 1;
            return;
        }
        let lost = (self.link.loses)(self.accepted);
        self.accepted += 1;
        let takes = Duration::from_secs_f64(f64::from(data.size) / self.link.rate);
        self.free = self.free.max(now) + takes;
        self.leaving.push(self.free);
        if !lost {
            self.put(self.free + self.link.delay, i, Packet::Data(data));
        }
    }

    fn put(&mut self, at: Instant, i: usize, packet: Packet) {
        self.serial += 1;
        self.in_flight.insert((at, self.serial), (i, packet));
    }
}

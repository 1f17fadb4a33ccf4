//! The sending end: sends waiting datagrams one by one at the rate of the control.

use crate::backlog::Backlog;
use crate::config::Config;
use crate::control::Control;
use crate::pacer::Pacer;
use crate::packet::{Data, Report};
use skyhaul_base::{Duration, Instant};

/// Counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets sent.
    pub sent: u64,
    /// Bytes of these, headers included.
    pub bytes: u64,
    /// Datagrams refused because the queue was full.
    pub refused: u64,
    /// Reports that arrived.
    pub reports: u64,
    /// How often the rate was reduced because reports were missing.
    pub expiries: u64,
}

/// State of a sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    /// The allowed rate, bytes per second.
    pub rate: f64,
    /// The smoothed RTT; `None` before the first report.
    pub rtt: Option<Duration>,
    /// The loss event rate reported last; `None` with SSVP.
    pub loss: Option<f64>,
}

/// The sending end of a flow.
#[derive(Clone, Debug)]
pub struct Sender {
    control: Control,
    pacer: Pacer,
    backlog: Backlog,
    segment: u32,
    ceiling: f64,
    /// The application offers no more data.
    finished: bool,
    counters: Counters,
}

impl Sender {
    /// A sender that starts now, for a configuration that [`Config::resolve`] returned.
    #[must_use]
    pub fn new(now: Instant, config: &Config) -> Self {
        Self {
            control: Control::new(now, config),
            pacer: Pacer::new(config.burst()),
            backlog: Backlog::new(config.queue()),
            segment: config.segment(),
            ceiling: config.ceiling(),
            finished: false,
            counters: Counters::default(),
        }
    }

    /// From now on there is always a full packet to send.
    pub fn greedy(&mut self) {
        self.backlog.set_greedy(true);
        self.pacer.wait();
    }
    /// Queues a datagram of `size` bytes, including headers; false if the queue is full.
    pub fn offer(&mut self, now: Instant, size: u32) -> bool {
        let taken = self.backlog.push(size);
        if taken && self.pacer.next(self.pace()) > now {
            self.pacer.wait();
        }
        taken
    }
    /// The application offers no more data: waiting datagrams are sent, endless data ends.
    pub fn finish(&mut self) {
        self.backlog.set_greedy(false);
        self.finished = true;
    }
    /// Whether nothing is waiting and nothing more will be offered.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.finished && self.backlog.is_empty()
    }

    /// The packet to send now; to be called until there is none.
    pub fn poll(&mut self, now: Instant) -> Option<Data> {
        self.poll_numbered(now).map(|(data, _)| data)
    }
    /// The same, with the number under which the datagram was offered, from 0; refused ones are counted. `None` for
    /// endless data.
    pub fn poll_numbered(&mut self, now: Instant) -> Option<(Data, Option<u64>)> {
        let pace = self.pace();
        if self.backlog.is_empty() || self.pacer.next(pace) > now {
            return None;
        }
        let (offered, size) = self.backlog.pop(self.segment)?;
        self.pacer.sent(now, size, pace);
        let waits = !self.backlog.is_empty();
        if waits {
            self.pacer.wait();
        }
        // Data that only `max-rate` holds back does not make the sender rate-limited: the equation allowed more.
        self.control.sent(now, waits && self.control.instant_rate() <= self.ceiling);
        let number = self.counters.sent;
        self.counters.sent += 1;
        self.counters.bytes += u64::from(size);
        Some((Data { number, sent_at: now, rtt: self.control.rtt(), size }, offered))
    }

    /// A report arrives. One of another protocol, or with a time in the future, is ignored.
    pub fn handle_report(&mut self, now: Instant, report: &Report) {
        if report.echo <= now && self.control.on_report(now, report) {
            self.counters.reports += 1;
            self.pacer.changed(now, self.pace());
        }
    }
    /// When it needs a call; [`Instant::MAX`] means not before the next event.
    #[must_use]
    pub fn next_timeout(&self) -> Instant {
        if self.is_over() {
            return Instant::MAX;
        }
        let slot = if self.backlog.is_empty() { Instant::MAX } else { self.pacer.next(self.pace()) };
        self.control.next_timeout().min(slot)
    }
    /// Handles the timer if it is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.control.handle_timeout(now);
    }

    /// Rate, RTT and loss event rate.
    #[must_use]
    pub fn state(&self) -> State {
        State {
            rate: self.control.rate().min(self.ceiling),
            rtt: self.control.rtt(),
            loss: self.control.loss(),
        }
    }
    /// Average rate available to an application, whole packets, bit/s; `None` before the first report, when nothing
    /// is known of the path.
    #[must_use]
    pub fn allowed(&self) -> Option<f64> {
        let State { rate, rtt, .. } = self.state();
        rtt.map(|_| rate * 8.0)
    }
    /// Counters so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters { refused: self.backlog.refused(), expiries: self.control.expiries(), ..self.counters }
    }

    fn pace(&self) -> f64 {
        self.control.instant_rate().min(self.ceiling)
    }
}

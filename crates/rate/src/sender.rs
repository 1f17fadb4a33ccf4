//! The sending end: what waits leaves one by one, at the rate that the control allows.

use crate::backlog::Backlog;
use crate::config::Config;
use crate::control::Control;
use crate::pacer::Pacer;
use crate::packet::{Data, Report};
use skyhaul_base::{Duration, Instant};

/// What a sender has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets sent.
    pub sent: u64,
    /// Bytes of these, headers included.
    pub bytes: u64,
    /// Datagrams that found no room to wait.
    pub refused: u64,
    /// Reports that arrived.
    pub reports: u64,
    /// How often the rate was lowered because reports stayed away.
    pub expiries: u64,
}

/// Where a sender stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    /// The rate that it may send at, bytes per second.
    pub rate: f64,
    /// The round-trip time, smoothed; `None` before the first report.
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
    /// Nothing more will be offered.
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
    /// A datagram of `size` bytes, headers included, is to be sent; false if it finds no room.
    pub fn offer(&mut self, now: Instant, size: u32) -> bool {
        let taken = self.backlog.push(size);
        if taken && self.pacer.next(self.pace()) > now {
            self.pacer.wait();
        }
        taken
    }
    /// Nothing more will be offered: what waits is sent, and data without end ends.
    pub fn finish(&mut self) {
        self.backlog.set_greedy(false);
        self.finished = true;
    }
    /// Nothing waits, and nothing more will be offered.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.finished && self.backlog.is_empty()
    }

    /// The packet to be sent now; to be called until there is none.
    pub fn poll(&mut self, now: Instant) -> Option<Data> {
        self.poll_numbered(now).map(|(data, _)| data)
    }
    /// The same, with the number that the datagram was offered as, from 0; those that found no room are counted. `None` for
    /// data without end.
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
        // What a ceiling of our own holds back, no report is to blame for.
        self.control.sent(now, waits && self.control.instant_rate() <= self.ceiling);
        let number = self.counters.sent;
        self.counters.sent += 1;
        self.counters.bytes += u64::from(size);
        Some((Data { number, sent_at: now, rtt: self.control.rtt(), size }, offered))
    }

    /// A report arrives. One of another protocol, or of a packet of the future, is passed over.
    pub fn handle_report(&mut self, now: Instant, report: &Report) {
        if report.echo <= now && self.control.on_report(now, report) {
            self.counters.reports += 1;
            self.pacer.changed(now, self.pace());
        }
    }
    /// When it wants to be called; [`Instant::MAX`] for not before something happens.
    #[must_use]
    pub fn next_timeout(&self) -> Instant {
        if self.is_over() {
            return Instant::MAX;
        }
        let slot = if self.backlog.is_empty() { Instant::MAX } else { self.pacer.next(self.pace()) };
        self.control.next_timeout().min(slot)
    }
    /// Handles a timer that is due; one that is not is left.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.control.handle_timeout(now);
    }

    /// Where it stands.
    #[must_use]
    pub fn state(&self) -> State {
        State {
            rate: self.control.rate().min(self.ceiling),
            rtt: self.control.rtt(),
            loss: self.control.loss(),
        }
    }
    /// What an application may send at in the long run, whole packets, bit/s; `None` before the first report, when nothing is
    /// known of the path.
    #[must_use]
    pub fn allowed(&self) -> Option<f64> {
        let State { rate, rtt, .. } = self.state();
        rtt.map(|_| rate * 8.0)
    }
    /// What it has done.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters { refused: self.backlog.refused(), expiries: self.control.expiries(), ..self.counters }
    }

    fn pace(&self) -> f64 {
        self.control.instant_rate().min(self.ceiling)
    }
}

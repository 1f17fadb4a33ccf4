//! The receiving end.

use crate::config::Config;
use crate::packet::{Data, Report};
use crate::{ssvp, tfrc};
use skyhaul_base::Instant;

/// What a receiver has heard so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Heard {
    /// Reports sent.
    pub reports: u64,
    /// Packets given up.
    pub lost: u64,
    /// Loss events: losses of one round-trip time are one. Only TFRC tells them apart.
    pub loss_events: Option<u64>,
    /// The loss event rate; `None` with SSVP.
    pub loss_event_rate: Option<f64>,
}

#[derive(Clone, Debug)]
enum Kind {
    Tfrc(Box<tfrc::Receiver>),
    Ssvp(Box<ssvp::Receiver>),
}

/// The receiving end of a flow.
#[derive(Clone, Debug)]
pub struct Receiver {
    kind: Kind,
    reports: u64,
}

impl Receiver {
    /// For a configuration that [`Config::resolve`] returned.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let kind = match config {
            Config::Tfrc(c) => Kind::Tfrc(Box::new(tfrc::Receiver::new(*c))),
            Config::Ssvp(c) => Kind::Ssvp(Box::new(ssvp::Receiver::new(*c))),
        };
        Self { kind, reports: 0 }
    }
    /// A packet arrives; with `marked`, it met congestion on its way (ECN), which both take for a loss.
    pub fn handle(&mut self, now: Instant, data: &Data, marked: bool) {
        match &mut self.kind {
            Kind::Tfrc(r) => r.handle(now, data, marked),
            Kind::Ssvp(r) => r.handle(now, data, marked),
        }
    }
    /// An oracle says that the channel lost the packet of this number. With TFRC's `ignore-corruption` it counts for nothing.
    pub fn excuse(&mut self, number: u64) {
        match &mut self.kind {
            Kind::Tfrc(r) => r.excuse(number),
            Kind::Ssvp(_) => {}
        }
    }
    /// When it wants to be called; [`Instant::MAX`] for not before something arrives.
    #[must_use]
    pub fn next_timeout(&self) -> Instant {
        match &self.kind {
            Kind::Tfrc(r) => r.next_timeout(),
            Kind::Ssvp(r) => r.next_timeout(),
        }
    }
    /// Handles a timer that is due; one that is not is left.
    pub fn handle_timeout(&mut self, now: Instant) {
        match &mut self.kind {
            Kind::Tfrc(r) => r.handle_timeout(now),
            Kind::Ssvp(r) => r.handle_timeout(now),
        }
    }
    /// The report to be sent now; to be called until there is none.
    pub fn poll(&mut self) -> Option<Report> {
        let report = match &mut self.kind {
            Kind::Tfrc(r) => r.poll(),
            Kind::Ssvp(r) => r.poll(),
        };
        self.reports += u64::from(report.is_some());
        report
    }
    /// What it has heard so far.
    #[must_use]
    pub fn heard(&self) -> Heard {
        let reports = self.reports;
        match &self.kind {
            Kind::Tfrc(r) => Heard {
                reports,
                lost: r.lost(),
                loss_events: Some(r.events()),
                loss_event_rate: Some(r.loss_event_rate()),
            },
            Kind::Ssvp(r) => Heard { reports, lost: r.lost(), loss_events: None, loss_event_rate: None },
        }
    }
}

//! The receiving end.

use crate::config::Config;
use crate::packet::{Data, Report};
use crate::{ssvp, tfrc};
use skyhaul_base::Instant;

/// Results of a receiver so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReceiverStatistics {
    /// Reports sent.
    pub reports: u64,
    /// Packets declared lost, and with SSVP ECN-marked ones. With TFRC, less those that arrived late and withdrew their
    /// loss event.
    pub lost: u64,
    /// Loss events: losses within one RTT count as one. Only TFRC distinguishes them.
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
    /// A packet arrives; `marked`: it was ECN-marked, which both protocols treat as a loss.
    pub fn handle(&mut self, now: Instant, data: &Data, marked: bool) {
        match &mut self.kind {
            Kind::Tfrc(r) => r.handle(now, data, marked),
            Kind::Ssvp(r) => r.handle(now, data, marked),
        }
    }
    /// An oracle reports that the channel lost the packet with this number. With TFRC's `ignore-corruption` the
    /// loss is ignored.
    pub fn excuse(&mut self, number: u64) {
        match &mut self.kind {
            Kind::Tfrc(r) => r.excuse(number),
            Kind::Ssvp(_) => {}
        }
    }
    /// When it needs a call; [`Instant::MAX`] means not before the next arrival.
    #[must_use]
    pub fn next_timeout(&self) -> Instant {
        match &self.kind {
            Kind::Tfrc(r) => r.next_timeout(),
            Kind::Ssvp(r) => r.next_timeout(),
        }
    }
    /// Handles the timer if it is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        match &mut self.kind {
            Kind::Tfrc(r) => r.handle_timeout(now),
            Kind::Ssvp(r) => r.handle_timeout(now),
        }
    }
    /// The report to send now; to be called until there is none.
    pub fn poll(&mut self) -> Option<Report> {
        let report = match &mut self.kind {
            Kind::Tfrc(r) => r.poll(),
            Kind::Ssvp(r) => r.poll(),
        };
        self.reports += u64::from(report.is_some());
        report
    }
    /// Results so far.
    #[must_use]
    pub fn statistics(&self) -> ReceiverStatistics {
        let reports = self.reports;
        match &self.kind {
            Kind::Tfrc(r) => ReceiverStatistics {
                reports,
                lost: r.lost(),
                loss_events: Some(r.events()),
                loss_event_rate: Some(r.loss_event_rate()),
            },
            Kind::Ssvp(r) => {
                ReceiverStatistics { reports, lost: r.lost(), loss_events: None, loss_event_rate: None }
            }
        }
    }
}

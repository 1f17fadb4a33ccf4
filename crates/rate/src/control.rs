//! Rate control of either protocol.

use crate::config::Config;
use crate::packet::{Report, ReportBody};
use crate::{ssvp, tfrc};
use skyhaul_base::{Duration, Instant};

/// The rate control of a sender.
#[derive(Clone, Debug)]
pub(crate) enum Control {
    Tfrc(Box<tfrc::Control>),
    Ssvp(Box<ssvp::Control>),
}

impl Control {
    pub(crate) fn new(now: Instant, config: &Config) -> Self {
        let segment = config.segment();
        match config {
            Config::Tfrc(c) => Self::Tfrc(Box::new(tfrc::Control::new(now, *c, segment))),
            Config::Ssvp(c) => Self::Ssvp(Box::new(ssvp::Control::new(now, *c, segment))),
        }
    }
    /// The allowed rate, bytes per second.
    pub(crate) fn rate(&self) -> f64 {
        match self {
            Self::Tfrc(c) => c.rate(),
            Self::Ssvp(c) => c.rate(),
        }
    }
    /// The sending rate, bytes per second: the allowed rate with TFRC's damping.
    pub(crate) fn instant_rate(&self) -> f64 {
        match self {
            Self::Tfrc(c) => c.instant_rate(),
            Self::Ssvp(c) => c.rate(),
        }
    }
    /// The smoothed RTT; `None` before the first report.
    pub(crate) fn rtt(&self) -> Option<Duration> {
        match self {
            Self::Tfrc(c) => c.rtt(),
            Self::Ssvp(c) => c.rtt(),
        }
    }
    /// The loss event rate as last reported; SSVP has none.
    pub(crate) fn loss(&self) -> Option<f64> {
        match self {
            Self::Tfrc(c) => Some(c.loss()),
            Self::Ssvp(_) => None,
        }
    }
    /// How often the rate was reduced because reports were missing.
    pub(crate) fn expiries(&self) -> u64 {
        match self {
            Self::Tfrc(c) => c.expiries(),
            Self::Ssvp(c) => c.expiries(),
        }
    }
    pub(crate) fn next_timeout(&self) -> Instant {
        match self {
            Self::Tfrc(c) => c.next_timeout(),
            Self::Ssvp(c) => c.next_timeout(),
        }
    }
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Tfrc(c) => c.handle_timeout(now),
            Self::Ssvp(c) => c.handle_timeout(now),
        }
    }
    /// A packet is sent; `waits`: more are waiting.
    pub(crate) fn sent(&mut self, now: Instant, waits: bool) {
        match self {
            Self::Tfrc(c) => c.sent(now, waits),
            Self::Ssvp(c) => c.sent(now, waits),
        }
    }
    /// A report arrives; false if it belongs to the other protocol.
    pub(crate) fn on_report(&mut self, now: Instant, report: &Report) -> bool {
        let on = (report.echo, report.held);
        match (self, report.body) {
            (Self::Tfrc(c), ReportBody::Tfrc { received, loss }) => {
                c.on_report(now, on, received.into(), loss.into());
            }
            (Self::Ssvp(c), ReportBody::Ssvp { lost, .. }) => c.on_report(now, on, lost),
            _ => return false,
        }
        true
    }
}

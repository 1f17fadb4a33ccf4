//! The received packet with the highest number, on which reports are based.

use crate::packet::{Data, Report, ReportBody};
use skyhaul_base::{Duration, Instant};

/// The packet with the highest number so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Highest {
    /// Its number, send time and arrival time.
    packet: Option<(u64, Instant, Instant)>,
    rtt: Option<Duration>,
}

impl Highest {
    /// A packet arrives.
    pub(crate) fn arrived(&mut self, now: Instant, data: &Data) {
        if self.number().is_none_or(|highest| data.number >= highest) {
            self.packet = Some((data.number, data.sent_at, now));
            self.rtt = data.rtt.or(self.rtt);
        }
    }
    /// Its number.
    pub(crate) fn number(&self) -> Option<u64> {
        self.packet.map(|(number, _, _)| number)
    }
    /// The last RTT that a packet carried.
    pub(crate) fn rtt(&self) -> Option<Duration> {
        self.rtt
    }
    /// When the report after one that is sent now is due.
    pub(crate) fn next_report(&self, now: Instant) -> Instant {
        self.rtt.map_or(Instant::MAX, |rtt| now + rtt)
    }
    /// A report based on it; `None` before the first arrival.
    pub(crate) fn report(&self, now: Instant, body: ReportBody) -> Option<Report> {
        self.packet.map(|(_, echo, arrived)| Report::new(now, echo, arrived, body))
    }
}

//! The receiver of SSVP: counts missing packets.

use super::Config;
use crate::highest::Highest;
use crate::loss::{Arrival, Losses};
use crate::option::Feedback;
use crate::packet::{Data, Report, ReportBody};
use skyhaul_base::Instant;

/// The receiver.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    feedback: Feedback,
    losses: Losses,
    highest: Highest,
    lost: u64,
    timer: Instant,
    /// Packets arrived since the last report.
    news: bool,
    due: Option<Report>,
}

impl Receiver {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            feedback: config.feedback,
            losses: Losses::default(),
            highest: Highest::default(),
            lost: 0,
            timer: Instant::MAX,
            news: false,
            due: None,
        }
    }

    /// A packet arrives; `marked`: it was ECN-marked.
    pub(crate) fn handle(&mut self, now: Instant, data: &Data, marked: bool) {
        let arrival = self.losses.arrived(now, data.number);
        if arrival == Arrival::Again {
            return;
        }
        self.highest.arrived(now, data);
        // A late packet has been counted already, or is a duplicate.
        self.lost = self.lost.saturating_add((marked && arrival == Arrival::New).into());
        while let Some(gap) = self.losses.poll() {
            self.lost = self.lost.saturating_add(gap.len());
        }
        self.news = true;
        if self.feedback == Feedback::Packet || self.timer == Instant::MAX {
            self.report(now);
        }
    }
    pub(crate) fn next_timeout(&self) -> Instant {
        self.timer
    }
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.timer > now {
            return;
        }
        // Without anything to report, the next packet is reported at once.
        self.timer = Instant::MAX;
        if self.news {
            self.report(now);
        }
    }
    pub(crate) fn poll(&mut self) -> Option<Report> {
        self.due.take()
    }
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    fn report(&mut self, now: Instant) {
        let Some(highest) = self.highest.number() else { return };
        self.news = false;
        self.timer = self.highest.next_report(now);
        let body = ReportBody::Ssvp { highest: highest as u32, lost: self.lost as u32 };
        self.due = self.highest.report(now, body);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_base::Duration;

    #[test]
    fn it_reports_once_per_round_trip_time_what_was_overtaken() {
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let mut r = Receiver::new(Config::default());
        let mut reports = Vec::new();
        for n in (0..12).filter(|n| *n != 2) {
            r.handle_timeout(at(n * 100));
            reports.extend(r.poll().map(|report| (n, report.body)));
            let rtt = (n > 0).then_some(Duration::from_millis(400));
            r.handle(at(n * 100), &Data { number: n, sent_at: at(n * 100), rtt, size: 1000 }, false);
            reports.extend(r.poll().map(|report| (n, report.body)));
        }
        let expected = [(0, 0, 0), (1, 1, 0), (5, 4, 0), (9, 8, 1)];
        assert_eq!(reports, expected.map(|(n, highest, lost)| (n, ReportBody::Ssvp { highest, lost })));
    }

    #[test]
    fn what_is_marked_counts_as_lost_and_a_copy_of_it_does_not() {
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let mut r = Receiver::new(Config { feedback: Feedback::Packet, ..Config::default() });
        for (n, marked) in [(0, false), (1, true), (1, true), (2, false), (3, true)] {
            r.handle(at(n), &Data { number: n, sent_at: at(n), rtt: None, size: 1000 }, marked);
        }
        assert_eq!(
            (r.lost(), r.poll().map(|report| report.body)),
            (2, Some(ReportBody::Ssvp { highest: 3, lost: 2 }))
        );
    }
}

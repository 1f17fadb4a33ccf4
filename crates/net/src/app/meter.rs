//! Measurements of a connection by interval.

use crate::host::Conn;
use skyhaul_base::{Duration, Instant};

/// Measurements of one interval, of a sender or of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// Start of the interval, since the meter began ([`Meter::began`]).
    pub from: Duration,
    /// End of the interval, since the meter began.
    pub to: Duration,
    /// Payload acknowledged by the peer (sender), or read in order (receiver), bytes.
    pub bytes: u64,
    /// Segments retransmitted.
    pub retransmissions: u64,
    /// Probes sent.
    pub probes_sent: u64,
    /// Probes answered.
    pub probes_answered: u64,
    /// Expirations of the retransmission timer.
    pub timeouts: u64,
    /// Congestion window at the end, bytes.
    pub cwnd: u64,
    /// Congestion window at the end, segments.
    pub cwnd_segments: f64,
    /// Smoothed RTT at the end.
    pub srtt: Option<Duration>,
}

impl Interval {
    /// Goodput, bit/s.
    #[must_use]
    pub fn goodput(&self) -> f64 {
        let secs = (self.to.saturating_sub(self.from)).as_secs_f64();
        if secs > 0.0 { self.bytes as f64 * 8.0 / secs } else { 0.0 }
    }
}

/// Counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Totals {
    bytes: u64,
    retransmissions: u64,
    probes_sent: u64,
    probes_answered: u64,
    timeouts: u64,
}

/// What a meter does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MeterState {
    /// An interval is under way.
    Measuring,
    /// Nothing has moved since the last interval ended: the next one lasts until something does.
    Asleep,
    /// The last interval is closed.
    Finished,
}

/// Reads a connection's counters at regular times.
#[derive(Clone, Debug)]
pub struct Meter {
    receiving: bool,
    every: Duration,
    began: Option<Instant>,
    /// End of the last interval.
    at: Instant,
    last: Totals,
    intervals: Vec<Interval>,
    reported: usize,
    state: MeterState,
    /// Merges idle intervals: an interval without activity lasts until there is some.
    dozes: bool,
}

impl Meter {
    /// A meter of a sender or of a receiver, with intervals of length `every`, which must not be zero.
    #[must_use]
    pub fn new(receiving: bool, every: Duration) -> Self {
        Self {
            receiving,
            every,
            began: None,
            at: Instant::ZERO,
            last: Totals::default(),
            intervals: Vec::new(),
            reported: 0,
            state: MeterState::Measuring,
            dozes: false,
        }
    }
    /// Merges the whole intervals of idle time into one, however many: idle connections then cost neither time nor
    /// memory.
    #[must_use]
    pub fn dozing(mut self) -> Self {
        self.dozes = true;
        self
    }

    /// Whether it counts received data.
    #[must_use]
    pub fn is_receiving(&self) -> bool {
        self.receiving
    }

    fn totals(&self, c: &Conn) -> Totals {
        let n = c.counters();
        Totals {
            bytes: if self.receiving { c.bytes_read() } else { n.bytes_acked },
            retransmissions: n.retransmissions,
            probes_sent: n.probes_sent,
            probes_answered: n.probes_answered,
            timeouts: n.timeouts,
        }
    }

    /// Starts time, if it has not started: to be called when the connection is established.
    pub fn begin(&mut self, now: Instant) {
        if self.began.is_none() {
            (self.began, self.at) = (Some(now), now);
        }
    }
    /// Starts time, if it has not started. What the connection has carried before does not count.
    pub fn begin_from(&mut self, now: Instant, c: &Conn) {
        self.begin(now);
        self.last = self.totals(c);
    }
    /// When time started; `None` before.
    #[must_use]
    pub fn began(&self) -> Option<Instant> {
        self.began
    }
    /// When the current interval ends; [`Instant::MAX`] if there is none or it has no fixed end.
    #[must_use]
    pub fn next(&self) -> Instant {
        if self.began.is_some() && self.state == MeterState::Measuring {
            self.at + self.every
        } else {
            Instant::MAX
        }
    }
    /// Closes the intervals that are over; to be called at [`Self::next`] and when something may have happened.
    pub fn turn(&mut self, now: Instant, c: &Conn) {
        if self.state == MeterState::Asleep {
            self.wake(now, c);
        }
        while self.next() <= now {
            self.close(self.next(), c);
        }
    }
    /// Ends idle time: merges its whole intervals into one.
    fn wake(&mut self, now: Instant, c: &Conn) {
        let (Some(began), every) = (self.began, self.every.as_nanos()) else { return };
        self.state = MeterState::Measuring;
        let slept = Duration::from_nanos((now - self.at).as_nanos() / every * every);
        if slept.is_zero() {
            return;
        }
        let (s, to) = (c.snapshot(), self.at + slept);
        self.intervals.push(Interval {
            from: self.at - began,
            to: to - began,
            cwnd: (s.cwnd * f64::from(c.segment_size())) as u64,
            cwnd_segments: s.cwnd,
            srtt: s.srtt,
            ..Interval::default()
        });
        self.at = to;
    }
    /// Closes the last interval now; only the first call counts.
    pub fn finish(&mut self, now: Instant, c: &Conn) {
        self.turn(now, c);
        if self.state == MeterState::Asleep {
            self.wake(now, c);
        }
        // The rest counts even if nothing moves in it: the sum of the intervals is the whole time.
        self.dozes = false;
        if self.began.is_some() && now > self.at && self.state == MeterState::Measuring {
            self.close(now, c);
        }
        self.state = MeterState::Finished;
    }
    fn close(&mut self, at: Instant, c: &Conn) {
        let Some(began) = self.began else { return };
        let (now, old) = (self.totals(c), self.last);
        if self.dozes && now == old {
            self.state = MeterState::Asleep;
            return;
        }
        let s = c.snapshot();
        self.intervals.push(Interval {
            from: self.at - began,
            to: at - began,
            bytes: now.bytes - old.bytes,
            retransmissions: now.retransmissions - old.retransmissions,
            probes_sent: now.probes_sent - old.probes_sent,
            probes_answered: now.probes_answered - old.probes_answered,
            timeouts: now.timeouts - old.timeouts,
            cwnd: (s.cwnd * f64::from(c.segment_size())) as u64,
            cwnd_segments: s.cwnd,
            srtt: s.srtt,
        });
        (self.at, self.last) = (at, now);
    }

    /// All intervals so far.
    #[must_use]
    pub fn intervals(&self) -> &[Interval] {
        &self.intervals
    }
    /// Whether there are intervals not reported yet.
    #[must_use]
    pub fn has_news(&self) -> bool {
        self.reported < self.intervals.len()
    }
    /// Intervals not reported yet, which then count as reported.
    pub fn news(&mut self) -> &[Interval] {
        let from = std::mem::replace(&mut self.reported, self.intervals.len());
        self.intervals.get(from..).unwrap_or_default()
    }
    /// All intervals merged into one.
    #[must_use]
    pub fn sum(&self) -> Interval {
        self.intervals.iter().fold(Interval::default(), |a, b| Interval {
            from: a.from,
            to: b.to,
            bytes: a.bytes + b.bytes,
            retransmissions: a.retransmissions + b.retransmissions,
            probes_sent: a.probes_sent + b.probes_sent,
            probes_answered: a.probes_answered + b.probes_answered,
            timeouts: a.timeouts + b.timeouts,
            cwnd: b.cwnd,
            cwnd_segments: b.cwnd_segments,
            srtt: b.srtt,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{Endpoint, Host, HostConfig, Secret};
    use std::net::SocketAddr;

    #[test]
    fn idle_time_at_the_end_of_a_connection_counts() {
        let end = |n| SocketAddr::from(([10, 84, 0, n], 80));
        let ms = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut host = Host::new(HostConfig::new(vec![end(1).ip()], Secret::fixed([1; 16])));
        let endpoint = Endpoint::host(skyhaul_cc::Config::by_name("cubic").unwrap());
        let id = host.connect(Instant::ZERO, end(1), end(2), &endpoint).unwrap();
        let conn = host.conn(id).unwrap();
        // Whether the meter was called at the end of its interval or not.
        for calls in [&[][..], &[1000], &[1000, 2200]] {
            let mut meter = Meter::new(true, Duration::from_secs(1)).dozing();
            meter.begin(ms(0));
            calls.iter().for_each(|at| meter.turn(ms(*at), conn));
            meter.finish(ms(2500), conn);
            let spans: Vec<_> = meter.intervals().iter().map(|i| (ms(0) + i.from, ms(0) + i.to)).collect();
            assert_eq!(spans, [(ms(0), ms(2000)), (ms(2000), ms(2500))], "{calls:?}");
        }
    }
}

//! Measurements: the sample of an acknowledgement, the minimum RTT, the plateau of the rate (draft §4, §5.3.1.2,
//! §5.3.4.3).

use super::Config;
use crate::event::{Ack, Path};
use crate::parts::held_back::HeldBack;
use skyhaul_base::{Duration, Instant, Rate};

/// The draft's `RS`: volumes in segments, rates in bit/s; zero if unknown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    pub(super) rate: f64,
    pub(super) delivered: f64,
    pub(super) prior_delivered: Option<u64>,
    pub(super) lost: f64,
    pub(super) in_flight: f64,
    pub(super) limited: bool,
}

impl Sample {
    pub(super) fn of(path: &Path, ack: &Ack, held_back: &HeldBack) -> Self {
        let Some(rs) = ack.rate else { return Self::default() };
        let segments = |bytes: u64| bytes as f64 / f64::from(path.smss);
        Self {
            rate: rs.rate.map_or(0.0, |r: Rate| r.bits_per_sec() as f64),
            delivered: segments(rs.delivered),
            prior_delivered: Some(rs.prior_delivered),
            lost: segments(rs.lost),
            in_flight: segments(rs.in_flight),
            limited: rs.app_limited || held_back.contains(rs.prior_delivered),
        }
    }
}

/// The minimum RTT within `min-rtt-window` (`min_rtt`), derived from that within `probe-rtt-interval`
/// (`probe_rtt_min_delay`).
#[derive(Clone, Debug, Default)]
pub(super) struct MinRtt {
    min_rtt: Option<Duration>,
    min_rtt_stamp: Instant,
    probe_rtt_min_delay: Option<Duration>,
    probe_rtt_min_stamp: Instant,
}

impl MinRtt {
    pub(super) fn min(&self) -> Option<Duration> {
        self.min_rtt
    }

    pub(super) fn begin(&mut self, now: Instant, rtt: Option<Duration>) {
        *self =
            Self { min_rtt: rtt, min_rtt_stamp: now, probe_rtt_min_delay: None, probe_rtt_min_stamp: now };
    }

    /// The next measurement is due one interval from now.
    pub(super) fn measured(&mut self, now: Instant) {
        self.probe_rtt_min_stamp = now;
    }

    /// `UpdateMinRTT`; true if the RTT must be measured.
    pub(super) fn update(&mut self, now: Instant, rtt: Option<Duration>, config: &Config) -> bool {
        let past = |at: Instant, seconds: f64| now > at + Duration::from_secs_f64(seconds);
        let expired = past(self.probe_rtt_min_stamp, config.probe_rtt_interval);
        if let Some(rtt) = rtt.filter(|&rtt| expired || self.probe_rtt_min_delay.is_none_or(|r| rtt < r)) {
            self.probe_rtt_min_delay = Some(rtt.max(Duration::from_nanos(1)));
            self.probe_rtt_min_stamp = now;
        }
        let stale = past(self.min_rtt_stamp, config.min_rtt_window);
        if let Some(recent) =
            self.probe_rtt_min_delay.filter(|&r| stale || self.min_rtt.is_none_or(|m| r < m))
        {
            self.min_rtt = Some(recent);
            self.min_rtt_stamp = self.probe_rtt_min_stamp;
        }
        expired
    }
}

/// The full-pipe estimator: three rounds that add less than a quarter.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Plateau {
    full_bw: f64,
    full_bw_count: u32,
    pub(super) full_bw_now: bool,
}

impl Plateau {
    /// `ResetFullBW`, with a first baseline.
    pub(super) fn reset(&mut self, full_bw: f64) {
        *self = Self { full_bw, ..Self::default() };
    }

    /// `CheckFullBWReached` at the start of a round; true if the pipe is full now.
    pub(super) fn update(&mut self, rate: f64) -> bool {
        if self.full_bw_now {
            return false;
        }
        if rate >= self.full_bw * 1.25 {
            self.reset(rate);
            return false;
        }
        self.full_bw_count += 1;
        self.full_bw_now = self.full_bw_count >= 3;
        self.full_bw_now
    }
}

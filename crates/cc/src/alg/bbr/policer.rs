//! Estimates the rate of a traffic policer.

use super::State;
use crate::event::Path;
use skyhaul_base::{Duration, Instant};

/// The estimate of `tcp_bbr` in Linux (`bbr_lt_bw_sampling`) of the rate of a token-bucket policer; Flach et al., SIGCOMM 2016,
/// describe such policers.
#[derive(Clone, Debug, Default)]
pub(super) struct Policer {
    /// Rate of the last lossy interval, or once in use, the estimate, bit/s; 0 if there was none.
    pub(super) rate: f64,
    /// The estimate is in use.
    pub(super) in_use: bool,
    /// An interval is being sampled.
    sampling: bool,
    /// Rounds in this interval, or since the estimate is in use.
    rounds: u32,
    /// Start of the interval, and the counters of the path at that time, bytes.
    began: Instant,
    delivered: u64,
    lost: u64,
}

impl Policer {
    /// Minimum rounds of an interval; the maximum is four times as many.
    const ROUNDS: u32 = 4;
    /// Ratio of lost to delivered data, in 1/256, that makes an interval lossy: about 20 %.
    const LOSSY: u64 = 50;
    /// Rounds for which the estimate is used.
    const USE_ROUNDS: u32 = 48;

    fn begin_interval(&mut self, now: Instant, path: &Path) {
        (self.began, self.delivered, self.lost, self.rounds) = (now, path.delivered, path.lost, 0);
    }
    pub(super) fn reset(&mut self, now: Instant, path: &Path) {
        (self.rate, self.in_use, self.sampling) = (0.0, false, false);
        self.begin_interval(now, path);
    }
    /// Processes an acknowledgement: whether it starts a round and reveals a loss, and whether the application limited its
    /// rate sample. True if the estimate has expired: the gain cycle starts over.
    pub(super) fn update(
        &mut self,
        now: Instant,
        path: &Path,
        state: State,
        new_round: bool,
        loss: bool,
        limited: bool,
    ) -> bool {
        if self.in_use {
            if state == State::ProbeBw && new_round {
                self.rounds += 1;
                if self.rounds >= Self::USE_ROUNDS {
                    self.reset(now, path);
                    return true;
                }
            }
            return false;
        }
        if !self.sampling {
            if !loss {
                return false;
            }
            // The first loss shows that the bucket is empty: only now is the rate the policed one. As in Linux, a round that
            // starts with this acknowledgement is the first of the interval.
            self.begin_interval(now, path);
            self.sampling = true;
        }
        if limited {
            self.reset(now, path);
            return false;
        }
        self.rounds += u32::from(new_round);
        if self.rounds < Self::ROUNDS {
            return false;
        }
        if self.rounds > 4 * Self::ROUNDS {
            self.reset(now, path);
            return false;
        }
        let (lost, delivered) = (path.lost - self.lost, path.delivered - self.delivered);
        if !loss || delivered == 0 || lost * 256 < Self::LOSSY * delivered {
            return false;
        }
        let over = now - self.began;
        if over < Duration::from_millis(1) {
            return false;
        }
        let rate = delivered as f64 * 8.0 / over.as_secs_f64();
        let apart = (rate - self.rate).max(self.rate - rate);
        // Two consecutive intervals within 1/8, or 4 kbit/s, of each other.
        if self.rate > 0.0 && (apart <= self.rate / 8.0 || apart <= 4000.0) {
            self.rate = f64::midpoint(rate, self.rate);
            self.in_use = true;
            self.rounds = 0;
        } else {
            self.rate = rate;
            self.begin_interval(now, path);
        }
        false
    }
}

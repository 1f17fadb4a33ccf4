//! Paths that swallow long packets and say nothing (RFC 8899 §4.3, RFC 4821 §7.7; Linux: `tcp_mtu_probing` = 1).
//!
//! When a segment longer than 1024 bytes has timed out four times in a row, segments become shorter: 1024 bytes first,
//! then 512, which is as little as we believe a router that says so. Since an outage looks alike, the full size is tried again soon: the first of it that is
//! acknowledged ends the matter, a timeout before that returns to the shorter size at once, and the next trial waits twice
//! as long.

use skyhaul_base::{Duration, Instant};

/// Timeouts in a row after which a path is suspected.
const TIMEOUTS: u32 = 4;
/// Payload of the first shorter segments, bytes, and of those with which a search for the longest begins (RFC 4821 §7.2; Linux:
/// `tcp_base_mss`).
pub(crate) const BASE: u32 = 1024;
/// And the least, bytes: a packet of 552 bytes, the shortest that an ICMP message is believed of. Every outage passes through here, and
/// crumbs would make it dear.
const LEAST: u32 = 512;
/// Before the first trial of the full size; and between trials, at the most (RFC 8899 §5.1.1, `PMTU_RAISE_TIMER`).
const FIRST_TRIAL: Duration = Duration::from_secs(10);
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// A path that is suspected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hole {
    /// Payload of a full segment as the ends agreed on it, bytes, and of the shorter ones that go in its place.
    pub(crate) full: u32,
    pub(crate) short: u32,
    /// When the full size is tried next, and how long that waited.
    trial_at: Instant,
    wait: Duration,
    /// A trial is under way: everything from here on was sent in full size.
    trial: Option<u64>,
}

impl Hole {
    /// The retransmission timer has expired for the `backoff`-th time in a row, the segment that waits has `len` bytes, and
    /// full ones have `smss`. What is suspected from now on; `None` if that is no reason to send shorter ones.
    pub(crate) fn suspect(
        known: Option<Self>,
        now: Instant,
        backoff: u32,
        len: u32,
        smss: u32,
    ) -> Option<Self> {
        let fresh = Self { full: smss, short: smss, trial_at: now, wait: FIRST_TRIAL, trial: None };
        let mut hole = known.unwrap_or(fresh);
        if hole.trial.take().is_some() {
            hole.wait = (hole.wait * 2).min(LONGEST_WAIT);
        } else if backoff >= TIMEOUTS && (known.is_some() || smss > BASE) {
            hole.short = if smss > BASE { BASE } else { LEAST };
        } else {
            return None;
        }
        hole.trial_at = now + hole.wait;
        (len > hole.short && hole.short < smss).then_some(hole)
    }
    /// The size to fall back to where nothing is remembered of earlier falls: the segment that waits has `len` bytes, and full
    /// ones have `smss`.
    pub(crate) fn shorter(backoff: u32, len: u32, smss: u32) -> Option<u32> {
        let short = if smss > BASE { BASE } else { LEAST };
        (backoff >= TIMEOUTS && len > short && short < smss).then_some(short)
    }
    /// Whether full segments up to here prove that there is no hole any more.
    pub(crate) fn is_disproved(&self, una: u64) -> bool {
        self.trial.is_some_and(|from| una >= from + u64::from(self.full))
    }
    /// It is time to try the full size again.
    pub(crate) fn may_try(&self, now: Instant) -> bool {
        self.trial.is_none() && now >= self.trial_at
    }
    /// Everything from here on is sent in full size.
    pub(crate) fn begin_trial(&mut self, from: u64) {
        self.trial = Some(from);
    }
}
